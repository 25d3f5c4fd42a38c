//! Merging presets and `key=value` assignments into the base preset.

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::{
    Architecture, ConfigError, ControllerInputs, Decay, Encoder, PRESETS, Quantizer, Result,
    ReturnScaling, SlowCritic, mistyped, renamed,
};
use crate::suggest::{and, nearest};

/// In a preset: the name of the preset that it extends.
const EXTENDS: &str = "extends";

/// In a table of variants: the name of the variant.
const TYPE: &str = "type";

/// A table whose keys are not ours: the arguments of a Python environment.
const FREE: &str = "env.python.kwargs";

/// Settings of single games with any preset.
const GAME_SETTINGS: &str = include_str!("../../../../configs/games.toml");

/// Merges the named presets (`a` or `a,b,…`) into the base preset, in order. Only the first preset loads what it extends; later presets override earlier ones.
pub(super) fn preset(names: &str) -> Result<Table> {
    let mut layers = Vec::new();
    for (i, name) in names.split(',').enumerate() {
        let mut layer = parsed(name.trim())?;
        let mut below = Vec::new();
        let mut extends = layer.remove(EXTENDS).filter(|_| i == 0);
        while let Some(name) = extends {
            let mut layer = parsed(name.as_str().expect("the name of a preset (tested)"))?;
            extends = layer.remove(EXTENDS);
            below.push(layer);
        }
        layers.extend(below.into_iter().rev());
        layers.push(layer);
    }
    let mut table = parsed(PRESETS[0].0)?;
    for layer in layers {
        merge(&mut table, layer);
    }
    complete_variants(&mut table);
    Ok(table)
}

/// The settings of one game, for any preset.
pub(super) fn of_game(game: &str) -> Table {
    let mut games: Table = GAME_SETTINGS
        .parse()
        .expect("games.toml is valid TOML (tested)");
    match games.remove(game) {
        Some(Value::Table(settings)) => settings,
        _ => Table::new(),
    }
}

/// Parses one preset, without what it extends.
fn parsed(name: &str) -> Result<Table> {
    let text = PRESETS.iter().find(|(n, _)| *n == name).map(|(_, t)| *t);
    let text = text.ok_or_else(|| {
        let names: Vec<&str> = PRESETS.iter().map(|(n, _)| *n).collect();
        let hint = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the presets are {}", and(&names)),
        };
        ConfigError::new(format!("unknown preset `{name}`"), hint)
    })?;
    Ok(text.parse().expect("presets are valid TOML (tested)"))
}

