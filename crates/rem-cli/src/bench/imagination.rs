//! `rem bench imagination`: what an imagined frame costs in every way to dream.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use rand::SeedableRng;
use rem::bench::dreams::{Dreams, Sizes, Way};

use super::{PrecisionName, ScaleName, plot};

/// Count and time imagination: calls, tokens, time per frame
///
/// The world model alone, with random actions, at the paper's sizes: a table in Markdown on stdout, and with
/// `--page` a page with a figure. Run it on an idle machine.
#[derive(Args)]
pub struct ImaginationArgs {
    /// All ways to dream: POP's two modes, No POP, IRIS; not only POP's default
    #[arg(long)]
    compare: bool,
    /// Tokens of a frame (K), separated by commas: 16, 64, 256
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "16,64,256",
        value_name = "K"
    )]
    tokens: Vec<usize>,
    /// Frames to dream (H), separated by commas
    #[arg(long, value_delimiter = ',', default_value = "10,20", value_name = "H", value_parser = at_least_one)]
    horizons: Vec<usize>,
    /// Dreams side by side
    #[arg(long, default_value = "16", value_name = "N", value_parser = at_least_one)]
    batch: usize,
    /// Times each is run after a first one to warm up; the best counts. One that takes long is run once
    #[arg(long, default_value_t = 3, value_name = "N")]
    repeats: usize,
    /// Model sizes: the paper's, or ones at which overhead shows
    #[arg(long, default_value = "paper")]
    scale: ScaleName,
    /// CPU threads; 0 = one per core
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    /// Products of matrices in f32, or with factors in bfloat16
    #[arg(long, default_value = "mixed")]
    precision: PrecisionName,
    /// Write table and figure into this page and an SVG beside it; what stands above `<!-- measured -->` stays
    #[arg(long, value_name = "FILE.md")]
    page: Option<PathBuf>,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".into()),
        Ok(n) => Ok(n),
        Err(_) => Err("is not a whole number".into()),
    }
}

/// Seconds from which a run is not repeated.
const LONG: f64 = 10.0;

/// A line of the table.
pub struct Line {
    pub way: Way,
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
        let ways = match self.compare {
            true => &Way::ALL[..],
            false => &Way::ALL[..1],
        };
        let mut lines = Vec::new();
        for &tokens in &self.tokens {
            for &horizon in &self.horizons {
                for &way in ways.iter().filter(|way| way.is_for(tokens)) {
                    lines.push(self.measure(way, tokens, horizon)?);
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

    fn measure(&self, way: Way, tokens: usize, horizon: usize) -> Result<Line> {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
        let sizes = Sizes {
            scale: self.scale.into(),
            precision: self.precision.into(),
            batch: self.batch,
            tokens,
            horizon,
        };
        let dreams = Dreams::new(way, sizes, &mut rng)?;
        let first = dreams.run(&mut rng);
        let mut seconds = first.seconds;
        if seconds < LONG {
            let again = (0..self.repeats.max(1)).map(|_| dreams.run(&mut rng).seconds);
            seconds = again.fold(f64::INFINITY, f64::min);
        }
        Ok(Line {
            way,
            tokens,
            horizon,
            calls: first.calls.calls,
            tokens_read: first.calls.tokens,
            ms_per_frame: seconds * 1e3 / (self.batch * horizon) as f64,
        })
    }

    fn table(&self, lines: &[Line]) -> String {
        let mut out = String::from(
            "| K | H | way to dream | sequential calls | by the paper | tokens processed | tokens per call | ms per frame | \
             times as long as POP (default) |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for line in lines {
            let (way, k, h) = (line.way, line.tokens, line.horizon);
            out += &format!(
                "| {k} | {h} | {} | {} | {} = {} | {} | {:.1} | {:.3} | {} |\n",
                way.name(),
                line.calls,
                way.formula(),
                way.calls(k as u64, h as u64),
                line.tokens_read,
                line.tokens_read as f64 / line.calls as f64,
                line.ms_per_frame,
                find(lines, Way::PopTwoCalls, k, h)
                    .map_or("-".into(), |pop| format!("{:.2}", line.ms_per_frame / pop)),
            );
        }
        out
    }

    /// How time grows with the horizon: by the same factor as the horizon if a frame costs the same.
    fn summary(&self, lines: &[Line]) -> String {
        let (Some(short), Some(long)) = (self.horizons.iter().min(), self.horizons.iter().max())
        else {
            return String::new();
        };
        let threads = rayon::current_num_threads();
        let mut out = format!(
            "{} dreams side by side, {threads} thread{}, precision {}.\n",
            self.batch,
            if threads == 1 { "" } else { "s" },
            rem::config::Precision::from(self.precision).name()
        );
        if short == long {
            return out;
        }
        out += &format!(
            "\nTime of H = {long} over time of H = {short} (linear is {:.2}):\n\n| way to dream |",
            *long as f64 / *short as f64
        );
        self.tokens
            .iter()
            .for_each(|k| out += &format!(" K = {k} |"));
        out += &format!("\n| --- |{}\n", " --- |".repeat(self.tokens.len()));
        for way in Way::ALL {
            if !lines.iter().any(|line| line.way == way) {
                continue;
            }
            out += &format!("| {} |", way.name());
            for &k in &self.tokens {
                let time = |h: usize| find(lines, way, k, h).map(|ms| ms * h as f64);
                let ratio = time(*long).zip(time(*short)).map(|(a, b)| a / b);
                out += &ratio.map_or(" - |".into(), |ratio| format!(" {ratio:.2} |"));
            }
            out += "\n";
        }
        out
    }
}

/// Milliseconds per frame.
fn find(lines: &[Line], way: Way, tokens: usize, horizon: usize) -> Option<f64> {
    let same = |line: &&Line| (line.way, line.tokens, line.horizon) == (way, tokens, horizon);
    lines.iter().find(same).map(|line| line.ms_per_frame)
}

fn write_page(page: &Path, text: &str, figure: &str) -> Result<()> {
    const MARK: &str = "<!-- measured -->";
    let svg = page.with_extension("svg");
    let head = match std::fs::read_to_string(page) {
        Ok(old) => old.split(MARK).next().unwrap_or_default().to_string(),
        Err(_) => "# What an imagined frame costs\n\n".into(),
    };
    let name = svg.file_name().unwrap_or_default().to_string_lossy();
    let text = format!("{head}{MARK}\n\n{text}\n![Time per imagined frame]({name})\n");
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
    };
    write(&svg, figure)?;
    write(page, &text)
}
