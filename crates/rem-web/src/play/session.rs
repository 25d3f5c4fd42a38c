//! A session at the console: commands in, moments out.

mod answers;

use std::path::Path;

use burn::tensor::{Int, Tensor};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rem::actor_critic::ControllerState;
use rem::config::{Architecture, BurnInInputs};
use rem::env::{Env, Outcome};
use rem::evaluate::test_env;
use rem::imagination::burn_in;
use rem::replay::archive::Archive;

use super::command::{Command, Kind, Place};
use super::timeline::{Live, Moment, Timeline, World};
use crate::error::Failure;
use crate::library::replay;
use crate::mind::{self, Drawing, Mind, dream};

pub struct Session<'m> {
    mind: &'m Mind,
    archive: Archive,
    timeline: Timeline<'m>,
    env: Option<Box<dyn Env>>,
    /// The moment that the environment is at.
    env_at: Option<u64>,
    rng: ChaCha8Rng,
}

/// What came of a step, before the controller has seen it.
struct Arrival<'m> {
    action: u8,
    reward: f32,
    outcome: Outcome,
    frame: Vec<u8>,
    tokens: Vec<u16>,
    odds: Option<mind::Odds>,
    world: World<'m>,
}

impl<'m> Session<'m> {
    pub fn new(mind: &'m Mind, run: &Path) -> Self {
        Self {
            mind,
            archive: replay(run),
            timeline: Timeline::default(),
            env: None,
            env_at: None,
            rng: ChaCha8Rng::seed_from_u64(0),
        }
    }

    /// Does what is asked and answers with an envelope.
    pub fn obey(&mut self, command: Command) -> Result<Vec<u8>, Failure> {
        match command {
            Command::Start { place, world } => self.start(place, world)?,
            Command::Step {
                action,
                temperature,
            } => self.step(action, temperature)?,
            Command::Go { moment } => {
                if !self.timeline.go(moment) {
                    return Err(Failure::Missing("such moment any more".into()));
                }
            }
            Command::Dream => self.dream_on()?,
            Command::Token { place } => return self.alternatives(place),
            Command::Save {
                kind,
                from,
                frame_ms,
            } => return self.save(kind, from, frame_ms),
        }
        self.show()
    }

    fn start(&mut self, place: Place, world: Kind) -> Result<(), Failure> {
        self.timeline = Timeline::default();
        match place {
            Place::Game { seed } => {
                self.rng = ChaCha8Rng::seed_from_u64(seed);
                self.start_game(seed)?;
                if world == Kind::Dream {
                    // The dream wants to see as much as it did in training.
                    for _ in 1..self.mind.world_model.context() {
                        self.step(Some(0), 1.0)?;
                    }
                }
            }
            Place::Episode { number, step } => {
                if world == Kind::Real {
                    let reason = "a step of the replay is a memory: only a dream can go on from it";
                    return Err(Failure::Asked(reason.into()));
                }
                self.rng = ChaCha8Rng::seed_from_u64(0);
                return self.start_in_episode(number, step);
            }
        }
        match world {
            Kind::Real => Ok(()),
            Kind::Dream => self.dream_on(),
        }
    }

    fn start_game(&mut self, seed: u64) -> Result<(), Failure> {
        let mut env = test_env(&self.mind.config.env, seed)?;
        let frame = env.reset();
        let world = World::Real(env.snapshot());
        let tokens = self.mind.see(std::slice::from_ref(&frame));
        let before = self.mind.player.actor_critic.initial_state(1);
        let controller = self.observe(&tokens, before);
        let id = self.timeline.push(Moment {
            live: Some(Live { world, controller }),
            ..memory(None, 0, frame, tokens)
        });
        self.env = Some(env);
        self.env_at = Some(id);
        Ok(())
    }

