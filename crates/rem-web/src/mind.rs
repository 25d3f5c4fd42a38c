//! A run's agent out of its last checkpoint, and what can be asked of it.

pub mod codebook;
mod drawing;
pub mod dream;
pub mod episode;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rem::agent::Player;
use rem::batch;
use rem::checkpoint;
use rem::config::Config;
use rem::evaluate::test_env;
use rem::imagination::host;
use rem::replay::archive::Archive;
use rem::threads;
use rem::train::load_agent;
use rem::world_model::WorldModel;

use crate::error::Failure;
use crate::run;
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
    fn load(run: &Path, config: &Config, epoch: u32) -> Result<Self, Failure> {
        // First: without the game there is no agent either, and it takes no time to find out.
        let env = test_env(&config.env, 0)?;
        let device = Device::flex();
        let (agent, epoch) = load_agent(run, config, Some(epoch), device.clone())?;
        Ok(Self {
            epoch,
            player: agent.valid(),
            world_model: agent.world_model.valid(),
            action_names: env.actions().iter().map(|name| name.to_string()).collect(),
            config: config.clone(),
            device,
        })
    }

    /// Whether the frames of a replay, if there are any, are of the size that it sees.
    pub fn fits(&self, archive: &Archive) -> Result<(), Failure> {
        let size = self.config.env.frame_size;
        match archive.steps() == 0 || archive.frame_size() == Some(size) {
            true => Ok(()),
            false => Err(Failure::Run {
                reason: format!("the frames of the replay do not have the config's {size} pixels"),
                hint: None,
            }),
        }
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
    loaded: Mutex<VecDeque<(PathBuf, Stamp, Arc<Mind>)>>,
    answers: Mutex<VecDeque<(Question, Arc<Vec<u8>>)>>,
    thinking: Arc<tokio::sync::Mutex<()>>,
}

/// The last checkpoint of a run: its epoch and when it was written. A run that was begun anew, or resumed from an
/// earlier epoch, comes to the same epoch with another one.
type Stamp = (u32, Option<SystemTime>);

/// Run, last checkpoint and what was asked.
type Question = (PathBuf, Stamp, String);

const MINDS_KEPT: usize = 2;
const ANSWERS_KEPT: usize = 12;

impl Minds {
    /// The mind of a run's last good checkpoint. Takes its time: not for the network's thread.
    pub fn of(&self, run: &Path) -> Result<Arc<Mind>, Failure> {
        let before = last_checkpoint(run).ok();
        match self.latest(run) {
            // The trainer has dropped the checkpoint that was just being read: there is a later one.
            Err(_) if last_checkpoint(run).ok() != before => self.latest(run),
            mind => mind,
        }
    }

    fn latest(&self, run: &Path) -> Result<Arc<Mind>, Failure> {
        let stamp = last_checkpoint(run)?;
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let known = loaded
            .iter()
            .find(|(path, of, _)| path == run && *of == stamp);
        if let Some((_, _, mind)) = known {
            return Ok(mind.clone());
        }
        let mind = Arc::new(last_good(run)?);
        loaded.retain(|(path, _, _)| path != run);
        loaded.push_front((run.into(), stamp, mind.clone()));
        loaded.truncate(MINDS_KEPT);
        Ok(mind)
    }

    /// Asks the mind of a run, or why it has none, unless the same was asked of it before. `question` names what is
    /// asked.
    pub async fn ask(
        self: Arc<Self>,
        run: PathBuf,
        question: String,
        think: impl FnOnce(Result<Arc<Mind>, Failure>) -> Result<Vec<u8>, Failure> + Send + 'static,
    ) -> Result<Arc<Vec<u8>>, Failure> {
        // It stays with the thought, which goes on when whoever asked has left.
        let turn = self.thinking.clone().lock_owned().await;
        let thought = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let stamp = last_checkpoint(&run).ok();
            let asked = stamp.map(|stamp| (run.clone(), stamp, question));
            let known = asked.as_ref().and_then(|asked| self.answer_to(asked));
            if let Some(answer) = known {
                return Ok(answer);
            }
            let mind = self.of(&run);
            let asked = asked.filter(|_| mind.is_ok());
            let answer = Arc::new(threads::on_worker(|| think(mind))?);
            if let Some(asked) = asked {
                let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
                answers.push_front((asked, answer.clone()));
                answers.truncate(ANSWERS_KEPT);
            }
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

fn last_checkpoint(run: &Path) -> Result<Stamp, Failure> {
    let epoch = checkpoint::epochs(run)
        .last()
        .copied()
        .ok_or_else(none_yet)?;
    Ok((epoch, checkpoint::written(run, epoch)))
}

/// The mind of the last checkpoint that is good; if none is, what is wrong with the last.
fn last_good(run: &Path) -> Result<Mind, Failure> {
    let config = run::config(run)?;
    let mut wrong = None;
    for epoch in checkpoint::epochs(run).into_iter().rev() {
        match Mind::load(run, &config, epoch) {
            Ok(mind) => {
                if let Some(wrong) = &wrong {
                    // The page tells whose epoch it shows, not why it is not the last.
                    eprintln!("note: {wrong}; showing the agent of epoch {epoch}");
                }
                return Ok(mind);
            }
            Err(failure) => wrong = wrong.or(Some(failure)),
        }
    }
    Err(wrong.unwrap_or_else(none_yet))
}

fn none_yet() -> Failure {
    Failure::Run {
        reason: "this run has no checkpoint yet, so there is no agent to ask".into(),
        hint: Some("the first one is written when training starts".into()),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use rem::agent::Agent;
    use rem::seeds::Seeds;

    /// A mind that has learned nothing, with the sizes of the preset `debug`.
    pub fn newborn() -> Mind {
        let config = Config::load("debug", &[]).unwrap();
        let device = Device::flex();
        let env = test_env(&config.env, 0).unwrap();
        let seeds = Seeds::new(config.seed);
        let agent = Agent::new(
            &config,
            env.actions().len(),
            &seeds,
            &device.clone().autodiff(),
        );
        Mind {
            epoch: 0,
            player: agent.valid(),
            world_model: agent.world_model.valid(),
            action_names: env.actions().iter().map(|name| name.to_string()).collect(),
            config,
            device,
        }
    }

    #[test]
    fn a_checkpoint_of_the_same_epoch_may_be_another_one() {
        let run = tempfile::tempdir().unwrap();
        let write = |time: SystemTime| {
            let dir = checkpoint::directory(run.path(), 3);
            std::fs::create_dir_all(&dir).unwrap();
            let manifest = std::fs::File::create(dir.join("manifest.json")).unwrap();
            manifest.set_modified(time).unwrap();
            last_checkpoint(run.path()).unwrap()
        };
        assert!(last_checkpoint(run.path()).is_err());
        let long_ago = SystemTime::UNIX_EPOCH;
        assert_eq!(write(long_ago), write(long_ago));
        assert_ne!(write(long_ago), write(SystemTime::now()));
    }
}
