//! Numbers in options: negative ones are values, and a message names the range.

use std::ops::RangeInclusive;

use clap::{ArgAction, Command};

/// The largest seed, which a config can hold.
pub const LARGEST: u64 = i64::MAX as u64;

/// Most CPU threads of a config.
pub const MOST_THREADS: u64 = 1024;

/// Makes `--seed -1` a value instead of an unknown option, in all commands.
pub fn with_negative_numbers(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
        match takes_value && !arg.is_positional() {
            true => arg.allow_negative_numbers(true),
            false => arg,
        }
    });
    command.mut_subcommands(with_negative_numbers)
}

/// A whole number within a range.
pub fn whole<T: TryFrom<u64> + 'static>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let (least, most) = (range.start(), range.end());
        let number = text.parse().ok().filter(|number| range.contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| match *most {
            // Nobody reaches the end of a type.
            LARGEST.. if *least > 0 => format!("must be a whole number, at least {least}"),
            _ => format!("must be a whole number from {least} to {most}"),
        })
    }
}

/// A whole number from 1 on.
pub fn at_least_one<T: TryFrom<u64> + 'static>(text: &str) -> Result<T, String> {
    whole(1..=LARGEST)(text)
}

/// CPU threads; 0 means one per core.
pub fn threads(text: &str) -> Result<usize, String> {
    whole(0..=MOST_THREADS)(text)
}

/// A number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let number = number.filter(|n: &f64| *n > 0.0 && n.is_finite());
    number.ok_or_else(|| "must be a number above 0".into())
}

/// A duration that a measurement may take: more than 0 seconds and at most a day.
pub fn seconds(text: &str) -> Result<f64, String> {
    let number = positive(text).ok().filter(|seconds| *seconds <= 86_400.0);
    number.ok_or_else(|| "must be a number of seconds above 0 and at most 86400".into())
}

/// A probability below 1.
pub fn probability(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|n| (0.0..1.0).contains(n));
    number.ok_or_else(|| "must be a number in [0, 1)".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_their_range_are_errors_that_name_it() {
        let of_byte = whole::<u8>(1..=200);
        assert_eq!(of_byte("7"), Ok(7));
        for text in ["0", "201", "-1", "x", "1.5", "", "99999999999999999999"] {
            let error = of_byte(text).unwrap_err();
            assert_eq!(error, "must be a whole number from 1 to 200", "{text}");
        }
        assert_eq!(at_least_one::<usize>("12"), Ok(12));
        let error = at_least_one::<usize>("0").unwrap_err();
        assert_eq!(error, "must be a whole number, at least 1");
        for text in ["0", "-1", "nan", "inf", "x"] {
            assert!(positive(text).is_err() && seconds(text).is_err(), "{text}");
        }
        assert!(seconds("1e300").is_err() && probability("1").is_err());
        assert_eq!(probability("0.25"), Ok(0.25));
    }
}
