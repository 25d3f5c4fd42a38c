//! `rem play` in Chromium: a dream is stepped by keyboard, branched, recorded and saved; human and agent play in both
//! worlds.

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rem_browser::Browser;
use support::web::Server;
use support::{BRIEF, finished, rem, stdout, succeeds};

/// The frame, as text.
const FRAME: &str = "document.querySelector('.layers.big .frame').toDataURL()";
const STATUS: &str = "document.querySelector('.status').textContent";
const BRANCHES: &str = "document.querySelectorAll('.branches button').length";

/// The current step.
const STEP: &str = "Number(document.querySelector('.status').textContent.match(/step (\\d+)/)[1])";
const RUN: &str = "document.querySelector('.transport button:nth-child(2)').textContent";
const RECORD: &str = "document.querySelector('[aria-keyshortcuts=R]').textContent";

fn choose(browser: &mut Browser, name: &str, value: &str) {
    browser.click(&format!("input[name={name}][value={value}]"));
}

/// The value of a radio group.
fn selected(browser: &mut Browser, name: &str) -> String {
    let value = browser.evaluate(&format!(
        "document.querySelector('input[name={name}]:checked').value"
    ));
    value.as_str().unwrap().into()
}

/// The actions of all step commands; `None` where the agent selects it.
fn sent_actions(browser: &Browser) -> Vec<Option<u64>> {
    let messages = browser.sent_messages();
    let commands = messages
        .iter()
        .map(|text| serde_json::from_str::<serde_json::Value>(text).unwrap());
    let steps = commands.filter(|command| command["type"] == "step");
    steps.map(|step| step["action"].as_u64()).collect()
}

/// Waits for a download to finish.
fn downloaded(dir: &Path, name: &str) -> PathBuf {
    let started = Instant::now();
    let file = dir.join(name);
    // The browser creates an empty file first, and replaces it when the download is complete.
    while !std::fs::metadata(&file).is_ok_and(|file| file.len() > 0) {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{name} was not downloaded"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    file
}

#[test]
fn a_dream_can_be_stepped_branched_and_saved() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let run = finished(BRIEF);
    let server = Server::play(run.dir());
    let downloads = tempfile::tempdir().unwrap();
    let mut browser = Browser::start(&program);
    browser.open(&server.address, (1280, 900), "light");
    browser.allow_downloads(downloads.path());
    browser.wait_for(&format!("{STATUS}.includes('Dream · step 1 ')"));

    // A key takes one step, and the frame changes.
    let before = browser.evaluate(FRAME);
    browser.press("ArrowLeft");
    browser.wait_for(&format!("{STATUS}.includes('step 2 · left')"));
    assert_ne!(browser.evaluate(FRAME), before);
    for step in 3..=7 {
        browser.press("n");
        browser.wait_for(&format!("{STATUS}.includes('step {step} ')"));
    }
    browser.wait_for("document.querySelector('.memory.beyond').textContent.includes('8 frames, training horizon 5')");
    let seventh = browser.evaluate(FRAME);

    // Going back and taking another action adds a branch and keeps the first one.
    browser.press("b");
    browser.wait_for(&format!("{STATUS}.includes('step 6 ')"));
    let branches = browser.evaluate(BRANCHES).as_u64().unwrap();
    browser.press("ArrowRight");
    browser.wait_for(&format!(
        "{STATUS}.includes('step 7 · right') && {BRANCHES} === {}",
        branches + 1
    ));
    // The tree shows both actions of step 7, one row apart, and selects the step that is clicked.
    let nodes = |row: &str| {
        format!(
            "[...document.querySelectorAll('.branch-tree .node')].filter(n => n.textContent.startsWith('step {row}'))"
        )
    };
    browser.wait_for(&format!("{}.length === 2", nodes("7:")));
    let titles = browser.evaluate(&format!(
        "{}.map(n => n.querySelector('title').textContent.split(',')[0])",
        nodes("7:")
    ));
    assert_eq!(titles, serde_json::json!(["step 7: noop", "step 7: right"]));
    let glyphs = format!(
        "{}.map(n => n.querySelector('text').textContent)",
        nodes("7:")
    );
    assert_eq!(browser.evaluate(&glyphs), serde_json::json!(["·", "→"]));
    browser.evaluate(&format!(
        "{}[0].dispatchEvent(new MouseEvent('click'))",
        nodes("3:")
    ));
    browser.wait_for(&format!("{STATUS}.includes('step 3 ')"));
    browser.evaluate("document.querySelectorAll('.branches button')[0].click()");
    browser.wait_for(&format!("{STATUS}.includes('step 7 · noop')"));
    assert_eq!(browser.evaluate(FRAME), seventh);

    // The most likely codes of a token.
    browser.press("i");
    browser.wait_for("document.querySelectorAll('.alternatives li').length === 6");
    browser.press("ArrowRight");
    browser.wait_for(
        "document.querySelector('.alternatives').parentElement.innerText.includes('Token 1, step 7:')",
    );
    browser.press("Escape");

    // A memory reset.
    browser.press("f");
    browser.wait_for(
        "document.querySelector('.memory').textContent.includes('2 frames, training horizon 5')",
    );

    browser.save_screenshot("play-dream.png");
    browser.press("g");
    let gif = std::fs::read(downloaded(downloads.path(), "catch-7-steps.gif")).unwrap();
    assert!(gif.starts_with(b"GIF89a"));
    browser.press("e");
    let episode = downloaded(downloads.path(), "catch-7-steps.npz");
    let shown = stdout(&succeeds(rem().arg("episodes").arg(&episode)));
    assert!(shown.starts_with("catch: 7 steps"), "{shown}");
    assert!(shown.contains("8 frames of 32x32, 6 imagined"), "{shown}");

    // A recording starts at the current step. Shortcuts work while a slider has the focus.
    browser.press("r");
    browser.wait_for(&format!("{RECORD}.includes('Recording from step 7')"));
    browser.evaluate("document.querySelector('.slider input').focus()");
    for step in 8..=9 {
        browser.press("n");
        browser.wait_for(&format!("{STEP} === {step}"));
    }
    browser.press("e");
    let episode = downloaded(downloads.path(), "catch-2-steps.npz");
    let shown = stdout(&succeeds(rem().arg("episodes").arg(&episode)));
    assert!(shown.starts_with("catch: 2 steps"), "{shown}");
    // Starting over stops the recording.
    browser.click("form button");
    browser.wait_for(&format!("{STEP} === 1 && {RECORD}.includes('● Record')"));
    browser.assert_clean(server.host());
}

