//! The web server and page behind `rem watch` and `rem play`.
//!
//! [`serve`] lists the runs in some directories and shows them in the browser: metrics while a run trains,
//! reconstructions and codebook of the tokenizer, imagined next to real frames, policy and value along replay episodes,
//! and play sessions in the real environment or in the world model.
//!
//! # Layers
//!
//! - `guard` and `connections` decide who is served: `Host`, `Origin` and token checks, timeouts.
//! - `routes` maps addresses to handlers, `assets` serves the page, `events` streams run updates (server-sent events).
//! - `run` reads run directories. It is the only way from an address to a file.
//! - `inference` loads the agent of the last checkpoint and answers queries that need it.
//! - `play` runs interactive sessions over a WebSocket.
//!
//! The server never writes to a run directory and takes no lock. Agents run in this process, on demand, so training is
//! not affected.
//!
//! # Example
//!
//! ```no_run
//! use rem_web::{Options, serve};
//!
//! let options = Options {
//!     paths: vec!["runs".into()],
//!     address: ([127, 0, 0, 1], 7357).into(),
//!     token: None,
//! };
//! serve(options, |address| println!("http://{address}/"))?;
//! # Ok::<(), std::io::Error>(())
//! ```

// Only `rem-cli` prints. A closed or full stdout or stderr must not end the process.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod assets;
mod connections;
mod error;
mod events;
mod guard;
mod inference;
mod message;
mod play;
mod routes;
mod run;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;

use guard::Guard;
pub use guard::Token;
use inference::AgentCache;
pub use play::time_dream_steps;
use routes::AppState;
use run::{RunIndex, SummaryCache};

/// What to serve, where, and to whom.
#[derive(Clone, Debug)]
pub struct Options {
    /// Run directories, and directories that contain them.
    pub paths: Vec<PathBuf>,
    /// The address to listen on. Port 0 picks a free port.
    pub address: SocketAddr,
    /// The token that requests must carry. Required unless `address` is a loopback address.
    pub token: Option<Token>,
}

/// Serves until Ctrl-C or SIGTERM. Calls `ready` with the bound address once the server accepts connections.
///
/// # Errors
///
/// If the address cannot be bound or a signal cannot be handled.
///
/// # Panics
///
/// If `address` is not a loopback address and there is no token.
pub fn serve(options: Options, ready: impl FnOnce(SocketAddr)) -> io::Result<()> {
    assert!(
        options.address.ip().is_loopback() || options.token.is_some(),
        "a non-loopback address needs a token"
    );
    // One thread is enough for the network; inference runs on others.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(options.address).await?;
        let address = listener.local_addr()?;
        let state = AppState {
            runs: Arc::new(RunIndex::new(options.paths)),
            summaries: Arc::new(SummaryCache::default()),
            agents: Arc::new(AgentCache::default()),
            sessions: play::session_slots(),
            streams: events::stream_slots(),
        };
        ready(address);
        let router = routes::router(state, Guard::new(options.token, address.port()));
        // No graceful shutdown: the event stream of an open page would keep the server alive.
        tokio::select! {
            () = connections::serve(listener, router) => Ok(()),
            stopped = tokio::signal::ctrl_c() => stopped,
            terminated = terminated() => terminated,
        }
    })
}

/// Waits for SIGTERM.
#[cfg(unix)]
async fn terminated() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    signal(SignalKind::terminate())?.recv().await;
    Ok(())
}

/// Other systems have no such signal.
#[cfg(not(unix))]
async fn terminated() -> io::Result<()> {
    std::future::pending().await
}
