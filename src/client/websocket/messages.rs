//! Turns the messages of a socket into input for a decoder.

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use futures::stream::Stream;
use pin_project_lite::pin_project;
use tokio_tungstenite::tungstenite;
use tungstenite::error::CapacityError;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Bytes, Message, Utf8Bytes};

use crate::client::ClientError;
use crate::codec::{self, MessageDecoder};
use crate::combinator::{Idle, MAX_SWALLOWED, Staged};
use crate::error::Error;
use crate::limits::Limits;
use crate::raw::RawItem;

pin_project! {
    /// The messages of a socket that may hold events, until it is closed.
    pub(super) struct Messages<S> {
        #[pin]
        socket: S,
        idle: Idle,
    }
}

impl<S> Messages<S> {
    pub(super) fn new(socket: S, no_message: Option<Duration>) -> Self {
        Self { socket, idle: Idle::new(no_message) }
    }
}

impl<S> Stream for Messages<S>
where
    S: Stream<Item = Result<Message, tungstenite::Error>>,
{
    type Item = Result<codec::Message<Utf8Bytes, Bytes>, ClientError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        for _ in 0..MAX_SWALLOWED {
            let message = match this.socket.as_mut().poll_next(cx) {
                Poll::Ready(message) => message,
                Poll::Pending => {
                    let limit = ready!(this.idle.poll(cx));
                    return Poll::Ready(Some(Err(ClientError::Silent(limit))));
                }
            };
            this.idle.rest();
            return Poll::Ready(match message {
                Some(Ok(Message::Text(text))) => Some(Ok(codec::Message::Text(text))),
                #[cfg(feature = "protobuf")]
                Some(Ok(Message::Binary(bytes))) => Some(Ok(codec::Message::Binary(bytes))),
                #[cfg(not(feature = "protobuf"))]
                Some(Ok(Message::Binary(_))) => Some(Err(ClientError::Binary)),
                // A ping is answered by the socket when it is polled again.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Close(frame))) => {
                    // So is a close. Nothing comes after it.
                    let _ = this.socket.poll_next(cx);
                    match frame {
                        None => None,
                        Some(frame) if matches!(frame.code, CloseCode::Normal | CloseCode::Away) => None,
                        Some(frame) => Some(Err(ClientError::Closed {
                            code: frame.code.into(),
                            reason: frame.reason.as_str().to_owned(),
                        })),
                    }
                }
                Some(Err(tungstenite::Error::Utf8(_))) => Some(Ok(codec::Message::NotUtf8)),
                Some(Err(tungstenite::Error::Capacity(CapacityError::MessageTooLong { max_size, .. }))) => {
                    Some(Ok(codec::Message::TooLong(max_size)))
                }
                Some(Err(tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed)) | None => None,
                Some(Err(error)) => Some(Err(ClientError::Body(error.into()))),
            });
        }
        // An endless row of pings must not block the other tasks of the thread.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

pin_project! {
    /// The events of a socket, without timers and handle.
    pub(super) struct Decoded<S> {
        #[pin]
        inner: Staged<Messages<S>, MessageDecoder>,
    }
}

impl<S> Decoded<S> {
    pub(super) fn new(messages: Messages<S>, limits: Limits) -> Self {
        Self { inner: Staged::new(messages, MessageDecoder::with_limits(limits)) }
    }
}

impl<S> Stream for Decoded<S>
where
    S: Stream<Item = Result<Message, tungstenite::Error>>,
{
    type Item = Result<RawItem, Error<ClientError>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.project().inner.poll_next(cx, |message| message.map_err(Error::Source), Some)
    }
}
