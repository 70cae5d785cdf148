//! The prelude: the events that bring a viewer who joins late to where the conversation stands.

use std::collections::BTreeMap;

use super::Assembler;
use super::places::{Class, class_of};
use crate::error::SubjectKind;
use crate::event::{
    CancelledOutcome, Event, InterruptOutcome, Interrupts, MessagesSnapshotEvent, ReasoningMessageStartEvent,
    ReasoningStartEvent, RunErrorEvent, RunFinishedEvent, RunFinishedOutcome, RunStartedEvent, StateSnapshotEvent,
    StepStartedEvent, SubagentErrorEvent, SubagentFinishedEvent, SubagentStartedEvent, SuccessOutcome, TextMessageRole,
    TextMessageStartEvent, ToolCallArgsEvent, ToolCallResultEvent, ToolCallStartEvent,
};
use crate::id::{Id, MessageId, SubagentRunId, ToolCallId};
use crate::machine::streamed::Streamed;
use crate::message::{Content, Message, Role};
use crate::run_input::RunAgentInput;
use crate::snapshot::run::{OpenItem, Run, RunOutcome, Subagent, SubagentStatus};

impl Assembler {
    /// The events that lead here, without the items of which `is_left` says that others open them.
    /// Costs the conversation, and the runs.
    pub(in crate::machine) fn prelude(&self, is_left: impl Fn(Streamed, &Id) -> bool) -> Vec<Event> {
        let (mut events, mut count) = (Vec::new(), 0);
        let runs = self.snapshot.runs();
        let latest = runs.len().saturating_sub(1);
        for (at, run) in runs.enumerate() {
            let has_begun = begin(run, &mut events);
            if has_begun {
                self.tally(run, is_left_of(&is_left), &mut count, &mut events);
            }
            if has_begun && at == latest {
                self.restate(run, is_left_of(&is_left), &mut count, &mut events);
            }
            end(run, has_begun, &mut events);
        }
        events
    }

    /// Adds what the latest run made, what it has open, and what it waits for.
    fn restate(&self, run: &Run, is_left: impl Fn(&OpenItem) -> bool, count: &mut usize, events: &mut Vec<Event>) {
        let items = run.open().filter(|item| !is_left(item) && !self.is_tallied(item));
        // What a snapshot has dropped is dropped by this one again (rule A11).
        let (dropped, held): (Vec<_>, Vec<_>) = items.partition(|item| self.is_dropped(item));
        for item in &dropped {
            events.push(match item.kind {
                SubjectKind::ToolCall => {
                    let id = ToolCallId::from_id(item.id.clone());
                    self.call_start(&id, Some(self.free_id(count)), item.owner.as_ref())
                }
                _ => self.opened(item),
            });
        }
        let messages: Vec<Message> = self.snapshot.messages().iter().cloned().collect();
        if *count > 0 || !messages.is_empty() || !dropped.is_empty() {
            events.push(MessagesSnapshotEvent::new(messages).into());
        }
        if self.live.state_is_set {
            events.push(StateSnapshotEvent::new(self.snapshot.state().clone()).into());
        }
        run.subagents().for_each(|subagent| invoke(subagent, events));
        events.extend(held.into_iter().map(|item| self.opened(item)));
    }

    /// A new id that no message has.
    fn free_id(&self, count: &mut usize) -> MessageId {
        *count += 1;
        let mut id = format!("prelude {count}");
        while self.snapshot.message(&id).is_some() {
            id.push('-');
        }
        MessageId::from(id)
    }

    /// The calls of the run and their answers, as far as they decide which calls wait for one (rule R9): in
    /// messages that the snapshot after them drops, for it cannot be told from the messages that stay.
    fn tally(&self, run: &Run, is_left: impl Fn(&OpenItem) -> bool, count: &mut usize, events: &mut Vec<Event>) {
        let unanswered = self.unanswered(run);
        for (at, id) in unanswered.iter().enumerate() {
            let open = self.live.calls.get(id.id()).and_then(|open| run.open.get(open.seq));
            if open.is_some_and(&is_left) && at + 1 == unanswered.len() {
                break;
            }
            let owner = open.and_then(|item| item.owner.as_ref());
            events.push(self.call_start(id, Some(self.free_id(count)), owner));
            if open.is_none() {
                let call = self.snapshot.tool_call(id);
                let arguments = call.map(|call| call.function.arguments.to_cow()).filter(|text| !text.is_empty());
                events.extend(arguments.map(|text| ToolCallArgsEvent::new(id.clone(), &*text).into()));
            }
            if open.is_none_or(&is_left) {
                events.push(Streamed::ToolCall.end(id.id().clone(), owner.cloned()));
            }
        }
        if !run.is_running() {
            return;
        }
        // One that was answered may be opened again, and does not wait then.
        let answered = self.live.made.iter().filter(|(_, made)| made.answered).map(|(id, _)| (id.as_str(), id));
        let mut answered: BTreeMap<&str, (&Id, Content)> = answered.map(|(key, id)| (key, (id, "".into()))).collect();
        for message in self.snapshot.messages() {
            if let Message::Tool(result) = message {
                if let Some((_, content)) = answered.get_mut(result.tool_call_id.as_str()) {
                    *content = result.content.clone();
                }
            }
        }
        events.extend(answered.into_values().map(|(id, content)| {
            ToolCallResultEvent::new(self.free_id(count), ToolCallId::from_id(id.clone()), content).into()
        }));
    }

