use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;

use super::{RawInput, Staged};
use crate::error::Error;
use crate::machine;
use crate::raw::RawItem;

pin_project! {
    /// Raw events with retired shapes translated: the stream of
    /// [`upgrade`](super::EventStreamExt::upgrade).
    #[must_use = "streams do nothing unless polled"]
    pub struct Upgrade<S> {
        #[pin]
        inner: Staged<S, machine::Upgrader>,
    }
}

shell!(Upgrade<S>, machine::Upgrader);

impl<S> Stream for Upgrade<S>
where
    S: Stream,
    S::Item: RawInput,
{
    type Item = Result<RawItem, Error<<S::Item as RawInput>::Error>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.project().inner.poll_next(cx, RawInput::into_result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<S> FusedStream for Upgrade<S>
where
    S: Stream,
    S::Item: RawInput,
{
    fn is_terminated(&self) -> bool {
        self.inner.is_terminated()
    }
}
