//! The values that a study varies: `--grid`, `--seeds` and `--games`.

use rem::env::EnvName;

use crate::error::{Error, Result};

/// `key=a,b,c`: a config key, or `preset`, and its values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub key: String,
    pub values: Vec<String>,
}

/// The key of an axis of presets.
pub(crate) const PRESET: &str = "preset";

/// Keys that a study sets itself, with the option for them.
const OWN_KEYS: &[(&str, &str)] = &[("seed", "--seeds"), ("env.game", "--games")];

impl Axis {
    pub fn parse(text: &str) -> Result<Self> {
        let malformed = || {
            Error::argument(
                format!("`--grid {text}` is not of the form key=a,b,c"),
                "name a config key and its values, such as `--grid actor_critic.entropy_weight=0.001,0.01`",
            )
        };
        let (key, values) = text.split_once('=').ok_or_else(malformed)?;
        let key = key.trim();
        check_key(key, "--grid")?;
        let values = split(values);
        if key.is_empty() || values.iter().any(String::is_empty) {
            return Err(malformed());
        }
        if let Some(twice) = repeated(&values) {
            return Err(Error::argument(
                format!("`--grid {text}` has the value `{twice}` twice"),
                "leave one out, or repeat runs with `--seeds`",
            ));
        }
        Ok(Self {
            key: key.into(),
            values,
        })
    }
}

/// Rejects keys that a study sets itself.
pub(crate) fn check_key(key: &str, option: &str) -> Result<()> {
    match OWN_KEYS.iter().find(|(own, _)| *own == key) {
        Some((_, instead)) => Err(Error::argument(
            format!("`{option} {key}=…`: a study sets `{key}` itself"),
            format!("pass `{instead}`"),
        )),
        None => Ok(()),
    }
}

/// The first value that is there twice.
pub(crate) fn repeated<T: PartialEq>(values: &[T]) -> Option<&T> {
    let mut indexed = values.iter().enumerate();
    let found = indexed.find(|(i, value)| values[..*i].contains(value));
    found.map(|(_, value)| value)
}

/// Splits at commas, but not in brackets and quotes: `[1, 2],[3, 4]` has two values.
fn split(text: &str) -> Vec<String> {
    let (mut values, mut depth, mut quote) = (vec![String::new()], 0, None);
    for letter in text.chars() {
        match (letter, quote) {
            (',', None) if depth == 0 => {
                values.push(String::new());
                continue;
            }
            ('"' | '\'', None) => quote = Some(letter),
            (_, Some(open)) if letter == open => quote = None,
            ('[' | '{', None) => depth += 1,
            (']' | '}', None) => depth -= 1,
            _ => {}
        }
        values.last_mut().expect("is never empty").push(letter);
    }
    let trimmed = values.iter().map(|value| value.trim().to_owned());
    trimmed.collect()
}

/// `1..5`, both included, or a list such as `1,3,7..9`.
pub(crate) fn seeds(text: &str) -> Result<Vec<u64>> {
    const MOST: u64 = 10_000;
    let malformed = || {
        Error::argument(
            format!("`--seeds {text}`: expected seeds such as `1..5` or `1,2,7`"),
            "`1..5` has five seeds: both ends are included",
        )
    };
    let mut seeds = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| malformed());
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last - first >= MOST {
            return Err(malformed());
        }
        seeds.extend(first..=last);
    }
    match repeated(&seeds) {
        Some(twice) => Err(Error::argument(
            format!("`--seeds {text}` has the seed {twice} twice"),
            "two runs with the same seed are the same run",
        )),
        None => Ok(seeds),
    }
}

/// `all`, the 26 games of the benchmark, or a list of names.
pub(crate) fn games(text: &str) -> Result<Vec<String>> {
    if text == "all" {
        let names = EnvName::benchmark().into_iter();
        return Ok(names.map(String::from).collect());
    }
    let names = text.split(',').map(|name| EnvName::parse(name.trim()));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    let names: Vec<String> = names.iter().map(EnvName::canonical).collect();
    match repeated(&names) {
        Some(twice) => Err(Error::argument(
            format!("`--games {text}` has `{twice}` twice"),
            "repeat runs with `--seeds`",
        )),
        None => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_ranges_with_both_ends_and_lists() {
        assert_eq!(seeds("1..5").unwrap(), [1, 2, 3, 4, 5]);
        assert_eq!(seeds("3").unwrap(), [3]);
        assert_eq!(seeds("7, 1..2").unwrap(), [7, 1, 2]);
        for wrong in ["", "a", "5..1", "1..", "1,,2", "-1", "0..99999999999"] {
            let error = seeds(wrong).unwrap_err();
            assert!(error.to_string().contains("expected seeds"), "{error}");
        }
        let error = seeds("1..3,2").unwrap_err();
        assert!(error.to_string().ends_with("the seed 2 twice"), "{error}");
    }

    #[test]
    fn values_are_split_at_commas_outside_brackets_and_quotes() {
        let values = |text: &str| Axis::parse(text).unwrap().values;
        assert_eq!(values("a=1,2, 3"), ["1", "2", "3"]);
        assert_eq!(values("a=[1, 2],[3, 4]"), ["[1, 2]", "[3, 4]"]);
        assert_eq!(
            values("a={x = 1, y = 2},'b,c'"),
            ["{x = 1, y = 2}", "'b,c'"]
        );
        for wrong in ["a", "=1", "a=", "a=1,,2"] {
            let error = Axis::parse(wrong).unwrap_err();
            assert!(error.to_string().contains("key=a,b,c"), "{error}");
        }
        let error = Axis::parse("a=1,2,1").unwrap_err();
        assert!(error.to_string().ends_with("`1` twice"), "{error}");
        let error = Axis::parse("seed=1,2").unwrap_err();
        assert_eq!(error.hint().unwrap(), "pass `--seeds`");
    }

    #[test]
    fn games_are_the_benchmark_or_known_names() {
        assert_eq!(games("all").unwrap().len(), 26);
        assert_eq!(games("catch,MsPacman").unwrap(), ["catch", "ms_pacman"]);
        let error = games("catch,padle").unwrap_err();
        assert_eq!(error.to_string(), "unknown game `padle`");
        assert_eq!(error.hint().unwrap(), "did you mean `paddle`?");
        let error = games("ms_pacman,MsPacman").unwrap_err();
        assert!(error.to_string().contains("`ms_pacman` twice"), "{error}");
    }
}
