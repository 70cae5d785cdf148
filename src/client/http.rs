//! The agent behind an address.

use core::fmt;
use core::future::Future;
use core::time::Duration;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder};

use super::body::body_of;
use super::guard::{unless_aborted, until, within};
use super::headers::Headers;
use super::{AbortHandle, HttpError, HttpEvents, HttpOptions};
use crate::agent::{Agent, AgentError, BoxError, RawEventStream, raw_event_stream};
use crate::codec::Format;
use crate::machine::Downgrader;
use crate::outgoing::Outgoing;
use crate::run_input::RunAgentInput;
use crate::version::ProtocolVersion;

/// What changes a request before it is sent.
type Prepare = Arc<dyn Fn(RequestBuilder) -> BoxFuture<'static, Result<RequestBuilder, BoxError>> + Send + Sync>;

/// An agent behind an HTTP address: it posts the input of a run, and gives the events of the
/// answer, server-sent events or protobuf.
///
/// - What is sent is the input as [`Outgoing`] makes it ready (rule T4). What that has to say are the
///   first warnings of the stream.
/// - Status, `Content-Encoding` and `Content-Type` are checked before anything is read: an HTML
///   page is never a success, nor is an empty body, which verification finds truncated.
/// - One request a run: nothing is tried again, nothing resumed.
/// - To drop the stream is to close the connection; an [`AbortHandle`] does so from elsewhere.
///
/// [`start`](HttpAgent::start) gives the events with a typed error of the source. As an [`Agent`] it
/// gives the same, that error within [`AgentError`].
///
/// A clone is cheap, and shares the connections.
///
/// # Examples
/// ```no_run
/// use ag_ui_stream::client::HttpAgent;
/// use ag_ui_stream::message::UserMessage;
/// use ag_ui_stream::{AgentExt, RunAgentInput};
/// use futures::TryStreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = HttpAgent::builder("http://localhost:8000/agent").bearer("secret").build()?;
/// let input = RunAgentInput::new("thread", "run", [UserMessage::new("m1", "Hello").into()]);
/// let mut snapshots = agent.snapshots(input).await?;
/// while let Some(snapshot) = snapshots.try_next().await? {
///     println!("{snapshot:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HttpAgent {
    client: Client,
    url: reqwest::Url,
    headers: HeaderMap,
    prepare: Option<Prepare>,
    options: HttpOptions,
    outgoing: Outgoing,
    abort: Option<AbortHandle>,
}

impl HttpAgent {
    /// An agent at this address, with a client of its own and the default [`HttpOptions`].
    ///
    /// # Errors
    /// [`HttpError::Client`] for what is no address.
    pub fn new(url: impl AsRef<str>) -> Result<Self, HttpError> {
        Self::builder(url).build()
    }

    /// An agent at this address, to be set up.
    pub fn builder(url: impl AsRef<str>) -> HttpAgentBuilder {
        HttpAgentBuilder {
            client: None,
            url: url.as_ref().to_owned(),
            headers: Headers::new(),
            prepare: None,
            connect: Some(HttpAgentBuilder::DEFAULT_CONNECT),
            options: HttpOptions::new(),
            outgoing: Outgoing::new(),
        }
    }

    /// The same agent with a handle that ends its runs, the wait for an answer included.
    pub fn abortable(&self) -> (Self, AbortHandle) {
        let abort = AbortHandle::new();
        (Self { abort: Some(abort.clone()), ..self.clone() }, abort)
    }

    /// Starts a run, and gives its events once the head of the answer is there and found good.
    ///
    /// They bring no conversation along: where the input has messages, as behind the first turn, the
    /// stage behind is one with [a pipeline that knows them](crate::machine::PipelineBuilder::input),
    /// as [`AgentExt`](crate::AgentExt) has it.
    ///
    /// # Errors
    /// [`HttpError`], all but [`Body`](HttpError::Body) and [`NoEvent`](HttpError::NoEvent).
    ///
    /// # Cancel safety
    /// To drop the future is to give the run up; the server may have begun it.
    pub async fn start(&self, input: RunAgentInput) -> Result<HttpEvents, HttpError> {
        let (body, warnings) = body_of(self.outgoing, input)?;
        let abort = self.abort.clone().unwrap_or_else(AbortHandle::new);
        let deadline = until(self.options.deadline);
        let run = async {
            let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body);
            let request = match &self.prepare {
                Some(prepare) => prepare(request).await.map_err(HttpError::Prepare)?,
                None => request,
            };
            let response = within(self.options.no_bytes, HttpError::NoBytes, async {
                request.send().await.map_err(HttpError::of_request)
            });
            let events = HttpEvents::open(response.await?, &self.options, deadline, abort.clone()).await?;
            Ok(events.with_peer(Downgrader::new(self.outgoing.peer()).with_limits(self.options.limits), warnings))
        };
        let run = within(self.options.deadline, HttpError::Deadline, run);
        unless_aborted(abort.clone(), run).await
    }
}

