//! `rem bench`: the training steps timed, in the form and at the sizes of the PyTorch yardstick.

#[cfg(feature = "atari")]
mod emulation;
mod imagination;
mod play;
mod plot;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use rand::SeedableRng;
use rem::bench::{Phase, Scale, Workload};
use serde::{Deserialize, Serialize};

/// Time the training steps, as the PyTorch yardstick does
///
/// One JSON object per phase on stdout: milliseconds per step and per frame, GFLOP/s, the share of this
/// machine's measured peak, and the process' peak memory so far. Run it on an idle machine.
#[derive(Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    other: Option<Other>,
    /// Model sizes: the paper's, or ones at which overhead shows
    #[arg(long, default_value = "paper")]
    scale: ScaleName,
    /// Phases, separated by commas; all of them if not given
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Times each phase is run after a first one to warm up; the best counts
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    /// CPU threads; 0 = one per core
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Products of matrices in f32, or with factors in bfloat16
    #[arg(long, default_value = "mixed")]
    precision: PrecisionName,
    /// Output of the yardstick (JSON lines) to compare with, phase by phase
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
}

/// What else can be timed.
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

/// A line of output; the yardstick's lines have the first six.
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
    /// Of this machine's measured peak for the type of the factors.
    #[serde(default)]
    share_of_peak: f64,
    /// Of this process so far, where the system tells.
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
        let peak = rem_kernels::peak_gflops(precision.into());
        let f32_peak = rem_kernels::peak_gflops(rem_kernels::Precision::F32);
        eprintln!(
            "{} · {} threads · measured peak {:.0} GFLOP/s in f32, {:.0} in {}",
            rem_kernels::Level::of_this_machine().name(),
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
                format!("no phase `{name}`; there are {}", names.join(", "))
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
        bail!("`{}` has no lines to compare with", file.display());
    }
    Ok(lines)
}

/// How many times faster each phase is than the best line of the reference for it.
fn compare(ours: &[Line], theirs: &[Line]) {
    eprintln!(
        "\n{:<22} {:>12} {:>12} {:>8}",
        "phase", "ms/frame", "reference", "times"
    );
    for line in ours {
        let reference = theirs
            .iter()
            .filter(|t| t.phase == line.phase)
            .map(|t| t.ms_per_frame)
            .fold(f64::INFINITY, f64::min);
        if reference.is_finite() {
            let times = reference / line.ms_per_frame;
            eprintln!(
                "{:<22} {:>12.3} {:>12.3} {:>8.2}",
                line.phase, line.ms_per_frame, reference, times
            );
        } else {
            eprintln!(
                "{:<22} {:>12.3} {:>12} {:>8}",
                line.phase, line.ms_per_frame, "-", "-"
            );
        }
    }
}

/// The largest resident memory of this process so far, where the system tells.
fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024.0)
}
