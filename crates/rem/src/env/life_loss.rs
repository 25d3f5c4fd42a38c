//! An episode for each life, as the Atari benchmark trains: losing a life looks like the end to the agent.

use serde::{Deserialize, Serialize};

use super::{Env, EnvError, Outcome, Step, pack, unpack};

const LAYER: &str = "life_loss";

/// Ends the episode when a life is lost while others remain. The next reset is then no restart but one no-op
/// in the running game, so later lives start from where the game has got to.
pub struct LifeLoss<E> {
    inner: E,
    progress: Progress,
}

/// Where the episode of the agent and that of the game stand.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Progress {
    /// Both under way.
    Playing,
    /// Only the agent's episode is over.
    LifeLost,
    /// Both over.
    GameOver,
}

impl<E: Env> LifeLoss<E> {
    pub fn new(inner: E) -> Self {
        let progress = Progress::GameOver;
        Self { inner, progress }
    }
}

impl<E: Env> Env for LifeLoss<E> {
    fn actions(&self) -> &[&'static str] {
        self.inner.actions()
    }

    fn frame_size(&self) -> usize {
        self.inner.frame_size()
    }

    fn reset(&mut self) -> Vec<u8> {
        let resumed = (self.progress == Progress::LifeLost).then(|| self.inner.step(0));
        self.progress = Progress::Playing;
        match resumed {
            Some(step) if step.outcome == Outcome::Continues => step.frame,
            // No running game, or the no-op was its last step.
            _ => self.inner.reset(),
        }
    }

    fn step(&mut self, action: usize) -> Step {
        assert!(
            self.progress == Progress::Playing,
            "the episode is over: reset first"
        );
        let lives = self.inner.lives();
        let mut step = self.inner.step(action);
        // Some Atari games count down to 0 a little before they are over.
        let left = self.inner.lives();
        let life_lost = left < lives && (left > 0 || step.outcome != Outcome::Continues);
        self.progress = match step.outcome {
            Outcome::Continues if life_lost => Progress::LifeLost,
            Outcome::Continues => Progress::Playing,
            Outcome::Ended | Outcome::Truncated => Progress::GameOver,
        };
        // Also where the time limit strikes on the same step: nothing follows a lost life, so it is an end.
        if life_lost {
            step.outcome = Outcome::Ended;
        }
        step
    }

    fn lives(&self) -> u32 {
        self.inner.lives()
    }

    fn scripted_action(&self) -> Option<usize> {
        self.inner.scripted_action()
    }

    fn render(&self) -> Vec<u8> {
        self.inner.render()
    }

    fn snapshot(&self) -> Vec<u8> {
        pack(LAYER, &self.progress, &self.inner.snapshot())
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), EnvError> {
        let (progress, inner) = unpack(LAYER, snapshot)?;
        self.inner.restore(inner)?;
        self.progress = progress;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::canvas::BoardGame;
    use super::super::{TimeLimit, paddle::Paddle};
    use super::*;

    fn paddle(max_steps: u32) -> LifeLoss<TimeLimit<BoardGame<Paddle>>> {
        LifeLoss::new(TimeLimit::new(BoardGame::new(32, 7), max_steps))
    }

    /// Steps until the episode is over when nobody moves, and how it ended.
    fn idle(env: &mut impl Env) -> (u32, Outcome) {
        for steps in 1.. {
            let outcome = env.step(0).outcome;
            if outcome != Outcome::Continues {
                return (steps, outcome);
            }
        }
        unreachable!()
    }

    #[test]
    fn a_lost_life_ends_the_episode_and_the_game_goes_on() {
        let mut env = paddle(1000);
        env.reset();
        let mut lives = Vec::new();
        let mut game = TimeLimit::new(BoardGame::<Paddle>::new(32, 7), 1000);
        game.reset();
        loop {
            let step = env.step(0);
            let inner = game.step(0);
            assert_eq!(step.frame, inner.frame);
            if step.outcome == Outcome::Continues {
                continue;
            }
            assert_eq!(step.outcome, Outcome::Ended);
            lives.push(env.lives());
            let first = env.reset();
            if inner.outcome == Outcome::Ended {
                assert_eq!(first, game.reset());
                assert_eq!(env.lives(), 3);
                break;
            }
            assert_eq!(first, game.step(0).frame, "the reset is one no-op");
        }
        assert_eq!(lives, [2, 1, 0]);
    }

    #[test]
    fn the_time_limit_on_a_life_loss_is_an_end_and_then_a_restart() {
        let mut env = paddle(1000);
        env.reset();
        let (steps, _) = idle(&mut env);

        let mut env = paddle(steps);
        env.reset();
        assert_eq!(idle(&mut env), (steps, Outcome::Ended));
        assert_eq!(env.lives(), 2);
        env.reset();
        assert_eq!(env.lives(), 3);
    }

    #[test]
    fn the_time_limit_on_the_no_op_of_a_reset_restarts_the_game() {
        let mut env = paddle(1000);
        env.reset();
        let (steps, _) = idle(&mut env);

        let mut env = paddle(steps + 1);
        env.reset();
        assert_eq!(idle(&mut env), (steps, Outcome::Ended));
        env.reset();
        assert_eq!(env.lives(), 3);
        env.step(0);
    }

    #[test]
    fn the_time_limit_elsewhere_truncates() {
        let mut env = paddle(2);
        env.reset();
        assert_eq!(idle(&mut env), (2, Outcome::Truncated));
        env.reset();
        assert_eq!(env.lives(), 3);
    }

    #[test]
    #[should_panic(expected = "reset first")]
    fn no_step_after_a_lost_life() {
        let mut env = paddle(1000);
        env.reset();
        idle(&mut env);
        env.step(0);
    }
}
