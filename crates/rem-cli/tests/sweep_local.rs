//! `rem sweep run` on this machine: whatever kills the pool or its runs, the study ends in the same bytes as one that was
//! not disturbed. No run is trained twice at the same time, and a run that fails does not affect the others.

mod support;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use support::study::*;
use support::*;

/// Two pools, one of which is killed in the middle, and a run that is killed.
#[test]
fn a_disturbed_study_ends_in_the_same_bytes() {
    let temp = temp_dir();
    let expected = undisturbed(temp.path(), STUDY);
    let study = new_study(temp.path(), "disturbed", STUDY);
    let at = |run: usize| study.join(RUNS[run]);
    let in_the_middle = |run: usize| has_line(&at(run), 3, "collect");

    // The pool is killed while it trains the first two runs. Its processes end with it.
    let pool = start(&mut sweep("run", &study, "--jobs 2"));
    assert!(kill_when(pool, || in_the_middle(0) && in_the_middle(1)));
    wait_until("the runs end with their pool", 10, || {
        pid_of(&at(0)).is_none() && pid_of(&at(1)).is_none()
    });
    let found = status(&mut sweep("status", &study, "--json"));
    assert_eq!(states(&found), ["waiting"; 6]);
    assert!(found["runs"][0]["epoch"].as_u64().unwrap() >= 2, "{found}");

    // Now a process is killed: the pool starts it again.
    let log = temp.path().join("pool.log");
    let errors = fs::File::create(&log).unwrap();
    let mut command = sweep("run", &study, "--jobs 2");
    let command = command.stdout(Stdio::null()).stderr(errors);
    let mut pool = Process(command.spawn().unwrap());
    wait_until("the third run trains", 60, || in_the_middle(2));
    kill("KILL", pid_of(&at(2)).unwrap());
    wait_until("the pool notices", 60, || {
        fs::read_to_string(&log)
            .unwrap()
            .contains("starting it again")
    });
    // The pool is told to stop in the middle of the fourth run.
    wait_until("the fourth run trains", 60, || in_the_middle(3));
    kill("TERM", pool.0.id());
    let exit = pool.0.wait().unwrap();
    assert_eq!(exit.code(), Some(75));
    let text = fs::read_to_string(&log).unwrap();
    for part in [
        "catch-seed1: continued after epoch ",
        "crossing-seed1: killed (signal: 9 (SIGKILL)); starting it again",
        "SIGTERM: stopping all runs",
        "stopped; continue with `rem sweep run ",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert!(!text.contains("failed"), "{text}");

    run_to_end(&mut sweep("run", &study, "--jobs 2"));
    for (run, (found, expected)) in files_of(&study).iter().zip(&expected).enumerate() {
        assert!(!expected.is_empty(), "{}", RUNS[run]);
        assert_same(found, expected);
    }
    // Nothing is left to do, and nothing changes.
    let before = all_files(&study);
    let output = succeeds(&mut sweep("run", &study, "--jobs 2"));
    assert_eq!(stdout(&output), "6 runs: 6 done\n");
    assert_same(&all_files(&study), &before);

    // From the scores to the report.
    let collected = stdout(&succeeds(&mut sweep("collect", &study, "--replicates 100")));
    assert!(
        collected.starts_with("disturbed: all 6 runs are done\n"),
        "{collected}"
    );
    let scores = fs::read_to_string(study.join("scores/disturbed.json")).unwrap();
    for game in ["catch", "paddle", "crossing"] {
        assert_eq!(numbers(&scores, game).len(), 2, "{scores}");
    }
    assert!(study.join("report/report.html").is_file());
}

#[test]
fn two_pools_share_a_study_and_train_no_run_twice() {
    let temp = temp_dir();
    let study = new_study(temp.path(), "shared", STUDY);
    let logs = ["a", "b"].map(|name| temp.path().join(name));
    let pools = logs.each_ref().map(|log| {
        let mut command = sweep("run", &study, "--jobs 1");
        let errors = fs::File::create(log).unwrap();
        Process(
            command
                .stdout(Stdio::null())
                .stderr(errors)
                .spawn()
                .unwrap(),
        )
    });
    for mut pool in pools {
        wait_until("the end of a pool", 300, || {
            pool.0.try_wait().unwrap().is_some()
        });
        assert!(pool.0.wait().unwrap().success());
    }
    let text: String = logs.map(|log| fs::read_to_string(log).unwrap()).concat();
    for run in RUNS {
        // Started once by one of the two; a second start would have found the lock.
        let done = text.matches(&format!("{run}: done")).count();
        assert_eq!(done, 1, "{text}");
        let log = fs::read_to_string(study.join(format!("logs/{run}.log"))).unwrap();
        assert_eq!(log.matches("epoch 30/30").count(), 1, "{log}");
    }
    assert!(text.contains("another process trains it"), "{text}");
    assert!(!text.contains("failed"), "{text}");
    let output = succeeds(&mut sweep("status", &study, ""));
    assert!(stdout(&output).ends_with("6 runs: 6 done\n"));
}

/// One run writes to a full disk. The others are not affected, and when there is room, it continues.
#[test]
fn a_full_disk_in_one_run_leaves_the_others_untouched() {
    if !Path::new("/dev/full").exists() {
        return; // not Linux
    }
    let temp = temp_dir();
    let study = new_study(temp.path(), "study", STUDY);
    // Every write to this file is answered with "no space left on device".
    let replay = study.join("paddle-seed1/replay");
    fs::create_dir_all(&replay).unwrap();
    std::os::unix::fs::symlink("/dev/full", replay.join("epoch-000003.chunk.tmp")).unwrap();
    let log = temp.path().join("log");
    let mut command = sweep("run", &study, "--jobs 2");
    let errors = fs::File::create(&log).unwrap();
    let command = command.stdout(Stdio::null()).stderr(errors);
    let mut pool = Process(command.spawn().unwrap());
    wait_until("the end of the pool", 300, || {
        pool.0.try_wait().unwrap().is_some()
    });
    let text = fs::read_to_string(&log).unwrap();
    assert_eq!(pool.0.wait().unwrap().code(), Some(1), "{text}");
    let error = text.lines().find(|line| line.starts_with("error: "));
    assert!(
        error.unwrap().ends_with("1 run failed: paddle-seed1"),
        "{text}"
    );
    let hint = text.lines().last().unwrap();
    assert!(hint.starts_with("hint: `rem sweep status "), "{text}");

    let found = status(&mut sweep("status", &study, "--json"));
    let failed = &found["runs"][1];
    assert_eq!(
        (&failed["state"], &failed["epoch"]),
        (&"failed".into(), &2.into())
    );
    let reason = failed["reason"].as_str().unwrap();
    assert!(reason.contains("no space left on device"), "{found}");
    let hint = failed["hint"].as_str().unwrap();
    assert!(hint.contains("free some disk space"), "{found}");
    assert_eq!(found["counts"]["done"], 5, "{found}");
    let shown = stdout(&succeeds(&mut sweep("status", &study, "")));
    assert!(shown.contains("no space left on device"), "{shown}");

    // A partial study says so.
    let partial = stdout(&succeeds(&mut sweep("collect", &study, "--replicates 100")));
    assert!(
        partial.starts_with("study: PARTIAL, 5 of 6 runs are done; not counted: paddle-seed1\n"),
        "{partial}"
    );
    let _ = fs::remove_file(replay.join("epoch-000003.chunk.tmp"));
    run_to_end(&mut sweep("run", &study, "--jobs 2"));
    for (found, expected) in files_of(&study).iter().zip(undisturbed(temp.path(), STUDY)) {
        assert_same(found, &expected);
    }
}

#[test]
fn cancel_stops_the_pool_and_a_later_run_continues() {
    let temp = temp_dir();
    let endless = STUDY.replace("train.epochs=30", "train.epochs=100000");
    let study = new_study(temp.path(), "study", &endless);
    let output = succeeds(&mut sweep("cancel", &study, ""));
    assert_eq!(stdout(&output), "nothing to stop: 6 runs: 6 waiting\n");
    let mut pool = Process(start(&mut sweep("run", &study, "--jobs 2")));
    let has_epoch = |run: &&str| has_line(&study.join(run), 2, "collect");
    wait_until("an epoch of each", 60, || RUNS[..2].iter().all(has_epoch));
    let found = status(&mut sweep("status", &study, "--json"));
    assert_eq!(found["counts"]["running"], 2, "{found}");
    let running = &found["runs"][0];
    assert_eq!(
        running["pid"].as_u64(),
        pid_of(&study.join(RUNS[0])).map(u64::from)
    );
    assert!(running["seconds_left"].as_f64().unwrap() > 0.0, "{found}");

    // Follows the study until nothing trains.
    let watched = temp.path().join("watched");
    let mut watch = sweep("status", &study, "--watch --interval 1");
    let watch = watch.stdout(fs::File::create(&watched).unwrap());
    let mut watch = Process(watch.spawn().unwrap());
    let shown = || fs::read_to_string(&watched).unwrap();
    wait_until("a summary", 10, || !shown().is_empty());

    let output = succeeds(&mut sweep("cancel", &study, ""));
    assert_eq!(stdout(&output), "stopped 1 pool on this machine\n");
    wait_until("the end of `status --watch`", 10, || {
        watch.0.try_wait().unwrap().is_some()
    });
    assert_eq!(shown(), "6 runs: 2 running, 4 waiting\n6 runs: 6 waiting\n");
    assert_eq!(pool.0.wait().unwrap().code(), Some(75));
    let found = status(&mut sweep("status", &study, "--json"));
    assert_eq!(states(&found), ["waiting"; 6], "{found}");
    assert!(pid_of(&study.join(RUNS[0])).is_none());
    // With one message in the log of the run, and no failure.
    let log = fs::read_to_string(study.join("logs/catch-seed1.log")).unwrap();
    let last = log.lines().last().unwrap();
    assert!(last.starts_with("stopped by SIGTERM; epoch "), "{log}");
}

/// The cores are divided among the runs, and GPUs are assigned in turn.
#[test]
fn threads_are_divided_and_gpus_assigned() {
    let temp = temp_dir();
    let endless = STUDY
        .replace("train.epochs=30", "train.epochs=100000")
        .replace("--threads 1", "");
    let study = new_study(temp.path(), "study", &endless);
    let cores = std::thread::available_parallelism().unwrap().get();
    let command = &mut sweep("run", &study, "--gpus 3,5 --runs-per-gpu 2");
    let _pool = Process(start(command));
    let started = |run: usize| study.join(RUNS[run]).join("config.toml").exists();
    wait_until("four runs", 120, || (0..4).all(started));
    let mut gpus: Vec<String> = (0..4)
        .map(|run| {
            let config = fs::read_to_string(study.join(RUNS[run]).join("config.toml")).unwrap();
            let threads = format!("\nthreads = {}\n", (cores / 4).max(1));
            assert!(config.contains(&threads), "{config}");
            let pid = pid_of(&study.join(RUNS[run])).unwrap();
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
            let environment = String::from_utf8_lossy(&environment).into_owned();
            let mut variables = environment.split('\0');
            let gpu = variables.find_map(|pair| pair.strip_prefix("CUDA_VISIBLE_DEVICES="));
            gpu.unwrap().to_owned()
        })
        .collect();
    gpus.sort();
    assert_eq!(gpus, ["3", "3", "5", "5"]);
    assert!(!started(4));
}

/// Another scheduler's array job: two tasks with three runs each.
#[test]
fn tasks_of_any_scheduler_cover_the_study() {
    let temp = temp_dir();
    let study = new_study(temp.path(), "study", STUDY);
    for task in ["0", "1", "2"] {
        run_to_end(&mut sweep(
            "task",
            &study,
            &format!("{task} --runs-per-task 3"),
        ));
        let found = status(&mut sweep("status", &study, "--json"));
        let done = if task == "0" { 3 } else { 6 };
        assert_eq!(found["counts"]["done"], done, "{found}");
    }
}

/// One value of a grid makes training diverge. A later call tries only that run again.
#[test]
fn a_run_that_diverges_leaves_the_others_untouched() {
    let temp = temp_dir();
    let words = "--preset debug --threads 1 --grid tokenizer.optimizer.learning_rate=0.001,1e30";
    let study = new_study(temp.path(), "study", words);
    let good = study.join("learning_rate=0.001/catch-seed1");
    let mut after_first = Files::new();
    for round in 0..2 {
        let output = output_of(&mut sweep("run", &study, "--jobs 2"));
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(
            text.contains("1 run failed: learning_rate=1e30/catch-seed1"),
            "{text}"
        );
        let started = text.matches(": started\n").count() + text.matches(": continued").count();
        assert_eq!(started, [2, 1][round], "{text}");
        let found = status(&mut sweep("status", &study, "--json"));
        assert_eq!(states(&found), ["done", "failed"], "{found}");
        let reason = found["runs"][1]["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("tokenizer diverged 3 times in a row"),
            "{found}"
        );
        match round {
            0 => after_first = all_files(&good),
            _ => assert_same(&all_files(&good), &after_first),
        }
    }
}

/// The lock decides, also if nobody knows who holds it.
#[test]
fn a_locked_run_is_trained_when_its_lock_is_released() {
    let temp = temp_dir();
    let study = new_study(
        temp.path(),
        "study",
        "--preset debug --threads 1 --seeds 1..2",
    );
    let locked = study.join("catch-seed1");
    fs::create_dir(&locked).unwrap();
    let lock = fs::File::create(locked.join(".lock")).unwrap();
    lock.try_lock().unwrap();
    let log = temp.path().join("log");
    let errors = fs::File::create(&log).unwrap();
    let mut command = sweep("run", &study, "");
    let command = command.stdout(Stdio::null()).stderr(errors);
    let mut pool = Process(command.spawn().unwrap());
    let said = |text: &str| fs::read_to_string(&log).unwrap().contains(text);
    wait_until("the other run is done", 60, || said("catch-seed2: done"));
    assert!(said("catch-seed1: another process trains it\n"));
    assert!(!locked.join("config.toml").exists());
    drop(lock);
    wait_until("the end of the pool", 60, || {
        pool.0.try_wait().unwrap().is_some()
    });
    assert!(pool.0.wait().unwrap().success());
    assert!(said("catch-seed1: done") && !said("failed"));
}
