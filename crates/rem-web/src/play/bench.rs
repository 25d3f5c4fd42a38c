//! The time of a dream step in a play session, for `rem bench play`.

use std::path::Path;
use std::time::{Duration, Instant};

use rem::Error;
use rem::threads;

use super::command::{Command, StartFrom, World};
use super::session::Session;
use crate::error::ApiError;
use crate::inference::AgentCache;

/// Times `steps` steps of the agent in a dream, each with the response that a page would get.
///
/// The dream starts at a reset of the environment with seed 1.
///
/// # Errors
///
/// If the agent of the run cannot be loaded.
pub fn time_dream_steps(run: &Path, steps: usize) -> Result<Vec<Duration>, Error> {
    let to_run_error = |error: ApiError| Error::Run {
        path: run.into(),
        reason: error.to_string(),
        hint: error
            .hint()
            .unwrap_or("create a run with `rem train`")
            .into(),
    };
    let agent = AgentCache::default().load(run).map_err(to_run_error)?;
    let mut session = Session::new(&agent, run);
    let mut handle = |command| threads::on_worker(|| session.handle(command)).map_err(to_run_error);
    handle(Command::Start {
        from: StartFrom::Reset { seed: 1 },
        world: World::Dream,
    })?;
    let step = |_| {
        let started = Instant::now();
        handle(Command::Step {
            action: None,
            temperature: 1.0,
        })?;
        Ok(started.elapsed())
    };
    (0..steps).map(step).collect()
}
