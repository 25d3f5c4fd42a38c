//! The charts and lists of `rem watch` in Chromium: what a user can do with them, on runs that were written, not trained.

mod support;

use std::path::Path;

use rem_browser::Browser;
use support::many_runs::WrittenRun;
use support::page::{SIZES, assert_layout};
use support::web::Server;
use support::{BRIEF, rem, succeeds, temp_dir};

const RUN: WrittenRun = WrittenRun {
    game: "catch",
    horizon: 5,
    seed: 1,
    written: 30,
    epochs: 30,
};

/// Three seeds of `catch`, one of which stopped after 4 epochs, and a run of `paddle`.
fn some_runs(parent: &Path) {
    RUN.write(parent);
    WrittenRun { seed: 2, ..RUN }.write(parent);
    let stopped = WrittenRun {
        seed: 3,
        written: 4,
        ..RUN
    };
    stopped.write(parent);
    let game = "paddle";
    WrittenRun { game, ..RUN }.write(parent);
}

/// Chromium at a page of a server, or `None` without Chromium.
fn open(server: &Server, page: &str) -> Option<Browser> {
    let mut browser = Browser::start(&rem_browser::find()?);
    browser.open(&format!("{}#/{page}", server.address), SIZES[0], "light");
    Some(browser)
}

fn compare(runs: &[&str]) -> String {
    let names: Vec<String> = runs.iter().map(|run| format!("%22{run}%22")).collect();
    format!("compare/%5B{}%5D", names.join("%2C"))
}

/// The box of the chart with this title.
fn chart(title: &str) -> String {
    format!(
        "[...document.querySelectorAll('.chart-box')].find(box => box.querySelector('.chart-title').textContent === '{title}')"
    )
}

fn text(browser: &mut Browser, expression: &str) -> String {
    let value = browser.evaluate(expression);
    value.as_str().unwrap_or_default().to_owned()
}

/// Checks or clears the checkbox with this label.
fn toggle(browser: &mut Browser, label: &str) {
    browser.evaluate(&format!(
        "[...document.querySelectorAll('label.inline')].find(l => l.textContent.includes('{label}')).querySelector('input').click()"
    ));
}

/// Sets a control, as a user would.
fn set(browser: &mut Browser, selector: &str, value: &str) {
    browser.evaluate(&format!(
        "(() => {{ const e = document.querySelector(\"{selector}\"); e.value = '{value}'; \
         e.dispatchEvent(new Event('input')); e.dispatchEvent(new Event('change')); }})()"
    ));
}

/// Clicks an entry of a chart's menu.
fn choose(browser: &mut Browser, title: &str, entry: &str) {
    let menu = format!("{}.querySelector('.menu')", chart(title));
    browser.evaluate(&format!("{menu}.open = true"));
    let button = format!(
        "[...{menu}.querySelectorAll('button')].find(b => b.textContent.includes('{entry}'))"
    );
    browser.wait_for(&format!("{button} !== undefined"));
    browser.evaluate(&format!("{button}.click()"));
}

