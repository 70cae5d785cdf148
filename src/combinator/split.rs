//! `split`: two streams from one, events for one task and snapshots for another.
//!
//! The second poll loop of the crate: unlike [`Staged`](super::Staged) it has two consumers of one
//! source, and either may be polled, left alone or dropped at any time.
//!
//! ```text
//!                    ┌─► events, at most `capacity` ─────────────────► SplitEvents
//!   source ─► Update ┤
//!                    └─► snapshots: the newest, or at most `capacity` ► SplitSnapshots
//! ```
//!
//! - A half that is polled and finds its queue empty polls the source. If the other half is polling it,
//!   the half waits to be woken.
//! - The source is polled only while both queues have room, so each item has a place. A half with an
//!   empty queue can wait only for the other queue to be emptied, so the halves never wait for each
//!   other.
//! - The source has one waker, which wakes both halves. So it does not matter which half was polled
//!   last, or whether it is polled again.
//! - No foreign code runs under the lock: the source is taken out of the state to be polled and dropped,
//!   and wakers are cloned, dropped and woken without the lock. Any of these may own the other half and
//!   drop it.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;

use futures::stream::{FusedStream, Stream};
use futures::task::AtomicWaker;

use super::staged::MAX_SWALLOWED;
use crate::error::{Error, Truncated, TruncatedBy};
use crate::item::Item;
use crate::snapshot::{Changed, Update};

/// How far a half may lag behind the other before it holds the other back.
///
/// A half whose queue has reached either bound is full, so the queue exceeds `bytes` by at most one
/// item. An item counts as the bytes of its event as JSON. A snapshot counts as its event, as it shares
/// everything else with earlier ones.
///
/// A new bound is not a breaking change: take the others from the default.
///
/// ```
/// use ag_ui_stream::combinator::SplitCapacity;
///
/// let capacity = SplitCapacity { items: 1024, ..SplitCapacity::default() };
/// assert_eq!(capacity.bytes, SplitCapacity::DEFAULT_BYTES);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitCapacity {
    /// The most items; at least one.
    pub items: usize,
    /// The most bytes.
    ///
    /// Stops a few large events from filling the memory.
    pub bytes: usize,
}

impl SplitCapacity {
    /// Room for a burst of deltas between two polls.
    pub const DEFAULT_ITEMS: usize = 64;
    /// 1 MiB: far above a burst of deltas, far below the memory of any host.
    pub const DEFAULT_BYTES: usize = 1024 * 1024;
}

impl Default for SplitCapacity {
    fn default() -> Self {
        Self { items: Self::DEFAULT_ITEMS, bytes: Self::DEFAULT_BYTES }
    }
}

/// The two halves of a stream that was [split](split()).
pub type Split<S, E> = (SplitEvents<S, E>, SplitSnapshots<S, E>);

