//! [`Dream`]: the world model as an environment.

use burn::tensor::{Int, Tensor};
use rand::Rng;

use crate::config::{Generation, Rewards};
use crate::host;
use crate::model::hl_gauss;
use crate::model::network::NetworkState;
use crate::model::sampling;
use crate::model::world_model::WorldModel;

/// A batch of imagined trajectories that steps like an environment. A clone continues independently.
#[derive(Clone)]
pub struct Dream<'a> {
    world_model: &'a WorldModel,
    codes: &'a Tensor<2>,
    /// State before the current observations; token by token, before their last token.
    state: NetworkState,
    /// Current observations, `[batch, K]`.
    tokens: Tensor<2, Int>,
}

/// The variable that a [`SampleFn`] samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampled {
    /// A reward: the classes 0, 1, 2 stand for -1, 0, 1.
    Reward,
    /// Whether the episode terminates: 0 or 1.
    End,
    /// Tokens of the next observation: all K in one call or, token by token, one.
    Token,
}

/// Samples one class per row: `[rows, classes]` logits -> `[rows]`.
pub type SampleFn<'a> = &'a mut dyn FnMut(Sampled, Tensor<2>) -> Tensor<1, Int>;

/// Rewards and ends of an imagined step.
pub struct DreamStep {
    /// Reward of each trajectory.
    pub rewards: Vec<f32>,
    /// Whether each trajectory terminated.
    pub ends: Vec<bool>,
    /// How much the ensemble disagrees about the next observation of each trajectory, in nats per token. Empty without an
    /// ensemble.
    pub disagreements: Vec<f32>,
}

impl<'a> Dream<'a> {
    /// A dream that starts at the last observation of a real context.
    ///
    /// # Shapes
    ///
    /// - `codes`: the tokenizer's, `[vocabulary, width]`; `tokens`: `[batch, context, K]`
    /// - `actions`: those between the observations, `[batch, context - 1]`; `None` for a context of one observation
    pub fn start(
        world_model: &'a WorldModel,
        codes: &'a Tensor<2>,
        tokens: Tensor<3, Int>,
        actions: Option<Tensor<2, Int>>,
    ) -> Self {
        let [_, context, k] = tokens.dims();
        let current: Tensor<2, Int> = tokens.clone().narrow(1, context - 1, 1).squeeze_dim(1);
        let past = actions.map(|actions| {
            let past = tokens.narrow(1, 0, context - 1);
            world_model.embed(codes, past, actions)
        });
        let partial = match world_model.generation() {
            Generation::TwoCalls | Generation::OneCall => None,
            Generation::TokenByToken if k == 1 => None,
            Generation::TokenByToken => {
                Some(world_model.embed_observations(codes, current.clone().narrow(1, 0, k - 1)))
            }
        };
        let prefix: Vec<Tensor<3>> = past.into_iter().chain(partial).collect();
        let mut state = world_model.initial_state();
        if !prefix.is_empty() {
            state = world_model
                .network()
                .update_state(Tensor::cat(prefix, 1), state)
                .1;
        }
        Self {
            world_model,
            codes,
            state,
            tokens: current,
        }
    }

    /// Tokens of the current observations, `[batch, K]`.
    pub fn tokens(&self) -> Tensor<2, Int> {
        self.tokens.clone()
    }

    /// Takes actions, `[batch]`, and samples rewards, ends and the next observations.
    pub fn step(&mut self, actions: Tensor<1, Int>, rng: &mut impl Rng) -> DreamStep {
        self.step_by(actions, &mut |_, logits| sampling::sample(logits, rng))
    }

