//! A report as JSON, for programs.

use rem_stats::{Estimate, Metric};
use serde_json::{Value, json};

use crate::main_table::{Label, rows};
use crate::report::Report;

/// The numbers of a report: the main table, aggregates with intervals, probabilities of improvement, and notes.
pub fn json(report: &Report) -> Value {
    let name = |system: usize| report.systems[system].name.as_str();
    let table = rows(report);
    let games = table.iter().filter_map(|row| match row.label {
        Label::Game(game) => Some(json!({
            "game": game,
            "random": row.random,
            "human": row.human,
            "means": row.values,
        })),
        _ => None,
    });
    let systems = report.summaries.iter().map(|summary| {
        let metrics = Metric::ALL.iter().zip(&summary.metrics);
        let metrics = metrics.map(|(metric, found)| {
            let label = Label::Metric(*metric).name();
            (
                label.to_owned(),
                found.as_ref().map_or(Value::Null, estimate),
            )
        });
        json!({
            "system": name(summary.system),
            "superhuman": summary.superhuman,
            "metrics": metrics.collect::<serde_json::Map<_, _>>(),
        })
    });
    let improvements = report.improvements.iter().map(|improvement| {
        json!({
            "x": name(improvement.x),
            "y": name(improvement.y),
            "probability": estimate(&improvement.estimate),
        })
    });
    let notes = report
        .notes
        .iter()
        .map(|note| json!({ "severity": note.severity.name(), "text": note.text }));
    json!({
        "systems": systems.collect::<Vec<_>>(),
        "games": games.collect::<Vec<_>>(),
        "improvements": improvements.collect::<Vec<_>>(),
        "notes": notes.collect::<Vec<_>>(),
    })
}

fn estimate(estimate: &Estimate) -> Value {
    let interval = estimate
        .interval
        .map(|interval| [interval.low, interval.high]);
    json!({ "value": estimate.value, "interval": interval })
}
