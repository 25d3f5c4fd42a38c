//! Dreaming: the controller acts, the world model answers (paper, section method-infer, Alg. train_C).
//!
//! With POP a step takes two world-model calls (fold the block of observation and action into the memory, then ask
//! the prediction tokens for the whole next observation) or one (both together); without it K, a token each.

use burn::tensor::{Int, Tensor};
use rand::Rng;

use crate::actor_critic::{ActorCritic, ControllerState, Experience};
use crate::config::{self, AfterEnd, BurnInInputs, Generation, Rewards};
use crate::network::Memory;
use crate::returns::lambda_returns;
use crate::sampling::sample;
use crate::tokenizer::Tokenizer;
use crate::world_model::WorldModel;

/// A dream in progress: it steps like an environment, for a batch of dreams at once. A copy goes on by itself.
#[derive(Clone)]
pub struct Dream<'a> {
    world_model: &'a WorldModel,
    codes: &'a Tensor<2>,
    /// The past; token by token also all of the observations now but their last token.
    memory: Memory,
    /// The observations now, `[batch, K]`
    tokens: Tensor<2, Int>,
}

/// What a class is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawn {
    Reward,
    End,
    /// A token of the next observation; a call draws all K of them or, token by token, one.
    Token,
}

/// Draws one class per row: `[rows, classes]` logits -> `[rows]`.
pub type Draw<'a> = &'a mut dyn FnMut(Drawn, Tensor<2>) -> Tensor<1, Int>;

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
        let [_, context, k] = tokens.dims();
        let now: Tensor<2, Int> = tokens.clone().narrow(1, context - 1, 1).squeeze_dim(1);
        let past = actions.map(|actions| {
            let past = tokens.narrow(1, 0, context - 1);
            world_model.embed(codes, past, actions)
        });
        let begun = match world_model.generation() {
            Generation::TwoCalls | Generation::OneCall => None,
            Generation::TokenByToken if k == 1 => None,
            Generation::TokenByToken => {
                Some(world_model.embed_observations(codes, now.clone().narrow(1, 0, k - 1)))
            }
        };
        let known: Vec<Tensor<3>> = past.into_iter().chain(begun).collect();
        let mut memory = world_model.nothing_seen();
        if !known.is_empty() {
            memory = world_model.network().read(Tensor::cat(known, 1), memory).1;
        }
        Self {
            world_model,
            codes,
            memory,
            tokens: now,
        }
    }

    /// The observations now, `[batch, K]`.
    pub fn tokens(&self) -> Tensor<2, Int> {
        self.tokens.clone()
    }

    /// Takes the actions (`[batch]`) and draws reward, end and the next observation.
    pub fn step(&mut self, actions: Tensor<1, Int>, rng: &mut impl Rng) -> DreamStep {
        self.step_by(actions, &mut |_, logits| sample(logits, rng))
    }

    /// [`Self::step`] with another way to draw: first the rewards (unless they are continuous), then the ends, then
    /// the tokens.
    pub fn step_by(&mut self, actions: Tensor<1, Int>, draw: Draw) -> DreamStep {
        let [batch, k] = self.tokens.dims();
        let (world_model, codes) = (self.world_model, self.codes);
        let memory = std::mem::take(&mut self.memory);
        let block = self.tokens.clone().reshape([batch, 1, k]);
        let actions: Tensor<2, Int> = actions.reshape([batch, 1]);
        match world_model.generation() {
            Generation::TwoCalls => {
                let (output, memory) = world_model.fold(codes, block, actions, memory);
                let step = self.outcome(output, draw);
                self.tokens = draw_all(world_model.observation_logits(&memory), draw);
                self.memory = memory;
                step
            }
            Generation::OneCall => {
                let (output, logits, memory) =
                    world_model.fold_and_predict(codes, block, actions, &memory);
                let step = self.outcome(output, draw);
                self.tokens = draw_all(logits, draw);
                self.memory = memory;
                step
            }
            Generation::TokenByToken => {
                // The last token of the observation goes in together with the action.
                let last = self.tokens.clone().narrow(1, k - 1, 1);
                let x = vec![
                    world_model.embed_observations(codes, last),
                    world_model.embed_actions(actions),
                ];
                let (output, memory) = world_model.network().read(Tensor::cat(x, 1), memory);
                let step = self.outcome(output.clone(), draw);
                (self.tokens, self.memory) = self.token_by_token(output, memory, draw);
                step
            }
        }
    }

    /// Each output names the next token, which goes in again, but for the last: `[batch, width]` -> `[batch, K]`.
    fn token_by_token(
        &self,
        mut output: Tensor<2>,
        mut memory: Memory,
        draw: Draw,
    ) -> (Tensor<2, Int>, Memory) {
        let [batch, k] = self.tokens.dims();
        let mut tokens: Vec<Tensor<2, Int>> = Vec::with_capacity(k);
        loop {
            let token = draw(Drawn::Token, self.world_model.token_logits(output));
            let token = token.reshape([batch, 1]);
            tokens.push(token.clone());
            if tokens.len() == k {
                return (Tensor::cat(tokens, 1), memory);
            }
            let x = self.world_model.embed_observations(self.codes, token);
            (output, memory) = self.world_model.network().read(x, memory);
        }
    }

    /// Draws rewards and ends from the outputs at the actions.
    fn outcome(&self, output: Tensor<2>, draw: Draw) -> DreamStep {
        let [batch, _] = output.dims();
        let (reward_logits, end_logits) = self.world_model.outcome_logits(output);
        let rewards = match self.world_model.rewards() {
            Rewards::Sign => draw(Drawn::Reward, reward_logits).float() - 1.0,
            Rewards::Continuous => reward_logits.reshape([batch]),
        };
        let ends = draw(Drawn::End, end_logits);
        DreamStep {
            rewards: host(rewards),
            ends: host_ints(ends).into_iter().map(|e| e == 1).collect(),
        }
    }
}

