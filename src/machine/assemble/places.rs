//! Finds the messages held under an id, by kind (rules A10, A12).
//!
//! A message is found by its key in the list. The snapshot has an index from ids to the first message of
//! each; the tables here serve assembly alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Assembler, OpenMessage, size};
use crate::id::{Id, MessageId};
use crate::message::{Message, ToolCall};
use crate::shared::list::{List, Moved};
use crate::snapshot::{CallPlace, Entry, ItemStatus};

/// The class of a message: equal ids of different classes are distinct (rule A12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Text,
    Reasoning,
    Activity,
}

pub(super) fn class_of(message: &Message) -> Class {
    match message {
        Message::Reasoning(_) => Class::Reasoning,
        Message::Activity(_) => Class::Activity,
        _ => Class::Text,
    }
}

/// The kinds of messages that a look-up by id can ask for; the first two are of the class of text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Text,
    /// The result of this call.
    Result(Id),
    Reasoning,
    Activity,
}

fn kind_of(message: &Message) -> Kind {
    match message {
        Message::Tool(message) => Kind::Result(message.tool_call_id.id().clone()),
        Message::Reasoning(_) => Kind::Reasoning,
        Message::Activity(_) => Kind::Activity,
        Message::Developer(_) | Message::System(_) | Message::Assistant(_) | Message::User(_) => Kind::Text,
    }
}

#[derive(Debug, Default)]
pub(super) struct Places {
    /// All messages by class, as a snapshot drops some classes and leaves others alone (rule A2). In no
    /// order, and with outdated and repeated keys: to search for those would cost more than to skip them
    /// once.
    by_class: [Vec<u64>; 3],
    /// The messages that share their id with another.
    shared: BTreeSet<(Id, Kind, u64)>,
    /// The tool calls that share their id with one before them: the message, and the call in it.
    repeated_calls: BTreeSet<(Id, u64, u64)>,
}

impl Places {
    pub(super) const EMPTY: Self =
        Self { by_class: [const { Vec::new() }; 3], shared: BTreeSet::new(), repeated_calls: BTreeSet::new() };

    #[inline]
    pub(super) fn add(&mut self, class: Class, key: u64) {
        if let Some(keys) = self.by_class.get_mut(class as usize) {
            keys.push(key);
        }
    }

    /// Takes all messages of a class, to be added again if they stay; see `by_class`.
    pub(super) fn take(&mut self, class: Class) -> Vec<u64> {
        self.by_class.get_mut(class as usize).map(std::mem::take).unwrap_or_default()
    }

    /// Forgets that a message shares its id, and says whether it did.
    pub(super) fn remove(&mut self, message: &Message, key: u64) -> bool {
        !self.shared.is_empty() && self.shared.remove(&(message.id().id().clone(), kind_of(message), key))
    }

    /// Notes that a message became another.
    pub(super) fn replace(&mut self, before: &Message, now: &Message, key: u64) {
        if self.remove(before, key) {
            self.shared.insert((now.id().id().clone(), kind_of(now), key));
        }
    }

    /// Forgets all calls, to be noted again.
    pub(super) fn clear_calls(&mut self) {
        self.repeated_calls.clear();
    }

    /// Takes the next call that has this id.
    fn take_call(&mut self, id: &Id) -> Option<CallPlace> {
        let range = (id.clone(), 0, 0)..=(id.clone(), u64::MAX, u64::MAX);
        let next = self.repeated_calls.range(range).next()?.clone();
        self.repeated_calls.remove(&next);
        Some(CallPlace { message: next.1, call: next.2, status: ItemStatus::Complete })
    }

    /// The first of those that share this id and are of this kind.
    fn of_kind(&self, id: &Id, kind: Kind) -> Option<u64> {
        if self.shared.is_empty() {
            return None;
        }
        let range = (id.clone(), kind.clone(), 0)..=(id.clone(), kind, u64::MAX);
        self.shared.range(range).next().map(|(.., key)| *key)
    }

