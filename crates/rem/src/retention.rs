//! Retention: a decaying linear attention with a recurrent state (paper, section retention-preliminaries).
//!
//! Legend: q, k, v are queries, keys and values with the rotation already in q and k; η is the decay of
//! a head; S the state that sums up what went before; D, ξ and ζ the powers of η of the paper's equations.
//! All forms compute the same function: recurrent (token by token), chunkwise and parallel (one chunk,
//! empty state); POP adds the states after every block of a chunk.

use burn::tensor::{Tensor, TensorCreationOptions, TensorData};

use crate::config::DecayRates;

/// η of each head.
#[derive(Clone, Debug, PartialEq)]
pub struct Decay(Vec<f64>);

impl Decay {
    pub fn new(rates: DecayRates, heads: usize) -> Self {
        let rate = |i: usize| match rates {
            DecayRates::LogSpaced => {
                let (first, last) = ((1.0f64 / 32.0).ln(), (1.0f64 / 512.0).ln());
                let step = (last - first) / (heads.max(2) - 1) as f64;
                1.0 - (first + step * i as f64).exp()
            }
            DecayRates::PowersOfTwo => 1.0 - (-5.0 - i as f64).exp2(),
        };
        Self((0..heads).map(rate).collect())
    }

    /// A `[1, heads, rows, columns]` table of η to the power that `power` gives; none means 0.
    fn table(
        &self,
        rows: usize,
        columns: usize,
        like: &TensorCreationOptions,
        power: impl Fn(usize, usize) -> Option<f64>,
    ) -> Tensor<4> {
        let heads = self.0.len();
        let mut values = Vec::with_capacity(heads * rows * columns);
        for eta in &self.0 {
            for i in 0..rows {
                values
                    .extend((0..columns).map(|j| power(i, j).map_or(0.0, |p| eta.powf(p) as f32)));
            }
        }
        Tensor::from_data(
            TensorData::new(values, [1, heads, rows, columns]),
            like.clone(),
        )
    }
}

/// What retention over `tokens` positions needs besides its inputs; depends on sizes only.
#[derive(Clone, Debug)]
pub struct DecayTables {
    /// D: `[1, heads, tokens, tokens]`, η^(n-m) on and below the diagonal.
    mask: Tensor<4>,
    /// ξ: `[1, heads, tokens, 1]`, η^(i+1).
    from_state: Tensor<4>,
    /// ζ: `[1, heads, tokens, 1]`, η^(tokens-i-1).
    to_state: Tensor<4>,
    /// η^tokens: `[1, heads, 1, 1]`.
    whole: Tensor<4>,
}

impl DecayTables {
    pub fn new(decay: &Decay, tokens: usize, like: &TensorCreationOptions) -> Self {
        let causal = |n: usize, m: usize| (n >= m).then(|| (n - m) as f64);
        Self {
            mask: decay.table(tokens, tokens, like, causal),
            from_state: decay.table(tokens, 1, like, |i, _| Some((i + 1) as f64)),
            to_state: decay.table(tokens, 1, like, |i, _| Some((tokens - i - 1) as f64)),
            whole: decay.table(1, 1, like, |_, _| Some(tokens as f64)),
        }
    }
}

/// The outputs of one chunk, given the state before it (Eq. retnet-chunkwise-output).
/// # Shapes
/// - `q, k, v`: `[batch, heads, tokens, head_dim]`; `state`: `[batch, heads, head_dim, head_dim]`
pub fn outputs(
    q: Tensor<4>,
    k: Tensor<4>,
    v: Tensor<4>,
    state: Option<&Tensor<4>>,
    tables: &DecayTables,
) -> Tensor<4> {
    let inner = (q.clone().matmul(k.transpose()) * tables.mask.clone()).matmul(v);
    match state {
        Some(state) => inner + q.matmul(state.clone()) * tables.from_state.clone(),
        None => inner,
    }
}

/// The state after a chunk (Eq. retnet-chunkwise-state-update).
/// # Shapes
/// - as in [`outputs`]
pub fn next_state(
    k: Tensor<4>,
    v: Tensor<4>,
    state: Option<&Tensor<4>>,
    tables: &DecayTables,
) -> Tensor<4> {
    let inner = (k * tables.to_state.clone()).transpose().matmul(v);
    match state {
        Some(state) => inner + state.clone() * tables.whole.clone(),
        None => inner,
    }
}

