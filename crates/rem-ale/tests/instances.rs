//! Emulators beside each other, seeds, settings, and what is refused at the start.

mod support;

use std::fs;
use std::thread;

use rem_ale::{Action, Ale, AleError, Game, Rom, Settings};
use support::{Lcg, STICKY, Seen, play, rom, screen_crc32, start};

#[test]
fn on_threads_as_one_after_another() {
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
fn an_emulator_can_move_to_another_thread() {
    let (mut one, mut other) = (start("pong", STICKY), start("pong", STICKY));
    let expected = play(&mut one, &mut Lcg(1), 200);
    play(&mut other, &mut Lcg(1), 0);
    let found = thread::spawn(move || play(&mut other, &mut Lcg(1), 200))
        .join()
        .unwrap();
    assert!(expected == found);
}

#[test]
fn the_same_seed_sticks_alike_and_zero_is_a_seed() {
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
fn without_sticky_actions_seeds_make_no_difference() {
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
fn the_screen_is_the_palette_over_its_numbers() {
    let mut ale = start("pong", STICKY);
    play(&mut ale, &mut Lcg(1), 30);
    assert_eq!((ale.height(), ale.width()), (210, 160));
    let colours: Vec<u8> = ale
        .screen()
        .iter()
        .flat_map(|&colour| ale.palette()[colour as usize])
        .collect();
    assert_eq!(crc32fast::hash(&colours), screen_crc32(&ale));
}

#[test]
fn european_games_have_taller_screens() {
    let ale = start("air_raid", STICKY);
    assert_eq!((ale.height(), ale.width()), (250, 160));
    screen_crc32(&ale);
}

#[test]
#[should_panic(expected = "the screen has 100800 bytes of RGB, the buffer has 10")]
fn a_buffer_of_another_size_is_our_mistake() {
    start("pong", STICKY).screen_rgb(&mut [0; 10]);
}

#[test]
fn action_sets_modes_and_difficulties() {
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
fn a_game_that_is_over_waits_for_a_reset() {
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

/// ALE ends the whole process for a file that is not there: it must never be asked.
#[test]
fn a_rom_that_disappears_or_changes_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pong.bin");
    fs::copy(rom("pong").file(), &file).unwrap();
    let found = Rom::find(Game::named("pong").unwrap(), Some(folder.path())).unwrap();
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
