//! `share`: one stream with many readers, which join late, are slow, or are dropped.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "support/stream.rs"]
mod support;

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use ag_ui_stream::combinator::{Share, SharedError, SharedEvents, SharedSnapshots, SplitCapacity};
use ag_ui_stream::machine::{Machine, Pipeline, Push};
use ag_ui_stream::snapshot::Changed;
use ag_ui_stream::{Error, Event, EventStreamExt, Item};
use futures::executor::block_on;
use futures::stream::FusedStream;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use support::{Broken, Script, Step, gives, script};
use tokio_test::{assert_pending, assert_ready, task};

/// A run with a message of this many deltas.
fn run(deltas: usize) -> Vec<Event> {
    let mut events = vec![Event::run_started("t", "r"), Event::text_start("m")];
    events.extend((0..deltas).map(|_| Event::text_content("m", "x")));
    events.extend([Event::text_end("m"), Event::run_finished("t", "r")]);
    events
}

fn shared<S: Stream<Item = Event>>(source: S, items: usize) -> Share<S, Infallible> {
    source.updates().share_with_capacity(SplitCapacity { items, ..SplitCapacity::default() })
}

/// The text and the outcome that a viewer sees with these events.
fn viewed(events: impl IntoIterator<Item = Event>) -> (String, &'static str) {
    let mut pipeline = Pipeline::new();
    for event in events {
        pipeline.push(event).unwrap();
        while pipeline.pop().is_some() {}
    }
    let snapshot = pipeline.snapshot();
    let text = snapshot.message("m").and_then(|message| message.text()).map(|text| text.to_string());
    (text.unwrap_or_default(), snapshot.run().map_or("none", |run| run.outcome.as_str()))
}

fn event<E>(item: Result<Item, SharedError<E>>) -> Option<Event> {
    item.ok().and_then(Item::into_event)
}

#[test]
fn readers_from_the_start_get_everything_whichever_is_polled() {
    let (source, remote) = gives(run(5));
    let shared = shared(source, 64);
    let (mut one, mut other) = (task::spawn(shared.events()), task::spawn(shared.events()));
    let (mut ones, mut others) = (Vec::new(), Vec::new());
    for turn in 0.. {
        let (reader, items) = if turn % 3 == 0 { (&mut other, &mut others) } else { (&mut one, &mut ones) };
        items.extend(assert_ready!(reader.poll_next()).map(event));
        if one.is_terminated() && other.is_terminated() {
            break;
        }
    }
    let wanted: Vec<_> = run(5).into_iter().map(Some).collect();
    assert_eq!((ones, others), (wanted.clone(), wanted));
    assert!(remote.is_dropped(), "though the readers are still there");
}

#[test]
fn a_late_reader_gets_a_prelude_and_the_rest() {
    for joins in 0..=run(5).len() {
        let (source, _) = gives(run(5));
        let shared = shared(source, 1);
        let mut early = shared.events();
        for _ in 0..joins {
            block_on(early.next()).unwrap().unwrap();
        }
        let late: Vec<_> = block_on(shared.events().map(event).collect());
        assert_eq!(viewed(late.into_iter().flatten()), ("xxxxx".to_owned(), "success"), "at {joins}");
    }
}

#[test]
fn a_chunk_is_given_whole_or_in_the_prelude() {
    let events = [
        Event::run_started("t", "r"),
        Event::text_chunk("m", "Hel"),
        Event::text_chunk("m", "lo"),
        Event::run_finished("t", "r"),
    ];
    let (source, _) = gives(events);
    let shared = shared(source, 1);
    let mut early = shared.events();
    // This is the START of the first chunk; its CONTENT was taken from the source, but not given yet.
    for _ in 0..2 {
        block_on(early.next()).unwrap().unwrap();
    }
    let late: Vec<_> = block_on(shared.events().map(event).collect());
    assert_eq!(viewed(late.into_iter().flatten()), ("Hello".to_owned(), "success"));
}

#[test]
fn a_reader_that_is_too_slow_gets_an_error_and_a_new_prelude() {
    let (source, _) = gives(run(5));
    let shared = shared(source, 2);
    let (mut slow, mut fast) = (shared.events(), shared.events());
    assert_eq!(event(block_on(slow.next()).unwrap()), Some(Event::run_started("t", "r")));
    for _ in 0..6 {
        block_on(fast.next()).unwrap().unwrap();
    }
    // 6 came; the newest 2 are held, and 1 was given.
    assert!(matches!(block_on(slow.next()), Some(Err(SharedError::Lagged(3)))));
    let rest: Vec<_> = block_on(slow.map(event).collect());
    assert_eq!(rest[0], Some(Event::run_started("t", "r")));
    assert_eq!(viewed(rest.into_iter().flatten()), ("xxxxx".to_owned(), "success"));
}

