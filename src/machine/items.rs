//! Judges the events within a run: which items are open, and who owns them (the S and O rules).
//!
//! ```text
//!              START                       END
//!   (never) ──────────► open ─┐         ┌──────► closed
//!      │                 ▲    │ CONTENT │           │
//!      │ named           │    └──◄──────┤           │ START again (S5)
//!      ▼           START │              │           │
//!    known ──────────────┘              └─── open ◄─┘
//! ```
//!
//! Anything else breaks S2 (S8 for a step, O5 for a subagent). The first event that names an item
//! records its owner, which stays, whatever the status, until the next run ([`Rule::O3`]).

use super::lazy::Lazy;
use super::table::{Claim, Entry, Full, Key, Owner, Reasoning, Status, Statuses, StepKey, Table, Tally};
use crate::error::{Error, History, Subject, SubjectKind};
use crate::event::{
    Event, ReasoningEncryptedValueEvent, ReasoningEncryptedValueSubtype, SubagentStartedEvent, ToolCallStartEvent,
};
use crate::excerpt::excerpt;
use crate::id::{Id, MessageId, SubagentRunId, ToolCallId};
use crate::item::Place;
use crate::limits::Limits;
use crate::message::{Message, Role};
use crate::rule::Rule;

/// The items of the active run.
///
/// Grows by one entry for each item that the run names; [`reset`](Items::reset) forgets them. Reset a
/// new field there, or say why not.
#[derive(Debug, Default)]
pub(crate) struct Items {
    messages: Table<MessageId>,
    calls: Table<ToolCallId>,
    reasoning: Table<MessageId, Reasoning>,
    activities: Table<MessageId>,
    steps: Table<StepKey>,
    subagents: Table<SubagentRunId>,
    tally: Tally,
    /// Whether there may be messages from before the run that it did not name, whose owners are unknown.
    /// The only field that outlives a run.
    others_may_be_held: bool,
}

