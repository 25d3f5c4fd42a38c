//! A single episode, real or imagined, and its file format: an `.npz` archive that NumPy can read.
//!
//! | array | type and shape | content |
//! | --- | --- | --- |
//! | `frames` | u8 `[n, size, size, 3]` | RGB; `n` is `t`, or `t + 1` with the frame after the last action |
//! | `actions` | u8 `[t]` | the action taken in each frame |
//! | `rewards` | f32 `[t]` | the reward of each action |
//! | `outcomes` | u8 `[t]` | 0 running, 1 terminated, 2 truncated |
//! | `imagined` | u8 `[n]` | 1 for a frame that a world model generated |
//! | `game` | bytes `[]` | the name of the game |
//! | `action_names` | bytes `[actions]` | the names of the actions |

mod error;
pub(super) mod npz;

use std::path::Path;

use crate::data::replay::{outcome_from_byte, outcome_to_byte};
use crate::env::Outcome;
use crate::media::{self, Canvas, CaptionedFrame};
pub use error::EpisodeError;
use npz::{Npy, Npz};
use rem_run::files::write_atomic;

/// An episode, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// The game.
    pub game: String,
    /// The names of its actions.
    pub action_names: Vec<String>,
    /// Height and width of a frame in pixels.
    pub size: usize,
    /// RGB frames: one per action, and optionally the one after the last action.
    pub frames: Vec<Vec<u8>>,
    /// The action taken in each frame.
    pub actions: Vec<u8>,
    /// The reward of each action.
    pub rewards: Vec<f32>,
    /// The outcome of each action.
    pub outcomes: Vec<Outcome>,
    /// For each frame, whether a world model generated it.
    pub imagined: Vec<bool>,
}

impl Episode {
    /// Number of actions.
    pub fn steps(&self) -> usize {
        self.actions.len()
    }

    /// The return, undiscounted.
    pub fn total_reward(&self) -> f32 {
        media::return_of(&self.rewards)
    }

    /// The outcome of the last action.
    pub fn outcome(&self) -> Outcome {
        *self.outcomes.last().unwrap_or(&Outcome::Running)
    }

    /// The name of the action taken in a frame; `None` for the frame after the last action.
    pub fn action_name(&self, step: usize) -> Option<&str> {
        let action = usize::from(*self.actions.get(step)?);
        Some(self.action_names.get(action).map_or("?", String::as_str))
    }

    /// The caption of a frame: step, return so far, the action taken or how the episode ended, and whether the frame is
    /// imagined.
    fn caption(&self, step: usize) -> String {
        let total = media::return_of(&self.rewards[..step.min(self.steps())]);
        let imagined = match self.imagined.get(step) {
            Some(true) => "  dream",
            _ => "",
        };
        let action = self.action_name(step);
        let action = action.unwrap_or_else(|| match self.outcome() {
            Outcome::Running => "",
            Outcome::Terminated => "terminated",
            Outcome::Truncated => "truncated",
        });
        format!("step {step}  return {total}  {action}{imagined}")
    }

