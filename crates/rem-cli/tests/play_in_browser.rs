//! `rem play` in a real browser: the dream is stepped by keyboard, branched, recorded and saved; all four ways to play.

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rem_browser::Browser;
use support::web::Server;
use support::{BRIEF, finished, rem, stdout, succeeds};

/// What the screen shows, as text.
const PICTURE: &str = "document.querySelector('.layers.big .frame').toDataURL()";
const STATUS: &str = "document.querySelector('.status').textContent";
const BRANCHES: &str = "document.querySelectorAll('.branches button').length";

fn choose(browser: &mut Browser, name: &str, value: &str) {
    browser.evaluate(&format!(
        "document.querySelector('input[name={name}][value={value}]').click()"
    ));
}

/// The file that was saved, once it is whole.
fn saved(folder: &Path, ending: &str) -> PathBuf {
    let started = Instant::now();
    loop {
        let files = std::fs::read_dir(folder)
            .unwrap()
            .flatten()
            .map(|entry| entry.path());
        let mut whole = files.filter(|path| path.extension().is_some_and(|e| e == ending));
        if let Some(file) = whole.next() {
            return file;
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "no .{ending} was saved"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_dream_is_stepped_branched_and_recorded() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let run = finished(BRIEF);
    let server = Server::play(run.dir());
    let downloads = tempfile::tempdir().unwrap();
    let mut browser = Browser::start(&program);
    browser.open(&server.address, (1280, 900), "light");
    browser.download_into(downloads.path());
    browser.wait_for(&format!("{STATUS}.includes('Dream · step 1 ')"));

    // One key, one step: the frame changes.
    let before = browser.evaluate(PICTURE);
    browser.press("ArrowLeft");
    browser.wait_for(&format!("{STATUS}.includes('step 2 · left')"));
    assert_ne!(browser.evaluate(PICTURE), before);
    for step in 3..=7 {
        browser.press("n");
        browser.wait_for(&format!("{STATUS}.includes('step {step} ')"));
    }
    browser.wait_for("document.querySelector('.horizon').textContent.includes('past the 5')");
    let seventh = browser.evaluate(PICTURE);

    // Back, and another action: a branch of its own; the first one is still there.
    browser.press("b");
    browser.wait_for(&format!("{STATUS}.includes('step 6 ')"));
    let branches = browser.evaluate(BRANCHES).as_u64().unwrap();
    browser.press("ArrowRight");
    browser.wait_for(&format!(
        "{STATUS}.includes('step 7 · right') && {BRANCHES} === {}",
        branches + 1
    ));
    browser.evaluate("document.querySelectorAll('.branches button')[0].click()");
    browser.wait_for(&format!("{STATUS}.includes('step 7 · noop')"));
    assert_eq!(browser.evaluate(PICTURE), seventh);

    // What a token might have been.
    browser.press("i");
    browser.wait_for("document.querySelectorAll('.alternatives li').length === 6");
    browser.press("ArrowRight");
    browser.wait_for(
        "document.querySelector('.alternatives').parentElement.innerText.includes('Token 1:')",
    );
    browser.press("Escape");

    // A fresh memory.
    browser.press("f");
    browser.wait_for(
        "document.querySelector('.horizon').textContent.includes('it remembers 2 of the 5')",
    );

    browser.keep_screenshot("play-dream.png");
    browser.press("g");
    let gif = std::fs::read(saved(downloads.path(), "gif")).unwrap();
    assert!(gif.starts_with(b"GIF89a"));
    browser.press("e");
    let episode = saved(downloads.path(), "npz");
    let shown = stdout(&succeeds(rem().arg("episodes").arg(&episode)));
    assert!(shown.starts_with("catch: 7 steps"), "{shown}");
    assert!(
        shown.contains("8 frames of 32x32, 6 of them dreamt"),
        "{shown}"
    );
    assert_eq!(browser.errors().len(), 0, "{:#?}", browser.errors());
}

#[test]
fn four_ways_to_play() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let run = finished(BRIEF);
    let server = Server::play(run.dir());
    let mut browser = Browser::start(&program);
    browser.open(&server.address, (400, 800), "dark");
    browser.wait_for(&format!("{STATUS}.includes('Dream')"));
    for (pilot, world, name) in [
        ("you", "real", "Real game"),
        ("agent", "real", "Real game"),
        ("you", "dream", "Dream"),
        ("agent", "dream", "Dream"),
    ] {
        choose(&mut browser, "pilot", pilot);
        choose(&mut browser, "world", world);
        browser.wait_for(&format!("{STATUS}.includes('{name} · step')"));
        browser.evaluate("document.querySelector('form button').click()");
        browser.wait_for(&format!("{STATUS}.includes('{name} · step')"));
        browser.evaluate("document.activeElement.blur()");
        browser.press("p");
        // An untrained dream may well say at once that it is over.
        browser.wait_for(&format!(
            "{STATUS}.match(/step (\\d+)/)[1] >= 4 || {STATUS}.includes('over')"
        ));
        // A running game is stopped by the same key; one that is over stops by itself.
        browser.evaluate("document.querySelector('.transport button:nth-child(2)').textContent.includes('Pause') \
            && document.querySelector('.transport button:nth-child(2)').click()");
        browser.wait_for(
            "document.querySelector('.transport button:nth-child(2)').textContent.includes('Run')",
        );
        browser.keep_screenshot(&format!("play-{pilot}-{world}-400-dark.png"));
    }
    // From a step of a real episode.
    browser.evaluate("document.querySelector('form select').selectedIndex = 1");
    browser.evaluate("document.querySelector('form select').dispatchEvent(new Event('change'))");
    browser.evaluate("document.querySelector('form button').click()");
    browser.wait_for(&format!("{STATUS}.includes('Dream · step 0')"));
    let wide = browser.evaluate("document.documentElement.scrollWidth");
    assert!(wide.as_u64() <= Some(400), "{wide}");
    assert_eq!(browser.errors().len(), 0, "{:#?}", browser.errors());
}
