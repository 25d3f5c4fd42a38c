//! Playing for a score: the policy at its test temperature, episodes side by side.

use burn::tensor::{Device, Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::actor_critic::ControllerState;
use crate::agent::Player;
use crate::config::{Config, EnvSettings};
use crate::env::{self, Env, EnvError, Outcome};
use crate::seeds::{Purpose, Seeds};

/// Steps of the filmed episode that are kept at most.
const MAX_FILM: usize = 300;

/// Episodes played side by side at most, their environments on as many threads as there are.
const SIDE_BY_SIDE: usize = 8;

/// An episode to look at.
#[derive(Clone, Debug, Default)]
pub struct Film {
    /// One more than there are actions: the last shows how it ended, or went on.
    pub frames: Vec<Vec<u8>>,
    pub actions: Vec<usize>,
    pub rewards: Vec<f32>,
}

#[derive(Clone, Debug)]
pub struct Evaluation {
    pub returns: Vec<f32>,
    pub lengths: Vec<usize>,
    /// The first episode.
    pub film: Film,
}

impl Evaluation {
    pub fn mean(&self) -> f64 {
        mean(&self.returns)
    }
}

pub fn mean(returns: &[f32]) -> f64 {
    returns.iter().map(|r| f64::from(*r)).sum::<f64>() / returns.len().max(1) as f64
}

/// A test environment: no end on a lost life unless the config says so.
pub fn test_env(settings: &EnvSettings, seed: u64) -> Result<Box<dyn Env>, EnvError> {
    env::make(settings, env::Use::Test, seed)
}

struct Seat {
    episode: usize,
    env: Box<dyn Env>,
    frame: Vec<u8>,
    rng: ChaCha8Rng,
    total: f32,
    length: usize,
    over: bool,
}

impl Seat {
    fn new(config: &Config, seeds: &Seeds, episode: usize) -> Result<Self, EnvError> {
        let index = episode as u64;
        let seed = seeds.derive(0, Purpose::EvaluationEnvironment, index);
        let mut env = test_env(&config.env, seed)?;
        Ok(Self {
            episode,
            frame: env.reset(),
            env,
            rng: ChaCha8Rng::seed_from_u64(seeds.derive(0, Purpose::Evaluation, index)),
            total: 0.0,
            length: 0,
            over: false,
        })
    }

    /// Takes an action; returns its reward and the frame before it.
    fn step(&mut self, action: usize) -> (f32, Vec<u8>) {
        let step = self.env.step(action);
        self.total += step.reward;
        self.length += 1;
        self.over = step.outcome != Outcome::Continues;
        (step.reward, std::mem::replace(&mut self.frame, step.frame))
    }
}

/// Plays episodes `0..episodes`. Each has its own environment and generator, seeded by the run and the
/// episode's number, so the same weights always get the same score.
pub fn evaluate(
    player: &Player,
    config: &Config,
    episodes: usize,
    seeds: &Seeds,
    device: &Device,
    mut progress: impl FnMut(usize),
) -> Result<Evaluation, EnvError> {
    // A retried epoch must not change what is measured.
    let seeds = Seeds::new(seeds.run);
    let mut out = Evaluation {
        returns: vec![0.0; episodes],
        lengths: vec![0; episodes],
        film: Film::default(),
    };
    let mut seats: Vec<Seat> = Vec::new();
    let mut state: Option<ControllerState> = None;
    let (mut begun, mut done) = (0, 0);
    while done < episodes {
        let starting = (SIDE_BY_SIDE - seats.len()).min(episodes - begun);
        if starting > 0 {
            for episode in begun..begun + starting {
                seats.push(Seat::new(config, &seeds, episode)?);
            }
            begun += starting;
            let fresh = player.actor_critic.initial_state(starting);
            state = Some(match state {
                Some(state) => state.with(fresh),
                None => fresh,
            });
        }
        let playing = state.expect("some seat is taken");
        let next = play_step(player, config, &mut seats, playing, &mut out.film, device);
        state = retire(&mut seats, next, &mut out, device);
        done = begun - seats.len();
        progress(done);
    }
    Ok(out)
}

/// One step of every seat.
fn play_step(
    player: &Player,
    config: &Config,
    seats: &mut [Seat],
    state: ControllerState,
    film: &mut Film,
    device: &Device,
) -> ControllerState {
    let frames = seats.iter().map(|s| &s.frame[..]);
    let tokens = player.see(frames, config.env.frame_size, device);
    let draws: Vec<f32> = seats.iter_mut().map(|s| s.rng.random()).collect();
    let (state, actions) = player.decide(tokens, state, config.evaluate.temperature, &draws);
    let steps = seats.par_iter_mut().zip(&actions);
    let steps: Vec<_> = steps.map(|(seat, action)| seat.step(*action)).collect();
    let filmed = seats.iter().position(|seat| seat.episode == 0);
    if let Some(i) = filmed.filter(|_| film.actions.len() < MAX_FILM) {
        let (reward, before) = &steps[i];
        film.frames.push(before.clone());
        film.actions.push(actions[i]);
        film.rewards.push(*reward);
    }
    player.act(&actions, state)
}

/// Clears the seats whose episode is over; the state of the others, if there are any.
fn retire(
    seats: &mut Vec<Seat>,
    state: ControllerState,
    out: &mut Evaluation,
    device: &Device,
) -> Option<ControllerState> {
    let playing = |(i, seat): (usize, &Seat)| (!seat.over).then_some(i as i64);
    let left: Vec<i64> = seats.iter().enumerate().filter_map(playing).collect();
    if left.len() == seats.len() {
        return Some(state);
    }
    seats.retain_mut(|seat| {
        if seat.over {
            out.returns[seat.episode] = seat.total;
            out.lengths[seat.episode] = seat.length;
            if seat.episode == 0 {
                out.film.frames.push(std::mem::take(&mut seat.frame));
            }
        }
        !seat.over
    });
    let count = left.len();
    (count > 0).then(|| state.select(Tensor::from_data(TensorData::new(left, [count]), device)))
}
