//! The snapshot format: a header that identifies the game and protects the state with a checksum.
//!
//! | bytes | content |
//! | --- | --- |
//! | 8 | magic |
//! | 4 | format version, little endian |
//! | 16 | MD5 of the ROM |
//! | 16 | MD5 of the state |
//! | rest | state |

use md5::{Digest, Md5};

use crate::ALE_VERSION;
use crate::games::Game;

const MAGIC: &[u8; 8] = b"REM-ALE\n";
/// Increment whenever the layout of the state changes, for example with a new version of ALE.
const FORMAT: u32 = 1;

pub fn pack(game: &Game, state: &[u8]) -> Vec<u8> {
    let mut snapshot = header(game).to_vec();
    snapshot.extend_from_slice(&Md5::digest(state));
    snapshot.extend_from_slice(state);
    snapshot
}

/// Returns the state of a snapshot, or the reason why it is rejected.
pub fn unpack<'a>(game: &Game, snapshot: &'a [u8]) -> Result<&'a [u8], String> {
    let (header, rest) = snapshot
        .split_first_chunk::<28>()
        .ok_or("the snapshot is truncated")?;
    let expected = self::header(game);
    if header[..8] != expected[..8] {
        return Err("not an emulator snapshot".into());
    }
    if header[8..12] != expected[8..12] {
        return Err(format!(
            "the snapshot was not written with ALE {ALE_VERSION}"
        ));
    }
    if header[12..] != expected[12..] {
        return Err(format!("the snapshot is not from `{}`", game.name));
    }
    let (digest, state) = rest
        .split_first_chunk::<16>()
        .ok_or("the snapshot is truncated")?;
    if *digest != *Md5::digest(state) {
        return Err("the snapshot is truncated or damaged".into());
    }
    Ok(state)
}

fn header(game: &Game) -> [u8; 28] {
    let mut header = [0; 28];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    for (byte, digits) in header[12..]
        .iter_mut()
        .zip(game.rom_md5.as_bytes().chunks(2))
    {
        let digits = std::str::from_utf8(digits).expect("checksums are ASCII");
        *byte = u8::from_str_radix(digits, 16).expect("checksums are hexadecimal");
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pack_and_unpack_round_trip() {
        let game = Game::named("pong").unwrap();
        for state in [&b""[..], b"state"] {
            assert_eq!(unpack(game, &pack(game, state)), Ok(state));
        }
    }

    #[test]
    fn every_flipped_bit_and_truncation_is_detected() {
        let game = Game::named("pong").unwrap();
        let good = pack(game, b"the state");
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            unpack(game, &bad).unwrap_err();
        }
        for length in 0..good.len() {
            unpack(game, &good[..length]).unwrap_err();
        }
        unpack(game, &[&good[..], b"more"].concat()).unwrap_err();
    }

    #[test]
    fn snapshots_of_another_game_are_rejected() {
        let pong = pack(Game::named("pong").unwrap(), b"state");
        let error = unpack(Game::named("boxing").unwrap(), &pong).unwrap_err();
        assert_eq!(error, "the snapshot is not from `boxing`");
    }
}
