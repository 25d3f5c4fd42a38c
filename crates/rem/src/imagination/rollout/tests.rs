//! The LSTM's burn-in equals playing the real steps, and ignores padding. λ-returns of rollouts.

use super::*;
use crate::config::Config;
use crate::model::actor_critic::ControllerSizes;
use burn::tensor::{Device, TensorData};
use rem_kernels::Precision;

const STEPS: usize = 5;
const ACTIONS: usize = 3;

/// Which of [`STEPS`] steps are real, for each row of a batch: all, after padding, before padding, none.
const REAL: [[bool; STEPS]; 4] = [
    [true; STEPS],
    [false, false, false, true, true],
    [true, true, true, false, false],
    [false; STEPS],
];

struct BurnIn {
    controller: ActorCritic,
    tokenizer: Tokenizer,
    tokens: Tensor<3, Int>,
    actions: Tensor<2, Int>,
}

impl BurnIn {
    fn new(inputs: &str) -> Self {
        Self::with_seed(inputs, 4)
    }

    fn with_seed(inputs: &str, seed: u64) -> Self {
        let set = [format!("actor_critic.inputs={inputs}")];
        let config = Config::load("debug", &set).unwrap();
        let (device, k) = (Device::flex(), config.tokens_per_obs());
        device.seed(seed);
        let sizes = ControllerSizes::of(&config, ACTIONS);
        let rows = REAL.len();
        let integers = |shape: &[usize], below: usize| {
            let count: usize = shape.iter().product();
            let data = (0..count as i64).map(|i| (i * i * 7 + 3 * i) % below as i64);
            TensorData::new(data.collect::<Vec<_>>(), shape.to_vec())
        };
        let tokens = integers(&[rows, STEPS, k], config.tokenizer.vocabulary);
        Self {
            controller: ActorCritic::new(&config.actor_critic, sizes, Precision::F32, &device),
            tokenizer: Tokenizer::new(&config.tokenizer, Precision::F32, &device),
            tokens: Tensor::from_data(tokens, &device),
            actions: Tensor::from_data(integers(&[rows, STEPS], ACTIONS), &device),
        }
    }

    fn burned_in(&self, with_actions: bool) -> ControllerState {
        let mask = REAL.as_flattened().iter().map(|real| f32::from(*real));
        let mask = TensorData::new(mask.collect::<Vec<_>>(), [REAL.len(), STEPS]);
        burn_in(
            &self.controller,
            &self.tokenizer,
            self.tokens.clone(),
            self.actions.clone(),
            Tensor::from_data(mask, &Device::flex()),
            with_actions,
        )
    }

    /// The state after the real steps of a row, as in play.
    fn played(&self, row: usize, with_actions: bool) -> ControllerState {
        let mut state = self.controller.initial_state(1);
        for t in (0..STEPS).filter(|t| REAL[row][*t]) {
            let tokens = self.tokens.clone().narrow(0, row, 1).narrow(1, t, 1);
            let input = self
                .controller
                .encoder_input(&self.tokenizer, tokens.squeeze_dim(1));
            state = self.controller.observe(input, state);
            if with_actions {
                let action = self.actions.clone().narrow(0, row, 1).narrow(1, t, 1);
                state = self.controller.act(action.squeeze_dim(1), state);
            }
        }
        state
    }
}

fn numbers(state: &ControllerState, row: usize) -> Vec<f32> {
    let of = |t: &Tensor<2>| -> Vec<f32> { t.clone().narrow(0, row, 1).try_into_vec_as().unwrap() };
    [of(&state.hidden), of(&state.cell)].concat()
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(0.0, |m, (a, b)| m.max((a - b).abs()))
}

#[test]
fn burn_in_equals_play_and_ignores_padding() {
    for inputs in ["codes_and_actions", "codes", "pixels"] {
        let batch = BurnIn::new(inputs);
        for with_actions in [true, false] {
            let state = batch.burned_in(with_actions);
            for (row, real) in REAL.iter().enumerate() {
                let found = numbers(&state, row);
                let played = numbers(&batch.played(row, with_actions), 0);
                let what = format!("{inputs}, actions {with_actions}, row {row}");
                assert!(distance(&found, &played) < 1e-5, "{what}");
                let moved = played.iter().any(|x| x.abs() > 1e-3);
                assert_eq!(moved, real.contains(&true), "{what}");
            }
        }
    }
}

#[test]
fn only_a_burn_in_with_actions_depends_on_them() {
    for (inputs, with_actions, depends) in [
        ("codes_and_actions", true, true),
        ("codes_and_actions", false, false),
        ("codes", true, false),
    ] {
        let mut batch = BurnIn::new(inputs);
        let before = numbers(&batch.burned_in(with_actions), 0);
        batch.actions = batch.actions.add_scalar(1).remainder_scalar(ACTIONS as i64);
        let after = numbers(&batch.burned_in(with_actions), 0);
        let what = format!("{inputs}, burn-in with actions {with_actions}");
        assert_eq!(distance(&before, &after) > 1e-3, depends, "{what}");
    }
}

