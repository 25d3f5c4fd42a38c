//! `rem bench imagination`: measures the cost of an imagined frame in each imagination mode.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use rand::SeedableRng;
use serde_json::json;

use super::dreams::{Dreams, ImaginationMode, Sizes};
use super::page::Page;
use super::sizes::Scale;
use super::{Machine, plot, sweep, timing, usage};
use crate::args::{at_least_one, whole};
use crate::print;

/// Measure imagination: sequential calls, tokens and time per frame
///
/// Runs the world model alone, with random actions, at the paper's sizes (Table 6). Prints a Markdown table; `--out`
/// also writes a page with a figure. Run it on an idle machine.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem bench imagination                                POP's default mode
  rem bench imagination --compare                      every imagination mode
  rem bench imagination --compare --out cost.md        write cost.md and cost.svg as well
  rem bench imagination --sweep --out pop.md           POP and No POP at batch sizes 1 to 128
  rem bench imagination --scale tiny --tokens 16       finishes within seconds")]
pub struct ImaginationArgs {
    /// Compare all imagination modes: both POP modes, No POP and IRIS [default: POP's default mode]
    #[arg(long)]
    compare: bool,
    /// Compare POP with token-by-token generation at many batch sizes, with the multiply-adds of each
    #[arg(long, conflicts_with = "compare")]
    sweep: bool,
    /// Comma-separated tokens per frame (K): 16, 64 or 256
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "16,64,256",
        value_name = "K",
        value_parser = tokens
    )]
    tokens: Vec<usize>,
    /// Comma-separated horizons (H), in frames [default: 10,20; with --sweep, which takes one: 10]
    #[arg(long, value_delimiter = ',', value_name = "H", value_parser = whole::<usize>(1..=10_000))]
    horizons: Vec<usize>,
    /// Batch size; with --sweep, comma-separated [default: 16; with --sweep: 1,2,4,8,16,32,64,128]
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = whole::<usize>(1..=65_536))]
    batch: Vec<usize>,
    /// Timed repetitions after one warm-up; the fastest counts. Runs of 10 s or more are not repeated
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = at_least_one::<usize>)]
    repeats: usize,
    /// Print JSON lines instead of a table
    #[arg(long)]
    json: bool,
    /// Model size
    #[arg(long, default_value = "paper")]
    scale: Scale,
    /// Also write a page with the table and an SVG with the figure; text above `<!-- measured -->` is kept
    #[arg(long, value_name = "FILE.md")]
    out: Option<PathBuf>,
    #[command(flatten)]
    machine: Machine,
}

/// Tokens per frame that a tokenizer can have.
fn tokens(text: &str) -> Result<usize, String> {
    let tokens = text.parse().ok().filter(|k| [16, 64, 256].contains(k));
    tokens.ok_or_else(|| "must be 16, 64 or 256".into())
}

/// A row of the table.
pub struct Line {
    pub mode: ImaginationMode,
    pub batch: usize,
    pub tokens: usize,
    pub horizon: usize,
    calls: u64,
    tokens_read: u64,
    pub ms_per_frame: f64,
    /// Multiply-adds per frame.
    pub products: f64,
}

impl Line {
    fn json(&self) -> serde_json::Value {
        json!({
            "mode": self.mode.name(),
            "batch": self.batch,
            "tokens_per_frame": self.tokens,
            "horizon": self.horizon,
            "calls": self.calls,
            "tokens": self.tokens_read,
            "ms_per_frame": self.ms_per_frame,
            "multiply_adds_per_frame": self.products,
        })
    }
}

pub fn run(args: ImaginationArgs) -> Result<()> {
    rem::threads::set(args.machine.threads)?;
    rem::threads::on_worker(|| args.run())
}

impl ImaginationArgs {
    fn run(&self) -> Result<()> {
        if self.scale == Scale::Laptop {
            return Err(usage(
                "`rem bench imagination` has no laptop scale",
                "`rem bench --scale laptop` measures imagination at the sizes of atari-laptop",
            ));
        }
        let (modes, batches, horizons) = match (self.sweep, self.compare) {
            (true, _) => (
                &sweep::MODES[..],
                &[1, 2, 4, 8, 16, 32, 64, 128][..],
                &[10][..],
            ),
            (false, true) => (&ImaginationMode::ALL[..], &[16][..], &[10, 20][..]),
            (false, false) => (&ImaginationMode::ALL[..1], &[16][..], &[10, 20][..]),
        };
        let batches = given_or(&self.batch, batches);
        let horizons = given_or(&self.horizons, horizons);
        if self.sweep && horizons.len() > 1 {
            return Err(usage(
                "--sweep takes one horizon",
                "for example `--horizons 10`",
            ));
        }
        if !self.sweep && batches.len() > 1 {
            return Err(usage(
                "several batch sizes without --sweep",
                "add `--sweep`",
            ));
        }
        let mut lines = Vec::new();
        for &tokens in &self.tokens {
            for &horizon in &horizons {
                for &batch in &batches {
                    for &mode in modes.iter().filter(|mode| mode.supports(tokens)) {
                        lines.push(self.measure(mode, batch, tokens, horizon)?);
                        print::dot(".");
                    }
                }
            }
        }
        print::message("");
        if self.json {
            for line in &lines {
                print::line(line.json())?;
            }
        }
        match self.sweep {
            true => self.report_sweep(lines, horizons[0]),
            false => self.report_modes(&lines, batches[0], &horizons),
        }
    }

