//! Variants of a study against one of them.

use rem_stats::{Bootstrap, Estimate};
use serde::Serialize;
use toml::{Table, Value};

use crate::collect::FinalScores;
use crate::error::{Error, Result};
use crate::study::Study;

/// The variants of a study, game by game.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The variant that the others are compared with.
    pub baseline: String,
    /// The games, in the order of the study.
    pub games: Vec<GameComparison>,
    /// The names of the runs without a final score.
    pub missing: Vec<String>,
}

/// The variants on one game.
#[derive(Debug, Serialize)]
pub struct GameComparison {
    /// The game.
    pub game: String,
    /// The variants with finished runs, in the order of the study.
    pub variants: Vec<VariantScores>,
}

/// The scores of a variant on a game.
#[derive(Debug, Serialize)]
pub struct VariantScores {
    /// The variant.
    pub name: String,
    /// Where its config differs from that of the study's first run: `key=value`.
    pub settings: Vec<String>,
    /// The final score of each seed.
    pub scores: Vec<f64>,
    /// Their mean.
    pub mean: Number,
    /// The mean minus that of the baseline. `None` for the baseline itself, or if it has no score.
    pub difference: Option<Number>,
}

/// A number with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Number {
    /// The number.
    pub value: f64,
    /// Lower and upper bound; `None` of a single run.
    pub interval: Option<[f64; 2]>,
}

impl From<Estimate> for Number {
    fn from(estimate: Estimate) -> Self {
        let interval = estimate
            .interval
            .map(|interval| [interval.low, interval.high]);
        Self {
            value: estimate.value,
            interval,
        }
    }
}

/// Compares the final scores of all variants with those of `baseline`, by default the first one. Intervals have this number
/// of bootstrap replicates.
///
/// # Errors
///
/// If no run is finished, the study has no variants or no such baseline, or the scores of a run are damaged.
pub fn compare(study: &Study, baseline: Option<&str>, replicates: usize) -> Result<Comparison> {
    let bootstrap = Bootstrap {
        replicates,
        ..Bootstrap::default()
    };
    let variants: Vec<&str> = study.manifest.variants().into_iter().flatten().collect();
    let baseline = baseline.or(variants.first().copied());
    let baseline = baseline.ok_or_else(|| Error::Study {
        path: study.dir().into(),
        reason: "it has no variants to compare".into(),
        hint: "`rem sweep new` makes variants with `--grid` or `--variants`".into(),
    })?;
    if !variants.contains(&baseline) {
        return Err(Error::argument(
            format!("the study has no variant `{baseline}`"),
            format!("its variants are {}", variants.join(", ")),
        ));
    }
    let found = FinalScores::read(study)?;
    let runs = &study.manifest.runs;
    let mut games: Vec<&str> = Vec::new();
    for run in runs {
        if !games.contains(&run.game.as_str()) {
            games.push(&run.game);
        }
    }
    let scores_of = |game: &str, variant: &str| -> Vec<f64> {
        let is_of = |i: usize| runs[i].game == game && runs[i].variant.as_deref() == Some(variant);
        let means = found.means.iter().filter(|(i, _)| is_of(**i));
        means.map(|(_, mean)| *mean).collect()
    };
    let game = |game: &&str| {
        let baseline_scores = scores_of(game, baseline);
        let row = |name: &&str| {
            let scores = scores_of(game, name);
            let is_compared = *name != baseline && !baseline_scores.is_empty();
            (!scores.is_empty()).then(|| VariantScores {
                name: (*name).into(),
                settings: settings(study, game, name),
                mean: bootstrap.mean(&scores).into(),
                difference: is_compared
                    .then(|| bootstrap.difference(&scores, &baseline_scores).into()),
                scores,
            })
        };
        GameComparison {
            game: (*game).into(),
            variants: variants.iter().filter_map(row).collect(),
        }
    };
    Ok(Comparison {
        baseline: baseline.into(),
        games: games.iter().map(game).collect(),
        missing: found.missing,
    })
}

/// Where the config of a variant differs from that of the study's first run, apart from game and seed.
fn settings(study: &Study, game: &str, variant: &str) -> Vec<String> {
    let mut runs = study.manifest.runs.iter();
    let run = runs.find(|run| run.game == game && run.variant.as_deref() == Some(variant));
    let mut found = Vec::new();
    flatten(
        "",
        run.expect("a run of the study").difference(),
        &mut found,
    );
    found.retain(|setting| !setting.starts_with("seed=") && !setting.starts_with("env.game="));
    found
}

/// `key=value` of all values in nested tables. Tables of variants stay whole.
fn flatten(prefix: &str, table: &Table, out: &mut Vec<String>) {
    for (key, value) in table {
        match value {
            Value::Table(inner) if !inner.contains_key("type") => {
                flatten(&format!("{prefix}{key}."), inner, out);
            }
            value => out.push(format!("{prefix}{key}={value}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::tests::finish;
    use crate::{NamedVariant, Plan};

    const FEW: usize = 500;

    fn study(dir: &std::path::Path) -> Study {
        let variant = |name: &str, set: &[&str]| NamedVariant {
            name: name.into(),
            set: set.iter().map(|s| s.to_string()).collect(),
        };
        let plan = Plan {
            preset: Some("debug".into()),
            games: Some("catch".into()),
            seeds: "1..2".into(),
            variants: vec![
                variant("whole", &[]),
                variant(
                    "no-dropout",
                    &["world_model.dropout=0.0", "train.horizon=6"],
                ),
                variant("unfinished", &["precision=f32"]),
            ],
            ..Plan::default()
        };
        Study::create(&dir.join("parts"), plan.manifest().unwrap()).unwrap()
    }

    #[test]
    fn variants_are_compared_with_the_first_or_a_chosen_one() {
        let parent = tempfile::tempdir().unwrap();
        let study = study(parent.path());
        // whole, no-dropout, unfinished of seed 1, then of seed 2.
        for (run, mean) in [(0, 3.0), (1, 1.0), (3, 5.0), (4, 1.0)] {
            finish(&study, run, mean);
        }
        let found = compare(&study, None, FEW).unwrap();
        assert_eq!(found.baseline, "whole");
        assert_eq!(found.missing.len(), 2);
        let [game] = &found.games[..] else {
            panic!("one game");
        };
        let names: Vec<&str> = game.variants.iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names, ["whole", "no-dropout"]);
        let [whole, part] = &game.variants[..] else {
            panic!("two variants");
        };
        assert_eq!((whole.mean.value, whole.difference), (4.0, None));
        assert_eq!(whole.mean.interval, Some([3.0, 5.0]));
        assert!(whole.settings.is_empty());
        assert_eq!(part.scores, [1.0, 1.0]);
        let difference = part.difference.unwrap();
        assert_eq!(difference.value, -3.0);
        assert_eq!(difference.interval, Some([-4.0, -2.0]));
        assert_eq!(
            part.settings,
            ["train.horizon=6", "world_model.dropout=0.0"]
        );

        let found = compare(&study, Some("no-dropout"), FEW).unwrap();
        assert_eq!(found.games[0].variants[0].difference.unwrap().value, 3.0);
        let error = compare(&study, Some("other"), FEW).unwrap_err();
        let hint = error.hint().unwrap();
        assert_eq!(hint, "its variants are whole, no-dropout, unfinished");
    }
}
