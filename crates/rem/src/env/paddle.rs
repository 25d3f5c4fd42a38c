//! `paddle`: a small breakout. A wall of eight bricks, a diagonal ball, three lives; three walls are all there is: 24 points.
//!
//! A frame does not show where the ball is heading, two do: the agent needs memory. All else is visible:
//! the paddle's colour tells the lives, the order of the bricks' colours which wall it is.

use std::collections::{HashSet, VecDeque};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::canvas::{CELLS, Canvas, Colour, Rules};

const NOOP: usize = 0;
const LEFT: usize = 1;
const RIGHT: usize = 2;

const BOTTOM: i32 = CELLS as i32 - 1;
const RIGHTMOST: i32 = CELLS as i32 - 1;
/// Three parts: the outer ones send the ball to their side, the middle one lets it go on. So a player can aim.
const PADDLE_WIDTH: i32 = 3;
const PADDLE_MAX: i32 = CELLS as i32 - PADDLE_WIDTH;

const BRICK_ROWS: usize = 2;
const BRICK_WIDTH: usize = 2;
const BRICKS_PER_ROW: usize = CELLS / BRICK_WIDTH;
const BRICKS: usize = BRICK_ROWS * BRICKS_PER_ROW;
/// Right under the bricks: five steps above the paddle, which from anywhere can be anywhere by then.
const SERVE_ROW: i32 = BRICK_ROWS as i32;

const LIVES: u32 = 3;
const WALLS: u32 = 3;

