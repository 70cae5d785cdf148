//! `take_run`: ends a stream of raw events with its run.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;

use super::RawInput;
use crate::error::{Error, Truncated, TruncatedBy};
use crate::raw::RawItem;
use crate::raw::{Owned, RawEvent};

pin_project! {
    /// The raw events of one run: the stream of [`take_run`](super::EventStreamExt::take_run).
    #[must_use = "streams do nothing unless polled"]
    pub struct TakeRun<S> {
        #[pin]
        source: Option<S>,
        next: u64,
        // If set at the beginning of a poll, the source has panicked.
        is_polling: bool,
    }
}

impl<S> TakeRun<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source: Some(source), next: 0, is_polling: false }
    }

    /// The source; `None` once the run or the source is over, as it is dropped then.
    #[must_use]
    pub fn get_ref(&self) -> Option<&S> {
        self.source.as_ref()
    }

    /// Gives the source back; `None` once the run or the source is over.
    #[must_use]
    pub fn into_inner(self) -> Option<S> {
        self.source
    }
}

impl<S> Stream for TakeRun<S>
where
    S: Stream,
    S::Item: RawInput,
{
    type Item = Result<RawItem, Error<<S::Item as RawInput>::Error>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        let Some(source) = this.source.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        if core::mem::replace(this.is_polling, true) {
            this.source.set(None);
            let truncated = Truncated::new(*this.next, None, TruncatedBy::Panic);
            return Poll::Ready(Some(Err(truncated.into())));
        }
        let polled = source.poll_next(cx);
        *this.is_polling = false;
        let item = ready!(polled).map(|item| item.into_result().map(RawEvent::own));
        let item = match item {
            Some(Ok(Owned::Warning(warning))) => Some(Ok(RawItem::Warning(warning))),
            Some(Ok(Owned::Options(options))) => Some(Ok(RawItem::Options(options))),
            Some(Ok(Owned::Event(raw, index))) => {
                let index = index.unwrap_or(*this.next);
                *this.next = index.saturating_add(1);
                if raw.bounds_a_run() == Some(true) {
                    this.source.set(None);
                }
                Some(Ok(RawItem::Event { raw, index }))
            }
            Some(Err(error)) => {
                this.source.set(None);
                Some(Err(error))
            }
            None => {
                this.source.set(None);
                None
            }
        };
        Poll::Ready(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // The run may be over with the next event.
        self.source.as_ref().map_or((0, Some(0)), |source| (0, source.size_hint().1))
    }
}

impl<S> FusedStream for TakeRun<S>
where
    S: Stream,
    S::Item: RawInput,
{
    fn is_terminated(&self) -> bool {
        self.source.is_none()
    }
}

impl<S> fmt::Debug for TakeRun<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TakeRun").field("is_terminated", &self.source.is_none()).finish_non_exhaustive()
    }
}
