//! What can stop the events of a run before the connection ends: an abort handle, timers, the end of the
//! run.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::vec;

use futures::future::{self, BoxFuture, Either};
use futures::stream::Stream;
use pin_project_lite::pin_project;
use tokio::time::{Instant, timeout};

use super::options::Common;
use super::{AbortHandle, ClientError};
use crate::combinator::{Idle, Timer};
use crate::error::Error;
use crate::machine::Downgrader;
use crate::raw::RawItem;
use crate::version::ProtocolVersion;

/// When a run has to be over, and how long that is in all.
pub(super) type Deadline = Option<(Instant, Duration)>;

/// The deadline of a run that starts now; `None` also if it is beyond the end of the clock.
pub(super) fn until(limit: Option<Duration>) -> Deadline {
    let limit = limit?;
    Some((Instant::now().checked_add(limit)?, limit))
}

/// The result of the future, or an error if it takes longer than the limit.
pub(super) async fn within<T>(
    limit: Option<Duration>,
    error: impl FnOnce(Duration) -> ClientError,
    work: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    let Some(limit) = limit else { return work.await };
    // On the heap, as the futures passed here are large.
    timeout(limit, Box::pin(work)).await.unwrap_or_else(|_| Err(error(limit)))
}

/// The result of the future, or an error once it is aborted.
pub(super) async fn unless_aborted<T>(
    abort: AbortHandle,
    work: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    match future::select(Box::pin(abort.aborted()), Box::pin(work)).await {
        Either::Left(_) => Err(ClientError::Aborted),
        Either::Right((result, _)) => result,
    }
}

pin_project! {
    /// Events that a handle, a timer or the end of their run can stop. Fused; the events are dropped at
    /// the end, which closes the connection.
    pub(super) struct Stoppable<S> {
        #[pin]
        events: Option<S>,
        // What there was to say before the first event.
        first: vec::IntoIter<RawItem>,
        peer: Downgrader,
        // Whether a run has ended and no other has begun since.
        is_run_over: bool,
        idle: Idle,
        after_run: Idle,
        deadline: Option<(Timer, Duration)>,
        abort: AbortHandle,
        aborted: BoxFuture<'static, ()>,
    }
}

impl<S> Stoppable<S> {
    pub(super) fn new(events: S, options: &Common, deadline: Deadline, abort: AbortHandle) -> Self {
        let said = &options.options;
        let said: Vec<_> = (!said.is_empty()).then(|| RawItem::Options(Box::new(said.clone()))).into_iter().collect();
        Self {
            events: Some(events),
            first: said.into_iter(),
            peer: Downgrader::new(ProtocolVersion::CURRENT),
            is_run_over: false,
            idle: Idle::new(options.no_event),
            after_run: Idle::new(options.after_run),
            deadline: deadline.map(|(until, limit)| (Timer::new(until), limit)),
            aborted: Box::pin(abort.clone().aborted()),
            abort,
        }
    }

    /// The same from a server of this version.
    pub(super) fn with_peer(self, peer: Downgrader) -> Self {
        Self { peer, ..self }
    }

    /// The same after these, and what is to come first already.
    pub(super) fn after(self, mut first: Vec<RawItem>) -> Self {
        first.extend(self.first);
        Self { first: first.into_iter(), ..self }
    }

    /// Whether nothing more comes.
    pub(super) fn is_over(&self) -> bool {
        self.events.is_none()
    }

    pub(super) fn abort_handle(&self) -> AbortHandle {
        self.abort.clone()
    }

    /// The error that stops the events, if it is time.
    fn poll_cut(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ClientError> {
        let this = self.project();
        // The flag first, so that a used-up budget does not hide it; the future wakes the task.
        if this.abort.is_aborted() || this.aborted.as_mut().poll(cx).is_ready() {
            return Poll::Ready(ClientError::Aborted);
        }
        match this.deadline {
            Some((timer, limit)) => timer.poll(cx).map(|()| ClientError::Deadline(*limit)),
            None => Poll::Pending,
        }
    }
}

impl<S> Stream for Stoppable<S>
where
    S: Stream<Item = Result<RawItem, Error<ClientError>>>,
{
    type Item = Result<RawItem, Error<ClientError>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.events.is_none() {
            return Poll::Ready(None);
        }
        let cut = self.as_mut().poll_cut(cx);
        let mut this = self.project();
        let item = match (cut, this.events.as_mut().as_pin_mut()) {
            (Poll::Ready(cut), _) => Some(Err(Error::Source(cut))),
            (Poll::Pending, None) => None,
            (Poll::Pending, Some(events)) => {
                if let Some(item) = this.first.next() {
                    return Poll::Ready(Some(Ok(item)));
                }
                match events.poll_next(cx) {
                    Poll::Ready(item) => item,
                    Poll::Pending if *this.is_run_over && this.after_run.poll(cx).is_ready() => None,
                    Poll::Pending => match this.idle.poll(cx) {
                        Poll::Ready(limit) => Some(Err(Error::Source(ClientError::NoEvent(limit)))),
                        Poll::Pending => return Poll::Pending,
                    },
                }
            }
        };
        Poll::Ready(match item {
            Some(Ok(item)) => {
                // A skipped frame gives a warning and does not count as an event.
                if let Some(raw) = item.raw() {
                    this.idle.rest();
                    this.after_run.rest();
                    *this.is_run_over = raw.bounds_a_run().unwrap_or(*this.is_run_over);
                }
                Some(Ok(this.peer.apply(item)))
            }
            Some(Err(error)) => {
                this.events.set(None);
                Some(Err(match error {
                    Error::Source(error) if *this.is_run_over => Error::Source(error.after_run()),
                    Error::Truncated(_) if *this.is_run_over => Error::Source(ClientError::Partial.after_run()),
                    error => error,
                }))
            }
            None => {
                this.events.set(None);
                None
            }
        })
    }

    /// No event is sure to come: they can be stopped at any time.
    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, if self.is_over() { Some(0) } else { None })
    }
}

/// The streams of both clients: [`Stoppable`] events, beside what each knows of its source.
macro_rules! stoppable_events {
    ($events:ident $(<$source:ident> where $item:ty)?) => {
        impl$(<$source>)? $events$(<$source>)? {
            /// The same from a server that speaks this version at most, after these.
            pub(super) fn with_peer(mut self, peer: Downgrader, first: Vec<RawItem>) -> Self {
                self.events = self.events.with_peer(peer).after(first);
                self
            }

            /// A handle that ends this run from elsewhere.
            #[must_use]
            pub fn abort_handle(&self) -> AbortHandle {
                self.events.abort_handle()
            }
        }

        impl$(<$source>)? Stream for $events$(<$source>)?
        $(where $source: Stream<Item = $item>)?
        {
            type Item = Result<RawItem, Error<ClientError>>;

            fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
                self.project().events.poll_next(cx)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.events.size_hint()
            }
        }

        impl$(<$source>)? FusedStream for $events$(<$source>)?
        $(where $source: Stream<Item = $item>)?
        {
            fn is_terminated(&self) -> bool {
                self.events.is_over()
            }
        }

        impl$(<$source>)? fmt::Debug for $events$(<$source>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($events))
                    .field("is_terminated", &self.events.is_over())
                    .finish_non_exhaustive()
            }
        }
    };
}

pub(super) use stoppable_events;
