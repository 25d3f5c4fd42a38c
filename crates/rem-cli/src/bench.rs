//! `rem bench`: times the training steps, with the output format of the PyTorch reference benchmark.

mod compare;
mod compare_figure;
mod dreams;
#[cfg(feature = "atari")]
mod emulation;
mod environment;
mod imagination;
mod lines;
mod overlap;
mod page;
mod peak;
mod play;
mod plot;
mod products;
mod sizes;
mod sweep;
mod sweep_figure;
mod timing;
mod workload;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use rand::SeedableRng;
use rem::config::ConfigError;
use rem::suggest::{and, nearest};
use serde::{Deserialize, Serialize};
use sizes::{Batches, Scale, Setup, System};
use workload::{Phase, Workload};

use crate::args::{self, at_least_one};
use crate::print;

/// Time the training steps
///
/// Prints for each phase: milliseconds per step and per frame, GFLOP/s, the fraction of this machine's measured peak,
/// and the peak memory of the process so far. `--compare` measures other agents too and prints a table.
/// Run it on an idle machine.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem bench                                         all phases at the paper's sizes and batch sizes
  rem bench --only world_model,imagine_pop          two phases
  rem bench --batches reference --against FILE      compare with the PyTorch reference benchmark
  rem bench --scale tiny --threads 1                small models on one thread
  rem bench --scale laptop                          the sizes of the preset atari-laptop, and overlapped phases
  rem bench --scale laptop --only overlapped        updates a minute of overlapped phases, on two threads and on one
  rem bench --compare pop,no-pop,iris               the paper's Figure 1 (top): REM, No POP and IRIS
  rem bench --compare pop,no-pop,iris --out time.md write time.md and time.svg as well
  rem bench --compare pop,pop-attention,simulus     POP on a RetNet and on attention
  rem bench imagination --compare                   imagination modes of the paper's Table 6
  rem bench imagination --sweep                     batch sizes from which POP is faster")]
pub struct BenchArgs {
    #[command(subcommand)]
    other: Option<Other>,
    /// Model size
    #[arg(long, default_value = "paper")]
    scale: Scale,
    /// Batch sizes and imagined steps
    #[arg(long, default_value = "paper")]
    batches: Batches,
    /// Comma-separated phases: tokenizer, tokenizer_perceptual, world_model, imagine_pop, imagine_no_pop, actor_critic, and
    /// overlapped: world model and controller side by side on two threads, against one; with --compare: tokenizer,
    /// tokenizer_perceptual, world_model, imagination, actor_critic [default: all, overlapped only with --scale laptop]
    #[arg(long, value_delimiter = ',', value_name = "PHASE,…")]
    only: Vec<String>,
    /// Timed repetitions of each phase after one warm-up; the fastest counts. Steps of 10 s or more are not repeated
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = at_least_one::<usize>)]
    repeats: usize,
    /// Output of the PyTorch reference benchmark (JSON lines) to compare with
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    against: Option<PathBuf>,
    /// Comma-separated agents to measure in every phase, with ratios to the first. IRIS is compared at its own sizes, as
    /// in the paper's Figure 1; iris-rem has those of REM, as in its Figure 11
    #[arg(long, value_delimiter = ',', value_name = "AGENT,…")]
    compare: Vec<System>,
    /// Print JSON lines instead of a table
    #[arg(long)]
    json: bool,
    /// With --compare: also write a page with the table and an SVG with the figure; text above `<!-- measured -->` is
    /// kept
    #[arg(long, value_name = "FILE.md", requires = "compare")]
    out: Option<PathBuf>,
    #[command(flatten)]
    machine: Machine,
}

/// Options of all benchmarks of models.
#[derive(Args, Clone)]
struct Machine {
    /// Compute device: flex (CPU), or cuda, vulkan, wgpu, metal, rocm if built in
    #[arg(long, default_value = "flex", value_name = "NAME[:INDEX]")]
    device: String,
    /// CPU threads; 0 means one per core
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = args::threads)]
    threads: usize,
    /// Matrix products in f32, or with bfloat16 inputs (mixed)
    #[arg(long, default_value = "mixed")]
    precision: PrecisionName,
}

impl Machine {
    fn precision(&self) -> rem::config::Precision {
        self.precision.into()
    }