#[test]
fn human_and_agent_play_in_both_worlds() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let run = finished(BRIEF);
    let server = Server::play(run.dir());
    let mut browser = Browser::start(&program);
    browser.open(&server.address, (400, 800), "dark");
    browser.wait_for(&format!("{STATUS}.includes('Dream')"));
    for (player, world, name, first) in [
        ("human", "real", "Real game", 0),
        ("agent", "real", "Real game", 0),
        // The context of the dream is two frames.
        ("human", "dream", "Dream", 1),
        ("agent", "dream", "Dream", 1),
    ] {
        choose(&mut browser, "player", player);
        choose(&mut browser, "world", world);
        // A response may move the button.
        browser.wait_for(&format!("{STATUS}.includes('{name}')"));
        browser.click("form button");
        browser.wait_for(&format!("{STATUS}.includes('{name} · step {first} ')"));
        let before = sent_actions(&browser).len();
        let mut now = first;
        if player == "human" {
            // After a click on a radio button the arrow keys are action keys.
            choose(&mut browser, "player", player);
            browser.press("ArrowLeft");
            now += 1;
            browser.wait_for(&format!("{STATUS}.includes('step {now} · left')"));
        }
        browser.press("p");
        // An untrained world model may predict the end at once.
        browser.wait_for(&format!(
            "{STEP} > {now} && ({STEP} >= 4 || /over|predicted end/.test({STATUS}))"
        ));
        // The run button pauses; an episode that is over pauses by itself.
        browser.evaluate(&format!(
            "{RUN}.includes('Pause') && document.querySelector('.transport button:nth-child(2)').click()"
        ));
        browser.wait_for(&format!("{RUN}.includes('Run')"));
        assert_eq!(selected(&mut browser, "player"), player);
        assert_eq!(selected(&mut browser, "world"), world);
        let sent = sent_actions(&browser).split_off(before);
        assert!(
            sent.iter()
                .all(|action| action.is_none() == (player == "agent")),
            "{player} in {world}: {sent:?}"
        );
        assert!(sent.len() > (now - first), "{player} in {world}");
        browser.save_screenshot(&format!("play-{player}-{world}-400-dark.png"));
    }

    // From the real game to a dream and back: the radio buttons follow.
    choose(&mut browser, "world", "real");
    browser.wait_for(&format!("{STATUS}.includes('Real game · step 0 ')"));
    browser.press("A");
    browser.wait_for(&format!("{STATUS}.includes('Real game · step 1 · left')"));
    choose(&mut browser, "world", "dream");
    browser.wait_for(&format!("{STATUS}.includes('Dream · step 1 ')"));
    browser.press("b");
    browser.wait_for(&format!("{STATUS}.includes('Real game · step 0 ')"));
    assert_eq!(selected(&mut browser, "world"), "real");

    // From a step of a replay episode, here the oldest.
    browser.evaluate("document.querySelector('form select').selectedIndex = 1");
    browser.evaluate("document.querySelector('form select').dispatchEvent(new Event('change'))");
    browser.evaluate("document.querySelector('form input').value = 0");
    browser.evaluate("document.querySelector('form input').dispatchEvent(new Event('input'))");
    browser.wait_for("document.querySelector('form').innerText.includes('Episode 0, epoch 1')");
    browser.click("form button");
    browser.wait_for(&format!("{STATUS}.includes('Dream · step 0')"));
    browser.save_screenshot("play-episode-400-dark.png");
    let wide = browser.evaluate("document.documentElement.scrollWidth");
    assert!(wide.as_u64() <= Some(400), "{wide}");
    browser.assert_clean(server.host());
}

#[test]
fn pausing_and_running_again_leaves_one_loop() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let run = finished(BRIEF);
    let server = Server::play(run.dir());
    let mut browser = Browser::start(&program);
    browser.open(&server.address, (1280, 900), "light");
    browser.wait_for(&format!("{STATUS}.includes('Dream · step 1 ')"));
    // One step per second.
    browser.evaluate(
        "(() => {
            const named = (slider) => slider.textContent.includes('steps/s');
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
    let before = sent_actions(&browser).len();
    browser.evaluate(wait);
    // Two loops would take four. A predicted end pauses.
    let taken = sent_actions(&browser).len() - before;
    assert!(taken <= 3, "{taken} steps in two seconds");
    browser.assert_clean(server.host());
}
