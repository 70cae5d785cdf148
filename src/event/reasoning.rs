//! The reasoning events: <https://docs.ag-ui.com/spec/1.0/events/reasoning>.

use super::BaseEvent;
use std::sync::Arc;

use smol_str::SmolStr;

use crate::id::MessageId;

closed_set! {
    /// What an encrypted value belongs to.
    pub enum ReasoningEncryptedValueSubtype {
        /// A tool call.
        ToolCall = "tool-call",
        /// A message.
        Message = "message",
    }
}

object! {
    /// Opens a reasoning span. It builds no message (rule S7).
    pub struct ReasoningStartEvent {
        tag "type" "REASONING_START";
        required {
            /// The span that it opens.
            message_id: MessageId = "messageId",
        }
        flatten subagent_run_id base;
    }
}

object! {
    /// Opens a reasoning message, or opens a closed one again.
    pub struct ReasoningMessageStartEvent {
        tag "type" "REASONING_MESSAGE_START";
        const "role" "reasoning";
        required {
            /// The message that it opens.
            message_id: MessageId = "messageId",
        }
        flatten subagent_run_id base;
    }
}

object! {
    /// Extends an open reasoning message.
    pub struct ReasoningMessageContentEvent {
        tag "type" "REASONING_MESSAGE_CONTENT";
        required {
            /// The message that it extends.
            message_id: MessageId = "messageId",
            /// The next piece of the text.
            delta: SmolStr = "delta",
        }
        flatten subagent_run_id base;
    }
}

object! {
    /// Closes a reasoning message.
    pub struct ReasoningMessageEndEvent {
        tag "type" "REASONING_MESSAGE_END";
        required {
            /// The message that it closes.
            message_id: MessageId = "messageId",
        }
        flatten subagent_run_id base;
    }
}

object! {
    /// The short spelling of a reasoning message (rules C1 to C11). It never leaves expansion.
    pub struct ReasoningMessageChunkEvent {
        tag "type" "REASONING_MESSAGE_CHUNK";
        optional {
            /// The message; required on its first chunk (rule C2).
            message_id: MessageId = "messageId",
            /// The next piece of the text.
            delta: SmolStr = "delta",
        }
        flatten subagent_run_id base;
    }
}

object! {
    /// Closes a reasoning span.
    pub struct ReasoningEndEvent {
        tag "type" "REASONING_END";
        required {
            /// The span that it closes.
            message_id: MessageId = "messageId",
        }
        flatten subagent_run_id base;
    }
}

object! {
    /// An opaque value that belongs to a message or a tool call and goes back to the producer
    /// with it (rule A7).
    pub struct ReasoningEncryptedValueEvent {
        tag "type" "REASONING_ENCRYPTED_VALUE";
        required {
            /// What it belongs to.
            subtype: ReasoningEncryptedValueSubtype = "subtype",
            /// The id of that message or tool call.
            entity_id: MessageId = "entityId",
            /// The value.
            encrypted_value: Arc<str> = "encryptedValue",
        }
        flatten subagent_run_id base;
    }
}
