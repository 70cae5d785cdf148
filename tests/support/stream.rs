//! A source that follows a script, and a machine to drive with it.

#![allow(dead_code, unreachable_pub, reason = "each test uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use ag_ui_stream::error::Violation;
use ag_ui_stream::event::{CustomEvent, RunErrorEvent};
use ag_ui_stream::machine::{Cut, Machine, Push};
use ag_ui_stream::{Error, Event, EventType, Item, Rule};
use futures::Stream;

/// What a source does on a poll.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<T> {
    /// Gives this.
    Give(T),
    /// Says "not yet" and wakes the task at once.
    Yield,
    /// Says "not yet" until [`Remote::wake`].
    Park,
    /// Panics.
    Panic,
}

/// A source that follows its script, then ends. Polled after its end it panics.
#[derive(Debug)]
pub struct Script<T> {
    steps: VecDeque<Step<T>>,
    ended: bool,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    dropped: AtomicBool,
    polls: AtomicUsize,
    woken: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

/// Sees and wakes a [`Script`] from outside.
#[derive(Clone, Debug)]
pub struct Remote(Arc<Shared>);

impl<T> Unpin for Script<T> {}

pub fn script<T>(steps: impl IntoIterator<Item = Step<T>>) -> (Script<T>, Remote) {
    let shared = Arc::new(Shared::default());
    let steps = steps.into_iter().collect();
    (Script { steps, ended: false, shared: Arc::clone(&shared) }, Remote(shared))
}

/// A script that gives these and ends.
pub fn gives<T>(items: impl IntoIterator<Item = T>) -> (Script<T>, Remote) {
    script(items.into_iter().map(Step::Give))
}

impl Remote {
    /// Whether the source was dropped.
    pub fn is_dropped(&self) -> bool {
        self.0.dropped.load(Ordering::SeqCst)
    }

    /// How many times it was polled.
    pub fn polls(&self) -> usize {
        self.0.polls.load(Ordering::SeqCst)
    }

    /// Ends a [`Step::Park`] for whoever polls next, and forgets to wake: as a timer does that is
    /// found to be over before it goes off.
    pub fn unpark(&self) {
        self.0.woken.store(true, Ordering::SeqCst);
        self.0.waker.lock().unwrap().take();
    }

    /// Ends a [`Step::Park`].
    pub fn wake(&self) {
        self.0.woken.store(true, Ordering::SeqCst);
        if let Some(waker) = self.0.waker.lock().unwrap().take() {
            waker.wake();
        }
    }
}

impl<T> Stream for Script<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.get_mut();
        assert!(!this.ended, "polled after its end");
        this.shared.polls.fetch_add(1, Ordering::SeqCst);
        match this.steps.front() {
            Some(Step::Park) if !this.shared.woken.swap(false, Ordering::SeqCst) => {
                *this.shared.waker.lock().unwrap() = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Some(Step::Park) => {
                this.steps.pop_front();
            }
            _ => {}
        }
        match this.steps.pop_front() {
            Some(Step::Give(item)) => Poll::Ready(Some(item)),
            Some(Step::Yield) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Step::Park) => {
                *this.shared.waker.lock().unwrap() = Some(cx.waker().clone());
                this.steps.push_front(Step::Park);
                Poll::Pending
            }
            Some(Step::Panic) => panic!("as the script says"),
            None => {
                this.ended = true;
                Poll::Ready(None)
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.steps.len(), Some(self.steps.len()))
    }
}

impl<T> Drop for Script<T> {
    fn drop(&mut self) {
        self.shared.dropped.store(true, Ordering::SeqCst);
    }
}

/// A machine that does what the names of `CUSTOM` events tell it to: `"3"` gives that many
/// outputs, `"fail 2"` fails after that many. Numbers its outputs. Other events give none.
#[derive(Debug, Default)]
pub struct Toy {
    ready: VecDeque<u32>,
    next: u32,
    at_end: (u32, bool),
    pub finished: bool,
}

impl Toy {
    /// Gives so many outputs at the end, and may fail there.
    pub fn ending_in(count: u32, fails: bool) -> Self {
        Self { at_end: (count, fails), ..Self::default() }
    }

    fn give(&mut self, count: u32) {
        self.ready.extend(self.next..self.next + count);
        self.next += count;
    }
}

/// What [`Toy`] says where it fails.
pub fn fault() -> Error {
    Violation::new(Rule::S2, 7, EventType::Custom, "this", "that").into()
}

/// The inputs of [`Toy`].
pub fn tell(order: &str) -> Event {
    CustomEvent::new(order, serde_json::Value::Null).into()
}

impl<I: Into<Item>> Push<I> for Toy {
    fn push(&mut self, input: I) -> Result<(), Error> {
        let Some(Event::Custom(order)) = input.into().into_event() else { return Ok(()) };
        match order.name.strip_prefix("fail ") {
            None => {
                self.give(order.name.parse().unwrap());
                Ok(())
            }
            Some(count) => {
                self.give(count.parse().unwrap());
                Err(fault())
            }
        }
    }
}

impl Machine for Toy {
    type Output = u32;

    fn pop(&mut self) -> Option<u32> {
        self.ready.pop_front()
    }

    fn ready(&self) -> usize {
        self.ready.len()
    }

    fn finish(&mut self) -> Result<(), Error> {
        assert!(!std::mem::replace(&mut self.finished, true), "finished twice");
        self.give(self.at_end.0);
        if self.at_end.1 { Err(fault()) } else { Ok(()) }
    }

    /// Against the contract, to see that it does no harm.
    fn cut(&mut self, _: Cut) {
        self.give(1);
    }
}

/// A `RUN_ERROR`: a whole stream in one event.
pub fn run_error(message: &str) -> Event {
    RunErrorEvent::new(message).into()
}

/// An error of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("broken")
    }
}

impl std::error::Error for Broken {}

/// A source that never gives anything, and uses up the cooperative budget of its task in every poll, as
/// a socket does whose peer is faster. It panics where nothing stops to poll it.
pub fn greedy<T>() -> impl Stream<Item = T> {
    let mut polls = 0;
    futures::stream::poll_fn(move |cx| {
        polls += 1;
        assert!(polls < 100_000, "polled for ever");
        while std::pin::pin!(tokio::task::coop::consume_budget()).poll(cx).is_ready() {}
        Poll::Pending
    })
}

/// The next item of a stream with a greedy source, after so much time; the clock is paused.
pub async fn next_after<S: Stream + Unpin>(stream: &mut S, time: std::time::Duration) -> Option<S::Item> {
    let (next, ()) = tokio::join!(futures::StreamExt::next(stream), async {
        tokio::task::yield_now().await;
        tokio::time::advance(time).await;
    });
    next
}
