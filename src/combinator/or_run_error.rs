//! `or_run_error`: ends a stream with a `RUN_ERROR` in place of an error.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;

use super::ItemInput;
use crate::error::Error;
use crate::event::Event;
use crate::item::Item;

/// What a viewer is told of a source that failed.
pub(crate) const BROKEN_OFF: &str = "the agent broke the run off";

pin_project! {
    /// Items, and a `RUN_ERROR` in place of an error: the stream of
    /// [`or_run_error`](super::EventStreamExt::or_run_error).
    #[must_use = "streams do nothing unless polled"]
    pub struct OrRunError<S> {
        #[pin]
        source: Option<S>,
        // Whether a run has ended, and no other has begun since.
        is_run_over: bool,
        // Found at the beginning of a poll, the source has panicked: it is not polled again.
        is_polling: bool,
    }
}

impl<S> OrRunError<S> {
    pub(crate) fn new(source: S) -> Self {
        Self { source: Some(source), is_run_over: false, is_polling: false }
    }
}

impl<S> Stream for OrRunError<S>
where
    S: Stream,
    S::Item: ItemInput<Error: fmt::Display>,
{
    type Item = Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        let mut this = self.project();
        let Some(source) = this.source.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        let polled = match core::mem::replace(this.is_polling, true) {
            true => Poll::Ready(Some(Err(None))),
            false => source.poll_next(cx).map(|item| item.map(|item| item.into_result().map_err(Some))),
        };
        *this.is_polling = false;
        let item = match ready!(polled) {
            Some(Ok(item)) => {
                let item = item.into();
                match item.event() {
                    Some(Event::RunStarted(_)) => *this.is_run_over = false,
                    Some(Event::RunFinished(_) | Event::RunError(_)) => *this.is_run_over = true,
                    _ => {}
                }
                return Poll::Ready(Some(item));
            }
            Some(Err(error)) => {
                match &error {
                    Some(error) => crate::log::run_failed(None, error),
                    None => crate::log::run_failed(None, &"its source panicked"),
                }
                let message = match error {
                    Some(Error::Source(_)) | None => BROKEN_OFF.to_owned(),
                    Some(fault) => fault.to_string(),
                };
                (!*this.is_run_over).then(|| Event::run_error(message).into())
            }
            None => None,
        };
        this.source.set(None);
        Poll::Ready(item)
    }

    /// The source may fail with its next item, and give one more then.
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.source.as_ref().map_or((0, Some(0)), |source| (0, source.size_hint().1))
    }
}

impl<S> FusedStream for OrRunError<S>
where
    S: Stream,
    S::Item: ItemInput<Error: fmt::Display>,
{
    fn is_terminated(&self) -> bool {
        self.source.is_none()
    }
}

impl<S> fmt::Debug for OrRunError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrRunError").field("is_terminated", &self.source.is_none()).finish_non_exhaustive()
    }
}
