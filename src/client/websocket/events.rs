//! From a socket to events.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite;
use tungstenite::Message;

use super::messages::Messages;
use super::{WebSocketConnection, WebSocketError};
use crate::client::AbortHandle;
use crate::client::guard::{Guarded, until};
use crate::codec::MessageDecoder;
use crate::combinator::{Idle, Staged};
use crate::error::Error;
use crate::limits::Limits;
use crate::machine::Downgrader;
use crate::raw::RawItem;
use crate::warning::Warning;

/// How a socket is read: bounds and timers.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use ag_ui_stream::client::WebSocketOptions;
///
/// let options = WebSocketOptions::new().no_message_timeout(Duration::from_secs(30));
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
#[must_use = "options do nothing by themselves"]
pub struct WebSocketOptions {
    pub(super) limits: Limits,
    pub(super) no_message: Option<Duration>,
    no_event: Option<Duration>,
    pub(super) deadline: Option<Duration>,
    after_run: Option<Duration>,
}

impl WebSocketOptions {
    /// How long no message may come, unless told otherwise: two minutes. Servers that send pings do
    /// so every few seconds.
    pub const DEFAULT_NO_MESSAGE: Duration = Duration::from_secs(2 * 60);
    /// How long no event may come, unless told otherwise: ten minutes. An agent may think for
    /// long.
    pub const DEFAULT_NO_EVENT: Duration = Duration::from_secs(10 * 60);
    /// How long to wait behind the end of a run, unless told otherwise: one second.
    pub const DEFAULT_AFTER_RUN: Duration = Duration::from_secs(1);

    /// The default [`Limits`], all timers but no deadline.
    pub fn new() -> Self {
        Self {
            limits: Limits::default(),
            no_message: Some(Self::DEFAULT_NO_MESSAGE),
            no_event: Some(Self::DEFAULT_NO_EVENT),
            deadline: None,
            after_run: Some(Self::DEFAULT_AFTER_RUN),
        }
    }

    /// Other bounds of the decoder; those of enforcement are the
    /// [pipeline](crate::machine::PipelineBuilder)'s. One message may be no longer than one event.
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// How long no message may come, counted while the reader waits: [`WebSocketError::NoMessage`].
    /// A ping is a message, a part of one is none. `None` for ever.
    pub fn no_message_timeout(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { no_message: limit.into(), ..self }
    }

    /// How long no event may come, counted while the reader waits, whatever else comes:
    /// [`WebSocketError::NoEvent`]. `None` for ever.
    pub fn no_event_timeout(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { no_event: limit.into(), ..self }
    }

    /// How long a run may take in all: [`WebSocketError::Deadline`]. It ends healthy runs too, so
    /// there is none unless it is asked for.
    pub fn deadline(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { deadline: limit.into(), ..self }
    }

    /// How long to wait for more behind an event that ends a run: a late `RUN_ERROR`, a further run
    /// (rule R4), or that the server closes the socket, which not all do. When it is over the
    /// stream ends in good order. Zero takes what is there already; `None` is for a socket whose
    /// server goes on by itself, and waits until that closes it.
    pub fn after_run(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { after_run: limit.into(), ..self }
    }
}

impl Default for WebSocketOptions {
    fn default() -> Self {
        Self::new()
    }
}

pin_project! {
    /// The events of a socket, before what can end them.
    struct Decoded<S> {
        #[pin]
        inner: Staged<Messages<S>, MessageDecoder>,
        after_run: Idle,
    }
}

impl<S> Stream for Decoded<S>
where
    S: Stream<Item = Result<Message, tungstenite::Error>>,
{
    type Item = Result<RawItem, Error<WebSocketError>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        match this.inner.as_mut().poll_next(cx, |message| message.map_err(Error::Source)) {
            Poll::Ready(item) => {
                this.after_run.rest();
                Poll::Ready(item)
            }
            Poll::Pending if this.inner.machine().is_run_over() => this.after_run.poll(cx).map(|_| None),
            Poll::Pending => Poll::Pending,
        }
    }
}

