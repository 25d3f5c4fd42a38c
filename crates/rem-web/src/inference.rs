//! Inference with the agent of a run's last checkpoint.

pub(crate) mod codebook;
pub(crate) mod dream;
pub(crate) mod episode;
mod sampler;

use std::collections::VecDeque;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rem::config::Config;
use rem::data::batch;
use rem::data::replay::archive::Archive;
use rem::host;
use rem::model::agent::Player;
use rem::model::world_model::WorldModel;
use rem::run::checkpoint;
use rem::threads;
use rem::train::{action_names, load_agent};

use crate::error::ApiError;
use crate::run;
pub(crate) use sampler::{Predictions, Sampler};

/// Tokenizer, world model and controller on the CPU, without autodiff.
pub(crate) struct InferenceAgent {
    pub config: Config,
    pub epoch: u32,
    pub player: Player,
    pub world_model: WorldModel,
    pub action_names: Vec<String>,
    pub device: Device,
}

impl InferenceAgent {
    fn load(run: &Path, config: &Config, epoch: u32) -> Result<Self, ApiError> {
        let device = Device::flex();
        let (agent, epoch) = load_agent(run, config, Some(epoch), device.clone())?;
        Ok(Self {
            epoch,
            player: agent.valid(),
            world_model: agent.world_model.valid(),
            action_names: action_names(run, config)?,
            config: config.clone(),
            device,
        })
    }

    /// Fails if the frame size of the replay differs from the config.
    pub fn check_frame_size(&self, archive: &Archive) -> Result<(), ApiError> {
        let size = self.config.env.frame_size;
        match archive.steps() == 0 || archive.frame_size() == Some(size) {
            true => Ok(()),
            false => Err(ApiError::Run {
                reason: format!(
                    "replay frames do not have the config's size of {size}x{size} pixels"
                ),
                hint: None,
            }),
        }
    }

    /// The tokens of frames, concatenated: `[frames * K]`.
    pub fn tokenize(&self, frames: &[Vec<u8>]) -> Vec<u16> {
        const BATCH: usize = 64;
        let size = self.config.env.frame_size;
        let tokens = |frames: &[Vec<u8>]| {
            let frames = frames.iter().map(|frame| &frame[..]);
            batch::host_tokens(self.player.tokenize(frames, size, &self.device))
        };
        frames.chunks(BATCH).flat_map(tokens).collect()
    }

    /// The RGB frames of tokens: `[frames * K]`.
    pub fn decode(&self, tokens: &[u16]) -> Vec<Vec<u8>> {
        const BATCH: usize = 32;
        let k = self.config.tokens_per_obs();
        let frames = |tokens: &[u16]| {
            let tokens = self.ints(tokens).reshape([tokens.len() / k, k]);
            batch::to_rgb(self.player.tokenizer.decode(tokens))
        };
        tokens.chunks(BATCH * k).flat_map(frames).collect()
    }

    /// Integers on the device, `[n]`.
    pub fn ints<T: Copy + Into<i64>>(&self, values: &[T]) -> Tensor<1, Int> {
        let values: Vec<i64> = values.iter().map(|value| (*value).into()).collect();
        let count = values.len();
        Tensor::from_data(TensorData::new(values, [count]), &self.device)
    }
}

/// Softmax over each row of `[rows, classes]`, row by row.
pub(crate) fn softmax(logits: Tensor<2>) -> Vec<f32> {
    host::floats(burn::tensor::activation::softmax(logits, 1))
}

/// Caches the last agents and responses. Computes one response at a time, to leave the processor to training on the same
/// machine.
#[derive(Default)]
pub(crate) struct AgentCache {
    agents: Mutex<VecDeque<(PathBuf, CheckpointId, Arc<InferenceAgent>)>>,
    responses: Mutex<VecDeque<(ResponseKey, Arc<Vec<u8>>)>>,
    busy: Arc<tokio::sync::Mutex<()>>,
}

/// Epoch and modification time of a checkpoint. A run that was restarted, or resumed from an earlier epoch, reaches the
/// same epoch with another checkpoint.
type CheckpointId = (u32, Option<SystemTime>);

/// Run, last checkpoint and query.
type ResponseKey = (PathBuf, CheckpointId, String);

const MAX_AGENTS: usize = 2;
const MAX_RESPONSES: usize = 12;

impl AgentCache {
    /// The agent of the last valid checkpoint of a run. Blocks: do not call from an async task.
    pub fn load(&self, run: &Path) -> Result<Arc<InferenceAgent>, ApiError> {
        let before = last_checkpoint(run).ok();
        match self.load_last(run) {
            // The trainer deleted the checkpoint during the read: a newer one exists.
            Err(_) if last_checkpoint(run).ok() != before => self.load_last(run),
            agent => agent,
        }
    }

