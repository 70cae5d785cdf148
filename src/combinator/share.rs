//! `share`: many readers of one stream, which may join late and may be slow.
//!
//! The third poll loop of the crate, for what [`split`](super::split()) cannot do: any number of
//! readers, none of which holds another back.
//!
//! ```text
//!                                   ╭─► SharedEvents     a prelude, then every event
//!   source ─► Updates ─► the newest ┼─► SharedEvents     …
//!                        updates    ╰─► SharedSnapshots  the newest snapshot
//! ```
//!
//! - A reader that is polled and finds nothing new polls the source. If another reader does so at that moment,
//!   it waits to be woken by that reader.
//! - All outputs of an input are taken before a reader gets one. So the conversation in the pipeline is the one
//!   that the readers have, and a prelude can begin there.
//! - The source has one waker, which wakes all readers. So it does not matter which reader was polled last.
//! - No code from outside runs under a lock: the source is taken out of the state to be polled, and
//!   wakers are woken after the locks are released. Any of these may make or drop a reader.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, Waker, ready};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;

use futures::stream::{FusedStream, Stream};
use futures::task::AtomicWaker;

use super::split::{SplitCapacity, weight_of};
use super::staged::MAX_SWALLOWED;
use super::{RawInput, Updates};
use crate::error::Error;
use crate::event::Event;
use crate::item::Item;
use crate::machine::{Machine, Pipeline};
use crate::snapshot::{Changed, Snapshot, Update};

/// A stream with many readers, each at its own pace; made by [`share`](super::EventStreamExt::share). It is
/// not a stream itself: it makes readers. A clone makes readers of the same stream.
///
/// - [`events`](Share::events): every event and warning. A reader that joins late gets the
///   [prelude](crate::machine::Pipeline::prelude) first, so that it reads a legal stream whenever it joins. A
///   reader that falls back by more than the newest 1024 updates, or by more than 1 MiB of them, gets
///   [`SharedError::Lagged`], and goes on with a new prelude.
/// - [`snapshots`](Share::snapshots): the newest snapshot, marked with everything that changed since the last one
///   that was read. A reader that joins late gets the current one; a slow reader skips those in between.
///
/// The reader that is polled polls the source; nothing is spawned, and without a reader nothing happens. No
/// reader holds another back, whether it is slow or dropped.
///
/// # Ending
/// Each reader ends after it has given all of its items; so does one that is made after the end of the stream.
/// After that it gives `None` for ever. The source is dropped as soon as it ends or fails, the conversation with
/// the last reader.
///
/// # Errors
/// All readers end with the error of the stream, which they share. If the source panics while one reader polls
/// it, the others end with [`Error::Truncated`].
///
/// # Cost
/// An update costs one pass over its event, to measure it, and one allocation; each reader adds a lock and a copy
/// of the event. The newest updates are held with their snapshots. A prelude costs the size of the conversation,
/// and the other readers wait while it is made.
///
/// # Cancel safety
/// A dropped `next()` of a reader loses nothing.
///
/// # Examples
/// ```
/// use ag_ui_stream::{Event, EventStreamExt};
/// use futures::{StreamExt, TryStreamExt, stream};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let shared = stream::iter([
///     Event::run_started("thread", "run"),
///     Event::text_start("m"),
///     Event::text_content("m", "Hel"),
///     Event::text_content("m", "lo"),
///     Event::text_end("m"),
///     Event::run_finished("thread", "run"),
/// ])
/// .share();
/// let early: Vec<_> = shared.events().take(3).try_collect().await?;
/// assert_eq!(early.len(), 3);
///
/// // A reader that joins now gets the message so far, and the rest.
/// let updates: Vec<_> = shared.events().map_ok(|item| item.into_event()).try_collect().await?;
/// let late = stream::iter(updates.into_iter().flatten()).updates().try_collect::<Vec<_>>().await?;
/// assert_eq!(late.last().unwrap().snapshot().message("m").unwrap().text().unwrap(), "Hello");
/// # Ok(())
/// # }
/// ```
pub struct Share<S, E> {
    shared: Arc<Shared<S, E>>,
}