    /// Measured peak of matrix products in GFLOP/s; `None` on other devices than the CPU.
    fn peak(&self) -> Option<f64> {
        (self.device == "flex").then(|| peak::gflops(self.precision().into()))
    }

    /// Device, threads and precision.
    fn describe(&self) -> String {
        let threads = rayon::current_num_threads();
        let device = match self.device.as_str() {
            "flex" => format!(
                "CPU ({}), {threads} thread{}",
                rem_kernels::Isa::selected().name(),
                if threads == 1 { "" } else { "s" }
            ),
            other => format!("device {other}"),
        };
        format!("{device}, precision {}", self.precision().name())
    }
}

/// Other benchmarks.
#[derive(clap::Subcommand)]
enum Other {
    Imagination(imagination::ImaginationArgs),
    Play(play::PlayArgs),
    Env(environment::EnvArgs),
    #[cfg(feature = "atari")]
    Emulation(emulation::EmulationArgs),
}

#[derive(Clone, Copy, ValueEnum)]
enum PrecisionName {
    F32,
    Mixed,
}

/// A row of the output without `--compare`.
#[derive(Clone, Copy, PartialEq)]
enum Row {
    Phase(Phase, System),
    Overlapped,
}

/// The name of the row [`Row::Overlapped`].
const OVERLAPPED: &str = "overlapped";

/// The rows; phases have the names of the reference benchmark.
const ROWS: [(&str, Row); 7] = {
    use Row::Phase as Of;
    [
        ("tokenizer", Of(Phase::Tokenizer, System::Pop)),
        (
            "tokenizer_perceptual",
            Of(Phase::TokenizerPerceptual, System::Pop),
        ),
        ("world_model", Of(Phase::WorldModel, System::Pop)),
        ("imagine_pop", Of(Phase::Imagination, System::Pop)),
        ("imagine_no_pop", Of(Phase::Imagination, System::NoPop)),
        ("actor_critic", Of(Phase::ActorCritic, System::Pop)),
        (OVERLAPPED, Row::Overlapped),
    ]
};

/// A line of output; the reference benchmark has the first six fields.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Line {
    phase: String,
    batch: usize,
    frames: usize,
    ms: f64,
    ms_per_frame: f64,
    dtype: String,
    #[serde(default)]
    gflops: f64,
    /// Fraction of this machine's measured peak for the input type, on the CPU.
    #[serde(default)]
    share_of_peak: Option<f64>,
    /// Peak memory of this process so far, where the system reports it.
    peak_memory_mb: Option<f64>,
}

pub fn run(args: BenchArgs) -> Result<()> {
    match args.other {
        None => {
            rem::threads::set(args.machine.threads)?;
            rem::threads::on_worker(|| args.run())
        }
        Some(Other::Imagination(args)) => imagination::run(args),
        Some(Other::Play(args)) => play::run(args),
        Some(Other::Env(args)) => environment::run(args),
        #[cfg(feature = "atari")]
        Some(Other::Emulation(args)) => emulation::run(args),
    }
}

impl From<PrecisionName> for rem::config::Precision {
    fn from(name: PrecisionName) -> Self {
        match name {
            PrecisionName::F32 => Self::F32,
            PrecisionName::Mixed => Self::Mixed,
        }
    }
}

impl BenchArgs {
    fn run(&self) -> Result<()> {
        let setup = Setup {
            scale: self.scale,
            precision: self.machine.precision(),
            batches: self.batches,
            device: self.machine.device.clone(),
        };
        if !self.compare.is_empty() {
            return self.compare(&setup);
        }
        let mut rows = chosen(&ROWS, |row| row.0, &self.only)?;
        if self.only.is_empty() && self.scale != Scale::Laptop {
            rows.retain(|(_, row)| *row != Row::Overlapped);
        }
        let reference = self.against.as_ref().map(lines::read).transpose()?;
        rem::device::of(&setup.config(System::Pop)?)?;
        let peak = self.print_header();
        let (mut lines, mut overlapped) = (Vec::new(), None);
        for (name, row) in rows {
            match row {
                Row::Phase(phase, system) => {
                    let measured = measure(phase, system, &setup, self.repeats)?;
                    let line = measured.line(name, peak);
                    match self.json {
                        true => print::line(serde_json::to_string(&line)?)?,
                        false => print::dot("."),
                    }
                    lines.push(line);
                }
                Row::Overlapped => {
                    let line = overlap::measure(&setup, self.repeats)?;
                    match self.json {
                        true => print::line(serde_json::to_string(&line)?)?,
                        false => overlapped = Some(line),
                    }
                }
            }
        }
        if !self.json {
            print::message("");
            if !lines.is_empty() {
                print::text(lines::table(&lines))?;
            }
            if let Some(line) = overlapped {
                print::line(line)?;
            }
        }
        if let Some(reference) = reference {
            lines::compare(&lines, &reference);
        }
        Ok(())
    }

