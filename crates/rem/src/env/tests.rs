use super::testing::act;
use super::*;
use crate::config::{Config, EnvMode, FRAME_SIZES};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A built-in game, truncated after `max_steps` steps, optionally with one episode per life.
fn built_in(
    game: &str,
    size: usize,
    seed: u64,
    end_on_life_loss: bool,
    max_steps: u32,
) -> Result<Box<dyn Env>, EnvError> {
    let mut settings = Config::load("quick", &[]).unwrap().env;
    settings.game = game.into();
    settings.frame_size = size;
    settings.end_on_life_loss.train = end_on_life_loss;
    settings.max_steps.train = max_steps;
    EnvFactory::named(&settings)?.make(EnvMode::Train, seed)
}

fn mean(returns: &[f32]) -> f32 {
    returns.iter().sum::<f32>() / returns.len() as f32
}

fn scripted(game: &str, life_loss: bool, max_steps: u32, episodes: usize) -> Vec<f32> {
    let mut env = built_in(game, 32, 11, life_loss, max_steps).unwrap();
    play_scripted(
        &mut env,
        Budget {
            episodes,
            steps: usize::MAX,
        },
    )
    .unwrap()
}

fn random(game: &str, life_loss: bool, max_steps: u32, episodes: usize) -> Vec<f32> {
    let mut env = built_in(game, 32, 12, life_loss, max_steps).unwrap();
    let budget = Budget {
        episodes,
        steps: usize::MAX,
    };
    play_random(&mut env, budget, &mut ChaCha8Rng::seed_from_u64(13)).unwrap()
}

/// `steps` steps of the random policy, with a reset after each episode.
fn rollout(env: &mut dyn Env, rng: &mut ChaCha8Rng, steps: usize) -> Vec<Step> {
    let mut seen = Vec::new();
    let actions = env.spaces().action.count();
    for _ in 0..steps {
        let step = act(env, rng.random_range(0..actions));
        let over = step.outcome != Outcome::Running;
        seen.push(step);
        if over {
            seen.push(Step {
                observation: env.reset().unwrap(),
                reward: 0.0,
                outcome: Outcome::Running,
            });
        }
    }
    seen
}

/// The snapshot of an environment that has one.
fn saved(env: &mut Box<dyn Env>) -> Vec<u8> {
    env.snapshot().unwrap().unwrap()
}

fn start(game: &str, size: usize, seed: u64, life_loss: bool) -> Box<dyn Env> {
    let mut env = built_in(game, size, seed, life_loss, 40).unwrap();
    env.reset().unwrap();
    env
}

#[test]
fn same_seed_gives_same_trajectory() {
    for game in GAMES {
        let trajectory = |seed, size| {
            let mut env = start(game, size, seed, true);
            rollout(&mut env, &mut ChaCha8Rng::seed_from_u64(0), 200)
        };
        assert_eq!(trajectory(5, 32), trajectory(5, 32), "{game}");
        assert_ne!(trajectory(5, 32), trajectory(6, 32), "{game}");
    }
}

#[test]
fn episodes_start_differently() {
    for game in GAMES {
        let mut env = built_in(game, 32, 1, false, 40).unwrap();
        let mut starts: Vec<_> = (0..20).map(|_| env.reset().unwrap()).collect();
        starts.sort();
        starts.dedup();
        assert!(starts.len() > 5, "{game}: {} starts", starts.len());
    }
}

#[test]
fn frame_sizes_differ_only_in_scale() {
    for game in GAMES {
        let trajectory = |size| {
            let mut env = start(game, size, 3, true);
            assert_eq!(env.spaces().observation, ObservationSpace::rgb(size, size));
            rollout(&mut env, &mut ChaCha8Rng::seed_from_u64(4), 100)
        };
        // Frames consist of 8x8 cells of one color.
        let cells = |frame: &[u8], size: usize| -> Vec<u8> {
            assert_eq!(frame.len(), size * size * 3);
            let at = |i: usize| (i / 8 * size + i % 8) * size / 8;
            (0..64)
                .flat_map(|i| frame[at(i) * 3..][..3].to_vec())
                .collect()
        };
        let small = trajectory(32);
        for size in FRAME_SIZES {
            for (small, large) in small.iter().zip(trajectory(*size)) {
                let drawn: Vec<u8> = (0..size * size)
                    .flat_map(|i| {
                        let cell = i / size * 8 / size * 8 + i % size * 8 / size;
                        cells(small.observation.image(), 32)[cell * 3..][..3].to_vec()
                    })
                    .collect();
                assert!(drawn == large.observation.image(), "{game} at {size}");
            }
        }
    }
}

