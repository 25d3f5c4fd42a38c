//! `rem watch` in a real browser: runs appear and their curves grow while they train, every part of a run is shown, wide
//! and narrow, light and dark; the console stays free of errors, and nothing is asked of any other machine.

mod support;

use rem_browser::Browser;
use support::web::Server;
use support::{copy_dir, debug_run, place, start, succeeds};

const SIZES: [(u32, u32); 2] = [(1280, 900), (400, 800)];

/// A training of some seconds in which every phase and some evaluations happen.
const LIVELY: &str = "--set train.epochs=6 --set collect.epochs=6 --set evaluate.every=2 \
    --set world_model.optimise.start_after=0 --set actor_critic.optimise.start_after=0";

/// No error was logged, and the server was the only one that was asked.
fn assert_clean(browser: &Browser, server: &Server) {
    let errors = browser.errors();
    assert!(errors.is_empty(), "{errors:#?}");
    let home = [
        format!("http://{}/", server.host()),
        format!("ws://{}/", server.host()),
    ];
    for (kind, address) in browser.requests() {
        let ours = home.iter().any(|home| address.starts_with(home));
        assert!(
            ours || address.starts_with("blob:") || address == "about:blank",
            "{kind} {address}"
        );
    }
}

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

    let mut training = start(&mut debug_run(&runs.join("live"), LIVELY));
    browser.wait_for("[...document.querySelectorAll('a')].some(a => a.textContent === 'live')");
    browser.evaluate(
        "[...document.querySelectorAll('a')].find(a => a.textContent === 'live').click()",
    );
    // The page follows by itself: points on the curve of returns become more, and the epoch rises.
    let dots = "document.querySelectorAll('svg.chart circle').length";
    let epoch =
        "Number(document.getElementById('facts')?.textContent.match(/epoch (\\d+)/)?.[1] ?? 0)";
    browser.wait_for(&format!("{dots} >= 1 && {epoch} >= 1"));
    let first = (
        browser.evaluate(dots).as_u64().unwrap(),
        browser.evaluate(epoch).as_u64().unwrap(),
    );
    browser.wait_for(&format!("{dots} > {} && {epoch} > {}", first.0, first.1));
    browser.wait_for("document.querySelector('.head').innerText.includes('finished')");
    browser.wait_for(&format!("{epoch} === 6 && {dots} >= 6"));
    assert!(training.wait().unwrap().success());
    assert_eq!(
        browser
            .evaluate("document.querySelector('svg.chart').textContent.includes('random player')"),
        true
    );
    browser.keep_screenshot("watch-live.png");
    assert_clean(&browser, &server);
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
    assert_clean(&browser, &server);
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
    browser.evaluate("document.querySelector('tbody a').focus()");
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
    assert_clean(&browser, &server);
}
