//! `rem watch` in Chromium: runs appear and their charts update while they train; every tab renders, wide and narrow,
//! light and dark. The browser console stays empty, and all requests go to the server.

mod support;

use rem_browser::Browser;
use support::page::{SIZES, assert_layout};
use support::web::Server;
use support::{BRIEF, Training, checkpoint, copy_dir, debug_run, succeeds, temp_dir};

/// A run of some seconds with every phase and three evaluations.
const ALL_PHASES: &str = "--set train.epochs=6 --set collect.epochs=6 --set evaluate.every=2 \
    --set world_model.optimizer.start_after=0 --set actor_critic.optimizer.start_after=0";

#[test]
fn charts_update_while_a_run_trains() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let temp = temp_dir();
    let runs = temp.path().join("runs");
    std::fs::create_dir_all(&runs).unwrap();
    let server = Server::watch(&runs, "");
    let mut browser = Browser::start(&program);
    browser.open(&server.address, SIZES[0], "light");
    browser.wait_for("document.body.innerText.includes('No runs yet')");

    // Trains until the test ends, on any machine.
    let endless = ALL_PHASES.replace("epochs=6", "epochs=100000");
    let training = Training::start(&mut debug_run(&runs.join("live"), &endless));
    let follow = |browser: &mut Browser, run: &str| {
        let link =
            format!("[...document.querySelectorAll('a')].find(a => a.textContent === '{run}')");
        browser.wait_for(&format!("{link} !== undefined"));
        browser.evaluate(&format!("{link}.click()"));
    };
    follow(&mut browser, "live");
    // The page updates by itself: the return chart gets more points, and the epoch rises.
    let points = "[...document.querySelectorAll('.chart')].reduce((sum, chart) => sum + Number(chart.dataset.points ?? 0), 0)";
    let epoch =
        "Number(document.getElementById('facts')?.textContent.match(/epoch (\\d+)/)?.[1] ?? 0)";
    browser.wait_for(&format!("{points} >= 1 && {epoch} >= 1"));
    let count = |browser: &mut Browser, what: &str| browser.evaluate(what).as_u64().unwrap();
    let first = (count(&mut browser, points), count(&mut browser, epoch));
    browser.wait_for(&format!("{points} > {} && {epoch} > {}", first.0, first.1));
    assert_eq!(
        browser.evaluate("document.querySelector('.header').innerText.includes('training')"),
        true
    );
    drop(training);

    // A finished run appears in the list and is marked as finished.
    browser.evaluate("location.hash = '#/'");
    succeeds(&mut debug_run(&runs.join("done"), ALL_PHASES));
    follow(&mut browser, "done");
    browser.wait_for("document.querySelector('.header')?.innerText.includes('finished')");
    browser.wait_for(&format!("{epoch} === 6 && {points} >= 6"));
    assert_eq!(
        browser.evaluate(
            "document.querySelector('.chart-box .legend').textContent.includes('random')"
        ),
        true
    );
    browser.save_screenshot("watch-live.png");
    browser.assert_clean(server.host());
}

#[test]
fn every_tab_renders_at_both_widths_and_color_schemes() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let temp = temp_dir();
    succeeds(&mut debug_run(&temp.path().join("one"), ALL_PHASES));
    copy_dir(&temp.path().join("one"), &temp.path().join("two"));
    let server = Server::watch(temp.path(), "");
    let mut browser = Browser::start(&program);
    // Each address with the condition that it has rendered. Charts are drawn when they come into view.
    let tabs = [
        (
            "run/one/overview",
            "document.querySelectorAll('.stacked-bar span').length === 5 && document.querySelector('.chart').dataset.points > 0",
        ),
        (
            "run/one/metrics",
            "document.querySelectorAll('.chart-box').length > 15 && [...document.querySelectorAll('.chart-box')].some(box => \
             box.querySelector('.chart-title').textContent === 'loss_obs' && (box.scrollIntoView(), box.querySelector('.legend').textContent.includes('test episodes')))",
        ),
        (
            "run/one/tokenizer",
            "document.querySelectorAll('.code').length === 16 && document.querySelector('.sheet')?.naturalWidth > 0",
        ),
        (
            "run/one/dream",
            "document.querySelectorAll('.filmstrip li').length > 2 && document.body.innerText.includes('Token accuracy')",
        ),
        (
            "run/one/episodes",
            "document.querySelectorAll('.policy li').length === 3",
        ),
        (
            "run/one/config",
            "document.querySelector('pre')?.innerText.includes('[train]')",
        ),
        (
            "run/one/log",
            "document.querySelectorAll('.log li').length >= 27",
        ),
        ("", "document.querySelectorAll('tbody tr').length === 2"),
        (
            "compare/%5B%22one%22%2C%22two%22%5D",
            "document.querySelectorAll('.series-list li').length === 2 && document.querySelector('.chart').dataset.series === '2'",
        ),
    ];
    for size in SIZES {
        for scheme in ["light", "dark"] {
            for (tab, rendered) in tabs {
                let what = format!("{tab} at {} pixels, {scheme}", size.0);
                browser.open(&format!("{}#/{tab}", server.address), size, scheme);
                browser.wait_for(rendered);
                assert_layout(&mut browser, &what, size.0);
                let name = tab.replace(['/', '%'], "-");
                browser.save_screenshot(&format!("watch-{name}-{}-{scheme}.png", size.0));
            }
        }
    }
    browser.assert_clean(server.host());
}

