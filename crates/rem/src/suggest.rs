//! Words for messages: what a mistyped name may mean, and lists of names.

/// The known name nearest to a mistyped one: one that it begins, or that differs by at most a third of the letters.
///
/// ```
/// use rem::suggest::nearest;
///
/// assert_eq!(nearest("debgu", ["quick", "debug"]), Some("debug"));
/// assert_eq!(nearest("vocab", ["vocabulary", "embedding"]), Some("vocabulary"));
/// assert_eq!(nearest("chess", ["quick", "debug"]), None);
/// ```
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distances = known
        .into_iter()
        .filter_map(|name| Some((distance(word, name)?, name)));
    distances
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How much a mistyped word differs from a name; `None` if they have little in common.
pub(crate) fn distance(word: &str, name: &str) -> Option<usize> {
    if word.len() >= 3 && word != name && name.starts_with(word) {
        return Some(1);
    }
    // Counts swapped letters once.
    let edits = strsim::damerau_levenshtein(word, name);
    (edits <= word.len().max(name.len()) / 3).then_some(edits)
}

/// `a`, `a or b`, `a, b or c`.
pub fn or(words: &[impl AsRef<str>]) -> String {
    list(words, "or")
}

/// `a`, `a and b`, `a, b and c`.
///
/// ```
/// assert_eq!(rem::suggest::and(&["3", "4"]), "3 and 4");
/// ```
pub fn and(words: &[impl AsRef<str>]) -> String {
    list(words, "and")
}

fn list(words: &[impl AsRef<str>], last: &str) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match &words[..] {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// Names in backquotes.
pub fn quoted(words: &[impl AsRef<str>]) -> Vec<String> {
    words.iter().map(|w| format!("`{}`", w.as_ref())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_end_with_a_word() {
        assert_eq!(or(&Vec::<String>::new()), "");
        assert_eq!(or(&["a"]), "a");
        assert_eq!(or(&["a", "b"]), "a or b");
        assert_eq!(and(&["a", "b", "c"]), "a, b and c");
    }

    #[test]
    fn the_nearest_of_several_names_wins() {
        let known = ["paddle", "catch", "crossing"];
        assert_eq!(nearest("cach", known), Some("catch"));
        assert_eq!(nearest("padle", known), Some("paddle"));
        assert_eq!(nearest("ca", known), None);
    }
}
