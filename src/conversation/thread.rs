//! `Thread`: the state of a conversation between two runs. It is not async: a run is added as its snapshot.

use core::fmt;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::Interrupt;
use crate::id::{RunId, ThreadId, ToolCallId};
use crate::message::{Message, ToolCall, ToolMessage};
use crate::options::Options;
use crate::run_input::{Context, ResumeEntry, RunAgentInput};
use crate::shared::Document;
use crate::snapshot::{RunOutcome, Snapshot};

/// A thread: its messages and state, the context for the agent, and the interrupts and tool calls that wait.
///
/// It is saved and restored through `serde`, as a JSON object. If a run broke off, its text is saved, but not
/// a tool call that was cut off ([`Snapshot::next_input`]).
///
/// ```
/// use ag_ui_stream::conversation::Thread;
/// use ag_ui_stream::message::SystemMessage;
/// use serde_json::json;
///
/// let mut thread = Thread::new("thread");
/// thread.push(SystemMessage::new("m0", "Be brief."));
/// thread.set_state(json!({"language": "en"}));
/// let saved = serde_json::to_value(&thread)?;
/// assert_eq!(saved["messages"][0]["content"], "Be brief.");
/// let restored: Thread = serde_json::from_value(saved)?;
/// assert_eq!(restored.snapshot(), thread.snapshot());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "Saved", into = "Saved")]
pub struct Thread {
    thread_id: ThreadId,
    snapshot: Snapshot,
    context: Vec<Context>,
    forwarded_props: Option<Value>,
    interrupts: Vec<Interrupt>,
    calls: Vec<ToolCallId>,
}

/// A thread as it is saved.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Saved {
    thread_id: ThreadId,
    messages: Vec<Message>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    context: Vec<Context>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forwarded_props: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    interrupts: Vec<Interrupt>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pending_tool_call_ids: Vec<ToolCallId>,
}

impl From<Saved> for Thread {
    fn from(saved: Saved) -> Self {
        let mut thread = Self {
            thread_id: saved.thread_id,
            snapshot: snapshot_of(saved.messages, saved.state.filter(|state| !state.is_null())),
            context: saved.context,
            forwarded_props: saved.forwarded_props.filter(|props| !props.is_null()),
            interrupts: saved.interrupts,
            calls: saved.pending_tool_call_ids,
        };
        thread.forget_answered_calls();
        thread
    }
}

impl From<Thread> for Saved {
    fn from(thread: Thread) -> Self {
        let input = thread.snapshot.next_input("", "");
        Self {
            thread_id: thread.thread_id,
            messages: input.messages,
            state: input.state,
            context: thread.context,
            forwarded_props: thread.forwarded_props,
            interrupts: thread.interrupts,
            pending_tool_call_ids: thread.calls,
        }
    }
}

fn snapshot_of(messages: Vec<Message>, state: Option<Value>) -> Snapshot {
    let options = Options::new().history(messages);
    let options = match state {
        Some(state) => options.state(state),
        None => options,
    };
    options.build().snapshot().clone()
}

impl Thread {
    /// A new thread with this id.
    #[must_use]
    pub fn new(thread_id: impl Into<ThreadId>) -> Self {
        Self {
            thread_id: thread_id.into(),
            snapshot: Snapshot::default(),
            context: Vec::new(),
            forwarded_props: None,
            interrupts: Vec::new(),
            calls: Vec::new(),
        }
    }

    /// The id of the thread.
    #[must_use]
    pub fn thread_id(&self) -> &ThreadId {
        &self.thread_id
    }

    /// The conversation after the last run. [`Snapshot::run`] says how that run ended.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The interrupts that no run was given an answer to, in the order in which they came (rule T4).
    #[must_use]
    pub fn interrupts(&self) -> &[Interrupt] {
        &self.interrupts
    }

    /// The tool calls that wait for a result from the application (rule R9), in the order in which they were
    /// made. A call that an interrupt is about is not among them: it waits for the answer to the interrupt.
    pub fn pending_calls(&self) -> impl Iterator<Item = &ToolCall> {
        let is_asked = |id: &ToolCallId| self.interrupts.iter().any(|asked| asked.tool_call_id.as_ref() == Some(id));
        self.calls.iter().filter(move |id| !is_asked(id)).filter_map(|id| self.snapshot.tool_call(id))
    }

