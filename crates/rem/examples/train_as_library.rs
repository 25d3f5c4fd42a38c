//! Trains an agent through the library, with a listener for training events.
//!
//! ```sh
//! cargo run --release -p rem --example train_as_library -- runs/library
//! ```
//! The `debug` preset runs every phase in seconds, but learns nothing; `quick` learns `catch` in minutes. The result is
//! a run directory like those of `rem train`: `rem eval`, `rem watch` and `rem play` work on it.

use std::error::Error;
use std::path::PathBuf;

use rem::config::Config;
use rem::threads;
use rem::train::{Event, Trainer};

fn main() -> Result<(), Box<dyn Error>> {
    let dir: PathBuf = std::env::args_os()
        .nth(1)
        .ok_or("usage: train_as_library RUN_DIR")?
        .into();

    // A preset with overrides, as with `rem train --preset debug --set seed=7 …`.
    let overrides = ["seed=7", "env.game=paddle"].map(String::from);
    let mut config = Config::load("debug", &overrides)?;
    config.threads = 0;

    // Writes config, protocol and the first checkpoint. `custom_env` trains on an environment of its own.
    let trainer = Trainer::named(config)?.start(&dir)?;

    // Train on a worker thread, where nested parallelism is cheaper than on the main thread.
    let scores = threads::on_worker(|| trainer.train(&mut print_event))?;

    let score = scores
        .final_score
        .ok_or("a finished run has a final score")?;
    println!(
        "{}: mean return {:.3} over {} episodes after {} environment steps",
        scores.game,
        score.mean,
        score.returns.len(),
        score.steps
    );
    Ok(())
}

/// Prints the loss of each phase, and the scores. A listener observes training and cannot change it.
fn print_event(event: Event) {
    match event {
        Event::PhaseDone {
            epoch,
            phase,
            seconds,
            values,
            ..
        } => {
            let loss = values.iter().find(|(name, _)| *name == "loss");
            let loss = loss.map_or_else(String::new, |(_, loss)| format!(", loss {loss:.4}"));
            println!("epoch {epoch}: {phase} took {seconds:.2} s{loss}");
        }
        Event::Evaluated { epoch, score, .. } => {
            println!("epoch {epoch}: mean return {:.3}", score.mean);
        }
        Event::Note(text) => println!("note: {text}"),
        _ => {}
    }
}