impl Items {
    /// Keeps to these bounds.
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.tally.limits = Lazy::of(limits);
    }

    /// Forgets the run ([`Rule::R6`]).
    pub(crate) fn reset(&mut self) {
        let Self { messages, calls, reasoning, activities, steps, subagents, tally, others_may_be_held: _ } = self;
        messages.reset();
        calls.reset();
        reasoning.reset();
        activities.reset();
        steps.reset();
        subagents.reset();
        tally.reset();
    }

    /// Notes that messages from before the run may be held.
    pub(crate) fn expect_others(&mut self) {
        self.others_may_be_held = true;
    }

    /// The number of open items.
    #[inline]
    pub(crate) fn open_count(&self) -> usize {
        self.tally.open
    }

    /// The open items, in the order opened. Costs a pass over the run.
    pub(crate) fn open(&self) -> Vec<(Subject, History)> {
        let mut open = Vec::new();
        self.messages.list_open(SubjectKind::TextMessage, &mut open);
        self.calls.list_open(SubjectKind::ToolCall, &mut open);
        self.reasoning.list_open(SubjectKind::ReasoningMessage, &mut open);
        self.reasoning.list_open(SubjectKind::ReasoningSpan, &mut open);
        self.steps.list_open(SubjectKind::Step, &mut open);
        self.subagents.list_open(SubjectKind::Subagent, &mut open);
        open.sort_unstable_by_key(|(order, ..)| *order);
        open.into_iter().map(|(_, subject, history)| (subject, history)).collect()
    }

    /// Judges the most common event of all.
    #[inline]
    pub(crate) fn extend_text(
        &mut self,
        id: &MessageId,
        tag: Option<&SubagentRunId>,
        place: Place,
    ) -> Result<(), Error> {
        extend(&mut self.messages, SubjectKind::TextMessage, id, tag, place, &mut self.tally)
    }

    /// Judges an event within a run and records it.
    #[inline]
    pub(crate) fn check(&mut self, event: &Event, place: Place) -> Result<(), Error> {
        /// What a part of an item does to the table of its kind.
        macro_rules! part {
            ($does:ident $kind:ident of $table:ident by $id:ident of $event:ident) => {
                $does(
                    &mut self.$table,
                    SubjectKind::$kind,
                    &$event.$id,
                    $event.subagent_run_id.as_ref(),
                    place,
                    &mut self.tally,
                )
            };
        }
        match event {
            Event::TextMessageContent(e) => part!(extend TextMessage of messages by message_id of e),
            Event::ToolCallArgs(e) => part!(extend ToolCall of calls by tool_call_id of e),
            Event::ReasoningMessageContent(e) => part!(extend ReasoningMessage of reasoning by message_id of e),
            Event::TextMessageStart(e) => part!(open TextMessage of messages by message_id of e),
            Event::TextMessageEnd(e) => part!(close TextMessage of messages by message_id of e),
            Event::ToolCallStart(e) => self.start_call(e, place),
            Event::ToolCallEnd(e) => part!(close ToolCall of calls by tool_call_id of e),
            Event::ReasoningStart(e) => part!(open ReasoningSpan of reasoning by message_id of e),
            Event::ReasoningEnd(e) => part!(close ReasoningSpan of reasoning by message_id of e),
            Event::ReasoningMessageStart(e) => part!(open ReasoningMessage of reasoning by message_id of e),
            Event::ReasoningMessageEnd(e) => part!(close ReasoningMessage of reasoning by message_id of e),
            Event::StepStarted(e) => self.start_step(e.subagent_run_id.as_ref(), &e.step_name, place),
            Event::StepFinished(e) => self.finish_step(e.subagent_run_id.as_ref(), &e.step_name, place),
            Event::SubagentStarted(e) => self.start_subagent(e, place),
            Event::SubagentFinished(e) => self.end_subagent(&e.subagent_run_id, place),
            Event::SubagentError(e) => self.end_subagent(&e.subagent_run_id, place),
            Event::ReasoningEncryptedValue(e) => self.check_encrypted_value(e, place),
            Event::ActivityDelta(e) => {
                let target = self.activities.get(&e.message_id);
                agree(target, SubjectKind::Activity, e.subagent_run_id.as_ref(), Rule::O6, place)
            }
            Event::ActivitySnapshot(e) => {
                // A5: `replace: false` leaves a held message unchanged: an activity with its owner, and
                // another message, which is then no activity whose owner could differ (O6).
                let claim = if e.replace == Some(false) { Claim::IfUnclaimed } else { Claim::Outright };
                if e.replace == Some(false) && self.is_other_than_activity(&e.message_id) {
                    return Ok(());
                }
                let owner = e.subagent_run_id.as_ref();
                self.activities
                    .name(&e.message_id, owner, claim, place.index, &mut self.tally)
                    .map_err(|full| full.at(place))
            }
            Event::ToolCallResult(e) => {
                // A10: under the id of another message it is a message of its own, and does not change
                // the owner of that one.
                let owner = e.subagent_run_id.as_ref();
                self.messages
                    .name(&e.message_id, owner, Claim::IfUnclaimed, place.index, &mut self.tally)
                    .map_err(|full| full.at(place))
            }
            Event::MessagesSnapshot(e) => {
                self.seed(&e.messages, Claim::Outright, place.index).map_err(|full| full.at(place))
            }
            Event::TextMessageChunk(_) | Event::ToolCallChunk(_) | Event::ReasoningMessageChunk(_) => {
                Err(self.unexpanded(event, place))
            }
            // S4: state, RAW and CUSTOM may come anywhere within a run. O8: a tag on them is provenance
            // only. The events of the run itself are judged by the verifier, which knows the runs.
            _ => Ok(()),
        }
    }

    /// Records the owners of a list of messages and of their tool calls (O7).
    ///
    /// # Errors
    /// Where there is no room for all; nothing has changed then.
    pub(crate) fn seed(&mut self, messages: &[Message], claim: Claim, at: u64) -> Result<(), Full> {
        if self.tally.check_room(cost_of(messages, |_, _| true)).is_err() {
            let is_new = |kind, id: &Id| match kind {
                SubjectKind::ReasoningMessage => self.reasoning.get(&MessageId::from_id(id.clone())).is_none(),
                SubjectKind::Activity => self.activities.get(&MessageId::from_id(id.clone())).is_none(),
                SubjectKind::ToolCall => self.calls.get(&ToolCallId::from_id(id.clone())).is_none(),
                _ => self.messages.get(&MessageId::from_id(id.clone())).is_none(),
            };
            self.tally.check_room(cost_of(messages, is_new))?;
        }
        let Self { reasoning, activities, messages: texts, calls, tally, .. } = self;
        for message in messages {
            let (id, owner) = (message.id(), message.subagent_run_id());
            match kind_of(message) {
                SubjectKind::ReasoningMessage => reasoning.name(id, owner, claim, at, tally),
                SubjectKind::Activity => activities.name(id, owner, claim, at, tally),
                _ => texts.name(id, owner, claim, at, tally),
            }?;
            message.tool_calls().try_for_each(|call| calls.name(&call.id, owner, claim, at, tally))?;
        }
        Ok(())
    }

    /// Whether a run that has named nothing so far may begin with these messages.
    pub(crate) fn check_first(&self, messages: &[Message]) -> Result<(), Full> {
        let mut tally = self.tally.clone();
        tally.reset();
        tally.check_room(cost_of(messages, |_, _| true))
    }

    /// Opens a tool call, which belongs to the owner of its message (O4).
    fn start_call(&mut self, event: &ToolCallStartEvent, place: Place) -> Result<(), Error> {
        const KIND: SubjectKind = SubjectKind::ToolCall;
        let tag = event.subagent_run_id.as_ref();
        let call = self.calls.find(&event.tool_call_id);
        if let Some(call) = call.as_deref().filter(|call| call.status.is_open()) {
            return Err(already_open(call, KIND, place));
        }
        let parent = event.parent_message_id.as_ref().and_then(|id| self.messages.find(id));
        if let (Some(parent), Some(_)) = (&parent, tag) {
            if parent.owner.as_ref() != tag {
                let history = call.map_or(History::NeverOpened, |call| call.history(KIND));
                return Err(foreign_call(event, &parent.owner, tag, history, parent, place));
            }
        }
        agree(call.as_deref(), KIND, tag, Rule::O2, place)?;
        if let (Some(parent), Some(call), None) = (&parent, &call, tag) {
            if parent.owner != call.owner {
                let history = call.history(KIND);
                return Err(foreign_call(event, &parent.owner, call.owner.as_ref(), history, parent, place));
            }
        }
        let owner = tag.cloned().or_else(|| parent.and_then(|parent| parent.owner.clone()));
        let new_call = call.is_none().then(|| Tally::cost(event.tool_call_id.as_str(), owner.as_ref()));
        // A3: the first call of an unknown message creates it, and the message gets the owner of the
        // call. An untagged call names no owner, and a message from before the run is not created.
        let made = event.parent_message_id.as_ref().filter(|parent| {
            let may_be_made = tag.is_some() && !self.others_may_be_held && !self.is_other_than_text(parent);
            may_be_made && self.messages.get(parent).is_none()
        });
        let new_message = made.map(|parent| Tally::cost(parent.as_str(), tag));
        let claimed = self.tally.check_open().and_then(|()| {
            // For both together, or neither is noted.
            self.tally.check_room(new_call.unwrap_or(0).saturating_add(new_message.unwrap_or(0)))?;
            if let Some(parent) = made {
                self.messages.name(parent, tag, Claim::IfUnclaimed, place.index, &mut self.tally)?;
            }
            self.calls.claim(&event.tool_call_id, || owner, &mut self.tally)
        });
        let call = claimed.map_err(|full| full.at(place))?;
        self.tally.open(&mut call.status, place);
        Ok(())
    }

    /// Whether this is the id of a reasoning message or of an activity, which carry no calls.
    fn is_other_than_text(&self, id: &MessageId) -> bool {
        self.is_thought(id) || self.activities.get(id).is_some()
    }

    /// Whether this run named a message of this id that is not an activity.
    fn is_other_than_activity(&self, id: &MessageId) -> bool {
        self.activities.get(id).is_none() && (self.messages.get(id).is_some() || self.is_thought(id))
    }

    fn is_thought(&self, id: &MessageId) -> bool {
        let thought = self.reasoning.get(id).map(|entry| entry.status.of(SubjectKind::ReasoningMessage));
        thought.is_some_and(|status| status != Status::Never)
    }

    fn start_step(&mut self, owner: Option<&SubagentRunId>, name: &str, place: Place) -> Result<(), Error> {
        let key = StepKey::new(owner, name);
        if let Some(step) = self.steps.find(&key).filter(|step| step.status.is_open()) {
            return Err(place
                .violation(Rule::S8, format!("a step that is not open for {}", name_of(owner)), "one that is")
                .about(step.subject(SubjectKind::Step), step.history(SubjectKind::Step))
                .into());
        }
        open_entry(&mut self.steps, SubjectKind::Step, &key, owner, place, &mut self.tally)
    }

    fn finish_step(&mut self, owner: Option<&SubagentRunId>, name: &str, place: Place) -> Result<(), Error> {
        let key = StepKey::new(owner, name);
        match self.steps.find(&key) {
            Some(step) if step.status.is_open() => {
                self.tally.close(&mut step.status, place);
                Ok(())
            }
            _ => Err(self.no_such_step(&key, place)),
        }
    }

    /// The error for a step that is not open under its owner, with the owners who have it open.
    #[cold]
    fn no_such_step(&self, key: &StepKey, place: Place) -> Error {
        const KIND: SubjectKind = SubjectKind::Step;
        let subject = Subject::new(KIND, key.text());
        let mut others: Vec<(u64, &Entry<StepKey>)> = self
            .steps
            .iter()
            .filter(|step| step.key.text() == key.text())
            .filter_map(|step| match step.status {
                Status::Open { order, .. } => Some((order, step)),
                Status::Never | Status::Known { .. } | Status::Closed { .. } => None,
            })
            .collect();
        others.sort_unstable_by_key(|(order, _)| *order);
        let mut others = others.into_iter().map(|(_, step)| step);
        let violation = |expected, found| place.violation(Rule::S8, expected, found);
        match others.next() {
            Some(other) => {
                let mut violation = violation(name_of(other.owner.as_ref()), name_of(key.owner.as_ref()));
                violation.others = others.map(|step| (step.subject(KIND), step.history(KIND))).collect();
                violation.about(subject, other.history(KIND)).into()
            }
            None => {
                let history = self.steps.get(key).map_or(History::NeverOpened, |step| step.history(KIND));
                let expected = format!("a step that is open for {}", name_of(key.owner.as_ref()));
                violation(expected, instead(&history).into()).about(subject, history).into()
            }
        }
    }

    fn start_subagent(&mut self, event: &SubagentStartedEvent, place: Place) -> Result<(), Error> {
        const KIND: SubjectKind = SubjectKind::Subagent;
        let id = &event.subagent_run_id;
        let violation = |expected, found| place.violation(Rule::O5, expected, found);
        if let Some(known) = self.subagents.get(id) {
            let history = known.history(KIND);
            let found = instead(&history);
            return Err(violation("an id that is new in this run", found).about(known.subject(KIND), history).into());
        }
        let parent = event.parent_subagent_run_id.as_ref();
        if let Some(parent) = parent.filter(|parent| self.subagents.get(parent).is_none()) {
            let expected = "a parentSubagentRunId that was announced in this run";
            let mut violation = violation(expected, "one that was not").about(subject(KIND, id), History::NeverOpened);
            violation.others = vec![(subject(KIND, parent), History::NeverOpened)];
            return Err(violation.into());
        }
        open_entry(&mut self.subagents, KIND, id, parent, place, &mut self.tally)
    }

    fn end_subagent(&mut self, id: &SubagentRunId, place: Place) -> Result<(), Error> {
        const KIND: SubjectKind = SubjectKind::Subagent;
        match self.subagents.find(id) {
            Some(subagent) if subagent.status.is_open() => {
                self.tally.close(&mut subagent.status, place);
                Ok(())
            }
            found => {
                let history = found.map_or(History::NeverOpened, |subagent| subagent.history(KIND));
                let found = instead(&history);
                Err(place
                    .violation(Rule::O5, "a subagent that is active", found)
                    .about(subject(KIND, id), history)
                    .into())
            }
        }
    }

    /// O6. Text messages come before reasoning messages of the same id.
    fn check_encrypted_value(&self, event: &ReasoningEncryptedValueEvent, place: Place) -> Result<(), Error> {
        let tag = event.subagent_run_id.as_ref();
        match event.subtype {
            ReasoningEncryptedValueSubtype::ToolCall => {
                let target = self.calls.get(&ToolCallId::from_id(event.entity_id.id().clone()));
                agree(target, SubjectKind::ToolCall, tag, Rule::O6, place)
            }
            ReasoningEncryptedValueSubtype::Message => match self.messages.get(&event.entity_id) {
                Some(target) => agree(Some(target), SubjectKind::TextMessage, tag, Rule::O6, place),
                None => {
                    agree(self.reasoning.get(&event.entity_id), SubjectKind::ReasoningMessage, tag, Rule::O6, place)
                }
            },
        }
    }

    #[cold]
    fn unexpanded(&self, event: &Event, place: Place) -> Error {
        let mut violation = place.violation(Rule::C1, "what expansion makes of a chunk", "the chunk itself");
        if let Some((subject, history)) = self.subject(event) {
            violation = violation.about(subject, history);
        }
        violation.into()
    }

    /// The subject of an event, and its history; `None` if it is about nothing with an id.
    pub(crate) fn subject(&self, event: &Event) -> Option<(Subject, History)> {
        fn seen<K: Key, L: Statuses>(table: &Table<K, L>, kind: SubjectKind, key: &K) -> Option<(Subject, History)> {
            let history = table.get(key).map_or(History::NeverOpened, |entry| entry.history(kind));
            Some((Subject::new(kind, key.text()), history))
        }
        let text = |id| seen(&self.messages, SubjectKind::TextMessage, id);
        let call = |id| seen(&self.calls, SubjectKind::ToolCall, id);
        let thought = |id| seen(&self.reasoning, SubjectKind::ReasoningMessage, id);
        let span = |id| seen(&self.reasoning, SubjectKind::ReasoningSpan, id);
        let activity = |id| seen(&self.activities, SubjectKind::Activity, id);
        let subagent = |id| seen(&self.subagents, SubjectKind::Subagent, id);
        let step = |owner, name| seen(&self.steps, SubjectKind::Step, &StepKey::new(owner, name));
        match event {
            Event::TextMessageStart(e) => text(&e.message_id),
            Event::TextMessageContent(e) => text(&e.message_id),
            Event::TextMessageEnd(e) => text(&e.message_id),
            Event::TextMessageChunk(e) => e.message_id.as_ref().and_then(text),
            Event::ToolCallStart(e) => call(&e.tool_call_id),
            Event::ToolCallArgs(e) => call(&e.tool_call_id),
            Event::ToolCallEnd(e) => call(&e.tool_call_id),
            Event::ToolCallChunk(e) => e.tool_call_id.as_ref().and_then(call),
            Event::ToolCallResult(e) => call(&e.tool_call_id),
            Event::ReasoningStart(e) => span(&e.message_id),
            Event::ReasoningEnd(e) => span(&e.message_id),
            Event::ReasoningMessageStart(e) => thought(&e.message_id),
            Event::ReasoningMessageContent(e) => thought(&e.message_id),
            Event::ReasoningMessageEnd(e) => thought(&e.message_id),
            Event::ReasoningMessageChunk(e) => e.message_id.as_ref().and_then(thought),
            Event::ReasoningEncryptedValue(e) => match e.subtype {
                ReasoningEncryptedValueSubtype::ToolCall => call(&ToolCallId::from_id(e.entity_id.id().clone())),
                ReasoningEncryptedValueSubtype::Message if self.messages.get(&e.entity_id).is_some() => {
                    text(&e.entity_id)
                }
                ReasoningEncryptedValueSubtype::Message => thought(&e.entity_id),
            },
            Event::ActivitySnapshot(e) => activity(&e.message_id),
            Event::ActivityDelta(e) => activity(&e.message_id),
            Event::StepStarted(e) => step(e.subagent_run_id.as_ref(), &e.step_name),
            Event::StepFinished(e) => step(e.subagent_run_id.as_ref(), &e.step_name),
            Event::SubagentStarted(e) => subagent(&e.subagent_run_id),
            Event::SubagentFinished(e) => subagent(&e.subagent_run_id),
            Event::SubagentError(e) => subagent(&e.subagent_run_id),
            _ => None,
        }
    }
}

