//! What one event did to which item.

use super::Update;
use crate::error::SubjectKind;
use crate::event::{Event, ReasoningEncryptedValueSubtype as Subtype};
use crate::message::{Message, ToolCall};

/// What an event did to one item; given by [`Update::effect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effect<'u> {
    /// What it did.
    pub action: Action,
    /// The kind of the item.
    pub kind: SubjectKind,
    /// Its id, or its name for a step. Empty for the state, and for a run that failed before it began.
    pub id: &'u str,
}

/// What an event does to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// The item began, or began again: more is to come.
    Opened,
    /// A further part of it came.
    Extended,
    /// It is complete.
    Closed,
    /// It came or was changed as a whole: an activity, the state, the result of a tool call, an encrypted
    /// value.
    Set,
}

impl Update {
    /// What the event did to which item. `None` for a warning, for an event about no item or about
    /// several, such as `MESSAGES_SNAPSHOT`, and for an event that changed nothing.
    ///
    /// A result is about the tool call that it answers.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::error::SubjectKind;
    /// use ag_ui_stream::machine::{Machine, Pipeline, Push};
    /// use ag_ui_stream::snapshot::Action;
    ///
    /// let mut pipeline = Pipeline::new();
    /// pipeline.push(r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#)?;
    /// pipeline.push(r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"book"}"#)?;
    /// let update = std::iter::from_fn(|| pipeline.pop()).last().unwrap();
    /// let effect = update.effect().unwrap();
    /// assert_eq!((effect.action, effect.kind, effect.id), (Action::Opened, SubjectKind::ToolCall, "c"));
    /// assert_eq!(&*update.tool_call().unwrap().function.name, "book");
    /// # Ok::<(), ag_ui_stream::Error>(())
    /// ```
    #[must_use]
    pub fn effect(&self) -> Option<Effect<'_>> {
        use Action::{Closed, Extended, Opened, Set};
        use SubjectKind::{Activity, ReasoningMessage, ReasoningSpan, Run, State, Step, Subagent, TextMessage};
        let (action, kind, id) = match self.event().filter(|_| self.is_change())? {
            Event::TextMessageStart(e) => (Opened, TextMessage, e.message_id.as_str()),
            Event::TextMessageContent(e) => (Extended, TextMessage, e.message_id.as_str()),
            Event::TextMessageEnd(e) => (Closed, TextMessage, e.message_id.as_str()),
            Event::ReasoningMessageStart(e) => (Opened, ReasoningMessage, e.message_id.as_str()),
            Event::ReasoningMessageContent(e) => (Extended, ReasoningMessage, e.message_id.as_str()),
            Event::ReasoningMessageEnd(e) => (Closed, ReasoningMessage, e.message_id.as_str()),
            Event::ReasoningStart(e) => (Opened, ReasoningSpan, e.message_id.as_str()),
            Event::ReasoningEnd(e) => (Closed, ReasoningSpan, e.message_id.as_str()),
            Event::ToolCallStart(e) => (Opened, SubjectKind::ToolCall, e.tool_call_id.as_str()),
            Event::ToolCallArgs(e) => (Extended, SubjectKind::ToolCall, e.tool_call_id.as_str()),
            Event::ToolCallEnd(e) => (Closed, SubjectKind::ToolCall, e.tool_call_id.as_str()),
            Event::ToolCallResult(e) => (Set, SubjectKind::ToolCall, e.tool_call_id.as_str()),
            Event::ReasoningEncryptedValue(e) => match e.subtype {
                Subtype::ToolCall => (Set, SubjectKind::ToolCall, e.entity_id.as_str()),
                Subtype::Message if matches!(self.message(), Some(Message::Reasoning(_))) => {
                    (Set, ReasoningMessage, e.entity_id.as_str())
                }
                Subtype::Message => (Set, TextMessage, e.entity_id.as_str()),
            },
            Event::ActivitySnapshot(e) => (Set, Activity, e.message_id.as_str()),
            Event::ActivityDelta(e) => (Set, Activity, e.message_id.as_str()),
            Event::StateSnapshot(_) | Event::StateDelta(_) => (Set, State, ""),
            Event::StepStarted(e) => (Opened, Step, &*e.step_name),
            Event::StepFinished(e) => (Closed, Step, &*e.step_name),
            Event::SubagentStarted(e) => (Opened, Subagent, e.subagent_run_id.as_str()),
            Event::SubagentFinished(e) => (Closed, Subagent, e.subagent_run_id.as_str()),
            Event::SubagentError(e) => (Closed, Subagent, e.subagent_run_id.as_str()),
            Event::RunStarted(e) => (Opened, Run, e.run_id.as_str()),
            Event::RunFinished(e) => (Closed, Run, e.run_id.as_str()),
            Event::RunError(_) => {
                let id = self.snapshot.run().and_then(|run| run.run_id.as_ref());
                (Closed, Run, id.map_or("", |id| id.as_str()))
            }
            // MESSAGES_SNAPSHOT, RAW and CUSTOM are about no single item; chunks are expanded before.
            _ => return None,
        };
        Some(Effect { action, kind, id })
    }

    /// The tool call that the event opened, extended, closed or answered, after the event; `None` where
    /// there is none.
    #[must_use]
    pub fn tool_call(&self) -> Option<&ToolCall> {
        let effect = self.effect().filter(|effect| effect.kind == SubjectKind::ToolCall)?;
        self.snapshot.tool_call(effect.id)
    }
}
