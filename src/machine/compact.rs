//! `Compactor`: makes a recorded stream short. Fewer and shorter events come to the same conversation.
//!
//! ```text
//!   START a │ a b a STATE b a STATE │ TOOL_CALL_RESULT │ b b │ END b …
//!           ╰──────── a stretch ────╯                  ╰─────╯
//!             out: a b STATE                             b
//! ```
//!
//! A stretch is a row of events that do not depend on each other's order: deltas of items, and the
//! state. Within it each item is left with one delta and the state with one event; every other event
//! ends it and stays as it is.

use core::fmt;
use std::collections::{HashMap, VecDeque};
use std::io;

use smol_str::SmolStr;

use super::streamed::Streamed;
use super::{Cut, Machine, Pipeline, Push};
use crate::error::Error;
use crate::event::{
    BaseEvent, Event, JsonPatch, Metadata, StateDeltaEvent, StateSnapshotEvent, TextMessageContentEvent,
};
use crate::event::{ReasoningMessageContentEvent, ToolCallArgsEvent};
use crate::id::{Id, SubagentRunId};
use crate::item::Item;
use crate::raw::RawEvent;
use crate::rule::Rule;
use crate::shared::Document;
use crate::snapshot::Update;

/// Makes a recorded stream short: takes raw events, gives the events from which a replay comes to the
/// same messages, state, runs, steps and subagents.
///
/// In: any [`RawEvent`]. Out: events that pass verification, in order. What becomes of them:
/// - Chunks are spelled out, retired shapes are translated, what enforcement removes is removed.
/// - The deltas of an item that come one after the other are joined, those of other items and of the
///   state in between included; each item goes where its first delta was. Up to 64 KiB are joined.
/// - `STATE_DELTA` and `STATE_SNAPSHOT` without another event in between, but for deltas of items, become
///   one `STATE_DELTA` with all operations, or one `STATE_SNAPSHOT` where that is not longer; those of
///   different owners stay apart. A patch that did not apply is left out (rule A6).
/// - A delta that is empty and has no metadata is left out.
/// - Everything else stays as it is and where it is: `RAW` and `CUSTOM`, results, activities, steps,
///   subagents, the events that begin and end runs. The owner of an event stays too.
///
/// A joined event has the `timestamp` of the first event that has one, and the `metadata` of all, merged as
/// assembly merges them (rule A1). Every `rawEvent` of a delta or a state event is left out.
/// Warnings are not given; they are logged as a [`Pipeline`] logs them.
///
/// To compact the output again changes nothing.
///
/// # Ending
/// What is held back is given before an error, and at the end.
///
/// # Errors
/// Those of a [`Pipeline`]; a record that breaks off is truncated (rule R8), and its events are given all
/// the same.
///
/// # Cost
/// A delta costs its length, a patch its operations and its length. The compactor holds back the deltas of
/// one stretch, and for the state at most twice its length as JSON.
///
/// # Examples
/// ```
/// use ag_ui_stream::machine::{Compactor, Machine, Push};
/// use ag_ui_stream::Event;
///
/// let mut compactor = Compactor::new();
/// for event in [
///     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
///     r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"Hel"}"#,
///     r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"lo"}"#,
///     r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
/// ] {
///     compactor.push(event)?;
/// }
/// compactor.finish()?;
/// let events: Vec<Event> = std::iter::from_fn(|| compactor.pop()).collect();
/// assert_eq!(events[1..4], [Event::text_start("m"), Event::text_content("m", "Hello"), Event::text_end("m")]);
/// # Ok::<(), ag_ui_stream::Error>(())
/// ```
#[derive(Default)]
pub struct Compactor {
    pipeline: Pipeline,
    stretch: Stretch,
    /// Whether the patch that comes next did not apply.
    is_void: bool,
    ready: VecDeque<Event>,
}

impl Compactor {
    /// The most bytes of deltas that are joined; a longer delta stays alone.
    const MAX_JOINED: usize = 64 * 1024;

    /// A compactor with the default options, for a stream that begins its thread.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A compactor with other options: the history and the state from before the record, limits, repairs.
    #[must_use]
    pub fn with_pipeline(pipeline: Pipeline) -> Self {
        Self { pipeline, ..Self::default() }
    }

    fn take(&mut self, update: Update) {
        let (item, snapshot) = update.into_parts();
        let event = match item {
            Item::Event(indexed) => indexed.event,
            Item::Warning(warning) => {
                self.is_void |= warning.rule == Rule::A6;
                return;
            }
        };
        let is_void = std::mem::take(&mut self.is_void);
        let change = match Change::of(event) {
            Ok(change) => change,
            Err(event) => {
                self.flush();
                self.ready.push_back(event);
                return;
            }
        };
        if change.is_nothing() || (is_void && matches!(change.what, What::Patch(_))) {
            return;
        }
        if !self.stretch.has_room(&change) {
            self.flush();
        }
        self.stretch.add(change, snapshot.state());
    }