#[test]
fn the_bound_counts_bytes_too() {
    let large = || Event::text_content("m", "x".repeat(1000));
    let events = [Event::run_started("t", "r"), Event::text_start("m"), large(), large(), large()];
    let (source, _) = gives(events);
    let shared = source.updates().share_with_capacity(SplitCapacity { items: 100, bytes: 1500 });
    let (mut slow, mut fast) = (shared.events(), shared.events());
    assert!(block_on(slow.next()).unwrap().is_ok());
    for _ in 0..5 {
        block_on(fast.next()).unwrap().unwrap();
    }
    assert!(matches!(block_on(slow.next()), Some(Err(SharedError::Lagged(3)))));
}

#[test]
fn a_reader_of_snapshots_gets_the_newest_with_all_changes_marked() {
    let custom = Event::custom("nothing", serde_json::Value::Null);
    let mut steps: Vec<_> = run(3)[..3].iter().cloned().map(Step::Give).collect();
    steps.extend([Step::Park, Step::Give(custom), Step::Park, Step::Give(Event::text_content("m", "y"))]);
    let (source, remote) = script(steps);
    let shared = shared(source, 1);
    let mut snapshots = task::spawn(shared.snapshots());
    let changed = assert_ready!(snapshots.poll_next()).unwrap().unwrap();
    assert_eq!(changed.snapshot().message("m").unwrap().text().unwrap(), "x");
    assert!(changed.changed_messages() && changed.changed_run());
    assert_pending!(snapshots.poll_next());
    remote.wake();
    assert!(snapshots.is_woken());
    assert_pending!(snapshots.poll_next(), "nothing changed");
    // A late reader gets the snapshot at once, with everything marked as changed.
    let mut late = task::spawn(shared.snapshots());
    let changed = assert_ready!(late.poll_next()).unwrap().unwrap();
    assert!(changed.changed_messages() && changed.changed_state() && changed.message().is_none());
    remote.wake();
    for reader in [&mut snapshots, &mut late] {
        let changed = assert_ready!(reader.poll_next()).unwrap().unwrap();
        assert_eq!(changed.message().unwrap().text().unwrap(), "xy");
        assert!(!changed.changed_run() && !changed.changed_state());
        assert!(assert_ready!(reader.poll_next()).unwrap().is_err(), "truncated");
        assert!(assert_ready!(reader.poll_next()).is_none());
    }
}

#[test]
fn an_error_reaches_each_reader_once_and_later_readers_too() {
    let events = run(1).into_iter().take(3).map(Ok).chain([Err(Broken)]);
    let (source, remote) = gives(events);
    let shared = source.share();
    let mut readers = [shared.events(), shared.events()];
    let mut snapshots = shared.snapshots();
    for reader in &mut readers {
        assert_eq!(block_on(reader.by_ref().take(3).map(event).collect::<Vec<_>>()).len(), 3);
    }
    assert!(block_on(snapshots.next()).unwrap().is_ok());
    let late = (shared.events(), shared.snapshots());
    for reader in readers.iter_mut().chain([&mut shared.events()]) {
        let items: Vec<_> = block_on(reader.by_ref().collect());
        let (last, others) = items.split_last().unwrap();
        assert!(matches!(last, Err(SharedError::Failed(error)) if **error == Error::Source(Broken)));
        assert!(others.iter().all(Result::is_ok));
        assert!(reader.is_terminated() && block_on(reader.next()).is_none());
    }
    assert_eq!(*block_on(snapshots.next()).unwrap().unwrap_err(), Error::Source(Broken));
    assert!(block_on(snapshots.next()).is_none());
    assert!(remote.is_dropped());
    let (events, snapshots) = late;
    let events: Vec<_> = block_on(events.collect());
    assert_eq!(events.iter().filter(|item| item.is_err()).count(), 1);
    assert_eq!(viewed(events.into_iter().filter_map(event)), ("x".to_owned(), "running"));
    let snapshots: Vec<_> = block_on(snapshots.collect());
    assert_eq!(snapshots[0].as_ref().unwrap().snapshot().run().unwrap().outcome.as_str(), "truncated");
    assert!(snapshots.len() == 2 && snapshots[1].is_err());
}