pin_project! {
    /// The events of a socket, for [`updates`](crate::EventStreamExt::updates) or any other stage
    /// that takes raw events.
    ///
    /// - **Messages**: a text message is one event in JSON. A binary message is protobuf (rule T2,
    ///   feature `protobuf`): one or more whole frames, each a length of four bytes and an event,
    ///   as this crate and npm `@ag-ui/proto` write them; or one event without its length. Which of
    ///   the two is plain, since no event begins with a zero. Pings are answered.
    /// - **Ending**: with a close without a code or with 1000 or 1001, and when nothing more comes
    ///   [behind the end of a run](WebSocketOptions::after_run). That the run was over when the
    ///   socket was closed is for verification to say.
    /// - **Errors**: [`Error::Source`] with a [`WebSocketError`], and those of the decoder:
    ///   [`Error::LimitExceeded`] for a message that is too long, [`Error::Malformed`] for protobuf
    ///   that cannot be read (rule T2) and for text that is not UTF-8 (rule E9). The error is the
    ///   last item.
    /// - **Aborting**: drop it, or use the [`AbortHandle`]. Either drops the socket.
    /// - **Cost**: one copy of each text.
    /// - **Cancel safety**: a dropped `next()` loses nothing.
    ///
    /// Its timers need a tokio runtime.
    #[must_use = "streams do nothing unless polled"]
    pub struct WebSocketEvents<S = WebSocketConnection> {
        #[pin]
        events: Guarded<Decoded<S>>,
    }
}

impl<S> WebSocketEvents<S> {
    pub(super) fn open(
        socket: S,
        options: &WebSocketOptions,
        deadline: Option<(Instant, Duration)>,
        abort: AbortHandle,
    ) -> Self {
        let messages = Messages::new(socket, options.no_message);
        let decoder = MessageDecoder::with_limits(options.limits);
        let inner = Staged::new(messages, decoder);
        let decoded = Decoded { inner, after_run: Idle::new(options.after_run) };
        Self { events: Guarded::new(decoded, options.no_event, deadline, abort) }
    }

    /// The same from a server that speaks this version at most, behind these warnings.
    pub(super) fn with_peer(self, peer: Downgrader, warnings: Vec<Warning>) -> Self {
        Self { events: self.events.with_peer(peer, warnings) }
    }

    /// What ends this stream from elsewhere.
    #[must_use]
    pub fn abort_handle(&self) -> AbortHandle {
        self.events.abort_handle()
    }
}

impl<S> Stream for WebSocketEvents<S>
where
    S: Stream<Item = Result<Message, tungstenite::Error>>,
{
    type Item = Result<RawItem, Error<WebSocketError>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.project().events.poll_next(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.events.size_hint()
    }
}

impl<S> FusedStream for WebSocketEvents<S>
where
    S: Stream<Item = Result<Message, tungstenite::Error>>,
{
    fn is_terminated(&self) -> bool {
        self.events.is_terminated()
    }
}

impl<S> fmt::Debug for WebSocketEvents<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketEvents").field("is_terminated", &self.events.is_terminated()).finish_non_exhaustive()
    }
}

/// From a socket that is open already to its events, with one call: any stream of the messages of
/// `tungstenite`, a half of a socket and `&mut` of one included.
///
/// # Examples
/// One socket for many runs, each with an input of its own:
/// ```no_run
/// use std::time::Duration;
///
/// use ag_ui_stream::EventStreamExt;
/// use ag_ui_stream::client::{WebSocketExt, WebSocketOptions, tokio_tungstenite, tungstenite::Message};
/// use futures::{SinkExt, TryStreamExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let inputs: Vec<String> = Vec::new();
/// let (mut socket, _) = tokio_tungstenite::connect_async("ws://localhost:8000/agent").await?;
/// let options = WebSocketOptions::new().after_run(Duration::ZERO);
/// for input in inputs {
///     socket.send(Message::text(input)).await?;
///     let mut updates = (&mut socket).agent_events_with(options.clone()).updates();
///     while let Some(update) = updates.try_next().await? {
///         println!("{:?}", update.snapshot());
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub trait WebSocketExt: Stream<Item = Result<Message, tungstenite::Error>> + Sized {
    /// The events of the socket, read with the default [`WebSocketOptions`].
    fn agent_events(self) -> WebSocketEvents<Self> {
        self.agent_events_with(WebSocketOptions::new())
    }

    /// The same with other options. A [deadline](WebSocketOptions::deadline) counts from here.
    ///
    /// A socket with a bound of its own on messages that is lower keeps to that.
    fn agent_events_with(self, options: WebSocketOptions) -> WebSocketEvents<Self> {
        WebSocketEvents::open(self, &options, until(options.deadline), AbortHandle::new())
    }
}

impl<S: Stream<Item = Result<Message, tungstenite::Error>>> WebSocketExt for S {}
