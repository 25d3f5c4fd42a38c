//! The routes of the server.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use rem::data::replay::archive::Archive;
use rem_run::layout;
use rem_run::metrics::{METRICS, Metric};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::error::ApiError;
use crate::guard::{self, Guard};
use crate::inference::{AgentCache, InferenceAgent, codebook, dream, episode};
use crate::run::{
    ConfigDifferences, Details, RunIndex, StudyStatus, Summary, SummaryCache, action_names,
    file_in, replay,
};
use crate::{assets, events, play};

/// The state that handlers share.
#[derive(Clone)]
pub(crate) struct AppState {
    /// The served runs.
    pub runs: Arc<RunIndex>,
    /// Their summaries.
    pub summaries: Arc<SummaryCache>,
    /// The loaded agents.
    pub agents: Arc<AgentCache>,
    /// One permit per play session.
    pub sessions: Arc<Semaphore>,
    /// One permit per event stream.
    pub streams: Arc<Semaphore>,
}

/// All routes, behind the guard.
pub(crate) fn router(state: AppState, guard: Guard) -> Router {
    Router::new()
        .route("/", get(assets::index))
        .route("/assets/{*path}", get(assets::file))
        .route("/api/runs", get(list_runs))
        .route("/api/studies", get(list_studies))
        .route("/api/studies/{study}", get(study_status))
        .route("/api/metrics", get(list_metrics))
        .route("/api/events", get(stream_events))
        .route("/api/differences", get(config_differences))
        .route("/api/runs/{run}", get(run_details))
        .route("/api/runs/{run}/media/{file}", get(media_file))
        .route("/api/runs/{run}/episodes", get(list_episodes))
        .route("/api/runs/{run}/episodes/{number}", get(get_episode))
        .route("/api/runs/{run}/dream", get(get_dream))
        .route("/api/runs/{run}/codebook", get(get_codebook))
        .route("/api/runs/{run}/play", get(open_session))
        .fallback(async || ApiError::NotFound("page".into()))
        .layer(middleware::from_fn_with_state(guard, guard::check))
        .with_state(state)
}

impl AppState {
    /// The directory of a run.
    async fn run_dir(&self, name: &str) -> Result<PathBuf, ApiError> {
        let (runs, name) = (self.runs.clone(), name.to_owned());
        blocking(move || {
            let dir = runs.find(&name);
            dir.ok_or_else(|| ApiError::NotFound(format!("run `{name}`")))
        })
        .await
    }
}

/// Reads files outside the network thread.
async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    spawn_blocking(read)
        .await
        .expect("reading files does not panic")
}

async fn list_runs(State(state): State<AppState>) -> Result<Json<Vec<Summary>>, ApiError> {
    let read = move || Ok(state.summaries.read(&state.runs.scan().runs));
    Ok(Json(blocking(read).await?))
}

/// Units and descriptions of all metrics.
async fn list_metrics() -> Json<Vec<Value>> {
    let metric = |metric: &Metric| {
        json!({
            "phase": metric.phase.name(), "name": metric.name, "unit": metric.unit, "description": metric.description,
        })
    };
    Json(METRICS.iter().map(metric).collect())
}

async fn list_studies(State(state): State<AppState>) -> Result<Json<Vec<String>>, ApiError> {
    let read = move || Ok(state.runs.scan().studies.into_keys().collect());
    Ok(Json(blocking(read).await?))
}

async fn study_status(
    State(state): State<AppState>,
    Path(study): Path<String>,
) -> Result<Json<StudyStatus>, ApiError> {
    let read = move || {
        let found = state.runs.scan();
        StudyStatus::read(&study, &found)
            .unwrap_or_else(|| Err(ApiError::NotFound(format!("study `{study}`"))))
    };
    Ok(Json(blocking(read).await?))
}

async fn run_details(
    State(state): State<AppState>,
    Path(run): Path<String>,
) -> Result<Json<Details>, ApiError> {
    let dir = state.run_dir(&run).await?;
    Ok(Json(blocking(move || Ok(Details::read(&run, &dir))).await?))
}

#[derive(Deserialize)]
struct RunsQuery {
    /// A JSON array of names.
    runs: String,
}

