//! `replay`: gives the events of a recording, each in its time.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;
use tokio::time::Instant;

use super::Timing;
use super::decoder::RecordingDecoder;
use super::format::Recorded;
use super::timing::Waits;
use crate::codec::Piece;
use crate::combinator::{Staged, Timer};
use crate::error::Error;
use crate::error::{AgentError, BoxError};
use crate::limits::Limits;
use crate::raw::RawItem;

pin_project! {
    /// The raw events of a recording, each at its time: the stream of
    /// [`replay`](super::RecordStreamExt::replay).
    #[must_use = "streams do nothing unless polled"]
    pub struct Replayed<S> {
        #[pin]
        inner: Staged<S, RecordingDecoder>,
        waits: Waits,
        // When the held item is due; before the first one, when the stream was first polled.
        due: Option<Instant>,
        // Made at the first wait, so that no runtime is needed before.
        timer: Option<Timer>,
        held: Option<Result<RawItem, Error<AgentError>>>,
        ended: bool,
    }
}

impl<S> Replayed<S> {
    pub(crate) fn new(source: S, timing: Timing, limits: Limits) -> Self {
        Self {
            inner: Staged::new(source, RecordingDecoder::new().with_limits(limits)),
            waits: Waits::new(timing),
            due: None,
            timer: None,
            held: None,
            ended: false,
        }
    }

    /// The source; `None` once it ended or failed, as it is dropped then.
    #[must_use]
    pub fn get_ref(&self) -> Option<&S> {
        self.inner.get_ref()
    }

    /// Gives the source back; `None` once it ended or failed. Events that were read and not given are lost.
    #[must_use]
    pub fn into_inner(self) -> Option<S> {
        self.inner.into_inner()
    }
}

impl<S, B, E> Stream for Replayed<S>
where
    S: Stream<Item = Result<B, E>>,
    B: Piece,
    E: Into<BoxError>,
{
    type Item = Result<RawItem, Error<AgentError>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        if *this.ended {
            return Poll::Ready(None);
        }
        let due = this.due.get_or_insert_with(Instant::now);
        if this.held.is_none() {
            let next = this.inner.as_mut().poll_next(cx, |piece: Result<B, E>| piece.map_err(Error::Source), Some);
            let Some(next) = ready!(next) else {
                *this.ended = true;
                return Poll::Ready(None);
            };
            let (at, item) = match next {
                Ok(Recorded { at, item, .. }) => (at, item.map_err(|error| error.map_source(AgentError::new))),
                Err(error) => (None, Err(error.map_source(AgentError::new))),
            };
            // Held before the wait is computed, so that nothing is lost if the user's function panics.
            let item = this.held.insert(item);
            // Beyond the end of the clock there is no wait.
            *due = due.checked_add(this.waits.before(at, item.as_ref().ok())).unwrap_or(*due);
        }
        if *due > Instant::now() {
            let timer = this.timer.get_or_insert_with(|| Timer::new(*due));
            timer.reset(*due);
            ready!(timer.poll(cx));
        }
        let item = this.held.take();
        *this.ended = !matches!(item, Some(Ok(_)));
        Poll::Ready(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        if self.ended {
            return (0, Some(0));
        }
        let (lower, upper) = self.inner.size_hint();
        (lower.saturating_add(usize::from(self.held.is_some())), upper)
    }
}

impl<S, B, E> FusedStream for Replayed<S>
where
    S: Stream<Item = Result<B, E>>,
    B: Piece,
    E: Into<BoxError>,
{
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl<S> fmt::Debug for Replayed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_as("Replayed", f)
    }
}
