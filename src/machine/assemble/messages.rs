//! Assembly of text and reasoning messages: they open, grow and close (rules S3, S5, S6, A1, A4, A7, A12).

use std::sync::Arc;

use super::{
    Assembler, Class, Count, Live, OpenMessage, Warnings, class_of, excerpt, merge_metadata, one_message, push_text,
    size,
};
use crate::error::SubjectKind;
use crate::event::{
    Metadata, ReasoningEncryptedValueEvent, ReasoningEncryptedValueSubtype, ReasoningMessageContentEvent,
    ReasoningMessageStartEvent, TextMessageContentEvent, TextMessageRole, TextMessageStartEvent,
};
use crate::id::{MessageId, SubagentRunId, ToolCallId};
use crate::machine::streamed::Streamed;
use crate::message::{
    AssistantMessage, Content, DeveloperMessage, Message, ReasoningMessage, SystemMessage, UserMessage,
};
use crate::rule::Rule;
use crate::snapshot::run::OpenItem;
use crate::snapshot::{Change, Entry, ItemStatus, MessageChange, Snapshot, Text};

impl Assembler {
    pub(super) fn start_text(&mut self, event: &TextMessageStartEvent, warnings: &mut Warnings) -> Change {
        if let Some(key) = self.start_new_text(event, warnings.place.index) {
            return Change { messages: MessageChange::one(key), run: true, ..Change::default() };
        }
        let start = Start {
            kind: Streamed::Text,
            id: &event.message_id,
            owner: event.subagent_run_id.as_ref(),
            metadata: event.base.metadata.as_ref(),
        };
        self.start(start, || new_text_message(event), warnings)
    }

    /// Opens a new message at the end, about to grow, unless one of its id is held.
    fn start_new_text(&mut self, event: &TextMessageStartEvent, since: u64) -> Option<u64> {
        let Self { snapshot, live, .. } = self;
        let (id, owner) = (event.message_id.id(), &event.subagent_run_id);
        let inner = Arc::make_mut(&mut snapshot.0);
        let key = inner.messages.next_key();
        let rest = Arc::make_mut(&mut inner.rest);
        if !rest.index.insert_first(id, key) {
            return None;
        }
        live.places.add(Class::Text, key);
        let item = OpenItem { kind: SubjectKind::TextMessage, id: id.clone(), owner: owner.clone(), since };
        let seq = live.open_item(rest, item);
        let mut message = new_text_message(event);
        *message.metadata_mut() = event.base.metadata.clone();
        live.bytes.add(size::message(&message));
        inner.push_growing(key, Entry { message, status: ItemStatus::Streaming });
        live.text.insert(id.clone(), OpenMessage { target: Some(key), seq, hint: 0 });
        Some(key)
    }

    pub(super) fn start_reasoning(&mut self, event: &ReasoningMessageStartEvent, warnings: &mut Warnings) -> Change {
        let start = Start {
            kind: Streamed::Reasoning,
            id: &event.message_id,
            owner: event.subagent_run_id.as_ref(),
            metadata: event.base.metadata.as_ref(),
        };
        let new = || {
            let mut message = ReasoningMessage::new(event.message_id.clone(), "");
            message.subagent_run_id = event.subagent_run_id.clone();
            message.into()
        };
        self.start(start, new, warnings)
    }

    /// Opens the held message of this kind and id, or a new one.
    fn start(&mut self, start: Start<'_>, new: impl FnOnce() -> Message, warnings: &mut Warnings) -> Change {
        let Start { kind, id, owner, metadata } = start;
        let is_text = kind == Streamed::Text;
        let held = if is_text { self.held_text(id) } else { self.held_reasoning(id) };
        let created = match (held, self.held(id).map(class_of)) {
            (Some(_), _) => None,
            (None, Some(Class::Activity)) => {
                let what = if is_text { "text" } else { "reasoning" };
                let message =
                    format!("{:?} is an activity message: the {what} has nowhere to go", excerpt(id.as_str()));
                warnings.add(Rule::A4, "/messageId", message);
                None
            }
            (None, other) => {
                if other.is_some() {
                    let becomes = if is_text {
                        "is a reasoning message: the text becomes a message of its own"
                    } else {
                        "is no reasoning message: the reasoning becomes one of its own"
                    };
                    warnings.add(Rule::A12, "/messageId", format!("{:?} {becomes}", excerpt(id.as_str())));
                }
                Some(self.append(new(), ItemStatus::Streaming))
            }
        };
        let target = held.or(created);
        let seq = self.open_item(
            kind.subject(),
            id.id(),
            owner.or(self.owner_at(target)).cloned().as_ref(),
            warnings.place.index,
        );
        let table = if is_text { &mut self.live.text } else { &mut self.live.reasoning };
        table.insert(id.id().clone(), OpenMessage { target, seq, hint: 0 });
        let Some(key) = target else { return Change { run: true, ..Change::default() } };
        if created.is_none() || metadata.is_some() {
            let Self { snapshot, live, .. } = self;
            if let Some(entry) = Arc::make_mut(&mut snapshot.0).entry_mut(key) {
                entry.status = ItemStatus::Streaming;
                merge_metadata(entry.message.metadata_mut(), metadata, &mut live.bytes);
            }
        }
        Change { messages: MessageChange::one(key), run: true, ..Change::default() }
    }

