//! `HttpAgent`: runs an agent behind an HTTP address.

use core::fmt;
use core::future::Future;
use core::time::Duration;
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Url};

use super::builder::{CONNECT, Runner, Setup, agent_and_builder};
use super::stoppable::within;
use super::{AbortHandle, ClientError, HttpEvents, HttpOptions};
use crate::agent::{Agent, AgentError, BoxError, RawEventStream, told};
use crate::codec::Format;
use crate::options::Options;
use crate::run_input::RunAgentInput;
use crate::version::ProtocolVersion;

/// An agent behind an HTTP address: it posts the input of a run, and gives the events of the
/// answer, server-sent events or protobuf.
///
/// - The input is prepared by [`Outgoing`](crate::input::Outgoing) (rule T4). Its warnings come first in
///   the stream.
/// - Status, `Content-Encoding` and `Content-Type` are checked before the body is read: an HTML page is
///   never a success, nor is an empty body, which verification finds truncated.
/// - One request a run: no retry, no resuming. A redirect that repeats the `POST`, 307 or 308, is
///   followed within the origin of the address and to origins that
///   [`redirects_to`](HttpAgentBuilder::redirects_to) names. Any other is [`ClientError::Redirect`]: it
///   would drop the `POST`, or send headers, conversation and state elsewhere.
/// - Dropping the stream closes the connection; an [`AbortHandle`] does so from elsewhere.
///
/// [`start`](HttpAgent::start) gives the events with a typed error of the source. As an [`Agent`] it
/// gives the same, with that error within [`AgentError`].
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
    url: Url,
    runner: Runner<RequestBuilder, HttpOptions>,
}

impl HttpAgent {
    /// An agent at this address, to be set up.
    pub fn builder(url: impl AsRef<str>) -> HttpAgentBuilder {
        HttpAgentBuilder {
            client: None,
            url: url.as_ref().to_owned(),
            trusted: Vec::new(),
            setup: Setup::new(HttpOptions::new()),
        }
    }

    /// Starts a run, and gives its events once the head of the answer has come and is valid.
    ///
    /// They [say first](crate::RawItem::Options) what the conversation is, where the input has one, and
    /// how they are read.
    ///
    /// # Errors
    /// [`ClientError`]: the variants before the first event.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the run, which the server may have begun.
    pub async fn start(&self, input: RunAgentInput) -> Result<HttpEvents, ClientError> {
        let options = &self.runner.options;
        let run = async |body: String, deadline, abort| {
            let request = self.client.post(self.url.clone()).headers(self.runner.headers.clone()).body(body);
            let request = self.runner.prepare(request).await?;
            let response = within(options.common.silence, ClientError::NoHead, async {
                request.send().await.map_err(ClientError::of_request)
            });
            HttpEvents::open(response.await?, options, deadline, abort).await
        };
        let (events, peer, first) = self.runner.start(&options.common, input, run).await?;
        Ok(events.with_peer(peer, first))
    }
}

impl fmt::Debug for HttpAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.runner.show("HttpAgent", self.url.host_str(), self.url.path(), f)
    }
}

/// The most redirects followed for one run, the same as in `reqwest`.
const MAX_REDIRECTS: usize = 10;

/// Sets up an [`HttpAgent`].
#[must_use = "a builder does nothing until it builds"]
pub struct HttpAgentBuilder {
    client: Option<Client>,
    url: String,
    trusted: Vec<String>,
    setup: Setup<RequestBuilder, HttpOptions>,
}

agent_and_builder!(
    HttpAgent,
    HttpAgentBuilder,
    RequestBuilder,
    HttpOptions,
    "use ag_ui_stream::client::HttpAgent;"
    ""
    "# fn main() -> Result<(), ag_ui_stream::client::ClientError> {"
    "let agent = HttpAgent::builder(\"http://localhost:8000/agent\")"
    "    .prepare(|request| async { Ok(request.bearer_auth(token().await?)) })"
    "    .build()?;"
    "# let _ = agent;"
    "# Ok(())"
    "# }"
    ""
    "async fn token() -> std::io::Result<String> {"
    "    Ok(\"fresh\".into())"
    "}"
);

impl HttpAgentBuilder {
    /// Uses this client: its pool, its proxies, its TLS, its connect timeout. If it has a total timeout,
    /// that ends healthy runs.
    ///
    /// Its redirects too: a client with the defaults of `reqwest` follows a redirect anywhere, and sends
    /// the conversation and all headers but `Authorization` and cookies. One with [`Policy::none`]
    /// follows none.
    pub fn client(self, client: Client) -> Self {
        Self { client: Some(client), ..self }
    }

