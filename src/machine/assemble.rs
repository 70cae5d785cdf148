//! Assembly: verified events in, the conversation as it stands behind each out (rules A1 to A12).

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::items::Place;
use super::open::OpenTable;
use super::{Cut, Machine};
use crate::error::{Error, SubjectKind};
use crate::event::{
    ActivityDeltaEvent, ActivitySnapshotEvent, Event, EventType, JsonPatch, Metadata, ReasoningEncryptedValueEvent,
    ReasoningEncryptedValueSubtype, RunErrorEvent, RunFinishedEvent, RunFinishedOutcome, RunStartedEvent,
    SubagentFinishedOutcome, SubagentFinishedSuccessOutcome, SubagentStartedEvent, TextMessageContentEvent,
    TextMessageRole, TextMessageStartEvent, ToolCallResultEvent, ToolCallStartEvent,
};
use crate::id::{Id, IdMap, MessageId, SubagentRunId, ToolCallId};
use crate::item::{Indexed, Item};
use crate::message::{
    ActivityMessage, AssistantMessage, Content, DeveloperMessage, FunctionCall, Message, ReasoningMessage,
    SystemMessage, ToolCall, ToolMessage, UserMessage,
};
use crate::rule::Rule;
use crate::snapshot::index::Index;
use crate::snapshot::run::{OpenItem, Run, RunOutcome, Subagent, SubagentStatus};
use crate::snapshot::{CallPlace, Change, Entry, Inner, ItemStatus, MessageChange, Rest, Snapshot, Text, Update};
use crate::warning::Warning;
use crate::wire::fast::TextContent;

/// Assembles the conversation from verified events.
///
/// In: items of the stages before, which must be verified: what comes out of order is ignored
/// here, not reported. Out, for each: an [`Update`] for every warning that it causes, then one for
/// the item itself, each with the [`Snapshot`] behind the event.
///
/// A delta costs its own length, whatever the length of the message and of the thread, and a
/// snapshot costs one pointer; a little more where the snapshot before is still held.
/// A patch costs its operations, and a copy of the document where it moves or copies or where the
/// snapshot before is still held; a `MESSAGES_SNAPSHOT` costs the conversation.
#[derive(Debug)]
pub struct Assembler {
    snapshot: Snapshot,
    live: Live,
    ready: VecDeque<Update>,
    events: u64,
}

/// What is scoped to the run, and what the messages alone do not tell.
#[derive(Debug, Default)]
struct Live {
    text: OpenTable<OpenMessage>,
    reasoning: OpenTable<OpenMessage>,
    calls: OpenTable<OpenCall>,
    brackets: HashMap<(SubjectKind, Id, Option<SubagentRunId>), u64>,
    /// The calls that the run started, in order, and those among them that were answered.
    started: Vec<ToolCallId>,
    started_set: IdMap<Id, ()>,
    answered: IdMap<Id, ()>,
    /// Messages that share their id with an earlier one (rules A10, A12).
    twins: HashMap<Twin, u64>,
    /// By assistant message: how far the tool messages behind it are known to reach, so that the
    /// next result is placed at once. Everything between the two is a tool message.
    last_result: BTreeMap<u64, u64>,
    /// The number of the next item to be opened.
    next_seq: u64,
    /// The message that grew last, and the one before it.
    last_grown: Option<u64>,
    state_is_set: bool,
}

impl Live {
    /// Adds to what the latest run has open, and gives the item a number.
    fn open_item(&mut self, rest: &mut Rest, item: OpenItem) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        if let Some(run) = latest_run(rest) {
            run.open.insert(seq, item);
        }
        seq
    }

    /// Forgets what is scoped to the run (rule R6). Done when one ends, so that no table outlives
    /// its run, and when one begins.
    fn forget_run(&mut self) {
        self.text.clear();
        self.reasoning.clear();
        self.calls.clear();
        self.brackets.clear();
        self.started.clear();
        self.started_set.clear();
        self.answered.clear();
    }
}

#[derive(Clone, Copy, Debug)]
struct OpenMessage {
    target: Option<u64>,
    seq: u64,
    track: Track,
}

/// How a message grew so far.
#[derive(Clone, Copy, Debug, Default)]
struct Track {
    /// How often it grew in turns with others, within an epoch.
    times: u32,
    epoch: u64,
    /// Where it was found among the warm ones.
    place: usize,
}

impl Track {
    /// To take a message out of the list and to put it back costs about as much as it saves in so
    /// many deltas.
    const WARM_AFTER: u32 = 4;

    /// Notes that it grows once more, and says whether that was often enough to take it out.
    fn is_worth_it(&mut self, epoch: u64) -> bool {
        if self.epoch != epoch {
            *self = Self { epoch, ..Self::default() };
        }
        self.times = self.times.saturating_add(1);
        self.times > Self::WARM_AFTER
    }
}

#[derive(Clone, Copy, Debug)]
struct OpenCall {
    target: Option<(u64, u64)>,
    seq: u64,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Twin {
    Text(Id),
    Reasoning(Id),
    Result(Id, Id),
}

/// The class of a message, by which ids are told apart (rule A12).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Text,
    Reasoning,
    Activity,
}

fn class_of(message: &Message) -> Class {
    match message {
        Message::Reasoning(_) => Class::Reasoning,
        Message::Activity(_) => Class::Activity,
        _ => Class::Text,
    }
}

/// Where warnings go, with the event that they are about.
struct Warnings {
    event: u64,
    event_type: EventType,
    list: Vec<Warning>,
}

impl Warnings {
    fn add(&mut self, rule: Rule, path: &str, message: String) {
        self.list.push(Warning::new(rule, self.event, self.event_type.as_str(), path.to_owned(), message));
    }
}

impl Default for Assembler {
    fn default() -> Self {
        Self::new()
    }
}

