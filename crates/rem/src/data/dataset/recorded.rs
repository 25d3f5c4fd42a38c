//! Episodes of a NumPy file with the array names of the field.

use crate::data::episode::npz::{Images, Npz};
use crate::env::Outcome;

/// Names of the arrays, by what they hold; the first is ours.
const FRAMES: &[&str] = &[
    "frames",
    "observations",
    "observation",
    "obs",
    "images",
    "image",
];
const ACTIONS: &[&str] = &["actions", "action"];
const REWARDS: &[&str] = &["rewards", "reward"];
const TERMINATIONS: &[&str] = &["terminations", "terminated", "terminals", "dones", "done"];
const TRUNCATIONS: &[&str] = &["truncations", "truncated", "timeouts"];

/// Steps of a file: one episode, or several that follow each other.
pub(super) struct Recorded {
    pub(super) images: Images,
    pub(super) actions: Vec<u8>,
    pub(super) rewards: Vec<f32>,
    pub(super) outcomes: Vec<Outcome>,
    /// Empty if the file does not tell.
    pub(super) action_names: Vec<String>,
    pub(super) game: Option<String>,
}

impl Recorded {
    /// Parses the bytes of an `.npz` file.
    ///
    /// # Errors
    /// The reason, if an array is missing or has an invalid shape or value.
    pub(super) fn from_npz(bytes: &[u8]) -> Result<Self, String> {
        let mut file = Npz::read(bytes)?;
        let images = file.images(FRAMES)?;
        let actions = file.numbers(ACTIONS)?.ok_or_else(|| missing(ACTIONS))?;
        let rewards = file.numbers(REWARDS)?.ok_or_else(|| missing(REWARDS))?;
        let steps = actions.len();
        let outcomes = match file.numbers(&["outcomes"])? {
            Some(outcomes) => outcomes.into_iter().map(outcome).collect(),
            None => {
                let ends = file
                    .numbers(TERMINATIONS)?
                    .ok_or_else(|| missing(TERMINATIONS))?;
                let cuts = file
                    .numbers(TRUNCATIONS)?
                    .unwrap_or_else(|| vec![0.0; ends.len()]);
                if cuts.len() != ends.len() {
                    return Err("the lengths of the arrays do not match".into());
                }
                let both = ends.into_iter().zip(cuts);
                both.map(|(end, cut)| match (end != 0.0, cut != 0.0) {
                    (true, _) => Some(Outcome::Terminated),
                    (false, true) => Some(Outcome::Truncated),
                    (false, false) => Some(Outcome::Running),
                })
                .collect::<Option<Vec<_>>>()
            }
        };
        let outcomes: Vec<Outcome> = outcomes.ok_or("`outcomes` holds an unknown value")?;
        let fits = images.count() == steps || images.count() == steps + 1;
        if steps == 0 || !fits || rewards.len() != steps || outcomes.len() != steps {
            return Err(format!(
                "the lengths of the arrays do not match: {} frames, {steps} actions, {} rewards, {} outcomes",
                images.count(),
                rewards.len(),
                outcomes.len()
            ));
        }
        if !rewards.iter().all(|reward| (*reward as f32).is_finite()) {
            return Err("`rewards` holds a value that is not finite".into());
        }
        let action = |value: &f64| {
            let whole = value.fract() == 0.0 && (0.0..256.0).contains(value);
            whole.then_some(*value as u8)
        };
        let actions: Option<Vec<u8>> = actions.iter().map(action).collect();
        Ok(Self {
            images,
            actions: actions
                .ok_or("`actions` holds a value that is no discrete action from 0 to 255")?,
            rewards: rewards.into_iter().map(|reward| reward as f32).collect(),
            outcomes,
            action_names: file.texts("action_names").unwrap_or_default(),
            game: file.texts("game").ok().map(|game| game.concat()),
        })
    }
}

fn outcome(value: f64) -> Option<Outcome> {
    match value {
        0.0 => Some(Outcome::Running),
        1.0 => Some(Outcome::Terminated),
        2.0 => Some(Outcome::Truncated),
        _ => None,
    }
}

fn missing(names: &[&str]) -> String {
    format!("no array is named `{}`", names.join("`, `"))
}
