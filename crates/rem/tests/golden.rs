//! Recorded numbers of the authors' implementation, met to the tolerances of their README:
//! 1e-4 relative (1e-5 absolute near zero) on values, 1e-3 on gradients, exactly on tokens.
//! `REM_GOLDEN_DIR` names another directory of the same form; every size is read from it.

use std::path::{Path, PathBuf};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Device, Gradients, Int, Tensor, TensorData};
use rem::actor_critic::{self, ActorCritic, Experience};
use rem::config::{Config, Reconstruction};
use rem::import;
use rem::optimiser::{AdamW, DecayGroup};
use rem::retnet::{RetNetState, Wanted};
use rem::returns::lambda_returns;
use rem::tokenizer::lpips::{Lpips, STAGES};
use rem::tokenizer::{Tokenizer, code_grid};
use rem::weights::{self, Array, Arrays, under};
use rem::world_model::{TokenBatch, WorldModel, WorldModelSizes};
use rem_kernels::{Dropout, Precision, cross_entropy};

const PRECISION: Precision = Precision::F32;

/// The recorded images have their channels first.
fn channels_first(images: Tensor<4>) -> Tensor<4> {
    images.permute([0, 3, 1, 2])
}

struct Golden {
    dir: PathBuf,
    config: Config,
    actions: usize,
    weights: Arrays,
    expected: Arrays,
}

impl Golden {
    fn load() -> Self {
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
        let weights = weights::read(&dir.join("weights.safetensors")).unwrap();
        let feed_forward = weights["world_model._model.layers.0.linear1.weight"].shape[0];
        let expected = weights::read(&dir.join("expected.safetensors")).unwrap();
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
            ("actor_critic.lstm", size("lstm")),
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
        }
    }

    fn tokenizer(&self) -> Tokenizer {
        let arrays = import::tokenizer(under(&self.weights, "tokenizer")).unwrap();
        weights::apply(Tokenizer::new(&self.config.tokenizer, PRECISION, &autodiff()), arrays).unwrap()
    }

    fn world_model(&self) -> WorldModel {
        let arrays = under(&self.weights, "world_model");
        let arrays = import::world_model(arrays, self.config.tokenizer.vocabulary).unwrap();
        weights::apply(self.blank_world_model(), arrays).unwrap()
    }

    fn blank_world_model(&self) -> WorldModel {
        let sizes = WorldModelSizes {
            width: self.config.tokenizer.embedding,
            vocabulary: self.config.tokenizer.vocabulary,
            tokens_per_obs: self.config.tokens_per_obs(),
            actions: self.actions,
        };
        WorldModel::new(&self.config.world_model, sizes, PRECISION, &autodiff())
    }

    fn actor_critic(&self) -> ActorCritic {
        let arrays = import::actor_critic(under(&self.weights, "actor_critic")).unwrap();
        let (c, t) = (&self.config, &self.config.tokenizer);
        let blank = ActorCritic::new(
            c.actor_critic.lstm,
            t.embedding,
            c.grid(),
            self.actions,
            PRECISION,
            &autodiff(),
        );
        weights::apply(blank, arrays).unwrap()
    }

    fn tensor<const D: usize>(&self, name: &str) -> Tensor<D> {
        Tensor::from_data(self.expected[name].to_data(), &Device::flex())
    }

    /// Frames `0..count` of the batch in [-1, 1].
    fn frames(&self, count: usize) -> Tensor<4> {
        let [b, t, c, h, w] = self.tensor::<5>("in.observations").dims();
        let frames: Tensor<4> = self
            .tensor::<5>("in.observations")
            .reshape([b * t, c, h, w]);
        frames
            .narrow(0, 0, count)
            .div_scalar(255.0 / 2.0)
            .sub_scalar(1.0)
    }

    fn batch(&self) -> TokenBatch {
        let k = self.config.tokens_per_obs();
        TokenBatch {
            tokens: self.tensor::<3>("wm.tokens").narrow(2, 0, k).int(),
            actions: self.tensor::<2>("in.actions").int(),
            rewards: self.tensor("in.rewards"),
            ends: self.tensor::<2>("in.ends").int(),
            mask: self.tensor("in.mask"),
        }
    }

    fn check<const D: usize>(&self, name: &str, ours: Tensor<D>) {
        compare(
            name,
            &Array::from_tensor(ours.inner()).data,
            &self.expected[name].data,
            1e-4,
            1e-5,
        );
    }

    /// A state sums some hundred products, up to hundreds in size: around its zeros the recorded f32
    /// numbers are themselves uncertain by more than 1e-5, so there the tolerance is of the state's size.
    fn check_state<const D: usize>(&self, name: &str, ours: Tensor<D>) {
        let theirs = &self.expected[name].data;
        let size = theirs.iter().map(|x| x.abs()).sum::<f32>() / theirs.len() as f32;
        compare(
            name,
            &Array::from_tensor(ours).data,
            theirs,
            1e-4,
            1e-5 * size.max(1.0),
        );
    }

    fn check_scalars(&self, name: &str, ours: &[f64]) {
        let ours: Vec<f32> = ours.iter().map(|x| *x as f32).collect();
        compare(name, &ours, &self.expected[name].data, 1e-4, 1e-5);
    }
}

