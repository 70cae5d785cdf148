//! `Coalesce`: a layer that joins deltas that follow each other.

use core::pin::Pin;
use core::task::{Context, Poll};
#[cfg(any(feature = "sse", feature = "websocket"))]
use core::time::Duration;

use futures::stream::Stream;
use smol_str::SmolStr;
#[cfg(any(feature = "sse", feature = "websocket"))]
use tokio::time::Instant;

use super::OnItems;
use crate::agent::{RawEventStream, raw_event_stream};
#[cfg(any(feature = "sse", feature = "websocket"))]
use crate::combinator::Timer;
use crate::combinator::{Items, MAX_SWALLOWED};
use crate::error::{AgentError, Error};
use crate::event::Event;
use crate::item::{Halves, Indexed, Item};
use crate::run_input::RunAgentInput;

/// Joins deltas of one message, call or thought that follow each other: fewer events for a slow reader, and
/// the same conversation.
///
/// A delta is held as long as the next event is ready, is a delta of the same item, and both together are no
/// longer than [`max_bytes`](Coalesce::max_bytes); at most 64 are joined at once. With `within` (features `sse`
/// and `websocket`, on a tokio runtime) it is held up to that time as well. The held delta comes out before
/// anything else, also before an error. A delta with metadata or a `rawEvent` stays as it is.
///
/// # Cost
/// One more copy of each delta.
///
/// # Examples
/// ```
/// use ag_ui_stream::agent::Replay;
/// use ag_ui_stream::layer::Coalesce;
/// use ag_ui_stream::{AgentExt, Event, RunAgentInput};
/// use futures::TryStreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ag_ui_stream::Error<ag_ui_stream::agent::AgentError>> {
/// let mut events = vec![Event::run_started("t", "r"), Event::text_start("m")];
/// events.extend(["Hel", "lo, ", "world"].map(|delta| Event::text_content("m", delta)));
/// events.extend([Event::text_end("m"), Event::run_finished("t", "r")]);
/// let agent = Replay::new(events).layer(Coalesce::new());
/// let events: Vec<_> = agent.events(RunAgentInput::new("t", "r", [])).await?.try_collect().await?;
/// assert_eq!(events[2], Event::text_content("m", "Hello, world"));
/// assert_eq!(events.len(), 5);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Coalesce {
    max_bytes: usize,
    #[cfg(any(feature = "sse", feature = "websocket"))]
    within: Option<Duration>,
}

impl Default for Coalesce {
    fn default() -> Self {
        Self {
            max_bytes: 4096,
            #[cfg(any(feature = "sse", feature = "websocket"))]
            within: None,
        }
    }
}

impl Coalesce {
    /// Joins the deltas that are ready, up to 4096 bytes, and does not wait.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Joins at most this many bytes; a longer delta stays as it is.
    #[must_use]
    pub fn max_bytes(self, max_bytes: usize) -> Self {
        Self { max_bytes, ..self }
    }

    /// Holds a delta for at most this long, to join it with those that come later.
    #[cfg(any(feature = "sse", feature = "websocket"))]
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { within: Some(within), ..self }
    }
}

impl OnItems for Coalesce {
    fn on_items(&self, input: &RunAgentInput, items: Items<RawEventStream>) -> RawEventStream {
        raw_event_stream(
            input,
            Coalesced {
                source: Some(items),
                options: *self,
                held: None,
                next: None,
                #[cfg(any(feature = "sse", feature = "websocket"))]
                timer: None,
            },
        )
    }
}

/// A delta that may grow.
struct Held {
    first: Indexed,
    /// The joined text, if there is more than one delta.
    joined: String,
}

impl Held {
    fn len(&self) -> usize {
        if self.joined.is_empty() { delta(&self.first.event).map_or(0, |delta| delta.len()) } else { self.joined.len() }
    }

    /// Adds a delta, if it is of the same item and both fit.
    fn join(&mut self, other: &Indexed, max_bytes: usize) -> bool {
        let Some(more) = joinable(other) else { return false };
        if !is_same_item(&self.first.event, &other.event) || self.len().saturating_add(more.len()) > max_bytes {
            return false;
        }
        if self.joined.is_empty() {
            self.joined.extend(delta(&self.first.event).map(SmolStr::as_str));
        }
        self.joined.push_str(more);
        true
    }

    fn into_item(mut self) -> Item {
        if !self.joined.is_empty() {
            let whole = SmolStr::from(self.joined);
            match &mut self.first.event {
                Event::TextMessageContent(event) => event.delta = whole,
                Event::ReasoningMessageContent(event) => event.delta = whole,
                Event::ToolCallArgs(event) => event.delta = whole,
                _ => {}
            }
        }
        Item::Event(self.first)
    }
}

