//! The three learning phases of an epoch (paper, Algs. train_V, train_M, train_C).

use burn::module::Module;
use burn::tensor::Tensor;

use rand::{Rng, RngExt};

use super::{Event, Listener, Trainer};
use crate::actor_critic;
use crate::batch::{self, TokenSource, host_tokens};
use crate::config::{CodebookStart, Config, Optimise, Reconstruction, Sight};
use crate::imagination::{host_ints, imagine};
use crate::optimiser::NotFinite;
use crate::seeds::Purpose;
use crate::tokenizer::{CodeUse, Tokenizer, move_codes};
use crate::weights::{Array, Arrays, Average};

/// Frames that a narrow encoder and its codes are fitted to.
const FITTED_FRAMES: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Tokenizer,
    WorldModel,
    ActorCritic,
}

impl Phase {
    pub(super) const ALL: [Self; 3] = [Self::Tokenizer, Self::WorldModel, Self::ActorCritic];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tokenizer => "tokenizer",
            Self::WorldModel => "world_model",
            Self::ActorCritic => "actor_critic",
        }
    }

    pub(super) fn settings(self, config: &Config) -> &Optimise {
        match self {
            Self::Tokenizer => &config.tokenizer.optimise,
            Self::WorldModel => &config.world_model.optimise,
            Self::ActorCritic => &config.actor_critic.optimise,
        }
    }
}

/// A phase whose loss or gradient was not finite, and the batch that it met.
pub(super) struct Diverged {
    pub(super) phase: &'static str,
    pub(super) what: String,
    pub(super) batch: Arrays,
}

