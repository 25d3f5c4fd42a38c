//! Steps with and without a loss.

use super::*;
use crate::config::Config;

/// The losses on `real` steps followed by padding, all with reward 1 and an end.
fn losses(set: &[String], real: usize) -> [f32; 3] {
    let config = Config::load("debug", set).unwrap();
    let sizes = WorldModelSizes {
        tokens_per_obs: 4,
        ..WorldModelSizes::of(&config, 2)
    };
    let device = Device::flex();
    let model = WorldModel::new(&config.world_model, sizes, Precision::F32, &device);
    let steps = 4;
    let mask: Vec<f32> = (0..steps).map(|t| f32::from(t < real)).collect();
    let batch = TokenBatch {
        tokens: Tensor::zeros([1, steps, 4], &device),
        actions: Tensor::zeros([1, steps], &device),
        rewards: Tensor::ones([1, steps], &device),
        ends: Tensor::ones([1, steps], &device),
        mask: Tensor::<1>::from_floats(&mask[..], &device).reshape([1, steps]),
    };
    let codes = Tensor::ones([sizes.vocabulary, sizes.width], &device);
    let l = model.losses(&codes, &batch, 0);
    [l.observations, l.rewards, l.ends].map(|t| t.into_scalar())
}

fn overrides(context: usize, reward_loss_start: &str) -> [String; 2] {
    [
        format!("world_model.context={context}"),
        format!("world_model.reward_loss_start={reward_loss_start}"),
    ]
}

#[test]
fn padded_and_context_steps_carry_no_loss() {
    assert_eq!(losses(&overrides(1, "after_context"), 1), [0.0; 3]);
    assert_eq!(losses(&overrides(2, "after_context"), 2), [0.0; 3]);
    let learned = losses(&overrides(1, "after_context"), 2);
    assert!(learned.iter().all(|l| *l > 0.0));
}

#[test]
fn from_context_adds_the_reward_loss_of_a_dreams_first_step() {
    for context in [1, 2] {
        let set = overrides(context, "from_context");
        let [observations, rewards, ends] = losses(&set, context);
        assert_eq!(observations, 0.0);
        assert!(rewards > 0.0 && ends > 0.0);
        assert_eq!(losses(&set, context - 1), [0.0; 3]);
    }
}

/// POP predicts even the first observation. Token by token, its first token has no prediction.
#[test]
fn every_step_has_all_losses() {
    for architecture in ["pop", "retnet", "transformer"] {
        let set = [
            "world_model.loss_start=every_step".to_string(),
            format!("world_model.architecture={architecture}"),
        ];
        let [observations, rewards, ends] = losses(&set, 1);
        assert!(observations > 0.0 && rewards > 0.0 && ends > 0.0);
        assert_eq!(losses(&set, 0), [0.0; 3]);
    }
}

/// The loss on a segment of one observation is the mean cross-entropy of its predicted tokens.
#[test]
fn the_first_observation_has_the_loss_of_its_predicted_tokens() {
    let device = Device::flex();
    for (architecture, first_token) in [("pop", 0), ("retnet", 1), ("transformer", 1)] {
        let set = [
            "world_model.loss_start=every_step".to_string(),
            format!("world_model.architecture={architecture}"),
        ];
        let config = Config::load("debug", &set).unwrap();
        let sizes = WorldModelSizes {
            tokens_per_obs: 4,
            ..WorldModelSizes::of(&config, 2)
        };
        let model = WorldModel::new(&config.world_model, sizes, Precision::F32, &device);
        let model = model.without_dropout();
        let codes = Tensor::random(
            [sizes.vocabulary, sizes.width],
            burn::tensor::Distribution::Normal(0.0, 1.0),
            &device,
        );
        let tokens = Tensor::<1, Int>::from_ints([3, 1, 4, 1], &device);
        let batch = TokenBatch {
            tokens: tokens.clone().reshape([1, 1, 4]),
            actions: Tensor::zeros([1, 1], &device),
            rewards: Tensor::zeros([1, 1], &device),
            ends: Tensor::zeros([1, 1], &device),
            mask: Tensor::ones([1, 1], &device),
        };
        let p = model.forward(
            &codes,
            batch.tokens.clone(),
            batch.actions.clone(),
            0,
            Dropout::NONE,
        );
        let logits: Tensor<2> = p.observations.reshape([4, sizes.vocabulary]);
        let log = burn::tensor::activation::log_softmax(logits, 1);
        let each: Vec<f32> = (log.gather(1, tokens.reshape([4, 1])).neg())
            .reshape([4])
            .try_into_vec_as()
            .unwrap();
        let predicted = &each[first_token..];
        let expected = predicted.iter().sum::<f32>() / predicted.len() as f32;
        let found: f32 = (model.losses(&codes, &batch, 0).observations).into_scalar();
        assert!(
            (found - expected).abs() < 1e-5,
            "{architecture}: {found}, {expected}"
        );
    }
}

