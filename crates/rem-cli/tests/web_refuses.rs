//! What the server of `rem watch` and `rem play` does not do: leave the run directories, answer strangers, take what is
//! too long, wait for those who do not read, or fall over a broken run.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use support::web::Server;
use support::{BRIEF, Training, checkpoint, debug_run, finished, numbers, place, succeeds};
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
    // A picture in somebody else's page, which says nothing of its origin.
    let dream = "/api/runs/one/dream?episode=0&step=0&length=5&temperature=1&seed=0";
    for site in ["cross-site", "same-site"] {
        assert_eq!(server.get(dream, &[("Sec-Fetch-Site", site)]).0, 403);
        assert_eq!(server.get("/", &[("Sec-Fetch-Site", site)]).0, 200);
    }
    for site in ["same-origin", "none"] {
        assert_eq!(server.get(dream, &[("Sec-Fetch-Site", site)]).0, 200);
    }
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
    let (_, port) = guarded.host().rsplit_once(':').unwrap();
    let cookie = format!("rem-token-{port}=sesame123");
    assert_eq!(guarded.get("/", &[("Cookie", &cookie)]).0, 200);
    let others = "rem-token-1=sesame123";
    assert_eq!(guarded.get("/", &[("Cookie", others)]).0, 403);
    let everywhere = Server::watch(place.path(), "--host 0.0.0.0");
    assert!(
        everywhere.address.contains("?token=") && !everywhere.address.contains("0.0.0.0"),
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
    let mut line = console(&server);
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
    let cut = (0..3).find_map(|_| match line.read() {
        Ok(Message::Binary(_)) => None,
        Ok(other) => Some(format!("{other:?}")),
        Err(error) => Some(error.to_string()),
    });
    let cut = cut.expect("the line is cut");
    assert!(!cut.contains("temporarily unavailable"), "it waits: {cut}");
    assert_eq!(server.get("/api/runs", &[]).0, 200);
}

type Line = WebSocket<MaybeTlsStream<TcpStream>>;

fn tcp(line: &mut Line) -> &mut TcpStream {
    match line.get_mut() {
        MaybeTlsStream::Plain(stream) => stream,
        _ => panic!("no TLS here"),
    }
}

/// A console that does not wait for an answer for ever.
fn console(server: &Server) -> Line {
    let (mut line, _) = connect(socket(server)).unwrap();
    let patience = Some(Duration::from_secs(30));
    tcp(&mut line).set_read_timeout(patience).unwrap();
    line
}

/// A console that has dreamt for a while, so that its answers are long, and no longer reads them.
fn deaf_console(server: &Server) -> Line {
    let mut line = console(server);
    let start = r#"{"do":"start","place":{"game":{"seed":1}},"world":"dream"}"#;
    let step = r#"{"do":"step","action":1,"temperature":1}"#;
    for text in std::iter::once(start).chain([step; 40]) {
        line.send(Message::text(text)).unwrap();
        line.read().unwrap();
    }
    tcp(&mut line).set_nonblocking(true).unwrap();
    line
}

