//! How fast the console is.

use std::path::Path;
use std::time::{Duration, Instant};

use rem::error::Error;
use rem::threads;

use super::command::{Command, Kind, Place};
use super::session::Session;
use crate::error::Failure;
use crate::mind::Minds;

/// What each of so many steps of the agent in its dream takes, from a new game on, with all that a page is sent.
pub fn dreamed_steps(run: &Path, steps: usize) -> Result<Vec<Duration>, Error> {
    let told = |failure: Failure| Error::Run {
        path: run.into(),
        reason: failure.to_string(),
        hint: failure.hint().unwrap_or("`rem train` makes runs").into(),
    };
    let mind = Minds::default().of(run).map_err(told)?;
    let mut session = Session::new(&mind, run);
    let mut obey = |command| threads::on_worker(|| session.obey(command)).map_err(told);
    obey(Command::Start {
        place: Place::Game { seed: 1 },
        world: Kind::Dream,
    })?;
    let step = |_| {
        let began = Instant::now();
        obey(Command::Step {
            action: None,
            temperature: 1.0,
        })?;
        Ok(began.elapsed())
    };
    (0..steps).map(step).collect()
}
