//! The page in Chromium: complete and readable at desktop and phone width, light and dark, without console errors and
//! without network requests.

mod support;

use std::path::Path;

use rem_browser::Browser;
use serde_json::{Value, json};
use support::{change_config, quick, runs, write_losses};

const SIZES: [(u32, u32); 2] = [(1280, 900), (400, 800)];

/// Opens a file.
fn open(browser: &mut Browser, page: &Path, size: (u32, u32), scheme: &str) {
    let address = format!("file://{}", page.canonicalize().unwrap().display());
    browser.open(&address, size, scheme);
}

/// Network requests besides the page itself.
fn loaded(browser: &Browser) -> Vec<(&str, &str)> {
    let mut requests = browser.requests();
    requests.retain(|(kind, _)| *kind != "Document");
    requests
}

/// The visible figures, with their smallest font size and pairs of overlapping texts.
const FIGURES: &str = r#"
[...document.querySelectorAll('svg[role=img]')].filter(svg => svg.getClientRects().length).map(svg => {
  const texts = [...svg.querySelectorAll('text')].map(text => {
    const box = text.getBoundingClientRect();
    return {words: text.textContent, left: box.left, right: box.right, top: box.top, bottom: box.bottom};
  });
  const frame = svg.getBoundingClientRect();
  const on = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
  const collisions = [];
  texts.forEach((a, i) => texts.slice(i + 1).forEach(b => { if (on(a, b)) collisions.push(a.words + ' / ' + b.words); }));
  const out = texts.filter(t => t.left < frame.left - 1 || t.right > frame.right + 1
    || t.top < frame.top - 3 || t.bottom > frame.bottom + 3).map(t => t.words);
  const scale = frame.width / svg.viewBox.baseVal.width;
  const sizes = [...svg.querySelectorAll('text')].map(t => parseFloat(t.getAttribute('font-size')) * scale);
  return {
    title: svg.querySelector('title').textContent,
    named: svg.getAttribute('aria-labelledby').split(' ').every(id => document.getElementById(id)),
    texts: texts.length, smallest: Math.min(...sizes), collisions, out,
    width: frame.width, shapes: svg.querySelectorAll('polyline,rect,polygon,circle').length,
  };
})"#;

const TABLES: &str = r#"
[...document.querySelectorAll('table')].map(table => ({
  caption: document.getElementById(table.getAttribute('aria-labelledby')).textContent,
  rows: table.tBodies[0].rows.length,
  scoped: [...table.querySelectorAll('th')].every(th => th.scope),
  box: (box => ({focusable: box.tabIndex === 0, scrolls: getComputedStyle(box).overflowX === 'auto',
    labelled: !!document.getElementById(box.getAttribute('aria-labelledby'))}))(table.parentElement),
  letters: parseFloat(getComputedStyle(table).fontSize),
}))"#;

#[test]
fn the_page_is_readable_at_both_widths_and_color_schemes() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let dir = runs(place.path());
    for seed in 1..=3 {
        let run = dir.join(format!("pong-seed{seed}"));
        write_losses(&run, 1.0 + f64::from(seed), 1.5 + f64::from(seed));
        change_config(&run, "vocabulary = 512", "vocabulary = 256");
    }
    let pages = [
        ("runs", quick(&[&dir], &["paper"]).unwrap()),
        ("paper", quick(&[], &["paper"]).unwrap()),
        ("ablations", quick(&[], &["ablations"]).unwrap()),
        ("all", quick(&[], &["all", "ablations"]).unwrap()),
    ];
    let mut browser = Browser::start(&program);
    for (name, report) in &pages {
        let out = place.path().join(name);
        let written = rem_report::write(report, &out).unwrap();
        for (width, height) in SIZES {
            for scheme in ["light", "dark"] {
                open(&mut browser, &written.page, (width, height), scheme);
                let what = format!("{name} at {width} pixels, {scheme}");
                assert_layout(&mut browser, &what, width);
                assert_figures(&mut browser, &what, written.figures);
                assert_tables(&mut browser, &what, written.tables);
                assert_scheme(&mut browser, &what, scheme);
                browser.save_screenshot(&format!("{name}-{width}-{scheme}.png"));
            }
        }
    }
    let errors = browser.errors();
    assert!(errors.is_empty(), "{errors:#?}");
    assert_eq!(loaded(&browser), []);
}