/// The text of a file, once the browser has saved it.
fn saved(path: &Path) -> String {
    let started = std::time::Instant::now();
    while !path.exists() {
        assert!(started.elapsed().as_secs() < 30, "{path:?} is not saved");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
}

#[test]
fn charts_are_searched_hidden_folded_and_pinned() {
    let temp = temp_dir();
    some_runs(temp.path());
    let server = Server::watch(temp.path(), "");
    let Some(mut browser) = open(&server, "run/catch-h5-seed1/metrics") else {
        return;
    };
    let visible =
        "[...document.querySelectorAll('.chart-box')].filter(box => box.offsetParent).length";
    browser.wait_for(&format!("{visible} > 30"));
    set(&mut browser, "input[type=search]", "world loss_obs");
    browser.wait_for(&format!("{visible} === 2"));
    set(&mut browser, "input[type=search]", "no such metric");
    browser.wait_for("document.body.innerText.includes('No matching charts')");
    set(&mut browser, "input[type=search]", "");
    browser.wait_for(&format!("{visible} > 30"));

    // The perceptual loss of these runs is 0 throughout.
    let perceptual = format!("{}.hidden", chart("loss_perceptual"));
    assert_eq!(browser.evaluate(&perceptual), false);
    toggle(&mut browser, "Hide constant");
    browser.wait_for(&perceptual);
    toggle(&mut browser, "Hide constant");
    browser.wait_for(&format!("!({perceptual})"));

    // Pinned charts and folded groups stay so after a reload, also for another run.
    choose(&mut browser, "entropy", "Pin");
    let group = |title: &str| {
        format!(
            "{}.closest('details').querySelector('h2').textContent",
            chart(title)
        )
    };
    browser.wait_for(&format!("{} === 'Pinned'", group("entropy")));
    browser.evaluate("[...document.querySelectorAll('.group')].find(g => g.textContent.startsWith('tokenizer')).open = false");
    browser.wait_for("JSON.parse(localStorage.getItem('charts')).folded.includes('tokenizer')");
    let other = format!("{}#/run/catch-h5-seed2/metrics", server.address);
    browser.open(&other, SIZES[0], "light");
    browser.wait_for(&format!("{} === 'Pinned'", group("entropy")));
    browser.wait_for(&format!(
        "!{}.closest('details').open",
        chart("explained_variance")
    ));
    choose(&mut browser, "entropy", "Unpin");
    browser.wait_for(&format!("{} === 'actor critic'", group("entropy")));
    browser.assert_clean(server.host());
}

#[test]
fn captions_give_every_series_its_own_last_epoch() {
    let temp = temp_dir();
    some_runs(temp.path());
    let server = Server::watch(temp.path(), "");
    let page = compare(&["catch-h5-seed1", "catch-h5-seed3"]);
    let Some(mut browser) = open(&server, &page) else {
        return;
    };
    let readout = format!(
        "{}.querySelector('.readout').textContent",
        chart("Collection return")
    );
    browser.wait_for(&format!("{readout}.includes('catch-h5-seed3')"));
    browser.wait_for(&format!("{readout}.includes('at epoch 30')"));
    let caption = text(&mut browser, &readout);
    let parts: Vec<&str> = caption.split(" · ").collect();
    assert!(
        parts[0].starts_with("catch-h5-seed1 ") && parts[0].ends_with(" at epoch 30"),
        "{caption}"
    );
    assert!(
        parts[1].starts_with("catch-h5-seed3 ") && parts[1].ends_with(" at epoch 4"),
        "{caption}"
    );
    browser.assert_clean(server.host());
}

#[test]
fn axes_smoothing_zoom_and_cursor_are_shared_by_all_charts() {
    let temp = temp_dir();
    some_runs(temp.path());
    let server = Server::watch(temp.path(), "");
    let Some(mut browser) = open(&server, "run/catch-h5-seed1/metrics") else {
        return;
    };
    let readout = |title: &str| format!("{}.querySelector('.readout').textContent", chart(title));
    browser.wait_for(&format!(
        "{}.endsWith(' at epoch 30')",
        readout("mean_length")
    ));
    set(
        &mut browser,
        "select[aria-label='Horizontal axis']",
        "steps",
    );
    browser.wait_for(&format!(
        "{}.endsWith(' at step 12,000')",
        readout("mean_length")
    ));
    set(&mut browser, "select[aria-label='Horizontal axis']", "time");
    browser.wait_for(&format!("{}.endsWith(' min')", readout("mean_length")));
    set(
        &mut browser,
        "select[aria-label='Horizontal axis']",
        "epoch",
    );
    set(&mut browser, ".inline input[type=range]", "0.9");
    browser.wait_for(&format!("{}.includes('smoothed')", readout("mean_length")));
    set(&mut browser, ".inline input[type=range]", "0");

    // On a log scale, a chart with values below 0 says that it stays linear.
    toggle(&mut browser, "Log scale");
    browser.wait_for(&format!("{}.includes('linear')", readout("mean_return")));
    assert!(!text(&mut browser, &readout("mean_length")).contains("linear"));
    toggle(&mut browser, "Log scale");

    // The keys of one chart move the cursor of all, and zoom all.
    browser.evaluate(&format!(
        "{}.querySelector('canvas').focus()",
        chart("mean_length")
    ));
    for _ in 0..11 {
        browser.press("ArrowLeft");
    }
    for title in ["mean_length", "mean_return"] {
        browser.wait_for(&format!("{}.startsWith('epoch 20: ')", readout(title)));
    }
    let zoomed = |title: &str| {
        format!(
            "!{}.querySelector('.chart-tools > button').hidden",
            chart(title)
        )
    };
    browser.press("+");
    browser.wait_for(&format!(
        "{} && {}",
        zoomed("mean_length"),
        zoomed("mean_return")
    ));
    browser.press("End");
    browser.wait_for(&format!(
        "{}.startsWith('epoch 27: ')",
        readout("mean_return")
    ));
    browser.press("0");
    browser.wait_for(&format!("!({})", zoomed("mean_return")));

    // So does a drag from 25% to 75% of a chart.
    let edges = browser.evaluate(&format!(
        "(() => {{ const box = {}.querySelector('canvas').getBoundingClientRect(); return [box.x, box.y + 50, box.width]; }})()",
        chart("mean_length")
    ));
    let [left, y, width] = [0, 1, 2].map(|i| edges[i].as_f64().unwrap());
    let mouse = |browser: &mut Browser, kind: &str, at: f64| {
        let event = serde_json::json!({
            "type": kind, "x": left + at * width, "y": y, "button": "left", "buttons": 1, "clickCount": 1,
        });
        browser.call("Input.dispatchMouseEvent", event);
    };
    mouse(&mut browser, "mousePressed", 0.25);
    mouse(&mut browser, "mouseMoved", 0.5);
    mouse(&mut browser, "mouseMoved", 0.75);
    mouse(&mut browser, "mouseReleased", 0.75);
    browser.wait_for(&zoomed("mean_return"));
    browser.assert_clean(server.host());
}

#[test]
fn a_chart_is_saved_as_svg_png_and_csv() {
    let temp = temp_dir();
    some_runs(temp.path());
    let server = Server::watch(temp.path(), "");
    let Some(mut browser) = open(&server, "run/catch-h5-seed1/metrics") else {
        return;
    };
    let downloads = temp_dir();
    browser.allow_downloads(downloads.path());
    browser.wait_for(&format!("{} !== undefined", chart("active_codes")));
    for format in ["CSV", "SVG", "PNG"] {
        choose(&mut browser, "active_codes", format);
    }
    let csv = saved(&downloads.path().join("active_codes.csv"));
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines[0], lines.len()), ("epoch,active_codes", 31));
    // As in the log.
    let log = std::fs::read_to_string(temp.path().join("catch-h5-seed1/metrics.jsonl")).unwrap();
    let logged = log.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        Some(format!(
            "{},{}",
            line["epoch"],
            line["active_codes"].as_f64()?
        ))
    });
    assert_eq!(lines[1..], logged.collect::<Vec<_>>());
    let svg = saved(&downloads.path().join("active_codes.svg"));
    assert!(
        svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"),
        "{svg}"
    );
    assert!(
        svg.contains(">active_codes</text>") && svg.contains("<path d=\"M"),
        "{svg}"
    );
    let png = saved(&downloads.path().join("active_codes.png"));
    assert!(png.contains("PNG"));
    browser.assert_clean(server.host());
}

