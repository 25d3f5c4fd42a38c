//! Messages for values of a wrong type and for unknown keys: what a user may write, instead of Rust types.

use toml::{Table, Value};

use super::{ConfigError, one_line, validate};
use crate::suggest::{distance, nearest, or, quoted};

/// The largest integer of TOML.
const LARGEST: u64 = i64::MAX as u64;

/// The error of serde for the value at `path` in `config`.
pub(super) fn error(path: &str, message: &str, config: &Value) -> ConfigError {
    let message = one_line(message);
    if let Some(field) = between(&message, "missing field `") {
        let key = format!("{path}.{field}");
        let key = key.trim_start_matches(['.', '?']);
        return ConfigError::new(
            format!("config key `{key}` is missing"),
            "`rem config atari100k` prints every key with its values",
        );
    }
    if let Some(field) = between(&message, "unknown field `") {
        let parent = path.strip_suffix(field).unwrap_or(path);
        let key = format!("{}.{field}", parent.trim_end_matches('.'));
        let key = key.trim_start_matches(['.', '?']);
        return ConfigError::new(
            format!("unknown config key `{key}`"),
            "`rem config --docs` prints every key with its meaning",
        )
        .with_key(key);
    }
    let (key, value) = offender(path, &message, config);
    if message.starts_with("unknown variant") {
        return unknown_variant(&key, &value, &message);
    }
    let expected = message.rsplit_once("expected ").map(|(_, e)| e);
    let must = expected.map(|expected| must_be(&key, expected, &value));
    ConfigError::of_key(&key, &shown(&value), &must.unwrap_or(message))
}

/// A value that is none of the names that a key takes.
fn unknown_variant(key: &str, value: &Value, message: &str) -> ConfigError {
    let known = message
        .split_once("expected")
        .map_or("", |(_, names)| names);
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    let value = shown(value);
    let error = ConfigError::of_key(key, &value, &format!("must be {}", or(&known)));
    match nearest(&value, known.iter().copied()) {
        Some(name) => error.with_hint(format!("did you mean `{name}`?")),
        None => error,
    }
}

/// What the value of a key must be, from its type in serde's words and from its range.
fn must_be(key: &str, expected: &str, value: &Value) -> String {
    let range = validate::requirement(key).unwrap_or_default();
    let range = range.strip_prefix("must ").unwrap_or(range);
    let most = match expected {
        "u32" => u64::from(u32::MAX),
        "usize" | "u64" => LARGEST,
        "f64" => return joined("a number", range),
        "a boolean" => return "must be true or false".into(),
        "a string" => return "must be text".into(),
        other => return format!("must be {other}"),
    };
    match value {
        Value::Integer(number) if u64::try_from(*number).is_ok_and(|n| n > most) => {
            format!("must be at most {most}")
        }
        _ if range.is_empty() => format!("must be a whole number from 0 to {most}"),
        _ => joined("a whole number", range),
    }
}

/// `must be a whole number, at least 1`, `must be a whole number and divide …`.
fn joined(kind: &str, range: &str) -> String {
    match range.strip_prefix("be ") {
        Some(range) => format!("must be {kind}, {range}"),
        None if range.is_empty() => format!("must be {kind}"),
        None => format!("must be {kind} and {range}"),
    }
}

/// The key and the value that serde means. In a table of variants, it names the table only.
fn offender(path: &str, message: &str, config: &Value) -> (String, Value) {
    let steps = path.split('.').filter(|step| !step.is_empty());
    let (mut key, mut here) = (String::new(), config);
    for step in steps {
        let name = step.split('[').next().unwrap_or(step);
        let Some(inner) = here.get(name) else { break };
        key = format!("{key}.{name}").trim_start_matches('.').to_owned();
        here = inner;
    }
    if let Value::Table(table) = here {
        let mut leaves = Vec::new();
        flatten(table, &key, &mut leaves);
        let meant = |value: &Value| match value {
            Value::String(text) => message.contains(&format!("{text:?}")),
            other => message.contains(&format!("`{other}`")),
        };
        if let Some((key, value)) = leaves.into_iter().find(|(_, value)| meant(value)) {
            return (key, value);
        }
    }
    (key, here.clone())
}

/// A value as the user wrote it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => one_line(&other.to_string()),
    }
}

/// The text from `start` up to the next backquote.
fn between<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    text.strip_prefix(start)?.split('`').next()
}

/// Keys and values below `prefix`.
pub(super) fn flatten(table: &Table, prefix: &str, into: &mut Vec<(String, Value)>) {
    for (name, value) in table {
        let key = match prefix {
            "" => name.clone(),
            prefix => format!("{prefix}.{name}"),
        };
        match value {
            Value::Table(inner) if !inner.is_empty() => flatten(inner, &key, into),
            value => into.push((key, value.clone())),
        }
    }
}

/// The error for a key that `table` does not have.
pub(super) fn unknown_key(key: &str, table: &Table) -> ConfigError {
    let mut known = Vec::new();
    flatten(table, "", &mut known);
    let known: Vec<&str> = known.iter().map(|(key, _)| key.as_str()).collect();
    let hint = match &similar(key, &known)[..] {
        [] => "`rem config --docs` prints every key with its meaning".into(),
        names => format!("did you mean {}?", or(&quoted(names))),
    };
    ConfigError::new(format!("unknown config key `{key}`"), hint)
}

