//! Shows training events: progress bars on a terminal, plain lines otherwise.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use rem::config::Config;
use rem::run::Scores;
use rem::train::Event;

/// The progress of one training run.
pub struct Progress {
    epochs: u32,
    display: MultiProgress,
    /// The bars of running phases, by name. Two phases can run at the same time.
    bars: Vec<(&'static str, ProgressBar)>,
    terminal: bool,
    started: Instant,
    /// Parts of the current epoch's line.
    line: Vec<String>,
    epochs_done: u32,
    epoch_time: Duration,
}

impl Progress {
    pub fn new(config: &Config) -> Self {
        Self {
            epochs: config.train.epochs,
            display: MultiProgress::new(),
            bars: Vec::new(),
            terminal: std::io::stderr().is_terminal(),
            started: Instant::now(),
            line: Vec::new(),
            epochs_done: 0,
            epoch_time: Duration::ZERO,
        }
    }

    pub fn event(&mut self, event: Event) {
        match event {
            Event::Epoch => {
                self.line.clear();
                self.clear_bars();
            }
            Event::Phase {
                epoch,
                phase,
                steps,
            } => self.start_bar(epoch, phase, steps),
            Event::Step { phase, done } => {
                if let Some((_, bar)) = self.bars.iter().find(|(name, _)| *name == phase) {
                    bar.set_position(done as u64);
                }
            }
            Event::PhaseDone {
                phase,
                seconds,
                steps,
                values,
                ..
            } => {
                if let Some(at) = self.bars.iter().position(|(name, _)| *name == phase) {
                    self.bars.remove(at).1.finish_and_clear();
                }
                let rate = steps as f64 / seconds.max(1e-9);
                let values = summary(phase, values);
                let space = if values.is_empty() { "" } else { " " };
                self.line
                    .push(format!("{phase}{space}{values} ({rate:.1}/s)"));
            }
            Event::Evaluated {
                score, is_final, ..
            } => {
                let kind = if is_final { "final score" } else { "score" };
                self.line.push(format!(
                    "{kind} {:.3} over {} episodes",
                    score.mean,
                    score.returns.len()
                ));
            }
            Event::EpochDone { epoch, seconds } => {
                self.epochs_done += 1;
                self.epoch_time += Duration::from_secs_f64(seconds);
                let mean = self.epoch_time.as_secs_f64() / f64::from(self.epochs_done);
                let remaining = mean * f64::from(self.epochs - epoch);
                let line = std::mem::take(&mut self.line).join(" · ");
                self.print(&format!(
                    "epoch {epoch}/{} · {line} · {seconds:.1} s, {} remaining",
                    self.epochs,
                    duration(remaining)
                ));
            }
            Event::Note(text) => self.print(&format!("note: {text}")),
        }
    }

    fn clear_bars(&mut self) {
        for (_, bar) in self.bars.drain(..) {
            bar.finish_and_clear();
        }
    }

    fn start_bar(&mut self, epoch: u32, phase: &'static str, steps: usize) {
        if !self.terminal {
            return;
        }
        let style = "{prefix} {bar:30} {pos}/{len} {per_sec} {eta}";
        let bar = ProgressBar::new(steps as u64)
            .with_style(ProgressStyle::with_template(style).expect("a valid template"))
            .with_prefix(format!("epoch {epoch}/{} {phase:12}", self.epochs));
        self.bars.push((phase, self.display.add(bar)));
    }

    fn print(&self, text: &str) {
        self.display.suspend(|| eprintln!("{text}"));
    }

    pub fn finish(&self, scores: &Scores) {
        if let Some(score) = &scores.final_score {
            println!(
                "{}: mean return {:.3} over {} episodes after {} environment steps ({})",
                scores.game,
                score.mean,
                score.returns.len(),
                score.steps,
                duration(self.started.elapsed().as_secs_f64())
            );
        }
    }
}

/// The most informative metrics of a phase.
fn summary(phase: &str, values: &[(&str, f64)]) -> String {
    let names: &[&str] = match phase {
        "collect" => &["mean_return"],
        "tokenizer" => &["loss_reconstruction", "explained_variance", "active_codes"],
        "world_model" => &[
            "loss_obs",
            "validation/loss_obs",
            "loss_rewards",
            "validation/loss_rewards",
            "loss_ends",
        ],
        "actor_critic" => &["imagined_return", "entropy"],
        "evaluate" => &["test/loss_obs"],
        _ => &[],
    };
    let parts = values.iter().filter(|(n, _)| names.contains(n));
    let parts: Vec<String> = parts.map(|(n, v)| format!("{n} {}", short(*v))).collect();
    parts.join(" ")
}

fn short(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() >= 2.0 {
        format!("{value}")
    } else {
        format!("{value:.3}")
    }
}

/// A duration in words.
pub fn duration(seconds: f64) -> String {
    let s = seconds.round() as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}