impl RunsQuery {
    /// The names and directories of the runs, each once.
    async fn find(&self, state: &AppState) -> Result<Vec<(String, PathBuf)>, ApiError> {
        let names: BTreeSet<String> = serde_json::from_str(&self.runs).map_err(|error| {
            ApiError::BadRequest(format!("`runs` is not a JSON array of names: {error}"))
        })?;
        if names.len() > events::MAX_RUNS {
            let max = events::MAX_RUNS;
            return Err(ApiError::BadRequest(format!("more than {max} runs")));
        }
        let mut runs = Vec::new();
        for name in names {
            let dir = state.run_dir(&name).await?;
            runs.push((name, dir));
        }
        Ok(runs)
    }
}

async fn stream_events(
    State(state): State<AppState>,
    Query(query): Query<RunsQuery>,
) -> Result<Response, ApiError> {
    let runs = query.find(&state).await?;
    events::stream(runs, state.streams)
}

async fn config_differences(
    State(state): State<AppState>,
    Query(query): Query<RunsQuery>,
) -> Result<Json<ConfigDifferences>, ApiError> {
    let runs = query.find(&state).await?;
    Ok(Json(
        blocking(move || Ok(ConfigDifferences::read(&runs))).await?,
    ))
}

async fn media_file(
    State(state): State<AppState>,
    Path((run, file)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let dir = state.run_dir(&run).await?;
    let not_found = || ApiError::NotFound("image".into());
    let content_type = match file.rsplit_once('.') {
        Some((_, "png")) => "image/png",
        Some((_, "gif")) => "image/gif",
        _ => return Err(not_found()),
    };
    let bytes = blocking(move || {
        let path = file_in(&dir, layout::MEDIA, &file).ok_or_else(not_found)?;
        std::fs::read(path).map_err(|_| not_found())
    });
    Ok(([(header::CONTENT_TYPE, content_type)], bytes.await?).into_response())
}

async fn list_episodes(
    State(state): State<AppState>,
    Path(run): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let dir = state.run_dir(&run).await?;
    let list = blocking(move || {
        let archive = replay(&dir);
        let episodes: Vec<episode::EpisodeSummary> = archive.list().rev().map(Into::into).collect();
        Ok(json!({"episodes": episodes, "problem": archive.problem}))
    });
    Ok(Json(list.await?))
}

#[derive(Deserialize)]
struct EpisodeQuery {
    #[serde(default)]
    from: usize,
}

async fn get_episode(
    State(state): State<AppState>,
    Path((run, number)): Path<(String, usize)>,
    Query(EpisodeQuery { from }): Query<EpisodeQuery>,
) -> Result<Response, ApiError> {
    let key = format!("episode {number} from {from}");
    let dir = state.run_dir(&run).await?;
    infer(state, &run, key, move |agent, archive| {
        let names = || action_names(&dir);
        episode::episode(agent, archive, names, number, from)
    })
    .await
}

async fn get_dream(
    State(state): State<AppState>,
    Path(run): Path<String>,
    Query(query): Query<dream::DreamQuery>,
) -> Result<Response, ApiError> {
    let key = format!("{query:?}");
    infer(state, &run, key, move |agent, archive| {
        let agent = agent?;
        dream::dream(&agent, archive, &query)
    })
    .await
}

async fn get_codebook(
    State(state): State<AppState>,
    Path(run): Path<String>,
) -> Result<Response, ApiError> {
    infer(state, &run, "codebook".into(), |agent, archive| {
        let agent = agent?;
        codebook::codebook(&agent, archive)
    })
    .await
}

/// The agent of a run, if it can be loaded and fits the replay.
type AgentResult = Result<Arc<InferenceAgent>, ApiError>;

/// A response computed with the agent of a run, cached by `key`.
async fn infer(
    state: AppState,
    run: &str,
    key: String,
    compute: impl FnOnce(AgentResult, &Archive) -> Result<Vec<u8>, ApiError> + Send + 'static,
) -> Result<Response, ApiError> {
    let dir = state.run_dir(run).await?;
    let replay_of = dir.clone();
    let response = state.agents.respond(dir, key, move |agent| {
        let archive = replay(&replay_of);
        let agent = agent.and_then(|agent| agent.check_frame_size(&archive).map(|()| agent));
        compute(agent, &archive)
    });
    let response = response.await?;
    let content_type = [(header::CONTENT_TYPE, "application/octet-stream")];
    Ok((content_type, response.to_vec()).into_response())
}

async fn open_session(
    State(state): State<AppState>,
    Path(run): Path<String>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, ApiError> {
    let dir = state.run_dir(&run).await?;
    play::accept(upgrade, dir, state.agents, state.sessions)
}
