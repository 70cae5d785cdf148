use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;

use super::only::OnlyEvents;
use super::{RawInput, Staged};
use crate::error::Error;
use crate::event::Event;
use crate::machine::EventPipeline;

pin_project! {
    /// Raw events as verified ones: the stream of
    /// [`events`](super::EventStreamExt::events).
    #[must_use = "streams do nothing unless polled"]
    pub struct Events<S> {
        #[pin]
        inner: Staged<S, OnlyEvents<EventPipeline>>,
    }
}

shell!(Events<S>, EventPipeline, in OnlyEvents);

impl<S> Stream for Events<S>
where
    S: Stream,
    S::Item: RawInput,
{
    type Item = Result<Event, Error<<S::Item as RawInput>::Error>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.project().inner.poll_next(cx, RawInput::into_result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<S> FusedStream for Events<S>
where
    S: Stream,
    S::Item: RawInput,
{
    fn is_terminated(&self) -> bool {
        self.inner.is_terminated()
    }
}
