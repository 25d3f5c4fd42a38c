//! Access control: `Host`, `Origin`, `Sec-Fetch-Site` and token checks; the content security policy of the page.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Scripts, styles, images and connections of this server only; nothing inline.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Headers of every response.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
];

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A secret that requests must carry, in the query or in a cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A random token of 32 hexadecimal digits.
    pub fn generate() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the system provides randomness");
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// A token chosen by the user: at least eight letters and digits, so that it needs no escaping in URLs and cookies.
    ///
    /// # Errors
    ///
    /// If `text` is shorter or has other characters.
    pub fn new(text: &str) -> Result<Self, String> {
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        match plain && text.len() >= 8 {
            true => Ok(Self(text.into())),
            false => Err("a token must have at least 8 characters, only letters and digits".into()),
        }
    }

    /// The text of the token.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in constant time.
    fn matches(&self, guess: &str) -> bool {
        let (a, b) = (self.0.as_bytes(), guess.as_bytes());
        let differing = a.iter().zip(b).fold(0, |bits, (a, b)| bits | (a ^ b));
        a.len() == b.len() && differing == 0
    }
}

/// Checks whether a request may be served.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    token: Option<Token>,
    /// The name of the cookie with the token. It contains the port, because browsers share the cookies of a host between
    /// its ports.
    cookie: String,
}

/// Why a request is rejected.
#[derive(Debug, PartialEq)]
enum Refusal {
    Host,
    Origin,
    Token,
}

impl Guard {
    pub fn new(token: Option<Token>, port: u16) -> Self {
        Self {
            token,
            cookie: format!("rem-token-{port}"),
        }
    }

    fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let host = text(header::HOST).or(uri.authority().map(|authority| authority.as_str()));
        let host = host
            .filter(|host| is_local_name(host))
            .ok_or(Refusal::Host)?;
        // Any page may open a WebSocket to any host, but the browser sends its origin.
        let origin = text(header::ORIGIN);
        if origin.is_some_and(|origin| origin.strip_prefix("http://") != Some(host)) {
            return Err(Refusal::Origin);
        }
        // Any page may embed images and scripts of any host, but the browser sends the relation. `/` may be linked.
        let site = text(SEC_FETCH_SITE).unwrap_or("none");
        if !["same-origin", "none"].contains(&site) && uri.path() != "/" {
            return Err(Refusal::Origin);
        }
        let Some(token) = &self.token else {
            return Ok(());
        };
        let cookies = text(header::COOKIE).unwrap_or_default();
        let mut shown = cookies.split(';').filter_map(|c| c.trim().split_once('='));
        let known = shown.any(|(name, value)| name == self.cookie && token.matches(value));
        match known || query_token(uri).is_some_and(|guess| token.matches(guess)) {
            true => Ok(()),
            false => Err(Refusal::Token),
        }
    }
}

/// Whether a Host header is an IP address or `localhost`. Rejecting other names prevents DNS rebinding: a foreign page
/// could resolve its own name to this machine and read our responses.
fn is_local_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

fn query_token(uri: &Uri) -> Option<&str> {
    let pairs = uri
        .query()?
        .split('&')
        .filter_map(|pair| pair.split_once('='));
    pairs
        .into_iter()
        .find_map(|(key, value)| (key == "token").then_some(value))
}

/// The middleware around all routes.
pub(crate) async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let checked = guard.check(request.uri(), request.headers());
    let mut response = match checked {
        Err(refusal) => refusal.into_response(),
        // Move the token from the URL to a cookie, so that it does not stay in the history or get shared with a link.
        Ok(()) if query_token(request.uri()).is_some() => set_cookie(&guard),
        Ok(()) => next.run(request).await,
    };
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

