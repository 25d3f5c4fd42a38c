//! The scores of published systems on the Atari 100K benchmark. `data/scores/SOURCES.md` gives the source of each.

use crate::scores::Scores;

/// A system with published scores.
#[derive(Debug)]
pub struct Baseline {
    /// Its name in tables.
    pub name: &'static str,
    /// The source of its scores: a repository and file, or a table.
    pub source: &'static str,
    /// Whether scores of runs or only means are published.
    pub published: Published,
    /// Its family of world models.
    pub family: Family,
    file: &'static str,
    text: &'static str,
}

/// What is published of a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// The score of each run.
    Runs,
    /// One mean per game. Intervals and statistics of single runs (interquartile mean, optimality gap, profile,
    /// probability of improvement) cannot be computed.
    Means,
}

/// The two families of world models that the REM paper distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Each observation is a sequence of tokens.
    TokenBased,
    /// Each observation is one element of the sequence, or the world model is not a sequence model.
    Other,
}

impl Baseline {
    /// Its name on the command line, which is its file name: `delta-iris`.
    pub fn key(&self) -> &'static str {
        let name = self.file.rsplit('/').next().unwrap_or(self.file);
        name.trim_end_matches(".json")
    }

    /// Its scores, parsed from the embedded file.
    pub fn scores(&self) -> Scores {
        Scores::from_json(self.file, self.text).expect("the embedded scores are valid")
    }
}

/// A baseline from its file below `data/scores/`.
macro_rules! baseline {
    ($name:literal, $family:ident, $published:ident, $file:literal, $source:literal) => {
        Baseline {
            name: $name,
            source: $source,
            published: Published::$published,
            family: Family::$family,
            file: $file,
            text: include_str!(concat!("../../../data/scores/", $file)),
        }
    };
}

/// Published systems, on all games.
#[rustfmt::skip]
pub const SYSTEMS: &[Baseline] = &[
    baseline!("REM", TokenBased, Runs, "rem.json", "leor-c/REM, results/data/REM.json"),
    baseline!("IRIS", TokenBased, Runs, "iris.json", "eloialonso/iris, results/data/IRIS.json"),
    baseline!("Δ-IRIS", TokenBased, Runs, "delta-iris.json", "vmicheli/delta-iris, results/atari.json"),
    baseline!("Simulus", TokenBased, Runs, "simulus.json", "leor-c/Simulus, results/data/atari/Simulus.json"),
    baseline!("SimPLe", Other, Runs, "simple.json", "eloialonso/iris, results/data/SimPLe.json"),
    baseline!("TWM", Other, Runs, "twm.json", "leor-c/REM, results/data/TWM.json"),
    baseline!("DreamerV3", Other, Runs, "dreamerv3.json", "leor-c/REM, results/data/dreamerv3.json"),
    baseline!("STORM", Other, Means, "storm.json", "the REM paper, Table 1"),
    baseline!("EfficientZero", Other, Means, "efficientzero.json", "eloialonso/iris, results/data/EfficientZero.json"),
];

/// The ablations of REM (Table 9), named as in the paper. All cover the 8 games of the ablation study.
#[rustfmt::skip]
pub const ABLATIONS: &[Baseline] = &[
    baseline!("No POP", TokenBased, Runs, "ablations/no-pop.json", "leor-c/REM, results/data/ablations/ablation-no-pop.json"),
    baseline!("Separate world-model embeddings", TokenBased, Runs, "ablations/separate-wm-embeddings.json", "leor-c/REM, results/data/ablations/ablation-separate-wm-embeddings.json"),
    baseline!("4x4 tokenizer", TokenBased, Runs, "ablations/4x4-tokenizer.json", "leor-c/REM, results/data/ablations/ablation-4x4-tokenizer.json"),
    baseline!("Controller of IRIS", TokenBased, Runs, "ablations/no-latent-ac.json", "leor-c/REM, results/data/ablations/ablation-no-latent-ac.json"),
    baseline!("Controller without action inputs", TokenBased, Runs, "ablations/no-action-input.json", "leor-c/REM, results/data/ablations/ablation-no-action-input.json"),
];

/// The system or ablation of this name.
pub fn named(name: &str) -> Option<&'static Baseline> {
    let mut all = SYSTEMS.iter().chain(ABLATIONS);
    all.find(|baseline| baseline.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scores::common_games;

    #[test]
    fn systems_cover_the_benchmark() {
        for baseline in SYSTEMS {
            let coverage = baseline.scores().coverage();
            assert!(coverage.is_complete(), "{}: {coverage}", baseline.name);
            let expected = match baseline.published {
                Published::Runs => 5,
                Published::Means => 1,
            };
            assert_eq!(coverage.most_runs, expected, "{}", baseline.name);
        }
    }

    #[test]
    fn ablations_share_eight_games_with_five_runs() {
        let ablations: Vec<_> = ABLATIONS.iter().map(Baseline::scores).collect();
        let common = common_games(&ablations.iter().collect::<Vec<_>>());
        assert_eq!(common.len(), 8);
        for scores in &ablations {
            assert!(
                common
                    .iter()
                    .all(|game| scores.of(game).unwrap().len() == 5)
            );
        }
        let coverage = ablations[0].coverage();
        assert_eq!(coverage.to_string(), "26 games, 3 to 5 runs each");
    }

    #[test]
    fn names_are_unique() {
        for baseline in SYSTEMS.iter().chain(ABLATIONS) {
            assert_eq!(named(baseline.name).unwrap().file, baseline.file);
            let same = |other: &&Baseline| other.key() == baseline.key();
            assert_eq!(SYSTEMS.iter().chain(ABLATIONS).filter(same).count(), 1);
        }
        assert_eq!(named("No POP").unwrap().key(), "no-pop");
    }
}
