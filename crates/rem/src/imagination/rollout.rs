//! Rollouts: the policy acts in a [`Dream`], and the controller is trained on the result (Algorithm 7, `train_C`). To find
//! out what limits an agent, `crate::diagnose` lets it act in the game instead.

use std::convert::Infallible;

use burn::tensor::{Int, Tensor};
use rand::Rng;

use super::dream::{Dream, DreamStep};
use super::returns::lambda_returns;
use crate::config::{self, SlowCritic};
use crate::data::batch::DreamStarts;
use crate::host;
use crate::model::actor_critic::{ActorCritic, ControllerState, Experience};
use crate::model::sampling::sample;
use crate::model::tokenizer::Tokenizer;
use crate::model::world_model::WorldModel;

/// Statistics of a batch of dreams.
#[derive(Clone, Copy, Debug, Default)]
pub struct DreamStats {
    /// Mean sum of rewards up to the horizon or the termination.
    pub mean_return: f64,
    /// Fraction of dreams that terminate.
    pub termination_rate: f64,
    /// Mean of the predicted values.
    pub mean_value: f64,
    /// Mean disagreement of the ensemble, if there is one.
    pub mean_disagreement: Option<f64>,
}

/// Burns in the LSTM with real steps and returns its state. Padded steps do not change the state. `with_actions` is
/// whether the actions are inputs too.
///
/// # Shapes
///
/// - `tokens`: `[batch, steps, K]`, `actions`, `mask`: `[batch, steps]`
pub fn burn_in(
    controller: &ActorCritic,
    tokenizer: &Tokenizer,
    tokens: Tensor<3, Int>,
    actions: Tensor<2, Int>,
    mask: Tensor<2>,
    with_actions: bool,
) -> ControllerState {
    let [batch, steps, k] = tokens.dims();
    // All observations are encoded at once. Only the LSTM goes step by step.
    let observations =
        controller.encode(controller.encoder_input(tokenizer, tokens.reshape([batch * steps, k])));
    let [_, width] = observations.dims();
    let observations: Tensor<3> = observations.reshape([batch, steps, width]);
    let action_gates = with_actions.then(|| controller.action_gates()).flatten();
    let mut state = controller.initial_state(batch);
    for t in 0..steps {
        let observation: Tensor<2> = observations.clone().narrow(1, t, 1).squeeze_dim(1);
        let mut next = controller.lstm_step(observation, state.clone());
        if let Some(gates) = &action_gates {
            let action = actions.clone().narrow(1, t, 1).squeeze_dim(1);
            next = controller.lstm_step(gates.clone().select(0, action), next);
        }
        state = next.where_mask(&mask.clone().narrow(1, t, 1), state);
    }
    state
}

/// The state of the controller before the last observation of each start.
pub(crate) fn warmed_up(
    controller: &ActorCritic,
    tokenizer: &Tokenizer,
    starts: &DreamStarts,
    with_actions: bool,
) -> ControllerState {
    let [_, length, _] = starts.tokens.dims();
    burn_in(
        controller,
        tokenizer,
        starts.tokens.clone().narrow(1, 0, length - 1),
        starts.actions.clone(),
        starts.mask.clone(),
        with_actions,
    )
}

/// Games, imagined or real, that a policy acts in side by side.
pub(crate) trait RolloutEnv {
    /// Why a step fails.
    type Error;

    /// Tokens of the current observations, `[batch, K]`.
    fn tokens(&self) -> Tensor<2, Int>;

    /// Takes actions, `[batch]`.
    fn step(
        &mut self,
        actions: Tensor<1, Int>,
        rng: &mut impl Rng,
    ) -> Result<DreamStep, Self::Error>;
}

impl RolloutEnv for Dream<'_> {
    type Error = Infallible;

    fn tokens(&self) -> Tensor<2, Int> {
        self.tokens()
    }

    fn step(
        &mut self,
        actions: Tensor<1, Int>,
        rng: &mut impl Rng,
    ) -> Result<DreamStep, Infallible> {
        Ok(self.step(actions, rng))
    }
}

/// A batch of trajectories, imagined unless stated otherwise.
#[derive(Clone, Debug)]
pub struct Rollout {
    /// State of the controller before the first observation.
    pub start: ControllerState,
    /// [`ActorCritic::encoder_input`] of all observations, time first, `[steps * batch, side, side, channels]`.
    pub encoder_inputs: Tensor<4>,
    /// Observation tokens, `[batch, steps, K]`. The first observation is real.
    pub tokens: Tensor<3, Int>,
    /// Actions between the observations, `[batch, steps - 1]`.
    pub actions: Tensor<2, Int>,
    /// Rewards after each action, by trajectory.
    pub rewards: Vec<Vec<f32>>,
    /// Whether the trajectory terminates after each action.
    pub ends: Vec<Vec<bool>>,
    /// Disagreement of the ensemble after each action, by trajectory; empty without an ensemble.
    pub disagreements: Vec<Vec<f32>>,
}

/// Imagines trajectories of `steps` observations from each start, with actions sampled from the policy and without
/// gradients. `burn_in_actions` is whether the burn-in feeds actions to the LSTM.
pub fn imagine(
    controller: &ActorCritic,
    world_model: &WorldModel,
    tokenizer: &Tokenizer,
    starts: DreamStarts,
    steps: usize,
    burn_in_actions: bool,
    rng: &mut impl Rng,
) -> Rollout {
    let [_, length, _] = starts.tokens.dims();
    let codes = &tokenizer.codes();
    let start = warmed_up(controller, tokenizer, &starts, burn_in_actions);
    let context = world_model.context();
    let past = (context > 1).then(|| starts.actions.narrow(1, length - context, context - 1));
    let observations = starts.tokens.narrow(1, length - context, context);
    let mut dream = Dream::start(world_model, codes, observations, past);
    let Ok(rollout) = roll_out(controller, tokenizer, start, &mut dream, steps, rng);
    rollout
}

