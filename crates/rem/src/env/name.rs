//! [`EnvName`]: the one place that resolves names of environments.

use super::{EnvError, GAMES};

/// The name of an environment, resolved.
#[derive(Clone, Debug, PartialEq)]
pub enum EnvName {
    /// One of [`GAMES`].
    BuiltIn(&'static str),
    /// An Atari game.
    Atari(&'static rem_ale::Game),
    /// `gym:ID`: an environment of `gymnasium.make`.
    Gymnasium {
        /// The id, such as `CartPole-v1`.
        id: String,
    },
    /// `python:MODULE:FACTORY`: what a Python function returns.
    Python {
        /// The module, as in `import`.
        module: String,
        /// A callable of the module.
        factory: String,
    },
}

impl EnvName {
    /// Resolves a name.
    ///
    /// # Errors
    /// If there is no such environment. Whether a Python environment exists shows when it is created.
    pub fn parse(name: &str) -> Result<Self, EnvError> {
        if let Some(id) = name.strip_prefix("gym:") {
            return match id.is_empty() {
                true => Err(bad_name(name)),
                false => Ok(Self::Gymnasium { id: id.into() }),
            };
        }
        if let Some(path) = name.strip_prefix("python:") {
            return match path.split_once(':') {
                Some((module, factory)) if is_path(module) && is_path(factory) => {
                    let (module, factory) = (module.into(), factory.into());
                    Ok(Self::Python { module, factory })
                }
                _ => Err(bad_name(name)),
            };
        }
        if let Some(game) = GAMES.iter().find(|game| **game == name) {
            return Ok(Self::BuiltIn(game));
        }
        match rem_ale::Game::named(name) {
            Ok(game) => Ok(Self::Atari(game)),
            Err(_) => Err(unknown(name)),
        }
    }

    /// Names of the 26 games of the Atari 100K benchmark.
    pub fn benchmark() -> Vec<&'static str> {
        rem_ale::Game::benchmark().map(|game| game.name).collect()
    }

    /// The name in configs: `MsPacman` is `ms_pacman`.
    pub fn canonical(&self) -> String {
        match self {
            Self::BuiltIn(game) => (*game).to_owned(),
            Self::Atari(game) => game.name.to_owned(),
            Self::Gymnasium { id } => format!("gym:{id}"),
            Self::Python { module, factory } => format!("python:{module}:{factory}"),
        }
    }

    /// Whether the environment runs in a Python process.
    pub fn is_python(&self) -> bool {
        matches!(self, Self::Gymnasium { .. } | Self::Python { .. })
    }
}

/// A dotted path of Python identifiers.
fn is_path(text: &str) -> bool {
    let identifier = |part: &str| {
        !part.is_empty()
            && !part.starts_with(|c: char| c.is_ascii_digit())
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    text.split('.').all(identifier)
}

fn bad_name(name: &str) -> EnvError {
    EnvError::BadName { name: name.into() }
}

/// The error for an unknown name, with the most similar game.
fn unknown(game: &str) -> EnvError {
    let name = game.to_lowercase();
    let distance = |game: &&str| strsim::levenshtein(&name, game);
    let built_in = GAMES.iter().copied().min_by_key(distance);
    let closest =
        built_in
            .filter(|game| distance(game) <= 2)
            .or_else(|| match rem_ale::Game::named(game) {
                Err(rem_ale::AleError::UnknownGame { closest, .. }) => closest.first().copied(),
                known => known.ok().map(|game| game.name),
            });
    EnvError::UnknownGame {
        game: game.to_owned(),
        closest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_name_is_resolved() {
        let parse = |name| EnvName::parse(name).unwrap();
        assert_eq!(parse("catch"), EnvName::BuiltIn("catch"));
        assert!(matches!(parse("Breakout"), EnvName::Atari(game) if game.name == "breakout"));
        let id = "ALE/Breakout-v5".to_owned();
        assert_eq!(parse("gym:ALE/Breakout-v5"), EnvName::Gymnasium { id });
        let python = EnvName::Python {
            module: "my.package".into(),
            factory: "make_env".into(),
        };
        assert_eq!(parse("python:my.package:make_env"), python);
        assert!(python.is_python() && !parse("catch").is_python());
        for name in ["catch", "ms_pacman", "gym:ALE/Breakout-v5", "python:a.b:c"] {
            assert_eq!(parse(name).canonical(), name);
        }
        assert_eq!(parse("MsPacman").canonical(), "ms_pacman");
    }

    #[test]
    fn malformed_names_are_errors_with_the_right_form() {
        for name in [
            "gym:",
            "python:module",
            "python::make",
            "python:a b:c",
            "python:1a:c",
        ] {
            let error = EnvName::parse(name).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
            assert!(
                error.hint().contains("python:my_module:make_env"),
                "{}",
                error.hint()
            );
        }
        assert!(matches!(
            EnvName::parse("gymnasium").unwrap_err(),
            EnvError::UnknownGame { .. }
        ));
    }
}