/// Splits a stream of updates into two that two tasks can own: one of the events, one of the snapshots.
///
/// The events half gives every event and warning, in order. The snapshots half gives the conversation
/// as [`Changed`], after events that changed it. By default it gives only the newest, so that a slow
/// consumer skips older ones; it then tells of all changes that were skipped. With
/// [`SplitSnapshots::every`] it gives each.
///
/// The half that is polled polls the source; nothing is spawned. Either half can lag behind the other by
/// 64 items or 1 MiB of them ([`SplitCapacity`]), then it holds the other back:
///
/// | | the events half goes on | the snapshots half goes on |
/// |---|---|---|
/// | the other is polled | always | always |
/// | the other is never polled | always; with `every`, until it is full | until it is full |
/// | the other is dropped | always | always |
///
/// Drop a half that you do not need. It may be dropped anywhere, even within the waker of the other or
/// within the source.
///
/// # Ending
/// Each half ends once its queue is empty, then gives `None` for ever. The source is dropped as soon as
/// it ends or fails.
///
/// # Errors
/// Both halves end with the error of the stream, shared. If the source panics in the task of one half,
/// it is dropped, and both end with [`Error::Truncated`].
///
/// # Cost
/// Two allocations for the pair and one for the source; two locks for each item. An item that is queued
/// for the other half is measured by one pass over its event.
///
/// # Cancel safety
/// A dropped `next()` of either half loses nothing: items taken from the source wait in the queues.
///
/// # Examples
/// ```
/// use ag_ui_stream::event::{RunErrorEvent, RunStartedEvent};
/// use ag_ui_stream::{Event, EventStreamExt};
/// use futures::{TryStreamExt, future, stream};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), std::sync::Arc<ag_ui_stream::Error>> {
/// let events: [Event; 2] = [RunStartedEvent::new("thread", "run").into(), RunErrorEvent::new("overloaded").into()];
/// let (events, snapshots) = stream::iter(events).assemble().split();
/// let (events, snapshots): (Vec<_>, Vec<_>) =
///     future::try_join(events.try_collect(), snapshots.every().try_collect()).await?;
/// assert_eq!(events.len(), 2);
/// assert_eq!(snapshots[0].snapshot().run().unwrap().outcome.as_str(), "running");
/// assert_eq!(snapshots[1].snapshot().run().unwrap().outcome.as_str(), "error");
/// # Ok(())
/// # }
/// ```
pub fn split<S, E>(updates: S) -> Split<S, E>
where
    S: Stream<Item = Result<Update, Error<E>>>,
{
    split_with_capacity(updates, SplitCapacity::default())
}

/// [`split`] with other bounds on how far a half may lag behind the other.
pub fn split_with_capacity<S, E>(updates: S, capacity: SplitCapacity) -> Split<S, E>
where
    S: Stream<Item = Result<Update, Error<E>>>,
{
    let wakers = Arc::new(Wakers::default());
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            source: Source::Here(Box::pin(updates)),
            is_awaited: false,
            capacity: SplitCapacity { items: capacity.items.max(1), ..capacity },
            events: Lane::new(Mode::Every),
            snapshots: Lane::new(Mode::Latest),
            passed: 0,
            end: None,
        }),
        waker: Waker::from(Arc::clone(&wakers)),
        wakers,
    });
    (SplitEvents { shared: Arc::clone(&shared), ended: false }, SplitSnapshots { shared, ended: false })
}

struct Shared<S, E> {
    state: Mutex<State<S, E>>,
    wakers: Arc<Wakers>,
    /// Wakes both.
    waker: Waker,
}

#[derive(Default)]
struct Wakers {
    events: AtomicWaker,
    snapshots: AtomicWaker,
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.events.wake();
        self.snapshots.wake();
    }
}

struct State<S, E> {
    source: Source<S>,
    /// One half waits, as the other is polling the source.
    is_awaited: bool,
    capacity: SplitCapacity,
    events: Lane<Item>,
    snapshots: Lane<Changed>,
    /// The number of events so far.
    passed: u64,
    /// How the source ended, once it has.
    end: Option<Result<(), Arc<Error<E>>>>,
}

enum Source<S> {
    Here(Pin<Box<S>>),
    /// One half polls it.
    Taken,
    /// It has ended, and `end` says how.
    Gone,
}

/// The queue of one half.
struct Lane<T> {
    /// Each with its weight in bytes.
    queue: VecDeque<(T, usize)>,
    bytes: usize,
    mode: Mode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Each one is given.
    Every,
    /// The newest is given, the queue holds no more than that.
    Latest,
    /// The half was dropped.
    Gone,
}

impl<T> Lane<T> {
    fn new(mode: Mode) -> Self {
        Self { queue: VecDeque::new(), bytes: 0, mode }
    }

    fn is_full(&self, capacity: SplitCapacity) -> bool {
        self.mode == Mode::Every && (self.queue.len() >= capacity.items || self.bytes >= capacity.bytes)
    }

    fn push(&mut self, item: T, weight: usize) {
        self.bytes = self.bytes.saturating_add(weight);
        self.queue.push_back((item, weight));
    }

    fn pop(&mut self) -> Option<T> {
        let (item, weight) = self.queue.pop_front()?;
        self.bytes = self.bytes.saturating_sub(weight);
        Some(item)
    }

