//! `docs/reference/config.md`, generated from the config's types and doc comments.

use std::path::Path;

use super::Config;
use super::docs::keys;

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
    let value = |values: &[(String, String)], key: &str| {
        let found = values.iter().find(|(name, _)| name == key);
        found.map_or("–".to_string(), |(_, value)| format!("`{value}`"))
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

/// The values of a preset, by key.
fn values(preset: &str) -> Vec<(String, String)> {
    let settings = Config::load(preset, &[]).unwrap().settings();
    let values = settings.into_iter().filter(|(_, value)| !value.is_table());
    values
        .map(|(key, value)| (key, value.to_string()))
        .collect()
}
