//! The agent behind an address.

use core::fmt;
use core::future::Future;
use core::time::Duration;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use tokio_tungstenite::{connect_async_with_config, tungstenite};
use tungstenite::Message;
use tungstenite::client::IntoClientRequest;
use tungstenite::error::UrlError;
use tungstenite::handshake::client::Request;
use tungstenite::http::header::{HeaderMap, HeaderName};
use tungstenite::http::uri::Uri;
use tungstenite::protocol::WebSocketConfig;

use super::{WebSocketConnection, WebSocketError, WebSocketEvents, WebSocketOptions};
use crate::agent::{Agent, AgentError, BoxError, RawEventStream, raw_event_stream};
use crate::client::AbortHandle;
use crate::client::body::body_of;
use crate::client::guard::{unless_aborted, until, within};
use crate::client::headers::Headers;
use crate::codec::MessageDecoder;
use crate::machine::Downgrader;
use crate::outgoing::Outgoing;
use crate::run_input::RunAgentInput;
use crate::version::ProtocolVersion;

/// What changes a request before it is sent.
type Prepare = Arc<dyn Fn(Request) -> BoxFuture<'static, Result<Request, BoxError>> + Send + Sync>;

/// An agent behind a WebSocket address: it sends the input of a run as one text message, and gives
/// the events that come back ([`WebSocketEvents`]).
///
/// AG-UI 1.0 has no binding to WebSocket. This is what agents and clients that use it do: the input
/// first, then an event in each message, one run a connection.
///
/// - What is sent is the input as [`Outgoing`] makes it ready (rule T4). What that has to say are the
///   first warnings of the stream.
/// - One connection a run: nothing is tried again, nothing resumed, no connection used twice. It is
///   closed with the stream, which ends when the server closes it, or
///   [a moment behind](WebSocketOptions::after_run) the event that ends the run.
/// - To drop the stream is to close the connection; an [`AbortHandle`] does so from elsewhere.
///
/// [`start`](WebSocketAgent::start) gives the events with a typed error of the source. As an
/// [`Agent`] it gives the same, that error within [`AgentError`]. For a connection of your own
/// (another TLS, a proxy, a socket that is kept) see [`WebSocketExt`](super::WebSocketExt).
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
    headers: HeaderMap,
    prepare: Option<Prepare>,
    connect: Option<Duration>,
    options: WebSocketOptions,
    outgoing: Outgoing,
    abort: Option<AbortHandle>,
}

impl WebSocketAgent {
    /// An agent at this address, `ws` or `wss`, with the default [`WebSocketOptions`].
    ///
    /// # Errors
    /// [`WebSocketError::Request`] for what is no such address.
    pub fn new(url: impl AsRef<str>) -> Result<Self, WebSocketError> {
        Self::builder(url).build()
    }

    /// An agent at this address, to be set up.
    pub fn builder(url: impl AsRef<str>) -> WebSocketAgentBuilder {
        WebSocketAgentBuilder {
            url: url.as_ref().to_owned(),
            headers: Headers::new(),
            prepare: None,
            connect: Some(WebSocketAgentBuilder::DEFAULT_CONNECT),
            options: WebSocketOptions::new(),
            outgoing: Outgoing::new(),
        }
    }

    /// The same agent with a handle that ends its runs, the wait for a connection included.
    pub fn abortable(&self) -> (Self, AbortHandle) {
        let abort = AbortHandle::new();
        (Self { abort: Some(abort.clone()), ..self.clone() }, abort)
    }

    /// Starts a run, and gives its events once the socket is open and the input is sent.
    ///
    /// They bring no conversation along: where the input has messages, as behind the first turn, the
    /// stage behind is one with [a pipeline that knows them](crate::machine::PipelineBuilder::input),
    /// as [`AgentExt`](crate::AgentExt) has it.
    ///
    /// # Errors
    /// [`WebSocketError`], those from before the first event.
    ///
    /// # Cancel safety
    /// To drop the future is to give the run up; the server may have begun it.
    pub async fn start(&self, input: RunAgentInput) -> Result<WebSocketEvents, WebSocketError> {
        let (body, warnings) = body_of(self.outgoing, input)?;
        let abort = self.abort.clone().unwrap_or_else(AbortHandle::new);
        let deadline = until(self.options.deadline);
        let run = async {
            let mut socket = within(self.connect, WebSocketError::NoHandshake, self.open()).await?;
            within(self.options.no_message, WebSocketError::NoMessage, async {
                socket.send(Message::text(body)).await.map_err(WebSocketError::Send)
            })
            .await?;
            let events = WebSocketEvents::open(socket, &self.options, deadline, abort.clone());
            Ok(events.with_peer(Downgrader::new(self.outgoing.peer()).with_limits(self.options.limits), warnings))
        };
        let run = within(self.options.deadline, WebSocketError::Deadline, run);
        unless_aborted(abort.clone(), run).await
    }

