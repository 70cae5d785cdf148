use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
#[cfg(feature = "sse")]
use core::time::Duration;

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;

#[cfg(feature = "sse")]
use super::KeepAlive;
use super::{ItemInput, Staged};
use crate::codec::Encoder;
use crate::error::Error;

pin_project! {
    /// Events as bytes: the stream of [`EncodeStreamExt`](super::EncodeStreamExt).
    #[must_use = "streams do nothing unless polled"]
    pub struct Encode<S> {
        #[pin]
        inner: Staged<S, Encoder>,
    }
}

shell!(Encode<S>, Encoder);

#[cfg(feature = "sse")]
impl<S> Encode<S> {
    /// Gives a comment whenever nothing else came for this long, so that no proxy between takes
    /// the connection for dead.
    ///
    /// The time starts again with every event. Formats without comments, which are all but
    /// server-sent events, are left as they are.
    ///
    /// Needs the timers of a tokio runtime; without them it panics when it first has to wait.
    ///
    /// # Cancel safety
    /// A dropped `next()` loses nothing, and the time goes on.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// use ag_ui_stream::{EncodeStreamExt, Event};
    /// use futures::{StreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let silent = stream::pending::<Event>();
    /// let mut body = silent.to_sse().keep_alive(Duration::from_secs(15));
    /// assert_eq!(body.next().await, Some(Ok(b":\n\n".to_vec())));
    /// # }
    /// ```
    pub fn keep_alive(self, interval: Duration) -> KeepAlive<S> {
        KeepAlive::new(self, interval)
    }
}

impl<S> Stream for Encode<S>
where
    S: Stream,
    S::Item: ItemInput,
{
    type Item = Result<Vec<u8>, Error<<S::Item as ItemInput>::Error>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.project().inner.poll_next(cx, ItemInput::into_result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<S> FusedStream for Encode<S>
where
    S: Stream,
    S::Item: ItemInput,
{
    fn is_terminated(&self) -> bool {
        self.inner.is_terminated()
    }
}
