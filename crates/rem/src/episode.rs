//! An episode by itself, lived or dreamt, and the file that it is kept in: an `.npz` that NumPy opens as well.
//!
//! | array | type and shape | holds |
//! | --- | --- | --- |
//! | `frames` | u8 `[n, size, size, 3]` | RGB; as many as actions, or one more: how it ended or went on |
//! | `actions` | u8 `[t]` | the action taken on each frame |
//! | `rewards` | f32 `[t]` | what it earned |
//! | `outcomes` | u8 `[t]` | 0 continues, 1 ended, 2 truncated |
//! | `dreamt` | u8 `[n]` | 1 for a frame that a world model made up |
//! | `game` | bytes `[]` | its name |
//! | `action_names` | bytes `[actions]` | what the actions are called |

mod npz;

use std::path::Path;

use crate::env::Outcome;
use crate::error::{Error, Result};
use crate::files::write_atomic;
use crate::media::{self, Canvas};
use crate::replay::{outcome_from_byte, outcome_to_byte};
use npz::{Npy, Npz};

#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    pub game: String,
    pub action_names: Vec<String>,
    /// Height and width of a frame in pixels.
    pub size: usize,
    /// As many as actions, or one more: how it ended or went on.
    pub frames: Vec<Vec<u8>>,
    pub actions: Vec<u8>,
    pub rewards: Vec<f32>,
    pub outcomes: Vec<Outcome>,
    /// For each frame, whether a world model made it up.
    pub dreamt: Vec<bool>,
}

impl Episode {
    pub fn steps(&self) -> usize {
        self.actions.len()
    }

    pub fn total_reward(&self) -> f32 {
        self.rewards.iter().sum()
    }

    pub fn outcome(&self) -> Outcome {
        *self.outcomes.last().unwrap_or(&Outcome::Continues)
    }

    /// The name of the action taken on a frame; none on the last frame of an episode with one more.
    pub fn action_name(&self, step: usize) -> Option<&str> {
        let action = usize::from(*self.actions.get(step)?);
        Some(self.action_names.get(action).map_or("?", String::as_str))
    }

    /// What is written below a frame: step, return so far, the action taken on it, and whether it is dreamt.
    fn caption(&self, step: usize) -> String {
        let total: f32 = self.rewards[..step.min(self.steps())].iter().sum();
        let dreamt = if self.dreamt[step] { "  dream" } else { "" };
        let action = self.action_name(step).unwrap_or("");
        format!("step {step}  return {total}  {action}{dreamt}")
    }

