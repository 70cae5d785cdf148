//! `ClientError`: why a run over a network failed, for both clients.

use core::error::Error as StdError;
use core::fmt;
use core::time::Duration;

#[cfg(feature = "reqwest")]
use reqwest::{StatusCode, header::HeaderMap};
#[cfg(not(feature = "reqwest"))]
use tokio_tungstenite::tungstenite::http::{StatusCode, header::HeaderMap};
#[cfg(feature = "websocket")]
use tokio_tungstenite::tungstenite::{self, error::ProtocolError, error::UrlError};

use super::excerpt::{cut, write_excerpt};
use crate::agent::{AgentError, BoxError};
use crate::error::{Malformed, TruncatedBy, Verdict};
use crate::excerpt::excerpt;
use crate::rule::Rule;

/// Why a run over a network did not begin, or why its events broke off.
///
/// Through the trait [`Agent`](crate::Agent) it is the error within [`AgentError`]:
/// `error.downcast_ref::<ClientError>()`. [`Error::is_truncated`](crate::Error::is_truncated),
/// [`rule`](crate::Error::rule) and [`is_transport`](crate::Error::is_transport) take it into account.
///
/// The error of the library, `reqwest` or `tungstenite`, is the [`source`](StdError::source).
///
/// | when | variants | [`truncated_by`](ClientError::truncated_by) |
/// |---|---|---|
/// | before a byte is sent | [`Input`](Self::Input), [`Json`](Self::Json), [`Request`](Self::Request), [`Prepare`](Self::Prepare), [`NoTls`](Self::NoTls) | |
/// | before an answer | [`Connect`](Self::Connect), [`NotConnected`](Self::NotConnected), [`Send`](Self::Send), [`NotSent`](Self::NotSent), [`NoAnswer`](Self::NoAnswer), [`NoHead`](Self::NoHead) | |
/// | at its head | [`Status`](Self::Status), [`Redirect`](Self::Redirect), [`ContentType`](Self::ContentType), [`ContentEncoding`](Self::ContentEncoding) | |
/// | among its events | [`Body`](Self::Body) | `Body` |
/// | | [`Closed`](Self::Closed), [`NoEvents`](Self::NoEvents) | `Close` |
/// | | [`Silent`](Self::Silent), [`NoEvent`](Self::NoEvent) | `Timeout` |
/// | | [`Binary`](Self::Binary) | |
/// | at any time | [`Deadline`](Self::Deadline) | `Timeout` |
/// | | [`Aborted`](Self::Aborted) | `Close` |
/// | after the end of the run | [`AfterRun`](Self::AfterRun), which holds one of these or [`Partial`](Self::Partial) | |
///
/// A connection that is closed normally is not an error here. Within an event it is
/// [`Error::Truncated`](crate::Error::Truncated) by `Partial`; between two events, before the end of the
/// run, verification gives the same by `Close`.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The input breaks the protocol (rule T4); nothing was sent.
    Input(Box<Malformed>),
    /// The input cannot be written as JSON; nothing was sent.
    Json(serde_json::Error),
    /// The request could not be made: the address is invalid, or the system provides no client.
    Request(BoxError),
    /// The request could not be prepared: an invalid header, or a hook that failed; nothing was sent.
    Prepare(BoxError),
    /// The address is `https` or `wss`, and the library is built without TLS: enable one of its
    /// features for it in your own manifest, such as `rustls` of `reqwest` or `native-tls` of
    /// `tokio-tungstenite`.
    NoTls(BoxError),
    /// There is no connection to the server, or it broke before a WebSocket was open.
    Connect(BoxError),
    /// A WebSocket was not open after this long.
    NotConnected(Duration),
    /// The input could not be sent.
    Send(BoxError),
    /// The server did not take the whole of the input within this time.
    NotSent(Duration),
    /// The server gave no answer, or one that is neither HTTP nor a WebSocket.
    NoAnswer(BoxError),
    /// The head of an answer was not complete after this long.
    NoHead(Duration),
    /// The status of the answer is not a success, or does not open the WebSocket.
    Status(Box<Answer>),
    /// The answer redirects to another address, which was not followed: see
    /// `HttpAgentBuilder::redirects_to`.
    Redirect {
        /// The status.
        status: StatusCode,
        /// The address, without user, query and fragment, which may be secret.
        to: String,
    },
    /// The answer is of a type that holds no events: an HTML page, or no type at all.
    /// `HttpOptions::assume_format` reads it all the same.
    ContentType {
        /// The type; `None` if there is none, or if it is not text.
        content_type: Option<String>,
        /// The rest of the answer, whose status is a success.
        answer: Box<Answer>,
    },
    /// The answer is compressed, against the request.
    ContentEncoding {
        /// All encodings that it names.
        encoding: String,
    },
    /// The connection broke, or the bytes are not valid HTTP or WebSocket.
    Body(BoxError),
    /// The body ended without an event, though it was not empty.
    NoEvents {
        /// The beginning of the body, 4 KiB at most.
        excerpt: String,
    },
    /// The server closed the WebSocket with a code other than
    /// [1000 or 1001](https://www.rfc-editor.org/rfc/rfc6455#section-7.4.1).
    Closed {
        /// The code.
        code: u16,
        /// The reason that the server gave.
        reason: String,
    },
    /// A binary message came, and the feature `protobuf` is off.
    Binary,
    /// Nothing came for this long: not a byte of a body, not a message, not even a ping.
    Silent(Duration),
    /// No event came for this long, though other bytes may have.
    NoEvent(Duration),
    /// The run took longer than was allowed.
    Deadline(Duration),
    /// It was [aborted](super::AbortHandle::abort).
    Aborted,
    /// The bytes ended within an event, after the end of the run; before that end it is
    /// [`Error::Truncated`](crate::Error::Truncated).
    Partial,
    /// An error after the end of the run, whose outcome stands (rule R8a).
    AfterRun(Box<ClientError>),
}

