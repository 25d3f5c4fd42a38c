//! Images of an evaluation: reconstructions, an episode, and imagined next to real frames.

use std::io;
use std::ops::Range;
use std::path::Path;

use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::Rng;
use serde::Serialize;

use crate::config::Config;
use crate::data::batch;
use crate::data::replay::Replay;
use crate::env::Outcome;
use crate::imagination::{Dream, DreamStep};
use crate::media::{self, CaptionedFrame, FramePair};
use crate::model::agent::Player;
use crate::model::world_model::WorldModel;
use crate::train::evaluate::Recording;
use rem_run::files::failed;
use rem_run::layout;

const SHEET_FRAMES: usize = 16;
const STRIP_COLUMNS: usize = 8;
const FRAME_MS: u32 = 200;

/// An image that an evaluation wrote to a run's `media/`, named `epoch-N-KIND`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct EvalImage {
    /// The epoch of the evaluation.
    pub epoch: u32,
    /// Such as `dream.gif`.
    pub kind: String,
    /// The file's name.
    pub file: String,
}

impl EvalImage {
    fn named(file: String) -> Option<Self> {
        let (epoch, kind) = layout::parse_media_name(&file)?;
        let kind = kind.to_owned();
        Some(Self { epoch, kind, file })
    }
}

/// The images of all evaluations of a run, ordered by epoch.
pub fn eval_images(run: &Path) -> Vec<EvalImage> {
    let entries = std::fs::read_dir(run.join(layout::MEDIA));
    let entries = entries.into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut images: Vec<EvalImage> = names.filter_map(EvalImage::named).collect();
    images.sort();
    images
}

/// Writes the images of an evaluation.
pub struct EvalMedia<'a> {
    /// Tokenizer and controller.
    pub player: &'a Player,
    /// The world model.
    pub world_model: &'a WorldModel,
    /// Settings of the run.
    pub config: &'a Config,
    /// Names of the actions.
    pub actions: &'a [String],
    /// The device of the agent.
    pub device: &'a Device,
}

impl EvalMedia<'_> {
    /// Writes all images of an epoch to `dir`.
    ///
    /// # Errors
    ///
    /// If a file cannot be written.
    pub fn write(
        &self,
        dir: &Path,
        epoch: u32,
        recording: &Recording,
        replay: &Replay,
        rng: &mut impl Rng,
    ) -> io::Result<()> {
        std::fs::create_dir_all(dir).map_err(failed("create directory", dir))?;
        let size = self.config.env.frame_size;
        let path = |name: &str| dir.join(layout::media_name(epoch, name));

        let ids = replay.sample_frames(SHEET_FRAMES, rng);
        let frames: Vec<Vec<u8>> = ids.iter().map(|id| replay.frame(*id).to_vec()).collect();
        let tokens = self
            .player
            .tokenize(frames.iter().map(|f| &f[..]), size, self.device);
        let reconstructions = batch::to_rgb(self.player.tokenizer.decode(tokens));
        media::reconstruction_sheet(size, &frames, &reconstructions)
            .save_png(&path("reconstructions.png"))?;

        media::save_gif(
            &path("episode.gif"),
            media::episode_frames(size, episode_frames(recording)),
            FRAME_MS,
        )?;

        let steps = self.dream(recording, rng);
        media::save_gif(
            &path("dream.gif"),
            media::dream_next_to_reality(size, &steps),
            2 * FRAME_MS,
        )?;
        media::dream_strip(size, &steps, STRIP_COLUMNS).save_png(&path("dream.png"))
    }

    /// Imagines along the recorded episode: the world model gets context observations, then only the recorded actions.
    fn dream(&self, recording: &Recording, rng: &mut impl Rng) -> Vec<FramePair> {
        let window = dream_window(recording, self.config.trajectory_steps());
        let (from, length) = (window.start, window.len());
        let frames = &recording.frames[window];
        let context = self.world_model.context().min(length - 1).max(1);
        let tokens = self.player.tokenize(
            frames.iter().map(|f| &f[..]),
            self.config.env.frame_size,
            self.device,
        );
        let [_, k] = tokens.dims();
        let actions: Vec<i64> = recording.actions[from..]
            .iter()
            .map(|a| *a as i64)
            .collect();
        let ints = |v: &[i64]| {
            Tensor::<1, Int>::from_data(TensorData::new(v.to_vec(), [v.len()]), self.device)
        };
        let past = (context > 1).then(|| ints(&actions[..context - 1]).reshape([1, context - 1]));
        let start = tokens
            .clone()
            .narrow(0, 0, context)
            .reshape([1, context, k]);
        let mut dream = Dream::start(self.world_model, &self.player.codes, start, past);

        let seen = batch::to_rgb(self.player.tokenizer.decode(tokens.narrow(0, 0, context)));
        let mut steps: Vec<FramePair> = (0..context)
            .map(|t| FramePair {
                dream: Some(seen[t].clone()),
                reality: Some(frames[t].clone()),
                caption: format!("step {}  context", from + t),
            })
            .collect();
        let mut over = false;
        for t in context..length {
            let imagined = (!over).then(|| dream.step(ints(&actions[t - 1..t]), rng));
            over |= imagined.as_ref().is_some_and(|step| step.ends[0]);
            let frame = || batch::to_rgb(self.player.tokenizer.decode(dream.tokens())).remove(0);
            steps.push(FramePair {
                dream: (!over).then(frame),
                reality: Some(frames[t].clone()),
                caption: self.caption(recording, from + t, imagined.as_ref()),
            });
        }
        steps
    }

    /// The transition to frame `t`: action, reward and end, as recorded and as imagined.
    fn caption(&self, recording: &Recording, t: usize, imagined: Option<&DreamStep>) -> String {
        let action = &self.actions[recording.actions[t - 1]];
        let real = recording.rewards[t - 1];
        let mut caption = format!("step {t}  {action}  reward {real:+}");
        if let Some(step) = imagined {
            caption += &format!("/{:+}", step.rewards[0]);
        }
        caption += match recording.outcomes[t - 1] {
            Outcome::Running => "",
            Outcome::Terminated => "  real: terminated",
            Outcome::Truncated => "  real: truncated",
        };
        if imagined.is_some_and(|step| step.ends[0]) {
            caption += "  dream: terminated";
        }
        caption
    }
}

