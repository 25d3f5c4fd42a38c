//! The emulator. All `unsafe` of this crate is in [`ffi`].

mod ffi;
mod snapshot;

use crate::action::Action;
use crate::error::AleError;
use crate::games::Game;
use crate::roms::Rom;
use ffi::Handle;

/// How a game is played. One action is one frame: skipping frames is the caller's business.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    /// Fixes which actions stick. Every seed is a seed, 0 too; ALE has no use for the highest of the 32 bits.
    pub seed: u32,
    /// The chance that a frame repeats the action before instead of taking the new one.
    pub sticky: f32,
    /// All actions that the console can do, instead of those that make a difference in the game.
    pub full_action_set: bool,
    /// `None` is the game's default.
    pub mode: Option<u32>,
    pub difficulty: Option<u32>,
}

/// An Atari 2600 with a game in it.
///
/// Everything that happens follows from the ROM, the settings and the actions. Instances share nothing but tables
/// that the first of them fills (under a lock), so each thread can have its own.
#[derive(Debug)]
pub struct Ale {
    handle: Handle,
    game: &'static Game,
    full_action_set: bool,
    minimal_actions: Vec<Action>,
    legal_actions: Vec<Action>,
    modes: Vec<u32>,
    difficulties: Vec<u32>,
    palette: Box<[[u8; 3]; 256]>,
}

impl Ale {
    /// Loads the ROM. As with ale-py, [`reset`](Self::reset) comes before the first action: loading starts the game
    /// too, but before mode and difficulty are set.
    pub fn new(rom: &Rom, settings: Settings) -> Result<Self, AleError> {
        let Settings { seed, sticky, .. } = settings;
        if !(0.0..1.0).contains(&sticky) {
            return Err(AleError::BadSticky { sticky });
        }
        // Once more, and right before: for a file that is gone or another one, ALE would end the process.
        let rom = Rom::open(rom.game(), rom.file())?;
        let seed = (seed & i32::MAX as u32) as i32;
        let handle = Handle::open(rom.file(), seed, sticky);
        let handle = handle.map_err(|reason| AleError::Start { reason })?;
        let mut ale = Self {
            game: rom.game(),
            full_action_set: settings.full_action_set,
            minimal_actions: actions(handle.minimal_actions()),
            legal_actions: actions(handle.legal_actions()),
            modes: handle.modes(),
            difficulties: handle.difficulties(),
            palette: Box::new(handle.palette().map(|colour| {
                let [_, red, green, blue] = colour.to_be_bytes();
                [red, green, blue]
            })),
            handle,
        };
        ale.choose(settings)?;
        Ok(ale)
    }

    /// Sets mode and difficulty, which take effect at the next reset.
    fn choose(&mut self, settings: Settings) -> Result<(), AleError> {
        let game = self.game.name;
        if let Some(mode) = settings.mode {
            if !self.modes.contains(&mode) {
                let modes = self.modes.clone();
                return Err(AleError::NoSuchMode { game, mode, modes });
            }
            self.handle.set_mode(mode);
        }
        if let Some(difficulty) = settings.difficulty {
            if !self.difficulties.contains(&difficulty) {
                let difficulties = self.difficulties.clone();
                return Err(AleError::NoSuchDifficulty {
                    game,
                    difficulty,
                    difficulties,
                });
            }
            self.handle.set_difficulty(difficulty);
        }
        Ok(())
    }

    pub fn game(&self) -> &'static Game {
        self.game
    }

    /// Starts an episode.
    pub fn reset(&mut self) {
        self.handle.reset();
    }

    /// Plays one frame and returns its reward. After the game is over nothing happens until a reset.
    pub fn act(&mut self, action: Action) -> i32 {
        self.handle.act(action)
    }

    pub fn game_over(&self) -> bool {
        self.handle.game_over()
    }

    /// Lives left, by the game's own count; in games that have none, 1 until the game is over.
    pub fn lives(&self) -> i32 {
        self.handle.lives()
    }

    /// Frames of this episode so far.
    pub fn episode_frames(&self) -> i32 {
        self.handle.episode_frames()
    }

    /// 210 rows, 250 for games of the European television norm.
    pub fn height(&self) -> usize {
        self.handle.screen_size().0
    }

    pub fn width(&self) -> usize {
        self.handle.screen_size().1
    }

    /// The screen as numbers of colours in the [`palette`](Self::palette), row by row.
    pub fn screen(&self) -> &[u8] {
        self.handle.screen()
    }

    /// Red, green and blue of each colour.
    pub fn palette(&self) -> &[[u8; 3]; 256] {
        &self.palette
    }

    /// Writes the screen into `rgb`: `height * width * 3` bytes, row by row.
    ///
    /// # Panics
    /// If `rgb` has another length.
    pub fn screen_rgb(&self, rgb: &mut [u8]) {
        let (pixels, rest) = rgb.as_chunks_mut::<3>();
        let screen = self.screen();
        assert!(
            rest.is_empty() && pixels.len() == screen.len(),
            "the screen has {} bytes of RGB, the buffer has {}",
            screen.len() * 3,
            pixels.len() * 3 + rest.len()
        );
        for (pixel, &colour) in pixels.iter_mut().zip(screen) {
            *pixel = self.palette[colour as usize];
        }
    }

    /// The actions of the set that the settings chose.
    pub fn actions(&self) -> &[Action] {
        if self.full_action_set {
            &self.legal_actions
        } else {
            &self.minimal_actions
        }
    }

    /// The actions that make a difference in this game.
    pub fn minimal_actions(&self) -> &[Action] {
        &self.minimal_actions
    }

    /// All actions that this game allows: in nearly all of them, all.
    pub fn legal_actions(&self) -> &[Action] {
        &self.legal_actions
    }

    pub fn modes(&self) -> &[u32] {
        &self.modes
    }

    pub fn difficulties(&self) -> &[u32] {
        &self.difficulties
    }

    /// The whole state, generators and screen included. An emulator that is restored from it, in another process
    /// too, goes on exactly as this one does, if their stickiness is the same.
    pub fn snapshot(&self) -> Vec<u8> {
        snapshot::pack(self.game, &self.handle.save())
    }

    /// Goes to the state of a snapshot of the same game. After an error the emulator is as it was.
    ///
    /// Damage is found by a checksum. What ALE makes of a state that somebody has forged is not known:
    /// restore your own snapshots only.
    pub fn restore(&mut self, snapshot: &[u8]) -> Result<(), AleError> {
        let refused = |reason| AleError::Snapshot { reason };
        let state = snapshot::unpack(self.game, snapshot).map_err(refused)?;
        self.handle.load(state).map_err(refused)
    }
}

fn actions(numbers: Vec<u32>) -> Vec<Action> {
    let action = |number| Action::ALL[number as usize];
    numbers.into_iter().map(action).collect()
}
