//! [`Import`]: makes a data set from NumPy files.

use std::path::{Path, PathBuf};

use rem_run::layout;

use super::recorded::Recorded;
use super::{DatasetError, DatasetInfo, FORMAT};
use crate::config::{FRAME_SIZES, ResizeFilter, Wrappers};
use crate::data::replay::Replay;
use crate::env::{MAX_ACTIONS, ObservationSpace, Outcome, Scale};

/// What to import, and as what.
#[derive(Clone, Debug)]
pub struct Import {
    /// The name of the environment; by default that in the files.
    pub game: Option<String>,
    /// Number of actions; by default as many as the files name or take.
    pub actions: Option<usize>,
    /// Height and width of the frames to make.
    pub frame_size: usize,
    /// How frames of another size are resized.
    pub resize: ResizeFilter,
}

impl Import {
    /// Imports `.npz` files, and those in directories, in the order of their names. Writes nothing unless all are valid.
    ///
    /// # Errors
    /// If a file cannot be read or holds no episodes, the files do not fit each other, or `out` exists.
    pub fn run(&self, sources: &[PathBuf], out: &Path) -> Result<DatasetInfo, DatasetError> {
        if out.exists() {
            return Err(DatasetError::Exists { path: out.into() });
        }
        assert!(
            FRAME_SIZES.contains(&self.frame_size),
            "a supported frame size"
        );
        let mut set = Collected::new(self);
        for source in sources {
            for file in files(source)? {
                let invalid = |reason| DatasetError::Invalid {
                    path: file.clone(),
                    reason,
                };
                let bytes = std::fs::read(&file).map_err(io(&file))?;
                let recorded = Recorded::from_npz(&bytes).map_err(invalid)?;
                set.add(recorded).map_err(invalid)?;
            }
        }
        let path = sources.first().cloned().unwrap_or_default();
        if set.replay.steps() == 0 {
            return Err(DatasetError::Empty { path });
        }
        let actions = set
            .action_names()
            .map_err(|reason| DatasetError::Invalid { path, reason })?;
        // The description comes last: a directory without it is no data set.
        let replay = out.join(layout::REPLAY);
        let chunk = set
            .replay
            .write_chunk(&replay, 0, &layout::replay_name(1))?;
        let info = DatasetInfo {
            format: FORMAT,
            game: set.game.unwrap_or_else(|| "episodes".into()),
            actions,
            frame_size: self.frame_size,
            episodes: set.replay.episodes(),
            steps: set.replay.steps(),
            chunks: chunk.into_iter().collect(),
        };
        info.write(out)?;
        Ok(info)
    }
}

/// The steps of the files so far.
struct Collected<'a> {
    import: &'a Import,
    replay: Replay,
    game: Option<String>,
    names: Vec<String>,
    most: u8,
}

impl<'a> Collected<'a> {
    fn new(import: &'a Import) -> Self {
        Self {
            import,
            // Tokens are never cached here.
            replay: Replay::new(3 * import.frame_size.pow(2), 1),
            game: import.game.clone(),
            names: Vec::new(),
            most: 0,
        }
    }

    fn add(&mut self, recorded: Recorded) -> Result<(), String> {
        if self.names.is_empty() {
            self.names = recorded.action_names;
        } else if !recorded.action_names.is_empty() && recorded.action_names != self.names {
            return Err("its actions have other names than those of the files before".into());
        }
        self.game = self.game.take().or(recorded.game);
        let images = &recorded.images;
        let space = ObservationSpace::Image {
            height: images.height,
            width: images.width,
            channels: images.channels,
        };
        let wrappers = Wrappers {
            resize: self.import.resize,
            ..Wrappers::default()
        };
        let mut scale = Scale::new(&space, wrappers, self.import.frame_size);
        let mut frame = vec![0; 3 * self.import.frame_size.pow(2)];
        let last = recorded.actions.len() - 1;
        for (i, action) in recorded.actions.iter().enumerate() {
            scale.apply(images.get(i), &mut frame);
            let outcome = match recorded.outcomes[i] {
                Outcome::Running if i == last => Outcome::Truncated,
                outcome => outcome,
            };
            self.replay
                .push(&frame, *action, recorded.rewards[i], outcome);
            self.most = self.most.max(*action);
        }
        Ok(())
    }

    fn action_names(&self) -> Result<Vec<String>, String> {
        let taken = usize::from(self.most) + 1;
        let named = self.names.len();
        let count = match (self.import.actions, named) {
            (Some(count), _) => count,
            (None, 0) => taken.max(2),
            (None, named) => named,
        };
        if count < taken || !(2..=MAX_ACTIONS).contains(&count) {
            return Err(format!(
                "action {} was taken, but there are {count} actions",
                self.most
            ));
        }
        Ok(match count == named {
            true => self.names.clone(),
            false => (0..count).map(|action| action.to_string()).collect(),
        })
    }
}

