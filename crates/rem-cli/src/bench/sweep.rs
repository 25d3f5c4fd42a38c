//! `rem bench imagination --sweep`: POP against token-by-token generation by batch size and tokens per frame.
//!
//! POP takes two calls per frame instead of K, but about twice the multiply-adds. It wins where small calls leave the
//! machine idle, and cannot win where they keep it busy.

use std::path::Path;

use anyhow::Result;

use super::dreams::ImaginationMode;
use super::imagination::Line;
use super::page::Page;
use super::sweep_figure;
use crate::table::Table;

/// The compared modes.
pub const MODES: [ImaginationMode; 3] = [
    ImaginationMode::PopTwoCalls,
    ImaginationMode::PopOneCall,
    ImaginationMode::NoPop,
];

/// All measurements, and their conditions.
pub struct Sweep {
    lines: Vec<Line>,
    horizon: usize,
    /// Device, threads and precision.
    machine: String,
    /// Measured peak of matrix products in GFLOP/s, on the CPU.
    peak: Option<f64>,
}

/// The measurements at one batch size and number of tokens.
struct Point<'a> {
    pop: [&'a Line; 2],
    no_pop: &'a Line,
}

impl Point<'_> {
    /// The faster mode of POP.
    fn fastest_pop(&self) -> &Line {
        let [two_calls, one_call] = self.pop;
        match one_call.ms_per_frame < two_calls.ms_per_frame {
            true => one_call,
            false => two_calls,
        }
    }

    /// Time of token-by-token generation over that of POP's faster mode.
    fn speedup(&self) -> f64 {
        self.no_pop.ms_per_frame / self.fastest_pop().ms_per_frame
    }
}

impl Sweep {
    pub fn new(lines: Vec<Line>, horizon: usize, machine: String, peak: Option<f64>) -> Self {
        Self {
            lines,
            horizon,
            machine,
            peak,
        }
    }

    /// Numbers of tokens per frame, in ascending order.
    pub fn tokens(&self) -> Vec<usize> {
        sorted(self.lines.iter().map(|line| line.tokens))
    }

    /// Batch sizes, in ascending order.
    pub fn batches(&self) -> Vec<usize> {
        sorted(self.lines.iter().map(|line| line.batch))
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Milliseconds of an imagined frame at the measured peak: the least time in which its multiply-adds are done.
    pub fn at_peak(&self, line: &Line) -> Option<f64> {
        self.peak.map(|peak| 2.0 * line.products / peak / 1e6)
    }

    fn point(&self, tokens: usize, batch: usize) -> Point<'_> {
        let [two_calls, one_call, no_pop] = MODES.map(|mode| {
            let same = |line: &&Line| (line.mode, line.tokens, line.batch) == (mode, tokens, batch);
            let line = self.lines.iter().find(same);
            line.expect("all modes are measured everywhere")
        });
        Point {
            pop: [two_calls, one_call],
            no_pop,
        }
    }

    fn table(&self) -> Table {
        let header = [
            "K",
            "batch",
            "POP (default), ms per frame",
            "POP (alternative)",
            "No POP",
            "speedup of POP",
            "POP, M multiply-adds per frame",
            "No POP",
            "POP, GFLOP/s",
            "No POP",
            "POP, share of peak",
            "No POP",
        ];
        let mut table = Table::new(&header, 0);
        for tokens in self.tokens() {
            for batch in self.batches() {
                let point = self.point(tokens, batch);
                let (pop, no_pop) = (point.fastest_pop(), point.no_pop);
                let ms = |line: &Line| format!("{:.3}", line.ms_per_frame);
                let rate = |line: &Line| 2.0 * line.products / line.ms_per_frame / 1e6;
                let share = |line: &Line| match self.peak {
                    Some(peak) => format!("{:.0}%", 100.0 * rate(line) / peak),
                    None => "-".into(),
                };
                table.push(vec![
                    tokens.to_string(),
                    batch.to_string(),
                    ms(point.pop[0]),
                    ms(point.pop[1]),
                    ms(no_pop),
                    format!("{:.2}", point.speedup()),
                    format!("{:.1}", pop.products / 1e6),
                    format!("{:.1}", no_pop.products / 1e6),
                    format!("{:.0}", rate(pop)),
                    format!("{:.0}", rate(no_pop)),
                    share(pop),
                    share(no_pop),
                ]);
            }
        }
        table
    }

    /// Where POP is faster, for each K.
    fn findings(&self) -> String {
        let mut out = String::new();
        for tokens in self.tokens() {
            let batches = self.batches();
            let faster = |batch: &&usize| self.point(tokens, **batch).speedup() > 1.0;
            let faster: Vec<String> = (batches.iter().filter(faster))
                .map(ToString::to_string)
                .collect();
            let point = self.point(tokens, batches[0]);
            let more = point.pop[0].products / point.no_pop.products;
            let found = match faster.len() {
                0 => "at no measured batch size".into(),
                n if n == batches.len() => "at every measured batch size".into(),
                _ => format!("at batch sizes {}", faster.join(", ")),
            };
            out += &format!(
                "- K = {tokens}: POP has {more:.2} times the multiply-adds and is faster {found} ({:.2} times at {}, \
                 {:.2} times at {}).\n",
                self.point(tokens, batches[0]).speedup(),
                batches[0],
                self.point(tokens, batches[batches.len() - 1]).speedup(),
                batches[batches.len() - 1],
            );
        }
        out
    }

    fn conditions(&self) -> String {
        let peak = self.peak.map_or(String::new(), |peak| {
            format!(" Measured peak of matrix products: {peak:.0} GFLOP/s.")
        });
        format!(
            "H = {}, {}. The speedup, GFLOP/s and share of POP are those of its faster mode.{peak}\n",
            self.horizon, self.machine
        )
    }

    pub fn terminal(&self) -> String {
        format!(
            "{}\n{}\n{}",
            self.table().terminal(),
            self.findings(),
            self.conditions()
        )
    }

    /// Writes the page and its figure.
    pub fn page(&self, path: &Path) -> Result<()> {
        let text = format!(
            "{}\n{}\n{}",
            self.findings(),
            self.table().markdown(),
            self.conditions()
        );
        let page = Page {
            title: "When parallel prediction pays",
            text: &text,
            figure: &sweep_figure::draw(self),
            caption: "Time per imagined frame by batch size, for each number of tokens",
        };
        page.write(path)
    }
}

fn sorted(values: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut values: Vec<usize> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}
