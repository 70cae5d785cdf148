//! The 31 events of AG-UI 1.0, as types.

use core::fmt;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::wire::decode::{Context, Decode, Faults, NonNull, Object};

mod activity;
mod reasoning;
mod run;
mod special;
mod state;
mod step;
mod subagent;
mod text;
mod tool;

pub use activity::{ActivityDeltaEvent, ActivitySnapshotEvent};
pub use reasoning::{
    ReasoningEncryptedValueEvent, ReasoningEncryptedValueSubtype, ReasoningEndEvent, ReasoningMessageChunkEvent,
    ReasoningMessageContentEvent, ReasoningMessageEndEvent, ReasoningMessageStartEvent, ReasoningStartEvent,
};
pub use run::{
    Interrupt, Interrupts, RunErrorEvent, RunFinishedCancelledOutcome, RunFinishedEvent, RunFinishedInterruptOutcome,
    RunFinishedOutcome, RunFinishedSuccessOutcome, RunStartedEvent, TokenUsage,
};
pub use special::{CustomEvent, RawPassthroughEvent};
pub use state::{JsonPatch, MessagesSnapshotEvent, Operation, StateDeltaEvent, StateSnapshotEvent};
pub use step::{StepFinishedEvent, StepStartedEvent};
pub use subagent::{
    SubagentErrorEvent, SubagentFinishedEvent, SubagentFinishedOutcome, SubagentFinishedSuccessOutcome,
    SubagentFinishedSuspendedOutcome, SubagentStartedEvent,
};
pub use text::{
    TextMessageChunkEvent, TextMessageContentEvent, TextMessageEndEvent, TextMessageRole, TextMessageStartEvent,
};
pub use tool::{
    ToolCallArgsEvent, ToolCallChunkEvent, ToolCallEndEvent, ToolCallResultEvent, ToolCallStartEvent, ToolRole,
};

/// Open data of the producer's, by key: kept whole (rule E6) and merged key by key (rule A1).
///
/// A clone shares the map.
///
/// ```
/// use ag_ui_stream::event::Metadata;
///
/// let metadata = Metadata::from_iter([("model", "small"), ("region", "west")]);
/// assert_eq!(metadata.get("model").and_then(|model| model.as_str()), Some("small"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata(Arc<Map<String, Value>>);

impl Metadata {
    /// The value under a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// The whole map.
    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Takes over every key of `other`; an equal key is overwritten, never merged (rule A1).
    /// Costs the keys of `other`, and a copy of the map if it is shared.
    pub fn merge(&mut self, other: &Metadata) {
        if self.0.is_empty() {
            *self = other.clone();
        } else if !other.0.is_empty() {
            let map = Arc::make_mut(&mut self.0);
            for (key, value) in other.0.iter() {
                map.insert(key.clone(), value.clone());
            }
        }
    }
}

impl From<Map<String, Value>> for Metadata {
    fn from(map: Map<String, Value>) -> Self {
        Self(Arc::new(map))
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        members.into_iter().map(|(key, value)| (key.into(), value.into())).collect::<Map<_, _>>().into()
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// What every event may carry. Serialized beside the event's own fields.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BaseEvent {
    /// When the event was made, in the producer's unit (milliseconds since 1970 by custom), within
    /// ±(2^53-1).
    pub timestamp: Option<i64>,
    /// The event of the underlying framework, kept whole; never null.
    pub raw_event: Option<Box<Value>>,
    /// The producer's own data about the event.
    pub metadata: Option<Metadata>,
}

impl BaseEvent {
    pub(crate) const KEYS: &'static [&'static str] = &["timestamp", "rawEvent", "metadata"];

    pub(crate) fn read(object: Object<'_, '_>, cx: &mut Context, faults: &mut Faults) -> Self {
        Self {
            timestamp: cx.optional(object, "timestamp", faults),
            raw_event: cx.optional::<NonNull>(object, "rawEvent", faults).map(|value| Box::new(value.0)),
            metadata: cx.optional(object, "metadata", faults),
        }
    }

    pub(crate) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        if let Some(timestamp) = &self.timestamp {
            map.serialize_entry("timestamp", timestamp)?;
        }
        if let Some(raw_event) = &self.raw_event {
            map.serialize_entry("rawEvent", raw_event)?;
        }
        if let Some(metadata) = &self.metadata {
            map.serialize_entry("metadata", metadata)?;
        }
        Ok(())
    }
}

macro_rules! events {
    ($($variant:ident $name:literal $event:ty $(, $boxed:ident)?;)*) => {
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

        /// An event of AG-UI 1.0.
        ///
        /// Serialized to its exact wire form, absent fields left out. It is read from JSON by
        /// [`Event::from_json`], or by the enforcement stage, which also tells what it removed.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Event {
            $(#[doc = concat!("`", $name, "`")] $variant(events!(@held $event $(, $boxed)?)),)*
        }

        impl Event {
            /// The event's type.
            #[must_use]
            #[inline]
            pub const fn event_type(&self) -> EventType {
                match self { $(Event::$variant(_) => EventType::$variant,)* }
            }

            /// What every event may carry.
            #[must_use]
            pub fn base(&self) -> &BaseEvent {
                match self { $(Event::$variant(event) => &event.base,)* }
            }

            /// What every event may carry, to change it.
            pub fn base_mut(&mut self) -> &mut BaseEvent {
                match self { $(Event::$variant(event) => &mut event.base,)* }
            }

            pub(crate) fn decode_as(event_type: EventType, node: &crate::wire::node::Node<'_>, cx: &mut Context) -> crate::wire::decode::Decoded<Self> {
                match event_type { $(EventType::$variant => Decode::decode(node, cx).map(Event::$variant),)* }
            }
        }

        impl Serialize for Event {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $(Event::$variant(event) => event.serialize(serializer),)* }
            }
        }

        $(
            impl From<$event> for Event {
                fn from(event: $event) -> Self {
                    Event::$variant(event.into())
                }
            }
        )*
    };
    (@held $event:ty) => { $event };
    (@held $event:ty, boxed) => { Box<$event> };
}

