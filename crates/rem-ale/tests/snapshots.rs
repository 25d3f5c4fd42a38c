//! A snapshot is the whole state: an emulator that is restored from it goes on as the first one does.

mod support;

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use rem_ale::{Action, Ale, AleError, GAMES, Game, Settings};
use support::{Lcg, STICKY, Seen, play, rom, screen_crc32, start};

const OTHER_SEED: Settings = Settings { seed: 99, ..STICKY };

/// Snapshots at several moments, restored into an emulator with another seed: at first a fresh one, then one that
/// has played something else.
fn goes_on(game: &Game, settings: Settings, moments: u64, frames: usize) {
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
        assert!(second.snapshot() == snapshot, "{name}: another snapshot");

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
            "{name}: diverged unseen"
        );
        play(&mut second, &mut Lcg(moment), 53);
    }
}

#[test]
fn the_benchmark_goes_on_exactly() {
    for game in Game::benchmark() {
        goes_on(game, STICKY, 3, 300);
        goes_on(
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
fn every_other_game_goes_on_exactly() {
    for game in GAMES.iter().filter(|game| game.reference.is_none()) {
        goes_on(game, STICKY, 2, 150);
    }
}

#[test]
fn modes_and_difficulties_go_on_exactly() {
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
        goes_on(ale.game(), settings, 3, 200);
    }
}

/// The name of this test is also how it calls itself as another process.
#[test]
fn another_process_goes_on_exactly() {
    const FOLDER: &str = "REM_ALE_TEST_SNAPSHOTS";
    let games = ["breakout", "jamesbond", "ms_pacman", "demon_attack"];
    if let Some(folder) = env::var_os(FOLDER) {
        for game in games {
            let snapshot = fs::read(Path::new(&folder).join(game)).unwrap();
            let mut ale = start(game, OTHER_SEED);
            ale.restore(&snapshot).unwrap();
            println!("seen {:?}", play(&mut ale, &mut Lcg(3), 300));
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let seen: Vec<Vec<Seen>> = games
        .iter()
        .map(|game| {
            let mut ale = start(game, STICKY);
            play(&mut ale, &mut Lcg(2), 500);
            fs::write(folder.path().join(game), ale.snapshot()).unwrap();
            play(&mut ale, &mut Lcg(3), 300)
        })
        .collect();
    let output = Command::new(env::current_exe().unwrap())
        .args(["another_process_goes_on_exactly", "--exact", "--nocapture"])
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = output
        .lines()
        .filter_map(|line| line.split_once("seen "))
        .collect();
    assert_eq!(lines.len(), games.len(), "{output}");
    for ((_, line), seen) in lines.iter().zip(&seen) {
        assert!(
            *line == format!("{seen:?}"),
            "the other process saw something else"
        );
    }
}

#[test]
fn a_snapshot_changes_nothing() {
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
fn the_end_of_a_game_is_kept() {
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
fn damaged_and_foreign_snapshots_are_refused_and_change_nothing() {
    let mut ale = start("pong", STICKY);
    play(&mut ale, &mut Lcg(1), 100);
    let good = ale.snapshot();
    let flipped = |place: usize| {
        let mut bad = good.clone();
        bad[place] ^= 0x10;
        bad
    };
    let cases = [
        (Vec::new(), "cut short"),
        (
            b"something else altogether, and long enough".to_vec(),
            "not a snapshot",
        ),
        (good[..good.len() - 1].to_vec(), "cut short or damaged"),
        (good[..good.len() / 2].to_vec(), "cut short or damaged"),
        ([&good[..], b"more"].concat(), "damaged"),
        (flipped(8), "not of ALE 0.12.1"),
        (flipped(40), "damaged"),
        (flipped(1000), "damaged"),
        (flipped(good.len() - 5), "damaged"),
        (start("boxing", STICKY).snapshot(), "not of `pong`"),
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

/// Whole by its checksum, but not what the emulator writes: refused, and the emulator is as it was.
#[test]
fn a_state_that_does_not_fit_is_taken_back() {
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