impl Assembler {
    /// An assembler of an empty conversation.
    #[must_use]
    pub fn new() -> Self {
        Self { snapshot: Snapshot::default(), live: Live::default(), ready: VecDeque::new(), events: 0 }
    }

    /// An assembler of a conversation that holds these messages, and this state where there is one
    /// (rule A6), from before the stream.
    #[must_use]
    pub fn with_history(messages: impl IntoIterator<Item = Message>, state: Option<Value>) -> Self {
        let mut assembler = Self::new();
        for message in messages {
            let key = append(assembler.inner(), message, ItemStatus::Complete);
            assembler.remember_twin(key);
        }
        if let Some(state) = state {
            assembler.rest().state = Arc::new(state);
            assembler.live.state_is_set = true;
        }
        assembler
    }

    /// The conversation as it stands behind everything that was pushed.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    fn inner(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.snapshot.0)
    }

    /// Applies an item and queues its updates.
    #[inline]
    pub(crate) fn push_item(&mut self, item: Item) {
        let Item::Event(indexed) = &item else {
            self.queue(item, Change::default());
            return;
        };
        let index = indexed.index().unwrap_or(self.events);
        self.events = index.saturating_add(1);
        let change = match &indexed.event {
            Event::TextMessageContent(event) if event.base.metadata.is_none() => {
                one_message(self.grow(&event.message_id, &event.delta))
            }
            event => {
                let mut warnings = Warnings { event: index, event_type: indexed.sent_as(), list: Vec::new() };
                let change = self.apply(event, &mut warnings);
                for warning in warnings.list {
                    self.queue(warning.into(), Change::default());
                }
                change
            }
        };
        self.queue(item, change);
    }

    #[inline]
    fn queue(&mut self, item: Item, change: Change) {
        self.ready.push_back(Update { item, snapshot: self.snapshot.clone(), change });
    }

    /// Applies the most common event and queues its update.
    #[inline(always)]
    pub(crate) fn push_text_content(&mut self, content: TextContent, place: Place) {
        self.events = place.index.saturating_add(1);
        let change = one_message(self.grow(&content.message_id, &content.delta));
        let indexed = Indexed::synthesized(content.into_event(), Some(place.index), Some(place.sent_as));
        self.queue(Item::Event(indexed), change);
    }

    /// A delta without metadata for an open text message; gives the key of the message that grew.
    #[inline]
    fn grow(&mut self, id: &MessageId, delta: &str) -> Option<u64> {
        if delta.is_empty() {
            return None;
        }
        let inner = Arc::make_mut(&mut self.snapshot.0);
        if let Some((key, entry)) = &mut inner.hot {
            // What has the status is what its id streams into.
            let is_open = entry.status == ItemStatus::Streaming;
            if is_open && entry.message.id() == id && class_of(&entry.message) == Class::Text {
                push_text(&mut entry.message, delta);
                return Some(*key);
            }
        }
        let OpenMessage { target: Some(key), track, .. } = self.live.text.get_mut(id.id())? else { return None };
        let entry = grown(inner, &mut self.live.last_grown, track, *key)?;
        push_text(&mut entry.message, delta);
        Some(*key)
    }

    #[cold]
    fn extend_text(&mut self, event: &TextMessageContentEvent) -> Change {
        let Self { snapshot, live, .. } = self;
        let open = live.text.get_mut(event.message_id.id());
        extend_message(snapshot, &mut live.last_grown, open, &event.delta, event.base.metadata.as_ref())
    }

    fn apply(&mut self, event: &Event, warnings: &mut Warnings) -> Change {
        match event {
            Event::TextMessageStart(event) => self.start_text(event, warnings),
            Event::TextMessageContent(event) => self.extend_text(event),
            Event::TextMessageEnd(event) => {
                let open = self.live.text.remove(event.message_id.id());
                self.close_message(open, event.base.metadata.as_ref())
            }
            Event::ReasoningMessageStart(event) => self.start_reasoning(
                &event.message_id,
                event.subagent_run_id.as_ref(),
                event.base.metadata.as_ref(),
                warnings,
            ),
            Event::ReasoningMessageContent(event) => {
                let Self { snapshot, live, .. } = self;
                let open = live.reasoning.get_mut(event.message_id.id());
                extend_message(snapshot, &mut live.last_grown, open, &event.delta, event.base.metadata.as_ref())
            }
            Event::ReasoningMessageEnd(event) => {
                let open = self.live.reasoning.remove(event.message_id.id());
                self.close_message(open, event.base.metadata.as_ref())
            }
            Event::ToolCallStart(event) => self.start_call(event, warnings.event),
            Event::ToolCallArgs(event) => {
                self.extend_call(&event.tool_call_id, &event.delta, event.base.metadata.as_ref())
            }
            Event::ToolCallEnd(event) => self.close_call(&event.tool_call_id, event.base.metadata.as_ref()),
            Event::ToolCallResult(event) => self.add_result(event, warnings),
            Event::StateSnapshot(event) => {
                self.live.state_is_set = true;
                self.rest().state = Arc::new(event.snapshot.clone());
                Change { state: true, ..Change::default() }
            }
            Event::StateDelta(event) => self.patch_state(&event.delta, warnings),
            Event::MessagesSnapshot(event) => self.reconcile(&event.messages, warnings),
            Event::ActivitySnapshot(event) => self.set_activity(event, warnings),
            Event::ActivityDelta(event) => self.patch_activity(event, warnings),
            Event::ReasoningEncryptedValue(event) => self.encrypt(event, warnings),
            Event::RunStarted(event) => self.start_run(event),
            Event::RunFinished(event) => self.finish_run(event),
            Event::RunError(event) => self.fail_run(event),
            Event::StepStarted(event) => self.open_bracket(
                SubjectKind::Step,
                Id::new(&event.step_name),
                event.subagent_run_id.as_ref(),
                warnings.event,
            ),
            Event::StepFinished(event) => {
                self.close_bracket(SubjectKind::Step, Id::new(&event.step_name), event.subagent_run_id.as_ref())
            }
            Event::ReasoningStart(event) => self.open_bracket(
                SubjectKind::ReasoningSpan,
                event.message_id.id().clone(),
                event.subagent_run_id.as_ref(),
                warnings.event,
            ),
            Event::ReasoningEnd(event) => {
                self.close_bracket(SubjectKind::ReasoningSpan, event.message_id.id().clone(), None)
            }
            Event::SubagentStarted(event) => self.start_subagent(event, warnings.event),
            Event::SubagentFinished(event) => {
                let outcome = event.outcome.clone();
                let outcome =
                    outcome.unwrap_or_else(|| SubagentFinishedOutcome::Success(SubagentFinishedSuccessOutcome::new()));
                let result = event.result.clone().map(Arc::new);
                self.end_subagent(&event.subagent_run_id, SubagentStatus::Finished(outcome), result)
            }
            Event::SubagentError(event) => {
                let status = SubagentStatus::Error { message: event.message.clone(), code: event.code.clone() };
                self.end_subagent(&event.subagent_run_id, status, None)
            }
            // Nothing of these is part of the conversation; chunks never come this far.
            Event::Raw(_)
            | Event::Custom(_)
            | Event::TextMessageChunk(_)
            | Event::ToolCallChunk(_)
            | Event::ReasoningMessageChunk(_) => Change::default(),
        }
    }

    fn rest(&mut self) -> &mut Rest {
        Arc::make_mut(&mut self.inner().rest)
    }

    fn run(&mut self) -> Option<&mut Run> {
        latest_run(self.rest())
    }

    // ---- open items -------------------------------------------------------------------------

    fn open_item(&mut self, kind: SubjectKind, id: &Id, owner: Option<&SubagentRunId>, since: u64) -> u64 {
        let Self { snapshot, live, .. } = self;
        let rest = Arc::make_mut(&mut Arc::make_mut(&mut snapshot.0).rest);
        live.open_item(rest, OpenItem { kind, id: id.clone(), owner: owner.cloned(), since })
    }

    fn close_item(&mut self, seq: u64) {
        if let Some(run) = self.run() {
            run.open.remove(seq);
        }
    }

    fn open_bracket(&mut self, kind: SubjectKind, id: Id, owner: Option<&SubagentRunId>, since: u64) -> Change {
        let seq = self.open_item(kind, &id, owner, since);
        let owner = if kind == SubjectKind::Step { owner.cloned() } else { None };
        self.live.brackets.insert((kind, id, owner), seq);
        Change { run: true, ..Change::default() }
    }

    fn close_bracket(&mut self, kind: SubjectKind, id: Id, owner: Option<&SubagentRunId>) -> Change {
        let Some(seq) = self.live.brackets.remove(&(kind, id, owner.cloned())) else { return Change::default() };
        self.close_item(seq);
        Change { run: true, ..Change::default() }
    }

    // ---- messages ---------------------------------------------------------------------------

    fn start_text(&mut self, event: &TextMessageStartEvent, warnings: &mut Warnings) -> Change {
        let id = &event.message_id;
        if let Some(key) = self.start_new_text(event, warnings.event) {
            return Change { messages: MessageChange::one(key), run: true, ..Change::default() };
        }
        let mut target = self.held_text(id);
        let mut created = false;
        if target.is_none() {
            match self.held(id).map(class_of) {
                Some(Class::Activity) => warnings.add(
                    Rule::A4,
                    "/messageId",
                    format!("{:?} is an activity message: the text has nowhere to go", excerpt(id.as_str())),
                ),
                Some(Class::Reasoning) => {
                    warnings.add(
                        Rule::A12,
                        "/messageId",
                        format!(
                            "{:?} is a reasoning message: the text becomes a message of its own",
                            excerpt(id.as_str())
                        ),
                    );
                    let key = append(self.inner(), new_text_message(event), ItemStatus::Streaming);
                    self.remember_twin(key);
                    (target, created) = (Some(key), true);
                }
                // An id that is held as text is a target, one that is not held is new.
                Some(Class::Text) | None => {}
            }
        }
        self.opened(
            SubjectKind::TextMessage,
            id,
            target,
            created,
            event.subagent_run_id.as_ref(),
            event.base.metadata.as_ref(),
            warnings.event,
        )
    }

    /// Opens the message at the end, where it is about to grow, unless one of its id is held.
    fn start_new_text(&mut self, event: &TextMessageStartEvent, since: u64) -> Option<u64> {
        let Self { snapshot, live, .. } = self;
        let (id, owner) = (event.message_id.id(), &event.subagent_run_id);
        let inner = Arc::make_mut(&mut snapshot.0);
        let key = inner.messages.next_key();
        let rest = Arc::make_mut(&mut inner.rest);
        if !rest.index.insert_first(id, key) {
            return None;
        }
        let item = OpenItem { kind: SubjectKind::TextMessage, id: id.clone(), owner: owner.clone(), since };
        let seq = live.open_item(rest, item);
        inner.cool();
        inner.messages.push_at(key, None);
        let (_, entry) =
            inner.hot.insert((key, Entry { message: new_text_message(event), status: ItemStatus::Streaming }));
        merge_metadata(entry.message.metadata_mut(), event.base.metadata.as_ref());
        live.text.insert(id.clone(), OpenMessage { target: Some(key), seq, track: Track::default() });
        live.last_grown = Some(key);
        Some(key)
    }

    fn start_reasoning(
        &mut self,
        id: &MessageId,
        owner: Option<&SubagentRunId>,
        metadata: Option<&Metadata>,
        warnings: &mut Warnings,
    ) -> Change {
        let new = || {
            let mut message = ReasoningMessage::new(id.clone(), "");
            message.subagent_run_id = owner.cloned();
            Message::Reasoning(message)
        };
        let mut target = self.held_reasoning(id);
        let mut created = false;
        if target.is_none() {
            match self.held(id).map(class_of) {
                Some(Class::Activity) => warnings.add(
                    Rule::A4,
                    "/messageId",
                    format!("{:?} is an activity message: the reasoning has nowhere to go", excerpt(id.as_str())),
                ),
                Some(Class::Text) => {
                    warnings.add(
                        Rule::A12,
                        "/messageId",
                        format!(
                            "{:?} is no reasoning message: the reasoning becomes one of its own",
                            excerpt(id.as_str())
                        ),
                    );
                    let key = append(self.inner(), new(), ItemStatus::Streaming);
                    self.remember_twin(key);
                    (target, created) = (Some(key), true);
                }
                Some(Class::Reasoning) | None => {
                    (target, created) = (Some(append(self.inner(), new(), ItemStatus::Streaming)), true);
                }
            }
        }
        self.opened(SubjectKind::ReasoningMessage, id, target, created, owner, metadata, warnings.event)
    }

    #[allow(clippy::too_many_arguments, reason = "what both kinds of message share when they open")]
    fn opened(
        &mut self,
        kind: SubjectKind,
        id: &MessageId,
        target: Option<u64>,
        created: bool,
        owner: Option<&SubagentRunId>,
        metadata: Option<&Metadata>,
        since: u64,
    ) -> Change {
        let seq = self.open_item(kind, id.id(), owner.or(self.owner_at(target)).cloned().as_ref(), since);
        let table = if kind == SubjectKind::TextMessage { &mut self.live.text } else { &mut self.live.reasoning };
        table.insert(id.id().clone(), OpenMessage { target, seq, track: Track::default() });
        let Some(key) = target else { return Change { run: true, ..Change::default() } };
        if created {
            self.live.last_grown = Some(key);
        }
        if !created || metadata.is_some() {
            if let Some(entry) = self.entry_mut(key) {
                entry.status = ItemStatus::Streaming;
                merge_metadata(entry.message.metadata_mut(), metadata);
            }
        }
        Change { messages: MessageChange::one(key), run: true, ..Change::default() }
    }

    fn close_message(&mut self, open: Option<OpenMessage>, metadata: Option<&Metadata>) -> Change {
        let Some(open) = open else { return Change::default() };
        let inner = self.inner();
        if let Some(run) = latest_run(Arc::make_mut(&mut inner.rest)) {
            run.open.remove(open.seq);
        }
        let Some(key) = open.target else { return Change { run: true, ..Change::default() } };
        if let Some(entry) = inner.entry_mut(key) {
            entry.status = ItemStatus::Complete;
            merge_metadata(entry.message.metadata_mut(), metadata);
        }
        inner.cool_one(key);
        Change { messages: MessageChange::one(key), run: true, ..Change::default() }
    }

    fn entry_mut(&mut self, key: u64) -> Option<&mut Entry> {
        self.inner().entry_mut(key)
    }

    /// Whose the message is; an untagged reopening does not change it (rules S5, O3, O4).
    fn owner_at(&self, key: Option<u64>) -> Option<&SubagentRunId> {
        self.snapshot.0.entry(key?)?.message.subagent_run_id()
    }

    /// Remembers a message whose id another one is found by, so that it is found by its kind all
    /// the same (rules A10, A12).
    fn remember_twin(&mut self, key: u64) {
        let inner = &self.snapshot.0;
        let Some(message) = inner.entry(key).map(|entry| &entry.message) else { return };
        let id = message.id().id();
        if inner.rest.index.get(id) == Some(&key) {
            return;
        }
        let twin = match message {
            Message::Tool(message) => Twin::Result(id.clone(), message.tool_call_id.id().clone()),
            Message::Reasoning(_) => Twin::Reasoning(id.clone()),
            Message::Activity(_) => return,
            Message::Developer(_) | Message::System(_) | Message::Assistant(_) | Message::User(_) => {
                Twin::Text(id.clone())
            }
        };
        self.live.twins.entry(twin).or_insert(key);
    }

    /// The first message with this id.
    fn held(&self, id: &MessageId) -> Option<&Message> {
        let inner = &self.snapshot.0;
        inner.entry(*inner.rest.index.get(id.id())?).map(|entry| &entry.message)
    }

    /// The message that text under this id belongs to.
    fn held_text(&self, id: &MessageId) -> Option<u64> {
        self.held_as(id, Class::Text).or_else(|| self.live.twins.get(&Twin::Text(id.id().clone())).copied())
    }

    /// The assistant message that this id names.
    fn held_assistant(&self, id: &MessageId) -> Option<u64> {
        let key = self.held_text(id)?;
        matches!(self.snapshot.0.entry(key)?.message, Message::Assistant(_)).then_some(key)
    }

    /// The message that reasoning under this id belongs to.
    fn held_reasoning(&self, id: &MessageId) -> Option<u64> {
        self.held_as(id, Class::Reasoning).or_else(|| self.live.twins.get(&Twin::Reasoning(id.id().clone())).copied())
    }

    fn held_as(&self, id: &MessageId, class: Class) -> Option<u64> {
        let inner = &self.snapshot.0;
        let key = *inner.rest.index.get(id.id())?;
        (class_of(&inner.entry(key)?.message) == class).then_some(key)
    }

    /// Text that streams without a place takes the first message that comes under its id (A4, A11).
    fn adopt(&mut self, id: &Id) {
        let Some(OpenMessage { target: None, .. }) = self.live.text.get(id) else { return };
        let Some(key) = self.held_text(&MessageId::from_id(id.clone())) else { return };
        if let Some(open) = self.live.text.get_mut(id) {
            open.target = Some(key);
        }
        if let Some(entry) = self.entry_mut(key) {
            entry.status = ItemStatus::Streaming;
        }
    }

    // ---- tool calls -------------------------------------------------------------------------

    fn start_call(&mut self, event: &ToolCallStartEvent, since: u64) -> Change {
        let id = &event.tool_call_id;
        if self.live.started_set.insert(id.id().clone(), ()).is_none() {
            self.live.started.push(id.clone());
        }
        let place = match self.call_place(id) {
            Some(place) => place,
            None => self.add_call(event),
        };
        let owner = event.subagent_run_id.as_ref().or(self.owner_at(Some(place.message))).cloned();
        let seq = self.open_item(SubjectKind::ToolCall, id.id(), owner.as_ref(), since);
        self.live.calls.insert(id.id().clone(), OpenCall { target: Some((place.message, place.call)), seq });
        self.set_call_status(id, ItemStatus::Streaming);
        if let Some(call) = self.call_mut(place.message, place.call) {
            merge_metadata(&mut call.metadata, event.base.metadata.as_ref());
        }
        Change { messages: MessageChange::one(place.message), run: true, ..Change::default() }
    }

    /// Puts a new call on its assistant message (rule A3).
    fn add_call(&mut self, event: &ToolCallStartEvent) -> CallPlace {
        let mut call =
            ToolCall::new(event.tool_call_id.clone(), FunctionCall::new(event.tool_call_name.clone(), Text::new()));
        call.metadata = None;
        let own = || MessageId::from_id(event.tool_call_id.id().clone());
        // An answer beside a thought of its id is what the parent names (A12).
        let held = event.parent_message_id.as_ref().and_then(|parent| self.held_assistant(parent));
        let id = match &event.parent_message_id {
            Some(parent) if held.is_some() || self.held(parent).is_none() => parent.clone(),
            _ => own(),
        };
        let inner = self.inner();
        let message = held.unwrap_or_else(|| {
            let mut message = AssistantMessage::new(id);
            message.subagent_run_id = event.subagent_run_id.clone();
            append(inner, message.into(), ItemStatus::Complete)
        });
        let mut key = 0;
        if let Some(entry) = inner.entry_mut(message) {
            if let Message::Assistant(message) = &mut entry.message {
                key = message.tool_calls.get_or_insert_default().push(Arc::new(call));
            }
        }
        let place = CallPlace { message, call: key, status: ItemStatus::Streaming };
        Arc::make_mut(&mut inner.rest).calls.insert(event.tool_call_id.id().clone(), place);
        if held.is_none() {
            let id = self.snapshot.0.entry(message).map(|entry| entry.message.id().id().clone());
            self.remember_twin(message);
            if let Some(id) = id {
                self.adopt(&id);
            }
        }
        place
    }

    /// Where a call is; the index may remember one that a snapshot or an activity has displaced.
    fn call_place(&self, id: &ToolCallId) -> Option<CallPlace> {
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

    fn call_mut(&mut self, message: u64, call: u64) -> Option<&mut ToolCall> {
        let inner = Arc::make_mut(&mut self.snapshot.0);
        // Its calls may take turns; the message does not.
        let entry = grown(inner, &mut self.live.last_grown, &mut Track::default(), message)?;
        match &mut entry.message {
            Message::Assistant(message) => message.tool_calls.as_mut()?.get_key_mut(call).map(Arc::make_mut),
            _ => None,
        }
    }

    fn set_call_status(&mut self, id: &ToolCallId, status: ItemStatus) {
        let held = self.snapshot.0.rest.calls.get(id.id());
        if held.is_some_and(|place| place.status != status) {
            if let Some(place) = self.rest().calls.get_mut(id.id()) {
                place.status = status;
            }
        }
    }

    fn extend_call(&mut self, id: &ToolCallId, delta: &str, metadata: Option<&Metadata>) -> Change {
        let Some((message, call)) = self.live.calls.get(id.id()).and_then(|open| open.target) else {
            return Change::default();
        };
        if delta.is_empty() && metadata.is_none() {
            return Change::default();
        }
        if let Some(call) = self.call_mut(message, call) {
            call.function.arguments.push_str(delta);
            merge_metadata(&mut call.metadata, metadata);
        }
        Change { messages: MessageChange::one(message), ..Change::default() }
    }

    fn close_call(&mut self, id: &ToolCallId, metadata: Option<&Metadata>) -> Change {
        let Some(open) = self.live.calls.remove(id.id()) else { return Change::default() };
        self.close_item(open.seq);
        let Some((message, call)) = open.target else { return Change { run: true, ..Change::default() } };
        self.set_call_status(id, ItemStatus::Complete);
        if metadata.is_some() {
            if let Some(call) = self.call_mut(message, call) {
                merge_metadata(&mut call.metadata, metadata);
            }
        }
        Change { messages: MessageChange::one(message), run: true, ..Change::default() }
    }

    /// A result is a message behind the one that holds its call (rules S9, A10).
    fn add_result(&mut self, event: &ToolCallResultEvent, warnings: &mut Warnings) -> Change {
        self.live.answered.insert(event.tool_call_id.id().clone(), ());
        let mut message = ToolMessage::new(event.message_id.clone(), event.content.clone(), event.tool_call_id.clone());
        message.subagent_run_id = event.subagent_run_id.clone();
        message.metadata = event.base.metadata.clone();
        let first = self.snapshot.0.rest.index.get(event.message_id.id()).copied();
        let same = match self.held(&event.message_id) {
            Some(Message::Tool(held)) if held.tool_call_id == event.tool_call_id => first,
            Some(_) => {
                let twin = Twin::Result(event.message_id.id().clone(), event.tool_call_id.id().clone());
                self.live.twins.get(&twin).copied()
            }
            None => None,
        };
        if let Some(key) = same {
            warnings.add(
                Rule::A10,
                "/messageId",
                format!(
                    "a second result {:?} for the same call replaces the first",
                    excerpt(event.message_id.as_str())
                ),
            );
            if let Some(entry) = self.entry_mut(key) {
                entry.message = message.into();
            }
            return Change { messages: MessageChange::one(key), ..Change::default() };
        }
        if first.is_some() {
            warnings.add(
                Rule::A10,
                "/messageId",
                format!(
                    "{:?} is the id of another message: the result is kept apart",
                    excerpt(event.message_id.as_str())
                ),
            );
        }
        let behind = self.call_place(&event.tool_call_id).map(|place| place.message);
        let key = match behind {
            Some(caller) => self.insert_result(caller, message),
            None => push(self.inner(), message.into(), ItemStatus::Complete),
        };
        self.rest().index.insert_first(event.message_id.id(), key);
        self.remember_twin(key);
        self.adopt(event.message_id.id());
        Change { messages: MessageChange::one(key), ..Change::default() }
    }

    fn insert_result(&mut self, caller: u64, message: ToolMessage) -> u64 {
        let start = self.live.last_result.get(&caller).copied().unwrap_or(caller);
        let inner = self.inner();
        let mut after = start;
        while let Some((key, _)) = inner.messages.next_after(after) {
            // By its key, for it may have been taken out of the list.
            if !inner.entry(key).is_some_and(|entry| matches!(entry.message, Message::Tool(_))) {
                break;
            }
            after = key;
        }
        let entry = Arc::new(Entry { message: message.into(), status: ItemStatus::Complete });
        let tight = inner.messages.next_after(after).is_some_and(|(next, _)| next - after <= 1);
        let before: Vec<u64> =
            if tight { inner.messages.iter_keys().map(|(key, _)| key).collect() } else { Vec::new() };
        let inserted = inner.messages.insert_after(after, Some(entry));
        let mut caller = caller;
        if inserted.relabelled {
            let now = inner.messages.iter_keys().map(|(key, _)| key).filter(|key| *key != inserted.key);
            let moved: HashMap<u64, u64> = before.into_iter().zip(now).collect();
            caller = moved.get(&caller).copied().unwrap_or(caller);
            self.rekey(&moved);
        }
        self.live.last_result.insert(caller, inserted.key);
        inserted.key
    }

    /// Follows the messages to new keys.
    fn rekey(&mut self, moved: &HashMap<u64, u64>) {
        let new = |key: u64| moved.get(&key).copied().unwrap_or(key);
        let live = &mut self.live;
        for (_, open) in live.text.iter_mut().chain(live.reasoning.iter_mut()) {
            open.target = open.target.map(new);
        }
        for (_, open) in live.calls.iter_mut() {
            open.target = open.target.map(|(message, call)| (new(message), call));
        }
        for key in live.twins.values_mut() {
            *key = new(*key);
        }
        live.last_grown = live.last_grown.map(new);
        let last_result = std::mem::take(&mut live.last_result);
        live.last_result = last_result.into_iter().map(|(caller, last)| (new(caller), new(last))).collect();
        let inner = Arc::make_mut(&mut self.snapshot.0);
        if let Some((key, _)) = &mut inner.hot {
            *key = new(*key);
        }
        inner.warm.rekey(new);
        // The same message as before is found by an id, whichever comes first now.
        let rest = Arc::make_mut(&mut inner.rest);
        let (index, calls) = (rest.index.clone(), rest.calls.clone());
        rebuild_indices(
            inner,
            |id, key| index.get(id).map_or(key, |key| new(*key)),
            |id, place| calls.get(id).map_or(place, |old| CallPlace { message: new(old.message), ..*old }),
        );
    }

    // ---- activity, state, encrypted values --------------------------------------------------

    fn set_activity(&mut self, event: &ActivitySnapshotEvent, warnings: &mut Warnings) -> Change {
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

    fn patch_activity(&mut self, event: &ActivityDeltaEvent, warnings: &mut Warnings) -> Change {
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
        match super::patch::apply_to_object(&event.patch, Arc::make_mut(&mut held.content)) {
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

    fn patch_state(&mut self, delta: &JsonPatch, warnings: &mut Warnings) -> Change {
        match super::patch::apply(delta, Arc::make_mut(&mut self.rest().state)) {
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

    fn encrypt(&mut self, event: &ReasoningEncryptedValueEvent, warnings: &mut Warnings) -> Change {
        let value: Arc<str> = event.encrypted_value.clone();
        let changed = match event.subtype {
            ReasoningEncryptedValueSubtype::ToolCall => {
                let id = ToolCallId::from_id(event.entity_id.id().clone());
                self.call_place(&id).and_then(|place| {
                    self.call_mut(place.message, place.call)?.encrypted_value = Some(value);
                    Some(place.message)
                })
            }
            ReasoningEncryptedValueSubtype::Message => {
                let target = self.held_text(&event.entity_id).or_else(|| self.held_reasoning(&event.entity_id));
                target.filter(|key| {
                    let slot = self.entry_mut(*key).and_then(|entry| entry.message.encrypted_value_mut());
                    slot.map(|slot| *slot = Some(value)).is_some()
                })
            }
        };
        match changed {
            Some(key) => Change { messages: MessageChange::one(key), ..Change::default() },
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

    // ---- the whole conversation -------------------------------------------------------------

    /// Reconciles what is held with a `MESSAGES_SNAPSHOT` (rule A2).
    fn reconcile(&mut self, snapshot: &[Message], warnings: &mut Warnings) -> Change {
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
        inner.cool_all();
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
        Change { messages: MessageChange::MANY, ..Change::default() }
    }

    /// Finds the open items again behind a snapshot, and says which of them it dropped (A11).
    fn relocate(&mut self, warnings: &mut Warnings) {
        self.live.last_grown = None;
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

    // ---- runs and subagents -----------------------------------------------------------------

    fn start_run(&mut self, event: &RunStartedEvent) -> Change {
        // In a stream that was verified, none is active.
        self.end_run(RunOutcome::Truncated);
        self.live.forget_run();
        let mut run = Run::new(Some(event.thread_id.clone()), Some(event.run_id.clone()));
        run.parent_run_id = event.parent_run_id.clone();
        run.protocol_version = event.protocol_version.clone();
        let mut change = Change { run: true, ..Change::default() };
        let inner = self.inner();
        let rest = Arc::make_mut(&mut inner.rest);
        rest.runs.push(Arc::new(run));
        rest.subagents = Index::new();
        let Some(input) = &event.input else { return change };
        for message in &input.messages {
            if inner.rest.index.get(message.id().id()).is_none() {
                append(inner, message.clone(), ItemStatus::Complete);
                change.messages = MessageChange::MANY;
            }
        }
        // A consumer that did not make the request learns the baseline of the state from its echo.
        if let (Some(state), false) = (&input.state, self.live.state_is_set) {
            self.rest().state = Arc::new(state.clone());
            self.live.state_is_set = true;
            change.state = true;
        }
        change
    }

    fn pending(&self) -> Arc<[ToolCallId]> {
        let unanswered = self.live.started.iter().filter(|id| !self.live.answered.contains_key(id.id()));
        unanswered.cloned().collect()
    }

    fn finish_run(&mut self, event: &RunFinishedEvent) -> Change {
        let pending = self.pending();
        let outcome = match &event.outcome {
            Some(RunFinishedOutcome::Interrupt(outcome)) => RunOutcome::Interrupt {
                interrupts: outcome.interrupts.as_slice().into(),
                pending_tool_call_ids: pending,
            },
            Some(RunFinishedOutcome::Cancelled(_)) => RunOutcome::Cancelled,
            Some(RunFinishedOutcome::Success(success)) => RunOutcome::Success {
                pending_tool_call_ids: match &success.pending_tool_call_ids {
                    Some(named) if !named.is_empty() => named.as_slice().into(),
                    _ => pending,
                },
            },
            None => RunOutcome::Success { pending_tool_call_ids: pending },
        };
        if let Some(run) = self.run() {
            run.outcome = outcome;
            run.result = event.result.clone().map(Arc::new);
            run.usage = event.usage.as_deref().map(Into::into);
        }
        self.abandon();
        Change { run: true, ..Change::default() }
    }

    fn fail_run(&mut self, event: &RunErrorEvent) -> Change {
        let ended = self.snapshot.run().is_none_or(|run| matches!(run.outcome, RunOutcome::Error { .. }));
        if ended {
            let rest = self.rest();
            rest.runs.push(Arc::new(Run::new(None, None)));
            rest.subagents = Index::new();
        }
        let usage = event.usage.as_deref().map(Into::into);
        let change = self.end_run(RunOutcome::Error { message: event.message.clone(), code: event.code.clone() });
        if let (Some(run), Some(usage)) = (self.run(), usage) {
            run.usage = Some(usage);
        }
        change
    }

    /// Leaves what is open as it is, and forgets what is scoped to the run.
    fn abandon(&mut self) {
        let messages: Vec<u64> =
            self.live.text.iter().chain(self.live.reasoning.iter()).filter_map(|(_, open)| open.target).collect();
        for key in messages {
            if let Some(entry) = self.entry_mut(key) {
                entry.status = ItemStatus::Abandoned;
            }
        }
        let calls: Vec<ToolCallId> = self.live.calls.iter().map(|(id, _)| ToolCallId::from_id(id.clone())).collect();
        for id in calls {
            self.set_call_status(&id, ItemStatus::Abandoned);
        }
        self.inner().cool_all();
        self.live.forget_run();
    }

    /// Ends the latest run out of turn; what it has open is abandoned (rule R5).
    pub(crate) fn end_run(&mut self, outcome: RunOutcome) -> Change {
        let late_failure = matches!(outcome, RunOutcome::Error { .. });
        if !self.snapshot.run().is_some_and(|run| run.is_running() || late_failure) {
            return Change::default();
        }
        self.abandon();
        if let Some(run) = self.run() {
            run.outcome = outcome;
            let running: Vec<u64> = run
                .subagents
                .iter_keys()
                .filter(|(_, subagent)| subagent.status == SubagentStatus::Running)
                .map(|(key, _)| key)
                .collect();
            for key in running {
                if let Some(subagent) = run.subagents.get_key_mut(key) {
                    Arc::make_mut(subagent).status = SubagentStatus::Abandoned;
                }
            }
        }
        Change { run: true, ..Change::default() }
    }

    fn start_subagent(&mut self, event: &SubagentStartedEvent, since: u64) -> Change {
        let parent = event.parent_subagent_run_id.as_ref();
        self.open_bracket(SubjectKind::Subagent, event.subagent_run_id.id().clone(), parent, since);
        let subagent = Subagent {
            subagent_run_id: event.subagent_run_id.clone(),
            name: event.name.clone(),
            description: event.description.clone(),
            parent_subagent_run_id: event.parent_subagent_run_id.clone(),
            parent_tool_call_id: event.parent_tool_call_id.clone(),
            parent_message_id: event.parent_message_id.clone(),
            status: SubagentStatus::Running,
            result: None,
        };
        if let Some(run) = self.run() {
            let key = run.subagents.push(Arc::new(subagent));
            self.rest().subagents.insert(event.subagent_run_id.id().clone(), key);
        }
        Change { run: true, ..Change::default() }
    }

    fn end_subagent(&mut self, id: &SubagentRunId, status: SubagentStatus, result: Option<Arc<Value>>) -> Change {
        self.close_bracket(SubjectKind::Subagent, id.id().clone(), None);
        let key = self.snapshot.0.rest.subagents.get(id.id()).copied();
        if let Some((run, key)) = self.run().zip(key) {
            if let Some(subagent) = run.subagents.get_key_mut(key) {
                let subagent = Arc::make_mut(subagent);
                subagent.status = status;
                subagent.result = result;
            }
        }
        Change { run: true, ..Change::default() }
    }
}

impl<I: Into<Item>> Machine<I> for Assembler {
    type Output = Update;

    fn push(&mut self, input: I) -> Result<(), Error> {
        self.push_item(input.into());
        Ok(())
    }

    fn pop(&mut self) -> Option<Update> {
        self.ready.pop_front()
    }

    /// Never fails; a run that is still active is truncated from then on (rule R8).
    fn finish(&mut self) -> Result<(), Error> {
        self.end_run(RunOutcome::Truncated);
        Ok(())
    }

    fn cut(&mut self, cut: Cut) {
        self.end_run(match cut {
            Cut::Truncated => RunOutcome::Truncated,
            Cut::Rejected => RunOutcome::Rejected,
        });
    }

    fn ready(&self) -> usize {
        self.ready.len()
    }
}

fn excerpt(text: &str) -> std::borrow::Cow<'_, str> {
    crate::wire::excerpt(text, 80)
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

/// The change of the message under this key, if there is one.
#[inline]
fn one_message(key: Option<u64>) -> Change {
    Change { messages: key.map_or(MessageChange::NONE, MessageChange::one), ..Change::default() }
}

/// Appends to the text of a message (rules S3, A4).
#[inline]
fn push_text(message: &mut Message, delta: &str) {
    match message {
        Message::Assistant(message) => message.content.get_or_insert_default().push_str(delta),
        Message::Reasoning(message) => message.content.push_str(delta),
        Message::User(message) => message.content.push_str(delta),
        Message::Tool(message) => message.content.push_str(delta),
        Message::System(message) => message.content.push_str(delta),
        Message::Developer(message) => message.content.push_str(delta),
        // Open text never targets an activity (rule A4).
        Message::Activity(_) => {}
    }
}

/// Extends an open message.
fn extend_message(
    snapshot: &mut Snapshot,
    last_grown: &mut Option<u64>,
    open: Option<&mut OpenMessage>,
    delta: &str,
    metadata: Option<&Metadata>,
) -> Change {
    let Some(OpenMessage { target: Some(key), track, .. }) = open else { return Change::default() };
    if delta.is_empty() && metadata.is_none() {
        return Change::default();
    }
    let inner = Arc::make_mut(&mut snapshot.0);
    let Some(entry) = grown(inner, last_grown, track, *key) else { return Change::default() };
    let message = &mut entry.message;
    if !delta.is_empty() {
        push_text(message, delta);
    }
    merge_metadata(message.metadata_mut(), metadata);
    Change { messages: MessageChange::one(*key), ..Change::default() }
}

/// Merges key by key (rule A1).
fn merge_metadata(held: &mut Option<Metadata>, new: Option<&Metadata>) {
    if let Some(new) = new {
        match held {
            Some(held) => held.merge(new),
            None => *held = Some(new.clone()),
        }
    }
}

/// Puts a message at the end and into the indices.
fn append(inner: &mut Inner, message: Message, status: ItemStatus) -> u64 {
    let id = message.id().id().clone();
    let calls: Vec<(Id, u64)> = match &message {
        Message::Assistant(AssistantMessage { tool_calls: Some(calls), .. }) => {
            calls.iter_keys().map(|(key, call)| (call.id.id().clone(), key)).collect()
        }
        _ => Vec::new(),
    };
    let key = push(inner, message, status);
    let rest = Arc::make_mut(&mut inner.rest);
    rest.index.insert_first(&id, key);
    for (id, call) in calls {
        rest.calls.insert_first(&id, CallPlace { message: key, call, status: ItemStatus::Complete });
    }
    key
}

fn latest_run(rest: &mut Rest) -> Option<&mut Run> {
    rest.runs.last_mut().map(Arc::make_mut)
}

fn push(inner: &mut Inner, message: Message, status: ItemStatus) -> u64 {
    inner.messages.push(Some(Arc::new(Entry { message, status })))
}

/// The entry of a message that grows. One that grows twice in a row leaves the list for a place of
/// its own, and those that take turns for places side by side, if no reader made a copy while they
/// grew a few times: for that copy they would have to go back.
#[inline]
fn grown<'i>(inner: &'i mut Inner, last_grown: &mut Option<u64>, track: &mut Track, key: u64) -> Option<&'i mut Entry> {
    let before = last_grown.replace(key);
    if inner.hot.as_ref().is_none_or(|(hot, _)| *hot != key) {
        if let Some(place) = inner.warm.find(key, track.place) {
            track.place = place;
            return inner.warm.at_mut(place);
        }
        if before == Some(key) {
            inner.cool();
            inner.hot = Some((key, inner.take_out(key)?));
        } else if track.is_worth_it(inner.epoch) && !inner.warm.is_full() {
            let entry = inner.take_out(key)?;
            track.place = inner.warm.insert(key, entry);
        }
    }
    inner.entry_mut(key)
}

/// Builds the indices anew, each id at its first place, or at the one it had as `message` and `call`
/// say. Costs the conversation; only a snapshot or a relabelling needs it.
fn rebuild_indices(inner: &mut Inner, message: impl Fn(&Id, u64) -> u64, call: impl Fn(&Id, CallPlace) -> CallPlace) {
    let (mut index, mut calls) = (Index::new(), Index::new());
    for (key, entry) in inner.messages.iter_keys() {
        let Some(entry) = inner.resolve(key, entry) else { continue };
        let id = entry.message.id().id();
        index.insert_first(id, message(id, key));
        let Message::Assistant(AssistantMessage { tool_calls: Some(held), .. }) = &entry.message else { continue };
        for (at, held) in held.iter_keys() {
            let id = held.id.id();
            let place = CallPlace { message: key, call: at, status: ItemStatus::Complete };
            calls.insert_first(id, call(id, place));
        }
    }
    let rest = Arc::make_mut(&mut inner.rest);
    (rest.index, rest.calls) = (index, calls);
}