    fn take(&mut self) -> VecDeque<T> {
        self.bytes = 0;
        std::mem::take(&mut self.queue).into_iter().map(|(item, _)| item).collect()
    }

    /// The queued items are sure to come, then the error; more may come while the source is open.
    fn size_hint<E>(&self, end: Option<&Result<(), E>>) -> (usize, Option<usize>) {
        let held = self.queue.len().saturating_add(usize::from(end.is_some_and(Result::is_err)));
        (held, end.is_some().then_some(held))
    }
}

impl Lane<Changed> {
    fn add(&mut self, changed: Changed, weight: usize) {
        match (self.mode, self.queue.back_mut()) {
            (Mode::Latest, Some((held, _))) => held.skip_to(changed),
            (Mode::Latest | Mode::Every, _) => self.push(changed, weight),
            (Mode::Gone, _) => {}
        }
    }
}

/// What a half does next.
enum Next<S, T, E> {
    Give(T),
    End(Result<(), Arc<Error<E>>>),
    /// Poll the source; `weigh` says whether the other half will queue the item, which is then measured.
    Drive {
        source: Pin<Box<S>>,
        weigh: bool,
    },
    Wait,
}

impl<S, E> State<S, E> {
    fn has_room(&self) -> bool {
        !self.events.is_full(self.capacity) && !self.snapshots.is_full(self.capacity)
    }
}

impl<S, E> Shared<S, E> {
    /// Hold it only to move values: no foreign code may run under it.
    fn lock(&self) -> MutexGuard<'_, State<S, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One loop for both halves: give an item, else poll the source, else wait.
    fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        own: &AtomicWaker,
        other: &AtomicWaker,
        lane: impl Fn(&mut State<S, E>) -> &mut Lane<T>,
        is_events: bool,
    ) -> Poll<Option<Result<T, Arc<Error<E>>>>>
    where
        S: Stream<Item = Result<Update, Error<E>>>,
    {
        let mut turn = Turn { shared: self, other, is_driving: false, has_news: false, is_events };
        let mut is_registered = false;
        let mut is_dry = false;
        let mut taken = 0;
        loop {
            match turn.next(&lane, !is_dry && taken < MAX_SWALLOWED) {
                Next::Give(item) => {
                    own.take();
                    return Poll::Ready(Some(Ok(item)));
                }
                Next::End(end) => {
                    own.take();
                    return Poll::Ready(end.err().map(Err));
                }
                Next::Drive { source, weigh } => {
                    // Before the source is polled, as it may wake at once.
                    own.register(cx.waker());
                    is_registered = true;
                    is_dry = !turn.drive(source, weigh);
                    taken += usize::from(!is_dry);
                }
                Next::Wait if taken == MAX_SWALLOWED => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Next::Wait if is_registered => return Poll::Pending,
                // The item may have come before the waker was registered, so it looks again.
                Next::Wait => {
                    own.register(cx.waker());
                    is_registered = true;
                }
            }
        }
    }
}

/// One poll of a half. When it ends, even by a panic of the source, it wakes the other half if there is
/// anything for that.
struct Turn<'a, S, E> {
    shared: &'a Shared<S, E>,
    other: &'a AtomicWaker,
    is_driving: bool,
    has_news: bool,
    is_events: bool,
}

