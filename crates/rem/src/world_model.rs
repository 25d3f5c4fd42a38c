//! The world model M: what comes next, in tokens, rewards and ends (paper, sections method-infer, method-train).

use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Int, Tensor};

use rem_kernels::{Activation, Dropout, Precision, cross_entropy};

use crate::config::{self, Config, Embeddings, Generation, Rewards};
use crate::linear::linear;
use crate::network::{Memory, Network, embedding};

/// A network over blocks of K observation tokens and one action.
#[derive(Module, Debug)]
pub struct WorldModel {
    /// `[actions, width]`
    action_embeddings: Param<Tensor<2>>,
    /// `[vocabulary, width]`, where they are not the tokenizer's codes
    observation_embeddings: Option<Param<Tensor<2>>>,
    network: Network,
    head_observations: Head,
    head_rewards: Head,
    head_ends: Head,
    context: usize,
    /// The first observation of a segment that is learned.
    first_observation: usize,
    /// The first step of a segment whose reward and end are learned.
    first_outcome: usize,
    dropout: f64,
    #[module(skip)]
    rewards: Rewards,
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

/// The sizes of a world model that come from other components.
#[derive(Clone, Copy, Debug)]
pub struct WorldModelSizes {
    pub width: usize,
    pub vocabulary: usize,
    pub tokens_per_obs: usize,
    pub actions: usize,
    /// The longest trajectory that a Transformer reads.
    pub memory_steps: usize,
}

impl WorldModelSizes {
    pub fn of(config: &Config, actions: usize) -> Self {
        Self {
            width: config.tokenizer.embedding,
            vocabulary: config.tokenizer.vocabulary,
            tokens_per_obs: config.tokens_per_obs(),
            actions,
            memory_steps: config.memory_steps(),
        }
    }
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
    /// Outputs that stand for observation tokens, `[batch, predicted steps, K, width]`
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
    pub fn new(
        config: &config::WorldModel,
        sizes: WorldModelSizes,
        precision: Precision,
        device: &Device,
    ) -> Self {
        let width = sizes.width;
        let reward_outputs = match config.rewards {
            Rewards::Sign => 3,
            Rewards::Continuous => 1,
        };
        Self {
            action_embeddings: embedding(sizes.actions, width, device),
            observation_embeddings: match config.embeddings {
                Embeddings::Tokenizer => None,
                Embeddings::Own => Some(embedding(sizes.vocabulary, width, device)),
            },
            network: Network::new(config, sizes, precision, device),
            head_observations: Head::new(width, sizes.vocabulary, precision, device),
            head_rewards: Head::new(width, reward_outputs, precision, device),
            head_ends: Head::new(width, 2, precision, device),
            context: config.context,
            first_observation: config.first_observation(),
            first_outcome: config.first_outcome(),
            dropout: config.dropout,
            rewards: config.rewards,
            generation: config.generation(),
        }
    }

    /// The same model, which drops nothing any more.
    pub fn without_dropout(self) -> Self {
        Self {
            dropout: 0.0,
            ..self
        }
    }

    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Observation tokens: `[batch, tokens]` -> `[batch, tokens, width]`.
    pub fn embed_observations(&self, codes: &Tensor<2>, tokens: Tensor<2, Int>) -> Tensor<3> {
        let [batch, length] = tokens.dims();
        let table = match &self.observation_embeddings {
            Some(own) => own.val(),
            None => codes.clone(),
        };
        let [_, width] = table.dims();
        let rows = table.select(0, tokens.reshape([batch * length]));
        rows.reshape([batch, length, width])
    }

    /// Actions: `[batch, actions]` -> `[batch, actions, width]`.
    pub fn embed_actions(&self, actions: Tensor<2, Int>) -> Tensor<3> {
        let [batch, length] = actions.dims();
        let table = self.action_embeddings.val();
        let [_, width] = table.dims();
        let rows = table.select(0, actions.reshape([batch * length]));
        rows.reshape([batch, length, width])
    }

