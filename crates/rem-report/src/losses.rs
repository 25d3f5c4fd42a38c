//! The observation losses of a run, from `metrics.jsonl`.

use std::path::Path;

use rem_run::{MetricsLine, Phase, layout, parse_lines};

use crate::error::{Error, Result};

/// The observation losses of a run, by epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservationLosses {
    /// Means over the training steps of an epoch.
    pub training: Vec<(u32, f64)>,
    /// Losses on test episodes, at evaluations. Empty in runs of versions that did not log them.
    pub test: Vec<(u32, f64)>,
}

impl ObservationLosses {
    /// The losses of the run in `dir`. Empty if it has no metrics.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(layout::METRICS);
        if !path.is_file() {
            return Ok(Self::default());
        }
        let log = std::fs::read(&path).map_err(Error::file("read", &path))?;
        Ok(Self::parse(&log))
    }

    fn parse(log: &[u8]) -> Self {
        let mut losses = Self::default();
        for line in parse_lines(log) {
            let MetricsLine::Scalars {
                epoch,
                phase,
                values,
            } = line
            else {
                continue;
            };
            let (name, points) = match Phase::named(&phase) {
                Some(Phase::WorldModel) => ("loss_obs", &mut losses.training),
                Some(Phase::Evaluate) => ("test/loss_obs", &mut losses.test),
                _ => continue,
            };
            let found = values.iter().find(|(key, _)| key == name);
            points
                .extend(found.and_then(|(_, value)| value.is_finite().then_some((epoch, *value))));
        }
        losses
    }

    /// The losses on one of the two.
    pub(crate) fn of(&self, split: Split) -> &[(u32, f64)] {
        match split {
            Split::Training => &self.training,
            Split::Test => &self.test,
        }
    }
}

/// What a loss is computed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Training batches, with dropout.
    Training,
    /// Test episodes, without dropout.
    Test,
}

impl Split {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Training, Self::Test];

    /// Its name: `training` or `test`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Test => "test",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_read_by_phase_and_name() {
        let log = br#"{"epoch":1,"phase":"collect","steps":5.0}
{"epoch":1,"phase":"world_model","loss_obs":3.5,"validation/loss_obs":9.0}
{"epoch":2,"phase":"world_model","loss_obs":null}
{"epoch":2,"phase":"evaluate","mean_return":1.0,"test/loss_obs":4.25}
{"epoch":2,"phase":"note","text":"loss_obs"}
{"epoch":3,"phase":"world_model","loss_obs":2.5,"validation/loss_obs":8.0}
{"epoch":3,"phase":"evaluate","mean_return":1.0}
{"epoch":4,"pha"#;
        let losses = ObservationLosses::parse(log);
        assert_eq!(losses.training, [(1, 3.5), (3, 2.5)]);
        assert_eq!(losses.test, [(2, 4.25)]);
    }
}
