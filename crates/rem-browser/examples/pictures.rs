//! The pictures of the documentation, from a run: `pictures REM RUN DIR` writes `watch.png`, `play.png` and `dream.png`.
//!
//! `scripts/make-pictures` builds and calls it.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rem_browser::Browser;

const SIZE: (u32, u32) = (1280, 900);
const PLAY_SIZE: (u32, u32) = (1280, 1100);
const STATUS: &str = "document.querySelector('.status').textContent";

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [rem, run, out] = &paths[..] else {
        return Err("usage: pictures REM RUN DIR".into());
    };
    let program = rem_browser::find().ok_or("no Chromium")?;
    let server = Server::start(rem, run)?;
    let mut browser = Browser::start(&program);
    let name = run.file_name().ok_or("the run has no name")?;
    let name = name.to_string_lossy();
    let save = |name: &str, png: Vec<u8>| std::fs::write(out.join(name), png);
    let page = |path: &str| format!("{}#/{path}", server.address);

    browser.open(&page(&format!("run/{name}/overview")), SIZE, "light");
    browser.wait_for("document.querySelector('svg, canvas') && document.body.innerText.includes('Time per phase')");
    settle(&mut browser);
    save("watch.png", browser.screenshot_of_viewport())?;

    browser.open(&page(&format!("run/{name}/dream")), SIZE, "light");
    browser.wait_for("document.querySelectorAll('.filmstrip .end').length === 1");
    settle(&mut browser);
    save("dream.png", browser.screenshot_of(".filmstrip"))?;

    // An episode in the dream with a branch, and a token under the cursor.
    browser.open(&page(&format!("play/{name}")), PLAY_SIZE, "light");
    browser.wait_for(&format!("{STATUS}.includes('Dream')"));
    let keys = [
        "ArrowRight",
        "ArrowRight",
        "ArrowLeft",
        "b",
        "b",
        "ArrowLeft",
        "ArrowRight",
        "i",
    ];
    for key in keys {
        browser.press(key);
        settle(&mut browser);
    }
    browser.wait_for("document.querySelectorAll('.alternatives canvas').length > 0");
    for key in ["ArrowRight", "ArrowRight", "ArrowDown"] {
        browser.press(key);
    }
    settle(&mut browser);
    save("play.png", browser.screenshot_of_viewport())?;
    Ok(())
}

/// Waits until requests are answered and drawn.
fn settle(browser: &mut Browser) {
    browser.evaluate("new Promise((resolve) => setTimeout(resolve, 500))");
}

/// `rem watch` on a run. Killed on drop.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(rem: &Path, run: &Path) -> Result<Self, Box<dyn Error>> {
        let mut process = Command::new(rem)
            .args(["watch", "--port", "0"])
            .arg(run)
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = process.stdout.take().ok_or("no standard output")?;
        let mut server = Self {
            process,
            address: String::new(),
        };
        BufReader::new(stdout).read_line(&mut server.address)?;
        server.address.truncate(server.address.trim_end().len());
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