/// What a phase tells of itself: means over its steps.
#[derive(Default)]
pub(super) struct Learned {
    pub(super) values: Vec<(&'static str, f64)>,
    pub(super) warnings: Vec<String>,
}

/// Running means by name.
#[derive(Default)]
struct Means {
    sums: Vec<(&'static str, f64)>,
    count: usize,
}

impl Means {
    fn add(&mut self, values: &[(&'static str, f64)]) {
        self.count += 1;
        for (name, value) in values {
            match self.sums.iter_mut().find(|(n, _)| n == name) {
                Some((_, sum)) => *sum += value,
                None => self.sums.push((name, *value)),
            }
        }
    }

    fn take(self) -> Vec<(&'static str, f64)> {
        let n = self.count.max(1) as f64;
        self.sums
            .into_iter()
            .map(|(name, sum)| (name, sum / n))
            .collect()
    }
}

fn scalar(tensor: &Tensor<1>) -> f64 {
    f64::from(tensor.clone().inner().into_scalar::<f32>())
}

fn too_little(what: &str) -> Learned {
    Learned {
        warnings: vec![format!(
            "{what}: no episode in the replay is long enough yet, nothing learned"
        )],
        ..Learned::default()
    }
}

/// Below this share of explained variance the tokenizer draws hardly more than the mean frame.
const PLATEAU: f64 = 0.5;
/// Steps after which a tokenizer should be off the plateau.
const PLATEAU_STEPS: u64 = 600;
/// Of an epoch's new steps the world model foretells at most so many windows.
const FORETOLD_WINDOWS: usize = 64;

impl Trainer {
    pub(super) fn train_tokenizer(
        &mut self,
        epoch: u32,
        listener: Listener,
    ) -> Result<Learned, Diverged> {
        let config = self.config.tokenizer.clone();
        let settings = &config.optimise;
        let mut rng = self.seeds.rng(epoch, Purpose::Tokenizer);
        let mut used = CodeUse::new(config.vocabulary);
        let (mut means, mut revived) = (Means::default(), 0);
        for step in 0..settings.steps_per_epoch {
            let frames = self.sample_frames(settings.batch, &mut rng);
            if self.optimisers.tokenizer.steps() == 0 {
                self.start_tokenizer(&frames, &mut rng);
            }
            let losses = self.agent.tokenizer.losses(
                frames.clone(),
                config.reconstruction,
                self.lpips.as_ref(),
            );
            let mut total = losses
                .reconstruction
                .clone()
                .mul_scalar(config.reconstruction_weight)
                + losses.commitment.clone();
            if let Some(perceptual) = &losses.perceptual {
                total = total + perceptual.clone();
            }
            let result = self
                .optimisers
                .tokenizer
                .step(self.agent.tokenizer.clone(), &total);
            let (tokenizer, norm) = result.map_err(|NotFinite(what)| Diverged {
                phase: "tokenizer",
                what,
                batch: Arrays::from([("frames".into(), Array::from_tensor(frames.clone()))]),
            })?;
            self.agent.tokenizer = tokenizer;

            used.count(&host_tokens(losses.tokens));
            if config.revive_after > 0 {
                let dead = used.take_dead(config.revive_after);
                if !dead.is_empty() {
                    revived += self.revive(dead, losses.latents, &mut rng);
                }
            }
            let baseline = mean_frame_error(frames, config.reconstruction);
            means.add(&[
                ("loss", scalar(&total)),
                ("reconstruction", scalar(&losses.reconstruction)),
                ("commitment", scalar(&losses.commitment)),
                ("perceptual", losses.perceptual.as_ref().map_or(0.0, scalar)),
                ("mean_frame_error", baseline),
                ("gradient_norm", norm),
            ]);
            listener(Event::Step { done: step + 1 });
        }
        let mut values = means.take();
        let value = |name: &str| {
            values
                .iter()
                .find(|(n, _)| *n == name)
                .map_or(0.0, |(_, v)| *v)
        };
        // One frame is its own mean: nothing to explain.
        let explained = 1.0 - value("reconstruction") / value("mean_frame_error").max(1e-12);
        values.push(("explained", explained));
        values.push(("codes_alive", used.alive() as f64));
        values.push(("code_perplexity", used.perplexity()));
        values.push(("codes_revived", revived as f64));

        let mut warnings = Vec::new();
        if self.optimisers.tokenizer.steps() >= PLATEAU_STEPS {
            let few = (config.vocabulary / 32).max(2);
            if used.alive() <= few || explained < PLATEAU {
                warnings.push(format!(
                    "the tokenizer draws little: {} of {} codes alive, {:.0}% of what varies between frames is \
                     reconstructed; look at media/*-reconstructions.png (a larger tokenizer.reconstruction_weight, \
                     codebook_start = \"data\" or revive_after may help)",
                    used.alive(),
                    config.vocabulary,
                    100.0 * explained.max(0.0)
                ));
            }
        }
        Ok(Learned { values, warnings })
    }

    fn sample_frames(&self, count: usize, rng: &mut impl Rng) -> Tensor<4> {
        let ids = self.replay.sample_frames(count, rng);
        let pixels = ids.iter().map(|id| self.replay.frame(*id));
        batch::frames(pixels, self.config.env.frame_size, &self.device)
    }

    /// Lets a tokenizer that has not learned yet start from what the game looks like, where the config wants that: from
    /// the first batch, or, where every frame adds to what is fitted, from more.
    fn start_tokenizer(&mut self, first_batch: &Tensor<4>, rng: &mut impl Rng) {
        let config = self.config.tokenizer.clone();
        let frames = match config.sight {
            Sight::Wide => first_batch.clone(),
            Sight::Narrow => self.sample_frames(FITTED_FRAMES, rng),
        };
        let tokenizer = self.agent.tokenizer.clone().fitted_to(frames.clone());
        self.agent.tokenizer = tokenizer;
        if config.codebook_start == CodebookStart::Data {
            let all: Vec<usize> = (0..config.vocabulary).collect();
            let latents = self.agent.tokenizer.valid().latent_rows(frames);
            let codes = self.agent.tokenizer.codes();
            self.set_codes(move_codes(codes, &all, latents, rng));
        }
    }

    /// Moves dead codes to where the others draw worst; returns how many. `latents` are those of the last batch.
    fn revive(&mut self, mut dead: Vec<usize>, latents: Tensor<2>, rng: &mut impl Rng) -> usize {
        let codes = self.agent.tokenizer.codes();
        let latents = match self.config.tokenizer.sight {
            Sight::Wide => latents,
            // A batch of cells shows little that is not drawn well already; and what a code stood for is still there
            // to be met again, as no encoder learns: only codes that none of many cells needs may go.
            Sight::Narrow => {
                let frames = self.sample_frames(FITTED_FRAMES, rng);
                let latents = self.agent.tokenizer.valid().latent_rows(frames);
                let needed = host_ints(rem_kernels::nearest(latents.clone(), codes.clone()));
                dead.retain(|code| !needed.contains(&(*code as i64)));
                latents
            }
        };
        self.set_codes(move_codes(codes, &dead, latents, rng));
        dead.len()
    }

    fn set_codes(&mut self, codes: Tensor<2>) {
        self.agent.tokenizer = self.agent.tokenizer.clone().with_codes(codes);
    }

    /// `first_new` is the first step of the replay that this epoch has collected.
    pub(super) fn train_world_model(
        &mut self,
        epoch: u32,
        first_new: usize,
        listener: Listener,
    ) -> Result<Learned, Diverged> {
        let config = self.config.world_model.clone();
        let (settings, horizon) = (&config.optimise, self.config.train.horizon);
        let mut rng = self.seeds.rng(epoch, Purpose::WorldModel);
        // For dropout on devices that draw it themselves.
        self.seeds
            .seed_device(&self.device, epoch, Purpose::WorldModel);
        let tokenizer = self.agent.tokenizer.valid();
        let codes = tokenizer.codes();
        let foretold = self.foretell(&tokenizer, first_new);
        let (mut means, mut average) = (Means::default(), Average::default());
        let averaged = (settings.steps_per_epoch as f64 * config.average).round() as usize;
        for step in 0..settings.steps_per_epoch {
            let segments = self.replay.sample_forward(
                settings.batch,
                horizon,
                config.first_outcome() + 1,
                &mut rng,
            );
            let Some(segments) = segments else {
                return Ok(too_little("world model"));
            };
            let batch = self.token_source(&tokenizer).segments(&segments, horizon);
            let losses = self.agent.world_model.losses(&codes, &batch, rng.random());
            let total = losses.total();
            let result = self
                .optimisers
                .world_model
                .step(self.agent.world_model.clone(), &total);
            let (world_model, norm) = result.map_err(|NotFinite(what)| Diverged {
                phase: "world_model",
                what,
                batch: Arrays::from([
                    ("tokens".into(), Array::from_tensor(batch.tokens.float())),
                    ("actions".into(), Array::from_tensor(batch.actions.float())),
                    ("rewards".into(), Array::from_tensor(batch.rewards)),
                    ("ends".into(), Array::from_tensor(batch.ends.float())),
                    ("mask".into(), Array::from_tensor(batch.mask)),
                ]),
            })?;
            self.agent.world_model = world_model;
            if step + averaged >= settings.steps_per_epoch {
                average.add(&self.agent.world_model);
            }
            means.add(&[
                ("loss", scalar(&total)),
                ("observations", scalar(&losses.observations)),
                ("rewards", scalar(&losses.rewards)),
                ("ends", scalar(&losses.ends)),
                ("gradient_norm", norm),
            ]);
            listener(Event::Step { done: step + 1 });
        }
        self.agent.world_model = average.into(self.agent.world_model.clone());
        let mut values = means.take();
        values.extend(foretold);
        Ok(Learned {
            values,
            warnings: vec![],
        })
    }

    /// The world model's losses on the steps from `first_new` on, before it learns from them: what it knows of the game
    /// and not of the replay. Nothing, where there are no such steps.
    fn foretell(&mut self, tokenizer: &Tokenizer, first_new: usize) -> Vec<(&'static str, f64)> {
        let config = &self.config.world_model;
        let (batch, horizon) = (config.optimise.batch, self.config.train.horizon);
        let min_real = config.first_observation() + 1;
        let mut windows = self.replay.windows_since(first_new, horizon, min_real);
        let every = windows.len().div_ceil(FORETOLD_WINDOWS).max(1);
        windows = windows.into_iter().step_by(every).collect();
        let model = self.agent.world_model.valid().without_dropout();
        let codes = tokenizer.codes();
        let mut sums = [0.0; 3];
        for windows in windows.chunks(batch) {
            let steps = self.token_source(tokenizer).segments(windows, horizon);
            let losses = model.losses(&codes, &steps, 0);
            let losses = [&losses.observations, &losses.rewards, &losses.ends];
            for (sum, loss) in sums.iter_mut().zip(losses) {
                *sum += windows.len() as f64 * scalar(loss);
            }
        }
        let names = ["fresh_observations", "fresh_rewards", "fresh_ends"];
        let means = sums.map(|sum| sum / windows.len() as f64);
        names
            .into_iter()
            .zip(means)
            .filter(|_| !windows.is_empty())
            .collect()
    }

    pub(super) fn train_actor_critic(
        &mut self,
        epoch: u32,
        listener: Listener,
    ) -> Result<Learned, Diverged> {
        let config = self.config.actor_critic.clone();
        let settings = &config.optimise;
        let (length, steps) = (config.burn_in + 1, self.config.dream_steps());
        let mut rng = self.seeds.rng(epoch, Purpose::ActorCritic);
        let tokenizer = self.agent.tokenizer.valid();
        let world_model = self.agent.world_model.valid();
        let mut means = Means::default();
        for step in 0..settings.steps_per_epoch {
            let segments = self.replay.sample_backward(
                settings.batch,
                length,
                world_model.context(),
                &mut rng,
            );
            let Some(segments) = segments else {
                return Ok(too_little("controller"));
            };
            let starts = self
                .token_source(&tokenizer)
                .dream_starts(&segments, length);
            let rollout = imagine(
                &self.agent.actor_critic.valid(),
                &world_model,
                &tokenizer,
                starts.clone(),
                steps,
                config.burn_in_inputs,
                &mut rng,
            );
            let (experience, stats) = rollout.experience(&self.agent.actor_critic, &config);
            let losses = actor_critic::losses(experience, &config);
            let total = losses.total();
            let result = self
                .optimisers
                .actor_critic
                .step(self.agent.actor_critic.clone(), &total);
            let (controller, norm) = result.map_err(|NotFinite(what)| Diverged {
                phase: "actor_critic",
                what,
                batch: Arrays::from([
                    ("tokens".into(), Array::from_tensor(starts.tokens.float())),
                    ("actions".into(), Array::from_tensor(starts.actions.float())),
                    ("mask".into(), Array::from_tensor(starts.mask)),
                ]),
            })?;
            self.agent.actor_critic = controller;
            means.add(&[
                ("loss", scalar(&total)),
                ("actions", scalar(&losses.actions)),
                ("values", scalar(&losses.values)),
                ("entropy", scalar(&losses.mean_entropy)),
                ("dream_return", stats.mean_return),
                ("dream_ends", stats.end_share),
                ("dream_value", stats.mean_value),
                ("gradient_norm", norm),
            ]);
            listener(Event::Step { done: step + 1 });
        }
        Ok(Learned {
            values: means.take(),
            warnings: vec![],
        })
    }

    /// Cached tokens live as long as the tokenizer's weights, of which every change is a step of their
    /// optimiser, and no longer than an epoch: what a checkpoint does not hold must not outlive it, or a
    /// resumed run might differ in how a code that is nearly a tie was rounded.
    fn token_generation(&self) -> u64 {
        (u64::from(self.epoch) << 40) | self.optimisers.tokenizer.steps()
    }

    fn token_source<'a>(&'a mut self, tokenizer: &'a Tokenizer) -> TokenSource<'a> {
        TokenSource {
            tokenizer,
            generation: self.token_generation(),
            tokens_per_obs: self.config.tokens_per_obs(),
            device: &self.device,
            replay: &mut self.replay,
        }
    }
}

/// The error of always drawing the batch's mean frame: what a tokenizer that ignores small things gets.
fn mean_frame_error(frames: Tensor<4>, kind: Reconstruction) -> f64 {
    let difference = frames.clone() - frames.mean_dim(0);
    scalar(&match kind {
        Reconstruction::Mse => difference.square().mean(),
        Reconstruction::L1 => difference.abs().mean(),
    })
}
