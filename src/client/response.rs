//! The events of an HTTP response.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use bytes::Bytes;
use futures::stream::{BoxStream, FusedStream, Stream, StreamExt};
use pin_project_lite::pin_project;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Response, Url};
use tokio::time::timeout;

use super::error::Answer;
use super::excerpt::{MAX_EXCERPT, cut};
use super::options::{Common, common_options};
use super::stoppable::{Deadline, Stoppable, stoppable_events, until};
use super::{AbortHandle, ClientError};
use crate::codec::{Decoder, Format, SseDecoder};
use crate::combinator::{Idle, Staged};
use crate::error::Error;
use crate::excerpt::excerpt;
use crate::machine::{Downgrader, Machine, Push, Repairs};
use crate::options::Options;
use crate::raw::RawItem;
use crate::rule::Rule;
use crate::warning::Warning;

/// The longest wait for the beginning of a body that an error quotes.
const EXCERPT_PATIENCE: Duration = Duration::from_secs(5);

/// How an answer over HTTP is read: bounds, timers, tolerances.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use ag_ui_stream::client::HttpOptions;
///
/// let options = HttpOptions::new()
///     .no_bytes_timeout(Duration::from_secs(30))
///     .after_run(Duration::ZERO) // for a server that keeps the connection open
///     .tolerate_done();
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
#[must_use = "options do nothing by themselves"]
pub struct HttpOptions {
    pub(super) common: Common,
    tolerate_done: bool,
    tolerate_empty_data: bool,
    assume: Option<Format>,
}

impl HttpOptions {
    /// The default of the longest time without a byte: two minutes. Servers that send keep-alive
    /// comments do so every few seconds.
    pub const DEFAULT_NO_BYTES: Duration = Common::SILENCE;

    /// The default [`Limits`](crate::Limits), both timers, no deadline, no tolerance, and the server closes the
    /// connection.
    pub fn new() -> Self {
        Self { common: Common::new(None), tolerate_done: false, tolerate_empty_data: false, assume: None }
    }

    /// The longest time for the head of the answer, else [`ClientError::NoHead`], and then without a byte
    /// of its body, counted while the reader waits, else [`ClientError::Silent`]. `None` for no limit.
    pub fn no_bytes_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.common.silence = limit.into();
        self
    }

    /// As [`SseDecoder::tolerate_done`].
    pub fn tolerate_done(self) -> Self {
        Self { tolerate_done: true, ..self }
    }

    /// As [`SseDecoder::tolerate_empty_data`].
    pub fn tolerate_empty_data(self) -> Self {
        Self { tolerate_empty_data: true, ..self }
    }

    /// Reads an answer without a `Content-Type`, or with one of another kind, as this format, with a
    /// warning (rule T1a). Without this option it is [`ClientError::ContentType`]; with it, an HTML page
    /// is [`ClientError::NoEvents`].
    pub fn assume_format(self, format: Format) -> Self {
        Self { assume: Some(format), ..self }
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
        let options = &self.common.options;
        decoder.with_limits(self.common.limits()).with_repairs(options.repairs.unwrap_or(Repairs::NONE))
    }
}

common_options!(HttpOptions);

/// The pieces of a body.
struct Pieces {
    pieces: BoxStream<'static, Result<Bytes, reqwest::Error>>,
    idle: Idle,
}

impl Stream for Pieces {
    type Item = Result<Bytes, ClientError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        match this.pieces.poll_next_unpin(cx) {
            Poll::Ready(piece) => {
                this.idle.rest();
                // Addresses may hold secrets.
                let failed = |error: reqwest::Error| ClientError::Body(error.without_url().into());
                Poll::Ready(piece.map(|piece| piece.map_err(failed)))
            }
            Poll::Pending => this.idle.poll(cx).map(|limit| Some(Err(ClientError::Silent(limit)))),
        }
    }
}

/// A decoder that remembers how a body began, until the first event.
struct Quoting {
    decoder: Decoder,
    beginning: Vec<u8>,
}

impl Quoting {
    /// The beginning of a body that held no event; `None` if it was empty.
    fn quote(&self) -> Option<String> {
        let is_quoted = self.decoder.event_count() == 0 && !self.beginning.trim_ascii().is_empty();
        is_quoted.then(|| cut(&self.beginning))
    }
}

impl Push<Bytes> for Quoting {
    fn push(&mut self, piece: Bytes) -> Result<(), Error> {
        if self.decoder.event_count() > 0 {
            self.beginning = Vec::new();
        } else {
            let room = (MAX_EXCERPT + 1).saturating_sub(self.beginning.len());
            self.beginning.extend_from_slice(piece.get(..room).unwrap_or(&piece));
        }
        self.decoder.push(piece)
    }
}

impl Machine for Quoting {
    type Output = RawItem;

    fn pop(&mut self) -> Option<RawItem> {
        self.decoder.pop()
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.decoder.finish()
    }
}

pin_project! {
    /// The events of a body, without timers and handle.
    struct Body {
        #[pin]
        inner: Staged<Pieces, Quoting>,
    }
}

impl Stream for Body {
    type Item = Result<RawItem, Error<ClientError>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut inner = self.project().inner;
        let item = ready!(inner.as_mut().poll_next(cx, |piece| piece.map_err(Error::Source), Some));
        Poll::Ready(item.or_else(|| {
            let excerpt = inner.machine().quote()?;
            Some(Err(Error::Source(ClientError::NoEvents { excerpt })))
        }))
    }
}

