//! Shows training events: a progress bar per phase on a terminal, and a line per epoch.

use std::path::Path;
use std::time::Instant;

use rem::config::Config;
use rem::run::{Progress as Schedule, Scores};
use rem::train::{Event, StepTimes, TrainingTime};
use rem_run::{Phase, TimingLine, files, layout, parse_lines};

use crate::print::{self, Style, styled};

/// The width of an epoch's line.
const WIDTH: usize = 100;

/// The most numbers in an epoch's line, besides times.
const NUMBERS: usize = 4;

/// The numbers of an epoch's line, the most important first: phase, metric and label.
const SHOWN: [(Phase, &str, &str); 5] = [
    (Phase::Evaluate, "mean_return", "score"),
    (Phase::Collect, "mean_return", "return"),
    (Phase::ActorCritic, "imagined_return", "imagined"),
    (Phase::WorldModel, "loss_obs", "loss_obs"),
    (Phase::Tokenizer, "explained_variance", "explained"),
];

/// What was measured before the first epoch.
#[derive(Clone, Copy, Default)]
pub struct Measured {
    /// The durations of training steps.
    pub steps: Option<StepTimes>,
    /// Recorded steps in the replay of a run that collects nothing.
    pub recorded: usize,
}

impl Measured {
    /// The estimated training time, if it is long.
    pub fn long_run(&self, config: &Config) -> Option<TrainingTime> {
        self.steps.and_then(|steps| steps.over_a_long_run(config))
    }
}

/// The progress of one training run.
pub struct Progress {
    config: Config,
    measured: Measured,
    started: Instant,
    /// The epochs before this process.
    resumed_after: u32,
    epoch: u32,
    /// The phases of all epochs, those before this process included.
    timings: Vec<TimingLine>,
    /// Seconds of this process's epochs outside their phases, for checkpoints.
    outside: f64,
    /// The mean length of an episode.
    episode_length: Option<f64>,
    /// Values for the line of the current epoch.
    values: Vec<(&'static str, f64)>,
}

impl Progress {
    /// The progress of the run in `dir` from `epoch` on.
    pub fn new(config: &Config, dir: &Path, epoch: u32, measured: Measured) -> Self {
        let timings = std::fs::read(dir.join(layout::TIMING)).unwrap_or_default();
        Self {
            config: config.clone(),
            measured,
            started: Instant::now(),
            resumed_after: epoch,
            epoch,
            timings: parse_lines(&timings).collect(),
            outside: 0.0,
            episode_length: None,
            values: Vec::new(),
        }
    }

    pub fn event(&mut self, event: Event) {
        match event {
            Event::Epoch => {
                // Those of an epoch that diverged.
                self.timings.retain(|timing| timing.epoch <= self.epoch);
                self.values.clear();
                print::end_bars();
            }
            Event::Phase {
                epoch,
                phase,
                steps,
            } => {
                let prefix = format!("{} {phase:12}", self.name(epoch));
                print::start_bar(phase, prefix, steps);
            }
            Event::Step { phase, done } => print::move_bar(phase, done),
            Event::PhaseDone {
                epoch,
                phase,
                steps,
                seconds,
                values,
            } => {
                print::end_bar(phase);
                self.phase_done(TimingLine::new(epoch, phase, seconds, steps), values);
            }
            // Its score is the mean return of the phase.
            Event::Evaluated { .. } => {}
            Event::EpochDone { epoch, seconds } => self.epoch_done(epoch, seconds),
            Event::Note(text) => {
                print::note(text);
            }
        }
    }

