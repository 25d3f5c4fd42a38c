//! The network without POP, always in f64.

use burn::module::Module;
use burn::tensor::{DType, Int, Tensor};
use rem::import;
use rem::retnet::{RetNetState, Wanted};
use rem::weights::{self, Array, under};
use rem_kernels::{Precision, cross_entropy};

use crate::support::{Golden, in_f64};

/// The plain RetNet of the no-POP fixture is our RetNet without prediction tokens.
#[test]
fn no_pop_outputs_in_one_pass_and_token_by_token() {
    let golden = Golden::load(Precision::F32);
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
    let check = |name: &str, ours: Array, theirs: &Array| {
        let name = format!("{name} in f64");
        golden
            .tolerance
            .check(&name, &ours.data, &theirs.data, golden.tolerance.values);
    };
    let theirs = &expected["train_outputs"];
    check("one pass", Array::from_tensor(whole.clone()), theirs);

    let mut state = RetNetState::empty();
    let mut outputs = vec![];
    for t in 0..length {
        let (y, next) =
            world_model
                .retnet()
                .forward(x.clone().narrow(1, t, 1), &state, Wanted::All);
        state = next;
        outputs.push(y);
    }
    check(
        "token by token",
        Array::from_tensor(Tensor::cat(outputs, 1)),
        theirs,
    );

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
    check(
        "loss_obs",
        Array::from_tensor(mean),
        &expected["loss.loss_obs"],
    );
}