/// An answer that holds no events.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The beginning of the body, 4 KiB at most, as far as it came within a few seconds.
    pub excerpt: String,
    headers: AnswerHeaders,
}

/// Headers that may hold secrets: only their names are shown.
#[derive(Clone)]
struct AnswerHeaders(HeaderMap);

impl fmt::Debug for AnswerHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Answer {
    /// An answer with the beginning of its body, up to one byte more than an excerpt holds.
    pub(super) fn new(status: StatusCode, headers: HeaderMap, body: &[u8]) -> Box<Self> {
        Box::new(Self { status, excerpt: cut(body), headers: AnswerHeaders(headers) })
    }

    /// The headers, such as `Retry-After` or the id of the request. They may hold secrets, such as
    /// cookies; `Debug` shows only their names.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers.0
    }
}

impl ClientError {
    /// What cut the run off, if events may have come before (rule R8); `None` for an earlier error, for
    /// one about a message, and for one after the end of the run (rule R8a).
    #[must_use]
    pub fn truncated_by(&self) -> Option<TruncatedBy> {
        match self {
            ClientError::Body(_) => Some(TruncatedBy::Body),
            ClientError::Partial => Some(TruncatedBy::Partial),
            ClientError::Silent(_) | ClientError::NoEvent(_) | ClientError::Deadline(_) => Some(TruncatedBy::Timeout),
            ClientError::Closed { .. } | ClientError::NoEvents { .. } | ClientError::Aborted => {
                Some(TruncatedBy::Close)
            }
            _ => None,
        }
    }

    /// The rule that was broken: T4 by the input, T1a by the type of the answer, R8 if the run was cut
    /// off; `None` if the transport failed before or after the run.
    #[must_use]
    pub fn rule(&self) -> Option<Rule> {
        match self {
            ClientError::Input(_) => Some(Rule::T4),
            ClientError::ContentType { .. } => Some(Rule::T1a),
            _ => self.truncated_by().map(|_| Rule::R8),
        }
    }

    /// The answer, if that is at fault.
    #[must_use]
    pub fn answer(&self) -> Option<&Answer> {
        match self {
            ClientError::Status(answer) | ClientError::ContentType { answer, .. } => Some(answer),
            _ => None,
        }
    }

    /// The status of the answer, if the answer is at fault, whatever the status.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            ClientError::Redirect { status, .. } => Some(*status),
            _ => self.answer().map(|answer| answer.status),
        }
    }

    /// The code with which the server closed the WebSocket, if that is the error.
    #[must_use]
    pub fn close_code(&self) -> Option<u16> {
        match self {
            ClientError::Closed { code, .. } => Some(*code),
            ClientError::AfterRun(error) => error.close_code(),
            _ => None,
        }
    }

    pub(super) fn after_run(self) -> Self {
        ClientError::AfterRun(Box::new(self))
    }

    pub(crate) fn verdict(&self) -> Verdict {
        match self.rule() {
            _ if self.truncated_by().is_some() => Verdict::TRUNCATED,
            Some(rule) => Verdict::broken(rule),
            None => Verdict::TRANSPORT,
        }
    }

    /// From an error of `reqwest` before an answer came. Addresses may hold secrets, so they are left
    /// out.
    #[cfg(feature = "reqwest")]
    pub(super) fn of_request(error: reqwest::Error) -> Self {
        let no_tls = error.url().is_some_and(|url| url.scheme() == "https") && is_refused_scheme(&error);
        let error = error.without_url();
        match () {
            () if error.is_builder() => ClientError::Request(error.into()),
            () if no_tls => ClientError::NoTls(error.into()),
            () if error.is_connect() => ClientError::Connect(error.into()),
            () => ClientError::NoAnswer(error.into()),
        }
    }

    /// From an error of `tungstenite` while a WebSocket was opened.
    #[cfg(feature = "websocket")]
    pub(super) fn of_handshake(error: tungstenite::Error) -> Self {
        use tungstenite::Error as Said;
        match error {
            Said::Http(answer) => {
                let (head, body) = answer.into_parts();
                ClientError::Status(Answer::new(head.status, head.headers, body.as_deref().unwrap_or_default()))
            }
            Said::Url(UrlError::TlsFeatureNotEnabled) => ClientError::NoTls(error.into()),
            Said::Url(_) | Said::HttpFormat(_) => ClientError::Request(error.into()),
            Said::Io(_) | Said::Tls(_) | Said::Protocol(ProtocolError::HandshakeIncomplete) => {
                ClientError::Connect(error.into())
            }
            _ => ClientError::NoAnswer(error.into()),
        }
    }
}

