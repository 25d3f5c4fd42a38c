//! Seeds of all random number generators of a run.
//!
//! Each phase of each epoch has its own generators, seeded from the run's seed, the epoch, the phase and the attempt.
//! No generator state is saved, and a run resumes exactly at any epoch.

use burn::tensor::Device;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// What random numbers are used for. The discriminants determine the derived seeds: do not change or reuse them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Initial weights.
    Init = 1,
    /// The training environment.
    Environment = 2,
    /// Actions during collection.
    Collect = 3,
    /// Tokenizer training.
    Tokenizer = 4,
    /// World-model training.
    WorldModel = 5,
    /// Controller training.
    ActorCritic = 6,
    /// Environments of evaluation episodes.
    EvaluationEnvironment = 7,
    /// Actions during evaluation.
    Evaluation = 8,
    /// Images and animations of an evaluation.
    Media = 9,
    /// The random and scripted policies of the protocol.
    Baseline = 10,
    /// Environments of the play that a diagnosis measures.
    HeldOutEnvironment = 11,
    /// Actions and dreams of a diagnosis.
    Diagnosis = 12,
}

/// The root seed of a run.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    /// The run's seed.
    pub(crate) run: u64,
    /// Number of failed attempts at the current epoch.
    pub(crate) attempt: u32,
}

impl Seeds {
    /// The seeds of a run with this seed, first attempt.
    pub fn new(run: u64) -> Self {
        Self { run, attempt: 0 }
    }

    /// A seed for `purpose` in `epoch`; `index` distinguishes several generators of the same purpose.
    pub(crate) fn derive(&self, epoch: u32, purpose: Purpose, index: u64) -> u64 {
        let words = [
            u64::from(epoch),
            purpose as u64,
            index,
            u64::from(self.attempt),
        ];
        words.iter().fold(mix(self.run), |state, word| {
            mix(state.rotate_left(21).wrapping_add(mix(*word)))
        })
    }

    /// A host generator for `purpose` in `epoch`.
    pub(crate) fn rng(&self, epoch: u32, purpose: Purpose) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(self.derive(epoch, purpose, 0))
    }

    /// A second host generator for `purpose` in `epoch`: for what is drawn before the phase runs.
    pub(crate) fn rng_ahead(&self, epoch: u32, purpose: Purpose) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(self.derive(epoch, purpose, 2))
    }

    /// Seeds the device's generator (initial weights, dropout).
    pub(crate) fn seed_device(&self, device: &Device, epoch: u32, purpose: Purpose) {
        device.seed(self.derive(epoch, purpose, 1));
    }
}

/// The SplitMix64 finalizer, which maps adjacent inputs to unrelated outputs.
fn mix(word: u64) -> u64 {
    let z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_argument_changes_the_derived_seed() {
        let mut seen = HashSet::new();
        for run in 0..3 {
            for attempt in 0..3 {
                for epoch in 0..3 {
                    for purpose in [Purpose::Init, Purpose::Collect, Purpose::Media] {
                        for index in 0..3 {
                            let seeds = Seeds { run, attempt };
                            assert!(seen.insert(seeds.derive(epoch, purpose, index)));
                        }
                    }
                }
            }
        }
    }
}
