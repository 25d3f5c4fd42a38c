//! The bars of the paper's Figure 1 (top): seconds per epoch of world-model training and of imagination, by agent.

use rem_report::plot::axis::Axis;
use rem_report::plot::svg::{Anchor, Stroke, Svg};
use rem_report::plot::theme::{Color, Theme};

use super::compare::{Report, Row};
use super::workload::Phase;

const WIDTH: f64 = 640.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = WIDTH - 120.0;
const TITLE: f64 = 24.0;
const BAR: f64 = 20.0;
const GAP: f64 = 8.0;
/// Tick labels below the last bar, and the space before the next panel.
const FOOT: f64 = 34.0;
const TEXT: f64 = 12.0;

/// One panel per phase, one bar per agent. The solid part of a bar of actor-critic training are the rollouts.
pub fn draw(report: &Report) -> String {
    let mut svg = Svg::new(WIDTH, Theme::Light);
    let mut top = 8.0;
    let measured = |phase: &Phase| {
        report
            .systems()
            .iter()
            .any(|s| report.find(*phase, *s).is_some())
    };
    let mut shown: Vec<Phase> = [Phase::WorldModel, Phase::ActorCritic]
        .into_iter()
        .filter(measured)
        .collect();
    if shown.is_empty() {
        shown = Phase::ALL.into_iter().filter(measured).collect();
    }
    for phase in shown {
        top = draw_panel(&mut svg, report, phase, top);
    }
    svg.text(
        ((LEFT + RIGHT) / 2.0, top),
        "seconds per epoch",
        TEXT,
        Anchor::Middle,
        Color::Muted,
    );
    svg.finish(
        top + 10.0,
        "training-time",
        "Time of training",
        "Seconds per epoch of world-model training and of imagination (actor-critic training) by agent",
    )
}

/// Draws a panel and returns its lower end.
fn draw_panel(svg: &mut Svg, report: &Report, phase: Phase, top: f64) -> f64 {
    let systems = report.systems();
    let rows: Vec<Option<&Row>> = systems.iter().map(|s| report.find(phase, *s)).collect();
    let times = rows.iter().flatten().map(|row| row.epoch());
    let axis = Axis::around(times.chain([0.0]), 5, (LEFT, RIGHT));
    let title = match phase {
        Phase::Tokenizer => "Tokenizer training",
        Phase::TokenizerPerceptual => "Tokenizer training with LPIPS",
        Phase::WorldModel => "World-model training",
        Phase::Imagination => "Imagination (rollouts)",
        Phase::ActorCritic => "Imagination (actor-critic training; solid: rollouts)",
    };
    svg.text(
        (LEFT, top + 14.0),
        title,
        TEXT + 1.0,
        Anchor::Start,
        Color::Text,
    );
    let first = top + TITLE;
    let bottom = first + rows.len() as f64 * (BAR + GAP);
    for (tick, label) in axis.labels() {
        let x = axis.pixel(tick);
        svg.line((x, first), (x, bottom), Stroke::new(Color::Grid, 1.0));
        svg.text(
            (x, bottom + 14.0),
            &label,
            TEXT,
            Anchor::Middle,
            Color::Muted,
        );
    }
    for (i, (system, row)) in systems.iter().zip(rows).enumerate() {
        let y = first + i as f64 * (BAR + GAP) + GAP / 2.0;
        let baseline = y + BAR / 2.0 + 4.0;
        svg.text(
            (LEFT - 8.0, baseline),
            system.title(),
            TEXT,
            Anchor::End,
            Color::Text,
        );
        let Some(row) = row else { continue };
        let rollouts = match phase {
            Phase::ActorCritic => report.find(Phase::Imagination, *system),
            _ => None,
        };
        let end = axis.pixel(row.epoch());
        let solid = rollouts.map_or(end, |r| axis.pixel(r.epoch().min(row.epoch())));
        let mut bar = |to: f64, opacity| {
            svg.rect((LEFT, y), (to - LEFT, BAR), Color::Series(i), opacity);
        };
        if solid < end {
            bar(end, 0.45);
        }
        bar(solid, 1.0);
        let ratio = report.ratio(row, Row::epoch);
        let ratio = ratio.map_or(String::new(), |ratio| format!(" · {ratio:.2}x"));
        let label = format!("{} s{ratio}", short(row.epoch()));
        svg.text(
            (end + 6.0, baseline),
            &label,
            TEXT,
            Anchor::Start,
            Color::Text,
        );
    }
    bottom + FOOT
}

/// Three significant digits.
fn short(seconds: f64) -> String {
    let decimals = (2.0 - seconds.max(1e-9).log10().floor()).clamp(0.0, 4.0);
    format!("{seconds:.*}", decimals as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_three_digits() {
        assert_eq!(
            [short(1234.5), short(12.34), short(0.1234)],
            ["1234", "12.3", "0.123"]
        );
    }
}
