//! The workloads that `rem bench` times: steps of training with random weights and data.

use burn::module::Module;
use burn::tensor::{Device, Distribution, Int, Tensor};
use rand::{Rng, RngExt};

use rem::Result;
use rem::config::{Architecture, Config, OptimizerConfig};
use rem::data::batch::DreamStarts;
use rem::imagination::{Dream, imagine};
use rem::model::actor_critic;
use rem::model::agent::Agent;
use rem::model::sampling::sample;
use rem::model::tokenizer::lpips::Lpips;
use rem::model::world_model::TokenBatch;
use rem::seeds::Seeds;
use rem::train::objective::ControllerObjective;
use rem::train::optimizer::{AdamW, DecayGroup};

use super::sizes::{Batches, Setup, System};
use super::{products, timing};

/// A timed phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A tokenizer update without the perceptual loss.
    Tokenizer,
    /// A tokenizer update with the perceptual loss.
    TokenizerPerceptual,
    /// A world model update.
    WorldModel,
    /// The rollouts of a controller update alone.
    Imagination,
    /// A controller update: burn-in, rollouts, losses and optimizer step.
    ActorCritic,
}

impl Phase {
    pub const ALL: [Self; 5] = [
        Self::Tokenizer,
        Self::TokenizerPerceptual,
        Self::WorldModel,
        Self::Imagination,
        Self::ActorCritic,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Tokenizer => "tokenizer",
            Self::TokenizerPerceptual => "tokenizer_perceptual",
            Self::WorldModel => "world_model",
            Self::Imagination => "imagination",
            Self::ActorCritic => "actor_critic",
        }
    }

    /// The settings of the component that is trained in this phase; in imagination, the controller.
    pub fn optimizer(self, config: &Config) -> &OptimizerConfig {
        match self {
            Self::Tokenizer | Self::TokenizerPerceptual => &config.tokenizer.optimizer,
            Self::WorldModel => &config.world_model.optimizer,
            Self::Imagination | Self::ActorCritic => &config.actor_critic.optimizer,
        }
    }
}

/// Number of actions. It hardly affects times.
const ACTIONS: usize = 4;

/// A phase with its models and its batch.
pub struct Workload {
    phase: Phase,
    config: Config,
    /// Without autodiff.
    device: Device,
    /// Imagined transitions of a rollout.
    transitions: usize,
    agent: Agent,
    optimizer: Option<AdamW>,
    objective: ControllerObjective,
    lpips: Option<Lpips>,
    frames: Tensor<4>,
    tokens: Tensor<3, Int>,
    actions: Tensor<2, Int>,
}

