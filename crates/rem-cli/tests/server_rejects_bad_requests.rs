//! The server of `rem watch` and `rem play` serves only files of runs, rejects foreign and invalid requests, and
//! disconnects slow clients.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use support::web::Server;
use support::{BRIEF, Training, debug_run, numbers, succeeds, temp_dir};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket, client, connect};

/// A directory with a run, and secrets outside the run.
fn runs_dir(temp: &Path) -> std::path::PathBuf {
    let runs = temp.join("runs");
    succeeds(&mut debug_run(&runs.join("one"), BRIEF));
    fs::write(temp.join("secret.png"), "a secret").unwrap();
    fs::write(runs.join("secret.png"), "a secret").unwrap();
    runs
}

#[test]
fn requests_cannot_read_files_outside_of_runs() {
    let temp = temp_dir();
    let server = Server::watch(&runs_dir(temp.path()), "");
    let picture = "/api/runs/one/media/epoch-000002-dream.png";
    assert_eq!(server.get(picture, &[]).0, 200);
    for path in [
        "/api/runs/one/media/../config.toml",
        "/api/runs/one/media/../../secret.png",
        "/api/runs/one/media/..%2f..%2fsecret.png",
        "/api/runs/one/media/..%2F..%2F..%2Fsecret.png",
        "/api/runs/one/media/%2e%2e/%2e%2e/secret.png",
        "/api/runs/one/media/%2e%2e%2fconfig.toml",
        "/api/runs/one/media/%252e%252e%252fsecret.png",
        "/api/runs/one/media/..%5c..%5csecret.png",
        "/api/runs/one/media/..%c0%af..%c0%afsecret.png",
        "/api/runs/one/media/%00secret.png",
        "/api/runs/one/media//etc/passwd",
        "/api/runs/..%2fone/media/epoch-000002-dream.png",
        "/api/runs/%2e%2e",
        "/api/runs/%2Ftmp",
        "/api/studies/%2e%2e",
        "/api/studies/..%2fone",
        "/assets/..%2f..%2fsecret.png",
        "/assets/../secret.png",
        "/../../secret.png",
        "/runs/one/config.toml",
    ] {
        let (status, response) = server.get(path, &[]);
        assert!((400..500).contains(&status), "{path}: {response}");
        assert!(
            !response.contains("a secret") && !response.contains("[train]"),
            "{path}: {response}"
        );
    }
}

#[test]
fn bad_requests_get_an_error_message() {
    let temp = temp_dir();
    let server = Server::watch(&runs_dir(temp.path()), "");
    for (path, message) in [
        ("/api/runs/absent", "run `absent` not found"),
        ("/api/studies/absent", "study `absent` not found"),
        (
            "/api/events?runs=%5B%22absent%22%5D",
            "run `absent` not found",
        ),
        ("/api/events?runs=one", "not a JSON array of names"),
        ("/api/runs/one/episodes/999", "replay episode 999 not found"),
        (
            "/api/runs/one/dream?episode=0&step=999&length=5&temperature=1&seed=0",
            "step 999 of replay episode 0 not found",
        ),
        ("/api/runs/one/dream", "missing field"),
        ("/elsewhere", "page not found"),
    ] {
        let (status, response) = server.get(path, &[]);
        assert!(
            (400..500).contains(&status) && response.contains(message),
            "{path}: {response}"
        );
    }
}

#[test]
fn foreign_requests_and_wrong_tokens_are_rejected() {
    let temp = temp_dir();
    let server = Server::watch(&runs_dir(temp.path()), "");
    let (status, response) = server.get("/", &[]);
    assert_eq!(status, 200);
    assert!(
        response
            .to_lowercase()
            .contains("content-security-policy: default-src 'none'")
    );
    // A foreign name that resolves to this machine.
    assert_eq!(server.get("/api/runs", &[("Host", "evil.example")]).0, 403);
    assert_eq!(
        server
            .get("/api/runs", &[("Origin", "http://evil.example")])
            .0,
        403
    );
    // An image in a foreign page, which has no Origin header.
    let dream = "/api/runs/one/dream?episode=0&step=0&length=5&temperature=1&seed=0";
    for site in ["cross-site", "same-site"] {
        assert_eq!(server.get(dream, &[("Sec-Fetch-Site", site)]).0, 403);
        assert_eq!(server.get("/", &[("Sec-Fetch-Site", site)]).0, 200);
    }
    for site in ["same-origin", "none"] {
        assert_eq!(server.get(dream, &[("Sec-Fetch-Site", site)]).0, 200);
    }
    let mut request = client::IntoClientRequest::into_client_request(session_url(&server)).unwrap();
    request
        .headers_mut()
        .insert("Origin", "http://evil.example".parse().unwrap());
    assert!(connect(request).is_err());

    let guarded = Server::watch(temp.path(), "--token sesame123");
    assert!(guarded.address.ends_with("/?token=sesame123"));
    assert_eq!(guarded.get("/", &[]).0, 403);
    assert_eq!(guarded.get("/?token=guess1234", &[]).0, 403);
    let (status, response) = guarded.get("/?token=sesame123", &[]);
    assert_eq!(status, 303);
    assert!(response.contains("HttpOnly; SameSite=Strict"), "{response}");
    let (_, port) = guarded.host().rsplit_once(':').unwrap();
    let cookie = format!("rem-token-{port}=sesame123");
    assert_eq!(guarded.get("/", &[("Cookie", &cookie)]).0, 200);
    let others = "rem-token-1=sesame123";
    assert_eq!(guarded.get("/", &[("Cookie", others)]).0, 403);
    let everywhere = Server::watch(temp.path(), "--host 0.0.0.0");
    assert!(
        everywhere.address.contains("?token=") && !everywhere.address.contains("0.0.0.0"),
        "{}",
        everywhere.address
    );
}