#[test]
fn a_comparison_shows_differing_keys_and_the_range_over_seeds() {
    let temp = temp_dir();
    some_runs(temp.path());
    let server = Server::watch(temp.path(), "");
    let names = [
        "catch-h5-seed1",
        "catch-h5-seed2",
        "catch-h5-seed3",
        "paddle-h5-seed1",
    ];
    let Some(mut browser) = open(&server, &compare(&names)) else {
        return;
    };
    let keys = "[...document.querySelectorAll('.differences tbody th')].map(key => key.textContent).join(' ')";
    browser.wait_for(&format!(
        "{keys} === 'env.game env.max_steps.test env.max_steps.train seed'"
    ));
    let unusual =
        "[...document.querySelectorAll('.differences .unusual')].map(cell => cell.textContent)";
    let unusual = browser.evaluate(unusual);
    // Of a key, the value of most runs is not marked: three are `catch`; of the seeds, none is more frequent than others.
    assert_eq!(
        unusual,
        serde_json::json!(["\"paddle\"", "400", "400", "1", "2", "3", "1"])
    );
    let series = format!(
        "{}.querySelector('canvas').dataset.series",
        chart("Collection return")
    );
    browser.wait_for(&format!("{series} === '4'"));
    // A series can be hidden.
    browser.evaluate("document.querySelector('.series-list input').click()");
    browser.wait_for(&format!("{series} === '3'"));
    toggle(&mut browser, "over seeds");
    browser.wait_for(&format!("{series} === '2'"));
    let readout = format!(
        "{}.querySelector('.readout').textContent",
        chart("Collection return")
    );
    // Mean and range of the two seeds that go on.
    browser.wait_for(&format!(
        "/^catch -?−?[\\d.]+ \\(−?[\\d.]+ to −?[\\d.]+\\) · paddle .* at epoch 30$/.test({readout})"
    ));
    for size in SIZES {
        for scheme in ["light", "dark"] {
            let address = format!("{}#/{}", server.address, compare(&names));
            browser.open(&address, size, scheme);
            browser.wait_for(&format!("{series} === '4' && {keys} === 'env.game env.max_steps.test env.max_steps.train seed'"));
            assert_layout(&mut browser, "comparison", size.0);
            browser.save_screenshot(&format!("charts-compare-{}-{scheme}.png", size.0));
        }
    }
    browser.assert_clean(server.host());
}

