//! Variants that a file lists: parts of a recipe to leave out, or anything else that takes several settings.

use std::path::Path;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::grid::check_key;

/// A variant of a study: a name, and the settings in which it differs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedVariant {
    /// Its name.
    pub name: String,
    /// `key=value`, over those of all runs.
    pub set: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VariantsFile {
    variant: Vec<NamedVariant>,
}

impl NamedVariant {
    /// Reads the variants of a TOML file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is not of that form, or sets a key that a study sets itself.
    pub fn read(path: &Path) -> Result<Vec<Self>> {
        let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
        Self::parse(&text, &path.display().to_string())
    }

    fn parse(text: &str, file: &str) -> Result<Vec<Self>> {
        let malformed = |reason: &str| {
            let hint = "it has tables such as `[[variant]]`, `name = \"no-dropout\"`, `set = [\"world_model.dropout=0.0\"]`";
            Error::argument(format!("`{file}`: {reason}"), hint)
        };
        let parsed: Result<VariantsFile, _> = toml::from_str(text);
        let variants = parsed
            .map_err(|error| malformed(error.message().trim()))?
            .variant;
        if variants.is_empty() {
            return Err(malformed("it has no variant"));
        }
        for variant in &variants {
            if variant.name.is_empty() {
                return Err(malformed("a variant has an empty name"));
            }
            for assignment in &variant.set {
                let key = assignment.split('=').next().unwrap_or_default();
                check_key(key.trim(), "--variants")?;
            }
        }
        Ok(variants)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_in_the_order_of_the_file() {
        let text = r#"
            [[variant]]
            name = "whole"
            set = []
            [[variant]]
            name = "no-dropout"
            set = ["world_model.dropout=0.0", "precision=f32"]
        "#;
        let variants = NamedVariant::parse(text, "parts.toml").unwrap();
        let names: Vec<&str> = variants.iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names, ["whole", "no-dropout"]);
        assert_eq!(variants[1].set.len(), 2);
    }

    #[test]
    fn files_of_another_form_are_rejected() {
        for (text, part) in [
            ("variant = []", "no variant"),
            ("[[variant]]\nname = \"\"\nset = []", "empty name"),
            ("[[variant]]\nname = \"a\"", "missing field `set`"),
            (
                "[[variant]]\nname = \"a\"\nsets = []",
                "unknown field `sets`",
            ),
            ("a = ", "`parts.toml`: "),
        ] {
            let error = NamedVariant::parse(text, "parts.toml").unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
            assert!(error.hint().unwrap().contains("[[variant]]"));
        }
        let seed = "[[variant]]\nname = \"a\"\nset = [\"seed=3\"]";
        let error = NamedVariant::parse(seed, "parts.toml").unwrap_err();
        assert_eq!(error.hint().unwrap(), "pass `--seeds`");
    }
}