impl<S, E> Share<S, E> {
    const CAPACITY: SplitCapacity = SplitCapacity { items: 1024, bytes: SplitCapacity::DEFAULT_BYTES };

    /// A reader of every event and warning from now on, after a prelude.
    pub fn events(&self) -> SharedEvents<S, E> {
        SharedEvents { reader: self.reader(), place: Place::default(), ended: false }
    }

    /// A reader of the newest snapshot.
    pub fn snapshots(&self) -> SharedSnapshots<S, E> {
        SharedSnapshots { reader: self.reader(), place: None, ended: false }
    }

    fn reader(&self) -> Reader<S, E> {
        let waker = Arc::new(AtomicWaker::new());
        self.shared.wakers.lock().push(Arc::clone(&waker));
        Reader { shared: Arc::clone(&self.shared), waker }
    }
}

/// Makes the stream of [`share`](super::EventStreamExt::share) and of [`Updates::share`].
pub(super) fn share<S, E>(updates: Updates<S>, capacity: Option<SplitCapacity>) -> Share<S, E>
where
    S: Stream,
    S::Item: RawInput<Error = E>,
{
    let wakers = Arc::new(Wakers::default());
    let state = State {
        snapshot: updates.snapshot().clone(),
        source: Some(Box::pin(updates)),
        is_awaited: false,
        capacity: capacity.unwrap_or(Share::<S, E>::CAPACITY),
        newest: VecDeque::new(),
        bytes: 0,
        first: 0,
        end: None,
    };
    Share { shared: Arc::new(Shared { state: Mutex::new(state), waker: Waker::from(Arc::clone(&wakers)), wakers }) }
}

struct Shared<S, E> {
    state: Mutex<State<S, E>>,
    wakers: Arc<Wakers>,
    /// Wakes all.
    waker: Waker,
}

impl<S, E> Shared<S, E> {
    /// While the lock is held, values are only moved: no code from outside may run.
    fn lock(&self) -> MutexGuard<'_, State<S, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of each reader.
#[derive(Default)]
struct Wakers(Mutex<Vec<Arc<AtomicWaker>>>);

impl Wakers {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<AtomicWaker>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_others(&self, own: Option<&Arc<AtomicWaker>>) {
        let all = self.lock().clone();
        all.iter().filter(|waker| !own.is_some_and(|own| Arc::ptr_eq(own, waker))).for_each(|waker| waker.wake());
    }
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        self.wake_others(None);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_others(None);
    }
}

struct State<S, E> {
    /// `None` while a reader has it. It stays after its end, for readers that join late.
    source: Option<Pin<Box<Updates<S>>>>,
    /// Whether a reader waits because another has the source.
    is_awaited: bool,
    capacity: SplitCapacity,
    /// The newest updates, each with its weight in bytes.
    newest: VecDeque<(Arc<Update>, usize)>,
    bytes: usize,
    /// The number of the first of them.
    first: u64,
    snapshot: Snapshot,
    /// How the source ended, after it has.
    end: Option<Result<(), Arc<Error<E>>>>,
}

impl<S, E> State<S, E> {
    /// The number of the update that comes next.
    fn next(&self) -> u64 {
        self.first.saturating_add(self.newest.len() as u64)
    }

    /// The updates from a number on that are held.
    fn from(&self, number: u64) -> impl Iterator<Item = &Arc<Update>> {
        let at = usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.newest.iter().skip(at).map(|(update, _)| update)
    }

