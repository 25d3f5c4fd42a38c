//! The state of a run: optimizers, environments and agent, restored from checkpoints or imported.

use std::collections::BTreeMap;
use std::path::Path;

use burn::tensor::Device;

use crate::config::{Config, EnvMode, OptimizerConfig};
use crate::device;
use crate::env::{EnvFactory, Spaces};
use crate::error::{Error, Result};
use crate::model::agent::Agent;
use crate::model::weights::Arrays;
use crate::run::checkpoint::{self, Checkpoint, Manifest, Part};
use crate::run::{RunDir, read_protocol};
use crate::seeds::{Purpose, Seeds};
use crate::train::optimizer::{AdamW, DecayGroup};

use rem_run::layout;

use super::collect::CollectEnv;
use super::env_snapshots;
use super::phase::Phase;

/// The optimizers of the three components.
pub(super) struct Optimizers {
    pub(super) tokenizer: AdamW,
    pub(super) world_model: AdamW,
    pub(super) actor_critic: AdamW,
}

impl Optimizers {
    pub(super) fn new(config: &Config) -> Self {
        let new = |settings: &OptimizerConfig, group| AdamW::new(settings, &config.train, group);
        Self {
            tokenizer: new(&config.tokenizer.optimizer, DecayGroup::All),
            world_model: new(&config.world_model.optimizer, DecayGroup::WeightMatrices),
            actor_critic: new(&config.actor_critic.optimizer, DecayGroup::All),
        }
    }

    pub(super) fn of(&mut self, phase: Phase) -> &mut AdamW {
        match phase {
            Phase::Tokenizer => &mut self.tokenizer,
            Phase::WorldModel => &mut self.world_model,
            Phase::ActorCritic => &mut self.actor_critic,
        }
    }

