//! `split`: two streams from one, for two tasks.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "support/stream.rs"]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use ag_ui_stream::combinator::{SplitCapacity, SplitEvents, SplitSnapshots, split, split_with_capacity};
use ag_ui_stream::event::{
    CustomEvent, RunFinishedEvent, RunStartedEvent, StateSnapshotEvent, TextMessageContentEvent, TextMessageEndEvent,
    TextMessageStartEvent, ToolCallResultEvent,
};
use ag_ui_stream::message::Content;
use ag_ui_stream::{Error, Event, EventStreamExt};
use futures::stream::FusedStream;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use proptest::prelude::*;
use support::{Broken, Remote, Script, Step, gives, script};
use tokio_test::{assert_pending, assert_ready, task};

type Source = ag_ui_stream::combinator::Assemble<Script<Event>>;
type Halves = (
    task::Spawn<SplitEvents<Source, std::convert::Infallible>>,
    task::Spawn<SplitSnapshots<Source, std::convert::Infallible>>,
);

fn started() -> Event {
    RunStartedEvent::new("t", "r").into()
}

fn open(id: &str) -> Event {
    TextMessageStartEvent::new(id).into()
}

fn delta(id: &str, text: &str) -> Event {
    TextMessageContentEvent::new(id, text).into()
}

fn nothing() -> Event {
    CustomEvent::new("nothing", serde_json::Value::Null).into()
}

fn finished() -> Event {
    RunFinishedEvent::new("t", "r").into()
}

/// A run with a message of this many deltas.
fn run(deltas: usize) -> Vec<Event> {
    let mut events = vec![started(), open("m")];
    events.extend((0..deltas).map(|_| delta("m", "x")));
    events.extend([TextMessageEndEvent::new("m").into(), finished()]);
    events
}

fn items(items: usize) -> SplitCapacity {
    SplitCapacity { items, ..SplitCapacity::default() }
}

fn halves(source: Script<Event>, capacity: usize) -> Halves {
    let (events, snapshots) = split_with_capacity(source.assemble(), items(capacity));
    (task::spawn(events), task::spawn(snapshots))
}

fn text(snapshot: &ag_ui_stream::snapshot::Snapshot) -> String {
    snapshot.message("m").and_then(|message| message.text()).map_or_else(String::new, |text| text.to_string())
}

#[test]
fn the_snapshots_half_skips_to_the_newest_and_keeps_the_marks() {
    let (source, _) = gives([started(), open("m"), delta("m", "a"), delta("m", "b"), nothing()]);
    let (mut events, mut snapshots) = halves(source, 8);
    for _ in 0..2 {
        assert!(assert_ready!(events.poll_next()).unwrap().is_ok());
    }
    let changed = assert_ready!(snapshots.poll_next()).unwrap().unwrap();
    assert_eq!(text(changed.snapshot()), "ab", "what the source has ready is taken into account");
    assert_eq!(changed.message().unwrap().id(), "m");
    assert!(changed.changed_run());
    assert!(!changed.changed_state());
    for expected in [delta("m", "a"), delta("m", "b"), nothing()] {
        assert_eq!(assert_ready!(events.poll_next()).unwrap().unwrap().into_event(), Some(expected));
    }
    assert!(assert_ready!(events.poll_next()).is_none());
    assert!(assert_ready!(snapshots.poll_next()).is_none());
}

#[test]
fn marks_of_different_messages_are_several() {
    let (source, _) = gives([open("m"), open("n"), delta("m", "a"), delta("n", "b")]);
    let (mut events, mut snapshots) = halves(source, 8);
    while assert_ready!(events.poll_next()).is_some() {}
    let changed = assert_ready!(snapshots.poll_next()).unwrap().unwrap();
    assert!(changed.changed_messages());
    assert!(changed.message().is_none());
}

#[test]
fn marks_of_messages_that_share_an_id_are_several() {
    let result = |call: &str| ToolCallResultEvent::new("m", call, Content::from("x")).into();
    let (source, _) = gives([result("one"), result("two")]);
    let (mut events, mut snapshots) = halves(source, 8);
    while assert_ready!(events.poll_next()).is_some() {}
    let changed = assert_ready!(snapshots.poll_next()).unwrap().unwrap();
    assert_eq!(changed.snapshot().messages().len(), 2);
    assert!(changed.changed_messages() && changed.message().is_none());
}