    /// Adds a message, for example a system message. Costs the number of messages, as every change here does.
    pub fn push(&mut self, message: impl Into<Message>) {
        self.change(|input| input.messages.push(message.into()));
    }

    /// Sets the shared state; the next run gets `{}` for `null` (rule A6).
    pub fn set_state(&mut self, state: impl Into<Document>) {
        let state = state.into().to_value();
        self.change(|input| input.state = Some(state).filter(|state| !state.is_null()));
    }

    /// Sets the context in the input of each run.
    pub fn set_context(&mut self, context: impl IntoIterator<Item = Context>) {
        self.context = context.into_iter().collect();
    }

    /// Sets the forwarded properties in the input of each run: anything that only this agent understands.
    pub fn set_forwarded_props(&mut self, props: impl Into<Value>) {
        self.forwarded_props = Some(props.into()).filter(|props| !props.is_null());
    }

    /// The input of the next run: messages, state, context, forwarded properties.
    #[must_use]
    pub fn next_input(&self, run_id: impl Into<RunId>) -> RunAgentInput {
        let mut input = self.snapshot.next_input(self.thread_id.clone(), run_id);
        input.context = Some(self.context.clone()).filter(|context| !context.is_empty());
        input.forwarded_props = self.forwarded_props.clone();
        input
    }

    fn change(&mut self, change: impl FnOnce(&mut RunAgentInput)) {
        let mut input = self.snapshot.next_input("", "");
        change(&mut input);
        self.snapshot = snapshot_of(input.messages, input.state);
        self.forget_answered_calls();
    }

    /// Adds the messages that begin a run: each result after the message that made its call and after the
    /// results that follow it already (rule S9), then the message of the user.
    pub(super) fn open(&mut self, results: Vec<ToolMessage>, message: Option<Message>) {
        if results.is_empty() && message.is_none() {
            return;
        }
        self.change(|input| {
            for result in results {
                let made = |message: &Message| message.tool_calls().any(|call| call.id == result.tool_call_id);
                let place = input.messages.iter().position(made).map_or(input.messages.len(), |place| {
                    let after = input.messages.iter().skip(place + 1);
                    place + 1 + after.take_while(|message| matches!(message, Message::Tool(_))).count()
                });
                input.messages.insert(place, result.into());
            }
            input.messages.extend(message);
        });
    }

    /// Adds the outcome of one run or of several on one stream. The first was given these answers.
    pub(super) fn close(&mut self, snapshot: Snapshot, answers: &[ResumeEntry]) {
        for (place, run) in snapshot.runs().enumerate() {
            // A run that failed before it began was given no answers.
            let sent = if place == 0 && run.run_id.is_some() { answers } else { &[] };
            let answers = sent.iter().chain(run.resume.as_deref().unwrap_or_default());
            let answered: HashSet<_> = answers.map(|answer| &answer.interrupt_id).collect();
            self.interrupts.retain(|interrupt| !answered.contains(&interrupt.id));
            if let RunOutcome::Interrupt { interrupts, .. } = &run.outcome {
                self.interrupts.retain(|before| interrupts.iter().all(|interrupt| interrupt.id != before.id));
                self.interrupts.extend(interrupts.iter().cloned());
            }
            let pending = run.pending_tool_call_ids();
            self.calls.retain(|call| !pending.contains(call));
            self.calls.extend(pending.iter().cloned());
        }
        self.snapshot = snapshot;
        self.forget_answered_calls();
    }

    /// Forgets the calls that have a result, and those that are no longer in the conversation.
    fn forget_answered_calls(&mut self) {
        if self.calls.is_empty() {
            return;
        }
        let results = self.snapshot.messages().into_iter().filter_map(|message| match message {
            Message::Tool(result) => Some(&result.tool_call_id),
            _ => None,
        });
        let answered: HashSet<&ToolCallId> = results.collect();
        self.calls.retain(|id| !answered.contains(id) && self.snapshot.tool_call(id).is_some());
    }
}

/// Shows the number of things instead of the things.
impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread")
            .field("thread_id", &self.thread_id)
            .field("snapshot", &self.snapshot)
            .field("interrupts", &self.interrupts.len())
            .field("pending_calls", &self.calls.len())
            .finish_non_exhaustive()
    }
}
