use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep};

use super::{Encode, ItemInput};
use crate::error::Error;

pin_project! {
    /// Events as bytes, with comments where nothing happens: the stream of
    /// [`Encode::keep_alive`].
    #[must_use = "streams do nothing unless polled"]
    pub struct KeepAlive<S> {
        #[pin]
        inner: Encode<S>,
        interval: Duration,
        // Made when there is something to wait for, so that no runtime is needed before.
        timer: Option<Pin<Box<Sleep>>>,
        waiting: bool,
    }
}

impl<S> KeepAlive<S> {
    pub(super) fn new(inner: Encode<S>, interval: Duration) -> Self {
        Self { inner, interval, timer: None, waiting: false }
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
            *this.waiting = false;
            return Poll::Ready(item);
        }
        // Without a time between them there would be nothing but comments.
        let Some(comment) = comment.filter(|_| !this.interval.is_zero()) else { return Poll::Pending };
        let timer = this.timer.get_or_insert_with(|| Box::pin(sleep(*this.interval)));
        if !core::mem::replace(this.waiting, true) {
            // Where the clock ends there is no comment.
            let Some(until) = Instant::now().checked_add(*this.interval) else { return Poll::Pending };
            timer.as_mut().reset(until);
        }
        ready!(timer.as_mut().poll(cx));
        *this.waiting = false;
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
