//! `rem watch` in a real browser: runs appear and their curves grow while they train, every part of a run is shown, wide
//! and narrow, light and dark; the console stays free of errors, and nothing is asked of any other machine.

mod support;

use rem_browser::Browser;
use support::web::Server;
use support::{BRIEF, Training, checkpoint, copy_dir, debug_run, place, succeeds};

const SIZES: [(u32, u32); 2] = [(1280, 900), (400, 800)];

/// A training of some seconds in which every phase and some evaluations happen.
const LIVELY: &str = "--set train.epochs=6 --set collect.epochs=6 --set evaluate.every=2 \
    --set world_model.optimise.start_after=0 --set actor_critic.optimise.start_after=0";

/// Nothing sticks out at the side, and everything that can be pressed has a name.
fn assert_layout(browser: &mut Browser, what: &str, width: u32) {
    let found = browser.evaluate(
        r#"({page: document.documentElement.scrollWidth,
        wide: [...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, [role=tablist], svg')
            && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 90)),
        headings: document.querySelectorAll('h1').length,
        nameless: [...document.querySelectorAll('button, a, input, select, canvas[role=img], svg[role=img]')].filter(e => {
            const by = e.getAttribute('aria-labelledby');
            return !(e.textContent.trim() || e.getAttribute('aria-label') || e.closest('label')?.textContent.trim()
                || (by && document.getElementById(by)));
        }).map(e => e.outerHTML.slice(0, 90))})"#,
    );
    assert!(
        found["page"].as_u64() <= Some(width.into()),
        "{what}: {found}"
    );
    assert_eq!(found["wide"], serde_json::json!([]), "{what}");
    assert_eq!(found["nameless"], serde_json::json!([]), "{what}");
    assert_eq!(found["headings"], 1, "{what}");
}

#[test]
fn curves_grow_while_a_training_goes_on() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let place = place();
    let runs = place.path().join("runs");
    std::fs::create_dir_all(&runs).unwrap();
    let server = Server::watch(&runs, "");
    let mut browser = Browser::start(&program);
    browser.open(&server.address, SIZES[0], "light");
    browser.wait_for("document.body.innerText.includes('There is no run here yet')");

    // It goes on for as long as the test looks at it, however fast the machine is.
    let endless = LIVELY.replace("epochs=6", "epochs=100000");
    let training = Training::start(&mut debug_run(&runs.join("live"), &endless));
    let follow = |browser: &mut Browser, run: &str| {
        let link =
            format!("[...document.querySelectorAll('a')].find(a => a.textContent === '{run}')");
        browser.wait_for(&format!("{link} !== undefined"));
        browser.evaluate(&format!("{link}.click()"));
    };
    follow(&mut browser, "live");
    // The page follows by itself: points on the curve of returns become more, and the epoch rises.
    let points = "[...document.querySelectorAll('svg.chart path')].reduce((sum, path) => \
                sum + path.getAttribute('d').match(/[ML]/g).length, 0)";
    let epoch =
        "Number(document.getElementById('facts')?.textContent.match(/epoch (\\d+)/)?.[1] ?? 0)";
    browser.wait_for(&format!("{points} >= 1 && {epoch} >= 1"));
    let count = |browser: &mut Browser, what: &str| browser.evaluate(what).as_u64().unwrap();
    let first = (count(&mut browser, points), count(&mut browser, epoch));
    browser.wait_for(&format!("{points} > {} && {epoch} > {}", first.0, first.1));
    assert_eq!(
        browser.evaluate("document.querySelector('.head').innerText.includes('training')"),
        true
    );
    drop(training);

    // One that comes to its end is found by the list, and says so.
    browser.evaluate("location.hash = '#/'");
    succeeds(&mut debug_run(&runs.join("done"), LIVELY));
    follow(&mut browser, "done");
    browser.wait_for("document.querySelector('.head')?.innerText.includes('finished')");
    browser.wait_for(&format!("{epoch} === 6 && {points} >= 6"));
    assert_eq!(
        browser
            .evaluate("document.querySelector('svg.chart').textContent.includes('random player')"),
        true
    );
    browser.keep_screenshot("watch-live.png");
    browser.assert_clean(server.host());
}

