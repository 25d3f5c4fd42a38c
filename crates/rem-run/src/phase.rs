//! The phases of an epoch.

use std::fmt;

/// A phase of an epoch. Variants are in the order in which phases run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The agent acts in the environment and fills the replay.
    Collect,
    /// Training of the tokenizer.
    Tokenizer,
    /// Training of the world model.
    WorldModel,
    /// Training of the actor-critic in imagination.
    ActorCritic,
    /// The agent is evaluated in the environment.
    Evaluate,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Self; 5] = [
        Self::Collect,
        Self::Tokenizer,
        Self::WorldModel,
        Self::ActorCritic,
        Self::Evaluate,
    ];

    /// Its name in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Collect => "collect",
            Self::Tokenizer => "tokenizer",
            Self::WorldModel => "world_model",
            Self::ActorCritic => "actor_critic",
            Self::Evaluate => "evaluate",
        }
    }

    /// The phase with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}
