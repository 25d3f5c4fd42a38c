//! Resume rejects runs with damaged, missing or foreign files, states the reason and leaves the run unchanged.

mod support;

use std::fs;
use std::path::Path;

use support::*;

fn truncate(path: &Path, length: impl Fn(usize) -> usize) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..length(bytes.len())]).unwrap();
}

fn flip_a_bit(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn hint_for_a_truncated_checkpoint_recovers_the_run() {
    let run = finished(SHORT);
    let cut = run.changed(|dir| {
        truncate(&checkpoint(dir, 2).join("world_model.safetensors"), |n| {
            n / 2
        });
    });
    let (error, hint) = cut.assert_resume_fails();
    assert!(
        error.contains("epoch-000002") && error.contains("world_model.safetensors"),
        "{error}"
    );
    assert!(error.contains("bytes instead of"), "{error}");
    let (error, _) = fails(rem().arg("eval").arg(cut.dir()));
    assert!(error.contains("bytes instead of"), "{error}");

    // The hint contains a command; run it.
    let advice = hint.split('`').nth(1).expect("a command in backquotes");
    let words: Vec<&str> = advice.split_whitespace().collect();
    let dir = cut.dir().to_str().unwrap();
    assert_eq!(
        words,
        ["rem", "train", "--resume", dir, "--from-epoch", "1"]
    );
    succeeds(rem().args(&words[1..]));
    assert_same(
        &reproducible_files(cut.dir()),
        &reproducible_files(run.dir()),
    );
}

#[test]
fn damage_to_any_checkpoint_file_is_detected() {
    let run = finished(SHORT);
    let names: Vec<String> = all_files(&checkpoint(run.dir(), 2)).into_keys().collect();
    assert!(names.len() >= 8, "{names:?}");
    for name in names.iter().filter(|name| *name != "manifest.json") {
        let damaged = run.changed(|dir| flip_a_bit(&checkpoint(dir, 2).join(name)));
        let (error, hint) = damaged.assert_resume_fails();
        assert!(
            error.contains(name) && error.contains("checksum"),
            "{error}"
        );
        assert!(hint.contains("--from-epoch 1"), "{hint}");
    }
    for name in &names {
        let missing = run.changed(|dir| fs::remove_file(checkpoint(dir, 2).join(name)).unwrap());
        let (error, hint) = missing.assert_resume_fails();
        assert!(error.contains(name), "{error}");
        assert!(hint.contains("--from-epoch 1"), "{hint}");
    }
    let cut = run.changed(|dir| truncate(&checkpoint(dir, 2).join("manifest.json"), |n| n / 2));
    let (error, _) = cut.assert_resume_fails();
    assert!(error.contains("manifest.json is damaged"), "{error}");
}

#[test]
fn epochs_without_a_checkpoint_are_rejected() {
    let run = finished(SHORT);
    let before = all_files(run.dir());
    let train = &mut resume(run.dir());
    let eval = &mut rem();
    for command in [
        train.args(["--from-epoch", "77"]),
        eval.arg("eval").arg(run.dir()).args(["--epoch", "77"]),
    ] {
        let (error, _) = fails(command);
        assert!(error.contains("epoch-000077"), "{error}");
    }
    assert_same(&all_files(run.dir()), &before);
}

#[test]
fn damaged_replay_is_rejected_by_resume_but_not_by_eval() {
    let run = finished(SHORT);
    let chunk = |dir: &Path| dir.join("replay/epoch-000001.chunk");
    let flipped = run.changed(|dir| flip_a_bit(&chunk(dir)));
    let cut = run.changed(|dir| truncate(&chunk(dir), |n| n - 1));
    let gone = run.changed(|dir| fs::remove_file(chunk(dir)).unwrap());
    for (damaged, part) in [(flipped, "damaged"), (cut, "bytes long"), (gone, "missing")] {
        let (error, _) = damaged.assert_resume_fails();
        assert!(
            error.contains("epoch-000001.chunk") && error.contains(part),
            "{error}"
        );
        // Evaluation needs only the weights.
        succeeds(rem().arg("eval").arg(damaged.dir()));
    }
}

#[test]
fn truncated_metrics_are_rejected() {
    let run = finished(SHORT);
    let cut = run.changed(|dir| truncate(&dir.join("metrics.jsonl"), |n| n - 10));
    let (error, _) = cut.assert_resume_fails();
    let times = error.matches("metrics.jsonl").count();
    assert_eq!(times, 1, "named {times} times: {error}");
    let gone = run.changed(|dir| fs::remove_file(dir.join("metrics.jsonl")).unwrap());
    let (error, _) = gone.assert_resume_fails();
    assert!(error.contains("metrics.jsonl"), "{error}");
}

#[test]
fn missing_or_damaged_protocol_is_rejected() {
    let run = finished(SHORT);
    let gone = run.changed(|dir| fs::remove_file(dir.join("protocol.json")).unwrap());
    let cut = run.changed(|dir| truncate(&dir.join("protocol.json"), |n| n / 2));
    for damaged in [gone, cut] {
        let (error, _) = damaged.assert_resume_fails();
        assert_eq!(error.matches("protocol.json").count(), 1, "{error}");
        fails(rem().arg("eval").arg(damaged.dir()));
    }
}

#[test]
fn edited_config_is_rejected() {
    let run = finished(SHORT);
    let edit = |from: &str, to: &str| {
        run.changed(|dir| {
            let text = fs::read_to_string(dir.join("config.toml")).unwrap();
            assert!(text.contains(from), "{text}");
            fs::write(dir.join("config.toml"), text.replacen(from, to, 1)).unwrap();
        })
    };
    let cases = [
        (edit("epochs = 2", "epochs = 3"), "another config"),
        (edit("seed = 1", "sed = 1"), "`sed`"),
        (edit("seed = 1", "seed = "), "not valid TOML"),
        (edit("[env]", "[env"), "not valid TOML"),
    ];
    for (edited, part) in cases {
        let (error, _) = edited.assert_resume_fails();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn checkpoint_of_another_run_is_rejected() {
    let run = finished(SHORT);
    let other = finished(&format!("{SHORT} --set tokenizer.vocabulary=32"));
    let mixed = run.changed(|dir| {
        fs::remove_dir_all(checkpoint(dir, 2)).unwrap();
        copy_dir(&checkpoint(other.dir(), 2), &checkpoint(dir, 2));
    });
    let (error, hint) = mixed.assert_resume_fails();
    assert!(error.contains("another config"), "{error}");
    assert!(hint.contains("--from-epoch 1"), "{hint}");
}

#[test]
fn weights_of_another_shape_are_rejected() {
    let run = finished(SHORT);
    let other = finished(&format!("{SHORT} --set tokenizer.vocabulary=32"));
    // Correct the checksum in the manifest, so that only the shapes differ.
    let name = "tokenizer.safetensors";
    let foreign = fs::read(checkpoint(other.dir(), 2).join(name)).unwrap();
    let mixed = run.changed(|dir| {
        let manifest = checkpoint(dir, 2).join("manifest.json");
        let text = fs::read_to_string(&manifest).unwrap();
        let (before, entry) = text.split_once(&format!("\"{name}\": {{")).unwrap();
        let after = &entry[entry.find('}').unwrap()..];
        let (bytes, sum) = (foreign.len(), crc32(&foreign));
        let text = format!("{before}\"{name}\": {{\"bytes\": {bytes}, \"crc32\": {sum}{after}");
        fs::write(manifest, text).unwrap();
        fs::write(checkpoint(dir, 2).join(name), &foreign).unwrap();
    });
    let (error, _) = mixed.assert_resume_fails();
    assert!(
        error.contains("codebook") && error.contains("shape"),
        "{error}"
    );
    let (error, _) = fails(rem().arg("eval").arg(mixed.dir()));
    assert!(
        error.contains("codebook") && error.contains("shape"),
        "{error}"
    );
}

/// CRC-32 as in zip and PNG.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), step);
    !bytes.iter().fold(!0, byte)
}
