//! What can be wrong with an answer over HTTP.

use core::error::Error as StdError;
use core::fmt;
use core::time::Duration;

use reqwest::StatusCode;

use super::body::Unsendable;
use super::excerpt::write_excerpt;
use super::guard::Cuts;
use crate::agent::{AgentError, BoxError};
use crate::error::{Malformed, TruncatedBy};
use crate::rule::Rule;

/// Why a run over HTTP did not begin, or why its events broke off.
///
/// Through the trait [`Agent`](crate::Agent) it is the error within
/// [`AgentError`]: `error.downcast_ref::<HttpError>()`.
///
/// | variant | when | [`truncated_by`](HttpError::truncated_by) |
/// |---|---|---|
/// | [`Input`](HttpError::Input), [`Json`](HttpError::Json), [`Client`](HttpError::Client), [`Prepare`](HttpError::Prepare) | before a byte is sent | |
/// | [`NoTls`](HttpError::NoTls), [`Connect`](HttpError::Connect), [`Request`](HttpError::Request) | before an answer | |
/// | [`Status`](HttpError::Status), [`ContentType`](HttpError::ContentType), [`ContentEncoding`](HttpError::ContentEncoding) | at its head | |
/// | [`Body`](HttpError::Body) | among its events | `Body` |
/// | [`NoBytes`](HttpError::NoBytes), [`NoEvent`](HttpError::NoEvent), [`Deadline`](HttpError::Deadline) | among its events, or before | `Timeout` |
/// | [`Aborted`](HttpError::Aborted) | among its events, or before | `Close` |
///
/// A connection that is closed in good order is no error here: within an event it is
/// [`Error::Truncated`](crate::Error::Truncated) by `Partial`, and between two events before the
/// end of the run, or before the first, it is found by verification and is the same by `Close`.
#[derive(Debug)]
#[non_exhaustive]
pub enum HttpError {
    /// The input breaks the protocol (rule T4); nothing was sent.
    Input(Box<Malformed>),
    /// The input cannot be written as JSON; nothing was sent.
    Json(serde_json::Error),
    /// The client or the request could not be made: an address that is none, or a system that has
    /// no client to give.
    Client(reqwest::Error),
    /// The request could not be prepared: a header that is none, or a hook that failed; nothing was
    /// sent.
    Prepare(BoxError),
    /// The address is `https`, and the client has no TLS: enable one of `reqwest`'s features for it,
    /// such as `rustls`, in your own manifest.
    NoTls(reqwest::Error),
    /// There is no connection to the server.
    Connect(reqwest::Error),
    /// The server gave no answer: the connection broke before the head of one.
    Request(reqwest::Error),
    /// The server's answer is a status that means no success.
    Status {
        /// The status.
        status: StatusCode,
        /// The beginning of the body, 4 KiB at most.
        excerpt: String,
    },
    /// The answer is of a type that holds no events: an HTML page, or no type at all.
    ContentType {
        /// The status, a success.
        status: StatusCode,
        /// The type; `None` where there is none, or where it is not text.
        content_type: Option<String>,
        /// The beginning of the body, 4 KiB at most.
        excerpt: String,
    },
    /// The answer is compressed, though the request asked that it be not.
    ContentEncoding {
        /// The encoding.
        encoding: String,
    },
    /// The body failed: the connection broke, or what came is not HTTP.
    Body(reqwest::Error),
    /// Not one byte came for this long: neither of the head of the answer nor of its body.
    NoBytes(Duration),
    /// Bytes may have come, but no event was whole for this long.
    NoEvent(Duration),
    /// The run took longer than was allowed.
    Deadline(Duration),
    /// It was [aborted](super::AbortHandle::abort).
    Aborted,
}

impl HttpError {
    /// What cut the run off, where events may have come before (rule R8); `None` for an error from
    /// before that.
    #[must_use]
    pub fn truncated_by(&self) -> Option<TruncatedBy> {
        match self {
            HttpError::Body(_) => Some(TruncatedBy::Body),
            HttpError::NoBytes(_) | HttpError::NoEvent(_) | HttpError::Deadline(_) => Some(TruncatedBy::Timeout),
            HttpError::Aborted => Some(TruncatedBy::Close),
            _ => None,
        }
    }

    /// The rule that was broken: T4 by the input, T1a by the type of the answer, R8 by whatever cut
    /// the run off; `None` where the transport failed before that.
    #[must_use]
    pub fn rule(&self) -> Option<Rule> {
        match self {
            HttpError::Input(_) => Some(Rule::T4),
            HttpError::ContentType { .. } => Some(Rule::T1a),
            _ => self.truncated_by().map(|_| Rule::R8),
        }
    }

