//! The controller with each kind of inputs.

use super::obs_encoder::DECODE_BATCH;
use super::*;

/// Controller and tokenizer of the debug preset, with the given inputs.
fn with_inputs(inputs: &str) -> (ActorCritic, Tokenizer, Config) {
    let set = [format!("actor_critic.inputs={inputs}")];
    let config = Config::load("debug", &set).unwrap();
    let device = Device::flex();
    let sizes = ControllerSizes::of(&config, 3);
    (
        ActorCritic::new(&config.actor_critic, sizes, Precision::F32, &device),
        Tokenizer::new(&config.tokenizer, Precision::F32, &device),
        config,
    )
}

fn values<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.try_into_vec_as().unwrap()
}

#[test]
fn unroll_matches_single_steps() {
    let (batch, steps) = (2, 4);
    for inputs in ["codes_and_actions", "codes", "pixels"] {
        let (controller, tokenizer, config) = with_inputs(inputs);
        let (k, device) = (config.tokens_per_obs(), Device::flex());
        let uniform = Distribution::Uniform(0.0, config.tokenizer.vocabulary as f64);
        let tokens = Tensor::<2>::random([steps * batch, k], uniform, &device).int();
        let actions = Tensor::<1, Int>::from_ints([2, 0, 1, 1, 2, 0], &device);
        let actions = actions.reshape([batch, steps - 1]);
        let encoder_inputs = controller.encoder_input(&tokenizer, tokens);
        let start = controller.initial_state(batch);
        let (logits, unrolled_values) =
            controller.unroll(encoder_inputs.clone(), actions.clone(), start.clone());
        let mut state = start;
        for t in 0..steps {
            let input = encoder_inputs.clone().narrow(0, t * batch, batch);
            state = controller.observe(input, state);
            let heads = controller.heads(&state);
            let here: Tensor<2> = logits.clone().narrow(1, t, 1).squeeze_dim(1);
            let pairs = values(here).into_iter().zip(values(heads.logits));
            let value: Tensor<1> = unrolled_values.clone().narrow(1, t, 1).squeeze_dim(1);
            let pairs = pairs.chain(values(value).into_iter().zip(values(heads.values)));
            for (a, b) in pairs {
                assert!((a - b).abs() < 1e-5, "{inputs}, step {t}: {a} and {b}");
            }
            if t + 1 < steps {
                let action = actions.clone().narrow(1, t, 1).squeeze_dim(1);
                state = controller.act(action, state);
            }
        }
    }
}

#[test]
fn actions_change_the_state_only_with_action_inputs() {
    for (inputs, has_action_inputs) in [
        ("codes_and_actions", true),
        ("codes", false),
        ("pixels", false),
    ] {
        let (controller, ..) = with_inputs(inputs);
        let action = |a: i32| Tensor::<1, Int>::from_ints([a], &Device::flex());
        let after = |a: i32| {
            let state = controller.act(action(a), controller.initial_state(1));
            values(state.hidden)
        };
        assert_eq!(after(0) != after(2), has_action_inputs, "{inputs}");
        assert_eq!(controller.action_gates().is_some(), has_action_inputs);
    }
}

#[test]
fn pixel_inputs_are_decoded_frames() {
    let (controller, tokenizer, config) = with_inputs("pixels");
    let (k, size) = (config.tokens_per_obs(), config.env.frame_size);
    // More than one batch.
    let count = DECODE_BATCH + 3;
    let tokens = Tensor::<1, Int>::arange(0..(count * k) as i64, &Device::flex());
    let tokens = tokens.remainder_scalar(config.tokenizer.vocabulary as i64);
    let tokens: Tensor<2, Int> = tokens.reshape([count, k]);
    let input = controller.encoder_input(&tokenizer, tokens.clone());
    assert_eq!(input.dims(), [count, size, size, 3]);
    let last = tokenizer
        .decode(tokens.narrow(0, count - 1, 1))
        .clamp(-1.0, 1.0);
    let last = last.permute([0, 2, 3, 1]);
    let input = input.narrow(0, count - 1, 1);
    for (a, b) in values(input).into_iter().zip(values(last)) {
        assert!((a - b).abs() < 1e-5, "{a} and {b}");
    }
}
