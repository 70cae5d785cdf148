//! `WebSocketAgent`: runs an agent behind a WebSocket address.

use core::fmt;
use core::future::Future;
use core::time::Duration;
use std::sync::Arc;

use async_trait::async_trait;
use tokio_tungstenite::{connect_async_with_config, tungstenite};
use tungstenite::Message;
use tungstenite::client::IntoClientRequest;
use tungstenite::error::UrlError;
use tungstenite::handshake::client::Request;
use tungstenite::http::header::HeaderMap;
use tungstenite::http::uri::{InvalidUri, Uri};
use tungstenite::protocol::WebSocketConfig;

use super::{WebSocketConnection, WebSocketEvents, WebSocketOptions};
use crate::agent::{Agent, AgentError, BoxError, RawEventStream, told};
use crate::client::builder::{CONNECT, Runner, Setup, agent_and_builder};
use crate::client::stoppable::within;
use crate::client::{AbortHandle, ClientError};
use crate::codec::MessageDecoder;
use crate::options::Options;
use crate::run_input::RunAgentInput;
use crate::version::ProtocolVersion;

/// The most bytes that may wait to be written beside the input: answers to pings, the close frame.
///
/// Without a bound, a server that sends pings and does not read the answers fills the memory. At the
/// bound the library keeps only the answer to the last ping, which is all that the protocol requires.
const WRITE_BUFFER: usize = 64 * 1024;

/// An agent behind a WebSocket address: it sends the input of a run as one text message, and gives
/// the events that come back ([`WebSocketEvents`]).
///
/// AG-UI 1.0 defines no binding to WebSocket. This is what agents and clients that use it do: the input
/// first, then an event in each message, one run a connection.
///
/// - The input is prepared by [`Outgoing`](crate::input::Outgoing) (rule T4). Its warnings come first in
///   the stream.
/// - One connection a run: no retry, no resuming, no reuse. It is closed with the stream, which ends when
///   the server closes it, or [a moment after](WebSocketOptions::after_run) the event that ends the run.
/// - Bytes that wait to be written, the input and answers to pings, are bounded by the length of the
///   input and 64 KiB: a server that sends pings and reads nothing gets an answer to the last one.
/// - Dropping the stream closes the connection; an [`AbortHandle`] does so from elsewhere.
///
/// [`start`](WebSocketAgent::start) gives the events with a typed error of the source. As an
/// [`Agent`] it gives the same, with that error within [`AgentError`]. For a connection of your own
/// (another TLS, a proxy, a socket for several runs) see [`WebSocketExt`](super::WebSocketExt).
///
/// # Examples
/// ```no_run
/// use ag_ui_stream::client::WebSocketAgent;
/// use ag_ui_stream::message::UserMessage;
/// use ag_ui_stream::{AgentExt, RunAgentInput};
/// use futures::TryStreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = WebSocketAgent::builder("ws://localhost:8000/agent").bearer("secret").build()?;
/// let input = RunAgentInput::new("thread", "run", [UserMessage::new("m1", "Hello").into()]);
/// let mut snapshots = agent.snapshots(input).await?;
/// while let Some(snapshot) = snapshots.try_next().await? {
///     println!("{snapshot:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct WebSocketAgent {
    uri: Uri,
    connect: Option<Duration>,
    runner: Runner<Request, WebSocketOptions>,
}

impl WebSocketAgent {
    /// An agent at this address, `ws` or `wss`, to be set up.
    pub fn builder(url: impl AsRef<str>) -> WebSocketAgentBuilder {
        WebSocketAgentBuilder { url: url.as_ref().to_owned(), setup: Setup::new(WebSocketOptions::new()) }
    }

