//! Binary messages: a JSON header, then raw bytes (RGB frames, or a file).
//!
//! Layout: header length (`u32`, little-endian), header, payload. `assets/lib/message.js` decodes it.

use serde::Serialize;

/// Encodes a message.
pub(crate) fn encode(header: &impl Serialize, payload: &[u8]) -> Vec<u8> {
    let json = serde_json::to_vec(header).expect("headers serialize to JSON");
    let length = u32::try_from(json.len()).expect("headers are shorter than 4 GiB");
    let mut message = Vec::with_capacity(4 + json.len() + payload.len());
    message.extend(length.to_le_bytes());
    message.extend(json);
    message.extend(payload);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_length_precedes_header_and_payload() {
        assert_eq!(encode(&[1, 2], b"ab"), b"\x05\0\0\0[1,2]ab");
    }
}