#[test]
fn a_mark_of_the_state_is_kept() {
    let (source, _) = gives([StateSnapshotEvent::new(serde_json::Value::Null).into(), open("m")]);
    let (mut events, mut snapshots) = halves(source, 8);
    while assert_ready!(events.poll_next()).is_some() {}
    let changed = assert_ready!(snapshots.poll_next()).unwrap().unwrap();
    assert!(changed.changed_state() && changed.message().is_some());
}

#[test]
fn the_latest_snapshots_never_hold_the_events_back() {
    let (source, _) = gives(run(1000));
    let (mut events, mut snapshots) = halves(source, 2);
    let mut count = 0;
    while assert_ready!(events.poll_next()).is_some() {
        count += 1;
    }
    assert_eq!(count, 1004);
    assert_eq!(text(assert_ready!(snapshots.poll_next()).unwrap().unwrap().snapshot()).len(), 1000);
    assert!(assert_ready!(snapshots.poll_next()).is_none());
}

#[test]
fn the_snapshots_half_waits_where_events_pile_up() {
    let (source, _) = gives(run(10));
    let (mut events, mut snapshots) = halves(source, 4);
    let first = assert_ready!(snapshots.poll_next()).unwrap().unwrap();
    assert_eq!(text(first.snapshot()), "xx", "four events were taken");
    assert_pending!(snapshots.poll_next());
    assert!(!snapshots.is_woken());
    assert!(assert_ready!(events.poll_next()).is_some());
    assert!(snapshots.is_woken(), "there is room for one");
    let second = assert_ready!(snapshots.poll_next()).unwrap().unwrap();
    assert_eq!(text(second.snapshot()), "xxx");
    assert_pending!(snapshots.poll_next());
    drop(events);
    assert!(snapshots.is_woken(), "nobody waits for events any more");
    let last = assert_ready!(snapshots.poll_next()).unwrap().unwrap();
    assert_eq!(text(last.snapshot()), "x".repeat(10));
    assert!(last.message().is_some());
    assert!(assert_ready!(snapshots.poll_next()).is_none());
}

#[test]
fn every_snapshot_holds_the_events_back() {
    let (source, _) = gives(run(10));
    let (events, snapshots) = split_with_capacity(source.assemble(), items(3));
    let mut snapshots = task::spawn(snapshots.every());
    let mut events = task::spawn(events);
    for _ in 0..3 {
        assert!(assert_ready!(events.poll_next()).is_some());
    }
    assert_pending!(events.poll_next());
    assert!(!events.is_woken());
    assert!(assert_ready!(snapshots.poll_next()).is_some());
    assert!(events.is_woken());
    assert!(assert_ready!(events.poll_next()).is_some());
    assert_pending!(events.poll_next());
    let mut snapshots = task::spawn(snapshots.into_inner().latest());
    assert!(events.is_woken());
    for _ in 0..10 {
        assert!(assert_ready!(events.poll_next()).is_some());
    }
    assert!(assert_ready!(events.poll_next()).is_none());
    assert_eq!(text(assert_ready!(snapshots.poll_next()).unwrap().unwrap().snapshot()).len(), 10);
    assert!(assert_ready!(snapshots.poll_next()).is_none());
}

#[test]
fn every_snapshot_waiting_is_released_when_its_half_is_dropped() {
    let (source, _) = gives(run(10));
    let (events, snapshots) = split_with_capacity(source.assemble(), items(1));
    let snapshots = snapshots.every();
    let mut events = task::spawn(events);
    assert!(assert_ready!(events.poll_next()).is_some());
    assert_pending!(events.poll_next());
    drop(snapshots);
    assert!(events.is_woken());
    for _ in 0..13 {
        assert!(assert_ready!(events.poll_next()).is_some());
    }
    assert!(assert_ready!(events.poll_next()).is_none());
}

#[test]
fn a_half_is_woken_when_the_other_takes_an_item_for_it() {
    let (source, remote) = script([Step::Park, Step::Give(started()), Step::Park, Step::Give(nothing()), Step::Park]);
    let (mut events, mut snapshots) = halves(source, 8);
    assert_pending!(snapshots.poll_next());
    assert_pending!(events.poll_next());
    remote.wake();
    assert!(events.is_woken() && snapshots.is_woken(), "whoever comes first drives");
    assert!(assert_ready!(events.poll_next()).is_some());
    assert!(assert_ready!(snapshots.poll_next()).is_some());
    assert_pending!(snapshots.poll_next());
    assert_pending!(events.poll_next());
    remote.wake();
    assert!(assert_ready!(events.poll_next()).is_some());
    assert_pending!(snapshots.poll_next());
    remote.wake();
    assert!(assert_ready!(events.poll_next()).is_none());
    assert!(snapshots.is_woken(), "of the end");
    assert!(assert_ready!(snapshots.poll_next()).is_none());
}

