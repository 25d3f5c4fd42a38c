//! [`LifeLoss`]: one episode per life, as in training on the Atari benchmark.

use serde::{Deserialize, Serialize};

use crate::env::snapshot::{pack, unpack};
use crate::env::{Action, Env, EnvError, Observation, Outcome, Spaces, Step};

const LAYER: &str = "life_loss";

/// Terminates the episode when a life is lost. If lives remain, the next reset does not restart the game but takes one
/// no-op, so that the next episode continues in the same game.
pub struct LifeLoss<E> {
    inner: E,
    progress: Progress,
}

/// State of the episode and of the game.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Progress {
    /// Both are running.
    Playing,
    /// The episode is over, the game continues.
    LifeLost,
    /// Both are over.
    GameOver,
}

impl<E: Env> LifeLoss<E> {
    /// Wraps an environment.
    pub fn new(inner: E) -> Self {
        let progress = Progress::GameOver;
        Self { inner, progress }
    }
}

impl<E: Env> Env for LifeLoss<E> {
    fn spaces(&self) -> Spaces {
        self.inner.spaces()
    }

    fn reset(&mut self) -> Result<Observation, EnvError> {
        let resumed = match self.progress {
            Progress::LifeLost => Some(self.inner.step(&Action::Discrete(0))?),
            Progress::Playing | Progress::GameOver => None,
        };
        self.progress = Progress::Playing;
        match resumed {
            Some(step) if step.outcome == Outcome::Running => Ok(step.observation),
            // The game is over, or the no-op was its last step.
            _ => self.inner.reset(),
        }
    }

    fn step(&mut self, action: &Action) -> Result<Step, EnvError> {
        assert!(
            self.progress == Progress::Playing,
            "the episode is over: reset first"
        );
        let lives = self.inner.lives();
        let mut step = self.inner.step(action)?;
        // Some Atari games count down to 0 some frames before they are over.
        let left = self.inner.lives();
        let life_lost = left < lives && (left > 0 || step.outcome != Outcome::Running);
        self.progress = match step.outcome {
            Outcome::Running if life_lost => Progress::LifeLost,
            Outcome::Running => Progress::Playing,
            Outcome::Terminated | Outcome::Truncated => Progress::GameOver,
        };
        // Even if the time limit is reached in the same step: a lost life is terminal.
        if life_lost {
            step.outcome = Outcome::Terminated;
        }
        Ok(step)
    }

    fn lives(&self) -> u32 {
        self.inner.lives()
    }

    fn scripted_action(&self) -> Option<Action> {
        self.inner.scripted_action()
    }

    fn snapshot(&mut self) -> Result<Option<Vec<u8>>, EnvError> {
        let inner = self.inner.snapshot()?;
        Ok(inner.map(|inner| pack(LAYER, &self.progress, &inner)))
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<Observation, EnvError> {
        let (progress, inner) = unpack(LAYER, snapshot)?;
        let observation = self.inner.restore(inner)?;
        self.progress = progress;
        Ok(observation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::TimeLimit;
    use crate::env::games::{canvas::BoardGame, paddle::Paddle};
    use crate::env::testing::act;

    fn paddle(max_steps: u32) -> LifeLoss<TimeLimit<BoardGame<Paddle>>> {
        LifeLoss::new(TimeLimit::new(BoardGame::new(32, 7), max_steps))
    }

    /// Takes no-ops until the episode is over. Returns their number and the outcome.
    fn idle(env: &mut impl Env) -> (u32, Outcome) {
        for steps in 1.. {
            let outcome = act(env, 0).outcome;
            if outcome != Outcome::Running {
                return (steps, outcome);
            }
        }
        unreachable!()
    }

    #[test]
    fn a_lost_life_terminates_the_episode_but_not_the_game() {
        let mut env = paddle(1000);
        env.reset().unwrap();
        let mut lives = Vec::new();
        let mut game = TimeLimit::new(BoardGame::<Paddle>::new(32, 7), 1000);
        game.reset().unwrap();
        loop {
            let step = act(&mut env, 0);
            let inner = act(&mut game, 0);
            assert_eq!(step.observation, inner.observation);
            if step.outcome == Outcome::Running {
                continue;
            }
            assert_eq!(step.outcome, Outcome::Terminated);
            lives.push(env.lives());
            let first = env.reset().unwrap();
            if inner.outcome == Outcome::Terminated {
                assert_eq!(first, game.reset().unwrap());
                assert_eq!(env.lives(), 3);
                break;
            }
            let no_op = act(&mut game, 0).observation;
            assert_eq!(first, no_op, "the reset is one no-op");
        }
        assert_eq!(lives, [2, 1, 0]);
    }

    #[test]
    fn a_life_lost_at_the_time_limit_terminates_and_restarts_the_game() {
        let mut env = paddle(1000);
        env.reset().unwrap();
        let (steps, _) = idle(&mut env);

        let mut env = paddle(steps);
        env.reset().unwrap();
        assert_eq!(idle(&mut env), (steps, Outcome::Terminated));
        assert_eq!(env.lives(), 2);
        env.reset().unwrap();
        assert_eq!(env.lives(), 3);
    }

    #[test]
    fn the_time_limit_in_the_no_op_of_a_reset_restarts_the_game() {
        let mut env = paddle(1000);
        env.reset().unwrap();
        let (steps, _) = idle(&mut env);

        let mut env = paddle(steps + 1);
        env.reset().unwrap();
        assert_eq!(idle(&mut env), (steps, Outcome::Terminated));
        env.reset().unwrap();
        assert_eq!(env.lives(), 3);
        act(&mut env, 0);
    }

    #[test]
    fn the_time_limit_without_a_lost_life_truncates() {
        let mut env = paddle(2);
        env.reset().unwrap();
        assert_eq!(idle(&mut env), (2, Outcome::Truncated));
        env.reset().unwrap();
        assert_eq!(env.lives(), 3);
    }

    #[test]
    #[should_panic(expected = "reset first")]
    fn a_step_after_a_lost_life_panics() {
        let mut env = paddle(1000);
        env.reset().unwrap();
        idle(&mut env);
        act(&mut env, 0);
    }
}
