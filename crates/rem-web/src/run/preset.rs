//! The preset of a run. A run records its whole config, but not the preset that it started from.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rem::config::{Config, NearestPreset, PresetValues};

/// The presets of each game that was asked for: loading all of them takes some milliseconds.
static OF_GAME: Mutex<Option<HashMap<String, Arc<PresetValues>>>> = Mutex::new(None);

/// Most games to remember.
const MAX_GAMES: usize = 64;

/// The preset that is nearest to a config.
pub(super) fn nearest(config: &Config) -> Option<NearestPreset> {
    of_game(&config.env.game).nearest(config)
}

fn of_game(game: &str) -> Arc<PresetValues> {
    let mut known = OF_GAME.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if known.len() >= MAX_GAMES && !known.contains_key(game) {
        known.clear();
    }
    let presets = known.entry(game.to_owned());
    let presets = presets.or_insert_with(|| Arc::new(PresetValues::of_game(game)));
    presets.clone()
}
