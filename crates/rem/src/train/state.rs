//! What a run consists of, apart from its loop: made, restored from checkpoints, imported.

use std::collections::BTreeMap;
use std::path::Path;

use burn::tensor::Device;

use crate::agent::Agent;
use crate::checkpoint::{self, Checkpoint, Manifest, Part};
use crate::config::{Config, Optimise};
use crate::device;
use crate::env::{self, Env};
use crate::error::{Error, Result};
use crate::optimiser::{AdamW, DecayGroup};
use crate::run::RunDir;
use crate::seeds::{Purpose, Seeds};
use crate::weights::Arrays;

use super::phases::Phase;

pub(super) struct Optimisers {
    pub(super) tokenizer: AdamW,
    pub(super) world_model: AdamW,
    pub(super) actor_critic: AdamW,
}

impl Optimisers {
    pub(super) fn new(config: &Config) -> Self {
        let new = |optimise: &Optimise, group| AdamW::new(optimise, &config.train, group);
        Self {
            tokenizer: new(&config.tokenizer.optimise, DecayGroup::All),
            world_model: new(&config.world_model.optimise, DecayGroup::WeightMatrices),
            actor_critic: new(&config.actor_critic.optimise, DecayGroup::All),
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

pub(super) fn training_env(config: &Config) -> Result<Box<dyn Env>> {
    let seed = Seeds::new(config.seed).derive(0, Purpose::Environment, 0);
    Ok(env::make(&config.env, env::Use::Train, seed)?)
}

/// An agent and its optimisers from the arrays of a checkpoint.
pub(super) fn restore(
    newborn: Agent,
    mut arrays: BTreeMap<String, Arrays>,
    manifest: &Manifest,
    config: &Config,
    device: &Device,
) -> Result<(Agent, Optimisers), String> {
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
    let agent = newborn
        .with_arrays(weights)
        .map_err(|(name, reason)| format!("{name}: {reason}"))?;
    let mut optimisers = Optimisers::new(config);
    for (name, optimiser) in optimisers.each() {
        let steps = manifest.optimiser_steps.get(name).copied().unwrap_or(0);
        let moments = take(&format!("{name}.optimiser"))?;
        optimiser
            .restore(&moments, steps, device)
            .map_err(|e| format!("{name}.optimiser: {e}"))?;
    }
    Ok((agent, optimisers))
}

/// A checkpoint that is whole but whose weights do not fit the run's config.
pub(super) fn other_weights(run: &Path, epoch: u32, reason: String) -> Error {
    Error::Checkpoint {
        path: checkpoint::directory(run, epoch),
        reason,
        hint: Some(
            "its weights are of another config than the run's; was a file exchanged?".into(),
        ),
    }
}

/// The agent of a run's last checkpoint (or of `epoch`), for playing on a device that need not be the run's.
pub fn load_agent(
    run: &Path,
    config: &Config,
    epoch: Option<u32>,
    device: Device,
) -> Result<(Agent, u32)> {
    let checkpoint = Checkpoint::read(run, epoch, config_crc32(config), Part::Weights)?;
    let actions = training_env(config)?.actions().len();
    let newborn = Agent::new(
        config,
        actions,
        &Seeds::new(config.seed),
        &device.autodiff(),
    );
    let mut arrays = checkpoint.arrays;
    let mut take = |name: &str| arrays.remove(name).unwrap_or_default();
    let weights = [take("tokenizer"), take("world_model"), take("actor_critic")];
    let agent = newborn.with_arrays(weights).map_err(|(name, reason)| {
        let reason = format!("{name}: {reason}");
        other_weights(run, checkpoint.manifest.epoch, reason)
    })?;
    Ok((agent, checkpoint.manifest.epoch))
}

/// A checkpoint of imported weights, their shapes checked; nothing is written yet.
pub fn imported(config: &Config, file: &Path, weights: [Arrays; 3]) -> Result<Checkpoint> {
    let device = device::of(config)?;
    let env = training_env(config)?;
    let actions = env.actions().len();
    let newborn = Agent::new(
        config,
        actions,
        &Seeds::new(config.seed),
        &device.autodiff(),
    );
    let agent = newborn
        .with_arrays(weights)
        .map_err(|(name, reason)| Error::Weights {
            file: file.into(),
            reason: format!("{name}: {reason}"),
        })?;
    let mut manifest = Manifest::new(0, config_crc32(config));
    let arrays = all_arrays(&agent, &mut Optimisers::new(config), &mut manifest);
    Ok(Checkpoint {
        manifest,
        arrays,
        environment: env.snapshot(),
    })
}

/// Makes a run of an imported agent: one checkpoint, ready for evaluation.
pub fn write_imported(run: &RunDir, config: &Config, checkpoint: Checkpoint) -> Result<()> {
    checkpoint.write(run.path())?;
    write_config(run, config)
}

/// The config is written last: a directory without it is no run yet.
pub(super) fn write_config(run: &RunDir, config: &Config) -> Result<()> {
    let path = run.path().join("config.toml");
    crate::files::write_atomic(&path, config.to_toml().as_bytes()).map_err(Error::File)
}

/// The weights and moments of a checkpoint; the optimisers' steps go into its manifest.
pub(super) fn all_arrays(
    agent: &Agent,
    optimisers: &mut Optimisers,
    manifest: &mut Manifest,
) -> BTreeMap<String, Arrays> {
    let weights = agent
        .arrays()
        .into_iter()
        .map(|(name, a)| (name.to_string(), a));
    let mut arrays: BTreeMap<String, Arrays> = weights.collect();
    for (name, optimiser) in optimisers.each() {
        manifest
            .optimiser_steps
            .insert(name.into(), optimiser.steps());
        arrays.insert(format!("{name}.optimiser"), optimiser.to_arrays());
    }
    arrays
}
