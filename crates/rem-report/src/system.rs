//! The systems of a report: published ones and those of the user.

use std::path::PathBuf;

use rem_stats::baselines::{ABLATIONS, Baseline, Family, Published, SYSTEMS};
use rem_stats::{Scores, ScoresError};

use crate::error::{Error, Result};
use crate::run::{GameName, Run};

/// A system in a report.
#[derive(Clone, Debug)]
pub struct System {
    /// Its name, unique in a report.
    pub name: String,
    /// Its family of world models.
    pub family: Family,
    /// The source of its scores.
    pub(crate) origin: Origin,
    /// Scores on games of the benchmark, if it has any.
    pub scores: Option<Scores>,
}

/// The source of scores.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// Published scores.
    Published(&'static Baseline),
    /// A JSON file of scores.
    File(PathBuf),
    /// Runs, sorted by game and seed.
    Runs(Vec<Run>),
}

impl System {
    /// A system with published scores.
    pub(crate) fn published(baseline: &'static Baseline) -> Self {
        Self {
            name: baseline.name.into(),
            family: baseline.family,
            origin: Origin::Published(baseline),
            scores: Some(baseline.scores()),
        }
    }

    /// A system with these runs.
    pub(crate) fn of_runs(name: String, mut runs: Vec<Run>) -> Result<Self, ScoresError> {
        runs.sort_by_key(|run| (run.game.to_string(), run.seed, run.path.clone()));
        let mut lists: Vec<(String, Vec<f64>)> = Vec::new();
        for run in &runs {
            let (GameName::Benchmark(game), Some(score)) = (&run.game, run.score) else {
                continue;
            };
            match lists.iter_mut().find(|(title, _)| title == game.title()) {
                Some((_, scores)) => scores.push(score),
                None => lists.push((game.title().into(), vec![score])),
            }
        }
        let scores = (!lists.is_empty()).then(|| Scores::new(&name, lists));
        Ok(Self {
            name,
            family: Family::TokenBased,
            origin: Origin::Runs(runs),
            scores: scores.transpose()?,
        })
    }

    /// Its runs. Empty if the system is not from run directories.
    pub(crate) fn runs(&self) -> &[Run] {
        match &self.origin {
            Origin::Runs(runs) => runs,
            Origin::Published(_) | Origin::File(_) => &[],
        }
    }

    /// Whether the user provided it.
    pub(crate) fn is_yours(&self) -> bool {
        !matches!(self.origin, Origin::Published(_))
    }

    /// Whether only one mean per game is published, so that statistics of single runs cannot be computed.
    pub(crate) fn has_means_only(&self) -> bool {
        matches!(&self.origin, Origin::Published(baseline) if baseline.published == Published::Means)
    }
}

/// The systems of the paper's main table (Table 1), in its order.
const PAPER: [&str; 6] = ["simple", "dreamerv3", "twm", "storm", "iris", "rem"];

/// Published systems by name, or by group: `paper` (Table 1), `ablations` (Table 9), `all` (all but the ablations), `none`.
pub fn published(names: &[String]) -> Result<Vec<System>> {
    let mut found: Vec<&'static Baseline> = Vec::new();
    for name in names {
        for baseline in named(name)? {
            if !found.iter().any(|other| other.name == baseline.name) {
                found.push(baseline);
            }
        }
    }
    Ok(found.into_iter().map(System::published).collect())
}

fn named(name: &str) -> Result<Vec<&'static Baseline>> {
    let wanted = search_key(name);
    let by_key = |key: &str| every().find(|baseline| search_key(baseline.key()) == search_key(key));
    Ok(match wanted.as_str() {
        "none" => Vec::new(),
        "all" => SYSTEMS.iter().collect(),
        "paper" => PAPER.iter().filter_map(|key| by_key(key)).collect(),
        "ablations" => ["rem", "iris"]
            .iter()
            .filter_map(|key| by_key(key))
            .chain(ABLATIONS)
            .collect(),
        _ => {
            let found =
                every().find(|b| search_key(b.key()) == wanted || search_key(b.name) == wanted);
            vec![found.ok_or_else(|| unknown(name))?]
        }
    })
}

fn every() -> impl Iterator<Item = &'static Baseline> {
    SYSTEMS.iter().chain(ABLATIONS)
}

fn unknown(name: &str) -> Error {
    let keys: Vec<_> = every().map(Baseline::key).collect();
    let distance = |key: &&&str| strsim::damerau_levenshtein(&search_key(name), &search_key(key));
    let nearest = keys
        .iter()
        .min_by_key(distance)
        .filter(|key| distance(key) <= 2);
    let all = format!(
        "choose from {}, or from the groups paper, ablations, all, none",
        keys.join(", ")
    );
    Error::UnknownBaseline {
        name: name.into(),
        hint: nearest.map_or(all, |key| format!("did you mean `{key}`?")),
    }
}

/// Only letters and digits, in lower case.
fn search_key(name: &str) -> String {
    let name = name.replace('Δ', "delta");
    name.chars()
        .filter(|letter| letter.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(asked: &[&str]) -> Vec<String> {
        let asked: Vec<_> = asked.iter().map(|name| (*name).to_owned()).collect();
        published(&asked)
            .unwrap()
            .into_iter()
            .map(|system| system.name)
            .collect()
    }

    #[test]
    fn systems_are_found_by_any_spelling_and_by_group() {
        assert_eq!(
            names(&["REM", "Δ-IRIS", "delta_iris", "no-pop"]),
            ["REM", "Δ-IRIS", "No POP"]
        );
        assert_eq!(names(&["paper"]).len(), 6);
        assert_eq!(names(&["ablations"])[..3], ["REM", "IRIS", "No POP"]);
        assert_eq!(names(&["ablations"]).len(), 7);
        assert_eq!(names(&["all", "rem"]).len(), SYSTEMS.len());
        assert!(names(&["none"]).is_empty());
    }

    #[test]
    fn the_hint_for_an_unknown_system_is_the_nearest_name_or_all() {
        let hint = |name: &str| published(&[name.to_owned()]).unwrap_err().hint();
        assert_eq!(hint("strom"), "did you mean `storm`?");
        assert!(hint("muzero-unplugged").starts_with("choose from rem, iris, delta-iris, "));
    }
}