events! {
    TextMessageStart "TEXT_MESSAGE_START" TextMessageStartEvent;
    TextMessageContent "TEXT_MESSAGE_CONTENT" TextMessageContentEvent;
    TextMessageEnd "TEXT_MESSAGE_END" TextMessageEndEvent;
    TextMessageChunk "TEXT_MESSAGE_CHUNK" TextMessageChunkEvent, boxed;
    ToolCallStart "TOOL_CALL_START" ToolCallStartEvent;
    ToolCallArgs "TOOL_CALL_ARGS" ToolCallArgsEvent;
    ToolCallEnd "TOOL_CALL_END" ToolCallEndEvent;
    ToolCallChunk "TOOL_CALL_CHUNK" ToolCallChunkEvent, boxed;
    ToolCallResult "TOOL_CALL_RESULT" ToolCallResultEvent;
    StateSnapshot "STATE_SNAPSHOT" StateSnapshotEvent;
    StateDelta "STATE_DELTA" StateDeltaEvent;
    MessagesSnapshot "MESSAGES_SNAPSHOT" MessagesSnapshotEvent;
    ActivitySnapshot "ACTIVITY_SNAPSHOT" ActivitySnapshotEvent, boxed;
    ActivityDelta "ACTIVITY_DELTA" ActivityDeltaEvent, boxed;
    Raw "RAW" RawPassthroughEvent, boxed;
    Custom "CUSTOM" CustomEvent, boxed;
    RunStarted "RUN_STARTED" RunStartedEvent, boxed;
    RunFinished "RUN_FINISHED" RunFinishedEvent, boxed;
    RunError "RUN_ERROR" RunErrorEvent, boxed;
    StepStarted "STEP_STARTED" StepStartedEvent;
    StepFinished "STEP_FINISHED" StepFinishedEvent;
    ReasoningStart "REASONING_START" ReasoningStartEvent;
    ReasoningMessageStart "REASONING_MESSAGE_START" ReasoningMessageStartEvent;
    ReasoningMessageContent "REASONING_MESSAGE_CONTENT" ReasoningMessageContentEvent;
    ReasoningMessageEnd "REASONING_MESSAGE_END" ReasoningMessageEndEvent;
    ReasoningMessageChunk "REASONING_MESSAGE_CHUNK" ReasoningMessageChunkEvent;
    ReasoningEnd "REASONING_END" ReasoningEndEvent;
    ReasoningEncryptedValue "REASONING_ENCRYPTED_VALUE" ReasoningEncryptedValueEvent;
    SubagentStarted "SUBAGENT_STARTED" SubagentStartedEvent, boxed;
    SubagentFinished "SUBAGENT_FINISHED" SubagentFinishedEvent, boxed;
    SubagentError "SUBAGENT_ERROR" SubagentErrorEvent, boxed;
}

impl Event {
    /// The subagent invocation that the event is attributed to, or that it is about; absent means
    /// the parent agent (rule O1).
    #[must_use]
    pub fn subagent_run_id(&self) -> Option<&crate::SubagentRunId> {
        match self {
            Event::TextMessageStart(event) => event.subagent_run_id.as_ref(),
            Event::TextMessageContent(event) => event.subagent_run_id.as_ref(),
            Event::TextMessageEnd(event) => event.subagent_run_id.as_ref(),
            Event::TextMessageChunk(event) => event.subagent_run_id.as_ref(),
            Event::ToolCallStart(event) => event.subagent_run_id.as_ref(),
            Event::ToolCallArgs(event) => event.subagent_run_id.as_ref(),
            Event::ToolCallEnd(event) => event.subagent_run_id.as_ref(),
            Event::ToolCallChunk(event) => event.subagent_run_id.as_ref(),
            Event::ToolCallResult(event) => event.subagent_run_id.as_ref(),
            Event::StateSnapshot(event) => event.subagent_run_id.as_ref(),
            Event::StateDelta(event) => event.subagent_run_id.as_ref(),
            Event::ActivitySnapshot(event) => event.subagent_run_id.as_ref(),
            Event::ActivityDelta(event) => event.subagent_run_id.as_ref(),
            Event::Raw(event) => event.subagent_run_id.as_ref(),
            Event::Custom(event) => event.subagent_run_id.as_ref(),
            Event::StepStarted(event) => event.subagent_run_id.as_ref(),
            Event::StepFinished(event) => event.subagent_run_id.as_ref(),
            Event::ReasoningStart(event) => event.subagent_run_id.as_ref(),
            Event::ReasoningMessageStart(event) => event.subagent_run_id.as_ref(),
            Event::ReasoningMessageContent(event) => event.subagent_run_id.as_ref(),
            Event::ReasoningMessageEnd(event) => event.subagent_run_id.as_ref(),
            Event::ReasoningMessageChunk(event) => event.subagent_run_id.as_ref(),
            Event::ReasoningEnd(event) => event.subagent_run_id.as_ref(),
            Event::ReasoningEncryptedValue(event) => event.subagent_run_id.as_ref(),
            Event::SubagentStarted(event) => Some(&event.subagent_run_id),
            Event::SubagentFinished(event) => Some(&event.subagent_run_id),
            Event::SubagentError(event) => Some(&event.subagent_run_id),
            Event::MessagesSnapshot(_) | Event::RunStarted(_) | Event::RunFinished(_) | Event::RunError(_) => None,
        }
    }
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
