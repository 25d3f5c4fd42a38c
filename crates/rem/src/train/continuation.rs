//! Continuing a run with other settings.
//!
//! The order of writes makes a crash at any point safe. First the protocol gets a segment with the checksum of the config
//! before, so that checkpoints with that checksum are valid with either config. Then the final score goes, and last the
//! config is replaced. A segment whose config was never replaced is dropped when the run is continued the next time.

use std::collections::BTreeMap;
use std::path::Path;

use rem_run::{Protocol, ProtocolSegment, SettingChange};

use super::state::{config_crc32, config_crc32s, write_config};
use super::trainer::Trainer;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::run::{read_config, read_protocol};

/// The settings of a run on disk, and those with which it is continued.
pub(super) struct Continuation {
    before: Config,
    changes: BTreeMap<String, SettingChange>,
}

impl Continuation {
    pub(super) fn new(run: &Path, config: &Config) -> Result<Self> {
        let before = read_config(run)?;
        Ok(Self {
            changes: before.differences(config),
            before,
        })
    }

    /// The checksums that the checkpoints of the run may name.
    pub(super) fn configs(&self, run: &Path) -> Vec<u32> {
        config_crc32s(run, &self.before)
    }

    /// Checks that the run can be continued with other settings after so many epochs.
    pub(super) fn check(&self, config: &Config, epochs: u32) -> Result<()> {
        Ok(self.before.can_continue_as(config, epochs)?)
    }

    /// Records the settings with which a run continues, if they changed.
    pub(super) fn record(self, trainer: &Trainer) -> Result<()> {
        let run = trainer.run.path();
        // A run without a protocol, such as one whose file was lost, is still continued with its own settings.
        let Ok(recorded) = read_protocol(run) else {
            return match self.changes.is_empty() {
                true => Ok(()),
                false => read_protocol(run).map(|_| ()),
            };
        };
        let before = config_crc32(&self.before);
        let mut protocol = recorded.clone();
        protocol
            .segments
            .pop_if(|last| last.config_crc32_before == before);
        for segment in &mut protocol.segments {
            // Later epochs are trained again.
            segment.after_epoch = segment.after_epoch.min(trainer.epoch);
        }
        let changed = !self.changes.is_empty();
        if changed {
            update(&mut protocol, &trainer.config);
            protocol.segments.push(ProtocolSegment {
                after_epoch: trainer.epoch,
                changes: self.changes,
                config_crc32_before: before,
                rem_version: env!("CARGO_PKG_VERSION").into(),
                git_revision: env!("REM_GIT_REVISION").into(),
            });
        } else if protocol.segments.len() < recorded.segments.len() {
            update(&mut protocol, &self.before);
        }
        if protocol != recorded {
            protocol.write(run).map_err(Error::from)?;
        }
        if changed {
            // Its end is not the end any more.
            if !trainer.scores.is_empty() {
                trainer.write_scores()?;
            }
            write_config(&trainer.run, &trainer.config)?;
        }
        Ok(())
    }
}

/// Sets the values that follow from settings which can change.
fn update(protocol: &mut Protocol, config: &Config) {
    protocol.device = config.device.clone();
    protocol.threads = config.threads;
    protocol.evaluation_temperature = config.evaluate.temperature;
    protocol.final_episodes = config.evaluate.final_episodes;
    protocol.environment_steps = config.environment_steps();
}