    /// As [`Self::step`] with a custom sampler, called for the rewards (if they are classes), then the ends,
    /// then the tokens. The modes of generation are those of Appendix A.1.2.
    pub fn step_by(&mut self, actions: Tensor<1, Int>, sample: SampleFn) -> DreamStep {
        let [batch, k] = self.tokens.dims();
        let (world_model, codes) = (self.world_model, self.codes);
        let state = std::mem::take(&mut self.state);
        let block = self.tokens.clone().reshape([batch, 1, k]);
        let actions: Tensor<2, Int> = actions.reshape([batch, 1]);
        match world_model.generation() {
            Generation::TwoCalls => {
                let (output, state) = world_model.update_state(codes, block, actions, state);
                let predictions = world_model.prediction_outputs(&state);
                self.sample_step(output, predictions, state, sample)
            }
            Generation::OneCall => {
                let (output, predictions, state) =
                    world_model.update_and_prediction_outputs(codes, block, actions, &state);
                self.sample_step(output, predictions, state, sample)
            }
            Generation::TokenByToken => {
                // The state lacks the last token of the observation, which is processed together with the action.
                let last = self.tokens.clone().narrow(1, k - 1, 1);
                let x = vec![
                    world_model.embed_observations(codes, last),
                    world_model.embed_actions(actions),
                ];
                let (output, state) = world_model.network().update_state(Tensor::cat(x, 1), state);
                let step = self.outcome(output.clone(), sample);
                (self.tokens, self.state) = self.token_by_token(output, state, sample);
                step
            }
        }
    }

    /// Samples a step with POP: from the output at the action, `[batch, width]`, those of the prediction tokens,
    /// `[batch, K, width]`, and the state after the block.
    fn sample_step(
        &mut self,
        output: Tensor<2>,
        predictions: Tensor<3>,
        state: NetworkState,
        sample: SampleFn,
    ) -> DreamStep {
        let input = self.world_model.outcome_input(output, &predictions);
        let mut step = self.outcome(input, sample);
        if let Some(disagreement) = self.world_model.disagreement(&predictions) {
            step.disagreements = host::floats(disagreement);
        }
        self.tokens = sample_tokens(self.world_model.observation_logits(predictions), sample);
        self.state = state;
        step
    }

    /// Samples the K tokens one after the other. Each but the last is fed back: `[batch, width]` -> `[batch, K]`.
    fn token_by_token(
        &self,
        mut output: Tensor<2>,
        mut state: NetworkState,
        sample: SampleFn,
    ) -> (Tensor<2, Int>, NetworkState) {
        let [batch, k] = self.tokens.dims();
        let mut tokens: Vec<Tensor<2, Int>> = Vec::with_capacity(k);
        loop {
            let token = sample(Sampled::Token, self.world_model.token_logits(output));
            let token = token.reshape([batch, 1]);
            tokens.push(token.clone());
            if tokens.len() == k {
                return (Tensor::cat(tokens, 1), state);
            }
            let x = self.world_model.embed_observations(self.codes, token);
            (output, state) = self.world_model.network().update_state(x, state);
        }
    }

    /// Samples rewards and ends from the input of their heads, `[batch, width]`.
    fn outcome(&self, output: Tensor<2>, sample: SampleFn) -> DreamStep {
        let [batch, _] = output.dims();
        let (reward_logits, end_logits) = self.world_model.outcome_logits(output);
        let rewards = match self.world_model.rewards() {
            Rewards::Sign => sample(Sampled::Reward, reward_logits).float() - 1.0,
            Rewards::Continuous => reward_logits.reshape([batch]),
            Rewards::HlGauss => hl_gauss::decode(reward_logits),
        };
        let ends = sample(Sampled::End, end_logits);
        DreamStep {
            rewards: host::floats(rewards),
            ends: host::ints(ends).into_iter().map(|e| e == 1).collect(),
            disagreements: Vec::new(),
        }
    }
}

/// Samples all tokens of the next observations: `[batch, K, vocabulary]` logits -> `[batch, K]`.
fn sample_tokens(logits: Tensor<3>, sample: SampleFn) -> Tensor<2, Int> {
    let [batch, k, vocabulary] = logits.dims();
    sample(Sampled::Token, logits.reshape([batch * k, vocabulary])).reshape([batch, k])
}