fn set_cookie(guard: &Guard) -> Response {
    let token = guard.token.as_ref().map_or("", Token::as_str);
    let cookie = format!(
        "{}={token}; Path=/; HttpOnly; SameSite=Strict",
        guard.cookie
    );
    let headers = [
        (header::LOCATION, "/".to_owned()),
        (header::SET_COOKIE, cookie),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let text = match self {
            Self::Host => {
                "Open this page by IP address, as http://127.0.0.1:PORT/, or as localhost."
            }
            Self::Origin => "Cross-origin requests are not allowed.",
            Self::Token => {
                "Missing or wrong token. Open the URL that `rem` printed; it ends in ?token=…"
            }
        };
        (StatusCode::FORBIDDEN, text).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(guard: &Guard, uri: &str, headers: &[(HeaderName, &str)]) -> Result<(), Refusal> {
        let pairs = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()));
        guard.check(&uri.parse().unwrap(), &HeaderMap::from_iter(pairs))
    }

    #[test]
    fn only_ip_addresses_and_localhost_are_local_names() {
        for host in [
            "localhost:80",
            "LOCALHOST",
            "127.0.0.1:7070",
            "[::1]:7070",
            "192.168.0.4",
            "[::1]",
        ] {
            assert!(is_local_name(host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:80",
            "127.0.0.1.nip.io",
            "",
            "a:b",
            "127.0.0.1@evil",
        ] {
            assert!(!is_local_name(host), "{host}");
        }
    }

    #[test]
    fn foreign_origins_are_rejected() {
        let guard = Guard::new(None, 7070);
        let host = (header::HOST, "127.0.0.1:7070");
        let from = |origin| check(&guard, "/", &[host.clone(), (header::ORIGIN, origin)]);
        assert_eq!(from("http://127.0.0.1:7070"), Ok(()));
        for origin in [
            "http://evil.example",
            "http://127.0.0.1:8080",
            "null",
            "https://127.0.0.1:7070",
        ] {
            assert_eq!(from(origin), Err(Refusal::Origin), "{origin}");
        }
        assert_eq!(check(&guard, "/", &[]), Err(Refusal::Host));
    }

    #[test]
    fn cross_site_requests_reach_only_the_page_itself() {
        let guard = Guard::new(None, 7070);
        let host = (header::HOST, "127.0.0.1:7070");
        let fetched = |uri, site| check(&guard, uri, &[host.clone(), (SEC_FETCH_SITE, site)]);
        for site in ["same-origin", "none"] {
            assert_eq!(fetched("/api/runs", site), Ok(()), "{site}");
        }
        for site in ["cross-site", "same-site"] {
            assert_eq!(fetched("/api/runs", site), Err(Refusal::Origin), "{site}");
            assert_eq!(fetched("/", site), Ok(()), "{site}");
        }
    }

    #[test]
    fn a_token_is_required_in_the_query_or_the_cookie() {
        let guard = Guard::new(Some(Token::new("sesame123").unwrap()), 7070);
        let host = (header::HOST, "192.168.0.4:7070");
        let cookie = |text| check(&guard, "/", &[host.clone(), (header::COOKIE, text)]);
        assert_eq!(
            check(&guard, "/", std::slice::from_ref(&host)),
            Err(Refusal::Token)
        );
        assert_eq!(
            check(&guard, "/?token=sesame12", std::slice::from_ref(&host)),
            Err(Refusal::Token)
        );
        assert_eq!(
            check(&guard, "/?token=sesame123", std::slice::from_ref(&host)),
            Ok(())
        );
        assert_eq!(cookie("other=1; rem-token-7070=sesame123"), Ok(()));
        assert_eq!(cookie("rem-token-7070=sesame1234"), Err(Refusal::Token));
        assert_eq!(cookie("rem-token-7071=sesame123"), Err(Refusal::Token));
    }

    #[test]
    fn generated_tokens_are_long_and_unique() {
        assert_eq!(Token::generate().as_str().len(), 32);
        assert_ne!(Token::generate(), Token::generate());
        assert!(Token::new("short").is_err() && Token::new("with space").is_err());
    }
}
