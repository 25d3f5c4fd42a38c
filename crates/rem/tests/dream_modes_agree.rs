//! Recurrent, chunkwise (any chunk length), parallel and POP's per-block computations agree, and every imagination mode
//! predicts what the training forward pass predicts.

use burn::tensor::activation::softmax;
use burn::tensor::{Device, Distribution, Int, Tensor};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rem::config::Config;
use rem::imagination::Dream;
use rem::model::calls::Calls;
use rem::model::network::NetworkState;
use rem::model::retnet::{Outputs, RetNet, RetNetState};
use rem::model::weights;
use rem::model::world_model::{Predictions, WorldModel, WorldModelSizes};
use rem_kernels::{Dropout, Precision};

const BATCH: usize = 3;

fn random<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), &Device::flex())
}

/// The largest difference, relative to the largest value.
fn difference<const D: usize>(a: Tensor<D>, b: Tensor<D>) -> f32 {
    let size: f32 = b.clone().abs().max().into_scalar();
    let worst: f32 = (a - b).abs().max().into_scalar();
    worst / size.max(1.0)
}

fn assert_agree<const D: usize>(what: &str, a: Tensor<D>, b: Tensor<D>) {
    let difference = difference(a, b);
    assert!(difference < 1e-4, "{what}: {difference}");
}

fn config() -> Config {
    Config::load("debug", &["world_model.dropout=0".to_string()]).unwrap()
}

#[test]
fn retnet_output_is_independent_of_chunking() {
    let config = config();
    let width = config.tokenizer.embedding;
    let net = RetNet::new(width, &config.world_model, Precision::F32, &Device::flex());
    let past = random([BATCH, 9, width]);
    let x = random([BATCH, 20, width]);
    for state in [
        RetNetState::empty(),
        net.forward(past, &RetNetState::empty(), Outputs::All).1,
    ] {
        let (parallel, last) = net.forward(x.clone(), &state, Outputs::All);
        for chunks in [vec![1; 20], vec![7, 7, 6], vec![19, 1]] {
            let (mut start, mut now, mut out) = (0, state.clone(), vec![]);
            for length in chunks {
                let chunk = x.clone().narrow(1, start, length);
                assert_agree(
                    "predict without a state update",
                    net.predict(chunk.clone(), &now),
                    net.forward(chunk.clone(), &now, Outputs::All).0,
                );
                let (last, _) = net.forward(chunk.clone(), &now, Outputs::Last);
                let (y, next) = net.forward(chunk, &now, Outputs::All);
                assert_agree("last output only", last, y.clone().narrow(1, length - 1, 1));
                out.push(y);
                now = next;
                start += length;
            }
            assert_agree("outputs", Tensor::cat(out, 1), parallel.clone());
            for (a, b) in now.layers().unwrap().iter().zip(last.layers().unwrap()) {
                assert_agree("states", a.clone(), b.clone());
            }
            assert_eq!(now.position(), last.position());
        }
    }
}

/// A model with random tokens, actions and codes.
struct Case {
    k: usize,
    steps: usize,
    tokens: Tensor<3, Int>,
    actions: Tensor<2, Int>,
    codes: Tensor<2>,
    model: WorldModel,
}

impl Case {
    fn new(set: &[&str]) -> Self {
        let (k, steps, actions) = (16, 7, 3);
        let device = Device::flex();
        let set: Vec<String> = ["world_model.dropout=0", "train.horizon=7"]
            .iter()
            .chain(set)
            .map(|s| s.to_string())
            .collect();
        let c = Config::load("debug", &set).unwrap();
        let ints = |count: usize, below: usize| -> Tensor<1, Int> {
            Tensor::<1>::random([count], Distribution::Uniform(0.0, below as f64), &device).int()
        };
        let sizes = WorldModelSizes::of(&c, actions);
        assert_eq!(sizes.tokens_per_obs, k);
        let vocabulary = c.tokenizer.vocabulary;
        Self {
            k,
            steps,
            tokens: ints(BATCH * steps * k, vocabulary).reshape([BATCH, steps, k]),
            actions: ints(BATCH * steps, actions).reshape([BATCH, steps]),
            codes: random([vocabulary, c.tokenizer.embedding]),
            model: WorldModel::new(&c.world_model, sizes, Precision::F32, &device),
        }
    }

    fn block(&self, t: usize) -> (Tensor<3, Int>, Tensor<2, Int>) {
        (
            self.tokens.clone().narrow(1, t, 1),
            self.actions.clone().narrow(1, t, 1),
        )
    }