    fn phase_done(&mut self, timing: TimingLine, values: &[(&'static str, f64)]) {
        let value = |metric: &str| values.iter().find(|(name, _)| *name == metric);
        for (phase, metric, label) in SHOWN {
            if phase.name() == timing.phase
                && let Some((_, value)) = value(metric)
            {
                self.values.push((label, *value));
            }
        }
        if timing.phase == Phase::Collect.name()
            && let Some((_, length)) = value("mean_length")
        {
            self.episode_length = Some(*length);
        }
        let all = values
            .iter()
            .map(|(name, v)| format!(" {name} {}", three(*v)));
        print::detail(format_args!(
            "  {}:{} ({}/s, {} s)",
            timing.phase,
            all.collect::<String>(),
            three(timing.steps_per_second),
            three(timing.seconds)
        ));
        self.timings.push(timing);
    }

    fn epoch_done(&mut self, epoch: u32, seconds: f64) {
        self.epoch = epoch;
        let phases = self.timings.iter().filter(|timing| timing.epoch == epoch);
        let of = |names: &[Phase]| -> f64 {
            let phases = phases.clone();
            let timings = phases.filter(|t| names.iter().any(|phase| phase.name() == t.phase));
            timings.map(|timing| timing.seconds).sum()
        };
        let (world, controller) = (
            of(&[Phase::Tokenizer, Phase::WorldModel]),
            of(&[Phase::ActorCritic]),
        );
        let learning = match self.config.overlaps_in(epoch) {
            true => world.max(controller),
            false => world + controller,
        };
        let playing = of(&[Phase::Collect, Phase::Evaluate]);
        self.outside += (seconds - learning - playing).max(0.0);
        let is_shown = |(_, _, label): &(Phase, &str, &'static str)| {
            let value = self.values.iter().find(|(name, _)| name == label);
            value.map(|(_, value)| (*label, *value))
        };
        let numbers: Vec<_> = SHOWN.iter().filter_map(is_shown).take(NUMBERS).collect();
        let line = Line {
            name: self.name(epoch),
            numbers,
            seconds,
            left: self.seconds_left(),
        };
        print::message(line.styled());
    }

    /// Estimated seconds to the end of the run.
    fn seconds_left(&self) -> f64 {
        let schedule = Schedule::expecting(&self.config, &self.timings, &|phase, epoch| {
            self.expected(phase, epoch)
        });
        let trained = f64::from(self.epoch - self.resumed_after);
        let epochs = f64::from(self.config.train.epochs - self.epoch);
        schedule.seconds_left.unwrap_or(0.0) + self.outside / trained * epochs
    }

    fn expected(&self, phase: Phase, epoch: u32) -> Option<f64> {
        let (config, recorded) = (&self.config, self.measured.recorded);
        match phase {
            Phase::Evaluate => self.expected_evaluation(epoch),
            _ => (self.measured.steps?).of_phase(config, recorded, phase, epoch),
        }
    }

    /// A step of an evaluation takes about as long as one of collection.
    fn expected_evaluation(&self, epoch: u32) -> Option<f64> {
        let collected = self.timings.iter().rev();
        let collected = collected.filter(|timing| timing.phase == Phase::Collect.name());
        let latest = collected.take(1).find(|timing| timing.steps > 0)?;
        let evaluate = &self.config.evaluate;
        let episodes = match epoch == self.config.train.epochs {
            true => evaluate.final_episodes,
            false => evaluate.episodes,
        };
        Some(episodes as f64 * self.episode_length? * latest.seconds / latest.steps as f64)
    }

    fn name(&self, epoch: u32) -> String {
        let epochs = self.config.train.epochs;
        let width = epochs.to_string().len();
        format!("epoch {epoch:width$}/{epochs}")
    }

    /// Prints the final score, and what the run in `dir` takes on the disk. The run is complete without them.
    pub fn finish(&self, scores: &Scores, dir: &Path) {
        if let Some(score) = &scores.final_score {
            let result = print::line(format_args!(
                "{}: mean return {:.3} over {} episodes after {} environment steps ({})",
                scores.game,
                score.mean,
                score.returns.len(),
                score.steps,
                self.took()
            ));
            if let Err(error) = result
                && !error.is_closed_pipe()
            {
                let file = dir.join(layout::SCORES);
                print::note(format_args!("{error}; `{}` has it", file.display()));
            }
        }
        let size = bytes(files::directory_size(dir));
        print::message(format_args!("{} takes {size} on disk", dir.display()));
    }

    /// How long the run took. A part of a run says so.
    fn took(&self) -> String {
        let here = self.started.elapsed().as_secs_f64();
        let after = self.resumed_after;
        let before = self.timings.iter().filter(|timing| timing.epoch <= after);
        let is_whole = self.timings.first().is_some_and(|timing| timing.epoch == 1);
        match (after, is_whole) {
            (0, _) => duration(here),
            (_, true) => {
                let before: f64 = before.map(|timing| timing.seconds).sum();
                format!(
                    "{} in all, {} since epoch {after}",
                    duration(before + here),
                    duration(here)
                )
            }
            (_, false) => format!("{} since epoch {after}", duration(here)),
        }
    }
}

/// The line of an epoch.
struct Line {
    name: String,
    numbers: Vec<(&'static str, f64)>,
    seconds: f64,
    left: f64,
}

impl Line {
    /// Its parts. Drops the last numbers of a line that would be too long.
    fn parts(&self) -> (Vec<String>, String) {
        let numbers = self.numbers.iter();
        let mut parts: Vec<String> = numbers
            .map(|(name, value)| format!("{name} {}", three(*value)))
            .collect();
        let time = match self.seconds < 10.0 {
            true => format!("{:.1} s", self.seconds),
            false => duration(self.seconds),
        };
        let times = format!("{time}, {} left", duration(self.left));
        let width = |parts: &[String]| {
            let all = parts.iter().chain([&self.name, &times]);
            all.map(|part| part.chars().count() + 2).sum::<usize>() - 2
        };
        while width(&parts) > WIDTH && !parts.is_empty() {
            parts.pop();
        }
        (parts, times)
    }

    fn styled(&self) -> String {
        let (parts, times) = self.parts();
        let mut line = styled(Style::Bold, &self.name);
        for part in parts {
            let part = match part.starts_with("score ") {
                true => styled(Style::Good, part),
                false => part,
            };
            line.push_str(&format!("  {part}"));
        }
        format!("{line}  {}", styled(Style::Dim, times))
    }
}

/// A number with three significant digits.
pub fn three(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    // The exponent after rounding: 9.999 has three digits as 10.0.
    let scientific = format!("{value:.2e}");
    let (_, exponent) = scientific
        .split_once('e')
        .expect("a finite number has an exponent");
    match exponent.parse::<i32>().expect("an exponent is an integer") {
        exponent @ -4..3 => format!("{value:.*}", (2 - exponent) as usize),
        3..6 => {
            let rounded: f64 = scientific.parse().expect("it was formatted just now");
            format!("{rounded:.0}")
        }
        _ => scientific,
    }
}

/// A size in words.
pub fn bytes(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        ..1e3 => format!("{bytes:.0} B"),
        ..1e6 => format!("{:.1} kB", bytes / 1e3),
        ..1e9 => format!("{:.1} MB", bytes / 1e6),
        _ => format!("{:.1} GB", bytes / 1e9),
    }
}

/// `1 run`, `2 runs`.
pub fn plural(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// A duration in words.
pub fn duration(seconds: f64) -> String {
    let s = seconds.round() as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        3600..172_800 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        _ => format!("{} days {} h", s / 86_400, s % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        let cases = [
            (0.0, "0"),
            (1.0, "1.00"),
            (-0.4, "-0.400"),
            (0.021_34, "0.0213"),
            (9.996, "10.0"),
            (123.4, "123"),
            (999.6, "1000"),
            (12_345.0, "12300"),
            (0.000_012_34, "1.23e-5"),
            (1.5e7, "1.50e7"),
            (f64::NAN, "NaN"),
        ];
        for (value, text) in cases {
            assert_eq!(three(value), text);
        }
    }

    #[test]
    fn sizes_and_durations_have_units() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(38_240_000), "38.2 MB");
        assert_eq!(duration(59.6), "1 min 0 s");
        assert_eq!(duration(7260.0), "2 h 1 min");
        assert_eq!(duration(200_000.0), "2 days 7 h");
    }

    /// However long numbers and times are, a line keeps its width, and its first number.
    #[test]
    fn a_line_fits_100_columns() {
        print::set_color(print::Color::Never);
        let values = [-0.000_012_345, -12_345.6, -1.234e-9, 0.5];
        for value in values {
            let line = Line {
                name: "epoch 1234567/1234567".into(),
                numbers: SHOWN.map(|(_, _, label)| (label, value)).into(),
                seconds: 86_399.0,
                left: 172_799.0,
            };
            let (parts, times) = line.parts();
            assert!(parts[0].starts_with("score "), "{parts:?}");
            assert_eq!(times, "23 h 59 min, 47 h 59 min left");
            assert!(line.styled().chars().count() <= WIDTH, "{}", line.styled());
        }
    }
}