/// The known keys nearest to a mistyped one, at most three.
fn similar<'a>(key: &str, known: &[&'a str]) -> Vec<&'a str> {
    let costs = known
        .iter()
        .filter_map(|name| Some((cost(key, name)?, *name)));
    let costs: Vec<(usize, &str)> = costs.collect();
    let least = costs.iter().map(|(cost, _)| *cost).min();
    let nearest = costs.iter().filter(|(cost, _)| Some(*cost) == least);
    let nearest: Vec<&str> = nearest.map(|(_, name)| *name).collect();
    match nearest.len() {
        0..=3 => nearest,
        _ => Vec::new(),
    }
}

/// The section of a key that is mistyped beyond recognition.
const OTHER_SECTION: usize = 100;

/// How much a mistyped key differs from a known one: in its last part and in its section. A part may be cut off at its
/// end, and a section may be incomplete.
fn cost(key: &str, known: &str) -> Option<usize> {
    let split = |key: &str| match key.rsplit_once('.') {
        Some((section, name)) => (section.to_owned(), name.to_owned()),
        None => (String::new(), key.to_owned()),
    };
    let ((section, name), (of, own)) = (split(key), split(known));
    let of_name = distance(&name, &own)?;
    let of_section = match () {
        () if section == of => 0,
        () if section.is_empty() || of.starts_with(&section) || of.ends_with(&section) => 1,
        () => match distance(&section, &of) {
            Some(edits) => 1 + edits,
            None if name == own => OTHER_SECTION,
            None => return None,
        },
    };
    Some(of_name + of_section)
}

#[cfg(test)]
mod tests {
    use super::super::Config;

    #[track_caller]
    fn rejects(assignment: &str, message: &str, hint: &str) {
        let error = Config::load("quick", &[assignment.to_owned()]).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.hint()), (message, hint));
    }

    #[test]
    fn unknown_keys_get_the_nearest_key_with_its_section() {
        for (key, hint) in [
            ("tokenizer.vocab", "`tokenizer.vocabulary`"),
            ("tokeniser.vocabulary", "`tokenizer.vocabulary`"),
            ("vocabulary", "`tokenizer.vocabulary`"),
            ("world_model.layer", "`world_model.layers`"),
            ("model.layers", "`world_model.layers`"),
            ("epochs", "`collect.epochs` or `train.epochs`"),
            (
                "tokenizer.learning_rate",
                "`tokenizer.optimizer.learning_rate`",
            ),
            (
                "train.batch_size",
                "`tokenizer.optimizer.batch_size`, `world_model.optimizer.batch_size` or \
                 `actor_critic.optimizer.batch_size`",
            ),
        ] {
            let message = format!("unknown config key `{key}`");
            let hint = format!("did you mean {hint}?");
            // TOML's tables are sorted by name.
            let sorted = Config::load("quick", &[format!("{key}=3")]).unwrap_err();
            let words = |text: &str| {
                let mut words: Vec<String> = text.split('`').map(str::to_owned).collect();
                words.sort();
                words
            };
            assert_eq!(sorted.to_string(), message);
            if hint.matches('`').count() > 4 {
                assert_eq!(words(sorted.hint()).len(), words(&hint).len());
            } else {
                assert_eq!(sorted.hint(), hint);
            }
        }
        let hint = "`rem config --docs` prints every key with its meaning";
        rejects(
            "nothing.like.it=3",
            "unknown config key `nothing.like.it`",
            hint,
        );
    }

    #[test]
    fn values_of_a_wrong_type_get_the_range_of_the_key() {
        for (assignment, must) in [
            ("tokenizer.vocabulary=many", "a whole number, 2 to 65536"),
            ("tokenizer.vocabulary=2.5", "a whole number, 2 to 65536"),
            ("tokenizer.vocabulary=-1", "a whole number, 2 to 65536"),
            ("train.epochs=5000000000", "at most 4294967295"),
            ("collect.epochs=x", "a whole number from 0 to 4294967295"),
            ("seed=-1", "a whole number from 0 to 9223372036854775807"),
            ("collect.epsilon=high", "a number, in [0, 1]"),
            ("collect.reset_per_epoch=maybe", "true or false"),
            (
                "world_model.architecture.rope_theta=x",
                "a number, above 1 and at most 1e9",
            ),
        ] {
            let (key, value) = assignment.split_once('=').unwrap();
            let hint = match key {
                "seed" => "change it with `--seed …`".into(),
                key => format!("change it with `--set {key}=…`"),
            };
            let message = format!("`{key} = {value}`: must be {must}");
            rejects(assignment, &message, &hint);
        }
    }

    #[test]
    fn unknown_values_get_the_known_ones_as_a_list() {
        rejects(
            "tokenizer.perceptual=autp",
            "`tokenizer.perceptual = autp`: must be auto, off or required",
            "did you mean `auto`?",
        );
        rejects(
            "precision=half",
            "`precision = half`: must be f32 or mixed",
            "change it with `--set precision=…`",
        );
    }

    #[test]
    fn damaged_files_name_the_line() {
        let text = Config::load("quick", &[]).unwrap().to_toml();
        let line = |text: &str, part: &str| {
            let at = text.lines().position(|line| line.contains(part)).unwrap();
            format!("line {}: ", at + 1)
        };
        for (from, to) in [
            ("vocabulary = ", "vocabulary = \"x\" #"),
            ("vocabulary = ", "vocabulary = 1 #"),
            ("vocabulary = ", "vocabulary "),
            ("vocabulary = ", "vocabularies = "),
        ] {
            let damaged = text.replacen(from, to, 1);
            let error = Config::from_toml(&damaged, &[]).unwrap_err();
            let error = error.in_run("run/config.toml".as_ref());
            let place = line(&damaged, to.trim_end());
            let message = error.to_string();
            assert!(
                message.starts_with(&format!("`run/config.toml` {place}")),
                "{to}: {message}, not {place}"
            );
        }
    }
}
