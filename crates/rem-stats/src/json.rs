//! Scores in JSON: `{"Pong": [20.5, 18.0], "Qbert": [743.0]}`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;

use crate::error::Problem;

/// The entries of an object in the order of the text. Keeps duplicate keys, which a map would merge.
struct Entries(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object with a list of scores for each game")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map
                .next_value()
                .map_err(|error| A::Error::custom(format!("in `{key}`: {error}")))?;
            entries.push((key, value));
        }
        Ok(Entries(entries))
    }
}

/// The lists of numbers in `text`, each with its key.
pub(crate) fn lists(text: &str) -> Result<Vec<(String, Vec<f64>)>, Problem> {
    let Entries(entries) = serde_json::from_str(text).map_err(|error| {
        Problem::Json(non_finite_message(text, &error).unwrap_or(error.to_string()))
    })?;
    entries
        .into_iter()
        .map(|(key, value)| {
            let numbers = numbers(&key, &value)?;
            Ok((key, numbers))
        })
        .collect()
}

/// The message for `NaN` and `Infinity`, which some programs write but JSON does not allow. The parser only reports that
/// it expected a value.
fn non_finite_message(text: &str, error: &serde_json::Error) -> Option<String> {
    let line = text.lines().nth(error.line().checked_sub(1)?)?;
    let rest = line.get(error.column().checked_sub(1)?..)?;
    let word = ["NaN", "Infinity"]
        .into_iter()
        .find(|word| rest.starts_with(word))?;
    let message = error.to_string();
    let key = message.rsplit_once("`: ");
    let place = key.map_or_else(String::new, |(key, _)| format!("{key}`: "));
    Some(format!(
        "{place}{word} is not a number in JSON, at line {} column {}",
        error.line(),
        error.column()
    ))
}

fn numbers(key: &str, value: &Value) -> Result<Vec<f64>, Problem> {
    let list = value.as_array().ok_or_else(|| Problem::NotAList {
        game: key.into(),
        found: describe(value),
    })?;
    let number = |(index, score): (usize, &Value)| {
        score.as_f64().ok_or_else(|| Problem::NotANumber {
            game: key.into(),
            run: index + 1,
            found: describe(score),
        })
    };
    list.iter().enumerate().map(number).collect()
}

fn describe(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
        Value::String(text) => format!("the text {text:?}"),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_floats_are_read() {
        let lists = lists(r#"{"Pong": [20, -1.5e1], "Other": []}"#).unwrap();
        assert_eq!(
            lists,
            [("Pong".into(), vec![20.0, -15.0]), ("Other".into(), vec![])]
        );
    }

    #[test]
    fn numbers_are_read_to_the_last_bit() {
        let lists = lists(r#"{"Pong": [0.46923076923076923]}"#).unwrap();
        assert_eq!(lists[0].1, [0.46923076923076923]);
    }

    #[test]
    fn duplicate_keys_are_not_merged() {
        let lists = lists(r#"{"Pong": [1], "Pong": [2]}"#).unwrap();
        assert_eq!(lists.len(), 2);
    }
}
