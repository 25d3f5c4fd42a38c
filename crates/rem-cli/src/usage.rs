//! Errors of the command line: one line and a hint, instead of clap's paragraphs.

use std::error::Error as _;

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use rem::suggest::{or, quoted};

/// The exit code of a command line that is not valid, as of other programs.
pub const EXIT_CODE: u8 = 2;

/// Message and hint of an error. `None` for help and version, which clap prints.
pub fn explain(error: &Error, root: &Command, words: &[String]) -> Option<(String, String)> {
    use ErrorKind::{
        DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion, ValueValidation,
    };
    if let DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand = error.kind() {
        return None;
    }
    let help = format!("`{} --help` has all options", command_path(root, words));
    let message = match error.kind() {
        ErrorKind::UnknownArgument => unknown_argument(error),
        ErrorKind::InvalidSubcommand => {
            let name = one(error, ContextKind::InvalidSubcommand);
            format!("unknown command `{}`", name.unwrap_or_default())
        }
        ErrorKind::InvalidValue => invalid_value(error),
        ValueValidation => {
            let reason = error.source().map(ToString::to_string);
            format!("{}: {}", given(error), reason.unwrap_or_default())
        }
        ErrorKind::MissingRequiredArgument => missing(error),
        ErrorKind::MissingSubcommand => "a command is missing".into(),
        ErrorKind::ArgumentConflict => conflict(error),
        _ => first_line(error),
    };
    Some((message, suggestion(error).unwrap_or(help)))
}

/// `--seed -1`: the option and its value, as given.
fn given(error: &Error) -> String {
    let name = one(error, ContextKind::InvalidArg).unwrap_or_default();
    let value = one(error, ContextKind::InvalidValue).unwrap_or_default();
    match name.starts_with('-') {
        true => format!("`{} {value}`", plain(&name)),
        false => format!("`{value}` as {}", plain(&name)),
    }
}

fn unknown_argument(error: &Error) -> String {
    let name = one(error, ContextKind::InvalidArg).unwrap_or_default();
    match name.starts_with('-') {
        true => format!("unknown option `{name}`"),
        false => format!("unexpected argument `{name}`"),
    }
}

fn invalid_value(error: &Error) -> String {
    let name = one(error, ContextKind::InvalidArg).unwrap_or_default();
    let value = one(error, ContextKind::InvalidValue).unwrap_or_default();
    let known = many(error, ContextKind::ValidValue);
    match (value.is_empty(), known.is_empty()) {
        (true, true) => format!("`{}` needs a value", plain(&name)),
        (true, false) => format!("`{}` needs a value: {}", plain(&name), or(&known)),
        (false, true) => format!("{} is not valid", given(error)),
        (false, false) => format!("{}: must be {}", given(error), or(&known)),
    }
}

fn missing(error: &Error) -> String {
    let names = many(error, ContextKind::InvalidArg);
    let names: Vec<String> = names.iter().map(|name| plain(name)).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("{} {verb} missing", rem::suggest::and(&quoted(&names)))
}

fn conflict(error: &Error) -> String {
    let name = one(error, ContextKind::InvalidArg).unwrap_or_default();
    let others = many(error, ContextKind::PriorArg);
    let others: Vec<String> = others.iter().map(|other| plain(other)).collect();
    let name = plain(&name);
    match others.is_empty() || others.contains(&name) {
        true => format!("`{name}` is there twice"),
        false => format!("`{name}` cannot be used with {}", or(&quoted(&others))),
    }
}

/// What the user may have meant.
fn suggestion(error: &Error) -> Option<String> {
    let kinds = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
    ];
    let names: Vec<String> = kinds.iter().flat_map(|kind| many(error, *kind)).collect();
    let names: Vec<String> = names.iter().map(|name| plain(name)).collect();
    (!names.is_empty()).then(|| format!("did you mean {}?", or(&quoted(&names))))
}

/// clap's own message, for kinds that need none of ours.
fn first_line(error: &Error) -> String {
    let text = error.render().to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").replace('\'', "`")
}

fn one(error: &Error, kind: ContextKind) -> Option<String> {
    many(error, kind).into_iter().next()
}

fn many(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(all)) => all.clone(),
        _ => Vec::new(),
    }
}

/// `--seed` of `--seed <N>`, `RUN` of `<RUN>`.
fn plain(name: &str) -> String {
    let name = name.trim_end_matches("...");
    let option = name.split([' ', '=']).next().filter(|n| n.starts_with('-'));
    option.map_or_else(
        || name.trim_matches(['<', '>', '[', ']']).to_owned(),
        |option| option.trim_end_matches('[').to_owned(),
    )
}

/// The command that the words name: `rem sweep run`.
fn command_path(root: &Command, words: &[String]) -> String {
    let (mut here, mut path) = (root, root.get_name().to_owned());
    for word in words {
        if let Some(command) = here.find_subcommand(word) {
            path = format!("{path} {}", command.get_name());
            here = command;
        }
    }
    path
}
