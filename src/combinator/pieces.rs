//! `pieces`: the bytes of a tokio `AsyncRead` as a stream.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, ReadBuf};

use super::MAX_SWALLOWED;

/// The bytes read at once: as much as a network gives, and little compared with one event.
const PIECE: usize = 16 * 1024;

pin_project! {
    /// A reader as a stream of bytes: the stream of [`pieces`].
    #[must_use = "streams do nothing unless polled"]
    pub struct Pieces<R> {
        #[pin]
        reader: Option<R>,
        // Kept while a read is pending.
        piece: Vec<u8>,
        // If set at the beginning of a poll, the reader has panicked.
        is_reading: bool,
    }
}

/// A file, a socket or the output of a program as a stream of bytes, for
/// [`ByteStreamExt`](super::ByteStreamExt).
///
/// Takes tokio's [`AsyncRead`]; `tokio-util` converts readers of the `futures` crate. The reader needs no
/// buffer around it: each read gets 16 KiB.
///
/// # Ending
/// With the reader, which is dropped then.
///
/// # Errors
/// The reader's, as the last item. A reader that panicked is not polled again: that is an error too.
///
/// # Cancel safety
/// A dropped `next()` loses nothing.
///
/// # Examples
/// ```
/// use ag_ui_stream::combinator::pieces;
/// use ag_ui_stream::{ByteStreamExt, EventStreamExt};
/// use futures::TryStreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ag_ui_stream::Error<std::io::Error>> {
/// # #[cfg(feature = "json-lines")] {
/// // As well a `tokio::fs::File`, a `TcpStream`, the `stdout` of a child.
/// let file = &b"{\"type\":\"RUN_ERROR\",\"message\":\"overloaded\"}\n"[..];
/// let events: Vec<_> = pieces(file).json_lines().events().try_collect().await?;
/// assert_eq!(events.len(), 1);
/// # }
/// # Ok(())
/// # }
/// ```
pub fn pieces<R: AsyncRead>(reader: R) -> Pieces<R> {
    Pieces { reader: Some(reader), piece: Vec::new(), is_reading: false }
}

impl<R> Pieces<R> {
    /// The reader; `None` once it ended or failed.
    #[must_use]
    pub fn get_ref(&self) -> Option<&R> {
        self.reader.as_ref()
    }

    /// Gives the reader back; `None` once it ended or failed. No bytes are lost.
    #[must_use]
    pub fn into_inner(self) -> Option<R> {
        self.reader
    }
}

impl<R: AsyncRead> Stream for Pieces<R> {
    type Item = io::Result<Vec<u8>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        let Some(mut reader) = this.reader.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        if core::mem::replace(this.is_reading, true) {
            this.reader.set(None);
            return Poll::Ready(Some(Err(io::Error::other("the reader panicked"))));
        }
        this.piece.resize(PIECE, 0);
        for _ in 0..MAX_SWALLOWED {
            let mut buffer = ReadBuf::new(this.piece);
            let read = reader.as_mut().poll_read(cx, &mut buffer);
            *this.is_reading = false;
            match ready!(read) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    *this.is_reading = true;
                    continue;
                }
                Err(error) => {
                    this.reader.set(None);
                    return Poll::Ready(Some(Err(error)));
                }
            }
            let len = buffer.filled().len();
            if len == 0 {
                this.reader.set(None);
                return Poll::Ready(None);
            }
            // Whoever keeps an event keeps the piece: one that is mostly empty is not handed out.
            let mut piece = if len < PIECE / 2 { Vec::from(buffer.filled()) } else { core::mem::take(this.piece) };
            piece.truncate(len);
            return Poll::Ready(Some(Ok(piece)));
        }
        // A reader that is always interrupted must not block the thread.
        *this.is_reading = false;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, if self.reader.is_some() { None } else { Some(0) })
    }
}

impl<R: AsyncRead> FusedStream for Pieces<R> {
    fn is_terminated(&self) -> bool {
        self.reader.is_none()
    }
}

impl<R> fmt::Debug for Pieces<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces").field("is_source_open", &self.reader.is_some()).finish_non_exhaustive()
    }
}
