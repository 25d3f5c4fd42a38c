//! JSON files.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::files;

/// Reads a JSON file. `None` if it does not exist. `hint` tells the user what to do about invalid content.
///
/// # Errors
///
/// If the file cannot be read or its content is invalid. The message names the file and the key:
/// ``` `run/scores.json`: `final.mean`: invalid type ```.
pub fn read_json<T: DeserializeOwned>(path: &Path, hint: &'static str) -> Result<Option<T>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            let path = path.into();
            return Err(Error::Read { path, source });
        }
    };
    let invalid = |reason: String| Error::Invalid {
        path: path.into(),
        reason,
        hint,
    };
    let mut json = serde_json::Deserializer::from_str(&text);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        invalid(match error.path().to_string().as_str() {
            "." | "?" => error.inner().to_string(),
            key => format!("`{key}`: {}", error.inner()),
        })
    })?;
    json.end().map_err(|error| invalid(error.to_string()))?;
    Ok(Some(value))
}

/// Replaces a file atomically with `value` as indented JSON and a final newline.
///
/// # Errors
///
/// If the file cannot be written.
///
/// # Panics
///
/// If `value` cannot be represented in JSON, such as a map whose keys are not strings.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value).expect("the value is valid JSON");
    text.push('\n');
    files::write_atomic(path, text.as_bytes()).map_err(Error::Write)
}
