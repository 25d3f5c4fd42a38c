//! The report as a self-contained web page.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::figures::{self, Canvas, Figure, Size};
use crate::notes::counted;
use crate::plot::svg::TextMode;
use crate::plot::theme::{Theme, variables};
use crate::report::{Note, Report, Severity};
use crate::table::{Cell, Row, Table};
use crate::tables;

/// The content security policy: no scripts, no external resources.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The report as a self-contained HTML page.
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
                a.skip href="#content" { "Skip to content" }
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
                    p { "Written by " code { "rem report" } ", version " (env!("CARGO_PKG_VERSION")) ". The directories next to this page contain its figures (SVG, PNG) and tables (Markdown, LaTeX, CSV)." }
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

/// The sections in order. A figure and the table of its numbers share a section.
fn parts(report: &Report) -> Vec<Part> {
    let tables = tables::all(report);
    let figures = figures::all(report);
    let figure = |name: &str| figures.iter().find(|figure| figure.name == name);
    let table = |name: &str| tables.iter().find(|table| table.name == name);
    let mut parts = Vec::new();
    if !report.notes.is_empty() {
        parts.push(Part {
            id: "notes".into(),
            title: "Notes".into(),
            body: notes(&report.notes),
        });
    }
    let order = [
        "main",
        "aggregates",
        "profiles",
        "improvement",
        "further-games",
        "curves",
        "losses",
        "other-games",
        "paper",
        "runs",
        "departures",
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
        title: "Method".into(),
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

fn notes(notes: &[Note]) -> Markup {
    html! {
        ul.notes {
            @for note in notes {
                @match note.severity {
                    Severity::Warning => li.warning { strong { "Warning: " } (note.text) "." },
                    Severity::Note => li { strong { "Note: " } (note.text) "." },
                }
            }
        }
    }
}

/// A figure in two versions for wide and narrow screens. CSS shows one of them.
fn draw(report: &Report, figure: &Figure) -> Markup {
    let svg = |size, suffix: &str| {
        let canvas = Canvas {
            theme: Theme::Page,
            size,
            text_mode: TextMode::Text,
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

/// A table in a box that scrolls by pointer and keyboard if it is wider than the screen.
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
        @for footnote in &table.footnotes {
            p.footnote { (footnote.mark()) " " (footnote.text) "." }
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
    let text = if cell.marks.underline {
        html! { u { (text) } }
    } else {
        text
    };
    html! { (text) (cell.footnote_marks()) }
}

fn method(report: &Report) -> Markup {
    html! {
        dl {
            dt { "Human-normalized score" }
            dd { "(score − random) / (human − random): 0 is a random policy, 1 a human." }
            dt { "Mean, median" }
            dd { "The mean and the median over games of the mean over runs." }
            dt { "Interquartile mean (IQM)" }
            dd { "The mean of all runs of all games without the lowest and highest quarter." }
            dt { "Optimality gap" }
            dd { "The mean amount by which runs fall short of the human score. Runs above human count as human. Lower is better." }
            dt { "Superhuman" }
            dd { "The number of games whose mean over runs is above the human score." }
            dt { "Intervals" }
            dd {
                (tables::confidence_level(report)) " percentile intervals of the stratified bootstrap: " (report.bootstrap.replicates)
                " replicates, seed " (report.bootstrap.seed) ", runs drawn with replacement within each game. They describe the variance between runs, not between games."
            }
            dt { "Unequal numbers of runs" }
            dd { "All games have equal weight. Within a game, all runs have equal weight." }
            dt { "Probability of improvement" }
            dd { "The Mann-Whitney U statistic of each game, averaged over games." }
        }
        p {
            "Definitions follow " cite { "Deep Reinforcement Learning at the Edge of the Statistical Precipice" } " (Agarwal et al., 2021)."
        }
    }
}
