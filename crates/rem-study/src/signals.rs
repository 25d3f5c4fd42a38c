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

/// Calls `last_words` when SIGUSR1 or SIGTERM arrives, or with `all` SIGINT or SIGHUP, and exits with [`EXIT_STOPPED`]
/// at once.
///
/// Other threads are in the middle of something, which is safe for a run: its files are always those of its last
/// complete epoch.
///
/// # Errors
///
/// If the system refuses.
#[cfg(unix)]
pub fn exit_on_signal(
    all: bool,
    last_words: impl FnOnce(Signal) + Send + 'static,
) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
    let signals = [SIGUSR1, SIGTERM, SIGINT, SIGHUP];
    let signals = if all { &signals[..] } else { &signals[..2] };
    let mut signals = signal_hook::iterator::Signals::new(signals)?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            last_words(Signal(signal));
            // Not `std::process::exit`, which destroys what other threads use.
            signal_hook::low_level::exit(EXIT_STOPPED);
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
pub fn exit_on_signal(
    _all: bool,
    _last_words: impl FnOnce(Signal) + Send + 'static,
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
