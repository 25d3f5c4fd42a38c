//! Episodes of policies that do not learn.

use rand::{Rng, RngExt};

use super::{Action, Env, EnvError, Outcome};

/// How long to play.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Maximum number of episodes.
    pub(crate) episodes: usize,
    /// Number of steps after which no further episode starts.
    pub(crate) steps: usize,
}

/// The returns of the scripted policy.
///
/// # Errors
/// If the environment fails.
///
/// # Panics
/// If the environment has no scripted policy.
pub(crate) fn play_scripted(env: &mut dyn Env, budget: Budget) -> Result<Vec<f32>, EnvError> {
    play(env, budget, |env| {
        env.scripted_action()
            .expect("this environment has no scripted policy")
    })
}

/// The returns of the uniformly random policy.
///
/// # Errors
/// If the environment fails.
pub(crate) fn play_random(
    env: &mut dyn Env,
    budget: Budget,
    rng: &mut impl Rng,
) -> Result<Vec<f32>, EnvError> {
    let actions = env.spaces().action.count();
    play(env, budget, |_| rng.random_range(0..actions).into())
}

fn play(
    env: &mut dyn Env,
    budget: Budget,
    mut choose: impl FnMut(&dyn Env) -> Action,
) -> Result<Vec<f32>, EnvError> {
    let (mut returns, mut steps) = (Vec::new(), 0);
    while returns.len() < budget.episodes && steps < budget.steps {
        env.reset()?;
        let mut total = 0.0;
        loop {
            let step = env.step(&choose(env))?;
            total += step.reward;
            steps += 1;
            if step.outcome != Outcome::Running {
                break;
            }
        }
        returns.push(total);
    }
    Ok(returns)
}
