//! Writes runs that were never trained, with logs as large as those of real ones, to test the page with many of them.

use std::fs;
use std::path::{Path, PathBuf};

use rem::config::Config;
use rem_run::metrics::METRICS;
use rem_run::{Labels, MetricsLine, Phase, Score, Scores, TimingLine, layout};

/// Epochs between two evaluations.
const EVALUATE_EVERY: u32 = 10;

/// A run to write. Runs with the same game and horizon differ in their seed only.
#[derive(Clone, Copy)]
pub struct WrittenRun<'a> {
    pub game: &'a str,
    pub horizon: usize,
    pub seed: u64,
    /// The epochs so far, of `epochs`.
    pub written: u32,
    pub epochs: u32,
}

/// 50 runs of 600 epochs: two games, five horizons, five seeds. Some have stopped earlier.
pub fn fifty_runs(parent: &Path) {
    let horizons = [5, 7, 10, 12, 15];
    let groups = ["catch", "paddle"].map(|game| horizons.map(|horizon| (game, horizon)));
    for (index, (game, horizon)) in groups.into_iter().flatten().enumerate() {
        for seed in 1..=5 {
            let stopped = index == 4 && seed == 5;
            WrittenRun {
                game,
                horizon,
                seed,
                written: if stopped { 180 } else { 600 },
                epochs: 600,
            }
            .write(parent);
        }
    }
}

impl WrittenRun<'_> {
    /// Writes the run into a directory of its own below `parent`.
    pub fn write(self, parent: &Path) -> PathBuf {
        let dir = parent.join(format!("{}-h{}-seed{}", self.game, self.horizon, self.seed));
        fs::create_dir_all(&dir).unwrap();
        let set = [
            format!("env.game={}", self.game),
            format!("seed={}", self.seed),
            format!("train.horizon={}", self.horizon),
            format!("train.epochs={}", self.epochs),
        ];
        let config = Config::load("quick", &set).unwrap();
        fs::write(dir.join(layout::CONFIG), config.to_toml()).unwrap();
        let (mut metrics, mut timing) = (Vec::new(), Vec::new());
        for epoch in 1..=self.written {
            for phase in Phase::ALL
                .into_iter()
                .filter(|phase| runs_in(*phase, epoch))
            {
                metrics.extend(self.line(epoch, phase).to_json_line());
                let seconds = 10.0 + self.noise(epoch, 99);
                timing.extend(TimingLine::new(epoch, phase.name(), seconds, 50).to_json_line());
            }
        }
        fs::write(dir.join(layout::METRICS), metrics).unwrap();
        fs::write(dir.join(layout::TIMING), timing).unwrap();
        self.scores().write(&dir).unwrap();
        let labels = Labels {
            tags: [format!("horizon-{}", self.horizon)].into(),
            ..Labels::default()
        };
        labels.write(&dir).unwrap();
        dir
    }

    /// Every metric of a phase: steps and codes grow, losses fall, `loss_perceptual` is always 0.
    fn line(&self, epoch: u32, phase: Phase) -> MetricsLine {
        let learned = self.learned(epoch);
        let of_phase = METRICS.iter().filter(|metric| metric.phase == phase);
        let value = |(index, name): (usize, &'static str)| {
            let noise = self.noise(epoch, index as u64);
            let value = match name {
                "steps" => f64::from(epoch) * 400.0,
                "mean_return" => self.mean_return(epoch),
                "loss_perceptual" => 0.0,
                "active_codes" => (40.0 + 24.0 * learned).round(),
                _ => (1.02 - learned) * (1.0 + 0.2 * noise),
            };
            // Training computes in single precision.
            (name, f64::from(value as f32))
        };
        let values: Vec<_> = of_phase
            .map(|metric| metric.name)
            .enumerate()
            .map(value)
            .collect();
        MetricsLine::scalars(epoch, phase.name(), &values)
    }

    /// From 0 at the start towards 1.
    fn learned(&self, epoch: u32) -> f64 {
        1.0 - (-f64::from(epoch) / (20.0 + 8.0 * self.horizon as f64)).exp()
    }

    fn mean_return(&self, epoch: u32) -> f64 {
        -0.6 + 1.4 * self.learned(epoch) + 0.15 * self.noise(epoch, 50)
    }

    fn scores(&self) -> Scores {
        let evaluated = (1..=self.written).filter(|epoch| runs_in(Phase::Evaluate, *epoch));
        let evaluations: Vec<Score> = evaluated
            .map(|epoch| Score {
                epoch,
                steps: u64::from(epoch) * 400,
                mean: self.mean_return(epoch),
                returns: vec![self.mean_return(epoch) as f32; 50],
            })
            .collect();
        let last = evaluations.last().cloned();
        Scores {
            game: self.game.into(),
            seed: self.seed,
            final_score: last.filter(|_| self.written == self.epochs),
            evaluations,
        }
    }

    /// A number from −1 to 1 that depends on everything.
    fn noise(&self, epoch: u32, index: u64) -> f64 {
        let key = self.seed * 31 + self.horizon as u64 * 7 + index * 131 + u64::from(epoch) * 8191;
        let mixed = (key ^ (key >> 7)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        mixed as f64 / f64::from(1 << 23) - 1.0
    }
}

fn runs_in(phase: Phase, epoch: u32) -> bool {
    phase != Phase::Evaluate || epoch.is_multiple_of(EVALUATE_EVERY)
}