#[test]
fn a_half_is_woken_by_what_the_other_finds_unasked() {
    let (source, remote) = script([
        Step::Park,
        Step::Give(nothing()),
        Step::Park,
        Step::Give(started()),
        Step::Park,
        Step::Give(nothing()),
    ]);
    let (mut events, mut snapshots) = halves(source, 8);
    assert_pending!(events.poll_next());
    remote.unpark();
    assert_pending!(snapshots.poll_next());
    assert!(events.is_woken(), "an event is there, though no snapshot");
    assert!(assert_ready!(events.poll_next()).is_some());
    assert_pending!(events.poll_next());
    assert_pending!(snapshots.poll_next());
    remote.unpark();
    assert!(assert_ready!(events.poll_next()).is_some());
    assert!(snapshots.is_woken(), "a snapshot is there");
    assert!(assert_ready!(snapshots.poll_next()).is_some());
    assert_pending!(snapshots.poll_next());
    remote.unpark();
    assert!(assert_ready!(events.poll_next()).is_some());
    assert!(!snapshots.is_woken(), "nothing changed");
    assert!(assert_ready!(events.poll_next()).is_none());
    assert!(snapshots.is_woken(), "of the end");
}

#[test]
fn the_source_wakes_both_whichever_was_polled_last() {
    for events_last in [false, true] {
        let (source, remote) = script([Step::Park, Step::Give(started())]);
        let (mut events, mut snapshots) = halves(source, 8);
        if events_last {
            assert_pending!(snapshots.poll_next());
            assert_pending!(events.poll_next());
        } else {
            assert_pending!(events.poll_next());
            assert_pending!(snapshots.poll_next());
        }
        // The one that was polled last goes away; the other has to be woken all the same.
        if events_last {
            drop(events);
            remote.wake();
            assert!(snapshots.is_woken());
            assert!(assert_ready!(snapshots.poll_next()).is_some());
        } else {
            drop(snapshots);
            remote.wake();
            assert!(events.is_woken());
            assert!(assert_ready!(events.poll_next()).is_some());
        }
    }
}

#[test]
fn a_half_that_was_given_something_is_not_woken_for_nothing() {
    let (source, _) = gives(run(1));
    let (mut events, mut snapshots) = halves(source, 8);
    assert!(assert_ready!(events.poll_next()).is_some());
    assert!(assert_ready!(snapshots.poll_next()).is_some());
    assert!(!events.is_woken(), "it does not wait");
    assert!(assert_ready!(events.poll_next()).is_some());
    assert!(!snapshots.is_woken(), "it does not wait");
}

#[test]
fn both_halves_end_with_the_error() {
    let (source, remote) = gives([Ok(started()), Err(Error::Source(Broken)), Ok(nothing())]);
    let (events, snapshots) = source.assemble().split();
    let (mut events, mut snapshots) = (task::spawn(events), task::spawn(snapshots));
    assert!(assert_ready!(snapshots.poll_next()).unwrap().is_ok());
    assert!(remote.is_dropped());
    let error: Arc<Error<Broken>> = assert_ready!(snapshots.poll_next()).unwrap().unwrap_err();
    assert_eq!(*error, Error::Source(Broken));
    assert!(assert_ready!(snapshots.poll_next()).is_none());
    assert!(assert_ready!(events.poll_next()).unwrap().is_ok());
    assert!(Arc::ptr_eq(&error, &assert_ready!(events.poll_next()).unwrap().unwrap_err()));
    assert!(assert_ready!(events.poll_next()).is_none());
}

