//! Settings of runs, compared with those of the preset `atari100k`.

use std::path::Path;

use rem_run::layout;
use toml::{Table, Value};

use crate::departures::{Departure, Standard};
use crate::error::{Error, Result};

/// The preset with the paper's settings.
const PRESET: &str = include_str!("../../../configs/atari100k.toml");
/// Settings of single games, with any preset.
const GAMES: &str = include_str!("../../../configs/games.toml");

/// Keys, or sections of keys, that `protocol.json` has too, that name the machine, the seed or the number type, or that do
/// not affect what a run learns.
const EXEMPT: [&str; 9] = [
    "format",
    "seed",
    "device",
    "threads",
    "precision",
    "env",
    "evaluate",
    "tokenizer.perceptual",
    "world_model.architecture.mode",
];

/// The settings in the `config.toml` of a run that are not those of the preset `atari100k` for its game.
pub fn departures(dir: &Path) -> Result<Vec<Departure>> {
    let path = dir.join(layout::CONFIG);
    if !path.is_file() {
        return Ok(vec![unknown("no config.toml")]);
    }
    let text = std::fs::read_to_string(&path).map_err(Error::file("read", &path))?;
    let settings: Table = text
        .parse()
        .map_err(|error: toml::de::Error| Error::Input {
            path,
            reason: error.message().to_owned(),
            hint: "`rem train` writes this file once, at the start of the run; restore it".into(),
        })?;
    Ok(compare(&settings))
}

fn compare(settings: &Table) -> Vec<Departure> {
    let mut prescribed = parsed(PRESET);
    if settings.get("format") != prescribed.get("format") {
        return vec![unknown("a config.toml of another format")];
    }
    let game = settings.get("env").and_then(|env| env.get("game"));
    let game = game.and_then(Value::as_str).unwrap_or_default();
    merge(&mut prescribed, of_game(&mut parsed(GAMES), game));
    let prescribed = flat(&prescribed);
    let found = flat(settings);
    // Keys that only one of them has belong to the other variant of a setting, which differs itself, or to another
    // version.
    let both = prescribed.into_iter().filter_map(|(key, prescribed)| {
        let value = found.iter().find(|(other, _)| *other == key)?.1;
        Some((key, value, prescribed.clone()))
    });
    let departures = both
        .filter(|(key, value, prescribed)| !is_exempt(key) && !equal(value, prescribed))
        .map(|(key, value, prescribed)| Departure {
            subject: key,
            value: shown(value),
            prescribed: Some(shown(&prescribed)),
            standard: Standard::Preset,
        });
    let mut departures: Vec<_> = departures.collect();
    departures.sort_by(|a, b| a.subject.cmp(&b.subject));
    departures
}

fn unknown(reason: &str) -> Departure {
    Departure {
        subject: "settings of training".into(),
        value: format!("not known ({reason})"),
        prescribed: None,
        standard: Standard::Preset,
    }
}

fn parsed(text: &str) -> Table {
    text.parse().expect("the files are valid TOML (tested)")
}

/// The settings of one game, with those of the game that it extends.
fn of_game(games: &mut Table, game: &str) -> Table {
    // Removing each visited game ends a cycle.
    let Some(Value::Table(mut own)) = games.remove(game) else {
        return Table::new();
    };
    let extends = own.remove("extends");
    let mut settings = match extends.as_ref().and_then(Value::as_str) {
        Some(name) => of_game(games, name),
        None => Table::new(),
    };
    merge(&mut settings, own);
    settings
}

fn merge(base: &mut Table, above: Table) {
    for (key, value) in above {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(base)), Value::Table(above)) => merge(base, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// All values with their full keys, such as `tokenizer.optimizer.batch_size`.
fn flat(table: &Table) -> Vec<(String, &Value)> {
    let mut values = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) => {
                let inside = flat(inner).into_iter();
                values.extend(inside.map(|(rest, value)| (format!("{key}.{rest}"), value)));
            }
            value => values.push((key.clone(), value)),
        }
    }
    values
}

fn is_exempt(key: &str) -> bool {
    EXEMPT.iter().any(|exempt| {
        let rest = key.strip_prefix(exempt);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

fn equal(a: &Value, b: &Value) -> bool {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(integer) => Some(*integer as f64),
        Value::Float(float) => Some(*float),
        _ => None,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Float(float) => float.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The departures of the preset with some changed lines.
    fn changed(changes: &[(&str, &str)]) -> Vec<String> {
        let mut text = PRESET.to_owned();
        for (from, to) in changes {
            assert!(text.contains(from), "{from}");
            text = text.replacen(from, to, 1);
        }
        let found = compare(&parsed(&text));
        found.iter().map(Departure::text).collect()
    }

    #[test]
    fn the_preset_itself_has_no_departure() {
        assert_eq!(changed(&[]), [""; 0]);
        // Sections in another order, and other notations of the same numbers.
        let written = toml::to_string(&parsed(PRESET)).unwrap();
        assert_eq!(compare(&parsed(&written)), []);
        assert_eq!(changed(&[("1e-4", "0.0001"), ("10.0", "10")]), [""; 0]);
    }

    #[test]
    fn every_other_value_is_a_departure() {
        assert_eq!(
            changed(&[
                ("vocabulary = 512", "vocabulary = 256"),
                ("\"mse\"", "\"l1\""),
                ("[32.0, 512.0]", "[32.0, 64.0]"),
            ]),
            [
                "tokenizer.reconstruction l1, not mse",
                "tokenizer.vocabulary 256, not 512",
                "world_model.architecture.decay.timescales [32.0, 64.0], not [32.0, 512.0]",
            ]
        );
        // Only one of the keys of another variant, its type.
        let variant = [(
            "\"log_spaced\", timescales = [32.0, 512.0]",
            "\"powers_of_two\"",
        )];
        assert_eq!(
            changed(&variant),
            ["world_model.architecture.decay.type powers_of_two, not log_spaced"]
        );
    }

    #[test]
    fn the_machine_and_the_protocol_are_exempt() {
        let exempt = [
            ("seed = 1", "seed = 2"),
            ("\"flex\"", "\"cuda\""),
            ("threads = 0", "threads = 8"),
            ("\"mixed\"", "\"f32\""),
            ("frame_size = 64", "frame_size = 32"),
            ("every = 50", "every = 10"),
            ("\"two_calls\"", "\"auto\""),
        ];
        assert_eq!(changed(&exempt), [""; 0]);
    }

    #[test]
    fn settings_of_a_game_are_the_papers() {
        let freeway = ("game = \"breakout\"", "game = \"freeway\"");
        assert_eq!(
            changed(&[freeway]),
            ["collect.temperature 1, not 0.01"],
            "Appendix A.5"
        );
        let paper = ("temperature = 1.0", "temperature = 0.01");
        assert_eq!(changed(&[freeway, paper]), [""; 0]);
    }

    #[test]
    fn settings_that_cannot_be_compared_are_not_known() {
        assert_eq!(
            changed(&[("format = 2", "format = 1")]),
            ["settings of training not known (a config.toml of another format)"]
        );
        let place = tempfile::tempdir().unwrap();
        let texts = |found: Vec<Departure>| found.iter().map(Departure::text).collect::<Vec<_>>();
        assert_eq!(
            texts(departures(place.path()).unwrap()),
            ["settings of training not known (no config.toml)"]
        );
        std::fs::write(place.path().join(layout::CONFIG), "format = ").unwrap();
        let error = departures(place.path()).unwrap_err();
        assert!(error.to_string().contains("config.toml`: "), "{error}");
    }
}
