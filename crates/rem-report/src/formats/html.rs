//! The report as one page that needs nothing else.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::figures::{self, Canvas, Figure, Size};
use crate::plot::theme::{Theme, variables};
use crate::remarks::{Remark, Weight, counted};
use crate::report::Report;
use crate::table::{Cell, Row, Table};
use crate::tables;

/// No script, nothing loaded: the page's own policy forbids both.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

pub fn page(report: &Report) -> String {
    let title = title(report);
    let parts = parts(report);
    let style = format!(
        ":root{{color-scheme:light dark;{}}}\n@media (prefers-color-scheme:dark){{:root{{{}}}}}\n@media print{{:root{{{}}}}}\n{}",
        variables(Theme::Light),
        variables(Theme::Dark),
        variables(Theme::Light),
        include_str!("page.css")
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                header {
                    h1 { (title) }
                    p { (lead(report)) }
                }
                nav aria-label="Contents" {
                    ul {
                        @for part in &parts {
                            li { a href={ "#" (part.id) } { (part.title) } }
                        }
                    }
                }
                main id="content" tabindex="-1" {
                    @for part in &parts {
                        section id=(part.id) aria-labelledby={ (part.id) "-heading" } {
                            h2 id={ (part.id) "-heading" } { (part.title) }
                            (part.body)
                        }
                    }
                }
                footer {
                    p { "Written by " code { "rem report" } ", version " (env!("CARGO_PKG_VERSION")) ". The same figures and tables lie beside this page as SVG, PNG, Markdown, LaTeX and CSV." }
                }
            }
        }
    };
    page.into_string()
}

/// A section of the page.
struct Part {
    id: String,
    title: String,
    body: Markup,
}

/// What belongs together is together: a figure before the table with its numbers.
fn parts(report: &Report) -> Vec<Part> {
    let tables = tables::all(report);
    let figures = figures::all(report);
    let figure = |name: &str| figures.iter().find(|figure| figure.name == name);
    let table = |name: &str| tables.iter().find(|table| table.name == name);
    let mut parts = Vec::new();
    if !report.remarks.is_empty() {
        parts.push(Part {
            id: "remarks".into(),
            title: "Before you read the numbers".into(),
            body: remarks(&report.remarks),
        });
    }
    let order = [
        "main",
        "aggregates",
        "profiles",
        "improvement",
        "further-games",
        "curves",
        "other-games",
        "paper",
        "runs",
        "protocols",
        "systems",
    ];
    for name in order {
        let (figure, table) = (figure(name), table(name));
        let titles = figure
            .map(|f| &f.title)
            .into_iter()
            .chain(table.map(|t| &t.title));
        if let Some(title) = titles.last() {
            parts.push(Part {
                id: name.into(),
                title: title.clone(),
                body: html! {
                    @if let Some(figure) = figure { (draw(report, figure)) }
                    @if let Some(table) = table { (table_in_box(table)) }
                },
            });
        }
    }
    parts.push(Part {
        id: "method".into(),
        title: "How the numbers are made".into(),
        body: method(report),
    });
    parts
}

fn title(report: &Report) -> String {
    let yours: Vec<_> = report
        .systems
        .iter()
        .filter(|system| system.is_yours())
        .map(|system| system.name.as_str())
        .collect();
    match yours[..] {
        [] => "Published scores on Atari 100K".into(),
        _ => format!("Report on {}", yours.join(", ")),
    }
}

fn lead(report: &Report) -> String {
    let runs: usize = report
        .systems
        .iter()
        .map(|system| system.runs().len())
        .sum();
    let runs = if runs > 0 {
        format!(", {} of yours", counted(runs, "run"))
    } else {
        String::new()
    };
    let games = match report.games.len() {
        0 => String::new(),
        games => format!(
            ", compared on {} of the Atari 100K benchmark",
            counted(games, "game")
        ),
    };
    format!("{}{runs}{games}.", counted(report.systems.len(), "system"))
}