    #[cold]
    pub(super) fn extend_text(&mut self, event: &TextMessageContentEvent) -> Change {
        let Live { text, bytes, .. } = &mut *self.live;
        let open = text.get_mut(event.message_id.id());
        extend_message(&mut self.snapshot, open, &event.delta, event.base.metadata.as_ref(), bytes)
    }

    pub(super) fn extend_reasoning(&mut self, event: &ReasoningMessageContentEvent) -> Change {
        let Live { reasoning, bytes, .. } = &mut *self.live;
        let open = reasoning.get_mut(event.message_id.id());
        extend_message(&mut self.snapshot, open, &event.delta, event.base.metadata.as_ref(), bytes)
    }

    pub(super) fn close_message(&mut self, open: Option<OpenMessage>, metadata: Option<&Metadata>) -> Change {
        let Some(open) = open else { return Change::default() };
        self.close_item(open.seq);
        let inner = Arc::make_mut(&mut self.snapshot.0);
        let Some(key) = open.target else { return Change { run: true, ..Change::default() } };
        if let Some(entry) = inner.entry_mut(key) {
            entry.status = ItemStatus::Complete;
            merge_metadata(entry.message.metadata_mut(), metadata, &mut self.live.bytes);
        }
        inner.settle(key);
        Change { messages: MessageChange::one(key), run: true, ..Change::default() }
    }

    pub(super) fn encrypt(&mut self, event: &ReasoningEncryptedValueEvent, warnings: &mut Warnings) -> Change {
        let (mut differs, mut before) = (false, 0);
        let mut store = |slot: &mut Option<Arc<str>>| {
            differs = slot.as_deref() != Some(&*event.encrypted_value);
            before = size::text(slot.as_ref());
            *slot = Some(event.encrypted_value.clone());
        };
        let found = match event.subtype {
            ReasoningEncryptedValueSubtype::ToolCall => {
                let id = ToolCallId::from_id(event.entity_id.id().clone());
                self.call_place(&id).and_then(|place| {
                    store(&mut self.call_mut(place.message, place.call)?.encrypted_value);
                    Some(place.message)
                })
            }
            ReasoningEncryptedValueSubtype::Message => {
                let target = self.held_text(&event.entity_id).or_else(|| self.held_reasoning(&event.entity_id));
                target.filter(|key| {
                    let slot = self.entry_mut(*key).and_then(|entry| entry.message.encrypted_value_mut());
                    slot.map(&mut store).is_some()
                })
            }
        };
        match found {
            Some(key) => {
                self.live.bytes.resize(before, event.encrypted_value.len());
                one_message(differs.then_some(key))
            }
            None => {
                let id = excerpt(event.entity_id.as_str());
                warnings.add(
                    Rule::A7,
                    "/entityId",
                    format!("dropped an encrypted value: no {} {id:?} is held", event.subtype),
                );
                Change::default()
            }
        }
    }
}

/// The fields that the STARTs of text and of reasoning share.
struct Start<'e> {
    kind: Streamed,
    id: &'e MessageId,
    owner: Option<&'e SubagentRunId>,
    metadata: Option<&'e Metadata>,
}

fn new_text_message(event: &TextMessageStartEvent) -> Message {
    let id = event.message_id.clone();
    let name: Option<Arc<str>> = event.name.clone();
    let subagent_run_id = event.subagent_run_id.clone();
    match event.role_or_default() {
        TextMessageRole::Assistant => Message::Assistant(AssistantMessage {
            content: Some(Text::new()),
            name,
            subagent_run_id,
            ..AssistantMessage::new(id)
        }),
        TextMessageRole::User => {
            Message::User(UserMessage { name, subagent_run_id, ..UserMessage::new(id, Content::Text(Text::new())) })
        }
        TextMessageRole::System => {
            Message::System(SystemMessage { name, subagent_run_id, ..SystemMessage::new(id, Text::new()) })
        }
        TextMessageRole::Developer => {
            Message::Developer(DeveloperMessage { name, subagent_run_id, ..DeveloperMessage::new(id, Text::new()) })
        }
    }
}

/// Extends an open message.
fn extend_message(
    snapshot: &mut Snapshot,
    open: Option<&mut OpenMessage>,
    delta: &str,
    metadata: Option<&Metadata>,
    bytes: &mut Count,
) -> Change {
    let Some(OpenMessage { target: Some(key), hint, .. }) = open else { return Change::default() };
    if delta.is_empty() && metadata.is_none() {
        return Change::default();
    }
    let inner = Arc::make_mut(&mut snapshot.0);
    let Some(entry) = inner.grow(*key, hint) else { return Change::default() };
    let message = &mut entry.message;
    if !delta.is_empty() {
        push_text(message, delta);
        bytes.add(delta.len());
    }
    let changed = merge_metadata(message.metadata_mut(), metadata, bytes) || !delta.is_empty();
    one_message(changed.then_some(*key))
}
