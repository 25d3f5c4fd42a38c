//! `rem episodes`: lists and exports the episodes of a run or a recording, and deletes a run's media.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use comfy_table::{CellAlignment, Table, presets};
use rem::Error;
use rem::data::episode::Episode;
use rem::data::replay::archive::Archive;
use rem::env::Outcome;
use rem::run::checkpoint;
use rem::run::{read_config, read_protocol};
use rem::train::eval_media;
use rem_run::layout;
use serde_json::json;

use crate::args::{LARGEST, at_least_one, whole};

/// List and export the episodes of a run, or delete its media files
///
/// Lists the episodes that the agent collected during training, from the run's replay. Instead of a run, pass an episode
/// file written by `rem play` or `export --to npz`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem episodes runs/catch-seed1                            list all episodes
  rem episodes runs/catch-seed1 --last 20                  list the last 20
  rem episodes runs/catch-seed1 export 7 --to gif          write episode-7.gif
  rem episodes runs/catch-seed1 export 7 --to npz --out e.npz
  rem episodes runs/catch-seed1 export --all --to npz --out episodes    for `rem import episodes`
  rem episodes e.npz                                       show a recording step by step
  rem episodes e.npz export --to strip                     all frames in one image
  rem episodes runs/catch-seed1 delete-media --keep-last   free disk space")]
pub struct EpisodesArgs {
    /// Run directory or episode file
    #[arg(value_name = "RUN|FILE.npz")]
    source: PathBuf,
    /// List only the last N episodes
    #[arg(long, value_name = "N", value_parser = at_least_one::<usize>)]
    last: Option<usize>,
    /// Print JSON: one object per episode, or the steps of an episode file
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Export an episode as a GIF, PNG or NPZ file
    Export(ExportArgs),
    /// Delete a run's evaluation images and GIFs
    DeleteMedia(DeleteArgs),
}

#[derive(Args)]
struct ExportArgs {
    /// Episode number, as listed; not needed for an episode file
    #[arg(value_name = "N", value_parser = whole::<usize>(0..=LARGEST))]
    number: Option<usize>,
    /// Export all episodes of a run, into the directory `--out`
    #[arg(long, conflicts_with = "number", requires = "out")]
    all: bool,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Format,
    /// Output file [default: episode-N.gif, .png or .npz]; with `--all` a directory
    #[arg(long, value_name = "FILE|DIR")]
    out: Option<PathBuf>,
    /// Milliseconds per frame (GIF)
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = whole::<u32>(20..=600_000))]
    frame_ms: u32,
    /// Frames per row (strip)
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = at_least_one::<usize>)]
    columns: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// Animation
    Gif,
    /// All frames in one PNG
    Strip,
    /// NumPy arrays; `rem episodes` reads them back
    Npz,
}

impl Format {
    fn extension(self) -> &'static str {
        match self {
            Self::Gif => "gif",
            Self::Strip => "png",
            Self::Npz => "npz",
        }
    }
}

#[derive(Args)]
struct DeleteArgs {
    /// Keep the files of the last evaluation
    #[arg(long)]
    keep_last: bool,
}

pub fn run(args: EpisodesArgs) -> Result<()> {
    let is_file = args.source.is_file();
    match args.action {
        None if is_file => {
            let episode = Episode::read(&args.source).map_err(Error::from)?;
            let out = &mut io::stdout().lock();
            ignore_broken_pipe(match args.json {
                true => show_json(&episode, out),
                false => show(&episode, out),
            })?;
        }
        None => {
            let archive = archive(&args.source)?;
            let out = &mut io::stdout().lock();
            ignore_broken_pipe(match args.json {
                true => list_json(&archive, args.last, out),
                false => list(&archive, args.last, out),
            })?;
            if let Some(problem) = archive.problem {
                eprintln!("note: cannot read the remaining episodes: {problem}");
            }
        }
        Some(Action::Export(args_of)) => export(&args.source, &args_of)?,
        Some(Action::DeleteMedia(delete)) => delete_media(&args.source, &delete)?,
    }
    Ok(())
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Running => "running",
        Outcome::Terminated => "terminated",
        Outcome::Truncated => "truncated",
    }
}

/// A reader such as `head` may close the pipe early.
fn ignore_broken_pipe(result: io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::File(error).into()),
        _ => Ok(()),
    }
}

fn list(archive: &Archive, last: Option<usize>, out: &mut impl Write) -> io::Result<()> {
    let mut table = table(&["episode", "epoch", "steps", "return", "outcome"], 4);
    let skipped = last.map_or(0, |last| archive.episodes().saturating_sub(last));
    for episode in archive.list().skip(skipped) {
        table.add_row([
            episode.number.to_string(),
            episode.epoch.to_string(),
            episode.steps.to_string(),
            episode.total_reward.to_string(),
            outcome(episode.outcome).to_owned(),
        ]);
    }
    writeln!(out, "{}", table.trim_fmt())
}