/// As a target the slow critic's values replace the critic's in λ-returns; as a regularizer they do not.
#[test]
fn returns_bootstrap_from_the_slow_critic_if_it_is_the_target() {
    let batch = BurnIn::new("codes");
    let slow = BurnIn::with_seed("codes", 5).controller;
    let rows = REAL.len();
    let tokens = batch.tokens.clone().swap_dims(0, 1);
    let [_, _, k] = tokens.dims();
    let rollout = Rollout {
        start: batch.controller.initial_state(rows),
        encoder_inputs: (batch.controller)
            .encoder_input(&batch.tokenizer, tokens.reshape([STEPS * rows, k])),
        tokens: batch.tokens.clone(),
        actions: batch.actions.clone().narrow(1, 0, STEPS - 1),
        rewards: vec![vec![0.5; STEPS - 1]; rows],
        ends: vec![vec![false; STEPS - 1]; rows],
        disagreements: vec![vec![]; rows],
    };
    let values = |controller: &ActorCritic| {
        let (inputs, actions) = (rollout.encoder_inputs.clone(), rollout.actions.clone());
        controller.unroll(inputs, actions, rollout.start.clone()).1
    };
    let returns = |kind: &str, slow: Option<&ActorCritic>| {
        let set = [format!("actor_critic.slow_critic={kind}")];
        let config = Config::load("debug", &set).unwrap().actor_critic;
        let (experience, _) = (rollout.clone()).experience(&batch.controller, slow, &config);
        let slow = experience.slow_values.map(host::floats);
        (host::floats(experience.returns), slow)
    };
    let expected = |controller: &ActorCritic| -> Vec<f32> {
        let values = host::floats(values(controller));
        let row = |row: &[f32]| {
            let g = lambda_returns(
                &[0.5; STEPS - 1],
                &[false; STEPS - 1],
                row,
                0.995,
                0.95,
                0.0,
            );
            g[..STEPS - 1].to_vec()
        };
        values.chunks(STEPS).flat_map(row).collect()
    };
    assert_eq!(returns("off", None), (expected(&batch.controller), None));
    let (target, slow_values) = returns("target", Some(&slow));
    assert_eq!(target, expected(&slow));
    let unrolled = host::floats(values(&slow).narrow(1, 0, STEPS - 1));
    assert_eq!(slow_values, Some(unrolled));
    let (regularized, _) = returns("regularizer", Some(&slow));
    assert_eq!(regularized, expected(&batch.controller));
}

/// An ensemble of different heads disagrees; its disagreement is added to imagined rewards, not to their statistics.
#[test]
fn disagreement_of_the_ensemble_is_a_reward() {
    use crate::model::world_model::WorldModelSizes;
    let set = [
        "world_model.ensemble_heads=3",
        "actor_critic.curiosity_weight=0.5",
    ];
    let config = Config::load("debug", &set.map(String::from)).unwrap();
    let batch = BurnIn::new("codes");
    let (device, rows) = (Device::flex(), REAL.len());
    let sizes = WorldModelSizes::of(&config, ACTIONS);
    let model = WorldModel::new(&config.world_model, sizes, Precision::F32, &device);
    let starts = DreamStarts {
        tokens: batch.tokens.clone(),
        actions: batch.actions.clone().narrow(1, 0, STEPS - 1),
        mask: Tensor::ones([rows, STEPS - 1], &device),
    };
    let mut rng = <rand_chacha::ChaCha8Rng as rand::SeedableRng>::seed_from_u64(1);
    let rollout = imagine(
        &batch.controller,
        &model,
        &batch.tokenizer,
        starts,
        3,
        false,
        &mut rng,
    );
    let all = rollout.disagreements.as_slice().concat();
    assert_eq!(all.len(), 2 * rows);
    // Between 0 and ln 3.
    assert!(all.iter().all(|d| (1e-6..1.1).contains(d)), "{all:?}");

    let returns = |weight: f64| {
        let settings = config::ActorCritic {
            curiosity_weight: weight,
            lambda: 0.0,
            ..config.actor_critic.clone()
        };
        let (experience, stats) = (rollout.clone()).experience(&batch.controller, None, &settings);
        let mean = all.iter().sum::<f32>() / all.len() as f32;
        assert!((stats.mean_disagreement.unwrap() - f64::from(mean)).abs() < 1e-6);
        (host::floats(experience.returns), stats.mean_return)
    };
    let ((without, mean_return), (with, same_mean_return)) = (returns(0.0), returns(0.5));
    assert_eq!(mean_return, same_mean_return);
    for ((without, with), disagreement) in without.into_iter().zip(with).zip(all) {
        assert!((with - without - 0.5 * disagreement).abs() < 1e-5);
    }
}
