//! An ensemble of heads that predict observation tokens from detached outputs; where they disagree, the world model knows
//! little (Sekar et al. 2020; Simulus).

use burn::tensor::activation::log_softmax;
use burn::tensor::{Int, Tensor};
use rem_kernels::cross_entropy;

use super::Head;

/// Below any probability that matters, so that its logarithm is finite.
const TINY: f64 = 1e-30;

/// The cross-entropy of tokens, given detached outputs. Each head learns from its own share of the rows, so that heads
/// differ by more than their initial weights: `[rows, width]`, `[rows]` -> `[rows]`. `None` without heads.
pub(super) fn losses(
    heads: &[Head],
    outputs: Tensor<2>,
    tokens: Tensor<1, Int>,
) -> Option<Tensor<1>> {
    let outputs = outputs.detach();
    let [rows, _] = outputs.dims();
    let share = rows.div_ceil(heads.len().max(1));
    let of_head = |(i, head): (usize, &Head)| {
        let first = (i * share).min(rows);
        let count = share.min(rows - first);
        (count > 0).then(|| {
            let logits = head.forward(outputs.clone().narrow(0, first, count));
            cross_entropy(logits, tokens.clone().narrow(0, first, count))
        })
    };
    let losses: Vec<_> = heads.iter().enumerate().filter_map(of_head).collect();
    (!losses.is_empty()).then(|| Tensor::cat(losses, 0))
}

/// The Jensen-Shannon divergence of the heads' predictions, in nats, as a mean over the K tokens of each observation:
/// `[batch, K, width]` -> `[batch]`. `None` without heads.
pub(super) fn disagreement(heads: &[Head], outputs: &Tensor<3>) -> Option<Tensor<1>> {
    let [batch, k, width] = outputs.dims();
    let rows: Tensor<2> = outputs.clone().reshape([batch * k, width]);
    let logits = heads.iter().map(|head| head.forward(rows.clone()));
    let each = divergence(logits)?;
    Some(each.reshape([batch, k]).mean_dim(1).reshape([batch]))
}

/// H(mean) - mean(H) of distributions, given by their logits: each `[rows, classes]` -> `[rows]`.
fn divergence(logits: impl ExactSizeIterator<Item = Tensor<2>>) -> Option<Tensor<1>> {
    let count = logits.len() as f64;
    let entropy = |p: Tensor<2>, log: Tensor<2>| (p * log).sum_dim(1).neg();
    let sums = logits
        .map(|logits| {
            let log = log_softmax(logits, 1);
            let p = log.clone().exp();
            (p.clone(), entropy(p, log))
        })
        .reduce(|(p, h), (next_p, next_h)| (p + next_p, h + next_h));
    let (p, entropies) = sums?;
    let mean = p.div_scalar(count);
    let of_mean = entropy(mean.clone(), mean.clamp_min(TINY).log());
    let [rows, _] = of_mean.dims();
    Some((of_mean - entropies.div_scalar(count)).reshape([rows]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host;
    use burn::tensor::Device;

    fn logits<const N: usize>(p: [[f32; 3]; N]) -> Tensor<2> {
        let log = p.map(|row| row.map(|p| p.max(1e-30).ln()));
        Tensor::from_floats(log, &Device::flex())
    }

    /// ```python
    /// import numpy as np
    /// a, b = np.array([0.7, 0.2, 0.1]), np.array([0.1, 0.6, 0.3])
    /// h = lambda p: -(p * np.log(p)).sum()
    /// print(h((a + b) / 2) - (h(a) + h(b)) / 2)
    /// ```
    #[test]
    fn divergence_matches_numpy() {
        let a = logits([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [1.0, 0.0, 0.0]]);
        let b = logits([[0.1, 0.6, 0.3], [0.7, 0.2, 0.1], [0.0, 1.0, 0.0]]);
        let found = host::floats(divergence([a, b].into_iter()).unwrap());
        // Equal distributions agree; those without a common class differ by ln 2.
        for (found, expected) in found.into_iter().zip([0.20503803, 0.0, 2f32.ln()]) {
            assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
        }
        assert!(divergence([].into_iter()).is_none());
    }

    /// Five rows for two heads: the first has three, the second two. The outputs get no gradient.
    #[test]
    fn each_head_learns_from_its_share() {
        let device = Device::flex().autodiff();
        device.seed(1);
        let heads: Vec<Head> = (0..2)
            .map(|_| Head::new(4, 3, rem_kernels::Precision::F32, &device))
            .collect();
        let normal = burn::tensor::Distribution::Normal(0.0, 1.0);
        let outputs = Tensor::<2>::random([5, 4], normal, &device).require_grad();
        let tokens = Tensor::from_ints([0, 2, 1, 1, 0], &device);
        let found = losses(&heads, outputs.clone(), tokens.clone()).unwrap();
        let alone = |head: &Head, first, count| {
            let logits = head.forward(outputs.clone().narrow(0, first, count));
            host::floats(cross_entropy(logits, tokens.clone().narrow(0, first, count)).inner())
        };
        let expected = [alone(&heads[0], 0, 3), alone(&heads[1], 3, 2)].concat();
        assert_eq!(host::floats(found.clone().inner()), expected);
        let gradients = found.sum().backward();
        assert!(outputs.grad(&gradients).is_none());
        let weights = heads.iter().map(|head| head.out.weight.val());
        assert!(weights.clone().all(|w| w.grad(&gradients).is_some()));
        assert!(losses(&[], outputs, tokens).is_none());
    }
}