    /// The first of those that share this id and are of this class. Costs their number for text.
    fn first_of(&self, id: &Id, class: Class) -> Option<u64> {
        match class {
            Class::Text if self.shared.is_empty() => None,
            Class::Text => {
                let range = (id.clone(), Kind::Text, 0)..(id.clone(), Kind::Reasoning, 0);
                self.shared.range(range).map(|(.., key)| *key).min()
            }
            Class::Reasoning => self.of_kind(id, Kind::Reasoning),
            Class::Activity => self.of_kind(id, Kind::Activity),
        }
    }

    /// The first of those that share this id.
    pub(super) fn first(&self, id: &Id) -> Option<u64> {
        [Class::Text, Class::Reasoning, Class::Activity].into_iter().filter_map(|class| self.first_of(id, class)).min()
    }
}

impl Assembler {
    pub(super) fn message_at(&self, key: u64) -> Option<&Message> {
        self.snapshot.0.entry(key).map(|entry| &entry.message)
    }

    /// Appends a message.
    pub(super) fn append(&mut self, message: Message, status: ItemStatus) -> u64 {
        self.resize_activity(0, message.document_bytes());
        self.live.bytes.add(size::message(&message));
        let key = self.inner().messages.push(Some(Arc::new(Entry { message, status })));
        self.note(key);
        self.note_calls(key);
        key
    }

    /// Notes a message that was added to the list.
    pub(super) fn note(&mut self, key: u64) {
        let Some(message) = self.message_at(key) else { return };
        let (id, class, kind) = (message.id().id().clone(), class_of(message), kind_of(message));
        self.live.places.add(class, key);
        let index = &mut self.rest().index;
        if index.insert_first(&id, key) {
            return;
        }
        let Some(first) = index.get(&id).copied() else { return };
        if key < first {
            index.insert(id.clone(), key);
        }
        if let Some(of_first) = self.message_at(first).map(kind_of) {
            self.live.places.shared.insert((id.clone(), of_first, first));
        }
        self.live.places.shared.insert((id, kind, key));
    }

    /// Notes the tool calls of a message; of those with one id, the first counts.
    pub(super) fn note_calls(&mut self, key: u64) {
        let Some(calls) = self.calls_at(key) else { return };
        let index = &mut self.rest().calls;
        let mut repeated = Vec::new();
        for (call, held) in calls.iter_keys() {
            let id = held.id.id();
            if !index.insert_first(id, CallPlace { message: key, call, status: ItemStatus::Complete }) {
                repeated.push((id.clone(), key, call));
            }
        }
        self.live.places.repeated_calls.extend(repeated);
    }

    fn calls_at(&self, key: u64) -> Option<List<Arc<ToolCall>>> {
        match self.message_at(key)? {
            Message::Assistant(message) => message.tool_calls.clone(),
            _ => None,
        }
    }

    /// Forgets the calls of a message that is no longer held: the next of their id count instead.
    pub(super) fn forget_calls(&mut self, key: u64, calls: &List<Arc<ToolCall>>) {
        let places = &mut self.live.places;
        if !places.repeated_calls.is_empty() {
            for (call, held) in calls.iter_keys() {
                places.repeated_calls.remove(&(held.id.id().clone(), key, call));
            }
        }
        for held in calls {
            let id = held.id.id();
            if self.snapshot.0.rest.calls.get(id).is_none_or(|place| place.message != key) {
                continue;
            }
            let next = self.live.places.take_call(id);
            let index = &mut self.rest().calls;
            match next {
                Some(next) => index.insert(id.clone(), next),
                None => index.remove(id),
            }
        }
    }

    /// The first message with this id.
    pub(super) fn held(&self, id: &MessageId) -> Option<&Message> {
        self.message_at(*self.snapshot.0.rest.index.get(id.id())?)
    }

    /// The first message with this id that is of this kind.
    pub(super) fn held_as(&self, id: &MessageId, kind: Kind) -> Option<u64> {
        let first = *self.snapshot.0.rest.index.get(id.id())?;
        if kind_of(self.message_at(first)?) == kind { Some(first) } else { self.live.places.of_kind(id.id(), kind) }
    }

    /// The message that text under this id belongs to: a result only if it comes first and no other has
    /// text.
    pub(super) fn held_text(&self, id: &MessageId) -> Option<u64> {
        let first = *self.snapshot.0.rest.index.get(id.id())?;
        match self.message_at(first)? {
            Message::Tool(_) => self.live.places.of_kind(id.id(), Kind::Text).or(Some(first)),
            _ => self.held_as(id, Kind::Text),
        }
    }