    /// The calls that wait for an answer, in the order they were started.
    fn unanswered(&self, run: &Run) -> Vec<ToolCallId> {
        match &run.outcome {
            RunOutcome::Running => self.pending().to_vec(),
            RunOutcome::Interrupt { pending_tool_call_ids, .. } => pending_tool_call_ids.to_vec(),
            // RUN_FINISHED says which, or none does.
            _ => Vec::new(),
        }
    }

    /// Whether the item is opened together with the calls that wait for an answer, or is a subagent.
    fn is_tallied(&self, item: &OpenItem) -> bool {
        let made = || self.live.made.get(&item.id);
        match item.kind {
            SubjectKind::ToolCall => made().is_some_and(|made| made.started.is_some() && !made.answered),
            kind => kind == SubjectKind::Subagent,
        }
    }

    /// The message that the item streams into.
    fn target(&self, item: &OpenItem) -> Option<u64> {
        let id = || MessageId::from_id(item.id.clone());
        match item.kind {
            SubjectKind::TextMessage => self.held_text(&id()),
            SubjectKind::ReasoningMessage => self.held_reasoning(&id()),
            SubjectKind::ToolCall => Some(self.call_place(&ToolCallId::from_id(item.id.clone()))?.message),
            _ => None,
        }
    }

    /// Whether its message is no longer held, and no activity has displaced it either (rule A4).
    fn is_dropped(&self, item: &OpenItem) -> bool {
        let is_activity = || self.held(&MessageId::from_id(item.id.clone())).map(class_of) == Some(Class::Activity);
        streamed(item.kind).is_some()
            && self.target(item).is_none()
            && (item.kind == SubjectKind::ToolCall || !is_activity())
    }

    /// The event that opens it. The owner is that of the message, which `MESSAGES_SNAPSHOT` has set (rule O7).
    fn opened(&self, item: &OpenItem) -> Event {
        let target = self.target(item);
        let owner = if target.is_some() { self.owner_at(target) } else { item.owner.as_ref() }.cloned();
        let id = || MessageId::from_id(item.id.clone());
        match item.kind {
            SubjectKind::ToolCall => self.call_start(&ToolCallId::from_id(item.id.clone()), None, owner.as_ref()),
            SubjectKind::ReasoningMessage => {
                ReasoningMessageStartEvent { subagent_run_id: owner, ..ReasoningMessageStartEvent::new(id()) }.into()
            }
            SubjectKind::ReasoningSpan => {
                // It shares the owner with the message of its id.
                let owner = self.held_reasoning(&id()).map_or(owner.clone(), |key| self.owner_at(Some(key)).cloned());
                ReasoningStartEvent { subagent_run_id: owner, ..ReasoningStartEvent::new(id()) }.into()
            }
            SubjectKind::Step => {
                StepStartedEvent { subagent_run_id: owner, ..StepStartedEvent::new(item.id.as_str()) }.into()
            }
            // Nothing else is open but subagents, which are announced by themselves.
            _ => {
                let message = target.and_then(|key| self.message_at(key));
                let role = message.and_then(|message| match message.role() {
                    Role::User => Some(TextMessageRole::User),
                    Role::System => Some(TextMessageRole::System),
                    Role::Developer => Some(TextMessageRole::Developer),
                    _ => None,
                });
                let name = message.and_then(Message::name).map(Into::into);
                let start = TextMessageStartEvent::new(id());
                TextMessageStartEvent { role, name, subagent_run_id: owner, ..start }.into()
            }
        }
    }

