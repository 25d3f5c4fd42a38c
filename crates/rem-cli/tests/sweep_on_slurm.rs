//! `rem sweep run --on slurm` on a real Slurm of one node, which `scripts/slurm-one-node` starts.

mod support;

use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use support::study::*;
use support::*;

/// One cluster at a time: each believes that it has the whole machine.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of the submitted job, and its tasks.
fn submitted(text: &str) -> (String, String) {
    let line = text.lines().next().unwrap_or_default();
    let rest = line
        .strip_prefix("submitted job ")
        .unwrap_or_else(|| panic!("{text}"));
    let (job, tasks) = rest.split_once(", tasks ").unwrap();
    (job.into(), tasks.into())
}

/// From `new` to the report, with a cancelled task, a killed process, a warning before the time limit and a preemption.
#[test]
fn a_disturbed_study_ends_in_the_same_bytes() {
    let _alone = alone();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let temp = temp_dir();
    // Some seconds per run: commands of Slurm take a moment.
    let words = STUDY.replace("train.epochs=30", "train.epochs=80");
    let expected = undisturbed(temp.path(), &words);
    let study = new_study(temp.path(), "disturbed", &words);
    let run = |words: &str| {
        let mut command = sweep("run", &study, &format!("--on slurm {words}"));
        stdout(&succeeds(cluster.with(&mut command)))
    };
    let (job, tasks) = submitted(&run("--max-tasks 2 --time 10:00"));
    assert_eq!(tasks, "0-5%2");
    let found = status(cluster.with(&mut sweep("status", &study, "--json")));
    assert_eq!(found["counts"]["waiting"], 0, "{found}");
    assert!(
        found["runs"][5]["slurm_job"] == format!("{job}_5"),
        "{found}"
    );
    // Submitting again finds everything in the queue.
    let again = run("");
    assert!(again.starts_with("nothing to submit: 6 runs: "), "{again}");

    let at = |run: usize| study.join(RUNS[run]);
    let in_the_middle = |run: usize| has_line(&at(run), 3, "collect");
    wait_until("task 0 trains", 60, || in_the_middle(0));
    cluster.slurm(&format!("scancel {job}_0"));
    wait_until("task 1 trains", 60, || in_the_middle(1));
    kill("KILL", pid_of(&at(1)).expect("it trains"));
    wait_until("task 2 trains", 60, || in_the_middle(2));
    let warned = |text: &str| {
        let log = fs::read_to_string(study.join(format!("slurm/{job}_2.log")));
        log.unwrap_or_default().contains(text)
    };
    // Does not return soon: the job is in the queue again before Slurm has answered.
    let warning = cluster.start(&format!("scancel --signal=USR1 --batch {job}_2"));
    wait_until("task 2 is requeued", 60, || warned("requeued "));
    drop(warning);
    wait_until("task 3 trains", 60, || in_the_middle(3));
    // Takes both cores at a higher priority: Slurm requeues what trains.
    cluster.slurm(&format!(
        "sbatch --partition=high --cpus-per-task={} --output=/dev/null --wrap=true",
        std::thread::available_parallelism().unwrap()
    ));
    wait_until("the queue is empty", 180, || {
        cluster.hurry();
        std::thread::sleep(Duration::from_millis(500));
        cluster.is_idle()
    });
    let found = status(cluster.with(&mut sweep("status", &study, "--json")));
    assert_eq!(
        states(&found),
        ["waiting", "done", "done", "done", "done", "done"],
        "{found}"
    );
    // Only what is missing.
    let (_, tasks) = submitted(&run(""));
    assert_eq!(tasks, "0");
    wait_until("the queue is empty", 60, || cluster.is_idle());
    for (found, expected) in files_of(&study).iter().zip(&expected) {
        assert_same(found, expected);
    }
    // What was meant to happen has happened.
    let log =
        |task: usize| fs::read_to_string(study.join(format!("slurm/{job}_{task}.log"))).unwrap();
    assert!(log(0).contains("CANCELLED"), "{}", log(0));
    assert!(
        log(1).contains("killed (signal: 9 (SIGKILL)); starting it again"),
        "{}",
        log(1)
    );
    assert!(log(2).contains("SIGUSR1: stopping all runs"), "{}", log(2));
    assert!(log(2).contains(&format!("requeued {job}_2")), "{}", log(2));
    assert!(log(2).contains("continued after epoch "), "{}", log(2));
    assert!(log(3).contains("DUE TO PREEMPTION"), "{}", log(3));
    assert!(log(3).contains("continued after epoch "), "{}", log(3));

    let collected = stdout(&succeeds(&mut sweep("collect", &study, "--replicates 100")));
    assert!(
        collected.starts_with("disturbed: all 6 runs are done\n"),
        "{collected}"
    );
    assert!(study.join("report/report.html").is_file());
}

