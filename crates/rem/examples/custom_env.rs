//! Trains an agent on an environment of your own: implement three methods, and pass a closure that makes it.
//!
//! ```sh
//! cargo run --release -p rem --example custom_env -- runs/lamps
//! ```
//! It learns the game in a minute. `rem watch` and `rem report` work on the run.

use rem::{Action, ActionSpace, Env, EnvError, Observation, ObservationSpace, Outcome, Spaces};
use rem::{Config, Event, Step, Trainer};

/// One of three lamps is lit. The button of the same number gives a point. An episode has ten lamps.
struct Lamps {
    random: u64,
    left: u32,
}

impl Lamps {
    fn lit(&self) -> usize {
        (self.random >> 33) as usize % 3
    }

    /// A gray image of 24 x 48 pixels. Images of other sizes and RGB work as well: they are scaled.
    fn next(&mut self) -> Observation {
        self.random = (self.random ^ 1442695040888963407).wrapping_mul(6364136223846793005);
        let pixel = |i: usize| if i % 48 / 16 == self.lit() { 255 } else { 30 };
        let image: Vec<u8> = (0..24 * 48).map(pixel).collect();
        image.into()
    }
}

impl Env for Lamps {
    fn spaces(&self) -> Spaces {
        Spaces {
            observation: ObservationSpace::gray(24, 48),
            action: ActionSpace::named(["left", "middle", "right"]),
        }
    }

    fn reset(&mut self) -> Result<Observation, EnvError> {
        self.left = 10;
        Ok(self.next())
    }

    fn step(&mut self, action: &Action) -> Result<Step, EnvError> {
        let reward = f32::from(action.index() == self.lit());
        self.left -= 1;
        let outcome = Outcome::terminated_if(self.left == 0);
        Ok(Step::new(self.next(), reward, outcome))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: custom_env RUN_DIR")?;
    let config = Config::load(
        "quick",
        &["env.game=lamps".into(), "train.epochs=16".into()],
    )?;
    let make = |_mode, random| Ok(Lamps { random, left: 0 });
    Trainer::new(config, make)?
        .start(dir)?
        .train(&mut |event| {
            if let Event::Evaluated { epoch, score, .. } = event {
                println!("epoch {epoch}: mean return {:.2} of 10", score.mean);
            }
        })?;
    Ok(())
}
