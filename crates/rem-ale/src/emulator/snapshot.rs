//! The wrapping of a state: which game it is of, and whether it is whole.
//!
//! | bytes | |
//! | --- | --- |
//! | 8 | magic |
//! | 4 | format, little endian |
//! | 16 | MD5 of the ROM |
//! | 16 | MD5 of the state |
//! | rest | the state |

use md5::{Digest, Md5};

use crate::ALE_VERSION;
use crate::games::Game;

const MAGIC: &[u8; 8] = b"REM-ALE\n";
/// To be raised with every change of the state's form, a new version of ALE for one.
const FORMAT: u32 = 1;

pub fn pack(game: &Game, state: &[u8]) -> Vec<u8> {
    let mut snapshot = header(game).to_vec();
    snapshot.extend_from_slice(&Md5::digest(state));
    snapshot.extend_from_slice(state);
    snapshot
}

/// The state in the snapshot, or why it cannot be used.
pub fn unpack<'a>(game: &Game, snapshot: &'a [u8]) -> Result<&'a [u8], String> {
    let (header, rest) = snapshot
        .split_first_chunk::<28>()
        .ok_or("the snapshot is cut short")?;
    let expected = self::header(game);
    if header[..8] != expected[..8] {
        return Err("this is not a snapshot of the emulator".into());
    }
    if header[8..12] != expected[8..12] {
        return Err(format!(
            "the snapshot is not of ALE {ALE_VERSION} as REM keeps it"
        ));
    }
    if header[12..] != expected[12..] {
        return Err(format!("the snapshot is not of `{}`", game.name));
    }
    let (digest, state) = rest
        .split_first_chunk::<16>()
        .ok_or("the snapshot is cut short")?;
    if *digest != *Md5::digest(state) {
        return Err("the snapshot is cut short or damaged".into());
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
    fn what_was_packed_is_unpacked() {
        let game = Game::named("pong").unwrap();
        for state in [&b""[..], b"state"] {
            assert_eq!(unpack(game, &pack(game, state)), Ok(state));
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
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
    fn another_game_is_named() {
        let pong = pack(Game::named("pong").unwrap(), b"state");
        let error = unpack(Game::named("boxing").unwrap(), &pong).unwrap_err();
        assert_eq!(error, "the snapshot is not of `boxing`");
    }
}