#[test]
fn a_truncated_stream_is_not_a_success_for_either_half() {
    let (source, _) = gives([r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#]);
    let (mut events, mut snapshots) = source.split_updates();
    let (mut events, mut snapshots) = (task::spawn(&mut events), task::spawn(&mut snapshots));
    assert!(assert_ready!(events.poll_next()).unwrap().is_ok());
    assert!(assert_ready!(events.poll_next()).unwrap().unwrap_err().is_truncated());
    assert!(assert_ready!(snapshots.poll_next()).unwrap().is_ok());
    assert!(assert_ready!(snapshots.poll_next()).unwrap().unwrap_err().is_truncated());
}

#[test]
fn a_source_that_panics_in_one_task_is_truncated_for_the_other() {
    let (source, _) = script([Step::Give(started()), Step::Panic]);
    let (mut events, mut snapshots) = halves(source, 8);
    assert!(assert_ready!(events.poll_next()).is_some());
    assert!(catch_unwind(AssertUnwindSafe(|| events.poll_next())).is_err());
    drop(events);
    assert!(assert_ready!(snapshots.poll_next()).unwrap().is_ok());
    assert!(assert_ready!(snapshots.poll_next()).unwrap().unwrap_err().is_truncated());
    assert!(assert_ready!(snapshots.poll_next()).is_none());
}

#[test]
fn a_panic_wakes_the_half_that_waits() {
    let (source, remote) = script([Step::Park, Step::Panic]);
    let (mut events, mut snapshots) = halves(source, 8);
    assert_pending!(snapshots.poll_next());
    remote.unpark();
    assert!(catch_unwind(AssertUnwindSafe(|| events.poll_next())).is_err());
    assert!(snapshots.is_woken());
    assert!(assert_ready!(snapshots.poll_next()).unwrap().unwrap_err().is_truncated());
    assert!(assert_ready!(events.poll_next()).unwrap().unwrap_err().is_truncated());
}

#[test]
fn a_capacity_of_zero_counts_as_one() {
    let (source, _) = gives(run(3));
    let (mut events, mut snapshots) = halves(source, 0);
    assert!(assert_ready!(snapshots.poll_next()).is_some());
    assert_pending!(snapshots.poll_next());
    assert!(assert_ready!(events.poll_next()).is_some());
}

#[test]
fn a_source_that_is_always_ready_does_not_keep_the_thread() {
    let (source, remote) = gives((0..1000).map(|_| nothing()));
    let (events, mut snapshots) = halves(source, 8);
    drop(events);
    assert_pending!(snapshots.poll_next());
    assert!(snapshots.is_woken());
    assert_eq!(remote.polls(), 64);
}

#[test]
fn hints_and_ends_at_each_step() {
    let (source, _) = gives([started(), nothing()]);
    let (mut events, mut snapshots) = halves(source, 8);
    assert_eq!((events.size_hint(), snapshots.size_hint()), ((0, None), (0, None)));
    assert!(assert_ready!(events.poll_next()).is_some());
    assert_eq!((events.size_hint(), snapshots.size_hint()), ((0, None), (1, None)));
    assert!(assert_ready!(snapshots.poll_next()).is_some());
    assert_eq!((events.size_hint(), snapshots.size_hint()), ((1, Some(1)), (0, Some(0))));
    assert!(!events.is_terminated() && !snapshots.is_terminated());
    assert!(assert_ready!(events.poll_next()).is_some());
    for _ in 0..2 {
        assert!(assert_ready!(events.poll_next()).is_none());
        assert!(assert_ready!(snapshots.poll_next()).is_none());
        assert!(events.is_terminated() && snapshots.is_terminated());
        assert_eq!((events.size_hint(), snapshots.size_hint()), ((0, Some(0)), (0, Some(0))));
    }
}

#[test]
fn halves_of_one_stream_find_together_again() {
    let (source, remote) = gives(run(3));
    let (mut events, mut snapshots) = source.assemble().split();
    let (other_events, other_snapshots) = gives(run(0)).0.assemble().split();
    assert!(events.is_pair_of(&snapshots) && snapshots.is_pair_of(&events));
    assert!(!events.is_pair_of(&other_snapshots));

    let error = other_events.reunite(snapshots).unwrap_err();
    assert_eq!(error.to_string(), "the halves do not come from the same stream");
    snapshots = error.snapshots;
    assert!(error.events.is_pair_of(&other_snapshots));

    assert!(assert_ready!(task::spawn(&mut events).poll_next()).is_some());
    assert!(assert_ready!(task::spawn(&mut snapshots).poll_next()).is_some());
    let whole = events.reunite(snapshots).unwrap();
    assert!(remote.is_dropped(), "it was at its end");
    assert!(whole.source.is_none() && whole.error.is_none());
    assert_eq!(whole.events.len(), 6);
    assert!(whole.snapshots.is_empty());

    let (source, remote) = gives(run(3));
    let (events, snapshots) = source.assemble().split();
    let whole = events.reunite(snapshots).unwrap();
    assert!(!remote.is_dropped());
    let mut source = task::spawn(whole.source.unwrap());
    assert!(assert_ready!(source.poll_next()).is_some());
}

#[test]
fn the_source_goes_with_the_second_half() {
    let (source, remote) = gives(run(3));
    let (events, snapshots) = source.assemble().split();
    drop(events);
    assert!(!remote.is_dropped());
    drop(snapshots);
    assert!(remote.is_dropped());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_tasks_share_a_source_between_threads() {
    for every in [false, true] {
        let source = stream::iter(run(5000)).then(|event| async {
            tokio::task::yield_now().await;
            event
        });
        let (events, snapshots) = split_with_capacity(source.assemble(), items(4));
        let snapshots = if every { snapshots.every() } else { snapshots };
        let events = tokio::spawn(events.try_collect::<Vec<_>>());
        let snapshots = tokio::spawn(snapshots.try_collect::<Vec<_>>());
        let events: Vec<_> = events.await.unwrap().unwrap().into_iter().filter_map(|item| item.into_event()).collect();
        assert_eq!(events, run(5000));
        let snapshots = snapshots.await.unwrap().unwrap();
        assert!(!every || snapshots.len() == 5004);
        assert_eq!(text(snapshots.last().unwrap().snapshot()).len(), 5000);
        assert_eq!(snapshots.last().unwrap().snapshot().run().unwrap().outcome.as_str(), "success");
    }
}

#[tokio::test]
async fn middleware_may_sit_before_the_split() {
    let updates = stream::iter(run(3)).assemble().try_filter(|update| std::future::ready(update.is_change()));
    let (events, snapshots) = split(updates);
    drop(snapshots);
    assert_eq!(events.count().await, 7);
}

/// Something to be done at a place where a half does not expect it: drop or poll the other half.
#[derive(Clone, Default)]
#[allow(clippy::type_complexity, reason = "named by the struct")]
struct Deed(Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>);

impl Deed {
    fn set(&self, deed: impl FnOnce() + Send + 'static) {
        *self.0.lock().unwrap() = Some(Box::new(deed));
    }

    fn is_done(&self) -> bool {
        self.0.lock().unwrap().is_none()
    }

    fn run(&self) {
        let deed = self.0.lock().unwrap().take();
        if let Some(deed) = deed {
            deed();
        }
    }
}

struct OnDrop(Deed);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.run();
    }
}

/// A waker with a deed for when it is woken and one for when it is dropped.
struct Busy {
    at_wake: Deed,
    _at_drop: OnDrop,
}

impl Busy {
    fn waker(at_wake: &Deed, at_drop: &Deed) -> Waker {
        Arc::new(Busy { at_wake: at_wake.clone(), _at_drop: OnDrop(at_drop.clone()) }).into()
    }
}

impl Wake for Busy {
    fn wake(self: Arc<Self>) {
        self.at_wake.run();
    }
}

/// Where a half is dropped or polled while the other is polled.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// The source does it when it is polled.
    SourcePoll,
    /// The waker of the half that drives, woken by the source that it polls.
    OwnWaker,
    /// The waker of the other half, woken by the source.
    OtherWaker,
    /// The waker of the other half, woken because there is something for it.
    News,
    /// The waker that the half was polled with before.
    WakerDrop,
    /// The source, when it is dropped at its end.
    SourceDrop,
    /// The same after an error.
    SourceDropAfterError,
}