    /// Adds updates, and gives the old ones that have to be dropped. All new updates stay, so that the reader
    /// that took them from the source has not lagged.
    fn add(&mut self, updates: Vec<(Arc<Update>, usize)>) -> Vec<Arc<Update>> {
        let new = updates.len();
        self.bytes = updates.iter().fold(self.bytes, |bytes, (_, weight)| bytes.saturating_add(*weight));
        self.newest.extend(updates);
        let mut gone = Vec::new();
        while self.newest.len() > new && (self.newest.len() > self.capacity.items || self.bytes > self.capacity.bytes) {
            let Some((update, weight)) = self.newest.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(weight);
            self.first = self.first.saturating_add(1);
            gone.push(update);
        }
        gone
    }
}

/// The common part of all readers.
struct Reader<S, E> {
    shared: Arc<Shared<S, E>>,
    waker: Arc<AtomicWaker>,
}

impl<S, E> Drop for Reader<S, E> {
    fn drop(&mut self) {
        let mut wakers = self.shared.wakers.lock();
        let own = wakers.iter().position(|waker| Arc::ptr_eq(waker, &self.waker));
        let own = own.map(|at| wakers.swap_remove(at));
        drop(wakers);
        drop(own);
    }
}

/// The next step of a reader.
enum Next<T, E> {
    Give(T),
    End(Result<(), Arc<Error<E>>>),
    /// Asks the pipeline where it stands, before the update of this number.
    Ask(u64),
    Drive,
    Wait,
}

impl<S, E> Reader<S, E>
where
    S: Stream,
    S::Item: RawInput<Error = E>,
{
    /// One loop for all readers: give an item, or else ask the pipeline or poll the source, or else wait. `next`
    /// chooses by the state, and by whether the reader may poll the source; `ask` takes the answer of the pipeline.
    fn poll<R, T>(
        &self,
        cx: &mut Context<'_>,
        reader: &mut R,
        next: impl Fn(&mut R, &State<S, E>, bool) -> Next<T, E>,
        ask: impl Fn(&mut R, &Pipeline, u64),
    ) -> Poll<Option<Result<T, Arc<Error<E>>>>> {
        let own = &self.waker;
        let mut turn = Turn { shared: &self.shared, own, source: None, has_news: false };
        let (mut is_registered, mut is_dry, mut taken) = (false, false, 0);
        loop {
            match turn.next(|state| next(reader, state, !is_dry && taken < MAX_SWALLOWED)) {
                Next::Give(item) => {
                    own.take();
                    return Poll::Ready(Some(Ok(item)));
                }
                Next::End(end) => {
                    own.take();
                    return Poll::Ready(end.err().map(Err));
                }
                Next::Ask(number) => {
                    if let Some(source) = &turn.source {
                        ask(reader, source.machine(), number);
                    }
                    turn.put_back();
                }
                Next::Drive => {
                    // Before the source is polled: it may wake at once.
                    own.register(cx.waker());
                    is_registered = true;
                    is_dry = !turn.drive();
                    taken += usize::from(!is_dry);
                }
                Next::Wait if taken == MAX_SWALLOWED => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Next::Wait if is_registered => return Poll::Pending,
                // An update may have come before the waker was registered, so it looks again.
                Next::Wait => {
                    own.register(cx.waker());
                    is_registered = true;
                }
            }
        }
    }
}

/// One poll of a reader. At its end, also if the source panics, the other readers are woken if there is
/// anything for them.
struct Turn<'a, S, E> {
    shared: &'a Shared<S, E>,
    own: &'a Arc<AtomicWaker>,
    source: Option<Pin<Box<Updates<S>>>>,
    has_news: bool,
}

