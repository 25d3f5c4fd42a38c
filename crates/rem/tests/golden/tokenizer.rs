//! The tokenizer matches the recorded encoding, decoding, losses, gradients and ten training steps.

use burn::module::Module;
use burn::tensor::Tensor;
use rem::config::Reconstruction;
use rem::model::tokenizer::code_grid;
use rem::model::weights::under;
use rem::run::import;
use rem::train::optimizer::{AdamW, DecayGroup};
use rem_kernels::Precision;

use crate::support::{Golden, scalar};

#[test]
fn tokenizer_forward_matches() {
    forward(&Golden::load(Precision::F32));
}

#[test]
fn tokenizer_forward_matches_in_mixed_precision() {
    forward(&Golden::load(Precision::Mixed));
}

#[test]
fn tokenizer_losses_gradients_and_ten_steps_match() {
    losses_gradients_and_ten_steps(&Golden::load(Precision::F32));
}

#[test]
fn tokenizer_losses_gradients_and_ten_steps_match_in_mixed_precision() {
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
    // Continue with the recorded tokens: in mixed precision, one or two of ours may differ.
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
    let mut config = golden.config.tokenizer.clone();
    config.reconstruction = Reconstruction::L1;
    let l1 = tokenizer.losses(frames.clone(), &config, None);
    golden.check_loss("tok.loss.l1_variant", &l1.reconstruction);
    config.reconstruction = Reconstruction::Mse;
    let losses = tokenizer.losses(frames.clone(), &config, None);
    golden.check_loss("tok.loss.commitment_loss", &losses.commitment);
    golden.check_loss("tok.loss.reconstruction_loss", &losses.reconstruction);
    let grads = (losses.commitment + losses.reconstruction).backward();
    let expected = import::tokenizer(under(&golden.expected, "tok.grad")).unwrap();
    let tolerance = golden.tolerance;
    tolerance.check_gradients(&tokenizer, &grads, expected, tolerance.rough_gradients);

    let config = &golden.config;
    let mut optimizer = AdamW::new(&config.tokenizer.optimizer, &config.train, DecayGroup::All);
    let mut ten = Vec::new();
    for step in 0..10 {
        let losses = tokenizer.losses(frames.clone(), &golden.config.tokenizer, None);
        let total = losses.commitment + losses.reconstruction;
        ten.push(scalar(&total));
        let (next, norm) = optimizer.step(tokenizer, &total).unwrap();
        tokenizer = next;
        if step == 0 {
            golden.check_scalars("tok.grad_norm", &[norm], tolerance.grad_norm);
        }
    }
    golden.check_scalars("tok.ten_losses", &ten, tolerance.losses);
}

/// Converts to the channels-first layout of the recorded images.
fn channels_first(images: Tensor<4>) -> Tensor<4> {
    images.permute([0, 3, 1, 2])
}
