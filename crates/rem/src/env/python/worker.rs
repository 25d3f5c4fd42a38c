//! [`Worker`]: an environment in a worker process, request by request.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::error::PythonError;
use super::interpreter::interpreter;
use super::process::Process;
use crate::config::Python;
use crate::env::{EnvName, Spaces};

/// The version of the protocol, as in `python/rem_env/__init__.py`.
const PROTOCOL: u32 = 1;

/// The least time that a worker gets to start: importing packages takes seconds on a busy machine.
const MIN_START: Duration = Duration::from_secs(60);

/// A worker whose environment is made.
pub(super) struct Worker {
    process: Process,
    name: String,
    timeout: Duration,
    pub(super) made: Made,
    frames: Frames,
    healthy: bool,
}

/// What a worker says of its environment.
#[derive(Debug, Deserialize)]
pub(super) struct Made {
    pub(super) spaces: Spaces,
    pub(super) snapshots: bool,
    pub(super) packages: BTreeMap<String, String>,
}

/// The state of the environment after a request, besides its frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct State {
    pub(super) reward: f64,
    pub(super) terminated: bool,
    pub(super) truncated: bool,
    pub(super) lives: i32,
}

impl State {
    fn parse(payload: &[u8]) -> Option<Self> {
        let (reward, rest) = payload.split_first_chunk()?;
        let (&[terminated, truncated], rest) = rest.split_first_chunk()?;
        Some(Self {
            reward: f64::from_le_bytes(*reward),
            terminated: terminated != 0,
            truncated: truncated != 0,
            lives: i32::from_le_bytes(rest.try_into().ok()?),
        })
    }
}

/// The first message of a worker.
#[derive(Deserialize)]
struct Hello {
    protocol: u32,
}

/// An exception.
#[derive(Deserialize)]
struct Exception {
    r#type: String,
    message: String,
    traceback: String,
}

/// What a call is named in errors.
fn call(kind: u8) -> &'static str {
    match kind {
        b'r' => "reset",
        b's' => "step",
        b'k' => "snapshot",
        b'l' => "restore",
        _ => "its construction",
    }
}

impl Worker {
    /// Starts a worker, and makes the environment in it.
    pub(super) fn start(name: &EnvName, settings: &Python) -> Result<Self, PythonError> {
        let python = interpreter();
        let mut wanted = match name {
            EnvName::Gymnasium { id } => json!({"kind": "gym", "id": id}),
            EnvName::Python { module, factory } => {
                json!({"kind": "python", "module": module, "factory": factory})
            }
            EnvName::BuiltIn(_) | EnvName::Atari(_) => unreachable!("not a Python environment"),
        };
        let name = match name {
            EnvName::Gymnasium { id } => format!("gym:{id}"),
            EnvName::Python { module, factory } => format!("python:{module}:{factory}"),
            EnvName::BuiltIn(_) | EnvName::Atari(_) => unreachable!("not a Python environment"),
        };
        // Deleted when this function returns: the worker has read its source and mapped the file of frames.
        let dir = shared_dir().map_err(PythonError::Files)?;
        let frames = dir.path().join("frames");
        wanted["kwargs"] = json!(settings.kwargs);
        wanted["observation"] = settings.observation.name().into();
        wanted["frames"] = frames.to_string_lossy().into();
        let file = Frames::create(&frames).map_err(PythonError::Files)?;

        let timeout = Duration::from_secs_f64(settings.timeout);
        let start = timeout.max(MIN_START);
        let mut process =
            Process::start(&python, dir.path()).map_err(|error| PythonError::Start {
                path: python.clone(),
                error,
            })?;
        let made = hello(&mut process, &name, start)
            .and_then(|()| request(&mut process, &name, b'm', &bytes(&wanted), start))
            .and_then(|(_, payload)| parse_made(&name, &payload))
            .map_err(|error| missing_package(error, &python))?;
        let frames = Frames {
            bytes: made.spaces.observation.bytes(),
            ..file
        };
        Ok(Self {
            process,
            name,
            timeout,
            made,
            frames,
            healthy: true,
        })
    }

    /// Whether it can take another request.
    pub(super) fn is_healthy(&self) -> bool {
        self.healthy
    }

    pub(super) fn reset(&mut self, seed: Option<u64>) -> Result<State, PythonError> {
        match seed {
            Some(seed) => self.state(b'r', &seed.to_le_bytes()),
            None => self.state(b'r', &[]),
        }
    }

    pub(super) fn step(&mut self, action: usize) -> Result<State, PythonError> {
        self.state(b's', &(action as i64).to_le_bytes())
    }

    pub(super) fn snapshot(&mut self) -> Result<Vec<u8>, PythonError> {
        self.request(b'k', &[]).map(|(_, payload)| payload)
    }

    pub(super) fn restore(&mut self, snapshot: &[u8]) -> Result<State, PythonError> {
        self.state(b'l', snapshot)
    }

    /// The frame of the last observation.
    pub(super) fn frame(&mut self) -> Result<Vec<u8>, PythonError> {
        self.frames.read().map_err(PythonError::Files)
    }

    fn state(&mut self, kind: u8, payload: &[u8]) -> Result<State, PythonError> {
        let (_, reply) = self.request(kind, payload)?;
        State::parse(&reply).ok_or_else(|| PythonError::Reply {
            name: self.name.clone(),
            call: call(kind),
            reason: format!("a state of {} bytes", reply.len()),
        })
    }

    /// An environment that failed is not used again.
    fn request(&mut self, kind: u8, payload: &[u8]) -> Result<(u8, Vec<u8>), PythonError> {
        let reply = request(&mut self.process, &self.name, kind, payload, self.timeout);
        self.healthy &= reply.is_ok();
        reply
    }
}

