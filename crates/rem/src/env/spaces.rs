//! Spaces: what an environment shows and which actions it takes. Replay, models, checkpoints and pages take their sizes
//! from them.
//!
//! The enums are `#[non_exhaustive]`: kinds other than images and discrete actions can be added.

use serde::{Deserialize, Serialize};

use super::EnvError;

/// The largest number of discrete actions: the replay stores an action in a byte.
pub const MAX_ACTIONS: usize = 256;

/// What an environment shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ObservationSpace {
    /// Images of bytes.
    Image {
        /// Height in pixels.
        height: usize,
        /// Width in pixels.
        width: usize,
        /// 3 for RGB, 1 for gray.
        channels: usize,
    },
}

impl ObservationSpace {
    /// RGB images.
    pub fn rgb(height: usize, width: usize) -> Self {
        Self::Image {
            height,
            width,
            channels: 3,
        }
    }

    /// Gray images.
    pub fn gray(height: usize, width: usize) -> Self {
        Self::Image {
            height,
            width,
            channels: 1,
        }
    }

    /// Bytes of an observation.
    pub fn bytes(&self) -> usize {
        let Self::Image {
            height,
            width,
            channels,
        } = self;
        height * width * channels
    }
}

impl std::fmt::Display for ObservationSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Self::Image {
            height,
            width,
            channels,
        } = self;
        write!(f, "image {height}x{width}x{channels}")
    }
}

/// Which actions an environment takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ActionSpace {
    /// One of a number of actions.
    Discrete {
        /// Their names, by number.
        names: Vec<String>,
    },
}

impl ActionSpace {
    /// `count` actions, named by their numbers.
    pub fn discrete(count: usize) -> Self {
        Self::named((0..count).map(|action| action.to_string()))
    }

    /// Actions with names.
    pub fn named<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self::Discrete { names }
    }

    /// Number of actions.
    pub fn count(&self) -> usize {
        self.names().len()
    }

    /// The names of the actions, by number.
    pub fn names(&self) -> &[String] {
        let Self::Discrete { names } = self;
        names
    }
}

impl std::fmt::Display for ActionSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} discrete actions", self.count())
    }
}

/// Both spaces of an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spaces {
    /// What it shows.
    pub observation: ObservationSpace,
    /// Which actions it takes.
    pub action: ActionSpace,
}

impl Spaces {
    /// Checks that the agent can play with these spaces.
    ///
    /// # Errors
    /// If an image is empty or has another number of channels than 1 or 3, or if there are too few or too many actions.
    pub fn check(&self) -> Result<(), EnvError> {
        let ObservationSpace::Image {
            height,
            width,
            channels,
        } = self.observation;
        let unsupported = |reason: String| Err(EnvError::Spaces { reason });
        if height == 0 || width == 0 || !matches!(channels, 1 | 3) {
            return unsupported(format!(
                "observations of {height}x{width}x{channels} are not images with 1 or 3 channels"
            ));
        }
        match self.action.count() {
            count @ (0 | 1) => unsupported(format!("{count} actions leave nothing to choose")),
            count if count > MAX_ACTIONS => {
                unsupported(format!("{count} actions are more than {MAX_ACTIONS}"))
            }
            _ => Ok(()),
        }
    }
}

/// An observation of an [`ObservationSpace`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Observation {
    /// `height * width * channels` bytes, row by row.
    Image(Vec<u8>),
}

impl Observation {
    /// The bytes of an image.
    pub fn image(&self) -> &[u8] {
        let Self::Image(bytes) = self;
        bytes
    }

    /// The bytes of an image.
    pub fn into_image(self) -> Vec<u8> {
        let Self::Image(bytes) = self;
        bytes
    }
}

impl From<Vec<u8>> for Observation {
    fn from(image: Vec<u8>) -> Self {
        Self::Image(image)
    }
}

/// An action of an [`ActionSpace`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// The number of a discrete action.
    Discrete(usize),
}

impl Action {
    /// The number of a discrete action.
    pub fn index(&self) -> usize {
        let Self::Discrete(index) = self;
        *index
    }
}

impl From<usize> for Action {
    fn from(index: usize) -> Self {
        Self::Discrete(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(observation: ObservationSpace, actions: usize) -> String {
        let action = ActionSpace::discrete(actions);
        let spaces = Spaces {
            observation,
            action,
        };
        spaces
            .check()
            .map_or_else(|e| e.to_string(), |()| "".into())
    }

    #[test]
    fn images_of_any_size_with_one_or_three_channels_are_supported() {
        assert_eq!(error(ObservationSpace::rgb(210, 160), 18), "");
        assert_eq!(error(ObservationSpace::gray(1, 7), 256), "");
        assert!(error(ObservationSpace::rgb(0, 3), 2).contains("0x3x3"));
        let four = ObservationSpace::Image {
            height: 8,
            width: 8,
            channels: 4,
        };
        assert!(error(four, 2).contains("8x8x4"));
    }

    #[test]
    fn the_number_of_actions_is_limited() {
        let image = ObservationSpace::rgb(8, 8);
        assert!(error(image.clone(), 0).contains("0 actions"));
        assert!(error(image.clone(), 1).contains("1 actions"));
        assert!(error(image, 257).contains("257 actions"));
    }

    #[test]
    fn spaces_are_json_with_a_type() {
        let spaces = Spaces {
            observation: ObservationSpace::gray(84, 96),
            action: ActionSpace::named(["noop", "up"]),
        };
        let json = serde_json::to_string(&spaces).unwrap();
        assert_eq!(
            json,
            r#"{"observation":{"type":"image","height":84,"width":96,"channels":1},"action":{"type":"discrete","names":["noop","up"]}}"#
        );
        assert_eq!(serde_json::from_str::<Spaces>(&json).unwrap(), spaces);
    }
}
