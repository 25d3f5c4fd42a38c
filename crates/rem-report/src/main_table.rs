//! The paper's main table (Table 1): a row per game, then metrics, with its rules for bold face and underscores.

use rem_stats::Metric;
use rem_stats::baselines::Family;

use crate::report::{Report, Summary};
use crate::table::{Marks, fixed};

/// A row of the table as numbers.
#[derive(Clone, Debug)]
pub struct MainRow {
    /// The game or metric.
    pub label: Label,
    /// The value of a random policy.
    pub random: Option<f64>,
    /// The value of a human.
    pub human: Option<f64>,
    /// One value per summary of the report.
    pub values: Vec<Option<f64>>,
    /// The marks of the values.
    pub marks: Vec<Marks>,
    /// Number of decimals in the paper.
    pub decimals: usize,
}

/// The label of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Label {
    Game(&'static str),
    Superhuman,
    Metric(Metric),
}

impl Label {
    /// The name in the paper.
    pub fn name(self) -> &'static str {
        match self {
            Self::Game(title) => title,
            Self::Superhuman => "Superhuman",
            Self::Metric(Metric::Mean) => "Mean",
            Self::Metric(Metric::Median) => "Median",
            Self::Metric(Metric::Iqm) => "IQM",
            Self::Metric(Metric::OptimalityGap) => "Optimality Gap",
        }
    }

    /// The name with an arrow in the better direction.
    pub fn title(self) -> String {
        match self {
            Self::Game(title) => title.into(),
            Self::Superhuman => "#Superhuman (↑)".into(),
            Self::Metric(Metric::OptimalityGap) => format!("{} (↓)", self.name()),
            Self::Metric(_) => format!("{} (↑)", self.name()),
        }
    }

    fn lower_is_better(self) -> bool {
        self == Self::Metric(Metric::OptimalityGap)
    }
}

/// The rows of the table. Empty if the systems share no game.
pub fn rows(report: &Report) -> Vec<MainRow> {
    if report.summaries.is_empty() {
        return Vec::new();
    }
    let games = report.games.iter().enumerate().map(|(index, game)| {
        let values = report
            .summaries
            .iter()
            .map(|summary| Some(summary.means[index]));
        row(
            report,
            Label::Game(game.title()),
            (Some(game.random()), Some(game.human())),
            values,
            1,
        )
    });
    let superhuman = report
        .summaries
        .iter()
        .map(|summary| Some(summary.superhuman as f64));
    let superhuman = row(report, Label::Superhuman, (Some(0.0), None), superhuman, 0);
    let metrics = Metric::ALL.into_iter().enumerate().map(|(index, metric)| {
        let value = |summary: &Summary| summary.metrics[index].map(|estimate| estimate.value);
        let (random, human) = match metric {
            Metric::OptimalityGap => (1.0, 0.0),
            Metric::Mean | Metric::Median | Metric::Iqm => (0.0, 1.0),
        };
        let players = (Some(random), Some(human));
        row(
            report,
            Label::Metric(metric),
            players,
            report.summaries.iter().map(value),
            3,
        )
    });
    games.chain([superhuman]).chain(metrics).collect()
}

fn row(
    report: &Report,
    label: Label,
    (random, human): (Option<f64>, Option<f64>),
    values: impl Iterator<Item = Option<f64>>,
    decimals: usize,
) -> MainRow {
    let values: Vec<_> = values.collect();
    let marks = marks(report, label, &values);
    MainRow {
        label,
        random,
        human,
        values,
        marks,
        decimals,
    }
}

/// Bold marks the best token-based system, underline the best of all, unless all are token-based. Ties with the best are
/// marked too.
fn marks(report: &Report, label: Label, values: &[Option<f64>]) -> Vec<Marks> {
    let sign = if label.lower_is_better() { -1.0 } else { 1.0 };
    let best = |among: &dyn Fn(usize) -> bool| {
        let values = values.iter().enumerate().filter(|(index, _)| among(*index));
        values
            .filter_map(|(_, value)| Some(sign * (*value)?))
            .max_by(f64::total_cmp)
    };
    let token_based =
        |index: usize| report.system(&report.summaries[index]).family == Family::TokenBased;
    let best_token_based = best(&token_based);
    let best_of_all = best(&|_| true).filter(|_| report.has_two_families());
    let as_good = |value: Option<f64>, best: Option<f64>| match (value, best) {
        (Some(value), Some(best)) => (sign * value - best).abs() <= 1e-9 * best.abs(),
        _ => false,
    };
    let mark = |(index, value): (usize, &Option<f64>)| Marks {
        bold: token_based(index) && as_good(*value, best_token_based),
        underline: as_good(*value, best_of_all),
    };
    values.iter().enumerate().map(mark).collect()
}

impl MainRow {
    /// `value` with the decimals of the row.
    pub fn formatted(&self, value: f64) -> String {
        fixed(value, self.decimals)
    }
}