    fn predict(&self, first: usize) -> Predictions {
        let (tokens, actions) = (self.tokens.clone(), self.actions.clone());
        (self.model).forward(&self.codes, tokens, actions, first, Dropout::NONE)
    }
}

fn at<const D: usize, const E: usize>(x: &Tensor<D>, t: usize) -> Tensor<E> {
    x.clone().narrow(1, t, 1).squeeze_dim(1)
}

/// POP's predictions in one training pass equal those of imagination step by step.
#[test]
fn pop_training_forward_matches_imagination() {
    for architecture in ["pop", "pop_attention"] {
        pop_training_forward_matches_imagination_with(architecture);
    }
}

fn pop_training_forward_matches_imagination_with(architecture: &str) {
    let case = Case::new(&[&format!("world_model.architecture={architecture}")]);
    for first in [0, 2] {
        let p = case.predict(first);
        let mut state = case.model.initial_state();
        for t in 0..case.steps {
            if t > 0 && t >= first {
                let ours: Tensor<3> = at(&p.observations, t - first);
                let logits = case.model.predict_observation(&state);
                assert_agree("observations", ours, logits);
            }
            let (tokens, actions) = case.block(t);
            let (output, next) = case.model.update_state(&case.codes, tokens, actions, state);
            state = next;
            let (reward, end) = case.model.outcome_logits(output);
            assert_agree("reward", at(&p.rewards, t), reward);
            assert_agree("end", at(&p.ends, t), end);
        }
    }
}

/// Reward and end of a step read the prediction of the next observation, in training and in imagination.
#[test]
fn heads_on_predicted_observations_match_imagination() {
    let case = Case::new(&["world_model.reward_head_input=predicted_observation"]);
    let other = Case::new(&[]);
    let same_weights = weights::apply(other.model, weights::collect(&case.model)).unwrap();
    for first in [0, 2] {
        let p = case.predict(first);
        assert_eq!(p.rewards.dims()[1], case.steps - first);
        let mut state = case.model.initial_state();
        for t in 0..case.steps {
            let (tokens, actions) = case.block(t);
            let (output, next) = case.model.update_state(&case.codes, tokens, actions, state);
            state = next;
            let row = (t + 1).checked_sub(first);
            let Some(row) = row.filter(|row| first + row < case.steps) else {
                continue;
            };
            let predictions = case.model.prediction_outputs(&state);
            let input = case.model.outcome_input(output.clone(), &predictions);
            let (reward, end) = case.model.outcome_logits(input.clone());
            assert_agree("reward", at(&p.rewards, row), reward);
            assert_agree("end", at(&p.ends, row), end);
            let of_action = same_weights.outcome_input(output, &predictions);
            assert!(difference(input, of_action) > 0.01);
        }
    }
}

/// POP's two modes give the same distributions and the same state.
#[test]
fn pop_modes_give_the_same_distributions() {
    let case = Case::new(&[]);
    let (mut two, mut one) = (case.model.initial_state(), case.model.initial_state());
    for t in 0..case.steps {
        let (tokens, actions) = case.block(t);
        let two_calls =
            (case.model).update_state(&case.codes, tokens.clone(), actions.clone(), two);
        let logits = case.model.predict_observation(&two_calls.1);
        let one_call = (case.model).update_and_predict(&case.codes, tokens, actions, &one);
        let p = |logits: Tensor<3>| softmax(logits, 2);
        assert_agree("observations", p(one_call.1), p(logits));
        let (reward, end) = case.model.outcome_logits(two_calls.0);
        let (reward_too, end_too) = case.model.outcome_logits(one_call.0);
        assert_agree("reward", softmax(reward_too, 1), softmax(reward, 1));
        assert_agree("end", softmax(end_too, 1), softmax(end, 1));
        (two, one) = (two_calls.1, one_call.2);
        let layers = |s: &NetworkState| s.retention().layers().unwrap().to_vec();
        for (a, b) in layers(&one).into_iter().zip(layers(&two)) {
            assert_agree("states", a, b);
        }
        assert_eq!(one.retention().position(), two.retention().position());
        assert_eq!(two.retention().position(), (t + 1) * (case.k + 1));
    }
}

