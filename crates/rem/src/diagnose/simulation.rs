//! Rollouts in the game itself, which continue from saved states.

use burn::tensor::{Int, Tensor};
use rand::Rng;
use rayon::prelude::*;

use super::Subject;
use super::held_out::{GameState, HeldOut};
use crate::config::EnvMode;
use crate::data::batch;
use crate::env::{Env, EnvError, Outcome};
use crate::host;
use crate::imagination::{DreamStep, Rollout, RolloutEnv, roll_out, warmed_up};
use crate::model::agent::Player;

/// Games for simulations, used again and again.
pub(super) struct Simulator {
    envs: Vec<Box<dyn Env>>,
}

impl Simulator {
    /// Up to `count` games side by side. They have no time limit, so that rollouts end at terminal states only, like
    /// dreams.
    pub(super) fn new(subject: &Subject, count: usize) -> Result<Self, EnvError> {
        let envs = subject.envs.without_time_limit();
        // The seed has no effect: the generator is part of a saved state.
        let make = |_| envs.make(EnvMode::Train, 0);
        Ok(Self {
            envs: (0..count).map(make).collect::<Result<_, _>>()?,
        })
    }

    /// What [`crate::imagination::imagine`] does, in the game: rollouts of a policy from states of held-out play, of the
    /// length of imagined ones.
    ///
    /// # Panics
    ///
    /// If there are more states than games.
    pub(super) fn roll_out(
        &mut self,
        subject: &Subject,
        player: &Player,
        play: &mut HeldOut,
        states: &[GameState],
        rng: &mut impl Rng,
    ) -> Result<Rollout, EnvError> {
        let starts = play.dream_starts(subject, &player.tokenizer, states);
        let config = subject.config;
        let (controller, tokenizer) = (&player.actor_critic, &player.tokenizer);
        let with_actions = config.actor_critic.inputs.burn_in_actions();
        let state = warmed_up(controller, tokenizer, &starts, with_actions);
        let mut simulation = self.continued(subject, player, states)?;
        let steps = config.rollout_steps();
        roll_out(controller, tokenizer, state, &mut simulation, steps, rng)
    }

    /// Games that continue from these states.
    pub(super) fn continued<'a>(
        &'a mut self,
        subject: &'a Subject,
        player: &'a Player,
        states: &[GameState],
    ) -> Result<Simulation<'a>, EnvError> {
        let envs = &mut self.envs[..states.len()];
        let restored = envs.par_iter_mut().zip(states);
        let frames: Vec<Vec<u8>> = restored
            .map(|(env, state)| Ok(env.restore(&state.snapshot)?.into_image()))
            .collect::<Result<_, EnvError>>()?;
        Ok(Simulation {
            over: vec![false; envs.len()],
            envs,
            tokens: encoded(&frames, subject, player),
            frames,
            subject,
            player,
        })
    }
}

/// Games that show their observations as tokens, as dreams do. Nothing happens in a game that is over.
pub(super) struct Simulation<'a> {
    envs: &'a mut [Box<dyn Env>],
    frames: Vec<Vec<u8>>,
    over: Vec<bool>,
    tokens: Tensor<2, Int>,
    subject: &'a Subject<'a>,
    player: &'a Player,
}

#[cfg(test)]
impl Simulation<'_> {
    /// The current frame of a game.
    pub(super) fn frame(&self, game: usize) -> &[u8] {
        &self.frames[game]
    }
}

/// `[games, K]`
fn encoded(frames: &[Vec<u8>], subject: &Subject, player: &Player) -> Tensor<2, Int> {
    let frames = frames.iter().map(|frame| &frame[..]);
    let images = batch::frames(frames, subject.config.env.frame_size, subject.device);
    player.tokenizer.encode(images)
}

impl RolloutEnv for Simulation<'_> {
    type Error = EnvError;

    fn tokens(&self) -> Tensor<2, Int> {
        self.tokens.clone()
    }

    fn step(&mut self, actions: Tensor<1, Int>, _: &mut impl Rng) -> Result<DreamStep, EnvError> {
        let actions = host::ints(actions);
        let games = (self.envs.par_iter_mut().zip(&mut self.frames)).zip(&mut self.over);
        let steps: Vec<f32> = games
            .zip(&actions)
            .map(|(((env, frame), over), action)| {
                if *over {
                    return Ok(0.0);
                }
                let step = env.step(&(*action as usize).into())?;
                *over = step.outcome != Outcome::Running;
                *frame = step.observation.into_image();
                Ok(step.reward)
            })
            .collect::<Result<_, EnvError>>()?;
        self.tokens = encoded(&self.frames, self.subject, self.player);
        let rewards = steps.into_iter().map(|r| self.subject.learned_reward(r));
        Ok(DreamStep {
            rewards: rewards.collect(),
            ends: self.over.clone(),
            disagreements: Vec::new(),
        })
    }
}