    /// Starts a run, and gives its events once the socket is open and the input is sent.
    ///
    /// They [say first](crate::RawItem::Options) what the conversation is, where the input has one, and
    /// how they are read.
    ///
    /// # Errors
    /// [`ClientError`]: the variants before the first event.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the run, which the server may have begun.
    pub async fn start(&self, input: RunAgentInput) -> Result<WebSocketEvents, ClientError> {
        let options = &self.runner.options;
        let run = async |body: String, deadline, abort| {
            let open = self.open(body.len().saturating_add(WRITE_BUFFER));
            let mut socket = within(self.connect, ClientError::NotConnected, open).await?;
            within(options.common.silence, ClientError::NotSent, async {
                socket.send(Message::text(body)).await.map_err(|error| ClientError::Send(error.into()))
            })
            .await?;
            Ok(WebSocketEvents::open(socket, options, deadline, abort))
        };
        let (events, peer, first) = self.runner.start(&options.common, input, run).await?;
        Ok(events.with_peer(peer, first))
    }

    /// Opens a socket in which at most so many bytes wait to be written.
    async fn open(&self, max_unwritten: usize) -> Result<WebSocketConnection, ClientError> {
        let mut request = request_to(&self.uri)?;
        request.headers_mut().extend(self.runner.headers.clone());
        let request = self.runner.prepare(request).await?;
        // What is longer is refused before the memory is taken.
        let max = Some(MessageDecoder::max_message_bytes(&self.runner.options.common.limits()));
        let config = WebSocketConfig::default()
            .max_message_size(max)
            .max_frame_size(max)
            .write_buffer_size(0)
            .max_write_buffer_size(max_unwritten);
        let opened = Box::pin(connect_async_with_config(request, Some(config), true)).await;
        let (socket, _) = opened.map_err(ClientError::of_handshake)?;
        Ok(WebSocketConnection::new(socket))
    }
}

/// A request to open a socket, with a key of its own.
fn request_to(uri: &Uri) -> Result<Request, ClientError> {
    uri.clone().into_client_request().map_err(|error| ClientError::Request(error.into()))
}

impl fmt::Debug for WebSocketAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.runner.show("WebSocketAgent", self.uri.host(), self.uri.path(), f)
    }
}

/// Sets up a [`WebSocketAgent`].
#[must_use = "a builder does nothing until it builds"]
pub struct WebSocketAgentBuilder {
    url: String,
    setup: Setup<Request, WebSocketOptions>,
}

agent_and_builder!(
    WebSocketAgent,
    WebSocketAgentBuilder,
    Request,
    WebSocketOptions,
    "use ag_ui_stream::client::WebSocketAgent;"
    ""
    "# fn main() -> Result<(), ag_ui_stream::client::ClientError> {"
    "let agent = WebSocketAgent::builder(\"ws://localhost:8000/agent\")"
    "    .prepare(|mut request| async {"
    "        request.headers_mut().insert(\"authorization\", token().await?.parse()?);"
    "        Ok(request)"
    "    })"
    "    .build()?;"
    "# let _ = agent;"
    "# Ok(())"
    "# }"
    ""
    "async fn token() -> std::io::Result<String> {"
    "    Ok(\"Bearer fresh\".into())"
    "}"
);

impl WebSocketAgentBuilder {
    /// Limits the time until the socket is open; `None` for the limit of the system.
    pub fn connect_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.setup.connect = limit.into();
        self
    }

    /// The agent.
    ///
    /// # Errors
    /// [`ClientError::Request`] for an invalid WebSocket address;
    /// [`ClientError::Prepare`] for an invalid header.
    pub fn build(self) -> Result<WebSocketAgent, ClientError> {
        let uri: Uri = self.url.parse().map_err(|error: InvalidUri| ClientError::Request(error.into()))?;
        if !matches!(uri.scheme_str(), Some("ws" | "wss")) {
            return Err(ClientError::Request(tungstenite::Error::from(UrlError::UnsupportedUrlScheme).into()));
        }
        request_to(&uri)?;
        Ok(WebSocketAgent { uri, connect: self.setup.connect, runner: self.setup.finish(HeaderMap::new())? })
    }
}
