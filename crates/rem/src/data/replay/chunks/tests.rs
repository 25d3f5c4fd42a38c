use super::super::tests::replay_of;
use super::*;
use crate::data::replay::StepId;

fn assert_same(a: &Replay, b: &Replay) {
    assert_eq!((a.steps(), a.episodes()), (b.steps(), b.episodes()));
    assert!((0..a.steps() as u32).all(|position| a.id(position) == b.id(position)));
    assert_eq!(a.actions, b.actions);
    assert_eq!(a.rewards, b.rewards);
    assert!(a.outcomes == b.outcomes);
    assert!((0..a.steps()).all(|position| a.frames.get(position) == b.frames.get(position)));
}

/// A directory with one chunk.
fn one_chunk() -> (tempfile::TempDir, ChunkInfo) {
    let dir = tempfile::tempdir().unwrap();
    let chunk = replay_of(&[4, 2, 3])
        .write_chunk(dir.path(), 0, "a.chunk")
        .unwrap()
        .unwrap();
    (dir, chunk)
}

fn load_error(dir: &tempfile::TempDir, chunks: &[ChunkInfo]) -> ReplayError {
    Replay::load(dir.path(), chunks, 3, 2)
        .err()
        .expect("loading the chunk fails")
}

/// Changes the file and updates its length and checksum.
fn forge(dir: &tempfile::TempDir, chunk: &mut ChunkInfo, change: impl FnOnce(&mut Vec<u8>)) {
    let path = dir.path().join(&chunk.file);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    chunk.bytes = bytes.len() as u64;
    chunk.crc32 = crc32fast::hash(&bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn chunks_of_several_epochs_load_as_the_same_replay() {
    let dir = tempfile::tempdir().unwrap();
    let whole = replay_of(&[3, 1, 300, 2, 5]);
    let mut replay = Replay::new(3, 2);
    let mut chunks = Vec::new();
    // The third episode is open at the end of three epochs and continues in the next; the fifth epoch collects nothing.
    for (epoch, steps) in [2, 3, 4, 200, 200, 308, 311].into_iter().enumerate() {
        let written = replay.steps();
        for position in written..steps {
            let id = whole.id(position as u32);
            replay.push(
                whole.frame(id),
                whole.action(id),
                whole.reward(id),
                whole.outcome(id),
            );
        }
        let name = format!("epoch-{epoch:04}.chunk");
        let chunk = replay
            .write_chunk(&dir.path().join("replay"), written, &name)
            .unwrap();
        assert_eq!(chunk.is_none(), steps == written);
        chunks.extend(chunk);

        // Each epoch resumes from disk.
        let loaded = Replay::load(&dir.path().join("replay"), &chunks, 3, 2).unwrap();
        assert_same(&loaded, &replay);
        assert_eq!(loaded.has_open_episode(), replay.has_open_episode());
        replay = loaded;
    }
    assert_eq!(chunks.len(), 6);
    assert_same(&replay, &whole);
    assert!(replay.has_open_episode());
    assert_eq!(
        replay.frame(StepId {
            episode: 4,
            index: 4
        }),
        [4, 4, 7]
    );
}

#[test]
fn chunks_of_several_streams_load_as_the_same_replay() {
    let dir = tempfile::tempdir().unwrap();
    let mut replay = Replay::new(3, 2);
    let mut chunks = Vec::new();
    for epoch in 0..5u8 {
        let written = replay.steps();
        if epoch == 3 {
            // As after a resume with an environment that cannot be restored.
            replay.abandon_episode(1);
        }
        for stream in 0..3u8 {
            for step in 0..4u8 {
                let outcome = match (stream, epoch, step) {
                    (0, 1, 2) => Outcome::Terminated,
                    (2, 2, 3) => Outcome::Truncated,
                    _ => Outcome::Running,
                };
                let stream = u32::from(stream);
                replay.push_to(stream, &[epoch, stream as u8, step], step, 0.5, outcome);
            }
        }
        let name = format!("epoch-{:06}.chunk", epoch + 1);
        chunks.extend(replay.write_chunk(dir.path(), written, &name).unwrap());
        let bytes = fs::read(dir.path().join(&name)).unwrap();
        assert_eq!(&bytes[..8], b"REMREPL2");

        let loaded = Replay::load(dir.path(), &chunks, 3, 2).unwrap();
        assert_same(&loaded, &replay);
        for stream in 0..4 {
            assert_eq!(loaded.open_episode(stream), replay.open_episode(stream));
        }
        replay = loaded;
    }
    // One end in each of the streams 0 and 2, and the abandoned episode of stream 1.
    assert_eq!(replay.episodes(), 6);
    let archive = super::super::archive::Archive::open(dir.path());
    assert_eq!(archive.problem, None);
    let listed: Vec<_> = archive
        .list()
        .map(|e| (e.epoch, e.steps, e.outcome))
        .collect();
    let (running, over) = (Outcome::Running, Outcome::Truncated);
    let expected = [
        (1, 7, Outcome::Terminated),
        (1, 12, over),
        (1, 12, over),
        (2, 13, running),
        (4, 8, running),
        (4, 8, running),
    ];
    assert_eq!(listed, expected);
    let read = archive.read(3, 0..2).unwrap().unwrap();
    assert_eq!(read.frames, [[1, 0, 3], [2, 0, 0]]);
}

#[test]
fn damaged_runs_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let mut replay = Replay::new(3, 2);
    for stream in [0, 1, 0] {
        replay.push_to(stream, &[0; 3], 0, 0.0, Outcome::Running);
    }
    let chunk = replay
        .write_chunk(dir.path(), 0, "a.chunk")
        .unwrap()
        .unwrap();
    // The number of runs, the second stream, its flag, and the steps of the last run.
    for (at, value) in [(32, 9), (32, 255), (64, u8::MAX), (72, 2), (104, 7)] {
        let mut forged = chunk.clone();
        let path = dir.path().join("a.chunk");
        let good = fs::read(&path).unwrap();
        forge(&dir, &mut forged, |bytes| {
            bytes[at] = value;
            bytes[at + 3] = value;
        });
        assert!(
            matches!(load_error(&dir, &[forged]), ReplayError::Length { .. }),
            "{at}"
        );
        fs::write(path, good).unwrap();
    }
    assert_eq!(
        Replay::load(dir.path(), &[chunk], 3, 2).unwrap().episodes(),
        2
    );
}

#[test]
fn no_chunks_load_as_an_empty_replay() {
    let replay = Replay::load(Path::new("/nowhere"), &[], 3, 2).unwrap();
    assert_eq!((replay.steps(), replay.episodes()), (0, 0));
}

#[test]
fn chunks_are_reproducible_and_leave_no_temporary_file() {
    let (dir, chunk) = one_chunk();
    let names: Vec<_> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["a.chunk"]);
    assert_eq!(chunk.bytes, 32 + 9 * (6 + 3));
    let bytes = fs::read(dir.path().join("a.chunk")).unwrap();
    assert_eq!(chunk.crc32, crc32fast::hash(&bytes));
    assert_eq!(bytes.len() as u64, chunk.bytes);

    let (again_dir, again) = one_chunk();
    assert_eq!(again, chunk);
    assert_eq!(fs::read(again_dir.path().join("a.chunk")).unwrap(), bytes);
}

