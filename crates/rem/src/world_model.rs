//! The world model M: what comes next, in tokens, rewards and ends (paper, sections method-infer, method-train).

use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::{log_softmax, relu};
use burn::tensor::{Device, Distribution, Int, Tensor};

use crate::config::{self, Rewards};
use crate::linear::by_rows;
use crate::retnet::{RetNet, RetNetState};

/// A RetNet over blocks of K observation tokens and one action, with POP's prediction tokens.
#[derive(Module, Debug)]
pub struct WorldModel {
    /// `[actions, width]`
    action_embeddings: Param<Tensor<2>>,
    /// u, `[K, width]`
    prediction_tokens: Param<Tensor<2>>,
    retnet: RetNet,
    head_observations: Head,
    head_rewards: Head,
    head_ends: Head,
    context: usize,
    /// The first step of a segment whose reward and end are learned.
    first_outcome: usize,
    blocks_per_chunk: usize,
    #[module(skip)]
    rewards: Rewards,
}

/// Linear, ReLU, Linear.
#[derive(Module, Debug)]
struct Head {
    hidden: Linear,
    out: Linear,
}

impl Head {
    fn new(width: usize, outputs: usize, device: &Device) -> Self {
        Self {
            hidden: LinearConfig::new(width, width).init(device),
            out: LinearConfig::new(width, outputs).init(device),
        }
    }

    fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        by_rows(&self.out, relu(by_rows(&self.hidden, x)))
    }
}

/// The sizes of a world model that come from other components.
#[derive(Clone, Copy, Debug)]
pub struct WorldModelSizes {
    pub width: usize,
    pub vocabulary: usize,
    pub tokens_per_obs: usize,
    pub actions: usize,
}

/// Segments of experience as the world model reads them.
#[derive(Clone, Debug)]
pub struct TokenBatch {
    /// `[batch, steps, K]`
    pub tokens: Tensor<3, Int>,
    /// `[batch, steps]`
    pub actions: Tensor<2, Int>,
    /// `[batch, steps]`
    pub rewards: Tensor<2>,
    /// `[batch, steps]`, 1 where the episode ended
    pub ends: Tensor<2, Int>,
    /// `[batch, steps]`, 1 = a real step
    pub mask: Tensor<2>,
}

/// What the training forward predicts; steps before the first predicted one are left out of `observations`.
pub struct Predictions {
    /// Outputs of the prediction tokens, `[batch, predicted steps, K, width]`
    pub observation_outputs: Tensor<4>,
    /// Outputs at the action positions, `[batch, steps, width]`
    pub action_outputs: Tensor<3>,
    /// `[batch, predicted steps, K, vocabulary]`
    pub observations: Tensor<4>,
    /// `[batch, steps, 3]` class logits, or `[batch, steps, 1]` for continuous rewards
    pub rewards: Tensor<3>,
    /// `[batch, steps, 2]`
    pub ends: Tensor<3>,
}

pub struct WorldModelLosses {
    pub observations: Tensor<1>,
    pub rewards: Tensor<1>,
    pub ends: Tensor<1>,
}

impl WorldModelLosses {
    pub fn total(&self) -> Tensor<1> {
        self.observations.clone() + self.rewards.clone() + self.ends.clone()
    }
}

impl WorldModel {
    pub fn new(config: &config::WorldModel, sizes: WorldModelSizes, device: &Device) -> Self {
        let width = sizes.width;
        let embedding = |rows: usize| {
            let values = Tensor::random([rows, width], Distribution::Normal(0.0, 1.0), device);
            Param::from_tensor(values)
        };
        let reward_outputs = match config.rewards {
            Rewards::Sign => 3,
            Rewards::Continuous => 1,
        };
        Self {
            action_embeddings: embedding(sizes.actions),
            prediction_tokens: embedding(sizes.tokens_per_obs),
            retnet: RetNet::new(width, config, device),
            head_observations: Head::new(width, sizes.vocabulary, device),
            head_rewards: Head::new(width, reward_outputs, device),
            head_ends: Head::new(width, 2, device),
            context: config.context,
            first_outcome: config.first_outcome(),
            blocks_per_chunk: config.blocks_per_chunk,
            rewards: config.rewards,
        }
    }

    pub fn retnet(&self) -> &RetNet {
        &self.retnet
    }

