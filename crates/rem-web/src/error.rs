//! Errors of the API, as status codes and JSON.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a request or command fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// A run, file, episode or step does not exist.
    #[error("{0} not found")]
    NotFound(String),
    /// The run lacks a file, or one of its files is invalid.
    #[error("{reason}")]
    Run {
        reason: String,
        hint: Option<String>,
    },
    /// The request is invalid.
    #[error("{0}")]
    BadRequest(String),
    /// A limit on open connections is reached.
    #[error("too many open {0}; close one and try again")]
    TooMany(&'static str),
}

impl ApiError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Run { hint, .. } => hint.as_deref(),
            _ => None,
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Run { .. } => StatusCode::CONFLICT,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::TooMany(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl From<rem::Error> for ApiError {
    fn from(error: rem::Error) -> Self {
        Self::Run {
            reason: error.to_string(),
            hint: error.hint(),
        }
    }
}

impl From<rem_study::Error> for ApiError {
    fn from(error: rem_study::Error) -> Self {
        Self::Run {
            reason: error.to_string(),
            hint: error.hint(),
        }
    }
}

impl From<rem::data::replay::ReplayError> for ApiError {
    fn from(error: rem::data::replay::ReplayError) -> Self {
        rem::Error::from(error).into()
    }
}

impl From<rem::env::EnvError> for ApiError {
    fn from(error: rem::env::EnvError) -> Self {
        rem::Error::from(error).into()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({"error": self.to_string(), "hint": self.hint()});
        (self.status(), Json(body)).into_response()
    }
}
