//! Experience: the replay, batches sampled from it, and single episodes.

pub mod batch;
pub mod episode;
pub mod replay;