/// A copy in double precision: what is left of a difference then is a difference of the formulas.
fn in_f64<M: Module>(module: M) -> M {
    struct Cast;
    impl ModuleMapper for Cast {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|t| t.inner().cast(DType::F64))
        }
    }
    module.map(&mut Cast)
}

fn autodiff() -> Device {
    Device::flex().autodiff()
}

fn compare(name: &str, ours: &[f32], theirs: &[f32], relative: f32, absolute: f32) {
    assert_eq!(ours.len(), theirs.len(), "{name}: length");
    let worst = ours
        .iter()
        .zip(theirs)
        .enumerate()
        .map(|(i, (a, b))| ((a - b).abs() / (absolute + relative * b.abs()), i))
        .fold(
            (0.0, 0),
            |x, y| if y.0 > x.0 || y.0.is_nan() { y } else { x },
        );
    let (excess, i) = worst;
    if std::env::var_os("REM_GOLDEN_VERBOSE").is_some() {
        let over = ours
            .iter()
            .zip(theirs)
            .filter(|(a, b)| (*a - *b).abs() > absolute + relative * b.abs())
            .count();
        eprintln!(
            "{name}: worst {excess} tolerances, {over} of {} beyond",
            ours.len()
        );
    }
    assert!(
        excess <= 1.0,
        "{name}[{i}]: {} but expected {} ({excess} tolerances)",
        ours[i],
        theirs[i]
    );
}

/// All gradients in our names against the recorded ones, which `rename` brings to our names.
fn check_gradients<M: Module>(module: &M, grads: &Gradients, expected: Arrays) {
    struct Collect<'a> {
        grads: &'a Gradients,
        path: Vec<String>,
        found: Arrays,
    }
    impl ModuleVisitor for Collect<'_> {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.path.push(name.into());
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.path.pop();
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(grad) = param.val().grad(self.grads) {
                self.found
                    .insert(self.path.join("."), Array::from_tensor(grad));
            }
        }
    }
    let mut collect = Collect {
        grads,
        path: vec![],
        found: Arrays::new(),
    };
    module.visit(&mut collect);
    for (name, theirs) in &expected {
        let ours = collect
            .found
            .get(name)
            .unwrap_or_else(|| panic!("no gradient of {name}"));
        assert_eq!(ours.shape, theirs.shape, "{name}");
        compare(name, &ours.data, &theirs.data, 1e-3, 1e-5);
    }
    assert_eq!(collect.found.len(), expected.len());
}

fn scalar(t: &Tensor<1>) -> f64 {
    f64::from(t.clone().inner().into_scalar::<f32>())
}

#[test]
fn tokenizer_forward() {
    let golden = Golden::load();
    let tokenizer = golden.tokenizer().valid();
    let frames = golden.frames(golden.expected["tok.z"].shape[0]);
    golden.check("tok.z", channels_first(tokenizer.latents(frames.clone())));
    let tokens = tokenizer.encode(frames);
    let ours: Vec<f32> = tokens.clone().float().try_into_vec_as().unwrap();
    assert_eq!(ours, golden.expected["tok.tokens"].data);
    let codes = code_grid(tokenizer.codes(), tokens.clone());
    golden.check("tok.z_q", channels_first(codes));
    golden.check(
        "tok.reconstruction",
        tokenizer.decode(tokens).add_scalar(1.0).div_scalar(2.0),
    );
}

