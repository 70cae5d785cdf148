//! The events of text messages: <https://docs.ag-ui.com/spec/1.0/events/text-messages>.

use super::BaseEvent;
use std::sync::Arc;

use smol_str::SmolStr;

use crate::id::MessageId;

closed_set! {
    /// Whose message a streamed text message is.
    pub enum TextMessageRole {
        /// The application's developer.
        Developer = "developer",
        /// The system.
        System = "system",
        /// The agent; what an absent role means (rule S6).
        Assistant = "assistant",
        /// The user.
        User = "user",
    }
}

object! {
    /// Opens a text message, or opens a closed one again (rules S1, S2, S5).
    pub struct TextMessageStartEvent {
        tag "type" "TEXT_MESSAGE_START";
        required {
            /// The message that it opens.
            message_id: MessageId = "messageId",
        }
        optional {
            /// Whose message it is; see [`TextMessageStartEvent::role_or_default`].
            role: TextMessageRole = "role",
            /// Which speaker of that role.
            name: Arc<str> = "name",
        }
        flatten subagent_run_id base;
    }
}

impl TextMessageStartEvent {
    /// The role, assistant where it is absent (rule S6).
    #[must_use]
    pub fn role_or_default(&self) -> TextMessageRole {
        self.role.unwrap_or(TextMessageRole::Assistant)
    }
}

object! {
    /// Extends an open text message.
    pub struct TextMessageContentEvent {
        tag "type" "TEXT_MESSAGE_CONTENT";
        required {
            /// The message that it extends.
            message_id: MessageId = "messageId",
            /// The next piece of the text, to be appended as it is (rule S3).
            delta: SmolStr = "delta",
        }
        flatten subagent_run_id base;
    }
}

object! {
    /// Closes a text message.
    pub struct TextMessageEndEvent {
        tag "type" "TEXT_MESSAGE_END";
        required {
            /// The message that it closes.
            message_id: MessageId = "messageId",
        }
        flatten subagent_run_id base;
    }
}

object! {
    /// The short spelling of a text message (rules C1 to C11). It never leaves expansion.
    pub struct TextMessageChunkEvent {
        tag "type" "TEXT_MESSAGE_CHUNK";
        optional {
            /// The message; required on its first chunk (rule C2).
            message_id: MessageId = "messageId",
            /// Whose message it is; a continuation may only repeat it (rule C5).
            role: TextMessageRole = "role",
            /// The next piece of the text.
            delta: SmolStr = "delta",
            /// Which speaker of that role; a continuation may only repeat it (rule C5).
            name: Arc<str> = "name",
        }
        flatten subagent_run_id base;
    }
}