#[test]
fn the_dream_shows_the_end_and_the_codebook_shows_where_codes_occur() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let temp = temp_dir();
    succeeds(&mut debug_run(&temp.path().join("one"), ALL_PHASES));
    let server = Server::watch(temp.path(), "");
    let mut browser = Browser::start(&program);
    browser.open(
        &format!("{}#/run/one/dream", server.address),
        SIZES[0],
        "light",
    );
    // `catch` gives its only reward with the last action: after it there is no frame in the replay.
    let end = "document.querySelector('.filmstrip .end')";
    browser.wait_for(&format!("{end}.querySelectorAll('.panel').length === 2"));
    let text = browser.evaluate(&format!("{end}.innerText"));
    let text = text.as_str().unwrap();
    assert!(text.contains("terminated\nreward "), "{text}");
    assert!(text.contains("P(end) "), "{text}");
    let reward = text.split("reward ").nth(1).unwrap();
    assert!(
        reward.starts_with("+1") || reward.starts_with('−'),
        "{text}"
    );
    // In the strip of the evaluation, the episode ends too, and all labels are text.
    let strip = "document.querySelectorAll('.filmstrip')[1]";
    browser.wait_for(&format!("{strip}.innerText.includes('real: terminated')"));
    assert_eq!(
        browser.evaluate(&format!("{strip}.querySelectorAll('.row-label').length")),
        2
    );
    let image = "document.querySelector('img.sheet')";
    assert_eq!(
        browser.evaluate(&format!("{image}.hidden && {image}.naturalWidth > 0")),
        true
    );
    // The frames are cut out of the image: the ball is yellow in every real frame.
    let yellow = format!(
        "[...{strip}.querySelectorAll('li:not(.labels)')].every(column => {{
            const frame = column.querySelector('canvas');
            const {{ data }} = frame.getContext('2d').getImageData(0, 0, frame.width, frame.height);
            return data.some((_, i) => i % 4 === 0 && data[i] > 240 && data[i + 1] > 200 && data[i + 2] < 60);
        }})"
    );
    assert_eq!(browser.evaluate(&yellow), true);
    browser.save_screenshot("watch-dream-end.png");

    browser.open(
        &format!("{}#/run/one/tokenizer", server.address),
        SIZES[0],
        "dark",
    );
    browser.wait_for("document.querySelectorAll('.code').length === 16");
    // By use: the bars become shorter, and dead codes are last.
    let widths = browser.evaluate(
        "[...document.querySelectorAll('.code')].map(c => parseFloat(c.querySelector('.usage')?.style.width ?? 0))",
    );
    let widths: Vec<f64> = serde_json::from_value(widths).unwrap();
    assert!(widths.is_sorted_by(|a, b| a >= b), "{widths:?}");
    assert_eq!(widths[0], 100.0);
    browser.wait_for("document.querySelectorAll('.occurrences canvas.frame').length >= 1");
    let heading = "document.querySelector('.code-detail h3').textContent";
    let first = browser.evaluate(heading);
    browser.click(".code:nth-child(2) button");
    browser.wait_for(&format!("{heading} !== {first}"));
    assert_layout(&mut browser, "codebook", SIZES[0].0);
    browser.save_screenshot("watch-codebook.png");
    browser.assert_clean(server.host());
}