impl<S, E> Turn<'_, S, E> {
    fn next<T>(&mut self, lane: impl Fn(&mut State<S, E>) -> &mut Lane<T>, may_drive: bool) -> Next<S, T, E> {
        let mut guard = self.shared.lock();
        let state = &mut *guard;
        let has_room = state.has_room();
        let own = lane(state);
        // The newest snapshot is known only once the source is pending.
        let wants_more = own.mode == Mode::Latest || own.queue.is_empty();
        if wants_more && may_drive && has_room {
            match std::mem::replace(&mut state.source, Source::Taken) {
                Source::Here(source) => {
                    let mode = if self.is_events { state.snapshots.mode } else { state.events.mode };
                    return Next::Drive { source, weigh: mode == Mode::Every };
                }
                Source::Taken => state.is_awaited = true,
                Source::Gone => state.source = Source::Gone,
            }
        }
        match (lane(state).pop(), &state.end) {
            (Some(item), _) => {
                self.has_news |= !has_room && state.has_room();
                Next::Give(item)
            }
            (None, Some(end)) => Next::End(end.clone()),
            (None, None) => Next::Wait,
        }
    }

    /// Polls the source. `false` if it is pending: it wakes both halves later.
    fn drive(&mut self, mut source: Pin<Box<S>>, weigh: bool) -> bool
    where
        S: Stream<Item = Result<Update, Error<E>>>,
    {
        self.is_driving = true;
        let polled = source.as_mut().poll_next(&mut Context::from_waker(&self.shared.waker));
        let (update, end) = match polled {
            Poll::Ready(Some(Ok(update))) => (Some(update), None),
            Poll::Ready(Some(Err(error))) => (None, Some(Err(Arc::new(error)))),
            Poll::Ready(None) => (None, Some(Ok(()))),
            Poll::Pending => (None, None),
        };
        let has_come = update.is_some() || end.is_some();
        let is_over = end.is_some();
        let weight = update.as_ref().filter(|_| weigh).map_or(0, |update| weight_of(update.item()));
        let parts = update.map(|update| (update.event().is_some(), update.split()));

        let mut guard = self.shared.lock();
        let state = &mut *guard;
        self.is_driving = false;
        self.has_news |= std::mem::take(&mut state.is_awaited) || is_over;
        if let Some((is_event, (item, changed))) = parts {
            state.passed += u64::from(is_event);
            self.has_news |= !self.is_events || changed.is_some();
            if state.events.mode != Mode::Gone {
                state.events.push(item, if self.is_events { 0 } else { weight });
            }
            if let Some(changed) = changed {
                state.snapshots.add(changed, if self.is_events { weight } else { 0 });
            }
        }
        if is_over {
            state.end = end;
            state.source = Source::Gone;
            drop(guard);
            drop(source);
        } else {
            state.source = Source::Here(source);
        }
        has_come
    }
}

impl<S, E> Drop for Turn<'_, S, E> {
    fn drop(&mut self) {
        if self.is_driving {
            // The source has panicked. It is not polled again, and the stream is truncated.
            let mut state = self.shared.lock();
            state.source = Source::Gone;
            state.end = Some(Err(Arc::new(Truncated::new(state.passed, None, TruncatedBy::Panic).into())));
        }
        if self.has_news || self.is_driving {
            self.other.wake();
        }
    }
}

/// How much of the queue's bound an item takes.
pub(super) fn weight_of(item: &Item) -> usize {
    struct Count(usize);

    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    match item {
        Item::Event(indexed) => {
            let mut count = Count(0);
            // An event that cannot be written as JSON counts up to the fault.
            let _ = serde_json::to_writer(&mut count, &indexed.event);
            count.0
        }
        Item::Warning(warning) => warning.path.len().saturating_add(warning.message.len()),
    }
}

/// The events and warnings of a stream that was [split](split()).
#[must_use = "streams do nothing unless polled"]
pub struct SplitEvents<S, E> {
    shared: Arc<Shared<S, E>>,
    ended: bool,
}

/// The snapshots of a stream that was [split](split()).
#[must_use = "streams do nothing unless polled"]
pub struct SplitSnapshots<S, E> {
    shared: Arc<Shared<S, E>>,
    ended: bool,
}

impl<S, E> SplitEvents<S, E> {
    /// Whether both come from the same stream.
    #[must_use]
    pub fn is_pair_of(&self, other: &SplitSnapshots<S, E>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Joins the halves of one stream again: gives back the source, and the items that were taken from
    /// it and not given.
    ///
    /// # Errors
    /// Both halves, if they do not come from the same stream.
    pub fn reunite(self, other: SplitSnapshots<S, E>) -> Result<Reunited<S, E>, ReuniteError<S, E>> {
        if !self.is_pair_of(&other) {
            return Err(ReuniteError { events: self, snapshots: other });
        }
        let mut state = self.shared.lock();
        let source = match std::mem::replace(&mut state.source, Source::Gone) {
            Source::Here(source) => Some(source),
            Source::Taken | Source::Gone => None,
        };
        Ok(Reunited {
            source,
            events: state.events.take(),
            snapshots: state.snapshots.take(),
            error: state.end.take().and_then(Result::err),
        })
    }
}

impl<S, E> SplitSnapshots<S, E> {
    /// Whether both come from the same stream.
    #[must_use]
    pub fn is_pair_of(&self, other: &SplitEvents<S, E>) -> bool {
        other.is_pair_of(self)
    }

