//! A local web page: runs while they train, what their agents see and dream, and a console to play in both.
//!
//! The server reads run directories and writes nothing. Whatever needs an agent is computed on demand from the run's
//! last checkpoint, in this process, so that training is left alone.

mod assets;
mod connections;
mod envelope;
mod error;
mod events;
mod guard;
mod library;
mod mind;
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
use library::Library;
use mind::Minds;
pub use play::dreamed_steps;
use routes::App;
use run::Summaries;

/// What is served, and to whom.
#[derive(Clone, Debug)]
pub struct Options {
    /// Runs, and folders with runs in them.
    pub paths: Vec<PathBuf>,
    pub address: SocketAddr,
    /// Asked of every visitor, if there is one. On another address than loopback's there must be.
    pub token: Option<Token>,
}

/// Serves until Ctrl-C. `ready` is told the address once it can be opened.
///
/// # Panics
/// If other machines could come in without a token.
pub fn serve(options: Options, ready: impl FnOnce(SocketAddr)) -> io::Result<()> {
    assert!(
        options.address.ip().is_loopback() || options.token.is_some(),
        "other machines need a token"
    );
    // One thread is plenty for the network; agents think on others.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(options.address).await?;
        let address = listener.local_addr()?;
        let app = App {
            library: Arc::new(Library::new(options.paths)),
            summaries: Arc::new(Summaries::default()),
            minds: Arc::new(Minds::default()),
            sessions: play::seats(),
            streams: events::seats(),
        };
        ready(address);
        let router = routes::router(app, Guard::new(options.token, address.port()));
        // Not gracefully: a page that is open would keep its stream of events, and so the server, for ever.
        tokio::select! {
            () = connections::serve(listener, router) => Ok(()),
            stopped = tokio::signal::ctrl_c() => stopped,
        }
    })
}
