//! Every network and both kinds of embeddings reduce the world model's loss on a fixed batch.

use burn::tensor::{Device, Distribution, Int, Tensor};
use rem::config::Config;
use rem::model::world_model::{TokenBatch, WorldModel, WorldModelSizes};
use rem::train::optimizer::{AdamW, DecayGroup};
use rem_kernels::Precision;

#[test]
fn every_network_overfits_a_batch() {
    for set in [
        &["world_model.architecture=pop"][..],
        &["world_model.architecture=pop", "world_model.embeddings=own"],
        &["world_model.architecture=retnet"],
        &["world_model.architecture=pop_attention"],
        &["world_model.architecture=transformer"],
        &[
            "world_model.architecture=transformer",
            "world_model.embeddings=own",
        ],
    ] {
        let set: Vec<String> = set.iter().map(|s| s.to_string()).collect();
        let config = Config::load("debug", &set).unwrap();
        let device = Device::flex().autodiff();
        let sizes = WorldModelSizes::of(&config, 3);
        let mut model = WorldModel::new(&config.world_model, sizes, Precision::F32, &device);
        let inner = Device::flex();
        let (batch, steps, k) = (2, config.train.horizon, sizes.tokens_per_obs);
        let ints = |count: usize, below: i64| {
            let numbers = Tensor::<1, Int>::arange(0..count as i64, &inner);
            (numbers.clone() * numbers).remainder_scalar(below)
        };
        let segments = TokenBatch {
            tokens: ints(batch * steps * k, 11).reshape([batch, steps, k]),
            actions: ints(batch * steps, 3).reshape([batch, steps]),
            rewards: ints(batch * steps, 2).float().reshape([batch, steps]),
            ends: Tensor::zeros([batch, steps], &inner),
            mask: Tensor::ones([batch, steps], &inner),
        };
        let normal = Distribution::Normal(0.0, 1.0);
        let codes = Tensor::random([sizes.vocabulary, sizes.width], normal, &inner);
        let mut optimizer = AdamW::new(
            &config.world_model.optimizer,
            &config.train,
            DecayGroup::WeightMatrices,
        );
        let mut losses = Vec::new();
        // A Transformer starts with small weights, so the first steps change little.
        for step in 0..150 {
            let loss = model.losses(&codes, &segments, step).total();
            losses.push(loss.clone().inner().into_scalar::<f32>());
            model = optimizer.step(model, &loss).unwrap().0;
        }
        assert!(losses[149] < 0.6 * losses[0], "{set:?}: {losses:?}");
    }
}