    /// The status of the answer, where it is what is wrong, or what made something wrong look
    /// right.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            HttpError::Status { status, .. } | HttpError::ContentType { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// That no request could be made, or no answer came. Addresses may hold secrets, so they are
    /// left out.
    pub(super) fn of_request(error: reqwest::Error) -> Self {
        let no_tls = error.url().is_some_and(|url| url.scheme() == "https") && is_refused_scheme(&error);
        let error = error.without_url();
        match () {
            () if error.is_builder() => HttpError::Client(error),
            () if no_tls => HttpError::NoTls(error),
            () if error.is_connect() => HttpError::Connect(error),
            () => HttpError::Request(error),
        }
    }

    pub(super) fn of_body(error: reqwest::Error) -> Self {
        HttpError::Body(error.without_url())
    }
}

/// Whether the connector took no other scheme than `http`: it says so in words alone.
fn is_refused_scheme(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.to_string().contains("scheme is not http") {
            return true;
        }
        cause = error.source();
    }
    false
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HttpError::Input(error) => write!(f, "T4: the input of the run is malformed, nothing was sent: {error}"),
            HttpError::Json(_) => f.write_str("the input of the run cannot be written as JSON"),
            HttpError::Client(_) => f.write_str("the request could not be made"),
            HttpError::Prepare(_) => f.write_str("the request could not be prepared"),
            HttpError::NoTls(_) => f.write_str(
                "`https` needs TLS: enable a feature of `reqwest` for it, such as `rustls`, in your Cargo.toml",
            ),
            HttpError::Connect(_) => f.write_str("no connection to the server"),
            HttpError::Request(_) => f.write_str("the server gave no answer"),
            HttpError::Status { status, excerpt } => {
                write!(f, "the server answered {status}")?;
                write_excerpt(f, excerpt)
            }
            HttpError::ContentType { status, content_type, excerpt } => {
                match content_type {
                    Some(found) => {
                        write!(f, "T1a: the server answered {status} with {:?}", crate::excerpt::excerpt(found, 80))?;
                    }
                    None => write!(f, "T1a: the server answered {status} without a content type")?,
                }
                f.write_str(", which holds no events")?;
                write_excerpt(f, excerpt)
            }
            HttpError::ContentEncoding { encoding } => {
                write!(f, "the answer is compressed ({:?}), and was not to be", crate::excerpt::excerpt(encoding, 80))
            }
            HttpError::Body(_) => f.write_str("R8: truncated: the body failed"),
            HttpError::NoBytes(limit) => write!(f, "R8: truncated: no byte came for {limit:?}"),
            HttpError::NoEvent(limit) => write!(f, "R8: truncated: no event came for {limit:?}"),
            HttpError::Deadline(limit) => write!(f, "R8: truncated: the run took longer than {limit:?}"),
            HttpError::Aborted => f.write_str("R8: truncated: aborted"),
        }
    }
}

impl StdError for HttpError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            HttpError::Json(error) => Some(error),
            HttpError::Prepare(error) => Some(&**error),
            HttpError::Client(error)
            | HttpError::NoTls(error)
            | HttpError::Connect(error)
            | HttpError::Request(error)
            | HttpError::Body(error) => Some(error),
            // It is said in full already.
            HttpError::Input(_)
            | HttpError::Status { .. }
            | HttpError::ContentType { .. }
            | HttpError::ContentEncoding { .. }
            | HttpError::NoBytes(_)
            | HttpError::NoEvent(_)
            | HttpError::Deadline(_)
            | HttpError::Aborted => None,
        }
    }
}

impl Cuts for HttpError {
    fn aborted() -> Self {
        HttpError::Aborted
    }

    fn no_event(limit: Duration) -> Self {
        HttpError::NoEvent(limit)
    }

    fn deadline(limit: Duration) -> Self {
        HttpError::Deadline(limit)
    }
}

impl From<Unsendable> for HttpError {
    fn from(error: Unsendable) -> Self {
        match error {
            Unsendable::Malformed(error) => HttpError::Input(error),
            Unsendable::Json(error) => HttpError::Json(error),
            Unsendable::Other(error) => HttpError::Prepare(error),
        }
    }
}

impl From<HttpError> for AgentError {
    fn from(error: HttpError) -> Self {
        AgentError::new(error)
    }
}
