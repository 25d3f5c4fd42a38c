//! `rem demo` plays the agent that is part of the program: by keyboard in Chromium, from one episode to the next, without
//! writing anything but a temporary directory.

mod support;

use std::fs;
use std::path::Path;

use rem_browser::Browser;
use support::study::kill;
use support::web::Server;
use support::{fails, numbers, rem, stdout, succeeds, temp_dir};

const STATUS: &str = "document.querySelector('.status').textContent";
const STEP: &str = "Number(document.querySelector('.status').textContent.match(/step (\\d+)/)[1])";
const FRAME: &str = "document.querySelector('.layers.big .frame').toDataURL()";

/// Starts `rem demo` in an empty directory, with another one for temporary files.
fn demo(dir: &Path, temporary: &Path) -> Server {
    fs::create_dir_all(dir).unwrap();
    fs::create_dir_all(temporary).unwrap();
    Server::run(rem().arg("demo").current_dir(dir).env("TMPDIR", temporary))
}

fn entries(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

#[test]
fn the_demo_agent_wins_its_game() {
    let temp = temp_dir();
    let dir = temp.path().join("agent");
    let text = stdout(&succeeds(rem().args(["demo", "--save"]).arg(&dir)));
    assert!(
        text.contains("an agent for `catch`, trained by `rem train"),
        "{text}"
    );
    let json = stdout(&succeeds(rem().arg("eval").arg(&dir).arg("--json")));
    assert_eq!(numbers(&json, "mean"), [1.0]);
    let (error, hint) = fails(rem().args(["demo", "--save"]).arg(&dir));
    assert!(
        error.contains("exists already") && hint.contains("--save"),
        "{error}; {hint}"
    );
}

#[cfg(unix)]
#[test]
fn the_demo_stops_cleanly() {
    let temp = temp_dir();
    for signal in ["INT", "TERM"] {
        let [dir, temporary] = ["empty", "tmp"].map(|name| temp.path().join(signal).join(name));
        let mut server = demo(&dir, &temporary);
        let (status, runs) = server.get("/api/runs", &[]);
        assert!(status == 200 && runs.contains("\"demo\""), "{runs}");
        assert_eq!(entries(&temporary), 1);
        kill(signal, server.id());
        assert_eq!(server.exit_status().code(), Some(0), "{signal}");
        assert_eq!((entries(&dir), entries(&temporary)), (0, 0), "{signal}");
    }
}

/// The step that a dream starts from: its world model needs two frames.
const FIRST: usize = 1;

#[test]
fn the_demo_is_played_by_keyboard_from_one_episode_to_the_next() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let temp = temp_dir();
    let server = demo(&temp.path().join("empty"), &temp.path().join("tmp"));
    let mut browser = Browser::start(&program);
    for (size, scheme) in [
        ((1280, 900), "light"),
        ((400, 800), "dark"),
        ((1280, 900), "dark"),
        ((400, 800), "light"),
    ] {
        browser.open(&server.address, size, scheme);
        browser.wait_for(&format!("{STATUS}.includes('Dream · step {FIRST} ')"));
        // Right, then left: the paddle moves, and the dream goes on until the episode ends.
        let mut frame = browser.evaluate(FRAME);
        let mut step = FIRST;
        let over = format!("{STATUS}.includes('predicted end')");
        while browser.evaluate(&over) != true {
            step += 1;
            assert!(step < 20, "the dream does not end");
            let (key, action) = [("ArrowRight", "right"), ("ArrowLeft", "left")][step / 5 % 2];
            browser.press(key);
            browser.wait_for(&format!("{STATUS}.includes('step {step} · {action}')"));
            let next = browser.evaluate(FRAME);
            assert_ne!(next, frame, "step {step}");
            frame = next;
        }
        // `catch` ends after seven steps, with its only reward.
        assert_eq!(step, 7, "{scheme}");
        let text = browser.evaluate("document.querySelector('.tally').textContent");
        let text = text.as_str().unwrap();
        assert!(text.starts_with("1 episode, mean return "), "{text}");
        assert!(text.ends_with("+1") || text.ends_with("−1"), "{text}");
        let name = format!("demo-end-{}-{scheme}.png", size.0);
        browser.save_screenshot(&name);
        // The next key starts another episode, and the one after it moves.
        browser.press("ArrowLeft");
        browser.wait_for(&format!("{STATUS}.includes('Dream · step {FIRST} ')"));
        assert_ne!(browser.evaluate(FRAME), frame);
        browser.press("ArrowLeft");
        browser.wait_for(&format!("{STATUS}.includes('step {} · left')", FIRST + 1));
        // Running, episodes follow each other.
        browser.press("p");
        browser.wait_for(&format!("{STATUS}.includes('predicted end')"));
        browser.wait_for(&format!("{STEP} >= 1 && {STEP} < 7"));
        browser.press("p");
        let wide = browser.evaluate("document.documentElement.scrollWidth");
        assert!(wide.as_u64() <= Some(size.0.into()), "{wide}");
    }
    browser.assert_clean(server.host());
}
