//! Caching and skipping work does not change results by a single bit.

use burn::tensor::{Device, Distribution, Int, Tensor};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use rem::config::Config;
use rem::data::batch::{self, TokenSource};
use rem::data::replay::{Replay, Segment};
use rem::env::Outcome;
use rem::model::retnet::{Outputs, RetNet, RetNetState};
use rem::model::tokenizer::Tokenizer;
use rem::model::world_model::{WorldModel, WorldModelSizes};
use rem_kernels::{Dropout, Precision};

fn config() -> Config {
    Config::load("debug", &[]).unwrap()
}

fn random<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), &Device::flex())
}

fn values<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.try_into_vec_as().unwrap()
}

/// Cached tokens, filled by other segments in other batches, equal those of each frame encoded alone.
#[test]
fn token_cache_is_exact() {
    let (config, device) = (config(), Device::flex());
    let (size, k) = (config.env.frame_size, config.tokens_per_obs());
    let tokenizer = Tokenizer::new(&config.tokenizer, Precision::F32, &device);
    let mut rng = StdRng::seed_from_u64(1);
    let mut replay = Replay::new(size * size * 3, k);
    for step in 0..40 {
        let frame: Vec<u8> = (0..size * size * 3).map(|_| rng.random()).collect();
        let outcome = if step % 20 == 19 {
            Outcome::Terminated
        } else {
            Outcome::Running
        };
        replay.push(&frame, 0, 0.0, outcome);
    }
    let length = 8;
    let draw = |replay: &Replay, n: usize, rng: &mut StdRng| -> Vec<Segment> {
        let segment =
            |rng: &mut StdRng| replay.sample_forward(1, length, 1, rng).unwrap().remove(0);
        (0..n).map(|_| segment(rng)).collect()
    };
    let mut encoded = 0;
    for round in 0..6 {
        let segments = draw(&replay, 1 + round, &mut rng);
        let before = replay.steps() - replay.uncached(7, all_steps(&replay)).len();
        let mut source = TokenSource {
            replay: &mut replay,
            tokenizer: &tokenizer,
            generation: 7,
            tokens_per_obs: k,
            device: &device,
        };
        let tokens = source.segments(&segments, length).tokens;
        let tokens: Vec<i64> = tokens.try_into_vec_as().unwrap();
        let after = replay.steps() - replay.uncached(7, all_steps(&replay)).len();
        encoded += after - before;
        let steps = segments.iter().flat_map(|s| s.steps(&replay));
        for (step, tokens) in steps.zip(tokens.chunks(k)) {
            let Some(id) = step else { continue };
            let frame = batch::frames([replay.frame(id)].into_iter(), size, &device);
            let alone: Vec<i64> = tokenizer.encode(frame).try_into_vec_as().unwrap();
            assert_eq!(tokens, alone, "step {id:?} in round {round}");
        }
    }
    let read = length * (1..=6).sum::<usize>();
    assert!(encoded <= 40 && encoded < read, "{encoded} of {read} reads");
}

fn all_steps(replay: &Replay) -> impl Iterator<Item = rem::data::replay::StepId> + '_ {
    (0..replay.episodes() as u32).flat_map(|episode| {
        let steps = 0..replay.episode_steps(episode) as u32;
        steps.map(move |index| rem::data::replay::StepId { episode, index })
    })
}

/// Predicting only the blocks after the context gives the same values as predicting all blocks.
#[test]
fn skipping_context_predictions_is_exact() {
    let (config, device) = (config(), Device::flex());
    let (k, steps, actions, context) = (16, 6, 3, 2);
    let sizes = WorldModelSizes {
        tokens_per_obs: k,
        ..WorldModelSizes::of(&config, actions)
    };
    let model = WorldModel::new(&config.world_model, sizes, Precision::F32, &device);
    let codes = random([sizes.vocabulary, sizes.width]);
    let ints = |count: usize, below: usize| -> Tensor<1, Int> {
        Tensor::<1>::random([count], Distribution::Uniform(0.0, below as f64), &device).int()
    };
    let tokens: Tensor<3, Int> = ints(3 * steps * k, sizes.vocabulary).reshape([3, steps, k]);
    let action_tokens: Tensor<2, Int> = ints(3 * steps, actions).reshape([3, steps]);
    let predict = |first| {
        let (tokens, actions) = (tokens.clone(), action_tokens.clone());
        model.forward(&codes, tokens, actions, first, Dropout::NONE)
    };
    let (all, some) = (predict(0), predict(context));
    let wanted = all.observations.narrow(1, context, steps - context);
    assert_eq!(values(some.observations), values(wanted));
    assert_eq!(values(some.rewards), values(all.rewards));
    assert_eq!(values(some.ends), values(all.ends));
}

fn network() -> (RetNet, usize) {
    let config = config();
    let width = config.tokenizer.embedding;
    let device = Device::flex();
    (
        RetNet::new(width, &config.world_model, Precision::F32, &device),
        width,
    )
}

/// Skipping unused rows of the last layer changes neither the used row nor the state.
#[test]
fn skipping_rows_of_the_last_layer_is_exact() {
    let (net, width) = network();
    let past = random([3, 17, width]);
    let x = random([3, 17, width]);
    let before = net.forward(past, &RetNetState::empty(), Outputs::All).1;
    for state in [RetNetState::empty(), before] {
        let (all, left) = net.forward(x.clone(), &state, Outputs::All);
        let (last, left_too) = net.forward(x.clone(), &state, Outputs::Last);
        assert_eq!(values(last), values(all.narrow(1, 16, 1)));
        for (a, b) in left
            .layers()
            .unwrap()
            .iter()
            .zip(left_too.layers().unwrap())
        {
            assert_eq!(values(a.clone()), values(b.clone()));
        }
    }
}

/// Cached masks, decay powers and rotations equal freshly computed ones, also after a hundred other entries and after
/// enough to evict the cache.
#[test]
fn mask_and_rotation_caches_are_exact() {
    let (net, width) = network();
    let x = random([2, 5, width]);
    let start = net
        .forward(random([2, 3, width]), &RetNetState::empty(), Outputs::All)
        .1;
    let first = values(net.forward(x.clone(), &start, Outputs::All).0);
    for others in [0, 100, 400] {
        let mut state = start.clone();
        for _ in 0..others {
            state = net.forward(random([2, 1, width]), &state, Outputs::Last).1;
        }
        assert_eq!(
            values(net.forward(x.clone(), &start, Outputs::All).0),
            first
        );
    }
}
