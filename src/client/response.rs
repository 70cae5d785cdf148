//! From the answer of a server to events.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use bytes::Bytes;
use futures::stream::{BoxStream, FusedStream, Stream, StreamExt};
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE};
use tokio::time::{Instant, timeout};

use super::excerpt::{MAX_EXCERPT, cut};
use super::guard::{Guarded, until};
use super::{AbortHandle, HttpError};
use crate::codec::{Decoder, Format, SseDecoder};
use crate::combinator::{Decode, Idle};
use crate::error::Error;
use crate::limits::Limits;
use crate::machine::Downgrader;
use crate::raw::RawItem;
use crate::warning::Warning;

/// How long to wait for it.
const EXCERPT_PATIENCE: Duration = Duration::from_secs(5);

/// How an answer is read: bounds, timers, tolerances.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use ag_ui_stream::client::HttpOptions;
///
/// let options = HttpOptions::new().no_bytes_timeout(Duration::from_secs(30)).tolerate_done();
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
#[must_use = "options do nothing by themselves"]
pub struct HttpOptions {
    pub(super) limits: Limits,
    pub(super) no_bytes: Option<Duration>,
    no_event: Option<Duration>,
    pub(super) deadline: Option<Duration>,
    tolerate_done: bool,
    tolerate_empty_data: bool,
}

impl HttpOptions {
    /// How long no byte may come, unless told otherwise: two minutes. Servers that send keep-alive
    /// comments do so every few seconds.
    pub const DEFAULT_NO_BYTES: Duration = Duration::from_secs(2 * 60);
    /// How long no event may come, unless told otherwise: ten minutes. An agent may think for
    /// long.
    pub const DEFAULT_NO_EVENT: Duration = Duration::from_secs(10 * 60);

    /// The default [`Limits`], both timers, no deadline, no tolerance.
    pub fn new() -> Self {
        Self {
            limits: Limits::default(),
            no_bytes: Some(Self::DEFAULT_NO_BYTES),
            no_event: Some(Self::DEFAULT_NO_EVENT),
            deadline: None,
            tolerate_done: false,
            tolerate_empty_data: false,
        }
    }

    /// Other bounds of the decoder; those of enforcement are the
    /// [pipeline](crate::machine::PipelineBuilder)'s.
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// How long no byte may come, counted while the reader waits: [`HttpError::NoBytes`]. `None`
    /// for ever.
    pub fn no_bytes_timeout(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { no_bytes: limit.into(), ..self }
    }

    /// How long no event may come, counted while the reader waits, whatever else comes:
    /// [`HttpError::NoEvent`]. `None` for ever.
    pub fn no_event_timeout(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { no_event: limit.into(), ..self }
    }

    /// How long a run may take in all: [`HttpError::Deadline`]. It ends healthy runs too, so there
    /// is none unless it is asked for.
    pub fn deadline(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { deadline: limit.into(), ..self }
    }

    /// As [`SseDecoder::tolerate_done`].
    pub fn tolerate_done(self) -> Self {
        Self { tolerate_done: true, ..self }
    }

    /// As [`SseDecoder::tolerate_empty_data`].
    pub fn tolerate_empty_data(self) -> Self {
        Self { tolerate_empty_data: true, ..self }
    }

    fn decoder(&self, format: Format) -> Decoder {
        let decoder = match format {
            Format::Sse => {
                let mut decoder = SseDecoder::new();
                if self.tolerate_done {
                    decoder = decoder.tolerate_done();
                }
                if self.tolerate_empty_data {
                    decoder = decoder.tolerate_empty_data();
                }
                decoder.into()
            }
            #[allow(unreachable_patterns, reason = "the only format where the other features are off")]
            other => Decoder::new(other),
        };
        decoder.with_limits(self.limits)
    }
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// The pieces of a body.
struct Body {
    pieces: BoxStream<'static, Result<Bytes, reqwest::Error>>,
    idle: Idle,
}

impl Stream for Body {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        match this.pieces.poll_next_unpin(cx) {
            Poll::Ready(piece) => {
                this.idle.rest();
                Poll::Ready(piece.map(|piece| piece.map_err(HttpError::of_body)))
            }
            Poll::Pending => this.idle.poll(cx).map(|limit| Some(Err(HttpError::NoBytes(limit)))),
        }
    }
}

/// The events of an answer, for [`updates`](crate::EventStreamExt::updates) or any other stage that
/// takes raw events.
///
/// - **Ending**: with the body; that the run was over by then is for verification to say.
/// - **Errors**: [`Error::Source`] with an [`HttpError`], and those of the decoder:
///   [`Error::LimitExceeded`], [`Error::Truncated`] where the body ends within an event,
///   [`Error::Malformed`] from protobuf. The error is the last item.
/// - **Aborting**: drop it, or use the [`AbortHandle`]. Either closes the connection.
/// - **Cancel safety**: a dropped `next()` loses nothing.
///
/// Its timers need a tokio runtime, as the client does.
#[must_use = "streams do nothing unless polled"]
pub struct HttpEvents {
    events: Guarded<Decode<Body, Decoder>>,
    format: Format,
}

