//! Ctrl-C and other signals that stop a run.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use rem_run::Owner;
use rem_study::signals::{self, Reaction, Signal};

use crate::print;

/// What the thread that waits for signals knows of the run.
#[derive(Clone)]
pub struct Stop {
    reaction: Reaction,
    stage: Arc<Mutex<Stage>>,
}

/// How far this process is.
#[derive(Clone)]
enum Stage {
    Starting,
    /// It trains, and this epoch of the run is saved. A signal may have asked it to stop after the next.
    Training {
        dir: PathBuf,
        epoch: u32,
        asked: Option<Signal>,
    },
    Done,
}

impl Stop {
    /// From now on, signals are handled.
    pub fn listen(reaction: Reaction) -> Result<Self> {
        let stop = Self {
            reaction,
            stage: Arc::new(Mutex::new(Stage::Starting)),
        };
        let heard = stop.clone();
        signals::listen(reaction, move |signal, may_wait| heard.on(signal, may_wait))?;
        Ok(stop)
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reacts to a signal. Returns whether the process ends now.
    fn on(&self, signal: Signal, may_wait: bool) -> bool {
        let mut stage = self.stage();
        match &mut *stage {
            Stage::Training { epoch, asked, .. } if may_wait => {
                let again = match signal.is_from_keyboard() {
                    true => "press again to stop now".into(),
                    false => format!("send {} again to stop now", signal.name()),
                };
                print::notice(format_args!("finishing epoch {}; {again}", *epoch + 1));
                *asked = Some(signal);
                return false;
            }
            Stage::Training { dir, epoch, .. } => {
                print::end_bars();
                Owner::clear(dir);
                last_words(signal, dir, *epoch);
            }
            Stage::Starting => print::notice("stopped before training started"),
            Stage::Done => {}
        }
        true
    }

    /// An epoch of the run in `dir` is saved.
    pub fn saved(&self, dir: &Path, epoch: u32) {
        let mut stage = self.stage();
        let asked = match &*stage {
            Stage::Training { asked, .. } => *asked,
            _ => None,
        };
        *stage = Stage::Training {
            dir: dir.into(),
            epoch,
            asked,
        };
    }

    /// Whether the run stops after this epoch.
    pub fn is_asked(&self) -> bool {
        matches!(*self.stage(), Stage::Training { asked: Some(_), .. })
    }

    /// The run is complete.
    pub fn done(&self) {
        *self.stage() = Stage::Done;
    }

    /// Ends the process after the epoch in which a signal arrived.
    pub fn exit(self) -> ! {
        let stage = std::mem::replace(&mut *self.stage(), Stage::Done);
        let Stage::Training {
            dir,
            epoch,
            asked: Some(signal),
        } = stage
        else {
            unreachable!("only a signal stops a run");
        };
        last_words(signal, &dir, epoch);
        std::process::exit(self.reaction.exit_code(signal));
    }
}

fn last_words(signal: Signal, dir: &Path, epoch: u32) {
    let by = match signal.is_from_keyboard() {
        true => String::new(),
        false => format!("stopped by {}; ", signal.name()),
    };
    print::notice(format_args!(
        "{by}epoch {epoch} is saved; resume with `rem train --resume {}`",
        dir.display()
    ));
}
