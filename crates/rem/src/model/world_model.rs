//! The world model M: predicts the next observation's tokens, rewards and ends (Sections 2.1, 2.3 and 2.4).

use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Int, Tensor};

use rem_kernels::{Activation, Dropout, Precision};

use crate::config::{self, Architecture, Embeddings, Generation, RewardHeadInput, Rewards};
use crate::model::embedding::embedding;
use crate::model::hl_gauss;
use crate::model::linear::linear;
use crate::model::network::{Network, NetworkState};
pub use crate::model::world_model_sizes::WorldModelSizes;

mod ensemble;
mod initial;
mod losses;

use initial::gpt_initialized;
pub use losses::WorldModelLosses;

/// A [`Network`] over blocks of K observation tokens and one action, with embeddings and heads.
#[derive(Module, Debug)]
pub struct WorldModel {
    /// `[actions, width]`
    action_embeddings: Param<Tensor<2>>,
    /// `[vocabulary, width]`; `None` if the tokenizer's codes are used
    observation_embeddings: Option<Param<Tensor<2>>>,
    network: Network,
    head_observations: Head,
    head_rewards: Head,
    head_ends: Head,
    /// Predict observations like `head_observations`, without gradients to the network.
    ensemble: Vec<Head>,
    context: usize,
    /// First observation of a segment with a loss.
    first_observation: usize,
    /// First step of a segment with a loss on reward and end.
    first_outcome: usize,
    dropout: f64,
    #[module(skip)]
    rewards: Rewards,
    #[module(skip)]
    reward_head_input: RewardHeadInput,
    #[module(skip)]
    generation: Generation,
}

/// Linear, ReLU, Linear.
#[derive(Module, Debug)]
struct Head {
    hidden: Linear,
    out: Linear,
    #[module(skip)]
    precision: Precision,
}

impl Head {
    fn new(width: usize, outputs: usize, precision: Precision, device: &Device) -> Self {
        Self {
            hidden: LinearConfig::new(width, width).init(device),
            out: LinearConfig::new(width, outputs).init(device),
            precision,
        }
    }

    fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let hidden = linear(&self.hidden, Activation::None, x, self.precision);
        linear(&self.out, Activation::Relu, hidden, self.precision)
    }
}

/// Segments of tokenized experience.
#[derive(Clone, Debug)]
pub struct TokenBatch {
    /// Observation tokens, `[batch, steps, K]`.
    pub tokens: Tensor<3, Int>,
    /// Actions, `[batch, steps]`.
    pub actions: Tensor<2, Int>,
    /// Rewards, `[batch, steps]`.
    pub rewards: Tensor<2>,
    /// 1 where the episode terminates, `[batch, steps]`.
    pub ends: Tensor<2, Int>,
    /// 1 for real steps, 0 for padding, `[batch, steps]`.
    pub mask: Tensor<2>,
}

/// Results of the training forward pass. Observations before the first predicted step are left out.
pub struct Predictions {
    /// Network outputs that predict observation tokens, `[batch, predicted steps, K, width]`.
    pub observation_outputs: Tensor<4>,
    /// Network outputs at the actions, `[batch, steps, width]`.
    pub action_outputs: Tensor<3>,
    /// Token logits, `[batch, predicted steps, K, vocabulary]`.
    pub observations: Tensor<4>,
    /// Class logits, `[batch, steps, 3]`; or values of continuous rewards, `[batch, steps, 1]`; or logits of bins. With
    /// [`RewardHeadInput::PredictedObservation`], those of the step before each predicted one.
    pub rewards: Tensor<3>,
    /// Logits of "continues" and "terminates" of the same steps, `[batch, steps, 2]`.
    pub ends: Tensor<3>,
}

