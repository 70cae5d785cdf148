//! Snapshots of the conversation, immutable and cheap to keep, and the updates that carry them.

use core::fmt;
use std::sync::Arc;

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use crate::event::{Event, MessagesSnapshotEvent, StateSnapshotEvent};
use crate::id::SubagentRunId;
use crate::item::Item;
use crate::message::{Message, ToolCall};
use crate::shared::index::Index;
use crate::shared::tree;
pub use crate::shared::{Array, Chunks, Document, Elements, Iter, List, Members, Object, Text};
use crate::warning::Warning;

mod changed;
mod effect;
mod growing;
mod next;
pub(crate) mod run;

use growing::Growing;

pub use changed::Changed;
pub use effect::{Action, Effect};
pub use run::{OpenItem, Run, RunOutcome, Subagent, SubagentStatus};

/// The conversation and the shared state at one moment. It never changes (rule A8).
///
/// A clone is one pointer. To keep every snapshot of a stream costs, beside the text itself, memory
/// for each event that grows with the logarithm of the conversation.
#[derive(Clone)]
pub struct Snapshot(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    /// `None` in the slot of a message that grows.
    pub(crate) messages: List<Option<Arc<Entry>>>,
    growing: Growing,
    pub(crate) rest: Arc<Rest>,
}

/// The parts that change less often than text.
#[derive(Clone)]
pub(crate) struct Rest {
    /// The first message with an id.
    pub(crate) index: Index<u64>,
    pub(crate) calls: Index<CallPlace>,
    pub(crate) state: Document,
    /// The bytes of the content of all activities.
    pub(crate) activity_bytes: usize,
    pub(crate) runs: List<Arc<Run>>,
    /// Subagent invocations of the latest run, by id: their place in its list.
    pub(crate) subagents: Index<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) message: Message,
    pub(crate) status: ItemStatus,
}

/// Where a tool call is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallPlace {
    pub(crate) message: u64,
    pub(crate) call: u64,
    pub(crate) status: ItemStatus,
}

/// Whether a message or a tool call is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItemStatus {
    /// Nothing is known to be missing.
    Complete,
    /// It is open: more may come.
    Streaming,
    /// Its run failed or was cut off before it was closed.
    Abandoned,
}

impl Snapshot {
    pub(crate) fn new(state: Document) -> Self {
        Self(Arc::new(Inner {
            messages: List::new(),
            growing: Growing::default(),
            rest: Arc::new(Rest {
                index: Index::new(),
                calls: Index::new(),
                state,
                activity_bytes: 0,
                runs: List::new(),
                subagents: Index::new(),
            }),
        }))
    }

