//! The emulator. Its `unsafe` code is in [`ffi`].

mod ffi;
mod snapshot;

use crate::action::Action;
use crate::error::AleError;
use crate::games::Game;
use crate::roms::Rom;
use ffi::Handle;

/// Settings of an emulator. One action is one frame; frame skipping is up to the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    /// Seed of the sticky actions. ALE ignores the highest of the 32 bits; 0 is a seed like any other.
    pub seed: u32,
    /// Probability that a frame repeats the previous action instead of the new one.
    pub sticky: f32,
    /// Use all legal actions instead of the game's minimal set.
    pub full_action_set: bool,
    /// Game mode; `None` is the game's default.
    pub mode: Option<u32>,
    /// Game difficulty; `None` is the game's default.
    pub difficulty: Option<u32>,
}

/// An Atari 2600 with a game loaded.
///
/// Deterministic: ROM, settings and actions determine everything. Instances share only lookup tables, which the first
/// one fills under a lock, so each thread can have its own.
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
    /// Loads a ROM. Call [`reset`](Self::reset) before the first action, as with ale-py: mode and difficulty take
    /// effect at the next reset.
    ///
    /// # Errors
    /// If the ROM is no longer valid, a setting is out of range, or the emulator does not start.
    pub fn new(rom: &Rom, settings: Settings) -> Result<Self, AleError> {
        let Settings { seed, sticky, .. } = settings;
        if !(0.0..1.0).contains(&sticky) {
            return Err(AleError::BadSticky { sticky });
        }
        // Verify again right before loading: ALE exits the process if the file is missing or unknown.
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
            palette: Box::new(handle.palette().map(|color| {
                let [_, red, green, blue] = color.to_be_bytes();
                [red, green, blue]
            })),
            handle,
        };
        ale.set_mode_and_difficulty(settings)?;
        Ok(ale)
    }

    /// Sets mode and difficulty, which take effect at the next reset.
    fn set_mode_and_difficulty(&mut self, settings: Settings) -> Result<(), AleError> {
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

    /// The loaded game.
    pub fn game(&self) -> &'static Game {
        self.game
    }

    /// Starts an episode.
    pub fn reset(&mut self) {
        self.handle.reset();
    }

    /// Plays one frame and returns its reward. Has no effect after the game is over, until a reset.
    pub fn act(&mut self, action: Action) -> i32 {
        self.handle.act(action)
    }

    /// Whether the episode is over.
    pub fn game_over(&self) -> bool {
        self.handle.game_over()
    }

    /// Lives left. In games without lives, 1 until the game is over.
    pub fn lives(&self) -> i32 {
        self.handle.lives()
    }

    /// Number of frames in this episode so far.
    pub fn episode_frames(&self) -> i32 {
        self.handle.episode_frames()
    }

    /// Screen height in pixels: 210 for NTSC games, 250 for PAL games.
    pub fn height(&self) -> usize {
        self.handle.screen_size().0
    }

    /// Screen width in pixels: 160.
    pub fn width(&self) -> usize {
        self.handle.screen_size().1
    }

    /// The screen as indices into the [`palette`](Self::palette), in row-major order.
    pub fn screen(&self) -> &[u8] {
        self.handle.screen()
    }

    /// The RGB values of the 256 colors.
    pub fn palette(&self) -> &[[u8; 3]; 256] {
        &self.palette
    }

    /// Writes the screen to `rgb` as `height * width * 3` bytes in row-major order.
    ///
    /// # Panics
    /// If `rgb` has a different length.
    pub fn screen_rgb(&self, rgb: &mut [u8]) {
        let (pixels, rest) = rgb.as_chunks_mut::<3>();
        let screen = self.screen();
        assert!(
            rest.is_empty() && pixels.len() == screen.len(),
            "the screen has {} bytes of RGB, the buffer has {}",
            screen.len() * 3,
            pixels.len() * 3 + rest.len()
        );
        for (pixel, &color) in pixels.iter_mut().zip(screen) {
            *pixel = self.palette[color as usize];
        }
    }

    /// The action set selected by [`Settings::full_action_set`].
    pub fn actions(&self) -> &[Action] {
        if self.full_action_set {
            &self.legal_actions
        } else {
            &self.minimal_actions
        }
    }

    /// The actions that have an effect in this game.
    pub fn minimal_actions(&self) -> &[Action] {
        &self.minimal_actions
    }

    /// All legal actions of this game: nearly always all 18.
    pub fn legal_actions(&self) -> &[Action] {
        &self.legal_actions
    }

    /// The game's modes.
    pub fn modes(&self) -> &[u32] {
        &self.modes
    }

    /// The game's difficulties.
    pub fn difficulties(&self) -> &[u32] {
        &self.difficulties
    }

    /// The complete state, including random generators and screen. An emulator restored from it, even in another
    /// process, continues exactly like this one if both have the same sticky-action probability.
    pub fn snapshot(&self) -> Vec<u8> {
        snapshot::pack(self.game, &self.handle.save())
    }

    /// Restores a snapshot of the same game. On error, the emulator is unchanged.
    ///
    /// A checksum detects damage, but not forgery, and ALE does not validate its state: restore only snapshots that you
    /// trust.
    ///
    /// # Errors
    /// [`AleError::Snapshot`] if the snapshot is damaged, or from another game or version of ALE.
    pub fn restore(&mut self, snapshot: &[u8]) -> Result<(), AleError> {
        let rejected = |reason| AleError::Snapshot { reason };
        let state = snapshot::unpack(self.game, snapshot).map_err(rejected)?;
        self.handle.load(state).map_err(rejected)
    }
}

fn actions(numbers: Vec<u32>) -> Vec<Action> {
    let action = |number| Action::ALL[number as usize];
    numbers.into_iter().map(action).collect()
}
