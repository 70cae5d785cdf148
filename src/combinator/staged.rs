//! The poll loop of the crate: drives a machine from a stream.
//!
//! Each combinator is a shell around a [`Staged`]: a source and a [`Machine`], driven as the module's
//! documentation shows. All state is in the struct and none in the futures that poll it, so a dropped
//! `next()` loses nothing.
//!
//! ```text
//!            the source ends                         popped empty
//!   Open ──────────────────────► Draining ───────────────────────────┐
//!    │ │ push or finish fails                popped empty, fault given ▼
//!    │ └───────────────────────► Failing ──────────────────────────► Ended
//!    └── the source's error, given at once; a panic: truncated at the ▲
//!        next poll
//! ```

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use futures::stream::Stream;
use pin_project_lite::pin_project;

use crate::error::{Error, Truncated, TruncatedBy};
use crate::machine::{Cut, Machine, Push};

/// How many inputs one poll may take without giving an output.
///
/// A source that is always ready and gives nothing but events to drop (of unknown types, say) must
/// not block the other tasks of the thread.
pub(crate) const MAX_SWALLOWED: usize = 64;

pin_project! {
    /// A source and the machine that it feeds.
    pub(crate) struct Staged<S, M> {
        #[pin]
        state: State<S>,
        machine: M,
        doing: Doing,
        given: u64,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S> {
        // The source is polled when the machine has no output ready.
        Open { #[pin] source: S },
        // The machine gives its outputs, then comes this error.
        Failing { fault: Error },
        // The machine gives its outputs, then the stream ends.
        Draining,
        Ended,
    }
}

/// The call in progress; if set at the beginning of a poll, that call has panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Nothing,
    Source,
    Machine,
}

impl<S, M> Staged<S, M> {
    pub(crate) fn new(source: S, machine: M) -> Self {
        Self { state: State::Open { source }, machine, doing: Doing::Nothing, given: 0 }
    }

    pub(crate) fn get_ref(&self) -> Option<&S> {
        match &self.state {
            State::Open { source } => Some(source),
            State::Failing { .. } | State::Draining | State::Ended => None,
        }
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut S> {
        match &mut self.state {
            State::Open { source } => Some(source),
            State::Failing { .. } | State::Draining | State::Ended => None,
        }
    }

    pub(crate) fn get_pin_mut(self: Pin<&mut Self>) -> Option<Pin<&mut S>> {
        match self.project().state.project() {
            StateProjection::Open { source } => Some(source),
            _ => None,
        }
    }

    pub(crate) fn into_inner(self) -> Option<S> {
        match self.state {
            State::Open { source } => Some(source),
            State::Failing { .. } | State::Draining | State::Ended => None,
        }
    }

    pub(crate) fn machine(&self) -> &M {
        &self.machine
    }

    /// Ends it where it stands; what the machine has ready is lost.
    pub(crate) fn abandon(self: Pin<&mut Self>)
    where
        M: Machine,
    {
        let mut this = self.project();
        if !matches!(*this.state, State::Ended) {
            this.state.set(State::Ended);
            this.machine.cut(Cut::Truncated);
        }
    }

    pub(crate) fn is_terminated(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// The next output that `only` selects; `into_result` converts an item of the source.
    ///
    /// A source or a machine that has panicked is not called again: the stream is truncated.
    pub(crate) fn poll_next<I, E, T>(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into_result: impl Fn(S::Item) -> Result<I, Error<E>>,
        only: impl Fn(M::Output) -> Option<T>,
    ) -> Poll<Option<Result<T, Error<E>>>>
    where
        S: Stream,
        M: Push<I>,
    {
        if self.is_terminated() {
            return Poll::Ready(None);
        }
        if self.doing != Doing::Nothing {
            return Poll::Ready(Some(Err(self.truncate().with_source())));
        }
        let polled = self.as_mut().step(cx, into_result, only);
        let this = self.project();
        *this.doing = Doing::Nothing;
        *this.given += u64::from(matches!(polled, Poll::Ready(Some(Ok(_)))));
        polled
    }

    #[cold]
    fn truncate(self: Pin<&mut Self>) -> Error
    where
        M: Machine,
    {
        let mut this = self.project();
        this.state.set(State::Ended);
        if core::mem::replace(this.doing, Doing::Machine) == Doing::Source {
            this.machine.cut(Cut::Truncated);
        }
        *this.doing = Doing::Nothing;
        Truncated::new(*this.given, None, TruncatedBy::Panic).into()
    }

    fn step<I, E, T>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into_result: impl Fn(S::Item) -> Result<I, Error<E>>,
        only: impl Fn(M::Output) -> Option<T>,
    ) -> Poll<Option<Result<T, Error<E>>>>
    where
        S: Stream,
        M: Push<I>,
    {
        let mut this = self.project();
        let mut swallowed = 0;
        loop {
            *this.doing = Doing::Machine;
            while let Some(output) = this.machine.pop() {
                if let Some(output) = only(output) {
                    return Poll::Ready(Some(Ok(output)));
                }
            }
            let fault = this.machine.fault();
            *this.doing = Doing::Source;
            let fault = match (this.state.as_mut().project(), fault) {
                (StateProjection::Failing { fault }, _) => Some(fault.clone()),
                (_, fault) => fault,
            };
            if let Some(fault) = fault {
                this.state.set(State::Ended);
                return Poll::Ready(Some(Err(fault.with_source())));
            }
            let StateProjection::Open { source } = this.state.as_mut().project() else {
                this.state.set(State::Ended);
                return Poll::Ready(None);
            };
            if swallowed == MAX_SWALLOWED {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let polled = ready!(source.poll_next(cx));
            *this.doing = Doing::Machine;
            let Some(item) = polled else {
                let finished = this.machine.finish();
                this.state.set(match finished {
                    Ok(()) => State::Draining,
                    Err(fault) => State::Failing { fault },
                });
                continue;
            };
            match into_result(item) {
                Ok(input) => {
                    swallowed += 1;
                    if let Err(fault) = this.machine.push(input) {
                        this.state.set(State::Failing { fault });
                    }
                }
                // No output comes before it: the machine was popped empty before the source was
                // polled.
                Err(error) => {
                    this.machine.cut(cut_by(&error));
                    this.state.set(State::Ended);
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }

    /// Only ready outputs are sure to come. The hint of the source does not help, since an event may
    /// give none, one or several outputs.
    pub(crate) fn size_hint(&self) -> (usize, Option<usize>)
    where
        M: Machine,
    {
        let fault = match self.state {
            State::Ended => return (0, Some(0)),
            State::Failing { .. } => 1,
            State::Open { .. } | State::Draining => 0,
        };
        if self.doing != Doing::Nothing {
            // The error about the panic.
            return (1, Some(1));
        }
        (self.machine.ready().saturating_add(fault), None)
    }
}

fn cut_by<E>(error: &Error<E>) -> Cut {
    match error {
        Error::Source(_) | Error::Truncated(_) => Cut::Truncated,
        Error::Malformed(_) | Error::Violation(_) | Error::LimitExceeded(_) => Cut::Rejected,
    }
}

impl<S, M: fmt::Debug> Staged<S, M> {
    /// `Debug` of every combinator. It requires no `Debug` of the source, as a boxed one has none.
    pub(crate) fn fmt_as(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (state, fault) = match &self.state {
            State::Open { .. } => ("open", None),
            State::Failing { fault } => ("failing", Some(fault)),
            State::Draining => ("draining", None),
            State::Ended => ("ended", None),
        };
        let mut shown = f.debug_struct(name);
        shown.field("state", &format_args!("{state}"));
        if let Some(fault) = fault {
            shown.field("fault", &format_args!("{fault}"));
        }
        shown.field("machine", &self.machine).finish_non_exhaustive()
    }
}
