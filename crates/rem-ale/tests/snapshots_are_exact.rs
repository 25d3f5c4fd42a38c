//! An emulator restored from a snapshot continues exactly like the original.

mod support;

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use rem_ale::{Action, Ale, AleError, GAMES, Game, Settings};
use support::{Lcg, STICKY, Seen, play, rom, screen_crc32, start};

const OTHER_SEED: Settings = Settings { seed: 99, ..STICKY };

/// Takes several snapshots and restores each into an emulator with another seed: first a fresh one, then one with a
/// different history.
fn assert_continues_exactly(game: &Game, settings: Settings, moments: u64, frames: usize) {
    let name = game.name;
    let (mut first, mut lcg) = (start(name, settings), Lcg(17));
    let mut second = Ale::new(
        &rom(name),
        Settings {
            seed: 99,
            ..settings
        },
    )
    .unwrap();
    for moment in 0..moments {
        play(&mut first, &mut lcg, 37 + 101 * moment as usize);
        let snapshot = first.snapshot();
        second
            .restore(&snapshot)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(screen_crc32(&second), screen_crc32(&first), "{name}");
        assert_eq!(second.lives(), first.lives(), "{name}");
        assert_eq!(second.game_over(), first.game_over(), "{name}");
        assert_eq!(second.episode_frames(), first.episode_frames(), "{name}");
        assert!(
            second.snapshot() == snapshot,
            "{name}: the snapshots differ"
        );

        let mut same = Lcg(lcg.0);
        let expected = play(&mut first, &mut lcg, frames);
        let found = play(&mut second, &mut same, frames);
        let differs = expected
            .iter()
            .zip(&found)
            .position(|(one, other)| one != other);
        assert_eq!(differs, None, "{name} at moment {moment}");
        assert!(
            second.snapshot() == first.snapshot(),
            "{name}: hidden state diverged"
        );
        play(&mut second, &mut Lcg(moment), 53);
    }
}

#[test]
fn benchmark_games_continue_exactly() {
    for game in Game::benchmark() {
        assert_continues_exactly(game, STICKY, 3, 300);
        assert_continues_exactly(
            game,
            Settings {
                sticky: 0.0,
                ..STICKY
            },
            2,
            200,
        );
    }
}

#[test]
fn all_other_games_continue_exactly() {
    for game in GAMES.iter().filter(|game| game.reference.is_none()) {
        assert_continues_exactly(game, STICKY, 2, 150);
    }
}

#[test]
fn other_modes_and_difficulties_continue_exactly() {
    for game in [
        "pong",
        "breakout",
        "freeway",
        "video_checkers",
        "video_cube",
    ] {
        let ale = start(game, STICKY);
        let settings = Settings {
            mode: ale.modes().last().copied(),
            difficulty: ale.difficulties().last().copied(),
            ..STICKY
        };
        assert_continues_exactly(ale.game(), settings, 3, 200);
    }
}

