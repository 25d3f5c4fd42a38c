//! The page of a study in Chromium: a grid of games and seeds that follows the runs while they train.

mod support;

use std::fs;

use rem_browser::Browser;
use support::study::*;
use support::web::Server;
use support::*;

const SIZES: [(u32, u32); 2] = [(1280, 900), (400, 800)];

/// The texts of the cells, row by row.
const CELLS: &str = "[...document.querySelectorAll('table.study td')].map(cell => cell.className)";

/// Whether a list of states has a state so many times.
fn count(state: &str) -> String {
    format!("{CELLS}.filter(state => state === '{state}').length")
}

#[test]
fn the_grid_of_a_study_follows_its_runs() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let temp = temp_dir();
    let runs = temp.path().join("runs");
    fs::create_dir(&runs).unwrap();
    let study = new_study(&runs, "paper", STUDY);
    let server = Server::watch(&runs, "");
    let mut browser = Browser::start(&program);
    // From the list of runs to the study, which has not started.
    browser.open(&server.address, SIZES[0], "light");
    let link = "document.querySelector('.studies a')";
    browser.wait_for(&format!("{link}?.textContent === 'paper'"));
    browser.evaluate(&format!("{link}.click()"));
    browser.wait_for("document.querySelectorAll('table.study tbody tr').length === 3");
    let heads =
        "[...document.querySelectorAll('table.study th')].map(cell => cell.textContent).join(' ')";
    assert_eq!(
        browser.evaluate(heads),
        "Game Seed 1 Seed 2 catch paddle crossing"
    );
    browser.wait_for(&format!("{} === 6", count("waiting")));

    // It follows the runs: some train, one fails, and in the end five are done.
    let replay = study.join("paddle-seed1/replay");
    fs::create_dir_all(&replay).unwrap();
    std::os::unix::fs::symlink("/dev/full", replay.join("epoch-000003.chunk.tmp")).unwrap();
    let mut pool = Process(start(&mut sweep("run", &study, "--jobs 1")));
    browser.wait_for(&format!("{} === 1", count("running")));
    browser.wait_for(&format!(
        "{} === 5 && {} === 1",
        count("done"),
        count("failed")
    ));
    pool.0.wait().unwrap();
    browser.wait_for(
        "document.querySelector('.notice')?.textContent.includes('paddle-seed1: ') \
         && document.querySelector('.notice').textContent.includes('free some disk space')",
    );
    let tiles = "[...document.querySelectorAll('.tile')].map(tile => tile.textContent).join(' ')";
    assert_eq!(browser.evaluate(tiles), "5done 0running 0waiting 1failed");
    browser.save_screenshot("study-live.png");
    // A cell has the score and leads to the run.
    browser.evaluate("document.querySelector('table.study td.done a').click()");
    browser.wait_for("document.querySelector('h1')?.textContent.includes('catch-seed1')");
    browser.assert_clean(server.host());
}

#[test]
fn variants_have_a_grid_each_at_both_widths_and_color_schemes() {
    let Some(program) = rem_browser::find() else {
        return;
    };
    let temp = temp_dir();
    let words =
        "--preset atari100k --games all --seeds 1..5 --grid preset=ablation-none,ablation-no-pop";
    let study = new_study(temp.path(), "wide", words);
    let server = Server::watch(&study, "");
    let mut browser = Browser::start(&program);
    for size in SIZES {
        for scheme in ["light", "dark"] {
            browser.open(&format!("{}#/study/wide", server.address), size, scheme);
            browser.wait_for(&format!("{} === 260", count("waiting")));
            let found = browser.evaluate(
                "({page: document.documentElement.scrollWidth, headings: document.querySelectorAll('h1').length,
                variants: [...document.querySelectorAll('h2')].map(h => h.textContent),
                rows: document.querySelectorAll('table.study tbody tr').length})",
            );
            assert!(found["page"].as_u64() <= Some(size.0.into()), "{found}");
            assert_eq!(found["headings"], 1);
            assert_eq!(
                found["variants"],
                serde_json::json!(["ablation-none", "ablation-no-pop"])
            );
            assert_eq!(found["rows"], 52);
            browser.save_screenshot(&format!("study-{}-{scheme}.png", size.0));
        }
    }
    // A study that does not exist.
    browser.open(
        &format!("{}#/study/other", server.address),
        SIZES[0],
        "light",
    );
    browser.wait_for("document.body.innerText.includes('study `other` not found')");
}