/// A START: its item is not open (S2), though it may have been closed ([`Rule::S5`]), and a tag agrees
/// with a recorded owner (O2).
fn open<K: Key, L: Statuses>(
    table: &mut Table<K, L>,
    kind: SubjectKind,
    key: &K,
    tag: Option<&SubagentRunId>,
    place: Place,
    tally: &mut Tally,
) -> Result<(), Error> {
    if let Some(entry) = table.find(key) {
        if entry.status.of(kind).is_open() {
            return Err(already_open(entry, kind, place));
        }
        agree(Some(entry), kind, tag, Rule::O2, place)?;
    }
    open_entry(table, kind, key, tag, place, tally)
}

/// Opens what may be opened, if there is room.
fn open_entry<K: Key, L: Statuses>(
    table: &mut Table<K, L>,
    kind: SubjectKind,
    key: &K,
    owner: Option<&SubagentRunId>,
    place: Place,
    tally: &mut Tally,
) -> Result<(), Error> {
    let entry = tally.check_open().and_then(|()| table.claim(key, || owner.cloned(), tally));
    let entry = entry.map_err(|full| full.at(place))?;
    tally.open(entry.status.of_mut(kind), place);
    Ok(())
}

/// A CONTENT: its item is open (S2), and a tag agrees with the owner (O2).
#[inline]
fn extend<K: Key, L: Statuses>(
    table: &mut Table<K, L>,
    kind: SubjectKind,
    key: &K,
    tag: Option<&SubagentRunId>,
    place: Place,
    _: &mut Tally,
) -> Result<(), Error> {
    find_open(table, kind, key, tag, place).map(drop)
}

