//! The events of tool calls: <https://docs.ag-ui.com/spec/1.0/events/tool-calls>.

use super::BaseEvent;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use smol_str::SmolStr;

use crate::id::{MessageId, ToolCallId};
use crate::json::node::Node;
use crate::message::Content;
use crate::schema::decode::{Context, Decode, Decoded};
use crate::schema::text::Reader;

object! {
    /// Opens a tool call, or opens a closed one again.
    pub struct ToolCallStartEvent {
        tag "type" "TOOL_CALL_START";
        required {
            /// The call that it opens.
            tool_call_id: ToolCallId = "toolCallId",
            /// The tool that is called.
            tool_call_name: Arc<str> = "toolCallName",
        }
        optional {
            /// The assistant message that the call belongs to (rule A3).
            parent_message_id: MessageId = "parentMessageId",
        }
        flatten subagent_run_id base;
    }
}

object! {
    /// Extends the arguments of an open tool call.
    pub struct ToolCallArgsEvent {
        tag "type" "TOOL_CALL_ARGS";
        required {
            /// The call that it extends.
            tool_call_id: ToolCallId = "toolCallId",
            /// The next piece of the arguments, which are JSON text only when complete (rule A9).
            delta: SmolStr = "delta",
        }
        flatten subagent_run_id base;
    }
}

object! {
    /// Closes a tool call: its arguments are complete.
    pub struct ToolCallEndEvent {
        tag "type" "TOOL_CALL_END";
        required {
            /// The call that it closes.
            tool_call_id: ToolCallId = "toolCallId",
        }
        flatten subagent_run_id base;
    }
}

object! {
    /// The short spelling of a tool call (rules C1 to C11). It never leaves expansion.
    pub struct ToolCallChunkEvent {
        tag "type" "TOOL_CALL_CHUNK";
        optional {
            /// The call; required on its first chunk (rule C2).
            tool_call_id: ToolCallId = "toolCallId",
            /// The tool; required on the first chunk, only to be repeated later (rule C5).
            tool_call_name: Arc<str> = "toolCallName",
            /// The assistant message that the call belongs to.
            parent_message_id: MessageId = "parentMessageId",
            /// The next piece of the arguments.
            delta: SmolStr = "delta",
        }
        flatten subagent_run_id base;
    }
}

object! {
    /// What a tool call gave back: a message of its own (rule S9).
    pub struct ToolCallResultEvent {
        tag "type" "TOOL_CALL_RESULT";
        required {
            /// The id of the tool message.
            message_id: MessageId = "messageId",
            /// The call that it answers; it need not be open.
            tool_call_id: ToolCallId = "toolCallId",
            /// The result.
            content: Content = "content",
        }
        optional {
            /// Always `tool`.
            role: ToolRole = "role",
        }
        flatten subagent_run_id base;
    }
}

/// The one role of a tool result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ToolRole;

impl Serialize for ToolRole {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("tool")
    }
}

impl Decode for ToolRole {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        match node {
            Node::String(text) if text.as_str() == "tool" => Ok(Self),
            other => Err(cx.malformed("\"tool\"", other)),
        }
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        (reader.plain()? == "tool").then_some(Self)
    }
}

deserialize!(ToolRole);