fn delta(event: &Event) -> Option<&SmolStr> {
    match event {
        Event::TextMessageContent(event) => Some(&event.delta),
        Event::ReasoningMessageContent(event) => Some(&event.delta),
        Event::ToolCallArgs(event) => Some(&event.delta),
        _ => None,
    }
}

/// The delta of an event that has no metadata and no `rawEvent`.
fn joinable(indexed: &Indexed) -> Option<&SmolStr> {
    let base = indexed.event.base();
    let says_more = base.metadata.is_some() || base.raw_event.is_some() || indexed.halves != Halves::default();
    delta(&indexed.event).filter(|_| !says_more)
}

fn is_same_item(one: &Event, other: &Event) -> bool {
    let is_same = match (one, other) {
        (Event::TextMessageContent(one), Event::TextMessageContent(other)) => one.message_id == other.message_id,
        (Event::ReasoningMessageContent(one), Event::ReasoningMessageContent(other)) => {
            one.message_id == other.message_id
        }
        (Event::ToolCallArgs(one), Event::ToolCallArgs(other)) => one.tool_call_id == other.tool_call_id,
        _ => false,
    };
    is_same && one.subagent_run_id() == other.subagent_run_id()
}

/// The items of a run with deltas joined. It has a poll loop of its own, because its output depends on whether
/// more is ready, and on the time; a machine knows neither.
struct Coalesced {
    /// `None` after it ended or failed.
    source: Option<Items<RawEventStream>>,
    options: Coalesce,
    held: Option<Held>,
    /// The item that comes after the held delta.
    next: Option<Result<Item, Error<AgentError>>>,
    #[cfg(any(feature = "sse", feature = "websocket"))]
    timer: Option<Timer>,
}

impl Coalesced {
    /// Whether the held delta still has to wait, though nothing more is ready.
    #[cfg(any(feature = "sse", feature = "websocket"))]
    fn poll_time(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(within) = self.options.within else { return Poll::Ready(()) };
        match &mut self.timer {
            Some(timer) => timer.poll(cx),
            none => match Instant::now().checked_add(within) {
                Some(until) => none.insert(Timer::new(until)).poll(cx),
                None => Poll::Ready(()),
            },
        }
    }

    #[cfg(not(any(feature = "sse", feature = "websocket")))]
    fn poll_time(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn take_held(&mut self) -> Option<Item> {
        #[cfg(any(feature = "sse", feature = "websocket"))]
        {
            self.timer = None;
        }
        self.held.take().map(Held::into_item)
    }
}

impl Stream for Coalesced {
    type Item = Result<Item, Error<AgentError>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let Some(next) = this.next.take() {
            return Poll::Ready(Some(next));
        }
        let mut joined = 0;
        loop {
            let Some(source) = &mut this.source else { return Poll::Ready(this.take_held().map(Ok)) };
            let item = match Pin::new(source).poll_next(cx) {
                Poll::Ready(item) => item,
                Poll::Pending if this.held.is_none() => return Poll::Pending,
                Poll::Pending => match this.poll_time(cx) {
                    Poll::Ready(()) => return Poll::Ready(this.take_held().map(Ok)),
                    Poll::Pending => return Poll::Pending,
                },
            };
            let Some(item) = item else {
                this.source = None;
                continue;
            };
            if item.is_err() {
                this.source = None;
            }
            let before = match item {
                Ok(Item::Event(indexed)) => {
                    let max_bytes = this.options.max_bytes;
                    if this.held.as_mut().is_some_and(|held| held.join(&indexed, max_bytes)) {
                        joined += 1;
                        if joined == MAX_SWALLOWED {
                            return Poll::Ready(this.take_held().map(Ok));
                        }
                        continue;
                    }
                    let before = this.take_held();
                    if joinable(&indexed).is_some_and(|delta| delta.len() < max_bytes) {
                        this.held = Some(Held { first: indexed, joined: String::new() });
                    } else {
                        this.next = Some(Ok(indexed.into()));
                    }
                    before
                }
                other => {
                    let before = this.take_held();
                    this.next = Some(other);
                    before
                }
            };
            match before {
                Some(before) => return Poll::Ready(Some(Ok(before))),
                None => {
                    if let Some(next) = this.next.take() {
                        return Poll::Ready(Some(next));
                    }
                }
            }
        }
    }
}