    async fn open(&self) -> Result<WebSocketConnection, WebSocketError> {
        let mut request = request_to(&self.uri)?;
        request.headers_mut().extend(self.headers.clone());
        if let Some(prepare) = &self.prepare {
            request = prepare(request).await.map_err(WebSocketError::Prepare)?;
        }
        // What is longer is refused before the memory is taken.
        let max = Some(MessageDecoder::max_message_bytes(&self.options.limits));
        let config = WebSocketConfig::default().max_message_size(max).max_frame_size(max);
        let opened = Box::pin(connect_async_with_config(request, Some(config), true)).await;
        let (socket, _) = opened.map_err(WebSocketError::of_handshake)?;
        Ok(WebSocketConnection::new(socket))
    }
}

/// A request to open a socket, with a key of its own.
fn request_to(uri: &Uri) -> Result<Request, WebSocketError> {
    uri.clone().into_client_request().map_err(WebSocketError::Request)
}

#[async_trait]
impl Agent for WebSocketAgent {
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
        Ok(raw_event_stream(self.start(input).await?))
    }
}

impl fmt::Debug for WebSocketAgent {
    /// Without the address's query and the values of headers: they may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketAgent")
            .field("host", &self.uri.host())
            .field("path", &self.uri.path())
            .field("headers", &self.headers.keys().map(HeaderName::as_str).collect::<Vec<_>>())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Sets up a [`WebSocketAgent`].
#[must_use = "a builder does nothing until it builds"]
pub struct WebSocketAgentBuilder {
    url: String,
    headers: Headers,
    prepare: Option<Prepare>,
    connect: Option<Duration>,
    options: WebSocketOptions,
    outgoing: Outgoing,
}

impl WebSocketAgentBuilder {
    /// How long it may take to open the socket, unless told otherwise: ten seconds.
    pub const DEFAULT_CONNECT: Duration = Duration::from_secs(10);

    /// Sends this header with each request to open a socket, in place of the one of that name.
    ///
    /// A name or a value that is none is an error when the agent is built.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.headers = self.headers.insert(name.as_ref(), value.as_ref());
        self
    }

    /// Sends these headers with each request, in place of those of the same names.
    pub fn headers(mut self, more: HeaderMap) -> Self {
        self.headers = self.headers.extend(more);
        self
    }

    /// Sends this bearer token with each request. For one that changes, see
    /// [`prepare`](WebSocketAgentBuilder::prepare).
    pub fn bearer(mut self, token: impl AsRef<str>) -> Self {
        self.headers = self.headers.bearer(token.as_ref());
        self
    }

    /// Changes each request before it is sent: a token that was just renewed, a signature, another
    /// address.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::client::WebSocketAgent;
    ///
    /// # fn main() -> Result<(), ag_ui_stream::client::WebSocketError> {
    /// let agent = WebSocketAgent::builder("ws://localhost:8000/agent")
    ///     .prepare(|mut request| async {
    ///         request.headers_mut().insert("authorization", token().await?.parse()?);
    ///         Ok(request)
    ///     })
    ///     .build()?;
    /// # let _ = agent;
    /// # Ok(())
    /// # }
    ///
    /// async fn token() -> std::io::Result<String> {
    ///     Ok("Bearer fresh".into())
    /// }
    /// ```
    pub fn prepare<F, Fut>(self, prepare: F) -> Self
    where
        F: Fn(Request) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Request, BoxError>> + Send + 'static,
    {
        Self { prepare: Some(Arc::new(move |request| Box::pin(prepare(request)))), ..self }
    }

    /// How long it may take until the socket is open; `None` as long as the system allows.
    pub fn connect_timeout(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { connect: limit.into(), ..self }
    }

    /// How sockets are read: bounds and timers.
    pub fn options(self, options: WebSocketOptions) -> Self {
        Self { options, ..self }
    }

    /// Talks to a server that speaks this version of the protocol at most: what it cannot receive is
    /// not sent ([`Outgoing::max_protocol_version`]), and what it cannot say is not given
    /// ([`Downgrader`]), with warnings among the events.
    pub fn max_protocol_version(self, peer: ProtocolVersion) -> Self {
        Self { outgoing: self.outgoing.max_protocol_version(peer), ..self }
    }

    /// The agent.
    ///
    /// # Errors
    /// [`WebSocketError::Request`] for what is no address of a WebSocket;
    /// [`WebSocketError::Prepare`] for what is no header.
    pub fn build(self) -> Result<WebSocketAgent, WebSocketError> {
        let headers = self.headers.finish().map_err(WebSocketError::Prepare)?;
        let uri: Uri = self
            .url
            .parse()
            .map_err(|error: tungstenite::http::uri::InvalidUri| WebSocketError::Request(error.into()))?;
        if !matches!(uri.scheme_str(), Some("ws" | "wss")) {
            return Err(WebSocketError::Request(UrlError::UnsupportedUrlScheme.into()));
        }
        request_to(&uri)?;
        Ok(WebSocketAgent {
            uri,
            headers,
            prepare: self.prepare,
            connect: self.connect,
            options: self.options,
            outgoing: self.outgoing,
            abort: None,
        })
    }
}

impl fmt::Debug for WebSocketAgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketAgentBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}
