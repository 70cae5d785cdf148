use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;

use super::{ItemInput, Split, Staged, split};
use crate::error::Error;
use crate::machine::Assembler;
use crate::snapshot::{Snapshot, Update};

pin_project! {
    /// Verified items, each with the conversation behind it: the stream of
    /// [`assemble`](super::EventStreamExt::assemble).
    #[must_use = "streams do nothing unless polled"]
    pub struct Assemble<S> {
        #[pin]
        inner: Staged<S, Assembler>,
    }
}

shell!(Assemble<S>, Assembler);

impl<S> Assemble<S>
where
    S: Stream,
    S::Item: ItemInput,
{
    /// The conversation as it stands behind everything that came so far.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        self.machine().snapshot()
    }

    /// Two streams that two tasks can own, of the events and of the snapshots; see
    /// [`split`](super::split()).
    pub fn split(self) -> Split<Self, <S::Item as ItemInput>::Error> {
        split(self)
    }
}

impl<S> Stream for Assemble<S>
where
    S: Stream,
    S::Item: ItemInput,
{
    type Item = Result<Update, Error<<S::Item as ItemInput>::Error>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.project().inner.poll_next(cx, ItemInput::into_result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<S> FusedStream for Assemble<S>
where
    S: Stream,
    S::Item: ItemInput,
{
    fn is_terminated(&self) -> bool {
        self.inner.is_terminated()
    }
}
