//! The job script of an array job.

use std::path::Path;

use super::Resources;
use crate::error::{Error, Result};
use crate::study::Study;

/// The name of the jobs of a study. Two studies of the same name differ in the number.
pub(super) fn job_name(study: &Study) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = study.name().chars().filter(|c| plain(*c)).collect();
    format!("{name}-{:08x}", study.manifest.checksum())
}

/// The text of the script.
pub(super) fn script(
    study: &Study,
    program: &Path,
    resources: &Resources,
    array: &str,
    offset: usize,
) -> Result<String> {
    let dir = study.dir();
    let dir = dir.canonicalize().map_err(Error::io(dir))?;
    let log = study.slurm_dir().canonicalize();
    let log = log.map_err(Error::io(&study.slurm_dir()))?;
    let log = log.display().to_string().replace('%', "%%");
    let r = resources;
    let mut lines: Vec<String> = vec!["#!/bin/bash".into()];
    let mut option = |name: &str, value: &str| {
        lines.push(format!("#SBATCH --{name}={}", quoted_option(value)));
    };
    option("job-name", &job_name(study));
    option("array", array);
    option("output", &format!("{log}/%A_%a.log"));
    // A requeued task continues its log.
    option("open-mode", "append");
    option("nodes", "1");
    option("ntasks", "1");
    option("cpus-per-task", &r.cpus.to_string());
    // Two minutes before the time limit, to the shell (B:), which `exec` replaces by `rem`.
    option("signal", "B:USR1@120");
    let optional = [
        ("partition", &r.partition),
        ("account", &r.account),
        ("time", &r.time),
        ("gpus", &r.gpus),
        ("mem", &r.memory),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            option(name, value);
        }
    }
    lines.push("#SBATCH --requeue".into());
    let (options, commands): (Vec<&String>, Vec<&String>) =
        r.lines.iter().partition(|line| line.starts_with("#SBATCH"));
    for line in &options {
        if line.contains("--array") || line.contains("--job-name") {
            return Err(Error::Argument {
                message: format!("`{line}`: `rem sweep` sets this option itself"),
                hint: "leave it out of the file of extra lines".into(),
            });
        }
    }
    lines.extend(options.into_iter().cloned());
    lines.extend(commands.into_iter().cloned());
    lines.push(format!(
        "exec {} sweep task {} \"$(({offset} + SLURM_ARRAY_TASK_ID))\" --runs-per-task {}",
        quoted(&program.display().to_string()),
        quoted(&dir.display().to_string()),
        r.runs_per_task
    ));
    Ok(lines.join("\n") + "\n")
}

/// A word of a shell command.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The value of an `#SBATCH` option.
fn quoted_option(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-,:%@=+".contains(c);
    match value.chars().all(plain) {
        true => value.into(),
        false => format!("\"{value}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;

    fn study(dir: &Path) -> Study {
        let plan = Plan {
            preset: Some("debug".into()),
            seeds: "1".into(),
            ..Plan::default()
        };
        let study = Study::create(dir, plan.manifest().unwrap()).unwrap();
        std::fs::create_dir_all(study.slurm_dir()).unwrap();
        study
    }

    #[test]
    fn a_script_has_the_resources_and_survives_odd_paths() {
        let parent = tempfile::tempdir().unwrap();
        let study = study(&parent.path().join("it's 5% done"));
        let resources = Resources {
            partition: Some("gpu".into()),
            time: Some("1-00:00:00".into()),
            gpus: Some("a100:1".into()),
            cpus: 8,
            runs_per_task: 2,
            lines: vec!["module load cuda".into(), "#SBATCH --qos=long".into()],
            ..Resources::default()
        };
        let text = script(&study, Path::new("/opt/rem"), &resources, "0-3%2", 1000).unwrap();
        for line in [
            "#SBATCH --array=0-3%2",
            "#SBATCH --partition=gpu",
            "#SBATCH --time=1-00:00:00",
            "#SBATCH --gpus=a100:1",
            "#SBATCH --cpus-per-task=8",
            "#SBATCH --signal=B:USR1@120",
            "#SBATCH --open-mode=append",
            "#SBATCH --requeue",
            "#SBATCH --qos=long",
            "module load cuda",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("--account") && !text.contains("--mem"));
        // Options end at the first command.
        assert!(text.find("--qos").unwrap() < text.find("module").unwrap());
        let last = text.lines().last().unwrap();
        assert!(last.starts_with("exec '/opt/rem' sweep task '/"), "{last}");
        assert!(
            last.ends_with(
                r#"it'\''s 5% done' "$((1000 + SLURM_ARRAY_TASK_ID))" --runs-per-task 2"#
            ),
            "{last}"
        );
        assert!(
            text.contains("it's 5%% done/slurm/%A_%a.log\""),
            "a % in a path is not a placeholder: {text}"
        );
    }

    #[test]
    fn options_that_a_study_sets_are_refused() {
        let parent = tempfile::tempdir().unwrap();
        let resources = Resources {
            lines: vec!["#SBATCH --array=0-9".into()],
            ..Resources::default()
        };
        let study = study(parent.path());
        let error = script(&study, Path::new("rem"), &resources, "0", 0).unwrap_err();
        assert!(error.to_string().contains("--array=0-9"), "{error}");
    }
}