fn session_url(server: &Server) -> String {
    format!("ws://{}/api/runs/one/play", server.host())
}

/// The header of a message.
fn header(message: Message) -> String {
    let bytes = message.into_data();
    let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    String::from_utf8(bytes[4..4 + length].to_vec()).unwrap()
}

#[test]
fn sessions_reject_invalid_commands_and_long_messages() {
    let temp = temp_dir();
    let server = Server::watch(&runs_dir(temp.path()), "");
    let mut socket = open_session(&server);
    let mut send = |text: &str| {
        socket.send(Message::text(text)).unwrap();
        header(socket.read().unwrap())
    };
    let start = r#"{"type":"start","from":{"reset":{"seed":1}},"world":"dream"}"#;
    for (command, message) in [
        ("{", "invalid command"),
        (r#"{"type":"format the disk"}"#, "invalid command"),
        (
            r#"{"type":"step","action":0,"temperature":1}"#,
            "has not started",
        ),
        (
            r#"{"type":"start","from":{"episode":{"number":99,"step":0}},"world":"dream"}"#,
            "step 0 of replay episode 99 not found",
        ),
        (
            r#"{"type":"start","from":{"episode":{"number":0,"step":0}},"world":"real"}"#,
            "only a dream",
        ),
        (start, "\"type\":\"state\""),
        (
            r#"{"type":"step","action":77,"temperature":1}"#,
            "action 77 is out of range",
        ),
        (
            r#"{"type":"token","position":0}"#,
            "a real frame has no token",
        ),
        (
            r#"{"type":"step","action":1,"temperature":-5}"#,
            "\"world\":\"dream\"",
        ),
        (
            r#"{"type":"token","position":9999}"#,
            "token 9999 is out of range",
        ),
        (r#"{"type":"goto","node":12345}"#, "node 12345 not found"),
    ] {
        let response = send(command);
        assert!(response.contains(message), "{command}: {response}");
    }
    // A message over the size limit closes the connection, not the server.
    let _ = socket.send(Message::text("x".repeat(1 << 20)));
    let closed = (0..3).find_map(|_| match socket.read() {
        Ok(Message::Binary(_)) => None,
        Ok(other) => Some(format!("{other:?}")),
        Err(error) => Some(error.to_string()),
    });
    let closed = closed.expect("the connection is closed");
    assert!(
        !closed.contains("temporarily unavailable"),
        "the connection is still open: {closed}"
    );
    assert_eq!(server.get("/api/runs", &[]).0, 200);
}

type Socket = WebSocket<MaybeTlsStream<TcpStream>>;

fn tcp(socket: &mut Socket) -> &mut TcpStream {
    match socket.get_mut() {
        MaybeTlsStream::Plain(stream) => stream,
        _ => panic!("no TLS here"),
    }
}

/// A session with a read timeout.
fn open_session(server: &Server) -> Socket {
    let (mut socket, _) = connect(session_url(server)).unwrap();
    let timeout = Some(Duration::from_secs(30));
    tcp(&mut socket).set_read_timeout(timeout).unwrap();
    socket
}

/// A session with 40 steps, so that saved files are large, whose client stops reading.
fn stalled_session(server: &Server) -> Socket {
    let mut socket = open_session(server);
    let start = r#"{"type":"start","from":{"reset":{"seed":1}},"world":"dream"}"#;
    let step = r#"{"type":"step","action":1,"temperature":1}"#;
    for text in std::iter::once(start).chain([step; 40]) {
        socket.send(Message::text(text)).unwrap();
        socket.read().unwrap();
    }
    tcp(&mut socket).set_nonblocking(true).unwrap();
    socket
}

/// A client that sends commands and never reads loses its session slot. Concurrent training is not affected.
#[test]
fn session_clients_that_do_not_read_are_disconnected() {
    let temp = temp_dir();
    let server = Server::watch(&runs_dir(temp.path()), "");
    let run = temp.path().join("runs/two");
    let long = "--set train.epochs=100000 --set collect.epochs=4 --set evaluate.every=0";
    let mut training = Training::start(&mut debug_run(&run, long));
    let mut stalled = stalled_session(&server);
    let _others: Vec<_> = (0..3)
        .map(|_| connect(session_url(&server)).unwrap())
        .collect();
    assert!(
        connect(session_url(&server)).is_err(),
        "a fifth session was opened"
    );
    let started = Instant::now();
    loop {
        let save = r#"{"type":"save","format":"npz","from":null,"frame_ms":100}"#;
        // Fails once the server has closed the connection.
        let _ = stalled.send(Message::text(save));
        if connect(session_url(&server)).is_ok() {
            break;
        }
        assert!(
            started.elapsed() < Duration::from_secs(100),
            "the session is still open"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    // The training continues.
    let (epoch, disconnected) = (last_epoch(&run), Instant::now());
    while last_epoch(&run) <= epoch + 1 {
        assert!(training.is_running(), "the training ended");
        assert!(
            disconnected.elapsed() < Duration::from_secs(60),
            "training made no progress"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(server.get("/api/runs", &[]).0, 200);
}

/// The epoch of the last complete line in `metrics.jsonl`.
fn last_epoch(run: &Path) -> u32 {
    let log = fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default();
    let (complete, _) = log.rsplit_once('\n').unwrap_or_default();
    complete
        .lines()
        .last()
        .map_or(0, |line| numbers(line, "epoch")[0] as u32)
}

/// A client of the event stream that never reads loses its slot.
#[test]
fn stream_clients_that_do_not_read_are_disconnected() {
    let temp = temp_dir();
    let runs = temp.path().join("runs");
    for (name, lines) in [("small", 1), ("large", 400)] {
        fs::create_dir_all(runs.join(name)).unwrap();
        // More than the socket buffers hold.
        let text = "x".repeat(1 << 16);
        let line = format!("{{\"epoch\":1,\"phase\":\"note\",\"text\":\"{text}\"}}\n");
        fs::write(runs.join(name).join("metrics.jsonl"), line.repeat(lines)).unwrap();
    }
    let server = Server::watch(&runs, "");
    let (status, _stalled) = server.listen("large");
    assert_eq!(status, 200);
    let others: Vec<_> = (0..31).map(|_| server.listen("small")).collect();
    assert!(others.iter().all(|(status, _)| *status == 200));
    assert_eq!(server.listen("small").0, 503, "a 33rd stream was opened");
    let started = Instant::now();
    while server.listen("small").0 == 503 {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "the stalled stream is still open"
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn clients_that_do_not_finish_their_request_are_disconnected() {
    let temp = temp_dir();
    let server = Server::watch(temp.path(), "");
    let mut slow = server.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        .unwrap();
    let mut rest = Vec::new();
    // Ends because the server closes the connection, not by the read timeout.
    slow.read_to_end(&mut rest).unwrap();
    assert!(!rest.starts_with(b"HTTP/1.1 200"));
    assert_eq!(server.get("/", &[]).0, 200);
}

#[test]
fn event_streams_have_at_most_64_runs() {
    let temp = temp_dir();
    let server = Server::watch(&runs_dir(temp.path()), "");
    let names: Vec<String> = (0..65).map(|i| format!("%22{i}%22")).collect();
    let path = format!("/api/events?runs=%5B{}%5D", names.join(","));
    let (status, response) = server.get(&path, &[]);
    assert!(
        status == 400 && response.contains("more than 64 runs"),
        "{response}"
    );
    // Duplicates count once.
    let names = format!("one%22,%22{}one", "one%22,%22".repeat(100));
    assert_eq!(server.listen(&names).0, 200);
}

#[cfg(unix)]
#[test]
fn symbolic_links_are_not_followed() {
    let temp = temp_dir();
    let runs = runs_dir(temp.path());
    let secret = temp.path().join("secret");
    fs::write(
        &secret,
        "{\"epoch\":1,\"phase\":\"a secret\",\"game\":\"a secret\"}\n",
    )
    .unwrap();
    for name in [
        "config.toml",
        "protocol.json",
        "scores.json",
        "metrics.jsonl",
        "timing.jsonl",
    ] {
        fs::remove_file(runs.join("one").join(name)).unwrap();
        std::os::unix::fs::symlink(&secret, runs.join("one").join(name)).unwrap();
    }
    let server = Server::watch(&runs, "");
    for path in ["/api/runs", "/api/runs/one", "/api/runs/one/codebook"] {
        let (_, response) = server.get(path, &[]);
        assert!(!response.contains("a secret"), "{path}: {response}");
    }
    let (status, response) = server.get("/api/runs/one", &[]);
    assert!(
        status == 200 && response.contains("is not a file of this run"),
        "{response}"
    );
    let (_, mut events) = server.listen("one");
    let mut buffer = [0; 1 << 14];
    let mut received = String::new();
    while !received.contains("\"type\":\"summary\"") {
        let count = events.read(&mut buffer).unwrap();
        assert!(count > 0, "the stream ended: {received}");
        received.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    assert!(!received.contains("a secret"), "{received}");
}
