//! Episodes that one run exported train another one, without an environment.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::*;

/// Settings for four epochs, with every component from the first epoch on, and no evaluation until the end.
const EARLY: &str = "--set train.epochs=4 --set evaluate.every=0 --set evaluate.final_episodes=2 \
    --set world_model.optimizer.start_after=0 --set actor_critic.optimizer.start_after=0";

fn offline(source: &Path, dir: &Path, words: &str) -> Command {
    let mut command = debug_run(dir, words);
    command.arg("--offline").arg(source);
    command
}

fn export(run: &Path, dir: &Path) {
    let mut command = rem();
    command
        .arg("episodes")
        .arg(run)
        .args(["export", "--all", "--to", "npz", "--out"])
        .arg(dir);
    succeeds(&mut command);
}

fn import(words: &[&str], source: &Path, out: &Path) -> Command {
    let mut command = rem();
    command
        .args(["import", "episodes"])
        .args(words)
        .arg(source)
        .arg("--out")
        .arg(out);
    command
}

fn metrics(run: &Path) -> String {
    fs::read_to_string(run.join("metrics.jsonl")).unwrap()
}

#[test]
fn exported_episodes_train_another_run_to_the_same_losses() {
    let run = finished(SHORT);
    let temp = temp_dir();
    let [files, data] = ["files", "data"].map(|name| temp.path().join(name));
    export(run.dir(), &files);
    let output = succeeds(&mut import(&["--frame-size", "32"], &files, &data));
    let text = stdout(&output);
    assert!(text.contains("80 steps of catch, 3 actions"), "{text}");

    // The run itself is a data set, with the same steps in the same order: every loss is equal.
    let [direct, imported] = ["direct", "imported"].map(|name| temp.path().join(name));
    let output = succeeds(&mut offline(run.dir(), &direct, EARLY));
    assert!(
        stderr(&output).contains("80 steps of "),
        "{}",
        stderr(&output)
    );
    assert!(stdout(&output).starts_with("catch: mean return"));
    succeeds(&mut offline(&data, &imported, EARLY));
    assert_eq!(metrics(&imported), metrics(&direct));
    let text = metrics(&direct);
    for metric in [
        "loss_reconstruction",
        "loss_obs",
        "loss_policy",
        "test/loss_obs",
    ] {
        assert!(text.contains(metric), "no {metric} in {text}");
    }
    assert!(!text.contains("\"phase\":\"collect\""), "{text}");
    let protocol = fs::read_to_string(imported.join("protocol.json")).unwrap();
    assert!(protocol.contains("\"steps\": 80"), "{protocol}");
}

#[test]
fn an_offline_run_resumes_exactly() {
    let run = finished(SHORT);
    let temp = temp_dir();
    let [whole, killed] = ["whole", "killed"].map(|name| temp.path().join(name));
    succeeds(&mut offline(run.dir(), &whole, EARLY));
    let mut command = offline(run.dir(), &killed, EARLY);
    assert!(kill_when(start(&mut command), || has_line(
        &killed,
        2,
        "tokenizer"
    )));
    // The run has its own copy of the episodes.
    drop(run);
    succeeds(&mut resume(&killed));
    assert_eq!(metrics(&killed), metrics(&whole));
}

#[test]
fn episodes_without_an_environment_train_without_an_evaluation() {
    let run = finished(SHORT);
    let temp = temp_dir();
    let [files, data, dir] = ["files", "data", "run"].map(|name| temp.path().join(name));
    export(run.dir(), &files);
    let words = ["--frame-size", "32", "--game", "my-robot", "--actions", "5"];
    succeeds(&mut import(&words, &files, &data));
    let output = succeeds(&mut offline(&data, &dir, EARLY));
    assert!(
        stderr(&output).contains("no evaluation"),
        "{}",
        stderr(&output)
    );
    assert!(!metrics(&dir).contains("evaluate"));
    assert!(metrics(&dir).contains("loss_policy"));
    let killed = temp.path().join("killed");
    let mut command = offline(&data, &killed, EARLY);
    assert!(kill_when(start(&mut command), || has_line(
        &killed,
        2,
        "tokenizer"
    )));
    succeeds(&mut resume(&killed));
    assert_eq!(metrics(&killed), metrics(&dir));
    let (error, hint) = fails(rem().arg("eval").arg(&dir));
    assert!(error.contains("my-robot"), "{error} {hint}");
    // Pages show dreams of it, for which no environment is needed.
    assert!(
        fs::read_to_string(dir.join("protocol.json"))
            .unwrap()
            .contains("\"evaluated\": false")
    );
}

