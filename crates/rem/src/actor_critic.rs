//! The controller C: an LSTM over code grids and actions, with a policy and a value (paper, section actor-critic-details).

use burn::module::{Initializer, Module, Param};
use burn::nn::conv::Conv2d;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Distribution, Int, Tensor};

use rem_kernels::{Activation, ConvKind, Precision};

use crate::config;
use crate::conv::{conv, conv3};
use crate::linear::linear;

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
    #[module(skip)]
    precision: Precision,
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
    fn new(width: usize, precision: Precision, device: &Device) -> Self {
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
            precision,
        }
    }

    fn forward(
        &self,
        x: Tensor<2>,
        activation: Activation,
        state: ControllerState,
    ) -> ControllerState {
        let from_input = linear(&self.input, activation, x, self.precision);
        let from_state = linear(&self.hidden, Activation::None, state.hidden, self.precision);
        let (hidden, cell) = rem_kernels::lstm_cell(from_input + from_state, state.cell);
        ControllerState { hidden, cell }
    }
}

impl ActorCritic {
    /// # Arguments
    /// - `width`: of a code; `grid`: codes along one side of a frame
    pub fn new(
        lstm: usize,
        width: usize,
        grid: usize,
        actions: usize,
        precision: Precision,
        device: &Device,
    ) -> Self {
        let embeddings = Tensor::random([actions, lstm], Distribution::Normal(0.0, 1.0), device);
        Self {
            convs: vec![
                conv3(width, width / 2, device),
                conv3(width / 2, width / 4, device),
            ],
            dense: LinearConfig::new(width / 4 * grid * grid, lstm).init(device),
            lstm: LstmCell::new(lstm, precision, device),
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

    /// Takes an observation in: `codes` is `[batch, grid, grid, width]`.
    pub fn observe(&self, codes: Tensor<4>, state: ControllerState) -> ControllerState {
        self.take_in(self.look(codes), state)
    }

    /// What observations look like to the LSTM, before their last activation:
    /// `[observations, grid, grid, width]` -> `[observations, lstm]`.
    pub fn look(&self, codes: Tensor<4>) -> Tensor<2> {
        let precision = self.lstm.precision;
        let mut x = codes;
        for (i, layer) in self.convs.iter().enumerate() {
            let before = if i == 0 { Activation::None } else { Activation::Silu };
            x = conv(layer, ConvKind::Same, before, x, precision);
        }
        // The dense layer's inputs are in the order channel, row, column.
        let x: Tensor<2> = x.permute([0, 3, 1, 2]).flatten(1, 3);
        linear(&self.dense, Activation::Silu, x, precision)
    }

    /// Takes an observation in that was looked at.
    pub fn take_in(&self, seen: Tensor<2>, state: ControllerState) -> ControllerState {
        self.lstm.forward(seen, Activation::Silu, state)
    }

    /// Takes an action in: `[batch]`.
    pub fn act(&self, actions: Tensor<1, Int>, state: ControllerState) -> ControllerState {
        let x = self.action_embeddings.val().select(0, actions);
        self.lstm.forward(x, Activation::None, state)
    }

    /// Policy and value are small and what everything hangs on: always in f32.
    fn head(&self, layer: &Linear, state: &ControllerState) -> Tensor<2> {
        linear(layer, Activation::None, state.hidden.clone(), Precision::F32)
    }

    pub fn heads(&self, state: &ControllerState) -> Heads {
        let [batch, _] = state.hidden.dims();
        Heads {
            logits: self.head(&self.actor, state),
            values: self.head(&self.critic, state).reshape([batch]),
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
