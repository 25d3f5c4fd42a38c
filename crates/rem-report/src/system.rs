//! What is compared: published systems, and those that the user brings.

use std::path::PathBuf;

use rem_stats::baselines::{ABLATIONS, Baseline, Family, Published, SYSTEMS};
use rem_stats::{Scores, ScoresError};

use crate::error::{Error, Result};
use crate::run::{GameName, Run};

#[derive(Clone, Debug)]
pub struct System {
    pub name: String,
    pub family: Family,
    pub origin: Origin,
    /// On games of the benchmark, if it has any of them.
    pub scores: Option<Scores>,
}

#[derive(Clone, Debug)]
pub enum Origin {
    Published(&'static Baseline),
    /// A JSON of scores.
    File(PathBuf),
    /// By game and seed.
    Runs(Vec<Run>),
}

impl System {
    pub fn published(baseline: &'static Baseline) -> Self {
        Self {
            name: baseline.name.into(),
            family: baseline.family,
            origin: Origin::Published(baseline),
            scores: Some(baseline.scores()),
        }
    }

    pub fn of_runs(name: String, mut runs: Vec<Run>) -> Result<Self, ScoresError> {
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

    pub fn runs(&self) -> &[Run] {
        match &self.origin {
            Origin::Runs(runs) => runs,
            Origin::Published(_) | Origin::File(_) => &[],
        }
    }

    /// Brought by the user.
    pub fn is_yours(&self) -> bool {
        !matches!(self.origin, Origin::Published(_))
    }

    /// There is one number a game, for all runs: what looks at single runs cannot be computed.
    pub fn has_means_only(&self) -> bool {
        matches!(&self.origin, Origin::Published(baseline) if baseline.published == Published::Means)
    }
}

/// The systems of the paper's main table, in its order.
const PAPER: [&str; 6] = ["simple", "dreamerv3", "twm", "storm", "iris", "rem"];

/// Published systems by name: single ones, `paper` for those of the paper's main table, `ablations` for those of its
/// ablation table, `all` for all whole systems, `none`.
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
    let plain = plain(name);
    let by_key =
        |key: &str| every().find(|baseline| self::plain(baseline.key()) == self::plain(key));
    Ok(match plain.as_str() {
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
                every().find(|b| self::plain(b.key()) == plain || self::plain(b.name) == plain);
            vec![found.ok_or_else(|| unknown(name))?]
        }
    })
}

fn every() -> impl Iterator<Item = &'static Baseline> {
    SYSTEMS.iter().chain(ABLATIONS)
}

fn unknown(name: &str) -> Error {
    let keys: Vec<_> = every().map(Baseline::key).collect();
    let distance = |key: &&&str| strsim::damerau_levenshtein(&plain(name), &plain(key));
    let nearest = keys
        .iter()
        .min_by_key(distance)
        .filter(|key| distance(key) <= 2);
    let all = format!(
        "there are {}; and `paper`, `ablations`, `all`, `none`",
        keys.join(", ")
    );
    Error::UnknownBaseline {
        name: name.into(),
        hint: nearest.map_or(all, |key| format!("did you mean `{key}`?")),
    }
}

fn plain(name: &str) -> String {
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
    fn systems_by_any_spelling_and_in_groups() {
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
    fn an_unknown_system_is_answered_by_the_nearest_or_by_all() {
        let hint = |name: &str| published(&[name.to_owned()]).unwrap_err().hint();
        assert_eq!(hint("strom"), "did you mean `storm`?");
        assert!(hint("muzero-unplugged").starts_with("there are rem, iris, delta-iris, "));
    }
}
