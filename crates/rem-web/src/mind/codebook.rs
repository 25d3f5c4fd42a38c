//! The codebook: which codes live, and what each of them looks like.

use rem::replay::archive::Archive;
use rem::tokenizer::CodeUse;
use serde::Serialize;

use super::Mind;
use crate::envelope;
use crate::error::Failure;

/// Frames of the replay in which codes are counted, spread evenly over its latest steps.
const FRAMES: usize = 256;
const LATEST_STEPS: usize = 8192;

#[derive(Serialize)]
struct About {
    epoch: u32,
    /// In how many frames of the replay codes were counted.
    frames: usize,
    counts: Vec<u64>,
    alive: usize,
    perplexity: f64,
    /// Height and width of a code's picture.
    patch: usize,
}

/// An envelope with a picture of every code: the mean of all pieces of frames that it stands for, black if there are
/// none.
pub fn codebook(mind: &Mind, archive: &Archive) -> Result<Vec<u8>, Failure> {
    let frames = archive.latest_frames(LATEST_STEPS, FRAMES)?;
    let vocabulary = mind.config.tokenizer.vocabulary;
    let tokens = mind.see(&frames);
    let mut used = CodeUse::new(vocabulary);
    used.count(&tokens);
    let (size, grid) = (mind.config.env.frame_size, mind.config.grid());
    let about = About {
        epoch: mind.epoch,
        frames: frames.len(),
        alive: used.alive(),
        perplexity: if frames.is_empty() {
            0.0
        } else {
            used.perplexity()
        },
        patch: size / grid,
        counts: used.counts().to_vec(),
    };
    let pictures = mean_pieces(&frames, &tokens, grid, used.counts());
    Ok(envelope::seal(&about, &pictures))
}

/// The mean piece of each code, one after the other. Frames fall into `grid * grid` square pieces, a token each.
fn mean_pieces(frames: &[Vec<u8>], tokens: &[u16], grid: usize, counts: &[u64]) -> Vec<u8> {
    let Some(first) = frames.first() else {
        return Vec::new();
    };
    let size = (first.len() / 3).isqrt();
    let patch = size / grid;
    let bytes = patch * patch * 3;
    let mut sums = vec![0u64; counts.len() * bytes];
    for (frame, tokens) in frames.iter().zip(tokens.chunks(grid * grid)) {
        for (place, code) in tokens.iter().enumerate() {
            let sum = &mut sums[usize::from(*code) * bytes..][..bytes];
            let (top, left) = (place / grid * patch, place % grid * patch);
            for (row, sum) in sum.chunks_mut(patch * 3).enumerate() {
                let start = ((top + row) * size + left) * 3;
                let pixels = &frame[start..start + patch * 3];
                sum.iter_mut()
                    .zip(pixels)
                    .for_each(|(sum, pixel)| *sum += u64::from(*pixel));
            }
        }
    }
    let mean = |(i, sum): (usize, &u64)| (sum / counts[i / bytes].max(1)) as u8;
    sums.iter().enumerate().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_looks_like_the_mean_of_what_it_stands_for() {
        // Two frames of 2x2 pixels, a pixel a token.
        let frame = |values: [u8; 4]| values.iter().flat_map(|value| [*value; 3]).collect();
        let frames = [frame([10, 20, 30, 40]), frame([50, 60, 70, 80])];
        let tokens = [0, 1, 0, 1, 0, 1, 1, 1];
        let pictures = mean_pieces(&frames, &tokens, 2, &[3, 5, 0]);
        let grey: Vec<u8> = pictures.into_iter().step_by(3).collect();
        assert_eq!(grey, [30, 54, 0]);
        assert!(mean_pieces(&[], &[], 2, &[0]).is_empty());
    }
}
