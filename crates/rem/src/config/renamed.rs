//! Config keys of format 1 and their new names.

use toml::{Table, Value};

use super::{ConfigError, FORMAT, Result};

/// Old and new name of each renamed key.
const RENAMED: &[(&str, &str)] = &[
    ("collect.hold", "collect.random_action_repeat"),
    ("tokenizer.sight", "tokenizer.encoder.type"),
    (
        "tokenizer.quantiser_convs",
        "tokenizer.encoder.quantizer_convs",
    ),
    ("tokenizer.codebook_start", "tokenizer.codebook_init"),
    ("tokenizer.revive_after", "tokenizer.dead_code_reset_after"),
    ("tokenizer.optimise", "tokenizer.optimizer"),
    ("world_model.pop_mode", "world_model.architecture.mode"),
    ("world_model.decay", "world_model.architecture.decay.type"),
    (
        "world_model.decay_over",
        "world_model.architecture.decay.timescales",
    ),
    (
        "world_model.rotation_base",
        "world_model.architecture.rope_theta",
    ),
    ("world_model.learn_from", "world_model.loss_start"),
    ("world_model.outcome_loss", "world_model.reward_loss_start"),
    ("world_model.average", "world_model.weight_averaging"),
    ("world_model.optimise", "world_model.optimizer"),
    ("actor_critic.lstm", "actor_critic.lstm_dim"),
    (
        "actor_critic.burn_in_inputs",
        "actor_critic.inputs.burn_in_actions",
    ),
    ("actor_critic.entropy", "actor_critic.entropy_weight"),
    ("actor_critic.end_value", "actor_critic.terminal_value"),
    (
        "actor_critic.after_end",
        "actor_critic.mask_after_termination",
    ),
    ("actor_critic.optimise", "actor_critic.optimizer"),
];

/// Old and new name of a key within an optimizer's table.
const RENAMED_OF_OPTIMIZERS: &[(&str, &str)] = &[
    ("batch", "batch_size"),
    ("rate_falls_to", "final_lr_fraction"),
    ("clip", "max_grad_norm"),
];

/// Old and new name of each renamed value, with its old key.
const RENAMED_VALUES: &[(&str, &str, &str)] = &[
    ("tokenizer.sight", "wide", "cnn"),
    ("tokenizer.sight", "narrow", "whitened_patches"),
    (
        "actor_critic.burn_in_inputs",
        "observations_and_actions",
        "true",
    ),
    ("actor_critic.burn_in_inputs", "observations", "false"),
    ("actor_critic.after_end", "keep", "false"),
    ("actor_critic.after_end", "ignore", "true"),
];

/// The new name of a key of format 1, or of a key below it.
pub(super) fn new_name(key: &str) -> Option<String> {
    let of_optimizer = |tail: &str| {
        let renamed = RENAMED_OF_OPTIMIZERS.iter().find(|(old, _)| *old == tail);
        renamed.map_or(tail, |(_, new)| new).to_string()
    };
    if let Some((component, tail)) = key.split_once(".optimizer.") {
        let new = of_optimizer(tail);
        return (new != tail).then(|| format!("{component}.optimizer.{new}"));
    }
    RENAMED.iter().find_map(|(old, new)| {
        let tail = key.strip_prefix(old)?;
        match tail.strip_prefix('.') {
            None => tail.is_empty().then(|| new.to_string()),
            Some(tail) => Some(format!("{new}.{}", of_optimizer(tail))),
        }
    })
}

/// The error for a renamed key.
pub(super) fn error(old: &str, new: &str) -> ConfigError {
    let values: Vec<String> = (RENAMED_VALUES.iter())
        .filter(|(key, ..)| *key == old)
        .map(|(_, old, new)| format!("`{old}` is now `{new}`"))
        .collect();
    let hint = match values.is_empty() {
        true => "CHANGELOG.md lists all renamed keys".to_string(),
        false => values.join(", "),
    };
    ConfigError::new(format!("config key `{old}` was renamed to `{new}`"), hint)
}

/// Rejects a config of another format. For format 1, the error names an old key and its new name.
pub(super) fn reject_old_format(table: &Table) -> Result<()> {
    let format = table.get("format").and_then(Value::as_integer);
    match format {
        Some(format) if format == i64::from(FORMAT) => Ok(()),
        Some(format) => Err(ConfigError::new(
            format!("the config has format {format}; this program reads format {FORMAT}"),
            "use the version of `rem` that wrote it",
        )),
        None => Err(match first_old_key(table, "") {
            Some((old, new)) => error(&old, &new),
            None => ConfigError::new(
                "the config has no `format`",
                format!("add `format = {FORMAT}`; `rem config quick` prints a complete config"),
            ),
        }),
    }
}

fn first_old_key(table: &Table, prefix: &str) -> Option<(String, String)> {
    table.iter().find_map(|(key, value)| {
        let key = format!("{prefix}{key}");
        let below = || first_old_key(value.as_table()?, &format!("{key}."));
        new_name(&key).map(|new| (key.clone(), new)).or_else(below)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    #[test]
    fn every_new_key_exists() {
        let config = Config::load("atari100k", &[]).unwrap().to_toml();
        let table: Table = config.parse().unwrap();
        let exists = |key: &str| {
            let mut parts = key.split('.');
            let first = table.get(parts.next().unwrap());
            parts.try_fold(first.unwrap(), |here, part| here.get(part))
        };
        for (old, new) in RENAMED {
            assert!(exists(new).is_some(), "{new}");
            assert_eq!(new_name(old).as_deref(), Some(*new));
        }
        for (old, new) in RENAMED_OF_OPTIMIZERS {
            let new = format!("tokenizer.optimizer.{new}");
            assert!(exists(&new).is_some(), "{new}");
            for optimizer in ["optimise", "optimizer"] {
                let old = format!("tokenizer.{optimizer}.{old}");
                assert_eq!(new_name(&old).as_deref(), Some(&new[..]));
            }
        }
    }

    #[test]
    fn errors_for_old_keys_name_the_new_keys() {
        let set = ["world_model.optimise.clip=3".to_string()];
        let error = Config::load("quick", &set).unwrap_err().to_string();
        assert!(
            error.contains("`world_model.optimizer.max_grad_norm`"),
            "{error}"
        );
        let old = "[collect]\nhold = 3\n";
        let error = Config::from_toml(old, &[]).unwrap_err().to_string();
        assert!(error.contains("`collect.random_action_repeat`"), "{error}");
        let error = Config::load("quick", &["tokenizer.sight=narrow".into()]).unwrap_err();
        assert!(error.hint().contains("`whitened_patches`"), "{error}");
        let newer = "format = 3\n";
        let error = Config::from_toml(newer, &[]).unwrap_err().to_string();
        assert!(error.contains("format 3"), "{error}");
    }
}
