//! What this machine has, and whether a run can fit.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rem::Error;
use rem::config::{Config, ConfigError};
use rem::train::TrainingTime;
use rem::train::resources::Resources;
use sysinfo::{Disks, System};

/// Longest training that is started, in seconds: ten years.
const LONGEST: f64 = 10.0 * 365.25 * 86_400.0;

/// Free and total memory in bytes, if the system tells.
pub fn memory() -> Option<(f64, f64)> {
    let mut system = System::new().ok()?;
    system.refresh_memory();
    let (free, total) = (system.available_memory(), system.total_memory());
    (total > 0).then_some((free as f64, total as f64))
}

/// Free bytes of the disk that `dir` is on or will be on, if the system tells.
pub fn free_disk(dir: &Path) -> Option<f64> {
    let dir = nearest_existing(dir);
    let dir = dir.canonicalize().unwrap_or(dir);
    let disks = Disks::new_with_refreshed_list().ok()?;
    let mounted = disks
        .iter()
        .filter(|disk| dir.starts_with(disk.mount_point()));
    let disk = mounted.max_by_key(|disk| disk.mount_point().as_os_str().len())?;
    Some(disk.available_space() as f64)
}

/// The nearest ancestor directory that exists.
pub fn nearest_existing(dir: &Path) -> PathBuf {
    let found = dir.ancestors().find(|d| d.is_dir());
    found.map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Bytes as `1.5 GiB`.
pub fn gib(bytes: f64) -> String {
    match bytes / f64::from(1 << 30) {
        huge @ 1e6.. => format!("{huge:.1e} GiB"),
        gib => format!("{gib:.1} GiB"),
    }
}

/// An error if a run needs more than this machine has at all. What it needs at least is known exactly; `rem doctor`
/// compares an estimate with what is free.
pub fn check(config: &Config, dir: &Path) -> Result<()> {
    let least = Resources::least(config);
    let has = [
        ("memory", least.memory, memory().map(|(_, total)| total)),
        ("disk", least.disk, free_disk(dir)),
    ];
    for (resource, needed, available) in has {
        let Some(available) = available.filter(|available| needed > *available) else {
            continue;
        };
        let available = match resource {
            "memory" => format!("this machine has {}", gib(available)),
            _ => format!("{} are free", gib(available)),
        };
        return Err(Error::from(ConfigError::new(
            format!(
                "the run needs at least {} of {resource}, but {available}",
                gib(needed)
            ),
            format!("reduce {}", Resources::largest_key(config)),
        ))
        .into());
    }
    Ok(())
}

/// An error for a run that nobody will see the end of.
pub fn check_time(time: Option<&TrainingTime>) -> Result<()> {
    match time.map(TrainingTime::total) {
        Some(seconds) if seconds > LONGEST => {
            let years = seconds / (365.25 * 86_400.0);
            let years = match years {
                1e6.. => format!("{years:.1e}"),
                _ => format!("{years:.0}"),
            };
            Err(Error::from(ConfigError::new(
                format!("the run would train for about {years} years"),
                "reduce train.epochs, the steps_per_epoch of the optimizers, or the batch sizes",
            ))
            .into())
        }
        _ => Ok(()),
    }
}