fn bytes(value: &serde_json::Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data is valid JSON")
}

/// A directory in shared memory, or in the temporary directory of a system without it.
pub(super) fn shared_dir() -> io::Result<tempfile::TempDir> {
    let named = |dir: &Path| {
        let mut builder = tempfile::Builder::new();
        builder.prefix("rem-env-").rand_bytes(12).tempdir_in(dir)
    };
    let memory = Path::new("/dev/shm");
    match named(memory).ok().filter(|_| memory.is_dir()) {
        Some(dir) => Ok(dir),
        None => named(&std::env::temp_dir()),
    }
}

/// The shared file of frames. It is read with one call, which copies memory to memory.
struct Frames {
    file: File,
    bytes: usize,
}

impl Frames {
    fn create(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).open(path)?;
        Ok(Self { file, bytes: 0 })
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut frame = Vec::with_capacity(self.bytes);
        self.file.rewind()?;
        (&self.file)
            .take(self.bytes as u64)
            .read_to_end(&mut frame)?;
        match frame.len() == self.bytes {
            true => Ok(frame),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn hello(process: &mut Process, name: &str, limit: Duration) -> Result<(), PythonError> {
    let (kind, payload) = match process.receive(limit) {
        Ok(message) => message,
        Err(error) => return Err(failed(process, name, b'h', limit, &error)),
    };
    let hello: Option<Hello> = serde_json::from_slice(&payload).ok();
    match hello.filter(|_| kind == b'h') {
        Some(hello) if hello.protocol == PROTOCOL => Ok(()),
        hello => Err(PythonError::Reply {
            name: name.into(),
            call: call(b'h'),
            reason: match hello {
                Some(hello) => format!("protocol {}, not {PROTOCOL}", hello.protocol),
                None => "no greeting".into(),
            },
        }),
    }
}

fn request(
    process: &mut Process,
    name: &str,
    kind: u8,
    payload: &[u8],
    limit: Duration,
) -> Result<(u8, Vec<u8>), PythonError> {
    let (replied, payload) = match process.ask(kind, payload, limit) {
        Ok(reply) => reply,
        Err(error) => return Err(failed(process, name, kind, limit, &error)),
    };
    if replied != b'x' {
        return Ok((replied, payload));
    }
    let exception: Result<Exception, _> = serde_json::from_slice(&payload);
    let Exception {
        r#type,
        message,
        traceback,
    } = exception.map_err(|error| PythonError::Reply {
        name: name.into(),
        call: call(kind),
        reason: error.to_string(),
    })?;
    let message = one_line(&message);
    let name = name.to_owned();
    Err(match &r#type[..] {
        "Unsupported" => PythonError::Unsupported {
            name,
            reason: message,
        },
        _ => PythonError::Raised {
            name,
            call: call(kind),
            kind: r#type,
            message,
            traceback,
        },
    })
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The error of a worker that gave no reply. Ends it.
fn failed(
    process: &mut Process,
    name: &str,
    kind: u8,
    limit: Duration,
    error: &io::Error,
) -> PythonError {
    let (name, call) = (name.to_owned(), call(kind));
    let (status, output) = process.end();
    if process.timed_out() {
        let seconds = limit.as_secs_f64();
        return PythonError::TimedOut {
            name,
            call,
            seconds,
        };
    }
    if error.kind() == io::ErrorKind::InvalidData {
        let reason = error.to_string();
        return PythonError::Reply { name, call, reason };
    }
    PythonError::Died {
        name,
        call,
        status: status.map_or_else(|| "for an unknown reason".into(), |s| described(&s)),
        output,
    }
}

fn described(status: &ExitStatus) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        match status.signal() {
            Some(9) => return "killed by signal 9; is there enough memory?".into(),
            Some(11) => return "killed by signal 11, a segmentation fault".into(),
            Some(signal) => return format!("killed by signal {signal}"),
            None => {}
        }
    }
    match status.code() {
        Some(code) => format!("exit code {code}"),
        None => status.to_string(),
    }
}

fn parse_made(name: &str, payload: &[u8]) -> Result<Made, PythonError> {
    serde_json::from_slice(payload).map_err(|error| PythonError::Reply {
        name: name.into(),
        call: call(b'm'),
        reason: error.to_string(),
    })
}

/// Replaces the exception of a failed import by what to install. A worker without numpy or gymnasium fails in the same way.
fn missing_package(error: PythonError, python: &Path) -> PythonError {
    let module = |text: &str| {
        let (_, rest) = text.split_once("No module named '")?;
        let module = rest.split(['\'', '.']).next()?;
        Some(module.to_owned())
    };
    let found = match &error {
        PythonError::Raised { kind, message, .. } if kind == "ModuleNotFoundError" => {
            module(message)
        }
        _ => None,
    };
    let (Some(module), PythonError::Raised { name, .. }) = (found, &error) else {
        return error;
    };
    PythonError::Missing {
        name: name.clone(),
        module,
        python: PathBuf::from(python),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_parsed_and_other_lengths_are_not() {
        let mut payload = 1.5f64.to_le_bytes().to_vec();
        payload.extend([0, 1]);
        payload.extend((-1i32).to_le_bytes());
        let state = State {
            reward: 1.5,
            terminated: false,
            truncated: true,
            lives: -1,
        };
        assert_eq!(State::parse(&payload), Some(state));
        assert_eq!(State::parse(&payload[1..]), None);
        payload.push(0);
        assert_eq!(State::parse(&payload), None);
    }
}
