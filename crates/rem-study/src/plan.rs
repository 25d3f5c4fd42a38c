//! From the options of `rem sweep new` to a manifest.

use rem::config::Config;
use rem::env::EnvName;

use crate::error::{Error, Result};
use crate::grid::{self, Axis, PRESET, check_key};
use crate::manifest::Manifest;
use crate::variants::NamedVariant;

/// Most runs of a study.
const MOST_RUNS: usize = 10_000;

/// What to run: presets, games, seeds, and what varies.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// A preset, or a list of presets. By default `quick`, or those of the grid alone.
    pub preset: Option<String>,
    /// `all` or a list of games. By default the game of the preset.
    pub games: Option<String>,
    /// `1..5`, both included, or a list.
    pub seeds: String,
    /// `key=a,b,c` for config keys, or for `preset`.
    pub grid: Vec<String>,
    /// Variants with several settings each, combined with the grid.
    pub variants: Vec<NamedVariant>,
    /// `key=value` for all runs.
    pub set: Vec<String>,
    /// The command, for the manifest.
    pub command: String,
}

/// One combination of the grid.
struct Variant {
    /// `None` without a grid.
    name: Option<String>,
    presets: String,
    set: Vec<String>,
}

impl Plan {
    /// The manifest. Loads and checks the config of every run.
    ///
    /// # Errors
    ///
    /// If a preset, key, value, game or seed is unknown or invalid, or something is there twice.
    pub fn manifest(&self) -> Result<Manifest> {
        for assignment in &self.set {
            let key = assignment.split('=').next().unwrap_or_default();
            check_key(key.trim(), "--set")?;
        }
        let games = self.games.as_deref().map(grid::games).transpose()?;
        let seeds = grid::seeds(&self.seeds)?;
        let variants = self.variants()?;
        let count = variants.len() * seeds.len() * games.as_ref().map_or(1, Vec::len);
        if count > MOST_RUNS {
            return Err(Error::argument(
                format!("{count} runs are more than {MOST_RUNS}"),
                "make several studies",
            ));
        }
        let mut runs = Vec::new();
        // Seeds first: an unfinished study has all variants with few seeds, not few variants with all seeds.
        for seed in &seeds {
            for game in games_or_default(games.as_deref()) {
                for variant in &variants {
                    let mut set = variant.set.clone();
                    set.extend(game.map(|game| format!("env.game={game}")));
                    set.push(format!("seed={seed}"));
                    let config = Config::load(&variant.presets, &set)?;
                    let game = EnvName::parse(&config.env.game)?.canonical();
                    let entry = Manifest::entry(variant.name.as_deref(), &game, *seed);
                    runs.push((entry, config));
                }
            }
        }
        Ok(Manifest::new(self.command.clone(), runs))
    }

    /// All combinations of the grid.
    fn variants(&self) -> Result<Vec<Variant>> {
        let axes = self.grid.iter().map(|text| Axis::parse(text));
        let axes = axes.collect::<Result<Vec<_>>>()?;
        let keys: Vec<&str> = axes.iter().map(|axis| axis.key.as_str()).collect();
        let in_set = |key: &&&str| {
            let mut set = self.set.iter();
            set.any(|assignment| assignment.split('=').next().map(str::trim) == Some(**key))
        };
        if let Some(key) = grid::repeated(&keys) {
            return Err(Error::argument(
                format!("`{key}` is in two `--grid`s"),
                format!("list all values in one: `--grid {key}=…,…`"),
            ));
        }
        if let Some(key) = keys.iter().find(in_set) {
            return Err(Error::argument(
                format!("`{key}` is in both `--grid` and `--set`"),
                "leave one of them out",
            ));
        }
        let has_presets = keys.contains(&PRESET);
        let base = match (&self.preset, has_presets) {
            (Some(preset), _) => preset.clone(),
            (None, true) => String::new(),
            (None, false) => "quick".into(),
        };
        let mut variants = vec![Variant {
            name: None,
            presets: base,
            set: self.set.clone(),
        }];
        for axis in &axes {
            let extended = |variant: &Variant, value: &String| variant.with(axis, &keys, value);
            let all = variants.iter().flat_map(|variant| {
                let values = axis.values.iter();
                values.map(move |value| extended(variant, value))
            });
            variants = all.collect();
        }
        if !self.variants.is_empty() {
            let all = variants.iter().flat_map(|variant| {
                let named = self.variants.iter();
                named.map(move |named| variant.with_settings(named))
            });
            variants = all.collect();
        }
        let names: Vec<&Option<String>> = variants.iter().map(|variant| &variant.name).collect();
        match grid::repeated(&names) {
            Some(name) => Err(Error::argument(
                format!(
                    "two variants would be called `{}`",
                    name.as_deref().unwrap_or_default()
                ),
                "values that differ only in punctuation need separate studies",
            )),
            None => Ok(variants),
        }
    }
}

