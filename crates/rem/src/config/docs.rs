//! What every key means, from the config's types and doc comments.

use schemars::schema_for;
use serde_json::Value as Json;

use super::{Config, one_line};

/// Columns of a comment.
const WIDTH: usize = 100;

/// A key of the config.
pub(super) struct Key {
    pub(super) path: String,
    pub(super) kind: String,
    pub(super) description: String,
}

impl Key {
    /// The description with the type, unless it lists the values.
    fn about(&self) -> String {
        match self.kind.contains('`') {
            true => self.description.clone(),
            false => format!("{} ({})", self.description, self.kind),
        }
    }
}

impl Config {
    /// The config as TOML, with every key and, above it, what it means.
    pub fn to_documented_toml(&self) -> String {
        let keys = keys();
        let about = |key: &str| keys.iter().find(|known| known.path == key);
        let (mut text, mut section) = (String::new(), String::new());
        for line in self.to_toml().lines() {
            if let Some(name) = line.strip_prefix('[') {
                section = format!("{}.", name.trim_end_matches(']'));
            } else if let Some((key, _)) = line.split_once(" = ")
                && let Some(key) = about(&format!("{section}{key}"))
            {
                text += &comment(&key.about());
            }
            text += line;
            text.push('\n');
        }
        text
    }
}

/// Lines of a comment.
fn comment(text: &str) -> String {
    let mut lines = vec![String::from("#")];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("at least one line");
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(format!("# {word}"));
        } else {
            *line += &format!(" {word}");
        }
    }
    format!("{}\n", lines.join("\n"))
}

/// All keys in the order of the types' fields, those without a section first.
pub(super) fn keys() -> Vec<Key> {
    let schema = serde_json::to_value(schema_for!(Config)).expect("a schema is JSON");
    let mut keys = Vec::new();
    collect(&schema, &schema, "", "", &mut keys);
    keys.sort_by_key(|key| key.path.contains('.'));
    keys
}

/// Adds the keys below `schema`, which stands under `path`. `variant` is the tagged variant they belong to, if any.
fn collect(root: &Json, schema: &Json, path: &str, variant: &str, keys: &mut Vec<Key>) {
    let variants = schema["oneOf"].as_array();
    if let Some(variants) = variants.filter(|v| v[0]["properties"]["type"].is_object()) {
        let names = |v: &Json| v["properties"]["type"]["const"].as_str().map(str::to_owned);
        for v in variants {
            let name = names(v).expect("a tagged variant");
            collect(root, v, path, &name, keys);
        }
        return;
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if name == "type" && !variant.is_empty() {
            continue;
        }
        let path = [path, name].map(str::to_owned).join(".");
        let path = path.trim_start_matches('.').to_string();
        let target = resolve(root, field);
        let own = field["description"].as_str();
        let about = own.or(target["description"].as_str()).unwrap_or_default();
        let about = one_line(about);
        if let Some(choices) = choices(target) {
            let tagged = target["oneOf"][0]["properties"].is_object();
            let path_of_choice = if tagged {
                format!("{path}.type")
            } else {
                path.clone()
            };
            push(
                keys,
                path_of_choice,
                &choices.0,
                &about,
                &choices.1,
                variant,
            );
            collect(root, target, &path, "", keys);
        } else if target["properties"].is_object() {
            collect(root, target, &path, variant, keys);
            // `train` and `test` of a pair say little without what the pair is.
            if target["properties"]["test"].is_object() {
                let pair = keys.iter_mut().rev().take(2);
                pair.for_each(|key| {
                    let end = key.path.rsplit('.').next().unwrap_or_default();
                    let episodes = format!("{} ({end} episodes).", about.trim_end_matches('.'));
                    key.description = episodes;
                });
            }
        } else {
            push(keys, path, &kind(target), &about, "", variant);
        }
    }
}

/// Adds a key; one that several variants share gets the names of all.
fn push(keys: &mut Vec<Key>, path: String, kind: &str, about: &str, choices: &str, variant: &str) {
    if let Some(key) = keys.iter_mut().find(|key| key.path == path) {
        let (marks, _) = key.description.split_once("): ").unwrap_or_default();
        if marks.contains(&format!("`{variant}`")) {
            return;
        }
        let marked = format!("`, `{variant}`): ");
        key.description = key.description.replacen("`): ", &marked, 1);
        return;
    }
    let of = match variant {
        "" => String::new(),
        variant => format!("(`{variant}`): "),
    };
    let choices = match choices {
        "" => String::new(),
        choices => format!(" {choices}"),
    };
    keys.push(Key {
        path,
        kind: kind.to_owned(),
        description: format!("{of}{about}{choices}"),
    });
}

/// The values of an enum, plain or tagged, and their meanings.
fn choices(schema: &Json) -> Option<(String, String)> {
    let variants = schema["oneOf"].as_array()?;
    let (mut names, mut meanings) = (Vec::new(), Vec::new());
    for v in variants {
        let constant = v["const"].as_str();
        let name = constant.or(v["properties"]["type"]["const"].as_str())?;
        let about = one_line(v["description"].as_str().unwrap_or_default());
        assert!(about.ends_with('.'), "value `{name}` has no doc comment");
        names.push(format!("`{name}`"));
        meanings.push(format!("`{name}`: {about}"));
    }
    Some((names.join(" \\| "), meanings.join(" ")))
}

fn kind(schema: &Json) -> String {
    // A type that is read from several types of TOML values names them itself.
    if let Some(types) = schema["x-types"].as_str() {
        return types.replace('|', "\\|");
    }
    match schema["type"].as_str() {
        Some("array") => {
            let count = schema["minItems"].as_u64().unwrap_or_default();
            format!("{count} {}s", schema["items"]["type"].as_str().unwrap())
        }
        Some(kind) => kind.to_owned(),
        None => panic!("a type that the reference cannot name: {schema}"),
    }
}

fn resolve<'a>(root: &'a Json, schema: &'a Json) -> &'a Json {
    match schema["$ref"].as_str() {
        Some(path) => root.pointer(path.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

#[cfg(test)]
mod tests {
    use super::super::PRESETS;
    use super::*;

    #[test]
    fn a_documented_config_is_the_same_config() {
        for (preset, _) in PRESETS {
            let config = Config::load(preset, &[]).unwrap();
            let text = config.to_documented_toml();
            assert_eq!(Config::from_toml(&text, &[]).unwrap(), config);
            assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        }
    }

    #[test]
    fn every_key_has_a_comment() {
        for (preset, _) in PRESETS {
            let text = Config::load(preset, &[]).unwrap().to_documented_toml();
            let lines: Vec<&str> = text.lines().collect();
            for pair in lines.windows(2).filter(|pair| pair[1].contains(" = ")) {
                let is_comment = pair[0].starts_with("# ") || pair[1].starts_with('#');
                assert!(is_comment, "{preset}: {}", pair[1]);
            }
        }
    }
}
