//! Who may come in: names that only this machine answers to, the token, pages of our own; and what pages may do.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// The page runs our scripts, styles and pictures and speaks to us; nothing from elsewhere, nothing inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
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

const FETCHED_FOR: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A secret that visitors must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A new one that nobody can guess.
    pub fn generate() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the system has randomness");
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// One of the user's; letters and digits only, so that it stands in an address and a cookie as it is.
    pub fn new(text: &str) -> Result<Self, String> {
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        match plain && text.len() >= 8 {
            true => Ok(Self(text.into())),
            false => Err("a token has eight or more letters and digits, and nothing else".into()),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Takes as long for a wrong guess as for a right one of its length.
    fn is(&self, guess: &str) -> bool {
        let (a, b) = (self.0.as_bytes(), guess.as_bytes());
        let differing = a.iter().zip(b).fold(0, |bits, (a, b)| bits | (a ^ b));
        a.len() == b.len() && differing == 0
    }
}

#[derive(Clone, Debug)]
pub struct Guard {
    token: Option<Token>,
    /// The name of the cookie with the token. Browsers send a host's cookies to all of its ports, so it has ours in it.
    cookie: String,
}

/// What is answered instead of the page.
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
        let host = host.filter(|host| is_ours(host)).ok_or(Refusal::Host)?;
        // Browsers let any page open WebSockets to anywhere, but say who does.
        let origin = text(header::ORIGIN);
        if origin.is_some_and(|origin| origin.strip_prefix("http://") != Some(host)) {
            return Err(Refusal::Origin);
        }
        // Nor do they ask before they fetch pictures and scripts from anywhere, but say for whom. The page may be linked.
        let site = text(FETCHED_FOR).unwrap_or("none");
        if !["same-origin", "none"].contains(&site) && uri.path() != "/" {
            return Err(Refusal::Origin);
        }
        let Some(token) = &self.token else {
            return Ok(());
        };
        let cookies = text(header::COOKIE).unwrap_or_default();
        let mut shown = cookies.split(';').filter_map(|c| c.trim().split_once('='));
        let known = shown.any(|(name, value)| name == self.cookie && token.is(value));
        match known || asked_token(uri).is_some_and(|guess| token.is(guess)) {
            true => Ok(()),
            false => Err(Refusal::Token),
        }
    }
}

/// Whether a Host header names this machine in a way that nobody else can make it go by: a number or `localhost`. A page
/// elsewhere could point a name of its own at us and read what we answer.
fn is_ours(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

fn asked_token(uri: &Uri) -> Option<&str> {
    let pairs = uri
        .query()?
        .split('&')
        .filter_map(|pair| pair.split_once('='));
    pairs
        .into_iter()
        .find_map(|(key, value)| (key == "token").then_some(value))
}

/// The layer around all routes.
pub async fn guarded(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let asked = guard.check(request.uri(), request.headers());
    let mut response = match asked {
        Err(refusal) => refusal.into_response(),
        // The token goes from the address into a cookie, lest it stay in the history or be passed on with a link.
        Ok(()) if asked_token(request.uri()).is_some() => remembered(&guard),
        Ok(()) => next.run(request).await,
    };
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

fn remembered(guard: &Guard) -> Response {
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
                "Open this page by its number, as http://127.0.0.1:PORT/, or as localhost."
            }
            Self::Origin => "Only the page itself may ask.",
            Self::Token => {
                "A token is needed: open the address that `rem` printed, with ?token=… at its end."
            }
        };
        (StatusCode::FORBIDDEN, text).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(guard: &Guard, uri: &str, headers: &[(HeaderName, &str)]) -> Result<(), Refusal> {
        let pairs = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()));
        guard.check(&uri.parse().unwrap(), &HeaderMap::from_iter(pairs))
    }

    #[test]
    fn only_names_that_nobody_else_can_have_are_ours() {
        for host in [
            "localhost:80",
            "LOCALHOST",
            "127.0.0.1:7070",
            "[::1]:7070",
            "192.168.0.4",
            "[::1]",
        ] {
            assert!(is_ours(host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:80",
            "127.0.0.1.nip.io",
            "",
            "a:b",
            "127.0.0.1@evil",
        ] {
            assert!(!is_ours(host), "{host}");
        }
    }

    #[test]
    fn another_page_cannot_speak_for_us() {
        let guard = Guard::new(None, 7070);
        let host = (header::HOST, "127.0.0.1:7070");
        let from = |origin| asked(&guard, "/", &[host.clone(), (header::ORIGIN, origin)]);
        assert_eq!(from("http://127.0.0.1:7070"), Ok(()));
        for origin in [
            "http://evil.example",
            "http://127.0.0.1:8080",
            "null",
            "https://127.0.0.1:7070",
        ] {
            assert_eq!(from(origin), Err(Refusal::Origin), "{origin}");
        }
        assert_eq!(asked(&guard, "/", &[]), Err(Refusal::Host));
    }

    #[test]
    fn another_page_cannot_make_us_work() {
        let guard = Guard::new(None, 7070);
        let host = (header::HOST, "127.0.0.1:7070");
        let fetched = |uri, site| asked(&guard, uri, &[host.clone(), (FETCHED_FOR, site)]);
        for site in ["same-origin", "none"] {
            assert_eq!(fetched("/api/runs", site), Ok(()), "{site}");
        }
        for site in ["cross-site", "same-site"] {
            assert_eq!(fetched("/api/runs", site), Err(Refusal::Origin), "{site}");
            assert_eq!(fetched("/", site), Ok(()), "{site}");
        }
    }

    #[test]
    fn a_token_is_asked_for_and_remembered() {
        let guard = Guard::new(Some(Token::new("sesame123").unwrap()), 7070);
        let host = (header::HOST, "192.168.0.4:7070");
        let cookie = |text| asked(&guard, "/", &[host.clone(), (header::COOKIE, text)]);
        assert_eq!(
            asked(&guard, "/", std::slice::from_ref(&host)),
            Err(Refusal::Token)
        );
        assert_eq!(
            asked(&guard, "/?token=sesame12", std::slice::from_ref(&host)),
            Err(Refusal::Token)
        );
        assert_eq!(
            asked(&guard, "/?token=sesame123", std::slice::from_ref(&host)),
            Ok(())
        );
        assert_eq!(cookie("other=1; rem-token-7070=sesame123"), Ok(()));
        assert_eq!(cookie("rem-token-7070=sesame1234"), Err(Refusal::Token));
        assert_eq!(cookie("rem-token-7071=sesame123"), Err(Refusal::Token));
    }

    #[test]
    fn tokens_are_long_plain_and_never_the_same() {
        assert_eq!(Token::generate().as_str().len(), 32);
        assert_ne!(Token::generate(), Token::generate());
        assert!(Token::new("short").is_err() && Token::new("with space").is_err());
    }
}
