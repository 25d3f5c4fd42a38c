//! What the server of `rem watch` and `rem play` does not do: leave the run directories, answer strangers, take what is
//! too long, wait for those who do not read, or fall over a broken run.

mod support;

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use support::web::Server;
use support::{BRIEF, debug_run, finished, place, start, succeeds};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket, client, connect};

/// A folder with a run in it, and a secret beside the folder.
fn folder(place: &Path) -> std::path::PathBuf {
    let runs = place.join("runs");
    succeeds(&mut debug_run(&runs.join("one"), BRIEF));
    fs::write(place.join("secret.png"), "a secret").unwrap();
    fs::write(runs.join("secret.png"), "a secret").unwrap();
    runs
}

#[test]
fn no_address_leads_out_of_the_runs() {
    let place = place();
    let server = Server::watch(&folder(place.path()), "");
    let picture = "/api/runs/one/media/epoch-000002-dream.png";
    assert_eq!(server.get(picture, &[]).0, 200);
    for way in [
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
        "/assets/..%2f..%2fsecret.png",
        "/assets/../secret.png",
        "/../../secret.png",
        "/runs/one/config.toml",
    ] {
        let (status, answer) = server.get(way, &[]);
        assert!((400..500).contains(&status), "{way}: {answer}");
        assert!(
            !answer.contains("a secret") && !answer.contains("[train]"),
            "{way}: {answer}"
        );
    }
}

#[test]
fn unknown_runs_and_questions_are_answered_in_words() {
    let place = place();
    let server = Server::watch(&folder(place.path()), "");
    for (way, words) in [
        ("/api/runs/absent", "there is no run `absent`"),
        ("/api/events?runs=%5B%22absent%22%5D", "there is no run"),
        ("/api/events?runs=one", "no list of names"),
        ("/api/runs/one/episodes/999", "there is no episode 999"),
        (
            "/api/runs/one/dream?episode=0&step=999&length=5&temperature=1&seed=0",
            "there is no step 999",
        ),
        ("/api/runs/one/dream", "missing field"),
        ("/elsewhere", "there is no such page"),
    ] {
        let (status, answer) = server.get(way, &[]);
        assert!(
            (400..500).contains(&status) && answer.contains(words),
            "{way}: {answer}"
        );
    }
}

#[test]
fn strangers_are_not_let_in() {
    let place = place();
    let server = Server::watch(&folder(place.path()), "");
    let (status, answer) = server.get("/", &[]);
    assert_eq!(status, 200);
    assert!(
        answer
            .to_lowercase()
            .contains("content-security-policy: default-src 'none'")
    );
    // A name of somebody else's that points at this machine.
    assert_eq!(server.get("/api/runs", &[("Host", "evil.example")]).0, 403);
    assert_eq!(
        server
            .get("/api/runs", &[("Origin", "http://evil.example")])
            .0,
        403
    );
    let mut request = client::IntoClientRequest::into_client_request(socket(&server)).unwrap();
    request
        .headers_mut()
        .insert("Origin", "http://evil.example".parse().unwrap());
    assert!(connect(request).is_err());

    let guarded = Server::watch(place.path(), "--token sesame123");
    assert!(guarded.address.ends_with("/?token=sesame123"));
    assert_eq!(guarded.get("/", &[]).0, 403);
    assert_eq!(guarded.get("/?token=guess1234", &[]).0, 403);
    let (status, answer) = guarded.get("/?token=sesame123", &[]);
    assert_eq!(status, 303);
    assert!(answer.contains("HttpOnly; SameSite=Strict"), "{answer}");
    assert_eq!(
        guarded.get("/", &[("Cookie", "rem-token=sesame123")]).0,
        200
    );
    let everywhere = Server::watch(place.path(), "--host 0.0.0.0");
    assert!(
        everywhere.address.contains("?token="),
        "{}",
        everywhere.address
    );
}

fn socket(server: &Server) -> String {
    format!("ws://{}/api/runs/one/play", server.host())
}

/// What an answer says, without its frame.
fn said(message: Message) -> String {
    let bytes = message.into_data();
    let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    String::from_utf8(bytes[4..4 + length].to_vec()).unwrap()
}