/// Without POP, predictions of the training pass equal those token by token, for any chunking.
#[test]
fn token_by_token_training_forward_matches_imagination() {
    for set in TOKEN_BY_TOKEN {
        let case = Case::new(set);
        let length = case.k + 1;
        let [p, p_all] = [case.predict(1), case.predict(0)];
        let x = (case.model).embed(&case.codes, case.tokens.clone(), case.actions.clone());
        for chunks in [
            vec![1; case.steps * length],
            vec![length - 2, 1, 2, 20, 3, 1, 1],
        ] {
            let (mut state, mut done) = (case.model.initial_state(), 0);
            for chunk in chunks {
                let now = x.clone().narrow(1, done, chunk);
                let (output, next) = case.model.network().update_state(now, state);
                (state, done) = (next, done + chunk);
                let (t, position) = ((done - 1) / length, (done - 1) % length);
                if position == case.k {
                    let (reward, end) = case.model.outcome_logits(output.clone());
                    assert_agree("reward", at(&p.rewards, t), reward);
                    assert_agree("end", at(&p.ends, t), end);
                }
                // The next token, if it is a predicted observation token: any but the very first.
                let (t, position) = (done / length, done % length);
                if t < case.steps && position < case.k {
                    let what = format!("{set:?}: token {position} of step {t}");
                    let logits = case.model.token_logits(output);
                    let all: Tensor<3> = at(&p_all.observations, t);
                    assert_agree(&what, at(&all, position), logits.clone());
                    if t > 0 {
                        let trained: Tensor<3> = at(&p.observations, t - 1);
                        assert_agree(&what, at(&trained, position), logits);
                    }
                }
            }
        }
    }
}

const TOKEN_BY_TOKEN: [&[&str]; 3] = [
    &["world_model.architecture=retnet"],
    &[
        "world_model.architecture=retnet",
        "world_model.embeddings=own",
    ],
    &[
        "world_model.architecture=transformer",
        "world_model.embeddings=own",
    ],
];

/// The costs of Table 6: 2H, H and KH calls; (2K + 1)H and (K + 1)H tokens.
#[test]
fn calls_and_tokens_match_the_paper() {
    let k = 16;
    let cost = |set, calls, tokens| (set, Calls { calls, tokens });
    for (set, per_step) in [
        cost(&[][..], 2, 2 * k + 1),
        cost(&["world_model.architecture.mode=one_call"], 1, 2 * k + 1),
        cost(&["world_model.architecture=pop_attention"], 2, 2 * k + 1),
        cost(TOKEN_BY_TOKEN[0], k, k + 1),
        cost(TOKEN_BY_TOKEN[2], k, k + 1),
    ] {
        let case = Case::new(set);
        let mut rng = StdRng::seed_from_u64(1);
        let context = case.tokens.clone().narrow(1, 0, 2);
        let context_actions = case.actions.clone().narrow(1, 0, 1);
        let mut dream = Dream::start(&case.model, &case.codes, context, Some(context_actions));
        let before = case.model.network().calls();
        for horizon in 1..=5 {
            let actions = case.actions.clone().narrow(1, 0, 1).reshape([BATCH]);
            dream.step(actions, &mut rng);
            let expected = Calls {
                calls: per_step.calls * horizon,
                tokens: per_step.tokens * horizon,
            };
            let used = case.model.network().calls() - before;
            assert_eq!(used, expected, "{set:?}");
        }
    }
}

/// With the same random numbers, both POP modes sample the same tokens, rewards and ends.
#[test]
fn pop_modes_sample_the_same_dream() {
    for head in ["action", "predicted_observation"] {
        pop_modes_sample_the_same_dream_with(&format!("world_model.reward_head_input={head}"));
    }
}

fn pop_modes_sample_the_same_dream_with(head: &str) {
    let case = Case::new(&[head]);
    let arrays = weights::collect(&case.model);
    let other = Case::new(&["world_model.architecture.mode=one_call", head]);
    let other = weights::apply(other.model, arrays).unwrap();
    let dreams = [&case.model, &other].map(|model| {
        let mut rng = StdRng::seed_from_u64(2);
        let context = case.tokens.clone().narrow(1, 0, 1);
        let mut dream = Dream::start(model, &case.codes, context, None);
        let steps = (0..5).map(|t| {
            let action = case.actions.clone().narrow(1, t, 1).reshape([BATCH]);
            let step = dream.step(action, &mut rng);
            let tokens: Vec<i64> = dream.tokens().try_into_vec_as().unwrap();
            (tokens, step.rewards, step.ends)
        });
        steps.collect::<Vec<_>>()
    });
    assert_eq!(dreams[0], dreams[1]);
}
