//! Tool calls and their results (rules A3, A9, A10).

use std::sync::Arc;

use super::places::Kind;
use super::size;
use super::{Assembler, Live, Made, OpenCall, Warnings, excerpt, merge_metadata, one_message};
use crate::error::SubjectKind;
use crate::event::{Metadata, ToolCallResultEvent, ToolCallStartEvent};
use crate::id::{MessageId, ToolCallId};
use crate::message::{AssistantMessage, FunctionCall, Message, ToolCall, ToolMessage};
use crate::rule::Rule;
use crate::shared::list::Inserted;
use crate::snapshot::{CallPlace, Change, Entry, Inner, ItemStatus, MessageChange, Text};

impl Assembler {
    pub(super) fn start_call(&mut self, event: &ToolCallStartEvent, since: u64) -> Change {
        let id = &event.tool_call_id;
        let place = match self.call_place(id) {
            Some(place) => place,
            None => self.add_call(event),
        };
        let owner = event.subagent_run_id.as_ref().or(self.owner_at(Some(place.message))).cloned();
        let seq = self.open_item(SubjectKind::ToolCall, id.id(), owner.as_ref(), since);
        self.made(id).started.get_or_insert(seq);
        self.live.calls.insert(id.id().clone(), OpenCall { target: Some((place.message, place.call)), seq });
        self.set_call_status(id, ItemStatus::Streaming);
        self.merge_in_call(place.message, place.call, event.base.metadata.as_ref());
        Change { messages: MessageChange::one(place.message), run: true, ..Change::default() }
    }

    /// The call in the tally of the run (rule R9).
    fn made(&mut self, id: &ToolCallId) -> &mut Made {
        let Live { made, bytes, .. } = &mut *self.live;
        made.entry(id.id().clone()).or_insert_with_key(|id| {
            bytes.add(size::made(id));
            Made::default()
        })
    }

    fn merge_in_call(&mut self, message: u64, call: u64, metadata: Option<&Metadata>) {
        let Self { snapshot, live, .. } = self;
        if let Some(call) = call_in(Arc::make_mut(&mut snapshot.0), message, call) {
            merge_metadata(&mut call.metadata, metadata, &mut live.bytes);
        }
    }

    /// Puts a new call on its assistant message (`Rule::A3`).
    fn add_call(&mut self, event: &ToolCallStartEvent) -> CallPlace {
        let mut call =
            ToolCall::new(event.tool_call_id.clone(), FunctionCall::new(event.tool_call_name.clone(), Text::new()));
        call.metadata = None;
        self.live.bytes.add(size::call(&call));
        let own = || MessageId::from_id(event.tool_call_id.id().clone());
        // If a text and a reasoning message share the id, the parent is the text message (A12).
        let held = event.parent_message_id.as_ref().and_then(|parent| self.held_assistant(parent));
        let id = match &event.parent_message_id {
            Some(parent) if held.is_some() || self.held(parent).is_none() => parent.clone(),
            _ => own(),
        };
        let message = held.unwrap_or_else(|| {
            let mut message = AssistantMessage::new(id.clone());
            message.subagent_run_id = event.subagent_run_id.clone();
            self.append(message.into(), ItemStatus::Complete)
        });
        let inner = self.inner();
        let mut key = 0;
        if let Some(entry) = inner.entry_mut(message) {
            if let Message::Assistant(message) = &mut entry.message {
                key = message.tool_calls.get_or_insert_default().push(Arc::new(call));
            }
        }
        let place = CallPlace { message, call: key, status: ItemStatus::Streaming };
        Arc::make_mut(&mut inner.rest).calls.insert(event.tool_call_id.id().clone(), place);
        if held.is_none() {
            self.adopt(id.id());
        }
        place
    }

    /// Where a call is; the index may still have one that a snapshot or an activity has displaced.
    pub(super) fn call_place(&self, id: &ToolCallId) -> Option<CallPlace> {
        let inner = &self.snapshot.0;
        let place = *inner.rest.calls.get(id.id())?;
        match &inner.entry(place.message)?.message {
            Message::Assistant(message) => {
                let call = message.tool_calls.as_ref()?.get_key(place.call)?;
                (call.id == *id).then_some(place)
            }
            _ => None,
        }
    }

    pub(super) fn call_mut(&mut self, message: u64, call: u64) -> Option<&mut ToolCall> {
        call_in(self.inner(), message, call)
    }

