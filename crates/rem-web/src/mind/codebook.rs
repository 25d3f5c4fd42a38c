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

/// An envelope with a picture of every code: the middle of a frame that consists of it alone.
pub fn codebook(mind: &Mind, archive: &Archive) -> Result<Vec<u8>, Failure> {
    let frames = archive.latest_frames(LATEST_STEPS, FRAMES)?;
    let vocabulary = mind.config.tokenizer.vocabulary;
    let mut used = CodeUse::new(vocabulary);
    used.count(&mind.see(&frames));

    let k = mind.config.tokens_per_obs();
    let alone: Vec<u16> = (0..vocabulary as u16)
        .flat_map(|code| vec![code; k])
        .collect();
    let (size, grid) = (mind.config.env.frame_size, mind.config.grid());
    let patch = size / grid;
    let corner = grid / 2 * patch;
    let pictures: Vec<u8> = (mind.draw(&alone).iter())
        .flat_map(|frame| cut(frame, size, corner, patch))
        .collect();
    let about = About {
        epoch: mind.epoch,
        frames: frames.len(),
        counts: used.counts().to_vec(),
        alive: used.alive(),
        perplexity: if frames.is_empty() {
            0.0
        } else {
            used.perplexity()
        },
        patch,
    };
    Ok(envelope::seal(&about, &pictures))
}

/// The square of `side` pixels whose upper left corner is at (`corner`, `corner`).
fn cut(frame: &[u8], size: usize, corner: usize, side: usize) -> Vec<u8> {
    let rows = (corner..corner + side).map(|row| (row * size + corner) * 3);
    rows.flat_map(|start| &frame[start..start + side * 3])
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_square_is_cut_out() {
        let frame: Vec<u8> = (0..16).flat_map(|pixel| [pixel; 3]).collect();
        let square: Vec<u8> = cut(&frame, 4, 2, 2).into_iter().step_by(3).collect();
        assert_eq!(square, [10, 11, 14, 15]);
    }
}
