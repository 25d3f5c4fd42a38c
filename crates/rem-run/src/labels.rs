//! `labels.json`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::json::{read_json, write_json};
use crate::layout;

/// What people call a run, and what they noted about it: `labels.json`. Training neither reads nor writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Labels {
    /// A name to show instead of that of the directory.
    pub name: Option<String>,
    /// Words to find and group runs by.
    pub tags: Vec<String>,
    /// Free text.
    pub notes: String,
}

const HINT: &str = "labels are only for people; correct this file or delete it";

impl Labels {
    /// The labels of the run in `dir`. Empty if it has none.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is invalid.
    pub fn read(dir: &Path) -> Result<Self> {
        Ok(read_json(&dir.join(layout::LABELS), HINT)?.unwrap_or_default())
    }

    /// Replaces `labels.json` in `dir`.
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
    fn a_run_without_the_file_or_with_parts_of_it_has_empty_labels() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Labels::read(dir.path()).unwrap(), Labels::default());
        std::fs::write(dir.path().join("labels.json"), r#"{"tags": ["ablation"]}"#).unwrap();
        let labels = Labels::read(dir.path()).unwrap();
        assert_eq!(
            (labels.name, &labels.tags[..]),
            (None, &["ablation".to_owned()][..])
        );
        std::fs::write(dir.path().join("labels.json"), r#"{"tags": "ablation"}"#).unwrap();
        let error = Labels::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("`tags`: invalid type"), "{error}");
    }

    #[test]
    fn written_labels_are_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let labels = Labels {
            name: Some("longer horizon".into()),
            tags: vec!["horizon".into(), "paper".into()],
            notes: "compare with seed 2".into(),
        };
        labels.write(dir.path()).unwrap();
        assert_eq!(Labels::read(dir.path()).unwrap(), labels);
    }
}