fn remarks(remarks: &[Remark]) -> Markup {
    html! {
        ul.remarks {
            @for remark in remarks {
                @match remark.weight {
                    Weight::Warning => li.warning { strong { "Warning: " } (remark.text) "." },
                    Weight::Note => li { strong { "Note: " } (remark.text) "." },
                }
            }
        }
    }
}

/// Twice, for wide and for narrow screens, of which one is shown.
fn draw(report: &Report, figure: &Figure) -> Markup {
    let svg = |size, suffix: &str| {
        let canvas = Canvas {
            theme: Theme::Page,
            size,
        };
        PreEscaped(figure.svg(report, canvas, &format!("{}-{suffix}", figure.name)))
    };
    html! {
        figure {
            div.wide { (svg(Size::Wide, "wide")) }
            div.narrow { (svg(Size::Narrow, "narrow")) }
            figcaption { (figure.caption) }
        }
    }
}

/// A table that is wider than the screen scrolls by itself, also by keyboard.
fn table_in_box(table: &Table) -> Markup {
    html! {
        p.caption id={ "table-" (table.name) } { (table.caption) }
        div.scroll role="region" tabindex="0" aria-labelledby={ "table-" (table.name) } {
            table aria-labelledby={ "table-" (table.name) } {
                thead {
                    @if !table.groups.is_empty() {
                        tr {
                            @for (title, columns) in &table.groups {
                                @if title.is_empty() { td colspan=(columns) {} }
                                @else { th.group scope="colgroup" colspan=(columns) { (title) } }
                            }
                        }
                    }
                    tr {
                        @for (column, title) in table.columns.iter().enumerate() {
                            th scope="col" class=[class(table, column)] { (title) }
                        }
                    }
                }
                tbody { @for row in &table.rows { (table_row(table, row)) } }
            }
        }
    }
}

fn table_row(table: &Table, row: &Row) -> Markup {
    html! {
        tr class=[row.ruled.then_some("ruled")] {
            @for (column, cell) in row.cells.iter().enumerate() {
                @if column == 0 { th scope="row" { (marked(cell)) } }
                @else { td class=[class(table, column)] { (marked(cell)) } }
            }
        }
    }
}

fn class(table: &Table, column: usize) -> Option<&'static str> {
    let is_long = |row: &Row| row.cells[column].text.chars().count() > 40;
    match column {
        0 => None,
        _ if table.is_numeric(column) => Some("number"),
        _ if table.rows.iter().any(is_long) => Some("prose"),
        _ => None,
    }
}

fn marked(cell: &Cell) -> Markup {
    let text = html! { (cell.text) };
    let text = if cell.marks.bold {
        html! { strong { (text) } }
    } else {
        text
    };
    if cell.marks.underline {
        html! { u { (text) } }
    } else {
        text
    }
}

fn method(report: &Report) -> Markup {
    html! {
        dl {
            dt { "Human-normalised score" }
            dd { "(score − random) / (human − random): 0 is a player that acts at random, 1 a human." }
            dt { "Mean, median" }
            dd { "Of the games' means." }
            dt { "Interquartile mean (IQM)" }
            dd { "The mean of all runs of all games without the lowest and the highest quarter." }
            dt { "Optimality gap" }
            dd { "How far below human runs are on average, those above human counting as human. Lower is better." }
            dt { "Superhuman" }
            dd { "Games with a mean above the human score." }
            dt { "Intervals" }
            dd {
                (tables::percent(report)) " percentile intervals of the stratified bootstrap: " (report.bootstrap.replicates)
                " replicates, seed " (report.bootstrap.seed) ", runs drawn with replacement within each game. They tell how far other runs on the same games might come out otherwise, not other games."
            }
            dt { "Unequal numbers of runs" }
            dd { "Every game weighs the same, and within a game every run." }
            dt { "Probability of improvement" }
            dd { "The Mann-Whitney statistic of each game, averaged over games." }
        }
        p {
            "The definitions follow " cite { "Deep Reinforcement Learning at the Edge of the Statistical Precipice" } " (Agarwal et al., 2021)."
        }
    }
}