impl<S, E> Turn<'_, S, E> {
    fn next<T>(&mut self, next: impl FnOnce(&State<S, E>) -> Next<T, E>) -> Next<T, E> {
        let mut state = self.shared.lock();
        match next(&state) {
            needs @ (Next::Ask(_) | Next::Drive) => match state.source.take() {
                Some(source) => {
                    self.source = Some(source);
                    needs
                }
                None => {
                    state.is_awaited = true;
                    Next::Wait
                }
            },
            other => other,
        }
    }

    fn put_back(&mut self) {
        if let Some(source) = self.source.take() {
            let mut state = self.shared.lock();
            state.source = Some(source);
            self.has_news |= std::mem::take(&mut state.is_awaited);
        }
    }

    /// Takes one input of the source, with all of its outputs. Returns whether there was one; if not, the source
    /// wakes all readers.
    fn drive(&mut self) -> bool
    where
        S: Stream,
        S::Item: RawInput<Error = E>,
    {
        let Some(source) = &mut self.source else { return false };
        let (mut updates, mut end) = (Vec::new(), None);
        loop {
            match source.as_mut().poll_next(&mut Context::from_waker(&self.shared.waker)) {
                Poll::Ready(Some(Ok(update))) => {
                    let weight = weight_of(update.item());
                    updates.push((Arc::new(update), weight));
                    if source.machine().ready() > 0 {
                        continue;
                    }
                }
                Poll::Ready(Some(Err(error))) => end = Some(Err(Arc::new(error))),
                Poll::Ready(None) => end = Some(Ok(())),
                Poll::Pending => {}
            }
            break;
        }
        let has_come = !updates.is_empty() || end.is_some();
        if has_come {
            self.has_news = true;
            let snapshot = source.snapshot().clone();
            let mut state = self.shared.lock();
            let gone = (std::mem::replace(&mut state.snapshot, snapshot), state.add(updates));
            state.end = end;
            drop(state);
            drop(gone);
        }
        self.put_back();
        has_come
    }
}

impl<S, E> Drop for Turn<'_, S, E> {
    fn drop(&mut self) {
        // After a panic: the source is truncated when it is polled again, by another reader.
        self.has_news |= self.source.is_some();
        self.put_back();
        if self.has_news {
            self.shared.wakers.wake_others(Some(self.own));
        }
    }
}

/// The events and warnings of a stream that is [shared](Share), after a prelude.
#[must_use = "streams do nothing unless polled"]
pub struct SharedEvents<S, E> {
    reader: Reader<S, E>,
    place: Place,
    ended: bool,
}

/// The newest snapshots of a stream that is [shared](Share).
#[must_use = "streams do nothing unless polled"]
pub struct SharedSnapshots<S, E> {
    reader: Reader<S, E>,
    /// The number of the first update that it has not seen; `None` before its first snapshot.
    place: Option<u64>,
    ended: bool,
}

/// The position of a reader of events.
#[derive(Default)]
struct Place {
    /// The number of the update that it gives next; `None` if a prelude has to come first.
    number: Option<u64>,
    prelude: VecDeque<Event>,
}

/// The items of a reader of events.
enum Found {
    Prelude(Event),
    Update(Arc<Update>),
    Lagged(u64),
}

impl Place {
    fn next<S, E>(&mut self, state: &State<S, E>, may_drive: bool) -> Next<Found, E> {
        if let Some(event) = self.prelude.pop_front() {
            return Next::Give(Found::Prelude(event));
        }
        let Some(number) = self.number else { return Next::Ask(state.next()) };
        if number < state.first {
            self.number = None;
            return Next::Give(Found::Lagged(state.first - number));
        }
        match (state.from(number).next(), &state.end) {
            (Some(update), _) => {
                self.number = Some(number.saturating_add(1));
                Next::Give(Found::Update(Arc::clone(update)))
            }
            (None, Some(end)) => Next::End(end.clone()),
            (None, None) if may_drive => Next::Drive,
            (None, None) => Next::Wait,
        }
    }

    fn ask(&mut self, pipeline: &Pipeline, number: u64) {
        self.number = Some(number);
        self.prelude.extend(pipeline.prelude());
    }
}