#[test]
fn the_format_is_as_documented() {
    let dir = tempfile::tempdir().unwrap();
    let mut replay = Replay::new(2, 1);
    replay.push(&[1, 2], 9, -1.0, Outcome::Running);
    replay.push(&[3, 4], 7, 0.5, Outcome::Truncated);
    replay.push(&[5, 6], 8, 0.0, Outcome::Terminated);
    replay.write_chunk(dir.path(), 1, "a").unwrap();
    let mut expected = b"REMREPL1".to_vec();
    expected.extend([2, 0, 0, 0, 0, 0, 0, 0]); // frame_bytes
    expected.extend([1, 0, 0, 0, 0, 0, 0, 0]); // first step
    expected.extend([2, 0, 0, 0, 0, 0, 0, 0]); // steps
    expected.extend([7, 8]); // actions
    expected.extend([0, 0, 0, 0x3f, 0, 0, 0, 0]); // rewards: 0.5 is 0x3f000000
    expected.extend([2, 1]); // outcomes
    expected.extend([3, 4, 5, 6]); // frames
    assert_eq!(fs::read(dir.path().join("a")).unwrap(), expected);
}

#[test]
fn a_failed_write_names_the_file_and_leaves_no_temporary_file() {
    let (dir, _) = one_chunk();
    // A directory of the same name: the rename fails after the temporary file was written.
    fs::create_dir(dir.path().join("b.chunk")).unwrap();
    let error = replay_of(&[2])
        .write_chunk(dir.path(), 0, "b.chunk")
        .unwrap_err();
    assert!(error.to_string().contains("b.chunk"), "{error}");
    assert!(!dir.path().join("b.chunk.tmp").exists());
}

#[test]
fn a_missing_chunk_is_an_error() {
    let (dir, chunk) = one_chunk();
    fs::remove_file(dir.path().join(&chunk.file)).unwrap();
    let error = load_error(&dir, &[chunk]);
    assert!(matches!(error, ReplayError::Missing { .. }), "{error}");
    assert!(error.to_string().contains("a.chunk"), "{error}");
}

