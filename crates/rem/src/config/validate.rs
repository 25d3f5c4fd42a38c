//! What a config's values must be, beyond their types.

use std::fmt::Display;

use super::{Architecture, BurnInInputs, Config, ControllerInputs, DecayRates, PopMode, Sight};
use crate::env::FRAME_SIZES;
use crate::error::{Error, Result};

fn check(ok: bool, key: &str, value: &dyn Display, must: &str) -> Result<()> {
    if ok {
        return Ok(());
    }
    let how = if key.contains('.') {
        format!("--set {key}=…")
    } else {
        format!("--{key} …")
    };
    Err(Error::config(
        format!("`{key} = {value}`: {must}"),
        format!("change it with `{how}`"),
    ))
}

/// `condition => "key" = value, "what it must be";` for each rule.
macro_rules! require {
    ($($ok:expr => $key:expr, $value:expr, $must:literal;)*) => {
        $( check($ok, $key, &$value, $must)?; )*
    };
}

pub(super) fn validate(c: &Config) -> Result<()> {
    let (env, t, w, a) = (&c.env, &c.tokenizer, &c.world_model, &c.actor_critic);
    let unit = 0.0..=1.0;
    require! {
        c.threads <= 1024 => "threads", c.threads, "must be at most 1024";
        FRAME_SIZES.contains(&env.frame_size) => "env.frame_size", env.frame_size, "must be 32, 48 or 64";
        env.max_steps.train > 0 => "env.max_steps.train", env.max_steps.train, "must be at least 1";
        env.max_steps.test > 0 => "env.max_steps.test", env.max_steps.test, "must be at least 1";
        env.atari.frame_skip > 0 => "env.atari.frame_skip", env.atari.frame_skip, "must be at least 1";
        (0.0..1.0).contains(&env.atari.sticky_actions) => "env.atari.sticky_actions", env.atari.sticky_actions,
            "must be in [0, 1)";

        c.collect.epochs > 0 => "collect.epochs", c.collect.epochs, "must be at least 1";
        c.collect.steps_per_epoch > 0 => "collect.steps_per_epoch", c.collect.steps_per_epoch, "must be at least 1";
        unit.contains(&c.collect.epsilon) => "collect.epsilon", c.collect.epsilon, "must be in [0, 1]";
        c.collect.hold > 0 => "collect.hold", c.collect.hold, "must be at least 1";
        c.collect.temperature > 0.0 => "collect.temperature", c.collect.temperature, "must be above 0";

        c.train.epochs > 0 => "train.epochs", c.train.epochs, "must be at least 1";
        (0.0..1.0).contains(&c.train.beta_1) => "train.beta_1", c.train.beta_1, "must be in [0, 1)";
        (0.0..1.0).contains(&c.train.beta_2) => "train.beta_2", c.train.beta_2, "must be in [0, 1)";
        c.train.adam_epsilon > 0.0 => "train.adam_epsilon", c.train.adam_epsilon, "must be above 0";

        c.evaluate.episodes > 0 => "evaluate.episodes", c.evaluate.episodes, "must be at least 1";
        c.evaluate.final_episodes > 0 => "evaluate.final_episodes", c.evaluate.final_episodes, "must be at least 1";
        c.evaluate.temperature > 0.0 => "evaluate.temperature", c.evaluate.temperature, "must be above 0";

        (2..=65536).contains(&t.vocabulary) => "tokenizer.vocabulary", t.vocabulary, "must be 2 to 65536";
        t.embedding > 0 && t.embedding % 4 == 0 => "tokenizer.embedding", t.embedding, "must be a multiple of 4";
        t.channels > 0 && t.channels % 8 == 0 => "tokenizer.channels", t.channels, "must be a multiple of 8, the groups of a norm";
        (1..=4).contains(&t.downsamplings) => "tokenizer.downsamplings", t.downsamplings, "must be 1 to 4";
        t.reconstruction_weight > 0.0 => "tokenizer.reconstruction_weight", t.reconstruction_weight, "must be above 0";
        t.revive_after as usize <= t.optimise.steps_per_epoch => "tokenizer.revive_after", t.revive_after,
            "is counted within an epoch and must be at most tokenizer.optimise.steps_per_epoch";

        w.layers > 0 => "world_model.layers", w.layers, "must be at least 1";
        w.heads > 0 && t.embedding % (2 * w.heads.max(1)) == 0 => "world_model.heads", w.heads,
            "must divide tokenizer.embedding into even parts";
        w.decay_over.iter().all(|tokens| *tokens > 1.0 && *tokens <= 1e6) => "world_model.decay_over", format!("{:?}", w.decay_over), "must be two numbers of tokens, above 1 and at most 1e6";
        w.rotation_base > 1.0 && w.rotation_base <= 1e9 => "world_model.rotation_base", w.rotation_base, "must be above 1 and at most 1e9";
        w.feed_forward > 0 => "world_model.feed_forward", w.feed_forward, "must be at least 1";
        (0.0..1.0).contains(&w.dropout) => "world_model.dropout", w.dropout, "must be in [0, 1)";
        w.context >= 1 && w.context < c.train.horizon => "world_model.context", w.context,
            "must be at least 1 and below train.horizon";
        w.learn_from <= w.context => "world_model.learn_from", w.learn_from,
            "must be at most world_model.context, or 0 for just that";

        a.lstm > 0 => "actor_critic.lstm", a.lstm, "must be at least 1";
        a.burn_in >= 1 && a.burn_in + 1 >= w.context => "actor_critic.burn_in", a.burn_in,
            "must be at least 1 and reach back over world_model.context";
        unit.contains(&w.average) => "world_model.average", w.average, "must be in [0, 1]";
        unit.contains(&a.discount) => "actor_critic.discount", a.discount, "must be in [0, 1]";
        unit.contains(&a.lambda) => "actor_critic.lambda", a.lambda, "must be in [0, 1]";
        (a.end_value as f32).is_finite() => "actor_critic.end_value", a.end_value, "must be a finite number";
        a.entropy >= 0.0 => "actor_critic.entropy", a.entropy, "must not be negative";
    }
    for (name, o) in [
        ("tokenizer", &t.optimise),
        ("world_model", &w.optimise),
        ("actor_critic", &a.optimise),
    ] {
        let key = |k: &str| format!("{name}.optimise.{k}");
        let rate = o.learning_rate;
        require! {
            o.batch > 0 => &key("batch"), o.batch, "must be at least 1";
            rate > 0.0 && rate.is_finite() => &key("learning_rate"), rate, "must be above 0 and finite";
            o.rate_falls_to > 0.0 && o.rate_falls_to <= 1.0 => &key("rate_falls_to"), o.rate_falls_to,
                "must be above 0 and at most 1";
            o.weight_decay >= 0.0 => &key("weight_decay"), o.weight_decay, "must not be negative";
            o.clip > 0.0 => &key("clip"), o.clip, "must be above 0";
            o.stop_after == 0 || o.stop_after > o.start_after => &key("stop_after"), o.stop_after,
                "must be 0 or above start_after";
        }
    }
    makes_sense(c)
}

