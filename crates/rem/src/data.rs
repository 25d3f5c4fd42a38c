//! Experience: the replay, batches sampled from it, single episodes, data sets, and steps of evaluation episodes.

pub mod batch;
pub mod dataset;
pub mod episode;
pub mod replay;
pub mod test_episodes;
