//! Loads the recorded numbers, and models with the recorded weights.

use std::path::{Path, PathBuf};

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{DType, Device, Tensor};
use rem::config::Config;
use rem::model::actor_critic::{ActorCritic, ControllerSizes};
use rem::model::tokenizer::Tokenizer;
use rem::model::weights::{self, Array, Arrays, under};
use rem::model::world_model::{TokenBatch, WorldModel, WorldModelSizes};
use rem::run::import;
use rem_kernels::Precision;

use crate::compare::Tolerance;

/// The recorded numbers and weights, for one precision.
pub struct Golden {
    pub dir: PathBuf,
    pub config: Config,
    actions: usize,
    pub weights: Arrays,
    pub expected: Arrays,
    pub precision: Precision,
    pub tolerance: Tolerance,
}

impl Golden {
    pub fn load(precision: Precision) -> Self {
        let dir = std::env::var_os("REM_GOLDEN_DIR").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden"),
            PathBuf::from,
        );
        let text = std::fs::read_to_string(dir.join("config.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let size = |key: &str| {
            json[key]
                .as_u64()
                .unwrap_or_else(|| panic!("config.json: {key}"))
        };
        let weights = import::read(&dir.join("weights.safetensors")).unwrap();
        let feed_forward = weights["world_model._model.layers.0.linear1.weight"].shape[0];
        let expected = import::read(&dir.join("expected.safetensors")).unwrap();
        let set = [
            (
                "env.frame_size",
                *expected["in.observations"].shape.last().unwrap() as u64,
            ),
            ("train.horizon", size("horizon")),
            ("tokenizer.vocabulary", size("vocabulary")),
            ("tokenizer.embedding", size("embedding")),
            ("tokenizer.channels", size("first_conv_channels")),
            ("tokenizer.downsamplings", size("downsamplings")),
            ("world_model.layers", size("layers")),
            ("world_model.heads", size("heads")),
            ("world_model.feed_forward", feed_forward as u64),
            ("world_model.context", size("context")),
            ("world_model.dropout", 0),
            ("actor_critic.lstm_dim", size("lstm")),
        ];
        let set: Vec<String> = set.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let config = Config::load("atari100k", &set).unwrap();
        assert_eq!(config.tokens_per_obs() as u64, size("tokens_per_obs"));
        Self {
            dir,
            config,
            actions: size("actions") as usize,
            weights,
            expected,
            precision,
            tolerance: Tolerance::of(precision),
        }
    }

    pub fn tokenizer(&self) -> Tokenizer {
        let arrays = import::tokenizer(under(&self.weights, "tokenizer")).unwrap();
        weights::apply(
            Tokenizer::new(&self.config.tokenizer, self.precision, &autodiff()),
            arrays,
        )
        .unwrap()
    }

    pub fn world_model(&self) -> WorldModel {
        let arrays = under(&self.weights, "world_model");
        let arrays = import::world_model(arrays, self.config.tokenizer.vocabulary).unwrap();
        weights::apply(self.blank_world_model(), arrays).unwrap()
    }

    pub fn blank_world_model(&self) -> WorldModel {
        let sizes = WorldModelSizes::of(&self.config, self.actions);
        WorldModel::new(&self.config.world_model, sizes, self.precision, &autodiff())
    }

    pub fn actor_critic(&self) -> ActorCritic {
        let arrays = import::actor_critic(under(&self.weights, "actor_critic")).unwrap();
        let blank = ActorCritic::new(
            &self.config.actor_critic,
            ControllerSizes::of(&self.config, self.actions),
            self.precision,
            &autodiff(),
        );
        weights::apply(blank, arrays).unwrap()
    }

    pub fn tensor<const D: usize>(&self, name: &str) -> Tensor<D> {
        Tensor::from_data(self.expected[name].to_data(), &Device::flex())
    }

    /// Frames `0..count` of the batch in [-1, 1].
    pub fn frames(&self, count: usize) -> Tensor<4> {
        let [b, t, c, h, w] = self.tensor::<5>("in.observations").dims();
        let frames: Tensor<4> = self
            .tensor::<5>("in.observations")
            .reshape([b * t, c, h, w]);
        frames
            .narrow(0, 0, count)
            .div_scalar(255.0 / 2.0)
            .sub_scalar(1.0)
    }

    pub fn batch(&self) -> TokenBatch {
        let k = self.config.tokens_per_obs();
        TokenBatch {
            tokens: self.tensor::<3>("wm.tokens").narrow(2, 0, k).int(),
            actions: self.tensor::<2>("in.actions").int(),
            rewards: self.tensor("in.rewards"),
            ends: self.tensor::<2>("in.ends").int(),
            mask: self.tensor("in.mask"),
        }
    }

    pub fn check<const D: usize>(&self, name: &str, ours: Tensor<D>) {
        let ours = Array::from_tensor(ours.inner()).data;
        let theirs = &self.expected[name].data;
        self.tolerance
            .check(name, &ours, theirs, self.tolerance.values);
    }

    /// A state is a sum of about a hundred products of sizes up to hundreds. Near zero, the recorded f32 numbers have
    /// errors above 1e-5 themselves, so the absolute tolerance scales with the state's size.
    pub fn check_state<const D: usize>(&self, name: &str, ours: Tensor<D>) {
        let theirs = &self.expected[name].data;
        let size = theirs.iter().map(|x| x.abs()).sum::<f32>() / theirs.len() as f32;
        let tolerance = self.tolerance.near_zero_of(size.max(1.0));
        let ours = Array::from_tensor(ours).data;
        tolerance.check(name, &ours, theirs, tolerance.values);
    }

    pub fn check_loss(&self, name: &str, ours: &Tensor<1>) {
        self.check_scalars(name, &[scalar(ours)], self.tolerance.losses);
    }

    pub fn check_scalars(&self, name: &str, ours: &[f64], relative: f32) {
        let ours: Vec<f32> = ours.iter().map(|x| *x as f32).collect();
        let theirs = &self.expected[name].data;
        self.tolerance.check(name, &ours, theirs, relative);
    }
}

/// A copy in f64, where rounding errors are negligible and only differences between formulas remain.
pub fn in_f64<M: Module>(module: M) -> M {
    struct Cast;
    impl ModuleMapper for Cast {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|t| t.inner().cast(DType::F64))
        }
    }
    module.map(&mut Cast)
}

pub fn autodiff() -> Device {
    Device::flex().autodiff()
}

pub fn scalar(t: &Tensor<1>) -> f64 {
    f64::from(t.clone().inner().into_scalar::<f32>())
}
