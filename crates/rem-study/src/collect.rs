//! The scores of a study, by game.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rem::run::Scores;
use rem_run::files;
use rem_stats::Game;

use crate::error::{Error, Result};
use crate::study::Study;

/// What [`collect`] found and wrote.
#[derive(Debug, Default)]
pub struct Collected {
    /// A file of scores for each variant with finished runs.
    pub files: Vec<PathBuf>,
    /// The directories of the runs that have scores, finished or not.
    pub runs: Vec<PathBuf>,
    /// The names of the runs without a final score.
    pub missing: Vec<String>,
}

/// The final scores of a study.
#[derive(Debug, Default)]
pub(crate) struct FinalScores {
    /// The mean return of each finished run, by its index in the manifest.
    pub(crate) means: BTreeMap<usize, f64>,
    /// The directories of the runs that have scores, finished or not.
    pub(crate) runs: Vec<PathBuf>,
    /// The names of the runs without a final score.
    pub(crate) missing: Vec<String>,
}

impl FinalScores {
    /// Fails if no run is finished, or the scores of a run are damaged.
    pub(crate) fn read(study: &Study) -> Result<Self> {
        let mut found = Self::default();
        for (i, run) in study.manifest.runs.iter().enumerate() {
            let dir = study.run_dir(i);
            let of_run = Scores::read(&dir)?;
            if of_run.is_some() {
                found.runs.push(dir);
            }
            match of_run.and_then(|scores| scores.final_score) {
                Some(last) => {
                    found.means.insert(i, last.mean);
                }
                None => found.missing.push(run.name.clone()),
            }
        }
        if found.means.is_empty() {
            return Err(Error::Study {
                path: study.dir().into(),
                reason: "no run is finished yet".into(),
                hint: format!("`rem sweep status {}` lists them", study.dir().display()),
            });
        }
        Ok(found)
    }
}

/// Writes the final scores of each variant as JSON, in the form in which the scores of other agents are published:
/// `{"Pong": [20.5, 18.0], …}`, one number per seed. Files of an earlier call are replaced.
///
/// # Errors
///
/// If no run is finished, the scores of a run are damaged, or a file cannot be written.
pub fn collect(study: &Study) -> Result<Collected> {
    let found = FinalScores::read(study)?;
    // Scores by game, by variant. Runs are in the order of their seeds.
    let mut scores: BTreeMap<String, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
    for (i, mean) in &found.means {
        let run = &study.manifest.runs[*i];
        let variant = run.variant.clone().unwrap_or_else(|| study.name());
        let games = scores.entry(variant).or_default();
        games.entry(title(&run.game)).or_default().push(*mean);
    }
    let mut files_written = Vec::new();
    let dir = study.scores_dir();
    std::fs::create_dir_all(&dir).map_err(Error::io(&dir))?;
    for (variant, games) in scores {
        let file = dir.join(format!("{variant}.json"));
        files::write_atomic(&file, to_json(&games).as_bytes()).map_err(rem::Error::File)?;
        files_written.push(file);
    }
    Ok(Collected {
        files: files_written,
        runs: found.runs,
        missing: found.missing,
    })
}

/// The name of a game as in papers. Built-in games keep theirs.
fn title(game: &str) -> String {
    Game::named(game).map_or_else(|| game.into(), |game| game.title().into())
}

/// One line per game.
fn to_json(games: &BTreeMap<String, Vec<f64>>) -> String {
    let line = |(game, scores): (&String, &Vec<f64>)| {
        let scores: Vec<String> = scores
            .iter()
            .map(|score| serde_json::to_string(score).expect("a number is valid JSON"))
            .collect();
        let game = serde_json::to_string(game).expect("a string is valid JSON");
        format!("  {game}: [{}]", scores.join(", "))
    };
    let lines: Vec<String> = games.iter().map(line).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Plan;
    use rem::run::Score;
    use std::fs;

    pub(crate) fn finish(study: &Study, run: usize, mean: f64) {
        let dir = study.run_dir(run);
        fs::create_dir_all(&dir).unwrap();
        let entry = &study.manifest.runs[run];
        let score = Score {
            epoch: 4,
            steps: 9,
            mean,
            returns: vec![mean as f32],
        };
        let scores = Scores {
            game: entry.game.clone(),
            seed: entry.seed,
            evaluations: vec![score.clone()],
            final_score: Some(score),
        };
        scores.write(&dir).unwrap();
    }

    #[test]
    fn scores_of_a_partial_study_are_in_the_form_of_published_scores() {
        let parent = tempfile::tempdir().unwrap();
        let plan = Plan {
            preset: Some("debug".into()),
            games: Some("pong,ms_pacman".into()),
            seeds: "1..2".into(),
            ..Plan::default()
        };
        let study = Study::create(&parent.path().join("mine"), plan.manifest().unwrap()).unwrap();
        let error = collect(&study).unwrap_err();
        assert!(
            error.to_string().ends_with("no run is finished yet"),
            "{error}"
        );
        // pong-seed1, ms_pacman-seed1, pong-seed2.
        for (run, mean) in [(0, 20.5), (1, 743.0), (2, -3.25)] {
            finish(&study, run, mean);
        }
        let found = collect(&study).unwrap();
        assert_eq!(found.missing, ["ms_pacman-seed2"]);
        assert_eq!(found.runs.len(), 3);
        assert_eq!(found.files, [study.dir().join("scores/mine.json")]);
        let text = fs::read_to_string(&found.files[0]).unwrap();
        assert_eq!(
            text,
            "{\n  \"MsPacman\": [743.0],\n  \"Pong\": [20.5, -3.25]\n}\n"
        );
        // `rem report` reads it.
        let read = rem_stats::Scores::from_json("mine.json", &text).unwrap();
        let pong = Game::named("pong").unwrap();
        assert_eq!(read.of(pong), Some(&[20.5, -3.25][..]));
    }
}