/// Values that are right by themselves but not together.
fn makes_sense(c: &Config) -> Result<()> {
    let (t, w, a) = (&c.tokenizer, &c.world_model, &c.actor_critic);
    let refuse = |message: String, hint: &str| Err(Error::config(message, hint));
    if w.architecture != Architecture::Pop && w.pop_mode != PopMode::TwoCalls {
        return refuse(
            format!(
                "`world_model.pop_mode = {}` is a way to dream with POP, and `world_model.architecture` has none: it \
                 dreams token by token",
                w.pop_mode.name()
            ),
            "leave world_model.pop_mode at two_calls, or set world_model.architecture=pop",
        );
    }
    if w.architecture == Architecture::Transformer && w.decay != DecayRates::LogSpaced {
        return refuse(
            "`world_model.decay = powers_of_two` is about retention, and a Transformer has none"
                .into(),
            "leave world_model.decay at log_spaced, or set world_model.architecture=retnet",
        );
    }
    if w.decay_over != [32.0, 512.0]
        && (w.architecture == Architecture::Transformer || w.decay != DecayRates::LogSpaced)
    {
        return refuse(
            format!(
                "`world_model.decay_over = {:?}` is about heads of retention with `world_model.decay = log_spaced`",
                w.decay_over
            ),
            "leave world_model.decay_over at [32, 512], or set world_model.decay=log_spaced and an architecture with retention",
        );
    }
    if w.architecture == Architecture::Transformer && w.rotation_base != 10000.0 {
        return refuse(
            format!(
                "`world_model.rotation_base = {}` is about retention, and a Transformer has none",
                w.rotation_base
            ),
            "leave world_model.rotation_base at 10000, or set world_model.architecture=retnet",
        );
    }
    if t.sight == Sight::Narrow && t.quantiser_convs {
        return refuse(
            "`tokenizer.quantiser_convs = true` would let codes learn to look elsewhere, and with `tokenizer.sight = \
             narrow` what they see is fixed"
                .into(),
            "add `--set tokenizer.quantiser_convs=false`",
        );
    }
    let takes_actions = match a.inputs {
        ControllerInputs::CodesAndActions => true,
        ControllerInputs::Codes | ControllerInputs::Pixels => false,
    };
    if !takes_actions && a.burn_in_inputs == BurnInInputs::ObservationsAndActions {
        return refuse(
            "`actor_critic.burn_in_inputs = observations_and_actions`, but with these `actor_critic.inputs` the \
             controller takes no actions in"
                .into(),
            "add `--set actor_critic.burn_in_inputs=observations`",
        );
    }
    Ok(())
}