    fn flush(&mut self) {
        let Stretch { places, parts } = &mut self.stretch;
        places.clear();
        parts.drain(..).for_each(|part| part.give(&mut self.ready));
    }

    fn drain(&mut self) {
        while let Some(update) = self.pipeline.pop() {
            self.take(update);
        }
    }
}

impl<R: RawEvent> Push<R> for Compactor {
    fn push(&mut self, raw: R) -> Result<(), Error> {
        let pushed = self.pipeline.push(raw);
        self.drain();
        if pushed.is_err() {
            self.flush();
        }
        pushed
    }
}

impl Machine for Compactor {
    type Output = Event;

    fn pop(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    fn ready(&self) -> usize {
        self.ready.len()
    }

    fn finish(&mut self) -> Result<(), Error> {
        let finished = self.pipeline.finish();
        self.drain();
        self.flush();
        finished
    }

    fn cut(&mut self, cut: Cut) {
        self.pipeline.cut(cut);
    }
}

impl fmt::Debug for Compactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compactor")
            .field("pipeline", &self.pipeline)
            .field("held", &self.stretch.parts.len())
            .field("ready", &self.ready.len())
            .finish()
    }
}

/// Makes the events of a record short: a [`Compactor`] with its defaults as an iterator. The error, if
/// there is one, is the last item.
///
/// ```
/// use ag_ui_stream::Error;
/// use ag_ui_stream::machine::compact;
///
/// let record = [
///     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
///     r#"{"type":"STATE_SNAPSHOT","snapshot":{"done":1}}"#,
///     r#"{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/done","value":2}]}"#,
///     r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
/// ];
/// let events: Vec<_> = compact(record).collect::<Result<_, Error>>()?;
/// assert_eq!(serde_json::to_string(&events[1])?, r#"{"type":"STATE_SNAPSHOT","snapshot":{"done":2}}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn compact<I>(record: I) -> impl Iterator<Item = Result<Event, Error>>
where
    I: IntoIterator,
    I::Item: RawEvent,
{
    let mut record = record.into_iter();
    let mut compactor = Compactor::new();
    let mut end = None;
    std::iter::from_fn(move || {
        loop {
            if let Some(event) = compactor.pop() {
                return Some(Ok(event));
            }
            if let Some(end) = &mut end {
                return Option::take(end).map(Err);
            }
            match record.next() {
                Some(raw) => end = compactor.push(raw).err().map(Some),
                None => end = Some(compactor.finish().err()),
            }
        }
    })
}

/// The changes of a stretch, one part for each target, in the order of first mention.
#[derive(Default)]
struct Stretch {
    parts: Vec<Part>,
    /// The index of the part of each item; `None` is the state.
    places: HashMap<Option<(Streamed, Id)>, usize>,
}

/// An event of a stretch: what it changes, and how.
struct Change {
    target: Option<(Streamed, Id)>,
    tag: Option<SubagentRunId>,
    base: BaseEvent,
    what: What,
}

enum What {
    Delta(SmolStr),
    Patch(JsonPatch),
    State(Document),
}

/// All changes of one target.
struct Part {
    tag: Option<SubagentRunId>,
    base: BaseEvent,
    sum: Sum,
}

enum Sum {
    Text(Streamed, Id, String),
    State {
        /// What the state was set to, and how it was patched after that.
        set: Option<Document>,
        patch: Option<JsonPatch>,
        /// How long both are as JSON, and how long they were when the state was last found to be longer.
        bytes: usize,
        compared: usize,
        /// The state as it is now.
        now: Document,
    },
}

impl Change {
    fn of(event: Event) -> Result<Self, Event> {
        let (target, tag, base, what) = match event {
            Event::TextMessageContent(TextMessageContentEvent { message_id, delta, subagent_run_id, base }) => {
                (Some((Streamed::Text, message_id.into_id())), subagent_run_id, base, What::Delta(delta))
            }
            Event::ToolCallArgs(ToolCallArgsEvent { tool_call_id, delta, subagent_run_id, base }) => {
                (Some((Streamed::ToolCall, tool_call_id.into_id())), subagent_run_id, base, What::Delta(delta))
            }
            Event::ReasoningMessageContent(ReasoningMessageContentEvent {
                message_id,
                delta,
                subagent_run_id,
                base,
            }) => (Some((Streamed::Reasoning, message_id.into_id())), subagent_run_id, base, What::Delta(delta)),
            Event::StateDelta(StateDeltaEvent { delta, subagent_run_id, base }) => {
                (None, subagent_run_id, base, What::Patch(delta))
            }
            Event::StateSnapshot(StateSnapshotEvent { snapshot, subagent_run_id, base }) => {
                (None, subagent_run_id, base, What::State(snapshot))
            }
            event => return Err(event),
        };
        Ok(Self { target, tag, base: BaseEvent { raw_event: None, ..base }, what })
    }