    /// Blocks of embeddings: observation tokens, then the action.
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
        let observations = self.embed_observations(codes, tokens.reshape([batch, steps * k]));
        let [_, _, width] = observations.dims();
        let observations: Tensor<4> = observations.reshape([batch, steps, k, width]);
        let actions: Tensor<4> = self.embed_actions(actions).unsqueeze_dim(2);
        // [batch, steps, K + 1, width]
        let blocks = Tensor::cat(vec![observations, actions], 2);
        blocks.reshape([batch, steps * (k + 1), width])
    }

    /// The training forward (with POP, Alg. pop-retnet-fwd-training), predicting from step `first_predicted` on.
    pub fn predict(
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
            self.network.learn(x, steps, first_predicted, dropout);
        Predictions {
            observations: self.head_observations.forward(observation_outputs.clone()),
            rewards: self.head_rewards.forward(action_outputs.clone()),
            ends: self.head_ends.forward(action_outputs.clone()),
            observation_outputs,
            action_outputs,
        }
    }

    /// The training losses; what lies before the first observation to learn and padded steps carry none, but see
    /// [`config::OutcomeLoss`] for rewards and ends. `dropout_seed` tells which elements dropout drops.
    pub fn losses(
        &self,
        codes: &Tensor<2>,
        batch: &TokenBatch,
        dropout_seed: u64,
    ) -> WorldModelLosses {
        let [size, steps, k] = batch.tokens.dims();
        let c = self.first_observation;
        let dropout = Dropout {
            p: self.dropout as f32,
            seed: dropout_seed,
        };
        let (tokens, actions) = (batch.tokens.clone(), batch.actions.clone());
        let p = self.predict(codes, tokens, actions, c, dropout);
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

    /// The memory before anything was seen.
    pub fn nothing_seen(&self) -> Memory {
        self.network.nothing_seen()
    }

    /// Takes blocks into the memory; the outputs of the last action are what reward and end are read from.
    /// # Shapes
    /// - `tokens`: `[batch, steps, K]`, `actions`: `[batch, steps]` -> `[batch, width]`
    pub fn fold(
        &self,
        codes: &Tensor<2>,
        tokens: Tensor<3, Int>,
        actions: Tensor<2, Int>,
        memory: Memory,
    ) -> (Tensor<2>, Memory) {
        let x = self.embed(codes, tokens, actions);
        self.network.read(x, memory)
    }

    /// [`Self::fold`] and [`Self::observation_logits`] in one call: the outputs of the last action, the next
    /// observation's logits, the memory.
    pub fn fold_and_predict(
        &self,
        codes: &Tensor<2>,
        tokens: Tensor<3, Int>,
        actions: Tensor<2, Int>,
        memory: &Memory,
    ) -> (Tensor<2>, Tensor<3>, Memory) {
        let x = self.embed(codes, tokens, actions);
        let (output, predictions, memory) = self.network.read_and_peek(x, memory);
        (output, self.head_observations.forward(predictions), memory)
    }

    /// Reward logits (or the reward) and end logits: `[batch, width]` -> `[batch, 3 | 1]`, `[batch, 2]`.
    pub fn outcome_logits(&self, output: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        (
            self.head_rewards.forward(output.clone()),
            self.head_ends.forward(output),
        )
    }

    /// The next observation's logits from a memory, by the prediction tokens: `[batch, K, vocabulary]`.
    pub fn observation_logits(&self, memory: &Memory) -> Tensor<3> {
        self.head_observations.forward(self.network.peek(memory))
    }

    /// The head on outputs of any origin: `[rows, width]` -> `[rows, vocabulary]`.
    pub fn token_logits(&self, outputs: Tensor<2>) -> Tensor<2> {
        self.head_observations.forward(outputs)
    }

    /// How rewards are modelled.
    pub fn rewards(&self) -> Rewards {
        self.rewards
    }

    /// How a dream's next observation comes about.
    pub fn generation(&self) -> Generation {
        self.generation
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// One real step, then padding: reward 1 and the end of the episode.
    fn losses(set: &[String], real: usize) -> [f32; 3] {
        let config = Config::load("debug", set).unwrap();
        let sizes = WorldModelSizes {
            tokens_per_obs: 4,
            ..WorldModelSizes::of(&config, 2)
        };
        let device = Device::flex();
        let model = WorldModel::new(&config.world_model, sizes, Precision::F32, &device);
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
        let l = model.losses(&codes, &batch, 0);
        [l.observations, l.rewards, l.ends].map(|t| t.into_scalar())
    }

    fn after(context: usize, outcome_loss: &str) -> [String; 2] {
        [
            format!("world_model.context={context}"),
            format!("world_model.outcome_loss={outcome_loss}"),
        ]
    }

    #[test]
    fn padded_and_context_steps_carry_no_loss() {
        assert_eq!(losses(&after(1, "after_context"), 1), [0.0; 3]);
        assert_eq!(losses(&after(2, "after_context"), 2), [0.0; 3]);
        let learned = losses(&after(1, "after_context"), 2);
        assert!(learned.iter().all(|l| *l > 0.0));
    }

    #[test]
    fn rewards_and_ends_are_learned_where_a_dream_first_reads_them() {
        for context in [1, 2] {
            let set = after(context, "from_context");
            let [observations, rewards, ends] = losses(&set, context);
            assert_eq!(observations, 0.0);
            assert!(rewards > 0.0 && ends > 0.0);
            assert_eq!(losses(&set, context - 1), [0.0; 3]);
        }
    }

    /// Of a long context, too, the model learns its later observations where it is told to.
    #[test]
    fn a_longer_context_need_not_be_learned_less() {
        let set = ["world_model.context=3", "world_model.learn_from=1"].map(String::from);
        assert!(losses(&set, 2).iter().all(|l| *l > 0.0));
        assert_eq!(losses(&set[..1], 3), [0.0; 3]);
    }

    /// Every network and every kind of embeddings gets better at segments that it sees again and again.
    #[test]
    fn every_network_learns() {
        for set in [
            &["world_model.architecture=pop"][..],
            &["world_model.architecture=pop", "world_model.embeddings=own"],
            &["world_model.architecture=retnet"],
            &["world_model.architecture=transformer"],
            &[
                "world_model.architecture=transformer",
                "world_model.embeddings=own",
            ],
        ] {
            let set: Vec<String> = set.iter().map(|s| s.to_string()).collect();
            let config = Config::load("debug", &set).unwrap();
            let device = Device::flex().autodiff();
            let sizes = WorldModelSizes::of(&config, 3);
            let mut model = WorldModel::new(&config.world_model, sizes, Precision::F32, &device);
            let plain = Device::flex();
            let (batch, steps, k) = (2, config.train.horizon, sizes.tokens_per_obs);
            let ints = |count: usize, below: i64| {
                let numbers = Tensor::<1, Int>::arange(0..count as i64, &plain);
                (numbers.clone() * numbers).remainder_scalar(below)
            };
            let segments = TokenBatch {
                tokens: ints(batch * steps * k, 11).reshape([batch, steps, k]),
                actions: ints(batch * steps, 3).reshape([batch, steps]),
                rewards: ints(batch * steps, 2).float().reshape([batch, steps]),
                ends: Tensor::zeros([batch, steps], &plain),
                mask: Tensor::ones([batch, steps], &plain),
            };
            let normal = burn::tensor::Distribution::Normal(0.0, 1.0);
            let codes = Tensor::random([sizes.vocabulary, sizes.width], normal, &plain);
            let mut optimiser = crate::optimiser::AdamW::new(
                &config.world_model.optimise,
                &config.train,
                crate::optimiser::DecayGroup::WeightMatrices,
            );
            let mut losses = Vec::new();
            for step in 0..60 {
                let loss = model.losses(&codes, &segments, step).total();
                losses.push(loss.clone().inner().into_scalar::<f32>());
                model = optimiser.step(model, &loss).unwrap().0;
            }
            assert!(losses[59] < 0.6 * losses[0], "{set:?}: {losses:?}");
        }
    }
}
