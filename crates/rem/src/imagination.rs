//! Dreaming: the controller acts, the world model answers (paper, section method-infer, Alg. train_C).
//!
//! The default mode takes two world-model calls a step: fold the block of observation and action into
//! the state, then ask the prediction tokens for the whole next observation.

use burn::tensor::{Int, Tensor};
use rand::Rng;

use crate::actor_critic::{ActorCritic, ControllerState, Experience};
use crate::config::{self, AfterEnd, BurnInInputs, Rewards};
use crate::retnet::RetNetState;
use crate::returns::lambda_returns;
use crate::sampling::sample;
use crate::tokenizer::code_grid;
use crate::world_model::WorldModel;

/// A dream in progress: it steps like an environment, for a batch of dreams at once.
pub struct Dream<'a> {
    world_model: &'a WorldModel,
    codes: &'a Tensor<2>,
    state: RetNetState,
    /// The observations now, `[batch, K]`
    tokens: Tensor<2, Int>,
}

/// What a step of a dream gave.
pub struct DreamStep {
    /// `[batch]`
    pub rewards: Vec<f32>,
    pub ends: Vec<bool>,
}

impl<'a> Dream<'a> {
    /// A dream that starts at the last observation of a real context.
    /// # Shapes
    /// - `tokens`: `[batch, context, K]`; `actions`: `[batch, context - 1]`, those between the observations,
    ///   none for a context of one observation
    pub fn start(
        world_model: &'a WorldModel,
        codes: &'a Tensor<2>,
        tokens: Tensor<3, Int>,
        actions: Option<Tensor<2, Int>>,
    ) -> Self {
        let [_, context, _] = tokens.dims();
        let state = match actions {
            Some(actions) => {
                let past = tokens.clone().narrow(1, 0, context - 1);
                world_model
                    .fold(codes, past, actions, &RetNetState::empty())
                    .1
            }
            None => RetNetState::empty(),
        };
        Self {
            world_model,
            codes,
            state,
            tokens: tokens.narrow(1, context - 1, 1).squeeze_dim(1),
        }
    }

    /// The observations now, `[batch, K]`.
    pub fn tokens(&self) -> Tensor<2, Int> {
        self.tokens.clone()
    }

    /// Takes the actions (`[batch]`) and draws reward, end and the next observation.
    pub fn step(&mut self, actions: Tensor<1, Int>, rng: &mut impl Rng) -> DreamStep {
        let output = self.fold(actions);
        let step = self.outcome(output, rng);
        let logits = self.world_model.observation_logits(&self.state);
        let [batch, k, vocabulary] = logits.dims();
        let drawn = sample(logits.reshape([batch * k, vocabulary]), rng);
        self.see(drawn.reshape([batch, k]));
        step
    }

    /// Takes the observations and the actions (`[batch]`) into the state; gives the outputs at the actions,
    /// `[batch, width]`.
    pub fn fold(&mut self, actions: Tensor<1, Int>) -> Tensor<2> {
        let [batch, k] = self.tokens.dims();
        let block = self.tokens.clone().reshape([batch, 1, k]);
        let actions = actions.reshape([batch, 1]);
        let (output, state) = (self.world_model).fold(self.codes, block, actions, &self.state);
        self.state = state;
        output
    }

    /// What the world model remembers.
    pub fn state(&self) -> &RetNetState {
        &self.state
    }

    /// The next observations, `[batch, K]`.
    pub fn see(&mut self, tokens: Tensor<2, Int>) {
        self.tokens = tokens;
    }

    /// Draws rewards and ends from the outputs at the actions.
    pub fn outcome(&self, output: Tensor<2>, rng: &mut impl Rng) -> DreamStep {
        let [batch, _] = output.dims();
        let (reward_logits, end_logits) = self.world_model.outcome_logits(output);
        let rewards = match self.world_model.rewards() {
            Rewards::Sign => sample(reward_logits, rng).float() - 1.0,
            Rewards::Continuous => reward_logits.reshape([batch]),
        };
        let ends = sample(end_logits, rng);
        DreamStep {
            rewards: host(rewards),
            ends: host_ints(ends).into_iter().map(|e| e == 1).collect(),
        }
    }
}

/// Replay segments that dreams start from; padded on the left.
#[derive(Clone, Debug)]
pub struct DreamStarts {
    /// `[batch, burn_in + 1, K]`; the last observation is the dream's first
    pub tokens: Tensor<3, Int>,
    /// `[batch, burn_in]`, those between the observations
    pub actions: Tensor<2, Int>,
    /// `[batch, burn_in]`, 1 = a real step
    pub mask: Tensor<2>,
}

/// Numbers that tell how a batch of dreams went.
#[derive(Clone, Copy, Debug, Default)]
pub struct DreamStats {
    pub mean_return: f64,
    pub end_share: f64,
    pub mean_value: f64,
}

