//! Batches as tensors: frames for the tokenizer, token segments for the world model and the controller.

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::data::replay::{Replay, Segment, StepId};
use crate::host;
use crate::model::tokenizer::Tokenizer;
use crate::model::world_model::TokenBatch;

/// Frames per tokenizer call when the token cache is filled.
const ENCODE_BATCH: usize = 128;

/// Converts RGB frames of `size * size * 3` bytes to a tensor in [-1, 1]: `[frames, 3, size, size]`.
///
/// # Panics
/// If a frame has another size.
pub fn frames<'a>(
    frames: impl ExactSizeIterator<Item = &'a [u8]>,
    size: usize,
    device: &Device,
) -> Tensor<4> {
    let (count, area) = (frames.len(), size * size);
    let mut values = Vec::with_capacity(count * 3 * area);
    for frame in frames {
        assert_eq!(frame.len(), 3 * area, "a frame is size * size * 3 bytes");
        for channel in 0..3 {
            let pixels = frame.iter().skip(channel).step_by(3);
            values.extend(pixels.map(|x| f32::from(*x) / 127.5 - 1.0));
        }
    }
    Tensor::from_data(TensorData::new(values, [count, 3, size, size]), device)
}

/// Converts frames in [-1, 1], `[frames, 3, size, size]`, to RGB bytes; values outside are clamped.
pub fn to_rgb(frames: Tensor<4>) -> Vec<Vec<u8>> {
    let [count, _, h, w] = frames.dims();
    let values = host::floats(frames.permute([0, 2, 3, 1]).reshape([count * h * w * 3]));
    let byte = |x: &f32| ((x + 1.0) * 127.5).round().clamp(0.0, 255.0) as u8;
    values
        .chunks(h * w * 3)
        .map(|frame| frame.iter().map(byte).collect())
        .collect()
}

/// Copies tokens, `[frames, K]`, to the host: K tokens per frame, concatenated.
pub fn host_tokens(tokens: Tensor<2, Int>) -> Vec<u16> {
    host::ints(tokens).into_iter().map(|t| t as u16).collect()
}

/// Encodes those steps of the segments whose tokens are not cached yet.
fn fill_cache(
    replay: &mut Replay,
    segments: &[Segment],
    tokenizer: &Tokenizer,
    generation: u64,
    device: &Device,
) {
    let wanted: Vec<StepId> = segments
        .iter()
        .flat_map(|s| s.steps(replay).flatten())
        .collect();
    let missing = replay.uncached(generation, wanted.into_iter());
    for ids in missing.chunks(ENCODE_BATCH) {
        let size = (replay.frame(ids[0]).len() / 3).isqrt();
        let input = frames(ids.iter().map(|id| replay.frame(*id)), size, device);
        let tokens = host_tokens(tokenizer.encode(input));
        let k = tokens.len() / ids.len();
        for (id, tokens) in ids.iter().zip(tokens.chunks(k)) {
            replay.cache_tokens(generation, *id, tokens);
        }
    }
}

/// The steps of all segments, one field per array; zeros where a segment is padded.
struct Columns {
    tokens: Vec<i64>,
    actions: Vec<i64>,
    rewards: Vec<f32>,
    ends: Vec<i64>,
    mask: Vec<f32>,
}

fn columns(replay: &Replay, segments: &[Segment], generation: u64, k: usize) -> Columns {
    let mut c = Columns {
        tokens: vec![],
        actions: vec![],
        rewards: vec![],
        ends: vec![],
        mask: vec![],
    };
    for step in segments.iter().flat_map(|s| s.steps(replay)) {
        match step {
            Some(id) => {
                let tokens = replay
                    .cached_tokens(generation, id)
                    .expect("fill_cache has run");
                c.tokens.extend(tokens.iter().map(|t| i64::from(*t)));
                c.actions.push(i64::from(replay.action(id)));
                c.rewards.push(replay.reward(id));
                c.ends.push(i64::from(replay.terminated(id)));
                c.mask.push(1.0);
            }
            None => {
                c.tokens.extend(std::iter::repeat_n(0, k));
                c.actions.push(0);
                c.rewards.push(0.0);
                c.ends.push(0);
                c.mask.push(0.0);
            }
        }
    }
    c
}

/// Replay segments that dreams start from, padded on the left.
#[derive(Clone, Debug)]
pub struct DreamStarts {
    /// Observation tokens, `[batch, burn_in + 1, K]`. The last observation is the dream's first.
    pub tokens: Tensor<3, Int>,
    /// Actions between the observations, `[batch, burn_in]`.
    pub actions: Tensor<2, Int>,
    /// 1 for real steps, 0 for padding, `[batch, burn_in]`.
    pub mask: Tensor<2>,
}

/// Token batches of a replay, encoded by a tokenizer.
pub struct TokenSource<'a> {
    /// The experience, and the cache of its tokens.
    pub replay: &'a mut Replay,
    /// The tokenizer that encodes frames.
    pub tokenizer: &'a Tokenizer,
    /// Version of the tokenizer's weights: increases whenever they change.
    pub generation: u64,
    /// K.
    pub tokens_per_obs: usize,
    /// The device of the batches.
    pub device: &'a Device,
}

impl TokenSource<'_> {
    fn gather(&mut self, segments: &[Segment]) -> Columns {
        fill_cache(
            self.replay,
            segments,
            self.tokenizer,
            self.generation,
            self.device,
        );
        columns(self.replay, segments, self.generation, self.tokens_per_obs)
    }

    /// The tensors of segments of `length` steps.
    pub fn segments(&mut self, segments: &[Segment], length: usize) -> TokenBatch {
        let c = self.gather(segments);
        let (batch, k, device) = (segments.len(), self.tokens_per_obs, self.device);
        let ints = |v: Vec<i64>| Tensor::from_data(TensorData::new(v, [batch, length]), device);
        let floats = |v: Vec<f32>| Tensor::from_data(TensorData::new(v, [batch, length]), device);
        TokenBatch {
            tokens: Tensor::from_data(TensorData::new(c.tokens, [batch, length, k]), device),
            actions: ints(c.actions),
            rewards: floats(c.rewards),
            ends: ints(c.ends),
            mask: floats(c.mask),
        }
    }

    /// The starts of imagined rollouts from segments of `length = burn_in + 1` steps, padded on the left: the last
    /// observation is the first of the rollout.
    pub(crate) fn dream_starts(&mut self, segments: &[Segment], length: usize) -> DreamStarts {
        let batch = self.segments(segments, length);
        DreamStarts {
            tokens: batch.tokens,
            actions: batch.actions.narrow(1, 0, length - 1),
            mask: batch.mask.narrow(1, 0, length - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_rgb_inverts_frames() {
        let device = Device::flex();
        let rgb: Vec<u8> = (0..2 * 2 * 3).map(|i| i * 20).collect();
        let tensor = frames([&rgb[..]].into_iter(), 2, &device);
        assert_eq!(tensor.dims(), [1, 3, 2, 2]);
        let red: Vec<f32> = tensor
            .clone()
            .narrow(1, 0, 1)
            .reshape([4])
            .try_into_vec_as()
            .unwrap();
        assert!(
            (red[1] - (60.0 / 127.5 - 1.0)).abs() < 1e-6,
            "second pixel's red: {red:?}"
        );
        assert_eq!(to_rgb(tensor), [rgb]);
    }
}