impl WorldModel {
    /// A world model with initial weights.
    pub fn new(
        config: &config::WorldModel,
        sizes: WorldModelSizes,
        precision: Precision,
        device: &Device,
    ) -> Self {
        let width = sizes.width;
        let model = Self {
            action_embeddings: embedding(sizes.actions, width, device),
            observation_embeddings: match config.embeddings {
                Embeddings::Tokenizer => None,
                Embeddings::Own => Some(embedding(sizes.vocabulary, width, device)),
            },
            network: Network::new(config, sizes, precision, device),
            head_observations: Head::new(width, sizes.vocabulary, precision, device),
            head_rewards: match config.rewards {
                Rewards::Sign => Head::new(width, 3, precision, device),
                Rewards::Continuous => Head::new(width, 1, precision, device),
                Rewards::HlGauss => Head {
                    out: hl_gauss::zero_layer(width, device),
                    ..Head::new(width, 1, precision, device)
                },
            },
            head_ends: Head::new(width, 2, precision, device),
            ensemble: (0..config.ensemble_heads)
                .map(|_| Head::new(width, sizes.vocabulary, precision, device))
                .collect(),
            context: config.context,
            first_observation: config.first_observation(),
            first_outcome: config.first_outcome(),
            dropout: config.dropout,
            rewards: config.rewards,
            reward_head_input: config.reward_head_input,
            generation: config.architecture.generation(),
        };
        match config.architecture {
            Architecture::Transformer {} => gpt_initialized(model),
            Architecture::Pop { .. }
            | Architecture::Retnet { .. }
            | Architecture::PopAttention { .. } => model,
        }
    }

    /// The same model with dropout off.
    pub(crate) fn without_dropout(self) -> Self {
        Self {
            dropout: 0.0,
            ..self
        }
    }

    /// The sequence model.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Embeds observation tokens: `[batch, tokens]` -> `[batch, tokens, width]`.
    pub(crate) fn embed_observations(
        &self,
        codes: &Tensor<2>,
        tokens: Tensor<2, Int>,
    ) -> Tensor<3> {
        let [batch, length] = tokens.dims();
        let table = match &self.observation_embeddings {
            Some(own) => own.val(),
            None => codes.clone(),
        };
        let [_, width] = table.dims();
        let rows = table.select(0, tokens.reshape([batch * length]));
        rows.reshape([batch, length, width])
    }

    /// Embeds actions: `[batch, actions]` -> `[batch, actions, width]`.
    pub(crate) fn embed_actions(&self, actions: Tensor<2, Int>) -> Tensor<3> {
        let [batch, length] = actions.dims();
        let table = self.action_embeddings.val();
        let [_, width] = table.dims();
        let rows = table.select(0, actions.reshape([batch * length]));
        rows.reshape([batch, length, width])
    }

    /// Embeds blocks: the K tokens of an observation, then its action.
    ///
    /// # Shapes
    ///
    /// - `codes`: `[vocabulary, width]`, `tokens`: `[batch, steps, K]`, `actions`: `[batch, steps]`
    /// - result: `[batch, steps * (K + 1), width]`
    pub fn embed(
        &self,
        codes: &Tensor<2>,
        tokens: Tensor<3, Int>,
        actions: Tensor<2, Int>,
    ) -> Tensor<3> {
        let [batch, steps, k] = tokens.dims();
        let observations = self.embed_observations(codes, tokens.reshape([batch, steps * k]));
        let [_, _, width] = observations.dims();
        let observations: Tensor<4> = observations.reshape([batch, steps, k, width]);
        let actions: Tensor<4> = self.embed_actions(actions).unsqueeze_dim(2);
        // [batch, steps, K + 1, width]
        let blocks = Tensor::cat(vec![observations, actions], 2);
        blocks.reshape([batch, steps * (k + 1), width])
    }

    /// The training forward pass (with POP, Algorithm 1). Predicts observations from step `first_predicted` on.
    ///
    /// # Shapes
    ///
    /// - `codes`: `[vocabulary, width]`, `tokens`: `[batch, steps, K]`, `actions`: `[batch, steps]`
    pub fn forward(
        &self,
        codes: &Tensor<2>,
        tokens: Tensor<3, Int>,
        actions: Tensor<2, Int>,
        first_predicted: usize,
        dropout: Dropout,
    ) -> Predictions {
        let [_, steps, _] = tokens.dims();
        let x = self.embed(codes, tokens, actions);
        let (action_outputs, observation_outputs) =
            self.network.forward(x, steps, first_predicted, dropout);
        let outcome_inputs = match self.reward_head_input {
            RewardHeadInput::Action => action_outputs.clone(),
            RewardHeadInput::PredictedObservation => last_of(&observation_outputs, 2),
        };
        Predictions {
            observations: self.head_observations.forward(observation_outputs.clone()),
            rewards: self.head_rewards.forward(outcome_inputs.clone()),
            ends: self.head_ends.forward(outcome_inputs),
            observation_outputs,
            action_outputs,
        }
    }

    /// The state before the first block.
    pub fn initial_state(&self) -> NetworkState {
        self.network.initial_state()
    }

