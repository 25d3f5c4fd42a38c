//! `docs/reference/config.md`, generated from the config's types and doc comments.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::schema_for;
use serde_json::Value as Json;

use super::Config;

/// A key of the config.
struct Key {
    path: String,
    kind: String,
    description: String,
}

/// Set `REM_UPDATE_DOCS=1` to rewrite the page.
#[test]
fn reference_page_is_current() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/config.md");
    let expected = reference();
    if std::env::var_os("REM_UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(page.parent().unwrap()).unwrap();
        std::fs::write(&page, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        found == expected,
        "docs/reference/config.md is out of date: run `REM_UPDATE_DOCS=1 cargo test --release -p rem reference_page`"
    );
}

#[test]
fn every_key_has_a_description() {
    for key in keys() {
        assert!(
            key.description.ends_with('.') && key.description.len() > 3,
            "config key `{}` has no doc comment, or one that is not a sentence: `{}`",
            key.path,
            key.description
        );
    }
}

#[test]
fn every_value_of_a_config_has_a_row() {
    let known: Vec<String> = keys().into_iter().map(|key| key.path).collect();
    for preset in ["atari100k", "quick", "atari-laptop", "iris"] {
        for (key, _) in values(preset) {
            assert!(known.contains(&key), "`{key}` of {preset} has no row");
        }
    }
}

fn reference() -> String {
    let (paper, quick) = (values("atari100k"), values("quick"));
    let value = |values: &BTreeMap<String, String>, key: &str| {
        let found = values.get(key);
        found.map_or("–".to_string(), |value| format!("`{value}`"))
    };
    let mut page = String::from(
        "# Config keys\n\n\
         <!-- Generated from crates/rem/src/config; do not edit. -->\n\n\
         `atari100k` has the published program's settings and is the base of all other presets; `paper-text` has those of the paper's text. `quick` is the default of `rem train`; its \
         column is empty where it has the same value. `rem config PRESET` prints a preset with every key, and \
         `--set KEY=VALUE` changes one. A key marked with the name of a variant exists only in that variant: choose it with \
         `--set tokenizer.encoder=whitened_patches`.\n",
    );
    let mut section = None;
    for key in keys() {
        let of = key.path.split_once('.').map_or("", |(of, _)| of);
        if section.as_deref() != Some(of) {
            let title = if of.is_empty() { "General" } else { of };
            page += &format!("\n## {title}\n\n| key | type | `atari100k` | `quick` | meaning |\n");
            page += "| --- | --- | --- | --- | --- |\n";
            section = Some(of.to_string());
        }
        let base = value(&paper, &key.path);
        let default = Some(value(&quick, &key.path)).filter(|value| *value != base);
        page += &format!(
            "| `{}` | {} | {base} | {} | {} |\n",
            key.path,
            key.kind,
            default.unwrap_or_default(),
            key.description.replace('|', "\\|")
        );
    }
    page
}

/// All keys in the order of the types' fields, those without a section first.
fn keys() -> Vec<Key> {
    let schema = serde_json::to_value(schema_for!(Config)).unwrap();
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

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The values of a preset, by key.
fn values(preset: &str) -> BTreeMap<String, String> {
    Config::load(preset, &[]).unwrap().values()
}