#[test]
fn tokenizer_losses_gradients_and_ten_steps() {
    let golden = Golden::load();
    let mut tokenizer = golden.tokenizer();
    let frames = golden.frames(8);
    let l1 = tokenizer.losses(frames.clone(), Reconstruction::L1, None);
    golden.check("tok.loss.l1_variant", l1.reconstruction);
    let losses = tokenizer.losses(frames.clone(), Reconstruction::Mse, None);
    golden.check("tok.loss.commitment_loss", losses.commitment.clone());
    golden.check(
        "tok.loss.reconstruction_loss",
        losses.reconstruction.clone(),
    );
    let grads = (losses.commitment + losses.reconstruction).backward();
    let expected = import::tokenizer(under(&golden.expected, "tok.grad")).unwrap();
    check_gradients(&tokenizer, &grads, expected);

    let config = &golden.config;
    let mut optimiser = AdamW::new(&config.tokenizer.optimise, &config.train, DecayGroup::All);
    let mut ten = Vec::new();
    for step in 0..10 {
        let losses = tokenizer.losses(frames.clone(), Reconstruction::Mse, None);
        let total = losses.commitment + losses.reconstruction;
        ten.push(scalar(&total));
        let (next, norm) = optimiser.step(tokenizer, &total).unwrap();
        tokenizer = next;
        if step == 0 {
            golden.check_scalars("tok.grad_norm", &[norm]);
        }
    }
    golden.check_scalars("tok.ten_losses", &ten);
}

#[test]
fn world_model_training_forward() {
    let golden = Golden::load();
    let (world_model, codes, batch) = (
        golden.world_model(),
        golden.tokenizer().codes(),
        golden.batch(),
    );
    let p = world_model.predict(&codes, batch.tokens, batch.actions, 0, Dropout::NONE);
    let [b, t, k, width] = p.observation_outputs.dims();
    let actions: Tensor<4> = p.action_outputs.reshape([b, t, 1, width]);
    let outputs: Tensor<3> =
        Tensor::cat(vec![p.observation_outputs, actions], 2).reshape([b, t * (k + 1), width]);
    golden.check("wm.train_outputs", outputs);
    golden.check("wm.obs_logits", p.observations);
    golden.check("wm.reward_logits", p.rewards);
    golden.check("wm.end_logits", p.ends);
}

#[test]
fn world_model_losses_gradients_and_ten_steps() {
    let golden = Golden::load();
    let (mut world_model, codes, batch) = (
        golden.world_model(),
        golden.tokenizer().codes(),
        golden.batch(),
    );
    let losses = world_model.losses(&codes, &batch, 0);
    golden.check("wm.loss.loss_obs", losses.observations.clone());
    golden.check("wm.loss.loss_rewards", losses.rewards.clone());
    golden.check("wm.loss.loss_ends", losses.ends.clone());
    let grads = losses.total().backward();
    let expected = under(&golden.expected, "wm.grad");
    let expected = import::world_model(expected, golden.config.tokenizer.vocabulary).unwrap();
    check_gradients(&world_model, &grads, expected);

    let config = &golden.config;
    let mut optimiser = AdamW::new(
        &config.world_model.optimise,
        &config.train,
        DecayGroup::WeightMatrices,
    );
    let mut ten = Vec::new();
    for step in 0..10 {
        let total = world_model.losses(&codes, &batch, 0).total();
        ten.push(scalar(&total));
        let (next, norm) = optimiser.step(world_model, &total).unwrap();
        world_model = next;
        if step == 0 {
            golden.check_scalars("wm.grad_norm", &[norm]);
        }
    }
    golden.check_scalars("wm.ten_losses", &ten);
}

#[test]
fn world_model_imagination() {
    let golden = Golden::load();
    let (world_model, codes, batch) = (
        golden.world_model().valid(),
        golden.tokenizer().codes(),
        golden.batch(),
    );
    let [_, steps, _] = batch.tokens.dims();
    let context = golden.config.world_model.context;
    let block = |t: usize, n: usize| {
        (
            batch.tokens.clone().narrow(1, t, n),
            batch.actions.clone().narrow(1, t, n),
        )
    };
    let (tokens, actions) = block(0, context);
    let (mut output, mut state) = world_model.fold(&codes, tokens, actions, &RetNetState::empty());
    let (mut observations, mut rewards, mut ends) = (vec![], vec![], vec![]);
    for t in context..steps {
        let (reward, end) = world_model.outcome_logits(output);
        rewards.push(reward);
        ends.push(end);
        observations.push(world_model.observation_logits(&state));
        let (tokens, actions) = block(t, 1);
        (output, state) = world_model.fold(&codes, tokens, actions, &state);
    }
    golden.check("wm.imagine.obs_logits", Tensor::stack::<4>(observations, 1));
    golden.check("wm.imagine.reward_logits", Tensor::stack::<3>(rewards, 1));
    golden.check("wm.imagine.end_logits", Tensor::stack::<3>(ends, 1));
    for (i, layer) in state.layers().unwrap().iter().enumerate() {
        golden.check_state(&format!("wm.imagine.final_state.{i}"), layer.clone());
    }
}

