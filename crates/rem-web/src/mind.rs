//! A run's agent out of its last checkpoint, and what can be asked of it.

pub mod codebook;
mod drawing;
pub mod dream;
pub mod episode;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rem::agent::Player;
use rem::batch;
use rem::checkpoint;
use rem::config::Config;
use rem::evaluate::test_env;
use rem::imagination::host;
use rem::run::read_config;
use rem::threads;
use rem::train::load_agent;
use rem::world_model::WorldModel;

use crate::error::Failure;
pub use drawing::{Drawing, Odds};

/// Tokenizer, world model and controller, without gradients, on the CPU.
pub struct Mind {
    pub config: Config,
    pub epoch: u32,
    pub player: Player,
    pub world_model: WorldModel,
    pub action_names: Vec<String>,
    pub device: Device,
}

impl Mind {
    fn load(run: &Path, epoch: u32) -> Result<Self, Failure> {
        let config = read_config(run)?;
        let device = Device::flex();
        let (agent, epoch) = load_agent(run, &config, Some(epoch), device.clone())?;
        let env = test_env(&config.env, 0)?;
        Ok(Self {
            epoch,
            player: agent.valid(),
            world_model: agent.world_model.valid(),
            action_names: env.actions().iter().map(|name| name.to_string()).collect(),
            config,
            device,
        })
    }

    /// The tokens of frames, K each, one after the other.
    pub fn see(&self, frames: &[Vec<u8>]) -> Vec<u16> {
        const AT_ONCE: usize = 64;
        let size = self.config.env.frame_size;
        let tokens = |frames: &[Vec<u8>]| {
            let frames = frames.iter().map(|frame| &frame[..]);
            batch::host_tokens(self.player.see(frames, size, &self.device))
        };
        frames.chunks(AT_ONCE).flat_map(tokens).collect()
    }

    /// The frames that tokens stand for, K tokens each.
    pub fn draw(&self, tokens: &[u16]) -> Vec<Vec<u8>> {
        const AT_ONCE: usize = 32;
        let k = self.config.tokens_per_obs();
        let drawn = |tokens: &[u16]| {
            let tokens = self.ints(tokens).reshape([tokens.len() / k, k]);
            batch::to_rgb(self.player.tokenizer.decode(tokens))
        };
        tokens.chunks(AT_ONCE * k).flat_map(drawn).collect()
    }

    /// Whole numbers on the device, `[n]`.
    pub fn ints<T: Copy + Into<i64>>(&self, values: &[T]) -> Tensor<1, Int> {
        let values: Vec<i64> = values.iter().map(|value| (*value).into()).collect();
        let count = values.len();
        Tensor::from_data(TensorData::new(values, [count]), &self.device)
    }
}

/// The rows of logits as probabilities, one row after the other: `[rows, classes]`.
pub fn probabilities(logits: Tensor<2>) -> Vec<f32> {
    host(burn::tensor::activation::softmax(logits, 1))
}

/// The minds that were asked last, and their answers. One question at a time is thought about, however many are asked:
/// a training on the same machine has the right of way.
#[derive(Default)]
pub struct Minds {
    loaded: Mutex<VecDeque<(PathBuf, Arc<Mind>)>>,
    answers: Mutex<VecDeque<(Question, Arc<Vec<u8>>)>>,
    thinking: tokio::sync::Mutex<()>,
}

/// Run, epoch and what was asked.
type Question = (PathBuf, u32, String);

const MINDS_KEPT: usize = 2;
const ANSWERS_KEPT: usize = 12;

impl Minds {
    /// The mind of a run's last checkpoint. Takes its time: not for the network's thread.
    pub fn of(&self, run: &Path) -> Result<Arc<Mind>, Failure> {
        match self.latest(run) {
            // The trainer may have dropped the checkpoint that was just being read: there is a later one then.
            Err(_) => self.latest(run),
            mind => mind,
        }
    }

    fn latest(&self, run: &Path) -> Result<Arc<Mind>, Failure> {
        let epoch = last_epoch(run)?;
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let known = loaded
            .iter()
            .find(|(path, mind)| path == run && mind.epoch == epoch);
        if let Some((_, mind)) = known {
            return Ok(mind.clone());
        }
        let mind = Arc::new(Mind::load(run, epoch)?);
        loaded.retain(|(path, _)| path != run);
        loaded.push_front((run.into(), mind.clone()));
        loaded.truncate(MINDS_KEPT);
        Ok(mind)
    }

    /// Asks the mind of a run, unless the same was asked of it before. `question` names what is asked.
    pub async fn ask(
        self: Arc<Self>,
        run: PathBuf,
        question: String,
        think: impl FnOnce(&Mind) -> Result<Vec<u8>, Failure> + Send + 'static,
    ) -> Result<Arc<Vec<u8>>, Failure> {
        let minds = self.clone();
        let _turn = minds.thinking.lock().await;
        let thought = tokio::task::spawn_blocking(move || {
            let asked = (run.clone(), last_epoch(&run)?, question);
            if let Some(answer) = self.answer_to(&asked) {
                return Ok(answer);
            }
            let mind = self.of(&run)?;
            let answer = Arc::new(threads::on_worker(|| think(&mind))?);
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.push_front(((asked.0, mind.epoch, asked.2), answer.clone()));
            answers.truncate(ANSWERS_KEPT);
            Ok(answer)
        });
        thought.await.unwrap_or_else(|_| {
            Err(Failure::Run {
                reason: "the agent could not be asked this: see what `rem` wrote to the terminal"
                    .into(),
                hint: None,
            })
        })
    }

    fn answer_to(&self, asked: &Question) -> Option<Arc<Vec<u8>>> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, answer) = answers.iter().find(|(question, _)| question == asked)?;
        Some(answer.clone())
    }
}

fn last_epoch(run: &Path) -> Result<u32, Failure> {
    let last = checkpoint::epochs(run).last().copied();
    last.ok_or_else(|| Failure::Run {
        reason: "this run has no checkpoint yet, so there is no agent to ask".into(),
        hint: Some("the first one is written when training starts".into()),
    })
}
