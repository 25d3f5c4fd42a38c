//! The 8x8 board of the built-in games, and the [`Env`] around their rules.
//!
//! Everything fills whole cells, so frames of different sizes differ only in scale.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::env::snapshot::{invalid, pack, unpack};
use crate::env::{
    Action, ActionSpace, Env, EnvError, Observation, ObservationSpace, Outcome, Spaces, Step,
};

/// Rows and columns of a board.
pub(crate) const CELLS: usize = 8;

/// Red, green, blue.
pub(crate) type Color = [u8; 3];

/// A frame to draw on.
pub(crate) struct Canvas {
    size: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    fn new(size: usize) -> Self {
        const BACKGROUND: Color = [16, 16, 24];
        let pixels = BACKGROUND.repeat(size * size);
        Self { size, pixels }
    }

    /// Fills a cell; row 0 is the top row.
    pub(crate) fn cell(&mut self, row: usize, column: usize, color: Color) {
        assert!(row < CELLS && column < CELLS, "no cell ({row}, {column})");
        let side = self.size / CELLS;
        for y in row * side..(row + 1) * side {
            let start = (y * self.size + column * side) * 3;
            for pixel in self.pixels[start..start + side * 3].chunks_exact_mut(3) {
                pixel.copy_from_slice(&color);
            }
        }
    }

    /// Fills a row.
    pub(crate) fn row(&mut self, row: usize, color: Color) {
        for column in 0..CELLS {
            self.cell(row, column, color);
        }
    }
}

/// The rules of a game. The implementing type is its state.
pub(crate) trait Rules: Clone + Send + Serialize + DeserializeOwned {
    /// Name of the game.
    const NAME: &'static str;
    /// Names of the actions.
    const ACTIONS: &'static [&'static str];

    /// The initial state of an episode.
    fn initial(rng: &mut ChaCha8Rng) -> Self;
    /// Takes an action. Returns the reward and whether the game is over.
    fn step(&mut self, action: usize, rng: &mut ChaCha8Rng) -> (f32, bool);
    /// Draws the state.
    fn draw(&self, canvas: &mut Canvas);
    /// The action of the scripted policy.
    fn scripted_action(&self) -> usize;
    /// Remaining lives; 1 if the game has no lives.
    fn lives(&self) -> u32 {
        1
    }
    /// Whether a snapshot can hold this state, as far as the code relies on it.
    fn is_valid(&self, over: bool) -> bool;
}

/// The environment of a game.
pub(crate) struct BoardGame<R> {
    size: usize,
    state: State<R>,
}

#[derive(Clone, Serialize, Deserialize)]
struct State<R> {
    size: usize,
    rng: ChaCha8Rng,
    over: bool,
    #[serde(rename = "position")]
    game: R,
}

impl<R: Rules> BoardGame<R> {
    /// A game before its first reset.
    pub(crate) fn new(size: usize, seed: u64) -> Self {
        assert!(size > 0 && size.is_multiple_of(CELLS));
        let rng = ChaCha8Rng::seed_from_u64(seed);
        // From a copy of the generator, so that the first reset gives the same state.
        let game = R::initial(&mut rng.clone());
        let state = State {
            size,
            rng,
            over: true,
            game,
        };
        Self { size, state }
    }

    /// The current state as an image.
    fn render(&self) -> Observation {
        let mut canvas = Canvas::new(self.size);
        self.state.game.draw(&mut canvas);
        canvas.pixels.into()
    }
}

impl<R: Rules> Env for BoardGame<R> {
    fn spaces(&self) -> Spaces {
        Spaces {
            observation: ObservationSpace::rgb(self.size, self.size),
            action: ActionSpace::named(R::ACTIONS.iter().copied()),
        }
    }

    fn reset(&mut self) -> Result<Observation, EnvError> {
        self.state.game = R::initial(&mut self.state.rng);
        self.state.over = false;
        Ok(self.render())
    }

    fn step(&mut self, action: &Action) -> Result<Step, EnvError> {
        let action = action.index();
        assert!(action < R::ACTIONS.len(), "no action {action}");
        assert!(!self.state.over, "the episode is over: reset first");
        let state = &mut self.state;
        let (reward, over) = state.game.step(action, &mut state.rng);
        state.over = over;
        Ok(Step::new(
            self.render(),
            reward,
            Outcome::terminated_if(over),
        ))
    }

    fn lives(&self) -> u32 {
        self.state.game.lives()
    }

    fn scripted_action(&self) -> Option<Action> {
        Some(self.state.game.scripted_action().into())
    }

    fn snapshot(&mut self) -> Result<Option<Vec<u8>>, EnvError> {
        Ok(Some(pack(R::NAME, &self.state, &[])))
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<Observation, EnvError> {
        let (state, rest): (State<R>, _) = unpack(R::NAME, snapshot)?;
        if !rest.is_empty() {
            let reason = format!("{} extra bytes after `{}`", rest.len(), R::NAME);
            return Err(invalid(reason));
        }
        if state.size != self.size {
            let (found, expected) = (state.size, self.size);
            let reason = format!("the snapshot has frames of {found} pixels, not {expected}");
            return Err(invalid(reason));
        }
        if !state.game.is_valid(state.over) {
            let reason = format!("the state of `{}` is impossible", R::NAME);
            return Err(invalid(reason));
        }
        self.state = state;
        Ok(self.render())
    }
}
