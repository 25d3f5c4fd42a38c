//! `rem runs`: lists runs.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use rem::Error;
use rem_study::Found;

use super::row::{Row, State};
use crate::print;
use crate::progress::{bytes, duration, three};
use crate::table::Table;

#[derive(Args)]
pub struct ListArgs {
    /// Directory of runs, a study, or a run
    #[arg(value_name = "DIR", default_value = "runs")]
    dir: PathBuf,
    /// Only runs in this state
    #[arg(long, value_enum, value_name = "STATE")]
    state: Option<State>,
    /// Only runs of this game
    #[arg(long, value_name = "NAME")]
    game: Option<String>,
    /// Only runs of this preset
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Only runs with this tag; can be repeated
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Order; the largest comes last
    #[arg(long, value_enum, value_name = "KEY", default_value = "run")]
    sort: Key,
    /// Reverse the order
    #[arg(long)]
    reverse: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Key {
    /// Directory
    Run,
    /// Running, done, stopped, damaged
    State,
    /// Game, then score
    Game,
    /// Score of the last evaluation
    Score,
    /// Complete epochs
    Epoch,
    /// Size on disk
    Size,
    /// Time since the run last wrote a file
    Age,
}

impl Key {
    fn compare(self, a: &Row, b: &Row) -> Ordering {
        let score = |row: &Row| row.score.unwrap_or(f64::NEG_INFINITY);
        let by_score = || score(a).total_cmp(&score(b));
        let age = |row: &Row| row.age_seconds.unwrap_or(f64::INFINITY);
        match self {
            Self::Run => Ordering::Equal,
            Self::State => a.state.cmp(&b.state),
            Self::Game => a.game.cmp(&b.game).then_with(by_score),
            Self::Score => by_score(),
            Self::Epoch => a.epoch.cmp(&b.epoch),
            Self::Size => a.bytes.cmp(&b.bytes),
            Self::Age => age(a).total_cmp(&age(b)),
        }
    }
}

impl ListArgs {
    fn selects(&self, row: &Row) -> bool {
        self.state.is_none_or(|state| row.state == state)
            && (self.game.is_none() || self.game == row.game)
            && (self.preset.is_none() || self.preset == row.preset)
            && self.tag.iter().all(|tag| row.labels.tags.contains(tag))
    }
}

pub fn run(args: &ListArgs) -> Result<()> {
    let mut rows = read(&args.dir)?;
    rows.retain(|row| args.selects(row));
    // Stable: equal runs stay in the order of their names.
    rows.sort_by(|a, b| args.sort.compare(a, b));
    if args.reverse {
        rows.reverse();
    }
    if args.json {
        print::line(serde_json::to_string(&rows)?)?;
    } else if rows.is_empty() {
        print::message("no such runs");
    } else {
        print::text(table(&rows))?;
    }
    Ok(())
}

fn read(dir: &Path) -> Result<Vec<Row>> {
    if !dir.is_dir() {
        return Err(Error::Run {
            path: dir.into(),
            reason: "there is no such directory".into(),
            hint: "pass the directory that contains the runs; `rem train` writes to `runs`".into(),
        }
        .into());
    }
    let found = Found::below(&[dir.to_owned()]);
    let rows = found.runs.into_iter();
    Ok(rows.map(|(name, dir)| Row::read(name, &dir)).collect())
}

fn table(rows: &[Row]) -> String {
    let header = [
        "run", "state", "game", "preset", "score", "epoch", "size", "age", "labels",
    ];
    let mut table = Table::new(&header, 4);
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "–".into());
    for row in rows {
        let epochs = row.epochs.map_or_else(|| "?".into(), |n| n.to_string());
        table.push(vec![
            row.run.clone(),
            row.state.name().into(),
            or_dash(&row.game),
            or_dash(&row.preset),
            or_dash(&row.score.map(three)),
            format!("{} / {epochs}", row.epoch),
            bytes(row.bytes),
            or_dash(&row.age_seconds.map(duration)),
            labels(row),
        ]);
    }
    table.terminal()
}

/// `baseline #paper #old`
fn labels(row: &Row) -> String {
    let tags = row.labels.tags.iter().map(|tag| format!("#{tag}"));
    let words = row.labels.name.iter().cloned().chain(tags);
    words.collect::<Vec<_>>().join(" ")
}
