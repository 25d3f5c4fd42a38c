//! The process of a worker: its pipes, what it prints, and the limit on its time.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::message;

/// The source of the worker, `python/rem_env`.
const SOURCE: &[(&str, &str)] = &[
    (
        "__init__.py",
        include_str!("../../../../../python/rem_env/__init__.py"),
    ),
    (
        "__main__.py",
        include_str!("../../../../../python/rem_env/__main__.py"),
    ),
    (
        "envs.py",
        include_str!("../../../../../python/rem_env/envs.py"),
    ),
    (
        "frames.py",
        include_str!("../../../../../python/rem_env/frames.py"),
    ),
    (
        "minari.py",
        include_str!("../../../../../python/rem_env/minari.py"),
    ),
    (
        "protocol.py",
        include_str!("../../../../../python/rem_env/protocol.py"),
    ),
    (
        "worker.py",
        include_str!("../../../../../python/rem_env/worker.py"),
    ),
];

/// Lines of a worker's output that are kept for an error.
const KEPT_LINES: usize = 30;

/// How often the limit on a worker's time is checked.
const TICK: Duration = Duration::from_millis(100);

/// How long a worker may take to close its environment.
const PATIENCE: Duration = Duration::from_secs(2);

/// A running worker. Dropped, it ends, at the latest by a signal, and is waited for.
pub(super) struct Process {
    shared: Arc<Shared>,
    requests: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
    printing: Option<JoinHandle<()>>,
}

/// What the process shares with the threads that watch it.
struct Shared {
    child: Mutex<Child>,
    started: Instant,
    /// Milliseconds after `started` at which the worker is killed; 0 while it has nothing to do.
    deadline: AtomicU64,
    timed_out: AtomicBool,
    printed: Mutex<VecDeque<String>>,
}

/// Writes the package `rem_env` into a directory.
pub(super) fn write_source(dir: &Path) -> io::Result<()> {
    let package = dir.join("rem_env");
    std::fs::create_dir_all(&package)?;
    SOURCE
        .iter()
        .try_for_each(|(name, text)| std::fs::write(package.join(name), text))
}

/// The user's PYTHONPATH, with a directory before it.
pub(super) fn python_path(dir: &Path) -> OsString {
    let mut path = dir.as_os_str().to_owned();
    if let Some(own) = std::env::var_os("PYTHONPATH").filter(|own| !own.is_empty()) {
        path.push(if cfg!(windows) { ";" } else { ":" });
        path.push(own);
    }
    path
}

impl Process {
    /// Starts the worker with its source in `dir`, which is needed until the worker's first message.
    pub(super) fn start(python: &Path, dir: &Path) -> io::Result<Self> {
        write_source(dir)?;
        let mut command = Command::new(python);
        command
            .args(["-m", "rem_env"])
            .env("PYTHONPATH", python_path(dir))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONUNBUFFERED", "1")
            .env("PYGAME_HIDE_SUPPORT_PROMPT", "1");
        // Several workers share the processor, and none has a display.
        for (key, value) in [("OMP_NUM_THREADS", "1"), ("SDL_VIDEODRIVER", "dummy")] {
            if std::env::var_os(key).is_none() {
                command.env(key, value);
            }
        }
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.stderr(Stdio::piped()).spawn()?;
        let requests = child.stdin.take();
        let replies = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        let stderr = BufReader::new(child.stderr.take().expect("stderr is a pipe"));
        let shared = Arc::new(Shared {
            child: Mutex::new(child),
            started: Instant::now(),
            deadline: AtomicU64::new(0),
            timed_out: AtomicBool::new(false),
            printed: Mutex::default(),
        });
        let printing = shared.clone();
        let printing = std::thread::spawn(move || printing.read_output(stderr));
        let watched = Arc::downgrade(&shared);
        std::thread::spawn(move || watch(&watched));
        Ok(Self {
            shared,
            requests,
            replies,
            printing: Some(printing),
        })
    }

    /// Sends a request and waits for the reply, at most for `limit`.
    pub(super) fn ask(
        &mut self,
        kind: u8,
        payload: &[u8],
        limit: Duration,
    ) -> io::Result<(u8, Vec<u8>)> {
        self.shared.arm(limit);
        let requests = self.requests.as_mut().expect("it is open until the drop");
        let reply =
            message::write(requests, kind, payload).and_then(|()| message::read(&mut self.replies));
        self.shared.disarm();
        reply
    }

    /// Waits for a message without a request.
    pub(super) fn receive(&mut self, limit: Duration) -> io::Result<(u8, Vec<u8>)> {
        self.shared.arm(limit);
        let message = message::read(&mut self.replies);
        self.shared.disarm();
        message
    }

    pub(super) fn timed_out(&self) -> bool {
        self.shared.timed_out.load(Ordering::Relaxed)
    }

    /// Ends the process. Returns how it ended, and the end of what it printed.
    pub(super) fn end(&mut self) -> (Option<ExitStatus>, String) {
        // End of file on its stdin ends a worker that is waiting.
        self.requests = None;
        let status = self.shared.wait(PATIENCE);
        if let Some(printing) = self.printing.take() {
            // A process that the environment started may keep the pipe open: do not wait for it.
            let started = Instant::now();
            while !printing.is_finished() && started.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let printed = lock(&self.shared.printed);
        let lines: Vec<&str> = printed.iter().map(String::as_str).collect();
        (status, lines.join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.requests = None;
        self.shared.wait(PATIENCE);
    }
}

impl Shared {
    fn arm(&self, limit: Duration) {
        let deadline = (self.started.elapsed() + limit).as_millis() as u64;
        self.deadline.store(deadline.max(1), Ordering::Relaxed);
    }

    fn disarm(&self) {
        self.deadline.store(0, Ordering::Relaxed);
    }

    /// Waits for the process, and kills it if it does not end by itself.
    fn wait(&self, patience: Duration) -> Option<ExitStatus> {
        let started = Instant::now();
        loop {
            let mut child = lock(&self.child);
            if let Ok(Some(status)) = child.try_wait() {
                return Some(status);
            }
            if started.elapsed() > patience {
                // It may have ended in the meantime.
                let _ = child.kill();
                return child.wait().ok();
            }
            drop(child);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn read_output(&self, stderr: impl BufRead) {
        let show = std::env::var_os("REM_ENV_OUTPUT").is_some();
        for line in stderr.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            if show {
                // A closed stderr must not end this thread.
                let _ = writeln!(std::io::stderr(), "env: {line}");
            }
            let mut printed = lock(&self.printed);
            printed.push_back(line);
            if printed.len() > KEPT_LINES {
                printed.pop_front();
            }
        }
    }
}

/// Kills the process when its time is up. Returns when the process is dropped.
fn watch(shared: &Weak<Shared>) {
    loop {
        std::thread::sleep(TICK);
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let deadline = shared.deadline.load(Ordering::Relaxed);
        if deadline > 0 && shared.started.elapsed().as_millis() as u64 >= deadline {
            shared.timed_out.store(true, Ordering::Relaxed);
            // The reader then gets the end of the file.
            let _ = lock(&shared.child).kill();
            return;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