/// An END: its item is open (S2), a tag agrees with the owner (O2), and the item is closed.
fn close<K: Key, L: Statuses>(
    table: &mut Table<K, L>,
    kind: SubjectKind,
    key: &K,
    tag: Option<&SubagentRunId>,
    place: Place,
    tally: &mut Tally,
) -> Result<(), Error> {
    let entry = find_open(table, kind, key, tag, place)?;
    tally.close(entry.status.of_mut(kind), place);
    Ok(())
}

#[inline]
fn find_open<'a, K: Key, L: Statuses>(
    table: &'a mut Table<K, L>,
    kind: SubjectKind,
    key: &K,
    tag: Option<&SubagentRunId>,
    place: Place,
) -> Result<&'a mut Entry<K, L>, Error> {
    match table.find(key) {
        Some(entry) if entry.status.of(kind).is_open() => {
            agree(Some(entry), kind, tag, Rule::O2, place)?;
            Ok(entry)
        }
        found => Err(not_open(found.map(|entry| &*entry), kind, key, place)),
    }
}

/// A tag agrees with the owner; no tag always agrees, and so does any if no owner is recorded.
#[inline]
fn agree<K: Key, L: Statuses>(
    entry: Option<&Entry<K, L>>,
    kind: SubjectKind,
    tag: Option<&SubagentRunId>,
    rule: Rule,
    place: Place,
) -> Result<(), Error> {
    match (entry, tag) {
        (Some(entry), Some(_)) if entry.owner.as_ref() != tag => Err(foreign(entry, kind, tag, rule, place)),
        _ => Ok(()),
    }
}

