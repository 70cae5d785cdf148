use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;

use super::{RawInput, Split, Staged, split};
use crate::error::Error;
use crate::machine::Pipeline;
use crate::snapshot::{Snapshot, Update};

pin_project! {
    /// Raw events as verified ones, each with the conversation behind it: the stream of
    /// [`updates`](super::EventStreamExt::updates).
    #[must_use = "streams do nothing unless polled"]
    pub struct Updates<S> {
        #[pin]
        inner: Staged<S, Pipeline>,
    }
}

shell!(Updates<S>, Pipeline);

impl<S> Updates<S>
where
    S: Stream,
    S::Item: RawInput,
{
    /// The conversation as it stands behind everything that came so far: behind the last update, the
    /// whole of it.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        self.machine().snapshot()
    }

    /// Two streams that two tasks can own, of the events and of the snapshots; see
    /// [`split`](super::split()).
    pub fn split(self) -> Split<Self, <S::Item as RawInput>::Error> {
        split(self)
    }
}

impl<S> Stream for Updates<S>
where
    S: Stream,
    S::Item: RawInput,
{
    type Item = Result<Update, Error<<S::Item as RawInput>::Error>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.project().inner.poll_next(cx, RawInput::into_result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<S> FusedStream for Updates<S>
where
    S: Stream,
    S::Item: RawInput,
{
    fn is_terminated(&self) -> bool {
        self.inner.is_terminated()
    }
}
