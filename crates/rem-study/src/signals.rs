//! Signals that stop runs and pools.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The exit code of a process that a signal stopped, and that can be started again: `EX_TEMPFAIL` of sysexits.h.
pub const EXIT_STOPPED: i32 = 75;

/// A signal that stops: its number and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(i32);

impl Signal {
    /// The name, such as `SIGTERM`.
    pub fn name(self) -> &'static str {
        match self.0 {
            1 => "SIGHUP",
            2 => "SIGINT",
            15 => "SIGTERM",
            number if Some(number) == warning() => "SIGUSR1",
            _ => "a signal",
        }
    }

    /// Whether it is that of Ctrl-C, SIGINT.
    pub fn is_from_keyboard(self) -> bool {
        self.0 == 2
    }

    /// Whether it is the warning that Slurm sends before the time limit, SIGUSR1.
    pub fn is_warning(self) -> bool {
        Some(self.0) == warning()
    }
}

#[cfg(unix)]
fn warning() -> Option<i32> {
    Some(signal_hook::consts::SIGUSR1)
}

#[cfg(not(unix))]
fn warning() -> Option<i32> {
    None
}

/// The last stop signal of this process, if any.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicUsize>);

impl Stop {
    /// From now on, SIGINT, SIGTERM, SIGHUP and SIGUSR1 are recorded instead of ending this process.
    ///
    /// # Errors
    ///
    /// If the system refuses.
    #[cfg(unix)]
    pub fn on_signals() -> std::io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
        let stop = Self::default();
        for signal in [SIGHUP, SIGINT, SIGTERM, SIGUSR1] {
            signal_hook::flag::register_usize(signal, stop.0.clone(), signal as usize)?;
        }
        Ok(stop)
    }

    /// Other systems have no such signals: processes just end, which is safe for runs.
    ///
    /// # Errors
    ///
    /// Never.
    #[cfg(not(unix))]
    pub fn on_signals() -> std::io::Result<Self> {
        Ok(Self::default())
    }

    /// The signal that stops this process.
    pub fn signal(&self) -> Option<Signal> {
        match self.0.load(Ordering::SeqCst) {
            0 => None,
            number => Some(Signal(number as i32)),
        }
    }
}

/// How a process that trains a run reacts to signals. SIGUSR1, which schedulers send before a time limit, always stops it at
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// The first SIGINT or SIGTERM lets it finish its epoch, the second stops it at once.
    FinishEpoch,
    /// SIGINT, SIGTERM and SIGHUP stop it at once: it is a process of a pool, which starts it again.
    AtOnce,
}

impl Reaction {
    /// The exit code of a process that a signal stopped.
    pub fn exit_code(self, signal: Signal) -> i32 {
        match self {
            Self::FinishEpoch if !signal.is_warning() => 128 + signal.0,
            _ => EXIT_STOPPED,
        }
    }
}

/// Calls `on_signal` in a thread of its own with each signal that stops this process, and whether it may finish its epoch
/// before. Exits at once when `on_signal` returns true.
///
/// Other threads are in the middle of something then, which is safe for a run: its files are always those of its last
/// complete epoch.
///
/// # Errors
///
/// If the system refuses.
#[cfg(unix)]
pub fn listen(
    reaction: Reaction,
    mut on_signal: impl FnMut(Signal, bool) -> bool + Send + 'static,
) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
    let signals = [SIGUSR1, SIGTERM, SIGINT, SIGHUP];
    let signals = match reaction {
        Reaction::FinishEpoch => &signals[..3],
        Reaction::AtOnce => &signals[..],
    };
    let mut signals = signal_hook::iterator::Signals::new(signals)?;
    std::thread::spawn(move || {
        let mut may_wait = reaction == Reaction::FinishEpoch;
        for signal in signals.forever().map(Signal) {
            let waits = may_wait && !signal.is_warning();
            if on_signal(signal, waits) {
                // Not `std::process::exit`, which destroys what other threads use.
                signal_hook::low_level::exit(reaction.exit_code(signal));
            }
            may_wait = false;
        }
    });
    Ok(())
}

/// Other systems have no such signals.
///
/// # Errors
///
/// Never.
#[cfg(not(unix))]
pub fn listen(
    _reaction: Reaction,
    _on_signal: impl FnMut(Signal, bool) -> bool + Send + 'static,
) -> std::io::Result<()> {
    Ok(())
}

/// Asks this process to end with SIGTERM when the process that started it dies. Linux only: elsewhere an orphaned run
/// trains to its end.
///
/// Returns false if the parent, `parent`, is already dead.
pub fn end_with_parent(parent: u32) -> bool {
    #[cfg(target_os = "linux")]
    {
        use rustix::process;
        let _ = process::set_parent_process_death_signal(Some(process::Signal::TERM));
        let now = process::getppid().map(|pid| pid.as_raw_nonzero().get() as u32);
        now == Some(parent)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = parent;
        true
    }
}

/// Sends SIGTERM to a process. Returns false if there is no such process.
#[cfg(unix)]
pub(crate) fn terminate(pid: u32) -> bool {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process(pid, Signal::TERM).is_ok())
}

#[cfg(not(unix))]
pub(crate) fn terminate(_pid: u32) -> bool {
    false
}
