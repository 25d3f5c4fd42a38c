//! Environments: what an agent acts in, and the built-in games that need nothing installed.
//!
//! A game is an [`Env`]; [`TimeLimit`] and [`LifeLoss`] are `Env`s around another one. [`make`] puts them together.
//! With the feature `atari` there are also the games of the Arcade Learning Environment.
//! Everything that will ever happen follows from the seed and the actions, and a [`snapshot`](Env::snapshot)
//! holds all of it, so a resumed run goes on exactly where it was.

#[cfg(feature = "atari")]
pub mod atari;
mod canvas;
mod catch;
mod crossing;
mod error;
mod life_loss;
mod paddle;
mod snapshot;
mod time_limit;

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use crate::config::EnvSettings;
use canvas::BoardGame;
pub use error::EnvError;
pub use life_loss::LifeLoss;
use snapshot::{pack, refused, unpack};
pub use time_limit::TimeLimit;

/// The built-in games, by the names [`make`] takes.
pub const GAMES: &[&str] = &["catch", "paddle", "crossing"];

/// The frame sizes there are: whole pixels per cell of the built-in games, and what the tokenizer can halve down.
pub const FRAME_SIZES: &[usize] = &[32, 48, 64];

/// What a step did to the episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    Continues,
    /// The game is over: nothing of value follows.
    Ended,
    /// The episode was cut short; the game would have gone on, so the last state still has a value.
    Truncated,
}

/// What the environment answers to an action.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// `size * size * 3` bytes: RGB, row by row.
    pub frame: Vec<u8>,
    pub reward: f32,
    pub outcome: Outcome,
}

/// A game played one action at a time.
pub trait Env: Send {
    /// The actions' names. Action 0 is always `noop`.
    fn actions(&self) -> &[&'static str];
    /// Height and width of a frame in pixels.
    fn frame_size(&self) -> usize;
    /// Starts the next episode and returns its first frame.
    fn reset(&mut self) -> Vec<u8>;
    /// # Panics
    /// If there is no such action, or no episode under way.
    fn step(&mut self, action: usize) -> Step;
    /// Lives left; 1 where a game has none.
    fn lives(&self) -> u32;
    /// What the scripted best player would do now; `None` where there is no such player.
    fn scripted_action(&self) -> Option<usize>;
    /// The current frame.
    fn render(&self) -> Vec<u8>;
    /// The full state, generators included.
    fn snapshot(&self) -> Vec<u8>;
    /// Goes to the state of a snapshot. After an error the environment is as it was.
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), EnvError>;
}

impl Env for Box<dyn Env> {
    fn actions(&self) -> &[&'static str] {
        (**self).actions()
    }
    fn frame_size(&self) -> usize {
        (**self).frame_size()
    }
    fn reset(&mut self) -> Vec<u8> {
        (**self).reset()
    }
    fn step(&mut self, action: usize) -> Step {
        (**self).step(action)
    }
    fn lives(&self) -> u32 {
        (**self).lives()
    }
    fn scripted_action(&self) -> Option<usize> {
        (**self).scripted_action()
    }
    fn render(&self) -> Vec<u8> {
        (**self).render()
    }
    fn snapshot(&self) -> Vec<u8> {
        (**self).snapshot()
    }
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), EnvError> {
        (**self).restore(snapshot)
    }
}

/// What an environment is for; its settings may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Train,
    Test,
}

/// The environment of a config.
pub fn make(settings: &EnvSettings, for_what: Use, seed: u64) -> Result<Box<dyn Env>, EnvError> {
    let end_on_life_loss = settings.end_on_life_loss.of(for_what);
    let max_steps = settings.max_steps.of(for_what);
    let game = &settings.game;
    if is_built_in(game) {
        return built_in(game, settings.frame_size, seed, end_on_life_loss, max_steps);
    }
    let known = rem_ale::Game::named(game).map_err(|_| unknown(game))?;
    #[cfg(feature = "atari")]
    {
        let atari = atari::Atari::new(
            &atari::rom(known)?,
            atari::AtariSettings {
                size: settings.frame_size,
                frame_skip: settings.atari.frame_skip,
                noops: match settings.atari.max_noops.of(for_what) {
                    0 => (0, 0),
                    most => (1, most),
                },
                max_frames: max_steps,
                sticky: settings.atari.sticky_actions,
            },
            seed,
        )?;
        Ok(if end_on_life_loss {
            Box::new(LifeLoss::new(atari))
        } else {
            Box::new(atari)
        })
    }
    #[cfg(not(feature = "atari"))]
    Err(EnvError::WithoutAtari { game: known.name })
}

