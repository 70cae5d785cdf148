//! A schedule of the two halves of a split stream, one byte a step: no panic; each half gives what is its, in
//! order, and none is left asleep; either may be dropped at any step.

use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Wake;

use ag_ui_stream::combinator::{SplitCapacity, split_with_capacity};
use ag_ui_stream::event::{CustomEvent, RunFinishedEvent, RunStartedEvent};
use ag_ui_stream::{Event, EventStreamExt};
use futures::stream::Stream;
use serde_json::json;

/// The source: what it gives next, `None` for a poll that finds nothing yet, and who waits for it.
#[derive(Default)]
struct Script {
    steps: VecDeque<Option<Event>>,
    waiting: Option<Waker>,
}

struct Source(Arc<Mutex<Script>>);

impl Stream for Source {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut script = self.0.lock().expect("no panic under this lock");
        match script.steps.pop_front() {
            Some(Some(event)) => Poll::Ready(Some(event)),
            Some(None) => {
                script.waiting = Some(cx.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(None),
        }
    }
}

/// Whether a half was woken since it was polled.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A half with what it gave.
struct Half<S: Stream> {
    stream: Option<Pin<Box<S>>>,
    given: Vec<S::Item>,
    woken: Arc<Flag>,
    ended: bool,
}

impl<S: Stream> Half<S> {
    fn new(stream: S) -> Self {
        let woken = Arc::new(Flag(AtomicBool::new(true)));
        Self { stream: Some(Box::pin(stream)), given: Vec::new(), woken, ended: false }
    }

    fn is_done(&self) -> bool {
        self.ended || self.stream.is_none()
    }

    fn poll(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        self.woken.0.store(false, Ordering::SeqCst);
        let waker = Waker::from(Arc::clone(&self.woken));
        match stream.as_mut().poll_next(&mut Context::from_waker(&waker)) {
            Poll::Ready(Some(item)) => {
                assert!(!self.ended, "an item after the end");
                self.given.push(item);
                self.woken.0.store(true, Ordering::SeqCst);
            }
            Poll::Ready(None) => self.ended = true,
            Poll::Pending => assert!(!self.ended, "pending after the end"),
        }
    }

    /// Polls it if it was woken; whether it was.
    fn turn(&mut self) -> bool {
        let is_awake = !self.is_done() && self.woken.0.load(Ordering::SeqCst);
        if is_awake {
            self.poll();
        }
        is_awake
    }
}

fn wake(script: &Mutex<Script>) -> bool {
    let waiting = script.lock().expect("no panic under this lock").waiting.take();
    let is_there = waiting.is_some();
    waiting.into_iter().for_each(Waker::wake);
    is_there
}

/// See the head of the file.
pub fn attack(input: &[u8]) {
    let [capacity, length, schedule @ ..] = input else { return };
    let custom = |at: usize| Event::from(CustomEvent::new(format!("event {at}"), json!(null)));
    let mut steps = VecDeque::from([Some(Event::from(RunStartedEvent::new("t", "r")))]);
    for at in 0..usize::from(length % 32) {
        // Bits of the schedule say where nothing is there yet.
        if schedule.get(at).is_some_and(|byte| byte & 0x80 != 0) {
            steps.push_back(None);
        }
        steps.push_back(Some(custom(at)));
    }
    steps.push_back(Some(RunFinishedEvent::new("t", "r").into()));
    let expected: Vec<Event> = steps.iter().flatten().cloned().collect();
    let script = Arc::new(Mutex::new(Script { steps, waiting: None }));
    let capacity = SplitCapacity { items: usize::from(capacity % 8), ..SplitCapacity::default() };
    let (events, snapshots) = split_with_capacity(Source(Arc::clone(&script)).updates(), capacity);
    let (mut events, mut snapshots) = (Half::new(events), Half::new(snapshots.every()));
    for act in schedule.iter().take(256) {
        match act & 0x1f {
            0..12 => events.poll(),
            12..24 => snapshots.poll(),
            24..30 => drop(wake(&script)),
            30 => events.stream = None,
            _ => snapshots.stream = None,
        }
    }
    // From here on a half is polled only if it was woken.
    while !(events.is_done() && snapshots.is_done()) {
        let is_awake = events.turn() | snapshots.turn();
        assert!(is_awake || wake(&script), "both halves are asleep, and nothing is to wake them");
    }
    let given: Vec<Event> =
        events.given.into_iter().map(|item| item.expect("no error").into_event().expect("no warning")).collect();
    assert!(expected.starts_with(&given), "{given:?}");
    assert!(!events.ended || given.len() == expected.len(), "{} of {} events", given.len(), expected.len());
    let outcomes: Vec<&str> = snapshots
        .given
        .iter()
        .filter_map(|changed| {
            let changed = changed.as_ref().expect("no error");
            changed.snapshot().run().map(|run| run.outcome.as_str())
        })
        .collect();
    // The two events that change something.
    assert!(["running", "success"].starts_with(&outcomes), "{outcomes:?}");
    assert!(!snapshots.ended || outcomes.len() == 2, "{outcomes:?}");
}