#[async_trait]
impl Agent for HttpAgent {
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
        Ok(raw_event_stream(self.start(input).await?))
    }
}

impl fmt::Debug for HttpAgent {
    /// Without the address's query and the values of headers: they may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpAgent")
            .field("host", &self.url.host_str())
            .field("path", &self.url.path())
            .field("headers", &self.headers.keys().map(HeaderName::as_str).collect::<Vec<_>>())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Sets up an [`HttpAgent`].
#[must_use = "a builder does nothing until it builds"]
pub struct HttpAgentBuilder {
    client: Option<Client>,
    url: String,
    headers: Headers,
    prepare: Option<Prepare>,
    connect: Option<Duration>,
    options: HttpOptions,
    outgoing: Outgoing,
}

impl HttpAgentBuilder {
    /// How long it may take to connect, unless told otherwise: ten seconds.
    pub const DEFAULT_CONNECT: Duration = Duration::from_secs(10);

    /// Uses this client: its pool, its proxies, its TLS, its redirects, its connect timeout. A
    /// total timeout that it has would end healthy runs.
    ///
    /// A client of the agent's own follows only the redirects that repeat the `POST`, 307 and 308.
    pub fn client(self, client: Client) -> Self {
        Self { client: Some(client), ..self }
    }

    /// Sends this header with each request, in place of the one of that name.
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
    /// [`prepare`](HttpAgentBuilder::prepare).
    pub fn bearer(mut self, token: impl AsRef<str>) -> Self {
        self.headers = self.headers.bearer(token.as_ref());
        self
    }

    /// Changes each request before it is sent: a token that was just renewed, a signature, a trace.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::client::HttpAgent;
    ///
    /// # fn main() -> Result<(), ag_ui_stream::client::HttpError> {
    /// let agent = HttpAgent::builder("http://localhost:8000/agent")
    ///     .prepare(|request| async { Ok(request.bearer_auth(token().await?)) })
    ///     .build()?;
    /// # let _ = agent;
    /// # Ok(())
    /// # }
    ///
    /// async fn token() -> std::io::Result<String> {
    ///     Ok("fresh".into())
    /// }
    /// ```
    pub fn prepare<F, Fut>(self, prepare: F) -> Self
    where
        F: Fn(RequestBuilder) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<RequestBuilder, BoxError>> + Send + 'static,
    {
        Self { prepare: Some(Arc::new(move |request| Box::pin(prepare(request)))), ..self }
    }

    /// How long it may take to connect; `None` as long as the system allows. Without effect on a
    /// [`client`](HttpAgentBuilder::client) that was given.
    pub fn connect_timeout(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { connect: limit.into(), ..self }
    }

    /// How answers are read: bounds, timers, tolerances.
    pub fn options(self, options: HttpOptions) -> Self {
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
    /// [`HttpError::Client`] for what is no address, or where the system has no client to give;
    /// [`HttpError::Prepare`] for what is no header.
    pub fn build(self) -> Result<HttpAgent, HttpError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static(accept()));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.extend(self.headers.finish().map_err(HttpError::Prepare)?);
        let client = match self.client {
            Some(client) => client,
            None => {
                let mut builder = Client::builder()
                    .redirect(reqwest::redirect::Policy::custom(|attempt| match attempt.status().as_u16() {
                        307 | 308 if attempt.previous().len() < 10 => attempt.follow(),
                        _ => attempt.stop(),
                    }))
                    .retry(reqwest::retry::never());
                if let Some(limit) = self.connect {
                    builder = builder.connect_timeout(limit);
                }
                builder.build().map_err(HttpError::of_request)?
            }
        };
        // Parsed by the client, so that the error is its own.
        let url = client.post(&self.url).build().map_err(HttpError::of_request)?.url().clone();
        Ok(HttpAgent {
            client,
            url,
            headers,
            prepare: self.prepare,
            options: self.options,
            outgoing: self.outgoing,
            abort: None,
        })
    }
}

/// Both bindings, the one that can say everything first.
fn accept() -> &'static str {
    #[cfg(feature = "protobuf")]
    {
        const ACCEPT: &str = "text/event-stream, application/vnd.ag-ui.event+proto;q=0.9";
        debug_assert!(ACCEPT.contains(Format::Protobuf.media_type()));
        ACCEPT
    }
    #[cfg(not(feature = "protobuf"))]
    Format::Sse.media_type()
}

impl fmt::Debug for HttpAgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpAgentBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}
