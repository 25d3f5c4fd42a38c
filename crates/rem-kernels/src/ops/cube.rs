//! Operations on GPU backends (CubeCL). All of them run their reference bodies.
//!
//! To give an operation a GPU body, implement [`Operation<Cube, N>`](crate::backend::Operation) for its struct and call
//! [`Run::run`](crate::backend::Run::run) in place of the empty implementation here. Autodiff needs nothing else.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::{Autodiff, Cube};

use super::{
    AttentionOps, ConvOps, CrossEntropyOps, DropoutOps, FeatureDistanceOps, FeedForwardOps,
    LinearOps, LstmOps, MaxPoolOps, NearestOps, NormConvOps, RetentionOps, SampleOps,
};

macro_rules! reference_only {
    ($($ops:ident)*) => {$(
        impl $ops for Cube {}
        impl<C: CheckpointStrategy> $ops for Autodiff<Cube, C> {}
    )*};
}

reference_only!(
    AttentionOps ConvOps CrossEntropyOps DropoutOps FeatureDistanceOps FeedForwardOps LinearOps
    LstmOps MaxPoolOps NearestOps NormConvOps RetentionOps SampleOps
);
