//! Chromium for tests, driven over the DevTools protocol.
//!
//! [`find`] locates a browser, [`Browser`] opens pages, sends keys and clicks, evaluates JavaScript, and records console
//! errors and network requests. It has only what our tests need, so it stays far smaller than a WebDriver client. Methods
//! panic on failure, which fails the test.
//!
//! # Example
//!
//! ```no_run
//! use rem_browser::Browser;
//!
//! if let Some(program) = rem_browser::find() {
//!     let mut browser = Browser::start(&program);
//!     browser.open("http://127.0.0.1:7357/", (1280, 900), "light");
//!     browser.wait_for("document.querySelector('h1')?.textContent === 'Runs'");
//!     browser.assert_clean("127.0.0.1:7357");
//! }
//! ```

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

/// The time limit of a call, and of [`Browser::wait_for`].
const TIMEOUT: Duration = Duration::from_secs(60);

/// The browser for tests: `REM_BROWSER`, or a Chromium on the path.
///
/// Without one, prints that the test is skipped and returns `None`.
///
/// # Panics
///
/// If there is none and `REM_REQUIRE_BROWSER` is set, as in CI.
pub fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("REM_BROWSER") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut paths = std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    let found = paths.find(|path| path.is_file());
    if found.is_none() {
        let required = std::env::var_os("REM_REQUIRE_BROWSER").is_some();
        assert!(
            !required,
            "REM_REQUIRE_BROWSER is set, but there is no Chromium on the path; install `chromium`"
        );
        eprintln!("SKIPPED: no Chromium on the path; install `chromium`, or set REM_BROWSER");
    }
    found
}