    /// Blocks of embeddings: observation tokens by the tokenizer's codes, then the action.
    /// # Shapes
    /// - `codes`: `[vocabulary, width]`, `tokens`: `[batch, steps, K]`, `actions`: `[batch, steps]`
    /// - result: `[batch, steps * (K + 1), width]`
    pub fn embed(
        &self,
        codes: &Tensor<2>,
        tokens: Tensor<3, Int>,
        actions: Tensor<2, Int>,
    ) -> Tensor<3> {
        let [batch, steps, k] = tokens.dims();
        let [_, width] = codes.dims();
        let observations: Tensor<4> = codes
            .clone()
            .select(0, tokens.reshape([batch * steps * k]))
            .reshape([batch, steps, k, width]);
        let actions: Tensor<4> = self
            .action_embeddings
            .val()
            .select(0, actions.reshape([batch * steps]))
            .reshape([batch, steps, 1, width]);
        // [batch, steps, K + 1, width]
        let blocks = Tensor::cat(vec![observations, actions], 2);
        blocks.reshape([batch, steps * (k + 1), width])
    }

    fn prediction_tokens(&self, batch: usize) -> Tensor<3> {
        let u: Tensor<3> = self.prediction_tokens.val().unsqueeze_dim(0);
        u.repeat_dim(0, batch)
    }

    /// The POP training forward (Alg. pop-retnet-fwd-training), predicting from step `first_predicted` on.
    pub fn predict(
        &self,
        codes: &Tensor<2>,
        tokens: Tensor<3, Int>,
        actions: Tensor<2, Int>,
        first_predicted: usize,
    ) -> Predictions {
        let [batch, steps, k] = tokens.dims();
        let len = k + 1;
        let x = self.embed(codes, tokens, actions);
        let [_, _, width] = x.dims();
        let u = self.prediction_tokens(batch);

        let mut state = RetNetState::empty();
        let (mut observation_outputs, mut action_outputs) = (Vec::new(), Vec::new());
        for start in (0..steps).step_by(self.blocks_per_chunk) {
            let blocks = self.blocks_per_chunk.min(steps - start);
            let chunk = x.clone().narrow(1, start * len, blocks * len);
            let first = first_predicted.saturating_sub(start).min(blocks);
            let (y, predicted, next) = self.retnet.pop(chunk, u.clone(), blocks, first, &state);
            state = next;
            let y: Tensor<4> = y.reshape([batch, blocks, len, width]);
            let last: Tensor<3> = y.narrow(2, k, 1).squeeze_dim(2);
            action_outputs.push(last);
            observation_outputs.extend(predicted);
        }
        let observation_outputs = Tensor::cat(observation_outputs, 1);
        let action_outputs = Tensor::cat(action_outputs, 1);
        Predictions {
            observations: self.head_observations.forward(observation_outputs.clone()),
            rewards: self.head_rewards.forward(action_outputs.clone()),
            ends: self.head_ends.forward(action_outputs.clone()),
            observation_outputs,
            action_outputs,
        }
    }

    /// The training losses; steps before the context length and padded steps carry none, but see
    /// [`config::OutcomeLoss`] for rewards and ends.
    pub fn losses(&self, codes: &Tensor<2>, batch: &TokenBatch) -> WorldModelLosses {
        let [size, steps, k] = batch.tokens.dims();
        let c = self.context;
        let p = self.predict(codes, batch.tokens.clone(), batch.actions.clone(), c);
        let n = steps - c;

        let rows = size * n;
        let mask: Tensor<2> = batch.mask.clone().narrow(1, c, n);
        let vocabulary = p.observations.dims()[3];
        let observation_loss = cross_entropy(
            p.observations.reshape([rows * k, vocabulary]),
            batch.tokens.clone().narrow(1, c, n).reshape([rows * k]),
        );
        // The mean over K tokens of each step: [rows]
        let observation_loss: Tensor<2> = observation_loss.reshape([rows, k]);
        let observation_loss = observation_loss.mean_dim(1).reshape([size, n]);

        // Rewards and ends may be learned from an earlier step on than observations.
        let o = self.first_outcome;
        let m = steps - o;
        let outcomes = size * m;
        let outcome_mask: Tensor<2> = batch.mask.clone().narrow(1, o, m);
        let reward_logits = p.rewards.narrow(1, o, m);
        let rewards = batch.rewards.clone().narrow(1, o, m);
        let reward_loss: Tensor<2> = match self.rewards {
            Rewards::Sign => {
                let classes = rewards.sign().add_scalar(1.0).int().reshape([outcomes]);
                cross_entropy(reward_logits.reshape([outcomes, 3]), classes).reshape([size, m])
            }
            Rewards::Continuous => (reward_logits.reshape([size, m]) - rewards).square(),
        };
        let end_loss = cross_entropy(
            p.ends.narrow(1, o, m).reshape([outcomes, 2]),
            batch.ends.clone().narrow(1, o, m).reshape([outcomes]),
        );
        WorldModelLosses {
            observations: masked_mean(observation_loss, mask),
            rewards: masked_mean(reward_loss, outcome_mask.clone()),
            ends: masked_mean(end_loss.reshape([size, m]), outcome_mask),
        }
    }