/// The states before each of a chunk's blocks, and the state after the last
/// (Eqs. pop-pseudo-state, pop-state-from-pseudo); no state before the first block is a zero state.
/// # Shapes
/// - `k, v`: `[batch, heads, blocks * block_len, head_dim]`, with `tables` of `block_len`
/// - each state: `[batch, heads, head_dim, head_dim]`
pub fn block_states(
    k: Tensor<4>,
    v: Tensor<4>,
    state: Option<&Tensor<4>>,
    blocks: usize,
    tables: &DecayTables,
) -> (Vec<Tensor<4>>, Tensor<4>) {
    let [batch, heads, tokens, dim] = k.dims();
    let len = tokens / blocks;
    assert_eq!(blocks * len, tokens, "a chunk holds whole blocks");
    // [batch, heads, blocks, block_len, head_dim]
    let k: Tensor<5> = k.reshape([batch, heads, blocks, len, dim]);
    let v: Tensor<5> = v.reshape([batch, heads, blocks, len, dim]);
    let weights: Tensor<5> = tables.to_state.clone().unsqueeze_dim(2);
    let pseudo = (k * weights).transpose().matmul(v);

    let zero = || Tensor::zeros([batch, heads, dim, dim], (&pseudo.device(), pseudo.dtype()));
    let mut now = state.cloned().unwrap_or_else(zero);
    let mut before = Vec::with_capacity(blocks);
    for j in 0..blocks {
        before.push(now.clone());
        let own: Tensor<4> = pseudo.clone().narrow(2, j, 1).squeeze_dim(2);
        now = own + now * tables.whole.clone();
    }
    (before, now)
}

/// Rotations by position: neighbouring channels form a pair that turns by `position * θ`.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// `[1, 1, tokens, head_dim]`
    cos: Tensor<4>,
    sin: Tensor<4>,
    /// `[head_dim, head_dim]`: maps a pair (a, b) to (-b, a).
    quarter_turn: Tensor<2>,
}

impl Rotation {
    /// Rotations for the given positions.
    pub fn new(
        positions: impl ExactSizeIterator<Item = usize>,
        head_dim: usize,
        like: &TensorCreationOptions,
    ) -> Self {
        let tokens = positions.len();
        let pairs = head_dim / 2;
        // θ = 10000^(-linspace(0, 1, pairs)), rounded to f32 at each step as in the published agents:
        // hundreds of positions on, an angle of other rounding shows in the fourth decimal.
        let step = 1.0 / (pairs.max(2) - 1) as f32;
        let theta = |pair: usize| {
            let fraction = if pair < pairs / 2 {
                step * pair as f32
            } else {
                1.0 - step * (pairs - 1 - pair) as f32
            };
            1.0 / (10000f64.powf(f64::from(fraction)) as f32)
        };
        let angles: Vec<f32> = positions
            .flat_map(|p| (0..head_dim).map(move |c| p as f32 * theta(c / 2)))
            .collect();
        let table = |f: fn(f32) -> f32| {
            let values: Vec<f32> = angles.iter().map(|a| f(*a)).collect();
            Tensor::from_data(
                TensorData::new(values, [1, 1, tokens, head_dim]),
                like.clone(),
            )
        };
        let mut turn = vec![0f32; head_dim * head_dim];
        for even in (0..head_dim).step_by(2) {
            turn[(even + 1) * head_dim + even] = -1.0;
            turn[even * head_dim + even + 1] = 1.0;
        }
        Self {
            cos: table(f32::cos),
            sin: table(f32::sin),
            quarter_turn: Tensor::from_data(
                TensorData::new(turn, [head_dim, head_dim]),
                like.clone(),
            ),
        }
    }

    /// # Shapes
    /// - `x`: `[batch, heads, tokens, head_dim]`
    pub fn apply(&self, x: Tensor<4>) -> Tensor<4> {
        let shape = x.dims();
        let [batch, heads, tokens, dim] = shape;
        // One product over all rows: [batch * heads * tokens, head_dim]
        let rows: Tensor<2> = x.clone().reshape([batch * heads * tokens, dim]);
        let turned = rows.matmul(self.quarter_turn.clone()).reshape(shape);
        x * self.cos.clone() + turned * self.sin.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn decay_rates_of_code_and_paper() {
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        let paper = Decay::new(DecayRates::PowersOfTwo, 3);
        assert!(close(&paper.0, &[31.0 / 32.0, 63.0 / 64.0, 127.0 / 128.0]));
        let code = Decay::new(DecayRates::LogSpaced, 3);
        assert!(close(
            &code.0,
            &[31.0 / 32.0, 1.0 - 1.0 / 128.0, 511.0 / 512.0]
        ));
    }

    #[test]
    fn rotation_turns_neighbouring_channels() {
        let device = Device::flex();
        let x = Tensor::<1>::from_floats([1.0, 0.0, 0.0, 1.0], &device).reshape([1, 1, 1, 4]);
        let y: Vec<f32> = Rotation::new(2..3, 4, &TensorCreationOptions::new(device))
            .apply(x)
            .try_into_vec_as()
            .unwrap();
        let (a, b) = (2.0f32, 2.0e-4f32);
        let expected = [a.cos(), a.sin(), -b.sin(), b.cos()];
        assert!(
            y.iter().zip(expected).all(|(y, e)| (y - e).abs() < 1e-6),
            "{y:?}"
        );
    }
}
