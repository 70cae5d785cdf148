//! Two streams from one: events for one task, snapshots for another.
//!
//! The second poll loop of the crate, for what [`Staged`](super::Staged) cannot do: two consumers
//! of one source, of which either may be polled, left alone or dropped at any time.
//!
//! ```text
//!                    ┌─► events, at most `capacity` ─────────────────► SplitEvents
//!   source ─► Update ┤
//!                    └─► snapshots: the newest, or at most `capacity` ► SplitSnapshots
//! ```
//!
//! - Whichever half is polled and finds nothing drives the source, under a lock that is held for
//!   one poll and never over an await.
//! - It drives only while both queues have room: an item is never taken from the source without a
//!   place for it. A half whose own queue is empty can wait only for the other's to be emptied, so
//!   never do both wait for each other.
//! - The source has one waker, which wakes both halves. So it does not matter which half was
//!   polled last, and whether it is ever polled again.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;

use futures::stream::{FusedStream, Stream};
use futures::task::AtomicWaker;

use super::staged::MAX_SWALLOWED;
use crate::error::{Error, Truncated, TruncatedBy};
use crate::item::Item;
use crate::snapshot::{Changed, Update};

/// How many items a half may lag behind the other, unless
/// [`split_with_capacity`] says otherwise.
///
/// Room for a burst of deltas between two polls; a bound of a few kilobytes.
pub const DEFAULT_SPLIT_CAPACITY: usize = 64;

/// The two halves of a stream that was [split](split()).
pub type Split<S, E> = (SplitEvents<S, E>, SplitSnapshots<S, E>);

/// Splits a stream of updates into two that two tasks can own: of the events, and of the
/// snapshots.
///
/// The events half gives every event and warning, in order. The snapshots half gives the
/// conversation as [`Changed`], after events that changed it: by default the newest only, so that
/// a slow consumer skips what is out of date, with the marks of all that it skipped; each single
/// one with [`SplitSnapshots::every`].
///
/// The source is driven by whichever half is polled; nothing is spawned. Either half can lag
/// behind the other by [`DEFAULT_SPLIT_CAPACITY`] items, then it holds the other back:
///
/// | | the events half goes on | the snapshots half goes on |
/// |---|---|---|
/// | the other is polled | always | always |
/// | the other is never polled | always; with `every`, for 64 snapshots | for 64 events |
/// | the other is dropped | always | always |
///
/// A half that is not wanted has to be dropped.
///
/// # Ending
/// Each half ends once it has given what is its, then `None` for ever. The source is dropped as
/// soon as it ends or fails.
///
/// # Errors
/// Both halves end with the error of the stream, shared. Should the source panic in the task of
/// one half, the other ends with [`Error::Truncated`].
///
/// # Cost
/// One allocation for the pair and one for the source; a lock for each poll, that of the source
/// included.
///
/// # Cancel safety
/// A `next()` of either half that is dropped loses nothing: what was taken from the source waits
/// in the queues.
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
    split_with_capacity(updates, DEFAULT_SPLIT_CAPACITY)
}

/// [`split`] with another bound on how many items a half may lag behind the other; at least one.
pub fn split_with_capacity<S, E>(updates: S, capacity: usize) -> Split<S, E>
where
    S: Stream<Item = Result<Update, Error<E>>>,
{
    let wakers = Arc::new(Wakers::default());
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            source: Some(Box::pin(updates)),
            capacity: capacity.max(1),
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
    /// Out of its place while it is polled, so that it is gone if it panics.
    source: Option<Pin<Box<S>>>,
    capacity: usize,
    events: Lane<Item>,
    snapshots: Lane<Changed>,
    /// How many events went through.
    passed: u64,
    /// How the source ended, once it has.
    end: Option<Result<(), Arc<Error<E>>>>,
}

/// What waits for one half.
struct Lane<T> {
    queue: VecDeque<T>,
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
        Self { queue: VecDeque::new(), mode }
    }

    fn is_full(&self, capacity: usize) -> bool {
        self.mode == Mode::Every && self.queue.len() >= capacity
    }

    /// What is held is sure to come, then the error; more than that, while the source is open.
    fn size_hint<E>(&self, end: Option<&Result<(), E>>) -> (usize, Option<usize>) {
        let held = self.queue.len().saturating_add(usize::from(end.is_some_and(Result::is_err)));
        (held, end.is_some().then_some(held))
    }
}

