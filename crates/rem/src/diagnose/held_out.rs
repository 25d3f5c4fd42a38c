//! Held-out play: new episodes of an agent, with states of the game to continue from.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{Progress, Subject};
use crate::config::{Config, EnvMode};
use crate::data::batch::DreamStarts;
use crate::data::replay::{Replay, Segment, StepId};
use crate::env::EnvError;
use crate::model::agent::Player;
use crate::model::tokenizer::Tokenizer;
use crate::seeds::Purpose;
use crate::train::{CollectEnv, collect};

/// Games that are played side by side.
const GAMES: usize = 8;
/// Most steps of a game from one saved state to the next.
const MOST_STEPS_BETWEEN: usize = 15;
/// Most saved states: those of an Atari game take 100 MB.
const MOST_STATES: usize = 1024;

/// New episodes of an agent, played like those that it is trained on but without random actions.
pub struct HeldOut {
    /// For collection.
    config: Config,
    envs: Vec<CollectEnv>,
    pub(super) replay: Replay,
    states: Vec<GameState>,
    /// States that were saved, including those that others have replaced.
    saved: usize,
    rng: ChaCha8Rng,
}

/// A state of the game: the one in which a step was taken.
#[derive(Clone, Debug)]
pub(super) struct GameState {
    pub(super) step: StepId,
    pub(super) snapshot: Vec<u8>,
}

impl HeldOut {
    /// Plays `steps` steps.
    ///
    /// # Errors
    ///
    /// If an environment cannot be created or fails, or its state cannot be saved.
    pub fn play(subject: &Subject, steps: usize, progress: Progress) -> Result<Self, EnvError> {
        let mut config = subject.config.clone();
        config.collect.epsilon = 0.0;
        config.collect.reset_per_epoch = false;
        let seeds = subject.seeds();
        let make = |index| {
            let seed = seeds.derive(0, Purpose::HeldOutEnvironment, index);
            subject.envs.make(EnvMode::Train, seed).map(CollectEnv::new)
        };
        let mut envs: Vec<CollectEnv> = (0..GAMES as u64).map(make).collect::<Result<_, _>>()?;
        envs[0].env.reset()?;
        snapshot(&mut envs[0], &config.env.game)?;
        let mut play = Self {
            envs,
            replay: Replay::new(config.frame_bytes(), config.tokens_per_obs()),
            states: Vec::new(),
            saved: 0,
            rng: seeds.rng(0, Purpose::HeldOutEnvironment),
            config,
        };
        play.extend(&subject.agent.valid(), steps, progress)?;
        Ok(play)
    }

    /// Continues with another player, for at least `steps` steps.
    pub(super) fn extend(
        &mut self,
        player: &Player,
        steps: usize,
        progress: Progress,
    ) -> Result<(), EnvError> {
        let device = player.codes.device();
        let mut done = 0;
        while done < steps {
            self.save_states()?;
            let most = (steps - done).div_ceil(GAMES);
            let rounds = self.rng.random_range(1..=MOST_STEPS_BETWEEN).min(most);
            self.config.collect.steps_per_epoch = rounds * GAMES;
            collect(
                &mut self.envs,
                player,
                &mut self.replay,
                &self.config,
                &device,
                &mut self.rng,
                |_| (),
            )?;
            done += rounds * GAMES;
            progress(done.min(steps), steps);
        }
        Ok(())
    }

    /// Saves the state of each game with an open episode. When there are too many, each that was ever saved is kept with
    /// the same probability.
    fn save_states(&mut self) -> Result<(), EnvError> {
        for (stream, env) in (0..).zip(&mut self.envs) {
            let Some(episode) = self.replay.open_episode(stream) else {
                continue;
            };
            let state = GameState {
                step: StepId {
                    episode,
                    index: self.replay.episode_steps(episode) as u32,
                },
                snapshot: snapshot(env, &self.config.env.game)?,
            };
            self.saved += 1;
            if self.states.len() < MOST_STATES {
                self.states.push(state);
                continue;
            }
            let place = self.rng.random_range(0..self.saved);
            if let Some(replaced) = self.states.get_mut(place) {
                *replaced = state;
            }
        }
        Ok(())
    }

    /// The saved states with enough steps before them for a dream.
    pub(super) fn states(&self) -> Vec<&GameState> {
        let context = self.config.world_model.context;
        let states = self.states.iter();
        states
            .filter(|state| state.step.index as usize + 1 >= context)
            .collect()
    }

    /// The rewards of all steps, as the replay has them.
    pub(super) fn rewards(&self) -> impl Iterator<Item = f32> {
        let episodes = 0..self.replay.episodes() as u32;
        let steps = episodes.flat_map(|episode| {
            let steps = 0..self.replay.episode_steps(episode) as u32;
            steps.map(move |index| StepId { episode, index })
        });
        steps.map(|id| self.replay.reward(id))
    }

    /// The segments of `length` steps from every step that is followed by enough others: `min_real` in all.
    pub(super) fn segments(&self, length: usize, min_real: usize) -> Vec<Segment> {
        let of_episode = |episode: u32| {
            let starts = (self.replay.episode_steps(episode) + 1).saturating_sub(min_real);
            (0..starts as i64).map(move |start| Segment {
                episode,
                start,
                length: length as u32,
            })
        };
        (0..self.replay.episodes() as u32)
            .flat_map(of_episode)
            .collect()
    }

    /// Where dreams start from states.
    pub(super) fn dream_starts(
        &mut self,
        subject: &Subject,
        tokenizer: &Tokenizer,
        states: &[GameState],
    ) -> DreamStarts {
        let length = subject.config.actor_critic.burn_in + 1;
        let segment = |state: &GameState| Segment {
            episode: state.step.episode,
            start: i64::from(state.step.index) + 1 - length as i64,
            length: length as u32,
        };
        let segments: Vec<Segment> = states.iter().map(segment).collect();
        subject
            .tokens(tokenizer, &mut self.replay)
            .dream_starts(&segments, length)
            .to_device(subject.device)
    }
}

fn snapshot(env: &mut CollectEnv, game: &str) -> Result<Vec<u8>, EnvError> {
    let snapshot = env.env.snapshot()?;
    snapshot.ok_or_else(|| EnvError::NoSnapshots { game: game.into() })
}
