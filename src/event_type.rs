//! The types of the 31 events: the `type` of their wire form.

use core::fmt;

use serde::{Serialize, Serializer};

macro_rules! event_types {
    ($($variant:ident $name:literal;)*) => {
        /// The type of an event: the `type` of its wire form.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum EventType {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl EventType {
            /// Every type, in the order of the schema.
            pub const ALL: &'static [EventType] = &[$(EventType::$variant),*];

            /// The type as it is on the wire: `"TEXT_MESSAGE_START"`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(EventType::$variant => $name,)* }
            }

            /// The type with this wire form, if AG-UI 1.0 has it.
            #[must_use]
            pub fn from_wire(text: &str) -> Option<Self> {
                match text { $($name => Some(EventType::$variant),)* _ => None }
            }
        }
    };
}

event_types! {
    TextMessageStart "TEXT_MESSAGE_START";
    TextMessageContent "TEXT_MESSAGE_CONTENT";
    TextMessageEnd "TEXT_MESSAGE_END";
    TextMessageChunk "TEXT_MESSAGE_CHUNK";
    ToolCallStart "TOOL_CALL_START";
    ToolCallArgs "TOOL_CALL_ARGS";
    ToolCallEnd "TOOL_CALL_END";
    ToolCallChunk "TOOL_CALL_CHUNK";
    ToolCallResult "TOOL_CALL_RESULT";
    StateSnapshot "STATE_SNAPSHOT";
    StateDelta "STATE_DELTA";
    MessagesSnapshot "MESSAGES_SNAPSHOT";
    ActivitySnapshot "ACTIVITY_SNAPSHOT";
    ActivityDelta "ACTIVITY_DELTA";
    Raw "RAW";
    Custom "CUSTOM";
    RunStarted "RUN_STARTED";
    RunFinished "RUN_FINISHED";
    RunError "RUN_ERROR";
    StepStarted "STEP_STARTED";
    StepFinished "STEP_FINISHED";
    ReasoningStart "REASONING_START";
    ReasoningMessageStart "REASONING_MESSAGE_START";
    ReasoningMessageContent "REASONING_MESSAGE_CONTENT";
    ReasoningMessageEnd "REASONING_MESSAGE_END";
    ReasoningMessageChunk "REASONING_MESSAGE_CHUNK";
    ReasoningEnd "REASONING_END";
    ReasoningEncryptedValue "REASONING_ENCRYPTED_VALUE";
    SubagentStarted "SUBAGENT_STARTED";
    SubagentFinished "SUBAGENT_FINISHED";
    SubagentError "SUBAGENT_ERROR";
}

impl fmt::Debug for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for EventType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
