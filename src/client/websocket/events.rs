//! The events of a WebSocket.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;
use tokio_tungstenite::tungstenite;
use tungstenite::Message;

use super::WebSocketConnection;
use super::messages::{Decoded, Messages};
use crate::client::options::{Common, common_options};
use crate::client::stoppable::{Deadline, Stoppable, stoppable_events, until};
use crate::client::{AbortHandle, ClientError};
use crate::error::Error;
use crate::machine::Downgrader;
use crate::options::Options;
use crate::raw::RawItem;

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
    pub(super) common: Common,
}

impl WebSocketOptions {
    /// The default of the longest time without a message: two minutes. Servers that send pings do so
    /// every few seconds.
    pub const DEFAULT_NO_MESSAGE: Duration = Common::SILENCE;
    /// The default of the wait after the end of a run: one second.
    pub const DEFAULT_AFTER_RUN: Duration = Duration::from_secs(1);

    /// The default [`Limits`](crate::Limits), all timers but no deadline.
    pub fn new() -> Self {
        Self { common: Common::new(Some(Self::DEFAULT_AFTER_RUN)) }
    }

    /// The longest time to send the input, else [`ClientError::NotSent`], and then without a message,
    /// counted while the reader waits, else [`ClientError::Silent`]. A ping counts as a message, a part
    /// of a message does not. `None` for no limit.
    pub fn no_message_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.common.silence = limit.into();
        self
    }
}

common_options!(WebSocketOptions);

pin_project! {
    /// The events of a socket, for [`updates`](crate::EventStreamExt::updates) or any other stage
    /// that takes raw events.
    ///
    /// - **Messages**: a text message is one event in JSON. A binary message is protobuf (rule T2,
    ///   feature `protobuf`): one or more complete frames, each a length of four bytes and an event,
    ///   as this crate and npm `@ag-ui/proto` write them; or one event without its length. The two are
    ///   distinct, since no event begins with a zero.
    /// - **Pings** are answered while the stream is read. A server that sends them faster than it reads
    ///   the answers gets only the last one, as the bytes to be written are bounded
    ///   ([`WebSocketAgent`](super::WebSocketAgent)). Events go on; without any, the error is
    ///   [`ClientError::NoEvent`]. A socket of your own has the bound of its
    ///   [`max_write_buffer_size`](tungstenite::protocol::WebSocketConfig::max_write_buffer_size),
    ///   which is unlimited by default.
    /// - **Ending**: with a close without a code or with 1000 or 1001, and when nothing more comes
    ///   [after the end of a run](WebSocketOptions::after_run). Verification checks that the run was over.
    /// - **Errors**: [`Error::Source`] with a [`ClientError`], and those of the decoder:
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
        events: Stoppable<Decoded<S>>,
    }
}

stoppable_events!(WebSocketEvents<S> where Result<Message, tungstenite::Error>);

impl<S> WebSocketEvents<S> {
    pub(super) fn open(socket: S, options: &WebSocketOptions, deadline: Deadline, abort: AbortHandle) -> Self {
        let options = &options.common;
        let decoded = Decoded::new(Messages::new(socket, options.silence), options.limits());
        Self { events: Stoppable::new(decoded, options, deadline, abort) }
    }
}

/// The events of a socket of your own, with one call: of any stream of `tungstenite` messages, also a
/// half of a socket or a `&mut` to one.
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
    /// If the socket has a lower bound on messages of its own, that one applies.
    fn agent_events_with(self, options: WebSocketOptions) -> WebSocketEvents<Self> {
        WebSocketEvents::open(self, &options, until(options.common.deadline), AbortHandle::new())
    }
}

impl<S: Stream<Item = Result<Message, tungstenite::Error>>> WebSocketExt for S {}
