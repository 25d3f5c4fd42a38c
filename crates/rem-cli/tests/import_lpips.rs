//! `rem import lpips` converts the published files, and training uses the result.

mod support;

use std::path::Path;

use rem::model::tokenizer::lpips::STAGES;
use rem::model::weights::{Array, Arrays, to_safetensors};
use rem::run::import::read;
use support::{fails, rem, succeeds};

/// Indices of VGG-16's convolutions in torchvision's `features`.
const FEATURES: [usize; 13] = [0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28];

/// Writes stand-ins of the right shapes; each layer has its own values.
fn write_files(dir: &Path) {
    let (mut vgg, mut heads) = (Arrays::new(), Arrays::new());
    let (mut from, mut layer) = (3, 0);
    let filled = |shape: Vec<usize>, value: f32| {
        let data = (0..shape.iter().product()).map(|i: usize| value * ((i % 7) as f32 - 3.0));
        Array {
            data: data.collect(),
            shape,
        }
    };
    for (stage, &(count, width)) in STAGES.iter().enumerate() {
        for _ in 0..count {
            let name = |part: &str| format!("features.{}.{part}", FEATURES[layer]);
            let value = 0.01 + 0.001 * layer as f32;
            vgg.insert(name("weight"), filled(vec![width, from, 3, 3], value));
            vgg.insert(name("bias"), filled(vec![width], value));
            (from, layer) = (width, layer + 1);
        }
        let ones = Array {
            shape: vec![1, width, 1, 1],
            data: vec![0.1; width],
        };
        heads.insert(format!("lin{stage}.model.1.weight"), ones);
    }
    // The published files contain more arrays than needed.
    vgg.insert("classifier.0.bias".into(), filled(vec![8], 1.0));
    std::fs::write(dir.join("vgg.safetensors"), to_safetensors(&vgg)).unwrap();
    std::fs::write(dir.join("heads.safetensors"), to_safetensors(&heads)).unwrap();
}

fn import(dir: &Path, vgg: &str, heads: &str) -> std::process::Command {
    let mut command = rem();
    command.args(["import", "lpips"]);
    command
        .arg(dir.join(vgg))
        .arg(dir.join(heads))
        .env("REM_DATA_DIR", dir.join("data"));
    command
}

#[test]
fn imported_weights_enable_the_perceptual_loss() {
    let dir = tempfile::tempdir().unwrap();
    write_files(dir.path());
    succeeds(&mut import(
        dir.path(),
        "vgg.safetensors",
        "heads.safetensors",
    ));
    let arrays = read(&dir.path().join("data/lpips.safetensors")).unwrap();
    assert_eq!(arrays.len(), 2 * 13 + 5);
    assert_eq!(arrays["stages.4.convs.2.weight"].shape, [512, 512, 3, 3]);
    assert_eq!(
        arrays["stages.1.convs.0.bias"].data[0],
        -3.0 * (0.01 + 0.001 * 2.0)
    );

    let run = dir.path().join("run");
    let mut train = rem();
    train
        .args([
            "train",
            "--preset",
            "debug",
            "--set",
            "train.epochs=1",
            "--run-dir",
        ])
        .arg(&run);
    let output = succeeds(train.env("REM_DATA_DIR", dir.path().join("data")));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("perceptual loss off"));
    let text = |name: &str| std::fs::read_to_string(run.join(name)).unwrap();
    assert!(text("protocol.json").contains("\"perceptual_loss\": true"));
    let line = text("metrics.jsonl");
    let line = line.lines().find(|l| l.contains("\"tokenizer\"")).unwrap();
    let value = line
        .split("\"loss_perceptual\":")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap();
    assert!(value.parse::<f64>().unwrap() > 0.0, "{line}");

    // A run that started with the perceptual loss does not resume without it.
    let (error, hint) = fails(rem().args(["train", "--resume"]).arg(&run));
    assert!(
        error.contains("perceptual") && hint.contains("rem import lpips"),
        "{error} {hint}"
    );
}

#[test]
fn files_with_missing_or_reshaped_arrays_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    write_files(dir.path());
    let (error, _) = fails(&mut import(
        dir.path(),
        "heads.safetensors",
        "vgg.safetensors",
    ));
    assert!(error.contains("`features.0.weight` is missing"), "{error}");

    let path = dir.path().join("vgg.safetensors");
    let mut arrays = read(&path).unwrap();
    arrays.get_mut("features.28.bias").unwrap().shape = vec![2, 256];
    std::fs::write(&path, to_safetensors(&arrays)).unwrap();
    let (error, _) = fails(&mut import(
        dir.path(),
        "vgg.safetensors",
        "heads.safetensors",
    ));
    assert!(
        error.contains("features.28.bias") && error.contains("[2, 256]"),
        "{error}"
    );
    assert!(!dir.path().join("data").exists());
}

#[test]
fn missing_weights_are_an_error_if_required_and_a_note_if_auto() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let mut train = rem();
    train
        .args([
            "train",
            "--preset",
            "debug",
            "--set",
            "train.epochs=1",
            "--run-dir",
        ])
        .arg(&run);
    let output = succeeds(&mut train);
    let notes = String::from_utf8_lossy(&output.stderr)
        .matches("perceptual loss off")
        .count();
    assert_eq!(notes, 1);

    let other = dir.path().join("other");
    let mut train = rem();
    train
        .args([
            "train",
            "--preset",
            "debug",
            "--set",
            "tokenizer.perceptual=required",
            "--run-dir",
        ])
        .arg(&other);
    let (error, hint) = fails(&mut train);
    assert!(
        error.contains("lpips.safetensors") && hint.contains("rem import lpips"),
        "{error}"
    );
    assert!(!other.exists());
}
