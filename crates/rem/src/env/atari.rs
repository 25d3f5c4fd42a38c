//! Atari games with the preprocessing of the Atari 100k benchmark: frame skip, maximum over the last two frames, and a
//! random number of no-ops at the start of an episode.

use std::path::PathBuf;
use std::sync::OnceLock;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rem_ale::{Ale, AleError, Game, Palette, Resize, Rom, Settings};
use serde::{Deserialize, Serialize};

use super::snapshot::{invalid, pack, unpack};
use super::{
    Action, ActionSpace, Env, EnvError, Observation, ObservationSpace, Outcome, Spaces, Step,
};

const LAYER: &str = "atari";

/// The first directory to search for ROMs. Depends on the machine and is not part of a run's config.
static ROM_DIR: OnceLock<PathBuf> = OnceLock::new();

/// Sets the directory that is searched first for ROMs. Only the first call has an effect.
pub fn set_rom_dir(dir: PathBuf) {
    let _ = ROM_DIR.set(dir);
}

/// Finds the ROM of a game, in the directory of [`set_rom_dir`] first.
///
/// # Errors
/// If no directory has the ROM.
pub fn rom(game: &'static Game) -> Result<Rom, AleError> {
    Rom::find(game, ROM_DIR.get().map(PathBuf::as_path))
}

/// Settings of an Atari environment.
#[derive(Clone, Copy, Debug)]
pub struct AtariSettings {
    /// Height and width of a frame in pixels.
    pub size: usize,
    /// Raw frames per step.
    pub frame_skip: u32,
    /// Minimum and maximum number of no-ops, in raw frames, at the start of an episode.
    pub noops: (u32, u32),
    /// Raw frames, including the initial no-ops, after which an episode is truncated.
    pub max_frames: u32,
    /// Probability that a raw frame repeats the previous action (sticky actions).
    pub sticky: f64,
}

/// An Atari game.
pub struct Atari {
    ale: Ale,
    settings: AtariSettings,
    palette: Box<Palette>,
    resize: Resize,
    /// The last two raw frames of a step, resized. If the episode is over earlier in a step, they keep the previous
    /// content.
    pair: [Vec<u8>; 2],
    /// The current observation.
    frame: Vec<u8>,
    play: Play,
}

/// State outside the emulator.
#[derive(Clone, Serialize, Deserialize)]
struct Play {
    /// Samples the number of no-ops.
    rng: ChaCha8Rng,
    /// Raw frames in this episode.
    frames: u32,
    over: bool,
}

impl Atari {
    /// Starts the emulator. Call [`Env::reset`] before the first step.
    ///
    /// # Errors
    /// If the emulator rejects the ROM.
    ///
    /// # Panics
    /// If `frame_skip` or `max_frames` is 0.
    pub fn new(rom: &Rom, settings: AtariSettings, seed: u64) -> Result<Self, AleError> {
        assert!(settings.frame_skip > 0 && settings.max_frames > 0);
        let ale = Ale::new(
            rom,
            Settings {
                seed: (seed ^ (seed >> 32)) as u32,
                sticky: settings.sticky as f32,
                ..Settings::default()
            },
        )?;
        let bytes = settings.size * settings.size * 3;
        let color = |[r, g, b]: [u8; 3]| [i32::from(r), i32::from(g), i32::from(b), 0];
        Ok(Self {
            settings,
            palette: Box::new(ale.palette().map(color)),
            resize: Resize::new(ale.height(), ale.width(), settings.size),
            pair: [vec![0; bytes], vec![0; bytes]],
            frame: vec![0; bytes],
            play: Play {
                rng: ChaCha8Rng::seed_from_u64(seed),
                frames: 0,
                over: true,
            },
            ale,
        })
    }

    /// Emulates one raw frame. Returns the reward and the outcome.
    fn act(&mut self, action: rem_ale::Action) -> (f32, Outcome) {
        let reward = self.ale.act(action) as f32;
        self.play.frames += 1;
        let outcome = if self.ale.game_over() {
            Outcome::Terminated
        } else if self.play.frames >= self.settings.max_frames {
            Outcome::Truncated
        } else {
            Outcome::Running
        };
        (reward, outcome)
    }

    fn restart(&mut self) {
        self.ale.reset();
        self.play.frames = 0;
    }
}

impl Env for Atari {
    fn spaces(&self) -> Spaces {
        let size = self.settings.size;
        let names = self.ale.actions().iter().map(|action| action.name());
        Spaces {
            observation: ObservationSpace::rgb(size, size),
            action: ActionSpace::named(names),
        }
    }

    fn reset(&mut self) -> Result<Observation, EnvError> {
        let (min, max) = self.settings.noops;
        let noops = self.play.rng.random_range(min..=max);
        self.restart();
        for _ in 0..noops {
            if self.act(rem_ale::Action::Noop).1 != Outcome::Running {
                self.restart();
            }
        }
        self.play.over = false;
        let (resize, screen) = (&mut self.resize, self.ale.screen());
        resize.apply(screen, &self.palette, &mut self.frame);
        Ok(self.frame.clone().into())
    }

    fn step(&mut self, action: &Action) -> Result<Step, EnvError> {
        assert!(!self.play.over, "the episode is over: reset first");
        let action = self.ale.actions()[action.index()];
        let skip = self.settings.frame_skip;
        let (mut total, mut outcome) = (0.0, Outcome::Running);
        for frame in 0..skip {
            let (reward, now) = self.act(action);
            total += reward;
            outcome = now;
            if frame + 2 >= skip {
                let kept = &mut self.pair[(frame + 2 - skip) as usize];
                self.resize.apply(self.ale.screen(), &self.palette, kept);
            }
            if outcome != Outcome::Running {
                break;
            }
        }
        let [first, second] = &mut self.pair;
        if skip == 1 {
            first.copy_from_slice(second);
        }
        for ((seen, a), b) in self.frame.iter_mut().zip(&*first).zip(&*second) {
            *seen = *a.max(b);
        }
        self.play.over = outcome != Outcome::Running;
        Ok(Step {
            observation: self.frame.clone().into(),
            reward: total,
            outcome,
        })
    }

    fn lives(&self) -> u32 {
        u32::try_from(self.ale.lives()).unwrap_or(0)
    }

    fn snapshot(&mut self) -> Result<Option<Vec<u8>>, EnvError> {
        let [first, second] = &self.pair;
        let inner = [&self.frame[..], first, second, &self.ale.snapshot()].concat();
        Ok(Some(pack(LAYER, &self.play, &inner)))
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<Observation, EnvError> {
        let (play, inner) = unpack::<Play>(LAYER, snapshot)?;
        let bytes = self.frame.len();
        if inner.len() < 3 * bytes {
            return Err(invalid("the frames of `atari` are truncated".into()));
        }
        let (frames, emulator) = inner.split_at(3 * bytes);
        self.ale
            .restore(emulator)
            .map_err(|error: AleError| invalid(error.to_string()))?;
        self.frame.copy_from_slice(&frames[..bytes]);
        for (kept, frame) in self
            .pair
            .iter_mut()
            .zip(frames[bytes..].chunks_exact(bytes))
        {
            kept.copy_from_slice(frame);
        }
        self.play = play;
        Ok(self.frame.clone().into())
    }
}
