//! Playing for a score: the policy at its test temperature, episodes side by side.

use burn::tensor::{Device, Tensor, TensorData};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::actor_critic::ControllerState;
use crate::agent::Player;
use crate::config::{Config, EnvSettings};
use crate::env::{self, Env, EnvError, Outcome};
use crate::seeds::{Purpose, Seeds};

/// Steps of the filmed episode that are kept at most.
const MAX_FILM: usize = 300;

/// Episodes played side by side at most.
const SIDE_BY_SIDE: usize = 32;

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
    let end_on_life_loss = settings.end_on_life_loss.test;
    env::make(
        &settings.game,
        settings.frame_size,
        seed,
        end_on_life_loss,
        settings.max_steps.test,
    )
}

struct Seat {
    episode: usize,
    env: Box<dyn Env>,
    frame: Vec<u8>,
    rng: ChaCha8Rng,
    total: f32,
    length: usize,
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
    let mut done = 0;
    for first in (0..episodes).step_by(SIDE_BY_SIDE) {
        let mut seats = (first..episodes.min(first + SIDE_BY_SIDE))
            .map(|episode| {
                let index = episode as u64;
                let mut env = test_env(
                    &config.env,
                    seeds.derive(0, Purpose::EvaluationEnvironment, index),
                )?;
                let frame = env.reset();
                let rng = ChaCha8Rng::seed_from_u64(seeds.derive(0, Purpose::Evaluation, index));
                Ok(Seat {
                    episode,
                    env,
                    frame,
                    rng,
                    total: 0.0,
                    length: 0,
                })
            })
            .collect::<Result<Vec<Seat>, EnvError>>()?;
        let mut state = player.actor_critic.initial_state(seats.len());
        while !seats.is_empty() {
            state = play_step(player, config, &mut seats, state, &mut out, device);
            done += retire(&mut seats, &mut state, &mut out, device);
            progress(done);
        }
    }
    Ok(out)
}

/// One step of every seat.
fn play_step(
    player: &Player,
    config: &Config,
    seats: &mut [Seat],
    state: ControllerState,
    out: &mut Evaluation,
    device: &Device,
) -> ControllerState {
    let frames = seats.iter().map(|s| &s.frame[..]);
    let tokens = player.see(frames, config.env.frame_size, device);
    let draws: Vec<f32> = seats.iter_mut().map(|s| s.rng.random()).collect();
    let (state, actions) = player.decide(tokens, state, config.evaluate.temperature, &draws);
    for (seat, action) in seats.iter_mut().zip(&actions) {
        let step = seat.env.step(*action);
        if seat.episode == 0 && out.film.actions.len() < MAX_FILM {
            out.film.frames.push(std::mem::take(&mut seat.frame));
            out.film.actions.push(*action);
            out.film.rewards.push(step.reward);
        }
        seat.frame = step.frame;
        seat.total += step.reward;
        seat.length += 1;
        if step.outcome != Outcome::Continues {
            out.returns[seat.episode] = seat.total;
            out.lengths[seat.episode] = seat.length;
        }
    }
    player.act(&actions, state)
}

/// Clears the seats whose episode is over; returns how many.
fn retire(
    seats: &mut Vec<Seat>,
    state: &mut ControllerState,
    out: &mut Evaluation,
    device: &Device,
) -> usize {
    let over = |s: &Seat| out.lengths[s.episode] > 0;
    let left: Vec<i64> = (0..seats.len())
        .filter(|i| !over(&seats[*i]))
        .map(|i| i as i64)
        .collect();
    let retired = seats.len() - left.len();
    if retired == 0 {
        return 0;
    }
    if let Some(first) = seats
        .iter_mut()
        .find(|s| s.episode == 0 && out.lengths[0] > 0)
    {
        out.film.frames.push(std::mem::take(&mut first.frame));
    }
    seats.retain(|s| !over(s));
    if !left.is_empty() {
        let count = left.len();
        *state = state.select(Tensor::from_data(TensorData::new(left, [count]), device));
    }
    retired
}
