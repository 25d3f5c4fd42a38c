//! The controller matches the recorded forward pass (stepwise and unrolled), λ-returns, losses and gradients.

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rem::imagination::returns::lambda_returns;
use rem::model::actor_critic::{self, Experience};
use rem::model::weights::{Array, under};
use rem::run::import;
use rem_kernels::Precision;

use crate::support::Golden;

#[test]
fn controller_forward_returns_losses_and_gradients_match() {
    forward_returns_losses_and_gradients(&Golden::load(Precision::F32));
}

#[test]
fn controller_forward_returns_losses_and_gradients_match_in_mixed_precision() {
    forward_returns_losses_and_gradients(&Golden::load(Precision::Mixed));
}

fn forward_returns_losses_and_gradients(golden: &Golden) {
    let (controller, tokenizer, batch) = (
        golden.actor_critic(),
        golden.tokenizer().valid(),
        golden.batch(),
    );
    let [b, steps, k] = batch.tokens.dims();
    let mut state = controller.initial_state(b);
    let (mut logits, mut values) = (vec![], vec![]);
    for t in 0..steps {
        let tokens: Tensor<2, Int> = batch.tokens.clone().narrow(1, t, 1).squeeze_dim(1);
        state = controller.observe(controller.encoder_input(&tokenizer, tokens), state);
        let heads = controller.heads(&state);
        logits.push(heads.logits);
        values.push(heads.values);
        state = controller.act(batch.actions.clone().narrow(1, t, 1).squeeze_dim(1), state);
    }
    let (logits, values): (Tensor<3>, Tensor<2>) =
        (Tensor::stack(logits, 1), Tensor::stack(values, 1));
    golden.check("ac.logits", logits.clone());
    golden.check("ac.values", values.clone());
    golden.check("ac.h", state.hidden.clone());
    golden.check("ac.c", state.cell.clone());
    // Training unrolls all steps at once.
    let between = batch.actions.clone().narrow(1, 0, steps - 1);
    let tokens: Tensor<2, Int> = batch.tokens.swap_dims(0, 1).reshape([steps * b, k]);
    let start = controller.initial_state(b);
    let views = controller.encoder_input(&tokenizer, tokens);
    let (logits, values) = controller.unroll(views, between, start);
    golden.check("ac.logits", logits.clone());
    golden.check("ac.values", values.clone());

    let host = |name: &str| golden.expected[name].data.clone();
    let (rewards, ends) = (host("in.rewards"), host("in.ends"));
    let flat = Array::from_tensor(values.clone().inner()).data;
    let config = &golden.config.actor_critic;
    let returns: Vec<f32> = (0..b)
        .flat_map(|i| {
            let row = i * steps..(i + 1) * steps;
            let ends: Vec<bool> = ends[row.clone()].iter().map(|e| *e == 1.0).collect();
            lambda_returns(
                &rewards[row.clone()],
                &ends,
                &flat[row],
                config.discount as f32,
                config.lambda as f32,
                config.terminal_value as f32,
            )
        })
        .collect();
    let returns = Tensor::<2>::from_data(TensorData::new(returns, [b, steps]), &Device::flex());
    golden.check("ac.lambda_returns", returns.clone());

    let used = steps - 1;
    let losses = actor_critic::losses(
        Experience {
            logits: logits.narrow(1, 0, used),
            values: values.clone().narrow(1, 0, used),
            critic: values.narrow(1, 0, used).unsqueeze_dim(2),
            actions: batch.actions.narrow(1, 0, used),
            returns: returns.narrow(1, 0, used),
            weights: Tensor::ones([b, used], &Device::flex()),
            slow_values: None,
            return_scale: 1.0,
        },
        config,
    );
    golden.check_loss("ac.loss.actions", &losses.policy);
    golden.check_loss("ac.loss.values", &losses.value);
    golden.check_loss("ac.loss.entropy", &losses.entropy);
    let grads = losses.total().backward();
    let expected = import::actor_critic(under(&golden.expected, "ac.grad")).unwrap();
    let tolerance = golden.tolerance;
    tolerance.check_gradients(&controller, &grads, expected, tolerance.gradients);
}
