//! [`TimeLimit`]: a limit on the length of an episode.

use serde::{Deserialize, Serialize};

use crate::env::snapshot::{pack, unpack};
use crate::env::{Action, Env, EnvError, Observation, Outcome, Spaces, Step};

const LAYER: &str = "time_limit";

/// Truncates an episode after `max_steps` steps, unless it terminates in the last of them.
///
/// Inside [`LifeLoss`](super::LifeLoss), the limit applies to the whole game and not to one life.
pub struct TimeLimit<E> {
    inner: E,
    max_steps: u32,
    clock: Clock,
}

#[derive(Clone, Serialize, Deserialize)]
struct Clock {
    /// Steps taken in this episode.
    steps: u32,
    over: bool,
}

impl<E: Env> TimeLimit<E> {
    /// Wraps an environment.
    ///
    /// # Panics
    /// If `max_steps` is 0.
    pub fn new(inner: E, max_steps: u32) -> Self {
        assert!(max_steps > 0, "an episode has at least one step");
        let clock = Clock {
            steps: 0,
            over: true,
        };
        Self {
            inner,
            max_steps,
            clock,
        }
    }
}

impl<E: Env> Env for TimeLimit<E> {
    fn spaces(&self) -> Spaces {
        self.inner.spaces()
    }

    fn reset(&mut self) -> Result<Observation, EnvError> {
        self.clock = Clock {
            steps: 0,
            over: false,
        };
        self.inner.reset()
    }

    fn step(&mut self, action: &Action) -> Result<Step, EnvError> {
        assert!(!self.clock.over, "the episode is over: reset first");
        let mut step = self.inner.step(action)?;
        self.clock.steps = self.clock.steps.saturating_add(1);
        if step.outcome == Outcome::Running && self.clock.steps >= self.max_steps {
            step.outcome = Outcome::Truncated;
        }
        self.clock.over = step.outcome != Outcome::Running;
        Ok(step)
    }

    fn lives(&self) -> u32 {
        self.inner.lives()
    }

    fn scripted_action(&self) -> Option<Action> {
        self.inner.scripted_action()
    }

    /// Without `max_steps`, which is a setting and not state.
    fn snapshot(&mut self) -> Result<Option<Vec<u8>>, EnvError> {
        let inner = self.inner.snapshot()?;
        Ok(inner.map(|inner| pack(LAYER, &self.clock, &inner)))
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<Observation, EnvError> {
        let (clock, inner) = unpack(LAYER, snapshot)?;
        let observation = self.inner.restore(inner)?;
        self.clock = clock;
        Ok(observation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::games::{canvas::BoardGame, catch::Catch};
    use crate::env::testing::act;

    fn outcomes(max_steps: u32, steps: usize) -> Vec<Outcome> {
        let mut env = TimeLimit::new(BoardGame::<Catch>::new(32, 1), max_steps);
        env.reset().unwrap();
        (0..steps).map(|_| act(&mut env, 0).outcome).collect()
    }

    #[test]
    fn an_episode_that_terminates_at_the_limit_is_not_truncated() {
        use Outcome::*;
        assert_eq!(outcomes(3, 3), [Running, Running, Truncated]);
        // `catch` terminates after seven steps.
        assert_eq!(outcomes(7, 7)[6], Terminated);
        assert_eq!(outcomes(8, 7)[6], Terminated);
    }

    #[test]
    fn the_limit_applies_to_each_episode() {
        let mut env = TimeLimit::new(BoardGame::<Catch>::new(32, 1), 3);
        for _ in 0..3 {
            env.reset().unwrap();
            assert_eq!(act(&mut env, 0).outcome, Outcome::Running);
            assert_eq!(act(&mut env, 0).outcome, Outcome::Running);
            assert_eq!(act(&mut env, 0).outcome, Outcome::Truncated);
        }
    }

    #[test]
    #[should_panic(expected = "reset first")]
    fn a_step_after_truncation_panics() {
        outcomes(3, 4);
    }
}