    fn report_modes(&self, lines: &[Line], batch: usize, horizons: &[usize]) -> Result<()> {
        let text = format!(
            "{}\n{}",
            self.table(lines),
            self.summary(lines, batch, horizons)
        );
        if !self.json {
            print::text(format_args!("{text}"))?;
        }
        let Some(path) = &self.out else { return Ok(()) };
        let page = Page {
            title: "Cost of an imagined frame",
            text: &text,
            figure: &plot::draw(lines),
            caption: "Time per imagined frame",
        };
        page.write(path)
    }

    fn report_sweep(&self, lines: Vec<Line>, horizon: usize) -> Result<()> {
        let peak = self.machine.peak();
        let sweep = sweep::Sweep::new(lines, horizon, self.machine.describe(), peak);
        if !self.json {
            print::text(sweep.terminal())?;
        }
        match &self.out {
            Some(path) => sweep.page(path),
            None => Ok(()),
        }
    }

    fn measure(
        &self,
        mode: ImaginationMode,
        batch: usize,
        tokens: usize,
        horizon: usize,
    ) -> Result<Line> {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
        let sizes = Sizes {
            scale: self.scale,
            precision: self.machine.precision(),
            device: &self.machine.device,
            batch,
            tokens,
            horizon,
        };
        let dreams = Dreams::new(mode, sizes, &mut rng)?;
        let mut calls = None;
        let seconds = timing::fastest(self.repeats, || {
            let cost = dreams.run(&mut rng);
            calls = Some(cost.calls);
            cost.seconds
        });
        let calls = calls.expect("at least one run");
        Ok(Line {
            mode,
            batch,
            tokens,
            horizon,
            calls: calls.calls,
            tokens_read: calls.tokens,
            ms_per_frame: seconds * 1e3 / (batch * horizon) as f64,
            products: dreams.products,
        })
    }

    fn table(&self, lines: &[Line]) -> String {
        let mut out = String::from(
            "| K | H | imagination mode | sequential calls | in the paper | tokens processed | tokens per call | ms per frame | \
             time relative to POP (default) |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for line in lines {
            let (mode, k, h) = (line.mode, line.tokens, line.horizon);
            out += &format!(
                "| {k} | {h} | {} | {} | {} = {} | {} | {:.1} | {:.3} | {} |\n",
                mode.name(),
                line.calls,
                mode.formula(),
                mode.calls(k as u64, h as u64),
                line.tokens_read,
                line.tokens_read as f64 / line.calls as f64,
                line.ms_per_frame,
                find(lines, ImaginationMode::PopTwoCalls, k, h)
                    .map_or("-".into(), |pop| format!("{:.2}", line.ms_per_frame / pop)),
            );
        }
        out
    }

    /// How time scales with the horizon: linearly if each frame costs the same.
    fn summary(&self, lines: &[Line], batch: usize, horizons: &[usize]) -> String {
        let (Some(short), Some(long)) = (horizons.iter().min(), horizons.iter().max()) else {
            return String::new();
        };
        let mut out = format!("Batch size {batch}, {}.\n", self.machine.describe());
        if short == long {
            return out;
        }
        out += &format!(
            "\nTime at H = {long} relative to H = {short} (linear: {:.2}):\n\n| imagination mode |",
            *long as f64 / *short as f64
        );
        self.tokens
            .iter()
            .for_each(|k| out += &format!(" K = {k} |"));
        out += &format!("\n| --- |{}\n", " --- |".repeat(self.tokens.len()));
        for mode in ImaginationMode::ALL {
            if !lines.iter().any(|line| line.mode == mode) {
                continue;
            }
            out += &format!("| {} |", mode.name());
            for &k in &self.tokens {
                let time = |h: usize| find(lines, mode, k, h).map(|ms| ms * h as f64);
                let ratio = time(*long).zip(time(*short)).map(|(a, b)| a / b);
                out += &ratio.map_or(" - |".into(), |ratio| format!(" {ratio:.2} |"));
            }
            out += "\n";
        }
        out
    }
}

/// Milliseconds per frame, if measured.
fn find(lines: &[Line], mode: ImaginationMode, tokens: usize, horizon: usize) -> Option<f64> {
    let same = |line: &&Line| (line.mode, line.tokens, line.horizon) == (mode, tokens, horizon);
    lines.iter().find(same).map(|line| line.ms_per_frame)
}

/// The values of an option, or its default.
fn given_or(given: &[usize], default: &[usize]) -> Vec<usize> {
    match given {
        [] => default.to_vec(),
        given => given.to_vec(),
    }
}
