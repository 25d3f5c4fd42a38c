//! Pictures with what is to be said about them in one message, as `assets/envelope.js` opens it: the length of a JSON
//! text (u32, little-endian), the text, and the bytes of the pictures or of a file.

use serde::Serialize;

/// An envelope around `bytes`.
pub fn seal(about: &impl Serialize, bytes: &[u8]) -> Vec<u8> {
    let text = serde_json::to_vec(about).expect("plain data is representable in JSON");
    let length = u32::try_from(text.len()).expect("what is said is short");
    let mut sealed = Vec::with_capacity(4 + text.len() + bytes.len());
    sealed.extend(length.to_le_bytes());
    sealed.extend(text);
    sealed.extend(bytes);
    sealed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_comes_first_behind_its_length() {
        assert_eq!(seal(&[1, 2], b"ab"), b"\x05\0\0\0[1,2]ab");
    }
}
