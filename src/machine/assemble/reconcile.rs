//! Applies a `MESSAGES_SNAPSHOT` to the conversation (rules A2, A10, A11).

use std::collections::{BTreeMap, HashMap, HashSet};

use super::places::{Class, class_of};
use super::{Assembler, OpenMessage, Warnings, excerpt, size};
use crate::error::Error;
use crate::id::{Id, MessageId, ToolCallId};
use crate::message::Message;
use crate::rule::Rule;
use crate::shared::index::Index;
use crate::snapshot::{Change, ItemStatus, MessageChange};

/// The messages and calls that a snapshot restates or drops, by id.
#[derive(Default)]
struct Touched {
    messages: Vec<Id>,
    calls: Vec<Id>,
}

impl Touched {
    fn add(&mut self, message: &Message) {
        self.messages.push(message.id().id().clone());
        self.calls.extend(message.tool_calls().map(|call| call.id.id().clone()));
    }
}

/// The open items of one message that a snapshot drops.
struct Lost {
    seq: u64,
    what: String,
    others: usize,
}

impl Assembler {
    /// Reconciles the held messages with a `MESSAGES_SNAPSHOT` (rule A2). Costs the messages of the snapshot
    /// and those that it drops; all others keep their place without a look at them.
    ///
    /// # Errors
    /// If the activities of the snapshot take more than documents may.
    pub(super) fn reconcile(&mut self, snapshot: &[Message], warnings: &mut Warnings) -> Result<Change, Error> {
        let brought = |bytes: usize, message: &Message| bytes.saturating_add(message.document_bytes());
        // If it has none of a class, the held ones stay.
        let brought = snapshot.iter().fold(0, brought);
        self.check_room(self.snapshot.state().bytes(), brought, warnings.place.index)?;
        let wanted = last_copies(snapshot, warnings);
        let inner = self.inner();
        inner.settle_all();
        let moved = inner.messages.respread();
        self.rekey(&moved);

        let (mut restated, mut new) = (Vec::new(), Vec::new());
        for copy in &wanted {
            match self.held_before(copy) {
                Some(key) => restated.push((key, *copy)),
                None => new.push(*copy),
            }
        }
        let stay: HashSet<u64> = restated.iter().map(|(key, _)| *key).collect();
        let mut dropped = Vec::new();
        for class in [Class::Text, Class::Reasoning, Class::Activity] {
            if class == Class::Text || wanted.iter().any(|copy| class_of(copy) == class) {
                let mut keys = self.live.places.take(class);
                keys.retain(|key| !stay.contains(key) && self.message_at(*key).map(class_of) == Some(class));
                dropped.extend(keys);
            }
        }

        let mut changed = !dropped.is_empty() || !new.is_empty();
        let mut touched = Touched::default();
        for key in dropped {
            if let Some(entry) = self.inner().messages.remove(key).flatten() {
                self.live.places.remove(&entry.message, key);
                self.resize_activity(entry.message.document_bytes(), 0);
                self.live.bytes.remove(size::message(&entry.message));
                touched.add(&entry.message);
            }
        }
        for (key, copy) in &restated {
            touched.add(copy);
            self.live.places.add(class_of(copy), *key);
            let Some(entry) = self.entry_mut(*key) else { continue };
            // A restated message is complete, whatever the run that streamed it.
            let status = std::mem::replace(&mut entry.status, ItemStatus::Complete);
            if entry.message == **copy {
                changed |= status == ItemStatus::Abandoned;
                continue;
            }
            let before = std::mem::replace(&mut entry.message, (*copy).clone());
            self.live.places.replace(&before, copy, *key);
            self.resize_activity(before.document_bytes(), copy.document_bytes());
            self.live.bytes.resize(size::message(&before), size::message(copy));
            touched.add(&before);
            changed = true;
        }
        for id in &touched.messages {
            let first = self.live.places.first(id);
            let index = &self.snapshot.0.rest.index;
            let is_held = |key: &u64| self.message_at(*key).is_some_and(|message| message.id().id() == id);
            match (first, index.get(id)) {
                (Some(first), held) if held != Some(&first) => self.rest().index.insert(id.clone(), first),
                (None, Some(held)) if !is_held(held) => self.rest().index.remove(id),
                _ => {}
            }
        }
        // All calls are in restated or new messages: of those with one id, the first counts.
        restated.sort_unstable_by_key(|(key, _)| *key);
        self.rest().calls = Index::new();
        self.live.places.clear_calls();
        for (key, _) in restated {
            self.note_calls(key);
        }
        for copy in new {
            touched.add(copy);
            self.append(copy.clone(), ItemStatus::Complete);
        }
        self.live.last_result.clear();
        self.relocate(touched, warnings);
        Ok(Change { messages: if changed { MessageChange::MANY } else { MessageChange::NONE }, ..Change::default() })
    }