#[test]
fn every_part_of_a_run_is_shown() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let place = place();
    succeeds(&mut debug_run(&place.path().join("one"), LIVELY));
    copy_dir(&place.path().join("one"), &place.path().join("two"));
    let server = Server::watch(place.path(), "");
    let mut browser = Browser::start(&program);
    // What must have come before a part counts as shown.
    let parts = [
        (
            "run/one/overview",
            "document.querySelectorAll('.shares span').length === 5 && document.querySelector('svg.chart path')",
        ),
        (
            "run/one/losses",
            "document.querySelectorAll('.chart-box').length > 15",
        ),
        (
            "run/one/eyes",
            "document.querySelectorAll('.code').length === 16 && document.querySelector('.sheet')?.naturalWidth > 0",
        ),
        (
            "run/one/dream",
            "document.querySelectorAll('.strip li').length > 2 && document.body.innerText.includes('of the dreamt tokens')",
        ),
        (
            "run/one/episodes",
            "document.querySelectorAll('.policy li').length === 3",
        ),
        (
            "run/one/settings",
            "document.querySelector('pre')?.innerText.includes('[train]')",
        ),
        (
            "run/one/log",
            "document.querySelectorAll('.log li').length >= 27",
        ),
        ("", "document.querySelectorAll('tbody tr').length === 2"),
        (
            "compare/%5B%22one%22%2C%22two%22%5D",
            "document.querySelectorAll('.tile').length === 2 && document.querySelectorAll('svg.chart path').length > 10",
        ),
    ];
    for size in SIZES {
        for scheme in ["light", "dark"] {
            for (part, shown) in parts {
                let what = format!("{part} at {} pixels, {scheme}", size.0);
                browser.open(&format!("{}#/{part}", server.address), size, scheme);
                browser.wait_for(shown);
                assert_layout(&mut browser, &what, size.0);
                let name = part.replace(['/', '%'], "-");
                browser.keep_screenshot(&format!("watch-{name}-{}-{scheme}.png", size.0));
            }
        }
    }
    browser.assert_clean(server.host());
}

#[test]
fn the_page_is_used_by_keyboard() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let place = place();
    let settings = "--set train.epochs=2 --set collect.epochs=2 --set evaluate.every=1";
    succeeds(&mut debug_run(&place.path().join("alpha"), settings));
    copy_dir(&place.path().join("alpha"), &place.path().join("beta"));
    let server = Server::watch(place.path(), "");
    let mut browser = Browser::start(&program);
    browser.open(&server.address, SIZES[0], "dark");
    browser.wait_for("document.querySelectorAll('tbody tr').length === 2");
    browser.evaluate("document.querySelector('input[type=search]').focus()");
    for letter in ["b", "e", "t"] {
        browser.press(letter);
    }
    browser.wait_for("document.querySelectorAll('tbody tr').length === 1");
    // The focus stays on a run while the list is kept up to date.
    browser.evaluate("document.querySelector('tbody a').focus()");
    let sign = "document.querySelector('tbody td:last-child').textContent";
    let before = browser.evaluate(sign);
    browser.wait_for(&format!("{sign} !== {before}"));
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
        "location.hash === '#/run/beta/eyes' && document.querySelector('.sheet')?.naturalWidth > 0",
    );
    // The slider goes through the epochs.
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
    // A chart is read point by point.
    browser.evaluate("document.querySelector('svg.chart').focus()");
    let reading = "document.querySelector('.reading').textContent";
    let before = browser.evaluate(reading);
    browser.press("ArrowLeft");
    browser.press("ArrowLeft");
    browser.wait_for(&format!("{reading} !== {before}"));
    browser.assert_clean(server.host());
}

#[test]
fn a_long_episode_is_shown_in_parts() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let place = place();
    // A crossing ends only when its time is over.
    let settings = "--set env.game=crossing --set env.max_steps.train=430 --set collect.steps_per_epoch=450 \
        --set train.epochs=1 --set collect.epochs=1 --set evaluate.every=0 --set evaluate.final_episodes=1";
    succeeds(&mut debug_run(&place.path().join("long"), settings));
    let server = Server::watch(place.path(), "");
    let mut browser = Browser::start(&program);
    let address = format!("{}#/run/long/episodes", server.address);
    browser.open(&address, SIZES[1], "light");
    let step = "document.querySelector('.film .slider output').textContent";
    let last = "document.querySelector('.film .slider input').max";
    browser.wait_for(&format!("{step} === '0 of 429' && {last} === '399'"));
    let press = |browser: &mut Browser, name: &str| {
        browser.evaluate(&format!(
            "[...document.querySelectorAll('#panel button')].find(b => b.textContent.includes('{name}')).click()"
        ));
    };
    press(&mut browser, "Later");
    browser.wait_for(&format!("{step} === '400 of 429' && {last} === '29'"));
    assert_layout(&mut browser, "a part of an episode", SIZES[1].0);
    browser.keep_screenshot("watch-long-episode-400.png");
    press(&mut browser, "Earlier");
    browser.wait_for(&format!("{step} === '0 of 429'"));
    browser.assert_clean(server.host());
}

