//! The world model's losses on test episodes.

use super::trainer::Trainer;
use super::world_model::mean_losses;
use crate::data::batch::TokenSource;
use crate::data::test_episodes::TestEpisodes;
use crate::model::tokenizer::Tokenizer;
use crate::model::world_model::WorldModel;

impl Trainer {
    /// The world model's losses on the episodes of an evaluation, with the current tokenizer. Draws no random numbers.
    /// Empty before the world model is trained, and if no episode is long enough.
    pub(super) fn test_losses(
        &self,
        tokenizer: &Tokenizer,
        world_model: &WorldModel,
        episodes: TestEpisodes,
    ) -> Vec<(&'static str, f64)> {
        if self.optimizers.world_model.steps() == 0 {
            return Vec::new();
        }
        let tokens_per_obs = self.config.tokens_per_obs();
        let config = &self.config.world_model;
        let mut replay = episodes.into_replay(self.config.frame_bytes(), tokens_per_obs);
        let (batch_size, horizon) = (config.optimizer.batch_size, self.config.train.horizon);
        let segments = replay.segments_since(0, horizon, config.first_outcome() + 1);
        let mut source = TokenSource {
            replay: &mut replay,
            tokenizer,
            generation: 1,
            tokens_per_obs,
            device: &self.device,
        };
        let names = ["test/loss_obs", "test/loss_rewards", "test/loss_ends"];
        let model = world_model.clone();
        mean_losses(names, model, &mut source, &segments, batch_size, horizon)
    }
}
