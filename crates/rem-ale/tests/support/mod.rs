//! Shared by the emulator's tests.

#![allow(dead_code)] // each test file uses a part

use rem_ale::{Action, Ale, Game, Rom, Settings};

pub const STICKY: Settings = Settings {
    seed: 5,
    sticky: 0.25,
    full_action_set: false,
    mode: None,
    difficulty: None,
};

/// The random generator of the recorded traces.
pub struct Lcg(pub u64);

impl Lcg {
    pub fn draw(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below
    }
}

/// Finds the ROM of a game in the default locations.
pub fn rom(game: &str) -> Rom {
    Rom::find(Game::named(game).unwrap(), None)
        .unwrap_or_else(|error| panic!("{error}\nhint: {}", error.hint()))
}

/// An emulator at the start of its first episode.
pub fn start(game: &str, settings: Settings) -> Ale {
    let mut ale = Ale::new(&rom(game), settings).unwrap();
    ale.reset();
    ale
}

/// The observable state after a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub screen: u32,
    pub reward: i32,
    pub lives: i32,
    pub over: bool,
}

pub fn screen_crc32(ale: &Ale) -> u32 {
    let mut rgb = vec![0; ale.height() * ale.width() * 3];
    ale.screen_rgb(&mut rgb);
    crc32fast::hash(&rgb)
}

/// Plays random actions, with a reset after each episode.
pub fn play(ale: &mut Ale, lcg: &mut Lcg, frames: usize) -> Vec<Seen> {
    let actions: Vec<Action> = ale.actions().to_vec();
    (0..frames)
        .map(|_| {
            let reward = ale.act(actions[lcg.draw(actions.len())]);
            let seen = Seen {
                screen: screen_crc32(ale),
                reward,
                lives: ale.lives(),
                over: ale.game_over(),
            };
            if seen.over {
                ale.reset();
            }
            seen
        })
        .collect()
}