const BALL: Colour = [255, 255, 255];
const BRICK_COLOURS: [Colour; 4] = [
    [230, 50, 50],
    [250, 150, 30],
    [60, 110, 250],
    [190, 70, 230],
];
/// With one, two and three lives.
const PADDLE_COLOURS: [Colour; 3] = [[250, 230, 60], [130, 230, 60], [30, 210, 130]];

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Paddle {
    /// Which bricks stand, row by row.
    bricks: [bool; BRICKS],
    walls_cleared: u32,
    lives: u32,
    /// The paddle's left cell.
    paddle: i32,
    ball: Ball,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Ball {
    row: i32,
    column: i32,
    down: i32,
    right: i32,
}

/// What happened to the ball in a step.
#[derive(PartialEq, Eq)]
enum Flight {
    Free,
    HitBrick(usize),
    Lost,
}

impl Ball {
    fn serve(rng: &mut ChaCha8Rng) -> Self {
        Self {
            row: SERVE_ROW,
            column: rng.random_range(0..=RIGHTMOST),
            down: 1,
            right: if rng.random_bool(0.5) { 1 } else { -1 },
        }
    }

    /// Where it goes next if nothing is in the way.
    fn ahead(self) -> (i32, i32) {
        (self.row + self.down, self.column + self.right)
    }

    fn bounce_off_walls(&mut self) {
        let (row, column) = self.ahead();
        if row < 0 {
            self.down = 1;
        }
        if !(0..=RIGHTMOST).contains(&column) {
            self.right = -self.right;
        }
    }

    /// One step of flight, the paddle being where it is after its move. A brick that was hit is left to the caller.
    fn fly(&mut self, paddle: i32, bricks: &[bool; BRICKS]) -> Flight {
        self.bounce_off_walls();
        let (row, column) = self.ahead();
        if row >= BOTTOM {
            match column - paddle {
                0 => self.right = -1,
                1 => {}
                2 => self.right = 1,
                _ => {
                    (self.row, self.column) = (row, column);
                    return Flight::Lost;
                }
            }
            self.down = -1;
            self.bounce_off_walls();
            (self.row, self.column) = self.ahead();
            return Flight::Free;
        }
        // One brick a step: the face above or below, then the side, then the corner.
        let hit = if let Some(brick) = brick_at(bricks, row, self.column) {
            self.down = -self.down;
            brick
        } else if let Some(brick) = brick_at(bricks, self.row, column) {
            self.right = -self.right;
            brick
        } else if let Some(brick) = brick_at(bricks, row, column) {
            self.down = -self.down;
            self.right = -self.right;
            brick
        } else {
            (self.row, self.column) = (row, column);
            return Flight::Free;
        };
        let (row, column) = self.ahead();
        let on_board = row >= 0 && (0..=RIGHTMOST).contains(&column);
        // Among bricks the way back may be closed too: then the ball rests for a step.
        if on_board && brick_at(bricks, row, column).is_none() {
            (self.row, self.column) = (row, column);
        }
        Flight::HitBrick(hit)
    }
}

/// The standing brick on a cell of the board.
fn brick_at(bricks: &[bool; BRICKS], row: i32, column: i32) -> Option<usize> {
    let (row, column) = (row as usize, column as usize);
    let brick = row * BRICKS_PER_ROW + column / BRICK_WIDTH;
    (row < BRICK_ROWS && bricks[brick]).then_some(brick)
}

/// Whether the paddle can still be where the ball comes down. Until then nothing but bricks turns the ball, so its
/// flight is played ahead.
fn can_be_met(mut ball: Ball, paddle: i32, mut bricks: [bool; BRICKS]) -> bool {
    for moves in 1.. {
        if !bricks.contains(&true) {
            return true; // a new wall and a new ball
        }
        ball.bounce_off_walls();
        let (row, column) = ball.ahead();
        if row >= BOTTOM {
            let nearest = paddle.clamp(column - PADDLE_WIDTH + 1, column);
            return (paddle - nearest).abs() <= moves;
        }
        if let Flight::HitBrick(brick) = ball.fly(paddle, &bricks) {
            bricks[brick] = false;
        }
    }
    unreachable!("the ball comes down once no brick is in its way")
}

fn moved(paddle: i32, action: usize) -> i32 {
    match action {
        LEFT => (paddle - 1).max(0),
        RIGHT => (paddle + 1).min(PADDLE_MAX),
        _ => paddle,
    }
}

impl Rules for Paddle {
    const NAME: &'static str = "paddle";
    const ACTIONS: &'static [&'static str] = &["noop", "left", "right"];

    fn deal(rng: &mut ChaCha8Rng) -> Self {
        Self {
            bricks: [true; BRICKS],
            walls_cleared: 0,
            lives: LIVES,
            paddle: rng.random_range(0..=PADDLE_MAX),
            ball: Ball::serve(rng),
        }
    }

    fn play(&mut self, action: usize, rng: &mut ChaCha8Rng) -> (f32, bool) {
        self.paddle = moved(self.paddle, action);
        match self.ball.fly(self.paddle, &self.bricks) {
            Flight::Free => (0.0, false),
            Flight::Lost => {
                self.lives -= 1;
                if self.lives > 0 {
                    self.ball = Ball::serve(rng);
                }
                (0.0, self.lives == 0)
            }
            Flight::HitBrick(brick) => {
                self.bricks[brick] = false;
                if self.bricks.contains(&true) {
                    return (1.0, false);
                }
                self.walls_cleared += 1;
                if self.walls_cleared < WALLS {
                    // Served anew, because the ball may be where the new bricks are.
                    self.bricks = [true; BRICKS];
                    self.ball = Ball::serve(rng);
                }
                (1.0, self.walls_cleared == WALLS)
            }
        }
    }

    fn draw(&self, canvas: &mut Canvas) {
        for row in 0..BRICK_ROWS {
            for column in 0..CELLS {
                if brick_at(&self.bricks, row as i32, column as i32).is_some() {
                    let kind = row * 2 + column / BRICK_WIDTH % 2 + self.walls_cleared as usize;
                    canvas.cell(row, column, BRICK_COLOURS[kind % BRICK_COLOURS.len()]);
                }
            }
        }
        let colour = PADDLE_COLOURS[self.lives.max(1) as usize - 1];
        for column in self.paddle..self.paddle + PADDLE_WIDTH {
            canvas.cell(BOTTOM as usize, column as usize, colour);
        }
        canvas.cell(self.ball.row as usize, self.ball.column as usize, BALL);
    }

    /// The way to the next brick that takes the fewest steps and leaves the paddle where it can meet the ball again,
    /// found by breadth-first search. It aims, so no ball circles for ever past the last brick.
    fn best_action(&self) -> usize {
        let mut queue = VecDeque::from([(self.ball, self.paddle, None)]);
        let mut seen = HashSet::from([(self.ball, self.paddle)]);
        while let Some((ball, paddle, first)) = queue.pop_front() {
            for action in [NOOP, LEFT, RIGHT] {
                let first = first.unwrap_or(action);
                let paddle = moved(paddle, action);
                let mut ball = ball;
                match ball.fly(paddle, &self.bricks) {
                    Flight::Free if seen.insert((ball, paddle)) => {
                        queue.push_back((ball, paddle, Some(first)));
                    }
                    Flight::HitBrick(brick) => {
                        let mut bricks = self.bricks;
                        bricks[brick] = false;
                        if can_be_met(ball, paddle, bricks) {
                            return first;
                        }
                    }
                    Flight::Free | Flight::Lost => {}
                }
            }
        }
        NOOP
    }

    fn lives(&self) -> u32 {
        self.lives
    }

    fn is_sound(&self, over: bool) -> bool {
        let Ball {
            row,
            column,
            down,
            right,
        } = self.ball;
        let lowest = if over { BOTTOM } else { BOTTOM - 1 };
        let playable = self.lives > 0 && self.walls_cleared < WALLS && self.bricks.contains(&true);
        (0..=lowest).contains(&row)
            && (0..=RIGHTMOST).contains(&column)
            && down.abs() == 1
            && right.abs() == 1
            && (0..=PADDLE_MAX).contains(&self.paddle)
            && self.lives <= LIVES
            && self.walls_cleared <= WALLS
            && (playable || over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ball(row: i32, column: i32, down: i32, right: i32) -> Ball {
        Ball {
            row,
            column,
            down,
            right,
        }
    }

    /// The ball after a step with the paddle at `paddle` and no bricks.
    fn flown(mut ball: Ball, paddle: i32) -> (i32, i32, i32, i32) {
        ball.fly(paddle, &[false; BRICKS]);
        (ball.row, ball.column, ball.down, ball.right)
    }

    #[test]
    fn the_ball_bounces_off_the_walls() {
        assert_eq!(flown(ball(4, 7, 1, 1), 0), (5, 6, 1, -1));
        assert_eq!(flown(ball(4, 0, 1, -1), 0), (5, 1, 1, 1));
        assert_eq!(flown(ball(0, 3, -1, 1), 0), (1, 4, 1, 1));
        assert_eq!(flown(ball(0, 0, -1, -1), 0), (1, 1, 1, 1));
    }

    #[test]
    fn the_part_of_the_paddle_that_is_hit_directs_the_ball() {
        let falling = ball(6, 3, 1, 1); // lands on column 4
        assert_eq!(flown(falling, 4), (5, 2, -1, -1));
        assert_eq!(flown(falling, 3), (5, 4, -1, 1));
        assert_eq!(flown(falling, 2), (5, 4, -1, 1));
        assert!({ falling }.fly(1, &[false; BRICKS]) == Flight::Lost);
        assert!({ falling }.fly(5, &[false; BRICKS]) == Flight::Lost);
    }

    #[test]
    fn a_brick_gives_a_point_and_returns_the_ball() {
        let mut rng = rand::SeedableRng::seed_from_u64(0);
        let mut game = Paddle::deal(&mut rng);
        game.ball = ball(2, 3, -1, 1);
        assert_eq!(game.play(NOOP, &mut rng), (1.0, false));
        assert!(!game.bricks[5] && game.bricks.iter().filter(|&&b| b).count() == 7);
        assert!(game.ball == ball(3, 4, 1, 1));
    }

    #[test]
    fn the_third_wall_ends_the_game_and_the_others_are_built_again() {
        let mut rng = rand::SeedableRng::seed_from_u64(0);
        for (walls_cleared, over) in [(0, false), (1, false), (2, true)] {
            let mut game = Paddle::deal(&mut rng);
            game.walls_cleared = walls_cleared;
            game.bricks = [false; BRICKS];
            game.bricks[5] = true;
            game.ball = ball(2, 3, -1, 1);
            assert_eq!(game.play(NOOP, &mut rng), (1.0, over));
            assert_eq!(game.bricks, [!over; BRICKS]);
        }
    }

    #[test]
    fn the_third_lost_ball_ends_the_game() {
        let mut rng = rand::SeedableRng::seed_from_u64(0);
        let mut game = Paddle::deal(&mut rng);
        for lives in [2, 1, 0] {
            game.paddle = 0;
            game.ball = ball(6, 6, 1, 1);
            assert_eq!(game.play(NOOP, &mut rng), (0.0, lives == 0));
            assert_eq!(game.lives(), lives);
        }
        assert_eq!(game.ball.row, BOTTOM, "the last ball is seen to fall");
        game.best_action(); // comes to an end in a lost position too
    }
}
