//! `crossing`: cross the road as often as possible within the time limit. A completed crossing gives +1, and a car sends
//! the player back to the start, so rewards are as sparse as in Freeway.
//!
//! A frame shows the complete state: each lane has a fixed direction and speed, and slow cars are lighter in the step
//! before they move.

use std::collections::{HashSet, VecDeque};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::canvas::{CELLS, Canvas, Color, Rules};

const NOOP: usize = 0;
const UP: usize = 1;
const DOWN: usize = 2;

const START: usize = CELLS - 1;
const GOAL: usize = 0;

/// The traffic of a row, the same in every episode.
struct Lane {
    row: usize,
    /// Columns of the cars at shift 0. Cars wrap around the board.
    cars: &'static [usize],
    rightwards: bool,
    /// Whether the cars move only in every other step.
    slow: bool,
}

/// Three lanes with free rows between them, and few cars: with more traffic the random policy crosses so rarely that a
/// small run may never see a reward.
const LANES: [Lane; 3] = [
    Lane {
        row: 2,
        cars: &[0],
        rightwards: true,
        slow: false,
    },
    Lane {
        row: 4,
        cars: &[0, 1],
        rightwards: false,
        slow: true,
    },
    Lane {
        row: 6,
        cars: &[0],
        rightwards: false,
        slow: false,
    },
];

/// Steps after which all cars are back at their positions: a slow lane around the board.
const PERIOD: usize = 2 * CELLS;

const VERGE: Color = [20, 56, 32];
const ROAD: Color = [40, 40, 48];
const PLAYER: Color = [255, 230, 60];
const FAST_CAR: Color = [240, 60, 60];
const SLOW_CAR: Color = [60, 110, 240];
const SLOW_CAR_ABOUT_TO_MOVE: Color = [120, 190, 255];

/// The state of `crossing`.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Crossing {
    player: Place,
    traffic: [Traffic; LANES.len()],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Place {
    row: usize,
    column: usize,
}

/// The positions of the cars of a lane.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Traffic {
    /// Columns by which the cars are shifted to the right.
    shift: usize,
    /// Whether the cars stay in the next step.
    waits: bool,
}

impl Traffic {
    fn advance(&mut self, lane: &Lane) {
        if self.waits {
            self.waits = false;
            return;
        }
        let by = if lane.rightwards { 1 } else { CELLS - 1 };
        self.shift = (self.shift + by) % CELLS;
        self.waits = lane.slow;
    }

    fn cars(self, lane: &Lane) -> impl Iterator<Item = usize> {
        lane.cars.iter().map(move |car| (car + self.shift) % CELLS)
    }
}

impl Place {
    fn moved(self, action: usize) -> Self {
        let Self { row, column } = self;
        match action {
            UP => Self {
                row: row - 1,
                column,
            },
            DOWN => Self {
                row: (row + 1).min(START),
                column,
            },
            _ => self,
        }
    }

    fn is_hit(self, traffic: &[Traffic; LANES.len()]) -> bool {
        LANES.iter().zip(traffic).any(|(lane, traffic)| {
            lane.row == self.row && traffic.cars(lane).any(|car| car == self.column)
        })
    }
}

/// One step: the player moves, then the cars. After a collision the player is back at the start of the same column.
fn advance(player: &mut Place, action: usize, traffic: &mut [Traffic; LANES.len()]) {
    *player = player.moved(action);
    let ran_into_car = player.is_hit(traffic);
    for (traffic, lane) in traffic.iter_mut().zip(&LANES) {
        traffic.advance(lane);
    }
    if ran_into_car || player.is_hit(traffic) {
        player.row = START;
    }
}

fn at_start(rng: &mut ChaCha8Rng) -> Place {
    Place {
        row: START,
        column: rng.random_range(0..CELLS),
    }
}

