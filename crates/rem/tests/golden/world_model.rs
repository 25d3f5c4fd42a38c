//! The world model matches the recorded training forward pass, losses, gradients, ten training steps and imagination.

use burn::module::Module;
use burn::tensor::Tensor;
use rem::model::weights::under;
use rem::run::import;
use rem::train::optimizer::{AdamW, DecayGroup};
use rem_kernels::{Dropout, Precision};

use crate::support::{Golden, scalar};

#[test]
fn world_model_training_forward_matches() {
    training_forward(&Golden::load(Precision::F32));
}

#[test]
fn world_model_training_forward_matches_in_mixed_precision() {
    training_forward(&Golden::load(Precision::Mixed));
}

#[test]
fn world_model_losses_gradients_and_ten_steps_match() {
    losses_gradients_and_ten_steps(&Golden::load(Precision::F32));
}

#[test]
fn world_model_losses_gradients_and_ten_steps_match_in_mixed_precision() {
    losses_gradients_and_ten_steps(&Golden::load(Precision::Mixed));
}

#[test]
fn world_model_imagination_matches() {
    imagination(&Golden::load(Precision::F32));
}

#[test]
fn world_model_imagination_matches_in_mixed_precision() {
    imagination(&Golden::load(Precision::Mixed));
}

fn training_forward(golden: &Golden) {
    let (world_model, codes, batch) = (
        golden.world_model(),
        golden.tokenizer().codes(),
        golden.batch(),
    );
    let p = world_model.forward(&codes, batch.tokens, batch.actions, 0, Dropout::NONE);
    let [b, t, k, width] = p.observation_outputs.dims();
    let actions: Tensor<4> = p.action_outputs.reshape([b, t, 1, width]);
    let outputs: Tensor<3> =
        Tensor::cat(vec![p.observation_outputs, actions], 2).reshape([b, t * (k + 1), width]);
    golden.check("wm.train_outputs", outputs);
    golden.check("wm.obs_logits", p.observations);
    golden.check("wm.reward_logits", p.rewards);
    golden.check("wm.end_logits", p.ends);
}

fn losses_gradients_and_ten_steps(golden: &Golden) {
    let (mut world_model, codes, batch) = (
        golden.world_model(),
        golden.tokenizer().codes(),
        golden.batch(),
    );
    let losses = world_model.losses(&codes, &batch, 0);
    golden.check_loss("wm.loss.loss_obs", &losses.observations);
    golden.check_loss("wm.loss.loss_rewards", &losses.rewards);
    golden.check_loss("wm.loss.loss_ends", &losses.ends);
    let grads = losses.total().backward();
    let expected = under(&golden.expected, "wm.grad");
    let expected = import::world_model(expected, golden.config.tokenizer.vocabulary).unwrap();
    let tolerance = golden.tolerance;
    tolerance.check_gradients(&world_model, &grads, expected, tolerance.rough_gradients);

    let config = &golden.config;
    let mut optimizer = AdamW::new(
        &config.world_model.optimizer,
        &config.train,
        DecayGroup::WeightMatrices,
    );
    let mut ten = Vec::new();
    for step in 0..10 {
        let total = world_model.losses(&codes, &batch, 0).total();
        ten.push(scalar(&total));
        let (next, norm) = optimizer.step(world_model, &total).unwrap();
        world_model = next;
        if step == 0 {
            golden.check_scalars("wm.grad_norm", &[norm], tolerance.grad_norm);
        }
    }
    golden.check_scalars("wm.ten_losses", &ten, tolerance.losses);
}

fn imagination(golden: &Golden) {
    let (world_model, codes, batch) = (
        golden.world_model().valid(),
        golden.tokenizer().codes(),
        golden.batch(),
    );
    let [_, steps, _] = batch.tokens.dims();
    let context = golden.config.world_model.context;
    let block = |t: usize, n: usize| {
        (
            batch.tokens.clone().narrow(1, t, n),
            batch.actions.clone().narrow(1, t, n),
        )
    };
    let (tokens, actions) = block(0, context);
    let start = world_model.initial_state();
    let (mut output, mut state) = world_model.update_state(&codes, tokens, actions, start);
    let (mut observations, mut rewards, mut ends) = (vec![], vec![], vec![]);
    for t in context..steps {
        let (reward, end) = world_model.outcome_logits(output);
        rewards.push(reward);
        ends.push(end);
        observations.push(world_model.predict_observation(&state));
        let (tokens, actions) = block(t, 1);
        (output, state) = world_model.update_state(&codes, tokens, actions, state);
    }
    golden.check("wm.imagine.obs_logits", Tensor::stack::<4>(observations, 1));
    golden.check("wm.imagine.reward_logits", Tensor::stack::<3>(rewards, 1));
    golden.check("wm.imagine.end_logits", Tensor::stack::<3>(ends, 1));
    for (i, layer) in state.retention().layers().unwrap().iter().enumerate() {
        golden.check_state(&format!("wm.imagine.final_state.{i}"), layer.clone());
    }
}