#[cold]
fn already_open<K: Key, L: Statuses>(entry: &Entry<K, L>, kind: SubjectKind, place: Place) -> Error {
    place
        .violation(Rule::S2, format!("a {kind} that is not open"), "one that is")
        .about(entry.subject(kind), entry.history(kind))
        .into()
}

#[cold]
fn not_open<K: Key, L: Statuses>(entry: Option<&Entry<K, L>>, kind: SubjectKind, key: &K, place: Place) -> Error {
    let history = entry.map_or(History::NeverOpened, |entry| entry.history(kind));
    place
        .violation(Rule::S2, format!("a {kind} that is open"), instead(&history))
        .about(Subject::new(kind, key.text()), history)
        .into()
}

#[cold]
fn foreign<K: Key, L: Statuses>(
    entry: &Entry<K, L>,
    kind: SubjectKind,
    tag: Option<&SubagentRunId>,
    rule: Rule,
    place: Place,
) -> Error {
    let mut violation = place
        .violation(rule, name_of(entry.owner.as_ref()), name_of(tag))
        .about(entry.subject(kind), entry.history(kind));
    // If no event named this kind, the owner comes from the kind that shares it.
    if let (Status::Never, Some(sibling)) = (entry.status.of(kind), L::sibling(kind)) {
        violation.others = vec![(entry.subject(sibling), entry.history(sibling))];
    }
    violation.into()
}

