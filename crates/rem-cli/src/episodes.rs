//! `rem episodes`: lists and exports the episodes of a run or a recording, and deletes a run's media.

use std::path::{Path, PathBuf};

use crate::args::{LARGEST, at_least_one, whole};
use crate::print;
use crate::runs::{self, DeleteMediaArgs};
use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use comfy_table::{CellAlignment, Table, presets};
use rem::Error;
use rem::data::episode::Episode;
use rem::data::replay::archive::{Archive, EpisodeInfo};
use rem::env::Outcome;
use rem::run::checkpoint;
use rem::run::{read_config, read_protocol};
use serde_json::json;

/// List and export the episodes of a run
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
  rem episodes e.npz export --to strip                     all frames in one image")]
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
    /// The same as `rem runs delete-media --yes`
    #[command(hide = true)]
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
            print::text(match args.json {
                true => show_json(&episode),
                false => show(&episode),
            })?;
        }
        None => {
            let archive = archive(&args.source)?;
            print::text(match args.json {
                true => list_json(&archive, args.last),
                false => list(&archive, args.last),
            })?;
            if let Some(problem) = archive.problem {
                print::note(format_args!(
                    "cannot read the remaining episodes: {problem}"
                ));
            }
        }
        Some(Action::Export(args_of)) => export(&args.source, &args_of)?,
        Some(Action::DeleteMedia(delete)) => {
            runs::delete_media(&DeleteMediaArgs::of(args.source, delete.keep_last))?
        }
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

fn list(archive: &Archive, last: Option<usize>) -> String {
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
    format!("{}\n", table.trim_fmt())
}

/// A line of JSON per episode.
fn list_json(archive: &Archive, last: Option<usize>) -> String {
    let skipped = last.map_or(0, |last| archive.episodes().saturating_sub(last));
    let line = |episode: EpisodeInfo| {
        json!({
            "episode": episode.number,
            "epoch": episode.epoch,
            "steps": episode.steps,
            "return": episode.total_reward,
            "outcome": outcome(episode.outcome),
        })
        .to_string()
            + "\n"
    };
    archive.list().skip(skipped).map(line).collect()
}

fn show_json(episode: &Episode) -> String {
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
    format!("{object}\n")
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

fn show(episode: &Episode) -> String {
    let imagined = episode
        .imagined
        .iter()
        .filter(|imagined| **imagined)
        .count();
    let summary = format!(
        "{}: {} steps, return {}, {}; {} frames of {}x{}, {imagined} imagined",
        episode.game,
        episode.steps(),
        episode.total_reward(),
        outcome(episode.outcome()),
        episode.frames.len(),
        episode.size,
        episode.size
    );
    let mut table = table(&["step", "reward", "action"], 2);
    for step in 0..episode.steps() {
        table.add_row([
            step.to_string(),
            episode.rewards[step].to_string(),
            episode.action_name(step).unwrap_or("?").to_owned(),
        ]);
    }
    format!("{summary}\n{}\n", table.trim_fmt())
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
        print::note(format_args!(
            "cannot read the remaining episodes: {problem}"
        ));
    }
    print::line(format_args!(
        "{}: {} episodes",
        out.display(),
        run.archive.episodes()
    ))?;
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
    print::line(out.display())?;
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
