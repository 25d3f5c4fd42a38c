//! `rem bench --against`: compares with the output of another benchmark.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::Line;
use crate::print;

/// The lines of a file that `rem bench` or the reference benchmark printed.
pub fn read_lines(file: &PathBuf) -> Result<Vec<Line>> {
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

/// Prints the speedup of each phase over the fastest reference line. A `*` marks lines of other batch sizes.
pub fn compare(ours: &[Line], theirs: &[Line]) {
    print::message(format_args!(
        "\n{:<22} {:>12} {:>12} {:>8}",
        "phase", "ms/frame", "reference", "speedup"
    ));
    let mut differs = false;
    for line in ours {
        let same_phase = theirs.iter().filter(|t| t.phase == line.phase);
        let fastest = same_phase.min_by(|a, b| a.ms_per_frame.total_cmp(&b.ms_per_frame));
        let Some(reference) = fastest else {
            print::message(format_args!(
                "{:<22} {:>12.3} {:>12} {:>8}",
                line.phase, line.ms_per_frame, "-", "-"
            ));
            continue;
        };
        let other_batch = (reference.batch, reference.frames) != (line.batch, line.frames);
        differs |= other_batch;
        print::message(format_args!(
            "{:<22} {:>12.3} {:>12.3} {:>8.2}{}",
            line.phase,
            line.ms_per_frame,
            reference.ms_per_frame,
            reference.ms_per_frame / line.ms_per_frame,
            if other_batch { " *" } else { "" }
        ));
    }
    if differs {
        print::message(format_args!(
            "* other batch sizes; `--batches reference` has those of the reference benchmark"
        ));
    }
}