    pub(super) fn set_call_status(&mut self, id: &ToolCallId, status: ItemStatus) {
        let held = self.snapshot.0.rest.calls.get(id.id());
        if held.is_some_and(|place| place.status != status) {
            if let Some(place) = self.rest().calls.get_mut(id.id()) {
                place.status = status;
            }
        }
    }

    pub(super) fn extend_call(&mut self, id: &ToolCallId, delta: &str, metadata: Option<&Metadata>) -> Change {
        let Some((message, call)) = self.live.calls.get(id.id()).and_then(|open| open.target) else {
            return Change::default();
        };
        if delta.is_empty() && metadata.is_none() {
            return Change::default();
        }
        let Self { snapshot, live, .. } = self;
        let changed = call_in(Arc::make_mut(&mut snapshot.0), message, call).is_some_and(|call| {
            call.function.arguments.push_str(delta);
            live.bytes.add(delta.len());
            merge_metadata(&mut call.metadata, metadata, &mut live.bytes) || !delta.is_empty()
        });
        one_message(changed.then_some(message))
    }

    pub(super) fn close_call(&mut self, id: &ToolCallId, metadata: Option<&Metadata>) -> Change {
        let Some(open) = self.live.calls.remove(id.id()) else { return Change::default() };
        self.close_item(open.seq);
        let Some((message, call)) = open.target else { return Change { run: true, ..Change::default() } };
        self.set_call_status(id, ItemStatus::Complete);
        if metadata.is_some() {
            self.merge_in_call(message, call, metadata);
        }
        self.inner().settle(message);
        Change { messages: MessageChange::one(message), run: true, ..Change::default() }
    }

    /// Adds a result as a message after the one that holds its call (rules S9, A10).
    pub(super) fn add_result(&mut self, event: &ToolCallResultEvent, warnings: &mut Warnings) -> Change {
        self.made(&event.tool_call_id).answered = true;
        let mut message = ToolMessage::new(event.message_id.clone(), event.content.clone(), event.tool_call_id.clone());
        message.subagent_run_id = event.subagent_run_id.clone();
        message.metadata = event.base.metadata.clone();
        let same = self.held_as(&event.message_id, Kind::Result(event.tool_call_id.id().clone()));
        if let Some(key) = same {
            warnings.add(
                Rule::A10,
                "/messageId",
                format!(
                    "a second result {:?} for the same call replaces the first",
                    excerpt(event.message_id.as_str())
                ),
            );
            let message = Message::from(message);
            let inner = Arc::make_mut(&mut self.snapshot.0);
            let changed = inner.entry_mut(key).is_some_and(|entry| {
                let differs = entry.message != message;
                self.live.bytes.resize(size::message(&entry.message), size::message(&message));
                entry.message = message;
                differs
            });
            return one_message(changed.then_some(key));
        }
        if self.held(&event.message_id).is_some() {
            warnings.add(
                Rule::A10,
                "/messageId",
                format!(
                    "{:?} is the id of another message: the result is kept apart",
                    excerpt(event.message_id.as_str())
                ),
            );
        }
        let caller = self.call_place(&event.tool_call_id).map(|place| place.message);
        let key = match caller {
            Some(caller) => self.insert_result(caller, message),
            None => self.append(message.into(), ItemStatus::Complete),
        };
        self.adopt(event.message_id.id());
        Change { messages: MessageChange::one(key), ..Change::default() }
    }

    fn insert_result(&mut self, mut caller: u64, message: ToolMessage) -> u64 {
        let inner = Arc::make_mut(&mut self.snapshot.0);
        let mut after = self.live.last_result.get(&caller).copied().unwrap_or(caller);
        while let Some((key, _)) = inner.messages.next_after(after) {
            // By its key, as it may have been removed from the list.
            if !inner.entry(key).is_some_and(|entry| matches!(entry.message, Message::Tool(_))) {
                break;
            }
            after = key;
        }
        let entry = Arc::new(Entry { message: message.into(), status: ItemStatus::Complete });
        self.live.bytes.add(size::message(&entry.message));
        let Inserted { key, moved } = inner.messages.insert_after(after, Some(entry));
        if !moved.is_empty() {
            self.rekey(&moved);
            caller = moved.now(caller);
        }
        self.live.last_result.insert(caller, key);
        self.note(key);
        key
    }
}

fn call_in(inner: &mut Inner, message: u64, call: u64) -> Option<&mut ToolCall> {
    match &mut inner.grow(message, &mut 0)?.message {
        Message::Assistant(message) => message.tool_calls.as_mut()?.get_key_mut(call).map(Arc::make_mut),
        _ => None,
    }
}
