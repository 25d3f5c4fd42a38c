//! Who holds the lock of a run: the content of [`layout::LOCK`].
//!
//! The lock itself is the operating system's. This file tells other processes, also on other machines, which process
//! holds it, without touching the lock.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::layout;

/// The process that holds the lock of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The name of its machine.
    pub host: String,
    /// Its process id.
    pub pid: u32,
    /// When it started, in clock ticks since the machine started, so that a later process with the same id is another
    /// one. Linux only.
    pub started: Option<u64>,
    /// The job that it belongs to, if Slurm started it: `1234` or, for a task of an array, `1234_5`.
    pub slurm_job: Option<String>,
}

/// A process on another machine renews its lock file this often ([`Owner::renew`]) …
pub const RENEWED_EVERY: Duration = Duration::from_secs(20);
/// … and counts as dead when it has not done so for this long. Covers clocks that differ, and cached file attributes.
pub const STALE_AFTER: Duration = Duration::from_secs(120);

impl Owner {
    /// This process.
    pub fn this_process() -> Self {
        let pid = std::process::id();
        let variable = |name| std::env::var(name).ok();
        Self {
            host: host(),
            pid,
            started: started(pid),
            slurm_job: match variable("SLURM_ARRAY_JOB_ID") {
                Some(job) => Some(job + "_" + &variable("SLURM_ARRAY_TASK_ID").unwrap_or_default()),
                None => variable("SLURM_JOB_ID"),
            },
        }
    }

    /// Writes this owner into a lock file. The content is information only, so a failure is not an error: the lock holds
    /// without it.
    pub fn write(&self, mut file: &File) {
        let text = serde_json::to_string(self).expect("strings and numbers are valid JSON");
        let _ = file
            .set_len(0)
            .and_then(|()| file.write_all(text.as_bytes()));
    }

    /// The owner of the run in `dir`, if the process is alive.
    ///
    /// A process on this machine is looked up. One on another machine counts as alive while it renews its lock file.
    pub fn of_run(dir: &Path) -> Option<Self> {
        Self::of_file(&dir.join(layout::LOCK))
    }

    /// As [`Owner::of_run`], given the lock file.
    pub fn of_file(file: &Path) -> Option<Self> {
        let owner: Self = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
        owner.is_alive(file).then_some(owner)
    }

    fn is_alive(&self, file: &Path) -> bool {
        if self.host == host() && self.started.is_some() {
            return started(self.pid) == self.started;
        }
        let modified = file.metadata().and_then(|metadata| metadata.modified());
        let age = modified.map(|then| SystemTime::now().duration_since(then).unwrap_or_default());
        age.is_ok_and(|age| age < STALE_AFTER)
    }

    /// Removes the owner from the lock file of the run in `dir`, before this process exits without releasing the lock.
    pub fn clear(dir: &Path) {
        let file = File::options().write(true).open(dir.join(layout::LOCK));
        let _ = file.and_then(|file| file.set_len(0));
    }

    /// Renews the lock file of the run in `dir`: call it every [`RENEWED_EVERY`] while the run trains.
    pub fn renew(dir: &Path) {
        let file = File::options().append(true).open(dir.join(layout::LOCK));
        // Without the renewal the run looks dead from other machines, but its lock still holds.
        let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
    }
}

/// The name of this machine.
pub fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok());
    name.map_or_else(|| "unknown".into(), |name| name.trim().into())
}

/// When a process of this machine started. `None` if there is no such process, or the system does not tell.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the name in parentheses, which may contain anything. The third is the state.
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    let state = fields.next()?;
    let is_alive = !["Z", "X"].contains(&state);
    is_alive.then(|| fields.nth(18)?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock_of(dir: &Path, owner: &Owner) {
        owner.write(&File::create(dir.join(layout::LOCK)).unwrap());
    }

    #[test]
    fn a_process_of_this_machine_owns_a_run_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Owner::of_run(dir.path()), None);
        let this = Owner::this_process();
        lock_of(dir.path(), &this);
        assert_eq!(Owner::of_run(dir.path()), Some(this.clone()));
        if this.started.is_none() {
            return; // not Linux
        }
        // A later process with the same id is another one.
        let other = Owner {
            started: Some(this.started.unwrap() + 1),
            ..this.clone()
        };
        lock_of(dir.path(), &other);
        assert_eq!(Owner::of_run(dir.path()), None);
        // A process that ended is dead, also before its parent has noticed.
        let mut child = std::process::Command::new("sleep")
            .arg("100")
            .spawn()
            .unwrap();
        let ended = Owner {
            pid: child.id(),
            started: started(child.id()),
            ..this
        };
        lock_of(dir.path(), &ended);
        assert_eq!(Owner::of_run(dir.path()), Some(ended));
        child.kill().unwrap();
        while Owner::of_run(dir.path()).is_some() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }

    #[test]
    fn a_process_of_another_machine_owns_a_run_while_it_renews_the_lock_file() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = Owner {
            host: "another machine".into(),
            ..Owner::this_process()
        };
        lock_of(dir.path(), &elsewhere);
        assert_eq!(Owner::of_run(dir.path()), Some(elsewhere.clone()));
        let file = File::options()
            .append(true)
            .open(dir.path().join(layout::LOCK))
            .unwrap();
        file.set_modified(SystemTime::now() - 2 * STALE_AFTER)
            .unwrap();
        assert_eq!(Owner::of_run(dir.path()), None);
        Owner::renew(dir.path());
        assert_eq!(Owner::of_run(dir.path()), Some(elsewhere));
    }

    #[test]
    fn an_empty_or_foreign_lock_file_has_no_owner() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["", "{", "1234", "{\"host\": 3}"] {
            fs::write(dir.path().join(layout::LOCK), text).unwrap();
            assert_eq!(Owner::of_run(dir.path()), None, "{text}");
        }
    }
}