#[test]
fn a_console_takes_commands_and_nothing_else() {
    let place = place();
    let server = Server::watch(&folder(place.path()), "");
    let (mut line, _) = connect(socket(&server)).unwrap();
    let mut ask = |text: &str| {
        line.send(Message::text(text)).unwrap();
        said(line.read().unwrap())
    };
    let start = r#"{"do":"start","place":{"game":{"seed":1}},"world":"dream"}"#;
    for (text, words) in [
        ("{", "not a command"),
        (r#"{"do":"format the disk"}"#, "not a command"),
        (r#"{"do":"step","action":0,"temperature":1}"#, "start first"),
        (
            r#"{"do":"start","place":{"episode":{"number":99,"step":0}},"world":"dream"}"#,
            "there is no step 0 in episode 99",
        ),
        (
            r#"{"do":"start","place":{"episode":{"number":0,"step":0}},"world":"real"}"#,
            "only a dream",
        ),
        (start, "\"is\":\"moment\""),
        (
            r#"{"do":"step","action":77,"temperature":1}"#,
            "there is no action 77",
        ),
        (r#"{"do":"token","place":0}"#, "seen, not dreamt"),
        (
            r#"{"do":"step","action":1,"temperature":-5}"#,
            "\"world\":\"dream\"",
        ),
        (r#"{"do":"token","place":9999}"#, "there is no place"),
        (r#"{"do":"go","moment":12345}"#, "there is no such moment"),
    ] {
        let answer = ask(text);
        assert!(answer.contains(words), "{text}: {answer}");
    }
    // Too long for any command: the line is cut, the server goes on.
    let _ = line.send(Message::text("x".repeat(1 << 20)));
    let cut = (0..3).any(|_| !matches!(line.read(), Ok(Message::Binary(_))));
    assert!(cut);
    assert_eq!(server.get("/api/runs", &[]).0, 200);
}

/// A console that has dreamt for a while, so that its answers are long, and no longer reads them.
fn deaf_console(server: &Server) -> WebSocket<MaybeTlsStream<TcpStream>> {
    let (mut line, _) = connect(socket(server)).unwrap();
    let start = r#"{"do":"start","place":{"game":{"seed":1}},"world":"dream"}"#;
    let step = r#"{"do":"step","action":1,"temperature":1}"#;
    for text in std::iter::once(start).chain([step; 40]) {
        line.send(Message::text(text)).unwrap();
        line.read().unwrap();
    }
    let MaybeTlsStream::Plain(stream) = line.get_mut() else {
        panic!("no TLS here");
    };
    stream.set_nonblocking(true).unwrap();
    line
}

/// A console whose page asks and never reads is dropped, and its seat is free again; a training beside it goes on.
#[test]
fn who_does_not_read_is_dropped() {
    let place = place();
    let server = Server::watch(&folder(place.path()), "");
    let mut training = start(&mut debug_run(
        &place.path().join("runs/two"),
        "--set train.epochs=6",
    ));
    let mut deaf = deaf_console(&server);
    let _others: Vec<_> = (0..3).map(|_| connect(socket(&server)).unwrap()).collect();
    assert!(
        connect(socket(&server)).is_err(),
        "a fifth console was opened"
    );
    let started = Instant::now();
    loop {
        let save = r#"{"do":"save","kind":"npz","from":null,"frame_ms":100}"#;
        // It fails when the server no longer listens, which is what is waited for.
        let _ = deaf.send(Message::text(save));
        if connect(socket(&server)).is_ok() {
            break;
        }
        assert!(
            started.elapsed() < Duration::from_secs(100),
            "it is still there"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(training.wait().unwrap().success());
    assert_eq!(server.get("/api/runs", &[]).0, 200);
}

#[test]
fn a_broken_run_shows_what_it_has() {
    let whole = finished(BRIEF);
    let broken = whole.changed(|dir| {
        fs::write(dir.join("config.toml"), "seed = ").unwrap();
        let mut log = fs::OpenOptions::new()
            .append(true)
            .open(dir.join("metrics.jsonl"))
            .unwrap();
        log.write_all(b"{\"epoch\":3,\"pha").unwrap();
        fs::remove_dir_all(dir.join("checkpoints")).unwrap();
    });
    let server = Server::watch(broken.dir(), "");
    let (status, answer) = server.get("/api/runs/run", &[]);
    assert_eq!(status, 200);
    assert!(
        answer.contains("config is not valid TOML") && answer.contains("\"random_player\""),
        "{answer}"
    );
    let (status, answer) = server.get("/api/runs/run/codebook", &[]);
    assert!(
        status == 409 && answer.contains("no checkpoint yet"),
        "{answer}"
    );
    assert_eq!(server.get("/api/runs/run/episodes", &[]).0, 200);
}