#[test]
fn runs_are_sorted_grouped_selected_and_shown_as_cards() {
    let temp = temp_dir();
    some_runs(temp.path());
    let server = Server::watch(temp.path(), "");
    let Some(mut browser) = open(&server, "") else {
        return;
    };
    let names = "[...document.querySelectorAll('tbody tr:not(.group-row) a, .card a')].map(a => a.textContent).join(' ')";
    browser.wait_for(&format!(
        "{names} === 'catch-h5-seed1 catch-h5-seed2 catch-h5-seed3 paddle-h5-seed1'"
    ));
    let sort = "[...document.querySelectorAll('button.sort')].find(b => b.textContent === 'Epoch').click()";
    browser.evaluate(sort);
    browser.wait_for(&format!("{names}.startsWith('catch-h5-seed3')"));
    browser.evaluate(sort);
    browser.wait_for(&format!("{names}.endsWith('catch-h5-seed3')"));
    assert_eq!(
        browser.evaluate("document.querySelector('th[aria-sort=descending]').textContent"),
        "Epoch"
    );
    // A curve has a point per evaluation; the run of four epochs has none.
    let curves = "[...document.querySelectorAll('.spark')].map(s => s.getAttribute('aria-label').split(',')[0])";
    let curves = browser.evaluate(curves);
    assert_eq!(curves[0], "Return of 3 evaluations");
    assert_eq!(curves[3], "No evaluation yet");
    assert_eq!(
        browser.evaluate("document.querySelector('.tag').textContent"),
        "horizon-5"
    );
    set(&mut browser, "input[type=search]", "horizon-5 paddle");
    browser.wait_for(&format!("{names} === 'paddle-h5-seed1'"));
    set(&mut browser, "input[type=search]", "");

    set(&mut browser, "select[aria-label='Group runs']", "game");
    let groups = "[...document.querySelectorAll('.group-row th span:first-child')].map(g => g.textContent).join(' ')";
    browser.wait_for(&format!("{groups} === 'catch paddle'"));
    // The checkbox of a group selects its runs.
    browser.evaluate("document.querySelector('.group-row input').click()");
    let button = "document.querySelector('.toolbar a.button')";
    browser.wait_for(&format!("{button}.textContent === 'Compare 3'"));
    browser.evaluate("document.querySelector('.segmented button:last-child').click()");
    browser.wait_for("document.querySelectorAll('.card').length === 4");
    assert_eq!(
        browser.evaluate("document.querySelectorAll('.card input:checked').length"),
        3
    );
    for size in SIZES {
        browser.open(&server.address, size, "dark");
        browser.wait_for("document.querySelectorAll('.card').length === 4");
        assert_layout(&mut browser, "cards", size.0);
        browser.save_screenshot(&format!("charts-cards-{}-dark.png", size.0));
    }
    browser.evaluate("document.querySelectorAll('.card input')[0].click()");
    browser.evaluate("document.querySelectorAll('.card input')[1].click()");
    browser.evaluate(&format!("{button}.click()"));
    browser.wait_for("document.querySelector('h1').textContent === 'Compare 2 runs'");
    browser.assert_clean(server.host());
}

#[test]
fn an_unknown_run_is_one_error() {
    let temp = temp_dir();
    some_runs(temp.path());
    let server = Server::watch(temp.path(), "");
    let Some(mut browser) = open(&server, "run/nothing/metrics") else {
        return;
    };
    for page in [
        "run/nothing",
        "play/nothing",
        compare(&["catch-h5-seed1", "nothing"]).as_str(),
    ] {
        browser.open(&format!("{}#/{page}", server.address), SIZES[1], "light");
        browser.wait_for("document.querySelector('.error-page')");
        let text = text(&mut browser, "document.querySelector('main').innerText");
        assert_eq!(text.matches("run `nothing` not found").count(), 1, "{text}");
        assert_eq!(
            browser.evaluate("document.querySelectorAll('.chart, [role=tab]').length"),
            0
        );
        assert_layout(&mut browser, page, SIZES[1].0);
    }
    // The way back.
    browser.evaluate("document.querySelector('.error-page a').click()");
    browser.wait_for("document.querySelectorAll('tbody tr').length === 4");
}

#[test]
fn without_any_run_the_page_says_what_to_type() {
    let temp = temp_dir();
    let mut watch = rem();
    // The default directory need not exist yet.
    let server = Server::run(watch.arg("watch").current_dir(temp.path()));
    let Some(mut browser) = open(&server, "") else {
        return;
    };
    browser.wait_for("document.querySelector('.commands code')?.textContent === 'rem train'");
    for size in SIZES {
        browser.open(&server.address, size, "dark");
        browser.wait_for("document.querySelector('.commands')");
        assert_layout(&mut browser, "no runs", size.0);
        browser.save_screenshot(&format!("charts-no-runs-{}-dark.png", size.0));
    }
    let words = ["train", "--preset", "debug"];
    let words = words.into_iter().chain(BRIEF.split_whitespace());
    succeeds(rem().args(words).current_dir(temp.path()));
    browser.wait_for("document.querySelectorAll('tbody tr').length === 1");
    browser.assert_clean(server.host());
}