pin_project! {
    /// The events of an answer, for [`updates`](crate::EventStreamExt::updates) or any other stage that
    /// takes raw events.
    ///
    /// - **Ending**: with the body, or [after the end of a run](HttpOptions::after_run) if so configured;
    ///   verification checks that the run was over.
    /// - **Errors**: [`Error::Source`] with a [`ClientError`], and those of the decoder:
    ///   [`Error::LimitExceeded`], [`Error::Truncated`] if the body ends within an event of a run,
    ///   [`Error::Malformed`] from protobuf. The error is the last item.
    /// - **Aborting**: drop it, or use the [`AbortHandle`]. Either closes the connection.
    /// - **Cancel safety**: a dropped `next()` loses nothing.
    ///
    /// Its timers need a tokio runtime, as the client does.
    #[must_use = "streams do nothing unless polled"]
    pub struct HttpEvents {
        #[pin]
        events: Stoppable<Body>,
        format: Format,
    }
}

stoppable_events!(HttpEvents);

impl HttpEvents {
    /// The format of the answer.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Checks the head of an answer, and gives its events.
    pub(super) async fn open(
        response: Response,
        options: &HttpOptions,
        deadline: Deadline,
        abort: AbortHandle,
    ) -> Result<Self, ClientError> {
        let status = response.status();
        if status.is_redirection() {
            if let Some(to) = location(&response) {
                return Err(ClientError::Redirect { status, to });
            }
        }
        if !status.is_success() {
            return Err(ClientError::Status(answer(response).await));
        }
        if let Some(encoding) = encoding(&response) {
            return Err(ClientError::ContentEncoding { encoding });
        }
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type.and_then(|found| Some(found.to_str().ok()?.trim().to_owned()));
        let mut warnings = Vec::new();
        let format = match (content_type.as_deref().and_then(Format::from_content_type), options.assume) {
            (Some(format), _) => format,
            (None, Some(format)) => {
                let found = match &content_type {
                    Some(found) => format!("of type {:?}", excerpt(found, 80)),
                    None => "without a content type".to_owned(),
                };
                let message = format!("read an answer {found} as {}", format.media_type());
                warnings.push(RawItem::Warning(Warning::new(Rule::T1a, 0, "", "", message)));
                format
            }
            (None, None) => {
                return Err(ClientError::ContentType { content_type, answer: answer(response).await });
            }
        };
        let pieces = Pieces { pieces: response.bytes_stream().boxed(), idle: Idle::new(options.common.silence) };
        let decoder = Quoting { decoder: options.decoder(format), beginning: Vec::new() };
        let body = Body { inner: Staged::new(pieces, decoder) };
        let events = Stoppable::new(body, &options.common, deadline, abort).after(warnings);
        Ok(Self { events, format })
    }
}

/// The address that an answer redirects to, without its secret parts.
fn location(response: &Response) -> Option<String> {
    let location = response.headers().get(LOCATION)?;
    let url = response.url().join(&String::from_utf8_lossy(location.as_bytes()));
    Some(url.map_or_else(|_| "an invalid address".to_owned(), public))
}

/// The address without user, query and fragment.
fn public(mut url: Url) -> String {
    // They fail only for an address that cannot have a user.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// All encodings of an answer, if it has any but `identity`.
fn encoding(response: &Response) -> Option<String> {
    let values = response.headers().get_all(CONTENT_ENCODING).iter();
    let named: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    let is_plain = |name: &str| name.is_empty() || name.eq_ignore_ascii_case("identity");
    let is_encoded = named.iter().flat_map(|names| names.split(',')).any(|name| !is_plain(name.trim()));
    is_encoded.then(|| named.join(", "))
}

/// The events of a response of your own, with one call.
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
    /// It waits only if the response is at fault: then for the beginning of its body, a few seconds at
    /// most.
    ///
    /// # Errors
    /// [`ClientError::Redirect`], [`ClientError::Status`], [`ClientError::ContentEncoding`],
    /// [`ClientError::ContentType`], in this order.
    ///
    /// # Cancel safety
    /// Dropping the future drops the response and closes its connection.
    fn agent_events(self) -> impl Future<Output = Result<HttpEvents, ClientError>> + Send {
        self.agent_events_with(HttpOptions::new())
    }

    /// The same with other options. A [deadline](HttpOptions::deadline) counts from here.
    ///
    /// # Errors
    /// The same.
    ///
    /// # Cancel safety
    /// The same.
    fn agent_events_with(self, options: HttpOptions) -> impl Future<Output = Result<HttpEvents, ClientError>> + Send;
}

impl ResponseExt for Response {
    async fn agent_events_with(self, options: HttpOptions) -> Result<HttpEvents, ClientError> {
        let deadline = until(options.common.deadline);
        HttpEvents::open(self, &options, deadline, AbortHandle::new()).await
    }
}

/// An answer without events, with the beginning of its body as far as it comes within a few seconds.
async fn answer(mut response: Response) -> Box<Answer> {
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
    // What came is quoted, even if the rest failed or took too long.
    let _ = timeout(EXCERPT_PATIENCE, read).await;
    Answer::new(response.status(), response.headers().clone(), &bytes)
}
