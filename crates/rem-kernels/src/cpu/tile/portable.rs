//! The tile in portable Rust, four rows and sixteen columns at a time.

// Rows and vectors are indices of several arrays at once.
#![allow(clippy::needless_range_loop)]

use super::{Job, NARROW, height, width};

/// # Safety
/// As for [`super::Tile::run`].
pub(super) unsafe fn run(job: &Job<f32>) {
    let panel = width(job.columns);
    for row in (0..height(job.rows)).step_by(4) {
        for column in (0..panel).step_by(NARROW) {
            let mut sums = [[0f32; NARROW]; 4];
            // SAFETY: `job` guarantees the reads.
            unsafe {
                let mut b = job.b.add(column);
                for &segment in job.segments {
                    for k in 0..job.steps {
                        let columns = b.cast::<[f32; NARROW]>().read_unaligned();
                        for r in 0..4 {
                            let x = *job.a[row + r].add(segment + k);
                            for (sum, y) in sums[r].iter_mut().zip(columns) {
                                *sum += x * y;
                            }
                        }
                        b = b.add(panel);
                    }
                }
            }
            for (r, sums) in sums.iter().enumerate().take(job.rows.saturating_sub(row)) {
                let count = job.columns.saturating_sub(column).min(NARROW);
                for (j, sum) in sums.iter().enumerate().take(count) {
                    // SAFETY: within `rows` and `columns`.
                    unsafe {
                        let to = job.c[row + r].add(column + j);
                        *to = if job.add { *to + sum } else { *sum };
                    }
                }
            }
        }
    }
}