/// Whether a game is one of the built-in ones.
pub fn is_built_in(game: &str) -> bool {
    GAMES.contains(&game)
}

fn atari_names() -> Vec<&'static str> {
    rem_ale::Game::benchmark().map(|game| game.name).collect()
}

/// A built-in game, cut off after `max_steps` steps and, if asked, with an episode for each life.
pub fn built_in(
    game: &str,
    size: usize,
    seed: u64,
    end_on_life_loss: bool,
    max_steps: u32,
) -> Result<Box<dyn Env>, EnvError> {
    if !FRAME_SIZES.contains(&size) {
        return Err(EnvError::BadSize { size });
    }
    if max_steps == 0 {
        return Err(EnvError::NoSteps);
    }
    let game: Box<dyn Env> = match game {
        "catch" => Box::new(BoardGame::<catch::Catch>::new(size, seed)),
        "paddle" => Box::new(BoardGame::<paddle::Paddle>::new(size, seed)),
        "crossing" => Box::new(BoardGame::<crossing::Crossing>::new(size, seed)),
        _ => return Err(unknown(game)),
    };
    // The limit is inside: it counts over the whole game, not over one life.
    let limited = TimeLimit::new(game, max_steps);
    Ok(if end_on_life_loss {
        Box::new(LifeLoss::new(limited))
    } else {
        Box::new(limited)
    })
}

/// A game that nobody knows, with the one that was probably meant.
fn unknown(game: &str) -> EnvError {
    let name = game.to_lowercase();
    let distance = |game: &&str| strsim::levenshtein(&name, game);
    let built_in = GAMES.iter().copied().min_by_key(distance);
    let closest =
        built_in
            .filter(|game| distance(game) <= 2)
            .or_else(|| match rem_ale::Game::named(game) {
                Err(rem_ale::AleError::UnknownGame { closest, .. }) => closest.first().copied(),
                known => known.ok().map(|game| game.name),
            });
    EnvError::UnknownGame {
        game: game.to_owned(),
        closest,
    }
}

/// How long to play: so many episodes, but none begun after so many steps.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub episodes: usize,
    pub steps: usize,
}

/// The returns of the scripted best player.
///
/// # Panics
/// If the environment has no scripted player.
pub fn play_scripted(env: &mut dyn Env, budget: Budget) -> Vec<f32> {
    play(env, budget, |env| {
        env.scripted_action()
            .expect("this environment has no scripted player")
    })
}

/// The returns of a player that chooses each action with equal chance.
pub fn play_random(env: &mut dyn Env, budget: Budget, rng: &mut impl Rng) -> Vec<f32> {
    play(env, budget, |env| rng.random_range(0..env.actions().len()))
}

