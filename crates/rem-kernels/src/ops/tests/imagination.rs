//! Sublayers over single blocks and tokens, from states and caches.

use super::attention::{attention_inputs, empty_cache, rotary};
use super::sublayers::{retention_parameters, retention_shapes, tables};
use super::*;
use crate::backend::flex::FlexTensor;
use crate::cpu::dropout::Dropout;
use crate::ops::SublayerMode;
use crate::ops::attention::{self, AttentionOps, CachedSizes};
use crate::ops::retention::{
    self, RetentionOps, RetentionParameters, RetentionSizes, RetentionTables,
};

/// Panics unless the norm of the difference is within `tolerance` of the norm.
fn assert_norms_close(found: FlexTensor, expected: FlexTensor, tolerance: f32, what: &str) {
    let (found, expected) = (values(found), values(expected));
    let norm = |x: &mut dyn Iterator<Item = f32>| x.map(|x| x * x).sum::<f32>().sqrt();
    let apart = norm(&mut found.iter().zip(&expected).map(|(a, b)| a - b));
    let size = norm(&mut expected.iter().copied());
    assert!(apart <= tolerance * size, "{what}: {apart} of {size}");
}

/// Blocks, single tokens and predictions from a state, and attention over a cache. Rounding to bfloat16 would be off by
/// about 4e-3.
#[test]
fn imagination_rounds_as_the_reference() {
    let (batch, heads, dim) = (3, 2, 6);
    let width = heads * dim;
    let mode = SublayerMode {
        dropout: Dropout::NONE,
        precision: Precision::Mixed,
    };
    let sizes = |tokens: usize, predicted: usize| RetentionSizes {
        batch,
        heads,
        tokens,
        chunk: tokens.max(1),
        first_predicted: 0,
        predicted,
        block_tokens: 5 * predicted,
        shared: false,
        last_only: false,
    };
    let leaves = |rows: usize| retention_shapes(rows, width).into_iter().zip(1..);
    let inputs = |rows: usize| leaves(rows).map(|(shape, seed)| leaf(&shape, seed));
    let flex = |x: Tensor| x.into_primitive();
    let parameters = || {
        let p = retention_parameters::<Ad>(&mut inputs(1).skip(1));
        RetentionParameters::<Flex> {
            gamma: flex(p.gamma),
            beta: flex(p.beta),
            query_weight: flex(p.query_weight),
            query_bias: flex(p.query_bias),
            key_weight: flex(p.key_weight),
            key_bias: flex(p.key_bias),
            value_weight: flex(p.value_weight),
            value_bias: flex(p.value_bias),
            gate_weight: flex(p.gate_weight),
            gate_bias: flex(p.gate_bias),
            out_weight: flex(p.out_weight),
            out_bias: flex(p.out_bias),
        }
    };
    let state = || flex(leaf(&[batch, heads, dim, dim], 70));
    let flex_tables = |s: RetentionSizes| {
        let t = tables(s, dim);
        RetentionTables::<Flex> {
            cos: flex(t.cos),
            sin: flex(t.sin),
            mask: flex(t.mask),
            powers: flex(t.powers),
        }
    };
    for tokens in [6, 1] {
        let s = sizes(tokens, 0);
        let x = || flex(inputs(batch * tokens).next().unwrap());
        let start = retention::InitialState::Given(state());
        let (y, last) =
            Flex::retention_update_state(x(), parameters(), flex_tables(s), start, s, mode);
        let (expected, expected_last) =
            retention::reference::<Flex>(x(), parameters(), flex_tables(s), Some(state()), s, mode);
        assert_norms_close(y, expected, 3e-4, &format!("{tokens} tokens"));
        let what = format!("the state after {tokens} tokens");
        assert_norms_close(last, expected_last.unwrap(), 3e-4, &what);
    }
    let s = sizes(0, 1);
    let x = || flex(inputs(batch * 5).next().unwrap());
    let y = Flex::retention_predict(x(), parameters(), flex_tables(s), state(), s, mode);
    let expected =
        retention::reference::<Flex>(x(), parameters(), flex_tables(s), Some(state()), s, mode);
    assert_norms_close(y, expected.0, 3e-4, "predictions");

    for (past, tokens) in [(0, 7), (7, 20)] {
        let sizes = CachedSizes { batch, heads, past };
        let positions = || rotary(past, tokens, dim);
        let inputs = || attention_inputs(batch * tokens, width, 100);
        let [cache, reference_cache] = [true, false].map(|tuned| {
            let cache = empty_cache(batch, heads, 27);
            if past == 0 {
                return cache;
            }
            let (x, p) = attention_inputs(batch * past, width, 101);
            let (sizes, positions) = (CachedSizes { past: 0, ..sizes }, rotary(0, past, dim));
            match tuned {
                true => Flex::attention_cached(x, p, positions, cache, sizes, mode).1,
                false => attention::reference_cached::<Flex>(x, p, positions, cache, sizes, mode).1,
            }
        });
        let (x, p) = inputs();
        let y = Flex::attention_predict(x, p, positions(), cache.clone(), sizes, mode);
        let (x, p) = inputs();
        let same = reference_cache.clone();
        let expected = attention::reference_predict::<Flex>(x, p, positions(), same, sizes, mode);
        assert_norms_close(y, expected, 3e-4, &format!("{tokens} predictions"));
        let (x, p) = inputs();
        let (y, _) = Flex::attention_cached(x, p, positions(), cache, sizes, mode);
        let (x, p) = inputs();
        let (expected, _) =
            attention::reference_cached::<Flex>(x, p, positions(), reference_cache, sizes, mode);
        assert_norms_close(y, expected, 3e-4, &format!("{tokens} tokens over a cache"));
    }
}