    /// All frames with their captions. An episode of the replay lacks the frame after its end, but not its last reward.
    fn captioned(&self) -> Vec<CaptionedFrame<'_>> {
        let over = self.outcome() != Outcome::Running;
        let end = (over && self.frames.len() == self.steps()).then_some(None);
        let frames = self.frames.iter().map(|frame| Some(&frame[..]));
        let captioned = |(step, frame)| CaptionedFrame {
            frame,
            caption: self.caption(step),
        };
        frames.chain(end).enumerate().map(captioned).collect()
    }

    /// The last `frames` frames.
    pub fn last(&self, frames: usize) -> Self {
        let cut = self.frames.len().saturating_sub(frames);
        Self {
            game: self.game.clone(),
            action_names: self.action_names.clone(),
            size: self.size,
            frames: self.frames[cut..].to_vec(),
            actions: self.actions[cut..].to_vec(),
            rewards: self.rewards[cut..].to_vec(),
            outcomes: self.outcomes[cut..].to_vec(),
            imagined: self.imagined[cut..].to_vec(),
        }
    }

    /// A looping animation as the bytes of a GIF file.
    ///
    /// # Errors
    /// If the episode has no frames.
    pub fn gif(&self, frame_ms: u32) -> std::io::Result<Vec<u8>> {
        media::gif(media::episode_frames(self.size, self.captioned()), frame_ms)
    }

    /// All frames in one image, `columns` per row, each with its caption.
    pub fn strip(&self, columns: usize) -> Canvas {
        media::episode_strip(self.size, &self.captioned(), columns)
    }

    /// The episode as the bytes of an `.npz` file.
    pub fn to_npz(&self) -> Vec<u8> {
        let (n, size) = (self.frames.len(), self.size);
        let outcomes = self.outcomes.iter().map(|o| outcome_to_byte(*o)).collect();
        let rewards = self.rewards.iter().flat_map(|r| r.to_le_bytes()).collect();
        let imagined = self.imagined.iter().map(|d| u8::from(*d)).collect();
        let (steps, n_rewards, n_outcomes) =
            (self.steps(), self.rewards.len(), self.outcomes.len());
        npz::write(&[
            (
                "frames",
                Npy::bytes(vec![n, size, size, 3], self.frames.concat()),
            ),
            ("actions", Npy::bytes(vec![steps], self.actions.clone())),
            ("rewards", Npy::new("<f4", vec![n_rewards], rewards)),
            ("outcomes", Npy::bytes(vec![n_outcomes], outcomes)),
            ("imagined", Npy::bytes(vec![self.imagined.len()], imagined)),
            ("game", Npy::text(&self.game)),
            ("action_names", Npy::texts(&self.action_names)),
        ])
    }

    /// Writes an `.npz` file, atomically.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), EpisodeError> {
        write_atomic(path, &self.to_npz()).map_err(EpisodeError::Write)
    }

    /// Reads an `.npz` file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a valid episode.
    pub fn read(path: &Path) -> Result<Self, EpisodeError> {
        let bytes = std::fs::read(path).map_err(|error| EpisodeError::Read {
            path: path.into(),
            error,
        })?;
        Self::from_npz(&bytes).map_err(|reason| EpisodeError::Invalid {
            path: path.into(),
            reason,
        })
    }

    /// Parses the bytes of an `.npz` file.
    ///
    /// # Errors
    /// The reason, if an array is missing or has an invalid shape or value.
    pub fn from_npz(bytes: &[u8]) -> Result<Self, String> {
        let mut file = Npz::read(bytes)?;
        let frames = file.take("frames", "|u1")?;
        let [n, size, width, 3] = frames.shape[..] else {
            return Err(format!("`frames` has the shape {:?}", frames.shape));
        };
        // Check this first: without frames, `size` may be anything.
        if n == 0 {
            return Err("the episode has no frames".into());
        }
        if size != width || size == 0 {
            return Err(format!("frames of {size}x{width} pixels are not square"));
        }
        let frames: Vec<Vec<u8>> = (frames.bytes.chunks(size * size * 3))
            .map(<[u8]>::to_vec)
            .collect();
        let actions = file.take("actions", "|u1")?.bytes;
        let rewards = file.take("rewards", "<f4")?.bytes;
        let rewards: Vec<f32> = (rewards.as_chunks::<4>().0.iter())
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        let outcomes = file.take("outcomes", "|u1")?.bytes.into_iter();
        let outcomes: Option<Vec<Outcome>> = outcomes.map(outcome_from_byte).collect();
        let outcomes = outcomes.ok_or("`outcomes` holds an unknown value")?;
        let imagined = file.take("imagined", "|u1")?.bytes;
        let steps = actions.len();
        let fits = n == steps || n == steps + 1;
        if !fits || rewards.len() != steps || outcomes.len() != steps || imagined.len() != n {
            return Err("the lengths of the arrays do not match".into());
        }
        if !rewards.iter().all(|reward| reward.is_finite()) {
            return Err("`rewards` holds a value that is not finite".into());
        }
        Ok(Self {
            game: file.texts("game")?.concat(),
            action_names: file.texts("action_names")?,
            size,
            frames,
            actions,
            rewards,
            outcomes,
            imagined: imagined.into_iter().map(|d| d != 0).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episode() -> Episode {
        Episode {
            game: "catch".into(),
            action_names: vec!["noop".into(), "left".into(), "right".into()],
            size: 2,
            frames: (0..3).map(|i| vec![i * 10; 12]).collect(),
            actions: vec![1, 2],
            rewards: vec![0.0, -1.5],
            outcomes: vec![Outcome::Running, Outcome::Terminated],
            imagined: vec![false, true, true],
        }
    }

    #[test]
    fn a_written_episode_reads_back_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("episode.npz");
        episode().write(&path).unwrap();
        let read = Episode::read(&path).unwrap();
        assert_eq!(read, episode());
        assert_eq!((read.steps(), read.total_reward()), (2, -1.5));
        assert_eq!(read.action_name(1), Some("right"));
        assert_eq!(read.action_name(2), None);
        assert_eq!(read.caption(0), "step 0  return 0  left");
        assert_eq!(read.caption(2), "step 2  return -1.5  terminated  dream");
    }

    #[test]
    fn invalid_files_are_rejected_with_a_reason() {
        let reason = |bytes: &[u8]| Episode::from_npz(bytes).unwrap_err();
        let good = episode().to_npz();
        assert!(reason(b"not a file").contains("npz"), "{}", reason(b"no"));
        assert!(!reason(&good[..good.len() / 2]).is_empty());
        let mut shorter = episode();
        shorter.rewards.pop();
        assert!(reason(&shorter.to_npz()).contains("do not match"));
        let other = npz::write(&[("frames", Npy::bytes(vec![1], vec![0]))]);
        assert!(reason(&other).contains("shape"), "{}", reason(&other));
        let empty = npz::write(&[]);
        assert!(reason(&empty).contains("`frames` is missing"));
        let no_frames = Npy::bytes(vec![0, 1 << 40, 1 << 40, 3], vec![]);
        let no_frames = npz::write(&[("frames", no_frames)]);
        assert_eq!(reason(&no_frames), "the episode has no frames");
    }

    #[test]
    fn last_keeps_the_final_frames_and_their_actions() {
        let end = episode().last(2);
        assert_eq!((end.frames.len(), end.actions.as_slice()), (2, &[2][..]));
        assert_eq!(episode().last(9), episode());
    }

    #[test]
    fn a_replay_episode_ends_with_a_panel_that_has_its_last_reward() {
        let mut replayed = episode();
        replayed.frames.pop();
        replayed.imagined.pop();
        let captions = |episode: &Episode| -> Vec<(bool, String)> {
            let captioned = episode.captioned().into_iter();
            captioned.map(|c| (c.frame.is_some(), c.caption)).collect()
        };
        let end = (false, "step 2  return -1.5  terminated".to_owned());
        assert_eq!(captions(&replayed).last(), Some(&end));
        assert_eq!(captions(&replayed).len(), 3);
        assert!(captions(&episode()).iter().all(|(has_frame, _)| *has_frame));
        *replayed.outcomes.last_mut().unwrap() = Outcome::Running;
        assert_eq!(captions(&replayed).len(), 2);
    }

    #[test]
    fn strips_and_gifs_can_be_drawn() {
        let strip = episode().strip(2);
        let wide = episode().strip(3);
        assert!(strip.height > wide.height && strip.width < wide.width);
        assert!(episode().gif(100).unwrap().starts_with(b"GIF89a"));
    }
}