fn play(env: &mut dyn Env, budget: Budget, mut choose: impl FnMut(&dyn Env) -> usize) -> Vec<f32> {
    let (mut returns, mut steps) = (Vec::new(), 0);
    while returns.len() < budget.episodes && steps < budget.steps {
        env.reset();
        let mut total = 0.0;
        loop {
            let step = env.step(choose(env));
            total += step.reward;
            steps += 1;
            if step.outcome != Outcome::Continues {
                break;
            }
        }
        returns.push(total);
    }
    returns
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

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
    }

    fn random(game: &str, life_loss: bool, max_steps: u32, episodes: usize) -> Vec<f32> {
        let mut env = built_in(game, 32, 12, life_loss, max_steps).unwrap();
        let budget = Budget {
            episodes,
            steps: usize::MAX,
        };
        play_random(&mut env, budget, &mut ChaCha8Rng::seed_from_u64(13))
    }

    /// What a random player sees over `steps` steps, resetting where it must.
    fn watch(env: &mut dyn Env, rng: &mut ChaCha8Rng, steps: usize) -> Vec<Step> {
        let mut seen = Vec::new();
        for _ in 0..steps {
            let step = env.step(rng.random_range(0..env.actions().len()));
            let over = step.outcome != Outcome::Continues;
            seen.push(step);
            if over {
                seen.push(Step {
                    frame: env.reset(),
                    reward: 0.0,
                    outcome: Outcome::Continues,
                });
            }
        }
        seen
    }

    fn start(game: &str, size: usize, seed: u64, life_loss: bool) -> Box<dyn Env> {
        let mut env = built_in(game, size, seed, life_loss, 40).unwrap();
        env.reset();
        env
    }

    #[test]
    fn a_seed_fixes_everything() {
        for game in GAMES {
            let see = |seed, size| {
                let mut env = start(game, size, seed, true);
                watch(&mut env, &mut ChaCha8Rng::seed_from_u64(0), 200)
            };
            assert_eq!(see(5, 32), see(5, 32), "{game}");
            assert_ne!(see(5, 32), see(6, 32), "{game}");
        }
    }

    #[test]
    fn the_next_episode_is_another_one() {
        for game in GAMES {
            let mut env = built_in(game, 32, 1, false, 40).unwrap();
            let mut starts: Vec<_> = (0..20).map(|_| env.reset()).collect();
            starts.sort();
            starts.dedup();
            assert!(starts.len() > 5, "{game}: {} starts", starts.len());
        }
    }

    #[test]
    fn larger_frames_show_the_same() {
        for game in GAMES {
            let see = |size| {
                let mut env = start(game, size, 3, true);
                assert_eq!(env.frame_size(), size);
                watch(&mut env, &mut ChaCha8Rng::seed_from_u64(4), 100)
            };
            // Games are 8x8 cells of one colour each.
            let cells = |frame: &[u8], size: usize| -> Vec<u8> {
                assert_eq!(frame.len(), size * size * 3);
                let at = |i: usize| (i / 8 * size + i % 8) * size / 8;
                (0..64)
                    .flat_map(|i| frame[at(i) * 3..][..3].to_vec())
                    .collect()
            };
            let small = see(32);
            for size in FRAME_SIZES {
                for (small, large) in small.iter().zip(see(*size)) {
                    let drawn: Vec<u8> = (0..size * size)
                        .flat_map(|i| {
                            let cell = i / size * 8 / size * 8 + i % size * 8 / size;
                            cells(&small.frame, 32)[cell * 3..][..3].to_vec()
                        })
                        .collect();
                    assert!(drawn == large.frame, "{game} at {size}");
                }
            }
        }
    }

    #[test]
    fn a_restored_game_goes_on_as_the_first_did() {
        for (game, life_loss) in GAMES.iter().flat_map(|game| [(game, true), (game, false)]) {
            let mut rng = ChaCha8Rng::seed_from_u64(8);
            let mut env = start(game, 32, 9, life_loss);
            for round in 0..60 {
                watch(&mut env, &mut rng, 1 + round % 5);
                let snapshot = env.snapshot();
                let mut other = built_in(game, 32, 1000, life_loss, 40).unwrap();
                other.restore(&snapshot).unwrap();
                assert_eq!(other.render(), env.render());
                assert_eq!(other.snapshot(), snapshot);
                let expected = watch(&mut env, &mut rng.clone(), 100);
                assert!(expected == watch(&mut other, &mut rng, 100), "{game}");
            }
        }
    }

    #[test]
    fn a_game_restored_between_episodes_resets_as_the_first_did() {
        let mut env = start("paddle", 32, 9, true);
        while env.step(0).outcome == Outcome::Continues {}
        let mut other = built_in("paddle", 32, 1000, true, 40).unwrap();
        other.restore(&env.snapshot()).unwrap();
        assert_eq!(other.reset(), env.reset());
        assert_eq!(other.lives(), 2);
    }

    #[test]
    fn foreign_and_damaged_snapshots_are_refused_and_change_nothing() {
        let good = String::from_utf8(start("catch", 32, 1, false).snapshot()).unwrap();
        let replaced = |from: &str, to: &str| {
            assert!(good.contains(from), "{good}");
            good.replace(from, to).into_bytes()
        };
        let cases = [
            (start("paddle", 32, 1, false).snapshot(), "of `paddle`"),
            (start("catch", 64, 1, false).snapshot(), "64 pixels"),
            (start("catch", 32, 1, true).snapshot(), "of `life_loss`"),
            (good.as_bytes()[..good.len() - 1].to_vec(), "cut short"),
            (good.as_bytes()[..good.len() / 2].to_vec(), "cut short"),
            (format!("{good}more").into_bytes(), "4 bytes too many"),
            (replaced("\"ball_row\":0", "\"ball_row\":7"), "impossible"),
            (replaced("\"ball_row\":0", "\"ball_row\":-1"), "damaged"),
            (replaced("\"seed\"", "\"sead\""), "damaged"),
            (b"\xff\x00\n".to_vec(), "damaged"),
            (Vec::new(), "cut short"),
        ];
        for (snapshot, reason) in cases {
            let mut env = start("catch", 32, 2, false);
            let before = env.snapshot();
            let error = env.restore(&snapshot).unwrap_err().to_string();
            assert!(error.contains(reason), "`{error}` does not say {reason}");
            assert_eq!(env.snapshot(), before);
        }
    }

    #[test]
    fn what_cannot_be_made_is_said() {
        let error = |game, size, steps| built_in(game, size, 0, false, steps).err().unwrap();
        assert_eq!(error("cach", 64, 40).to_string(), "unknown game `cach`");
        assert_eq!(error("cach", 64, 40).hint(), "did you mean `catch`?");
        assert_eq!(error("brakeout", 64, 40).hint(), "did you mean `breakout`?");
        let all = "the built-in games are catch, paddle, crossing; those of Atari are alien, ";
        assert!(error("chess at night", 64, 40).hint().starts_with(all));
        assert!(matches!(
            error("catch", 40, 40),
            EnvError::BadSize { size: 40 }
        ));
        assert!(matches!(error("catch", 64, 0), EnvError::NoSteps));
    }

    #[test]
    fn catch_is_worth_one_at_best_and_minus_a_half_at_random() {
        assert_eq!(scripted("catch", false, 100, 200), [1.0; 200]);
        let random = mean(&random("catch", false, 100, 2000));
        assert!((random + 0.5).abs() < 0.1, "{random}");
    }

    #[test]
    fn paddle_is_worth_24_at_best_and_little_at_random() {
        assert_eq!(scripted("paddle", false, 1000, 50), [24.0; 50]);
        assert_eq!(scripted("paddle", true, 1000, 50), [24.0; 50]);
        let random = mean(&random("paddle", false, 1000, 500));
        assert!((0.5..6.0).contains(&random), "{random}");
    }

    #[test]
    fn crossing_is_sparse_at_random_and_not_at_best() {
        let best = scripted("crossing", false, 40, 200);
        assert!(best.iter().all(|&crossings| crossings >= 3.0), "{best:?}");
        let random = mean(&random("crossing", false, 40, 2000));
        assert!((0.005..0.1).contains(&random), "{random}");
    }

    #[test]
    #[should_panic(expected = "no action 3")]
    fn an_action_that_does_not_exist_is_our_mistake() {
        start("catch", 32, 0, false).step(3);
    }

    #[test]
    #[should_panic(expected = "reset first")]
    fn no_step_before_the_first_reset() {
        built_in("catch", 32, 0, false, 10).unwrap().step(0);
    }

    #[test]
    fn action_zero_is_the_noop() {
        for game in GAMES {
            assert_eq!(start(game, 32, 0, false).actions()[0], "noop");
        }
    }
}
