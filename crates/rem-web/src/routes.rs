//! What can be asked of the server.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use rem::replay::archive::Archive;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::error::Failure;
use crate::guard::{Guard, guarded};
use crate::library::{Library, file_in, replay};
use crate::mind::{Mind, Minds, codebook, dream, episode};
use crate::run::{Details, Summaries, Summary, action_names};
use crate::{assets, events, play};

#[derive(Clone)]
pub struct App {
    pub library: Arc<Library>,
    pub summaries: Arc<Summaries>,
    pub minds: Arc<Minds>,
    pub sessions: Arc<Semaphore>,
    pub streams: Arc<Semaphore>,
}

pub fn router(app: App, guard: Guard) -> Router {
    Router::new()
        .route("/", get(assets::page))
        .route("/assets/{name}", get(assets::file))
        .route("/api/runs", get(runs))
        .route("/api/events", get(stream))
        .route("/api/runs/{run}", get(details))
        .route("/api/runs/{run}/media/{file}", get(media))
        .route("/api/runs/{run}/episodes", get(episodes))
        .route("/api/runs/{run}/episodes/{number}", get(one_episode))
        .route("/api/runs/{run}/dream", get(one_dream))
        .route("/api/runs/{run}/codebook", get(codes))
        .route("/api/runs/{run}/play", get(console))
        .fallback(async || Failure::Missing("such page".into()))
        .layer(middleware::from_fn_with_state(guard, guarded))
        .with_state(app)
}

impl App {
    /// The directory of a run.
    async fn dir(&self, name: &str) -> Result<PathBuf, Failure> {
        let (library, name) = (self.library.clone(), name.to_owned());
        on_disk(move || {
            let found = library.find(&name);
            found.ok_or_else(|| Failure::Missing(format!("run `{name}`")))
        })
        .await
    }
}

/// Work with files, away from the network's thread.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    spawn_blocking(work)
        .await
        .expect("reading files does not panic")
}

async fn runs(State(app): State<App>) -> Result<Json<Vec<Summary>>, Failure> {
    let read = move || Ok(app.summaries.of(&app.library.runs()));
    Ok(Json(on_disk(read).await?))
}

async fn details(
    State(app): State<App>,
    Path(run): Path<String>,
) -> Result<Json<Details>, Failure> {
    let dir = app.dir(&run).await?;
    Ok(Json(on_disk(move || Ok(Details::read(&run, &dir))).await?))
}

#[derive(Deserialize)]
struct Runs {
    /// A list of names in JSON.
    runs: String,
}

async fn stream(State(app): State<App>, Query(asked): Query<Runs>) -> Result<Response, Failure> {
    let names: BTreeSet<String> = serde_json::from_str(&asked.runs)
        .map_err(|error| Failure::Asked(format!("`runs` is no list of names: {error}")))?;
    if names.len() > events::MOST_RUNS {
        let most = events::MOST_RUNS;
        return Err(Failure::Asked(format!(
            "no more than {most} runs at a time"
        )));
    }
    let mut runs = Vec::new();
    for name in names {
        let dir = app.dir(&name).await?;
        runs.push((name, dir));
    }
    events::stream(runs, app.streams)
}

async fn media(
    State(app): State<App>,
    Path((run, file)): Path<(String, String)>,
) -> Result<Response, Failure> {
    let dir = app.dir(&run).await?;
    let missing = || Failure::Missing("such picture".into());
    let kind = match file.rsplit_once('.') {
        Some((_, "png")) => "image/png",
        Some((_, "gif")) => "image/gif",
        _ => return Err(missing()),
    };
    let bytes = on_disk(move || {
        let path = file_in(&dir, "media", &file).ok_or_else(missing)?;
        std::fs::read(path).map_err(|_| missing())
    });
    Ok(([(header::CONTENT_TYPE, kind)], bytes.await?).into_response())
}

async fn episodes(State(app): State<App>, Path(run): Path<String>) -> Result<Json<Value>, Failure> {
    let dir = app.dir(&run).await?;
    let list = on_disk(move || {
        let archive = replay(&dir);
        let lines: Vec<episode::Line> = archive.list().rev().map(Into::into).collect();
        Ok(json!({"episodes": lines, "problem": archive.problem}))
    });
    Ok(Json(list.await?))
}

#[derive(Deserialize)]
struct From {
    #[serde(default)]
    from: usize,
}

async fn one_episode(
    State(app): State<App>,
    Path((run, number)): Path<(String, usize)>,
    Query(From { from }): Query<From>,
) -> Result<Response, Failure> {
    let question = format!("episode {number} from {from}");
    let dir = app.dir(&run).await?;
    ask(app, &run, question, move |mind, archive| {
        let names = || action_names(&dir);
        episode::episode(mind, archive, names, number, from)
    })
    .await
}

async fn one_dream(
    State(app): State<App>,
    Path(run): Path<String>,
    Query(wanted): Query<dream::Wanted>,
) -> Result<Response, Failure> {
    let question = format!("{wanted:?}");
    ask(app, &run, question, move |mind, archive| {
        let mind = mind?;
        dream::dream(&mind, archive, &wanted)
    })
    .await
}

async fn codes(State(app): State<App>, Path(run): Path<String>) -> Result<Response, Failure> {
    ask(app, &run, "codebook".into(), |mind, archive| {
        let mind = mind?;
        codebook::codebook(&mind, archive)
    })
    .await
}

/// A run's mind, if it has one whose eyes fit its replay.
type OrNone = Result<Arc<Mind>, Failure>;

/// An envelope from a run's mind.
async fn ask(
    app: App,
    run: &str,
    question: String,
    think: impl FnOnce(OrNone, &Archive) -> Result<Vec<u8>, Failure> + Send + 'static,
) -> Result<Response, Failure> {
    let dir = app.dir(run).await?;
    let about = dir.clone();
    let thought = app.minds.ask(dir, question, move |mind| {
        let archive = replay(&about);
        let mind = mind.and_then(|mind| mind.fits(&archive).map(|()| mind));
        think(mind, &archive)
    });
    let answer = thought.await?;
    let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
    Ok((kind, answer.to_vec()).into_response())
}

async fn console(
    State(app): State<App>,
    Path(run): Path<String>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Failure> {
    let dir = app.dir(&run).await?;
    play::accept(upgrade, dir, app.minds, app.sessions)
}
