//! Assembly: verified events in, the conversation after each of them out (rules A1 to A12).

use core::fmt;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::lazy::{Empty, Lazy};
use super::sink::Sink;
use super::{Cut, Machine, Push};
use crate::error::{Error, Limit, LimitExceeded, SubjectKind};
use crate::event::fast::TextContent;
use crate::event::{Event, Metadata, SubagentFinishedOutcome, SubagentSuccessOutcome};
use crate::id::{Id, IdMap, MessageId, SubagentRunId, id_map};
use crate::item::{Counter, Indexed, Item, Place};
use crate::limits::Limits;
use crate::message::Message;
use crate::rule::Rule;
use crate::shared::Document;
use crate::snapshot::run::{OpenItem, Run, RunOutcome, SubagentStatus};
use crate::snapshot::{Change, Entry, Inner, ItemStatus, MessageChange, Rest, Snapshot, Update};
use crate::warning::{Notes, Warning};

mod calls;
mod documents;
mod latest;
mod messages;
mod places;
mod prelude;
mod reconcile;
mod runs;
mod size;

use latest::LatestMap;
use places::{Class, Places, class_of};
use size::Count;

/// Assembles the conversation from verified events.
///
/// In: verified items; events out of order are ignored, not reported. Out, for each: an [`Update`] for
/// every warning that it causes, then one for the item itself, each with the [`Snapshot`] after the
/// event.
///
/// A delta costs its own length, whatever the length of the message and of the thread, and a snapshot
/// costs one pointer; a little more if the previous snapshot is still held. An operation of a patch
/// costs the logarithm of each container on its path, a key of metadata a logarithm; a
/// `MESSAGES_SNAPSHOT` costs the conversation.
///
/// # Errors
/// [`Error::LimitExceeded`] for an event that makes the conversation take more than
/// [`Limits::max_conversation_bytes`] or hold more than [`Limits::max_messages`], and for a snapshot of the
/// state, of an activity or of the messages that makes the documents take more than
/// [`Limits::max_document_bytes`].
pub struct Assembler {
    snapshot: Snapshot,
    live: Lazy<Live>,
    ready: VecDeque<Update>,
    limits: Lazy<Limits>,
    counter: Counter,
}

/// The tables of the run, and facts that the messages do not hold.
#[derive(Debug, Default)]
struct Live {
    text: LatestMap<OpenMessage>,
    reasoning: LatestMap<OpenMessage>,
    calls: LatestMap<OpenCall>,
    brackets: IdMap<(SubjectKind, Id, Option<SubagentRunId>), u64>,
    /// The calls that the run started or answered (rule R9).
    made: IdMap<Id, Made>,
    places: Places,
    /// By assistant message: the last of the tool messages known to follow it, so that the next result is
    /// placed at once. All messages between the two are tool messages.
    last_result: BTreeMap<u64, u64>,
    /// The number of the next item to be opened.
    next_seq: u64,
    state_is_set: bool,
    bytes: Count,
}

impl Empty for Live {
    const EMPTY: &'static Self = &Self {
        text: LatestMap::EMPTY,
        reasoning: LatestMap::EMPTY,
        calls: LatestMap::EMPTY,
        brackets: id_map(),
        made: id_map(),
        places: Places::EMPTY,
        last_result: BTreeMap::new(),
        next_seq: 0,
        state_is_set: false,
        bytes: Count::EMPTY,
    };
}

impl Live {
    /// Adds an open item to the latest run, and gives its number.
    fn open_item(&mut self, rest: &mut Rest, item: OpenItem) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        if let Some(run) = latest_run(rest) {
            self.bytes.add(size::open(&item));
            run.open.insert(seq, item);
        }
        seq
    }

    /// Resets the tables of the run (`Rule::R6`). Done when a run ends, so that no table outlives it, and
    /// when one begins.
    fn forget_run(&mut self) {
        self.text.clear();
        self.reasoning.clear();
        self.calls.clear();
        self.brackets.clear();
        for id in self.made.keys() {
            self.bytes.remove(size::made(id));
        }
        self.made.clear();
    }
}

#[derive(Clone, Copy, Debug)]
struct OpenMessage {
    target: Option<u64>,
    seq: u64,
    /// The place of its message among those that grow.
    hint: usize,
}

/// A tool call in the tally of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Made {
    /// The number of its opening, if the run started it.
    started: Option<u64>,
    answered: bool,
}

#[derive(Clone, Copy, Debug)]
struct OpenCall {
    target: Option<(u64, u64)>,
    seq: u64,
}

/// The current event, and the warnings about it.
struct Warnings {
    place: Place,
    list: Notes,
}

impl Warnings {
    fn add(&mut self, rule: Rule, path: &str, message: String) {
        self.list.add(rule, path, message);
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
        Self {
            snapshot: Snapshot::default(),
            live: Lazy::default(),
            ready: VecDeque::new(),
            counter: Counter::default(),
            limits: Lazy::default(),
        }
    }

