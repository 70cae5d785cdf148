//! What every answer has around it: a handle that ends it, and timers.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::vec;

use futures::future::{self, BoxFuture, Either};
use futures::stream::Stream;
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::AbortHandle;
use crate::combinator::Idle;
use crate::error::Error;
use crate::machine::Downgrader;
use crate::raw::RawItem;
use crate::version::ProtocolVersion;
use crate::warning::Warning;

/// When a deadline is; `None` also where the clock ends before.
pub(super) fn until(limit: Option<Duration>) -> Option<(Instant, Duration)> {
    let limit = limit?;
    Some((Instant::now().checked_add(limit)?, limit))
}

/// What the future gives, or an error if it takes longer than this.
pub(super) async fn within<T, E>(
    limit: Option<Duration>,
    error: impl FnOnce(Duration) -> E,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let Some(limit) = limit else { return work.await };
    match future::select(Box::pin(work), Box::pin(sleep(limit))).await {
        Either::Left((result, _)) => result,
        Either::Right(_) => Err(error(limit)),
    }
}

/// What the future gives, or an error once it is aborted.
pub(super) async fn unless_aborted<T, E: Cuts>(
    abort: AbortHandle,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match future::select(Box::pin(abort.aborted()), Box::pin(work)).await {
        Either::Left(_) => Err(E::aborted()),
        Either::Right((result, _)) => result,
    }
}

/// How a client says that it ended a run by itself.
pub(super) trait Cuts {
    fn aborted() -> Self;
    fn no_event(limit: Duration) -> Self;
    fn deadline(limit: Duration) -> Self;
}

pin_project! {
    /// Events that a handle or a timer can end. Fused; the events are dropped at the end, and the
    /// connection is closed with them.
    pub(super) struct Guarded<S> {
        #[pin]
        events: Option<S>,
        // What there was to say about the input.
        of_input: vec::IntoIter<Warning>,
        peer: Downgrader,
        idle: Idle,
        deadline: Option<(Pin<Box<Sleep>>, Duration)>,
        abort: AbortHandle,
        aborted: BoxFuture<'static, ()>,
    }
}

impl<S> Guarded<S> {
    pub(super) fn new(
        events: S,
        no_event: Option<Duration>,
        deadline: Option<(Instant, Duration)>,
        abort: AbortHandle,
    ) -> Self {
        Self {
            events: Some(events),
            of_input: Vec::new().into_iter(),
            peer: Downgrader::new(ProtocolVersion::CURRENT),
            idle: Idle::new(no_event),
            deadline: deadline.map(|(until, limit)| (Box::pin(sleep_until(until)), limit)),
            aborted: Box::pin(abort.clone().aborted()),
            abort,
        }
    }

    /// The same from a server of this version, behind these warnings.
    pub(super) fn with_peer(self, peer: Downgrader, of_input: Vec<Warning>) -> Self {
        Self { of_input: of_input.into_iter(), peer, ..self }
    }

    pub(super) fn abort_handle(&self) -> AbortHandle {
        self.abort.clone()
    }

    pub(super) fn is_terminated(&self) -> bool {
        self.events.is_none()
    }

    /// What the events hold may never come: they can be ended at any time.
    pub(super) fn size_hint(&self) -> (usize, Option<usize>) {
        (0, if self.is_terminated() { Some(0) } else { None })
    }

    pub(super) fn poll_next<E: Cuts>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<RawItem, Error<E>>>>
    where
        S: Stream<Item = Result<RawItem, Error<E>>>,
    {
        let mut this = self.project();
        let Some(events) = this.events.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        let deadline = this.deadline.as_mut().and_then(|(sleep, limit)| match sleep.as_mut().poll(cx) {
            Poll::Ready(()) => Some(*limit),
            Poll::Pending => None,
        });
        let item = if this.aborted.as_mut().poll(cx).is_ready() {
            Some(Err(Error::Source(E::aborted())))
        } else if let Some(limit) = deadline {
            Some(Err(Error::Source(E::deadline(limit))))
        } else if let Some(warning) = this.of_input.next() {
            return Poll::Ready(Some(Ok(RawItem::Warning(warning))));
        } else {
            match events.poll_next(cx) {
                Poll::Ready(item) => item.map(|item| item.map(|item| this.peer.apply(item))),
                Poll::Pending => match this.idle.poll(cx) {
                    Poll::Ready(limit) => Some(Err(Error::Source(E::no_event(limit)))),
                    Poll::Pending => return Poll::Pending,
                },
            }
        };
        match item {
            Some(Ok(_)) => this.idle.rest(),
            Some(Err(_)) | None => this.events.set(None),
        }
        Poll::Ready(item)
    }
}