    /// The messages, in order.
    #[must_use]
    pub fn messages(&self) -> Messages<'_> {
        Messages { inner: &self.0 }
    }

    /// The message with this id; the first where several have it (rule A10). Constant time, up to
    /// a logarithm.
    #[must_use]
    pub fn message(&self, id: impl AsRef<str>) -> Option<&Message> {
        let key = self.0.rest.index.get_str(id.as_ref())?;
        self.0.entry(*key).map(|entry| &entry.message)
    }

    /// Whether the message with this id is complete.
    #[must_use]
    pub fn message_status(&self, id: impl AsRef<str>) -> Option<ItemStatus> {
        let key = self.0.rest.index.get_str(id.as_ref())?;
        self.0.entry(*key).map(|entry| entry.status)
    }

    /// The tool call with this id. Constant time, up to a logarithm.
    #[must_use]
    pub fn tool_call(&self, id: impl AsRef<str>) -> Option<&ToolCall> {
        let place = self.0.rest.calls.get_str(id.as_ref())?;
        self.call_at(place)
    }

    /// Whether the tool call with this id is complete, with its arguments (rule A9).
    #[must_use]
    pub fn tool_call_status(&self, id: impl AsRef<str>) -> Option<ItemStatus> {
        let place = self.0.rest.calls.get_str(id.as_ref())?;
        self.call_at(place).map(|_| place.status)
    }

    /// The assistant message that holds the tool call with this id.
    #[must_use]
    pub fn tool_call_message(&self, id: impl AsRef<str>) -> Option<&Message> {
        let place = self.0.rest.calls.get_str(id.as_ref())?;
        self.call_at(place)?;
        self.0.entry(place.message).map(|entry| &entry.message)
    }

    fn call_at(&self, place: &CallPlace) -> Option<&ToolCall> {
        match &self.0.entry(place.message)?.message {
            Message::Assistant(message) => message.tool_calls.as_ref()?.get_key(place.call).map(AsRef::as_ref),
            _ => None,
        }
    }

    /// The shared state; `{}` until an input or event sets it (rule A6). It reads and compares as a
    /// [`serde_json::Value`] does; [`Document::to_value`] converts it to one.
    #[must_use]
    pub fn state(&self) -> &Document {
        &self.0.rest.state
    }

    /// The shared state, deserialized into a type of the application. Costs a copy of the state.
    ///
    /// # Errors
    /// If the state does not fit the type.
    pub fn state_as<T: serde::de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        self.state().read_as()
    }

    /// The runs of the stream, in order.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = &Run> {
        self.0.rest.runs.iter().map(AsRef::as_ref)
    }

    /// The latest run, active or ended.
    #[must_use]
    pub fn run(&self) -> Option<&Run> {
        self.0.rest.runs.last().map(AsRef::as_ref)
    }

    /// The invocation of a subagent with this id in the latest run. Constant time, up to a
    /// logarithm.
    #[must_use]
    pub fn subagent(&self, id: impl AsRef<str>) -> Option<&Subagent> {
        let place = self.0.rest.subagents.get_str(id.as_ref())?;
        self.run()?.subagents.get_key(*place).map(AsRef::as_ref)
    }

    /// The messages of a subagent invocation, or of the parent agent for `None`, in order.
    pub fn messages_of<'s>(&'s self, owner: Option<&'s SubagentRunId>) -> impl Iterator<Item = &'s Message> {
        self.messages().iter().filter(move |message| message.subagent_run_id() == owner)
    }

    /// The messages grouped by owner, the owners in the order of their first message.
    #[must_use]
    pub fn messages_by_owner(&self) -> Vec<(Option<&SubagentRunId>, Vec<&Message>)> {
        let mut places = std::collections::HashMap::new();
        let mut groups: Vec<(Option<&SubagentRunId>, Vec<&Message>)> = Vec::new();
        for message in self.messages() {
            let owner = message.subagent_run_id();
            let place = *places.entry(owner).or_insert(groups.len());
            match groups.get_mut(place) {
                Some((_, messages)) => messages.push(message),
                None => groups.push((owner, vec![message])),
            }
        }
        groups
    }

    /// The events that rebuild this conversation in another consumer, to be sent right after its
    /// `RUN_STARTED`: a `MESSAGES_SNAPSHOT` and a `STATE_SNAPSHOT`. So a server lets a viewer join
    /// late. What is open at this moment is not opened by them: for that, ask the pipeline
    /// ([`Pipeline::prelude`](crate::machine::Pipeline::prelude)).
    ///
    /// They carry all messages that share an id (rules A10, A12), but a consumer keeps the last.
    #[must_use]
    pub fn to_events(&self) -> [Event; 2] {
        let messages: Vec<Message> = self.messages().iter().cloned().collect();
        [MessagesSnapshotEvent::new(messages).into(), StateSnapshotEvent::new(self.state().clone()).into()]
    }

    /// Whether both are the same moment: one comparison of pointers.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Default for Snapshot {
    fn default() -> Self {
        Self::new(Object::default().into())
    }
}

impl PartialEq for Snapshot {
    fn eq(&self, other: &Self) -> bool {
        self.ptr_eq(other)
            || (self.state() == other.state()
                && self.messages().iter().eq(other.messages().iter())
                && self.runs().eq(other.runs()))
    }
}

/// The number of messages and of runs, and the outcome of the latest run; with `{:#?}`, the messages, the
/// state and the latest run.
impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_long = f.alternate();
        let mut debug = f.debug_struct("Snapshot");
        if is_long {
            debug.field("messages", &self.messages()).field("state", self.state()).field("run", &self.run());
        } else {
            debug.field("messages", &self.messages().len()).field("runs", &self.0.rest.runs.len());
            debug.field("run", &self.run().map(|run| run.outcome.as_str()));
        }
        debug.finish_non_exhaustive()
    }
}

/// The messages of a snapshot, in order. Serializes as a list in wire form.
#[derive(Clone, Copy)]
pub struct Messages<'s> {
    inner: &'s Inner,
}

impl<'s> Messages<'s> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.messages.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.messages.is_empty()
    }

    /// The message at an index. Costs a logarithm.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&'s Message> {
        let (key, entry) = self.inner.messages.nth(index)?;
        self.inner.resolve(key, entry).map(|entry| &entry.message)
    }

    /// The first message.
    #[must_use]
    pub fn first(&self) -> Option<&'s Message> {
        self.get(0)
    }

    /// The last message.
    #[must_use]
    pub fn last(&self) -> Option<&'s Message> {
        self.get(self.len().checked_sub(1)?)
    }

    /// One after the other.
    #[must_use]
    pub fn iter(&self) -> MessagesIter<'s> {
        MessagesIter { inner: self.inner, entries: self.inner.messages.iter_keys() }
    }
}

