//! Python environments in worker processes: what arrives, and what becomes an error.
//!
//! The tests need a Python with gymnasium: `scripts/setup-gymnasium` installs one, `REM_TEST_PYTHON` names another. Without
//! one they are skipped; with `REM_REQUIRE_GYMNASIUM` set they fail.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rem::config::{Config, EnvConfig, EnvMode, PythonObservation};
use rem::env::python::{PythonError, set_interpreter};
use rem::env::{Env, EnvError, EnvFactory, ObservationSpace, Outcome, Step};

/// Selects the Python of the tests. False, and a message, if there is none.
fn has_python() -> bool {
    let own = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../third-party/gymnasium/bin/python"
    );
    let python = std::env::var_os("REM_TEST_PYTHON").map_or(own.into(), PathBuf::from);
    if !python.exists() {
        let required = std::env::var_os("REM_REQUIRE_GYMNASIUM").is_some();
        assert!(
            !required,
            "{} does not exist: run scripts/setup-gymnasium",
            python.display()
        );
        eprintln!("skipped: no Python with gymnasium");
        return false;
    }
    set_interpreter(python);
    true
}

/// Settings of `FACTORY` in `tests/python/bridge_envs.py`. Tests run in the directory of the package.
fn settings(factory: &str) -> EnvConfig {
    let mut settings = Config::load("quick", &[]).unwrap().env;
    settings.game = format!("python:tests.python.bridge_envs:{factory}");
    settings
}

fn with_kwargs(factory: &str, kwargs: &str) -> EnvConfig {
    let mut settings = settings(factory);
    settings.python.kwargs = kwargs.parse().unwrap();
    settings
}

fn make(settings: &EnvConfig, seed: u64) -> Result<Box<dyn Env>, EnvError> {
    EnvFactory::named(settings)?.make(EnvMode::Test, seed)
}

fn step(env: &mut Box<dyn Env>, action: usize) -> Result<Step, EnvError> {
    env.step(&action.into())
}

/// Rewards, outcomes and the brightness of the first pixel, over several episodes with actions 1 and 0 in turns.
fn trajectory(env: &mut Box<dyn Env>, steps: usize) -> Vec<(f32, Outcome, u8)> {
    let first = env.reset().unwrap().image()[0];
    let mut seen = vec![(0.0, Outcome::Running, first)];
    for i in 0..steps {
        let step = step(env, usize::from(i % 3 > 0)).unwrap();
        seen.push((step.reward, step.outcome, step.observation.image()[0]));
        if step.outcome != Outcome::Running {
            seen.push((0.0, Outcome::Running, env.reset().unwrap().image()[0]));
        }
    }
    seen
}

fn of(settings: &EnvConfig, seed: u64) -> Vec<(f32, Outcome, u8)> {
    trajectory(&mut make(settings, seed).unwrap(), 40)
}

/// The error of the third step.
fn fault(settings: &EnvConfig) -> (EnvError, u32) {
    let mut env = make(settings, 1).unwrap();
    let pid = pid(&*env);
    env.reset().unwrap();
    step(&mut env, 0).unwrap();
    step(&mut env, 0).unwrap();
    (step(&mut env, 0).unwrap_err(), pid)
}

fn pid(env: &dyn Env) -> u32 {
    let names = env.spaces().action.names().to_vec();
    names[0].strip_prefix("pid ").unwrap().parse().unwrap()
}

