//! `rem runs`: lists, labels and deletes runs.

use anyhow::Result;
use clap::{Args, Subcommand};

mod delete;
mod label;
mod list;
mod row;

pub use delete::{DeleteMediaArgs, delete_media};

/// List runs; name, tag and delete them
///
/// Lists the runs in a directory, those of studies included. A run is running (a process trains it), done (it has a final
/// score), stopped (`rem train --resume` continues it) or damaged (its config cannot be read).
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_long_help = "\
Examples:
  rem runs                                       all runs in `runs`
  rem runs --state done --sort score             the finished ones, the best last
  rem runs --game catch --tag paper --json       one JSON array
  rem runs label runs/catch-seed1 --name baseline --tag paper --note \"before the new encoder\"
  rem runs delete-media runs/* --keep-last       delete images of all but the last evaluation
  rem runs rm runs/try-* --dry-run               show what would be deleted"
)]
pub struct RunsArgs {
    #[command(flatten)]
    list: list::ListArgs,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    Rm(delete::RmArgs),
    DeleteMedia(delete::DeleteMediaArgs),
    Label(label::LabelArgs),
}

pub fn run(args: RunsArgs) -> Result<()> {
    match args.action {
        None => list::run(&args.list),
        Some(Action::Rm(args)) => delete::rm(&args),
        Some(Action::DeleteMedia(args)) => delete_media(&args),
        Some(Action::Label(args)) => label::run(args),
    }
}