    /// Its last `frames` frames.
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
            dreamt: self.dreamt[cut..].to_vec(),
        }
    }

    /// An animation that loops, as the bytes of a GIF file.
    pub fn gif(&self, frame_ms: u32) -> std::io::Result<Vec<u8>> {
        let frames = media::episode_frames(self.size, &self.frames, |step| self.caption(step));
        media::gif(frames, frame_ms)
    }

    /// All frames on one picture, `columns` in a row, each with its caption.
    pub fn strip(&self, columns: usize) -> Canvas {
        media::episode_strip(self.size, &self.frames, |step| self.caption(step), columns)
    }

    /// The bytes of its file.
    pub fn to_npz(&self) -> Vec<u8> {
        let (n, size) = (self.frames.len(), self.size);
        let outcomes = self.outcomes.iter().map(|o| outcome_to_byte(*o)).collect();
        let rewards = self.rewards.iter().flat_map(|r| r.to_le_bytes()).collect();
        let dreamt = self.dreamt.iter().map(|d| u8::from(*d)).collect();
        let (steps, earned, came) = (self.steps(), self.rewards.len(), self.outcomes.len());
        npz::write(&[
            (
                "frames",
                Npy::bytes(vec![n, size, size, 3], self.frames.concat()),
            ),
            ("actions", Npy::bytes(vec![steps], self.actions.clone())),
            ("rewards", Npy::new("<f4", vec![earned], rewards)),
            ("outcomes", Npy::bytes(vec![came], outcomes)),
            ("dreamt", Npy::bytes(vec![self.dreamt.len()], dreamt)),
            ("game", Npy::text(&self.game)),
            ("action_names", Npy::texts(&self.action_names)),
        ])
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        write_atomic(path, &self.to_npz()).map_err(Error::File)
    }

    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(Error::io(path))?;
        Self::from_npz(&bytes).map_err(|reason| Error::Episode {
            path: path.into(),
            reason,
        })
    }

    /// An episode out of the bytes of its file, every length and value checked.
    pub fn from_npz(bytes: &[u8]) -> Result<Self, String> {
        let mut file = Npz::read(bytes)?;
        let frames = file.take("frames", "|u1")?;
        let [n, size, width, 3] = frames.shape[..] else {
            return Err(format!("`frames` has the shape {:?}", frames.shape));
        };
        // First: without frames their size can be anything.
        if n == 0 {
            return Err("it has no frames".into());
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
        let outcomes = outcomes.ok_or("`outcomes` has one that does not exist")?;
        let dreamt = file.take("dreamt", "|u1")?.bytes;
        let steps = actions.len();
        let fits = n == steps || n == steps + 1;
        if !fits || rewards.len() != steps || outcomes.len() != steps || dreamt.len() != n {
            return Err("its arrays do not fit together".into());
        }
        if !rewards.iter().all(|reward| reward.is_finite()) {
            return Err("`rewards` has one that is not a number".into());
        }
        Ok(Self {
            game: file.texts("game")?.concat(),
            action_names: file.texts("action_names")?,
            size,
            frames,
            actions,
            rewards,
            outcomes,
            dreamt: dreamt.into_iter().map(|d| d != 0).collect(),
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
            outcomes: vec![Outcome::Continues, Outcome::Ended],
            dreamt: vec![false, true, true],
        }
    }

    #[test]
    fn an_episode_is_read_back_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("episode.npz");
        episode().write(&path).unwrap();
        let read = Episode::read(&path).unwrap();
        assert_eq!(read, episode());
        assert_eq!((read.steps(), read.total_reward()), (2, -1.5));
        assert_eq!(read.action_name(1), Some("right"));
        assert_eq!(read.action_name(2), None);
        assert_eq!(read.caption(2), "step 2  return -1.5    dream");
    }

    #[test]
    fn what_is_no_episode_is_refused_with_its_reason() {
        let reason = |bytes: &[u8]| Episode::from_npz(bytes).unwrap_err();
        let good = episode().to_npz();
        assert!(reason(b"not a file").contains("npz"), "{}", reason(b"no"));
        assert!(!reason(&good[..good.len() / 2]).is_empty());
        let mut shorter = episode();
        shorter.rewards.pop();
        assert!(reason(&shorter.to_npz()).contains("fit together"));
        let other = npz::write(&[("frames", Npy::bytes(vec![1], vec![0]))]);
        assert!(reason(&other).contains("shape"), "{}", reason(&other));
        let empty = npz::write(&[]);
        assert!(reason(&empty).contains("`frames` is missing"));
        let no_frames = Npy::bytes(vec![0, 1 << 40, 1 << 40, 3], vec![]);
        let no_frames = npz::write(&[("frames", no_frames)]);
        assert_eq!(reason(&no_frames), "it has no frames");
    }

    #[test]
    fn its_end_is_an_episode_too() {
        let end = episode().last(2);
        assert_eq!((end.frames.len(), end.actions.as_slice()), (2, &[2][..]));
        assert_eq!(episode().last(9), episode());
    }

    #[test]
    fn pictures_have_every_frame() {
        let strip = episode().strip(2);
        let wide = episode().strip(3);
        assert!(strip.height > wide.height && strip.width < wide.width);
        assert!(episode().gif(100).unwrap().starts_with(b"GIF89a"));
    }
}