#[test]
fn r8_a_source_that_panics_truncates_the_others() {
    let mut steps: Vec<_> = run(1)[..2].iter().cloned().map(Step::Give).collect();
    steps.push(Step::Panic);
    let (source, remote) = script(steps);
    let shared = shared(source, 8);
    let (mut one, mut other) = (task::spawn(shared.events()), task::spawn(shared.events()));
    for _ in 0..2 {
        assert!(assert_ready!(one.poll_next()).unwrap().is_ok());
        assert!(assert_ready!(other.poll_next()).unwrap().is_ok());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| one.poll_next())).is_err());
    for reader in [&mut other, &mut one] {
        match assert_ready!(reader.poll_next()) {
            Some(Err(SharedError::Failed(error))) => assert!(error.is_truncated()),
            other => panic!("{other:?}"),
        }
        assert!(assert_ready!(reader.poll_next()).is_none());
    }
    assert!(remote.is_dropped());
}

/// A closure that is called once, within a poll.
type Deed = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

#[test]
fn the_source_may_make_poll_and_drop_a_reader() {
    for drops in [false, true] {
        let deed = Deed::default();
        let in_poll = Arc::clone(&deed);
        let mut events = run(1).into_iter();
        let source = stream::poll_fn(move |_| {
            if let Some(deed) = in_poll.lock().unwrap().take() {
                deed();
            }
            Poll::Ready(events.next())
        });
        let shared = source.share();
        let (mut one, mut other) = (shared.events(), task::spawn(shared.events()));
        assert!(assert_ready!(other.poll_next()).unwrap().is_ok());
        for _ in 0..2 {
            assert!(block_on(one.next()).unwrap().is_ok());
        }
        let (handle, kept) = (shared.clone(), Arc::new(Mutex::new(None)));
        let keep = Arc::clone(&kept);
        *deed.lock().unwrap() = Some(Box::new(move || {
            let mut late = task::spawn(handle.events());
            assert_pending!(late.poll_next());
            assert!(assert_ready!(other.poll_next()).is_some(), "what is held is given");
            if !drops {
                *keep.lock().unwrap() = Some(late);
            }
        }));
        assert_eq!(block_on(one.map(event).collect::<Vec<_>>()).len(), run(1).len() - 2);
        if let Some(mut late) = kept.lock().unwrap().take() {
            assert!(late.is_woken(), "the source is back");
            assert!(assert_ready!(late.poll_next()).unwrap().is_ok());
        }
    }
}

// All schedules

#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    PollFirst,
    PollSecond,
    PollSnapshots,
    /// Polls a third reader, which is made first if there is none.
    PollLate,
    DropFirst,
    Wake,
    /// The source goes on without waking a reader.
    Unpark,
}

/// A reader, and the items that it has given.
struct Reader<S: Stream> {
    half: task::Spawn<S>,
    items: Vec<S::Item>,
    is_due: bool,
    ended: bool,
}

impl<S: Stream + Unpin> Reader<S> {
    fn new(half: S) -> Self {
        Self { half: task::spawn(half), items: Vec::new(), is_due: true, ended: false }
    }

    /// Whether a runtime would poll the reader.
    fn is_due(&self) -> bool {
        !self.ended && (self.is_due || self.half.is_woken())
    }

    fn poll(&mut self) {
        if self.ended {
            return;
        }
        match self.half.poll_next() {
            Poll::Ready(Some(item)) => (self.is_due, _) = (true, self.items.push(item)),
            Poll::Ready(None) => self.ended = true,
            Poll::Pending => self.is_due = false,
        }
    }
}

type Events = Reader<SharedEvents<Script<Event>, Infallible>>;
type Snapshots = Reader<SharedSnapshots<Script<Event>, Infallible>>;

/// Checks that a reader of events has given, after each prelude, the stream from some point on.
fn check_events(reader: Events, whole: &[Event], is_whole: bool, acts: &[Act]) {
    let parts = reader.items.split(Result::is_err);
    let count = parts.clone().count();
    for (at, part) in parts.enumerate() {
        let events: Vec<Event> = part.iter().map(|item| item.as_ref().unwrap().event().unwrap().clone()).collect();
        let seen = viewed(events);
        let is_last = at + 1 == count;
        if is_last && is_whole {
            assert_eq!(seen, viewed(whole.iter().cloned()), "{acts:?}");
        } else {
            // The prelude is legal, and gives the conversation at some point.
            assert!((0..=whole.len()).any(|to| viewed(whole[..to].iter().cloned()) == seen), "{seen:?} {acts:?}");
        }
    }
}