#[test]
fn a_restored_environment_continues_exactly() {
    for (game, life_loss) in GAMES.iter().flat_map(|game| [(game, true), (game, false)]) {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        let mut env = start(game, 32, 9, life_loss);
        for round in 0..60 {
            rollout(&mut env, &mut rng, 1 + round % 5);
            let snapshot = saved(&mut env);
            let current = env.restore(&snapshot).unwrap();
            let mut other = built_in(game, 32, 1000, life_loss, 40).unwrap();
            assert_eq!(other.restore(&snapshot).unwrap(), current);
            assert_eq!(saved(&mut other), snapshot);
            let expected = rollout(&mut env, &mut rng.clone(), 100);
            assert!(expected == rollout(&mut other, &mut rng, 100), "{game}");
        }
    }
}

#[test]
fn an_environment_restored_between_episodes_resets_equally() {
    let mut env = start("paddle", 32, 9, true);
    while act(&mut env, 0).outcome == Outcome::Running {}
    let mut other = built_in("paddle", 32, 1000, true, 40).unwrap();
    other.restore(&saved(&mut env)).unwrap();
    assert_eq!(other.reset().unwrap(), env.reset().unwrap());
    assert_eq!(other.lives(), 2);
}

#[test]
fn invalid_snapshots_are_errors_and_leave_the_state_unchanged() {
    let good = String::from_utf8(saved(&mut start("catch", 32, 1, false))).unwrap();
    let replaced = |from: &str, to: &str| {
        assert!(good.contains(from), "{good}");
        good.replace(from, to).into_bytes()
    };
    let cases = [
        (saved(&mut start("paddle", 32, 1, false)), "of `paddle`"),
        (saved(&mut start("catch", 64, 1, false)), "64 pixels"),
        (saved(&mut start("catch", 32, 1, true)), "of `life_loss`"),
        (good.as_bytes()[..good.len() - 1].to_vec(), "is truncated"),
        (good.as_bytes()[..good.len() / 2].to_vec(), "is truncated"),
        (format!("{good}more").into_bytes(), "4 extra bytes"),
        (replaced("\"ball_row\":0", "\"ball_row\":7"), "impossible"),
        (replaced("\"ball_row\":0", "\"ball_row\":-1"), "damaged"),
        (replaced("\"seed\"", "\"sead\""), "damaged"),
        (b"\xff\x00\n".to_vec(), "damaged"),
        (Vec::new(), "is truncated"),
    ];
    for (snapshot, reason) in cases {
        let mut env = start("catch", 32, 2, false);
        let before = saved(&mut env);
        let error = env.restore(&snapshot).unwrap_err().to_string();
        assert!(
            error.contains(reason),
            "`{error}` does not contain `{reason}`"
        );
        assert_eq!(saved(&mut env), before);
    }
}

#[test]
fn invalid_settings_are_errors_with_a_hint() {
    let error = |game, size, steps| built_in(game, size, 0, false, steps).err().unwrap();
    assert_eq!(error("cach", 64, 40).to_string(), "unknown game `cach`");
    assert_eq!(error("cach", 64, 40).hint(), "did you mean `catch`?");
    assert_eq!(error("brakeout", 64, 40).hint(), "did you mean `breakout`?");
    let all = "the built-in games are catch, paddle, crossing; the Atari games are alien, ";
    assert!(error("chess at night", 64, 40).hint().starts_with(all));
    assert!(matches!(
        error("catch", 40, 40),
        EnvError::BadSize { size: 40 }
    ));
    assert!(matches!(error("catch", 64, 0), EnvError::NoSteps));
}

#[test]
fn catch_returns_of_scripted_and_random_policies() {
    assert_eq!(scripted("catch", false, 100, 200), [1.0; 200]);
    let random = mean(&random("catch", false, 100, 2000));
    assert!((random + 0.5).abs() < 0.1, "{random}");
}

#[test]
fn paddle_returns_of_scripted_and_random_policies() {
    assert_eq!(scripted("paddle", false, 1000, 50), [24.0; 50]);
    assert_eq!(scripted("paddle", true, 1000, 50), [24.0; 50]);
    let random = mean(&random("paddle", false, 1000, 500));
    assert!((0.5..6.0).contains(&random), "{random}");
}

#[test]
fn crossing_rewards_are_sparse_for_the_random_policy() {
    let best = scripted("crossing", false, 40, 200);
    assert!(best.iter().all(|&crossings| crossings >= 3.0), "{best:?}");
    let random = mean(&random("crossing", false, 40, 2000));
    assert!((0.005..0.1).contains(&random), "{random}");
}

#[test]
#[should_panic(expected = "no action 3")]
fn an_unknown_action_panics() {
    act(&mut start("catch", 32, 0, false), 3);
}

#[test]
#[should_panic(expected = "reset first")]
fn a_step_before_the_first_reset_panics() {
    act(&mut built_in("catch", 32, 0, false, 10).unwrap(), 0);
}

#[test]
fn action_zero_is_noop() {
    for game in GAMES {
        let spaces = start(game, 32, 0, false).spaces();
        assert_eq!(spaces.action.names()[0], "noop");
    }
}