impl Rules for Crossing {
    const NAME: &'static str = "crossing";
    const ACTIONS: &'static [&'static str] = &["noop", "up", "down"];

    fn initial(rng: &mut ChaCha8Rng) -> Self {
        Self {
            player: at_start(rng),
            traffic: LANES.each_ref().map(|lane| Traffic {
                shift: rng.random_range(0..CELLS),
                waits: lane.slow && rng.random_bool(0.5),
            }),
        }
    }

    /// The game is never over: the return is the number of crossings within the time limit.
    fn step(&mut self, action: usize, rng: &mut ChaCha8Rng) -> (f32, bool) {
        advance(&mut self.player, action, &mut self.traffic);
        if self.player.row > GOAL {
            return (0.0, false);
        }
        self.player = at_start(rng);
        (1.0, false)
    }

    fn draw(&self, canvas: &mut Canvas) {
        canvas.row(START, VERGE);
        canvas.row(GOAL, VERGE);
        for (lane, traffic) in LANES.iter().zip(&self.traffic) {
            canvas.row(lane.row, ROAD);
            let color = match (lane.slow, traffic.waits) {
                (false, _) => FAST_CAR,
                (true, true) => SLOW_CAR,
                (true, false) => SLOW_CAR_ABOUT_TO_MOVE,
            };
            for car in traffic.cars(lane) {
                canvas.cell(lane.row, car, color);
            }
        }
        canvas.cell(self.player.row, self.player.column, PLAYER);
    }

    /// The first action of the fastest crossing, by breadth-first search over time and position. This also maximizes
    /// the number of crossings: after an early crossing the player can wait at the start.
    fn scripted_action(&self) -> usize {
        let mut queue = VecDeque::from([(self.player, 0, self.traffic, None)]);
        let mut seen = HashSet::from([(self.player, 0)]);
        while let Some((place, time, traffic, first)) = queue.pop_front() {
            let time = (time + 1) % PERIOD;
            for action in [UP, NOOP, DOWN] {
                let first = first.unwrap_or(action);
                let (mut place, mut traffic) = (place, traffic);
                advance(&mut place, action, &mut traffic);
                if place.row == GOAL {
                    return first;
                }
                if seen.insert((place, time)) {
                    queue.push_back((place, time, traffic, Some(first)));
                }
            }
        }
        NOOP
    }

    fn is_valid(&self, _over: bool) -> bool {
        (GOAL + 1..=START).contains(&self.player.row)
            && self.player.column < CELLS
            && LANES
                .iter()
                .zip(&self.traffic)
                .all(|(lane, traffic)| traffic.shift < CELLS && (lane.slow || !traffic.waits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn game(row: usize, column: usize) -> Crossing {
        let traffic = [Traffic {
            shift: 0,
            waits: false,
        }; LANES.len()];
        let player = Place { row, column };
        Crossing { player, traffic }
    }

    fn after(mut game: Crossing, action: usize) -> (usize, usize) {
        let (reward, over) = game.step(action, &mut ChaCha8Rng::seed_from_u64(0));
        assert_eq!((reward, over), (0.0, false));
        (game.player.row, game.player.column)
    }

    #[test]
    fn a_collision_sends_the_player_back() {
        assert_eq!(after(game(3, 0), UP), (START, 0), "ran into the car");
        assert_eq!(after(game(2, 1), NOOP), (START, 1), "was run over");
        assert_eq!(after(game(3, 1), UP), (START, 1), "stepped in front of it");
        assert_eq!(after(game(2, 1), DOWN), (3, 1), "stepped aside");
        assert_eq!(after(game(3, 7), UP), (2, 7), "was free to go");
    }

    #[test]
    fn the_player_stays_on_the_board() {
        assert_eq!(after(game(START, 3), DOWN), (START, 3));
    }

    #[test]
    fn a_crossing_gives_a_reward_and_restarts_at_the_bottom() {
        let mut game = game(1, 4);
        assert_eq!(
            game.step(UP, &mut ChaCha8Rng::seed_from_u64(0)),
            (1.0, false)
        );
        assert_eq!(game.player.row, START);
    }

    #[test]
    fn slow_cars_move_in_every_other_step() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut game = Crossing::initial(&mut rng);
        for _ in 0..PERIOD {
            let before = game.traffic;
            game.step(NOOP, &mut rng);
            for ((lane, before), after) in LANES.iter().zip(before).zip(game.traffic) {
                assert_eq!(before.shift == after.shift, before.waits);
                assert_eq!(after.waits, lane.slow && !before.waits);
            }
        }
    }

    #[test]
    fn traffic_repeats_after_its_period() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut game = Crossing::initial(&mut rng);
        let cars = |game: &Crossing| game.traffic.map(|t| (t.shift, t.waits));
        let first = cars(&game);
        for _ in 0..PERIOD {
            game.step(NOOP, &mut rng);
        }
        assert!(cars(&game) == first);
    }
}