    fn load_last(&self, run: &Path) -> Result<Arc<InferenceAgent>, ApiError> {
        let id = last_checkpoint(run)?;
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = agents
            .iter()
            .find(|(path, cached, _)| path == run && *cached == id);
        if let Some((_, _, agent)) = cached {
            return Ok(agent.clone());
        }
        let agent = Arc::new(load_last_valid(run)?);
        agents.retain(|(path, _, _)| path != run);
        agents.push_front((run.into(), id, agent.clone()));
        agents.truncate(MAX_AGENTS);
        Ok(agent)
    }

    /// The response of `compute`, which gets the agent of the run or the reason why there is none. Responses are cached
    /// by `query`.
    pub async fn respond(
        self: Arc<Self>,
        run: PathBuf,
        query: String,
        compute: impl FnOnce(Result<Arc<InferenceAgent>, ApiError>) -> Result<Vec<u8>, ApiError>
        + Send
        + 'static,
    ) -> Result<Arc<Vec<u8>>, ApiError> {
        // The blocking task holds the lock, because it runs on if the client disconnects.
        let turn = self.busy.clone().lock_owned().await;
        let task = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let id = last_checkpoint(&run).ok();
            let key = id.map(|id| (run.clone(), id, query));
            if let Some(response) = key.as_ref().and_then(|key| self.cached_response(key)) {
                return Ok(response);
            }
            let agent = self.load(&run);
            let key = key.filter(|_| agent.is_ok());
            let response = Arc::new(threads::on_worker(|| compute(agent))?);
            if let Some(key) = key {
                let mut responses = self
                    .responses
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                responses.push_front((key, response.clone()));
                responses.truncate(MAX_RESPONSES);
            }
            Ok(response)
        });
        task.await.unwrap_or_else(|_| {
            Err(ApiError::Run {
                reason: "inference panicked".into(),
                hint: Some("the terminal of `rem watch` or `rem play` shows the panic".into()),
            })
        })
    }

    fn cached_response(&self, key: &ResponseKey) -> Option<Arc<Vec<u8>>> {
        let responses = self
            .responses
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (_, response) = responses.iter().find(|(cached, _)| cached == key)?;
        Some(response.clone())
    }
}

fn last_checkpoint(run: &Path) -> Result<CheckpointId, ApiError> {
    let epoch = checkpoint::epochs(run)
        .last()
        .copied()
        .ok_or_else(no_checkpoint)?;
    Ok((epoch, checkpoint::written_at(run, epoch)))
}

/// The agent of the last valid checkpoint, or the error of the last one if none is valid.
fn load_last_valid(run: &Path) -> Result<InferenceAgent, ApiError> {
    let config = run::config(run)?;
    let mut last_error = None;
    for epoch in checkpoint::epochs(run).into_iter().rev() {
        match InferenceAgent::load(run, &config, epoch) {
            Ok(agent) => {
                if let Some(error) = &last_error {
                    // The page shows the epoch of the agent, not why it is not the last one.
                    let _ = writeln!(
                        std::io::stderr(),
                        "note: {error}; showing the agent of epoch {epoch}"
                    );
                }
                return Ok(agent);
            }
            Err(error) => last_error = last_error.or(Some(error)),
        }
    }
    Err(last_error.unwrap_or_else(no_checkpoint))
}

fn no_checkpoint() -> ApiError {
    ApiError::Run {
        reason: "this run has no checkpoint yet".into(),
        hint: Some("training writes the first checkpoint when it starts".into()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rem::env::EnvFactory;
    use rem::model::agent::Agent;
    use rem::seeds::Seeds;

    /// An untrained agent with the sizes of the preset `debug`.
    pub fn untrained_agent() -> InferenceAgent {
        let config = Config::load("debug", &[]).unwrap();
        let device = Device::flex();
        let spaces = EnvFactory::named(&config.env).unwrap().spaces().unwrap();
        let seeds = Seeds::new(config.seed);
        let agent = Agent::new(
            &config,
            spaces.action.count(),
            &seeds,
            &device.clone().autodiff(),
        );
        InferenceAgent {
            epoch: 0,
            player: agent.valid(),
            world_model: agent.world_model.valid(),
            action_names: spaces.action.names().to_vec(),
            config,
            device,
        }
    }

    #[test]
    fn checkpoints_of_the_same_epoch_differ_by_modification_time() {
        let run = tempfile::tempdir().unwrap();
        let write = |time: SystemTime| {
            let dir = checkpoint::directory(run.path(), 3);
            std::fs::create_dir_all(&dir).unwrap();
            let manifest = std::fs::File::create(dir.join("manifest.json")).unwrap();
            manifest.set_modified(time).unwrap();
            last_checkpoint(run.path()).unwrap()
        };
        assert!(last_checkpoint(run.path()).is_err());
        let old = SystemTime::UNIX_EPOCH;
        assert_eq!(write(old), write(old));
        assert_ne!(write(old), write(SystemTime::now()));
    }
}