impl<'s> IntoIterator for Messages<'s> {
    type Item = &'s Message;
    type IntoIter = MessagesIter<'s>;

    fn into_iter(self) -> MessagesIter<'s> {
        self.iter()
    }
}

impl fmt::Debug for Messages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.len()))?;
        for message in *self {
            list.serialize_element(message)?;
        }
        list.end()
    }
}

/// An iterator over the messages of a snapshot.
pub struct MessagesIter<'s> {
    inner: &'s Inner,
    entries: tree::Entries<'s, Option<Arc<Entry>>>,
}

impl<'s> Iterator for MessagesIter<'s> {
    type Item = &'s Message;

    fn next(&mut self) -> Option<&'s Message> {
        let (key, entry) = self.entries.next()?;
        self.inner.resolve(key, entry).map(|entry| &entry.message)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }
}

impl DoubleEndedIterator for MessagesIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let (key, entry) = self.entries.next_back()?;
        self.inner.resolve(key, entry).map(|entry| &entry.message)
    }
}

impl ExactSizeIterator for MessagesIter<'_> {}

impl core::iter::FusedIterator for MessagesIter<'_> {}

impl fmt::Debug for MessagesIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessagesIter").field("left", &self.len()).finish()
    }
}

/// One step of a stream: an event or a warning, and the conversation as it stands after it.
#[derive(Clone)]
pub struct Update {
    pub(crate) item: Item,
    pub(crate) snapshot: Snapshot,
    pub(crate) change: Change,
}

/// What an event changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) messages: MessageChange,
    pub(crate) state: bool,
    pub(crate) run: bool,
}

/// Which messages changed: none, possibly all, or the one with this key. One word, as every update
/// has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageChange(u64);

impl MessageChange {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const MANY: Self = Self(u64::MAX);

    /// The message with this key, which is neither 0 nor the largest number.
    #[inline]
    pub(crate) const fn one(key: u64) -> Self {
        Self(key)
    }

    #[inline]
    pub(crate) fn key(self) -> Option<u64> {
        (self != Self::NONE && self != Self::MANY).then_some(self.0)
    }
}

impl Update {
    /// The event or warning.
    #[must_use]
    pub fn item(&self) -> &Item {
        &self.item
    }

    /// The event, unless this is a warning.
    #[must_use]
    pub fn event(&self) -> Option<&Event> {
        self.item.event()
    }

    /// The warning, unless this is an event.
    #[must_use]
    pub fn warning(&self) -> Option<&Warning> {
        self.item.warning()
    }

    /// The conversation after the event.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The event, unless this is a warning.
    #[must_use]
    pub fn into_event(self) -> Option<Event> {
        self.item.into_event()
    }

    /// The conversation after the event.
    #[must_use]
    pub fn into_snapshot(self) -> Snapshot {
        self.snapshot
    }

    /// The item and the snapshot.
    #[must_use]
    pub fn into_parts(self) -> (Item, Snapshot) {
        (self.item, self.snapshot)
    }

    /// The one message that the event changed, as it stands after it. `None` where it changed
    /// none, or several at once (see [`Update::changed_messages`]).
    #[must_use]
    pub fn message(&self) -> Option<&Message> {
        self.change.message_in(&self.snapshot)
    }

    /// The index of that message in [`Snapshot::messages`]. Costs a logarithm.
    #[must_use]
    pub fn message_index(&self) -> Option<usize> {
        self.change.index_in(&self.snapshot)
    }

    /// Whether the event changed messages: one, or several at once as `MESSAGES_SNAPSHOT` does.
    #[must_use]
    pub fn changed_messages(&self) -> bool {
        self.change.messages != MessageChange::NONE
    }

    /// Whether the event changed the state.
    #[must_use]
    pub fn changed_state(&self) -> bool {
        self.change.state
    }

    /// Whether the event changed the run: its outcome, or what it has open.
    #[must_use]
    pub fn changed_run(&self) -> bool {
        self.change.run
    }

    /// Whether the event changed anything of the snapshot.
    #[must_use]
    pub fn is_change(&self) -> bool {
        self.change != Change::default()
    }
}

/// One line; with `{:#?}`, the item and the snapshot in full.
impl fmt::Debug for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_long = f.alternate();
        let mut debug = f.debug_struct("Update");
        match (&self.item, self.effect()) {
            (item, _) if is_long => debug.field("item", item),
            (Item::Warning(warning), _) => debug.field("warning", &warning.rule),
            (Item::Event(indexed), None) => debug.field("event", &indexed.event.event_type()),
            (Item::Event(indexed), Some(effect)) => {
                debug.field("event", &indexed.event.event_type()).field("effect", &effect)
            }
        };
        debug.field("snapshot", &self.snapshot).finish()
    }
}
