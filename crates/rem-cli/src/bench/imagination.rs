//! `rem bench imagination`: measures the cost of an imagined frame in each imagination mode.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use rand::SeedableRng;

use super::dreams::{Dreams, ImaginationMode, Sizes};
use super::{PrecisionName, ScaleName, plot};

/// Measure imagination: sequential calls, tokens and time per frame
///
/// Runs the world model alone, with random actions, at the paper's sizes (Table 6). Prints a Markdown table; `--page`
/// also writes a page with a figure. Run it on an idle machine.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem bench imagination                                POP's default mode
  rem bench imagination --compare                      every imagination mode
  rem bench imagination --compare --page cost.md       write cost.md and cost.svg as well
  rem bench imagination --scale tiny --tokens 16       finishes within seconds")]
pub struct ImaginationArgs {
    /// Compare all imagination modes: both POP modes, No POP and IRIS [default: POP's default mode]
    #[arg(long)]
    compare: bool,
    /// Comma-separated tokens per frame (K): 16, 64 or 256
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "16,64,256",
        value_name = "K"
    )]
    tokens: Vec<usize>,
    /// Comma-separated horizons (H), in frames
    #[arg(long, value_delimiter = ',', default_value = "10,20", value_name = "H", value_parser = at_least_one)]
    horizons: Vec<usize>,
    /// Batch size
    #[arg(long, default_value = "16", value_name = "N", value_parser = at_least_one)]
    batch: usize,
    /// Timed repetitions after one warm-up; the fastest counts. Runs of 10 s or more are not repeated
    #[arg(long, default_value_t = 3, value_name = "N")]
    repeats: usize,
    /// Model size: the paper's, or tiny to expose overhead
    #[arg(long, default_value = "paper")]
    scale: ScaleName,
    /// CPU threads; 0 means one per core
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    /// Matrix products in f32, or with bfloat16 inputs (mixed)
    #[arg(long, default_value = "mixed")]
    precision: PrecisionName,
    /// Also write a page with the table and an SVG with the figure; text above `<!-- measured -->` is kept
    #[arg(long, value_name = "FILE.md")]
    page: Option<PathBuf>,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".into()),
        Ok(n) => Ok(n),
        Err(_) => Err("must be an integer".into()),
    }
}

/// Runs that take at least this many seconds are not repeated.
const LONG: f64 = 10.0;

/// A row of the table.
pub struct Line {
    pub mode: ImaginationMode,
    pub tokens: usize,
    pub horizon: usize,
    calls: u64,
    tokens_read: u64,
    pub ms_per_frame: f64,
}

pub fn run(args: ImaginationArgs) -> Result<()> {
    rem::threads::set(args.threads)?;
    rem::threads::on_worker(|| args.run())
}

impl ImaginationArgs {
    fn run(&self) -> Result<()> {
        let modes = match self.compare {
            true => &ImaginationMode::ALL[..],
            false => &ImaginationMode::ALL[..1],
        };
        let mut lines = Vec::new();
        for &tokens in &self.tokens {
            for &horizon in &self.horizons {
                for &mode in modes.iter().filter(|mode| mode.supports(tokens)) {
                    lines.push(self.measure(mode, tokens, horizon)?);
                    eprint!(".");
                }
            }
        }
        eprintln!();
        let text = format!("{}\n{}", self.table(&lines), self.summary(&lines));
        print!("{text}");
        if let Some(page) = &self.page {
            write_page(page, &text, &plot::draw(&lines))?;
        }
        Ok(())
    }

    fn measure(&self, mode: ImaginationMode, tokens: usize, horizon: usize) -> Result<Line> {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
        let sizes = Sizes {
            scale: self.scale.into(),
            precision: self.precision.into(),
            batch: self.batch,
            tokens,
            horizon,
        };
        let dreams = Dreams::new(mode, sizes, &mut rng)?;
        let first = dreams.run(&mut rng);
        let mut seconds = first.seconds;
        if seconds < LONG {
            let again = (0..self.repeats.max(1)).map(|_| dreams.run(&mut rng).seconds);
            seconds = again.fold(f64::INFINITY, f64::min);
        }
        Ok(Line {
            mode,
            tokens,
            horizon,
            calls: first.calls.calls,
            tokens_read: first.calls.tokens,
            ms_per_frame: seconds * 1e3 / (self.batch * horizon) as f64,
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
    fn summary(&self, lines: &[Line]) -> String {
        let (Some(short), Some(long)) = (self.horizons.iter().min(), self.horizons.iter().max())
        else {
            return String::new();
        };
        let threads = rayon::current_num_threads();
        let mut out = format!(
            "Batch size {}, {threads} thread{}, precision {}.\n",
            self.batch,
            if threads == 1 { "" } else { "s" },
            rem::config::Precision::from(self.precision).name()
        );
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

fn write_page(page: &Path, text: &str, figure: &str) -> Result<()> {
    const MARK: &str = "<!-- measured -->";
    let svg = page.with_extension("svg");
    let head = match std::fs::read_to_string(page) {
        Ok(old) => old.split(MARK).next().unwrap_or_default().to_string(),
        Err(_) => "# Cost of an imagined frame\n\n".into(),
    };
    let name = svg.file_name().unwrap_or_default().to_string_lossy();
    let text = format!("{head}{MARK}\n\n{text}\n![Time per imagined frame]({name})\n");
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
    };
    write(&svg, figure)?;
    write(page, &text)
}
