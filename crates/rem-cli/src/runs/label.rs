//! `rem runs label`: names, tags and notes.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use rem::Error;
use rem_run::{Labels, layout};

use crate::print;

/// Name or tag a run, or write a note to it; without options, print its labels
///
/// Labels are in `labels.json` in the run directory. Training does not read them, so a run that trains can have new ones.
#[derive(Args)]
pub struct LabelArgs {
    /// Run directories
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// A name besides that of the directory; an empty one removes it
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Add a tag; can be repeated
    #[arg(long, value_name = "TAG", value_parser = tag)]
    tag: Vec<String>,
    /// Remove a tag; can be repeated
    #[arg(long, value_name = "TAG")]
    untag: Vec<String>,
    /// A note; an empty one removes it
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

/// A tag is a word, so that lists of tags can be read.
fn tag(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(|c: char| c.is_whitespace() || c == '#') {
        true => Err("a tag is a word without `#`".into()),
        false => Ok(text.into()),
    }
}

impl LabelArgs {
    fn changes(&self) -> bool {
        self.name.is_some() || self.note.is_some() || !self.tag.is_empty() || !self.untag.is_empty()
    }

    fn change(&self, labels: &mut Labels) {
        let set = |value: &mut Option<String>, new: &Option<String>| {
            if let Some(new) = new {
                *value = Some(new.clone()).filter(|text| !text.is_empty());
            }
        };
        set(&mut labels.name, &self.name);
        set(&mut labels.note, &self.note);
        labels.tags.extend(self.tag.iter().cloned());
        labels.tags.retain(|tag| !self.untag.contains(tag));
    }
}

pub fn run(args: LabelArgs) -> Result<()> {
    if let Some(dir) = args.runs.iter().find(|dir| !layout::is_run(dir)) {
        return Err(super::delete::not_a_run(dir).into());
    }
    for dir in &args.runs {
        let mut labels = Labels::read(dir).map_err(Error::from)?;
        if args.changes() {
            args.change(&mut labels);
            labels.write(dir).map_err(Error::from)?;
        } else {
            print::text(show(dir, &labels))?;
        }
    }
    Ok(())
}

fn show(dir: &std::path::Path, labels: &Labels) -> String {
    let tags: Vec<&str> = labels.tags.iter().map(String::as_str).collect();
    let values = [
        ("name", labels.name.clone().unwrap_or_default()),
        ("tags", tags.join(" ")),
        ("note", labels.note.clone().unwrap_or_default()),
    ];
    let values = values.iter().filter(|(_, value)| !value.is_empty());
    let lines: String = values
        .map(|(key, value)| format!("  {key}  {value}\n"))
        .collect();
    format!("{}\n{lines}", dir.display())
}