/// Does the deed at this place while one half is polled; how many items that half has given.
fn disturb(place: Place, events_drive: bool, drops: bool) -> usize {
    let deed = Deed::default();
    let none = Deed::default();
    let at = |here: &[Place]| if here.contains(&place) { deed.clone() } else { none.clone() };
    let in_poll = at(&[Place::SourcePoll]);
    let at_end = OnDrop(at(&[Place::SourceDrop, Place::SourceDropAfterError]));
    let (mut count, fails, wakes) = (0, place == Place::SourceDropAfterError, place != Place::News);
    let source = stream::poll_fn(move |cx| {
        count += 1;
        match count {
            // So that both halves wait at first.
            1 | 2 => Poll::Pending,
            3 => {
                in_poll.run();
                if wakes {
                    cx.waker().wake_by_ref();
                }
                Poll::Ready(Some(Ok(started())))
            }
            4 => Poll::Ready(Some(Ok(open("m")))),
            5 if fails => Poll::Ready(Some(Err(Error::Source(Broken)))),
            _ => Poll::Ready(None),
        }
    });
    // With the whole of the stream, which the halves drop.
    let updates = source.assemble().inspect(move |_| {
        let _ = &at_end;
    });
    let (events, snapshots) = split(updates);
    let (events, snapshots) = (events.map(|_| ()).boxed(), snapshots.every().map(|_| ()).boxed());
    let (mut half, mut other) = if events_drive { (events, snapshots) } else { (snapshots, events) };

    let other_waker = Busy::waker(&at(&[Place::OtherWaker, Place::News]), &none);
    let waker = Busy::waker(&none, &at(&[Place::WakerDrop]));
    assert!(half.poll_next_unpin(&mut Context::from_waker(&waker)).is_pending());
    assert!(other.poll_next_unpin(&mut Context::from_waker(&other_waker)).is_pending());
    deed.set(move || {
        if !drops {
            let _ = other.poll_next_unpin(&mut Context::from_waker(Waker::noop()));
        }
    });
    drop((waker, other_waker));
    let own_waker = Busy::waker(&at(&[Place::OwnWaker]), &none);
    let mut given = 0;
    while let Poll::Ready(Some(())) = half.poll_next_unpin(&mut Context::from_waker(&own_waker)) {
        given += 1;
    }
    assert!(deed.is_done(), "{place:?}");
    given
}

