//! The page's files, compiled into the program.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use rem_report::theme::{Theme, variables};

use crate::error::Failure;

/// A file of `assets/` with its content type.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../assets/", $name)))),*]
    };
}

const FILES: &[(&str, &str)] = files![
    "app.css",
    "charts.css",
    "console.css",
    "api.js",
    "chart.js",
    "codebook.js",
    "compare.js",
    "console.js",
    "curves.js",
    "dom.js",
    "dream.js",
    "envelope.js",
    "episodes.js",
    "format.js",
    "icon.svg",
    "keys.js",
    "main.js",
    "moments.js",
    "pictures.js",
    "play.js",
    "run.js",
    "runs.js",
    "tokens.js",
];

pub async fn page() -> Response {
    answer(
        "text/html; charset=utf-8",
        include_str!("../assets/index.html").to_owned(),
    )
}

pub async fn file(Path(name): Path<String>) -> Result<Response, Failure> {
    if name == "theme.css" {
        return Ok(answer("text/css; charset=utf-8", theme()));
    }
    let file = FILES.iter().find(|(file, _)| *file == name);
    let (_, text) = file.ok_or_else(|| Failure::Missing("such file".into()))?;
    let kind = match name.rsplit_once('.') {
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        _ => "text/javascript; charset=utf-8",
    };
    Ok(answer(kind, (*text).to_owned()))
}

/// The colours of `rem report`, which anyone can tell apart: light, dark, and as the reader's system has it.
fn theme() -> String {
    let (light, dark) = (variables(Theme::Light), variables(Theme::Dark));
    format!(
        ":root{{color-scheme:light dark;{light}}}\n\
         @media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n\
         :root[data-scheme=light]{{color-scheme:light;{light}}}\n\
         :root[data-scheme=dark]{{color-scheme:dark;{dark}}}\n"
    )
}

fn answer(kind: &'static str, text: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every file that a page or a module names is there, and every file is named by one.
    #[test]
    fn files_that_are_named_are_there() {
        let page = include_str!("../assets/index.html");
        let texts: Vec<&str> = FILES.iter().map(|(_, text)| *text).chain([page]).collect();
        for (name, _) in FILES {
            let named = texts.iter().any(|text| {
                text.contains(&format!("\"./{name}\""))
                    || text.contains(&format!("\"/assets/{name}\""))
            });
            assert!(named, "nobody uses {name}");
        }
        for text in texts {
            for import in text.split("from \"./").skip(1) {
                let name = import.split('"').next().unwrap();
                assert!(
                    FILES.iter().any(|(file, _)| *file == name),
                    "{name} is missing"
                );
            }
        }
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let page = ("index.html", include_str!("../assets/index.html"));
        for (name, text) in FILES.iter().chain([&page]) {
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for scheme in ["http:", "https:", "@import", "url("] {
                assert!(!text.contains(scheme), "{name}: {scheme}");
            }
            // `//host` in quotes is an address too.
            for quote in ["\"//", "'//", "`//", "=//"] {
                assert!(!text.contains(quote), "{name}: {quote}");
            }
        }
    }
}
