//! `rem bench --compare`: agents side by side in every phase, as in the paper's Figure 1 (top).

use std::path::Path;

use anyhow::Result;
use rem::config::Config;
use serde::Serialize;

use super::page::Page;
use super::sizes::{Scale, Setup, System};
use super::workload::Phase;
use super::{Measured, compare_figure, round};
use crate::table::Table;

/// The paper's headline on an Nvidia RTX 4090: imagination of IRIS over that of REM.
const PAPER_SPEEDUP: f64 = 15.4;

/// A measured phase of a system.
pub struct Row {
    pub phase: Phase,
    pub system: System,
    measured: Measured,
}

impl Row {
    /// Steps of the phase in an epoch of training.
    fn steps_per_epoch(&self) -> usize {
        let optimizer = self.phase.optimizer(&self.measured.config);
        optimizer.steps_per_epoch
    }

    /// Seconds of the phase in an epoch of training.
    pub fn epoch(&self) -> f64 {
        self.measured.seconds * self.steps_per_epoch() as f64
    }
}

/// All rows of a comparison. Ratios are those to its first system.
pub struct Report {
    /// Device, threads and precision.
    machine: String,
    scale: Scale,
    peak: Option<f64>,
    rows: Vec<Row>,
}

/// A row as JSON.
#[derive(Serialize)]
struct JsonLine<'a> {
    agent: &'a str,
    tokens_per_frame: usize,
    #[serde(flatten)]
    line: super::Line,
    steps_per_epoch: usize,
    seconds_per_epoch: f64,
    /// Time per frame relative to the first agent.
    ratio_per_frame: Option<f64>,
    /// Time per epoch relative to the first agent.
    ratio_per_epoch: Option<f64>,
}

impl Report {
    pub fn new(machine: String, scale: Scale, peak: Option<f64>) -> Self {
        Self {
            machine,
            scale,
            peak,
            rows: Vec::new(),
        }
    }

    /// The times of a tokenizer phase, if it was measured for a system with the same tokenizer.
    pub fn same_tokenizer(
        &self,
        phase: Phase,
        system: System,
        setup: &Setup,
    ) -> Result<Option<Measured>> {
        if !matches!(phase, Phase::Tokenizer | Phase::TokenizerPerceptual) {
            return Ok(None);
        }
        let config = setup.config(system)?;
        let same =
            |row: &&Row| row.phase == phase && row.measured.config.tokenizer == config.tokenizer;
        let known = self.rows.iter().find(same);
        Ok(known.map(|row| Measured {
            config,
            ..row.measured.clone()
        }))
    }

    pub fn push(&mut self, phase: Phase, system: System, measured: Measured) {
        self.rows.push(Row {
            phase,
            system,
            measured,
        });
    }

    pub fn systems(&self) -> Vec<System> {
        let mut systems: Vec<System> = Vec::new();
        for row in &self.rows {
            if !systems.contains(&row.system) {
                systems.push(row.system);
            }
        }
        systems
    }

    pub fn find(&self, phase: Phase, system: System) -> Option<&Row> {
        let mut rows = self.rows.iter();
        rows.find(|row| (row.phase, row.system) == (phase, system))
    }

    /// A time of a row relative to that of the first system.
    pub fn ratio(&self, row: &Row, time: impl Fn(&Row) -> f64) -> Option<f64> {
        let first = self.find(row.phase, self.rows[0].system)?;
        Some(time(row) / time(first))
    }

    /// Seconds of an epoch in which all components are trained, with the perceptual loss and without collection and
    /// evaluation; and the hours of a run. `None` if a phase is missing.
    fn training(&self, system: System) -> Option<(f64, f64)> {
        let phases = [
            Phase::TokenizerPerceptual,
            Phase::WorldModel,
            Phase::ActorCritic,
        ];
        let (mut epoch, mut run) = (0.0, 0.0);
        for phase in phases {
            let row = self.find(phase, system)?;
            epoch += row.epoch();
            run += row.epoch() * f64::from(epochs(&row.measured.config, phase));
        }
        Some((epoch, run / 3600.0))
    }

