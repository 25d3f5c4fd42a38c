//! Ranges of config values, beyond their types.

use std::fmt::Display;
use std::ops::ControlFlow;

use super::{
    ActionRepeat, ActorCritic, Architecture, CodebookInit, Config, ConfigError, Decay, FRAME_SIZES,
    LossStart, PRESETS, Quantizer, Result, ReturnScaling, RewardHeadInput, RolloutLength,
    SlowCritic, Tokenizer,
};

/// What is done with a rule: whether it holds, its key, the value of the key, and what the value must be.
type Visitor<'a> = &'a mut dyn FnMut(bool, &str, &dyn Display, &'static str) -> ControlFlow<()>;

/// `condition => "key" = value, "what it must be";` for each rule.
macro_rules! require {
    ($visit:ident: $($ok:expr => $key:expr, $value:expr, $must:literal;)*) => {
        $( $visit($ok, $key, &$value, $must)?; )*
    };
}

/// Checks all rules.
///
/// # Errors
/// If a value is out of its range.
pub(super) fn validate(config: &Config) -> Result<()> {
    let mut broken = None;
    let _ = rules(config, &mut |ok, key, value, must| {
        if ok {
            return ControlFlow::Continue(());
        }
        broken = Some(ConfigError::of_key(key, value, must));
        ControlFlow::Break(())
    });
    broken.map_or(Ok(()), Err)
}

/// What the value of a key must be, if a rule says so.
pub(super) fn requirement(key: &str) -> Option<&'static str> {
    let config = Config::load(PRESETS[0].0, &[]).expect("a valid preset (tested)");
    let mut found = None;
    let _ = rules(&config, &mut |_, of, _, must| {
        if of != key {
            return ControlFlow::Continue(());
        }
        found = Some(must);
        ControlFlow::Break(())
    });
    found
}