#[test]
fn the_page_can_be_used_by_keyboard() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let temp = temp_dir();
    let settings = "--set train.epochs=2 --set collect.epochs=2 --set evaluate.every=1";
    succeeds(&mut debug_run(&temp.path().join("alpha"), settings));
    copy_dir(&temp.path().join("alpha"), &temp.path().join("beta"));
    let server = Server::watch(temp.path(), "");
    let mut browser = Browser::start(&program);
    browser.open(&server.address, SIZES[0], "dark");
    browser.wait_for("document.querySelectorAll('tbody tr').length === 2");
    browser.evaluate("document.querySelector('input[type=search]').focus()");
    for letter in ["b", "e", "t"] {
        browser.press(letter);
    }
    browser.wait_for("document.querySelectorAll('tbody tr').length === 1");
    // A run keeps the focus while the list updates.
    browser.evaluate("document.querySelector('tbody a').focus()");
    let updated = "document.querySelector('tbody td:last-child').textContent";
    let before = browser.evaluate(updated);
    browser.wait_for(&format!("{updated} !== {before}"));
    assert_eq!(
        browser.evaluate("document.activeElement.textContent"),
        "beta"
    );
    browser.press("Enter");
    browser.wait_for(
        "document.querySelector('[role=tab][aria-selected=true]')?.textContent === 'Overview'",
    );
    browser.evaluate("document.querySelector('[role=tab][aria-selected=true]').focus()");
    browser.press("ArrowRight");
    browser.press("ArrowRight");
    browser.wait_for(
        "location.hash === '#/run/beta/tokenizer' && document.querySelector('.sheet')?.naturalWidth > 0",
    );
    // The slider selects an epoch.
    let epoch = "document.querySelector('.slider output').textContent";
    let last = browser.evaluate(epoch);
    browser.evaluate("document.querySelector('.slider input').focus()");
    browser.press("ArrowLeft");
    browser.wait_for(&format!("{epoch} !== {last}"));
    let source = browser.evaluate("document.querySelector('.sheet').src");
    assert!(
        source.as_str().unwrap().contains("epoch-000001"),
        "{source}"
    );
    // Arrow keys move the cursor of a chart.
    browser.evaluate("document.querySelector('.chart').focus()");
    let readout = "document.querySelector('.readout').textContent";
    let before = browser.evaluate(readout);
    browser.press("ArrowLeft");
    browser.press("ArrowLeft");
    browser.wait_for(&format!("{readout} !== {before}"));
    browser.assert_clean(server.host());
}

#[test]
fn long_episodes_are_paged() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let temp = temp_dir();
    // `crossing` ends only at its step limit.
    let settings = "--set env.game=crossing --set env.max_steps.train=430 --set collect.steps_per_epoch=450 \
        --set train.epochs=1 --set collect.epochs=1 --set evaluate.every=0 --set evaluate.final_episodes=1";
    succeeds(&mut debug_run(&temp.path().join("long"), settings));
    let server = Server::watch(temp.path(), "");
    let mut browser = Browser::start(&program);
    let address = format!("{}#/run/long/episodes", server.address);
    browser.open(&address, SIZES[1], "light");
    let step = "document.querySelector('.episode-player .slider output').textContent";
    let last = "document.querySelector('.episode-player .slider input').max";
    browser.wait_for(&format!("{step} === '0 of 429' && {last} === '399'"));
    let press = |browser: &mut Browser, name: &str| {
        browser.evaluate(&format!(
            "[...document.querySelectorAll('#panel button')].find(b => b.textContent.includes('{name}')).click()"
        ));
    };
    press(&mut browser, "Next");
    browser.wait_for(&format!("{step} === '400 of 429' && {last} === '29'"));
    assert_layout(&mut browser, "a page of an episode", SIZES[1].0);
    browser.save_screenshot("watch-long-episode-400.png");
    press(&mut browser, "Previous");
    browser.wait_for(&format!("{step} === '0 of 429'"));
    browser.assert_clean(server.host());
}

