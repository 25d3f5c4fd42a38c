//! The console: you or the agent, in the real game or in the dream, over a WebSocket.
//!
//! The page asks and the server answers, one message for one message, so the page sets the pace, and a page that does
//! not read is dropped when its answer cannot be delivered.

mod command;
mod pace;
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

use crate::envelope;
use crate::error::Failure;
use crate::mind::Minds;
use command::Command;
pub use pace::dreamed_steps;
use session::Session;

/// The longest message that a page has reason to send.
const MOST_BYTES: usize = 4096;

/// A page that takes longer to take in an answer is dropped.
const PATIENCE: Duration = Duration::from_secs(10);

/// A page that asks nothing for so long is gone.
const IDLE: Duration = Duration::from_secs(3600);

/// Consoles that may be open at a time.
pub fn seats() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(4))
}

pub fn accept(
    upgrade: WebSocketUpgrade,
    run: PathBuf,
    minds: Arc<Minds>,
    seats: Arc<Semaphore>,
) -> Result<Response, Failure> {
    let seat = seats
        .try_acquire_owned()
        .map_err(|_| Failure::Busy("consoles"))?;
    let upgrade = upgrade
        .max_message_size(MOST_BYTES)
        .max_frame_size(MOST_BYTES);
    Ok(upgrade.on_upgrade(move |socket| converse(socket, run, minds, seat)))
}

/// A question of the page, and where its answer goes.
type Asked = (String, oneshot::Sender<Vec<u8>>);

async fn converse(
    mut socket: WebSocket,
    run: PathBuf,
    minds: Arc<Minds>,
    seat: OwnedSemaphorePermit,
) {
    let (questions, asked) = mpsc::channel();
    std::thread::spawn(move || {
        think(run, minds, asked);
        drop(seat);
    });
    while let Ok(Some(Ok(message))) = tokio::time::timeout(IDLE, socket.recv()).await {
        let Message::Text(text) = message else {
            continue;
        };
        let (answer, answered) = oneshot::channel();
        if questions.send((text.to_string(), answer)).is_err() {
            break;
        }
        let Ok(answer) = answered.await else {
            break;
        };
        let sent = socket.send(Message::Binary(answer.into()));
        if !matches!(tokio::time::timeout(PATIENCE, sent).await, Ok(Ok(()))) {
            break;
        }
    }
}

/// Answers questions until nobody is left to ask them.
fn think(run: PathBuf, minds: Arc<Minds>, asked: mpsc::Receiver<Asked>) {
    let mind = match minds.of(&run) {
        Ok(mind) => mind,
        Err(failure) => {
            let sorry = refusal(&failure);
            asked
                .into_iter()
                .for_each(|(_, answer)| drop(answer.send(sorry.clone())));
            return;
        }
    };
    let mut session = Session::new(&mind, &run);
    for (text, answer) in asked {
        let command = serde_json::from_str::<Command>(&text);
        let command = command.map_err(|error| Failure::Asked(format!("not a command: {error}")));
        let done = command.and_then(|command| threads::on_worker(|| session.obey(command)));
        // Nobody waits for it any more if the page was closed meanwhile.
        let _ = answer.send(done.unwrap_or_else(|failure| refusal(&failure)));
    }
}

fn refusal(failure: &Failure) -> Vec<u8> {
    let about = json!({"is": "refusal", "error": failure.to_string(), "hint": failure.hint()});
    envelope::seal(&about, &[])
}
