//! The manifest of a study: every run with its config. Written once.

use std::path::{Component, Path};

use rem::config::Config;
use rem_run::{files, layout};
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::error::{Error, Result};
use crate::overlay;

/// The manifest of a study, in its directory.
pub const STUDY: &str = "study.toml";

/// The version of the manifest that this crate writes.
const FORMAT: u32 = 1;

const HEADER: &str = "\
# A study of `rem sweep`, with all its runs. It does not change: `rem sweep` refuses an edited file.
# A run has the config at the end of this file, except for what stands in its own `config`.
";

/// All runs of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    format: u32,
    /// The version of `rem` that made the study.
    pub rem_version: String,
    /// The command that made the study.
    pub command: String,
    /// The runs, in the order in which they are trained.
    pub runs: Vec<Entry>,
    /// The config of the first run.
    config: Table,
}

/// A run of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name, which is also its directory in the study: `GAME-seedN` or `VARIANT/GAME-seedN`.
    pub name: String,
    /// What distinguishes it from runs of the same game and seed, in a study that varies config values or presets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The game.
    pub game: String,
    /// The seed.
    pub seed: u64,
    /// Where its config differs from that of the first run.
    #[serde(default, skip_serializing_if = "Table::is_empty")]
    config: Table,
}

impl Entry {
    /// Where its config differs from that of the first run.
    pub(crate) fn difference(&self) -> &Table {
        &self.config
    }
}

impl Manifest {
    /// A manifest of these runs. The `config` of each entry is still empty.
    pub(crate) fn new(command: String, runs: Vec<(Entry, Config)>) -> Self {
        let table = |config: &Config| -> Table {
            let text = config.to_toml();
            text.parse().expect("a config is valid TOML")
        };
        let config = table(&runs[0].1);
        let with_config = |(entry, own): (Entry, Config)| Entry {
            config: overlay::difference(&config, &table(&own)),
            ..entry
        };
        Self {
            format: FORMAT,
            rem_version: env!("CARGO_PKG_VERSION").into(),
            command,
            runs: runs.into_iter().map(with_config).collect(),
            config,
        }
    }

    /// An entry of [`Manifest::new`].
    pub(crate) fn entry(variant: Option<&str>, game: &str, seed: u64) -> Entry {
        let name = layout::run_name(game, seed);
        Entry {
            name: match variant {
                Some(variant) => format!("{variant}/{name}"),
                None => name,
            },
            variant: variant.map(Into::into),
            game: game.into(),
            seed,
            config: Table::new(),
        }
    }

    /// The config of a run.
    ///
    /// # Errors
    ///
    /// If this version of `rem` does not accept it.
    pub fn config(&self, run: &Entry) -> Result<Config> {
        let table = overlay::merged(&self.config, &run.config);
        let text = toml::to_string(&table).expect("a table is valid TOML");
        Ok(Config::from_toml(&text, &[])?)
    }

    /// The variants, in order. `None` in a study without variants.
    pub fn variants(&self) -> Vec<Option<&str>> {
        let mut variants: Vec<Option<&str>> = Vec::new();
        for run in &self.runs {
            if !variants.contains(&run.variant.as_deref()) {
                variants.push(run.variant.as_deref());
            }
        }
        variants
    }

    /// The text of the file.
    fn to_text(&self) -> String {
        let body = toml::to_string(self).expect("a manifest is valid TOML");
        let sum = crc32fast::hash(body.as_bytes());
        format!("{HEADER}{CHECKSUM}\"{sum:08x}\"\n{body}")
    }

