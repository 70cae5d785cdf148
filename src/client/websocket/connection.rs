//! `WebSocketConnection`: a socket that the client opened, closed when it is dropped.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures::sink::{Sink, SinkExt};
use futures::stream::Stream;
use futures::task::noop_waker;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// The socket of a run of a [`WebSocketAgent`](super::WebSocketAgent).
///
/// On drop it sends a close frame (1000), if that can be written without waiting, and is closed.
pub struct WebSocketConnection(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl WebSocketConnection {
    pub(super) fn new(socket: WebSocketStream<MaybeTlsStream<TcpStream>>) -> Self {
        Self(socket)
    }

    pub(super) async fn send(&mut self, message: Message) -> Result<(), Error> {
        self.0.send(message).await
    }
}

impl Stream for WebSocketConnection {
    type Item = Result<Message, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut socket = Pin::new(&mut self.0);
        let next = socket.as_mut().poll_next(cx);
        if next.is_pending() {
            // An answer to a ping that found no room before. The next read reports a failure.
            let _ = socket.poll_flush(cx);
        }
        next
    }
}

impl Drop for WebSocketConnection {
    fn drop(&mut self) {
        let waker = noop_waker();
        let mut cx = Context::from_waker(&waker);
        let mut socket = Pin::new(&mut self.0);
        let goodbye = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::from_static("") };
        // It fails if the socket is closed already; then the answer to that is sent.
        if socket.as_mut().poll_ready(&mut cx).is_ready() {
            let _ = socket.as_mut().start_send(Message::Close(Some(goodbye)));
        }
        let _ = socket.poll_flush(&mut cx);
    }
}

impl fmt::Debug for WebSocketConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketConnection").finish_non_exhaustive()
    }
}
