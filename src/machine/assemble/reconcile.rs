//! The whole conversation at once, by `MESSAGES_SNAPSHOT` (rules A10, A11).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Assembler, Class, OpenMessage, Warnings, class_of, excerpt, push};
use crate::error::Error;
use crate::id::{Id, MessageId, ToolCallId};
use crate::message::{AssistantMessage, Message, ToolCall};
use crate::rule::Rule;
use crate::shared::index::Index;
use crate::snapshot::{CallPlace, Change, Entry, Inner, ItemStatus, MessageChange};

impl Assembler {
    /// Reconciles what is held with a `MESSAGES_SNAPSHOT` (rule A2).
    ///
    /// # Errors
    /// Where the activities of the snapshot take more than documents may.
    pub(super) fn reconcile(&mut self, snapshot: &[Message], warnings: &mut Warnings) -> Result<Change, Error> {
        let brought = |bytes: usize, message: &Message| bytes.saturating_add(message.document_bytes());
        // Where it has none of them, those that are held stay.
        let brought = snapshot.iter().fold(0, brought);
        self.check_room(self.snapshot.state().bytes(), brought, warnings.place.index)?;
        if self.is_restated(snapshot) {
            return Ok(Change::default());
        }
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
        let has = |class| wanted.iter().any(|message| class_of(message) == class);
        let (has_activity, has_reasoning) = (has(Class::Activity), has(Class::Reasoning));

        let inner = Arc::make_mut(&mut self.snapshot.0);
        inner.settle_all();
        let old = std::mem::take(&mut inner.messages);
        // Where several held messages share an id, the copy takes the place of the one of its
        // class, else of the first.
        let mut chosen: HashMap<&MessageId, u64> = HashMap::with_capacity(places.len());
        // All of them: nothing is taken out of the list at this moment.
        let held = || old.iter_keys().filter_map(|(key, entry)| entry.as_ref().map(|entry| (key, entry)));
        for (key, entry) in held() {
            let Some((id, place)) = places.get_key_value(entry.message.id()) else { continue };
            let copy_class = wanted.get(*place).map(|copy| class_of(copy));
            let fits = copy_class == Some(class_of(&entry.message));
            match chosen.entry(*id) {
                std::collections::hash_map::Entry::Vacant(slot) => {
                    slot.insert(key);
                }
                std::collections::hash_map::Entry::Occupied(mut slot) => {
                    let before = old.get_key(*slot.get()).and_then(Option::as_ref);
                    if fits && before.map(|entry| class_of(&entry.message)) != copy_class {
                        slot.insert(key);
                    }
                }
            }
        }
        let mut placed: HashSet<&MessageId> = HashSet::with_capacity(places.len());
        for (key, entry) in held() {
            let id = entry.message.id();
            let copy = places.get(id).filter(|_| chosen.get(id) == Some(&key));
            if let Some(copy) = copy.and_then(|place| wanted.get(*place)) {
                // Restated, it is whole, whatever became of the run that streamed it.
                push(inner, (*copy).clone(), ItemStatus::Complete);
                placed.insert(copy.id());
                continue;
            }
            let stays = match class_of(&entry.message) {
                Class::Activity => !has_activity,
                Class::Reasoning => !has_reasoning,
                Class::Text => false,
            };
            if stays {
                inner.messages.push(Some(Arc::clone(entry)));
            }
        }
        for message in wanted {
            if !placed.contains(message.id()) {
                push(inner, message.clone(), ItemStatus::Complete);
            }
        }
        rebuild_indices(inner, |_, key| key, |_, place| place);
        self.relocate(warnings);
        Ok(Change { messages: MessageChange::MANY, ..Change::default() })
    }

