//! Python environments: Gymnasium's, and those of your own functions.
//!
//! Each environment runs in a worker process of the user's Python, `python/rem_env`, whose source is part of this program.
//! Requests and replies are messages over pipes (`python/rem_env/protocol.py`); frames are in a file in shared memory, which
//! the worker maps. A worker that fails, hangs or is killed is an error here and nothing else.

mod error;
mod interpreter;
mod message;
pub mod minari;
mod process;
mod worker;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

pub use error::PythonError;
pub use interpreter::{interpreter, set_interpreter};
use worker::{State, Worker};

use super::snapshot::{invalid, pack, unpack};
use super::{Action, Env, EnvError, EnvName, Observation, Outcome, Spaces, Step};
use crate::config::Python;

const LAYER: &str = "python";

/// Workers that are kept for the next environment.
const MAX_IDLE: usize = 8;

/// Creates environments of one name. Workers are used again: a reset with a seed makes an environment as new.
pub(super) struct PythonEnvs {
    name: EnvName,
    settings: Python,
    idle: Mutex<Vec<Worker>>,
}

impl PythonEnvs {
    pub(super) fn new(name: EnvName, settings: Python) -> Self {
        Self {
            name,
            settings,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// An environment whose first reset has this seed.
    pub(super) fn make(self: &Arc<Self>, seed: u64) -> Result<PythonEnv, EnvError> {
        let idle = self.idle().pop();
        let worker = match idle {
            Some(worker) => worker,
            None => Worker::start(&self.name, &self.settings)?,
        };
        Ok(PythonEnv {
            worker: Some(worker),
            envs: self.clone(),
            // Gymnasium's seeds are non-negative numbers; some environments take 31 bits.
            seed: Some(seed & 0x7fff_ffff),
            lives: None,
            over: true,
        })
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An environment in a worker process.
pub(super) struct PythonEnv {
    /// Present until the environment is dropped.
    worker: Option<Worker>,
    envs: Arc<PythonEnvs>,
    /// The seed of the next reset.
    seed: Option<u64>,
    lives: Option<u32>,
    over: bool,
}

/// State of a snapshot outside the worker.
#[derive(Serialize, Deserialize)]
struct Saved {
    seed: Option<u64>,
    lives: Option<u32>,
    over: bool,
}

impl PythonEnv {
    fn worker(&mut self) -> &mut Worker {
        self.worker.as_mut().expect("it is present until the drop")
    }

    /// Versions of Python and of packages.
    pub(super) fn packages(&self) -> &BTreeMap<String, String> {
        let worker = self.worker.as_ref();
        &worker.expect("it is present until the drop").made.packages
    }

    fn arrived(&mut self, state: State) -> Result<(Observation, Outcome), EnvError> {
        self.lives = u32::try_from(state.lives).ok();
        let outcome = match (state.terminated, state.truncated) {
            (true, _) => Outcome::Terminated,
            (false, true) => Outcome::Truncated,
            (false, false) => Outcome::Running,
        };
        self.over = outcome != Outcome::Running;
        let frame = self.worker().frame()?;
        Ok((frame.into(), outcome))
    }
}

impl Env for PythonEnv {
    fn spaces(&self) -> Spaces {
        let worker = self.worker.as_ref();
        worker
            .expect("it is present until the drop")
            .made
            .spaces
            .clone()
    }

    fn reset(&mut self) -> Result<Observation, EnvError> {
        let seed = self.seed.take();
        let state = self.worker().reset(seed)?;
        Ok(self.arrived(state)?.0)
    }

    fn step(&mut self, action: &Action) -> Result<Step, EnvError> {
        assert!(!self.over, "the episode is over: reset first");
        let state = self.worker().step(action.index())?;
        let reward = state.reward as f32;
        let (observation, outcome) = self.arrived(state)?;
        Ok(Step {
            observation,
            reward,
            outcome,
        })
    }

    fn lives(&self) -> u32 {
        self.lives.unwrap_or(1)
    }

    fn snapshot(&mut self) -> Result<Option<Vec<u8>>, EnvError> {
        if !self.worker().made.snapshots {
            return Ok(None);
        }
        let saved = Saved {
            seed: self.seed,
            lives: self.lives,
            over: self.over,
        };
        // Before its first reset an environment has no state to save.
        let inner = match self.seed {
            Some(_) => Vec::new(),
            None => self.worker().snapshot()?,
        };
        Ok(Some(pack(LAYER, &saved, &inner)))
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<Observation, EnvError> {
        let (saved, inner) = unpack::<Saved>(LAYER, snapshot)?;
        if !self.worker().made.snapshots {
            return Err(invalid("the environment has no snapshots any more".into()));
        }
        let observation = match saved.seed {
            Some(_) => vec![0; self.spaces().observation.bytes()].into(),
            None => {
                let state = self.worker().restore(inner)?;
                self.arrived(state)?.0
            }
        };
        Saved {
            seed: self.seed,
            lives: self.lives,
            over: self.over,
        } = saved;
        Ok(observation)
    }
}

impl Drop for PythonEnv {
    /// A healthy worker waits for the next environment; any other one ends.
    fn drop(&mut self) {
        let Some(worker) = self.worker.take().filter(Worker::is_healthy) else {
            return;
        };
        let mut idle = self.envs.idle();
        if idle.len() < MAX_IDLE {
            idle.push(worker);
        }
    }
}
