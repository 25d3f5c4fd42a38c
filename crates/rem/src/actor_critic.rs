//! The controller C: an LSTM over code grids and actions, with a policy and a value (paper, section actor-critic-details).

use burn::module::{Initializer, Module, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::activation::{log_softmax, sigmoid, silu, tanh};
use burn::tensor::{Device, Distribution, Int, Tensor};

use crate::config;

#[derive(Module, Debug)]
pub struct ActorCritic {
    convs: Vec<Conv2d>,
    dense: Linear,
    lstm: LstmCell,
    /// `[actions, lstm]`
    action_embeddings: Param<Tensor<2>>,
    actor: Linear,
    critic: Linear,
}

/// An LSTM cell, gates in the order input, forget, cell, output.
#[derive(Module, Debug)]
struct LstmCell {
    input: Linear,
    hidden: Linear,
}

/// The LSTM's memory, a value that goes in and comes out: two `[batch, lstm]`.
#[derive(Clone, Debug)]
pub struct ControllerState {
    pub hidden: Tensor<2>,
    pub cell: Tensor<2>,
}

impl ControllerState {
    /// The same state where `mask` (`[batch, 1]`) is 1, the other where it is 0.
    pub fn or_where_masked(self, other: Self, mask: &Tensor<2>) -> Self {
        let pick = |new: Tensor<2>, old: Tensor<2>| old.clone() + (new - old) * mask.clone();
        Self {
            hidden: pick(self.hidden, other.hidden),
            cell: pick(self.cell, other.cell),
        }
    }

    /// The rows `indices` of the state.
    pub fn select(&self, indices: Tensor<1, Int>) -> Self {
        Self {
            hidden: self.hidden.clone().select(0, indices.clone()),
            cell: self.cell.clone().select(0, indices),
        }
    }
}

/// Policy logits, `[batch, actions]`, and values, `[batch]`.
#[derive(Clone, Debug)]
pub struct Heads {
    pub logits: Tensor<2>,
    pub values: Tensor<1>,
}

impl LstmCell {
    fn new(width: usize, device: &Device) -> Self {
        // Uniform in ±1/sqrt(width), as is usual for an LSTM.
        let bound = 1.0 / (width as f64).sqrt();
        let linear = || {
            let uniform = Initializer::Uniform {
                min: -bound,
                max: bound,
            };
            LinearConfig::new(width, 4 * width)
                .with_initializer(uniform)
                .init(device)
        };
        Self {
            input: linear(),
            hidden: linear(),
        }
    }

    fn forward(&self, x: Tensor<2>, state: ControllerState) -> ControllerState {
        let gates = self.input.forward(x) + self.hidden.forward(state.hidden);
        let mut gates = gates.chunk(4, 1).into_iter();
        let mut next = || gates.next().expect("four gates");
        let (input, forget, cell, output) = (next(), next(), next(), next());
        let cell = sigmoid(forget) * state.cell + sigmoid(input) * tanh(cell);
        ControllerState {
            hidden: sigmoid(output) * tanh(cell.clone()),
            cell,
        }
    }
}

impl ActorCritic {
    /// # Arguments
    /// - `width`: of a code; `grid`: codes along one side of a frame
    pub fn new(lstm: usize, width: usize, grid: usize, actions: usize, device: &Device) -> Self {
        let conv = |from: usize, to: usize| {
            Conv2dConfig::new([from, to], [3, 3])
                .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
                .init(device)
        };
        let embeddings = Tensor::random([actions, lstm], Distribution::Normal(0.0, 1.0), device);
        Self {
            convs: vec![conv(width, width / 2), conv(width / 2, width / 4)],
            dense: LinearConfig::new(width / 4 * grid * grid, lstm).init(device),
            lstm: LstmCell::new(lstm, device),
            action_embeddings: Param::from_tensor(embeddings),
            actor: LinearConfig::new(lstm, actions).init(device),
            critic: LinearConfig::new(lstm, 1).init(device),
        }
    }

    /// The state before anything was seen.
    pub fn initial_state(&self, batch: usize) -> ControllerState {
        let [lstm, _] = self.lstm.input.weight.dims();
        let device = self.lstm.input.weight.device();
        let zero = Tensor::zeros([batch, lstm], &device);
        ControllerState {
            hidden: zero.clone(),
            cell: zero,
        }
    }

    /// Takes an observation in: `codes` is `[batch, width, grid, grid]`.
    pub fn observe(&self, codes: Tensor<4>, state: ControllerState) -> ControllerState {
        let mut x = codes;
        for conv in &self.convs {
            x = silu(conv.forward(x));
        }
        let x: Tensor<2> = x.flatten(1, 3);
        self.lstm.forward(silu(self.dense.forward(x)), state)
    }

    /// Takes an action in: `[batch]`.
    pub fn act(&self, actions: Tensor<1, Int>, state: ControllerState) -> ControllerState {
        let x = self.action_embeddings.val().select(0, actions);
        self.lstm.forward(x, state)
    }

    pub fn heads(&self, state: &ControllerState) -> Heads {
        let [batch, _] = state.hidden.dims();
        Heads {
            logits: self.actor.forward(state.hidden.clone()),
            values: self.critic.forward(state.hidden.clone()).reshape([batch]),
        }
    }
}

/// What a dream gave the controller to learn from; rows are dreams, columns their steps.
pub struct Experience {
    /// `[batch, steps, actions]`, with gradient
    pub logits: Tensor<3>,
    /// `[batch, steps]`, with gradient
    pub values: Tensor<2>,
    /// `[batch, steps]`
    pub actions: Tensor<2, Int>,
    /// λ-returns, `[batch, steps]`
    pub returns: Tensor<2>,
    /// How much each step counts, `[batch, steps]`
    pub weights: Tensor<2>,
}

/// The terms of the controller's objective, as they are minimised.
pub struct ActorCriticLosses {
    pub actions: Tensor<1>,
    pub values: Tensor<1>,
    /// The entropy bonus with its weight and sign.
    pub entropy: Tensor<1>,
    /// The policy's mean entropy in nats, for the metrics.
    pub mean_entropy: Tensor<1>,
}

impl ActorCriticLosses {
    pub fn total(&self) -> Tensor<1> {
        self.actions.clone() + self.values.clone() + self.entropy.clone()
    }
}

/// REINFORCE with the value as baseline, squared error of the value, and the entropy bonus.
pub fn losses(x: Experience, config: &config::ActorCritic) -> ActorCriticLosses {
    let [batch, steps, _] = x.logits.dims();
    let log_policy = log_softmax(x.logits, 2);
    let chosen = log_policy
        .clone()
        .gather(2, x.actions.reshape([batch, steps, 1]));
    let chosen: Tensor<2> = chosen.reshape([batch, steps]);
    let entropy = (log_policy.clone().exp() * log_policy).sum_dim(2).neg();
    let entropy: Tensor<2> = entropy.reshape([batch, steps]);
    let advantage = x.returns.clone() - x.values.clone().detach();

    let total = x.weights.clone().sum();
    let mean = |t: Tensor<2>| (t * x.weights.clone()).sum() / total.clone();
    let mean_entropy = mean(entropy);
    ActorCriticLosses {
        actions: mean(chosen * advantage).neg(),
        values: mean((x.values - x.returns).square()),
        entropy: mean_entropy.clone().mul_scalar(-config.entropy),
        mean_entropy: mean_entropy.detach(),
    }
}
