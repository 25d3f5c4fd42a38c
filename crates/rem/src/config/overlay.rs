//! Laying presets and `key=value` assignments over the base preset.

use toml::{Table, Value};

use super::PRESETS;
use crate::error::{Error, Result};

/// In a preset: the name of the one that it lies over, if that is not the base preset.
const OVER: &str = "over";

/// In a preset: what single games need with it, by their names.
const OF_GAMES: &str = "games";

/// In what a game needs: the name of another one that needs the same, but for what stands beside.
const LIKE: &str = "like";

/// What single games need whatever the preset.
const GAMES: &str = include_str!("../../../../configs/games.toml");

/// The base preset with the named ones (`a` or `a,b,…`) laid over it in turn, and what single games need of it beyond that,
/// by their names. The first brings what it lies over itself; the others lie over what was named before them.
pub(super) fn preset(names: &str) -> Result<(Table, Table)> {
    let mut layers = Vec::new();
    for (i, name) in names.split(',').enumerate() {
        let mut layer = parsed(name.trim())?;
        let mut below = Vec::new();
        let mut over = layer.remove(OVER).filter(|_| i == 0);
        while let Some(name) = over {
            let mut layer = parsed(name.as_str().expect("the name of a preset (tested)"))?;
            over = layer.remove(OVER);
            below.push(layer);
        }
        layers.extend(below.into_iter().rev());
        layers.push(layer);
    }
    let mut table = parsed(PRESETS[0].0)?;
    for layer in layers {
        lay_over(&mut table, layer);
    }
    let mut games: Table = GAMES.parse().expect("games.toml is valid TOML (tested)");
    if let Some(Value::Table(of_games)) = table.remove(OF_GAMES) {
        lay_over(&mut games, of_games);
    }
    Ok((table, games))
}

/// What one game needs; each is looked up once, so that no two can wait for each other.
pub(super) fn of_game(games: &mut Table, game: &str) -> Table {
    let Some(Value::Table(mut own)) = games.remove(game) else {
        return Table::new();
    };
    let Some(like) = own.remove(LIKE) else {
        return own;
    };
    let mut needed = of_game(games, like.as_str().expect("the name of a game (tested)"));
    lay_over(&mut needed, own);
    needed
}

/// One preset as it was written.
fn parsed(name: &str) -> Result<Table> {
    let text = PRESETS.iter().find(|(n, _)| *n == name).map(|(_, t)| *t);
    let text = text.ok_or_else(|| {
        let names: Vec<&str> = PRESETS.iter().map(|(n, _)| *n).collect();
        Error::config(
            format!("unknown preset `{name}`"),
            format!("the presets are {}", names.join(", ")),
        )
    })?;
    Ok(text.parse().expect("presets are valid TOML (tested)"))
}

pub(super) fn lay_over(base: &mut Table, above: Table) {
    for (key, value) in above {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(base)), Value::Table(above)) => lay_over(base, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

/// Applies `a.b.c=value`; the key must be there already.
pub(super) fn assign(table: &mut Table, assignment: &str) -> Result<()> {
    let Some((key, text)) = assignment.split_once('=') else {
        return Err(Error::config(
            format!("`{assignment}` is not of the form key=value"),
            "for example `--set tokenizer.vocabulary=128`",
        ));
    };
    let key = key.trim();
    let unknown = |part: &str, known: Vec<&String>, prefix: &str| {
        let hint = nearest(part, &known).map_or_else(
            || "`rem config atari100k` shows every key".to_string(),
            |near| format!("did you mean `{prefix}{near}`?"),
        );
        Error::config(format!("unknown config key `{key}`"), hint)
    };
    let parts: Vec<&str> = key.split('.').collect();
    let mut here = table;
    let mut prefix = String::new();
    for part in &parts[..parts.len() - 1] {
        let known: Vec<String> = here.keys().cloned().collect();
        match here.get_mut(*part) {
            Some(Value::Table(inner)) => here = inner,
            _ => return Err(unknown(part, known.iter().collect(), &prefix)),
        }
        prefix = format!("{prefix}{part}.");
    }
    let last = parts[parts.len() - 1];
    match here.get_mut(last) {
        None => Err(unknown(last, here.keys().collect(), &prefix)),
        Some(Value::Table(_)) => Err(Error::config(
            format!("`{key}` is a section, not a value"),
            format!("name a key in it: `--set {key}.…=…`"),
        )),
        Some(value) => {
            *value = parse_value(text.trim(), value);
            Ok(())
        }
    }
}

/// A TOML value; a bare word is a string, and a whole number may stand where a decimal one is wanted.
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

/// The known key that shares the most with a mistyped one.
fn nearest<'a>(word: &str, known: &[&'a String]) -> Option<&'a str> {
    known
        .iter()
        .map(|k| (strsim::levenshtein(word, k), k.as_str()))
        .filter(|(distance, k)| *distance <= k.len().max(word.len()) / 3)
        .min()
        .map(|(_, k)| k)
}