/// A token for every place: `[batch, K, vocabulary]` logits -> `[batch, K]`.
fn draw_all(logits: Tensor<3>, draw: Draw) -> Tensor<2, Int> {
    let [batch, k, vocabulary] = logits.dims();
    draw(Drawn::Token, logits.reshape([batch * k, vocabulary])).reshape([batch, k])
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
    tokenizer: &Tokenizer,
    tokens: Tensor<3, Int>,
    actions: Tensor<2, Int>,
    mask: Tensor<2>,
    inputs: BurnInInputs,
) -> ControllerState {
    let [batch, steps, k] = tokens.dims();
    // All observations are looked at together; only the LSTM goes step by step.
    let seen = controller.look(controller.view(tokenizer, tokens.reshape([batch * steps, k])));
    let [_, width] = seen.dims();
    let seen: Tensor<3> = seen.reshape([batch, steps, width]);
    let taken = match inputs {
        BurnInInputs::ObservationsAndActions => controller.action_gates(),
        BurnInInputs::Observations => None,
    };
    let mut state = controller.initial_state(batch);
    for t in 0..steps {
        let now: Tensor<2> = seen.clone().narrow(1, t, 1).squeeze_dim(1);
        let mut next = controller.take_in(now, state.clone());
        if let Some(taken) = &taken {
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
    /// What the controller is shown of the tokens, all dreams of a step after each other:
    /// `[steps * batch, side, side, channels]`
    pub views: Tensor<4>,
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
    tokenizer: &Tokenizer,
    starts: DreamStarts,
    steps: usize,
    inputs: BurnInInputs,
    rng: &mut impl Rng,
) -> Rollout {
    let [batch, length, _] = starts.tokens.dims();
    let codes = &tokenizer.codes();
    let start = burn_in(
        controller,
        tokenizer,
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
    let mut views = vec![controller.view(tokenizer, dream.tokens())];
    let mut rewards = vec![Vec::with_capacity(steps); batch];
    let mut ends = vec![Vec::with_capacity(steps); batch];
    for t in 1..steps {
        state = controller.observe(views[t - 1].clone(), state);
        let action = sample(controller.heads(&state).logits, rng);
        state = controller.act(action.clone(), state);
        actions.push(action.clone());
        let step = dream.step(action, rng);
        tokens.push(dream.tokens());
        views.push(controller.view(tokenizer, dream.tokens()));
        for b in 0..batch {
            rewards[b].push(step.rewards[b]);
            ends[b].push(step.ends[b]);
        }
    }
    Rollout {
        start,
        views: Tensor::cat(views, 0),
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
        config: &config::ActorCritic,
    ) -> (Experience, DreamStats) {
        let [batch, steps, _] = self.tokens.dims();
        let device = self.tokens.device();
        let (logits, values) = controller.relive(self.views, self.actions.clone(), self.start);
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
                config.end_value as f32,
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
pub fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.try_into_vec_as().expect("the device answers")
}

/// An integer tensor's values on the host.
pub fn host_ints<const D: usize>(tensor: Tensor<D, Int>) -> Vec<i64> {
    tensor.try_into_vec_as().expect("the device answers")
}
