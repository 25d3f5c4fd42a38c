//! All output of the program. Results go to stdout, everything else to stderr.
//!
//! A result that cannot be printed is an error. A message that cannot be printed is lost: training goes on without its
//! terminal. Clippy keeps `println!` and the like out of the other files.

use std::fmt::{self, Display, Formatter};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use clap::ValueEnum;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// When output has colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

static COLOR: OnceLock<Color> = OnceLock::new();

/// Sets when output has colors, once.
pub fn set_color(color: Color) {
    let _ = COLOR.set(color);
}

/// Whether this stream gets colors.
pub fn has_color(stream: &impl IsTerminal) -> bool {
    let forbidden = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match COLOR.get().copied().unwrap_or(Color::Auto) {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
            stream.is_terminal() && !forbidden("NO_COLOR") && !is_dumb
        }
    }
}

/// How much is printed besides results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Notices only.
    Quiet,
    /// Messages.
    Normal,
    /// More messages.
    Verbose,
}

static VERBOSITY: OnceLock<Verbosity> = OnceLock::new();

/// Sets how much is printed, once.
pub fn set_verbosity(verbosity: Verbosity) {
    let _ = VERBOSITY.set(verbosity);
}

fn verbosity() -> Verbosity {
    VERBOSITY.get().copied().unwrap_or(Verbosity::Normal)
}

/// How a part of a message looks.
#[derive(Clone, Copy, Debug)]
pub enum Style {
    Bold,
    Dim,
    Good,
    Warning,
    Error,
}

/// A part of a message, in color if stderr has colors.
pub fn styled(style: Style, text: impl Display) -> String {
    if !has_color(&io::stderr()) {
        return text.to_string();
    }
    let code = match style {
        Style::Bold => "1",
        Style::Dim => "2",
        Style::Good => "1;32",
        Style::Warning => "33",
        Style::Error => "1;31",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// A result that could not be printed.
#[derive(Debug)]
pub struct Unprinted(io::Error);

impl Unprinted {
    /// Whether the reader, such as `head`, has read enough.
    pub fn is_closed_pipe(&self) -> bool {
        self.0.kind() == ErrorKind::BrokenPipe
    }

    pub fn hint(&self) -> String {
        match self.0.kind() {
            ErrorKind::StorageFull => {
                "free some space where standard output goes, or redirect it elsewhere".into()
            }
            _ => "check where standard output goes".into(),
        }
    }
}

impl Display for Unprinted {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "cannot write the result to standard output: {}", self.0)
    }
}

impl std::error::Error for Unprinted {}

/// Prints a part of the result.
pub fn text(text: impl Display) -> Result<(), Unprinted> {
    let text = text.to_string();
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    written.and_then(|()| stdout.flush()).map_err(Unprinted)
}

/// Prints a line of the result.
pub fn line(text: impl Display) -> Result<(), Unprinted> {
    self::text(format_args!("{text}\n"))
}

/// The progress bars at the bottom of the terminal, by what they show. Two phases can run at the same time.
static BARS: LazyLock<Mutex<Bars>> = LazyLock::new(Default::default);

#[derive(Default)]
struct Bars {
    display: MultiProgress,
    named: Vec<(&'static str, ProgressBar)>,
}

fn bars() -> MutexGuard<'static, Bars> {
    BARS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints a line to stderr with `--verbose`.
pub fn detail(text: impl Display) {
    if verbosity() == Verbosity::Verbose {
        notice(text);
    }
}

/// Prints a line to stderr, not with `--quiet`.
pub fn message(text: impl Display) {
    if verbosity() >= Verbosity::Normal {
        notice(text);
    }
}

/// Prints a line to stderr, above the progress bars.
pub fn notice(text: impl Display) {
    // In one piece, because stderr has no buffer.
    let line = format!("{text}\n");
    bars().display.suspend(|| write_message(&line));
}

/// Prints `note: …` to stderr.
pub fn note(text: impl Display) {
    notice(format_args!("{} {text}", styled(Style::Warning, "note:")));
}

/// Prints to stderr without ending the line: dots of progress.
pub fn dot(text: &str) {
    if verbosity() >= Verbosity::Normal {
        write_message(text);
    }
}

/// Prints a question to stderr.
pub fn ask(question: &str) {
    write_message(question);
}

fn write_message(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Shows a progress bar on stderr if that is a terminal.
pub fn start_bar(name: &'static str, prefix: String, steps: usize) {
    if !io::stderr().is_terminal() || verbosity() == Verbosity::Quiet {
        return;
    }
    let style = "{prefix} {bar:30} {pos}/{len} {per_sec} {eta}";
    let bar = ProgressBar::new(steps as u64)
        .with_style(ProgressStyle::with_template(style).expect("a valid template"))
        .with_prefix(prefix);
    let mut bars = bars();
    let bar = bars.display.add(bar);
    bars.named.push((name, bar));
}

/// Moves a progress bar.
pub fn move_bar(name: &str, done: usize) {
    if let Some((_, bar)) = bars().named.iter().find(|(n, _)| *n == name) {
        bar.set_position(done as u64);
    }
}

/// Removes a progress bar.
pub fn end_bar(name: &str) {
    let mut bars = bars();
    if let Some(at) = bars.named.iter().position(|(n, _)| *n == name) {
        bars.named.remove(at).1.finish_and_clear();
    }
}

/// Removes all progress bars.
pub fn end_bars() {
    for (_, bar) in bars().named.drain(..) {
        bar.finish_and_clear();
    }
}