impl Lane<Changed> {
    fn add(&mut self, changed: Changed) {
        match (self.mode, self.queue.back_mut()) {
            (Mode::Latest, Some(held)) => held.skip_to(changed),
            (Mode::Latest | Mode::Every, _) => self.queue.push_back(changed),
            (Mode::Gone, _) => {}
        }
    }
}

/// What came of polling the source.
enum Drive {
    /// An update went to the lanes, or the end was noted.
    Went { news_for_snapshots: bool },
    /// Nothing yet; the source wakes both halves.
    Waits,
}

impl<S, E> State<S, E>
where
    S: Stream<Item = Result<Update, Error<E>>>,
{
    fn has_room(&self) -> bool {
        !self.events.is_full(self.capacity) && !self.snapshots.is_full(self.capacity)
    }

    /// Takes one update from the source. To be called while there is room.
    fn drive(&mut self, waker: &Waker) -> Drive {
        let Some(mut source) = self.source.take() else {
            // It panicked when it was polled by the other half.
            self.end = Some(Err(Arc::new(Truncated::new(self.passed, None, TruncatedBy::Close).into())));
            return Drive::Went { news_for_snapshots: true };
        };
        match source.as_mut().poll_next(&mut Context::from_waker(waker)) {
            Poll::Pending => {
                self.source = Some(source);
                Drive::Waits
            }
            Poll::Ready(Some(Ok(update))) => {
                self.source = Some(source);
                self.passed += u64::from(update.event().is_some());
                let (item, changed) = update.split();
                if self.events.mode != Mode::Gone {
                    self.events.queue.push_back(item);
                }
                let news_for_snapshots = changed.is_some();
                if let Some(changed) = changed {
                    self.snapshots.add(changed);
                }
                Drive::Went { news_for_snapshots }
            }
            Poll::Ready(Some(Err(error))) => {
                self.end = Some(Err(Arc::new(error)));
                Drive::Went { news_for_snapshots: true }
            }
            Poll::Ready(None) => {
                self.end = Some(Ok(()));
                Drive::Went { news_for_snapshots: true }
            }
        }
    }
}

impl<S, E> Shared<S, E> {
    /// A panic leaves the state whole: it can only come from the source, which is out of its place
    /// then.
    fn lock(&self) -> MutexGuard<'_, State<S, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One loop for both halves: give, else drive, else wait.
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
        // Goes after the lock.
        let _unwinding = WakeOnUnwind(other);
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut news = false;
        let mut taken = 0;
        // The newest is known only when the source has nothing more at the moment.
        while lane(state).mode == Mode::Latest || lane(state).queue.is_empty() {
            if state.end.is_some() {
                break;
            }
            // Before the source is polled: it may wake at once.
            own.register(cx.waker());
            if !state.has_room() || taken == MAX_SWALLOWED {
                break;
            }
            match state.drive(&self.waker) {
                Drive::Went { news_for_snapshots } => {
                    news |= !is_events || news_for_snapshots;
                    taken += 1;
                }
                Drive::Waits => break,
            }
        }
        let was_full = !state.has_room();
        let polled = match lane(state).queue.pop_front() {
            Some(item) => Poll::Ready(Some(Ok(item))),
            None => match &state.end {
                Some(end) => Poll::Ready(end.clone().err().map(Err)),
                None => Poll::Pending,
            },
        };
        let has_new_room = was_full && state.has_room();
        drop(guard);
        if polled.is_ready() {
            own.take();
        } else if taken == MAX_SWALLOWED {
            cx.waker().wake_by_ref();
        }
        if news || has_new_room {
            other.wake();
        }
        polled
    }
}

/// Wakes the other half if the source panics: nobody else would, and it has an end to learn of.
struct WakeOnUnwind<'a>(&'a AtomicWaker);