impl Workload {
    /// # Errors
    ///
    /// If the device is not available or does not support the precision.
    pub fn new(phase: Phase, system: System, setup: &Setup, rng: &mut impl Rng) -> Result<Self> {
        let config = setup.config(system)?;
        let inner = rem::device::of(&config)?;
        let device = inner.clone().autodiff();
        let agent = Agent::new(&config, ACTIONS, &Seeds::new(0), &device);
        let k = config.tokens_per_obs();
        let batch = phase.optimizer(&config).batch_size;
        let (frames, sequences, steps) = match phase {
            Phase::Tokenizer | Phase::TokenizerPerceptual => (batch, 1, 1),
            Phase::WorldModel => (1, batch, config.train.horizon),
            Phase::Imagination | Phase::ActorCritic => (1, batch, config.actor_critic.burn_in + 1),
        };
        let mut random_ints = |limit: usize, count: usize| -> Vec<i64> {
            (0..count)
                .map(|_| rng.random_range(0..limit as i64))
                .collect()
        };
        let tokens = random_ints(config.tokenizer.vocabulary, sequences * steps * k);
        let actions = random_ints(ACTIONS, sequences * steps);
        let ints = |values: Vec<i64>| Tensor::<1, Int>::from_data(&values[..], &inner);
        let (uniform, size) = (Distribution::Uniform(-1.0, 1.0), config.env.frame_size);
        let group = match phase {
            Phase::Imagination => None,
            Phase::WorldModel => Some(DecayGroup::WeightMatrices),
            _ => Some(DecayGroup::All),
        };
        Ok(Self {
            phase,
            optimizer: group
                .map(|group| AdamW::new(phase.optimizer(&config), &config.train, group)),
            objective: ControllerObjective::new(&config.actor_critic, &agent.actor_critic),
            lpips: (phase == Phase::TokenizerPerceptual)
                .then(|| Lpips::new(config.precision.into(), &device)),
            frames: Tensor::random([frames, 3, size, size], uniform, &inner),
            tokens: ints(tokens).reshape([sequences, steps, k]),
            actions: ints(actions).reshape([sequences, steps]),
            transitions: transitions(&config, setup.batches),
            agent,
            config,
            device: inner,
        })
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Frames, segments or rollouts per step.
    pub fn batch(&self) -> usize {
        self.phase.optimizer(&self.config).batch_size
    }

    /// Frames per step: those of the tokenizer's batch, of the segments, or the imagined ones.
    pub fn frames(&self) -> usize {
        let each = match self.phase {
            Phase::Tokenizer | Phase::TokenizerPerceptual => 1,
            Phase::WorldModel => self.config.train.horizon,
            Phase::Imagination | Phase::ActorCritic => self.transitions,
        };
        self.batch() * each
    }

    /// Runs the phase once and returns its seconds.
    pub fn run(&mut self, rng: &mut impl Rng) -> f64 {
        let device = self.device.clone();
        timing::seconds(&device, || match self.phase {
            Phase::Tokenizer | Phase::TokenizerPerceptual => self.tokenizer_step(),
            Phase::WorldModel => self.world_model_step(rng),
            Phase::Imagination => self.imagine(rng),
            Phase::ActorCritic => self.actor_critic_step(rng),
        })
    }

    fn tokenizer_step(&mut self) {
        let model = &self.agent.tokenizer;
        let config = &self.config.tokenizer;
        let losses = model.losses(self.frames.clone(), config, self.lpips.as_ref());
        let total = losses.total();
        let optimizer = self.optimizer.as_mut().expect("a training phase");
        let stepped = optimizer.step(model.clone(), &total);
        self.agent.tokenizer = stepped.expect("a finite loss").0;
    }

    fn world_model_step(&mut self, rng: &mut impl Rng) {
        let codes = self.agent.tokenizer.codes();
        let [size, steps, _] = self.tokens.dims();
        let batch = TokenBatch {
            tokens: self.tokens.clone(),
            actions: self.actions.clone(),
            rewards: Tensor::zeros([size, steps], &self.device),
            ends: Tensor::zeros([size, steps], &self.device),
            mask: Tensor::ones([size, steps], &self.device),
        };
        let total = (self.agent.world_model.losses(&codes, &batch, rng.random())).total();
        let optimizer = self.optimizer.as_mut().expect("a training phase");
        let stepped = optimizer.step(self.agent.world_model.clone(), &total);
        self.agent.world_model = stepped.expect("a finite loss").0;
    }

    /// Imagines a rollout from a context, with actions of the policy and without gradients.
    fn imagine(&self, rng: &mut impl Rng) {
        let (world_model, controller) = (
            self.agent.world_model.valid(),
            self.agent.actor_critic.valid(),
        );
        let tokenizer = self.agent.tokenizer.valid();
        let codes = tokenizer.codes();
        let context = self.config.world_model.context;
        let tokens = self.tokens.clone().narrow(1, 0, context);
        let past = (context > 1).then(|| self.actions.clone().narrow(1, 0, context - 1));
        let [batch, ..] = tokens.dims();
        let mut dream = Dream::start(&world_model, &codes, tokens, past);
        let mut state = controller.initial_state(batch);
        for _ in 0..self.transitions {
            let view = controller.encoder_input(&tokenizer, dream.tokens());
            state = controller.observe(view, state);
            let action = sample(controller.heads(&state).logits, rng);
            state = controller.act(action.clone(), state);
            dream.step(action, rng);
        }
    }

    fn actor_critic_step(&mut self, rng: &mut impl Rng) {
        let world_model = self.agent.world_model.valid();
        let tokenizer = self.agent.tokenizer.valid();
        let [batch, length, _] = self.tokens.dims();
        let starts = DreamStarts {
            tokens: self.tokens.clone(),
            actions: self.actions.clone().narrow(1, 0, length - 1),
            mask: Tensor::ones([batch, length - 1], &self.device),
        };
        let config = &self.config.actor_critic;
        let controller = &self.agent.actor_critic;
        let rollout = imagine(
            &controller.valid(),
            &world_model,
            &tokenizer,
            starts,
            self.transitions + 1,
            config.inputs.burn_in_actions(),
            rng,
        );
        let (experience, _) = self.objective.experience(rollout, controller, config);
        let total = actor_critic::losses(experience, config).total();
        let optimizer = self.optimizer.as_mut().expect("a training phase");
        let stepped = optimizer.step(controller.clone(), &total);
        self.agent.actor_critic = stepped.expect("a finite loss").0;
        self.objective.update(&self.agent.actor_critic, config);
    }

    /// Floating-point operations per step in billions: matrix products and convolutions without the savings of caches
    /// and fused kernels. A multiplication and an addition are two operations. A backward pass counts twice.
    pub fn gflop(&self) -> f64 {
        let c = &self.config;
        let per_frame = match self.phase {
            Phase::Tokenizer => 3.0 * products::tokenizer(c),
            Phase::TokenizerPerceptual => 3.0 * (products::tokenizer(c) + products::vgg(c)),
            Phase::WorldModel => 3.0 * products::world_model(c),
            Phase::Imagination => {
                let acting = products::controller(c) + products::controller_input(c);
                products::dream(c, self.transitions) + acting
            }
            Phase::ActorCritic => {
                let burn_in = c.actor_critic.burn_in as f64 / self.transitions as f64;
                let controller = (3.0 + burn_in) * products::controller(c);
                let inputs = (1.0 + burn_in) * products::controller_input(c);
                products::dream(c, self.transitions) + controller + inputs
            }
        };
        2.0 * per_frame * self.frames() as f64 / 1e9
    }
}

/// Imagined transitions of a rollout. Training has one less than observations. The reference benchmark has one more,
/// which the context window of a Transformer does not hold.
fn transitions(config: &Config, batches: Batches) -> usize {
    let observations = config.rollout_steps();
    match (batches, config.world_model.architecture) {
        (
            Batches::Reference,
            Architecture::Pop { .. }
            | Architecture::Retnet { .. }
            | Architecture::PopAttention { .. },
        ) => observations,
        (Batches::Paper | Batches::Reference, _) => observations - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::sizes::Scale;
    use rand::SeedableRng;

    fn setup(batches: Batches) -> Setup {
        Setup {
            scale: Scale::Tiny,
            precision: rem::config::Precision::F32,
            batches,
            device: "flex".into(),
        }
    }

    #[test]
    fn a_step_has_the_frames_of_training() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
        let mut frames = |phase, system, batches| {
            let workload = Workload::new(phase, system, &setup(batches), &mut rng).unwrap();
            (workload.batch(), workload.frames())
        };
        use Batches::{Paper, Reference};
        // H = 10 and a context of two: a rollout has 9 observations, so 8 transitions are imagined.
        assert_eq!(
            frames(Phase::ActorCritic, System::Pop, Paper),
            (128, 128 * 8)
        );
        assert_eq!(
            frames(Phase::Imagination, System::NoPop, Reference),
            (16, 16 * 9)
        );
        assert_eq!(frames(Phase::WorldModel, System::Pop, Paper), (64, 640));
        assert_eq!(frames(Phase::Tokenizer, System::Pop, Reference), (32, 32));
        // IRIS: H = 20 and a context of one.
        assert_eq!(
            frames(Phase::ActorCritic, System::Iris, Paper),
            (64, 64 * 19)
        );
        assert_eq!(
            frames(Phase::ActorCritic, System::Iris, Reference),
            (16, 16 * 19)
        );
    }

    #[test]
    fn a_perceptual_step_counts_its_network() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
        let mut gflop = |phase| {
            let setup = setup(Batches::Reference);
            Workload::new(phase, System::Pop, &setup, &mut rng)
                .unwrap()
                .gflop()
        };
        let (plain, perceptual) = (gflop(Phase::Tokenizer), gflop(Phase::TokenizerPerceptual));
        // VGG-16 on 64x64 pixels: 1.25 billion multiply-adds, about three times per frame.
        let expected = 2.0 * 3.0 * 32.0 * 1.253;
        let difference = perceptual - plain;
        assert!(
            (difference / expected - 1.0).abs() < 0.01,
            "{difference} {expected}"
        );
    }
}
