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

/// The step that is shown.
const STEP: &str = "Number(document.querySelector('.status').textContent.match(/step (\\d+)/)[1])";
const RUN: &str = "document.querySelector('.transport button:nth-child(2)').textContent";
const RECORD: &str = "document.querySelector('[aria-keyshortcuts=R]').textContent";

fn choose(browser: &mut Browser, name: &str, value: &str) {
    browser.click(&format!("input[name={name}][value={value}]"));
}

/// The value of a choice.
fn chosen(browser: &mut Browser, name: &str) -> String {
    let value = browser.evaluate(&format!(
        "document.querySelector('input[name={name}]:checked').value"
    ));
    value.as_str().unwrap().into()
}

/// The actions of all steps that the page asked for; none where the agent was to choose.
fn actions_asked(browser: &Browser) -> Vec<Option<u64>> {
    let messages = browser.messages();
    let commands = messages
        .iter()
        .map(|text| serde_json::from_str::<serde_json::Value>(text).unwrap());
    let steps = commands.filter(|command| command["do"] == "step");
    steps.map(|step| step["action"].as_u64()).collect()
}

/// The file that was saved, once it is whole.
fn saved(folder: &Path, name: &str) -> PathBuf {
    let started = Instant::now();
    let file = folder.join(name);
    // The browser first takes the name with an empty file, and moves the whole one there when it has it.
    while !std::fs::metadata(&file).is_ok_and(|file| file.len() > 0) {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "no {name} was saved"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    file
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
    let gif = std::fs::read(saved(downloads.path(), "catch-7-steps.gif")).unwrap();
    assert!(gif.starts_with(b"GIF89a"));
    browser.press("e");
    let episode = saved(downloads.path(), "catch-7-steps.npz");
    let shown = stdout(&succeeds(rem().arg("episodes").arg(&episode)));
    assert!(shown.starts_with("catch: 7 steps"), "{shown}");
    assert!(
        shown.contains("8 frames of 32x32, 6 of them dreamt"),
        "{shown}"
    );

    // A recording from here on; keys work also while a slider has the focus.
    browser.press("r");
    browser.wait_for(&format!("{RECORD}.includes('Recording since step 7')"));
    browser.evaluate("document.querySelector('.slider input').focus()");
    for step in 8..=9 {
        browser.press("n");
        browser.wait_for(&format!("{STEP} === {step}"));
    }
    browser.press("e");
    let episode = saved(downloads.path(), "catch-2-steps.npz");
    let shown = stdout(&succeeds(rem().arg("episodes").arg(&episode)));
    assert!(shown.starts_with("catch: 2 steps"), "{shown}");
    // A new start is not recorded.
    browser.click("form button");
    browser.wait_for(&format!(
        "{STEP} === 1 && {RECORD}.includes('Record from here')"
    ));
    browser.assert_clean(server.host());
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
    for (pilot, world, name, first) in [
        ("you", "real", "Real game", 0),
        ("agent", "real", "Real game", 0),
        // The dream has seen two frames.
        ("you", "dream", "Dream", 1),
        ("agent", "dream", "Dream", 1),
    ] {
        choose(&mut browser, "pilot", pilot);
        choose(&mut browser, "world", world);
        // A moment that comes in may push the button aside.
        browser.wait_for(&format!("{STATUS}.includes('{name}')"));
        browser.click("form button");
        browser.wait_for(&format!("{STATUS}.includes('{name} · step {first} ')"));
        let before = actions_asked(&browser).len();
        let mut now = first;
        if pilot == "you" {
            // After a click on a choice the arrows steer, and choose nothing.
            choose(&mut browser, "pilot", pilot);
            browser.press("ArrowLeft");
            now += 1;
            browser.wait_for(&format!("{STATUS}.includes('step {now} · left')"));
        }
        browser.press("p");
        // An untrained dream may well say at once that it is over.
        browser.wait_for(&format!(
            "{STEP} > {now} && ({STEP} >= 4 || {STATUS}.includes('over'))"
        ));
        // A running game is stopped by the same key; one that is over stops by itself.
        browser.evaluate(&format!(
            "{RUN}.includes('Pause') && document.querySelector('.transport button:nth-child(2)').click()"
        ));
        browser.wait_for(&format!("{RUN}.includes('Run')"));
        assert_eq!(chosen(&mut browser, "pilot"), pilot);
        assert_eq!(chosen(&mut browser, "world"), world);
        let asked = actions_asked(&browser).split_off(before);
        assert!(
            asked
                .iter()
                .all(|action| action.is_none() == (pilot == "agent")),
            "{pilot} in {world}: {asked:?}"
        );
        assert!(asked.len() > (now - first), "{pilot} in {world}");
        browser.keep_screenshot(&format!("play-{pilot}-{world}-400-dark.png"));
    }

    // From the real game into a dream and back: the choice says where one is.
    choose(&mut browser, "world", "real");
    browser.wait_for(&format!("{STATUS}.includes('Real game · step 0 ')"));
    browser.press("A");
    browser.wait_for(&format!("{STATUS}.includes('Real game · step 1 · left')"));
    choose(&mut browser, "world", "dream");
    browser.wait_for(&format!("{STATUS}.includes('Dream · step 1 ')"));
    browser.press("b");
    browser.wait_for(&format!("{STATUS}.includes('Real game · step 0 ')"));
    assert_eq!(chosen(&mut browser, "world"), "real");

    // From a step of a real episode, also of the oldest.
    browser.evaluate("document.querySelector('form select').selectedIndex = 1");
    browser.evaluate("document.querySelector('form select').dispatchEvent(new Event('change'))");
    browser.evaluate("document.querySelector('form input').value = 0");
    browser.evaluate("document.querySelector('form input').dispatchEvent(new Event('input'))");
    browser.wait_for("document.querySelector('form').innerText.includes('Episode 0 of epoch 1')");
    browser.click("form button");
    browser.wait_for(&format!("{STATUS}.includes('Dream · step 0')"));
    browser.keep_screenshot("play-episode-400-dark.png");
    let wide = browser.evaluate("document.documentElement.scrollWidth");
    assert!(wide.as_u64() <= Some(400), "{wide}");
    browser.assert_clean(server.host());
}

#[test]
fn a_run_that_was_paused_stays_so() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let run = finished(BRIEF);
    let server = Server::play(run.dir());
    let mut browser = Browser::start(&program);
    browser.open(&server.address, (1280, 900), "light");
    browser.wait_for(&format!("{STATUS}.includes('Dream · step 1 ')"));
    // One step a second.
    browser.evaluate(
        "(() => {
            const named = (slider) => slider.textContent.includes('steps a second');
            const range = [...document.querySelectorAll('.slider')].find(named).querySelector('input');
            range.value = 1;
            range.dispatchEvent(new Event('input'));
        })()",
    );
    for _ in 0..3 {
        browser.press("p");
    }
    let wait = "new Promise((resolve) => setTimeout(resolve, 2000))";
    browser.evaluate(wait);
    let before = actions_asked(&browser).len();
    browser.evaluate(wait);
    // Two loops would have taken four. A dream that says it is over stops.
    let taken = actions_asked(&browser).len() - before;
    assert!(taken <= 3, "{taken} steps in two seconds");
    browser.assert_clean(server.host());
}