    pub fn json(&self) -> Result<String> {
        let mut out = String::new();
        for row in &self.rows {
            let ratio = |time: fn(&Row) -> f64| self.ratio(row, time).map(|r| round(r, 3));
            let line = JsonLine {
                agent: row.system.name(),
                tokens_per_frame: row.measured.config.tokens_per_obs(),
                line: row.measured.line(row.phase.name(), self.peak),
                steps_per_epoch: row.steps_per_epoch(),
                seconds_per_epoch: round(row.epoch(), 3),
                ratio_per_frame: ratio(per_frame),
                ratio_per_epoch: ratio(Row::epoch),
            };
            out += &format!("{}\n", serde_json::to_string(&line)?);
        }
        Ok(out)
    }

    fn table(&self) -> Table {
        let header = [
            "phase",
            "agent",
            "K",
            "batch",
            "frames per step",
            "ms per step",
            "ms per frame",
            "relative",
            "GFLOP/s",
            "steps per epoch",
            "s per epoch",
            "relative",
        ];
        let mut table = Table::new(&header, 2);
        let text = |ratio: Option<f64>| ratio.map_or("-".into(), |r| format!("{r:.2}"));
        for phase in Phase::ALL {
            for row in self.rows.iter().filter(|row| row.phase == phase) {
                let m = &row.measured;
                table.push(vec![
                    title(phase).into(),
                    row.system.title().into(),
                    m.config.tokens_per_obs().to_string(),
                    m.batch.to_string(),
                    m.frames.to_string(),
                    format!("{:.1}", m.seconds * 1e3),
                    format!("{:.3}", m.ms_per_frame()),
                    text(self.ratio(row, per_frame)),
                    format!("{:.1}", m.gflop / m.seconds),
                    row.steps_per_epoch().to_string(),
                    format!("{:.1}", row.epoch()),
                    text(self.ratio(row, Row::epoch)),
                ]);
            }
        }
        table
    }

    /// Times of whole epochs and runs, where all phases were measured.
    fn totals(&self) -> Option<Table> {
        let header = ["agent", "s per epoch", "relative", "hours per run"];
        let mut table = Table::new(&header, 1);
        let first = self.training(self.rows[0].system)?;
        for system in self.systems() {
            let (epoch, hours) = self.training(system)?;
            table.push(vec![
                system.title().into(),
                format!("{epoch:.1}"),
                format!("{:.2}", epoch / first.0),
                format!("{hours:.1}"),
            ]);
        }
        Some(table)
    }

    /// The headline of the paper, measured here: imagination of each system relative to REM with POP.
    fn headline(&self) -> String {
        let pop = |phase| self.find(phase, System::Pop);
        let mut lines = String::new();
        for system in self.systems() {
            let ratio = |phase| {
                let (own, pop) = (self.find(phase, system)?, pop(phase)?);
                Some((own.epoch() / pop.epoch(), per_frame(own) / per_frame(pop)))
            };
            if system == System::Pop {
                continue;
            }
            let mut say = |what: &str, phase, paper: &str| {
                if let Some((epoch, frame)) = ratio(phase) {
                    lines += &format!(
                        "{what}, {} over REM: {epoch:.2}x per epoch{paper}, {frame:.2}x per frame.\n",
                        system.title()
                    );
                }
            };
            say("World-model training", Phase::WorldModel, "");
            let paper = match system {
                System::Iris => format!(" (paper, RTX 4090: {PAPER_SPEEDUP}x)"),
                _ => String::new(),
            };
            say(
                "Imagination (actor-critic training)",
                Phase::ActorCritic,
                &paper,
            );
            say("Its rollouts alone", Phase::Imagination, "");
        }
        lines
    }

    fn conditions(&self) -> String {
        let scale = match self.scale {
            Scale::Paper => "",
            Scale::Tiny => ", tiny models",
            Scale::Laptop => ", models of the preset atari-laptop",
        };
        format!("{}{scale}. Fastest step after a warm-up.\n", self.machine)
    }

    pub fn terminal(&self) -> String {
        let totals = self.totals().map_or(String::new(), |table| {
            format!(
                "\nTraining without collection and evaluation:\n{}",
                table.terminal()
            )
        });
        let (table, headline) = (self.table().terminal(), self.headline());
        let gap = if headline.is_empty() { "" } else { "\n" };
        format!("{table}{totals}{gap}{headline}\n{}", self.conditions())
    }

