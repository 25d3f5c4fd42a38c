//! The protocol's encoding of pictures.

/// The bytes behind a text in base64; what is not of its alphabet counts as its last letter.
pub(crate) fn decode(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::new();
    for group in letters.chunks(4) {
        let bits = group
            .iter()
            .fold(0u32, |bits, letter| bits << 6 | u32::from(value(*letter)));
        let bits = bits << (6 * (4 - group.len()));
        bytes.extend(&bits.to_be_bytes()[1..group.len()]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_decoded() {
        for (text, bytes) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
        ] {
            assert_eq!(decode(text), bytes.as_bytes());
        }
        assert_eq!(decode("+/A="), [0xfb, 0xf0]);
    }
}
