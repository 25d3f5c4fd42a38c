//! Checks of the environment: spaces, determinism, snapshots, speed, and a picture of what the agent sees.

use std::path::Path;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rem::config::{Config, EnvMode};
use rem::data::episode::Episode;
use rem::env::{EnvError, EnvFactory, Outcome, Step};
use rem::{Env, Error};

use super::Finding::{self, Failed, Note, Passed};

/// Steps that are compared, and that the picture is taken from.
const STEPS: usize = 200;

/// Frames in the picture.
const PICTURED: usize = 16;

/// For how long the speed is measured.
const TIME: Duration = Duration::from_secs(1);

/// Number of actions if the environment cannot start: the most of any Atari game.
const MAX_ACTIONS: usize = 18;

/// The number of actions, and the findings by name.
pub(super) fn check(
    config: &Config,
    picture: Option<&Path>,
) -> (usize, Vec<(&'static str, Finding)>) {
    let mut findings = Vec::new();
    let actions = add_findings(config, picture, &mut findings);
    let actions = actions.unwrap_or_else(|error| {
        // What failed is the environment, also if some checks passed.
        findings.retain(|(name, _)| *name != "game");
        findings.insert(0, ("game", failed(error.into())));
        MAX_ACTIONS
    });
    (actions, findings)
}

/// An error, with the Python traceback above it.
fn failed(error: Error) -> Finding {
    match (error.details(), Finding::from_error(&error)) {
        (Some(details), Failed(text, hint)) => Failed(format!("{text}\n{details}"), hint),
        (_, finding) => finding,
    }
}

fn add_findings(
    config: &Config,
    picture: Option<&Path>,
    findings: &mut Vec<(&'static str, Finding)>,
) -> Result<usize, EnvError> {
    let envs = EnvFactory::named(&config.env)?;
    let mut env = envs.make(EnvMode::Train, config.seed)?;
    let actions = env.spaces().action.names().to_vec();
    let text = format!("{} · {} actions", config.env.game, actions.len());
    findings.push(("game", Passed(text)));
    if let Some(details) = envs.details()? {
        let shown = format!("{} · {}", details.observation_space, actions.join(", "));
        findings.push(("spaces", Passed(shown)));
        if !details.wrappers.is_empty() {
            findings.push(("wrappers", Passed(details.wrappers.join(" · "))));
        }
        let versions = details.packages.iter();
        let versions: Vec<String> = versions.map(|(name, v)| format!("{name} {v}")).collect();
        if !versions.is_empty() {
            let python = rem::env::python::interpreter();
            let versions = versions.join(" · ");
            findings.push((
                "Python",
                Passed(format!("{} · {versions}", python.display())),
            ));
        }
    }
    let first = steps(&mut *env, actions.len(), config.seed)?;
    drop(env);
    let mut again = envs.make(EnvMode::Train, config.seed)?;
    let second = steps(&mut *again, actions.len(), config.seed)?;
    findings.push(("seed", determinism(&first, &second)));
    findings.push(("snapshot", snapshots(&mut *again, actions.len())?));
    drop(again);
    let mut env = envs.make(EnvMode::Train, config.seed)?;
    findings.push(("speed", Passed(speed(&mut *env, actions.len())?)));
    findings.push(("picture", pictured(config, &actions, &first, picture)));
    Ok(actions.len())
}

/// A step, and the action that led to it.
type Taken = (usize, Step);

/// Random steps after a reset, which has the action 0 and no reward; also after each episode.
fn steps(env: &mut dyn Env, actions: usize, seed: u64) -> Result<Vec<Taken>, EnvError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let reset = |env: &mut dyn Env| {
        let observation = env.reset()?;
        let (reward, outcome) = (0.0, Outcome::Running);
        Ok::<_, EnvError>((
            0,
            Step {
                observation,
                reward,
                outcome,
            },
        ))
    };
    let mut taken = vec![reset(env)?];
    for _ in 0..STEPS {
        let action = rng.random_range(0..actions);
        let step = env.step(&action.into())?;
        let over = step.outcome != Outcome::Running;
        taken.push((action, step));
        if over {
            taken.push(reset(env)?);
        }
    }
    Ok(taken)
}

fn determinism(first: &[Taken], second: &[Taken]) -> Finding {
    let differs = first.iter().zip(second).position(|(a, b)| a != b);
    match differs {
        None => Passed(format!("the same in {STEPS} steps with the same seed")),
        Some(step) => {
            let (a, b) = (&first[step].1, &second[step].1);
            let what = match () {
                () if a.outcome != b.outcome => "the outcomes",
                () if a.reward != b.reward => "the rewards",
                () => "the frames",
            };
            Note(
                format!("with the same seed {what} differ after {step} steps"),
                "scores cannot be reproduced: does `reset(seed=…)` seed every random generator?"
                    .into(),
            )
        }
    }
}

fn snapshots(env: &mut dyn Env, actions: usize) -> Result<Finding, EnvError> {
    let Some(snapshot) = env.snapshot()? else {
        return Ok(Note(
            "its state cannot be saved".into(),
            "a resumed run starts a new episode, and differs from an uninterrupted one".into(),
        ));
    };
    // The next steps from here, up to the end of the episode; twice.
    let next = |env: &mut dyn Env| {
        let mut seen = Vec::new();
        for i in 0..STEPS {
            let step = env.step(&(i % actions).into())?;
            let over = step.outcome != Outcome::Running;
            seen.push(step);
            if over {
                break;
            }
        }
        Ok::<_, EnvError>(seen)
    };
    env.restore(&snapshot)?;
    let first = next(env)?;
    env.restore(&snapshot)?;
    Ok(match next(env)? == first {
        true => Passed("its state can be saved: a resumed run is exact".into()),
        false => Failed(
            "it plays differently after its state was restored".into(),
            "`snapshot` must hold everything, random generators included".into(),
        ),
    })
}

fn speed(env: &mut dyn Env, actions: usize) -> Result<String, EnvError> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    env.reset()?;
    let (started, mut steps) = (Instant::now(), 0u32);
    while started.elapsed() < TIME {
        let action = rng.random_range(0..actions);
        steps += 1;
        if env.step(&action.into())?.outcome != Outcome::Running {
            env.reset()?;
        }
    }
    let rate = f64::from(steps) / started.elapsed().as_secs_f64();
    Ok(format!(
        "{rate:.0} steps/s in one environment, resets included"
    ))
}

fn pictured(config: &Config, actions: &[String], taken: &[Taken], file: Option<&Path>) -> Finding {
    let Some(file) = file else {
        return Passed("`--picture FILE.png` shows what the agent sees".into());
    };
    // Evenly spaced. The strip has the action that is taken in a frame; here it is the one that led to it.
    let frames = taken.iter().step_by(taken.len().div_ceil(PICTURED));
    let frames: Vec<&Taken> = frames.collect();
    let episode = Episode {
        game: config.env.game.clone(),
        action_names: actions.to_vec(),
        size: config.env.frame_size,
        frames: frames
            .iter()
            .map(|(_, s)| s.observation.image().to_vec())
            .collect(),
        actions: frames.iter().map(|(action, _)| *action as u8).collect(),
        rewards: frames.iter().map(|(_, step)| step.reward).collect(),
        outcomes: frames.iter().map(|(_, step)| step.outcome).collect(),
        imagined: vec![false; frames.len()],
    };
    match episode.strip(8).save_png(file) {
        Ok(()) => Passed(format!("{} frames in {}", frames.len(), file.display())),
        Err(error) => failed(Error::File(error)),
    }
}
