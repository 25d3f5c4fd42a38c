//! Minari data sets: HDF5, which the user's Python reads with h5py.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::error::PythonError;
use super::interpreter::interpreter;
use super::process;
use super::worker::{one_line, shared_dir};

/// The HDF5 file of a data set: the file itself, or that in a data set's directory. `None` for anything else.
pub fn file(source: &Path) -> Option<PathBuf> {
    let extension = source.extension().and_then(|extension| extension.to_str());
    if matches!(extension, Some("hdf5" | "h5")) {
        return Some(source.into());
    }
    let inside = ["data/main_data.hdf5", "main_data.hdf5"].map(|name| source.join(name));
    inside.into_iter().find(|path| path.is_file())
}

/// What the script prints when it fails.
#[derive(Deserialize)]
struct Failure {
    r#type: String,
    message: String,
}

/// Writes a NumPy file per episode into a directory, which must not exist.
///
/// # Errors
/// If Python or h5py is missing, or the file is no data set of images and discrete actions.
pub fn to_npz(hdf5: &Path, dir: &Path) -> Result<(), PythonError> {
    let python = interpreter();
    let source = shared_dir().map_err(PythonError::Files)?;
    process::write_source(source.path()).map_err(PythonError::Files)?;
    let output = Command::new(&python)
        .args(["-m", "rem_env.minari"])
        .args([hdf5, dir])
        .env("PYTHONPATH", process::python_path(source.path()))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| PythonError::Start {
            path: python.clone(),
            error,
        })?;
    if output.status.success() {
        return Ok(());
    }
    let name = hdf5.display().to_string();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("No module named 'h5py'") || stderr.contains("No module named 'numpy'") {
        let module = if stderr.contains("'h5py'") {
            "h5py"
        } else {
            "numpy"
        };
        return Err(PythonError::Missing {
            name,
            module: module.into(),
            python,
        });
    }
    let failure: Option<Failure> = serde_json::from_slice(&output.stdout).ok();
    Err(match failure {
        Some(Failure { r#type, message }) => PythonError::Raised {
            name,
            call: "its conversion",
            kind: r#type,
            message: one_line(&message),
            traceback: String::new(),
        },
        None => PythonError::Died {
            name,
            call: "its conversion",
            status: output.status.to_string(),
            output: stderr.trim().into(),
        },
    })
}
