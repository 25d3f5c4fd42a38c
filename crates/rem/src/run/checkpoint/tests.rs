use super::*;
use crate::data::replay::Replay;
use crate::env::Outcome;
use crate::model::weights::Array;

fn checkpoint(epoch: u32) -> Checkpoint {
    let array = Array {
        shape: vec![2],
        data: vec![1.0, epoch as f32],
    };
    let arrays = Arrays::from([("a".to_string(), array)]);
    Checkpoint {
        manifest: Manifest::new(epoch, 7),
        arrays: BTreeMap::from([("tokenizer".to_string(), arrays)]),
        environment: b"state".to_vec(),
    }
}

fn written(epochs: &[u32]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for e in epochs {
        checkpoint(*e).write(dir.path()).unwrap();
    }
    dir
}

#[test]
fn checkpoints_round_trip_and_the_last_two_are_kept() {
    let dir = written(&[0, 1, 2]);
    assert_eq!(epochs(dir.path()), [1, 2]);
    let read = Checkpoint::read(dir.path(), None, &[7], Part::All).unwrap();
    assert_eq!(read.arrays, checkpoint(2).arrays);
    assert_eq!(read.environment, b"state");
}

#[test]
fn damage_is_an_error_whose_hint_names_the_last_valid_checkpoint() {
    let error_after = |change: &dyn Fn(&Path)| {
        let dir = written(&[3, 4]);
        change(&directory(dir.path(), 4));
        let error = Checkpoint::read(dir.path(), None, &[7], Part::All).unwrap_err();
        assert!(
            error.hint().unwrap().contains("--from-epoch 3"),
            "{:?}",
            error.hint()
        );
        assert!(Checkpoint::read(dir.path(), Some(3), &[7], Part::All).is_ok());
        error.to_string()
    };
    let file = "tokenizer.safetensors";
    let cut = error_after(&|p| std::fs::write(p.join(file), b"short").unwrap());
    assert!(cut.contains("5 bytes instead of"), "{cut}");
    let flipped = error_after(&|p| {
        let mut bytes = std::fs::read(p.join(file)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(p.join(file), bytes).unwrap();
    });
    assert!(flipped.contains("checksum"), "{flipped}");
    let gone = error_after(&|p| std::fs::remove_file(p.join(file)).unwrap());
    assert!(gone.contains(file), "{gone}");
    let broken = error_after(&|p| std::fs::write(p.join(MANIFEST), b"{").unwrap());
    assert!(broken.contains("manifest.json is damaged"), "{broken}");
}

#[test]
fn chunks_of_undone_epochs_are_not_part_of_the_replay() {
    let run = tempfile::tempdir().unwrap();
    let chunks = run.path().join("replay");
    let mut replay = Replay::new(3, 2);
    let mut grow = |name: &str| {
        let before = replay.steps();
        replay.push(&[0; 3], 0, 0.0, Outcome::Terminated);
        replay.write_chunk(&chunks, before, name).unwrap().unwrap()
    };
    let first = grow("epoch-000001.chunk");
    grow("epoch-000002.chunk");
    assert_eq!(archive(run.path()).steps(), 2);
    let mut of_first = checkpoint(1);
    of_first.manifest.replay.push(first);
    of_first.write(run.path()).unwrap();
    assert_eq!(archive(run.path()).steps(), 1);
    // A later checkpoint without a manifest is ignored.
    std::fs::create_dir_all(directory(run.path(), 2)).unwrap();
    assert_eq!(archive(run.path()).steps(), 1);
}

#[test]
fn a_checkpoint_of_another_config_is_an_error() {
    let dir = written(&[1]);
    let error = Checkpoint::read(dir.path(), None, &[8], Part::All)
        .unwrap_err()
        .to_string();
    assert!(error.contains("another config"), "{error}");
}

#[test]
fn leftovers_of_an_interrupted_write_are_ignored_and_removed() {
    let dir = written(&[1]);
    let leftover = directory(dir.path(), 2).with_extension("tmp");
    std::fs::create_dir_all(&leftover).unwrap();
    assert_eq!(epochs(dir.path()), [1]);
    checkpoint(2).write(dir.path()).unwrap();
    assert!(!leftover.exists());
    assert_eq!(epochs(dir.path()), [1, 2]);
}
