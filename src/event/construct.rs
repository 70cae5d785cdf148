//! Functions of `Event` that make an event from its required fields.

use std::sync::Arc;

use serde_json::Value;
use smol_str::SmolStr;

use super::*;
use crate::id::{MessageId, RunId, ThreadId, ToolCallId};
use crate::message::{Content, Message};
use crate::shared::Document;

/// Each line: the name of the function, its arguments, and the struct whose `new` takes the same.
macro_rules! constructors {
    ($($name:ident($($argument:ident: $type:ty),*) $event:ident;)*) => {
        /// Each makes an event from its required fields. For an event with optional fields, make the
        /// struct, set them, and turn it into an event by `From`.
        ///
        /// ```
        /// use ag_ui_stream::Event;
        /// use ag_ui_stream::event::TextMessageStartEvent;
        ///
        /// let events = [
        ///     Event::run_started("thread", "run"),
        ///     Event::text_chunk("message", "Hello"),
        ///     Event::run_finished("thread", "run"),
        /// ];
        /// assert_eq!(Event::text_start("m"), TextMessageStartEvent::new("m").into());
        /// # let _ = events;
        /// ```
        impl Event {
            $(
                #[doc = concat!("A [`", stringify!($event), "`].")]
                #[must_use]
                pub fn $name($($argument: impl Into<$type>),*) -> Self {
                    $event::new($($argument),*).into()
                }
            )*
        }
    };
}

constructors! {
    run_started(thread_id: ThreadId, run_id: RunId) RunStartedEvent;
    run_finished(thread_id: ThreadId, run_id: RunId) RunFinishedEvent;
    run_error(message: Arc<str>) RunErrorEvent;
    step_started(name: Arc<str>) StepStartedEvent;
    step_finished(name: Arc<str>) StepFinishedEvent;
    text_start(message_id: MessageId) TextMessageStartEvent;
    text_content(message_id: MessageId, delta: SmolStr) TextMessageContentEvent;
    text_end(message_id: MessageId) TextMessageEndEvent;
    tool_call_start(tool_call_id: ToolCallId, tool_name: Arc<str>) ToolCallStartEvent;
    tool_call_args(tool_call_id: ToolCallId, delta: SmolStr) ToolCallArgsEvent;
    tool_call_end(tool_call_id: ToolCallId) ToolCallEndEvent;
    tool_call_result(message_id: MessageId, tool_call_id: ToolCallId, content: Content) ToolCallResultEvent;
    reasoning_message_start(message_id: MessageId) ReasoningMessageStartEvent;
    reasoning_message_content(message_id: MessageId, delta: SmolStr) ReasoningMessageContentEvent;
    reasoning_message_end(message_id: MessageId) ReasoningMessageEndEvent;
    state_snapshot(state: Document) StateSnapshotEvent;
    state_delta(patch: JsonPatch) StateDeltaEvent;
    messages_snapshot(messages: Vec<Message>) MessagesSnapshotEvent;
    custom(name: Arc<str>, value: Value) CustomEvent;
}

impl Event {
    /// A [`TextMessageChunkEvent`] with a piece of this message; it opens a new message.
    #[must_use]
    pub fn text_chunk(message_id: impl Into<MessageId>, delta: impl Into<SmolStr>) -> Self {
        let mut chunk = TextMessageChunkEvent::new();
        chunk.message_id = Some(message_id.into());
        chunk.delta = Some(delta.into());
        chunk.into()
    }

    /// A [`ReasoningMessageChunkEvent`] with a piece of this message; it opens a new message.
    #[must_use]
    pub fn reasoning_chunk(message_id: impl Into<MessageId>, delta: impl Into<SmolStr>) -> Self {
        let mut chunk = ReasoningMessageChunkEvent::new();
        chunk.message_id = Some(message_id.into());
        chunk.delta = Some(delta.into());
        chunk.into()
    }

    /// A [`ToolCallChunkEvent`] with a piece of this call's arguments; it opens a new call.
    #[must_use]
    pub fn tool_call_chunk(
        tool_call_id: impl Into<ToolCallId>,
        tool_name: impl Into<Arc<str>>,
        delta: impl Into<SmolStr>,
    ) -> Self {
        let mut chunk = ToolCallChunkEvent::new();
        chunk.tool_call_id = Some(tool_call_id.into());
        chunk.tool_call_name = Some(tool_name.into());
        chunk.delta = Some(delta.into());
        chunk.into()
    }
}
