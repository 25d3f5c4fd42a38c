//! Randomness is derived, not stored: every phase of every epoch has generators of its own, seeded from
//! (run seed, epoch, phase, attempt), so a run goes on exactly at any epoch without saved generators.

use burn::tensor::Device;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// What random numbers are for. The numbers are part of the meaning of a seed: never reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Init = 1,
    Environment = 2,
    Collect = 3,
    Tokenizer = 4,
    WorldModel = 5,
    ActorCritic = 6,
    EvaluationEnvironment = 7,
    Evaluation = 8,
    Media = 9,
    Baseline = 10,
}

/// The root of a run's randomness. `attempt` rises when a diverged epoch is tried again.
#[derive(Clone, Copy, Debug)]
pub struct Seeds {
    pub run: u64,
    pub attempt: u32,
}

impl Seeds {
    pub fn new(run: u64) -> Self {
        Self { run, attempt: 0 }
    }

    /// A seed for `purpose` in `epoch`; `index` tells apart several of a kind.
    pub fn derive(&self, epoch: u32, purpose: Purpose, index: u64) -> u64 {
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

    pub fn rng(&self, epoch: u32, purpose: Purpose) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(self.derive(epoch, purpose, 0))
    }

    /// Seeds the device's own generator (initial weights, dropout).
    pub fn seed_device(&self, device: &Device, epoch: u32, purpose: Purpose) {
        device.seed(self.derive(epoch, purpose, 1));
    }
}

/// The finaliser of SplitMix64: neighbouring words give unrelated ones.
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
    fn seeds_differ_by_every_part() {
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
