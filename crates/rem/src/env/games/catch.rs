//! `catch`: move the paddle under the falling ball. A small game with a delayed reward: +1 or -1 after seven steps.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::canvas::{CELLS, Canvas, Color, Rules};

const NOOP: usize = 0;
const LEFT: usize = 1;
const RIGHT: usize = 2;

const BOTTOM: usize = CELLS - 1;
const PADDLE_WIDTH: usize = 2;
const PADDLE_MAX: usize = CELLS - PADDLE_WIDTH;

const BALL: Color = [255, 220, 40];
const PADDLE: Color = [60, 200, 255];

/// The state of `catch`.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Catch {
    ball_row: usize,
    ball_column: usize,
    /// The paddle's left cell.
    paddle: usize,
}

impl Catch {
    /// Whether the paddle is in the column of the ball.
    fn covers(&self) -> bool {
        (self.paddle..self.paddle + PADDLE_WIDTH).contains(&self.ball_column)
    }
}

impl Rules for Catch {
    const NAME: &'static str = "catch";
    const ACTIONS: &'static [&'static str] = &["noop", "left", "right"];

    fn initial(rng: &mut ChaCha8Rng) -> Self {
        Self {
            ball_row: 0,
            ball_column: rng.random_range(0..CELLS),
            paddle: rng.random_range(0..=PADDLE_MAX),
        }
    }

    /// The paddle moves before the ball falls, so every ball can be caught: six of the seven moves cross the board.
    fn step(&mut self, action: usize, _rng: &mut ChaCha8Rng) -> (f32, bool) {
        match action {
            LEFT => self.paddle = self.paddle.saturating_sub(1),
            RIGHT => self.paddle = (self.paddle + 1).min(PADDLE_MAX),
            _ => {}
        }
        self.ball_row += 1;
        if self.ball_row < BOTTOM {
            return (0.0, false);
        }
        (if self.covers() { 1.0 } else { -1.0 }, true)
    }

    fn draw(&self, canvas: &mut Canvas) {
        for column in self.paddle..self.paddle + PADDLE_WIDTH {
            canvas.cell(BOTTOM, column, PADDLE);
        }
        canvas.cell(self.ball_row, self.ball_column, BALL);
    }

    fn scripted_action(&self) -> usize {
        if self.covers() {
            NOOP
        } else if self.ball_column < self.paddle {
            LEFT
        } else {
            RIGHT
        }
    }

    fn is_valid(&self, over: bool) -> bool {
        let lowest = if over { BOTTOM } else { BOTTOM - 1 };
        self.ball_row <= lowest && self.ball_column < CELLS && self.paddle <= PADDLE_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn the_scripted_policy_catches_every_ball_in_seven_steps() {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        for ball_column in 0..CELLS {
            for paddle in 0..=PADDLE_MAX {
                let mut game = Catch {
                    ball_row: 0,
                    ball_column,
                    paddle,
                };
                let steps: Vec<_> = (0..7)
                    .map(|_| game.step(game.scripted_action(), &mut rng))
                    .collect();
                assert_eq!(steps[..6], [(0.0, false); 6]);
                assert_eq!(steps[6], (1.0, true), "ball {ball_column} paddle {paddle}");
            }
        }
    }

    #[test]
    fn a_missed_ball_gives_minus_one() {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut game = Catch {
            ball_row: BOTTOM - 1,
            ball_column: 4,
            paddle: 1,
        };
        assert_eq!(game.step(RIGHT, &mut rng), (-1.0, true));
    }
}