    /// Follows redirects to this origin too, such as `https://eu.example.com`, if they repeat the
    /// `POST`: 307 and 308. The origin receives the input and all headers but `Authorization`. A
    /// redirect from `https` to `http` is never followed, nor is an eleventh.
    ///
    /// Has no effect on a [`client`](HttpAgentBuilder::client) of your own.
    pub fn redirects_to(mut self, origin: impl AsRef<str>) -> Self {
        self.trusted.push(origin.as_ref().to_owned());
        self
    }

    /// Limits the time to connect; `None` for the limit of the system. Has no effect on a
    /// [`client`](HttpAgentBuilder::client) of your own.
    pub fn connect_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.setup.connect = limit.into();
        self
    }

    /// The agent.
    ///
    /// # Errors
    /// [`ClientError::Request`] for an invalid address or origin, or if the system provides no client;
    /// [`ClientError::Prepare`] for an invalid header.
    pub fn build(self) -> Result<HttpAgent, ClientError> {
        let trusted: Result<Vec<Url>, _> = self.trusted.iter().map(|origin| origin.parse()).collect();
        let trusted = trusted.map_err(|error| ClientError::Request(BoxError::from(error)))?;
        let client = match self.client {
            Some(client) => client,
            None => {
                let mut builder = Client::builder().redirect(redirects(trusted)).retry(reqwest::retry::never());
                if let Some(limit) = self.setup.connect {
                    builder = builder.connect_timeout(limit);
                }
                builder.build().map_err(ClientError::of_request)?
            }
        };
        // Parsed by the client, so that the error is its own.
        let url = client.post(&self.url).build().map_err(ClientError::of_request)?.url().clone();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static(accept()));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Ok(HttpAgent { client, url, runner: self.setup.finish(headers)? })
    }
}

/// Follows redirects to addresses that [may be asked](may_ask), and stops at the answer with any other.
fn redirects(trusted: Vec<Url>) -> Policy {
    Policy::custom(move |attempt| {
        let repeats = matches!(attempt.status().as_u16(), 307 | 308);
        match repeats && may_ask(attempt.url(), attempt.previous(), &trusted) {
            true => attempt.follow(),
            false => attempt.stop(),
        }
    })
}

/// Whether an address may be asked after these: its origin is one of theirs or is trusted, `http` does
/// not follow `https`, and there were not too many.
fn may_ask(url: &Url, asked: &[Url], trusted: &[Url]) -> bool {
    let is_known = asked.iter().chain(trusted).any(|known| known.origin() == url.origin());
    let is_downgrade = url.scheme() != "https" && asked.iter().any(|asked| asked.scheme() == "https");
    is_known && !is_downgrade && asked.len() <= MAX_REDIRECTS
}

/// Both bindings, the more expressive one first.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_be_asked_after_a_redirect() {
        let urls = |urls: &[&str]| urls.iter().map(|url| url.parse().unwrap()).collect::<Vec<Url>>();
        for (url, asked, trusted, may) in [
            ("https://a/x", &["https://a/"][..], &[][..], true),
            ("https://a:443/x", &["https://a/"], &[], true),
            ("https://a:444/", &["https://a/"], &[], false),
            ("https://b/", &["https://a/"], &[], false),
            ("https://b/", &["https://a/"], &["https://b"], true),
            ("https://b.a/", &["https://a/"], &[], false),
            ("https://a/", &["http://a/"], &[], false),
            ("https://a/", &["http://a/"], &["https://a"], true),
            // Back to where it began.
            ("https://a/y", &["https://a/", "https://b/"], &["https://b"], true),
            // Never from `https` to `http`, though it is trusted, nor by a detour.
            ("http://a/", &["https://a/"], &["http://a"], false),
            ("http://a/", &["http://a/", "https://b/"], &["https://b"], false),
        ] {
            let given = (urls(&[url]), urls(asked), urls(trusted));
            assert_eq!(may_ask(&given.0[0], &given.1, &given.2), may, "{url} after {asked:?}, {trusted:?}");
        }
        let ten = vec!["http://a/".parse().unwrap(); 10];
        let eleven = vec!["http://a/".parse().unwrap(); 11];
        assert!(may_ask(&ten[0], &ten, &[]) && !may_ask(&ten[0], &eleven, &[]));
    }
}
