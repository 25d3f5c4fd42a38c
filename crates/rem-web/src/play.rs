//! Play sessions over a WebSocket: a human or the agent, in the real environment or in a dream.
//!
//! The protocol is strictly request and response, so the page sets the pace. A page that does not read is disconnected.

mod bench;
mod command;
mod session;
mod timeline;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use rem::threads;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::ApiError;
use crate::inference::AgentCache;
use crate::message;
pub use bench::time_dream_steps;
use command::Command;
use session::Session;

/// The size limit of a command.
const MAX_COMMAND_BYTES: usize = 4096;

/// A page that takes longer to read a response is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// A page that sends nothing for this long is disconnected.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);

/// One permit per open session.
pub(crate) fn session_slots() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(4))
}

/// Upgrades a request to the WebSocket of a new session.
pub(crate) fn accept(
    upgrade: WebSocketUpgrade,
    run: PathBuf,
    agents: Arc<AgentCache>,
    slots: Arc<Semaphore>,
) -> Result<Response, ApiError> {
    let slot = slots
        .try_acquire_owned()
        .map_err(|_| ApiError::TooMany("play sessions"))?;
    let upgrade = upgrade
        .max_message_size(MAX_COMMAND_BYTES)
        .max_frame_size(MAX_COMMAND_BYTES);
    Ok(upgrade.on_upgrade(move |socket| handle_socket(socket, run, agents, slot)))
}

/// A command and the channel for its response.
type Request = (String, oneshot::Sender<Vec<u8>>);

async fn handle_socket(
    mut socket: WebSocket,
    run: PathBuf,
    agents: Arc<AgentCache>,
    slot: OwnedSemaphorePermit,
) {
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        run_session(run, agents, requests);
        drop(slot);
    });
    while let Ok(Some(Ok(message))) = tokio::time::timeout(IDLE_TIMEOUT, socket.recv()).await {
        let Message::Text(text) = message else {
            continue;
        };
        let (respond, response) = oneshot::channel();
        if sender.send((text.to_string(), respond)).is_err() {
            break;
        }
        let Ok(response) = response.await else {
            break;
        };
        let sent = socket.send(Message::Binary(response.into()));
        if !matches!(tokio::time::timeout(WRITE_TIMEOUT, sent).await, Ok(Ok(()))) {
            break;
        }
    }
}

/// Handles requests until the socket is closed.
fn run_session(run: PathBuf, agents: Arc<AgentCache>, requests: mpsc::Receiver<Request>) {
    let agent = match agents.load(&run) {
        Ok(agent) => agent,
        Err(error) => {
            let response = error_message(&error);
            requests
                .into_iter()
                .for_each(|(_, respond)| drop(respond.send(response.clone())));
            return;
        }
    };
    let mut session = Session::new(&agent, &run);
    for (text, respond) in requests {
        let command = serde_json::from_str::<Command>(&text);
        let command =
            command.map_err(|error| ApiError::BadRequest(format!("invalid command: {error}")));
        let result = command.and_then(|command| threads::on_worker(|| session.handle(command)));
        // Sending fails if the page was closed meanwhile.
        let _ = respond.send(result.unwrap_or_else(|error| error_message(&error)));
    }
}

fn error_message(error: &ApiError) -> Vec<u8> {
    let header = json!({"type": "error", "error": error.to_string(), "hint": error.hint()});
    message::encode(&header, &[])
}