    /// The context of the dream, and before it what warms the controller, are read from the replay.
    fn start_in_episode(&mut self, number: usize, step: usize) -> Result<(), Failure> {
        self.mind.fits(&self.archive)?;
        let context = self.mind.world_model.context();
        let burn_in = self.mind.config.actor_critic.burn_in;
        let warm = burn_in.max(context - 1).min(step);
        let lived = self
            .archive
            .read(number, step - warm..step.saturating_add(1))?;
        let lived = lived.filter(|lived| lived.frames.len() == warm + 1);
        let missing = || Failure::Missing(format!("step {step} in episode {number}"));
        let lived = lived.ok_or_else(missing)?;
        let k = self.mind.config.tokens_per_obs();
        let tokens = self.mind.see(&lived.frames);
        let before = self.warmed(&tokens[..warm * k], &lived.actions[..warm]);
        let first = (warm + 1).saturating_sub(context);
        let mut parent = None;
        for t in first..=warm {
            let frame = lived.frames[t].clone();
            let mut moment = memory(parent, t - first, frame, tokens[t * k..][..k].to_vec());
            moment.action = (t > first).then(|| lived.actions[t - 1]);
            parent = Some(self.timeline.push(moment));
        }
        let controller = self.observe(&tokens[warm * k..], before);
        self.dream_with(controller)
    }

    /// The controller's state after these observations and actions.
    fn warmed(&self, tokens: &[u16], actions: &[u8]) -> ControllerState {
        let (mind, steps) = (self.mind, actions.len());
        let controller = &mind.player.actor_critic;
        if steps == 0 {
            return controller.initial_state(1);
        }
        let tokens: Tensor<3, Int> = mind.ints(tokens).reshape([1, steps, tokens.len() / steps]);
        burn_in(
            controller,
            &mind.player.tokenizer,
            tokens,
            mind.ints(actions).reshape([1, steps]),
            Tensor::ones([1, steps], &mind.device),
            BurnInInputs::ObservationsAndActions,
        )
    }

    fn observe(&self, tokens: &[u16], before: ControllerState) -> ControllerState {
        let player = &self.mind.player;
        let tokens: Tensor<2, Int> = self.mind.ints(tokens).reshape([1, tokens.len()]);
        let view = player.actor_critic.view(&player.tokenizer, tokens);
        player.actor_critic.observe(view, before)
    }

    /// What it takes to go on from here. A game that is over is over; a dream only says so.
    fn live(&self) -> Result<(u64, &Moment<'m>, &Live<'m>), Failure> {
        let asked = |reason: &str| Failure::Asked(reason.into());
        let here = self.timeline.here();
        let (id, moment) = here.ok_or_else(|| asked("start first"))?;
        if moment.is_over() && !moment.dreamt {
            return Err(asked("the game is over: go back some steps, or start anew"));
        }
        let live = moment.live.as_ref();
        let reason = "too long ago, or seen before the dream began: one cannot go on from here";
        Ok((id, moment, live.ok_or_else(|| asked(reason))?))
    }

    /// On from here in a dream that has seen the last observations of the way here and nothing else.
    fn dream_on(&mut self) -> Result<(), Failure> {
        let (_, _, live) = self.live()?;
        let controller = live.controller.clone();
        self.dream_with(controller)
    }

    /// The present moment once more, from now on in a dream.
    fn dream_with(&mut self, controller: ControllerState) -> Result<(), Failure> {
        let mind = self.mind;
        let here = self.timeline.here();
        let (id, moment) = here.expect("a session has begun");
        let way = self.timeline.way_to(id, mind.world_model.context());
        let tokens: Vec<u16> = way.iter().flat_map(|m| m.tokens.iter().copied()).collect();
        let actions: Vec<u8> = way[1..].iter().filter_map(|m| m.action).collect();
        let seen = way.len();
        let again = Moment {
            action: moment.action,
            reward: moment.reward,
            total: moment.total,
            dreamt: moment.dreamt,
            odds: moment.odds.clone(),
            live: Some(Live {
                world: World::Dream {
                    dream: Box::new(dream::start(mind, &tokens, &actions)),
                    seen,
                },
                controller,
            }),
            ..memory(
                moment.parent,
                moment.step,
                moment.frame.clone(),
                moment.tokens.clone(),
            )
        };
        self.timeline.push(again);
        Ok(())
    }

