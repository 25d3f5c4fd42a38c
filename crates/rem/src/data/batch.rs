//! Batches as tensors: frames for the tokenizer, token segments for the world model and the controller.

use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::{Rng, RngExt};

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

/// A random shift by up to `most` pixels, to the right and downwards.
pub(crate) fn random_shift(most: usize, rng: &mut impl Rng) -> [i32; 2] {
    let most = i32::try_from(most).expect("a shift is below the size of a frame");
    std::array::from_fn(|_| rng.random_range(-most..=most))
}

/// A frame of `size * size * 3` bytes, shifted to the right and downwards. Pixels of the border fill the gap.
pub(crate) fn shifted(frame: &[u8], size: usize, [right, down]: [i32; 2]) -> Vec<u8> {
    let last = size as i32 - 1;
    let from = |to: usize, by: i32| (to as i32 - by).clamp(0, last) as usize;
    let pixels = (0..size).flat_map(|y| (0..size).map(move |x| (x, y)));
    pixels
        .flat_map(|(x, y)| {
            let pixel = from(y, down) * size + from(x, right);
            frame[3 * pixel..][..3].iter().copied()
        })
        .collect()
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

/// `push_tokens` appends the k tokens of a step; it is called in the order of the steps.
fn columns(
    replay: &Replay,
    segments: &[Segment],
    k: usize,
    mut push_tokens: impl FnMut(StepId, &mut Vec<i64>),
) -> Columns {
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
                push_tokens(id, &mut c.tokens);
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

/// [`DreamStarts`] on the host, in a fifth of the memory or less.
pub(crate) struct HostStarts {
    /// Number of segments, and steps of each.
    batch: usize,
    length: usize,
    /// `[batch, length, K]`
    tokens: Vec<u16>,
    /// `[batch, length]`, like the mask.
    actions: Vec<u8>,
    is_real: Vec<bool>,
}

impl HostStarts {
    /// The same as tensors.
    pub(crate) fn to_device(&self, device: &Device) -> DreamStarts {
        let (batch, length) = (self.batch, self.length);
        let k = self.tokens.len() / (batch * length);
        let tokens: Vec<i64> = self.tokens.iter().map(|t| i64::from(*t)).collect();
        let actions: Vec<i64> = self.actions.iter().map(|a| i64::from(*a)).collect();
        let mask: Vec<f32> = self.is_real.iter().map(|real| f32::from(*real)).collect();
        let actions: Tensor<2, Int> =
            Tensor::from_data(TensorData::new(actions, [batch, length]), device);
        let mask: Tensor<2> = Tensor::from_data(TensorData::new(mask, [batch, length]), device);
        DreamStarts {
            tokens: Tensor::from_data(TensorData::new(tokens, [batch, length, k]), device),
            actions: actions.narrow(1, 0, length - 1),
            mask: mask.narrow(1, 0, length - 1),
        }
    }
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
        let replay = &*self.replay;
        columns(replay, segments, self.tokens_per_obs, |id, out| {
            let tokens = replay.cached_tokens(self.generation, id);
            let tokens = tokens.expect("fill_cache has run");
            out.extend(tokens.iter().map(|t| i64::from(*t)));
        })
    }

    /// As [`Self::gather`], with the frames of each segment shifted by up to `most` pixels. They are not cached.
    fn gather_shifted(&mut self, segments: &[Segment], most: usize, rng: &mut impl Rng) -> Columns {
        let replay = &*self.replay;
        let mut steps: Vec<(StepId, [i32; 2])> = Vec::new();
        for segment in segments {
            let shift = random_shift(most, rng);
            steps.extend(segment.steps(replay).flatten().map(|id| (id, shift)));
        }
        let mut tokens = Vec::new();
        for steps in steps.chunks(ENCODE_BATCH) {
            let size = (replay.frame(steps[0].0).len() / 3).isqrt();
            let images = steps.iter();
            let images = images.map(|(id, shift)| shifted(replay.frame(*id), size, *shift));
            let images: Vec<Vec<u8>> = images.collect();
            let input = frames(images.iter().map(|image| &image[..]), size, self.device);
            tokens.extend(host_tokens(self.tokenizer.encode(input)));
        }
        let mut encoded = tokens.chunks(self.tokens_per_obs);
        columns(replay, segments, self.tokens_per_obs, |_, out| {
            let tokens = encoded.next().expect("tokens of every step");
            out.extend(tokens.iter().map(|t| i64::from(*t)));
        })
    }

    /// The tensors of segments of `length` steps.
    pub fn segments(&mut self, segments: &[Segment], length: usize) -> TokenBatch {
        let columns = self.gather(segments);
        self.tensors(columns, segments.len(), length)
    }

    /// As [`Self::segments`] for training: the frames of each segment are shifted at random by up to `most` pixels, all
    /// equally.
    pub(crate) fn augmented_segments(
        &mut self,
        segments: &[Segment],
        length: usize,
        most: usize,
        rng: &mut impl Rng,
    ) -> TokenBatch {
        let columns = match most {
            0 => self.gather(segments),
            most => self.gather_shifted(segments, most, rng),
        };
        self.tensors(columns, segments.len(), length)
    }

    fn tensors(&self, c: Columns, batch: usize, length: usize) -> TokenBatch {
        let (k, device) = (self.tokens_per_obs, self.device);
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
    pub(crate) fn dream_starts(&mut self, segments: &[Segment], length: usize) -> HostStarts {
        let columns = self.gather(segments);
        HostStarts {
            batch: segments.len(),
            length,
            tokens: columns.tokens.iter().map(|t| *t as u16).collect(),
            actions: columns.actions.iter().map(|a| *a as u8).collect(),
            is_real: columns.mask.iter().map(|real| *real == 1.0).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::env::Outcome;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rem_kernels::Precision;

    /// Red counts the pixels of a 3x3 frame; green and blue are 100 and 200.
    #[test]
    fn shifted_frames_repeat_their_border() {
        let frame: Vec<u8> = (0..9).flat_map(|i| [i, 100, 200]).collect();
        let red = |shift| -> Vec<u8> {
            let shifted = shifted(&frame, 3, shift);
            let colors = shifted.chunks(3).all(|p| p[1..] == [100, 200]);
            assert!(colors && shifted.len() == 27);
            shifted.into_iter().step_by(3).collect()
        };
        assert_eq!(red([0, 0]), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(red([1, 0]), [0, 0, 1, 3, 3, 4, 6, 6, 7]);
        assert_eq!(red([0, -1]), [3, 4, 5, 6, 7, 8, 6, 7, 8]);
        assert_eq!(red([-2, 2]), [2, 2, 2, 2, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn random_shifts_take_every_value_up_to_the_largest() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut seen = std::collections::BTreeSet::new();
        seen.extend((0..500).map(|_| random_shift(2, &mut rng)));
        assert_eq!(seen.len(), 25);
        assert!(seen.iter().flatten().all(|by| by.abs() <= 2));
    }

    /// The frames of a segment are shifted equally and encoded anew; everything else stays. No shift uses the cache.
    #[test]
    fn augmented_segments_have_the_tokens_of_shifted_frames() {
        let config = Config::load("debug", &[]).unwrap();
        let (size, k, device) = (
            config.env.frame_size,
            config.tokens_per_obs(),
            Device::flex(),
        );
        device.seed(1);
        let tokenizer = Tokenizer::new(&config.tokenizer, Precision::F32, &device);
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut replay = Replay::new(size * size * 3, k);
        for step in 0..7u8 {
            let frame: Vec<u8> = (0..size * size * 3).map(|_| rng.random()).collect();
            let over = [Outcome::Running, Outcome::Terminated][usize::from(step == 4)];
            replay.push(&frame, step % 3, f32::from(step), over);
        }
        let segment = |episode, start| Segment {
            episode,
            start,
            length: 3,
        };
        let segments = [segment(0, 0), segment(0, 3), segment(1, 1)];
        let mut source = TokenSource {
            replay: &mut replay,
            tokenizer: &tokenizer,
            generation: 1,
            tokens_per_obs: k,
            device: &device,
        };
        let plain = source.segments(&segments, 3);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let none = source.augmented_segments(&segments, 3, 0, &mut rng);
        assert_eq!(host::ints(none.tokens), host::ints(plain.tokens));
        let batch = source.augmented_segments(&segments, 3, 5, &mut rng);
        assert_eq!(host::ints(batch.actions), host::ints(plain.actions));
        assert_eq!(host::floats(batch.rewards), host::floats(plain.rewards));
        assert_eq!(host::ints(batch.ends), host::ints(plain.ends));
        assert_eq!(host::floats(batch.mask), host::floats(plain.mask));

        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut expected = Vec::new();
        for segment in &segments {
            let shift = random_shift(5, &mut rng);
            for step in segment.steps(&replay) {
                let Some(id) = step else {
                    expected.extend(vec![0; k]);
                    continue;
                };
                let frame = shifted(replay.frame(id), size, shift);
                let frame = frames([&frame[..]].into_iter(), size, &device);
                expected.extend(host::ints(tokenizer.encode(frame)));
            }
        }
        assert_eq!(host::ints(batch.tokens), expected);
    }

    /// The starts of dreams are segments without the last action.
    #[test]
    fn dream_starts_keep_every_value_on_the_host() {
        let config = Config::load("debug", &[]).unwrap();
        let (size, k, device) = (
            config.env.frame_size,
            config.tokens_per_obs(),
            Device::flex(),
        );
        let tokenizer = Tokenizer::new(&config.tokenizer, Precision::F32, &device);
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut replay = Replay::new(size * size * 3, k);
        for step in 0..6u8 {
            let frame: Vec<u8> = (0..size * size * 3).map(|_| rng.random()).collect();
            replay.push(&frame, 1 + step, 0.0, Outcome::Running);
        }
        // The first one is padded by two steps.
        let segments = [-2, 1].map(|start| Segment {
            episode: 0,
            start,
            length: 4,
        });
        let mut source = TokenSource {
            replay: &mut replay,
            tokenizer: &tokenizer,
            generation: 1,
            tokens_per_obs: k,
            device: &device,
        };
        let expected = source.segments(&segments, 4);
        let found = source.dream_starts(&segments, 4).to_device(&device);
        assert_eq!(host::ints(found.tokens), host::ints(expected.tokens));
        assert_eq!(host::ints(found.actions), [0, 0, 1, 2, 3, 4]);
        assert_eq!(host::floats(found.mask), [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
    }

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
