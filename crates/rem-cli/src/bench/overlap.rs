//! Updates of world model and controller side by side on two threads, as with `train.overlap_phases`, against one thread.

use std::fmt::{self, Display, Formatter};
use std::time::Instant;

use anyhow::{Context, Result};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::round;
use super::sizes::{Setup, System};
use super::workload::{Phase, Workload};

/// About how long one thread takes.
const SECONDS: f64 = 4.0;

/// A line of output.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    phase: &'static str,
    /// Updates of the measured part of an epoch, in the preset's proportion.
    world_model_updates: usize,
    actor_critic_updates: usize,
    /// Of both components together.
    updates_per_minute_one_thread: f64,
    updates_per_minute_two_threads: f64,
    /// Two threads to one.
    ratio: f64,
}

/// `overlapped: 3100 updates a minute on two threads, 1.9 times as many as on one`
impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} updates a minute on two threads, {} times as many as on one",
            self.phase, self.updates_per_minute_two_threads, self.ratio
        )
    }
}

/// The two sides, each with models of its own.
struct Sides {
    world_model: Side,
    actor_critic: Side,
}

struct Side {
    workload: Workload,
    rng: ChaCha8Rng,
    updates: usize,
}

/// Measures the part of an epoch that takes one thread a few seconds. The fastest of `repeats` counts.
pub fn measure(setup: &Setup, repeats: usize) -> Result<Line> {
    let [one, two] = [pool(1)?, pool(2)?];
    let mut sides = one.install(|| Sides::new(setup))?;
    let (mut on_one, mut on_two) = (f64::INFINITY, f64::INFINITY);
    // The first round fills caches.
    for round in 0..=repeats.max(1) {
        let seconds = [
            one.install(|| sides.one_after_the_other()),
            two.install(|| sides.side_by_side()),
        ];
        if round > 0 {
            on_one = on_one.min(seconds[0]);
            on_two = on_two.min(seconds[1]);
        }
    }
    let (world_model, actor_critic) = (sides.world_model.updates, sides.actor_critic.updates);
    let per_minute = |seconds: f64| round(60.0 * (world_model + actor_critic) as f64 / seconds, 0);
    Ok(Line {
        phase: super::OVERLAPPED,
        world_model_updates: world_model,
        actor_critic_updates: actor_critic,
        updates_per_minute_one_thread: per_minute(on_one),
        updates_per_minute_two_threads: per_minute(on_two),
        ratio: round(on_one / on_two, 2),
    })
}

fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.with_context(|| format!("cannot start {threads} threads"))
}

impl Sides {
    fn new(setup: &Setup) -> Result<Self> {
        let mut sides = Self {
            world_model: Side::new(Phase::WorldModel, setup)?,
            actor_critic: Side::new(Phase::ActorCritic, setup)?,
        };
        let epoch =
            sides.world_model.seconds_of_an_epoch() + sides.actor_critic.seconds_of_an_epoch();
        for side in [&mut sides.world_model, &mut sides.actor_critic] {
            let part = side.updates as f64 * SECONDS / epoch;
            side.updates = (part.round() as usize).clamp(1, side.updates);
        }
        Ok(sides)
    }

    fn one_after_the_other(&mut self) -> f64 {
        let start = Instant::now();
        self.world_model.run();
        self.actor_critic.run();
        start.elapsed().as_secs_f64()
    }

    fn side_by_side(&mut self) -> f64 {
        let start = Instant::now();
        rayon::join(|| self.world_model.run(), || self.actor_critic.run());
        start.elapsed().as_secs_f64()
    }
}

impl Side {
    /// With the updates of a whole epoch.
    fn new(phase: Phase, setup: &Setup) -> Result<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let workload = Workload::new(phase, System::Pop, setup, &mut rng)?;
        let updates = phase.optimizer(workload.config()).steps_per_epoch;
        Ok(Self {
            workload,
            rng,
            updates,
        })
    }

    fn seconds_of_an_epoch(&mut self) -> f64 {
        self.workload.run(&mut self.rng);
        self.updates as f64 * self.workload.run(&mut self.rng)
    }

    fn run(&mut self) {
        for _ in 0..self.updates {
            self.workload.run(&mut self.rng);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::sizes::{Batches, Scale};

    /// The proportion of the preset: 900 world-model updates to 520 of the controller in an epoch.
    #[test]
    fn a_part_of_an_epoch_has_the_presets_proportion() {
        let setup = Setup {
            scale: Scale::Laptop,
            precision: rem::config::Precision::Mixed,
            batches: Batches::Paper,
            device: "flex".into(),
        };
        let sides = Sides::new(&setup).unwrap();
        let (world_model, controller) = (sides.world_model.updates, sides.actor_critic.updates);
        assert!((1..=900).contains(&world_model) && (1..=520).contains(&controller));
        let exact = world_model as f64 * 520.0 / 900.0;
        assert!(
            (controller as f64 - exact).abs() <= 1.0,
            "{world_model} {controller}"
        );
    }
}
