use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;

use super::{RawInput, Staged};
use crate::error::Error;
use crate::item::Item;
use crate::machine::Enforcer;

pin_project! {
    /// Raw events held to the schema: the stream of
    /// [`enforce`](super::EventStreamExt::enforce).
    #[must_use = "streams do nothing unless polled"]
    pub struct Enforce<S> {
        #[pin]
        inner: Staged<S, Enforcer>,
    }
}

shell!(Enforce<S>, Enforcer);

impl<S> Stream for Enforce<S>
where
    S: Stream,
    S::Item: RawInput,
{
    type Item = Result<Item, Error<<S::Item as RawInput>::Error>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.project().inner.poll_next(cx, RawInput::into_result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<S> FusedStream for Enforce<S>
where
    S: Stream,
    S::Item: RawInput,
{
    fn is_terminated(&self) -> bool {
        self.inner.is_terminated()
    }
}