#[test]
fn a_half_is_dropped_or_polled_in_any_place_while_the_other_is_polled() {
    for place in [
        Place::SourcePoll,
        Place::OwnWaker,
        Place::OtherWaker,
        Place::News,
        Place::WakerDrop,
        Place::SourceDrop,
        Place::SourceDropAfterError,
    ] {
        for (events_drive, drops) in [(true, true), (true, false), (false, true), (false, false)] {
            let given = disturb(place, events_drive, drops);
            let wanted = if place == Place::SourceDropAfterError { 3 } else { 2 };
            assert_eq!(given, wanted, "{place:?}, events drive: {events_drive}, drops: {drops}");
        }
    }
}

#[test]
fn a_source_that_panics_when_it_is_dropped_has_still_ended() {
    let deed = Deed::default();
    deed.set(|| panic!("in drop"));
    let at_end = OnDrop(deed);
    let mut steps = vec![Poll::Ready(None), Poll::Ready(Some(started())), Poll::Pending];
    let source = stream::poll_fn(move |_| steps.pop().unwrap());
    let (events, snapshots) = split(source.assemble().inspect(move |_| {
        let _ = &at_end;
    }));
    let (mut events, mut snapshots) = (task::spawn(events), task::spawn(snapshots));
    assert_pending!(snapshots.poll_next());
    assert!(assert_ready!(events.poll_next()).unwrap().is_ok());
    assert!(catch_unwind(AssertUnwindSafe(|| events.poll_next())).is_err());
    assert!(snapshots.is_woken());
    assert!(assert_ready!(snapshots.poll_next()).unwrap().is_ok());
    for _ in 0..2 {
        assert!(assert_ready!(snapshots.poll_next()).is_none());
        assert!(assert_ready!(events.poll_next()).is_none());
    }
}

#[test]
fn a_half_that_waits_for_the_other_to_poll_the_source_is_woken_by_it() {
    let deed = Deed::default();
    let in_poll = deed.clone();
    let mut steps = vec![Poll::Pending, Poll::Ready(Some(nothing()))];
    let source = stream::poll_fn(move |_| {
        in_poll.run();
        steps.pop().unwrap()
    });
    let (events, snapshots) = source.assemble().split();
    let (mut events, snapshots) = (task::spawn(events), Arc::new(Mutex::new(task::spawn(snapshots))));
    let inner = Arc::clone(&snapshots);
    deed.set(move || {
        let mut snapshots = inner.lock().unwrap();
        assert_pending!(snapshots.poll_next());
        assert!(!snapshots.is_woken());
    });
    assert!(assert_ready!(events.poll_next()).unwrap().is_ok());
    assert!(snapshots.lock().unwrap().is_woken(), "though nothing came for it: it has not seen the source");
}