    /// The assistant message that this id names.
    pub(super) fn held_assistant(&self, id: &MessageId) -> Option<u64> {
        self.held_text(id).filter(|key| matches!(self.message_at(*key), Some(Message::Assistant(_))))
    }

    /// The message that reasoning under this id belongs to.
    pub(super) fn held_reasoning(&self, id: &MessageId) -> Option<u64> {
        self.held_as(id, Kind::Reasoning)
    }

    /// The message that a copy replaces: the first of its class with its id, else the first with its id.
    pub(super) fn held_before(&self, copy: &Message) -> Option<u64> {
        let (id, class) = (copy.id().id(), class_of(copy));
        let first = *self.snapshot.0.rest.index.get(id)?;
        if class_of(self.message_at(first)?) == class {
            return Some(first);
        }
        self.live.places.first_of(id, class).or(Some(first))
    }

    /// Text that is not assembled continues in the first message that comes under its id (A4, A11).
    pub(super) fn adopt(&mut self, id: &Id) {
        let Some(OpenMessage { target: None, .. }) = self.live.text.get(id) else { return };
        let Some(key) = self.held_text(&MessageId::from_id(id.clone())) else { return };
        if let Some(open) = self.live.text.get_mut(id) {
            open.target = Some(key);
        }
        if let Some(entry) = self.entry_mut(key) {
            entry.status = ItemStatus::Streaming;
        }
    }

    /// Follows messages to new keys. Costs each that moved, and each of its calls.
    pub(super) fn rekey(&mut self, moved: &Moved) {
        let Some((least, greatest)) = moved.ends() else { return };
        let Self { snapshot, live, .. } = self;
        let (inner, live) = (Arc::make_mut(&mut snapshot.0), &mut **live);
        inner.rekey(moved);
        let mut ids = BTreeSet::new();
        let mut calls = BTreeSet::new();
        let mut kinds = Vec::new();
        let mut repeated = Vec::new();
        for (old, new) in moved.iter() {
            let Some(message) = inner.entry(new).map(|entry| &entry.message) else { continue };
            let is_shared = live.places.remove(message, old);
            kinds.push((class_of(message), is_shared.then(|| (message.id().id().clone(), kind_of(message))), new));
            ids.insert(message.id().id().clone());
            calls.extend(message.tool_calls().map(|call| call.id.id().clone()));
            let own = match message {
                Message::Assistant(message) if !live.places.repeated_calls.is_empty() => message.tool_calls.as_ref(),
                _ => None,
            };
            for (call, held) in own.into_iter().flat_map(List::iter_keys) {
                let id = held.id.id();
                if live.places.repeated_calls.remove(&(id.clone(), old, call)) {
                    repeated.push((id.clone(), new, call));
                }
            }
        }
        live.places.repeated_calls.extend(repeated);
        for (class, shared, new) in kinds {
            live.places.add(class, new);
            live.places.shared.extend(shared.map(|(id, kind)| (id, kind, new)));
        }
        let rest = Arc::make_mut(&mut inner.rest);
        for id in &ids {
            if let Some(key) = rest.index.get_mut(id) {
                *key = moved.now(*key);
            }
            for open in [live.text.get_mut(id), live.reasoning.get_mut(id)].into_iter().flatten() {
                open.target = open.target.map(|key| moved.now(key));
            }
        }
        for id in &calls {
            if let Some(place) = rest.calls.get_mut(id) {
                place.message = moved.now(place.message);
            }
            if let Some((message, _)) = live.calls.get_mut(id).and_then(|open| open.target.as_mut()) {
                *message = moved.now(*message);
            }
        }
        let before = live.last_result.range(..least).next_back();
        let results: Vec<(u64, u64)> = before
            .into_iter()
            .chain(live.last_result.range(least..=greatest))
            .map(|(key, last)| (*key, *last))
            .collect();
        for (caller, _) in &results {
            live.last_result.remove(caller);
        }
        live.last_result.extend(results.iter().map(|(caller, last)| (moved.now(*caller), moved.now(*last))));
    }
}
