//! The files of the page: embedded in release builds, read from `assets/` on every request in debug builds.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

use crate::error::ApiError;

#[derive(RustEmbed)]
#[folder = "assets/"]
struct Assets;

/// `GET /`
pub(crate) async fn index() -> Result<Response, ApiError> {
    serve("index.html")
}

/// `GET /assets/{path}`
pub(crate) async fn file(Path(path): Path<String>) -> Result<Response, ApiError> {
    serve(&path)
}

fn serve(path: &str) -> Result<Response, ApiError> {
    let file = Assets::get(path).ok_or_else(|| ApiError::NotFound("file".into()))?;
    let content_type = match path.rsplit_once('.') {
        Some((_, "html")) => "text/html; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        _ => "text/javascript; charset=utf-8",
    };
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    Ok((headers, file.data.into_owned()).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn files() -> BTreeMap<String, String> {
        let read = |path: std::borrow::Cow<str>| {
            let file = Assets::get(&path).unwrap();
            (
                path.into_owned(),
                String::from_utf8(file.data.into_owned()).unwrap(),
            )
        };
        Assets::iter().map(read).collect()
    }

    /// The path of `target`, relative to the file `from`.
    fn resolve(from: &str, target: &str) -> String {
        let mut parts: Vec<&str> = from.split('/').collect();
        parts.pop();
        for part in target.split('/') {
            match part {
                "." => {}
                ".." => drop(parts.pop().expect("imports stay inside `assets/`")),
                name => parts.push(name),
            }
        }
        parts.join("/")
    }

    /// The files that a file refers to: imports of modules, `/assets/…` of the HTML page.
    fn references(name: &str, text: &str) -> Vec<String> {
        let quoted = |rest: &str| rest.split('"').next().unwrap().to_owned();
        let imports = text.split(" from \"").skip(1);
        let imports = imports.map(|rest| resolve(name, &quoted(rest)));
        let absolute = text.split("\"/assets/").skip(1).map(quoted);
        imports.chain(absolute).collect()
    }

    #[test]
    fn referenced_files_exist_and_every_file_is_referenced() {
        let files = files();
        let mut unused: Vec<&String> = files.keys().filter(|name| *name != "index.html").collect();
        for (name, text) in &files {
            for target in references(name, text) {
                assert!(files.contains_key(&target), "{name}: {target} is missing");
                unused.retain(|file| **file != target);
            }
        }
        assert!(unused.is_empty(), "unused: {unused:?}");
    }

    #[test]
    fn no_file_refers_to_another_host() {
        for (name, text) in files() {
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
