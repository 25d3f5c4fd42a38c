//! The commands of a play session, in JSON.

use serde::Deserialize;

/// A command of the page.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Command {
    /// Starts a new timeline.
    Start { from: StartFrom, world: World },
    /// Takes a step with this action, or with one sampled from the policy.
    Step {
        action: Option<usize>,
        temperature: f32,
    },
    /// Moves to a node of the timeline. The next step starts a branch there.
    Goto { node: u64 },
    /// Continues in a dream whose memory holds only the last observations. Leaves the real environment, or resets the
    /// memory of the current dream.
    Dream,
    /// The most likely codes at a position of the current observation.
    Token { position: usize },
    /// Saves the steps from a node to the current one as a file.
    Save {
        format: FileFormat,
        from: Option<u64>,
        frame_ms: u32,
    },
}

/// The environment to act in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum World {
    /// The real environment.
    Real,
    /// The world model.
    Dream,
}

/// The first observation of a timeline.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum StartFrom {
    /// A step of a replay episode. Only a dream can start there: the replay has no environment state.
    Episode { number: usize, step: usize },
    /// A reset of the environment.
    Reset { seed: u64 },
}

/// The format of a saved episode.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileFormat {
    /// An animation of the frames.
    Gif,
    /// NumPy arrays of frames, actions and rewards.
    Npz,
}
