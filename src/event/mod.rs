//! The 31 events of AG-UI 1.0, as types.

use serde::{Serialize, Serializer};

pub use crate::event_type::EventType;
use crate::id::SubagentRunId;
use crate::schema::decode::{Context, Decode, Decoded};
pub use crate::shared::Metadata;
/// The type of a delta: text that needs no allocation while it is short. Re-exported from `smol_str`.
#[doc(no_inline)]
pub use smol_str::SmolStr;

mod activity;
mod base;
pub(crate) mod fast;
pub(crate) mod open;
mod reasoning;
mod run;
mod special;
mod state;
mod step;
mod subagent;
mod text;
mod tool;

pub use activity::{ActivityDeltaEvent, ActivitySnapshotEvent};
pub use base::BaseEvent;
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

macro_rules! events {
    ($($variant:ident $event:ty $(, $boxed:ident)?;)*) => {
        /// An event of AG-UI 1.0.
        ///
        /// Serialized to its exact wire form, absent fields left out. It is read from JSON by
        /// [`Event::from_json`], or by the enforcement stage, which also tells what it removed.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Event {
            $(#[doc = stringify!($variant)] $variant(events!(@held $event $(, $boxed)?)),)*
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

            pub(crate) fn decode_as(event_type: EventType, node: &crate::json::node::Node<'_>, cx: &mut Context) -> Decoded<Self> {
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
    TextMessageStart TextMessageStartEvent;
    TextMessageContent TextMessageContentEvent;
    TextMessageEnd TextMessageEndEvent;
    TextMessageChunk TextMessageChunkEvent, boxed;
    ToolCallStart ToolCallStartEvent;
    ToolCallArgs ToolCallArgsEvent;
    ToolCallEnd ToolCallEndEvent;
    ToolCallChunk ToolCallChunkEvent, boxed;
    ToolCallResult ToolCallResultEvent;
    StateSnapshot StateSnapshotEvent;
    StateDelta StateDeltaEvent;
    MessagesSnapshot MessagesSnapshotEvent;
    ActivitySnapshot ActivitySnapshotEvent, boxed;
    ActivityDelta ActivityDeltaEvent, boxed;
    Raw RawPassthroughEvent, boxed;
    Custom CustomEvent, boxed;
    RunStarted RunStartedEvent, boxed;
    RunFinished RunFinishedEvent, boxed;
    RunError RunErrorEvent, boxed;
    StepStarted StepStartedEvent;
    StepFinished StepFinishedEvent;
    ReasoningStart ReasoningStartEvent;
    ReasoningMessageStart ReasoningMessageStartEvent;
    ReasoningMessageContent ReasoningMessageContentEvent;
    ReasoningMessageEnd ReasoningMessageEndEvent;
    ReasoningMessageChunk ReasoningMessageChunkEvent;
    ReasoningEnd ReasoningEndEvent;
    ReasoningEncryptedValue ReasoningEncryptedValueEvent;
    SubagentStarted SubagentStartedEvent, boxed;
    SubagentFinished SubagentFinishedEvent, boxed;
    SubagentError SubagentErrorEvent, boxed;
}

impl Event {
    /// The subagent invocation that the event is attributed to, or that it is about; absent means
    /// the parent agent (rule O1).
    #[must_use]
    pub fn subagent_run_id(&self) -> Option<&SubagentRunId> {
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
