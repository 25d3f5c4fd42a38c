//! Helpers of tests.

use super::{Env, Step};

/// Takes a discrete action, which must succeed.
pub(crate) fn act(env: &mut (impl Env + ?Sized), action: usize) -> Step {
    env.step(&action.into()).unwrap()
}