/// The file itself, or the `.npz` files in a directory, by name.
fn files(source: &Path) -> Result<Vec<PathBuf>, DatasetError> {
    if !source.is_dir() {
        return Ok(vec![source.into()]);
    }
    let entries = std::fs::read_dir(source).map_err(io(source))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "npz"))
        .collect();
    files.sort();
    match files.is_empty() {
        true => Err(DatasetError::Empty {
            path: source.into(),
        }),
        false => Ok(files),
    }
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> DatasetError + use<> {
    let path = path.to_owned();
    move |error| DatasetError::Io { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::episode::npz::{self, Npy};
    use crate::data::replay::StepId;

    fn import() -> Import {
        Import {
            game: None,
            actions: None,
            frame_size: 32,
            resize: ResizeFilter::Nearest,
        }
    }

    fn floats(values: &[f32]) -> Npy {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Npy::new("<f4", vec![values.len()], bytes)
    }

    fn longs(values: &[i64]) -> Npy {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Npy::new("<i8", vec![values.len()], bytes)
    }

    fn bools(values: &[u8]) -> Npy {
        Npy::new("|b1", vec![values.len()], values.to_vec())
    }

    /// Two episodes in one file, with other names and types than ours.
    fn foreign() -> Vec<(&'static str, Npy)> {
        let gray: Vec<u8> = (0..5u8).flat_map(|i| [i * 10; 12]).collect();
        vec![
            ("observations", Npy::bytes(vec![5, 3, 4], gray)),
            ("actions", longs(&[0, 2, 1, 0, 0])),
            ("rewards", floats(&[0.0, 1.0, 0.5, 0.0, -1.0])),
            ("terminals", bools(&[0, 1, 0, 0, 0])),
            ("timeouts", bools(&[0, 0, 0, 1, 0])),
        ]
    }

    fn imported(arrays: &[(&str, Npy)], import: &Import) -> Result<DatasetInfo, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.npz");
        std::fs::write(&file, npz::write(arrays)).unwrap();
        let out = dir.path().join("out");
        let info = import.run(&[file], &out).map_err(|error| {
            assert!(!out.exists(), "a failed import left a directory");
            error.to_string()
        })?;
        let read = DatasetInfo::read(&out).unwrap().unwrap();
        let replay = read.load(&out, 1).unwrap();
        assert_eq!(replay.steps(), info.steps);
        Ok(info)
    }

    #[test]
    fn files_of_other_programs_become_episodes() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("files");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("b.npz"), npz::write(&foreign())).unwrap();
        std::fs::write(folder.join("notes.txt"), "no episode").unwrap();
        let out = dir.path().join("data").join("set");
        let info = import().run(&[folder], &out).unwrap();
        assert_eq!(
            (info.episodes, info.steps, &info.game[..]),
            (3, 5, "episodes")
        );
        assert_eq!(info.actions, ["0", "1", "2"]);
        assert_eq!(DatasetInfo::read(&out).unwrap(), Some(info.clone()));
        let replay = info.load(&out, 4).unwrap();
        let step = |episode, index| StepId { episode, index };
        assert_eq!(replay.frame(step(1, 0)), [20; 32 * 32 * 3]);
        assert_eq!(
            (replay.action(step(0, 1)), replay.reward(step(1, 0))),
            (2, 0.5)
        );
        let outcomes = [(0, 1), (1, 1), (2, 0)].map(|(e, i)| replay.outcome(step(e, i)));
        let expected = [Outcome::Terminated, Outcome::Truncated, Outcome::Truncated];
        assert_eq!(outcomes, expected, "the end of the file truncates");
        let again = import().run(&[dir.path().join("files")], &out).unwrap_err();
        assert!(matches!(again, DatasetError::Exists { .. }));
    }

    #[test]
    fn invalid_files_are_errors_and_leave_nothing() {
        let with = |name: &str, array: Option<Npy>| {
            let mut arrays = foreign();
            arrays.retain(|(other, _)| *other != name);
            let name: &'static str = name.to_owned().leak();
            arrays.extend(array.map(|array| (name, array)));
            imported(&arrays, &import()).unwrap_err()
        };
        assert!(with("actions", None).contains("no array is named `actions`"));
        assert!(with("terminals", None).contains("`terminations`"));
        assert!(with("actions", Some(longs(&[0; 4]))).contains("do not match"));
        assert!(with("actions", Some(longs(&[0, 1, -1, 0, 0]))).contains("no discrete action"));
        assert!(with("actions", Some(floats(&[0.5; 5]))).contains("no discrete action"));
        let nan = floats(&[0.0, 0.0, f32::NAN, 0.0, 0.0]);
        assert!(with("rewards", Some(nan)).contains("not finite"));
        let flat = Npy::bytes(vec![5, 4], vec![0; 20]);
        assert!(with("observations", Some(flat)).contains("shape"));
        let doubles = Npy::new("<f8", vec![5, 1, 1], vec![0; 40]);
        assert!(with("observations", Some(doubles)).contains("<f8"));
    }

    #[test]
    fn the_number_of_actions_is_that_of_the_environment() {
        let of = |actions| {
            let import = Import {
                actions,
                ..import()
            };
            imported(&foreign(), &import).map(|info| info.actions.len())
        };
        assert_eq!((of(None), of(Some(6))), (Ok(3), Ok(6)));
        assert!(of(Some(2)).unwrap_err().contains("action 2 was taken"));
    }
}
