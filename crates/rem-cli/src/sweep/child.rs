//! `rem sweep child`: trains one run of a study in this process. Pools start it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use rem::config::{Architecture, Config, PopMode};
use rem::run::{RunDir, read_config};
use rem_run::layout;
use rem_study::signals::{self, Reaction};
use rem_study::{EXIT_LOCKED, Error, Failure, Study};

use crate::train::{self, stop::Stop};

/// Train one run of a study in this process
#[derive(Args)]
pub struct ChildArgs {
    study: PathBuf,
    run: String,
    /// CPU threads, unless the config has a number
    #[arg(long)]
    threads: usize,
    /// The process to end with
    #[arg(long)]
    parent: u32,
}

pub fn run(args: ChildArgs) -> Result<()> {
    if !signals::end_with_parent(args.parent) {
        std::process::exit(signals::EXIT_STOPPED);
    }
    let study = Study::open(&args.study)?;
    let run = study.find(&args.run)?;
    let result = train_run(&study, run, args.threads);
    if let Err(error) = &result {
        if error.downcast_ref().is_some_and(RunDir::is_locked) {
            crate::print_error(error);
            std::process::exit(EXIT_LOCKED);
        }
        let failure = Failure {
            error: error.to_string(),
            hint: crate::hint(error),
        };
        study.set_failure(run, &failure);
    }
    result
}

fn train_run(study: &Study, run: usize, threads: usize) -> Result<()> {
    let dir = study.run_dir(run);
    let mut config = study.config(run)?;
    let stop = Stop::listen(Reaction::AtOnce)?;
    let ready = if dir.join(layout::CONFIG).exists() {
        check_same(study, &dir, &config)?;
        train::resume(&dir, None)?
    } else {
        if config.threads == 0 {
            config.threads = threads;
        }
        train::start(config, &dir)?
    };
    train::train(ready, stop)
}

/// Refuses to continue a run that is not of this study. Threads and imagination mode are decided when a run starts.
fn check_same(study: &Study, dir: &Path, config: &Config) -> Result<()> {
    let found = read_config(dir)?;
    let mut expected = config.clone();
    if expected.threads == 0 {
        expected.threads = found.threads;
    }
    if let (Architecture::Pop { mode, .. }, Architecture::Pop { mode: of_run, .. }) = (
        &mut expected.world_model.architecture,
        found.world_model.architecture,
    ) && *mode == PopMode::Auto
    {
        *mode = of_run;
    }
    if expected == found {
        return Ok(());
    }
    Err(Error::Study {
        path: study.dir().into(),
        reason: format!(
            "`{}` has a run with another config than the study's",
            dir.display()
        ),
        hint: "move that directory away; `rem sweep run` then trains the run from its start".into(),
    }
    .into())
}
