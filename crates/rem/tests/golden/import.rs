//! Reading the authors' files.

use rem::import;
use rem_kernels::Precision;

use crate::support::Golden;

#[test]
fn the_pytorch_checkpoint_holds_the_same_weights() {
    let golden = Golden::load(Precision::F32);
    assert_eq!(
        import::read(&golden.dir.join("checkpoint.pt")).unwrap(),
        golden.weights
    );
}
