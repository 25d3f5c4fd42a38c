//! `paddle`: a small Breakout with three lives and three walls of eight bricks, one point per brick: 24 points at most.
//!
//! A single frame does not show the direction of the ball, so the agent needs memory. The rest of the state is visible:
//! the color of the paddle shows the lives, the order of the brick colors shows the wall.

use std::collections::{HashSet, VecDeque};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::canvas::{CELLS, Canvas, Color, Rules};

const NOOP: usize = 0;
const LEFT: usize = 1;
const RIGHT: usize = 2;

const BOTTOM: i32 = CELLS as i32 - 1;
const RIGHTMOST: i32 = CELLS as i32 - 1;
/// Three cells: the outer ones deflect the ball to their side, so a player can aim; the middle one does not deflect it.
const PADDLE_WIDTH: i32 = 3;
const PADDLE_MAX: i32 = CELLS as i32 - PADDLE_WIDTH;

const BRICK_ROWS: usize = 2;
const BRICK_WIDTH: usize = 2;
const BRICKS_PER_ROW: usize = CELLS / BRICK_WIDTH;
const BRICKS: usize = BRICK_ROWS * BRICKS_PER_ROW;
/// Directly below the bricks, five steps above the paddle, which can reach any column in that time.
const SERVE_ROW: i32 = BRICK_ROWS as i32;

const LIVES: u32 = 3;
const WALLS: u32 = 3;

const BALL: Color = [255, 255, 255];
const BRICK_COLORS: [Color; 4] = [
    [230, 50, 50],
    [250, 150, 30],
    [60, 110, 250],
    [190, 70, 230],
];
/// For one, two and three lives.
const PADDLE_COLORS: [Color; 3] = [[250, 230, 60], [130, 230, 60], [30, 210, 130]];

/// The state of `paddle`.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Paddle {
    /// Which bricks remain, row by row.
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

    /// The next cell, if nothing is in the way.
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

    /// Moves the ball one step, after the paddle has moved. The caller removes a brick that is hit.
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
        // At most one brick per step: above or below first, then at the side, then at the corner.
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
        // If a brick is also in the opposite direction, the ball stays for a step.
        if on_board && brick_at(bricks, row, column).is_none() {
            (self.row, self.column) = (row, column);
        }
        Flight::HitBrick(hit)
    }
}

/// The remaining brick at a cell of the board.
fn brick_at(bricks: &[bool; BRICKS], row: i32, column: i32) -> Option<usize> {
    let (row, column) = (row as usize, column as usize);
    let brick = row * BRICKS_PER_ROW + column / BRICK_WIDTH;
    (row < BRICK_ROWS && bricks[brick]).then_some(brick)
}

/// Whether the paddle can reach the ball when it comes down. Only bricks deflect the ball until then, so its flight can
/// be simulated.
fn is_reachable(mut ball: Ball, paddle: i32, mut bricks: [bool; BRICKS]) -> bool {
    for moves in 1.. {
        if !bricks.contains(&true) {
            return true; // the next wall begins with a new serve
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

    fn initial(rng: &mut ChaCha8Rng) -> Self {
        Self {
            bricks: [true; BRICKS],
            walls_cleared: 0,
            lives: LIVES,
            paddle: rng.random_range(0..=PADDLE_MAX),
            ball: Ball::serve(rng),
        }
    }

    fn step(&mut self, action: usize, rng: &mut ChaCha8Rng) -> (f32, bool) {
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
                    // A new serve, because the ball may be at the position of a new brick.
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
                    canvas.cell(row, column, BRICK_COLORS[kind % BRICK_COLORS.len()]);
                }
            }
        }
        let color = PADDLE_COLORS[self.lives.max(1) as usize - 1];
        for column in self.paddle..self.paddle + PADDLE_WIDTH {
            canvas.cell(BOTTOM as usize, column as usize, color);
        }
        canvas.cell(self.ball.row as usize, self.ball.column as usize, BALL);
    }

    /// The first action of the shortest sequence that hits a brick and can still reach the ball afterwards, by
    /// breadth-first search. It aims, so that the ball does not miss the last brick forever.
    fn scripted_action(&self) -> usize {
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
                        if is_reachable(ball, paddle, bricks) {
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

    fn is_valid(&self, over: bool) -> bool {
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
    fn the_cell_of_the_paddle_determines_the_direction() {
        let falling = ball(6, 3, 1, 1); // lands on column 4
        assert_eq!(flown(falling, 4), (5, 2, -1, -1));
        assert_eq!(flown(falling, 3), (5, 4, -1, 1));
        assert_eq!(flown(falling, 2), (5, 4, -1, 1));
        assert!({ falling }.fly(1, &[false; BRICKS]) == Flight::Lost);
        assert!({ falling }.fly(5, &[false; BRICKS]) == Flight::Lost);
    }

    #[test]
    fn hitting_a_brick_gives_a_point_and_reflects_the_ball() {
        let mut rng = rand::SeedableRng::seed_from_u64(0);
        let mut game = Paddle::initial(&mut rng);
        game.ball = ball(2, 3, -1, 1);
        assert_eq!(game.step(NOOP, &mut rng), (1.0, false));
        assert!(!game.bricks[5] && game.bricks.iter().filter(|&&b| b).count() == 7);
        assert!(game.ball == ball(3, 4, 1, 1));
    }

    #[test]
    fn a_cleared_wall_is_rebuilt_except_the_third() {
        let mut rng = rand::SeedableRng::seed_from_u64(0);
        for (walls_cleared, over) in [(0, false), (1, false), (2, true)] {
            let mut game = Paddle::initial(&mut rng);
            game.walls_cleared = walls_cleared;
            game.bricks = [false; BRICKS];
            game.bricks[5] = true;
            game.ball = ball(2, 3, -1, 1);
            assert_eq!(game.step(NOOP, &mut rng), (1.0, over));
            assert_eq!(game.bricks, [!over; BRICKS]);
        }
    }

    #[test]
    fn the_third_lost_ball_ends_the_game() {
        let mut rng = rand::SeedableRng::seed_from_u64(0);
        let mut game = Paddle::initial(&mut rng);
        for lives in [2, 1, 0] {
            game.paddle = 0;
            game.ball = ball(6, 6, 1, 1);
            assert_eq!(game.step(NOOP, &mut rng), (0.0, lives == 0));
            assert_eq!(game.lives(), lives);
        }
        assert_eq!(
            game.ball.row, BOTTOM,
            "the last ball reaches the bottom row"
        );
        game.scripted_action(); // terminates in a lost state, too
    }
}
