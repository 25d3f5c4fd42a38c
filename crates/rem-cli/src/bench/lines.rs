//! The lines of `rem bench` as a table, and beside those of the PyTorch reference benchmark.

use std::path::PathBuf;

use anyhow::Result;

use super::{Line, usage};
use crate::print;
use crate::table::Table;

/// The phases as a table.
pub fn table(lines: &[Line]) -> String {
    let header = [
        "phase",
        "batch",
        "frames",
        "ms",
        "ms per frame",
        "GFLOP/s",
        "of peak",
        "peak memory",
    ];
    let mut table = Table::new(&header, 1);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".into());
    for line in lines {
        table.push(vec![
            line.phase.clone(),
            line.batch.to_string(),
            line.frames.to_string(),
            format!("{:.1}", line.ms),
            format!("{:.3}", line.ms_per_frame),
            format!("{:.1}", line.gflops),
            or_dash(
                line.share_of_peak
                    .map(|share| format!("{:.0}%", 100.0 * share)),
            ),
            or_dash(line.peak_memory_mb.map(|mb| format!("{mb:.0} MB"))),
        ]);
    }
    table.terminal()
}

pub fn read(file: &PathBuf) -> Result<Vec<Line>> {
    const HINT: &str = "`rem bench --json` and the PyTorch reference benchmark print such lines";
    let text = std::fs::read_to_string(file).map_err(rem::Error::io(file))?;
    let line = |(i, text): (usize, &str)| {
        let place = format!("`{}` line {}", file.display(), i + 1);
        serde_json::from_str(text).map_err(|error| usage(format!("{place}: {error}"), HINT))
    };
    let lines: Vec<Line> = (text.lines().enumerate())
        .filter(|(_, text)| !text.trim().is_empty())
        .map(line)
        .collect::<Result<_>>()?;
    if lines.is_empty() {
        return Err(usage(format!("`{}` is empty", file.display()), HINT));
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
