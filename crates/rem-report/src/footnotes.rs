//! Footnotes of tables: how the runs behind a score depart from the benchmark and the paper.

use rem_stats::Game;

use crate::departures;
use crate::report::Report;
use crate::run::{GameName, Run};
use crate::system::System;
use crate::table::{Footnote, Row};

/// The distinct lists of departures of all scored runs on games of the benchmark, numbered in the order of the systems.
pub struct Footnotes<'a> {
    /// The first run with each list, and the names of the systems that have such runs.
    lists: Vec<(&'a Run, Vec<&'a str>)>,
}

impl<'a> Footnotes<'a> {
    pub fn of(report: &'a Report) -> Self {
        let mut lists: Vec<(&Run, Vec<&str>)> = Vec::new();
        for system in &report.systems {
            for run in system.runs().iter().filter(|run| is_marked(run)) {
                match lists.iter_mut().find(|(other, _)| same(other, run)) {
                    Some((_, names)) if names.contains(&&system.name[..]) => {}
                    Some((_, names)) => names.push(&system.name),
                    None => lists.push((run, vec![&system.name])),
                }
            }
        }
        Self { lists }
    }

    /// The number of the footnote of a run; empty if it has no departures.
    pub fn of_run(&self, run: &Run) -> Vec<usize> {
        let number = self.lists.iter().position(|(other, _)| same(other, run));
        number.filter(|_| is_marked(run)).into_iter().collect()
    }

    /// The numbers of the footnotes of a system's runs on some games.
    pub fn of_games(&self, system: &System, games: &[&Game]) -> Vec<usize> {
        let is_on =
            |run: &&Run| matches!(run.game, GameName::Benchmark(game) if games.contains(&game));
        let runs = system.runs().iter().filter(is_on);
        let mut numbers: Vec<usize> = runs.flat_map(|run| self.of_run(run)).collect();
        numbers.sort();
        numbers.dedup();
        numbers
    }

    /// The footnotes whose marks are in these rows.
    pub fn below(&self, rows: &[Row]) -> Vec<Footnote> {
        let cells = || rows.iter().flat_map(|row| &row.cells);
        let used = |number: &usize| cells().any(|cell| cell.footnotes.contains(number));
        let numbers = (0..self.lists.len()).filter(used);
        let footnote = |number: usize| {
            let (run, systems) = &self.lists[number];
            let text = departures::summary(&run.departures);
            Footnote {
                number,
                text: format!("{}: {text}", systems.join(", ")),
            }
        };
        numbers.map(footnote).collect()
    }

    /// A run with each list of departures, in the order of the numbers, and the names of the systems.
    pub fn lists(&self) -> &[(&'a Run, Vec<&'a str>)] {
        &self.lists
    }
}

/// Whether a score of the run is in a table, with departures.
fn is_marked(run: &Run) -> bool {
    run.score.is_some() && !run.departures.is_empty()
}

fn same(a: &Run, b: &Run) -> bool {
    a.departures == b.departures
}
