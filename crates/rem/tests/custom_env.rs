//! Another crate trains, resumes and evaluates on its own type, through public items only.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rem::config::EnvMode;
use rem::env::EnvFactory;
use rem::run::{read_config, read_protocol};
use rem::seeds::Seeds;
use rem::train::evaluate::evaluate;
use rem::train::load_agent;
use rem::{
    Action, ActionSpace, Config, Env, EnvError, Event, Observation, ObservationSpace, Outcome,
    Scores, Setup, Spaces, Step, Trainer, device,
};

/// Lets one run of this process train at a time: they share the device's generator, which draws initial weights.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Count down from a number that the seed determines. The image is as bright as the number.
struct Countdown {
    seed: u64,
    left: u8,
    saved: bool,
    fails_at: Option<u8>,
}

impl Countdown {
    fn image(&self) -> Observation {
        vec![self.left * 20; 10 * 30 * 3].into()
    }
}

impl Env for Countdown {
    fn spaces(&self) -> Spaces {
        Spaces {
            observation: ObservationSpace::rgb(10, 30),
            action: ActionSpace::named(["wait", "count"]),
        }
    }

    fn reset(&mut self) -> Result<Observation, EnvError> {
        self.seed = self.seed.wrapping_mul(25_214_903_917).wrapping_add(11);
        self.left = 7 + (self.seed >> 40) as u8 % 5;
        Ok(self.image())
    }

    fn step(&mut self, action: &Action) -> Result<Step, EnvError> {
        if self.fails_at == Some(self.left) {
            return Err(EnvError::failed("the clock stopped"));
        }
        self.left -= action.index() as u8;
        let outcome = match self.left {
            0 => Outcome::Terminated,
            _ => Outcome::Running,
        };
        Ok(Step {
            observation: self.image(),
            reward: action.index() as f32,
            outcome,
        })
    }

    fn snapshot(&mut self) -> Result<Option<Vec<u8>>, EnvError> {
        let state = [&self.seed.to_le_bytes()[..], &[self.left]].concat();
        Ok(self.saved.then_some(state))
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<Observation, EnvError> {
        let (seed, left) = snapshot
            .split_first_chunk()
            .ok_or_else(|| EnvError::failed("short"))?;
        (self.seed, self.left) = (u64::from_le_bytes(*seed), left[0]);
        Ok(self.image())
    }
}

fn config(envs: usize) -> Config {
    let envs = format!("collect.envs={envs}");
    let set = [
        "env.game=countdown",
        "env.max_steps.train=25",
        "env.max_steps.test=25",
        "collect.steps_per_epoch=34",
        "train.epochs=4",
        "collect.epochs=4",
        &envs,
    ];
    Config::load("debug", &set.map(String::from)).unwrap()
}

fn setup(config: Config, saved: bool, fails_at: Option<u8>) -> Setup {
    let make = move |_mode: EnvMode, seed| {
        Ok(Countdown {
            seed,
            left: 0,
            saved,
            fails_at,
        })
    };
    Trainer::new(config, make).unwrap()
}

/// Trains and stops after an epoch, as if killed.
fn train_until(trainer: Trainer, epoch: u32) {
    let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        trainer.train(&mut |event| {
            if let Event::EpochDone { epoch: done, .. } = event
                && done == epoch
            {
                panic!("stopped by the test");
            }
        })
    }));
    assert!(run.is_err(), "the run ended before epoch {epoch}");
}

fn metrics(run: &Path) -> String {
    std::fs::read_to_string(run.join("metrics.jsonl")).unwrap()
}

fn trained(trainer: Trainer) -> (Scores, Vec<String>) {
    let notes = Mutex::new(Vec::new());
    let scores = trainer.train(&mut |event| {
        if let Event::Note(note) = event {
            notes.lock().unwrap().push(note.to_owned());
        }
    });
    (scores.unwrap(), notes.into_inner().unwrap())
}