/// Trajectories of `steps` observations, with actions sampled from the policy and without gradients. `start` is the state
/// of the controller before the first observation.
pub(crate) fn roll_out<E: RolloutEnv>(
    controller: &ActorCritic,
    tokenizer: &Tokenizer,
    start: ControllerState,
    env: &mut E,
    steps: usize,
    rng: &mut impl Rng,
) -> Result<Rollout, E::Error> {
    let mut state = start.clone();
    let (mut tokens, mut actions) = (vec![env.tokens()], Vec::new());
    let [batch, _] = tokens[0].dims();
    let mut encoder_inputs = vec![controller.encoder_input(tokenizer, env.tokens())];
    let mut rewards = vec![Vec::with_capacity(steps); batch];
    let mut ends = vec![Vec::with_capacity(steps); batch];
    let mut disagreements = vec![Vec::new(); batch];
    for t in 1..steps {
        state = controller.observe(encoder_inputs[t - 1].clone(), state);
        let action = sample(controller.heads(&state).logits, rng);
        state = controller.act(action.clone(), state);
        actions.push(action.clone());
        let step = env.step(action, rng)?;
        tokens.push(env.tokens());
        encoder_inputs.push(controller.encoder_input(tokenizer, env.tokens()));
        for b in 0..batch {
            rewards[b].push(step.rewards[b]);
            ends[b].push(step.ends[b]);
            disagreements[b].extend(step.disagreements.get(b));
        }
    }
    Ok(Rollout {
        start,
        encoder_inputs: Tensor::cat(encoder_inputs, 0),
        tokens: Tensor::stack(tokens, 1),
        actions: Tensor::stack(actions, 1),
        rewards,
        ends,
        disagreements,
    })
}

impl Rollout {
    /// The sum of rewards of each trajectory, up to the horizon or the termination.
    pub fn returns(&self) -> Vec<f64> {
        let trajectories = self.rewards.iter().zip(&self.ends);
        let sum = |(rewards, ends): (&Vec<f32>, &Vec<bool>)| {
            let end = ends.iter().position(|end| *end);
            let length = end.map_or(rewards.len(), |i| i + 1);
            f64::from(rewards[..length].iter().sum::<f32>())
        };
        trajectories.map(sum).collect()
    }

    /// Unrolls the controller with gradients over the trajectories and computes λ-returns. The slow critic, if there is
    /// one, continues from the state that the controller has after its burn-in.
    pub fn experience(
        self,
        controller: &ActorCritic,
        slow_critic: Option<&ActorCritic>,
        config: &config::ActorCritic,
    ) -> (Experience, DreamStats) {
        let [batch, steps, _] = self.tokens.dims();
        let device = self.tokens.device();
        let mean_return = self.returns().iter().sum::<f64>() / batch as f64;
        let slow_values = slow_critic.map(|slow| {
            let inputs = self.encoder_inputs.clone();
            slow.unroll(inputs, self.actions.clone(), self.start.clone())
                .1
        });
        let unrolled =
            controller.unroll_heads(self.encoder_inputs, self.actions.clone(), self.start);
        let values = unrolled.values.inner();
        let value_rows = host::floats(values.clone().reshape([batch * steps]));
        let bootstrap_rows = match (config.slow_critic, &slow_values) {
            (SlowCritic::Target { .. }, Some(slow)) => {
                &host::floats(slow.clone().reshape([batch * steps]))
            }
            _ => &value_rows,
        };
        // The last observation only provides a bootstrap value.
        let used = steps - 1;
        let (mut returns, mut weights) = (Vec::new(), Vec::new());
        for b in 0..batch {
            let row = &bootstrap_rows[b * steps..(b + 1) * steps];
            let mut rewards = self.rewards[b].clone();
            if config.curiosity_weight > 0.0 {
                for (reward, disagreement) in rewards.iter_mut().zip(&self.disagreements[b]) {
                    *reward += config.curiosity_weight as f32 * disagreement;
                }
            }
            let g = lambda_returns(
                &rewards,
                &self.ends[b],
                row,
                config.discount as f32,
                config.lambda as f32,
                config.terminal_value as f32,
            );
            returns.extend_from_slice(&g[..used]);
            let over = self.ends[b].iter().scan(false, |over, end| {
                let before = *over;
                *over |= *end;
                Some(before)
            });
            let masked = |over: bool| over && config.mask_after_termination;
            weights.extend(over.map(|over| if masked(over) { 0.0f32 } else { 1.0 }));
        }
        let stats = DreamStats {
            mean_return,
            termination_rate: self.ends.iter().filter(|e| e.contains(&true)).count() as f64
                / batch as f64,
            mean_value: value_rows.iter().map(|v| f64::from(*v)).sum::<f64>()
                / value_rows.len() as f64,
            mean_disagreement: {
                let all: Vec<f64> = (self.disagreements.iter().flatten())
                    .map(|x| f64::from(*x))
                    .collect();
                (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
            },
        };
        let table = |v: Vec<f32>| Tensor::<1>::from_floats(&v[..], &device).reshape([batch, used]);
        let experience = Experience {
            logits: unrolled.logits.narrow(1, 0, used),
            values: values.narrow(1, 0, used),
            critic: unrolled.critic.narrow(1, 0, used),
            actions: self.actions,
            returns: table(returns),
            weights: table(weights),
            slow_values: slow_values.map(|slow| slow.narrow(1, 0, used)),
            return_scale: 1.0,
        };
        (experience, stats)
    }
}

#[cfg(test)]
mod tests;