    /// Finds the open items again after a snapshot, and warns of those it dropped (A11).
    fn relocate(&mut self, touched: Touched, warnings: &mut Warnings) {
        let mut lost: BTreeMap<u64, Lost> = BTreeMap::new();
        let mut lose = |key: u64, seq: u64, what: &str, id: &Id| {
            let name = || format!("{what} {:?}", excerpt(id.as_str()));
            let lost = lost.entry(key).or_insert_with(|| Lost { seq, what: name(), others: 0 });
            if seq < lost.seq {
                (lost.seq, lost.what) = (seq, name());
            }
            lost.others += 1;
        };
        for id in touched.messages {
            let message = MessageId::from_id(id.clone());
            for is_text in [true, false] {
                let table = if is_text { &self.live.text } else { &self.live.reasoning };
                let Some(OpenMessage { target, seq, .. }) = table.get(&id).copied() else { continue };
                // An item without a message continues if the snapshot brings its message.
                let found = if is_text { self.held_text(&message) } else { self.held_reasoning(&message) };
                match (target, found.and_then(|key| self.entry_mut(key))) {
                    (_, Some(entry)) => entry.status = ItemStatus::Streaming,
                    (Some(key), None) => {
                        lose(key, seq, if is_text { "text message" } else { "reasoning message" }, &id);
                    }
                    (None, None) => {}
                }
                let table = if is_text { &mut self.live.text } else { &mut self.live.reasoning };
                if let Some(open) = table.get_mut(&id) {
                    open.target = found;
                }
            }
        }
        for id in touched.calls {
            let Some(open) = self.live.calls.get(&id).copied() else { continue };
            let call = ToolCallId::from_id(id.clone());
            let found = self.call_place(&call).map(|place| (place.message, place.call));
            if let (Some((key, _)), None) = (open.target, found) {
                lose(key, open.seq, "tool call", &id);
            }
            if let Some(open) = self.live.calls.get_mut(&id) {
                open.target = found;
            }
            self.set_call_status(&call, ItemStatus::Streaming);
        }
        let mut lost: Vec<Lost> = lost.into_values().collect();
        lost.sort_unstable_by_key(|lost| lost.seq);
        for Lost { what, others, .. } in lost {
            let more = if others > 1 { format!(" and {} more of one message", others - 1) } else { String::new() };
            warnings.add(
                Rule::A11,
                "/messages",
                format!("the snapshot drops the {what}{more}, which is streaming: what follows has nowhere to go"),
            );
        }
    }
}

/// The messages of a snapshot; of those with one id the last copy, at the place of the first (A10).
fn last_copies<'m>(snapshot: &'m [Message], warnings: &mut Warnings) -> Vec<&'m Message> {
    let mut wanted: Vec<&Message> = Vec::with_capacity(snapshot.len());
    let mut places: HashMap<&MessageId, usize> = HashMap::with_capacity(snapshot.len());
    for (at, message) in snapshot.iter().enumerate() {
        match places.get(message.id()).and_then(|place| wanted.get_mut(*place)) {
            Some(first) => {
                *first = message;
                let id = excerpt(message.id().as_str());
                warnings.add(
                    Rule::A10,
                    &format!("/messages/{at}/id"),
                    format!("{id:?} is in the snapshot before: the last copy counts"),
                );
            }
            None => {
                places.insert(message.id(), wanted.len());
                wanted.push(message);
            }
        }
    }
    wanted
}
