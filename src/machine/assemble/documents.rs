//! Assembly of the documents that patches change: activities and the state (rules A4 to A6).

use std::sync::Arc;

use super::places::{Class, Kind};
use super::size;
use super::{Assembler, Warnings, excerpt, merge_metadata, one_message};
use crate::error::{Error, Limit, LimitExceeded};
use crate::event::{ActivityDeltaEvent, ActivitySnapshotEvent, JsonPatch};
use crate::machine::patch::{self, Room};
use crate::message::{ActivityMessage, AssistantMessage, Message};
use crate::rule::Rule;
use crate::shared::Document;
use crate::snapshot::{Change, ItemStatus, Rest};

impl Assembler {
    /// Checks that the state and all activities may take this much.
    ///
    /// # Errors
    /// If that is beyond the limit, and more than they take now.
    pub(super) fn check_room(&self, state: usize, activities: usize, event: u64) -> Result<(), Error> {
        let max = self.limits.max_document_bytes;
        let total = state.saturating_add(activities);
        if total > max && total > self.document_bytes() {
            return Err(LimitExceeded::new(event, Limit::DocumentBytes, max).into());
        }
        Ok(())
    }

    fn document_bytes(&self) -> usize {
        let rest = &self.snapshot.0.rest;
        rest.state.bytes().saturating_add(rest.activity_bytes)
    }

    /// The bounds of a patch on a document that takes this much now.
    fn room(&self, held: usize) -> Room {
        let max = self.limits.max_document_bytes;
        let others = self.document_bytes().saturating_sub(held);
        Room {
            bytes: max.saturating_sub(others),
            depth: self.limits.member_depth(),
            max_bytes: max,
            operations: self.limits.max_patch_operations,
        }
    }

    pub(super) fn set_state(&mut self, state: &Document, event: u64) -> Result<Change, Error> {
        self.check_room(state.bytes(), self.snapshot.0.rest.activity_bytes, event)?;
        self.live.state_is_set = true;
        let changed = self.snapshot.state() != state;
        if changed {
            self.rest().state = state.clone();
        }
        Ok(Change { state: changed, ..Change::default() })
    }

    /// Notes the new size of the content of an activity.
    pub(super) fn resize_activity(&mut self, before: usize, after: usize) {
        if before != after {
            let rest = self.rest();
            rest.activity_bytes = rest.activity_bytes.saturating_sub(before).saturating_add(after);
        }
    }

    pub(super) fn set_activity(
        &mut self,
        event: &ActivitySnapshotEvent,
        warnings: &mut Warnings,
    ) -> Result<Change, Error> {
        let replace = event.replace.unwrap_or(true);
        let first = self.snapshot.0.rest.index.get(event.message_id.id()).copied();
        let held = self.held_as(&event.message_id, Kind::Activity).or(first);
        let held_bytes =
            held.and_then(|key| self.snapshot.0.entry(key)).map_or(0, |entry| entry.message.document_bytes());
        if replace || held.is_none() {
            let Rest { state, activity_bytes, .. } = &*self.snapshot.0.rest;
            let activities = activity_bytes.saturating_sub(held_bytes).saturating_add(event.content.bytes());
            self.check_room(state.bytes(), activities, warnings.place.index)?;
        }
        let mut message =
            ActivityMessage::new(event.message_id.clone(), event.activity_type.clone(), event.content.clone());
        message.subagent_run_id = event.subagent_run_id.clone();
        message.metadata = event.base.metadata.clone();
        let Some(key) = held else {
            let key = self.append(message.into(), ItemStatus::Complete);
            return Ok(one_message(Some(key)));
        };
        let inner = Arc::make_mut(&mut self.snapshot.0);
        let Some(entry) = inner.entry_mut(key) else { return Ok(Change::default()) };
        let mut changed = false;
        if let Message::Activity(held) = &mut entry.message {
            changed = merge_metadata(&mut held.metadata, event.base.metadata.as_ref(), &mut self.live.bytes);
            if replace {
                message.metadata = held.metadata.take();
                changed |= held.content != message.content
                    || held.activity_type != message.activity_type
                    || held.subagent_run_id != message.subagent_run_id;
                self.live.bytes.resize(size::activity(held), size::activity(&message));
                *held = message;
                self.resize_activity(held_bytes, event.content.bytes());
            }
        } else if replace {
            changed = true;
            let message = Message::from(message);
            let displaced = std::mem::replace(&mut entry.message, message.clone());
            entry.status = ItemStatus::Complete;
            self.live.bytes.resize(size::message(&displaced), size::message(&message));
            self.live.places.replace(&displaced, &message, key);
            self.live.places.add(Class::Activity, key);
            self.displace(key, &displaced, warnings);
            self.resize_activity(0, event.content.bytes());
        }
        Ok(one_message(changed.then_some(key)))
    }