#[test]
fn mistakes_are_errors_and_leave_nothing() {
    let run = finished(SHORT);
    let temp = temp_dir();
    let [files, data, dir] = ["files", "data", "run"].map(|name| temp.path().join(name));
    export(run.dir(), &files);
    let before = all_files(&files);

    fs::write(files.join("episode-000003.npz"), b"damaged").unwrap();
    let (error, hint) = fails(&mut import(&[], &files, &data));
    assert!(
        error.contains("episode-000003.npz") && error.contains("not an .npz file"),
        "{error}"
    );
    assert!(hint.contains("rem import episodes --help"), "{hint}");
    assert!(!data.exists());
    fs::write(
        files.join("episode-000003.npz"),
        &before["episode-000003.npz"],
    )
    .unwrap();

    succeeds(&mut import(
        &["--frame-size", "32", "--actions", "7"],
        &files,
        &data,
    ));
    let imported = all_files(&data);
    let (error, _) = fails(&mut import(&[], &files, &data));
    assert!(error.contains("already exists"), "{error}");
    assert_same(&all_files(&data), &imported);

    // `catch` has three actions.
    let (error, hint) = fails(&mut offline(&data, &dir, EARLY));
    assert!(
        error.contains("`catch` has 3 actions, but the episodes have 7"),
        "{error}"
    );
    assert!(hint.contains("--actions"), "{hint}");
    let (error, _) = fails(&mut offline(&data, &dir, "--set env.frame_size=64"));
    assert!(error.contains("frames of 32 pixels"), "{error}");
    let (error, hint) = fails(&mut offline(temp.path(), &dir, EARLY));
    assert!(error.contains("neither a data set nor a run"), "{error}");
    assert!(hint.contains("rem import episodes"), "{hint}");
    let (error, hint) = fails(&mut debug_run(&dir, "--set collect.epochs=0"));
    assert!(
        error.contains("collect.epochs = 0") && hint.contains("--offline"),
        "{error} {hint}"
    );
    assert!(!dir.exists());

    let chunk = data.join("replay").join("epoch-000001.chunk");
    let mut bytes = fs::read(&chunk).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&chunk, bytes).unwrap();
    let (error, hint) = fails(&mut offline(&data, &dir, "--env my-robot"));
    assert!(error.contains("checksum"), "{error}");
    assert!(hint.contains("import the episodes again"), "{hint}");
    assert!(!dir.exists());
}

#[test]
fn minari_data_sets_are_imported() {
    let own = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../third-party/gymnasium/bin/python"
    );
    let python = std::env::var_os("REM_TEST_PYTHON").unwrap_or_else(|| own.into());
    if !Path::new(&python).exists() {
        let required = std::env::var_os("REM_REQUIRE_GYMNASIUM").is_some();
        assert!(!required, "run scripts/setup-gymnasium");
        return;
    }
    // The layout of Minari: a group per episode, one observation more than actions.
    const WRITE: &str = "
import h5py, numpy, sys
with h5py.File(sys.argv[1], 'w') as file:
    for number in (0, 10, 2):
        episode = file.create_group(f'episode_{number}')
        steps = 3 + number
        frames = numpy.full((steps + 1, 3, 20, 24), number, numpy.uint8)
        episode.create_group('observations').create_dataset('pixels', data=frames)
        episode.create_dataset('actions', data=numpy.arange(steps) % 4)
        episode.create_dataset('rewards', data=numpy.ones(steps))
        ends = numpy.arange(steps) == steps - 1
        episode.create_dataset('terminations', data=ends)
        episode.create_dataset('truncations', data=~ends & False)
        if sys.argv[2:] == ['continuous']:
            del episode['actions']
            episode.create_dataset('actions', data=numpy.zeros((steps, 2)))
";
    let temp = temp_dir();
    let set = temp.path().join("set-v0");
    fs::create_dir_all(set.join("data")).unwrap();
    let file = set.join("data").join("main_data.hdf5");
    let write = |words: &[&str]| {
        let mut command = Command::new(&python);
        succeeds(command.args(["-c", WRITE]).arg(&file).args(words));
    };
    write(&[]);
    let data = temp.path().join("data");
    let with_python = |command: &mut Command| {
        let words: Vec<_> = command.get_args().map(|a| a.to_owned()).collect();
        let mut command = rem();
        command.arg("--python").arg(&python).args(words);
        command
    };
    let output = succeeds(&mut with_python(&mut import(
        &["--game", "my-set"],
        &set,
        &data,
    )));
    let text = stdout(&output);
    assert!(
        text.contains("3 episodes, 21 steps of my-set, 4 actions"),
        "{text}"
    );

    write(&["continuous"]);
    let other = temp.path().join("other");
    let (error, _) = fails(&mut with_python(&mut import(&[], &file, &other)));
    assert!(error.contains("the actions are not discrete"), "{error}");
    assert!(!other.exists());
}
