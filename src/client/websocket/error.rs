//! What can be wrong with an answer over WebSocket.

use core::error::Error as StdError;
use core::fmt;
use core::time::Duration;

use tokio_tungstenite::tungstenite;
use tungstenite::http::StatusCode;

use crate::agent::{AgentError, BoxError};
use crate::client::body::Unsendable;
use crate::client::excerpt::{cut, write_excerpt};
use crate::client::guard::Cuts;
use crate::error::{Malformed, TruncatedBy};
use crate::rule::Rule;

/// Why a run over WebSocket did not begin, or why its events broke off.
///
/// Through the trait [`Agent`](crate::Agent) it is the error within
/// [`AgentError`]: `error.downcast_ref::<WebSocketError>()`.
///
/// | variant | when | [`truncated_by`](WebSocketError::truncated_by) |
/// |---|---|---|
/// | [`Input`](WebSocketError::Input), [`Request`](WebSocketError::Request), [`Prepare`](WebSocketError::Prepare) | before a byte is sent | |
/// | [`Connect`](WebSocketError::Connect), [`NoHandshake`](WebSocketError::NoHandshake), [`Status`](WebSocketError::Status), [`Handshake`](WebSocketError::Handshake) | before the socket is open | |
/// | [`Send`](WebSocketError::Send) | before the agent has its input | |
/// | [`Socket`](WebSocketError::Socket) | among its events | `Body` |
/// | [`Closed`](WebSocketError::Closed) | among its events | `Close` |
/// | [`Binary`](WebSocketError::Binary) | among its events | |
/// | [`NoMessage`](WebSocketError::NoMessage), [`NoEvent`](WebSocketError::NoEvent), [`Deadline`](WebSocketError::Deadline) | among its events, or before | `Timeout` |
/// | [`Aborted`](WebSocketError::Aborted) | among its events, or before | `Close` |
///
/// A socket that the server closes in good order is no error here: before the end of the run that
/// is found by verification and is [`Error::Truncated`](crate::Error::Truncated) by `Close`.
#[derive(Debug)]
#[non_exhaustive]
pub enum WebSocketError {
    /// The input breaks the protocol (rule T4); nothing was sent.
    Input(Box<Malformed>),
    /// The input cannot be written as JSON; nothing was sent.
    Json(serde_json::Error),
    /// The request could not be made: an address that is none, or `wss` without TLS.
    Request(tungstenite::Error),
    /// A header is none, or the hook that prepares the request failed; nothing was sent.
    Prepare(BoxError),
    /// There is no connection to the server, or it broke before the socket was open.
    Connect(tungstenite::Error),
    /// The socket was not open after this long.
    NoHandshake(Duration),
    /// The server's answer is no WebSocket, but a page of HTTP.
    Status {
        /// The status; not 101.
        status: StatusCode,
        /// The beginning of the body, as far as it came with the head: 4 KiB at most.
        excerpt: String,
    },
    /// The server's answer is neither.
    Handshake(tungstenite::Error),
    /// The input could not be sent.
    Send(tungstenite::Error),
    /// The socket failed: the connection broke, or what came is not WebSocket.
    Socket(tungstenite::Error),
    /// The server closed the socket, and gave a reason: neither
    /// [1000, 1001](https://www.rfc-editor.org/rfc/rfc6455#section-7.4.1) nor none.
    Closed {
        /// The code.
        code: u16,
        /// What was said to it.
        reason: String,
    },
    /// A binary message came, and the feature `protobuf`, which reads them, is off.
    Binary,
    /// No message came for this long, not even a ping.
    NoMessage(Duration),
    /// Messages may have come, but no event for this long.
    NoEvent(Duration),
    /// The run took longer than was allowed.
    Deadline(Duration),
    /// It was [aborted](crate::client::AbortHandle::abort).
    Aborted,
}

impl WebSocketError {
    /// What cut the run off, where events may have come before (rule R8); `None` for an error from
    /// before that, and for one of a message.
    #[must_use]
    pub fn truncated_by(&self) -> Option<TruncatedBy> {
        match self {
            WebSocketError::Socket(_) => Some(TruncatedBy::Body),
            WebSocketError::NoMessage(_) | WebSocketError::NoEvent(_) | WebSocketError::Deadline(_) => {
                Some(TruncatedBy::Timeout)
            }
            WebSocketError::Closed { .. } | WebSocketError::Aborted => Some(TruncatedBy::Close),
            _ => None,
        }
    }

