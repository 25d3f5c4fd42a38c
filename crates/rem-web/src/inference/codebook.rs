//! The codebook: which codes are active, and the mean image patch of each.

use rem::data::replay::archive::Archive;
use rem::model::tokenizer::CodeUsage;
use serde::Serialize;

use super::InferenceAgent;
use crate::error::ApiError;
use crate::message;

/// Replay frames to count codes in, spread evenly over the latest steps.
const FRAMES: usize = 256;
const LATEST_STEPS: usize = 8192;

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
}

/// A message with one image per code: the mean of all patches assigned to it, black if there are none.
pub(crate) fn codebook(agent: &InferenceAgent, archive: &Archive) -> Result<Vec<u8>, ApiError> {
    let frames = archive.latest_frames(LATEST_STEPS, FRAMES)?;
    let vocabulary = agent.config.tokenizer.vocabulary;
    let tokens = agent.tokenize(&frames);
    let mut usage = CodeUsage::new(vocabulary);
    usage.count(&tokens);
    let (size, grid) = (agent.config.env.frame_size, agent.config.grid());
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
        counts: usage.counts().to_vec(),
    };
    let patches = mean_patches(&frames, &tokens, grid, usage.counts());
    Ok(message::encode(&header, &patches))
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
