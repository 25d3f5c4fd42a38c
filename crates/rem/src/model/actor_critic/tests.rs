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

fn settings(set: &[&str]) -> config::ActorCritic {
    let set: Vec<String> = set.iter().map(|s| format!("actor_critic.{s}")).collect();
    Config::load("debug", &set).unwrap().actor_critic
}

/// The losses of two steps with values 0.5 and 1, returns 1 and 3, slow values 0 and 2, and even odds of two actions.
fn losses_of_two_steps(set: &[&str], return_scale: f64) -> [f32; 2] {
    let device = Device::flex();
    let row = |x: [f32; 2]| Tensor::<1>::from_floats(x, &device).reshape([1, 2]);
    let experience = Experience {
        logits: Tensor::zeros([1, 2, 2], &device),
        values: row([0.5, 1.0]),
        critic: row([0.5, 1.0]).unsqueeze_dim(2),
        actions: Tensor::zeros([1, 2], &device),
        returns: row([1.0, 3.0]),
        weights: Tensor::ones([1, 2], &device),
        slow_values: Some(row([0.0, 2.0])),
        return_scale,
    };
    let losses = losses(experience, &settings(set));
    [losses.policy, losses.value].map(|loss| loss.into_scalar())
}

#[test]
fn the_return_scale_divides_the_policy_loss_only() {
    // Advantages 0.5 and 2: (0.5 + 2) / 2 ln 2; squared errors 0.25 and 4.
    let [policy, value] = losses_of_two_steps(&[], 1.0);
    assert!((policy - 1.25 * 2f32.ln()).abs() < 1e-6 && value == 2.125);
    let [policy, value] = losses_of_two_steps(&[], 2.5);
    assert!((policy - 0.5 * 2f32.ln()).abs() < 1e-6 && value == 2.125);
}

#[test]
fn a_slow_critic_as_regularizer_adds_a_loss_towards_its_values() {
    // 2.125 + 0.5 (0.25 + 1) / 2
    let weight = "slow_critic.weight=0.5";
    let [policy, value] = losses_of_two_steps(&["slow_critic=regularizer", weight], 1.0);
    assert!((policy - 1.25 * 2f32.ln()).abs() < 1e-6);
    assert_eq!(value, 2.4375);
    assert_eq!(losses_of_two_steps(&["slow_critic=target"], 1.0)[1], 2.125);
}

#[test]
fn a_mixed_policy_has_its_share_of_the_uniform_distribution() {
    let mixed = |share: f64| {
        let (controller, ..) = with_inputs("codes");
        let controller = ActorCritic {
            uniform_mix: share,
            ..controller
        };
        let logits = Tensor::from_floats([[2.0, -30.0, 1.0], [0.0, 0.0, 0.0]], &Device::flex());
        values(softmax(controller.policy(logits), 1))
    };
    let (own, mixed) = (mixed(0.0), mixed(0.06));
    for (own, mixed) in own.iter().zip(&mixed) {
        assert!((mixed - (0.94 * own + 0.02)).abs() < 1e-6, "{mixed}");
    }
    assert!(own[1] < 1e-6 && mixed[1] > 0.0199);
}

/// HL-Gauss: values start at zero, and the loss is the cross-entropy of histograms.
#[test]
fn values_as_histograms_start_at_zero() {
    let config = settings(&["values=hl_gauss"]);
    let device = Device::flex();
    device.seed(2);
    let sizes = ControllerSizes::of(&Config::load("debug", &[]).unwrap(), 3);
    let controller = ActorCritic::new(&config, sizes, Precision::F32, &device);
    let normal = Distribution::Normal(0.0, 1.0);
    let state = ControllerState {
        hidden: Tensor::random([2, config.lstm_dim], normal, &device),
        cell: Tensor::random([2, config.lstm_dim], normal, &device),
    };
    assert_eq!(values(controller.heads(&state).values), [0.0; 2]);
    let zeros = || Tensor::<2>::zeros([1, 2], &device);
    let experience = Experience {
        logits: Tensor::zeros([1, 2, 3], &device),
        values: zeros(),
        critic: Tensor::zeros([1, 2, hl_gauss::BINS], &device),
        actions: Tensor::zeros([1, 2], &device),
        returns: zeros() + 7.0,
        weights: Tensor::ones([1, 2], &device),
        slow_values: None,
        return_scale: 1.0,
    };
    let loss: f32 = losses(experience, &config).value.into_scalar();
    assert!((loss - (hl_gauss::BINS as f32).ln()).abs() < 1e-4, "{loss}");
}
