//! Documents that patches change: activities and the state (rules A4 to A7).

use std::sync::Arc;

use super::{Assembler, Warnings, append, excerpt, merge_metadata};
use crate::event::{ActivityDeltaEvent, ActivitySnapshotEvent, JsonPatch};
use crate::machine::patch;
use crate::message::{ActivityMessage, Message};
use crate::rule::Rule;
use crate::snapshot::{Change, ItemStatus, MessageChange};

impl Assembler {
    pub(super) fn set_activity(&mut self, event: &ActivitySnapshotEvent, warnings: &mut Warnings) -> Change {
        let mut message = ActivityMessage::new(
            event.message_id.clone(),
            event.activity_type.clone(),
            Arc::new(event.content.clone()),
        );
        message.subagent_run_id = event.subagent_run_id.clone();
        message.metadata = event.base.metadata.clone();
        let replace = event.replace.unwrap_or(true);
        let Some(key) = self.snapshot.0.rest.index.get(event.message_id.id()).copied() else {
            let key = append(self.inner(), message.into(), ItemStatus::Complete);
            return Change { messages: MessageChange::one(key), ..Change::default() };
        };
        let Some(entry) = self.entry_mut(key) else { return Change::default() };
        if let Message::Activity(held) = &mut entry.message {
            merge_metadata(&mut held.metadata, event.base.metadata.as_ref());
            if replace {
                message.metadata = held.metadata.take();
                *held = message;
            } else if event.base.metadata.is_none() {
                return Change::default();
            }
        } else if replace {
            let displaced = std::mem::replace(&mut entry.message, message.into());
            entry.status = ItemStatus::Complete;
            self.displace(key, &displaced, warnings);
        } else {
            return Change::default();
        }
        Change { messages: MessageChange::one(key), ..Change::default() }
    }

    /// An activity took the place of a message: what streams into it has nowhere to go (A4, A11).
    fn displace(&mut self, key: u64, displaced: &Message, warnings: &mut Warnings) {
        let live = &mut self.live;
        let id = displaced.id().id();
        for open in [live.text.get_mut(id), live.reasoning.get_mut(id)].into_iter().flatten() {
            if open.target == Some(key) {
                open.target = None;
                let id = excerpt(id.as_str());
                let message = format!("the activity takes the place of {id:?}, which is streaming");
                warnings.add(Rule::A4, "/messageId", message);
            }
        }
        for call in displaced.tool_calls() {
            let Some(open) = live.calls.get_mut(call.id.id()) else { continue };
            if open.target.is_some_and(|(message, _)| message == key) {
                open.target = None;
                let id = excerpt(call.id.as_str());
                let message = format!("the activity takes the place of the message of the open tool call {id:?}");
                warnings.add(Rule::A4, "/messageId", message);
            }
        }
        live.last_result.remove(&key);
        if let Message::Tool(_) = displaced {
            // The tool messages behind their caller reach no further now than to the one before.
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
        let key = self.snapshot.0.rest.index.get(event.message_id.id()).copied();
        let Some((key, Message::Activity(_))) = key.zip(self.held(&event.message_id)) else {
            let found = if key.is_some() { "is no activity message" } else { "is not held" };
            warnings.add(Rule::A5, "/messageId", format!("skipped a delta: {id:?} {found}"));
            return Change::default();
        };
        let Some(entry) = self.entry_mut(key) else { return Change::default() };
        let Message::Activity(held) = &mut entry.message else { return Change::default() };
        merge_metadata(&mut held.metadata, event.base.metadata.as_ref());
        match patch::apply_to_object(&event.patch, Arc::make_mut(&mut held.content)) {
            Ok(()) => held.activity_type = event.activity_type.clone(),
            Err(error) => {
                warnings.add(Rule::A5, "/patch", format!("kept activity {id:?} as it was: {error}"));
                if event.base.metadata.is_none() {
                    return Change::default();
                }
            }
        }
        Change { messages: MessageChange::one(key), ..Change::default() }
    }

    pub(super) fn patch_state(&mut self, delta: &JsonPatch, warnings: &mut Warnings) -> Change {
        match patch::apply(delta, Arc::make_mut(&mut self.rest().state)) {
            Ok(()) => {
                self.live.state_is_set = true;
                Change { state: true, ..Change::default() }
            }
            Err(error) => {
                warnings.add(Rule::A6, "/delta", format!("kept the state as it was: {error}"));
                Change::default()
            }
        }
    }
}
