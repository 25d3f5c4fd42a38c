//! The names of files and directories in a run directory.

use std::path::Path;

/// The config of the run. Written after the first checkpoint: a run without it cannot be resumed.
pub const CONFIG: &str = "config.toml";
/// What the scores mean. Written at the start, and when the run is continued with other settings.
pub const PROTOCOL: &str = "protocol.json";
/// Losses and statistics, one line per phase and epoch. The seed determines every byte of it.
pub const METRICS: &str = "metrics.jsonl";
/// Wall-clock times, one line per phase and epoch.
pub const TIMING: &str = "timing.jsonl";
/// Returns of all evaluations.
pub const SCORES: &str = "scores.json";
/// What the user says about the run: [`Labels`](crate::Labels). Training neither reads nor writes it.
pub const LABELS: &str = "labels.json";
/// The lock file of the process that trains. Holds an [`Owner`](crate::Owner) while it does.
pub const LOCK: &str = ".lock";
/// Directory of checkpoints, one directory per epoch, named by [`epoch_name`].
pub const CHECKPOINTS: &str = "checkpoints";
/// The list of files of a checkpoint, in its directory.
pub const MANIFEST: &str = "manifest.json";
/// The file of a checkpoint with what training keeps besides weights and moments, without its extension. Written only if
/// the settings of the run need it.
pub const TRAINING_STATE: &str = "training_state";
/// Directory of experience, one file per epoch, named by [`replay_name`].
pub const REPLAY: &str = "replay";
/// Directory of images and animations, named by [`media_name`].
pub const MEDIA: &str = "media";
/// Directory of TensorBoard event files.
pub const TENSORBOARD: &str = "tensorboard";
/// Where the metrics go besides, and under which identifier. Written if the user chooses something.
pub const TRACKERS: &str = "trackers.json";
/// The metrics as a table, one row per epoch, if the user chooses it.
pub const CSV: &str = "metrics.csv";
/// Directory of Weights & Biases, if the user chooses it.
pub const WANDB: &str = "wandb";
/// The file store of MLflow, beside the run directories, if the user chooses it.
pub const MLFLOW: &str = "mlruns";

const EPOCH: &str = "epoch-";

/// The name of an epoch in file names: `epoch-000012`.
pub fn epoch_name(epoch: u32) -> String {
    format!("{EPOCH}{epoch:06}")
}

/// The inverse of [`epoch_name`]. `None` for other names, such as that of an unfinished checkpoint.
pub fn parse_epoch_name(name: &str) -> Option<u32> {
    name.strip_prefix(EPOCH)?.parse().ok()
}

/// The usual name of a run's directory: `catch-seed1`, `gym-CartPole-v1-seed1`.
pub fn run_name(game: &str, seed: u64) -> String {
    let plain = |c: char| match c {
        ':' | '/' | '\\' => '-',
        c => c,
    };
    let game: String = game.chars().map(plain).collect();
    format!("{game}-seed{seed}")
}

/// The file of an epoch's experience in [`REPLAY`]: `epoch-000012.chunk`.
pub fn replay_name(epoch: u32) -> String {
    format!("{}.chunk", epoch_name(epoch))
}

/// The inverse of [`replay_name`]. `None` for other names.
pub fn parse_replay_name(name: &str) -> Option<u32> {
    parse_epoch_name(name.strip_suffix(".chunk")?)
}

/// A file in [`MEDIA`]: `epoch-000012-dream.gif` for the kind `dream.gif`.
pub fn media_name(epoch: u32, kind: &str) -> String {
    format!("{}-{kind}", epoch_name(epoch))
}

/// The epoch and the kind of a PNG or GIF file in [`MEDIA`]. `None` for other files.
pub fn parse_media_name(name: &str) -> Option<(u32, &str)> {
    let (epoch, kind) = name.strip_prefix(EPOCH)?.split_once('-')?;
    let is_media = kind.ends_with(".png") || kind.ends_with(".gif");
    is_media.then_some((epoch.parse().ok()?, kind))
}

/// The file with the batch on which training diverged: `diverged-epoch-000012.safetensors`.
pub fn diverged_name(epoch: u32) -> String {
    format!("diverged-{}.safetensors", epoch_name(epoch))
}

/// Whether `dir` is a run, including one that has just started and one of which only the scores remain.
pub fn is_run(dir: &Path) -> bool {
    [CONFIG, PROTOCOL, METRICS, SCORES]
        .iter()
        .any(|file| dir.join(file).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epoch_names_parse_back() {
        assert_eq!(epoch_name(12), "epoch-000012");
        for epoch in [0, 12, 1_234_567] {
            assert_eq!(parse_epoch_name(&epoch_name(epoch)), Some(epoch));
        }
        assert_eq!(parse_epoch_name("epoch-000012.tmp"), None);
        assert_eq!(parse_epoch_name("000012"), None);
        assert_eq!(parse_replay_name(&replay_name(12)), Some(12));
        assert_eq!(parse_replay_name("epoch-000012.chunk.tmp"), None);
    }

    #[test]
    fn media_names_parse_back_and_temporary_files_are_skipped() {
        let name = media_name(2, "dream.gif");
        assert_eq!(name, "epoch-000002-dream.gif");
        assert_eq!(parse_media_name(&name), Some((2, "dream.gif")));
        for other in ["epoch-000002-dream.gif.tmp", "other.png", "epoch-x-a.png"] {
            assert_eq!(parse_media_name(other), None, "{other}");
        }
    }

    #[test]
    fn a_directory_with_any_run_file_is_a_run() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_run(dir.path()));
        std::fs::create_dir(dir.path().join(CONFIG)).unwrap();
        assert!(!is_run(dir.path()), "a directory is not a file");
        std::fs::write(dir.path().join(SCORES), "").unwrap();
        assert!(is_run(dir.path()));
    }
}
