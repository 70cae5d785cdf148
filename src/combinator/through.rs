use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;

use super::{ItemInput, Staged};
use crate::error::Error;
use crate::machine::Push;

pin_project! {
    /// Items through a machine of the user's own: the stream of
    /// [`through`](super::EventStreamExt::through).
    #[must_use = "streams do nothing unless polled"]
    pub struct Through<S, M> {
        #[pin]
        inner: Staged<S, M>,
    }
}

shell!(Through<S, M>, M);

impl<S, M> Stream for Through<S, M>
where
    S: Stream,
    S::Item: ItemInput,
    M: Push<<S::Item as ItemInput>::Item>,
{
    type Item = Result<M::Output, Error<<S::Item as ItemInput>::Error>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.project().inner.poll_next(cx, ItemInput::into_result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<S, M> FusedStream for Through<S, M>
where
    S: Stream,
    S::Item: ItemInput,
    M: Push<<S::Item as ItemInput>::Item>,
{
    fn is_terminated(&self) -> bool {
        self.inner.is_terminated()
    }
}
