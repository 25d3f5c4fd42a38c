//! Experience: the replay, batches sampled from it, single episodes, and steps of evaluation episodes.

pub mod batch;
pub mod episode;
pub mod replay;
pub mod test_episodes;