/// The plain RetNet of the no-POP fixture is our RetNet without prediction tokens.
#[test]
fn no_pop_outputs_in_one_pass_and_token_by_token() {
    let golden = Golden::load();
    let dir = golden.dir.join("nopop");
    let expected = weights::read(&dir.join("expected.safetensors")).unwrap();
    let arrays = under(
        &weights::read(&dir.join("weights.safetensors")).unwrap(),
        "world_model",
    );
    let mut arrays = import::world_model(arrays, golden.config.tokenizer.vocabulary).unwrap();
    let blank = golden.blank_world_model();
    // Prediction tokens play no part here: keep those that the blank model has.
    let unused = weights::collect(&blank)
        .remove("prediction_tokens")
        .unwrap();
    arrays.insert("prediction_tokens".into(), unused);
    let world_model = in_f64(weights::apply(blank, arrays).unwrap().valid());
    let codes = golden.tokenizer().codes().cast(DType::F64);
    let batch = golden.batch();
    let x = world_model.embed(&codes, batch.tokens.clone(), batch.actions.clone());
    let [b, length, width] = x.dims();

    let (whole, _) = world_model
        .retnet()
        .forward(x.clone(), &RetNetState::empty(), Wanted::All);
    let theirs = &expected["train_outputs"].data;
    compare(
        "one pass",
        &Array::from_tensor(whole.clone()).data,
        theirs,
        1e-4,
        1e-5,
    );

    let mut state = RetNetState::empty();
    let mut outputs = vec![];
    for t in 0..length {
        let (y, next) = world_model
            .retnet()
            .forward(x.clone().narrow(1, t, 1), &state, Wanted::All);
        state = next;
        outputs.push(y);
    }
    let one_by_one = Array::from_tensor(Tensor::cat(outputs, 1));
    compare("token by token", &one_by_one.data, theirs, 1e-4, 1e-5);

    // The output before each observation token predicts it; steps before the context and padding carry no loss.
    let (k, context) = (
        golden.config.tokens_per_obs(),
        golden.config.world_model.context,
    );
    let steps = length / (k + 1);
    let n = steps - context;
    let rows = b * n * k;
    let before = whole.narrow(1, context * (k + 1) - 1, n * (k + 1));
    let before: Tensor<4> = before.reshape([b, n, k + 1, width]);
    let logits = world_model.token_logits(before.narrow(2, 0, k).reshape([rows, width]));
    let targets: Tensor<1, Int> = batch.tokens.narrow(1, context, n).reshape([rows]);
    let loss: Tensor<2> = cross_entropy(logits, targets).reshape([b * n, k]);
    let mask = batch
        .mask
        .cast(DType::F64)
        .narrow(1, context, n)
        .reshape([b * n, 1]);
    let mean = (loss * mask.clone()).sum() / (mask.sum() * k as f32);
    compare(
        "loss_obs",
        &Array::from_tensor(mean).data,
        &expected["loss.loss_obs"].data,
        1e-4,
        1e-5,
    );
}