#[test]
fn loss_start_adds_losses_within_the_context() {
    let set = ["world_model.context=3", "world_model.loss_start=1"].map(String::from);
    assert!(losses(&set, 2).iter().all(|l| *l > 0.0));
    assert_eq!(losses(&set[..1], 3), [0.0; 3]);
}

/// Rewards and ends read the prediction of the observation after their step. The one after a segment is not predicted.
#[test]
fn heads_on_predicted_observations_have_losses_up_to_the_last_step_but_one() {
    let head = "world_model.reward_head_input=predicted_observation".to_string();
    let first_loss = |reward_loss_start: &str| {
        let [context, start] = overrides(2, reward_loss_start);
        let set = [context, start, head.clone()];
        [0, 1, 2, 3, 4].map(|real| losses(&set, real)[1..].iter().all(|l| *l > 0.0))
    };
    // Steps 1 and 2 of 4; step 2 of 4.
    let found = first_loss("from_context");
    assert_eq!(found, [false, false, true, true, true]);
    let found = first_loss("after_context");
    assert_eq!(found, [false, false, false, true, true]);
    let counts = |set: &[String]| {
        let config = Config::load("debug", set).unwrap();
        let sizes = WorldModelSizes::of(&config, 2);
        let device = Device::flex();
        let model = WorldModel::new(&config.world_model, sizes, Precision::F32, &device);
        let k = sizes.tokens_per_obs;
        let batch = TokenBatch {
            tokens: Tensor::zeros([3, 4, k], &device),
            actions: Tensor::zeros([3, 4], &device),
            rewards: Tensor::zeros([3, 4], &device),
            ends: Tensor::zeros([3, 4], &device),
            mask: Tensor::ones([3, 4], &device),
        };
        model.loss_steps(&batch)
    };
    let [context, start] = overrides(2, "from_context");
    assert_eq!(counts(&[context.clone(), start.clone()]), [6.0, 9.0, 9.0]);
    assert_eq!(counts(&[context, start, head.clone()]), [6.0, 6.0, 6.0]);
    let every_step = "world_model.loss_start=every_step".to_string();
    assert_eq!(counts(&[every_step, head]), [12.0, 9.0, 9.0]);
}

