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
use crate::tokenizer::code_grid;

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

    /// The rows of both, one below the other.
    pub fn with(self, other: Self) -> Self {
        Self {
            hidden: Tensor::cat(vec![self.hidden, other.hidden], 0),
            cell: Tensor::cat(vec![self.cell, other.cell], 0),
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

    /// What an input gives to the gates: `[rows, width]` -> `[rows, 4 * width]`.
    fn gates(&self, x: Tensor<2>, activation: Activation) -> Tensor<2> {
        linear(&self.input, activation, x, self.precision)
    }

    fn step(&self, gates: Tensor<2>, state: ControllerState) -> ControllerState {
        let from_state = linear(&self.hidden, Activation::None, state.hidden, self.precision);
        let (hidden, cell) = rem_kernels::lstm_cell(gates + from_state, state.cell);
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

    /// What observations give to the LSTM's gates: `[observations, grid, grid, width]` ->
    /// `[observations, 4 * lstm]`.
    pub fn look(&self, codes: Tensor<4>) -> Tensor<2> {
        let precision = self.lstm.precision;
        let mut x = codes;
        for (i, layer) in self.convs.iter().enumerate() {
            let before = if i == 0 {
                Activation::None
            } else {
                Activation::Silu
            };
            x = conv(layer, ConvKind::Same, before, x, precision);
        }
        // The dense layer's inputs are in the order channel, row, column.
        let x: Tensor<2> = x.permute([0, 3, 1, 2]).flatten(1, 3);
        let x = linear(&self.dense, Activation::Silu, x, precision);
        self.lstm.gates(x, Activation::Silu)
    }

    /// What each action gives to the LSTM's gates: `[actions, 4 * lstm]`.
    pub fn action_gates(&self) -> Tensor<2> {
        self.lstm
            .gates(self.action_embeddings.val(), Activation::None)
    }

    /// Takes gates of an observation or an action in.
    pub fn take_in(&self, gates: Tensor<2>, state: ControllerState) -> ControllerState {
        self.lstm.step(gates, state)
    }

    /// Takes an action in: `[batch]`.
    pub fn act(&self, actions: Tensor<1, Int>, state: ControllerState) -> ControllerState {
        self.take_in(self.action_gates().select(0, actions), state)
    }

    /// Policy and value are small and what everything hangs on: always in f32.
    fn head(&self, layer: &Linear, hidden: Tensor<2>) -> Tensor<2> {
        linear(layer, Activation::None, hidden, Precision::F32)
    }

    pub fn heads(&self, state: &ControllerState) -> Heads {
        let [batch, _] = state.hidden.dims();
        Heads {
            logits: self.head(&self.actor, state.hidden.clone()),
            values: self
                .head(&self.critic, state.hidden.clone())
                .reshape([batch]),
        }
    }
}

impl ActorCritic {
    /// Goes through known observations and actions once more, all together: the logits and values that
    /// [`Self::observe`], [`Self::heads`] and [`Self::act`] give one after the other.
    /// # Shapes
    /// - `tokens`: `[batch, steps, K]`; `actions`: `[batch, steps - 1]`, those between the observations
    /// - result: `[batch, steps, actions]`, `[batch, steps]`
    pub fn relive(
        &self,
        codes: &Tensor<2>,
        tokens: Tensor<3, Int>,
        actions: Tensor<2, Int>,
        state: ControllerState,
    ) -> (Tensor<3>, Tensor<2>) {
        let [batch, steps, k] = tokens.dims();
        let [lstm, gates] = self.lstm.input.weight.dims();
        let precision = self.lstm.precision;
        // From here on time comes first: [steps * batch, …]
        let tokens: Tensor<2, Int> = tokens.swap_dims(0, 1).reshape([steps * batch, k]);
        let seen = self.look(code_grid(codes.clone(), tokens));
        let seen: Tensor<3> = seen.reshape([steps, batch, gates]);
        let table = self.action_gates();
        let taken: Tensor<1, Int> = actions.swap_dims(0, 1).reshape([(steps - 1) * batch]);
        let taken: Tensor<4> = table.select(0, taken).reshape([steps - 1, 1, batch, gates]);

        // Observation and action by turns, the last observation alone: [2 * steps - 1, batch, gates]
        let earlier: Tensor<4> = seen.clone().narrow(0, 0, steps - 1).unsqueeze_dim(1);
        let pairs = Tensor::cat(vec![earlier, taken], 1).reshape([2 * (steps - 1), batch, gates]);
        let inputs = Tensor::cat(vec![pairs, seen.narrow(0, steps - 1, 1)], 0);
        let hidden = rem_kernels::lstm_sequence(
            inputs,
            self.lstm.hidden.weight.val(),
            crate::linear::bias(&self.lstm.hidden),
            state.hidden,
            state.cell,
            precision,
        );
        // After the observations: [steps * batch, lstm]
        let device = hidden.device();
        let observed = Tensor::<1, Int>::arange(0..steps as i64, &device).mul_scalar(2);
        let hidden: Tensor<2> = hidden.select(0, observed).reshape([steps * batch, lstm]);
        let logits = self.head(&self.actor, hidden.clone());
        let [_, choices] = logits.dims();
        let logits: Tensor<3> = logits.reshape([steps, batch, choices]).swap_dims(0, 1);
        let values: Tensor<2> = self.head(&self.critic, hidden).reshape([steps, batch]);
        (logits, values.swap_dims(0, 1))
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
