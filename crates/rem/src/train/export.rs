//! Exports the agent of a run: a small run directory with weights only, for `rem play`, `rem watch` and `rem eval`.

use std::path::Path;

use burn::tensor::Device;
use rem_run::{ExportDetails, Scores, layout};

use super::eval_media::{EvalImage, eval_images};
use super::state::{config_crc32, load_agent, write_config};
use crate::config::Config;
use crate::data::replay::Replay;
use crate::data::replay::archive::Archive;
use crate::env::Outcome;
use crate::error::{Error, Result};
use crate::run::checkpoint::{self, Checkpoint, Manifest};
use crate::run::{RunDir, read_config, read_protocol};

/// What to export.
#[derive(Clone, Debug)]
pub struct Export {
    /// The epoch of the checkpoint; `None` for the last one.
    pub epoch: Option<u32>,
    /// Most steps of the replay to include: the last finished episodes that fit.
    pub replay_steps: usize,
    /// The command that trained the run, for the protocol.
    pub command: Option<String>,
}

/// What was exported.
#[derive(Clone, Copy, Debug)]
pub struct Exported {
    /// The epoch of the checkpoint.
    pub epoch: u32,
    /// Episodes of the replay that were included.
    pub episodes: usize,
}

impl Export {
    /// Writes the agent of `run` to `out`: config, protocol, scores, logs, the pictures of the last evaluation, weights in
    /// bfloat16 and the last episodes of the replay. Optimizer moments, the environment's state and the rest of the replay are left out, so that the exported
    /// agent can be used but not trained on.
    ///
    /// # Errors
    ///
    /// If the run has no valid checkpoint, or a file cannot be read or written.
    pub fn write(&self, run: &Path, out: &RunDir) -> Result<Exported> {
        let config = read_config(run)?;
        let mut protocol = read_protocol(run)?;
        // Checks that the weights fit the config.
        let (agent, epoch) = load_agent(run, &config, self.epoch, Device::flex())?;
        let name = run.canonicalize().map_err(Error::io(run))?;
        let name = name.file_name().unwrap_or_default().to_string_lossy();
        protocol.exported = Some(ExportDetails {
            run: name.into_owned(),
            epoch,
            command: self.command.clone(),
            weights: "bfloat16".into(),
            git_revision: env!("REM_GIT_REVISION").into(),
        });
        protocol.write(out.path())?;
        copy_results(run, epoch, out.path())?;

        let replay = last_episodes(&checkpoint::archive(run), &config, self.replay_steps)?;
        let dir = out.path().join(layout::REPLAY);
        let chunk = replay.write_chunk(&dir, 0, &layout::replay_name(epoch))?;
        let mut manifest = Manifest::new(epoch, config_crc32(&config));
        manifest.weights_only = true;
        manifest.replay = chunk.into_iter().collect();
        let arrays = agent.arrays().into_iter();
        let checkpoint = Checkpoint {
            manifest,
            arrays: arrays.map(|(name, arrays)| (name.into(), arrays)).collect(),
            environment: Vec::new(),
        };
        checkpoint.write(out.path())?;
        write_config(out, &config)?;
        Ok(Exported {
            epoch,
            episodes: replay.episodes(),
        })
    }
}

/// Copies scores, logs and the pictures of the last evaluation up to `epoch`, so that the page of an exported agent shows
/// how it was trained.
fn copy_results(run: &Path, epoch: u32, out: &Path) -> Result<()> {
    if let Some(scores) = Scores::read(run)? {
        scores.write(out)?;
    }
    for log in [layout::METRICS, layout::TIMING] {
        if run.join(log).exists() {
            copy(&run.join(log), &out.join(log))?;
        }
    }
    let mut pictures = eval_images(run);
    pictures.retain(|image| image.epoch <= epoch && image.kind.ends_with(".png"));
    let last = pictures.last().map(|image| image.epoch);
    pictures.retain(|image| Some(image.epoch) == last);
    if last.is_some() {
        let media = out.join(layout::MEDIA);
        std::fs::create_dir_all(&media).map_err(Error::io(&media))?;
    }
    for EvalImage { file, .. } in pictures {
        let [from, to] = [run, out].map(|dir| dir.join(layout::MEDIA).join(&file));
        copy(&from, &to)?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let bytes = std::fs::read(from).map_err(Error::io(from))?;
    rem_run::files::write_atomic(to, &bytes).map_err(Error::File)
}

/// The last finished episodes with at most `steps` steps in all.
fn last_episodes(archive: &Archive, config: &Config, mut steps: usize) -> Result<Replay> {
    let mut replay = Replay::new(config.frame_bytes(), config.tokens_per_obs());
    let finished = |number: &usize| {
        let info = archive.info(*number);
        info.is_some_and(|info| info.outcome != Outcome::Running)
    };
    let mut numbers = Vec::new();
    for number in (0..archive.episodes()).rev().filter(finished) {
        let length = archive.info(number).map_or(0, |info| info.steps);
        let Some(rest) = steps.checked_sub(length) else {
            break;
        };
        steps = rest;
        numbers.push(number);
    }
    for number in numbers.into_iter().rev() {
        let Some(episode) = archive.read(number, 0..usize::MAX)? else {
            continue;
        };
        let last = episode.actions.len() - 1;
        for (step, frame) in episode.frames.iter().enumerate() {
            // An abandoned episode ends without an outcome.
            let outcome = match episode.outcomes[step] {
                Outcome::Running if step == last => Outcome::Truncated,
                outcome => outcome,
            };
            replay.push(frame, episode.actions[step], episode.rewards[step], outcome);
        }
    }
    Ok(replay)
}
