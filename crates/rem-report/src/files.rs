//! Writes the files of a report.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::figures::{self, Canvas, Size};
use crate::formats::{csv, html, latex, markdown};
use crate::notes::counted;
use crate::plot::svg::TextMode;
use crate::plot::theme::Theme;
use crate::report::Report;
use crate::{png, tables};

const THEMES: [(Theme, &str); 2] = [(Theme::Light, "light"), (Theme::Dark, "dark")];
/// Names of the CSV files with the data behind the figures.
const DATA: [&str; 4] = ["scores", "profiles", "curves", "losses"];

/// The output of [`write()`].
#[derive(Debug)]
pub struct Written {
    /// The path of the web page.
    pub page: PathBuf,
    /// Number of tables.
    pub tables: usize,
    /// Number of figures.
    pub figures: usize,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "wrote {}, {} (Markdown, LaTeX, CSV) and {} (SVG and PNG, light and dark)",
            self.page.display(),
            counted(self.tables, "table"),
            counted(self.figures, "figure")
        )
    }
}

/// Writes the report into `out`, each file atomically, the page last. Removes stale files of an older report and keeps
/// all other files.
///
/// # Errors
///
/// If a file or directory cannot be written.
pub fn write(report: &Report, out: &Path) -> Result<Written> {
    let files = all(report);
    let page = out.join("report.html");
    for directory in ["tables", "figures"] {
        let directory = out.join(directory);
        fs::create_dir_all(&directory).map_err(Error::file("create", &directory))?;
    }
    for old in possible_paths() {
        let path = out.join(&old);
        if path.is_file() && !files.iter().any(|(name, _)| *name == old) {
            fs::remove_file(&path).map_err(Error::file("remove", &path))?;
        }
    }
    for (name, bytes) in &files {
        write_atomic(&out.join(name), bytes)?;
    }
    write_atomic(&page, html::page(report).as_bytes())?;
    Ok(Written {
        page,
        tables: tables::all(report).len(),
        figures: figures::all(report).len(),
    })
}

/// The path in the output directory and the content of all files except the page.
fn all(report: &Report) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for table in tables::all(report) {
        let name = table.name;
        let exact = match name {
            "aggregates" => csv::table(&tables::aggregates_in_columns(report)),
            _ => csv::table(&table),
        };
        files.push((format!("tables/{name}.md"), markdown::table(&table).into()));
        files.push((format!("tables/{name}.tex"), latex::table(&table).into()));
        files.push((format!("tables/{name}.csv"), exact.into()));
    }
    for (name, text) in data(report) {
        files.push((format!("tables/{name}.csv"), text.into()));
    }
    for figure in figures::all(report) {
        for (theme, word) in THEMES {
            let svg = |text_mode| {
                let canvas = Canvas {
                    theme,
                    size: Size::Wide,
                    text_mode,
                };
                figure.svg(report, canvas, figure.name)
            };
            let name = format!("figures/{}-{word}", figure.name);
            files.push((format!("{name}.png"), png::render(&svg(TextMode::Outlines))));
            files.push((format!("{name}.svg"), svg(TextMode::Text).into()));
        }
    }
    files
}

/// The paths of all files that any report may have.
fn possible_paths() -> impl Iterator<Item = String> {
    let tables = tables::NAMES
        .iter()
        .flat_map(|name| ["md", "tex", "csv"].map(|ending| format!("tables/{name}.{ending}")));
    let data = DATA.iter().map(|name| format!("tables/{name}.csv"));
    let figures = figures::NAMES.iter().flat_map(|name| {
        ["light.svg", "light.png", "dark.svg", "dark.png"]
            .map(|ending| format!("figures/{name}-{ending}"))
    });
    tables.chain(data).chain(figures)
}

/// The CSV files with every score and every point of a profile and a curve.
fn data(report: &Report) -> Vec<(&'static str, String)> {
    let head = |names: &[&str]| {
        vec![
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>(),
        ]
    };
    let end = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let mut scores = head(&["system", "game", "run", "score", "human-normalized"]);
    for system in &report.systems {
        let Some(of) = &system.scores else { continue };
        for game in of.games() {
            for (run, score) in of.of(game).unwrap_or_default().iter().enumerate() {
                let run = if system.has_means_only() {
                    "mean".into()
                } else {
                    (run + 1).to_string()
                };
                let normalized = game.normalize(*score).to_string();
                scores.push(vec![
                    system.name.clone(),
                    game.title().into(),
                    run,
                    score.to_string(),
                    normalized,
                ]);
            }
        }
    }
    let mut profiles = head(&["system", "threshold", "share", "low", "high"]);
    for summary in &report.summaries {
        let points = report
            .thresholds
            .iter()
            .zip(summary.profile.iter().flatten());
        profiles.extend(points.map(|(threshold, estimate)| {
            let (low, high) = (
                estimate.interval.map(|i| i.low),
                estimate.interval.map(|i| i.high),
            );
            let name = report.system(summary).name.clone();
            vec![
                name,
                threshold.to_string(),
                estimate.value.to_string(),
                end(low),
                end(high),
            ]
        }));
    }
    let mut curves = head(&[
        "panel", "scale", "system", "run", "steps", "score", "low", "high",
    ]);
    for panel in &report.panels {
        for curve in &panel.curves {
            let line =
                |run: String, steps: u64, score: f64, low: Option<f64>, high: Option<f64>| {
                    let system = report.systems[curve.system].name.clone();
                    let (title, scale) = (panel.title.clone(), panel.scale.to_owned());
                    vec![
                        title,
                        scale,
                        system,
                        run,
                        steps.to_string(),
                        score.to_string(),
                        end(low),
                        end(high),
                    ]
                };
            for (steps, estimate) in &curve.points {
                let (low, high) = (
                    estimate.interval.map(|i| i.low),
                    estimate.interval.map(|i| i.high),
                );
                curves.push(line("all".into(), *steps, estimate.value, low, high));
            }
            for (index, run) in curve.runs.iter().enumerate() {
                let single = run.iter().map(|(steps, score)| {
                    line((index + 1).to_string(), *steps, *score, None, None)
                });
                curves.extend(single);
            }
        }
    }
    let mut losses = head(&["game", "system", "split", "runs", "epoch", "loss", "sd"]);
    for panel in &report.losses {
        for curve in &panel.curves {
            losses.extend(curve.points.iter().map(|point| {
                vec![
                    panel.title.clone(),
                    report.systems[curve.system].name.clone(),
                    curve.split.name().into(),
                    curve.runs.to_string(),
                    point.epoch.to_string(),
                    point.mean.to_string(),
                    end(point.deviation),
                ]
            }));
        }
    }
    DATA.into_iter()
        .zip([scores, profiles, curves, losses])
        .filter(|(_, records)| records.len() > 1)
        .map(|(name, records)| (name, csv::records(records)))
        .collect()
}

/// Replaces a file by a rename, so that readers see the old or the new content. Unlike `rem_run::files::write_atomic` it
/// does not sync: a report can be written again after a power cut.
fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let tmp = path.with_file_name(name);
    let written = fs::write(&tmp, bytes).and_then(|()| fs::rename(&tmp, path));
    written.map_err(|error| {
        // Report the first error.
        let _ = fs::remove_file(&tmp);
        Error::file("write", path)(error)
    })
}