#[test]
fn the_bound_counts_bytes_of_what_waits() {
    let large = || delta("m", &"x".repeat(1000));
    for is_every in [false, true] {
        let (source, remote) = gives([started(), open("m"), large(), large(), large(), large()]);
        let capacity = SplitCapacity { bytes: 2000, ..SplitCapacity::default() };
        let (events, snapshots) = split_with_capacity(source.assemble(), capacity);
        let snapshots = if is_every { snapshots.every() } else { snapshots };
        let (mut events, mut snapshots) = (task::spawn(events), task::spawn(snapshots));
        if is_every {
            // The snapshots wait: each weighs as much as its event.
            for _ in 0..4 {
                assert!(assert_ready!(events.poll_next()).is_some());
            }
            assert_pending!(events.poll_next());
            assert!(assert_ready!(snapshots.poll_next()).is_some());
            assert!(assert_ready!(snapshots.poll_next()).is_some());
            assert_pending!(events.poll_next());
            assert!(assert_ready!(snapshots.poll_next()).is_some());
            assert!(events.is_woken(), "there is room again");
            assert!(assert_ready!(events.poll_next()).is_some());
            assert_pending!(events.poll_next());
        } else {
            assert!(assert_ready!(snapshots.poll_next()).is_some());
            assert_eq!(remote.polls(), 4, "two small ones and two large ones");
            assert_pending!(snapshots.poll_next());
            for _ in 0..3 {
                assert!(assert_ready!(events.poll_next()).is_some());
            }
            assert!(snapshots.is_woken(), "there is room again");
            assert!(assert_ready!(snapshots.poll_next()).is_some());
            assert_eq!(remote.polls(), 5);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    PollEvents,
    PollSnapshots,
    DropEvents,
    DropSnapshots,
    Wake,
}

/// Does these acts one after the other, then polls the remaining halves to their end.
fn schedule(steps: &[Step<Event>], every: bool, capacity: usize, acts: &[Act]) {
    let whole: Vec<_> = futures::executor::block_on(stream::iter(given(steps)).assemble().try_collect()).unwrap();
    let (source, remote) = script(steps.to_vec());
    let (events, snapshots) = split_with_capacity(source.assemble(), items(capacity));
    let snapshots = if every { snapshots.every() } else { snapshots };
    let (mut events, mut snapshots) = (Some(Reader::new(events)), Some(Reader::new(snapshots)));
    let check_events = |reader: Reader<_>, is_whole: bool| {
        let given: Vec<_> = reader.items.into_iter().map(|item: Result<_, Arc<Error>>| item.unwrap()).collect();
        let all: Vec<_> = whole.iter().map(|update: &ag_ui_stream::snapshot::Update| update.item().clone()).collect();
        assert!(all.starts_with(&given) && (!is_whole || all.len() == given.len()), "{acts:?}");
    };
    let check_snapshots = |reader: Reader<_>, is_whole: bool| {
        let given = reader.items.into_iter().map(|item: Result<ag_ui_stream::snapshot::Changed, Arc<Error>>| item);
        let given: Vec<_> = given.map(|item| item.unwrap().into_snapshot()).collect();
        let all: Vec<_> = whole.iter().filter_map(|update| update.changed()).map(|at| at.into_snapshot()).collect();
        let mut rest = all.iter();
        assert!(given.iter().all(|at| rest.any(|other| other == at)), "in order: {acts:?}");
        assert!(!is_whole || given.last() == all.last(), "{acts:?}");
        assert!(!every || all.starts_with(&given) && (!is_whole || all.len() == given.len()), "{acts:?}");
    };
    for act in acts {
        match act {
            Act::PollEvents => events.iter_mut().for_each(|half| half.poll_once()),
            Act::PollSnapshots => snapshots.iter_mut().for_each(|half| half.poll_once()),
            Act::DropEvents => events.take().into_iter().for_each(|half| check_events(half, false)),
            Act::DropSnapshots => snapshots.take().into_iter().for_each(|half| check_snapshots(half, false)),
            Act::Wake => remote.wake(),
        }
    }
    for _ in 0..1000 {
        let events_due = events.as_ref().is_some_and(Reader::is_due);
        let snapshots_due = snapshots.as_ref().is_some_and(Reader::is_due);
        if events_due {
            events.iter_mut().for_each(Reader::poll);
        }
        if snapshots_due {
            snapshots.iter_mut().for_each(Reader::poll);
        }
        if events.as_ref().is_none_or(|half| half.ended) && snapshots.as_ref().is_none_or(|half| half.ended) {
            events.into_iter().for_each(|half| check_events(half, true));
            snapshots.into_iter().for_each(|half| check_snapshots(half, true));
            return;
        }
        if !events_due && !snapshots_due {
            remote.wake();
            let is_due = events.as_ref().is_some_and(Reader::is_due) || snapshots.as_ref().is_some_and(Reader::is_due);
            assert!(is_due, "lost wake-up: {acts:?}");
        }
    }
    panic!("does not come to an end: {acts:?}");
}

#[test]
fn every_schedule_of_six_acts_loses_nothing_and_wakes_who_waits() {
    const ACTS: [Act; 5] = [Act::PollEvents, Act::PollSnapshots, Act::DropEvents, Act::DropSnapshots, Act::Wake];
    let steps = [
        Step::Give(started()),
        Step::Give(nothing()),
        Step::Park,
        Step::Give(open("m")),
        Step::Yield,
        Step::Give(delta("m", "x")),
    ];
    for number in 0..5_usize.pow(6) {
        let acts: Vec<Act> = (0..6).map(|at| ACTS[number / 5_usize.pow(at) % 5]).collect();
        // A half is dropped once.
        if [Act::DropEvents, Act::DropSnapshots].iter().any(|act| acts.iter().filter(|other| *other == act).count() > 1)
        {
            continue;
        }
        schedule(&steps, number % 2 == 0, 1 + number % 2, &acts);
        schedule(&steps, number % 2 == 1, 1 + number % 2, &acts);
    }
}

/// What the script gives next.
fn steps() -> impl Strategy<Value = Vec<Step<Event>>> {
    let event = prop_oneof![
        Just(started()),
        Just(open("m")),
        Just(delta("m", "x")),
        Just(delta("n", "y")),
        Just(open("n")),
        Just(nothing()),
        Just(finished())
    ];
    let step = prop_oneof![4 => event.prop_map(Step::Give), 1 => Just(Step::Yield), 1 => Just(Step::Park)];
    prop::collection::vec(step, 0..60)
}

fn given(steps: &[Step<Event>]) -> Vec<Event> {
    steps.iter().filter_map(|step| if let Step::Give(event) = step { Some(event.clone()) } else { None }).collect()
}

/// A half and what it has given.
struct Reader<S: Stream> {
    half: task::Spawn<S>,
    items: Vec<S::Item>,
    started: bool,
    ended: bool,
}

impl<S: Stream + Unpin> Reader<S> {
    fn new(half: S) -> Self {
        Self { half: task::spawn(half), items: Vec::new(), started: false, ended: false }
    }

    /// Whether a runtime would poll it.
    fn is_due(&self) -> bool {
        !self.ended && (!self.started || self.half.is_woken())
    }

    fn poll_once(&mut self) {
        self.started = true;
        match self.half.poll_next() {
            Poll::Ready(Some(item)) if !self.ended => {
                self.items.push(item);
                // It is polled again in its turn.
                self.started = false;
            }
            Poll::Ready(_) => self.ended = true,
            Poll::Pending => {}
        }
    }

    fn poll(&mut self) {
        self.started = true;
        // As a task does that is polled: until there is nothing more.
        while let Poll::Ready(item) = self.half.poll_next() {
            match item {
                Some(item) => self.items.push(item),
                None => {
                    self.ended = true;
                    return;
                }
            }
        }
    }
}

/// Polls what is due, in an order that `choices` says, until both have ended; a state in which
/// nothing is due is a lost wake-up, unless the source has parked.
#[allow(clippy::panic, reason = "helper of a test")]
fn settle<A: Stream + Unpin, B: Stream + Unpin>(
    one: &mut Reader<A>,
    other: &mut Reader<B>,
    remote: &Remote,
    mut choices: impl Iterator<Item = bool>,
) {
    for _ in 0..10_000 {
        match (one.is_due(), other.is_due()) {
            (true, true) if choices.next().unwrap_or(true) => one.poll(),
            (true, false) => one.poll(),
            (_, true) => other.poll(),
            (false, false) if one.ended && other.ended => return,
            (false, false) => {
                remote.wake();
                assert!(one.is_due() || other.is_due(), "lost wake-up");
            }
        }
    }
    panic!("does not come to an end");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_polls_gives_the_same(
        steps in steps(),
        capacity in 1usize..5,
        every in any::<bool>(),
        choices in prop::collection::vec(any::<bool>(), 0..200),
    ) {
        let whole: Vec<_> = futures::executor::block_on(stream::iter(given(&steps)).assemble().try_collect()).unwrap();
        let (source, remote) = script(steps.clone());
        let (events, snapshots) = split_with_capacity(source.assemble(), items(capacity));
        let snapshots = if every { snapshots.every() } else { snapshots };
        let (mut events, mut snapshots) = (Reader::new(events), Reader::new(snapshots));
        settle(&mut events, &mut snapshots, &remote, choices.into_iter());

        let events: Vec<_> = events.items.into_iter().map(|item| item.unwrap()).collect();
        prop_assert_eq!(events, whole.iter().map(|update| update.item().clone()).collect::<Vec<_>>());
        let snapshots: Vec<_> = snapshots.items.into_iter().map(|item| item.unwrap().into_snapshot()).collect();
        let all: Vec<_> = whole.iter().filter_map(|update| update.changed()).map(|at| at.into_snapshot()).collect();
        if every {
            prop_assert_eq!(&snapshots, &all);
        } else {
            prop_assert_eq!(snapshots.last(), all.last());
            let mut rest = all.iter();
            prop_assert!(snapshots.iter().all(|at| rest.any(|other| other == at)), "in order");
        }
    }
}
