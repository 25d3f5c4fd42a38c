//! Images of an evaluation: reconstructions, an episode, and imagined next to real frames.

use std::io;
use std::path::Path;

use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::Rng;
use serde::Serialize;

use crate::config::Config;
use crate::data::batch;
use crate::data::replay::Replay;
use crate::imagination::Dream;
use crate::media::{self, FramePair};
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

        let caption = |t: usize| {
            let total: f32 = recording.rewards[..t].iter().sum();
            format!("step {t}  return {total}")
        };
        media::save_gif(
            &path("episode.gif"),
            media::episode_frames(size, &recording.frames, caption),
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

    /// Imagines along the recorded episode: the world model gets context observations, then only the recorded
    /// actions. Starts in the middle of the episode, because little happens at its beginning.
    fn dream(&self, recording: &Recording, rng: &mut impl Rng) -> Vec<FramePair> {
        let length = (self.config.trajectory_steps()).min(recording.frames.len());
        let from = (recording.frames.len() - length) / 2;
        let (frames, rewards) = (&recording.frames[from..], &recording.rewards[from..]);
        let context = self
            .world_model
            .context()
            .min(recording.actions.len() - from);
        let reality = frames[..length].iter().map(|f| &f[..]);
        let tokens = self
            .player
            .tokenize(reality, self.config.env.frame_size, self.device);
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
                dream: seen[t].clone(),
                reality: frames[t].clone(),
                caption: format!("step {}  context", from + t),
            })
            .collect();
        for t in context..length {
            let step = dream.step(ints(&actions[t - 1..t]), rng);
            let (real, dreamt) = (rewards[t - 1], step.rewards[0]);
            steps.push(FramePair {
                dream: batch::to_rgb(self.player.tokenizer.decode(dream.tokens())).remove(0),
                reality: frames[t].clone(),
                caption: format!(
                    "step {}  {}  reward {real:+}/{dreamt:+}",
                    from + t,
                    self.actions[actions[t - 1] as usize]
                ),
            });
            if step.ends[0] {
                break; // the imagined episode has ended
            }
        }
        steps
    }
}
