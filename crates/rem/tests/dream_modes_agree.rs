//! Recurrent, chunkwise (any chunk length), parallel and POP's per-block computations are one function, and all ways
//! to dream are what was learned.

use burn::tensor::activation::softmax;
use burn::tensor::{Device, Distribution, Int, Tensor};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rem::calls::Calls;
use rem::config::Config;
use rem::imagination::Dream;
use rem::network::Memory;
use rem::retnet::{RetNet, RetNetState, Wanted};
use rem::weights;
use rem::world_model::{Predictions, WorldModel, WorldModelSizes};
use rem_kernels::{Dropout, Precision};

const BATCH: usize = 3;

fn random<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), &Device::flex())
}

/// The largest difference, relative to the size of the values.
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
fn the_network_in_any_pieces() {
    let config = config();
    let width = config.tokenizer.embedding;
    let net = RetNet::new(width, &config.world_model, Precision::F32, &Device::flex());
    let past = random([BATCH, 9, width]);
    let x = random([BATCH, 20, width]);
    for state in [
        RetNetState::empty(),
        net.forward(past, &RetNetState::empty(), Wanted::All).1,
    ] {
        let (parallel, last) = net.forward(x.clone(), &state, Wanted::All);
        for pieces in [vec![1; 20], vec![7, 7, 6], vec![19, 1]] {
            let (mut start, mut now, mut out) = (0, state.clone(), vec![]);
            for length in pieces {
                let piece = x.clone().narrow(1, start, length);
                assert_agree(
                    "peeking",
                    net.peek(piece.clone(), &now),
                    net.forward(piece.clone(), &now, Wanted::All).0,
                );
                let (last, _) = net.forward(piece.clone(), &now, Wanted::Last);
                let (y, next) = net.forward(piece, &now, Wanted::All);
                assert_agree(
                    "the last output alone",
                    last,
                    y.clone().narrow(1, length - 1, 1),
                );
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

/// Random tokens and actions, codes, and the model that reads them.
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
        (self.model).predict(&self.codes, tokens, actions, first, Dropout::NONE)
    }
}

fn at<const D: usize, const E: usize>(x: &Tensor<D>, t: usize) -> Tensor<E> {
    x.clone().narrow(1, t, 1).squeeze_dim(1)
}

/// What POP predicts in one training pass is what imagination predicts step by step.
#[test]
fn training_forward_and_imagination() {
    let case = Case::new(&[]);
    for first in [0, 2] {
        let p = case.predict(first);
        let mut memory = case.model.nothing_seen();
        for t in 0..case.steps {
            if t > 0 && t >= first {
                let ours: Tensor<3> = at(&p.observations, t - first);
                let logits = case.model.observation_logits(&memory);
                assert_agree("observations", ours, logits);
            }
            let (tokens, actions) = case.block(t);
            let (output, next) = case.model.fold(&case.codes, tokens, actions, memory);
            memory = next;
            let (reward, end) = case.model.outcome_logits(output);
            assert_agree("reward", at(&p.rewards, t), reward);
            assert_agree("end", at(&p.ends, t), end);
        }
    }
}

/// POP's two ways to dream give the same distributions and leave the same memory.
#[test]
fn one_call_is_two_calls() {
    let case = Case::new(&[]);
    let (mut two, mut one) = (case.model.nothing_seen(), case.model.nothing_seen());
    for t in 0..case.steps {
        let (tokens, actions) = case.block(t);
        let folded = (case.model).fold(&case.codes, tokens.clone(), actions.clone(), two);
        let logits = case.model.observation_logits(&folded.1);
        let at_once = (case.model).fold_and_predict(&case.codes, tokens, actions, &one);
        let p = |logits: Tensor<3>| softmax(logits, 2);
        assert_agree("observations", p(at_once.1), p(logits));
        let (reward, end) = case.model.outcome_logits(folded.0);
        let (reward_too, end_too) = case.model.outcome_logits(at_once.0);
        assert_agree("reward", softmax(reward_too, 1), softmax(reward, 1));
        assert_agree("end", softmax(end_too, 1), softmax(end, 1));
        (two, one) = (folded.1, at_once.2);
        let layers = |m: &Memory| m.retention().layers().unwrap().to_vec();
        for (a, b) in layers(&one).into_iter().zip(layers(&two)) {
            assert_agree("states", a, b);
        }
        assert_eq!(one.retention().position(), two.retention().position());
        assert_eq!(two.retention().position(), (t + 1) * (case.k + 1));
    }
}

/// What a model without POP learns to predict is what it predicts token by token, in whatever pieces it reads.
#[test]
fn next_tokens_in_training_and_in_imagination() {
    for set in TOKEN_BY_TOKEN {
        let case = Case::new(set);
        let length = case.k + 1;
        let p = case.predict(1);
        let x = (case.model).embed(&case.codes, case.tokens.clone(), case.actions.clone());
        for pieces in [
            vec![1; case.steps * length],
            vec![length - 2, 1, 2, 20, 3, 1, 1],
        ] {
            let (mut memory, mut done) = (case.model.nothing_seen(), 0);
            for piece in pieces {
                let now = x.clone().narrow(1, done, piece);
                let (output, next) = case.model.network().read(now, memory);
                (memory, done) = (next, done + piece);
                let (t, place) = ((done - 1) / length, (done - 1) % length);
                if place == case.k {
                    let (reward, end) = case.model.outcome_logits(output.clone());
                    assert_agree("reward", at(&p.rewards, t), reward);
                    assert_agree("end", at(&p.ends, t), end);
                }
                // The token after this one, if it is one of an observation that is predicted.
                let (t, place) = (done / length, done % length);
                if t > 0 && t < case.steps && place < case.k {
                    let learned: Tensor<3> = at(&p.observations, t - 1);
                    let learned: Tensor<2> = at(&learned, place);
                    let what = format!("{set:?}: token {place} of step {t}");
                    assert_agree(&what, learned, case.model.token_logits(output));
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

/// The calls and tokens of the paper's cost table: 2H, H and KH calls; (2K + 1)H and (K + 1)H tokens.
#[test]
fn dreams_cost_what_the_paper_says() {
    let k = 16;
    let cost = |set, calls, tokens| (set, Calls { calls, tokens });
    for (set, a_step) in [
        cost(&[][..], 2, 2 * k + 1),
        cost(&["world_model.pop_mode=one_call"], 1, 2 * k + 1),
        cost(TOKEN_BY_TOKEN[0], k, k + 1),
        cost(TOKEN_BY_TOKEN[2], k, k + 1),
    ] {
        let case = Case::new(set);
        let mut rng = StdRng::seed_from_u64(1);
        let seen = case.tokens.clone().narrow(1, 0, 2);
        let past = case.actions.clone().narrow(1, 0, 1);
        let mut dream = Dream::start(&case.model, &case.codes, seen, Some(past));
        let before = case.model.network().calls();
        for horizon in 1..=5 {
            let actions = case.actions.clone().narrow(1, 0, 1).reshape([BATCH]);
            dream.step(actions, &mut rng);
            let expected = Calls {
                calls: a_step.calls * horizon,
                tokens: a_step.tokens * horizon,
            };
            let spent = case.model.network().calls() - before;
            assert_eq!(spent, expected, "{set:?}");
        }
    }
}

/// A whole dream in either of POP's modes draws the same tokens, rewards and ends from the same numbers.
#[test]
fn dreams_of_both_modes_are_one_dream() {
    let case = Case::new(&[]);
    let arrays = weights::collect(&case.model);
    let other = Case::new(&["world_model.pop_mode=one_call"]);
    let other = weights::apply(other.model, arrays).unwrap();
    let dreamt = [&case.model, &other].map(|model| {
        let mut rng = StdRng::seed_from_u64(2);
        let seen = case.tokens.clone().narrow(1, 0, 1);
        let mut dream = Dream::start(model, &case.codes, seen, None);
        let steps = (0..5).map(|t| {
            let action = case.actions.clone().narrow(1, t, 1).reshape([BATCH]);
            let step = dream.step(action, &mut rng);
            let tokens: Vec<i64> = dream.tokens().try_into_vec_as().unwrap();
            (tokens, step.rewards, step.ends)
        });
        steps.collect::<Vec<_>>()
    });
    assert_eq!(dreamt[0], dreamt[1]);
}
