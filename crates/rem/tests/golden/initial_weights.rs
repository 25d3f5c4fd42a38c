//! Initial weights have the distributions of the published program's.
//!
//! Mean, deviation, fourth moment and bounds of every parameter, by kind of layer. The recorded weights are initial
//! weights, too: their matrices have the same distributions. (Their biases, norms and codes were changed when they were
//! recorded, so that no test passes because a parameter is zero.)

use burn::tensor::Device;
use rem::config::Config;
use rem::model::agent::Agent;
use rem::model::weights::{self, Array, Arrays, under};
use rem::run::import;
use rem::seeds::Seeds;
use rem_kernels::Precision;

use crate::support::Golden;

/// The distribution of a parameter's elements.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Expected {
    Constant(f64),
    /// In ± the bound.
    Uniform(f64),
    /// With mean 0 and this deviation.
    Normal(f64),
}

impl Expected {
    /// Of a parameter with this name. `weight` is that of the same layer, `[in, out]` or `[out, in, height, width]`.
    fn of(name: &str, shape: &[usize], weight: Option<&[usize]>) -> Self {
        let part = |part: &str| name.split('.').any(|p| p == part);
        let fan_in = |shape: &[usize]| match shape {
            [from, _] => *from,
            [_, rest @ ..] => rest.iter().product(),
            [] => panic!("{name} is a scalar"),
        };
        if part("codebook") {
            return Self::Uniform(1.0 / shape[0] as f64);
        }
        if name.ends_with("embeddings") || name.ends_with("prediction_tokens") {
            return Self::Normal(1.0);
        }
        if part("gamma") {
            return Self::Constant(1.0);
        }
        if part("beta") {
            return Self::Constant(0.0);
        }
        let weight = weight.unwrap_or_else(|| panic!("{name} is of no known kind"));
        // Retention projections and the feed-forward sublayer: Xavier-normal, and biases of zero.
        if part("layers") {
            return match name.ends_with("bias") {
                true => Self::Constant(0.0),
                false => Self::Normal((2.0 / (weight[0] + weight[1]) as f64).sqrt()),
            };
        }
        // The LSTM: by its width. All other layers, as PyTorch's defaults: by their inputs.
        let bound = match part("lstm") {
            true => weight[1] / 4,
            false => fan_in(weight),
        };
        Self::Uniform(1.0 / (bound as f64).sqrt())
    }

    /// Panics unless the sample's moments are within five standard errors, and its elements within the bounds.
    fn check(self, name: &str, sample: &[f32]) {
        let what = format!("{name}, {self:?}");
        let n = sample.len() as f64;
        let moment = |k: i32| sample.iter().map(|x| f64::from(*x).powi(k)).sum::<f64>() / n;
        // Moments 2, 4 and 8 of a distribution with deviation 1.
        let (deviation, [fourth, eighth]) = match self {
            Self::Constant(value) => {
                assert!(sample.iter().all(|x| f64::from(*x) == value), "{what}");
                return;
            }
            Self::Uniform(bound) => {
                let largest = sample.iter().fold(0f32, |m, x| m.max(x.abs()));
                let largest = f64::from(largest) / bound;
                assert!(largest <= 1.0 + 1e-6, "{what}: {largest} bounds");
                assert!(largest >= 1.0 - 10.0 / n, "{what}: {largest} bounds");
                (bound / 3f64.sqrt(), [9.0 / 5.0, 9.0])
            }
            Self::Normal(deviation) => (deviation, [3.0, 105.0]),
        };
        let close = |k: i32, expected: f64, variance: f64| {
            let found = moment(k) / deviation.powi(k);
            let error = (variance / n).sqrt();
            assert!(
                (found - expected).abs() <= 5.0 * error,
                "{what}: moment {k} is {found}, expected {expected} +- {error}"
            );
        };
        close(1, 0.0, 1.0);
        close(2, 1.0, fourth - 1.0);
        close(4, fourth, eighth - fourth * fourth);
    }
}

/// Checks the parameters with enough elements that are `selected`; returns their number.
fn check(component: &str, arrays: &Arrays, selected: impl Fn(&str, &Array) -> bool) -> usize {
    let mut checked = 0;
    for (name, array) in arrays.iter().filter(|(name, array)| selected(name, array)) {
        let weight = name.rsplit_once('.').and_then(|(layer, _)| {
            let weight = arrays.get(&format!("{layer}.weight"))?;
            Some(&weight.shape[..])
        });
        let expected = Expected::of(name, &array.shape, weight);
        let constant = matches!(expected, Expected::Constant(_));
        if constant || array.data.len() >= 64 {
            expected.check(&format!("{component}.{name}"), &array.data);
            checked += 1;
        }
    }
    checked
}

#[test]
fn initial_weights_have_the_published_distributions() {
    let config = Config::load("atari100k", &[]).unwrap();
    for seed in [1, 2] {
        let agent = Agent::new(&config, 18, &Seeds::new(seed), &Device::flex());
        for (component, arrays, least) in [
            ("tokenizer", weights::collect(&agent.tokenizer), 45),
            ("world_model", weights::collect(&agent.world_model), 85),
            ("actor_critic", weights::collect(&agent.actor_critic), 12),
        ] {
            let checked = check(component, &arrays, |_, _| true);
            assert!(checked >= least, "{component}: {checked} parameters");
        }
    }
}

#[test]
fn published_initial_weights_have_the_same_distributions() {
    let golden = Golden::load(Precision::F32);
    if std::env::var_os("REM_GOLDEN_DIR").is_some() {
        return; // Other weights may be trained.
    }
    let vocabulary = golden.config.tokenizer.vocabulary;
    let of = |component: &str| under(&golden.weights, component);
    for (component, arrays) in [
        ("tokenizer", import::tokenizer(of("tokenizer")).unwrap()),
        (
            "world_model",
            import::world_model(of("world_model"), vocabulary).unwrap(),
        ),
        (
            "actor_critic",
            import::actor_critic(of("actor_critic")).unwrap(),
        ),
    ] {
        let matrix = |name: &str, array: &Array| array.shape.len() > 1 && name != "codebook";
        let checked = check(component, &arrays, matrix);
        assert!(checked >= 7, "{component}: {checked} matrices");
    }
}
