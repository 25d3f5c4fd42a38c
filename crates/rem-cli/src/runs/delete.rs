//! `rem runs rm` and `rem runs delete-media`.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use rem::Error;
use rem::run::RunDir;
use rem::train::eval_media;
use rem_run::{Owner, files, layout};

use crate::print;
use crate::progress::{bytes, plural};

/// Delete runs with all their files
///
/// Asks before it deletes. A run that is being trained is never deleted.
#[derive(Args)]
pub struct RmArgs {
    #[command(flatten)]
    which: Which,
}

/// Delete the images and GIFs of a run's evaluations
///
/// Asks before it deletes. A run that is being trained keeps its files.
#[derive(Args)]
pub struct DeleteMediaArgs {
    #[command(flatten)]
    which: Which,
    /// Keep the files of the last evaluation
    #[arg(long)]
    keep_last: bool,
}

#[derive(Args)]
struct Which {
    /// Run directories
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

impl DeleteMediaArgs {
    /// Those of a run, without asking.
    pub fn of(run: PathBuf, keep_last: bool) -> Self {
        let which = Which {
            runs: vec![run],
            dry_run: false,
            yes: true,
        };
        Self { which, keep_last }
    }
}

pub fn rm(args: &RmArgs) -> Result<()> {
    let runs = args.which.locked()?;
    let sizes: Vec<u64> = runs
        .iter()
        .map(|run| files::directory_size(run.path()))
        .collect();
    for (run, size) in runs.iter().zip(&sizes) {
        args.which
            .announce(format!("{} ({})", run.path().display(), bytes(*size)))?;
    }
    let total = bytes(sizes.iter().sum());
    if !args
        .which
        .confirms(&format!("{} and {total}", plural(runs.len(), "run")))?
    {
        return Ok(());
    }
    let count = runs.len();
    for run in runs {
        remove(run)?;
    }
    print::line(format_args!("deleted {}, {total}", plural(count, "run")))?;
    Ok(())
}

pub fn delete_media(args: &DeleteMediaArgs) -> Result<()> {
    let runs = args.which.locked()?;
    let mut media = Vec::new();
    for run in &runs {
        let images = images(run.path(), args.keep_last);
        let size = images.iter().map(|(_, bytes)| bytes).sum();
        let files = plural(images.len(), "media file");
        let dir = run.path().display();
        args.which
            .announce(format!("{files} of {dir} ({})", bytes(size)))?;
        media.extend(images);
    }
    let size = bytes(media.iter().map(|(_, bytes)| bytes).sum());
    let files = plural(media.len(), "media file");
    if !args.which.confirms(&format!("{files} and {size}"))? {
        return Ok(());
    }
    for (path, _) in &media {
        std::fs::remove_file(path).map_err(Error::io(path))?;
    }
    print::line(format_args!("deleted {files}, {size}"))?;
    Ok(())
}

impl Which {
    /// Locks all runs, so that none is trained.
    fn locked(&self) -> Result<Vec<RunDir>> {
        self.runs.iter().map(|dir| lock(dir)).collect()
    }

    fn announce(&self, what: String) -> Result<(), print::Unprinted> {
        match self.dry_run {
            true => print::line(format_args!("would delete {what}")),
            false => Ok(()),
        }
    }

    /// Whether the user wants to delete this.
    fn confirms(&self, what: &str) -> Result<bool> {
        if self.dry_run || self.yes {
            return Ok(self.yes && !self.dry_run);
        }
        if !std::io::stdin().is_terminal() {
            return Err(Error::Run {
                path: self.runs[0].clone(),
                reason: "not deleted, because there is no terminal to ask at".into(),
                hint: "pass `--yes`, or `--dry-run` to see what would be deleted".into(),
            }
            .into());
        }
        print::ask(&format!("delete {what}? [y/N] "));
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
    }
}

fn lock(dir: &Path) -> Result<RunDir> {
    if dir.is_symlink() {
        return Err(Error::Run {
            path: dir.into(),
            reason: "it is a symbolic link".into(),
            hint: "pass the directory that it leads to".into(),
        }
        .into());
    }
    if !layout::is_run(dir) {
        return Err(not_a_run(dir).into());
    }
    // On some network file systems a lock does not reach other machines.
    if let Some(owner) = Owner::of_run(dir) {
        return Err(Error::Run {
            path: dir.into(),
            reason: format!("process {} on {} trains it", owner.pid, owner.host),
            hint: "stop it before you delete files of the run".into(),
        }
        .into());
    }
    // The name of `.` or `runs/..` is needed to rename it.
    let dir = dir.canonicalize().map_err(Error::io(dir))?;
    Ok(RunDir::hold(&dir)?)
}

pub fn not_a_run(dir: &Path) -> Error {
    Error::Run {
        path: dir.into(),
        reason: "it does not contain a run".into(),
        hint: "`rem runs DIR` lists the runs in a directory".into(),
    }
}

/// Deletes a run. It gets another name first, so that a part of a run is never taken for one.
fn remove(run: RunDir) -> Result<()> {
    let dir = run.path().to_owned();
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let doomed = dir.with_file_name(format!(".{name}.deleted"));
    std::fs::rename(&dir, &doomed).map_err(Error::io(&dir))?;
    std::fs::remove_dir_all(&doomed).map_err(Error::io(&doomed))?;
    Ok(())
}

/// The files of evaluations, with their sizes.
fn images(run: &Path, keep_last: bool) -> Vec<(PathBuf, u64)> {
    let mut images = eval_media::eval_images(run);
    if keep_last {
        let last = images.last().map(|image| image.epoch);
        images.retain(|image| Some(image.epoch) != last);
    }
    let files = images
        .iter()
        .map(|image| run.join(layout::MEDIA).join(&image.file));
    let size = |path: &Path| path.metadata().map_or(0, |metadata| metadata.len());
    files.map(|path| (path.clone(), size(&path))).collect()
}
