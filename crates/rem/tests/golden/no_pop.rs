//! The world model without POP matches recorded outputs and losses.

use burn::module::Module;
use burn::tensor::{DType, Tensor};
use rem::config::Config;
use rem::model::weights::{self, Array, Arrays, under};
use rem::model::world_model::{TokenBatch, WorldModel, WorldModelSizes};
use rem::run::import;
use rem_kernels::{Dropout, Precision};

use crate::support::{Golden, autodiff, in_f64, scalar};

struct NoPop {
    golden: Golden,
    expected: Arrays,
    world_model: WorldModel,
}

impl NoPop {
    fn load(precision: Precision) -> Self {
        let mut golden = Golden::load(precision);
        golden.config = {
            let set = ["world_model.architecture=retnet".to_string()];
            Config::from_toml(&golden.config.to_toml(), &set).unwrap()
        };
        let dir = golden.dir.join("nopop");
        let arrays = under(
            &import::read(&dir.join("weights.safetensors")).unwrap(),
            "world_model",
        );
        let arrays = import::world_model(arrays, golden.config.tokenizer.vocabulary).unwrap();
        Self {
            expected: import::read(&dir.join("expected.safetensors")).unwrap(),
            world_model: weights::apply(golden.blank_world_model(), arrays).unwrap(),
            golden,
        }
    }

    fn check(&self, name: &str, what: &str, ours: &[f32]) {
        let tolerance = self.golden.tolerance;
        tolerance.check(what, ours, &self.expected[name].data, tolerance.values);
    }

    /// The outputs of the training forward pass in token order, without those that predict nothing.
    fn training_outputs(
        &self,
        model: &WorldModel,
        codes: &Tensor<2>,
        batch: TokenBatch,
    ) -> Tensor<3> {
        let p = model.forward(codes, batch.tokens, batch.actions, 1, Dropout::NONE);
        let [b, n, k, width] = p.observation_outputs.dims();
        // The output at an action predicts the first token of the next observation.
        let last = p.action_outputs.narrow(1, n, 1);
        let rows = p.observation_outputs.reshape([b, n * k, width]);
        Tensor::cat(vec![rows, last], 1)
    }

    /// The recorded outputs at the same positions.
    fn expected_outputs(&self) -> Vec<f32> {
        let all: Tensor<3> = Tensor::from_data(
            self.expected["train_outputs"].to_data(),
            &burn::tensor::Device::flex(),
        );
        let k = self.golden.config.tokens_per_obs();
        let [b, length, width] = all.dims();
        let blocks = length / (k + 1);
        // From the first action on, each block is an action and K observation tokens; the last token predicts nothing.
        let used = all.clone().narrow(1, k, (blocks - 1) * (k + 1));
        let used: Tensor<4> = used.reshape([b, blocks - 1, k + 1, width]);
        let used = used.narrow(2, 0, k).reshape([b, (blocks - 1) * k, width]);
        Array::from_tensor(Tensor::cat(vec![used, all.narrow(1, length - 1, 1)], 1)).data
    }
}

/// In f64, so that rounding errors do not mask or mimic a difference between the formulas.
#[test]
fn no_pop_outputs_match_in_training_and_token_by_token() {
    let no_pop = NoPop::load(Precision::F32);
    let golden = &no_pop.golden;
    let world_model = in_f64(no_pop.world_model.valid());
    let codes = golden.tokenizer().codes().cast(DType::F64);
    let (batch, tolerance) = (golden.batch(), golden.tolerance);

    let ours = no_pop.training_outputs(&world_model, &codes, batch.clone());
    let (ours, theirs) = (Array::from_tensor(ours).data, no_pop.expected_outputs());
    tolerance.check("training in f64", &ours, &theirs, tolerance.values);

    // As in imagination: one token per call, except that an observation's last token and the action share one.
    let x = world_model.embed(&codes, batch.tokens, batch.actions);
    let [_, length, width] = x.dims();
    let k = golden.config.tokens_per_obs();
    let mut state = world_model.initial_state();
    let (mut outputs, mut positions) = (vec![], vec![]);
    let mut t = 0;
    while t < length {
        let together = if t % (k + 1) == k - 1 { 2 } else { 1 };
        let chunk = x.clone().narrow(1, t, together);
        let (y, next) = world_model.network().update_state(chunk, state);
        state = next;
        t += together;
        outputs.push(y);
        positions.push(t - 1);
    }
    let theirs = &no_pop.expected["train_outputs"].data;
    for (i, (y, at)) in outputs.into_iter().zip(positions).enumerate() {
        let ours = Array::from_tensor(y).data;
        let rows = ours.len() / width;
        let theirs: Vec<f32> = (0..rows)
            .flat_map(|b| &theirs[(b * length + at) * width..][..width])
            .copied()
            .collect();
        let what = format!("token by token in f64, call {i}");
        tolerance.check(&what, &ours, &theirs, tolerance.values);
    }
}

#[test]
fn no_pop_losses_match() {
    losses(&NoPop::load(Precision::F32));
}

#[test]
fn no_pop_losses_match_in_mixed_precision() {
    losses(&NoPop::load(Precision::Mixed));
}

fn losses(no_pop: &NoPop) {
    let golden = &no_pop.golden;
    let codes = golden.tokenizer().codes();
    let losses = no_pop.world_model.losses(&codes, &golden.batch(), 0);
    for (name, loss) in [
        ("loss.loss_obs", &losses.observations),
        ("loss.loss_rewards", &losses.rewards),
        ("loss.loss_ends", &losses.ends),
    ] {
        no_pop.check(name, name, &[scalar(loss) as f32]);
    }
}

/// An agent without POP, in the authors' format.
#[test]
fn import_detects_missing_pop_and_sizes_from_weights() {
    let golden = Golden::load(Precision::F32);
    let mut arrays = golden.weights.clone();
    arrays.retain(|name, _| !name.starts_with("world_model."));
    arrays.extend(import::read(&golden.dir.join("nopop/weights.safetensors")).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agent.safetensors");
    std::fs::write(&file, weights::to_safetensors(&arrays)).unwrap();
    let (config, agent) = import::agent(&file, "catch", None).unwrap();
    assert_eq!(config.tokens_per_obs(), golden.config.tokens_per_obs());
    assert_eq!(config.env.frame_size, golden.config.env.frame_size);
    let sizes = WorldModelSizes::of(&config, agent.actions());
    let device = autodiff();
    let blank = WorldModel::new(&config.world_model, sizes, Precision::F32, &device);
    let loaded = weights::apply(blank, agent.world_model).unwrap();
    let expected = weights::collect(&NoPop::load(Precision::F32).world_model);
    assert_eq!(weights::collect(&loaded), expected);
}
