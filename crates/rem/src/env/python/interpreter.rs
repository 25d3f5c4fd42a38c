//! Which Python runs the workers.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Depends on the machine and is not part of a run's config.
static INTERPRETER: OnceLock<PathBuf> = OnceLock::new();

/// Sets the Python that runs environments. Only the first call has an effect.
pub fn set_interpreter(path: PathBuf) {
    let _ = INTERPRETER.set(path);
}

/// The Python that runs environments: that of [`set_interpreter`], or of the active virtual environment, or `python3`.
pub fn interpreter() -> PathBuf {
    let active = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let set = INTERPRETER.get().cloned();
    choose(set, active.as_deref())
}

fn choose(set: Option<PathBuf>, active: Option<&Path>) -> PathBuf {
    let of_active = |dir: &Path| match cfg!(windows) {
        true => dir.join("Scripts").join("python.exe"),
        false => dir.join("bin").join("python"),
    };
    set.or_else(|| {
        active
            .filter(|dir| !dir.as_os_str().is_empty())
            .map(of_active)
    })
    .unwrap_or_else(|| "python3".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_wins_over_the_virtual_environment_over_python3() {
        let active = Some(Path::new("/venv"));
        let set = Some(PathBuf::from("/opt/python"));
        assert_eq!(choose(set, active), Path::new("/opt/python"));
        assert!(choose(None, active).starts_with("/venv"));
        assert_eq!(choose(None, Some(Path::new(""))), Path::new("python3"));
        assert_eq!(choose(None, None), Path::new("python3"));
    }
}