/// A line of JSON per episode.
fn list_json(archive: &Archive, last: Option<usize>, out: &mut impl Write) -> io::Result<()> {
    let skipped = last.map_or(0, |last| archive.episodes().saturating_sub(last));
    for episode in archive.list().skip(skipped) {
        let line = json!({
            "episode": episode.number,
            "epoch": episode.epoch,
            "steps": episode.steps,
            "return": episode.total_reward,
            "outcome": outcome(episode.outcome),
        });
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn show_json(episode: &Episode, out: &mut impl Write) -> io::Result<()> {
    let actions: Vec<_> = (0..episode.steps())
        .map(|step| episode.action_name(step))
        .collect();
    let object = json!({
        "game": episode.game,
        "return": episode.total_reward(),
        "outcome": outcome(episode.outcome()),
        "size": episode.size,
        "rewards": episode.rewards[..episode.steps()],
        "actions": actions,
        "imagined": episode.imagined,
    });
    writeln!(out, "{object}")
}

/// A table without borders, whose first `numeric` columns are right-aligned.
fn table(header: &[&str], numeric: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if i < numeric {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The replay of a run; fails if `run` is not a run directory.
fn archive(run: &Path) -> Result<Archive> {
    read_config(run)?;
    Ok(checkpoint::archive(run))
}

fn show(episode: &Episode, out: &mut impl Write) -> io::Result<()> {
    let imagined = episode
        .imagined
        .iter()
        .filter(|imagined| **imagined)
        .count();
    writeln!(
        out,
        "{}: {} steps, return {}, {}; {} frames of {}x{}, {imagined} imagined",
        episode.game,
        episode.steps(),
        episode.total_reward(),
        outcome(episode.outcome()),
        episode.frames.len(),
        episode.size,
        episode.size
    )?;
    let mut table = table(&["step", "reward", "action"], 2);
    for step in 0..episode.steps() {
        table.add_row([
            step.to_string(),
            episode.rewards[step].to_string(),
            episode.action_name(step).unwrap_or("?").to_owned(),
        ]);
    }
    writeln!(out, "{}", table.trim_fmt())
}

fn export(source: &Path, args: &ExportArgs) -> Result<()> {
    match (&args.out, args.all) {
        (Some(out), true) => export_all(source, args, out),
        _ => export_one(source, args),
    }
}

/// Writes `episode-000000.npz`, … into a directory, which `rem import episodes` reads in this order.
fn export_all(source: &Path, args: &ExportArgs, out: &Path) -> Result<()> {
    let run = RunEpisodes::open(source)?;
    std::fs::create_dir_all(out).map_err(Error::io(out))?;
    for number in 0..run.archive.episodes() {
        let name = format!("episode-{number:06}.{}", args.to.extension());
        write(&run.episode(number)?, args, &out.join(name))?;
    }
    if let Some(problem) = &run.archive.problem {
        eprintln!("note: cannot read the remaining episodes: {problem}");
    }
    println!("{}: {} episodes", out.display(), run.archive.episodes());
    Ok(())
}

fn export_one(source: &Path, args: &ExportArgs) -> Result<()> {
    let episode = match source.is_file() {
        true => Episode::read(source).map_err(Error::from)?,
        false => {
            let run = RunEpisodes::open(source)?;
            let number = args.number;
            let number = number.ok_or_else(|| run.error("an episode number is required"))?;
            run.episode(number)?
        }
    };
    let name = args
        .number
        .map_or("episode".to_owned(), |n| format!("episode-{n}"));
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| PathBuf::from(format!("{name}.{}", args.to.extension())));
    write(&episode, args, &out)?;
    println!("{}", out.display());
    Ok(())
}

fn write(episode: &Episode, args: &ExportArgs, out: &Path) -> Result<()> {
    match args.to {
        Format::Gif => {
            let gif = episode.gif(args.frame_ms).map_err(Error::File)?;
            rem_run::files::write_atomic(out, &gif).map_err(Error::File)?;
        }
        Format::Strip => episode
            .strip(args.columns)
            .save_png(out)
            .map_err(Error::File)?,
        Format::Npz => episode.write(out).map_err(Error::from)?,
    }
    Ok(())
}

/// The episodes of a run.
struct RunEpisodes {
    run: PathBuf,
    archive: Archive,
    game: String,
    action_names: Vec<String>,
}

impl RunEpisodes {
    fn open(run: &Path) -> Result<Self> {
        let protocol = read_protocol(run);
        Ok(Self {
            archive: archive(run)?,
            game: read_config(run)?.env.game,
            action_names: protocol.map_or_else(|_| Vec::new(), |protocol| protocol.actions),
            run: run.into(),
        })
    }

    fn error(&self, reason: &str) -> Error {
        let hint = match self.archive.episodes() {
            0 => "the run has no episodes yet".into(),
            count => format!(
                "the run has episodes 0 to {}; `rem episodes RUN` lists them",
                count - 1
            ),
        };
        Error::Run {
            path: self.run.clone(),
            reason: reason.into(),
            hint,
        }
    }

    fn episode(&self, number: usize) -> Result<Episode> {
        let steps = self.archive.read(number, 0..usize::MAX);
        let steps = steps.map_err(Error::from)?;
        let steps = steps.ok_or_else(|| self.error(&format!("no episode {number}")))?;
        let size = self.archive.frame_size();
        let size = size.ok_or_else(|| self.error("its frames are not square"))?;
        Ok(Episode {
            game: self.game.clone(),
            action_names: self.action_names.clone(),
            size,
            imagined: vec![false; steps.frames.len()],
            frames: steps.frames,
            actions: steps.actions,
            rewards: steps.rewards,
            outcomes: steps.outcomes,
        })
    }
}

/// Deletes only files that evaluations wrote.
fn delete_media(run: &Path, args: &DeleteArgs) -> Result<()> {
    read_config(run)?;
    let mut images = eval_media::eval_images(run);
    if args.keep_last {
        let last = images.last().map(|image| image.epoch);
        images.retain(|image| Some(image.epoch) != last);
    }
    let mut bytes = 0;
    for image in &images {
        let path = run.join(layout::MEDIA).join(&image.file);
        bytes += path.metadata().map_or(0, |metadata| metadata.len());
        std::fs::remove_file(&path).map_err(Error::io(&path))?;
    }
    println!(
        "deleted {} media files, {:.1} MB",
        images.len(),
        bytes as f64 / 1e6
    );
    Ok(())
}