/// Submission takes less than 5 s, a look at all runs less than 1 s. What Slurm does not train, this machine does.
#[test]
fn the_papers_number_of_runs_is_submitted_listed_and_collected() {
    let _alone = alone();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let temp = temp_dir();
    let brief = "--preset debug --games catch,crossing --seeds 1..65 --threads 1 --set train.epochs=1 \
        --set collect.epochs=1 --set evaluate.every=0 --set evaluate.final_episodes=1 --set env.max_steps.test=20";
    let study = new_study(temp.path(), "study", brief);
    let mut command = sweep("run", &study, "--on slurm --max-tasks 2");
    let started = Instant::now();
    let output = succeeds(cluster.with(&mut command));
    let submission = started.elapsed();
    let (job, tasks) = submitted(&stdout(&output));
    assert_eq!(tasks, "0-129%2");
    assert!(submission < Duration::from_secs(5), "{submission:?}");

    let listed = || {
        let started = Instant::now();
        let found = status(cluster.with(&mut sweep("status", &study, "--json")));
        let elapsed = started.elapsed();
        assert!(elapsed < Duration::from_secs(1), "{elapsed:?}");
        assert_eq!(states(&found).len(), 130);
        found
    };
    let found = listed();
    assert_eq!(found["counts"]["waiting"], 0, "{found}");
    assert!(found["counts"]["queued"].as_u64() >= Some(120), "{found}");
    wait_until("three runs are done", 60, || {
        listed()["counts"]["done"].as_u64() >= Some(3)
    });
    let mut command = sweep("cancel", &study, "");
    let output = succeeds(cluster.with(&mut command));
    assert_eq!(stdout(&output), format!("cancelled {job}\n"));
    wait_until("the queue is empty", 30, || cluster.is_idle());
    let partial = stdout(&succeeds(&mut sweep("collect", &study, "--replicates 100")));
    assert!(
        partial.contains(" of 130 runs are done; not counted: "),
        "{partial}"
    );

    run_to_end(&mut sweep("run", &study, "--jobs 2"));
    assert_eq!(listed()["counts"]["done"], 130);
    let all = stdout(&succeeds(&mut sweep("collect", &study, "--replicates 100")));
    assert!(all.starts_with("study: all 130 runs are done\n"), "{all}");
    let scores = fs::read_to_string(study.join("scores/study.json")).unwrap();
    assert_eq!(numbers(&scores, "catch").len(), 65);
    assert_eq!(numbers(&scores, "crossing").len(), 65);
}

/// Runs that share a task train in parallel, and further lines reach Slurm.
#[test]
fn runs_share_a_task_and_options_reach_slurm() {
    let _alone = alone();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let temp = temp_dir();
    let endless = STUDY.replace("train.epochs=30", "train.epochs=100000");
    let study = new_study(temp.path(), "study", &endless);
    let lines = temp.path().join("lines");
    fs::write(
        &lines,
        "#!/bin/bash\n#SBATCH --comment=from-the-file\nexport FROM_LINES=yes\n",
    )
    .unwrap();
    let words = format!(
        "--on slurm --runs-per-gpu 2 --cpus 1 --mem 1000M --max-tasks 1 --lines {}",
        lines.display()
    );
    let output = succeeds(cluster.with(&mut sweep("run", &study, &words)));
    let (job, tasks) = submitted(&stdout(&output));
    assert_eq!(tasks, "0-2%1");
    let both = || pid_of(&study.join(RUNS[0])).zip(pid_of(&study.join(RUNS[1])));
    wait_until("two runs train", 60, || both().is_some());
    let pid = both().unwrap().0;
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    assert!(environment.contains("FROM_LINES=yes"), "{environment}");
    let shown = cluster.slurm(&format!("scontrol show job {job}_0"));
    assert!(shown.contains("Comment=from-the-file"), "{shown}");
    assert!(shown.contains("MinMemoryNode=1000M"), "{shown}");
    let found = status(cluster.with(&mut sweep("status", &study, "--json")));
    assert_eq!(&states(&found)[..2], ["running"; 2], "{found}");
    assert_eq!(&states(&found)[2..], ["queued"; 4], "{found}");
    assert_eq!(found["runs"][1]["slurm_job"], format!("{job}_0"), "{found}");
    // A pool on this machine leaves both alone.
    let shown = stdout(&succeeds(cluster.with(&mut sweep("status", &study, ""))));
    assert!(shown.contains(&format!("job {job}_0")), "{shown}");
    succeeds(cluster.with(&mut sweep("cancel", &study, "")));
    wait_until("both end", 30, || {
        pid_of(&study.join(RUNS[0])).is_none() && pid_of(&study.join(RUNS[1])).is_none()
    });
}

#[test]
fn a_refusal_of_sbatch_is_shown_and_leaves_the_study_as_it_is() {
    let _alone = alone();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let temp = temp_dir();
    let study = new_study(temp.path(), "study", STUDY);
    let lines = temp.path().join("lines");
    fs::write(&lines, "#SBATCH --no-such-option\n").unwrap();
    for (words, part) in [
        (
            "--partition nowhere".into(),
            "invalid partition specified: nowhere",
        ),
        ("--time soon".into(), "Invalid --time specification"),
        (format!("--lines {}", lines.display()), "no-such-option"),
    ] {
        let mut command = sweep("run", &study, &format!("--on slurm {words}"));
        let (error, hint) = fails(cluster.with(&mut command));
        assert!(
            error.starts_with("`sbatch`: ") && error.contains(part),
            "{error}"
        );
        assert!(hint.contains("nothing was submitted"), "{hint}");
    }
    assert!(cluster.is_idle());
    let found = status(cluster.with(&mut sweep("status", &study, "--json")));
    assert_eq!(states(&found), ["waiting"; 6]);
}

#[test]
fn an_absent_slurm_is_an_error_with_the_alternative() {
    let temp = temp_dir();
    let study = new_study(temp.path(), "study", STUDY);
    let mut command = sweep("run", &study, "--on slurm");
    let (error, hint) = fails(command.env("PATH", Path::new("/nowhere")));
    assert_eq!(error, "`sbatch`: there is no such program");
    assert!(hint.contains("`--on local`"), "{hint}");
    // What was never submitted needs no Slurm.
    let found = status(sweep("status", &study, "--json").env("PATH", "/nowhere"));
    assert_eq!(states(&found), ["waiting"; 6]);
}