/// A tool call and the message that carries it have two owners (O4).
#[cold]
fn foreign_call(
    event: &ToolCallStartEvent,
    expected: &Owner,
    found: Option<&SubagentRunId>,
    history: History,
    parent: &Entry<MessageId>,
    place: Place,
) -> Error {
    let mut violation = place
        .violation(Rule::O4, name_of(expected.as_ref()), name_of(found))
        .about(subject(SubjectKind::ToolCall, &event.tool_call_id), history);
    violation.others = vec![(parent.subject(SubjectKind::TextMessage), parent.history(SubjectKind::TextMessage))];
    violation.into()
}

/// What kind of thing rule O7 takes a message for.
fn kind_of(message: &Message) -> SubjectKind {
    match message.role() {
        Role::Reasoning => SubjectKind::ReasoningMessage,
        Role::Activity => SubjectKind::Activity,
        Role::Developer | Role::System | Role::Assistant | Role::User | Role::Tool => SubjectKind::TextMessage,
    }
}

/// What the entries of these messages and of their calls take, of those that are new.
fn cost_of(messages: &[Message], is_new: impl Fn(SubjectKind, &Id) -> bool) -> usize {
    let named = messages.iter().flat_map(|message| {
        let calls = message.tool_calls().map(|call| (SubjectKind::ToolCall, call.id.id()));
        let own = std::iter::once((kind_of(message), message.id().id()));
        own.chain(calls).map(|named| (named, message.subagent_run_id()))
    });
    let new = named.filter(|((kind, id), _)| is_new(*kind, id));
    new.fold(0, |bytes: usize, ((_, id), owner)| bytes.saturating_add(Tally::cost(id.as_str(), owner)))
}

fn subject(kind: SubjectKind, id: &impl AsRef<str>) -> Subject {
    Subject::new(kind, id.as_ref())
}

/// An owner in words: `the parent agent`, `subagent "a"`.
fn name_of(owner: Option<&SubagentRunId>) -> String {
    match owner {
        Some(id) => format!("subagent {:?}", excerpt(id.as_str(), 80)),
        None => "the parent agent".to_owned(),
    }
}

/// The item found, in the words of an error; the history tells more.
fn instead(history: &History) -> &'static str {
    match history {
        History::None | History::NeverOpened => "an unknown one",
        History::Known { .. } | History::Open { .. } | History::Closed { .. } => "one that is not",
    }
}