    fn compare(&self, setup: &Setup) -> Result<()> {
        let phases = chosen(&Phase::ALL, |phase| phase.name(), &self.only)?;
        for system in &self.compare {
            rem::device::of(&setup.config(*system)?)?;
        }
        let peak = self.print_header();
        let mut report = compare::Report::new(self.machine.describe(), self.scale, peak);
        for &system in &self.compare {
            for &phase in &phases {
                let measured = match report.same_tokenizer(phase, system, setup)? {
                    Some(known) => known,
                    None => measure(phase, system, setup, self.repeats)?,
                };
                report.push(phase, system, measured);
                print::dot(".");
            }
        }
        print::message("");
        match self.json {
            true => print::text(report.json()?)?,
            false => print::text(report.terminal())?,
        }
        match &self.out {
            Some(path) => report.page(path),
            None => Ok(()),
        }
    }

    /// Prints the machine to stderr and returns its measured peak.
    fn print_header(&self) -> Option<f64> {
        let peak = self.machine.peak();
        let measured = peak.map_or(String::new(), |peak| {
            format!(" · measured peak {peak:.0} GFLOP/s")
        });
        print::message(format_args!("{}{measured}", self.machine.describe()));
        peak
    }
}

/// A timed phase of a system.
#[derive(Clone)]
struct Measured {
    config: rem::config::Config,
    batch: usize,
    frames: usize,
    /// Of the fastest step.
    seconds: f64,
    gflop: f64,
}

fn measure(phase: Phase, system: System, setup: &Setup, repeats: usize) -> Result<Measured> {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
    let mut workload = Workload::new(phase, system, setup, &mut rng)?;
    Ok(Measured {
        seconds: timing::fastest(repeats, || workload.run(&mut rng)),
        config: workload.config().clone(),
        batch: workload.batch(),
        frames: workload.frames(),
        gflop: workload.gflop(),
    })
}

impl Measured {
    fn ms_per_frame(&self) -> f64 {
        self.seconds * 1e3 / self.frames as f64
    }

    fn line(&self, name: &str, peak: Option<f64>) -> Line {
        let gflops = self.gflop / self.seconds;
        Line {
            phase: name.into(),
            batch: self.batch,
            frames: self.frames,
            ms: round(self.seconds * 1e3, 1),
            ms_per_frame: round(self.ms_per_frame(), 3),
            dtype: self.config.precision.name().into(),
            gflops: round(gflops, 1),
            share_of_peak: peak.map(|peak| round(gflops / peak, 3)),
            peak_memory_mb: peak_memory_mb().map(|mb| round(mb, 0)),
        }
    }
}

/// The elements with these names, or all without names.
fn chosen<T: Copy>(all: &[T], name: impl Fn(&T) -> &str, names: &[String]) -> Result<Vec<T>> {
    if names.is_empty() {
        return Ok(all.to_vec());
    }
    let find = |wanted: &String| {
        let known = all.iter().find(|one| name(one) == wanted).copied();
        known.ok_or_else(|| {
            let available: Vec<_> = all.iter().map(&name).collect();
            let hint = match nearest(wanted, available.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the phases are {}", and(&available)),
            };
            usage(format!("unknown phase `{wanted}`"), hint)
        })
    };
    names.iter().map(find).collect()
}

/// An error in the options, with a hint.
fn usage(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    rem::Error::from(ConfigError::new(message, hint)).into()
}

fn round(x: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (x * scale).round() / scale
}

/// Peak resident memory of this process so far, where the system reports it.
fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024.0)
}