/// Starts itself, by the name of the test, as another process.
#[test]
fn another_process_continues_exactly() {
    const DIR: &str = "REM_ALE_TEST_SNAPSHOTS";
    let games = ["breakout", "jamesbond", "ms_pacman", "demon_attack"];
    if let Some(dir) = env::var_os(DIR) {
        for game in games {
            let snapshot = fs::read(Path::new(&dir).join(game)).unwrap();
            let mut ale = start(game, OTHER_SEED);
            ale.restore(&snapshot).unwrap();
            println!("seen {:?}", play(&mut ale, &mut Lcg(3), 300));
        }
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let seen: Vec<Vec<Seen>> = games
        .iter()
        .map(|game| {
            let mut ale = start(game, STICKY);
            play(&mut ale, &mut Lcg(2), 500);
            fs::write(dir.path().join(game), ale.snapshot()).unwrap();
            play(&mut ale, &mut Lcg(3), 300)
        })
        .collect();
    let output = Command::new(env::current_exe().unwrap())
        .args([
            "another_process_continues_exactly",
            "--exact",
            "--nocapture",
        ])
        .env(DIR, dir.path())
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = output
        .lines()
        .filter_map(|line| line.split_once("seen "))
        .collect();
    assert_eq!(lines.len(), games.len(), "{output}");
    for ((_, line), seen) in lines.iter().zip(&seen) {
        assert!(*line == format!("{seen:?}"), "the other process diverged");
    }
}

#[test]
fn taking_a_snapshot_has_no_side_effects() {
    for game in ["pong", "qbert"] {
        let (mut one, mut other) = (start(game, STICKY), start(game, STICKY));
        let expected = play(&mut one, &mut Lcg(1), 300);
        let mut lcg = Lcg(1);
        for seen in expected {
            other.snapshot();
            assert_eq!(play(&mut other, &mut lcg, 1), [seen]);
        }
    }
}

#[test]
fn snapshots_include_game_over() {
    let mut ale = start("pong", STICKY);
    while !ale.game_over() {
        ale.act(Action::Noop);
    }
    let mut other = start("pong", OTHER_SEED);
    other.restore(&ale.snapshot()).unwrap();
    assert!(other.game_over());
    assert_eq!(other.act(Action::Noop), 0);
    ale.act(Action::Noop);
    ale.reset();
    other.reset();
    assert_eq!(
        play(&mut ale, &mut Lcg(4), 200),
        play(&mut other, &mut Lcg(4), 200)
    );
}

#[test]
fn damaged_and_foreign_snapshots_are_rejected() {
    let mut ale = start("pong", STICKY);
    play(&mut ale, &mut Lcg(1), 100);
    let good = ale.snapshot();
    let flipped = |place: usize| {
        let mut bad = good.clone();
        bad[place] ^= 0x10;
        bad
    };
    let cases = [
        (Vec::new(), "truncated"),
        (
            b"something else altogether, and long enough".to_vec(),
            "not an emulator snapshot",
        ),
        (good[..good.len() - 1].to_vec(), "truncated or damaged"),
        (good[..good.len() / 2].to_vec(), "truncated or damaged"),
        ([&good[..], b"more"].concat(), "damaged"),
        (flipped(8), "not written with ALE 0.12.1"),
        (flipped(40), "damaged"),
        (flipped(1000), "damaged"),
        (flipped(good.len() - 5), "damaged"),
        (start("boxing", STICKY).snapshot(), "not from `pong`"),
    ];
    play(&mut ale, &mut Lcg(2), 100);
    let before = ale.snapshot();
    for (bad, reason) in cases {
        let error = ale.restore(&bad).unwrap_err();
        assert!(matches!(&error, AleError::Snapshot { .. }));
        assert!(
            error.to_string().contains(reason),
            "`{error}` does not say {reason}"
        );
        assert!(ale.snapshot() == before);
    }
    ale.restore(&good).unwrap();
    assert!(ale.snapshot() == good);
}

/// A state with a valid checksum that the emulator cannot load is rejected, and the emulator is unchanged.
#[test]
fn invalid_states_are_rolled_back() {
    let mut ale = start("pong", STICKY);
    play(&mut ale, &mut Lcg(1), 100);
    let good = ale.snapshot();
    play(&mut ale, &mut Lcg(2), 100);
    let before = ale.snapshot();
    let (header, state) = (&good[..28], &good[44..]);
    for state in [
        &state[..0],
        &state[..7],
        &state[..state.len() - 1],
        &[state, b"more"].concat()[..],
    ] {
        let digest = <md5::Md5 as md5::Digest>::digest(state);
        let error = ale.restore(&[header, &digest, state].concat()).unwrap_err();
        assert!(matches!(&error, AleError::Snapshot { .. }));
        assert!(ale.snapshot() == before, "{error}");
    }
    assert_eq!(ale.game(), rom("pong").game());
}