    /// Gives every snapshot from now on. It can then hold the events half back.
    ///
    /// Call it before either half is polled to miss none.
    pub fn every(self) -> Self {
        self.shared.lock().snapshots.mode = Mode::Every;
        self
    }

    /// Gives only the newest snapshot, as it does by default; undoes [`every`](SplitSnapshots::every).
    /// It never holds the events half back.
    pub fn latest(self) -> Self {
        let mut state = self.shared.lock();
        let lane = &mut state.snapshots;
        lane.mode = Mode::Latest;
        for changed in lane.take() {
            lane.add(changed, 0);
        }
        drop(state);
        self.shared.wakers.events.wake();
        self
    }
}

/// The methods of both halves. The arguments are its item, its own queue and waker, those of the other
/// half, and whether it is the half of the events.
macro_rules! halves {
    ($($half:ident: $item:ty, $own:ident, $other:ident, $is_events:literal;)*) => {$(
        impl<S, E> Stream for $half<S, E>
        where
            S: Stream<Item = Result<Update, Error<E>>>,
        {
            type Item = Result<$item, Arc<Error<E>>>;

            fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
                if self.ended {
                    return Poll::Ready(None);
                }
                let Wakers { $own, $other } = &*self.shared.wakers;
                let polled = self.shared.poll(cx, $own, $other, |state| &mut state.$own, $is_events);
                self.ended = matches!(polled, Poll::Ready(None | Some(Err(_))));
                polled
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                if self.ended {
                    return (0, Some(0));
                }
                let state = self.shared.lock();
                state.$own.size_hint(state.end.as_ref())
            }
        }

        impl<S, E> FusedStream for $half<S, E>
        where
            S: Stream<Item = Result<Update, Error<E>>>,
        {
            fn is_terminated(&self) -> bool {
                self.ended
            }
        }

        impl<S, E> Drop for $half<S, E> {
            fn drop(&mut self) {
                let mut state = self.shared.lock();
                state.$own.mode = Mode::Gone;
                let queue = state.$own.take();
                drop(state);
                drop(queue);
                self.shared.wakers.$other.wake();
            }
        }

        impl<S, E> fmt::Debug for $half<S, E> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($half)).field("is_terminated", &self.ended).finish_non_exhaustive()
            }
        }
    )*};
}

halves! {
    SplitEvents: Item, events, snapshots, true;
    SplitSnapshots: Changed, snapshots, events, false;
}

/// The result of [`SplitEvents::reunite`].
#[non_exhaustive]
pub struct Reunited<S, E> {
    /// The source; `None` once it ended or failed.
    pub source: Option<Pin<Box<S>>>,
    /// The items that the events half had not given.
    pub events: VecDeque<Item>,
    /// The snapshots that the snapshots half had not given.
    pub snapshots: VecDeque<Changed>,
    /// The error of the source, if it failed, even if a half has given it.
    pub error: Option<Arc<Error<E>>>,
}

impl<S, E: fmt::Debug> fmt::Debug for Reunited<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reunited")
            .field("is_source_open", &self.source.is_some())
            .field("events", &self.events)
            .field("snapshots", &self.snapshots)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

/// Two halves that do not come from the same stream.
#[derive(Debug)]
pub struct ReuniteError<S, E> {
    /// The events half.
    pub events: SplitEvents<S, E>,
    /// The snapshots half.
    pub snapshots: SplitSnapshots<S, E>,
}

impl<S, E> fmt::Display for ReuniteError<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the halves do not come from the same stream")
    }
}

impl<S, E> core::error::Error for ReuniteError<S, E> where Self: fmt::Debug {}
