//! The environments in a checkpoint: `environment.bin`.
//!
//! The snapshot of a single environment is the whole file. With several, or with one that has no snapshot, the file begins
//! with a line of JSON that holds the length of each snapshot, or null.

use serde::{Deserialize, Serialize};

use super::collect::CollectEnv;
use crate::data::replay::Replay;
use crate::env::EnvError;
use crate::error::Result;

/// The first line of the file.
#[derive(Serialize, Deserialize)]
struct Index {
    layer: Layer,
    state: Vec<Option<usize>>,
}

#[derive(Serialize, Deserialize)]
enum Layer {
    #[serde(rename = "environments")]
    Environments,
}

/// The snapshots of all environments.
///
/// # Errors
/// If an environment fails.
pub(super) fn take(envs: &mut [CollectEnv]) -> Result<Vec<u8>, EnvError> {
    let snapshots = envs.iter_mut().map(|env| env.env.snapshot());
    let mut snapshots: Vec<Option<Vec<u8>>> = snapshots.collect::<Result<_, _>>()?;
    if let [Some(snapshot)] = &mut snapshots[..] {
        return Ok(std::mem::take(snapshot));
    }
    let index = Index {
        layer: Layer::Environments,
        state: snapshots.iter().map(|s| s.as_ref().map(Vec::len)).collect(),
    };
    let mut bytes = serde_json::to_vec(&index).expect("plain data is valid JSON");
    bytes.push(b'\n');
    bytes.extend(snapshots.into_iter().flatten().flatten());
    Ok(bytes)
}

/// Restores the environments. Those without a snapshot start a new episode: their open ones are abandoned. Returns how many
/// were.
///
/// # Errors
/// If a snapshot is damaged or of another environment.
pub(super) fn restore(
    envs: &mut [CollectEnv],
    bytes: &[u8],
    replay: &mut Replay,
) -> Result<usize, EnvError> {
    let Some((lengths, mut rest)) = split(bytes) else {
        let [env] = envs else {
            return Err(damaged("it is of a single environment"));
        };
        env.frame = env.env.restore(bytes)?.into_image();
        return Ok(0);
    };
    if lengths.len() != envs.len() {
        return Err(damaged("the number of environments differs"));
    }
    let mut abandoned = 0;
    for ((stream, env), length) in (0..).zip(envs).zip(lengths) {
        let Some(length) = length else {
            abandoned += usize::from(replay.open_episode(stream).is_some());
            replay.abandon_episode(stream);
            continue;
        };
        let snapshot = rest.split_off(..length);
        let snapshot = snapshot.ok_or_else(|| damaged("it is truncated"))?;
        env.frame = env.env.restore(snapshot)?.into_image();
    }
    match rest.is_empty() {
        true => Ok(abandoned),
        false => Err(damaged("it has extra bytes")),
    }
}

/// The lengths in the first line, and what follows it; `None` for the snapshot of a single environment.
fn split(bytes: &[u8]) -> Option<(Vec<Option<usize>>, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let index: Index = serde_json::from_slice(&bytes[..end]).ok()?;
    Some((index.state, &bytes[end + 1..]))
}

fn damaged(reason: &str) -> EnvError {
    EnvError::Snapshot {
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, EnvMode};
    use crate::env::{Env, EnvFactory, Outcome};

    fn env(seed: u64) -> CollectEnv {
        let config = Config::load("debug", &["env.game=paddle".into()]).unwrap();
        let factory = EnvFactory::named(&config.env).unwrap();
        let mut env = CollectEnv::new(factory.make(EnvMode::Train, seed).unwrap());
        env.frame = env.env.reset().unwrap().into_image();
        env
    }

    /// Its state cannot be saved.
    struct Unsaved(Box<dyn Env>);

    impl Env for Unsaved {
        fn spaces(&self) -> crate::env::Spaces {
            self.0.spaces()
        }
        fn reset(&mut self) -> Result<crate::env::Observation, EnvError> {
            self.0.reset()
        }
        fn step(&mut self, action: &crate::env::Action) -> Result<crate::env::Step, EnvError> {
            self.0.step(action)
        }
    }

    fn replay(streams: u32) -> Replay {
        let mut replay = Replay::new(3, 1);
        for stream in 0..streams {
            replay.push_to(stream, &[0; 3], 0, 0.0, Outcome::Running);
        }
        replay
    }

    #[test]
    fn a_single_snapshot_is_the_whole_file() {
        let mut one = [env(1)];
        let bytes = take(&mut one).unwrap();
        assert_eq!(Some(&bytes), one[0].env.snapshot().unwrap().as_ref());
        let mut other = [env(2)];
        assert_ne!(other[0].frame, one[0].frame);
        assert_eq!(restore(&mut other, &bytes, &mut replay(1)).unwrap(), 0);
        assert_eq!(other[0].frame, one[0].frame);
        assert!(restore(&mut [env(1), env(2)], &bytes, &mut replay(2)).is_err());
    }

    #[test]
    fn environments_without_a_snapshot_abandon_their_episodes() {
        let unsaved = || CollectEnv::new(Box::new(Unsaved(env(3).env)));
        let mut three = [env(1), unsaved(), env(2)];
        let bytes = take(&mut three).unwrap();
        let mut others = [env(4), unsaved(), env(5)];
        let mut replay = replay(3);
        assert_eq!(restore(&mut others, &bytes, &mut replay).unwrap(), 1);
        let open = [0, 1, 2].map(|stream| replay.open_episode(stream).is_some());
        assert_eq!(open, [true, false, true]);
        assert_eq!(others[2].frame, three[2].frame);
        let shorter = &bytes[..bytes.len() - 1];
        assert!(restore(&mut others, shorter, &mut replay).is_err());
        let longer = [&bytes[..], b"x"].concat();
        assert!(restore(&mut others, &longer, &mut replay).is_err());
    }
}