/// The frames to imagine along, `length` of them or the whole recording: those up to the last reward or end, so that the
/// dream shows an outcome.
fn dream_window(recording: &Recording, length: usize) -> Range<usize> {
    let matters =
        |i: &usize| recording.rewards[*i] != 0.0 || recording.outcomes[*i] != Outcome::Running;
    let last_action = recording.actions.len() - 1;
    let last = (0..=last_action).rev().find(matters).unwrap_or(last_action);
    // The frame after that action.
    let end = last + 2;
    let length = length.max(2);
    if end < length {
        return 0..length.min(recording.frames.len());
    }
    end - length..end
}

/// The recorded frames with the return so far.
fn episode_frames(recording: &Recording) -> Vec<CaptionedFrame<'_>> {
    let frames = recording.frames.iter().enumerate();
    let captioned = |(t, frame)| {
        let total = media::return_of(&recording.rewards[..t]);
        CaptionedFrame {
            frame: Some(frame),
            caption: format!("step {t}  return {total}"),
        }
    };
    frames
        .map(|(t, frame)| captioned((t, &frame[..])))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recording with these rewards, whose last step has this outcome.
    fn recording(rewards: &[f32], outcome: Outcome) -> Recording {
        let steps = rewards.len();
        let mut outcomes = vec![Outcome::Running; steps];
        outcomes[steps - 1] = outcome;
        Recording {
            frames: (0..=steps).map(|i| vec![i as u8]).collect(),
            actions: vec![0; steps],
            rewards: rewards.to_vec(),
            outcomes,
        }
    }

    #[test]
    fn the_dream_ends_with_the_last_reward_or_end() {
        let window =
            |rewards: &[f32], outcome, length| dream_window(&recording(rewards, outcome), length);
        // The frame after the last action is the ninth.
        assert_eq!(window(&[0.0; 8], Outcome::Terminated, 6), 3..9);
        let reward = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0];
        assert_eq!(window(&reward, Outcome::Running, 6), 1..7);
        // An early reward, nothing at all, and an episode of one step.
        let early = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(window(&early, Outcome::Running, 4), 0..4);
        assert_eq!(window(&[0.0; 5], Outcome::Running, 4), 2..6);
        assert_eq!(window(&[1.0], Outcome::Terminated, 6), 0..2);
        assert_eq!(window(&[0.0; 3], Outcome::Terminated, 1), 2..4);
    }

    #[test]
    fn the_return_in_a_caption_is_never_minus_zero() {
        let recording = recording(&[-1.0, 1.0], Outcome::Terminated);
        let captions: Vec<String> = episode_frames(&recording)
            .into_iter()
            .map(|frame| frame.caption)
            .collect();
        assert_eq!(
            captions,
            ["step 0  return 0", "step 1  return -1", "step 2  return 0"]
        );
    }
}