fn check_snapshots(reader: Snapshots, whole: &[Changed], is_whole: bool, acts: &[Act]) {
    let given: Vec<_> = reader.items.into_iter().map(|item| item.unwrap().into_snapshot()).collect();
    let mut rest = whole.iter().map(Changed::snapshot);
    assert!(given.iter().all(|at| rest.any(|other| other == at)), "in order: {acts:?}");
    assert!(!is_whole || given.last() == whole.last().map(Changed::snapshot), "{acts:?}");
}

/// Performs these acts in order, then runs the remaining readers to their end.
fn schedule(steps: &[Step<Event>], capacity: usize, acts: &[Act]) {
    let given = steps.iter().filter_map(|step| if let Step::Give(event) = step { Some(event.clone()) } else { None });
    let whole: Vec<Event> = given.collect();
    let snapshots: Vec<Changed> = block_on(stream::iter(whole.clone()).snapshots().try_collect()).unwrap();
    let (source, remote) = script(steps.to_vec());
    let shared = shared(source, capacity);
    let mut events: [Option<Events>; 3] =
        [Some(Reader::new(shared.events())), Some(Reader::new(shared.events())), None];
    let mut newest = Reader::new(shared.snapshots());
    for act in acts {
        match act {
            Act::PollFirst => events[0].iter_mut().for_each(Reader::poll),
            Act::PollSecond => events[1].iter_mut().for_each(Reader::poll),
            Act::PollSnapshots => newest.poll(),
            Act::PollLate => events[2].get_or_insert_with(|| Reader::new(shared.events())).poll(),
            Act::DropFirst => events[0].take().into_iter().for_each(|reader| check_events(reader, &whole, false, acts)),
            Act::Wake => remote.wake(),
            Act::Unpark => remote.unpark(),
        }
    }
    drop(shared);
    for _ in 0..1000 {
        let due: Vec<bool> = events.iter().map(|reader| reader.as_ref().is_some_and(Reader::is_due)).collect();
        let newest_is_due = newest.is_due();
        events
            .iter_mut()
            .zip(&due)
            .filter(|(_, due)| **due)
            .for_each(|(reader, _)| reader.iter_mut().for_each(Reader::poll));
        if newest_is_due {
            newest.poll();
        }
        if newest.ended && events.iter().flatten().all(|reader| reader.ended) {
            events.into_iter().flatten().for_each(|reader| check_events(reader, &whole, true, acts));
            check_snapshots(newest, &snapshots, true, acts);
            assert!(remote.is_dropped());
            return;
        }
        if !newest_is_due && !due.contains(&true) {
            remote.wake();
            let is_due = newest.is_due() || events.iter().flatten().any(Reader::is_due);
            assert!(is_due, "lost wake-up: {acts:?}");
        }
    }
    panic!("does not come to an end: {acts:?}");
}

#[test]
fn every_schedule_of_five_acts_gives_each_reader_a_legal_stream() {
    const ACTS: [Act; 7] =
        [Act::PollFirst, Act::PollSecond, Act::PollSnapshots, Act::PollLate, Act::DropFirst, Act::Wake, Act::Unpark];
    let steps = [
        Step::Give(Event::run_started("t", "r")),
        Step::Yield,
        Step::Give(Event::text_start("m")),
        Step::Park,
        Step::Give(Event::text_content("m", "x")),
        Step::Give(Event::text_content("m", "y")),
        Step::Give(Event::text_end("m")),
        Step::Give(Event::run_finished("t", "r")),
    ];
    for number in 0..ACTS.len().pow(5) {
        let acts: Vec<Act> = (0..5).map(|at| ACTS[number / ACTS.len().pow(at) % ACTS.len()]).collect();
        if acts.iter().filter(|act| **act == Act::DropFirst).count() > 1 {
            continue;
        }
        schedule(&steps, 1 + number % 3, &acts);
    }
}

#[test]
fn readers_on_many_threads_get_the_same() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    let events = run(2000);
    let source = stream::iter(events.clone()).then(|event| async move {
        tokio::task::yield_now().await;
        event
    });
    let shared = source.share();
    let views: Vec<_> = (0..8)
        .map(|number| {
            let shared = shared.clone();
            runtime.spawn(async move {
                for _ in 0..number * 20 {
                    tokio::task::yield_now().await;
                }
                let mut events = Vec::new();
                let mut reader = shared.events();
                while let Some(item) = reader.next().await {
                    match item {
                        Ok(item) => events.extend(item.into_event()),
                        Err(SharedError::Lagged(_)) => events.clear(),
                        Err(error) => panic!("{error}"),
                    }
                }
                events
            })
        })
        .collect();
    for view in views {
        assert_eq!(viewed(runtime.block_on(view).unwrap()), ("x".repeat(2000), "success"));
    }
}