/// The page does not scroll sideways, and has the landmarks that screen readers use.
fn assert_layout(browser: &mut Browser, what: &str, width: u32) {
    let found = browser.evaluate(
        r#"({inner: innerWidth, page: document.documentElement.scrollWidth, body: document.body.scrollWidth,
        language: document.documentElement.lang, headings: document.querySelectorAll('h1').length,
        main: document.querySelectorAll('main').length, scripts: document.scripts.length,
        links: [...document.querySelectorAll('nav a')].every(a => document.querySelector(a.getAttribute('href'))),
        wide: [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll') && !e.matches('.skip')
            && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))})"#,
    );
    assert_eq!(found["inner"], width, "{what}");
    assert!(
        found["page"].as_u64() <= Some(width.into()),
        "{what}: {found}"
    );
    assert!(
        found["body"].as_u64() <= Some(width.into()),
        "{what}: {found}"
    );
    assert_eq!(found["wide"], json!([]), "{what}");
    assert_eq!(found["language"], "en", "{what}");
    assert_eq!(
        [&found["headings"], &found["main"], &found["scripts"]],
        [&json!(1), &json!(1), &json!(0)],
        "{what}"
    );
    assert_eq!(found["links"], true, "{what}");
}

fn assert_figures(browser: &mut Browser, what: &str, expected: usize) {
    let figures = browser.evaluate(FIGURES);
    let figures = figures.as_array().unwrap();
    assert_eq!(figures.len(), expected, "{what}");
    for figure in figures {
        let title = &figure["title"];
        assert_eq!(figure["named"], true, "{what}, {title}");
        assert_eq!(
            figure["collisions"],
            json!([]),
            "{what}, {title}: texts overlap"
        );
        assert_eq!(figure["out"], json!([]), "{what}, {title}: texts overflow");
        assert!(
            figure["smallest"].as_f64() >= Some(11.0),
            "{what}, {title}: {figure}"
        );
        assert!(
            figure["texts"].as_u64() > Some(5) && figure["shapes"].as_u64() > Some(5),
            "{what}, {title}"
        );
        assert!(figure["width"].as_f64() > Some(300.0), "{what}, {title}");
    }
}

fn assert_tables(browser: &mut Browser, what: &str, expected: usize) {
    let tables = browser.evaluate(TABLES);
    let tables = tables.as_array().unwrap();
    assert_eq!(tables.len(), expected, "{what}");
    for table in tables {
        let expected = json!({"focusable": true, "scrolls": true, "labelled": true});
        assert_eq!(table["box"], expected, "{what}: {table}");
        assert_eq!(table["scoped"], true, "{what}: {table}");
        assert!(
            table["caption"]
                .as_str()
                .is_some_and(|text| text.len() > 20),
            "{what}: {table}"
        );
        assert!(
            table["rows"].as_u64() > Some(0) && table["letters"].as_f64() >= Some(13.0),
            "{what}: {table}"
        );
    }
}

/// Light text on a dark background, or the other way round, also in figures.
fn assert_scheme(browser: &mut Browser, what: &str, scheme: &str) {
    let found = browser.evaluate(
        r#"(() => {
        const light = color => color.match(/[\d.]+/g).slice(0, 3).reduce((sum, v) => sum + Number(v), 0) / 765;
        const text = [...document.querySelectorAll('svg text')].find(t => t.getClientRects().length);
        return [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,
            getComputedStyle(text).fill].map(light);
    })()"#,
    );
    let found: Vec<f64> = found
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_f64)
        .collect();
    let [ground, letters, in_figure] = found[..] else {
        panic!("{what}: {found:?}");
    };
    let good = match scheme {
        "dark" => ground < 0.2 && letters > 0.8 && in_figure > 0.6,
        _ => ground > 0.8 && letters < 0.2 && in_figure < 0.4,
    };
    assert!(good, "{what}: {found:?}");
}

/// The checks above detect console errors, network requests, overflow and overlapping texts.
#[test]
fn the_checks_detect_a_broken_page() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let page = place.path().join("bad.html");
    let bad = "<!doctype html><html lang=en><body><div style='width:900px'>wide</div><img src=absent.png>\
        <svg role=img aria-labelledby=t viewBox='0 0 100 100' width=100><title id=t>T</title>\
        <text x=1 y=50 font-size=9>one</text><text x=5 y=52 font-size=9>two</text></svg>\
        <script>console.error('no'); missing()</script></body></html>";
    std::fs::write(&page, bad).unwrap();
    let mut browser = Browser::start(&program);
    open(&mut browser, &page, (400, 800), "light");
    let overflow = browser.evaluate("document.documentElement.scrollWidth > 400");
    let figure = browser.evaluate(FIGURES)[0].take();
    assert_eq!(overflow, true);
    assert_eq!(figure["collisions"], json!(["one / two"]));
    assert!(figure["smallest"].as_f64() < Some(11.0));
    let methods: Vec<_> = (browser.errors().iter())
        .filter_map(|event| event["method"].as_str())
        .collect();
    for method in ["Runtime.exceptionThrown", "Runtime.consoleAPICalled"] {
        assert!(methods.contains(&method), "{method} in {methods:?}");
    }
    assert!(loaded(&browser)[0].1.ends_with("/absent.png"));
}
