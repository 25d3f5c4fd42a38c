//! The error of a config that cannot be used.

/// A config that cannot be used, and how to change it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    message: String,
    hint: String,
}

impl ConfigError {
    /// What is wrong, and what to do about it.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}