/// The mean over segments with the same number of steps is the loss of the batch; padding does not count.
#[test]
fn losses_by_segment_are_those_of_each_segment_alone() {
    let config = Config::load("debug", &overrides(1, "from_context")).unwrap();
    let sizes = WorldModelSizes {
        tokens_per_obs: 4,
        ..WorldModelSizes::of(&config, 2)
    };
    let device = Device::flex();
    let model = WorldModel::new(&config.world_model, sizes, Precision::F32, &device);
    let model = model.without_dropout();
    let codes = Tensor::random(
        [sizes.vocabulary, sizes.width],
        burn::tensor::Distribution::Normal(0.0, 1.0),
        &device,
    );
    let batch = TokenBatch {
        tokens: Tensor::<1, Int>::arange(0..36, &device)
            .remainder_scalar(7)
            .reshape([3, 3, 4]),
        actions: Tensor::<1, Int>::from_ints([0, 1, 0, 1, 1, 1, 0, 0, 1], &device).reshape([3, 3]),
        rewards: Tensor::<2>::from_floats([[0.0, 1.0, 0.0], [1.0, 1.0, -1.0], [0.0; 3]], &device),
        ends: Tensor::zeros([3, 3], &device),
        mask: Tensor::<2>::from_floats([[1.0; 3], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]], &device),
    };
    let found: Vec<f32> = (model.losses(&codes, &batch, 0).by_segment())
        .try_into_vec_as()
        .unwrap();
    for (i, found) in found.into_iter().enumerate() {
        let alone = TokenBatch {
            tokens: batch.tokens.clone().narrow(0, i, 1),
            actions: batch.actions.clone().narrow(0, i, 1),
            rewards: batch.rewards.clone().narrow(0, i, 1),
            ends: batch.ends.clone().narrow(0, i, 1),
            mask: batch.mask.clone().narrow(0, i, 1),
        };
        let losses = model.losses(&codes, &alone, 0);
        let expected: f32 = (losses.observations + losses.rewards).into_scalar();
        assert!((found - expected).abs() < 1e-4, "{i}: {found}, {expected}");
    }
}

/// With nearly everything dropped, the sublayers add nothing, and what is left are the embeddings: neither they nor the
/// hidden activations of the heads are dropped.
#[test]
fn dropout_spares_embeddings_and_heads() {
    let config = Config::load("debug", &[]).unwrap();
    let sizes = WorldModelSizes {
        tokens_per_obs: 4,
        ..WorldModelSizes::of(&config, 2)
    };
    let device = Device::flex();
    device.seed(1);
    let model = WorldModel::new(&config.world_model, sizes, Precision::F32, &device);
    let codes = Tensor::ones([sizes.vocabulary, sizes.width], &device);
    let actions = Tensor::<1, Int>::from_ints([0, 1, 1, 0, 1], &device).reshape([1, 5]);
    let tokens = Tensor::zeros([1, 5, 4], &device);
    let values = |t: Tensor<3>| -> Vec<f32> { t.try_into_vec_as().unwrap() };
    let forward = |p: f32| {
        let dropout = Dropout { p, seed: 3 };
        model.forward(&codes, tokens.clone(), actions.clone(), 0, dropout)
    };
    let all = forward(1.0 - 1e-7);
    let embeddings = model.embed_actions(actions.clone());
    assert_eq!(values(all.action_outputs), values(embeddings.clone()));
    let [rows, width] = [5, sizes.width];
    let (rewards, ends) = model.outcome_logits(embeddings.reshape([rows, width]));
    assert_eq!(values(all.rewards), values(rewards.unsqueeze_dim(0)));
    assert_eq!(values(all.ends), values(ends.unsqueeze_dim(0)));
    assert_ne!(values(forward(0.0).ends), values(forward(0.5).ends));
}

/// IRIS drops embeddings, too: with all of them dropped, every output is the final layer norm of zeros, its bias.
#[test]
fn dropout_of_a_transformer_includes_embeddings() {
    let set = ["world_model.architecture=transformer".to_string()];
    let config = Config::load("debug", &set).unwrap();
    let sizes = WorldModelSizes {
        tokens_per_obs: 4,
        ..WorldModelSizes::of(&config, 2)
    };
    let device = Device::flex();
    device.seed(1);
    let model = WorldModel::new(&config.world_model, sizes, Precision::F32, &device);
    let codes = Tensor::ones([sizes.vocabulary, sizes.width], &device);
    let steps = config.train.horizon;
    let actions = Tensor::<2, Int>::zeros([1, steps], &device);
    let tokens = Tensor::zeros([1, steps, 4], &device);
    let outputs = |p: f32| -> Vec<f32> {
        let dropout = Dropout { p, seed: 3 };
        let forward = model.forward(&codes, tokens.clone(), actions.clone(), 0, dropout);
        forward.action_outputs.try_into_vec_as().unwrap()
    };
    assert!(outputs(1.0 - 1e-7).iter().all(|x| *x == 0.0));
    assert!(outputs(0.0).iter().any(|x| *x != 0.0));
}