/// A browser with one page. Killed on drop.
pub struct Browser {
    process: Child,
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    session: String,
    calls: u64,
    /// All DevTools events so far.
    pub events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    /// Starts a headless browser with a fresh profile.
    pub fn start(program: &Path) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut process = Command::new(program)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
            ])
            .args([
                "--no-first-run",
                "--disable-extensions",
                "--disable-background-networking",
            ])
            .args(["--hide-scrollbars", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = stderr
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.strip_prefix("DevTools listening on ")?.to_owned()))
            .expect("the browser prints its address");
        // Keep reading, so that the browser does not block on a full pipe.
        std::thread::spawn(move || stderr.for_each(drop));
        let (socket, _) = tungstenite::connect(address).unwrap();
        if let MaybeTlsStream::Plain(stream) = socket.get_ref() {
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        }
        let mut browser = Self {
            process,
            socket,
            session: String::new(),
            calls: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().unwrap().into();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Calls a DevTools method and returns its result.
    #[track_caller]
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        self.socket
            .send(Message::text(message.to_string()))
            .unwrap();
        loop {
            let mut message = self.receive();
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    fn receive(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.socket.read().expect("the browser responds in time") {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    /// Opens a page in a viewport of this size, with the color scheme `light` or `dark`, and waits until it is loaded.
    pub fn open(&mut self, address: &str, (width, height): (u32, u32), scheme: &str) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let dark = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", dark);
        // Navigation to another #fragment of the same document would not reload it.
        self.call("Page.navigate", json!({"url": "about:blank"}));
        self.wait_for("location.href === 'about:blank'");
        self.call("Page.navigate", json!({"url": address}));
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /// Waits until a JavaScript expression is true. Exceptions count as false, as for an element that does not exist yet.
    #[track_caller]
    pub fn wait_for(&mut self, expression: &str) {
        let started = Instant::now();
        let guarded =
            format!("(() => {{ try {{ return !!({expression}) }} catch {{ return false }} }})()");
        while self.evaluate(&guarded) != true {
            let page = "document.body ? document.body.innerText.slice(0, 2000) : ''";
            if started.elapsed() > TIMEOUT {
                panic!(
                    "timed out waiting for {expression}; page text: {}",
                    self.evaluate(page)
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses and releases a key, by its name in `KeyboardEvent.key`.
    pub fn press(&mut self, key: &str) {
        // The browser ignores Enter and letters without text.
        let text = match key {
            "Enter" => "\r",
            letter if letter.chars().count() == 1 => letter,
            _ => "",
        };
        let code = match key {
            "Enter" => 13,
            "Tab" => 9,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            letter => letter.to_uppercase().bytes().next().map_or(0, u32::from),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Clicks the center of the first element that matches a selector.
    #[track_caller]
    pub fn click(&mut self, selector: &str) {
        let center = self.evaluate(&format!(
            "(() => {{
                const element = document.querySelector({selector:?});
                element.scrollIntoView({{ block: 'center' }});
                const box = element.getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2];
            }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let (x, y) = (&center[0], &center[1]);
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Allows downloads, into a directory.
    pub fn allow_downloads(&mut self, dir: &Path) {
        let allow = json!({"behavior": "allow", "downloadPath": dir});
        self.call("Page.setDownloadBehavior", allow);
    }

    /// The value of a JavaScript expression. Promises are awaited.
    #[track_caller]
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters =
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut result = self.call("Runtime.evaluate", parameters);
        assert!(
            result.get("exceptionDetails").is_none(),
            "{expression}: {result}"
        );
        result["result"]["value"].take()
    }

    /// A screenshot of the visible part of the page as a PNG file.
    pub fn screenshot_of_viewport(&mut self) -> Vec<u8> {
        self.capture(json!({"format": "png"}))
    }

    /// A screenshot of the whole page as a PNG file.
    pub fn screenshot(&mut self) -> Vec<u8> {
        // As for paper, the page draws what is not in view.
        self.evaluate("scrollTo(0, 0); dispatchEvent(new Event('beforeprint'))");
        self.capture(json!({"format": "png", "captureBeyondViewport": true}))
    }

    /// A screenshot of the first element that matches a selector, with a margin, as a PNG file.
    #[track_caller]
    pub fn screenshot_of(&mut self, selector: &str) -> Vec<u8> {
        const MARGIN: u32 = 12;
        let clip = self.evaluate(&format!(
            "(() => {{
                const box = document.querySelector({selector:?}).getBoundingClientRect();
                const [x, y] = [box.x + scrollX - {MARGIN}, box.y + scrollY - {MARGIN}];
                return {{ x, y, width: box.width + 2 * {MARGIN}, height: box.height + 2 * {MARGIN}, scale: 1 }};
            }})()"
        ));
        self.capture(json!({"format": "png", "captureBeyondViewport": true, "clip": clip}))
    }

    fn capture(&mut self, parameters: Value) -> Vec<u8> {
        let result = self.call("Page.captureScreenshot", parameters);
        BASE64_STANDARD
            .decode(result["data"].as_str().unwrap())
            .expect("screenshots are valid base64")
    }

    /// Writes a screenshot to `$REM_SCREENSHOTS`, if set.
    pub fn save_screenshot(&mut self, name: &str) {
        if let Some(dir) = std::env::var_os("REM_SCREENSHOTS") {
            let png = self.screenshot();
            std::fs::write(Path::new(&dir).join(name), png).unwrap();
        }
    }

    /// Uncaught exceptions and console messages.
    pub fn errors(&self) -> Vec<&Value> {
        let is_error = |event: &&Value| {
            let method = event["method"].as_str();
            matches!(
                method,
                Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded")
            )
        };
        self.events.iter().filter(is_error).collect()
    }

    /// Asserts that nothing was logged, and that all requests went to `host`.
    #[track_caller]
    pub fn assert_clean(&self, host: &str) {
        let errors = self.errors();
        assert!(errors.is_empty(), "{errors:#?}");
        let origins = [format!("http://{host}/"), format!("ws://{host}/")];
        for (kind, address) in self.requests() {
            let same_origin = origins.iter().any(|origin| address.starts_with(origin));
            assert!(
                same_origin || address.starts_with("blob:") || address == "about:blank",
                "{kind} {address}"
            );
        }
    }

    /// The text messages that pages sent over WebSockets.
    pub fn sent_messages(&self) -> Vec<&str> {
        let sent =
            (self.events.iter()).filter(|event| event["method"] == "Network.webSocketFrameSent");
        sent.filter_map(|event| event["params"]["response"]["payloadData"].as_str())
            .collect()
    }

    /// All requests: resource type (as `Document`) and URL.
    pub fn requests(&self) -> Vec<(&str, &str)> {
        fn type_and_url(event: &Value) -> Option<(&str, &str)> {
            let params = &event["params"];
            match event["method"].as_str()? {
                "Network.requestWillBeSent" => {
                    Some((params["type"].as_str()?, params["request"]["url"].as_str()?))
                }
                "Network.webSocketCreated" => Some(("WebSocket", params["url"].as_str()?)),
                _ => None,
            }
        }
        self.events.iter().filter_map(type_and_url).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