/// Waits until the process is gone: neither running nor a zombie.
#[track_caller]
fn assert_gone(pid: u32) {
    let started = Instant::now();
    while Path::new(&format!("/proc/{pid}")).exists() {
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "process {pid} is left"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn seeds_and_actions_determine_everything() {
    if !has_python() {
        return;
    }
    let first = of(&settings("plain"), 1);
    assert_eq!(first, of(&settings("plain"), 1));
    assert_ne!(first, of(&settings("plain"), 2));
    // The image has the brightness of the position, which is the reward.
    assert!(
        first
            .iter()
            .all(|(reward, _, pixel)| *reward == 0.0 || *reward == f32::from(*pixel))
    );
}

#[test]
fn termination_and_truncation_are_told_apart() {
    if !has_python() {
        return;
    }
    let mut env = make(&settings("plain"), 3).unwrap();
    let outcomes = |env: &mut Box<dyn Env>, action: usize| -> Vec<Outcome> {
        env.reset().unwrap();
        let mut outcomes = Vec::new();
        while outcomes.last().is_none_or(|last| *last == Outcome::Running) {
            outcomes.push(step(env, action).unwrap().outcome);
        }
        outcomes
    };
    let moved = outcomes(&mut env, 1);
    assert_eq!((moved.len(), moved[3]), (4, Outcome::Terminated));
    assert_eq!(env.lives(), 0);
    let waited = outcomes(&mut env, 0);
    assert_eq!((waited.len(), waited[8]), (9, Outcome::Truncated));
    assert_eq!(env.lives(), 4);
    // Both in one step: a terminal state is terminal.
    let mut env = make(&with_kwargs("plain", "limit = 4"), 3).unwrap();
    assert_eq!(outcomes(&mut env, 1)[3], Outcome::Terminated);
}

#[test]
fn images_of_all_layouts_become_frames() {
    if !has_python() {
        return;
    }
    let expected = of(&settings("plain"), 5);
    for (factory, kwargs) in [
        ("plain", "shape = [3, 20, 30]"),
        ("plain", "shape = [20, 30]"),
        ("plain", "shape = [20, 30, 1]"),
        ("plain", "dtype = 'float32'"),
        ("plain", "high = 1\ndtype = 'float32'"),
        ("plain", "start = 7"),
        ("rendered", ""),
    ] {
        assert_eq!(
            of(&with_kwargs(factory, kwargs), 5),
            expected,
            "{factory} {kwargs}"
        );
    }
    let mut rendered = settings("plain");
    rendered.python.observation = PythonObservation::Render;
    assert_eq!(of(&rendered, 5), expected);
    rendered.python.kwargs = "render_mode = 'rgb_array'".parse().unwrap();
    assert_eq!(of(&rendered, 5), expected);
    let details = EnvFactory::named(&rendered)
        .unwrap()
        .details()
        .unwrap()
        .unwrap();
    assert_eq!(details.observation_space, "image 12x12x3");
    assert_eq!(
        make(&rendered, 0).unwrap().spaces().observation,
        ObservationSpace::rgb(32, 32)
    );
}

#[test]
fn vector_environments_of_all_autoreset_modes_are_played_like_single_ones() {
    if !has_python() {
        return;
    }
    let expected = of(&settings("plain"), 9);
    for mode in ["NEXT_STEP", "SAME_STEP", "DISABLED"] {
        let vector = with_kwargs("vector", &format!("mode = '{mode}'"));
        assert_eq!(of(&vector, 9), expected, "{mode}");
    }
    let two = with_kwargs("vector", "mode = 'SAME_STEP'\ncount = 2");
    let error = make(&two, 0).err().unwrap().to_string();
    assert!(
        error.contains("num_envs=1") && error.contains("collect.envs"),
        "{error}"
    );
}

#[test]
fn workers_are_used_again_and_end_with_the_factory() {
    if !has_python() {
        return;
    }
    let factory = EnvFactory::named(&settings("plain")).unwrap();
    let make = |seed| factory.make(EnvMode::Test, seed).unwrap();
    let mut first = make(4);
    let (one, two) = (pid(&*first), pid(&*make(5)));
    assert_ne!(
        one, two,
        "environments at the same time have processes of their own"
    );
    let seen = trajectory(&mut first, 20);
    drop(first);
    let mut again = make(4);
    assert!([one, two].contains(&pid(&*again)));
    assert_eq!(trajectory(&mut again, 20), seen);
    drop(again);
    drop(factory);
    assert_gone(one);
    assert_gone(two);
}

#[test]
fn an_exception_is_an_error_with_its_traceback() {
    if !has_python() {
        return;
    }
    let factory = EnvFactory::named(&settings("raises")).unwrap();
    let (error, pid) = fault(&settings("raises"));
    let text = error.to_string();
    assert!(
        text.ends_with("raised ValueError in step: the third step always fails"),
        "{text}"
    );
    let error = rem::Error::from(error);
    let traceback = error.details().unwrap();
    assert!(
        traceback.contains("bridge_envs.py") && traceback.contains("in fault"),
        "{traceback}"
    );
    assert!(!traceback.contains("rem_env"), "{traceback}");
    assert_gone(pid);
    // The next environment has a process of its own.
    assert!(factory.make(EnvMode::Test, 0).unwrap().reset().is_ok());
}

#[test]
fn a_hang_ends_at_the_time_limit() {
    if !has_python() {
        return;
    }
    let mut settings = settings("hangs");
    settings.python.timeout = 0.5;
    let started = Instant::now();
    let (error, pid) = fault(&settings);
    assert!(started.elapsed() < Duration::from_secs(30));
    let text = error.to_string();
    assert!(
        text.contains("did not return from step within 0.5 seconds"),
        "{text}"
    );
    assert!(error.hint().contains("env.python.timeout"));
    assert_gone(pid);
}

#[test]
fn a_dead_process_is_an_error_with_what_it_printed() {
    if !has_python() {
        return;
    }
    let (error, pid) = fault(&settings("dies"));
    assert!(
        error
            .to_string()
            .contains("ended in step: killed by signal 9"),
        "{error}"
    );
    assert!(
        rem::Error::from(error)
            .details()
            .unwrap()
            .contains("last words")
    );
    assert_gone(pid);

    let mut env = make(&settings("plain"), 0).unwrap();
    env.reset().unwrap();
    let pid = self::pid(&*env);
    let killed = Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let error = step(&mut env, 0).unwrap_err();
    assert!(
        matches!(error, EnvError::Python(PythonError::Died { .. })),
        "{error}"
    );
    drop(env);
    assert_gone(pid);

    let (error, _) = fault(&settings("exits"));
    assert!(
        error
            .to_string()
            .contains("raised SystemExit in step: enough"),
        "{error}"
    );
}

#[test]
fn wrong_values_are_errors() {
    if !has_python() {
        return;
    }
    for (factory, reason) in [
        ("nan_reward", "the reward NaN"),
        ("wrong_shape", "the shape (20, 29, 3), not (20, 30, 3)"),
        ("wrong_type", "of float64, not uint8"),
        ("nan_image", "not finite"),
    ] {
        let (error, _) = fault(&settings(factory));
        assert!(error.to_string().contains(reason), "{factory}: {error}");
    }
    let mut env = make(&settings("old_step"), 0).unwrap();
    env.reset().unwrap();
    let error = step(&mut env, 0).unwrap_err().to_string();
    assert!(error.contains("step returned 4 values"), "{error}");
}

#[test]
fn output_does_not_disturb_the_protocol() {
    if !has_python() {
        return;
    }
    let mut env = make(&settings("prints"), 1).unwrap();
    env.reset().unwrap();
    let printed: Vec<f32> = (0..8).map(|_| step(&mut env, 0).unwrap().reward).collect();
    let mut env = make(&settings("plain"), 1).unwrap();
    env.reset().unwrap();
    let quiet: Vec<f32> = (0..8).map(|_| step(&mut env, 0).unwrap().reward).collect();
    assert_eq!(printed, quiet);
}

#[test]
fn environments_that_cannot_be_played_are_errors_with_a_reason() {
    if !has_python() {
        return;
    }
    let error = |settings: &EnvConfig| make(settings, 0).err().unwrap();
    let continuous = error(&settings("continuous")).to_string();
    assert!(continuous.contains("action space Box") && continuous.contains("not discrete"));
    let blind = error(&settings("never_rendered")).to_string();
    assert!(blind.contains("no images, and it cannot render"), "{blind}");
    let absent = error(&settings("absent"));
    assert!(
        absent
            .to_string()
            .contains("raised AttributeError in its construction"),
        "{absent}"
    );
    let mut settings = settings("plain");
    settings.game = "python:module_of_nowhere:make".into();
    let missing = error(&settings);
    assert!(
        missing
            .to_string()
            .contains("needs the Python package `module_of_nowhere`")
    );
    assert!(missing.hint().contains("-m pip install module_of_nowhere"));
    settings.game = "gym:Nowhere-v0".into();
    let unknown = error(&settings).to_string();
    assert!(
        unknown.contains("`gym:Nowhere-v0` raised NameNotFound"),
        "{unknown}"
    );
}

#[test]
fn environments_with_snapshots_continue_exactly() {
    if !has_python() {
        return;
    }
    let mut env = make(&settings("saved"), 6).unwrap();
    let before = env.snapshot().unwrap().unwrap();
    let whole = trajectory(&mut env, 30);
    let mut other = make(&settings("saved"), 7).unwrap();
    other.restore(&before).unwrap();
    assert_eq!(trajectory(&mut other, 30), whole, "before the first reset");

    let saved = env.snapshot().unwrap().unwrap();
    let expected: Vec<Step> = (0..4).map(|_| step(&mut env, 0).unwrap()).collect();
    let current = other.restore(&saved).unwrap();
    assert_eq!(current.image()[0], whole.last().unwrap().2);
    let found: Vec<Step> = (0..4).map(|_| step(&mut other, 0).unwrap()).collect();
    assert_eq!(found, expected);
    assert_eq!(
        make(&settings("plain"), 0).unwrap().snapshot().unwrap(),
        None
    );
}
