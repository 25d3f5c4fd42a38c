//! Atari games by the benchmark's protocol: every action for some frames, the brighter of the last two, a few frames
//! of doing nothing at the start.

use std::path::PathBuf;
use std::sync::OnceLock;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rem_ale::{Action, Ale, AleError, Game, Rom, Settings};
use rem_kernels::cpu::resize::{Palette, Resize};
use serde::{Deserialize, Serialize};

use super::{Env, EnvError, Outcome, Step, pack, refused, unpack};

const LAYER: &str = "atari";

/// Where ROMs are looked for first. A matter of the machine and no part of a run.
static ROM_DIR: OnceLock<PathBuf> = OnceLock::new();

/// Looks for ROMs in this folder first, from now on; only the first call has an effect.
pub fn look_for_roms_in(dir: PathBuf) {
    let _ = ROM_DIR.set(dir);
}

/// The ROM of a game, from the first place that has it.
pub fn rom(game: &'static Game) -> Result<Rom, AleError> {
    Rom::find(game, ROM_DIR.get().map(PathBuf::as_path))
}

/// How a game is played.
#[derive(Clone, Copy, Debug)]
pub struct AtariSettings {
    /// Height and width of a frame in pixels.
    pub size: usize,
    /// Raw frames that an action lasts.
    pub frame_skip: u32,
    /// The fewest and the most raw frames of doing nothing that an episode starts with.
    pub noops: (u32, u32),
    /// Raw frames after which an episode is cut off, those of the start included.
    pub max_frames: u32,
    /// The chance that a raw frame repeats the action before.
    pub sticky: f64,
}

pub struct Atari {
    ale: Ale,
    settings: AtariSettings,
    names: Vec<&'static str>,
    palette: Box<Palette>,
    resize: Resize,
    /// The last two raw frames of a step, resized. A step that is cut short leaves what it did not reach.
    pair: [Vec<u8>; 2],
    /// What the agent saw last.
    frame: Vec<u8>,
    play: Play,
}

/// What is no part of the emulator's state.
#[derive(Clone, Serialize, Deserialize)]
struct Play {
    /// Draws the number of no-ops.
    rng: ChaCha8Rng,
    /// Raw frames of this episode.
    frames: u32,
    over: bool,
}

impl Atari {
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
        let colour = |[r, g, b]: [u8; 3]| [i32::from(r), i32::from(g), i32::from(b), 0];
        Ok(Self {
            settings,
            names: ale.actions().iter().map(|action| action.name()).collect(),
            palette: Box::new(ale.palette().map(colour)),
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

    /// One raw frame; the reward, and what it did to the episode.
    fn act(&mut self, action: Action) -> (f32, Outcome) {
        let reward = self.ale.act(action) as f32;
        self.play.frames += 1;
        let outcome = if self.ale.game_over() {
            Outcome::Ended
        } else if self.play.frames >= self.settings.max_frames {
            Outcome::Truncated
        } else {
            Outcome::Continues
        };
        (reward, outcome)
    }

    fn restart(&mut self) {
        self.ale.reset();
        self.play.frames = 0;
    }
}

impl Env for Atari {
    fn actions(&self) -> &[&'static str] {
        &self.names
    }

    fn frame_size(&self) -> usize {
        self.settings.size
    }

    fn reset(&mut self) -> Vec<u8> {
        let (fewest, most) = self.settings.noops;
        let noops = self.play.rng.random_range(fewest..=most);
        self.restart();
        for _ in 0..noops {
            if self.act(Action::Noop).1 != Outcome::Continues {
                self.restart();
            }
        }
        self.play.over = false;
        let (resize, screen) = (&mut self.resize, self.ale.screen());
        resize.apply(screen, &self.palette, &mut self.frame);
        self.frame.clone()
    }

    fn step(&mut self, action: usize) -> Step {
        assert!(!self.play.over, "the episode is over: reset first");
        let action = self.ale.actions()[action];
        let skip = self.settings.frame_skip;
        let (mut total, mut outcome) = (0.0, Outcome::Continues);
        for frame in 0..skip {
            let (reward, now) = self.act(action);
            total += reward;
            outcome = now;
            if frame + 2 >= skip {
                let kept = &mut self.pair[(frame + 2 - skip) as usize];
                self.resize.apply(self.ale.screen(), &self.palette, kept);
            }
            if outcome != Outcome::Continues {
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
        self.play.over = outcome != Outcome::Continues;
        Step {
            frame: self.frame.clone(),
            reward: total,
            outcome,
        }
    }

    fn lives(&self) -> u32 {
        u32::try_from(self.ale.lives()).unwrap_or(0)
    }

    fn scripted_action(&self) -> Option<usize> {
        None
    }

    fn render(&self) -> Vec<u8> {
        self.frame.clone()
    }

    fn snapshot(&self) -> Vec<u8> {
        let [first, second] = &self.pair;
        let inner = [&self.frame[..], first, second, &self.ale.snapshot()].concat();
        pack(LAYER, &self.play, &inner)
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), EnvError> {
        let (play, inner) = unpack::<Play>(LAYER, snapshot)?;
        let bytes = self.frame.len();
        if inner.len() < 3 * bytes {
            return Err(refused("the frames of `atari` are cut short".into()));
        }
        let (frames, emulator) = inner.split_at(3 * bytes);
        let refuse = |error: AleError| refused(error.to_string());
        self.ale.restore(emulator).map_err(refuse)?;
        self.frame.copy_from_slice(&frames[..bytes]);
        for (kept, frame) in self
            .pair
            .iter_mut()
            .zip(frames[bytes..].chunks_exact(bytes))
        {
            kept.copy_from_slice(frame);
        }
        self.play = play;
        Ok(())
    }
}