    fn call_start(&self, id: &ToolCallId, parent: Option<MessageId>, owner: Option<&SubagentRunId>) -> Event {
        let name = self.snapshot.tool_call(id.as_str()).map(|call| call.function.name.clone()).unwrap_or_default();
        let start = ToolCallStartEvent::new(id.clone(), name);
        ToolCallStartEvent { parent_message_id: parent, subagent_run_id: owner.cloned(), ..start }.into()
    }
}

fn streamed(kind: SubjectKind) -> Option<Streamed> {
    Streamed::ALL.into_iter().find(|streamed| streamed.subject() == kind)
}

fn is_left_of(is_left: &impl Fn(Streamed, &Id) -> bool) -> impl Fn(&OpenItem) -> bool {
    move |item| streamed(item.kind).is_some_and(|kind| is_left(kind, &item.id))
}

/// `RUN_STARTED`; whether the run began at all.
fn begin(run: &Run, events: &mut Vec<Event>) -> bool {
    let (Some(thread), Some(id)) = (&run.thread_id, &run.run_id) else { return false };
    let mut started = RunStartedEvent::new(thread.clone(), id.clone());
    started.protocol_version = run.protocol_version.clone();
    started.parent_run_id = run.parent_run_id.clone();
    if let Some(resume) = &run.resume {
        let mut input = RunAgentInput::new(thread.clone(), id.clone(), []);
        input.resume = Some(resume.to_vec());
        started.input = Some(Box::new(input));
    }
    events.push(started.into());
    true
}

/// The terminal event, if the run has ended by one. One that was cut off is as if it went on.
fn end(run: &Run, has_begun: bool, events: &mut Vec<Event>) {
    let outcome = match &run.outcome {
        RunOutcome::Running | RunOutcome::Truncated | RunOutcome::Rejected => return,
        RunOutcome::Error { message, code } => {
            if run.result.is_some() {
                finish(run, None, events);
            }
            let mut error = RunErrorEvent::new(message.clone());
            error.code = code.clone();
            error.usage = run.usage.as_deref().map(<[_]>::to_vec);
            events.push(error.into());
            return;
        }
        RunOutcome::Success { pending_tool_call_ids } if pending_tool_call_ids.is_empty() => None,
        RunOutcome::Success { pending_tool_call_ids } => {
            let mut success = SuccessOutcome::new();
            success.pending_tool_call_ids = Some(pending_tool_call_ids.to_vec());
            Some(RunFinishedOutcome::Success(success))
        }
        RunOutcome::Interrupt { interrupts, .. } => {
            let interrupts = Interrupts::from_iter(interrupts.iter().cloned());
            interrupts.map(|interrupts| RunFinishedOutcome::Interrupt(InterruptOutcome::new(interrupts)))
        }
        RunOutcome::Cancelled => Some(RunFinishedOutcome::Cancelled(CancelledOutcome::new())),
    };
    if has_begun {
        finish(run, outcome, events);
    }
}

fn finish(run: &Run, outcome: Option<RunFinishedOutcome>, events: &mut Vec<Event>) {
    if let (Some(thread), Some(id)) = (&run.thread_id, &run.run_id) {
        let mut finished = RunFinishedEvent::new(thread.clone(), id.clone());
        finished.outcome = outcome;
        finished.result = run.result.as_deref().cloned();
        finished.usage = run.usage.as_deref().map(<[_]>::to_vec);
        events.push(finished.into());
    }
}

/// An invocation, and its end where it has come.
fn invoke(subagent: &Subagent, events: &mut Vec<Event>) {
    let id = &subagent.subagent_run_id;
    let mut started = SubagentStartedEvent::new(id.clone(), subagent.name.clone());
    started.description = subagent.description.clone();
    started.parent_subagent_run_id = subagent.parent_subagent_run_id.clone();
    started.parent_tool_call_id = subagent.parent_tool_call_id.clone();
    started.parent_message_id = subagent.parent_message_id.clone();
    events.push(started.into());
    match &subagent.status {
        SubagentStatus::Running | SubagentStatus::Abandoned => {}
        SubagentStatus::Finished(outcome) => {
            let mut finished = SubagentFinishedEvent::new(id.clone());
            finished.outcome = Some(outcome.clone());
            finished.result = subagent.result.as_deref().cloned();
            events.push(finished.into());
        }
        SubagentStatus::Error { message, code } => {
            let mut failed = SubagentErrorEvent::new(id.clone(), message.clone());
            failed.code = code.clone();
            events.push(failed.into());
        }
    }
}