    pub(super) fn each(&mut self) -> [(&'static str, &mut AdamW); 3] {
        [
            ("tokenizer", &mut self.tokenizer),
            ("world_model", &mut self.world_model),
            ("actor_critic", &mut self.actor_critic),
        ]
    }
}

pub(super) fn config_crc32(config: &Config) -> u32 {
    crc32fast::hash(config.to_toml().as_bytes())
}

/// The checksums of all configs that a run had, which its checkpoints may name: `config` and those before it.
pub(super) fn config_crc32s(run: &Path, config: &Config) -> Vec<u32> {
    let segments = read_protocol(run).map_or_else(|_| Vec::new(), |protocol| protocol.segments);
    let before = segments.iter().map(|segment| segment.config_crc32_before);
    before.chain([config_crc32(config)]).collect()
}

/// The environments of a run's collection, and their spaces.
pub(super) fn collect_envs(
    config: &Config,
    envs: &EnvFactory,
) -> Result<(Vec<CollectEnv>, Spaces)> {
    // Without collection there are only recorded episodes.
    if !envs.can_play() || config.collect.epochs == 0 {
        return Ok((Vec::new(), envs.spaces()?));
    }
    let make = |index| {
        let seed = Seeds::new(config.seed).derive(0, Purpose::Environment, index);
        Ok::<_, Error>(CollectEnv::new(envs.make(EnvMode::Train, seed)?))
    };
    let made: Vec<CollectEnv> = (0..config.collect.envs as u64)
        .map(make)
        .collect::<Result<_>>()?;
    let spaces = made[0].env.spaces();
    Ok((made, spaces))
}

/// An agent and its optimizers from the arrays of a checkpoint.
pub(super) fn restore(
    initialized: Agent,
    mut arrays: BTreeMap<String, Arrays>,
    manifest: &Manifest,
    config: &Config,
    device: &Device,
) -> Result<(Agent, Optimizers), String> {
    let mut take = |name: &str| {
        arrays
            .remove(name)
            .ok_or_else(|| format!("{name}.safetensors is missing"))
    };
    let weights = [
        take("tokenizer")?,
        take("world_model")?,
        take("actor_critic")?,
    ];
    let agent = initialized
        .with_arrays(weights)
        .map_err(|(name, reason)| format!("{name}: {reason}"))?;
    let mut optimizers = Optimizers::new(config);
    for (name, optimizer) in optimizers.each() {
        let steps = manifest.optimizer_steps.get(name).copied().unwrap_or(0);
        let moments = take(&format!("{name}.optimizer"))?;
        optimizer
            .restore(&moments, steps, device)
            .map_err(|e| format!("{name}.optimizer: {e}"))?;
    }
    Ok((agent, optimizers))
}

/// The error for a complete checkpoint with weights that do not fit the run's config.
pub(super) fn other_weights(run: &Path, epoch: u32, reason: String) -> Error {
    Error::Checkpoint {
        path: checkpoint::directory(run, epoch),
        reason,
        hint: Some("these weights belong to another config; was a file replaced?".into()),
    }
}

/// Loads the agent of a run's last checkpoint, or of `epoch`, on any device. Also returns the checkpoint's epoch.
///
/// # Errors
///
/// If the checkpoint is missing or damaged, or does not fit the config.
pub fn load_agent(
    run: &Path,
    config: &Config,
    epoch: Option<u32>,
    device: Device,
) -> Result<(Agent, u32)> {
    let checkpoint = Checkpoint::read(run, epoch, &config_crc32s(run, config), Part::Weights)?;
    let actions = action_names(run, config)?.len();
    let initialized = Agent::new(
        config,
        actions,
        &Seeds::new(config.seed),
        &device.autodiff(),
    );
    let mut arrays = checkpoint.arrays;
    let mut take = |name: &str| arrays.remove(name).unwrap_or_default();
    let weights = [take("tokenizer"), take("world_model"), take("actor_critic")];
    let agent = initialized.with_arrays(weights).map_err(|(name, reason)| {
        let reason = format!("{name}: {reason}");
        other_weights(run, checkpoint.manifest.epoch, reason)
    })?;
    Ok((agent, checkpoint.manifest.epoch))
}

/// The names of a run's actions, from its protocol. The environment need not exist. A run without a protocol is asked for
/// them.
///
/// # Errors
///
/// If the run has no readable protocol, and its environment cannot be created.
pub fn action_names(run: &Path, config: &Config) -> Result<Vec<String>> {
    match read_protocol(run) {
        Ok(protocol) => Ok(protocol.actions),
        Err(_) => {
            let spaces = EnvFactory::named(&config.env)?.spaces()?;
            Ok(spaces.action.names().to_vec())
        }
    }
}

/// Makes a checkpoint from imported weights. Writes nothing.
///
/// # Errors
///
/// If names or shapes of the weights do not fit the config.
pub fn checkpoint_from_weights(
    config: &Config,
    envs: &EnvFactory,
    file: &Path,
    weights: [Arrays; 3],
) -> Result<Checkpoint> {
    let device = device::of(config)?;
    let (mut collect_envs, spaces) = collect_envs(config, envs)?;
    let actions = spaces.action.count();
    let initialized = Agent::new(
        config,
        actions,
        &Seeds::new(config.seed),
        &device.autodiff(),
    );
    let agent = initialized
        .with_arrays(weights)
        .map_err(|(name, reason)| Error::Weights {
            file: file.into(),
            reason: format!("{name}: {reason}"),
        })?;
    let mut manifest = Manifest::new(0, config_crc32(config));
    let arrays = all_arrays(&agent, &mut Optimizers::new(config), &mut manifest);
    Ok(Checkpoint {
        manifest,
        arrays,
        environment: env_snapshots::take(&mut collect_envs)?,
    })
}

/// Writes a run that consists of one checkpoint, ready for evaluation.
///
/// # Errors
///
/// If a file cannot be written.
pub fn write_imported_run(run: &RunDir, config: &Config, checkpoint: Checkpoint) -> Result<()> {
    checkpoint.write(run.path())?;
    write_config(run, config)
}

/// Writes `config.toml`, as the last file of a new run: a directory without it is not a run.
pub(super) fn write_config(run: &RunDir, config: &Config) -> Result<()> {
    let path = run.path().join(layout::CONFIG);
    rem_run::files::write_atomic(&path, config.to_toml().as_bytes()).map_err(Error::File)
}

/// Weights and optimizer moments for a checkpoint. Writes the optimizers' step counts to its manifest.
pub(super) fn all_arrays(
    agent: &Agent,
    optimizers: &mut Optimizers,
    manifest: &mut Manifest,
) -> BTreeMap<String, Arrays> {
    let weights = agent
        .arrays()
        .into_iter()
        .map(|(name, a)| (name.to_string(), a));
    let mut arrays: BTreeMap<String, Arrays> = weights.collect();
    for (name, optimizer) in optimizers.each() {
        manifest
            .optimizer_steps
            .insert(name.into(), optimizer.steps());
        arrays.insert(format!("{name}.optimizer"), optimizer.to_arrays());
    }
    arrays
}