#[test]
fn controller_forward_returns_losses_and_gradients() {
    let golden = Golden::load();
    let (controller, codes, batch) = (
        golden.actor_critic(),
        golden.tokenizer().codes(),
        golden.batch(),
    );
    let [b, steps, _] = batch.tokens.dims();
    let mut state = controller.initial_state(b);
    let (mut logits, mut values) = (vec![], vec![]);
    for t in 0..steps {
        let tokens: Tensor<2, Int> = batch.tokens.clone().narrow(1, t, 1).squeeze_dim(1);
        state = controller.observe(code_grid(codes.clone(), tokens), state);
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
            )
        })
        .collect();
    compare(
        "ac.lambda_returns",
        &returns,
        &golden.expected["ac.lambda_returns"].data,
        1e-4,
        1e-5,
    );

    let used = steps - 1;
    let returns = Tensor::<2>::from_data(TensorData::new(returns, [b, steps]), &Device::flex());
    let losses = actor_critic::losses(
        Experience {
            logits: logits.narrow(1, 0, used),
            values: values.narrow(1, 0, used),
            actions: batch.actions.narrow(1, 0, used),
            returns: returns.narrow(1, 0, used),
            weights: Tensor::ones([b, used], &Device::flex()),
        },
        config,
    );
    golden.check("ac.loss.actions", losses.actions.clone());
    golden.check("ac.loss.values", losses.values.clone());
    golden.check("ac.loss.entropy", losses.entropy.clone());
    let grads = losses.total().backward();
    let expected = import::actor_critic(under(&golden.expected, "ac.grad")).unwrap();
    check_gradients(&controller, &grads, expected);
}

#[test]
fn lpips_value_and_gradient() {
    let golden = Golden::load();
    let expected = weights::read(&golden.dir.join("lpips/expected.safetensors")).unwrap();
    let lpips = weights::apply(Lpips::new(PRECISION, &Device::flex()), formula_weights()).unwrap();
    let check = |name: &str, ours: Vec<f32>, tolerance| {
        compare(name, &ours, &expected[name].data, tolerance, 1e-5)
    };
    let value_and_gradient = |lpips: Lpips, dtype: DType| {
        let tensor = |name: &str| {
            Tensor::<4>::from_data(expected[name].to_data(), &Device::flex()).cast(dtype)
        };
        let target = tensor("target").autodiff().require_grad();
        let last = |images: Tensor<4>| images.permute([0, 2, 3, 1]);
        let value = lpips.distance(last(tensor("input")), last(target.clone()));
        check(
            "value",
            Array::from_tensor(value.clone().inner()).data,
            1e-4,
        );
        let mean = value.mean();
        check("mean", Array::from_tensor(mean.clone().inner()).data, 1e-4);
        Array::from_tensor(target.grad(&mean.backward()).unwrap()).data
    };
    // With these weights two inputs of a max-pool are so close that f32 may pick the other one, which moves
    // some gradients by a percent: element by element in f64, and as a whole in f32.
    check(
        "grad_target",
        value_and_gradient(in_f64(lpips.clone()), DType::F64),
        1e-3,
    );
    let ours = value_and_gradient(lpips, DType::F32);
    let theirs = &expected["grad_target"].data;
    let norm =
        |x: &mut dyn Iterator<Item = f32>| x.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let difference = norm(&mut ours.iter().zip(theirs).map(|(a, b)| a - b));
    assert!(difference < 5e-3 * norm(&mut theirs.iter().copied()));
}

/// Weights that a formula gives (the README's), so that no 60 MB file is needed.
fn formula_weights() -> Arrays {
    let mut arrays = Arrays::new();
    let (mut layer, mut from) = (0usize, 3usize);
    for (stage, &(count, width)) in STAGES.iter().enumerate() {
        for conv in 0..count {
            let fan_in = from * 9;
            let scale = (6.0 / fan_in as f64).sqrt();
            let weight = |i: usize| ((0.7 * i as f64 + layer as f64).sin() * scale) as f32;
            let bias = |i: usize| (0.01 * (i as f64 + layer as f64).sin()) as f32;
            let name = |part: &str| format!("stages.{stage}.convs.{conv}.{part}");
            let data = (0..width * fan_in).map(weight).collect();
            arrays.insert(
                name("weight"),
                Array {
                    shape: vec![width, from, 3, 3],
                    data,
                },
            );
            let data = (0..width).map(bias).collect();
            arrays.insert(
                name("bias"),
                Array {
                    shape: vec![width],
                    data,
                },
            );
            layer += 1;
            from = width;
        }
        let head = |i: usize| (0.1 * (i as f64 + stage as f64).sin().abs()) as f32;
        let data = (0..width).map(head).collect();
        arrays.insert(
            format!("heads.{stage}.weight"),
            Array {
                shape: vec![1, width, 1, 1],
                data,
            },
        );
    }
    arrays
}

#[test]
fn the_pytorch_checkpoint_holds_the_same_weights() {
    let golden = Golden::load();
    assert_eq!(
        import::read(&golden.dir.join("checkpoint.pt")).unwrap(),
        golden.weights
    );
}
