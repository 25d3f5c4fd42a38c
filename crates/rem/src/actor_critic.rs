//! The controller C: an LSTM over code grids and actions, with a policy and a value (paper, section actor-critic-details).

use burn::module::{Initializer, Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Distribution, Int, Tensor};

use rem_kernels::{Activation, Precision};

use crate::config::{self, Config, ControllerInputs};
use crate::linear::linear;
use crate::tokenizer::Tokenizer;

mod sight;

use sight::Sight;

#[derive(Module, Debug)]
pub struct ActorCritic {
    sight: Sight,
    lstm: LstmCell,
    /// `[actions, lstm]`, where the controller takes actions in
    action_embeddings: Option<Param<Tensor<2>>>,
    actor: Linear,
    critic: Linear,
}

/// The sizes of a controller that come from elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct ControllerSizes {
    /// Of a code.
    pub width: usize,
    /// Codes along one side of a frame.
    pub grid: usize,
    /// Pixels along one side of a frame.
    pub frame_size: usize,
    pub actions: usize,
}

impl ControllerSizes {
    pub fn of(config: &Config, actions: usize) -> Self {
        Self {
            width: config.tokenizer.embedding,
            grid: config.grid(),
            frame_size: config.env.frame_size,
            actions,
        }
    }
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
    fn new(inputs: usize, width: usize, precision: Precision, device: &Device) -> Self {
        // Uniform in ±1/sqrt(width), as is usual for an LSTM.
        let bound = 1.0 / (width as f64).sqrt();
        let linear = |from: usize| {
            let uniform = Initializer::Uniform {
                min: -bound,
                max: bound,
            };
            LinearConfig::new(from, 4 * width)
                .with_initializer(uniform)
                .init(device)
        };
        Self {
            input: linear(inputs),
            hidden: linear(width),
            precision,
        }
    }

    /// What an input gives to the gates: `[rows, inputs]` -> `[rows, 4 * width]`.
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
    pub fn new(
        config: &config::ActorCritic,
        sizes: ControllerSizes,
        precision: Precision,
        device: &Device,
    ) -> Self {
        let (lstm, actions) = (config.lstm, sizes.actions);
        let embeddings = || {
            let normal = Distribution::Normal(0.0, 1.0);
            Param::from_tensor(Tensor::random([actions, lstm], normal, device))
        };
        // How it looks, how much that gives to the LSTM, and whether actions are given to it too.
        let (sight, inputs, action_embeddings) = match config.inputs {
            ControllerInputs::CodesAndActions => {
                (Sight::codes(lstm, sizes, device), lstm, Some(embeddings()))
            }
            ControllerInputs::Codes => (Sight::codes(lstm, sizes, device), lstm, None),
            ControllerInputs::Pixels => {
                let (sight, inputs) = Sight::pixels(sizes, device);
                (sight, inputs, None)
            }
        };
        Self {
            sight,
            lstm: LstmCell::new(inputs, lstm, precision, device),
            action_embeddings,
            actor: LinearConfig::new(lstm, actions).init(device),
            critic: LinearConfig::new(lstm, 1).init(device),
        }
    }

    /// What the controller is shown of observations: `[n, K]` -> `[n, side, side, channels]`.
    pub fn view(&self, tokenizer: &Tokenizer, tokens: Tensor<2, Int>) -> Tensor<4> {
        self.sight.view(tokenizer, tokens)
    }

    /// The state before anything was seen.
    pub fn initial_state(&self, batch: usize) -> ControllerState {
        let [lstm, _] = self.lstm.hidden.weight.dims();
        let device = self.lstm.hidden.weight.device();
        let zero = Tensor::zeros([batch, lstm], &device);
        ControllerState {
            hidden: zero.clone(),
            cell: zero,
        }
    }

    /// Takes an observation in, as [`Self::view`] shows it.
    pub fn observe(&self, view: Tensor<4>, state: ControllerState) -> ControllerState {
        self.take_in(self.look(view), state)
    }

    /// What views of observations give to the LSTM's gates: `[observations, side, side, channels]` ->
    /// `[observations, 4 * lstm]`.
    pub fn look(&self, views: Tensor<4>) -> Tensor<2> {
        let (x, activation) = self.sight.look(views, self.lstm.precision);
        self.lstm.gates(x, activation)
    }

    /// What each action gives to the LSTM's gates, `[actions, 4 * lstm]`, where actions are taken in.
    pub fn action_gates(&self) -> Option<Tensor<2>> {
        let embeddings = self.action_embeddings.as_ref()?;
        Some(self.lstm.gates(embeddings.val(), Activation::None))
    }

    /// Takes gates of an observation or an action in.
    pub fn take_in(&self, gates: Tensor<2>, state: ControllerState) -> ControllerState {
        self.lstm.step(gates, state)
    }

    /// Takes an action in: `[batch]`. A controller without action inputs stays as it was.
    pub fn act(&self, actions: Tensor<1, Int>, state: ControllerState) -> ControllerState {
        match self.action_gates() {
            Some(gates) => self.take_in(gates.select(0, actions), state),
            None => state,
        }
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
    /// - `views`: all of a step after each other, `[steps * batch, side, side, channels]`; `actions`:
    ///   `[batch, steps - 1]`, those between the observations
    /// - result: `[batch, steps, actions]`, `[batch, steps]`
    pub fn relive(
        &self,
        views: Tensor<4>,
        actions: Tensor<2, Int>,
        state: ControllerState,
    ) -> (Tensor<3>, Tensor<2>) {
        let [batch, between] = actions.dims();
        let steps = between + 1;
        let [lstm, gates] = self.lstm.hidden.weight.dims();
        let precision = self.lstm.precision;
        // Time comes first: [steps * batch, …]
        let seen: Tensor<3> = self.look(views).reshape([steps, batch, gates]);
        let (inputs, inputs_per_step) = match self.action_gates() {
            None => (seen, 1),
            Some(table) => {
                let taken: Tensor<1, Int> = actions.swap_dims(0, 1).reshape([(steps - 1) * batch]);
                let taken: Tensor<4> = table.select(0, taken).reshape([steps - 1, 1, batch, gates]);
                // Observation and action by turns, the last observation alone: [2 * steps - 1, batch, gates]
                let earlier: Tensor<4> = seen.clone().narrow(0, 0, steps - 1).unsqueeze_dim(1);
                let pairs = Tensor::cat(vec![earlier, taken], 1);
                let pairs = pairs.reshape([2 * (steps - 1), batch, gates]);
                let last = seen.narrow(0, steps - 1, 1);
                (Tensor::cat(vec![pairs, last], 0), 2)
            }
        };
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
        let observed =
            Tensor::<1, Int>::arange(0..steps as i64, &device).mul_scalar(inputs_per_step);
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

#[cfg(test)]
mod tests;
