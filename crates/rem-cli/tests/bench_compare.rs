//! `rem bench --compare` measures several agents in every phase and writes the paper's Figure 1 (top).

mod support;

use std::process::Command;

use support::*;

const TINY: [&str; 8] = [
    "bench",
    "--scale",
    "tiny",
    "--batches",
    "reference",
    "--repeats",
    "1",
    "--threads=2",
];

fn tiny() -> Command {
    let mut command = rem();
    command.args(TINY);
    command
}

fn lines(text: &str) -> Vec<serde_json::Value> {
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[test]
fn every_agent_is_measured_in_every_phase() {
    let temp = temp_dir();
    let page = temp.path().join("time.md");
    let output = succeeds(
        tiny()
            .args(["--compare", "pop,no-pop,iris", "--json"])
            .args(["--only", "tokenizer,world_model,imagination,actor_critic"])
            .arg("--out")
            .arg(&page),
    );
    let lines = lines(&stdout(&output));
    assert_eq!(lines.len(), 3 * 4);
    let phases = ["tokenizer", "world_model", "imagination", "actor_critic"];
    for (i, line) in lines.iter().enumerate() {
        let number = |key: &str| line[key].as_f64().unwrap();
        let agent = ["pop", "no-pop", "iris"][i / 4];
        assert_eq!(line["agent"], agent, "{line}");
        assert_eq!(line["phase"], phases[i % 4], "{line}");
        let tokens = if agent == "iris" { 16.0 } else { 64.0 };
        assert_eq!(number("tokens_per_frame"), tokens, "{line}");
        assert!(number("ms") > 0.0 && number("gflops") > 0.0, "{line}");
        // The ratio to REM, of times per epoch.
        let epoch =
            number("seconds_per_epoch") / lines[i % 4]["seconds_per_epoch"].as_f64().unwrap();
        assert!(
            (number("ratio_per_epoch") / epoch - 1.0).abs() < 0.05,
            "{line}"
        );
        let steps = number("ms") / 1e3 * number("steps_per_epoch");
        assert!(
            (steps / number("seconds_per_epoch") - 1.0).abs() < 0.05,
            "{line}"
        );
    }
    // IRIS: 200 controller updates per epoch instead of 100.
    assert_eq!(lines[3]["steps_per_epoch"], 100);
    assert_eq!(lines[11]["steps_per_epoch"], 200);
    // The same tokenizer is not measured twice.
    assert_eq!(lines[0]["ms"], lines[4]["ms"]);

    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.starts_with("# Time of training"), "{text}");
    for part in [
        "| world-model training | No POP |",
        "IRIS over REM",
        "15.4x",
        "(time.svg)",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    let figure = std::fs::read_to_string(temp.path().join("time.svg")).unwrap();
    // A bar for each agent and panel, two parts where rollouts are a part of the time.
    assert!(figure.matches("<rect").count() > 3 + 3, "{figure}");
    assert!(figure.contains("World-model training") && figure.contains("solid: rollouts"));
    assert!(figure.contains("1.00x"));
}

#[test]
fn the_table_has_totals_when_all_phases_are_measured() {
    let output = succeeds(tiny().args(["--compare", "no-pop"]));
    let text = stdout(&output);
    assert!(
        text.contains("hours per run") && text.contains("tokenizer with LPIPS"),
        "{text}"
    );
    let partial = stdout(&succeeds(tiny().args([
        "--compare",
        "iris-rem",
        "--only",
        "world_model",
    ])));
    assert!(!partial.contains("hours per run"), "{partial}");
    assert!(partial.contains("IRIS at REM's sizes"), "{partial}");
}

#[test]
fn phases_have_the_batches_of_the_paper_or_of_the_reference_benchmark() {
    let only = ["--only", "world_model,imagine_pop,imagine_no_pop"];
    let batches = |words: &[&str]| -> Vec<(u64, u64)> {
        let output = succeeds(tiny().args(only).args(words).arg("--json"));
        let number = |line: &serde_json::Value, key: &str| line[key].as_u64().unwrap();
        let lines = lines(&stdout(&output));
        (lines
            .iter()
            .map(|l| (number(l, "batch"), number(l, "frames"))))
        .collect()
    };
    assert_eq!(batches(&[]), [(16, 160), (16, 144), (16, 144)]);
    let mut paper = rem();
    paper.args([
        "bench",
        "--scale",
        "tiny",
        "--repeats",
        "1",
        "--only",
        "imagine_pop",
        "--json",
    ]);
    let line = &lines(&stdout(&succeeds(&mut paper)))[0];
    assert_eq!(line["batch"], 128);
    assert_eq!(line["frames"], 128 * 8);
}

#[test]
fn lines_of_other_batch_sizes_are_marked() {
    let temp = temp_dir();
    let file = temp.path().join("reference.jsonl");
    let line = |batch: u32, frames: u32| {
        format!(
            "{{\"phase\":\"imagine_pop\",\"batch\":{batch},\"frames\":{frames},\"ms\":10,\"ms_per_frame\":1000,\"dtype\":\"f32\"}}\n"
        )
    };
    let against = |text: String| {
        std::fs::write(&file, text).unwrap();
        let output = succeeds(
            tiny()
                .args(["--only", "imagine_pop", "--against"])
                .arg(&file),
        );
        stderr(&output)
    };
    assert!(!against(line(16, 144)).contains("other batch sizes"));
    assert!(against(line(128, 1024)).contains("* other batch sizes"));
}

#[test]
fn unknown_phases_devices_and_agents_are_rejected() {
    let (error, hint) = fails(tiny().args(["--only", "imagination"]));
    assert!(error.contains("unknown phase `imagination`"), "{error}");
    assert!(hint.contains("tokenizer"), "{hint}");
    let (error, _) = fails(tiny().args(["--compare", "pop", "--only", "imagine_pop"]));
    assert!(error.contains("unknown phase `imagine_pop`"), "{error}");
    for words in [
        &["bench"][..],
        &["bench", "--compare", "iris"],
        &["bench", "imagination"],
    ] {
        let (error, hint) = fails(rem().args(words).args(["--device", "quantum"]));
        assert!(error.contains("unknown device `quantum`"), "{error}");
        assert!(hint.contains("flex"), "{hint}");
    }
    let output = output_of(tiny().args(["--compare", "dreamer"]));
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(
        text.contains("dreamer") && text.contains("iris-controller"),
        "{text}"
    );
}

/// A short part of an epoch, on one thread and on two.
#[test]
fn overlapped_phases_are_compared_with_one_thread() {
    let output = succeeds(tiny().args(["--only", "overlapped", "--json"]));
    let lines = lines(&stdout(&output));
    assert_eq!(lines.len(), 1);
    let number = |key: &str| lines[0][key].as_f64().unwrap();
    assert_eq!(lines[0]["phase"], "overlapped");
    // The proportion of an epoch: 200 updates of the world model, 100 of the controller.
    let (world_model, controller) = (
        number("world_model_updates"),
        number("actor_critic_updates"),
    );
    assert!(
        (world_model - 2.0 * controller).abs() <= 2.0,
        "{}",
        lines[0]
    );
    let rate = |threads: &str| number(&format!("updates_per_minute_{threads}"));
    let ratio = rate("two_threads") / rate("one_thread");
    assert!((ratio - number("ratio")).abs() < 0.02, "{}", lines[0]);
    let text = stdout(&succeeds(tiny().args(["--only", "overlapped"])));
    assert!(text.contains("times as many as on one"), "{text}");

    // Only the laptop scale has the row without being asked: at the paper's sizes it takes minutes.
    let error = fails(rem().args(["bench", "--only", "overlaped"])).1;
    assert!(error.contains("overlapped"), "{error}");
}
