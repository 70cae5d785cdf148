//! The kinds of streamed items: START opens, CONTENT or ARGS extends and END closes them (rule S1).

use smol_str::SmolStr;

use crate::error::SubjectKind;
use crate::event::{
    BaseEvent, Event, EventType, ReasoningMessageContentEvent, ReasoningMessageEndEvent, TextMessageContentEvent,
    TextMessageEndEvent, ToolCallArgsEvent, ToolCallEndEvent,
};
use crate::id::{Id, MessageId, SubagentRunId, ToolCallId};

/// The kinds of items. Ids of different kinds are different namespaces (rule S1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Streamed {
    Text,
    ToolCall,
    Reasoning,
}

impl Streamed {
    pub(super) const ALL: [Self; 3] = [Self::Text, Self::ToolCall, Self::Reasoning];

    pub(super) fn subject(self) -> SubjectKind {
        match self {
            Self::Text => SubjectKind::TextMessage,
            Self::ToolCall => SubjectKind::ToolCall,
            Self::Reasoning => SubjectKind::ReasoningMessage,
        }
    }

    /// The type of the chunks that it is sent in.
    pub(super) fn chunk(self) -> EventType {
        match self {
            Self::Text => EventType::TextMessageChunk,
            Self::ToolCall => EventType::ToolCallChunk,
            Self::Reasoning => EventType::ReasoningMessageChunk,
        }
    }

    pub(super) fn id_field(self) -> &'static str {
        match self {
            Self::Text | Self::Reasoning => "messageId",
            Self::ToolCall => "toolCallId",
        }
    }

    pub(super) fn content(
        self,
        item: Id,
        subagent_run_id: Option<SubagentRunId>,
        delta: SmolStr,
        base: BaseEvent,
    ) -> Event {
        match self {
            Self::Text => {
                let message_id = MessageId::from_id(item);
                Event::TextMessageContent(TextMessageContentEvent { message_id, delta, subagent_run_id, base })
            }
            Self::ToolCall => {
                let tool_call_id = ToolCallId::from_id(item);
                Event::ToolCallArgs(ToolCallArgsEvent { tool_call_id, delta, subagent_run_id, base })
            }
            Self::Reasoning => {
                let message_id = MessageId::from_id(item);
                Event::ReasoningMessageContent(ReasoningMessageContentEvent {
                    message_id,
                    delta,
                    subagent_run_id,
                    base,
                })
            }
        }
    }

    pub(super) fn end(self, item: Id, subagent_run_id: Option<SubagentRunId>) -> Event {
        let base = BaseEvent::default();
        match self {
            Self::Text => {
                let message_id = MessageId::from_id(item);
                Event::TextMessageEnd(TextMessageEndEvent { message_id, subagent_run_id, base })
            }
            Self::ToolCall => {
                let tool_call_id = ToolCallId::from_id(item);
                Event::ToolCallEnd(ToolCallEndEvent { tool_call_id, subagent_run_id, base })
            }
            Self::Reasoning => {
                let message_id = MessageId::from_id(item);
                Event::ReasoningMessageEnd(ReasoningMessageEndEvent { message_id, subagent_run_id, base })
            }
        }
    }
}
