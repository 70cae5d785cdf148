//! The poll loop of the crate.
//!
//! Each combinator is a shell around a [`Staged`]: a source and a [`Machine`], driven as the
//! module's documentation shows, with everything that is known in the struct and none of it in the
//! futures that poll it: a `next()` that is dropped loses nothing.
//!
//! ```text
//!                       push fails, the source's end
//!   source: Some ───────────────────────────────────────► source: None, failure: Some or None
//!        │                                                      │ popped empty, failure given
//!        └──────────── the source's error, given at once ───────┴──────────► ended
//! ```

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use futures::stream::Stream;
use pin_project_lite::pin_project;

use crate::error::Error;
use crate::machine::{Cut, Machine, Push};

/// How many inputs one poll may take without giving an output.
///
/// A source that is always ready and gives nothing but events to drop (of unknown types, say) must
/// not keep the task from the others on its thread.
pub(crate) const MAX_SWALLOWED: usize = 64;

pin_project! {
    /// A source and the machine that it feeds.
    pub(crate) struct Staged<S, M> {
        #[pin]
        source: Option<S>,
        machine: M,
        failure: Option<Error>,
        ended: bool,
    }
}

impl<S, M> Staged<S, M> {
    pub(crate) fn new(source: S, machine: M) -> Self {
        Self { source: Some(source), machine, failure: None, ended: false }
    }

    pub(crate) fn get_ref(&self) -> Option<&S> {
        self.source.as_ref()
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut S> {
        self.source.as_mut()
    }

    pub(crate) fn get_pin_mut(self: Pin<&mut Self>) -> Option<Pin<&mut S>> {
        self.project().source.as_pin_mut()
    }

    pub(crate) fn into_inner(self) -> Option<S> {
        self.source
    }

    pub(crate) fn machine(&self) -> &M {
        &self.machine
    }

    pub(crate) fn is_terminated(&self) -> bool {
        self.ended
    }

    /// The next output; `into_result` takes an item of the source apart.
    pub(crate) fn poll_next<I, E>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into_result: impl Fn(S::Item) -> Result<I, Error<E>>,
    ) -> Poll<Option<Result<M::Output, Error<E>>>>
    where
        S: Stream,
        M: Push<I>,
    {
        let mut this = self.project();
        if *this.ended {
            return Poll::Ready(None);
        }
        let mut swallowed = 0;
        loop {
            if let Some(output) = this.machine.pop() {
                return Poll::Ready(Some(Ok(output)));
            }
            if let Some(failure) = this.failure.take() {
                *this.ended = true;
                return Poll::Ready(Some(Err(failure.with_source())));
            }
            let Some(source) = this.source.as_mut().as_pin_mut() else {
                *this.ended = true;
                return Poll::Ready(None);
            };
            if swallowed == MAX_SWALLOWED {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match ready!(source.poll_next(cx)).map(&into_result) {
                Some(Ok(input)) => {
                    swallowed += 1;
                    if let Err(failure) = this.machine.push(input) {
                        *this.failure = Some(failure);
                        this.source.set(None);
                    }
                }
                // Nothing comes before it: the machine was popped empty before the source was
                // polled.
                Some(Err(error)) => {
                    this.machine.cut(cut_by(&error));
                    *this.ended = true;
                    this.source.set(None);
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    *this.failure = this.machine.finish().err();
                    this.source.set(None);
                }
            }
        }
    }

    /// What is held is sure to come, all else may be dropped; of the source's own hint nothing can
    /// be told, since an event may give none, one or several outputs.
    pub(crate) fn size_hint(&self) -> (usize, Option<usize>)
    where
        M: Machine,
    {
        if self.ended {
            return (0, Some(0));
        }
        (self.machine.ready().saturating_add(usize::from(self.failure.is_some())), None)
    }
}

fn cut_by<E>(error: &Error<E>) -> Cut {
    match error {
        Error::Source(_) | Error::Truncated(_) => Cut::Truncated,
        Error::Malformed(_) | Error::Violation(_) | Error::LimitExceeded(_) => Cut::Rejected,
    }
}

impl<S, M: fmt::Debug> Staged<S, M> {
    /// The same for every combinator, and nothing is asked of the source: a boxed one cannot be
    /// shown.
    pub(crate) fn fmt_as(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("machine", &self.machine)
            .field("failure", &self.failure)
            .field("is_source_open", &self.source.is_some())
            .field("is_terminated", &self.ended)
            .finish_non_exhaustive()
    }
}