    /// Writes the page and its figure.
    pub fn page(&self, path: &Path) -> Result<()> {
        let totals = self.totals().map_or(String::new(), |table| {
            format!(
                "\nA whole epoch, and a run, without collection and evaluation:\n\n{}",
                table.markdown()
            )
        });
        let list: String = (self.headline().lines())
            .map(|line| format!("- {line}\n"))
            .collect();
        let gap = if list.is_empty() { "" } else { "\n" };
        let text = format!(
            "{}{totals}{gap}{list}\n{}",
            self.table().markdown(),
            self.conditions()
        );
        let page = Page {
            title: "Time of training: REM, No POP and IRIS",
            text: &text,
            figure: &compare_figure::draw(self),
            caption: "Seconds per epoch of world-model training and imagination",
        };
        page.write(path)
    }
}

/// Milliseconds per frame.
fn per_frame(row: &Row) -> f64 {
    row.measured.ms_per_frame()
}

/// Epochs of a run that have this phase.
fn epochs(config: &Config, phase: Phase) -> u32 {
    let optimizer = phase.optimizer(config);
    let all = 1..=config.train.epochs;
    all.filter(|epoch| optimizer.learns_in(*epoch)).count() as u32
}

fn title(phase: Phase) -> &'static str {
    match phase {
        Phase::Tokenizer => "tokenizer",
        Phase::TokenizerPerceptual => "tokenizer with LPIPS",
        Phase::WorldModel => "world-model training",
        Phase::Imagination => "imagination: rollouts alone",
        Phase::ActorCritic => "imagination: actor-critic training",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::sizes::Batches;
    use rem::config::Precision;

    /// A report with made-up seconds per step.
    fn report(times: &[(Phase, System, f64)]) -> Report {
        let setup = Setup {
            scale: Scale::Paper,
            precision: Precision::Mixed,
            batches: Batches::Paper,
            device: "flex".into(),
        };
        let mut report = Report::new("a machine".into(), Scale::Paper, Some(100.0));
        for &(phase, system, seconds) in times {
            let measured = Measured {
                config: setup.config(system).unwrap(),
                batch: 2,
                frames: 4,
                seconds,
                gflop: 10.0 * seconds,
            };
            report.push(phase, system, measured);
        }
        report
    }

    #[test]
    fn ratios_per_epoch_count_the_steps_of_each_agent() {
        // REM has 100 controller updates per epoch, IRIS 200.
        let report = report(&[
            (Phase::ActorCritic, System::Pop, 1.0),
            (Phase::ActorCritic, System::Iris, 3.0),
        ]);
        let text = report.terminal();
        assert!(
            text.contains("6.00x per epoch (paper, RTX 4090: 15.4x), 3.00x per frame"),
            "{text}"
        );
        assert!(!text.contains("hours per run"), "{text}");
        let lines: Vec<serde_json::Value> = (report.json().unwrap().lines())
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines[0]["ratio_per_epoch"], 1.0);
        assert_eq!(lines[1]["ratio_per_epoch"], 6.0);
        assert_eq!(lines[1]["seconds_per_epoch"], 600.0);
        assert_eq!(lines[1]["agent"], "iris");
        assert_eq!(lines[1]["share_of_peak"], 0.1);
    }

    #[test]
    fn a_run_counts_the_epochs_of_each_component() {
        let all = [
            Phase::TokenizerPerceptual,
            Phase::WorldModel,
            Phase::ActorCritic,
        ];
        let times: Vec<_> = all.map(|phase| (phase, System::Pop, 0.01)).into();
        let (epoch, hours) = report(&times).training(System::Pop).unwrap();
        assert!((epoch - 5.0).abs() < 1e-9);
        // 200, 200 and 100 steps of 0.01 s in 595, 575 and 550 of 600 epochs.
        let expected = (595.0 * 2.0 + 575.0 * 2.0 + 550.0) / 3600.0;
        assert!((hours - expected).abs() < 1e-9);
    }

    #[test]
    fn agents_with_the_same_tokenizer_share_its_time() {
        let report = report(&[(Phase::Tokenizer, System::Pop, 1.0)]);
        let setup = Setup {
            scale: Scale::Paper,
            precision: Precision::Mixed,
            batches: Batches::Paper,
            device: "flex".into(),
        };
        let known = |phase, system| report.same_tokenizer(phase, system, &setup).unwrap();
        assert!(known(Phase::Tokenizer, System::NoPop).is_some());
        assert!(known(Phase::Tokenizer, System::Iris).is_none());
        assert!(known(Phase::WorldModel, System::NoPop).is_none());
    }
}