#[test]
fn an_own_type_trains_resumes_exactly_and_evaluates() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let (whole, stopped) = (temp.path().join("whole"), temp.path().join("stopped"));
    let (scores, _) = trained(setup(config(2), true, None).start(&whole).unwrap());
    assert_eq!(scores.game, "countdown");
    let last = scores.final_score.unwrap();

    train_until(setup(config(2), true, None).start(&stopped).unwrap(), 2);
    let (resumed, notes) = trained(setup(config(2), true, None).resume(&stopped).unwrap());
    assert_eq!(resumed.final_score.unwrap().returns, last.returns);
    assert_eq!(metrics(&stopped), metrics(&whole));
    assert!(notes.is_empty(), "{notes:?}");

    let protocol = read_protocol(&whole).unwrap();
    assert_eq!(
        (protocol.actions, protocol.collect_envs),
        (vec!["wait".into(), "count".into()], 2)
    );
    let details = protocol.environment.unwrap();
    assert!(details.snapshots);
    assert_eq!(details.observation_space, "image 10x30x3");
    let expected = [
        "resize 10x30 to 32x32, bilinear",
        "time limit 25 steps, 25 in evaluation",
        "a lost life ends an episode in training",
    ];
    assert_eq!(details.wrappers, expected);

    // As `rem eval` does, but with the own type.
    let config = read_config(&whole).unwrap();
    let device = device::of(&config).unwrap();
    let (agent, _) = load_agent(&whole, &config, None, device.clone()).unwrap();
    let make = |_, seed| {
        Ok(Countdown {
            seed,
            left: 0,
            saved: false,
            fails_at: None,
        })
    };
    let envs = EnvFactory::new(&config.env, make).unwrap();
    let seeds = Seeds::new(config.seed);
    let count = last.returns.len();
    let again = evaluate(
        &agent.valid(),
        &config,
        &envs,
        count,
        &seeds,
        &device,
        |_| (),
    )
    .unwrap();
    assert_eq!(again.returns, last.returns);
}

#[test]
fn without_snapshots_a_resumed_run_starts_a_new_episode_and_says_so() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let run = temp.path().join("run");
    train_until(setup(config(1), false, None).start(&run).unwrap(), 2);
    assert!(!read_protocol(&run).unwrap().environment.unwrap().snapshots);
    let (scores, notes) = trained(setup(config(1), false, None).resume(&run).unwrap());
    assert!(scores.final_score.is_some());
    let expected = "resumed after epoch 2 with a new episode in 1 of 1 environments, whose state cannot be saved";
    assert_eq!(notes, [expected]);
    assert!(metrics(&run).contains(expected));
    // A second resume reads the replay with the abandoned episode.
    let archive = rem::run::checkpoint::archive(&run);
    assert_eq!((archive.steps(), archive.problem), (4 * 34, None));
}

#[test]
fn a_failing_environment_keeps_the_last_epoch() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let run = temp.path().join("run");
    train_until(setup(config(1), true, None).start(&run).unwrap(), 1);
    let failing = setup(config(1), true, Some(3)).resume(&run).unwrap();
    let error = failing.train(&mut |_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the environment failed: the clock stopped"
    );
    assert!(error.hint().unwrap().contains("--resume"));
    let (scores, _) = trained(setup(config(1), true, None).resume(&run).unwrap());
    assert!(scores.final_score.is_some());
}

#[test]
fn a_factory_that_fails_creates_no_run() {
    let _alone = alone();
    let temp = tempfile::tempdir().unwrap();
    let run = temp.path().join("run");
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let make = move |_: EnvMode, _: u64| -> Result<Countdown, EnvError> {
        counted.fetch_add(1, Ordering::Relaxed);
        Err(EnvError::failed("no clock"))
    };
    let error = Trainer::new(config(1), make)
        .unwrap()
        .start(&run)
        .err()
        .unwrap();
    assert!(error.to_string().contains("no clock"));
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert!(!run.exists());
}
