//! The dream beside reality: the world model sees the first frames of a piece of an episode, then only the actions.

use burn::tensor::{Int, Tensor};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rem::config::Architecture;
use rem::env::Outcome;
use rem::imagination::Dream;
use rem::replay::archive::Archive;
use serde::{Deserialize, Serialize};

use super::{Drawing, Mind};
use crate::envelope;
use crate::error::Failure;

/// Frames in one answer.
const MOST: usize = 64;

/// Which piece of which episode is dreamt, and how.
#[derive(Clone, Debug, Deserialize)]
pub struct Wanted {
    pub episode: usize,
    /// The first frame that is seen.
    pub step: usize,
    pub length: usize,
    pub temperature: f32,
    pub seed: u64,
}

#[derive(Serialize)]
struct About<'a> {
    epoch: u32,
    size: usize,
    grid: usize,
    context: usize,
    horizon: usize,
    actions: &'a [String],
    steps: Vec<Step>,
}

/// A frame, and how it came about.
#[derive(Serialize)]
struct Step {
    step: usize,
    seen: bool,
    /// The action that led here, its reward and end, as they were and as they were dreamt.
    action: Option<u8>,
    reward: Option<f32>,
    ended: bool,
    dreamt_reward: Option<f32>,
    reward_odds: Vec<f32>,
    end_odds: Option<f32>,
    /// The share of tokens that are those of the real frame.
    accuracy: f32,
    /// The places where they are not.
    wrong: Vec<usize>,
}

/// An envelope with two frames a step: the real one, and as it was dreamt.
pub fn dream(mind: &Mind, archive: &Archive, wanted: &Wanted) -> Result<Vec<u8>, Failure> {
    let Wanted { episode, step, .. } = *wanted;
    let length = wanted.length.clamp(1, most(mind));
    let lived = archive.read(episode, step..step.saturating_add(length))?;
    let lived = lived.filter(|lived| !lived.frames.is_empty());
    let missing = || {
        Failure::Missing(format!(
            "step {step} in episode {episode} of this run's replay"
        ))
    };
    let lived = lived.ok_or_else(missing)?;

    let k = mind.config.tokens_per_obs();
    let real = mind.see(&lived.frames);
    let context = mind.world_model.context().min(lived.frames.len());
    let mut dreamt: Vec<u16> = real[..context * k].to_vec();
    let mut steps: Vec<Step> = (0..context)
        .map(|t| seen(t, step, &lived.actions))
        .collect();

    let mut rng = ChaCha8Rng::seed_from_u64(wanted.seed);
    let mut dream = start(mind, &real[..context * k], &lived.actions[..context - 1]);
    for t in context..lived.frames.len() {
        let mut drawing = Drawing::new(wanted.temperature, &mut rng);
        let action = mind.ints(&lived.actions[t - 1..t]);
        let answer = drawing.through(|draw| dream.step_by(action, draw));
        let odds = drawing.odds;
        let tokens = rem::batch::host_tokens(dream.tokens());
        let truth = &real[t * k..(t + 1) * k];
        let wrong: Vec<usize> = (0..k)
            .filter(|place| tokens[*place] != truth[*place])
            .collect();
        steps.push(Step {
            step: step + t,
            seen: false,
            action: Some(lived.actions[t - 1]),
            reward: Some(lived.rewards[t - 1]),
            ended: lived.outcomes[t - 1] == Outcome::Ended,
            dreamt_reward: Some(answer.rewards[0]),
            reward_odds: odds.rewards,
            end_odds: Some(odds.end),
            accuracy: 1.0 - wrong.len() as f32 / k as f32,
            wrong,
        });
        dreamt.extend(tokens);
    }

    let dreamt = mind.draw(&dreamt);
    let frames: Vec<u8> = (0..lived.frames.len())
        .flat_map(|t| [&lived.frames[t][..], &dreamt[t]].concat())
        .collect();
    let about = About {
        epoch: mind.epoch,
        size: mind.config.env.frame_size,
        grid: mind.config.grid(),
        context,
        horizon: mind.config.train.horizon,
        actions: &mind.action_names,
        steps,
    };
    Ok(envelope::seal(&about, &frames))
}

/// A Transformer has places for one segment; a RetNet dreams on.
fn most(mind: &Mind) -> usize {
    match mind.config.world_model.architecture {
        Architecture::Transformer => mind.config.memory_steps(),
        Architecture::Pop | Architecture::Retnet => MOST,
    }
}

/// A dream that has seen these observations and the actions between them.
pub fn start<'m>(mind: &'m Mind, tokens: &[u16], actions: &[u8]) -> Dream<'m> {
    let k = mind.config.tokens_per_obs();
    let context = tokens.len() / k;
    let seen: Tensor<3, Int> = mind.ints(tokens).reshape([1, context, k]);
    let past = (context > 1).then(|| mind.ints(actions).reshape([1, context - 1]));
    Dream::start(&mind.world_model, &mind.player.codes, seen, past)
}

fn seen(t: usize, first: usize, actions: &[u8]) -> Step {
    Step {
        step: first + t,
        seen: true,
        action: t.checked_sub(1).map(|before| actions[before]),
        reward: None,
        ended: false,
        dreamt_reward: None,
        reward_odds: Vec::new(),
        end_odds: None,
        accuracy: 1.0,
        wrong: Vec::new(),
    }
}
