//! A diagnosis as text: a table and a verdict for each component.

use rem::diagnose::{Detection, Estimate, StepAccuracy, TokenizerResult, WorldModelResult};

use super::{Diagnosis, Part, Scores};
use crate::table::Table;

pub fn text(diagnosis: &Diagnosis) -> String {
    let mut parts = vec![
        part(
            "tokenizer",
            &tokenizer(&diagnosis.tokenizer.result),
            &diagnosis.tokenizer.verdict,
        ),
        part(
            "world model",
            &world_model(&diagnosis.world_model.result),
            &diagnosis.world_model.verdict,
        ),
    ];
    if let Some(Part { result, verdict }) = &diagnosis.controller {
        parts.push(part("controller", &controller(result), verdict));
    }
    parts.join("\n")
}

fn part(name: &str, tables: &[Table], verdict: &str) -> String {
    let tables: Vec<String> = tables.iter().map(Table::terminal).collect();
    format!("{name}\n\n{}\n{verdict}\n", tables.join("\n"))
}

fn percent(share: Option<f64>) -> String {
    share.map_or("–".into(), |share| format!("{:.1}%", 100.0 * share))
}

fn tokenizer(t: &TokenizerResult) -> Vec<Table> {
    let mut table = Table::new(&["on held-out frames", ""], 1);
    let mut row = |name: &str, value: String| table.push(vec![name.into(), value]);
    row("frames", t.frames.to_string());
    row("different frames", t.distinct_frames.to_string());
    row(
        "different frames that share all tokens with another",
        t.ambiguous_frames.to_string(),
    );
    row("frames reconstructed exactly", percent(Some(t.exact)));
    row("explained variance", format!("{:.4}", t.explained_variance));
    row(
        "tokens that change from frame to frame",
        percent(t.changed_tokens),
    );
    row(
        "changed tokens without a changed pixel in their cell",
        percent(t.changed_without_pixels),
    );
    row(
        "cells with changed pixels whose token stays",
        percent(t.unchanged_with_pixels),
    );
    row(
        "codes in use",
        format!("{} of {}", t.active_codes, t.vocabulary),
    );
    row("perplexity", format!("{:.1}", t.perplexity));
    vec![table]
}

fn world_model(w: &WorldModelResult) -> Vec<Table> {
    let mut losses = Table::new(
        &["loss on held-out play", "observations", "rewards", "ends"],
        1,
    );
    let l = &w.losses;
    let loss = |loss: Option<f64>| loss.map_or("–".into(), |loss| format!("{loss:.4}"));
    losses.push(vec![
        "nats".into(),
        loss(l.observations),
        loss(l.rewards),
        loss(l.ends),
    ]);
    let header = [
        "steps ahead",
        "tokens",
        "changed tokens",
        "rewards: precision",
        "recall",
        "ends: precision",
        "recall",
    ];
    let mut ahead = Table::new(&header, 0);
    for (i, step) in w.ahead.iter().enumerate() {
        ahead.push(step_row(i + 1, step));
    }
    let r = &w.returns;
    let title = format!("over {} steps, {} states", r.steps, r.states);
    let mut returns = Table::new(&[&title, "dreams", "game"], 1);
    let number = |x: f64| format!("{x:.3}");
    returns.push(vec![
        "mean return".into(),
        number(r.dreamed),
        number(r.real),
    ]);
    returns.push(vec![
        "terminated".into(),
        percent(Some(r.dreamed_terminations)),
        percent(Some(r.real_terminations)),
    ]);
    let mut agreement = Table::new(&["dreamed minus real return", "correlation over states"], 0);
    agreement.push(vec![
        estimate(r.difference),
        r.correlation.map_or("–".into(), |c| format!("{c:.2}")),
    ]);
    vec![losses, ahead, returns, agreement]
}

fn step_row(ahead: usize, step: &StepAccuracy) -> Vec<String> {
    let both = |d: Detection| [d.precision(), d.recall()].map(percent);
    let [
        [reward_precision, reward_recall],
        [end_precision, end_recall],
    ] = [step.rewards, step.terminations].map(both);
    vec![
        ahead.to_string(),
        percent(step.tokens),
        percent(step.changed_tokens),
        reward_precision,
        reward_recall,
        end_precision,
        end_recall,
    ]
}

fn controller(scores: &Scores) -> Vec<Table> {
    let c = &scores.result;
    let title = format!("score over {} episodes", c.episodes);
    let mut table = Table::new(&[&title, "updates", "mean return"], 1);
    let mut row = |name: &str, updates: String, score: String| {
        table.push(vec![name.into(), updates, score]);
    };
    row(
        "trained in dreams (this run)",
        c.updates_in_dreams.to_string(),
        estimate(c.with_dreams),
    );
    row(
        "trained in the game",
        c.updates.to_string(),
        estimate(c.in_the_game),
    );
    row(
        "random player",
        String::new(),
        format!("{:.3}", scores.random_player),
    );
    if let Some(scripted) = scores.scripted_player {
        row("scripted player", String::new(), format!("{scripted:.3}"));
    }
    vec![table]
}

/// A mean with half the width of its 95% interval.
fn estimate(estimate: Estimate) -> String {
    format!("{:.3} ± {:.3}", estimate.mean, estimate.margin)
}
