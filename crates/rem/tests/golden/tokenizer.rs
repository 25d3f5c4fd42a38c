//! The tokenizer: both ways, losses, gradients, ten steps of training.

use burn::module::Module;
use burn::tensor::Tensor;
use rem::config::Reconstruction;
use rem::import;
use rem::optimiser::{AdamW, DecayGroup};
use rem::tokenizer::code_grid;
use rem::weights::under;
use rem_kernels::Precision;

use crate::support::{Golden, scalar};

#[test]
fn tokenizer_forward() {
    forward(&Golden::load(Precision::F32));
}

#[test]
fn tokenizer_forward_mixed() {
    forward(&Golden::load(Precision::Mixed));
}

#[test]
fn tokenizer_losses_gradients_and_ten_steps() {
    losses_gradients_and_ten_steps(&Golden::load(Precision::F32));
}

#[test]
fn tokenizer_losses_gradients_and_ten_steps_mixed() {
    losses_gradients_and_ten_steps(&Golden::load(Precision::Mixed));
}

fn forward(golden: &Golden) {
    let tokenizer = golden.tokenizer().valid();
    let frames = golden.frames(golden.expected["tok.z"].shape[0]);
    golden.check("tok.z", channels_first(tokenizer.latents(frames.clone())));
    let tokens = tokenizer.encode(frames);
    let ours: Vec<f32> = tokens.float().try_into_vec_as().unwrap();
    let theirs = &golden.expected["tok.tokens"].data;
    golden.tolerance.check_tokens("tok.tokens", &ours, theirs);
    // From here on with the recorded tokens: ours may have another one or two in mixed precision.
    let tokens = golden.tensor::<2>("tok.tokens").int();
    let codes = code_grid(tokenizer.codes(), tokens.clone());
    golden.check("tok.z_q", channels_first(codes));
    golden.check(
        "tok.reconstruction",
        tokenizer.decode(tokens).add_scalar(1.0).div_scalar(2.0),
    );
}

fn losses_gradients_and_ten_steps(golden: &Golden) {
    let mut tokenizer = golden.tokenizer();
    let frames = golden.frames(8);
    let l1 = tokenizer.losses(frames.clone(), Reconstruction::L1, None);
    golden.check_loss("tok.loss.l1_variant", &l1.reconstruction);
    let losses = tokenizer.losses(frames.clone(), Reconstruction::Mse, None);
    golden.check_loss("tok.loss.commitment_loss", &losses.commitment);
    golden.check_loss("tok.loss.reconstruction_loss", &losses.reconstruction);
    let grads = (losses.commitment + losses.reconstruction).backward();
    let expected = import::tokenizer(under(&golden.expected, "tok.grad")).unwrap();
    let tolerance = golden.tolerance;
    tolerance.check_gradients(&tokenizer, &grads, expected, tolerance.rough_gradients);

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
            golden.check_scalars("tok.grad_norm", &[norm], tolerance.gradient_norm);
        }
    }
    golden.check_scalars("tok.ten_losses", &ten, tolerance.losses);
}

/// The recorded images have their channels first.
fn channels_first(images: Tensor<4>) -> Tensor<4> {
    images.permute([0, 3, 1, 2])
}
