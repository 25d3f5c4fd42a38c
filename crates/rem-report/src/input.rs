//! Reads the inputs of a report.

use std::path::{Path, PathBuf};

use rem_run::layout;
use rem_stats::Scores;
use rem_stats::baselines::Family;

use crate::error::{Error, Result};
use crate::run::{Run, is_scores_of_run, name_of_parent};
use crate::system::{Origin, System};

/// Depth below a directory to search for runs.
const MAX_DEPTH: usize = 3;

/// The systems of the user, and notes from reading them.
#[derive(Debug, Default)]
pub struct Inputs {
    pub systems: Vec<System>,
    pub notes: Vec<String>,
}

/// Reads runs, directories of runs and JSON files of scores. `NAME=PATH` names the system.
///
/// A JSON file is a system with the name of the file. Runs in the same directory form a system with the name of the directory.
pub fn read(arguments: &[PathBuf]) -> Result<Inputs> {
    let mut reader = Reader::default();
    for argument in arguments {
        let (name, path) = split(argument);
        reader.read(name, &path)?;
    }
    reader.finish()
}

/// Marks the systems with these names as not token-based.
pub fn mark_not_token_based(systems: &mut [System], names: &[String]) -> Result<()> {
    for name in names {
        let system = systems
            .iter_mut()
            .find(|system| system.name.eq_ignore_ascii_case(name));
        match system {
            Some(system) => system.family = Family::Other,
            None => {
                let names: Vec<_> = systems
                    .iter()
                    .map(|system| format!("`{}`", system.name))
                    .collect();
                return Err(Error::UnknownSystem {
                    name: name.clone(),
                    hint: match names.is_empty() {
                        true => "no runs or score files were given".into(),
                        false => format!("your systems are {}", names.join(", ")),
                    },
                });
            }
        }
    }
    Ok(())
}

/// Splits `NAME=PATH`, unless a file with that whole name exists.
fn split(argument: &Path) -> (Option<String>, PathBuf) {
    let named = argument
        .to_str()
        .filter(|_| !argument.exists())
        .and_then(|text| text.split_once('='));
    match named {
        Some((name, path)) if !name.is_empty() && !path.is_empty() && !name.contains('/') => {
            (Some(name.into()), path.into())
        }
        _ => (None, argument.into()),
    }
}

#[derive(Default)]
struct Reader {
    /// In the order of the command line.
    found: Vec<Found>,
    notes: Vec<String>,
}

enum Found {
    Scores(String, PathBuf, Scores),
    Runs(String, Vec<Run>),
}

impl Reader {
    fn read(&mut self, name: Option<String>, path: &Path) -> Result<()> {
        let metadata = std::fs::metadata(path).map_err(Error::file("read", path))?;
        if metadata.is_dir() {
            return self.read_dir(name, path);
        }
        let text = std::fs::read_to_string(path).map_err(Error::file("read", path))?;
        let is_of_run = path.file_name().is_some_and(|file| file == layout::SCORES);
        if is_of_run && is_scores_of_run(&text) {
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
            return self.add_run(name, dir.unwrap_or(Path::new(".")));
        }
        let scores = Scores::from_json(&path.display().to_string(), &text)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = name.unwrap_or_else(|| stem.into_owned());
        self.found.push(Found::Scores(name, path.into(), scores));
        Ok(())
    }

    fn read_dir(&mut self, name: Option<String>, dir: &Path) -> Result<()> {
        if layout::is_run(dir) {
            return self.add_run(name, dir);
        }
        let mut runs = Vec::new();
        find_runs(dir, MAX_DEPTH, &mut runs)?;
        if runs.is_empty() {
            return Err(Error::Input {
                path: dir.into(),
                reason: "no runs in this directory".into(),
                hint: "pass a run of `rem train`, a directory of runs, or a JSON file of scores"
                    .into(),
            });
        }
        for run in runs {
            self.add_run(name.clone(), &run)?;
        }
        Ok(())
    }