#[test]
fn a_wrong_length_is_an_error() {
    for length in [0, 5, 8, 31, 32, 33, 112, 114] {
        let (dir, chunk) = one_chunk();
        assert_eq!(chunk.bytes, 113);
        File::options()
            .write(true)
            .open(dir.path().join("a.chunk"))
            .unwrap()
            .set_len(length)
            .unwrap();
        let error = load_error(&dir, &[chunk]);
        assert!(
            matches!(error, ReplayError::Length { found, expected: 113, .. } if found == length),
            "{error}"
        );
    }
}

#[test]
fn any_flipped_bit_is_an_error() {
    let (dir, chunk) = one_chunk();
    let path = dir.path().join("a.chunk");
    let bytes = fs::read(&path).unwrap();
    for position in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 0x10;
        fs::write(&path, damaged).unwrap();
        let error = load_error(&dir, std::slice::from_ref(&chunk));
        let as_expected = match position {
            0..8 => matches!(error, ReplayError::Foreign { .. }),
            8..16 => matches!(error, ReplayError::FrameSize { expected: 3, .. }),
            16..24 => matches!(error, ReplayError::Order { expected: 0, .. }),
            24..32 => matches!(error, ReplayError::Steps { expected: 9, .. }),
            _ => matches!(error, ReplayError::Checksum { .. }),
        };
        assert!(as_expected, "byte {position}: {error}");
    }
    fs::write(&path, bytes).unwrap();
    assert!(Replay::load(dir.path(), &[chunk], 3, 2).is_ok());
}

#[test]
fn another_kind_of_file_is_reported_as_such_at_any_length() {
    for content in [
        "PNG",
        "\u{89}PNG and some more bytes that make it longer than a header",
    ] {
        let (dir, chunk) = one_chunk();
        fs::write(dir.path().join("a.chunk"), content).unwrap();
        let error = load_error(&dir, &[chunk]);
        assert!(matches!(error, ReplayError::Foreign { .. }), "{error}");
        assert!(error.to_string().contains("a.chunk"), "{error}");
    }
}

#[test]
fn a_wrong_frame_size_is_an_error() {
    let (dir, chunk) = one_chunk();
    let error = Replay::load(dir.path(), &[chunk], 12, 2).err().unwrap();
    assert!(
        matches!(
            error,
            ReplayError::FrameSize {
                found: 3,
                expected: 12,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_missing_or_repeated_chunk_in_the_list_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let replay = replay_of(&[4, 2, 3]);
    let tail = replay.write_chunk(dir.path(), 4, "tail").unwrap().unwrap();
    let all = replay.write_chunk(dir.path(), 0, "all").unwrap().unwrap();
    let error = load_error(&dir, &[tail]);
    assert!(
        matches!(
            error,
            ReplayError::Order {
                found: 4,
                expected: 0,
                ..
            }
        ),
        "{error}"
    );
    let error = load_error(&dir, &[all.clone(), all]);
    assert!(
        matches!(
            error,
            ReplayError::Order {
                found: 0,
                expected: 9,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_step_count_beyond_the_file_length_is_an_error_before_allocation() {
    let (dir, mut chunk) = one_chunk();
    forge(&dir, &mut chunk, |bytes| bytes[24..32].fill(0xff));
    chunk.steps = u64::MAX;
    let error = load_error(&dir, &[chunk]);
    assert!(
        matches!(error, ReplayError::Length { found: 113, .. }),
        "{error}"
    );
}

#[test]
fn impossible_values_with_a_valid_checksum_are_errors() {
    let (dir, mut chunk) = one_chunk();
    let outcomes = 32 + 9 + 4 * 9;
    forge(&dir, &mut chunk, |bytes| bytes[outcomes + 2] = 3);
    let error = load_error(&dir, std::slice::from_ref(&chunk));
    assert!(
        matches!(
            error,
            ReplayError::Value {
                what: "outcome",
                step: 2,
                ..
            }
        ),
        "{error}"
    );

    let (dir, mut chunk) = one_chunk();
    forge(&dir, &mut chunk, |bytes| {
        bytes[32 + 9 + 4..][..4].copy_from_slice(&f32::NAN.to_le_bytes())
    });
    let error = load_error(&dir, &[chunk]);
    assert!(
        matches!(
            error,
            ReplayError::Value {
                what: "reward",
                step: 1,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_name_outside_the_directory_is_an_error() {
    let (dir, chunk) = one_chunk();
    for file in ["../a.chunk", "/etc/passwd", "", ".."] {
        let error = load_error(
            &dir,
            &[ChunkInfo {
                file: file.to_owned(),
                ..chunk.clone()
            }],
        );
        assert!(matches!(error, ReplayError::Name { .. }), "{error}");
        assert!(replay_of(&[1]).write_chunk(dir.path(), 0, file).is_err());
    }
}

#[test]
fn chunk_info_round_trips_through_json() {
    let (_dir, chunk) = one_chunk();
    let json = serde_json::to_string(&chunk).unwrap();
    assert_eq!(serde_json::from_str::<ChunkInfo>(&json).unwrap(), chunk);
}