    /// The rule that was broken: T4 by the input, R8 by whatever cut the run off; `None` where the
    /// transport failed before that, and for a message that is not read here.
    #[must_use]
    pub fn rule(&self) -> Option<Rule> {
        match self {
            WebSocketError::Input(_) => Some(Rule::T4),
            _ => self.truncated_by().map(|_| Rule::R8),
        }
    }

    /// The status of the answer, where it is what is wrong.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            WebSocketError::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The code with which the server closed the socket, where it is what is wrong.
    #[must_use]
    pub fn close_code(&self) -> Option<u16> {
        match self {
            WebSocketError::Closed { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// That the socket could not be opened.
    pub(super) fn of_handshake(error: tungstenite::Error) -> Self {
        match error {
            tungstenite::Error::Http(answer) => WebSocketError::Status {
                status: answer.status(),
                excerpt: cut(answer.body().as_deref().unwrap_or_default()),
            },
            tungstenite::Error::Url(_) | tungstenite::Error::HttpFormat(_) => WebSocketError::Request(error),
            tungstenite::Error::Io(_) | tungstenite::Error::Tls(_) => WebSocketError::Connect(error),
            tungstenite::Error::Protocol(tungstenite::error::ProtocolError::HandshakeIncomplete) => {
                WebSocketError::Connect(error)
            }
            _ => WebSocketError::Handshake(error),
        }
    }
}

impl fmt::Display for WebSocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WebSocketError::Input(error) => {
                write!(f, "T4: the input of the run is malformed, nothing was sent: {error}")
            }
            WebSocketError::Json(_) => f.write_str("the input of the run cannot be written as JSON"),
            WebSocketError::Request(_) => f.write_str("the request could not be made"),
            WebSocketError::Prepare(_) => f.write_str("the request could not be prepared"),
            WebSocketError::Connect(_) => f.write_str("no connection to the server"),
            WebSocketError::NoHandshake(limit) => write!(f, "the socket was not open after {limit:?}"),
            WebSocketError::Status { status, excerpt } => {
                write!(f, "the server answered {status}, and opened no socket")?;
                write_excerpt(f, excerpt)
            }
            WebSocketError::Handshake(_) => f.write_str("the server's answer opened no socket"),
            WebSocketError::Send(_) => f.write_str("the input of the run could not be sent"),
            WebSocketError::Socket(_) => f.write_str("R8: truncated: the socket failed"),
            WebSocketError::Closed { code, reason } => {
                write!(f, "R8: truncated: the server closed the socket with {code}")?;
                write_excerpt(f, reason)
            }
            WebSocketError::Binary => f.write_str("a binary message came, and the feature `protobuf` is off"),
            WebSocketError::NoMessage(limit) => write!(f, "R8: truncated: no message came for {limit:?}"),
            WebSocketError::NoEvent(limit) => write!(f, "R8: truncated: no event came for {limit:?}"),
            WebSocketError::Deadline(limit) => write!(f, "R8: truncated: the run took longer than {limit:?}"),
            WebSocketError::Aborted => f.write_str("R8: truncated: aborted"),
        }
    }
}

impl StdError for WebSocketError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            WebSocketError::Json(error) => Some(error),
            WebSocketError::Prepare(error) => Some(&**error),
            WebSocketError::Request(error)
            | WebSocketError::Connect(error)
            | WebSocketError::Handshake(error)
            | WebSocketError::Send(error)
            | WebSocketError::Socket(error) => Some(error),
            // It is said in full already.
            WebSocketError::Input(_)
            | WebSocketError::NoHandshake(_)
            | WebSocketError::Status { .. }
            | WebSocketError::Closed { .. }
            | WebSocketError::Binary
            | WebSocketError::NoMessage(_)
            | WebSocketError::NoEvent(_)
            | WebSocketError::Deadline(_)
            | WebSocketError::Aborted => None,
        }
    }
}

impl Cuts for WebSocketError {
    fn aborted() -> Self {
        WebSocketError::Aborted
    }

    fn no_event(limit: Duration) -> Self {
        WebSocketError::NoEvent(limit)
    }

    fn deadline(limit: Duration) -> Self {
        WebSocketError::Deadline(limit)
    }
}

impl From<Unsendable> for WebSocketError {
    fn from(error: Unsendable) -> Self {
        match error {
            Unsendable::Malformed(error) => WebSocketError::Input(error),
            Unsendable::Json(error) => WebSocketError::Json(error),
            Unsendable::Other(error) => WebSocketError::Prepare(error),
        }
    }
}

impl From<WebSocketError> for AgentError {
    fn from(error: WebSocketError) -> Self {
        AgentError::new(error)
    }
}