#[test]
fn a_hidden_page_closes_its_event_stream() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let temp = temp_dir();
    succeeds(&mut debug_run(&temp.path().join("one"), BRIEF));
    let server = Server::watch(temp.path(), "");
    let mut browser = Browser::start(&program);
    let address = format!("{}#/run/one/overview", server.address);
    browser.open(&address, SIZES[0], "light");
    let rendered = "document.querySelectorAll('.stacked-bar span').length === 5";
    browser.wait_for(rendered);
    let streams = |browser: &Browser| {
        let requests = browser.requests();
        let streams = requests
            .iter()
            .filter(|(_, address)| address.contains("/api/events"));
        streams.count()
    };
    let hide = |browser: &mut Browser, hidden: bool| {
        browser.evaluate(&format!(
            "Object.defineProperty(document, 'hidden', {{ value: {hidden}, configurable: true }}); \
             document.dispatchEvent(new Event('visibilitychange'))"
        ));
    };
    assert_eq!(streams(&browser), 1);
    hide(&mut browser, true);
    // A hidden list of runs does not refresh.
    browser.evaluate("location.hash = '#/'");
    browser.wait_for("document.querySelectorAll('tbody tr').length === 1");
    let lists = |browser: &Browser| {
        let requests = browser.requests();
        requests
            .iter()
            .filter(|(_, address)| address.ends_with("/api/runs"))
            .count()
    };
    let before = lists(&browser);
    browser.evaluate("new Promise((resolve) => setTimeout(resolve, 3500))");
    assert_eq!(lists(&browser), before);
    browser.evaluate("location.hash = '#/run/one/overview'");
    browser.wait_for("document.querySelector('.header')?.innerText.includes('one')");
    assert_eq!(streams(&browser), 1);
    hide(&mut browser, false);
    browser.wait_for(rendered);
    assert_eq!(streams(&browser), 2);
    browser.assert_clean(server.host());

    // A rejected stream is reported and retried.
    hide(&mut browser, true);
    std::fs::rename(temp.path().join("one"), temp.path().join(".hidden")).unwrap();
    hide(&mut browser, false);
    browser.wait_for("document.body.innerText.includes('live updates refused')");
    browser.wait_for("document.body.innerText.includes('retrying in 4 s')");
}

#[test]
fn episodes_are_shown_without_a_loadable_agent() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let temp = temp_dir();
    let run = temp.path().join("damaged");
    succeeds(&mut debug_run(&run, BRIEF));
    std::fs::remove_dir_all(run.join("checkpoints")).unwrap();
    std::fs::write(run.join("config.toml"), "seed = ").unwrap();
    let server = Server::watch(temp.path(), "");
    let mut browser = Browser::start(&program);
    let tab = |name: &str| format!("{}#/run/damaged/{name}", server.address);
    browser.open(&tab("episodes"), SIZES[1], "dark");
    // The frame is not black.
    let canvas = "document.querySelector('.episode-player .frame')";
    browser.wait_for(&format!(
        "{canvas}.getContext('2d').getImageData(0, 0, {canvas}.width, {canvas}.height).data.some((v, i) => i % 4 < 3 && v > 100)"
    ));
    let text = browser.evaluate("document.getElementById('panel').innerText");
    let text = text.as_str().unwrap();
    assert!(
        text.contains("the agent of this run cannot be loaded"),
        "{text}"
    );
    assert!(
        text.contains("noop") || text.contains("left") || text.contains("right"),
        "{text}"
    );
    assert_layout(&mut browser, "episodes without an agent", SIZES[1].0);
    browser.save_screenshot("watch-damaged-episodes-400-dark.png");
    for (name, message) in [("dream", "No dream:"), ("tokenizer", "No codebook:")] {
        browser.open(&tab(name), SIZES[1], "dark");
        browser.wait_for(&format!("document.body.innerText.includes('{message}')"));
    }
    browser.assert_clean(server.host());
}

#[test]
fn the_episode_list_updates_while_a_run_trains() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let temp = temp_dir();
    let whole = temp.path().join("whole");
    succeeds(&mut debug_run(&whole, BRIEF));
    // The same run after its first epoch.
    let runs = temp.path().join("runs");
    let half = runs.join("half");
    copy_dir(&whole, &half);
    std::fs::remove_dir_all(checkpoint(&half, 2)).unwrap();
    std::fs::remove_file(half.join("replay/epoch-000002.chunk")).unwrap();
    std::fs::remove_file(half.join("scores.json")).unwrap();
    let log = std::fs::read_to_string(half.join("metrics.jsonl")).unwrap();
    let first = log
        .split_inclusive('\n')
        .filter(|line| line.contains("\"epoch\":1,"));
    std::fs::write(half.join("metrics.jsonl"), first.collect::<String>()).unwrap();

    let server = Server::watch(&runs, "");
    let listed = || {
        let (_, response) = server.get("/api/runs/half/episodes", &[]);
        response.matches("\"number\":").count()
    };
    let mut browser = Browser::start(&program);
    let address = format!("{}#/run/half/episodes", server.address);
    browser.open(&address, SIZES[0], "light");
    let shown = "document.querySelectorAll('#panel select option').length";
    let before = listed();
    browser.wait_for(&format!(
        "{shown} === {before} && document.querySelector('.episode-player')"
    ));
    let selected = browser.evaluate("document.querySelector('#panel select').value");

    copy_dir(&whole, &half);
    assert!(listed() > before);
    browser.wait_for(&format!("{shown} === {}", listed()));
    // The selection does not change.
    assert_eq!(
        browser.evaluate("document.querySelector('#panel select').value"),
        selected
    );
    browser.assert_clean(server.host());
}