#[test]
fn a_page_that_is_not_seen_does_not_listen() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let place = place();
    succeeds(&mut debug_run(&place.path().join("one"), BRIEF));
    let server = Server::watch(place.path(), "");
    let mut browser = Browser::start(&program);
    let address = format!("{}#/run/one/overview", server.address);
    browser.open(&address, SIZES[0], "light");
    let shown = "document.querySelectorAll('.shares span').length === 5";
    browser.wait_for(shown);
    let streams = |browser: &Browser| {
        let asked = browser.requests();
        let streams = asked
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
    // A list that is not seen is not asked for either.
    browser.evaluate("location.hash = '#/'");
    browser.wait_for("document.querySelectorAll('tbody tr').length === 1");
    let lists = |browser: &Browser| {
        let asked = browser.requests();
        asked
            .iter()
            .filter(|(_, address)| address.ends_with("/api/runs"))
            .count()
    };
    let before = lists(&browser);
    browser.evaluate("new Promise((resolve) => setTimeout(resolve, 3500))");
    assert_eq!(lists(&browser), before);
    browser.evaluate("location.hash = '#/run/one/overview'");
    browser.wait_for("document.querySelector('.head')?.innerText.includes('one')");
    assert_eq!(streams(&browser), 1);
    hide(&mut browser, false);
    browser.wait_for(shown);
    assert_eq!(streams(&browser), 2);
    browser.assert_clean(server.host());

    // A stream that is refused is spoken of, and asked for again.
    browser.evaluate("location.hash = '#/compare/%5B%22one%22%2C%22nothing%22%5D'");
    browser.wait_for("document.body.innerText.includes('refuses to tell more')");
    browser.wait_for("document.body.innerText.includes('trying again in 4 s')");
}

#[test]
fn a_run_without_an_agent_shows_its_episodes() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let place = place();
    let run = place.path().join("torn");
    succeeds(&mut debug_run(&run, BRIEF));
    std::fs::remove_dir_all(run.join("checkpoints")).unwrap();
    std::fs::write(run.join("config.toml"), "seed = ").unwrap();
    let server = Server::watch(place.path(), "");
    let mut browser = Browser::start(&program);
    let tab = |name: &str| format!("{}#/run/torn/{name}", server.address);
    browser.open(&tab("episodes"), SIZES[1], "dark");
    // The frame has pixels that are not black.
    let picture = "document.querySelector('.film .frame')";
    browser.wait_for(&format!(
        "{picture}.getContext('2d').getImageData(0, 0, {picture}.width, {picture}.height).data.some((v, i) => i % 4 < 3 && v > 100)"
    ));
    let text = browser.evaluate("document.getElementById('panel').innerText");
    let text = text.as_str().unwrap();
    assert!(
        text.contains("no agent of this run can be loaded"),
        "{text}"
    );
    assert!(
        text.contains("noop") || text.contains("left") || text.contains("right"),
        "{text}"
    );
    assert_layout(&mut browser, "episodes without an agent", SIZES[1].0);
    browser.keep_screenshot("watch-torn-episodes-400-dark.png");
    for (name, said) in [("dream", "nothing that dreams"), ("eyes", "no codebook")] {
        browser.open(&tab(name), SIZES[1], "dark");
        browser.wait_for(&format!("document.body.innerText.includes('{said}')"));
    }
    browser.assert_clean(server.host());
}

#[test]
fn the_list_of_episodes_grows_with_the_run() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let place = place();
    let whole = place.path().join("whole");
    succeeds(&mut debug_run(&whole, BRIEF));
    // The same run after its first epoch.
    let runs = place.path().join("runs");
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
        let (_, answer) = server.get("/api/runs/half/episodes", &[]);
        answer.matches("\"number\":").count()
    };
    let mut browser = Browser::start(&program);
    let address = format!("{}#/run/half/episodes", server.address);
    browser.open(&address, SIZES[0], "light");
    let shown = "document.querySelectorAll('#panel select option').length";
    let before = listed();
    browser.wait_for(&format!(
        "{shown} === {before} && document.querySelector('.film')"
    ));
    let chosen = browser.evaluate("document.querySelector('#panel select').value");

    copy_dir(&whole, &half);
    assert!(listed() > before);
    browser.wait_for(&format!("{shown} === {}", listed()));
    // What was looked at stays.
    assert_eq!(
        browser.evaluate("document.querySelector('#panel select').value"),
        chosen
    );
    browser.assert_clean(server.host());
}