    /// Whether a snapshot says of every message what is held, so that nothing changes. Costs what is
    /// compared.
    fn is_restated(&self, snapshot: &[Message]) -> bool {
        let inner = &self.snapshot.0;
        let mut copies = snapshot.iter().peekable();
        let has = |class| snapshot.iter().any(|message| class_of(message) == class);
        let (has_activity, has_reasoning) = (has(Class::Activity), has(Class::Reasoning));
        for (key, entry) in inner.messages.iter_keys() {
            let Some(Entry { message, status }) = inner.resolve(key, entry) else { return false };
            let stays = match class_of(message) {
                Class::Activity => !has_activity,
                Class::Reasoning => !has_reasoning,
                Class::Text => false,
            };
            let is_same = copies.next_if(|copy| *copy == message).is_some();
            // Restated, what a run left behind is whole; and only the first of an id is found by it.
            if (!is_same && !stays)
                || *status == ItemStatus::Abandoned
                || inner.rest.index.get(message.id().id()) != Some(&key)
            {
                return false;
            }
            let whole = |call: &ToolCall| {
                let place = inner.rest.calls.get(call.id.id());
                place.is_some_and(|place| place.message == key && place.status != ItemStatus::Abandoned)
            };
            if !message.tool_calls().all(whole) {
                return false;
            }
        }
        copies.next().is_none()
    }

    /// Finds the open items again behind a snapshot, and says which of them it dropped (A11).
    fn relocate(&mut self, warnings: &mut Warnings) {
        self.live.last_result.clear();
        self.live.twins.clear();
        let keys: Vec<u64> = self.snapshot.0.messages.iter_keys().map(|(key, _)| key).collect();
        for key in keys {
            self.remember_twin(key);
        }
        let mut lost: Vec<(u64, String)> = Vec::new();
        let mut find = |open: &mut OpenMessage, found: Option<u64>, what: &str, id: &Id| {
            if open.target.is_some() && found.is_none() {
                lost.push((open.seq, format!("{what} {:?}", excerpt(id.as_str()))));
            }
            // What had nowhere to go before has a place if the snapshot brings one.
            open.target = found;
        };
        let mut text = std::mem::take(&mut self.live.text);
        for (id, open) in text.iter_mut() {
            let found = self.held_text(&MessageId::from_id(id.clone()));
            find(open, found, "text message", id);
        }
        let mut reasoning = std::mem::take(&mut self.live.reasoning);
        for (id, open) in reasoning.iter_mut() {
            let found = self.held_reasoning(&MessageId::from_id(id.clone()));
            find(open, found, "reasoning message", id);
        }
        let mut calls = std::mem::take(&mut self.live.calls);
        for (id, open) in calls.iter_mut() {
            let call = ToolCallId::from_id(id.clone());
            let found = self.call_place(&call).map(|place| (place.message, place.call));
            if open.target.is_some() && found.is_none() {
                lost.push((open.seq, format!("tool call {:?}", excerpt(id.as_str()))));
            }
            open.target = found;
            self.set_call_status(&call, ItemStatus::Streaming);
        }
        for key in text.iter().chain(reasoning.iter()).filter_map(|(_, open)| open.target) {
            if let Some(entry) = self.entry_mut(key) {
                entry.status = ItemStatus::Streaming;
            }
        }
        self.live.text = text;
        self.live.reasoning = reasoning;
        self.live.calls = calls;
        lost.sort_unstable_by_key(|(seq, _)| *seq);
        for (_, what) in lost {
            warnings.add(
                Rule::A11,
                "/messages",
                format!("the snapshot drops the {what}, which is streaming: what follows has nowhere to go"),
            );
        }
    }
}

/// Builds the indices anew, each id at its first place, or at the one it had as `message` and `call`
/// say. Costs the conversation; only a snapshot or a relabelling needs it.
pub(super) fn rebuild_indices(
    inner: &mut Inner,
    message: impl Fn(&Id, u64) -> u64,
    call: impl Fn(&Id, CallPlace) -> CallPlace,
) {
    let (mut index, mut calls) = (Index::new(), Index::new());
    let mut activity_bytes = 0_usize;
    for (key, entry) in inner.messages.iter_keys() {
        let Some(entry) = inner.resolve(key, entry) else { continue };
        let id = entry.message.id().id();
        activity_bytes = activity_bytes.saturating_add(entry.message.document_bytes());
        index.insert_first(id, message(id, key));
        let Message::Assistant(AssistantMessage { tool_calls: Some(held), .. }) = &entry.message else { continue };
        for (at, held) in held.iter_keys() {
            let id = held.id.id();
            let place = CallPlace { message: key, call: at, status: ItemStatus::Complete };
            calls.insert_first(id, call(id, place));
        }
    }
    let rest = Arc::make_mut(&mut inner.rest);
    (rest.index, rest.calls, rest.activity_bytes) = (index, calls, activity_bytes);
}
