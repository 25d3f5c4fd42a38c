//! The controller C: an LSTM over observations and actions, with a policy and a value head (Section 2.1, Appendix
//! A.1.3).

use burn::module::{Initializer, Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::softmax;
use burn::tensor::{Device, Distribution, Int, Tensor};

use rem_kernels::{Activation, Precision};

use crate::config::{self, Config, ControllerInputs, Values};
use crate::model::hl_gauss;
use crate::model::linear::{bias, linear};
use crate::model::tokenizer::Tokenizer;

mod losses;
mod obs_encoder;

pub use losses::{ActorCriticLosses, Experience, losses};
use obs_encoder::ObsEncoder;

/// Observation encoder, LSTM, and the heads for policy and value.
#[derive(Module, Debug)]
pub struct ActorCritic {
    encoder: ObsEncoder,
    lstm: LstmCell,
    /// `[actions, lstm]`; `None` without action inputs
    action_embeddings: Option<Param<Tensor<2>>>,
    actor: Linear,
    critic: Linear,
    #[module(skip)]
    value_model: Values,
    uniform_mix: f64,
}

/// Sizes that a controller takes from other components.
#[derive(Clone, Copy, Debug)]
pub struct ControllerSizes {
    /// Dimension of a code.
    pub width: usize,
    /// Codes along one side of a frame.
    pub grid: usize,
    /// Pixels along one side of a frame.
    pub frame_size: usize,
    /// Number of actions.
    pub actions: usize,
}

impl ControllerSizes {
    /// The sizes given by a config and the environment's number of actions.
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

/// The state of the LSTM: an argument and a result of the controller's methods.
#[derive(Clone, Debug)]
pub struct ControllerState {
    /// `[batch, lstm]`
    pub hidden: Tensor<2>,
    /// `[batch, lstm]`
    pub cell: Tensor<2>,
}

impl ControllerState {
    /// `self` where `mask` is 1, `other` where it is 0. `mask` is `[batch, 1]`.
    pub(crate) fn where_mask(self, mask: &Tensor<2>, other: Self) -> Self {
        let pick = |new: Tensor<2>, old: Tensor<2>| old.clone() + (new - old) * mask.clone();
        Self {
            hidden: pick(self.hidden, other.hidden),
            cell: pick(self.cell, other.cell),
        }
    }

    /// Concatenates two states along the batch.
    pub(crate) fn concat(self, other: Self) -> Self {
        Self {
            hidden: Tensor::cat(vec![self.hidden, other.hidden], 0),
            cell: Tensor::cat(vec![self.cell, other.cell], 0),
        }
    }

    /// The rows `indices` of the state.
    pub(crate) fn select(&self, indices: Tensor<1, Int>) -> Self {
        Self {
            hidden: self.hidden.clone().select(0, indices.clone()),
            cell: self.cell.clone().select(0, indices),
        }
    }
}

/// Outputs of the policy and value heads.
#[derive(Clone, Debug)]
pub struct Heads {
    /// Policy logits, `[batch, actions]`.
    pub logits: Tensor<2>,
    /// Values, `[batch]`.
    pub values: Tensor<1>,
}

impl LstmCell {
    fn new(inputs: usize, width: usize, precision: Precision, device: &Device) -> Self {
        // Uniform in ±1/sqrt(width), as in PyTorch.
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

    /// The contribution of an input to the gates: `[rows, inputs]` -> `[rows, 4 * width]`.
    fn gates(&self, x: Tensor<2>, activation: Activation) -> Tensor<2> {
        linear(&self.input, activation, x, self.precision)
    }

    /// One step, given the contribution of the input: `[batch, 4 * width]`.
    fn step(&self, gates: Tensor<2>, state: ControllerState) -> ControllerState {
        let from_state = linear(&self.hidden, Activation::None, state.hidden, self.precision);
        let (hidden, cell) = rem_kernels::lstm_cell(gates + from_state, state.cell);
        ControllerState { hidden, cell }
    }
}

impl ActorCritic {
    /// A controller with initial weights.
    pub fn new(
        config: &config::ActorCritic,
        sizes: ControllerSizes,
        precision: Precision,
        device: &Device,
    ) -> Self {
        let (lstm, actions) = (config.lstm_dim, sizes.actions);
        let embeddings = || {
            let normal = Distribution::Normal(0.0, 1.0);
            Param::from_tensor(Tensor::random([actions, lstm], normal, device))
        };
        // `inputs` is the input size of the LSTM.
        let (encoder, inputs, action_embeddings) = match config.inputs {
            ControllerInputs::CodesAndActions { .. } => (
                ObsEncoder::codes(lstm, sizes, device),
                lstm,
                Some(embeddings()),
            ),
            ControllerInputs::Codes {} => (ObsEncoder::codes(lstm, sizes, device), lstm, None),
            ControllerInputs::Pixels {} => {
                let (encoder, inputs) = ObsEncoder::pixels(sizes, device);
                (encoder, inputs, None)
            }
        };
        Self {
            encoder,
            lstm: LstmCell::new(inputs, lstm, precision, device),
            action_embeddings,
            actor: LinearConfig::new(lstm, actions).init(device),
            critic: match config.values {
                Values::Continuous => LinearConfig::new(lstm, 1).init(device),
                Values::HlGauss => hl_gauss::zero_layer(lstm, device),
            },
            value_model: config.values,
            uniform_mix: config.uniform_mix,
        }
    }

    /// The encoder's input for observations, code grids or decoded frames: `[n, K]` -> `[n, side, side, channels]`.
    pub fn encoder_input(&self, tokenizer: &Tokenizer, tokens: Tensor<2, Int>) -> Tensor<4> {
        self.encoder.input(tokenizer, tokens)
    }

    /// The state at the start of an episode.
    pub fn initial_state(&self, batch: usize) -> ControllerState {
        let [lstm, _] = self.lstm.hidden.weight.dims();
        let device = self.lstm.hidden.weight.device();
        let zero = Tensor::zeros([batch, lstm], &device);
        ControllerState {
            hidden: zero.clone(),
            cell: zero,
        }
    }

    /// Updates the state with observations, given as [`Self::encoder_input`]: `[batch, side, side, channels]`.
    pub fn observe(&self, input: Tensor<4>, state: ControllerState) -> ControllerState {
        self.lstm_step(self.encode(input), state)
    }

    /// The contribution of observations to the LSTM's gates: `[n, side, side, channels]` -> `[n, 4 * lstm]`.
    pub(crate) fn encode(&self, inputs: Tensor<4>) -> Tensor<2> {
        let (x, activation) = self.encoder.encode(inputs, self.lstm.precision);
        self.lstm.gates(x, activation)
    }

    /// The contribution of each action to the LSTM's gates, `[actions, 4 * lstm]`; `None` without action inputs.
    pub(crate) fn action_gates(&self) -> Option<Tensor<2>> {
        let embeddings = self.action_embeddings.as_ref()?;
        Some(self.lstm.gates(embeddings.val(), Activation::None))
    }

    /// One LSTM step, given the contribution of an observation or action to the gates: `[batch, 4 * lstm]`.
    pub(crate) fn lstm_step(&self, gates: Tensor<2>, state: ControllerState) -> ControllerState {
        self.lstm.step(gates, state)
    }

    /// Updates the state with actions, `[batch]`. Returns it unchanged without action inputs.
    pub fn act(&self, actions: Tensor<1, Int>, state: ControllerState) -> ControllerState {
        match self.action_gates() {
            Some(gates) => self.lstm_step(gates.select(0, actions), state),
            None => state,
        }
    }

    /// Always in f32: the heads are cheap, and policy and value need the precision.
    fn head(&self, layer: &Linear, hidden: Tensor<2>) -> Tensor<2> {
        linear(layer, Activation::None, hidden, Precision::F32)
    }

    /// Policy and value of a state.
    pub fn heads(&self, state: &ControllerState) -> Heads {
        Heads {
            logits: self.policy(self.head(&self.actor, state.hidden.clone())),
            values: self.values(self.head(&self.critic, state.hidden.clone())),
        }
    }

    /// The logits of the policy mixed with the uniform distribution: `[rows, actions]` -> the same.
    fn policy(&self, logits: Tensor<2>) -> Tensor<2> {
        if self.uniform_mix == 0.0 {
            return logits;
        }
        let [_, actions] = logits.dims();
        let own = softmax(logits, 1).mul_scalar(1.0 - self.uniform_mix);
        (own + self.uniform_mix / actions as f64).log()
    }

    /// The values that outputs of the critic stand for: `[rows, outputs]` -> `[rows]`.
    fn values(&self, outputs: Tensor<2>) -> Tensor<1> {
        let [rows, _] = outputs.dims();
        match self.value_model {
            Values::Continuous => outputs.reshape([rows]),
            Values::HlGauss => hl_gauss::decode(outputs),
        }
    }
}

impl ActorCritic {
    /// Policy logits and values of known trajectories, all steps at once. Equals alternating [`Self::observe`],
    /// [`Self::heads`] and [`Self::act`].
    ///
    /// # Shapes
    ///
    /// - `inputs`: [`Self::encoder_input`] of all observations, time first, `[steps * batch, side, side, channels]`
    /// - `actions`: those between the observations, `[batch, steps - 1]`
    /// - result: `[batch, steps, actions]`, `[batch, steps]`
    pub fn unroll(
        &self,
        inputs: Tensor<4>,
        actions: Tensor<2, Int>,
        state: ControllerState,
    ) -> (Tensor<3>, Tensor<2>) {
        let unrolled = self.unroll_heads(inputs, actions, state);
        (unrolled.logits, unrolled.values)
    }

    /// As [`Self::unroll`], with the outputs of the critic.
    pub(crate) fn unroll_heads(
        &self,
        inputs: Tensor<4>,
        actions: Tensor<2, Int>,
        state: ControllerState,
    ) -> Unrolled {
        let [batch, between] = actions.dims();
        let steps = between + 1;
        let [lstm, gates] = self.lstm.hidden.weight.dims();
        let precision = self.lstm.precision;
        let observations: Tensor<3> = self.encode(inputs).reshape([steps, batch, gates]);
        let (sequence, inputs_per_step) = match self.action_gates() {
            None => (observations, 1),
            Some(table) => {
                let actions = actions.swap_dims(0, 1).reshape([between * batch]);
                let actions = table.select(0, actions);
                let actions: Tensor<4> = actions.reshape([between, 1, batch, gates]);
                // Observations and actions alternate, from the first to the last observation:
                // [2 * steps - 1, batch, gates]
                let earlier = observations.clone().narrow(0, 0, between);
                let earlier: Tensor<4> = earlier.unsqueeze_dim(1);
                let pairs = Tensor::cat(vec![earlier, actions], 1);
                let pairs = pairs.reshape([2 * between, batch, gates]);
                let last = observations.narrow(0, between, 1);
                (Tensor::cat(vec![pairs, last], 0), 2)
            }
        };
        let hidden = rem_kernels::lstm_sequence(
            sequence,
            self.lstm.hidden.weight.val(),
            bias(&self.lstm.hidden),
            state.hidden,
            state.cell,
            precision,
        );
        // Hidden states after the observations: [steps * batch, lstm]
        let device = hidden.device();
        let observed =
            Tensor::<1, Int>::arange(0..steps as i64, &device).mul_scalar(inputs_per_step);
        let hidden: Tensor<2> = hidden.select(0, observed).reshape([steps * batch, lstm]);
        let logits = self.policy(self.head(&self.actor, hidden.clone()));
        let [_, action_count] = logits.dims();
        let logits: Tensor<3> = logits.reshape([steps, batch, action_count]).swap_dims(0, 1);
        let critic = self.head(&self.critic, hidden);
        let [_, outputs] = critic.dims();
        let values: Tensor<2> = self.values(critic.clone()).reshape([steps, batch]);
        let critic: Tensor<3> = critic.reshape([steps, batch, outputs]);
        Unrolled {
            logits,
            values: values.swap_dims(0, 1),
            critic: critic.swap_dims(0, 1),
        }
    }
}

/// Outputs of the heads for all steps of trajectories.
pub(crate) struct Unrolled {
    /// Policy logits, `[batch, steps, actions]`.
    pub(crate) logits: Tensor<3>,
    /// Values, `[batch, steps]`.
    pub(crate) values: Tensor<2>,
    /// What the values are computed from, `[batch, steps, outputs]`.
    pub(crate) critic: Tensor<3>,
}

#[cfg(test)]
mod tests;