    fn is_nothing(&self) -> bool {
        matches!(&self.what, What::Delta(delta) if delta.is_empty()) && self.base.metadata.is_none()
    }
}

impl Stretch {
    /// Whether a change can be joined with those of its target.
    fn has_room(&self, change: &Change) -> bool {
        let held = self.places.get(&change.target).and_then(|place| self.parts.get(*place));
        held.is_none_or(|part| match (&part.sum, &change.what) {
            (Sum::Text(.., text), What::Delta(delta)) => {
                text.len().saturating_add(delta.len()) <= Compactor::MAX_JOINED
            }
            // The tag of a change of the state says only who made it.
            _ => part.tag == change.tag,
        })
    }

    fn add(&mut self, change: Change, state: &Document) {
        let Change { target, tag, base, what } = change;
        let place = *self.places.entry(target.clone()).or_insert_with(|| {
            let sum = match target {
                Some((kind, id)) => Sum::Text(kind, id, String::new()),
                None => Sum::State { set: None, patch: None, bytes: 0, compared: 0, now: state.clone() },
            };
            self.parts.push(Part { tag: None, base: BaseEvent::default(), sum });
            self.parts.len() - 1
        });
        if let Some(part) = self.parts.get_mut(place) {
            part.tag = part.tag.take().or(tag);
            part.base.timestamp = part.base.timestamp.or(base.timestamp);
            merge(&mut part.base.metadata, base.metadata);
            part.sum.add(what, state);
        }
    }
}

impl Sum {
    fn add(&mut self, what: What, state: &Document) {
        match (self, what) {
            (Sum::Text(.., text), What::Delta(delta)) => text.push_str(&delta),
            (Sum::State { set, patch, bytes, compared, now }, What::State(state)) => {
                (*bytes, *compared) = (length(&state, usize::MAX).unwrap_or_default(), 0);
                (*set, *patch, *now) = (Some(state.clone()), None, state);
            }
            (Sum::State { set, patch, bytes, compared, now }, What::Patch(more)) => {
                *bytes = bytes.saturating_add(length(&more, usize::MAX).unwrap_or_default());
                *now = state.clone();
                match patch {
                    Some(patch) => patch.append(more),
                    None => *patch = Some(more),
                }
                // Compared each time that it has doubled, so that it stays below twice the state.
                if *bytes / 2 > *compared {
                    *compared = *bytes;
                    if let Some(length) = length(now, *bytes) {
                        (*bytes, *compared) = (length, 0);
                        (*set, *patch) = (Some(now.clone()), None);
                    }
                }
            }
            // An item has only deltas, the state only patches and snapshots.
            (Sum::Text(..), _) | (Sum::State { .. }, What::Delta(_)) => {}
        }
    }
}

impl Part {
    fn give(self, ready: &mut VecDeque<Event>) {
        let Self { tag: subagent_run_id, base, sum } = self;
        let (mut set, mut patch, now, most) = match sum {
            Sum::Text(kind, id, text) => {
                ready.push_back(kind.content(id, subagent_run_id, text.into(), base));
                return;
            }
            Sum::State { set, patch, now, .. } => {
                let most = [
                    set.as_ref().map(|set| length(set, usize::MAX)),
                    patch.as_ref().map(|patch| length(patch, usize::MAX)),
                ];
                let most = most.into_iter().flatten().flatten().sum();
                (set, patch, now, most)
            }
        };
        if patch.is_some() && length(&now, most).is_some() {
            (set, patch) = (Some(now), None);
        }
        let mut base = Some(base);
        let tag = || subagent_run_id.clone();
        if let Some(snapshot) = set {
            let base = base.take().unwrap_or_default();
            ready.push_back(StateSnapshotEvent { snapshot, subagent_run_id: tag(), base }.into());
        }
        if let Some(delta) = patch {
            let base = base.take().unwrap_or_default();
            ready.push_back(StateDeltaEvent { delta, subagent_run_id: tag(), base }.into());
        }
    }
}

/// Merges metadata as assembly does (rule A1).
fn merge(held: &mut Option<Metadata>, new: Option<Metadata>) {
    match (held, new) {
        (Some(held), Some(new)) => {
            held.merge(&new);
        }
        (held @ None, new) => *held = new,
        (Some(_), None) => {}
    }
}

/// The length of a value as JSON, if it is at most `most`. Costs at most `most` too.
fn length(value: &impl serde::Serialize, most: usize) -> Option<usize> {
    struct Left(usize);

    impl io::Write for Left {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::WriteZero)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut left = Left(most);
    serde_json::to_writer(&mut left, value).ok()?;
    Some(most - left.0)
}
