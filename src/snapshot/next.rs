//! The input of a thread's next run, made from a snapshot.

use std::collections::HashSet;

use super::{Entry, ItemStatus, Snapshot};
use crate::id::{RunId, ThreadId, ToolCallId};
use crate::message::Message;
use crate::run_input::RunAgentInput;

impl Snapshot {
    /// The input of the next run of the thread: the messages and the state. The application adds its
    /// own messages.
    ///
    /// - A tool call that was never closed, as in a run that failed, is left out with its result, and
    ///   with its message if nothing else is in it: its arguments are incomplete (rule A9).
    /// - A state of `null` is left out, as an input cannot carry it: the run starts from `{}`, here and
    ///   at the agent (rule A6).
    ///
    /// For the answers to interrupts see [`Snapshot::resume`]. O(messages).
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::machine::{Pipeline, Push};
    /// use ag_ui_stream::message::UserMessage;
    ///
    /// let mut pipeline = Pipeline::new();
    /// for event in [
    ///     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r1"}"#,
    ///     r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"book"}"#,
    ///     r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\"to\": \"Par"}"#,
    ///     r#"{"type":"RUN_ERROR","message":"overloaded"}"#,
    /// ] {
    ///     pipeline.push(event)?;
    /// }
    /// let mut input = pipeline.snapshot().next_input("t", "r2");
    /// assert_eq!(input.messages, []);
    /// input.messages.push(UserMessage::new("m", "Try again.").into());
    /// # Ok::<(), ag_ui_stream::Error>(())
    /// ```
    #[must_use]
    pub fn next_input(&self, thread_id: impl Into<ThreadId>, run_id: impl Into<RunId>) -> RunAgentInput {
        let mut cut: HashSet<ToolCallId> = HashSet::new();
        let mut messages = Vec::with_capacity(self.messages().len());
        for (key, slot) in self.0.messages.iter_keys() {
            messages.extend(self.0.resolve(key, slot).and_then(|entry| self.whole(key, entry, &mut cut)));
        }
        messages.retain(|message| !matches!(message, Message::Tool(result) if cut.contains(&result.tool_call_id)));
        let mut input = RunAgentInput::new(thread_id, run_id, messages);
        input.state = Some(self.state().to_value()).filter(|state| !state.is_null());
        input
    }

    /// The message without calls that were never closed, which are added to `cut`; `None` where nothing
    /// is left.
    fn whole(&self, key: u64, entry: &Entry, cut: &mut HashSet<ToolCallId>) -> Option<Message> {
        let Message::Assistant(message) = &entry.message else { return Some(entry.message.clone()) };
        let is_cut = |id: &ToolCallId| {
            let place = self.0.rest.calls.get(id.id());
            place.is_some_and(|place| place.message == key && place.status != ItemStatus::Complete)
        };
        let before = cut.len();
        cut.extend(entry.message.tool_calls().map(|call| &call.id).filter(|id| is_cut(id)).cloned());
        if cut.len() == before {
            return Some(entry.message.clone());
        }
        let mut message = message.clone();
        let calls = message.tool_calls.take();
        let mut calls = calls.iter().flatten().filter(|call| !cut.contains(&call.id)).cloned().peekable();
        message.tool_calls = calls.peek().is_some().then(|| calls.collect());
        let is_left = message.tool_calls.is_some() || message.content.as_ref().is_some_and(|text| !text.is_empty());
        is_left.then(|| message.into())
    }
}
