//! [`Checked`]: errors for what an environment must not return.

use crate::env::{Action, Env, EnvError, Observation, Spaces, Step};

/// Reports observations of another size than the environment's space, and rewards that are not finite, as errors. They would
/// be panics in the replay.
pub(crate) struct Checked<E> {
    inner: E,
    bytes: usize,
}

impl<E: Env> Checked<E> {
    /// Wraps an environment.
    ///
    /// # Errors
    /// If the agent cannot play with its spaces.
    pub(crate) fn new(inner: E) -> Result<Self, EnvError> {
        let spaces = inner.spaces();
        spaces.check()?;
        let bytes = spaces.observation.bytes();
        Ok(Self { inner, bytes })
    }

    fn checked(&self, observation: Observation) -> Result<Observation, EnvError> {
        let found = observation.image().len();
        if found == self.bytes {
            return Ok(observation);
        }
        let space = self.inner.spaces().observation;
        Err(EnvError::Invalid {
            what: format!(
                "an observation of {found} bytes; its space is {space}, {} bytes",
                self.bytes
            ),
        })
    }
}

impl<E: Env> Env for Checked<E> {
    fn spaces(&self) -> Spaces {
        self.inner.spaces()
    }

    fn reset(&mut self) -> Result<Observation, EnvError> {
        let observation = self.inner.reset()?;
        self.checked(observation)
    }

    fn step(&mut self, action: &Action) -> Result<Step, EnvError> {
        let step = self.inner.step(action)?;
        if !step.reward.is_finite() {
            let what = format!("the reward {}", step.reward);
            return Err(EnvError::Invalid { what });
        }
        Ok(Step {
            observation: self.checked(step.observation)?,
            ..step
        })
    }

    fn lives(&self) -> u32 {
        self.inner.lives()
    }

    fn scripted_action(&self) -> Option<Action> {
        self.inner.scripted_action()
    }

    fn snapshot(&mut self) -> Result<Option<Vec<u8>>, EnvError> {
        self.inner.snapshot()
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<Observation, EnvError> {
        let observation = self.inner.restore(snapshot)?;
        self.checked(observation)
    }
}