    /// A number that tells studies apart.
    pub(crate) fn checksum(&self) -> u32 {
        crc32fast::hash(self.to_text().as_bytes())
    }

    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        let file = dir.join(STUDY);
        files::write_atomic(&file, self.to_text().as_bytes()).map_err(rem::Error::File)?;
        // A reminder for editors. The checksum finds changes.
        if let Ok(metadata) = file.metadata() {
            let mut permissions = metadata.permissions();
            permissions.set_readonly(true);
            let _ = std::fs::set_permissions(&file, permissions);
        }
        Ok(())
    }

    pub(crate) fn read(dir: &Path) -> Result<Self> {
        let file = dir.join(STUDY);
        let invalid = |reason: String, hint: &str| Error::Study {
            path: dir.into(),
            reason,
            hint: hint.into(),
        };
        if !file.is_file() {
            return Err(invalid(
                format!("there is no {STUDY}"),
                "`rem sweep new STUDY` makes a study",
            ));
        }
        let text = std::fs::read_to_string(&file).map_err(Error::io(&file))?;
        let changed = || {
            invalid(
                format!("{STUDY} was changed after it was written"),
                "restore it, or make another study with `rem sweep new`",
            )
        };
        let (head, body) = text.split_once(CHECKSUM).ok_or_else(changed)?;
        let (sum, body) = body.split_once('\n').ok_or_else(changed)?;
        let found = format!("\"{:08x}\"", crc32fast::hash(body.as_bytes()));
        if head != HEADER || sum != found {
            return Err(changed());
        }
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let unreadable = |error: toml::de::Error| {
            let reason = error.message().lines().next().unwrap_or_default();
            invalid(
                format!("{STUDY}: {reason}"),
                "use the version of `rem` that made the study",
            )
        };
        let Format { format } = toml::from_str(body).map_err(unreadable)?;
        if format != FORMAT {
            return Err(invalid(
                format!("{STUDY} has format {format}; this program reads format {FORMAT}"),
                "use the version of `rem` that made the study",
            ));
        }
        let manifest: Self = toml::from_str(body).map_err(unreadable)?;
        let inside = |part: Component| matches!(part, Component::Normal(_));
        let leaves = |run: &&Entry| !Path::new(&run.name).components().all(inside);
        match manifest.runs.iter().find(leaves) {
            Some(run) => Err(invalid(
                format!("run `{}` is not in the study", run.name),
                "make the study with `rem sweep new`",
            )),
            None => Ok(manifest),
        }
    }
}

/// The key of the checksum, at the start of a line.
const CHECKSUM: &str = "checksum = ";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, Study};

    fn plan() -> Plan {
        Plan {
            preset: Some("debug".into()),
            games: Some("catch,paddle".into()),
            seeds: "1..2".into(),
            grid: vec!["preset=ablation-none,ablation-no-pop".into()],
            ..Plan::default()
        }
    }

    #[test]
    fn a_manifest_reads_back_with_every_config() {
        let dir = tempfile::tempdir().unwrap();
        let study = Study::create(dir.path(), plan().manifest().unwrap()).unwrap();
        let read = Study::open(dir.path()).unwrap();
        assert_eq!(read.manifest, study.manifest);
        for run in &read.manifest.runs {
            let overrides = [
                format!("env.game={}", run.game),
                format!("seed={}", run.seed),
            ];
            let preset = format!("debug,{}", run.variant.as_deref().unwrap());
            let expected = Config::load(&preset, &overrides).unwrap();
            assert_eq!(read.manifest.config(run).unwrap(), expected);
        }
        // It says what varies.
        let text = std::fs::read_to_string(dir.path().join(STUDY)).unwrap();
        let one = &text[text
            .find("name = \"ablation-no-pop/paddle-seed1\"")
            .unwrap()..];
        let one = one.split("[[runs]]").next().unwrap();
        assert!(one.contains("type = \"retnet\""), "{one}");
        assert!(one.lines().count() < 25, "{one}");
    }

    #[test]
    fn an_edited_manifest_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        Study::create(dir.path(), plan().manifest().unwrap()).unwrap();
        let file = dir.path().join(STUDY);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        for edited in [
            text.replace("seed = 2", "seed = 3"),
            format!("{text}# a comment\n"),
            text.replace("checksum", "chksum"),
            String::new(),
        ] {
            std::fs::write(&file, edited).unwrap();
            let error = Study::open(dir.path()).unwrap_err();
            assert!(error.to_string().contains("was changed"), "{error}");
        }
        std::fs::write(&file, text).unwrap();
        Study::open(dir.path()).unwrap();
    }

    #[test]
    fn a_newer_format_and_a_directory_without_a_manifest_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let error = Study::open(dir.path()).unwrap_err();
        assert!(error.to_string().ends_with("no study.toml"), "{error}");
        let newer = Manifest {
            format: 2,
            ..plan().manifest().unwrap()
        };
        newer.write(dir.path()).unwrap();
        let error = Study::open(dir.path()).unwrap_err();
        assert!(error.to_string().contains("has format 2"), "{error}");
    }

    #[test]
    fn runs_outside_of_the_study_are_refused() {
        for name in ["../other", "/tmp/run", "a/../../b"] {
            let dir = tempfile::tempdir().unwrap();
            let mut manifest = plan().manifest().unwrap();
            manifest.runs[1].name = name.into();
            manifest.write(dir.path()).unwrap();
            let error = Study::open(dir.path()).unwrap_err();
            assert!(error.to_string().contains("is not in the study"), "{error}");
        }
    }
}