/// All rules, up to the first at which `visit` breaks: a rule may rely on those before it.
fn rules(c: &Config, visit: Visitor) -> ControlFlow<()> {
    let (env, t, w, a) = (&c.env, &c.tokenizer, &c.world_model, &c.actor_critic);
    let unit = 0.0..=1.0;
    let beyond_segment = a.rollout_length == RolloutLength::Horizon;
    let has_window = matches!(w.architecture, Architecture::Transformer {});
    require! {
        visit:
        c.threads <= 1024 => "threads", c.threads, "must be at most 1024";
        FRAME_SIZES.contains(&env.frame_size) => "env.frame_size", env.frame_size, "must be 32 or 64";
        env.max_steps.train > 0 => "env.max_steps.train", env.max_steps.train, "must be at least 1";
        env.max_steps.test > 0 => "env.max_steps.test", env.max_steps.test, "must be at least 1";
        env.atari.frame_skip > 0 => "env.atari.frame_skip", env.atari.frame_skip, "must be at least 1";
        (0.0..1.0).contains(&env.atari.sticky_actions) => "env.atari.sticky_actions", env.atari.sticky_actions,
            "must be in [0, 1)";

        env.wrappers.frame_skip > 0 => "env.wrappers.frame_skip", env.wrappers.frame_skip, "must be at least 1";
        env.python.timeout > 0.0 && env.python.timeout <= 86_400.0 => "env.python.timeout", env.python.timeout,
            "must be above 0 and at most 86400 seconds";

        c.collect.steps_per_epoch > 0 => "collect.steps_per_epoch", c.collect.steps_per_epoch, "must be at least 1";
        c.collect.random_action_repeat != ActionRepeat::Steps(0) => "collect.random_action_repeat", 0,
            "must be at least 1, or \"zeta\"";
        unit.contains(&c.collect.epsilon) => "collect.epsilon", c.collect.epsilon, "must be in [0, 1]";
        (1..=256).contains(&c.collect.envs) => "collect.envs", c.collect.envs, "must be 1 to 256";
        c.collect.steps_per_epoch.is_multiple_of(c.collect.envs) => "collect.envs", c.collect.envs,
            "must divide collect.steps_per_epoch";
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
        t.channels > 0 && t.channels % 8 == 0 => "tokenizer.channels", t.channels, "must be a multiple of 8, the number of norm groups";
        (1..=4).contains(&t.downsamplings) => "tokenizer.downsamplings", t.downsamplings, "must be 1 to 4";
        t.reconstruction_weight > 0.0 => "tokenizer.reconstruction_weight", t.reconstruction_weight, "must be above 0";
        t.dead_code_reset_after as usize <= t.optimizer.steps_per_epoch => "tokenizer.dead_code_reset_after", t.dead_code_reset_after,
            "must be at most tokenizer.optimizer.steps_per_epoch";

        t.random_shift < env.frame_size => "tokenizer.random_shift", t.random_shift, "must be below env.frame_size";
        w.random_shift < env.frame_size => "world_model.random_shift", w.random_shift, "must be below env.frame_size";

        w.layers > 0 => "world_model.layers", w.layers, "must be at least 1";
        w.heads > 0 && t.embedding % (2 * w.heads.max(1)) == 0 => "world_model.heads", w.heads,
            "must divide tokenizer.embedding into parts of even size";
        w.feed_forward > 0 => "world_model.feed_forward", w.feed_forward, "must be at least 1";
        (0.0..1.0).contains(&w.dropout) => "world_model.dropout", w.dropout, "must be in [0, 1)";
        (1..=c.train.horizon).contains(&w.context) && (beyond_segment || w.context < c.train.horizon) =>
            "world_model.context", w.context,
            "must be at least 1 and below train.horizon, or equal to it with actor_critic.rollout_length = horizon";
        !matches!(w.loss_start, LossStart::Observation(first) if first > w.context) => "world_model.loss_start", w.loss_start,
            "must be at most world_model.context, or every_step; 0 means the first observation after the context";
        w.first_observation() < c.train.horizon => "world_model.loss_start", w.loss_start,
            "must leave observations with a loss, because the context has train.horizon steps";

        w.reward_head_input == RewardHeadInput::Action || w.architecture.is_pop() =>
            "world_model.reward_head_input", w.reward_head_input.name(), "must be action without POP";
        w.first_outcome() < w.outcomes_end(c.train.horizon) => "world_model.reward_head_input", w.reward_head_input.name(),
            "leaves no loss on rewards, because train.horizon is too short";

        w.ensemble_heads == 0 || w.architecture.is_pop() =>
            "world_model.ensemble_heads", w.ensemble_heads, "must be 0 without POP";
        w.ensemble_heads <= 64 => "world_model.ensemble_heads", w.ensemble_heads, "must be at most 64";
        a.curiosity_weight >= 0.0 && (a.curiosity_weight as f32).is_finite() => "actor_critic.curiosity_weight", a.curiosity_weight,
            "must not be negative";
        a.curiosity_weight == 0.0 || w.ensemble_heads >= 2 => "actor_critic.curiosity_weight", a.curiosity_weight,
            "needs at least two world_model.ensemble_heads";

        a.lstm_dim > 0 => "actor_critic.lstm_dim", a.lstm_dim, "must be at least 1";
        a.burn_in >= 1 && a.burn_in + 1 >= w.context => "actor_critic.burn_in", a.burn_in,
            "must be at least 1 and at least world_model.context - 1";
        !(beyond_segment && has_window) => "actor_critic.rollout_length", a.rollout_length.name(),
            "must be segment with a Transformer, whose context window has train.horizon steps";
        unit.contains(&w.weight_averaging) => "world_model.weight_averaging", w.weight_averaging, "must be in [0, 1]";
        unit.contains(&w.prioritized_fraction) => "world_model.prioritized_fraction", w.prioritized_fraction, "must be in [0, 1]";
        unit.contains(&a.discount) => "actor_critic.discount", a.discount, "must be in [0, 1]";
        unit.contains(&a.lambda) => "actor_critic.lambda", a.lambda, "must be in [0, 1]";
        (a.terminal_value as f32).is_finite() => "actor_critic.terminal_value", a.terminal_value, "must be a finite number";
        a.entropy_weight >= 0.0 => "actor_critic.entropy_weight", a.entropy_weight, "must not be negative";
    }
    quantizer(t, visit)?;
    objective(a, visit)?;
    if let Some(rope_theta) = w.architecture.rope_theta() {
        require! {
            visit:
            rope_theta > 1.0 && rope_theta <= 1e9 => "world_model.architecture.rope_theta", rope_theta,
                "must be above 1 and at most 1e9";
        }
    }
    if let Some((decay, _)) = w.architecture.retention() {
        let timescales = match decay {
            Decay::LogSpaced { timescales } => timescales.to_vec(),
            Decay::PowersOfTwo {} => vec![],
        };
        require! {
            visit:
            timescales.iter().all(|tokens| *tokens > 1.0 && *tokens <= 1e6) =>
                "world_model.architecture.decay.timescales", format!("{timescales:?}"),
                "must be two numbers of tokens, above 1 and at most 1e6";
        }
    }
    for (name, o) in [
        ("tokenizer", &t.optimizer),
        ("world_model", &w.optimizer),
        ("actor_critic", &a.optimizer),
    ] {
        let key = |k: &str| format!("{name}.optimizer.{k}");
        let rate = o.learning_rate;
        require! {
            visit:
            o.batch_size > 0 => &key("batch_size"), o.batch_size, "must be at least 1";
            rate > 0.0 && rate.is_finite() => &key("learning_rate"), rate, "must be above 0 and finite";
            o.final_lr_fraction > 0.0 && o.final_lr_fraction <= 1.0 => &key("final_lr_fraction"), o.final_lr_fraction,
                "must be above 0 and at most 1";
            o.weight_decay >= 0.0 => &key("weight_decay"), o.weight_decay, "must not be negative";
            o.max_grad_norm > 0.0 => &key("max_grad_norm"), o.max_grad_norm, "must be above 0";
            o.stop_after == 0 || o.stop_after > o.start_after => &key("stop_after"), o.stop_after,
                "must be 0 or above start_after";
        }
    }
    ControlFlow::Continue(())
}

