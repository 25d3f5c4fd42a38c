//! `rem episodes`: the episodes of a run, and of recordings: listed, exported; and the run's pictures deleted.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use rem::checkpoint;
use rem::env::Outcome;
use rem::episode::Episode;
use rem::error::Error;
use rem::replay::archive::Archive;
use rem::run::{Protocol, read_config};
use rem::showcase;

/// List the episodes of a run, export them as pictures or arrays, delete its pictures
///
/// Episodes are those that the agent lived through while it trained, from the run's replay. In the place of a run a file
/// can stand that `rem play` or `export --to npz` wrote.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem episodes runs/catch-seed1                          list them
  rem episodes runs/catch-seed1 --last 20                the last twenty
  rem episodes runs/catch-seed1 export 7 --to gif        episode-7.gif
  rem episodes runs/catch-seed1 export 7 --to npz --out e.npz
  rem episodes e.npz                                     what is in a recording
  rem episodes e.npz export --to strip                   all its frames on one picture
  rem episodes runs/catch-seed1 delete-media --keep-last make room")]
pub struct EpisodesArgs {
    /// Directory of the run, or an episode file
    #[arg(value_name = "RUN|FILE.npz")]
    source: PathBuf,
    /// List only so many of the last ones
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Write an episode as a file that other programs open
    Export(ExportArgs),
    /// Delete the pictures that a run's evaluations made
    DeleteMedia(DeleteArgs),
}

#[derive(Args)]
struct ExportArgs {
    /// Number of the episode, as it is listed; a file has only one
    number: Option<usize>,
    /// What to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Format,
    /// File to write [default: episode-N.gif, .png or .npz]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Milliseconds a frame, for a GIF
    #[arg(long, value_name = "N", default_value_t = 120)]
    frame_ms: u32,
    /// Frames in a row, for a strip
    #[arg(long, value_name = "N", default_value_t = 10)]
    columns: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// An animation
    Gif,
    /// All frames on one PNG
    Strip,
    /// Arrays for NumPy, and for `rem` again
    Npz,
}

impl Format {
    fn ending(self) -> &'static str {
        match self {
            Self::Gif => "gif",
            Self::Strip => "png",
            Self::Npz => "npz",
        }
    }
}

#[derive(Args)]
struct DeleteArgs {
    /// Keep those of the last evaluation
    #[arg(long)]
    keep_last: bool,
}

pub fn run(args: EpisodesArgs) -> Result<()> {
    let is_file = args.source.is_file();
    match args.action {
        None if is_file => {
            let episode = Episode::read(&args.source)?;
            heard(show(&episode, &mut io::stdout().lock()))?;
        }
        None => {
            let archive = archive(&args.source)?;
            heard(list(&archive, args.last, &mut io::stdout().lock()))?;
            if let Some(problem) = archive.problem {
                eprintln!("note: the rest cannot be read: {problem}");
            }
        }
        Some(Action::Export(export)) => export_one(&args.source, &export)?,
        Some(Action::DeleteMedia(delete)) => delete_media(&args.source, &delete)?,
    }
    Ok(())
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Continues => "open",
        Outcome::Ended => "ended",
        Outcome::Truncated => "cut short",
    }
}

/// Whoever reads may have seen enough, as `head` has.
fn heard(told: io::Result<()>) -> Result<()> {
    match told {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::File(error).into()),
        _ => Ok(()),
    }
}

fn list(archive: &Archive, last: Option<usize>, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:>7} {:>6} {:>6} {:>9}  outcome",
        "episode", "epoch", "steps", "return"
    )?;
    let skipped = last.map_or(0, |last| archive.episodes().saturating_sub(last));
    for episode in archive.list().skip(skipped) {
        writeln!(
            out,
            "{:>7} {:>6} {:>6} {:>9}  {}",
            episode.number,
            episode.epoch,
            episode.steps,
            episode.total_reward,
            outcome(episode.outcome)
        )?;
    }
    Ok(())
}

/// The replay of a directory that must be a run.
fn archive(run: &Path) -> Result<Archive> {
    read_config(run)?;
    Ok(checkpoint::archive(run))
}

fn show(episode: &Episode, out: &mut impl Write) -> io::Result<()> {
    let dreamt = episode.dreamt.iter().filter(|dreamt| **dreamt).count();
    writeln!(
        out,
        "{}: {} steps, return {}, {}; {} frames of {}x{}, {dreamt} of them dreamt",
        episode.game,
        episode.steps(),
        episode.total_reward(),
        outcome(episode.outcome()),
        episode.frames.len(),
        episode.size,
        episode.size
    )?;
    for step in 0..episode.steps() {
        let action = episode.action_name(step).unwrap_or("?");
        writeln!(out, "{step:>5} {action:>12} {:>8}", episode.rewards[step])?;
    }
    Ok(())
}

fn export_one(source: &Path, args: &ExportArgs) -> Result<()> {
    let episode = match source.is_file() {
        true => Episode::read(source)?,
        false => from_run(source, args.number)?,
    };
    let name = args
        .number
        .map_or("episode".to_owned(), |n| format!("episode-{n}"));
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| PathBuf::from(format!("{name}.{}", args.to.ending())));
    match args.to {
        Format::Gif => {
            let gif = episode.gif(args.frame_ms).map_err(Error::File)?;
            rem::files::write_atomic(&out, &gif).map_err(Error::File)?;
        }
        Format::Strip => episode
            .strip(args.columns)
            .save_png(&out)
            .map_err(Error::File)?,
        Format::Npz => episode.write(&out)?,
    }
    println!("{}", out.display());
    Ok(())
}

fn from_run(run: &Path, number: Option<usize>) -> Result<Episode> {
    let archive = archive(run)?;
    let hint = || match archive.episodes() {
        0 => "it has none yet".into(),
        count => format!(
            "it has episodes 0 to {}; `rem episodes RUN` lists them",
            count - 1
        ),
    };
    let refused = |reason: String| Error::Run {
        path: run.into(),
        reason,
        hint: hint(),
    };
    let number = number.ok_or_else(|| refused("which episode?".into()))?;
    let lived = archive.read(number, 0..usize::MAX).map_err(Error::from)?;
    let lived = lived.ok_or_else(|| refused(format!("there is no episode {number}")))?;
    let size = archive.frame_size();
    let size = size.ok_or_else(|| refused("its frames are not square".into()))?;
    let config = read_config(run)?;
    let action_names = Protocol::read(run).map_or_else(|_| Vec::new(), |protocol| protocol.actions);
    Ok(Episode {
        game: config.env.game,
        action_names,
        size,
        dreamt: vec![false; lived.frames.len()],
        frames: lived.frames,
        actions: lived.actions,
        rewards: lived.rewards,
        outcomes: lived.outcomes,
    })
}

/// Only what evaluations wrote; whatever else lies there stays.
fn delete_media(run: &Path, args: &DeleteArgs) -> Result<()> {
    read_config(run)?;
    let mut pictures = showcase::pictures(run);
    if args.keep_last {
        let last = pictures.last().map(|picture| picture.epoch);
        pictures.retain(|picture| Some(picture.epoch) != last);
    }
    let mut bytes = 0;
    for picture in &pictures {
        let path = run.join("media").join(&picture.file);
        bytes += path.metadata().map_or(0, |metadata| metadata.len());
        std::fs::remove_file(&path).map_err(Error::io(&path))?;
    }
    println!(
        "deleted {} pictures, {:.1} MB",
        pictures.len(),
        bytes as f64 / 1e6
    );
    Ok(())
}