/// Whether the connector refused any scheme but `http`: only the text of the error tells.
#[cfg(feature = "reqwest")]
fn is_refused_scheme(error: &reqwest::Error) -> bool {
    core::iter::successors(error.source(), |&error| error.source())
        .any(|error| error.to_string().contains("scheme is not http"))
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.truncated_by().is_some() {
            f.write_str("R8: truncated: ")?;
        }
        match self {
            ClientError::Input(error) => write!(f, "T4: the input of the run is malformed, nothing was sent: {error}"),
            ClientError::Json(_) => f.write_str("the input of the run cannot be written as JSON"),
            ClientError::Request(_) => f.write_str("the request could not be made"),
            ClientError::Prepare(_) => f.write_str("the request could not be prepared"),
            ClientError::NoTls(_) => f.write_str(
                "`https` and `wss` need TLS: enable a feature for it in your Cargo.toml, such as `rustls` of \
                 `reqwest` or `native-tls` of `tokio-tungstenite`",
            ),
            ClientError::Connect(_) => f.write_str("no connection to the server"),
            ClientError::NotConnected(limit) => write!(f, "the socket was not open after {limit:?}"),
            ClientError::Send(_) => f.write_str("the input of the run could not be sent"),
            ClientError::NotSent(limit) => write!(f, "the server did not take the input of the run within {limit:?}"),
            ClientError::NoAnswer(_) => f.write_str("the server gave no answer"),
            ClientError::NoHead(limit) => write!(f, "the head of an answer was not complete after {limit:?}"),
            ClientError::Status(answer) => {
                write!(f, "the server answered {}", answer.status)?;
                write_excerpt(f, &answer.excerpt)
            }
            ClientError::Redirect { status, to } => {
                write!(
                    f,
                    "the server answered {status} and redirects to {:?}, which was not followed",
                    excerpt(to, 200)
                )
            }
            ClientError::ContentType { content_type, answer } => {
                let status = answer.status;
                match content_type {
                    Some(found) => write!(f, "T1a: the server answered {status} with {:?}", excerpt(found, 80))?,
                    None => write!(f, "T1a: the server answered {status} without a content type")?,
                }
                f.write_str(", which holds no events")?;
                write_excerpt(f, &answer.excerpt)
            }
            ClientError::ContentEncoding { encoding } => {
                write!(f, "the answer is compressed ({:?}), against the request", excerpt(encoding, 80))
            }
            ClientError::Body(_) => f.write_str("the connection broke"),
            ClientError::NoEvents { excerpt } => {
                f.write_str("the body held no event")?;
                write_excerpt(f, excerpt)
            }
            ClientError::Closed { code, reason } => {
                write!(f, "the server closed the socket with {code}")?;
                write_excerpt(f, reason)
            }
            ClientError::Binary => f.write_str("a binary message came, and the feature `protobuf` is off"),
            ClientError::Silent(limit) => write!(f, "nothing came for {limit:?}"),
            ClientError::NoEvent(limit) => write!(f, "no event came for {limit:?}"),
            ClientError::Deadline(limit) => write!(f, "the run took longer than {limit:?}"),
            ClientError::Aborted => f.write_str("aborted"),
            ClientError::Partial => f.write_str("the bytes ended within an event"),
            ClientError::AfterRun(error) => {
                // The run was not cut off, so that claim is left out.
                let error = error.to_string();
                write!(f, "after the end of the run: {}", error.strip_prefix("R8: truncated: ").unwrap_or(&error))
            }
        }
    }
}

impl StdError for ClientError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            ClientError::Json(error) => Some(error),
            ClientError::Request(error)
            | ClientError::Prepare(error)
            | ClientError::NoTls(error)
            | ClientError::Connect(error)
            | ClientError::Send(error)
            | ClientError::NoAnswer(error)
            | ClientError::Body(error) => Some(&**error),
            ClientError::AfterRun(error) => error.source(),
            // The others have no cause.
            _ => None,
        }
    }
}

impl From<ClientError> for AgentError {
    fn from(error: ClientError) -> Self {
        AgentError::new(error)
    }
}