fn games_or_default(games: Option<&[String]>) -> Vec<Option<&str>> {
    games.map_or_else(
        || vec![None],
        |games| games.iter().map(|game| Some(game.as_str())).collect(),
    )
}

impl Variant {
    /// This variant with a value of another axis.
    fn with(&self, axis: &Axis, keys: &[&str], value: &str) -> Self {
        let mut set = self.set.clone();
        let mut presets = self.presets.clone();
        let part = if axis.key == PRESET {
            if !presets.is_empty() {
                presets.push(',');
            }
            presets.push_str(value);
            value.to_owned()
        } else {
            set.push(format!("{}={value}", axis.key));
            format!("{}={value}", short(&axis.key, keys))
        };
        Self {
            name: Some(self.name_with(&part)),
            presets,
            set,
        }
    }

    /// This variant with the settings of a named one.
    fn with_settings(&self, named: &NamedVariant) -> Self {
        Self {
            name: Some(self.name_with(&named.name)),
            presets: self.presets.clone(),
            set: [&self.set[..], &named.set].concat(),
        }
    }

    fn name_with(&self, part: &str) -> String {
        let part = file_name(part);
        match &self.name {
            Some(name) => format!("{name},{part}"),
            None => part,
        }
    }
}

/// The last part of a key, or all of it if another key ends alike.
fn short<'a>(key: &'a str, keys: &[&str]) -> &'a str {
    let last = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
    let alike = keys
        .iter()
        .filter(|other| other.rsplit('.').next() == Some(last(key)));
    if alike.count() > 1 { key } else { last(key) }
}

