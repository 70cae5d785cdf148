//! The table of the 31 events, and `EventType`, the `type` of their wire form.

use core::fmt;

use serde::{Serialize, Serializer};

/// The events of AG-UI 1.0, one line each: the variant of [`EventType`] and of `Event`, the `type` on
/// the wire, the struct that holds its members (in a box where it is large or rare), and which chunk
/// streams it ends.
macro_rules! for_each_event {
    ($with:ident) => {
        $with! {
            TextMessageStart "TEXT_MESSAGE_START" TextMessageStartEvent, ends Lane;
            TextMessageContent "TEXT_MESSAGE_CONTENT" TextMessageContentEvent, ends Item;
            TextMessageEnd "TEXT_MESSAGE_END" TextMessageEndEvent, ends Item;
            TextMessageChunk "TEXT_MESSAGE_CHUNK" TextMessageChunkEvent boxed, ends Chunk;
            ToolCallStart "TOOL_CALL_START" ToolCallStartEvent, ends Lane;
            ToolCallArgs "TOOL_CALL_ARGS" ToolCallArgsEvent, ends Item;
            ToolCallEnd "TOOL_CALL_END" ToolCallEndEvent, ends Item;
            ToolCallChunk "TOOL_CALL_CHUNK" ToolCallChunkEvent boxed, ends Chunk;
            ToolCallResult "TOOL_CALL_RESULT" ToolCallResultEvent, ends Lane;
            StateSnapshot "STATE_SNAPSHOT" StateSnapshotEvent, ends Lane;
            StateDelta "STATE_DELTA" StateDeltaEvent, ends Lane;
            MessagesSnapshot "MESSAGES_SNAPSHOT" MessagesSnapshotEvent, ends All;
            ActivitySnapshot "ACTIVITY_SNAPSHOT" ActivitySnapshotEvent boxed, ends None;
            ActivityDelta "ACTIVITY_DELTA" ActivityDeltaEvent boxed, ends None;
            Raw "RAW" RawPassthroughEvent boxed, ends None;
            Custom "CUSTOM" CustomEvent boxed, ends Lane;
            RunStarted "RUN_STARTED" RunStartedEvent boxed, ends Run;
            RunFinished "RUN_FINISHED" RunFinishedEvent boxed, ends Run;
            RunError "RUN_ERROR" RunErrorEvent boxed, ends Run;
            StepStarted "STEP_STARTED" StepStartedEvent, ends Lane;
            StepFinished "STEP_FINISHED" StepFinishedEvent, ends Lane;
            ReasoningStart "REASONING_START" ReasoningStartEvent, ends Lane;
            ReasoningMessageStart "REASONING_MESSAGE_START" ReasoningMessageStartEvent, ends Lane;
            ReasoningMessageContent "REASONING_MESSAGE_CONTENT" ReasoningMessageContentEvent, ends Item;
            ReasoningMessageEnd "REASONING_MESSAGE_END" ReasoningMessageEndEvent, ends Item;
            ReasoningMessageChunk "REASONING_MESSAGE_CHUNK" ReasoningMessageChunkEvent, ends Chunk;
            ReasoningEnd "REASONING_END" ReasoningEndEvent, ends Lane;
            ReasoningEncryptedValue "REASONING_ENCRYPTED_VALUE" ReasoningEncryptedValueEvent, ends None;
            SubagentStarted "SUBAGENT_STARTED" SubagentStartedEvent boxed, ends None;
            SubagentFinished "SUBAGENT_FINISHED" SubagentFinishedEvent boxed, ends Lane;
            SubagentError "SUBAGENT_ERROR" SubagentErrorEvent boxed, ends Lane;
        }
    };
}

pub(crate) use for_each_event;

/// Which chunk streams an event ends (rules C3, C6 to C8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// The event is a chunk: it depends on its lane.
    Chunk,
    /// None.
    None,
    /// The one of its lane.
    Lane,
    /// The one of its lane, and the one that holds its item.
    Item,
    /// All.
    All,
    /// All, and the run with all its open items.
    Run,
}

macro_rules! event_types {
    ($($variant:ident $name:literal $event:ident $($boxed:ident)?, ends $ends:ident;)*) => {
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

            /// Which chunk streams an event of this type ends.
            pub(crate) const fn ends(self) -> Ends {
                match self { $(EventType::$variant => Ends::$ends,)* }
            }
        }
    };
}

for_each_event!(event_types);

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