/// The vocabulary of finite scalar quantization, which has no codebook to initialize or reset.
fn quantizer(t: &Tokenizer, visit: Visitor) -> ControlFlow<()> {
    let Quantizer::FiniteScalar { levels } = t.quantizer else {
        return ControlFlow::Continue(());
    };
    let codes = levels.iter().product::<usize>();
    require! {
        visit:
        levels.iter().all(|n| (3..=64).contains(n)) => "tokenizer.quantizer.levels", format!("{levels:?}"), "must be three numbers from 3 to 64";
        t.vocabulary == codes => "tokenizer.vocabulary", t.vocabulary, "must be the product of tokenizer.quantizer.levels";
        t.codebook_init == CodebookInit::Uniform => "tokenizer.codebook_init", "data", "must be uniform without a codebook";
        t.dead_code_reset_after == 0 => "tokenizer.dead_code_reset_after", t.dead_code_reset_after, "must be 0 without a codebook";
    }
    ControlFlow::Continue(())
}

/// The variants of the controller's objective.
fn objective(a: &ActorCritic, visit: Visitor) -> ControlFlow<()> {
    require! {
        visit:
        (0.0..1.0).contains(&a.uniform_mix) => "actor_critic.uniform_mix", a.uniform_mix, "must be in [0, 1)";
    }
    if let Some(decay) = a.slow_critic.decay() {
        require! {
            visit:
            (0.0..1.0).contains(&decay) => "actor_critic.slow_critic.decay", decay, "must be in [0, 1)";
        }
    }
    if let SlowCritic::Regularizer { weight, .. } = a.slow_critic {
        require! {
            visit:
            weight > 0.0 && (weight as f32).is_finite() => "actor_critic.slow_critic.weight", weight, "must be above 0 and finite";
        }
    }
    if let ReturnScaling::QuantileRange { window, floor } = a.return_scaling {
        require! {
            visit:
            window > 0 => "actor_critic.return_scaling.window", window, "must be at least 1";
            floor > 0.0 && (floor as f32).is_finite() => "actor_critic.return_scaling.floor", floor, "must be above 0 and finite";
        }
    }
    ControlFlow::Continue(())
}