    /// Updates the state with blocks. Returns the output at the last action, the input of [`Self::outcome_logits`].
    ///
    /// # Shapes
    ///
    /// - `tokens`: `[batch, steps, K]`, `actions`: `[batch, steps]` -> `[batch, width]`
    pub fn update_state(
        &self,
        codes: &Tensor<2>,
        tokens: Tensor<3, Int>,
        actions: Tensor<2, Int>,
        state: NetworkState,
    ) -> (Tensor<2>, NetworkState) {
        let x = self.embed(codes, tokens, actions);
        self.network.update_state(x, state)
    }

    /// [`Self::update_state`] and [`Self::predict_observation`] in one call (Appendix A.1.2, alternative mode). Returns
    /// the output at the last action, `[batch, width]`, the logits of the next observation, `[batch, K, vocabulary]`,
    /// and the state.
    pub fn update_and_predict(
        &self,
        codes: &Tensor<2>,
        tokens: Tensor<3, Int>,
        actions: Tensor<2, Int>,
        state: &NetworkState,
    ) -> (Tensor<2>, Tensor<3>, NetworkState) {
        let (output, predictions, state) =
            self.update_and_prediction_outputs(codes, tokens, actions, state);
        (output, self.observation_logits(predictions), state)
    }

    /// [`Self::update_and_predict`] with the outputs of the prediction tokens, `[batch, K, width]`, instead of logits.
    pub(crate) fn update_and_prediction_outputs(
        &self,
        codes: &Tensor<2>,
        tokens: Tensor<3, Int>,
        actions: Tensor<2, Int>,
        state: &NetworkState,
    ) -> (Tensor<2>, Tensor<3>, NetworkState) {
        let x = self.embed(codes, tokens, actions);
        self.network.update_and_predict(x, state)
    }

    /// The input of [`Self::outcome_logits`] for a step with POP, `[batch, width]`, of the output at its action,
    /// `[batch, width]`, and those of the prediction tokens after it, `[batch, K, width]`.
    pub fn outcome_input(&self, action_output: Tensor<2>, predictions: &Tensor<3>) -> Tensor<2> {
        match self.reward_head_input {
            RewardHeadInput::Action => action_output,
            RewardHeadInput::PredictedObservation => last_of(predictions, 1),
        }
    }

    /// Logits of reward and end, Equations (2) and (3): `[batch, width]` -> `[batch, 3]` (`[batch, 1]` for continuous
    /// rewards, `[batch, bins]` for HL-Gauss), `[batch, 2]`.
    pub fn outcome_logits(&self, output: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        (
            self.head_rewards.forward(output.clone()),
            self.head_ends.forward(output),
        )
    }

    /// Logits of the next observation's tokens with POP, Equation (1): `[batch, K, vocabulary]`.
    pub fn predict_observation(&self, state: &NetworkState) -> Tensor<3> {
        self.observation_logits(self.prediction_outputs(state))
    }

    /// Outputs of POP's prediction tokens, `[batch, K, width]`.
    pub fn prediction_outputs(&self, state: &NetworkState) -> Tensor<3> {
        self.network.predict(state)
    }

    /// Token logits of prediction tokens: `[batch, K, width]` -> `[batch, K, vocabulary]`.
    pub(crate) fn observation_logits(&self, outputs: Tensor<3>) -> Tensor<3> {
        self.head_observations.forward(outputs)
    }

    /// Token logits of network outputs: `[rows, width]` -> `[rows, vocabulary]`.
    pub fn token_logits(&self, outputs: Tensor<2>) -> Tensor<2> {
        self.head_observations.forward(outputs)
    }

    /// How much the ensemble's heads disagree about the next observations, `[batch]` in nats per token, given the outputs
    /// of the prediction tokens, `[batch, K, width]`. `None` without an ensemble.
    pub(crate) fn disagreement(&self, predictions: &Tensor<3>) -> Option<Tensor<1>> {
        ensemble::disagreement(&self.ensemble, predictions)
    }

    /// How rewards are modeled.
    pub(crate) fn rewards(&self) -> Rewards {
        self.rewards
    }

    /// How the next observation of a dream is generated.
    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    /// c: observations before the first predicted one.
    pub fn context(&self) -> usize {
        self.context
    }
}

/// The last element of an axis.
fn last_of<const D: usize, const E: usize>(x: &Tensor<D>, axis: usize) -> Tensor<E> {
    let last = x.dims()[axis] - 1;
    x.clone().narrow(axis, last, 1).squeeze_dim(axis)
}

#[cfg(test)]
mod tests;
