//! Where keys stand in a config file.

use toml::de::{DeTable, DeValue};

/// The line of a byte, from 1.
pub(super) fn line_at(text: &str, byte: usize) -> usize {
    let before = text.as_bytes().iter().take(byte);
    1 + before.filter(|byte| **byte == b'\n').count()
}

/// The line of a key, or of the last of its sections that is there.
pub(super) fn line_of(text: &str, key: &str) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    let (mut here, mut byte) = (table.get_ref(), None);
    for part in key.split('.') {
        let Some((name, value)) = here.iter().find(|(name, _)| name.get_ref() == part) else {
            break;
        };
        byte = Some(name.span().start);
        match value.get_ref() {
            DeValue::Table(inner) => here = inner,
            _ => break,
        }
    }
    byte.map(|byte| line_at(text, byte))
}
