//! Emulator instances are independent of each other, and invalid settings and ROMs are rejected.

mod support;

use std::fs;
use std::thread;

use rem_ale::{Action, Ale, AleError, Game, Rom, Settings};
use support::{Lcg, STICKY, Seen, play, rom, screen_crc32, start};

#[test]
fn parallel_instances_match_sequential_ones() {
    let run = |game: &str, seed: u32| -> Vec<Seen> {
        let mut ale = start(game, Settings { seed, ..STICKY });
        play(&mut ale, &mut Lcg(seed.into()), 1500)
    };
    let games = [
        "pong",
        "breakout",
        "seaquest",
        "pong",
        "ms_pacman",
        "breakout",
        "boxing",
        "jamesbond",
    ];
    let expected: Vec<_> = games
        .iter()
        .zip(1..)
        .map(|(game, seed)| run(game, seed))
        .collect();
    let found: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = games
            .iter()
            .zip(1..)
            .map(|(game, seed)| scope.spawn(move || run(game, seed)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(expected == found);
}

#[test]
fn emulators_can_move_between_threads() {
    let (mut one, mut other) = (start("pong", STICKY), start("pong", STICKY));
    let expected = play(&mut one, &mut Lcg(1), 200);
    play(&mut other, &mut Lcg(1), 0);
    let found = thread::spawn(move || play(&mut other, &mut Lcg(1), 200))
        .join()
        .unwrap();
    assert!(expected == found);
}

#[test]
fn seeds_determine_sticky_actions() {
    let run = |seed| {
        play(
            &mut start("breakout", Settings { seed, ..STICKY }),
            &mut Lcg(1),
            600,
        )
    };
    assert!(run(0) == run(0));
    assert!(run(7) == run(7));
    assert!(run(u32::MAX) == run(u32::MAX));
    assert!(run(0) != run(7));
    assert!(run(u32::MAX) != run(0));
}

#[test]
fn seeds_have_no_effect_without_sticky_actions() {
    let run = |seed| {
        let settings = Settings {
            seed,
            ..Settings::default()
        };
        play(&mut start("breakout", settings), &mut Lcg(1), 600)
    };
    assert!(run(0) == run(7));
}

#[test]
fn rgb_screen_is_the_indexed_screen_through_the_palette() {
    let mut ale = start("pong", STICKY);
    play(&mut ale, &mut Lcg(1), 30);
    assert_eq!((ale.height(), ale.width()), (210, 160));
    let colors: Vec<u8> = ale
        .screen()
        .iter()
        .flat_map(|&color| ale.palette()[color as usize])
        .collect();
    assert_eq!(crc32fast::hash(&colors), screen_crc32(&ale));
}

#[test]
fn pal_games_have_taller_screens() {
    let ale = start("air_raid", STICKY);
    assert_eq!((ale.height(), ale.width()), (250, 160));
    screen_crc32(&ale);
}

#[test]
#[should_panic(expected = "the screen has 100800 bytes of RGB, the buffer has 10")]
fn screen_rgb_panics_on_a_wrong_buffer_size() {
    start("pong", STICKY).screen_rgb(&mut [0; 10]);
}

#[test]
fn action_sets_modes_and_difficulties_are_those_of_the_game() {
    let mut ale = start("pong", STICKY);
    let names = |actions: &[Action]| {
        actions
            .iter()
            .map(|action| action.name())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(ale.actions()),
        ["noop", "fire", "right", "left", "right-fire", "left-fire"]
    );
    assert_eq!(ale.legal_actions(), Action::ALL);
    assert_eq!(ale.modes(), [0, 1]);
    assert_eq!(ale.difficulties(), [0, 1, 2, 3]);
    let usual = play(&mut ale, &mut Lcg(1), 300);

    let full = Settings {
        full_action_set: true,
        ..STICKY
    };
    assert_eq!(start("pong", full).actions(), Action::ALL);
    let mode = Settings {
        mode: Some(1),
        ..STICKY
    };
    assert!(play(&mut start("pong", mode), &mut Lcg(1), 300) != usual);

    let error = |settings| Ale::new(&rom("pong"), settings).unwrap_err();
    let mode = error(Settings {
        mode: Some(2),
        ..STICKY
    });
    assert_eq!(mode.to_string(), "`pong` has no mode 2");
    assert_eq!(mode.hint(), "the modes are 0, 1");
    let difficulty = error(Settings {
        difficulty: Some(4),
        ..STICKY
    });
    assert_eq!(difficulty.to_string(), "`pong` has no difficulty 4");
    assert_eq!(difficulty.hint(), "the difficulties are 0, 1, 2, 3");
    for sticky in [-0.1, 1.0, f32::NAN] {
        assert!(matches!(
            error(Settings { sticky, ..STICKY }),
            AleError::BadSticky { .. }
        ));
    }
}

#[test]
fn actions_have_no_effect_after_game_over() {
    let mut ale = start("pong", Settings::default());
    while !ale.game_over() {
        ale.act(Action::Noop);
    }
    let (screen, frames) = (screen_crc32(&ale), ale.episode_frames());
    assert_eq!(ale.act(Action::Fire), 0);
    assert_eq!((screen_crc32(&ale), ale.episode_frames()), (screen, frames));
    ale.reset();
    assert!(!ale.game_over());
    assert_eq!(ale.episode_frames(), 0);
}

/// ALE exits the process if the ROM file is missing, so it must not get there.
#[test]
fn missing_and_changed_roms_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pong.bin");
    fs::copy(rom("pong").file(), &file).unwrap();
    let found = Rom::find(Game::named("pong").unwrap(), Some(dir.path())).unwrap();
    assert_eq!(found.file(), file);
    Ale::new(&found, STICKY).unwrap();
    fs::copy(rom("boxing").file(), &file).unwrap();
    assert!(matches!(
        Ale::new(&found, STICKY),
        Err(AleError::RomWrong { .. })
    ));
    fs::remove_file(&file).unwrap();
    assert!(matches!(
        Ale::new(&found, STICKY),
        Err(AleError::RomUnreadable { .. })
    ));
}