/// The newest snapshot, or the updates that came since the last.
fn newest<S, E>(
    place: &mut Option<u64>,
    state: &State<S, E>,
    may_drive: bool,
) -> Next<Result<Snapshot, Vec<Arc<Update>>>, E> {
    // A snapshot is known to be the newest only when the source has nothing more at the moment.
    if may_drive && state.end.is_none() {
        return Next::Drive;
    }
    let seen = place.unwrap_or_default();
    if seen == state.next() {
        return state.end.clone().map_or(Next::Wait, Next::End);
    }
    let has_missed = place.is_none() || seen < state.first;
    *place = Some(state.next());
    Next::Give(if has_missed { Ok(state.snapshot.clone()) } else { Err(state.from(seen).cloned().collect()) })
}

impl<S, E> Stream for SharedEvents<S, E>
where
    S: Stream,
    S::Item: RawInput<Error = E>,
{
    type Item = Result<Item, SharedError<E>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let Self { reader, place, ended } = &mut *self;
        reader.poll(cx, place, Place::next, Place::ask).map(|polled| {
            *ended = matches!(polled, None | Some(Err(_)));
            Some(match polled? {
                Ok(Found::Prelude(event)) => Ok(Item::from(event)),
                // The last reader need not copy it.
                Ok(Found::Update(update)) => {
                    let shared = Arc::try_unwrap(update).map(|update| update.into_parts().0);
                    Ok(shared.unwrap_or_else(|update| update.item().clone()))
                }
                Ok(Found::Lagged(missed)) => Err(SharedError::Lagged(missed)),
                Err(error) => Err(SharedError::Failed(error)),
            })
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.place.prelude.len(), self.ended.then_some(0))
    }
}

impl<S, E> Stream for SharedSnapshots<S, E>
where
    S: Stream,
    S::Item: RawInput<Error = E>,
{
    type Item = Result<Changed, Arc<Error<E>>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let Self { reader, place, ended } = &mut *self;
        loop {
            let polled = ready!(reader.poll(cx, place, newest, |_, _, _| {}));
            let changed = match polled {
                Some(Ok(Ok(snapshot))) => Some(Changed::whole(snapshot)),
                Some(Ok(Err(updates))) => {
                    updates.iter().filter_map(|update| update.changed()).reduce(|mut one, later| {
                        one.skip_to(later);
                        one
                    })
                }
                end => {
                    *ended = true;
                    return Poll::Ready(end.and_then(Result::err).map(Err));
                }
            };
            // An update that changed nothing is skipped.
            if let Some(changed) = changed {
                return Poll::Ready(Some(Ok(changed)));
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, self.ended.then_some(0))
    }
}

/// The implementations that both kinds of readers share.
macro_rules! readers {
    ($($name:ident)*) => {$(
        impl<S, E> FusedStream for $name<S, E>
        where
            S: Stream,
            S::Item: RawInput<Error = E>,
        {
            fn is_terminated(&self) -> bool {
                self.ended
            }
        }

        impl<S, E> fmt::Debug for $name<S, E> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).field("is_terminated", &self.ended).finish_non_exhaustive()
            }
        }
    )*};
}

readers! { SharedEvents SharedSnapshots }

impl<S, E> Clone for Share<S, E> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S, E> fmt::Debug for Share<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share").field("readers", &self.shared.wakers.lock().len()).finish_non_exhaustive()
    }
}

/// The errors of a reader of [`Share::events`].
#[derive(Debug)]
#[non_exhaustive]
pub enum SharedError<E> {
    /// The reader was too slow, and has missed this many updates. It goes on: a prelude follows, and then the
    /// updates after it. Read them with a new pipeline, because a prelude begins the run again.
    Lagged(u64),
    /// The stream failed. It is the last item.
    Failed(Arc<Error<E>>),
}

impl<E: fmt::Display> fmt::Display for SharedError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SharedError::Lagged(missed) => write!(f, "the reader lagged, and {missed} updates are missing"),
            SharedError::Failed(error) => error.fmt(f),
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for SharedError<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            SharedError::Lagged(_) => None,
            // The text is that of the error, so the source is the source of the error.
            SharedError::Failed(error) => error.source(),
        }
    }
}
