use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;

use super::{ItemInput, Staged};
use crate::error::Error;
use crate::item::Item;
use crate::machine::Verifier;

pin_project! {
    /// Items held to the rules of order and ownership: the stream of
    /// [`verify`](super::EventStreamExt::verify).
    #[must_use = "streams do nothing unless polled"]
    pub struct Verify<S> {
        #[pin]
        inner: Staged<S, Verifier>,
    }
}

shell!(Verify<S>, Verifier);

impl<S> Stream for Verify<S>
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

impl<S> FusedStream for Verify<S>
where
    S: Stream,
    S::Item: ItemInput,
{
    fn is_terminated(&self) -> bool {
        self.inner.is_terminated()
    }
}