    /// An assembler of a conversation with these messages from before the stream, and this state, if any
    /// (rule A6).
    #[must_use]
    pub fn with_history(messages: impl IntoIterator<Item = Message>, state: Option<Document>) -> Self {
        let mut assembler = Self::new();
        assembler.add_history(messages, state);
        assembler
    }

    /// Takes up a conversation from before the stream.
    pub(super) fn add_history(&mut self, messages: impl IntoIterator<Item = Message>, state: Option<Document>) {
        for message in messages {
            self.append(message, ItemStatus::Complete);
        }
        if let Some(state) = state {
            self.rest().state = state;
            self.live.state_is_set = true;
        }
    }

    /// The same with other bounds on documents, and on what else is held.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = Lazy::of(limits);
        self
    }

    /// The conversation after everything that was pushed.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The warning that is popped next, if it is one.
    #[inline]
    pub(super) fn next_warning(&self) -> Option<&Warning> {
        self.ready.front()?.warning()
    }

    fn inner(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.snapshot.0)
    }

    #[inline]
    fn queue(&mut self, item: Item, change: Change) {
        self.ready.push_back(Update { item, snapshot: self.snapshot.clone(), change });
    }

    /// A delta without metadata for an open text message; gives the key of the message that grew.
    #[inline]
    fn grow(&mut self, id: &MessageId, delta: &str) -> Option<u64> {
        if delta.is_empty() {
            return None;
        }
        let inner = Arc::make_mut(&mut self.snapshot.0);
        if let Some((key, entry)) = inner.grown_last() {
            // Only the message that an open item streams into has this status.
            let is_open = entry.status == ItemStatus::Streaming;
            if is_open && entry.message.id() == id && class_of(&entry.message) == Class::Text {
                push_text(&mut entry.message, delta);
                self.live.bytes.add(delta.len());
                return Some(key);
            }
        }
        let Live { text, bytes, .. } = &mut *self.live;
        let OpenMessage { target: Some(key), hint, .. } = text.get_mut(id.id())? else { return None };
        push_text(&mut inner.grow(*key, hint)?.message, delta);
        bytes.add(delta.len());
        Some(*key)
    }

    fn apply(&mut self, event: &Event, warnings: &mut Warnings) -> Result<Change, Error> {
        Ok(match event {
            Event::TextMessageStart(event) => self.start_text(event, warnings),
            Event::TextMessageContent(event) => self.extend_text(event),
            Event::TextMessageEnd(event) => {
                let open = self.live.text.remove(event.message_id.id());
                self.close_message(open, event.base.metadata.as_ref())
            }
            Event::ReasoningMessageStart(event) => self.start_reasoning(event, warnings),
            Event::ReasoningMessageContent(event) => self.extend_reasoning(event),
            Event::ReasoningMessageEnd(event) => {
                let open = self.live.reasoning.remove(event.message_id.id());
                self.close_message(open, event.base.metadata.as_ref())
            }
            Event::ToolCallStart(event) => self.start_call(event, warnings.place.index),
            Event::ToolCallArgs(event) => {
                self.extend_call(&event.tool_call_id, &event.delta, event.base.metadata.as_ref())
            }
            Event::ToolCallEnd(event) => self.close_call(&event.tool_call_id, event.base.metadata.as_ref()),
            Event::ToolCallResult(event) => self.add_result(event, warnings),
            Event::StateSnapshot(event) => self.set_state(&event.snapshot, warnings.place.index)?,
            Event::StateDelta(event) => self.patch_state(&event.delta, warnings),
            Event::MessagesSnapshot(event) => self.reconcile(&event.messages, warnings)?,
            Event::ActivitySnapshot(event) => self.set_activity(event, warnings)?,
            Event::ActivityDelta(event) => self.patch_activity(event, warnings),
            Event::ReasoningEncryptedValue(event) => self.encrypt(event, warnings),
            Event::RunStarted(event) => self.start_run(event, warnings.place.index)?,
            Event::RunFinished(event) => self.finish_run(event),
            Event::RunError(event) => self.fail_run(event),
            Event::StepStarted(event) => self.open_bracket(
                SubjectKind::Step,
                Id::new(&event.step_name),
                event.subagent_run_id.as_ref(),
                warnings.place.index,
            ),
            Event::StepFinished(event) => {
                self.close_bracket(SubjectKind::Step, Id::new(&event.step_name), event.subagent_run_id.as_ref())
            }
            Event::ReasoningStart(event) => self.open_bracket(
                SubjectKind::ReasoningSpan,
                event.message_id.id().clone(),
                event.subagent_run_id.as_ref(),
                warnings.place.index,
            ),
            Event::ReasoningEnd(event) => {
                self.close_bracket(SubjectKind::ReasoningSpan, event.message_id.id().clone(), None)
            }
            Event::SubagentStarted(event) => self.start_subagent(event, warnings.place.index),
            Event::SubagentFinished(event) => {
                let outcome = event.outcome.clone();
                let outcome =
                    outcome.unwrap_or_else(|| SubagentFinishedOutcome::Success(SubagentSuccessOutcome::new()));
                let result = event.result.clone().map(Arc::new);
                self.end_subagent(&event.subagent_run_id, SubagentStatus::Finished(outcome), result)
            }
            Event::SubagentError(event) => {
                let status = SubagentStatus::Error { message: event.message.clone(), code: event.code.clone() };
                self.end_subagent(&event.subagent_run_id, status, None)
            }
            // RAW and CUSTOM are not part of the conversation; chunks never come this far.
            _ => Change::default(),
        })
    }

    /// Whether the conversation may take what it takes, after an event before which it took this much.
    ///
    /// # Errors
    /// Where that is beyond the limit, and more than before.
    #[inline]
    fn check_bytes(&self, before: usize, event: u64) -> Result<(), Error> {
        let max = self.limits.max_conversation_bytes;
        check(Limit::ConversationBytes, max, before, self.live.bytes.get(), event)
    }

    /// The same for the number of messages.
    fn check_messages(&self, before: usize, event: u64) -> Result<(), Error> {
        check(Limit::Messages, self.limits.max_messages, before, self.snapshot.0.messages.len(), event)
    }

    fn rest(&mut self) -> &mut Rest {
        Arc::make_mut(&mut self.inner().rest)
    }

    fn run(&mut self) -> Option<&mut Run> {
        latest_run(self.rest())
    }

    fn entry_mut(&mut self, key: u64) -> Option<&mut Entry> {
        self.inner().entry_mut(key)
    }

    /// The owner of the message; an untagged reopening does not change it (rules S5, O3, O4).
    fn owner_at(&self, key: Option<u64>) -> Option<&SubagentRunId> {
        self.snapshot.0.entry(key?)?.message.subagent_run_id()
    }
}