impl HttpEvents {
    /// The format of the answer.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// What ends this run from elsewhere.
    #[must_use]
    pub fn abort_handle(&self) -> AbortHandle {
        self.events.abort_handle()
    }

    /// Checks the head of an answer, and gives its events.
    pub(super) async fn open(
        response: Response,
        options: &HttpOptions,
        deadline: Option<(Instant, Duration)>,
        abort: AbortHandle,
    ) -> Result<Self, HttpError> {
        let status = response.status();
        let header = |name| Some(response.headers().get(name)?.to_str().ok()?.trim().to_owned());
        if !status.is_success() {
            return Err(HttpError::Status { status, excerpt: excerpt(response).await });
        }
        let encoding = response.headers().get(CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| {
            !encoding.is_empty() && !encoding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity")
        }) {
            let encoding = encoding.map(|encoding| String::from_utf8_lossy(encoding.as_bytes()).into_owned());
            return Err(HttpError::ContentEncoding { encoding: encoding.unwrap_or_default() });
        }
        let content_type: Option<String> = header(CONTENT_TYPE);
        let Some(format) = content_type.as_deref().and_then(Format::from_content_type) else {
            return Err(HttpError::ContentType { status, content_type, excerpt: excerpt(response).await });
        };
        let pieces = response.bytes_stream().boxed();
        let body = Body { pieces, idle: Idle::new(options.no_bytes) };
        let events = Decode::new(body, options.decoder(format));
        Ok(Self { events: Guarded::new(events, options.no_event, deadline, abort), format })
    }

    /// The same from a server that speaks this version at most, behind these warnings.
    pub(super) fn with_peer(self, peer: Downgrader, warnings: Vec<Warning>) -> Self {
        Self { events: self.events.with_peer(peer, warnings), ..self }
    }
}

impl Stream for HttpEvents {
    type Item = Result<RawItem, Error<HttpError>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.get_mut().events).poll_next(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.events.size_hint()
    }
}

impl FusedStream for HttpEvents {
    fn is_terminated(&self) -> bool {
        self.events.is_terminated()
    }
}

impl fmt::Debug for HttpEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpEvents")
            .field("format", &self.format)
            .field("is_terminated", &self.events.is_terminated())
            .finish_non_exhaustive()
    }
}

/// From a response that is there already to its events, with one call.
///
/// # Examples
/// ```no_run
/// use ag_ui_stream::EventStreamExt;
/// use ag_ui_stream::client::{ResponseExt, reqwest};
/// use futures::TryStreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let response = reqwest::Client::new().post("http://localhost:8000/agent").body("{}").send().await?;
/// let mut updates = response.agent_events().await?.updates();
/// while let Some(update) = updates.try_next().await? {
///     println!("{:?}", update.snapshot());
/// }
/// # Ok(())
/// # }
/// ```
pub trait ResponseExt: Sized {
    /// The events of the response, read with the default [`HttpOptions`].
    ///
    /// It waits for nothing unless the response is at fault: then for the beginning of its body,
    /// a few seconds at most.
    ///
    /// # Errors
    /// [`HttpError::Status`], [`HttpError::ContentEncoding`], [`HttpError::ContentType`], in this
    /// order.
    ///
    /// # Cancel safety
    /// To drop the future is to drop the response, and to close its connection.
    fn agent_events(self) -> impl Future<Output = Result<HttpEvents, HttpError>> + Send {
        self.agent_events_with(HttpOptions::new())
    }

    /// The same with other options. A [deadline](HttpOptions::deadline) counts from here.
    ///
    /// # Errors
    /// The same.
    ///
    /// # Cancel safety
    /// The same.
    fn agent_events_with(self, options: HttpOptions) -> impl Future<Output = Result<HttpEvents, HttpError>> + Send;
}

impl ResponseExt for Response {
    async fn agent_events_with(self, options: HttpOptions) -> Result<HttpEvents, HttpError> {
        let deadline = until(options.deadline);
        HttpEvents::open(self, &options, deadline, AbortHandle::new()).await
    }
}

/// The beginning of a body, as far as it comes in good time.
async fn excerpt(mut response: Response) -> String {
    let mut bytes = Vec::new();
    let read = async {
        while bytes.len() <= MAX_EXCERPT {
            match response.chunk().await {
                Ok(Some(piece)) => {
                    let room = MAX_EXCERPT + 1 - bytes.len();
                    bytes.extend_from_slice(piece.get(..room).unwrap_or(&piece));
                }
                Ok(None) | Err(_) => break,
            }
        }
    };
    // What came is quoted, whatever kept the rest from coming.
    let _ = timeout(EXCERPT_PATIENCE, read).await;
    cut(&bytes)
}
