//! Chromium for tests, driven over its DevTools protocol: it opens a page, presses keys, tells what is there and what
//! was complained about.

mod base64;

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

/// Longest time that the browser may take for one thing.
const PATIENCE: Duration = Duration::from_secs(60);

/// The browser that tests use: `REM_BROWSER`, or a Chromium on the path. Where there is none the test is skipped with a
/// word, unless `REM_REQUIRE_BROWSER` is set, as it is in CI.
pub fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("REM_BROWSER") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut places = std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    let found = places.find(|place| place.is_file());
    if found.is_none() {
        let required = std::env::var_os("REM_REQUIRE_BROWSER").is_some();
        assert!(
            !required,
            "REM_REQUIRE_BROWSER is set, and there is no Chromium: install Debian's `chromium`"
        );
        eprintln!(
            "SKIPPED: no Chromium on the path; install Debian's `chromium`, or name a browser by REM_BROWSER"
        );
    }
    found
}

/// A browser with one empty page.
pub struct Browser {
    process: Child,
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    session: String,
    calls: u64,
    /// Everything that it told without being asked.
    pub events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
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
        let mut said = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = said
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.strip_prefix("DevTools listening on ")?.to_owned()))
            .expect("the browser tells its address");
        // It must not stop at a full pipe.
        std::thread::spawn(move || said.for_each(drop));
        let (socket, _) = tungstenite::connect(address).unwrap();
        if let MaybeTlsStream::Plain(stream) = socket.get_ref() {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
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

    /// Calls a method and waits for its answer.
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
            let mut answer = self.receive();
            if answer["id"] == id {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    fn receive(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.socket.read().expect("the browser answers in time") {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    /// Opens a page of so many pixels and waits until it is loaded.
    pub fn open(&mut self, address: &str, (width, height): (u32, u32), scheme: &str) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let dark = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", dark);
        // A page of the same document with another #fragment would not be loaded anew.
        self.call("Page.navigate", json!({"url": "about:blank"}));
        self.wait_for("location.href === 'about:blank'");
        self.call("Page.navigate", json!({"url": address}));
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /// Waits until an expression of JavaScript is true; one that fails, as on an element that is not there yet, is not.
    #[track_caller]
    pub fn wait_for(&mut self, expression: &str) {
        let started = Instant::now();
        let asked =
            format!("(() => {{ try {{ return !!({expression}) }} catch {{ return false }} }})()");
        while self.evaluate(&asked) != true {
            let page = "document.body ? document.body.innerText.slice(0, 2000) : ''";
            if started.elapsed() > PATIENCE {
                panic!(
                    "waited in vain for {expression}; the page: {}",
                    self.evaluate(page)
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses and releases a key, by its name in `KeyboardEvent.key`.
    pub fn press(&mut self, key: &str) {
        // Enter and the letters are also text, without which the browser does not act on them.
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

    /// Clicks with the mouse into the middle of the first element that a selector finds.
    #[track_caller]
    pub fn click(&mut self, selector: &str) {
        let middle = self.evaluate(&format!(
            "(() => {{
                const element = document.querySelector({selector:?});
                element.scrollIntoView({{ block: 'center' }});
                const box = element.getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2];
            }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let (x, y) = (&middle[0], &middle[1]);
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Lets pages save files into a folder.
    pub fn download_into(&mut self, folder: &Path) {
        let allow = json!({"behavior": "allow", "downloadPath": folder});
        self.call("Page.setDownloadBehavior", allow);
    }

    /// The value of an expression of JavaScript.
    #[track_caller]
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", asked);
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].take()
    }

    /// What is shown, as the bytes of a PNG file.
    pub fn screenshot(&mut self) -> Vec<u8> {
        let whole = json!({"format": "png", "captureBeyondViewport": true});
        let answer = self.call("Page.captureScreenshot", whole);
        base64::decode(answer["data"].as_str().unwrap())
    }

    /// With `REM_SCREENSHOTS=DIR`, what is shown is kept there.
    pub fn keep_screenshot(&mut self, name: &str) {
        if let Some(dir) = std::env::var_os("REM_SCREENSHOTS") {
            let png = self.screenshot();
            std::fs::write(Path::new(&dir).join(name), png).unwrap();
        }
    }

    /// Errors and warnings, thrown or on the console.
    pub fn errors(&self) -> Vec<&Value> {
        let bad = |event: &&Value| {
            let method = event["method"].as_str();
            matches!(
                method,
                Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded")
            )
        };
        self.events.iter().filter(bad).collect()
    }

    /// No error was logged, and `host` was the only one that was asked for anything.
    #[track_caller]
    pub fn assert_clean(&self, host: &str) {
        let errors = self.errors();
        assert!(errors.is_empty(), "{errors:#?}");
        let home = [format!("http://{host}/"), format!("ws://{host}/")];
        for (kind, address) in self.requests() {
            let ours = home.iter().any(|home| address.starts_with(home));
            assert!(
                ours || address.starts_with("blob:") || address == "about:blank",
                "{kind} {address}"
            );
        }
    }

    /// The texts that pages sent over WebSockets.
    pub fn messages(&self) -> Vec<&str> {
        let sent =
            (self.events.iter()).filter(|event| event["method"] == "Network.webSocketFrameSent");
        sent.filter_map(|event| event["params"]["response"]["payloadData"].as_str())
            .collect()
    }

    /// Everything that was asked of the network: its kind, as `Document`, and its address.
    pub fn requests(&self) -> Vec<(&str, &str)> {
        fn kind_and_address(event: &Value) -> Option<(&str, &str)> {
            let asked = &event["params"];
            match event["method"].as_str()? {
                "Network.requestWillBeSent" => {
                    Some((asked["type"].as_str()?, asked["request"]["url"].as_str()?))
                }
                "Network.webSocketCreated" => Some(("WebSocket", asked["url"].as_str()?)),
                _ => None,
            }
        }
        self.events.iter().filter_map(kind_and_address).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
