//! The codebook: which codes are active, the mean image patch of each, and where it occurs.

use std::collections::BTreeSet;

use rem::data::replay::archive::Archive;
use rem::model::tokenizer::CodeUsage;
use serde::Serialize;

use super::InferenceAgent;
use crate::error::ApiError;
use crate::message;

/// Replay frames to count codes in, spread evenly over the latest steps.
const FRAMES: usize = 256;
const LATEST_STEPS: usize = 8192;

/// Most frames that show where a code occurs.
const OCCURRENCES: usize = 4;

#[derive(Serialize)]
struct Header {
    epoch: u32,
    /// Number of replay frames that codes were counted in.
    frames: usize,
    counts: Vec<u64>,
    active: usize,
    perplexity: f64,
    /// Height and width of a patch in pixels.
    patch_size: usize,
    /// Height and width of a frame in pixels and in tokens.
    frame_size: usize,
    grid: usize,
    /// By code, some frames that it occurs in.
    occurrences: Vec<Vec<Occurrence>>,
}

/// The occurrences of a code in a frame.
#[derive(Debug, PartialEq, Serialize)]
struct Occurrence {
    /// The index of the frame in the message.
    frame: usize,
    /// The positions of the code in the frame's tokens.
    positions: Vec<usize>,
}

/// A message with one image per code, the mean of all patches assigned to it, black if there are none. The frames of
/// [`Header::occurrences`] follow.
pub(crate) fn codebook(agent: &InferenceAgent, archive: &Archive) -> Result<Vec<u8>, ApiError> {
    let frames = archive.latest_frames(LATEST_STEPS, FRAMES)?;
    let vocabulary = agent.config.tokenizer.vocabulary;
    let tokens = agent.tokenize(&frames);
    let mut usage = CodeUsage::new(vocabulary);
    usage.count(&tokens);
    let (size, grid) = (agent.config.env.frame_size, agent.config.grid());
    let (occurrences, shown) = occurrences(&tokens, grid * grid, vocabulary);
    let header = Header {
        epoch: agent.epoch,
        frames: frames.len(),
        active: usage.active(),
        perplexity: if frames.is_empty() {
            0.0
        } else {
            usage.perplexity()
        },
        patch_size: size / grid,
        frame_size: size,
        grid,
        occurrences,
        counts: usage.counts().to_vec(),
    };
    let patches = mean_patches(&frames, &tokens, grid, usage.counts());
    let shown = shown.into_iter().flat_map(|frame| frames[frame].iter());
    let payload: Vec<u8> = patches.iter().chain(shown).copied().collect();
    Ok(message::encode(&header, &payload))
}

/// Up to [`OCCURRENCES`] frames for each code, spread evenly over the frames that have it, and the frames to show.
fn occurrences(
    tokens: &[u16],
    tokens_per_frame: usize,
    vocabulary: usize,
) -> (Vec<Vec<Occurrence>>, Vec<usize>) {
    let frames: Vec<&[u16]> = tokens.chunks(tokens_per_frame).collect();
    let mut frames_of = vec![Vec::new(); vocabulary];
    for (frame, tokens) in frames.iter().enumerate() {
        for code in tokens.iter().collect::<BTreeSet<_>>() {
            frames_of[usize::from(*code)].push(frame);
        }
    }
    for found in &mut frames_of {
        let (count, taken) = (found.len(), found.len().min(OCCURRENCES));
        *found = (0..taken).map(|i| found[i * count / taken]).collect();
    }
    let shown: BTreeSet<usize> = frames_of.iter().flatten().copied().collect();
    let shown: Vec<usize> = shown.into_iter().collect();
    let occurrence = |code: usize, frame: usize| Occurrence {
        frame: shown.binary_search(&frame).expect("it is shown"),
        positions: (0..tokens_per_frame)
            .filter(|position| usize::from(frames[frame][*position]) == code)
            .collect(),
    };
    let of_code = |(code, found): (usize, &Vec<usize>)| {
        found.iter().map(|frame| occurrence(code, *frame)).collect()
    };
    (frames_of.iter().enumerate().map(of_code).collect(), shown)
}

/// The mean patch of each code, concatenated. A frame has `grid * grid` square patches, one per token.
fn mean_patches(frames: &[Vec<u8>], tokens: &[u16], grid: usize, counts: &[u64]) -> Vec<u8> {
    let Some(first) = frames.first() else {
        return Vec::new();
    };
    let size = (first.len() / 3).isqrt();
    let patch = size / grid;
    let bytes = patch * patch * 3;
    let mut sums = vec![0u64; counts.len() * bytes];
    for (frame, tokens) in frames.iter().zip(tokens.chunks(grid * grid)) {
        for (position, code) in tokens.iter().enumerate() {
            let sum = &mut sums[usize::from(*code) * bytes..][..bytes];
            let (top, left) = (position / grid * patch, position % grid * patch);
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
    fn occurrences_are_spread_over_the_frames_with_the_code() {
        // Code 0 is in all of twelve frames of two tokens, code 1 only in frame 7, code 2 in none.
        let tokens: Vec<u16> = (0..12)
            .flat_map(|frame| [0, u16::from(frame == 7)])
            .collect();
        let (found, shown) = occurrences(&tokens, 2, 3);
        assert_eq!(shown, [0, 3, 6, 7, 9]);
        let frames = |code: usize| -> Vec<usize> {
            found[code].iter().map(|found| shown[found.frame]).collect()
        };
        assert_eq!(frames(0), [0, 3, 6, 9]);
        assert_eq!(frames(1), [7]);
        assert_eq!(found[1][0].positions, [1]);
        assert_eq!(found[0][0].positions, [0, 1]);
        assert!(found[2].is_empty());
    }

    #[test]
    fn the_image_of_a_code_is_the_mean_of_its_patches() {
        // Two frames of 2x2 pixels, one pixel per token.
        let frame = |values: [u8; 4]| values.iter().flat_map(|value| [*value; 3]).collect();
        let frames = [frame([10, 20, 30, 40]), frame([50, 60, 70, 80])];
        let tokens = [0, 1, 0, 1, 0, 1, 1, 1];
        let patches = mean_patches(&frames, &tokens, 2, &[3, 5, 0]);
        let gray: Vec<u8> = patches.into_iter().step_by(3).collect();
        assert_eq!(gray, [30, 54, 0]);
        assert!(mean_patches(&[], &[], 2, &[0]).is_empty());
    }
}
