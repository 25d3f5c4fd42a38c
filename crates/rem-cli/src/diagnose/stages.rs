//! Progress of the stages of a diagnosis: a bar on a terminal, a line per stage otherwise.

use std::io::IsTerminal;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::print;
use crate::progress::duration;

pub struct Stages {
    terminal: bool,
}

impl Stages {
    pub fn new() -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Runs a stage, which reports finished and all steps, and prints how long it took.
    pub fn run<T, E>(
        &self,
        name: &str,
        work: impl FnOnce(&mut dyn FnMut(usize, usize)) -> Result<T, E>,
    ) -> Result<T, E> {
        let started = Instant::now();
        let style = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} {eta}");
        let bar = match self.terminal {
            true => ProgressBar::new(0).with_style(style.expect("a valid template")),
            false => ProgressBar::hidden(),
        };
        bar.set_prefix(format!("{name:22}"));
        let result = work(&mut |done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        });
        bar.finish_and_clear();
        if result.is_ok() {
            print::message(format_args!(
                "{name} · {}",
                duration(started.elapsed().as_secs_f64())
            ));
        }
        result
    }
}