/// A name without characters that shells, Slurm or file systems treat specially.
fn file_name(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._=+-".contains(c);
    let mapped = text.chars().map(|c| if plain(c) { c } else { '_' });
    mapped.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(grid: &[&str], set: &[&str]) -> Plan {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).into()).collect();
        Plan {
            preset: Some("debug".into()),
            games: Some("catch".into()),
            seeds: "1".into(),
            grid: owned(grid),
            set: owned(set),
            ..Plan::default()
        }
    }

    fn names(plan: &Plan) -> Vec<String> {
        let manifest = plan.manifest().unwrap();
        manifest.runs.into_iter().map(|run| run.name).collect()
    }

    fn error(plan: &Plan) -> (String, String) {
        let error = plan.manifest().unwrap_err();
        (error.to_string(), error.hint().unwrap())
    }

    #[test]
    fn runs_are_ordered_by_seed_then_game_then_variant() {
        let mut study = plan(&["precision=f32,mixed"], &[]);
        study.games = Some("catch,paddle".into());
        study.seeds = "1..2".into();
        assert_eq!(
            names(&study),
            [
                "precision=f32/catch-seed1",
                "precision=mixed/catch-seed1",
                "precision=f32/paddle-seed1",
                "precision=mixed/paddle-seed1",
                "precision=f32/catch-seed2",
                "precision=mixed/catch-seed2",
                "precision=f32/paddle-seed2",
                "precision=mixed/paddle-seed2",
            ]
        );
    }

    #[test]
    fn the_papers_benchmark_has_130_runs() {
        let study = Plan {
            preset: Some("atari100k".into()),
            games: Some("all".into()),
            seeds: "1..5".into(),
            ..Plan::default()
        };
        let manifest = study.manifest().unwrap();
        assert_eq!(manifest.runs.len(), 130);
        assert_eq!(manifest.variants(), [None]);
        assert_eq!(manifest.runs[0].name, "alien-seed1");
        // Settings of single games apply.
        let freeway = manifest.runs.iter().find(|run| run.game == "freeway");
        let config = manifest.config(freeway.unwrap()).unwrap();
        let expected = Config::load("atari100k", &["env.game=freeway".into()]).unwrap();
        assert_eq!(config, expected);
    }

    #[test]
    fn axes_are_combined_and_named_by_what_varies() {
        let study = plan(
            &[
                "preset=ablation-none,ablation-no-pop",
                "actor_critic.entropy_weight=0.1,0.2",
            ],
            &[],
        );
        assert_eq!(
            names(&study),
            [
                "ablation-none,entropy_weight=0.1/catch-seed1",
                "ablation-none,entropy_weight=0.2/catch-seed1",
                "ablation-no-pop,entropy_weight=0.1/catch-seed1",
                "ablation-no-pop,entropy_weight=0.2/catch-seed1",
            ]
        );
        // Keys that end alike keep their whole names.
        let study = plan(
            &[
                "tokenizer.optimizer.batch_size=4",
                "world_model.optimizer.batch_size=4",
            ],
            &[],
        );
        assert_eq!(
            names(&study),
            ["tokenizer.optimizer.batch_size=4,world_model.optimizer.batch_size=4/catch-seed1"]
        );
        // A variant of a setting, and a value with a character that is special in paths.
        let study = plan(&["world_model.architecture=retnet,transformer"], &[]);
        assert_eq!(names(&study)[1], "architecture=transformer/catch-seed1");
        let study = plan(&["world_model.architecture.decay.timescales=[8, 64]"], &[]);
        assert_eq!(names(&study), ["timescales=_8__64_/catch-seed1"]);
    }

    #[test]
    fn named_variants_are_combined_with_the_grid_and_have_the_last_word() {
        let variant = |name: &str, set: &[&str]| NamedVariant {
            name: name.into(),
            set: set.iter().map(|s| s.to_string()).collect(),
        };
        let mut study = plan(&["tokenizer.vocabulary=8,16"], &["world_model.dropout=0.2"]);
        study.variants = vec![
            variant("whole", &[]),
            variant("no dropout", &["world_model.dropout=0.0"]),
        ];
        let manifest = study.manifest().unwrap();
        let names: Vec<&str> = manifest.runs.iter().map(|run| run.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "vocabulary=8,whole/catch-seed1",
                "vocabulary=8,no_dropout/catch-seed1",
                "vocabulary=16,whole/catch-seed1",
                "vocabulary=16,no_dropout/catch-seed1",
            ]
        );
        let dropout = |run: usize| {
            let config = manifest.config(&manifest.runs[run]).unwrap();
            config.world_model.dropout
        };
        assert_eq!([dropout(0), dropout(3)], [0.2, 0.0]);
        study.variants[1].set = vec!["world_model.dropot=0".into()];
        assert_eq!(error(&study).1, "did you mean `world_model.dropout`?");
        study.variants[1].name = "whole".into();
        study.variants[1].set = vec![];
        assert!(error(&study).0.contains("two variants would be called"));
    }

    #[test]
    fn presets_of_a_grid_stand_alone_without_a_preset() {
        let mut study = plan(&["preset=quick,atari-laptop"], &[]);
        study.preset = None;
        study.games = None;
        assert_eq!(
            names(&study),
            ["quick/catch-seed1", "atari-laptop/breakout-seed1"],
            "each preset has its own game"
        );
    }

    #[test]
    fn typos_get_the_nearest_key() {
        let (message, hint) = error(&plan(&["tokenizer.vocabulry=8,16"], &[]));
        assert_eq!(message, "unknown config key `tokenizer.vocabulry`");
        assert_eq!(hint, "did you mean `tokenizer.vocabulary`?");
        let (message, _) = error(&plan(&["preset=ablation-none,ablation-no-pip"], &[]));
        assert_eq!(message, "unknown preset `ablation-no-pip`");
        let (message, _) = error(&plan(&["tokenizer.vocabulary=8,many"], &[]));
        assert!(
            message.contains("`tokenizer.vocabulary = many`"),
            "{message}"
        );
        let (message, hint) = error(&plan(&[], &["world_model.layer=3"]));
        assert!(message.contains("`world_model.layer`"), "{message}");
        assert_eq!(hint, "did you mean `world_model.layers`?");
    }

    #[test]
    fn conflicting_options_are_rejected() {
        for (grid, set, part) in [
            (vec!["seed=1,2"], vec![], "sets `seed` itself"),
            (vec![], vec!["env.game=catch"], "sets `env.game` itself"),
            (
                vec!["precision=f32", "precision=mixed"],
                vec![],
                "two `--grid`s",
            ),
            (
                vec!["precision=f32,mixed"],
                vec!["precision=f32"],
                "both `--grid` and `--set`",
            ),
            (
                vec!["device=flex:0,flex_0"],
                vec![],
                "two variants would be called `device=flex_0`",
            ),
        ] {
            let (message, _) = error(&plan(&grid, &set));
            assert!(message.contains(part), "{message}");
        }
        let mut many = plan(&[], &[]);
        many.seeds = "1..9999,20000..29999".into();
        assert!(error(&many).0.contains("more than 10000"));
    }
}
