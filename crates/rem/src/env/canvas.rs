//! The 8x8 board that the built-in games share: its picture, and rules for it turned into an [`Env`].
//!
//! Everything fills whole cells, so frame sizes differ in scale only.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Env, EnvError, Outcome, Step, pack, refused, unpack};

/// Rows and columns of a board.
pub(crate) const CELLS: usize = 8;

pub(crate) type Colour = [u8; 3];

/// A frame in the making.
pub(crate) struct Canvas {
    size: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    fn new(size: usize) -> Self {
        const BACKGROUND: Colour = [16, 16, 24];
        let pixels = BACKGROUND.repeat(size * size);
        Self { size, pixels }
    }

    /// Fills the cell; row 0 is the top one.
    pub(crate) fn cell(&mut self, row: usize, column: usize, colour: Colour) {
        assert!(row < CELLS && column < CELLS, "no cell ({row}, {column})");
        let side = self.size / CELLS;
        for y in row * side..(row + 1) * side {
            let start = (y * self.size + column * side) * 3;
            for pixel in self.pixels[start..start + side * 3].chunks_exact_mut(3) {
                pixel.copy_from_slice(&colour);
            }
        }
    }

    pub(crate) fn row(&mut self, row: usize, colour: Colour) {
        for column in 0..CELLS {
            self.cell(row, column, colour);
        }
    }
}

/// The rules of a game; the value is its position.
pub(crate) trait Rules: Clone + Send + Serialize + DeserializeOwned {
    const NAME: &'static str;
    const ACTIONS: &'static [&'static str];

    /// The first position of an episode.
    fn deal(rng: &mut ChaCha8Rng) -> Self;
    /// Plays an action; gives the reward and whether the game is over.
    fn play(&mut self, action: usize, rng: &mut ChaCha8Rng) -> (f32, bool);
    fn draw(&self, canvas: &mut Canvas);
    /// The best player's choice.
    fn best_action(&self) -> usize;
    fn lives(&self) -> u32 {
        1
    }
    /// Whether a game, `over` or not, can be in this position, as far as the code relies on it.
    fn is_sound(&self, over: bool) -> bool;
}

/// A game under way.
pub(crate) struct BoardGame<R> {
    size: usize,
    state: State<R>,
}

#[derive(Clone, Serialize, Deserialize)]
struct State<R> {
    size: usize,
    rng: ChaCha8Rng,
    over: bool,
    position: R,
}

impl<R: Rules> BoardGame<R> {
    /// A game that waits for its first reset.
    pub(crate) fn new(size: usize, seed: u64) -> Self {
        assert!(size > 0 && size.is_multiple_of(CELLS));
        let rng = ChaCha8Rng::seed_from_u64(seed);
        // From a copy, so that the picture before the first reset is the one after it.
        let position = R::deal(&mut rng.clone());
        let state = State {
            size,
            rng,
            over: true,
            position,
        };
        Self { size, state }
    }
}

impl<R: Rules> Env for BoardGame<R> {
    fn actions(&self) -> &'static [&'static str] {
        R::ACTIONS
    }

    fn frame_size(&self) -> usize {
        self.size
    }

    fn reset(&mut self) -> Vec<u8> {
        self.state.position = R::deal(&mut self.state.rng);
        self.state.over = false;
        self.render()
    }

    fn step(&mut self, action: usize) -> Step {
        assert!(action < R::ACTIONS.len(), "no action {action}");
        assert!(!self.state.over, "the episode is over: reset first");
        let state = &mut self.state;
        let (reward, over) = state.position.play(action, &mut state.rng);
        state.over = over;
        let outcome = if over {
            Outcome::Ended
        } else {
            Outcome::Continues
        };
        let frame = self.render();
        Step {
            frame,
            reward,
            outcome,
        }
    }

    fn lives(&self) -> u32 {
        self.state.position.lives()
    }

    fn scripted_action(&self) -> Option<usize> {
        Some(self.state.position.best_action())
    }

    fn render(&self) -> Vec<u8> {
        let mut canvas = Canvas::new(self.size);
        self.state.position.draw(&mut canvas);
        canvas.pixels
    }

    fn snapshot(&self) -> Vec<u8> {
        pack(R::NAME, &self.state, &[])
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), EnvError> {
        let (state, rest): (State<R>, _) = unpack(R::NAME, snapshot)?;
        if !rest.is_empty() {
            let reason = format!("{} bytes too many after `{}`", rest.len(), R::NAME);
            return Err(refused(reason));
        }
        if state.size != self.size {
            let (theirs, ours) = (state.size, self.size);
            let reason = format!("the snapshot has frames of {theirs} pixels, not of {ours}");
            return Err(refused(reason));
        }
        if !state.position.is_sound(state.over) {
            let reason = format!("the position of `{}` is impossible", R::NAME);
            return Err(refused(reason));
        }
        self.state = state;
        Ok(())
    }
}
