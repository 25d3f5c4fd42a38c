//! Markdown pages with measured results and a figure.

use std::path::Path;

use anyhow::Result;

/// Everything below this line of a page is replaced.
const MARK: &str = "<!-- measured -->";

/// What a command writes to a page.
pub struct Page<'a> {
    /// Title of a page that does not exist yet.
    pub title: &'a str,
    /// Text and tables.
    pub text: &'a str,
    /// The figure as SVG, written next to the page under its name with `.svg`.
    pub figure: &'a str,
    /// Alternative text of the figure.
    pub caption: &'a str,
}

impl Page<'_> {
    /// Writes page and figure. Keeps the text above [`MARK`] of an existing page; a page without it keeps all its text.
    pub fn write(&self, path: &Path) -> Result<()> {
        let svg = path.with_extension("svg");
        let head = match std::fs::read_to_string(path) {
            Ok(old) => old.split(MARK).next().unwrap_or_default().to_string(),
            Err(_) => format!("# {}\n\n", self.title),
        };
        let name = svg.file_name().unwrap_or_default().to_string_lossy();
        let Self { text, caption, .. } = self;
        let text = format!("{head}{MARK}\n\n{text}\n![{caption}]({name})\n");
        let write =
            |path: &Path, text: &str| std::fs::write(path, text).map_err(rem::Error::io(path));
        write(&svg, self.figure)?;
        Ok(write(path, &text)?)
    }
}
