//! Raw frames per second on one core: `cargo run --release -p rem-ale --features atari --example emulator_speed`.

use std::time::{Duration, Instant};

use rem_ale::{Ale, Game, Rom, Settings};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let games: Vec<String> = std::env::args().skip(1).collect();
    let games: Vec<_> = if games.is_empty() {
        Game::benchmark().collect()
    } else {
        games
            .iter()
            .map(|name| Game::named(name))
            .collect::<Result<_, _>>()?
    };
    println!(
        "{:>16} {:>10} {:>14} {:>12}",
        "game", "frames/s", "with RGB each", "snapshot µs"
    );
    for game in games {
        let mut ale = Ale::new(&Rom::find(game, None)?, Settings::default())?;
        ale.reset();
        let mut rgb = vec![0; ale.height() * ale.width() * 3];
        let bare = frames_per_second(&mut ale, |_| {});
        let drawn = frames_per_second(&mut ale, |ale| ale.screen_rgb(&mut rgb));
        let start = Instant::now();
        for _ in 0..20 {
            let snapshot = ale.snapshot();
            ale.restore(&snapshot)?;
        }
        let snapshot = start.elapsed().as_micros() / 20;
        println!(
            "{:>16} {bare:>10.0} {drawn:>14.0} {snapshot:>12}",
            game.name
        );
    }
    Ok(())
}

fn frames_per_second(ale: &mut Ale, mut look: impl FnMut(&Ale)) -> f64 {
    let actions = ale.actions().to_vec();
    let (start, mut frames) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_millis(500) {
        for _ in 0..100 {
            ale.act(actions[frames / 4 % actions.len()]);
            look(ale);
            if ale.game_over() {
                ale.reset();
            }
            frames += 1;
        }
    }
    frames as f64 / start.elapsed().as_secs_f64()
}