impl Drop for WakeOnUnwind<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.wake();
        }
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

    /// Puts the halves of one stream together again: gives back the source, and what was taken
    /// from it and not yet given.
    ///
    /// # Errors
    /// Both halves, where they do not come from the same stream.
    pub fn reunite(self, other: SplitSnapshots<S, E>) -> Result<Reunited<S, E>, ReuniteError<S, E>> {
        if !self.is_pair_of(&other) {
            return Err(ReuniteError { events: self, snapshots: other });
        }
        let mut state = self.shared.lock();
        Ok(Reunited {
            source: state.source.take(),
            events: std::mem::take(&mut state.events.queue),
            snapshots: std::mem::take(&mut state.snapshots.queue),
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

    /// Gives every snapshot from now on, at the price that it can hold the events half back.
    ///
    /// Asked for before either half was polled, not one is left out.
    pub fn every(self) -> Self {
        self.shared.lock().snapshots.mode = Mode::Every;
        self
    }

    /// Gives the newest snapshot only, as it does unless [`every`](SplitSnapshots::every) is asked
    /// for. It never holds the events half back.
    pub fn latest(self) -> Self {
        let mut state = self.shared.lock();
        let lane = &mut state.snapshots;
        lane.mode = Mode::Latest;
        for changed in std::mem::take(&mut lane.queue) {
            lane.add(changed);
        }
        drop(state);
        self.shared.wakers.events.wake();
        self
    }
}

impl<S, E> Stream for SplitEvents<S, E>
where
    S: Stream<Item = Result<Update, Error<E>>>,
{
    type Item = Result<Item, Arc<Error<E>>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let Wakers { events, snapshots } = &*self.shared.wakers;
        let polled = self.shared.poll(cx, events, snapshots, |state| &mut state.events, true);
        self.ended = matches!(polled, Poll::Ready(None | Some(Err(_))));
        polled
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        if self.ended {
            return (0, Some(0));
        }
        let state = self.shared.lock();
        state.events.size_hint(state.end.as_ref())
    }
}

impl<S, E> Stream for SplitSnapshots<S, E>
where
    S: Stream<Item = Result<Update, Error<E>>>,
{
    type Item = Result<Changed, Arc<Error<E>>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let Wakers { events, snapshots } = &*self.shared.wakers;
        let polled = self.shared.poll(cx, snapshots, events, |state| &mut state.snapshots, false);
        self.ended = matches!(polled, Poll::Ready(None | Some(Err(_))));
        polled
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        if self.ended {
            return (0, Some(0));
        }
        let state = self.shared.lock();
        state.snapshots.size_hint(state.end.as_ref())
    }
}

impl<S, E> FusedStream for SplitEvents<S, E>
where
    S: Stream<Item = Result<Update, Error<E>>>,
{
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl<S, E> FusedStream for SplitSnapshots<S, E>
where
    S: Stream<Item = Result<Update, Error<E>>>,
{
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl<S, E> Drop for SplitEvents<S, E> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.events.mode = Mode::Gone;
        let queue = std::mem::take(&mut state.events.queue);
        drop(state);
        drop(queue);
        self.shared.wakers.snapshots.wake();
    }
}

impl<S, E> Drop for SplitSnapshots<S, E> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.snapshots.mode = Mode::Gone;
        let queue = std::mem::take(&mut state.snapshots.queue);
        drop(state);
        drop(queue);
        self.shared.wakers.events.wake();
    }
}

impl<S, E> fmt::Debug for SplitEvents<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SplitEvents").field("is_terminated", &self.ended).finish_non_exhaustive()
    }
}

impl<S, E> fmt::Debug for SplitSnapshots<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SplitSnapshots").field("is_terminated", &self.ended).finish_non_exhaustive()
    }
}

/// What [`SplitEvents::reunite`] gives back.
#[non_exhaustive]
pub struct Reunited<S, E> {
    /// The source; `None` once it ended or failed.
    pub source: Option<Pin<Box<S>>>,
    /// What the events half had not given yet.
    pub events: VecDeque<Item>,
    /// What the snapshots half had not given yet.
    pub snapshots: VecDeque<Changed>,
    /// What the source failed with, if it has, whether or not a half gave it already.
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
    /// The one.
    pub events: SplitEvents<S, E>,
    /// The other.
    pub snapshots: SplitSnapshots<S, E>,
}

impl<S, E> fmt::Display for ReuniteError<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the halves do not come from the same stream")
    }
}

impl<S, E> core::error::Error for ReuniteError<S, E> where Self: fmt::Debug {}
