use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;

use super::{ItemInput, Staged};
use crate::error::Error;
use crate::item::Item;
use crate::machine::Expander;

pin_project! {
    /// Items with their chunks expanded: the stream of
    /// [`expand`](super::EventStreamExt::expand).
    #[must_use = "streams do nothing unless polled"]
    pub struct Expand<S> {
        #[pin]
        inner: Staged<S, Expander>,
    }
}

shell!(Expand<S>, Expander);

impl<S> Stream for Expand<S>
where
    S: Stream,
    S::Item: ItemInput,
{
    type Item = Result<Item, Error<<S::Item as ItemInput>::Error>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.project().inner.poll_next(cx, ItemInput::into_result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<S> FusedStream for Expand<S>
where
    S: Stream,
    S::Item: ItemInput,
{
    fn is_terminated(&self) -> bool {
        self.inner.is_terminated()
    }
}
