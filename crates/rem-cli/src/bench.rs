//! `rem bench`: times the training steps, with the output format and sizes of the PyTorch reference benchmark.

mod dreams;
#[cfg(feature = "atari")]
mod emulation;
mod imagination;
mod peak;
mod play;
mod plot;
mod workload;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use rand::SeedableRng;
use serde::{Deserialize, Serialize};
use workload::{Phase, Scale, Workload};

/// Time the training steps
///
/// Prints one JSON object per phase: milliseconds per step and per frame, GFLOP/s, the fraction of this machine's
/// measured peak, and the peak memory of the process so far. Run it on an idle machine.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  rem bench                                         all phases at the paper's size
  rem bench --only world_model,imagine_pop          two phases
  rem bench --scale tiny --threads 1                small models on one thread
  rem bench imagination --compare                   imagination modes of the paper's Table 6")]
pub struct BenchArgs {
    #[command(subcommand)]
    other: Option<Other>,
    /// Model size: the paper's, or tiny to expose overhead
    #[arg(long, default_value = "paper")]
    scale: ScaleName,
    /// Comma-separated phases: tokenizer, tokenizer_perceptual, world_model, imagine_pop, imagine_no_pop, actor_critic
    /// [default: all]
    #[arg(long, value_delimiter = ',', value_name = "PHASE,…")]
    only: Vec<String>,
    /// Timed repetitions of each phase after one warm-up; the fastest counts
    #[arg(long, default_value_t = 3, value_name = "N")]
    repeats: usize,
    /// CPU threads; 0 means one per core
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,
    /// Matrix products in f32, or with bfloat16 inputs (mixed)
    #[arg(long, default_value = "mixed")]
    precision: PrecisionName,
    /// Output of the PyTorch reference benchmark (JSON lines) to compare with
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
}

/// Other benchmarks.
#[derive(clap::Subcommand)]
enum Other {
    Imagination(imagination::ImaginationArgs),
    Play(play::PlayArgs),
    #[cfg(feature = "atari")]
    Emulation(emulation::EmulationArgs),
}

#[derive(Clone, Copy, ValueEnum)]
enum ScaleName {
    Paper,
    Tiny,
}

#[derive(Clone, Copy, ValueEnum)]
enum PrecisionName {
    F32,
    Mixed,
}

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
    /// Fraction of this machine's measured peak for the input type.
    #[serde(default)]
    share_of_peak: f64,
    /// Peak memory of this process so far, where the system reports it.
    peak_memory_mb: Option<f64>,
}

pub fn run(args: BenchArgs) -> Result<()> {
    match args.other {
        None => {
            rem::threads::set(args.threads)?;
            rem::threads::on_worker(|| args.run())
        }
        Some(Other::Imagination(args)) => imagination::run(args),
        Some(Other::Play(args)) => play::run(args),
        #[cfg(feature = "atari")]
        Some(Other::Emulation(args)) => emulation::run(args),
    }
}

impl From<ScaleName> for Scale {
    fn from(name: ScaleName) -> Self {
        match name {
            ScaleName::Paper => Self::Paper,
            ScaleName::Tiny => Self::Tiny,
        }
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
        let scale: Scale = self.scale.into();
        let precision: rem::config::Precision = self.precision.into();
        let phases = self.phases()?;
        let reference = self.against.as_ref().map(read_lines).transpose()?;
        let peak = peak::gflops(precision.into());
        let f32_peak = peak::gflops(rem_kernels::Precision::F32);
        eprintln!(
            "{} · {} threads · measured peak {:.0} GFLOP/s in f32, {:.0} in {}",
            rem_kernels::Isa::selected().name(),
            rayon::current_num_threads(),
            f32_peak,
            peak,
            precision.name()
        );
        let mut lines = Vec::new();
        for phase in phases {
            let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
            let mut workload = Workload::new(phase, scale, precision, &mut rng)?;
            workload.run(&mut rng);
            let best = (0..self.repeats.max(1))
                .map(|_| {
                    let start = Instant::now();
                    workload.run(&mut rng);
                    start.elapsed().as_secs_f64()
                })
                .fold(f64::INFINITY, f64::min);
            let gflops = workload.gflop() / best;
            let line = Line {
                phase: phase.name().into(),
                batch: workload.batch(),
                frames: workload.frames(),
                ms: round(best * 1e3, 1),
                ms_per_frame: round(best * 1e3 / workload.frames() as f64, 3),
                dtype: precision.name().into(),
                gflops: round(gflops, 1),
                share_of_peak: round(gflops / peak, 3),
                peak_memory_mb: peak_memory_mb().map(|mb| round(mb, 0)),
            };
            println!("{}", serde_json::to_string(&line)?);
            lines.push(line);
        }
        if let Some(reference) = reference {
            compare(&lines, &reference);
        }
        Ok(())
    }

    fn phases(&self) -> Result<Vec<Phase>> {
        if self.only.is_empty() {
            return Ok(Phase::ALL.to_vec());
        }
        let find = |name: &String| {
            let known = Phase::ALL.iter().find(|p| p.name() == name);
            known.copied().with_context(|| {
                let names: Vec<_> = Phase::ALL.iter().map(|p| p.name()).collect();
                format!("unknown phase `{name}`; available: {}", names.join(", "))
            })
        };
        self.only.iter().map(find).collect()
    }
}

fn round(x: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (x * scale).round() / scale
}

fn read_lines(file: &PathBuf) -> Result<Vec<Line>> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read `{}`", file.display()))?;
    let line = |(i, text): (usize, &str)| {
        serde_json::from_str(text).with_context(|| format!("`{}` line {}", file.display(), i + 1))
    };
    let lines: Vec<Line> = (text.lines().enumerate())
        .filter(|(_, text)| !text.trim().is_empty())
        .map(line)
        .collect::<Result<_>>()?;
    if lines.is_empty() {
        bail!("`{}` is empty", file.display());
    }
    Ok(lines)
}

/// Prints the speedup of each phase over the fastest reference line.
fn compare(ours: &[Line], theirs: &[Line]) {
    eprintln!(
        "\n{:<22} {:>12} {:>12} {:>8}",
        "phase", "ms/frame", "reference", "speedup"
    );
    for line in ours {
        let reference = theirs
            .iter()
            .filter(|t| t.phase == line.phase)
            .map(|t| t.ms_per_frame)
            .fold(f64::INFINITY, f64::min);
        if reference.is_finite() {
            let speedup = reference / line.ms_per_frame;
            eprintln!(
                "{:<22} {:>12.3} {:>12.3} {:>8.2}",
                line.phase, line.ms_per_frame, reference, speedup
            );
        } else {
            eprintln!(
                "{:<22} {:>12.3} {:>12} {:>8}",
                line.phase, line.ms_per_frame, "-", "-"
            );
        }
    }
}

/// Peak resident memory of this process so far, where the system reports it.
fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024.0)
}
