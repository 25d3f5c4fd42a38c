//! `labels.json`: what the user says about a run.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::json::{read_json, write_json};
use crate::layout;

/// A name, tags and a note: `labels.json`, which training neither reads nor writes. A run without labels has no such file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Labels {
    /// A name besides that of the directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Words to filter by.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// Any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

const HINT: &str = "`rem runs label` writes this file; mend it, or delete it";

impl Labels {
    /// The labels of the run in `dir`; empty ones if it has no such file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is invalid.
    pub fn read(dir: &Path) -> Result<Self> {
        Ok(read_json(&dir.join(layout::LABELS), HINT)?.unwrap_or_default())
    }

    /// Replaces the labels of the run in `dir`.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<()> {
        write_json(&dir.join(layout::LABELS), self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_read_back_and_are_optional() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Labels::read(dir.path()).unwrap(), Labels::default());
        let labels = Labels {
            name: Some("baseline".into()),
            tags: ["paper", "old"].map(String::from).into(),
            note: None,
        };
        labels.write(dir.path()).unwrap();
        assert_eq!(Labels::read(dir.path()).unwrap(), labels);
        std::fs::write(dir.path().join(layout::LABELS), r#"{"tags": 3}"#).unwrap();
        let error = Labels::read(dir.path()).unwrap_err();
        assert!(error.to_string().contains("`tags`"), "{error}");
    }
}
