//! Why a request gets no answer, in words for the page.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("there is no {0}")]
    Missing(String),
    /// The run's files do not allow it, now or at all.
    #[error("{reason}")]
    Run {
        reason: String,
        hint: Option<String>,
    },
    #[error("{0}")]
    Asked(String),
    #[error("too many {0} are open; close one and try again")]
    Busy(&'static str),
}

impl Failure {
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Run { hint, .. } => hint.as_deref(),
            _ => None,
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Missing(_) => StatusCode::NOT_FOUND,
            Self::Run { .. } => StatusCode::CONFLICT,
            Self::Asked(_) => StatusCode::BAD_REQUEST,
            Self::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl From<rem::error::Error> for Failure {
    fn from(error: rem::error::Error) -> Self {
        Self::Run {
            reason: error.to_string(),
            hint: error.hint(),
        }
    }
}

impl From<rem::replay::ReplayError> for Failure {
    fn from(error: rem::replay::ReplayError) -> Self {
        rem::error::Error::from(error).into()
    }
}

impl From<rem::env::EnvError> for Failure {
    fn from(error: rem::env::EnvError) -> Self {
        rem::error::Error::from(error).into()
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = json!({"error": self.to_string(), "hint": self.hint()});
        (self.status(), Json(body)).into_response()
    }
}