impl fmt::Debug for Assembler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assembler")
            .field("events", &self.counter.next())
            .field("messages", &self.snapshot.messages().len())
            .field("ready", &self.ready.len())
            .finish_non_exhaustive()
    }
}

impl Sink for Assembler {
    fn begin(&mut self, history: Vec<Message>, state: Option<Document>, limits: Limits) {
        self.limits = Lazy::of(limits);
        self.add_history(history, state);
    }

    /// Applies an event and queues its updates.
    #[inline]
    fn event(&mut self, indexed: Indexed) -> Result<(), Error> {
        let place = self.counter.place(&indexed);
        let bytes = self.live.bytes.get();
        let change = match &indexed.event {
            Event::TextMessageContent(event) if event.base.metadata.is_none() => {
                one_message(self.grow(&event.message_id, &event.delta))
            }
            event => {
                let messages = self.snapshot.0.messages.len();
                let mut warnings = Warnings { place, list: Notes::default() };
                let change = self.apply(event, &mut warnings)?;
                self.check_messages(messages, place.index)?;
                for note in warnings.list.take() {
                    self.queue(note.about(place.index, place.sent_as.as_str()).into(), Change::default());
                }
                change
            }
        };
        self.check_bytes(bytes, place.index)?;
        self.queue(Item::Event(indexed), change);
        Ok(())
    }

    fn warning(&mut self, warning: Warning) -> Result<(), Error> {
        self.queue(Item::Warning(warning), Change::default());
        Ok(())
    }

    #[inline(always)]
    fn text_content(&mut self, content: TextContent, place: Place) -> Result<(), Error> {
        self.counter.count(Some(place.index));
        let bytes = self.live.bytes.get();
        let change = one_message(self.grow(&content.message_id, &content.delta));
        self.check_bytes(bytes, place.index)?;
        self.queue(Item::Event(place.gives(content.into_event())), change);
        Ok(())
    }
}

impl<I: Into<Item>> Push<I> for Assembler {
    fn push(&mut self, input: I) -> Result<(), Error> {
        self.item(input.into())
    }
}

impl Machine for Assembler {
    type Output = Update;

    #[inline]
    fn pop(&mut self) -> Option<Update> {
        self.ready.pop_front()
    }

    fn ready(&self) -> usize {
        self.ready.len()
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
}

fn excerpt(text: &str) -> std::borrow::Cow<'_, str> {
    crate::excerpt::excerpt(text, 80)
}

/// The change of the message with this key, if any.
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

/// Merges key by key (rule A1), and says whether that changed anything.
fn merge_metadata(held: &mut Option<Metadata>, new: Option<&Metadata>, count: &mut Count) -> bool {
    let Some(new) = new else { return false };
    let before = size::metadata(held.as_ref());
    let changed = match held {
        Some(held) => held.merge(new),
        None => {
            *held = Some(new.clone());
            true
        }
    };
    count.resize(before, size::metadata(held.as_ref()));
    changed
}

/// Whether there may be so much, where there was so much before.
#[inline]
fn check(limit: Limit, max: usize, before: usize, now: usize, event: u64) -> Result<(), Error> {
    if now > max && now > before { Err(LimitExceeded::new(event, limit, max).into()) } else { Ok(()) }
}

fn latest_run(rest: &mut Rest) -> Option<&mut Run> {
    rest.runs.last_mut().map(Arc::make_mut)
}