    /// An activity took the place of a message: text for that is no longer assembled (A4, A11).
    fn displace(&mut self, key: u64, displaced: &Message, warnings: &mut Warnings) {
        let live = &mut *self.live;
        let id = displaced.id().id();
        let mut lost = 0;
        for open in [live.text.get_mut(id), live.reasoning.get_mut(id)].into_iter().flatten() {
            lost += usize::from(open.target.take_if(|target| *target == key).is_some());
        }
        if let Message::Assistant(AssistantMessage { tool_calls: Some(calls), .. }) = displaced {
            self.forget_calls(key, calls);
            for call in calls {
                let next = self.call_place(&call.id).map(|place| (place.message, place.call));
                let Some(open) = self.live.calls.get_mut(call.id.id()) else { continue };
                if open.target.is_some_and(|(message, _)| message == key) {
                    open.target = next;
                    lost += 1;
                    self.set_call_status(&call.id, ItemStatus::Streaming);
                }
            }
        }
        if lost > 0 {
            let id = excerpt(id.as_str());
            let message = format!("the activity takes the place of {id:?}, into which {lost} open items stream");
            warnings.add(Rule::A4, "/messageId", message);
        }
        let live = &mut *self.live;
        live.last_result.remove(&key);
        if let Message::Tool(_) = displaced {
            // The tool messages of the caller now end before this place.
            if let Some((caller, last)) = live.last_result.range_mut(..key).next_back() {
                if *last >= key {
                    let messages = &self.snapshot.0.messages;
                    let before = messages.rank(key).and_then(|rank| messages.nth(rank.checked_sub(1)?));
                    *last = before.map_or(*caller, |(before, _)| before);
                }
            }
        }
        self.adopt(id);
    }

    pub(super) fn patch_activity(&mut self, event: &ActivityDeltaEvent, warnings: &mut Warnings) -> Change {
        let id = excerpt(event.message_id.as_str());
        let Some(key) = self.held_as(&event.message_id, Kind::Activity) else {
            let found = if self.held(&event.message_id).is_some() { "is no activity message" } else { "is not held" };
            warnings.add(Rule::A5, "/messageId", format!("skipped a delta: {id:?} {found}"));
            return Change::default();
        };
        let Some(entry) = self.snapshot.0.entry(key) else { return Change::default() };
        let Message::Activity(held) = &entry.message else { return Change::default() };
        let before = held.content.bytes();
        let patched = patch::apply_to_object(&event.patch, &held.content, self.room(before));
        let inner = Arc::make_mut(&mut self.snapshot.0);
        let Some(Message::Activity(held)) = inner.entry_mut(key).map(|entry| &mut entry.message) else {
            return Change::default();
        };
        let mut changed = merge_metadata(&mut held.metadata, event.base.metadata.as_ref(), &mut self.live.bytes);
        match patched {
            Ok(content) => {
                changed |= content.is_some() || held.activity_type != event.activity_type;
                self.live.bytes.resize(held.activity_type.len(), event.activity_type.len());
                held.activity_type = event.activity_type.clone();
                if let Some(content) = content {
                    let after = content.bytes();
                    held.content = content;
                    self.resize_activity(before, after);
                }
            }
            Err(error) => warnings.add(Rule::A5, "/patch", format!("kept activity {id:?} as it was: {error}")),
        }
        one_message(changed.then_some(key))
    }

    pub(super) fn patch_state(&mut self, delta: &JsonPatch, warnings: &mut Warnings) -> Change {
        let held = self.snapshot.state();
        match patch::apply(delta, held, self.room(held.bytes())) {
            Ok(patched) => {
                self.live.state_is_set = true;
                let changed = patched.is_some();
                if let Some(state) = patched {
                    self.rest().state = state;
                }
                Change { state: changed, ..Change::default() }
            }
            Err(error) => {
                warnings.add(Rule::A6, "/delta", format!("kept the state as it was: {error}"));
                Change::default()
            }
        }
    }
}
