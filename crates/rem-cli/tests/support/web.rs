//! Starts `rem watch` and `rem play`, and sends plain HTTP requests to them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::rem;

/// A server process. Killed on drop, which fails the test if one of its threads panicked.
pub struct Server {
    process: Child,
    errors: File,
    /// The printed URL: `http://127.0.0.1:PORT/…`.
    pub address: String,
}

impl Server {
    /// `rem watch` on a directory, with further arguments.
    pub fn watch(path: &Path, args: &str) -> Self {
        Self::start("watch", path, args)
    }

    /// Starts `rem play` on a run.
    pub fn play(path: &Path) -> Self {
        Self::start("play", path, "")
    }

    fn start(command: &str, path: &Path, args: &str) -> Self {
        let mut rem = rem();
        rem.args([command, "--port", "0"]).arg(path);
        Self::spawn(rem.args(args.split_whitespace()))
    }

    /// Starts a command that serves, and reads the address that it prints.
    pub fn spawn(command: &mut Command) -> Self {
        let errors = tempfile::tempfile().unwrap();
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(errors.try_clone().unwrap())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut address)
            .unwrap();
        assert!(address.starts_with("http://"), "printed {address:?}");
        Self {
            process,
            errors,
            address: address.trim().into(),
        }
    }

    /// `127.0.0.1:PORT`
    pub fn host(&self) -> &str {
        let rest = self.address.strip_prefix("http://").unwrap();
        rest.split('/').next().unwrap()
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.host()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream
    }

    /// Opens an event stream and reads only its status.
    pub fn listen(&self, run: &str) -> (u16, TcpStream) {
        let mut stream = self.connect();
        let request = format!(
            "GET /api/events?runs=%5B%22{run}%22%5D HTTP/1.1\r\nHost: {}\r\n\r\n",
            self.host()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut status = [0; 12]; // HTTP/1.1 200
        stream.read_exact(&mut status).unwrap();
        let status = std::str::from_utf8(&status[9..]).unwrap();
        (status.parse().unwrap(), stream)
    }

    /// The status and full text of a response. The path is sent unchanged.
    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let mut stream = self.connect();
        let has_host = headers.iter().any(|(name, _)| *name == "Host");
        let host = if has_host {
            String::new()
        } else {
            format!("Host: {}\r\n", self.host())
        };
        let more: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let request = format!("GET {path} HTTP/1.1\r\n{host}{more}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).unwrap();
        let response = String::from_utf8_lossy(&response).into_owned();
        let status = response
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        (
            status.unwrap_or_else(|| panic!("{path}: {response}")),
            response,
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let mut stderr = String::new();
        let read = self
            .errors
            .rewind()
            .and_then(|()| self.errors.read_to_string(&mut stderr));
        if !std::thread::panicking() {
            read.unwrap();
            assert!(!stderr.contains("panicked"), "{stderr}");
        }
    }
}