    fn add_run(&mut self, name: Option<String>, dir: &Path) -> Result<()> {
        let name = name.unwrap_or_else(|| name_of_parent(dir));
        let place = dir.canonicalize().map_err(Error::file("read", dir))?;
        let known = self.found.iter().any(|found| match found {
            Found::Runs(_, runs) => runs.iter().any(|run| run.path == place),
            Found::Scores(..) => false,
        });
        if known {
            self.notes
                .push(format!("{} is given twice and counts once", dir.display()));
            return Ok(());
        }
        let Some(mut run) = Run::read(dir)? else {
            self.notes.push(format!(
                "{} has no scores yet and is left out",
                dir.display()
            ));
            return Ok(());
        };
        run.path = place;
        for found in &mut self.found {
            if let Found::Runs(other, runs) = found
                && *other == name
            {
                runs.push(run);
                return Ok(());
            }
        }
        self.found.push(Found::Runs(name, vec![run]));
        Ok(())
    }

    fn finish(self) -> Result<Inputs> {
        let systems = self.found.into_iter().map(|found| {
            Ok(match found {
                Found::Scores(name, file, scores) => System {
                    name,
                    family: Family::TokenBased,
                    origin: Origin::File(file),
                    scores: Some(scores),
                },
                Found::Runs(name, runs) => System::of_runs(name, runs)?,
            })
        });
        Ok(Inputs {
            systems: systems.collect::<Result<_>>()?,
            notes: self.notes,
        })
    }
}

/// Collects the run directories below `dir`, sorted by name.
fn find_runs(dir: &Path, depth: usize, runs: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(dir).map_err(Error::file("read", dir))?;
    let mut inside: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::file("read", dir))?;
        inside.push(entry.path());
    }
    inside.sort();
    for path in inside.into_iter().filter(|path| path.is_dir()) {
        if layout::is_run(&path) {
            runs.push(path);
        } else if depth > 1 {
            find_runs(&path, depth - 1, runs)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn run(dir: &Path, game: &str, seed: u64, score: f64) {
        fs::create_dir_all(dir).unwrap();
        let score =
            format!(r#"{{"epoch": 2, "steps": 100, "mean": {score}, "returns": [{score}]}}"#);
        let scores = format!(
            r#"{{"game": "{game}", "seed": {seed}, "evaluations": [{score}], "final": {score}}}"#
        );
        fs::write(dir.join("scores.json"), scores).unwrap();
    }

    fn names(inputs: &Inputs) -> Vec<&str> {
        inputs
            .systems
            .iter()
            .map(|system| system.name.as_str())
            .collect()
    }

    #[test]
    fn runs_in_the_same_folder_form_a_system() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        run(&at("rem/pong-1"), "pong", 1, 3.0);
        run(&at("rem/pong-2"), "pong", 2, 5.0);
        run(&at("variant/catch-1"), "catch", 1, 1.0);
        let all = read(&[place.path().into()]).unwrap();
        assert_eq!(names(&all), ["rem", "variant"]);
        let pong = rem_stats::Game::named("pong").unwrap();
        assert_eq!(
            all.systems[0].scores.as_ref().unwrap().of(pong),
            Some(&[3.0, 5.0][..])
        );
        assert!(all.systems[1].scores.is_none());

        let single = read(&[at("rem/pong-2"), at("rem/pong-1/scores.json")]).unwrap();
        assert_eq!(names(&single), ["rem"]);
        assert_eq!(single.systems[0].runs()[0].seed, 1);

        let twice = read(&[at("rem"), at("rem/pong-1")]).unwrap();
        assert_eq!(twice.systems[0].runs().len(), 2);
        assert!(twice.notes[0].ends_with("is given twice and counts once"));
    }

    #[test]
    fn name_equals_path_names_a_system() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("a=b.json");
        fs::write(&file, r#"{"Pong": [1]}"#).unwrap();
        assert_eq!(names(&read(std::slice::from_ref(&file)).unwrap()), ["a=b"]);
        let named = PathBuf::from(format!("mine={}", file.display()));
        assert_eq!(names(&read(&[named]).unwrap()), ["mine"]);
    }

    #[test]
    fn missing_paths_and_folders_without_runs_are_rejected() {
        let place = tempfile::tempdir().unwrap();
        let error = read(&[place.path().join("absent")]).unwrap_err();
        assert!(error.to_string().starts_with("cannot read `"), "{error}");
        assert_eq!(error.hint(), "check the path");
        let error = read(&[place.path().into()]).unwrap_err();
        assert!(
            error.to_string().ends_with("no runs in this directory"),
            "{error}"
        );
    }
}
