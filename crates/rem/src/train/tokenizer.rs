//! The tokenizer's training phase (paper, Algorithm 5: `train_V`).

use burn::module::Module;
use burn::tensor::Tensor;
use rand::Rng;

use super::learners::WorldLearner;
use super::optimizer::NotFinite;
use super::phase::{Diverged, Means, Phase, PhaseReport, scalar};
use crate::config::{CodebookInit, Encoder, Reconstruction};
use crate::data::batch::{self, host_tokens};
use crate::host;
use crate::model::tokenizer::{CodeUsage, reset_codes};
use crate::model::weights::{Array, Arrays};
use crate::seeds::Purpose;

/// Frames for the whitening and the codebook of whitened patches.
const FITTED_FRAMES: usize = 400;
/// Explained variance below which the reconstruction is hardly better than the mean frame.
const PLATEAU: f64 = 0.5;
/// Steps after which the explained variance should exceed [`PLATEAU`].
const PLATEAU_STEPS: u64 = 600;

impl WorldLearner<'_> {
    /// Trains the tokenizer for an epoch, on frames of the replay.
    pub(super) fn train_tokenizer(
        &mut self,
        mut on_step: impl FnMut(usize),
    ) -> Result<PhaseReport, Diverged> {
        let config = &self.epoch.config.tokenizer;
        let settings = &config.optimizer;
        let mut rng = self.epoch.rng(Purpose::Tokenizer);
        let mut used = CodeUsage::new(config.vocabulary);
        let (mut means, mut reset) = (Means::default(), 0);
        for step in 0..settings.steps_per_epoch {
            let frames = self.augmented_frames(settings.batch_size, config.random_shift, &mut rng);
            if self.tokenizer_optimizer.steps() == 0 {
                self.initialize_tokenizer(&frames, &mut rng);
            }
            let losses = (self.tokenizer).losses(frames.clone(), config, self.lpips);
            let total = losses.total();
            let result = (self.tokenizer_optimizer).step(self.tokenizer.clone(), &total);
            let (tokenizer, norm) = result.map_err(|NotFinite(what)| Diverged {
                phase: Phase::Tokenizer.name(),
                what,
                batch: Arrays::from([("frames".into(), Array::from_tensor(frames.clone()))]),
            })?;
            *self.tokenizer = tokenizer;

            used.count(&host_tokens(losses.tokens));
            if config.dead_code_reset_after > 0 {
                let dead = used.take_dead(config.dead_code_reset_after);
                if !dead.is_empty() {
                    reset += self.reset_codes(dead, losses.latents, &mut rng);
                }
            }
            let baseline = mean_frame_error(frames, config.reconstruction);
            means.add(&[
                ("loss", scalar(&total)),
                ("loss_reconstruction", scalar(&losses.reconstruction)),
                ("loss_commitment", scalar(&losses.commitment)),
                (
                    "loss_perceptual",
                    losses.perceptual.as_ref().map_or(0.0, scalar),
                ),
                ("mean_frame_error", baseline),
                ("grad_norm", norm),
            ]);
            on_step(step + 1);
        }
        let mut values = means.take();
        let value = |name: &str| {
            values
                .iter()
                .find(|(n, _)| *n == name)
                .map_or(0.0, |(_, v)| *v)
        };
        // A batch of one frame has no variance.
        let explained = 1.0 - value("loss_reconstruction") / value("mean_frame_error").max(1e-12);
        values.push(("explained_variance", explained));
        values.push(("active_codes", used.active() as f64));
        values.push(("code_perplexity", used.perplexity()));
        values.push(("codes_reset", reset as f64));

        let mut warnings = Vec::new();
        if self.tokenizer_optimizer.steps() >= PLATEAU_STEPS {
            let few = (config.vocabulary / 32).max(2);
            if used.active() <= few || explained < PLATEAU {
                warnings.push(format!(
                    "poor tokenizer reconstructions: {} of {} codes are active, explained variance {:.0}%; see \
                     media/*-reconstructions.png. A larger tokenizer.reconstruction_weight, codebook_init = \"data\" or \
                     dead_code_reset_after may help",
                    used.active(),
                    config.vocabulary,
                    100.0 * explained.max(0.0)
                ));
            }
        }
        Ok(PhaseReport { values, warnings })
    }

    /// Random frames of the replay, `[count, 3, size, size]`.
    fn sample_frames(&self, count: usize, rng: &mut impl Rng) -> Tensor<4> {
        let ids = self.replay.sample_frames(count, rng);
        let pixels = ids.iter().map(|id| self.replay.frame(*id));
        batch::frames(pixels, self.epoch.config.env.frame_size, self.epoch.device)
    }

    /// As [`Self::sample_frames`], each shifted at random by up to `most` pixels.
    fn augmented_frames(&self, count: usize, most: usize, rng: &mut impl Rng) -> Tensor<4> {
        if most == 0 {
            return self.sample_frames(count, rng);
        }
        let size = self.epoch.config.env.frame_size;
        let ids = self.replay.sample_frames(count, rng).into_iter();
        let shifted = ids.map(|id| {
            let shift = batch::random_shift(most, rng);
            batch::shifted(self.replay.frame(id), size, shift)
        });
        let shifted: Vec<Vec<u8>> = shifted.collect();
        batch::frames(
            shifted.iter().map(|frame| &frame[..]),
            size,
            self.epoch.device,
        )
    }

    /// Initializes the whitening of the encoder and the codebook from data, if configured: from the first batch or, for
    /// whitened patches, from [`FITTED_FRAMES`] frames.
    fn initialize_tokenizer(&mut self, first_batch: &Tensor<4>, rng: &mut impl Rng) {
        let config = &self.epoch.config.tokenizer;
        let frames = match config.encoder {
            Encoder::Cnn { .. } => first_batch.clone(),
            Encoder::WhitenedPatches {} => self.sample_frames(FITTED_FRAMES, rng),
        };
        let tokenizer = self.tokenizer.clone().fit_whitening(frames.clone());
        *self.tokenizer = tokenizer;
        if config.codebook_init == CodebookInit::Data {
            let all: Vec<usize> = (0..config.vocabulary).collect();
            let latents = self.tokenizer.valid().latent_rows(frames);
            let codes = self.tokenizer.codes();
            self.set_codes(reset_codes(codes, &all, latents, rng));
        }
    }

    /// Resets dead codes to latents far from all other codes, and returns how many. `latents` are those of the last batch.
    fn reset_codes(
        &mut self,
        mut dead: Vec<usize>,
        latents: Tensor<2>,
        rng: &mut impl Rng,
    ) -> usize {
        let codes = self.tokenizer.codes();
        let latents = match self.epoch.config.tokenizer.encoder {
            Encoder::Cnn { .. } => latents,
            // The encoder is fixed, so a code that is unused now may be used again: reset only codes that none of many
            // frames uses.
            Encoder::WhitenedPatches {} => {
                let frames = self.sample_frames(FITTED_FRAMES, rng);
                let latents = self.tokenizer.valid().latent_rows(frames);
                let in_use = host::ints(rem_kernels::nearest(latents.clone(), codes.clone()));
                dead.retain(|code| !in_use.contains(&(*code as i64)));
                latents
            }
        };
        self.set_codes(reset_codes(codes, &dead, latents, rng));
        dead.len()
    }

    fn set_codes(&mut self, codes: Tensor<2>) {
        *self.tokenizer = self.tokenizer.clone().with_codes(codes);
    }
}

/// The reconstruction error of the batch's mean frame.
fn mean_frame_error(frames: Tensor<4>, kind: Reconstruction) -> f64 {
    let difference = frames.clone() - frames.mean_dim(0);
    scalar(&match kind {
        Reconstruction::Mse => difference.square().mean(),
        Reconstruction::L1 => difference.abs().mean(),
    })
}