    /// Takes blocks into the state; the outputs of the last action are what reward and end are read from.
    /// # Shapes
    /// - `tokens`: `[batch, steps, K]`, `actions`: `[batch, steps]` -> `[batch, width]`
    pub fn fold(
        &self,
        codes: &Tensor<2>,
        tokens: Tensor<3, Int>,
        actions: Tensor<2, Int>,
        state: &RetNetState,
    ) -> (Tensor<2>, RetNetState) {
        let x = self.embed(codes, tokens, actions);
        let [_, length, _] = x.dims();
        let (y, state) = self.retnet.forward(x, state);
        (y.narrow(1, length - 1, 1).squeeze_dim(1), state)
    }

    /// Reward logits (or the reward) and end logits: `[batch, width]` -> `[batch, 3 | 1]`, `[batch, 2]`.
    pub fn outcome_logits(&self, output: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        (
            self.head_rewards.forward(output.clone()),
            self.head_ends.forward(output),
        )
    }

    /// The next observation's logits from a state, by the prediction tokens: `[batch, K, vocabulary]`.
    pub fn observation_logits(&self, state: &RetNetState) -> Tensor<3> {
        let layers = state.layers().expect("a prediction needs a past");
        let [batch, ..] = layers[0].dims();
        let y = self.retnet.peek(self.prediction_tokens(batch), state);
        self.head_observations.forward(y)
    }

    /// The head on outputs of any origin: `[rows, width]` -> `[rows, vocabulary]`.
    pub fn token_logits(&self, outputs: Tensor<2>) -> Tensor<2> {
        self.head_observations.forward(outputs)
    }

    /// How rewards are modelled.
    pub fn rewards(&self) -> Rewards {
        self.rewards
    }

    /// c: steps seen before the first prediction.
    pub fn context(&self) -> usize {
        self.context
    }
}

/// The mean over the places where `mask` is 1.
fn masked_mean(loss: Tensor<2>, mask: Tensor<2>) -> Tensor<1> {
    (loss * mask.clone()).sum() / mask.sum().clamp_min(1.0)
}

/// Cross-entropy of each row: `[rows, classes]`, `[rows]` -> `[rows]`.
pub fn cross_entropy(logits: Tensor<2>, classes: Tensor<1, Int>) -> Tensor<1> {
    let [rows, _] = logits.dims();
    let log_probabilities = log_softmax(logits, 1);
    log_probabilities
        .gather(1, classes.reshape([rows, 1]))
        .reshape([rows])
        .neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// One real step, then padding: reward 1 and the end of the episode.
    fn losses(context: usize, outcome_loss: &str, real: usize) -> [f32; 3] {
        let set = [
            format!("world_model.context={context}"),
            format!("world_model.outcome_loss={outcome_loss}"),
        ];
        let config = Config::load("debug", &set).unwrap();
        let sizes = WorldModelSizes {
            width: config.tokenizer.embedding,
            vocabulary: config.tokenizer.vocabulary,
            tokens_per_obs: 4,
            actions: 2,
        };
        let device = Device::flex();
        let model = WorldModel::new(&config.world_model, sizes, &device);
        let steps = 4;
        let mask: Vec<f32> = (0..steps).map(|t| f32::from(t < real)).collect();
        let batch = TokenBatch {
            tokens: Tensor::zeros([1, steps, 4], &device),
            actions: Tensor::zeros([1, steps], &device),
            rewards: Tensor::ones([1, steps], &device),
            ends: Tensor::ones([1, steps], &device),
            mask: Tensor::<1>::from_floats(&mask[..], &device).reshape([1, steps]),
        };
        let codes = Tensor::ones([sizes.vocabulary, sizes.width], &device);
        let l = model.losses(&codes, &batch);
        [l.observations, l.rewards, l.ends].map(|t| t.into_scalar())
    }

    #[test]
    fn padded_and_context_steps_carry_no_loss() {
        assert_eq!(losses(1, "after_context", 1), [0.0; 3]);
        assert_eq!(losses(2, "after_context", 2), [0.0; 3]);
        assert!(losses(1, "after_context", 2).iter().all(|l| *l > 0.0));
    }

    #[test]
    fn rewards_and_ends_are_learned_where_a_dream_first_reads_them() {
        for context in [1, 2] {
            let [observations, rewards, ends] = losses(context, "from_context", context);
            assert_eq!(observations, 0.0);
            assert!(rewards > 0.0 && ends > 0.0);
            assert_eq!(losses(context, "from_context", context - 1), [0.0; 3]);
        }
    }
}