    fn step(&mut self, action: Option<usize>, temperature: f32) -> Result<(), Failure> {
        if self.memory_is_full() {
            self.dream_on()?;
        }
        let (id, moment, live) = self.live()?;
        let (step, total) = (moment.step + 1, moment.total);
        let dreamt = matches!(live.world, World::Dream { .. });
        let controller = live.controller.clone();
        let choices = self.mind.action_names.len();
        let action = match action {
            Some(action) if action < choices => action,
            Some(action) => return Err(Failure::Asked(format!("there is no action {action}"))),
            None => self.agents_choice(&controller),
        };
        let arrival = match dreamt {
            true => self.step_dream(action as u8, temperature)?,
            false => self.step_game(id, action as u8)?,
        };
        let acted = self.mind.player.act(&[action], controller);
        let controller = self.observe(&arrival.tokens, acted);
        let pushed = self.timeline.push(Moment {
            action: Some(arrival.action),
            reward: arrival.reward,
            total: total + arrival.reward,
            outcome: arrival.outcome,
            dreamt,
            odds: arrival.odds,
            live: Some(Live {
                world: arrival.world,
                controller,
            }),
            ..memory(Some(id), step, arrival.frame, arrival.tokens)
        });
        if !dreamt {
            self.env_at = Some(pushed);
        }
        Ok(())
    }

    /// A Transformer has places for one segment only: before they run out it must forget.
    fn memory_is_full(&self) -> bool {
        let config = &self.mind.config;
        let limited = config.world_model.architecture == Architecture::Transformer;
        let live = self
            .timeline
            .here()
            .and_then(|(_, moment)| moment.live.as_ref());
        match live.map(|live| &live.world) {
            Some(World::Dream { seen, .. }) => limited && *seen >= config.memory_steps(),
            _ => false,
        }
    }

    /// Drawn by the policy at its temperature for tests.
    fn agents_choice(&mut self, controller: &ControllerState) -> usize {
        let logits = self.mind.player.actor_critic.heads(controller).logits;
        let temperature = self.mind.config.evaluate.temperature;
        let chances = mind::probabilities(logits.div_scalar(temperature));
        let mut draw: f32 = self.rng.random();
        let drawn = chances.iter().position(|chance| {
            draw -= chance;
            draw < 0.0
        });
        drawn.unwrap_or(chances.len() - 1)
    }

    fn step_game(&mut self, from: u64, action: u8) -> Result<Arrival<'m>, Failure> {
        let env = self.env.as_mut().expect("a real moment has an environment");
        if self.env_at != Some(from) {
            let moment = self.timeline.get(from);
            let live = moment.and_then(|moment| moment.live.as_ref());
            let Some(World::Real(snapshot)) = live.map(|live| &live.world) else {
                unreachable!("the world was looked at before");
            };
            env.restore(snapshot)?;
        }
        let step = env.step(action.into());
        Ok(Arrival {
            action,
            reward: step.reward,
            outcome: step.outcome,
            tokens: self.mind.see(std::slice::from_ref(&step.frame)),
            frame: step.frame,
            odds: None,
            world: World::Real(env.snapshot()),
        })
    }

    fn step_dream(&mut self, action: u8, temperature: f32) -> Result<Arrival<'m>, Failure> {
        let (_, _, live) = self.live()?;
        let World::Dream { dream, seen } = &live.world else {
            unreachable!("the world was looked at before");
        };
        let (mut dream, seen) = (dream.clone(), seen + 1);
        let mind = self.mind;
        let mut drawing = Drawing::new(temperature, &mut self.rng);
        let step = drawing.through(|draw| dream.step_by(mind.ints(&[action]), draw));
        let odds = drawing.odds;
        let tokens = rem::batch::host_tokens(dream.tokens());
        Ok(Arrival {
            action,
            reward: step.rewards[0],
            outcome: match step.ends[0] {
                true => Outcome::Ended,
                false => Outcome::Continues,
            },
            frame: mind.draw(&tokens).remove(0),
            tokens,
            odds: Some(odds),
            world: World::Dream { dream, seen },
        })
    }
}

/// A moment that is only remembered.
fn memory<'m>(parent: Option<u64>, step: usize, frame: Vec<u8>, tokens: Vec<u16>) -> Moment<'m> {
    Moment {
        parent,
        step,
        action: None,
        reward: 0.0,
        total: 0.0,
        outcome: Outcome::Continues,
        dreamt: false,
        frame,
        tokens,
        odds: None,
        live: None,
    }
}

#[cfg(test)]
mod tests;
