//! Messages between this process and a worker: `python/rem_env/protocol.py` documents them.

use std::io::{self, Read, Write};

/// Limit on the length of a message, so that a damaged one cannot exhaust the memory.
const MAX_BYTES: u32 = 1 << 30;

/// Writes a message in one call.
pub(super) fn write(out: &mut impl Write, kind: u8, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
    let mut message = Vec::with_capacity(5 + payload.len());
    message.extend(length.to_le_bytes());
    message.push(kind);
    message.extend(payload);
    out.write_all(&message)?;
    out.flush()
}

/// Reads a message: its kind and its payload.
pub(super) fn read(input: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut header = [0; 5];
    input.read_exact(&mut header)?;
    let [a, b, c, d, kind] = header;
    let length = u32::from_le_bytes([a, b, c, d]);
    if length > MAX_BYTES {
        let reason = format!("a message of {length} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    let mut payload = vec![0; length as usize];
    input.read_exact(&mut payload)?;
    Ok((kind, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_back() {
        let mut bytes = Vec::new();
        write(&mut bytes, b's', &7i64.to_le_bytes()).unwrap();
        write(&mut bytes, b'r', &[]).unwrap();
        assert_eq!(&bytes[..6], [8, 0, 0, 0, b's', 7]);
        let mut input = &bytes[..];
        let expected = (b's', 7i64.to_le_bytes().to_vec());
        assert_eq!(read(&mut input).unwrap(), expected);
        assert_eq!(read(&mut input).unwrap(), (b'r', vec![]));
        assert_eq!(
            read(&mut input).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }

    #[test]
    fn a_huge_length_is_an_error_before_allocation() {
        let bytes = [255, 255, 255, 255, b's'];
        let error = read(&mut &bytes[..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