/// Merges `above` into `base`, table by table. [`complete_variants`] then removes the keys of variants that are not chosen.
pub(super) fn merge(base: &mut Table, above: Table) {
    for (key, value) in above {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(base)), Value::Table(above)) => merge(base, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// Fills in the defaults of the chosen variants, and removes keys that only other variants have. A variant keeps the keys
/// that it shares with the one chosen before: No POP has the decay rates of the POP network that it replaces.
pub(super) fn complete_variants(table: &mut Table) {
    complete::<Encoder>(table, &["tokenizer", "encoder"], ENCODERS);
    complete::<Quantizer>(table, &["tokenizer", "quantizer"], QUANTIZERS);
    complete::<Architecture>(table, &["world_model", "architecture"], ARCHITECTURES);
    complete::<Decay>(table, &["world_model", "architecture", "decay"], DECAYS);
    complete::<ControllerInputs>(table, &["actor_critic", "inputs"], INPUTS);
    complete::<SlowCritic>(table, &["actor_critic", "slow_critic"], SLOW_CRITICS);
    complete::<ReturnScaling>(table, &["actor_critic", "return_scaling"], RETURN_SCALINGS);
}

/// Names of the variants.
pub(super) const ENCODERS: &[&str] = &["cnn", "whitened_patches"];
pub(super) const ARCHITECTURES: &[&str] = &["pop", "retnet", "transformer", "pop_attention"];
pub(super) const QUANTIZERS: &[&str] = &["codebook", "finite_scalar"];
pub(super) const SLOW_CRITICS: &[&str] = &["off", "target", "regularizer"];
pub(super) const RETURN_SCALINGS: &[&str] = &["off", "quantile_range"];
pub(super) const DECAYS: &[&str] = &["log_spaced", "powers_of_two"];
pub(super) const INPUTS: &[&str] = &["codes_and_actions", "codes", "pixels"];

/// Completes the table at `path`, of a type with the variants `names`. Leaves an invalid table unchanged; deserializing
/// the config reports it.
fn complete<T: Serialize + DeserializeOwned>(table: &mut Table, path: &[&str], names: &[&str]) {
    let [first, rest @ ..] = path else { return };
    match (table.get_mut(*first), rest) {
        (Some(Value::Table(variant)), []) => {
            let chosen = variant.get(TYPE).and_then(Value::as_str);
            if let Some(own) = chosen.and_then(default_of::<T>) {
                let all: Vec<Table> = names.iter().copied().filter_map(default_of::<T>).collect();
                let foreign =
                    |key: &str| !own.contains_key(key) && all.iter().any(|t| t.contains_key(key));
                variant.retain(|key, _| !foreign(key));
            }
            if let Some(complete) = completed::<T>(variant.clone()) {
                *variant = complete;
            }
        }
        (Some(Value::Table(inner)), rest) => complete::<T>(inner, rest, names),
        _ => {}
    }
}

/// The variant `name` with every key at its default.
fn default_of<T: Serialize + DeserializeOwned>(name: &str) -> Option<Table> {
    completed::<T>(Table::from_iter([(TYPE.into(), name.into())]))
}

fn completed<T: Serialize + DeserializeOwned>(variant: Table) -> Option<Table> {
    let value: T = variant.try_into().ok()?;
    Table::try_from(value).ok()
}

/// Applies `a.b.c=value`; the key must exist, except below [`FREE`]. A variant is chosen by `a.b=name` or `a.b.type=name`.
pub(super) fn assign(table: &mut Table, assignment: &str) -> Result<()> {
    let Some((key, text)) = assignment.split_once('=') else {
        return Err(ConfigError::new(
            format!("`{assignment}` is not of the form key=value"),
            "for example `--set tokenizer.vocabulary=128`",
        ));
    };
    let (key, text) = (key.trim(), text.trim());
    let parts: Vec<&str> = key.split('.').collect();
    let [sections @ .., last] = &parts[..] else {
        unreachable!("a split text has a part");
    };
    let (last, unknown) = (*last, unknown_key(key, table));
    let section = sections.iter().try_fold(&mut *table, |here, name| {
        here.get_mut(*name).and_then(Value::as_table_mut)
    });
    let Some(here) = section else {
        return Err(unknown);
    };
    let free = key
        .strip_prefix(FREE)
        .is_some_and(|rest| rest.starts_with('.'));
    match here.get_mut(last) {
        None | Some(_) if free => {
            here.insert(last.into(), parse_value(text, &Value::Boolean(false)));
        }
        Some(Value::Table(inner)) if key == FREE => *inner = parse_table(key, text)?,
        None => return Err(unknown),
        Some(Value::Table(variant)) if variant.contains_key(TYPE) => choose(variant, text),
        Some(Value::Table(_)) => {
            return Err(ConfigError::new(
                format!("`{key}` is a section, not a value"),
                format!("name a key in it: `--set {key}.…=…`"),
            ));
        }
        Some(_) if last == TYPE => choose(here, text),
        Some(value) => *value = parse_value(text, value),
    }
    complete_variants(table);
    Ok(())
}

/// A table written as `{ key = value, … }`.
fn parse_table(key: &str, text: &str) -> Result<Table> {
    match parse_value(text, &Value::Boolean(false)) {
        Value::Table(table) => Ok(table),
        _ => Err(ConfigError::new(
            format!("`{key}={text}` is not a table"),
            format!(
                "write it as `--set '{key}={{ size = 8 }}'`, or set one argument: `--set {key}.size=8`"
            ),
        )),
    }
}

/// Sets the variant of a table.
fn choose(variant: &mut Table, name: &str) {
    variant.insert(TYPE.into(), name.into());
}

/// The error for a key that does not exist, or no longer.
fn unknown_key(key: &str, table: &Table) -> ConfigError {
    match renamed::new_name(key) {
        Some(new) => renamed::error(key, &new),
        None => mistyped::unknown_key(key, table),
    }
}

/// A TOML value; a bare word is a string, and an integer is accepted for a float.
fn parse_value(text: &str, old: &Value) -> Value {
    let parsed = format!("v={text}")
        .parse::<Table>()
        .ok()
        .and_then(|mut t| t.remove("v"));
    match (parsed, old) {
        (Some(Value::Integer(i)), Value::Float(_)) => Value::Float(i as f64),
        (Some(value), Value::String(_)) if !value.is_str() => Value::String(text.into()),
        (Some(value), _) => value,
        (None, _) => Value::String(text.into()),
    }
}
