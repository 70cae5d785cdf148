//! `keep_alive`: comments in a stream of server-sent events while nothing else comes.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;

use super::{Encode, Idle, ItemInput};
use crate::error::Error;

pin_project! {
    /// Events as bytes, with comments while no event comes: the stream of
    /// [`Encode::keep_alive`].
    #[must_use = "streams do nothing unless polled"]
    pub struct KeepAlive<S> {
        #[pin]
        inner: Encode<S>,
        interval: Duration,
        idle: Idle,
    }
}

impl<S> Encode<S> {
    /// Gives a comment whenever nothing else came for this long, so that no proxy closes the
    /// connection as dead.
    ///
    /// The time starts again with every event. Only server-sent events have comments; other formats
    /// are unchanged.
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

impl<S> KeepAlive<S> {
    pub(super) fn new(inner: Encode<S>, interval: Duration) -> Self {
        // With an interval of zero there would be nothing but comments.
        let idle = Idle::new(Some(interval).filter(|interval| !interval.is_zero()));
        Self { inner, interval, idle }
    }

    /// The stream without the comments.
    pub fn get_ref(&self) -> &Encode<S> {
        &self.inner
    }

    /// The stream without the comments, to change it.
    pub fn get_mut(&mut self) -> &mut Encode<S> {
        &mut self.inner
    }

    /// Gives back the stream without the comments.
    pub fn into_inner(self) -> Encode<S> {
        self.inner
    }
}

impl<S> Stream for KeepAlive<S>
where
    S: Stream,
    S::Item: ItemInput,
{
    type Item = Result<Vec<u8>, Error<<S::Item as ItemInput>::Error>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        let comment = this.inner.machine().format().keep_alive();
        if let Poll::Ready(item) = this.inner.poll_next(cx) {
            this.idle.rest();
            return Poll::Ready(item);
        }
        let Some(comment) = comment else { return Poll::Pending };
        ready!(this.idle.poll(cx));
        this.idle.rest();
        Poll::Ready(Some(Ok(comment.to_vec())))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self.inner.size_hint() {
            (0, Some(0)) => (0, Some(0)),
            (lower, _) => (lower, None),
        }
    }
}

impl<S> FusedStream for KeepAlive<S>
where
    S: Stream,
    S::Item: ItemInput,
{
    fn is_terminated(&self) -> bool {
        self.inner.is_terminated()
    }
}

impl<S> fmt::Debug for KeepAlive<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeepAlive")
            .field("inner", &self.inner)
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}