/// Warms the LSTM with real steps; a padded step leaves the state as it is.
/// # Shapes
/// - `tokens`: `[batch, steps, K]`, `actions`, `mask`: `[batch, steps]`
pub fn burn_in(
    controller: &ActorCritic,
    codes: &Tensor<2>,
    tokens: Tensor<3, Int>,
    actions: Tensor<2, Int>,
    mask: Tensor<2>,
    inputs: BurnInInputs,
) -> ControllerState {
    let [batch, steps, k] = tokens.dims();
    // All observations are looked at together; only the LSTM goes step by step.
    let seen = controller.look(code_grid(codes.clone(), tokens.reshape([batch * steps, k])));
    let [_, width] = seen.dims();
    let seen: Tensor<3> = seen.reshape([batch, steps, width]);
    let taken = controller.action_gates();
    let mut state = controller.initial_state(batch);
    for t in 0..steps {
        let now: Tensor<2> = seen.clone().narrow(1, t, 1).squeeze_dim(1);
        let mut next = controller.take_in(now, state.clone());
        if inputs == BurnInInputs::ObservationsAndActions {
            let action = actions.clone().narrow(1, t, 1).squeeze_dim(1);
            next = controller.take_in(taken.clone().select(0, action), next);
        }
        state = next.or_where_masked(state, &mask.clone().narrow(1, t, 1));
    }
    state
}

/// What was dreamt; rows are dreams.
#[derive(Clone, Debug)]
pub struct Rollout {
    /// The controller's state before the first observation.
    pub start: ControllerState,
    /// `[batch, steps, K]`; the first is real
    pub tokens: Tensor<3, Int>,
    /// `[batch, steps - 1]`, those between the observations
    pub actions: Tensor<2, Int>,
    /// After each action, by dream.
    pub rewards: Vec<Vec<f32>>,
    pub ends: Vec<Vec<bool>>,
}

/// Dreams on from each start until there are `steps` observations, with the policy's own actions. Nothing
/// here has gradients.
pub fn imagine(
    controller: &ActorCritic,
    world_model: &WorldModel,
    codes: &Tensor<2>,
    starts: DreamStarts,
    steps: usize,
    inputs: BurnInInputs,
    rng: &mut impl Rng,
) -> Rollout {
    let [batch, length, _] = starts.tokens.dims();
    let start = burn_in(
        controller,
        codes,
        starts.tokens.clone().narrow(1, 0, length - 1),
        starts.actions.clone(),
        starts.mask,
        inputs,
    );
    let context = world_model.context();
    let past = (context > 1).then(|| starts.actions.narrow(1, length - context, context - 1));
    let seen = starts.tokens.narrow(1, length - context, context);
    let mut dream = Dream::start(world_model, codes, seen, past);

    let mut state = start.clone();
    let (mut tokens, mut actions) = (vec![dream.tokens()], Vec::new());
    let mut rewards = vec![Vec::with_capacity(steps); batch];
    let mut ends = vec![Vec::with_capacity(steps); batch];
    for _ in 1..steps {
        state = controller.observe(code_grid(codes.clone(), dream.tokens()), state);
        let action = sample(controller.heads(&state).logits, rng);
        state = controller.act(action.clone(), state);
        actions.push(action.clone());
        let step = dream.step(action, rng);
        tokens.push(dream.tokens());
        for b in 0..batch {
            rewards[b].push(step.rewards[b]);
            ends[b].push(step.ends[b]);
        }
    }
    Rollout {
        start,
        tokens: Tensor::stack(tokens, 1),
        actions: Tensor::stack(actions, 1),
        rewards,
        ends,
    }
}

impl Rollout {
    /// What the controller, this time with gradients, can learn from it.
    pub fn experience(
        self,
        controller: &ActorCritic,
        codes: &Tensor<2>,
        config: &config::ActorCritic,
    ) -> (Experience, DreamStats) {
        let [batch, steps, _] = self.tokens.dims();
        let (logits, values) =
            controller.relive(codes, self.tokens, self.actions.clone(), self.start);
        let value_rows = host(values.clone().inner().reshape([batch * steps]));
        // The last observation is only there for its value.
        let used = steps - 1;
        let (mut returns, mut weights) = (Vec::new(), Vec::new());
        for b in 0..batch {
            let row = &value_rows[b * steps..(b + 1) * steps];
            let g = lambda_returns(
                &self.rewards[b],
                &self.ends[b],
                row,
                config.discount as f32,
                config.lambda as f32,
            );
            returns.extend_from_slice(&g[..used]);
            let over = self.ends[b].iter().scan(false, |over, end| {
                let before = *over;
                *over |= *end;
                Some(before)
            });
            weights.extend(over.map(|over| match config.after_end {
                AfterEnd::Ignore if over => 0.0f32,
                _ => 1.0,
            }));
        }
        let stats = DreamStats {
            mean_return: (self.rewards.iter().zip(&self.ends))
                .map(|(r, e)| {
                    let length = e.iter().position(|e| *e).map_or(used, |i| i + 1);
                    f64::from(r[..length].iter().sum::<f32>())
                })
                .sum::<f64>()
                / batch as f64,
            end_share: self.ends.iter().filter(|e| e.contains(&true)).count() as f64 / batch as f64,
            mean_value: value_rows.iter().map(|v| f64::from(*v)).sum::<f64>()
                / value_rows.len() as f64,
        };
        let device = codes.device();
        let table = |v: Vec<f32>| Tensor::<1>::from_floats(&v[..], &device).reshape([batch, used]);
        let experience = Experience {
            logits: logits.narrow(1, 0, used),
            values: values.narrow(1, 0, used),
            actions: self.actions,
            returns: table(returns),
            weights: table(weights),
        };
        (experience, stats)
    }
}

/// A float tensor's values on the host.
pub(crate) fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.try_into_vec_as().expect("the device answers")
}

/// An integer tensor's values on the host.
pub(crate) fn host_ints<const D: usize>(tensor: Tensor<D, Int>) -> Vec<i64> {
    tensor.try_into_vec_as().expect("the device answers")
}
