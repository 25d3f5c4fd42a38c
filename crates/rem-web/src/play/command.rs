//! What a page can ask a session for.

use serde::Deserialize;

/// What a page can ask for.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// A new beginning.
    Start { place: Place, world: Kind },
    /// A step with this action, or with the agent's own.
    Step {
        action: Option<usize>,
        temperature: f32,
    },
    /// To a moment that was, to go on from there.
    Go { moment: u64 },
    /// On from here in a dream that has seen only the last few observations: out of the real game, or with a fresh
    /// memory.
    Dream,
    /// The likeliest codes at a place of the present observation.
    Token { place: usize },
    /// The way here as a file, from a moment on.
    Save {
        kind: FileKind,
        from: Option<u64>,
        frame_ms: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Real,
    Dream,
}

/// Where to begin.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Place {
    /// A step of an episode of the replay. There is no real game to go on with from there.
    Episode { number: usize, step: usize },
    /// A new game.
    Game { seed: u64 },
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    Gif,
    Npz,
}
