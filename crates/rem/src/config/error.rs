//! The error of a config that cannot be used.

use std::fmt::Display;
use std::path::Path;

/// A config that cannot be used, and how to change it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    message: String,
    hint: String,
    /// The key with the wrong value.
    key: Option<String>,
    /// The line of a file, from 1.
    line: Option<usize>,
}

impl ConfigError {
    /// What is wrong, and what to do about it.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
            key: None,
            line: None,
        }
    }

    /// A key with a value that it cannot have.
    pub(super) fn of_key(key: &str, value: &dyn Display, must: &str) -> Self {
        let how = match key {
            "seed" | "device" | "threads" => format!("--{key} …"),
            key => format!("--set {key}=…"),
        };
        Self {
            key: Some(key.into()),
            ..Self::new(
                format!("`{key} = {value}`: {must}"),
                format!("change it with `{how}`"),
            )
        }
    }

    /// The same with another hint.
    pub(super) fn with_hint(self, hint: String) -> Self {
        Self { hint, ..self }
    }

    /// The same for a key.
    pub(super) fn with_key(self, key: &str) -> Self {
        let key = Some(key.into());
        Self { key, ..self }
    }

    /// The same for a line of a file.
    pub(super) fn with_line(self, line: Option<usize>) -> Self {
        Self { line, ..self }
    }

    /// The key with the wrong value, if it is one.
    pub(super) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The error for the config of a run, with its file and, where known, the line.
    pub(crate) fn in_run(self, file: &Path) -> Self {
        let file = file.display();
        match self.line {
            Some(line) => Self::new(
                format!("`{file}` line {line}: {}", self.message),
                "a run keeps the config that it was started with: restore the file from a backup",
            ),
            None => Self::new(format!("`{file}`: {}", self.message), self.hint),
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}
