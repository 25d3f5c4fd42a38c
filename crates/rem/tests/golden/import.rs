//! The authors' PyTorch checkpoint can be read.

use rem::run::import;
use rem_kernels::Precision;

use crate::support::Golden;

#[test]
fn pytorch_checkpoint_has_the_same_weights() {
    let golden = Golden::load(Precision::F32);
    assert_eq!(
        import::read(&golden.dir.join("checkpoint.pt")).unwrap(),
        golden.weights
    );
}