/// A console whose page asks and never reads is dropped, and its seat is free again; a training beside it goes on.
#[test]
fn who_does_not_read_is_dropped() {
    let place = place();
    let server = Server::watch(&folder(place.path()), "");
    let run = place.path().join("runs/two");
    let long = "--set train.epochs=100000 --set collect.epochs=4 --set evaluate.every=0";
    let mut training = Training::start(&mut debug_run(&run, long));
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
    // It is still training, and goes on.
    let (epoch, dropped) = (last_epoch(&run), Instant::now());
    while last_epoch(&run) <= epoch + 1 {
        assert!(training.goes_on(), "it has ended");
        assert!(dropped.elapsed() < Duration::from_secs(60), "it is stuck");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(server.get("/api/runs", &[]).0, 200);
}

/// The epoch of the last line of a run's log.
fn last_epoch(run: &Path) -> u32 {
    let log = fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default();
    let (whole, _) = log.rsplit_once('\n').unwrap_or_default();
    whole
        .lines()
        .last()
        .map_or(0, |line| numbers(line, "epoch")[0] as u32)
}

/// A page that listens to a run and never reads is dropped, and its seat is free again.
#[test]
fn who_does_not_listen_is_dropped() {
    let place = place();
    let runs = place.path().join("runs");
    for (name, lines) in [("small", 1), ("large", 400)] {
        fs::create_dir_all(runs.join(name)).unwrap();
        // More than the system keeps for a reader.
        let text = "x".repeat(1 << 16);
        let line = format!("{{\"epoch\":1,\"phase\":\"note\",\"text\":\"{text}\"}}\n");
        fs::write(runs.join(name).join("metrics.jsonl"), line.repeat(lines)).unwrap();
    }
    let server = Server::watch(&runs, "");
    let (status, _deaf) = server.listen("large");
    assert_eq!(status, 200);
    let others: Vec<_> = (0..31).map(|_| server.listen("small")).collect();
    assert!(others.iter().all(|(status, _)| *status == 200));
    assert_eq!(server.listen("small").0, 503, "one more is let in");
    let started = Instant::now();
    while server.listen("small").0 == 503 {
        assert!(started.elapsed() < Duration::from_secs(60), "it stays");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Who does not say what it wants is not waited for.
#[test]
fn who_does_not_ask_is_dropped() {
    let place = place();
    let server = Server::watch(place.path(), "");
    let mut slow = server.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        .unwrap();
    let mut rest = Vec::new();
    // Its end, not the time that a read may take.
    slow.read_to_end(&mut rest).unwrap();
    assert!(!rest.starts_with(b"HTTP/1.1 200"));
    assert_eq!(server.get("/", &[]).0, 200);
}

#[test]
fn too_many_runs_are_not_listened_to_at_once() {
    let place = place();
    let server = Server::watch(&folder(place.path()), "");
    let names: Vec<String> = (0..65).map(|i| format!("%22{i}%22")).collect();
    let way = format!("/api/events?runs=%5B{}%5D", names.join(","));
    let (status, answer) = server.get(&way, &[]);
    assert!(
        status == 400 && answer.contains("no more than 64"),
        "{answer}"
    );
    // The same one many times is one.
    let way = format!("one%22,%22{}one", "one%22,%22".repeat(100));
    assert_eq!(server.listen(&way).0, 200);
}

#[cfg(unix)]
#[test]
fn links_do_not_lead_out_of_a_run() {
    let place = place();
    let runs = folder(place.path());
    let secret = place.path().join("secret");
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
    for way in ["/api/runs", "/api/runs/one", "/api/runs/one/codebook"] {
        let (_, answer) = server.get(way, &[]);
        assert!(!answer.contains("a secret"), "{way}: {answer}");
    }
    let (status, answer) = server.get("/api/runs/one", &[]);
    assert!(
        status == 200 && answer.contains("is no file of this run"),
        "{answer}"
    );
    let (_, mut events) = server.listen("one");
    let mut told = [0; 1 << 14];
    let mut heard = String::new();
    while !heard.contains("\"is\":\"summary\"") {
        let count = events.read(&mut told).unwrap();
        assert!(count > 0, "it ended: {heard}");
        heard.push_str(&String::from_utf8_lossy(&told[..count]));
    }
    assert!(!heard.contains("a secret"), "{heard}");
}

/// An older checkpoint does where the last is damaged; without any the frames are there all the same.
#[test]
fn a_damaged_checkpoint_is_passed_over() {
    let run = finished(BRIEF);
    let damage = |dir: &Path, epoch: u32| {
        let file = checkpoint(dir, epoch).join("world_model.safetensors");
        fs::write(file, "damaged").unwrap();
    };
    let last = run.changed(|dir| damage(dir, 2));
    let server = Server::watch(last.dir(), "");
    let (status, answer) = server.get("/api/runs/run/codebook", &[]);
    assert!(status == 200 && answer.contains("\"epoch\":1,"), "{status}");
    let (status, answer) = server.get("/api/runs/run/episodes/0", &[]);
    assert!(status == 200 && answer.contains("\"epoch\":1,\"problem\":null"));
    assert!(!answer.contains("\"value\":null"));

    let all = run.changed(|dir| (1..=2).for_each(|epoch| damage(dir, epoch)));
    let server = Server::watch(all.dir(), "");
    let (status, answer) = server.get("/api/runs/run/codebook", &[]);
    assert!(status == 409 && answer.contains("epoch-000002"), "{answer}");
    let (status, answer) = server.get("/api/runs/run/episodes/0", &[]);
    assert_eq!(status, 200);
    assert!(answer.contains("\"epoch\":null,\"problem\":\"") && answer.contains("\"value\":null"));
    assert!(answer.contains("\"actions\":[\"noop\""));
}

#[test]
fn a_chunk_with_a_bad_byte_is_left_out() {
    let run = finished(BRIEF);
    let bad = run.changed(|dir| support::spoil_outcome(&dir.join("replay/epoch-000002.chunk")));
    let server = Server::watch(bad.dir(), "");
    let (status, answer) = server.get("/api/runs/run/episodes", &[]);
    assert!(
        status == 200 && answer.contains("impossible outcome"),
        "{answer}"
    );
    assert!(answer.contains("\"epoch\":1,") && !answer.contains("\"epoch\":2,"));
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
    let (status, answer) = server.get("/api/runs/run/episodes/0", &[]);
    assert!(status == 200 && answer.contains("\"problem\":\""));
}
