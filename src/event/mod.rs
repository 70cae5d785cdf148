//! The 31 events of AG-UI 1.0, as types.

use core::fmt;

use serde::{Serialize, Serializer};

pub use crate::event_type::EventType;
use crate::event_type::for_each_event;
use crate::id::SubagentRunId;
use crate::json::node::Node;
use crate::rule::Rule;
use crate::schema::check::Flaws;
use crate::schema::decode::{Context, Decode, Decoded, Reject};
use crate::schema::text::Reader;
pub use crate::shared::Metadata;
/// The type of a delta: text that needs no allocation while it is short. Re-exported from `smol_str`.
#[doc(no_inline)]
pub use smol_str::SmolStr;

mod activity;
mod base;
mod construct;
pub(crate) mod fast;
mod passthrough;
mod reasoning;
mod run;
mod state;
mod step;
mod subagent;
mod text;
mod tool;

pub use activity::{ActivityDeltaEvent, ActivitySnapshotEvent};
pub use base::BaseEvent;
pub use passthrough::{CustomEvent, RawPassthroughEvent};
pub use reasoning::{
    ReasoningEncryptedValueEvent, ReasoningEncryptedValueSubtype, ReasoningEndEvent, ReasoningMessageChunkEvent,
    ReasoningMessageContentEvent, ReasoningMessageEndEvent, ReasoningMessageStartEvent, ReasoningStartEvent,
};
pub use run::{
    CancelledOutcome, Interrupt, InterruptOutcome, Interrupts, RunErrorEvent, RunFinishedEvent, RunFinishedOutcome,
    RunStartedEvent, SuccessOutcome, TokenUsage,
};
pub use state::{JsonPatch, MessagesSnapshotEvent, Operation, StateDeltaEvent, StateSnapshotEvent};
pub use step::{StepFinishedEvent, StepStartedEvent};
pub use subagent::{
    SubagentErrorEvent, SubagentFinishedEvent, SubagentFinishedOutcome, SubagentStartedEvent, SubagentSuccessOutcome,
    SubagentSuspendedOutcome,
};
pub use text::{
    TextMessageChunkEvent, TextMessageContentEvent, TextMessageEndEvent, TextMessageRole, TextMessageStartEvent,
};
pub use tool::{
    ToolCallArgsEvent, ToolCallChunkEvent, ToolCallEndEvent, ToolCallResultEvent, ToolCallStartEvent, ToolRole,
};

macro_rules! events {
    ($($variant:ident $name:literal $event:ident $($boxed:ident)?, ends $ends:ident;)*) => {
        /// An event of AG-UI 1.0.
        ///
        /// It serializes to its exact wire form, without absent fields. [`Event::from_json`] reads it, and
        /// so does the enforcement stage, which also warns of what it removed.
        #[derive(Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Event {
            $(#[doc = stringify!($variant)] $variant(events!(@held $event $($boxed)?)),)*
        }

        impl Event {
            /// The event's type.
            #[must_use]
            #[inline]
            pub const fn event_type(&self) -> EventType {
                match self { $(Event::$variant(_) => EventType::$variant,)* }
            }

            /// The fields that every event may carry.
            #[must_use]
            pub fn base(&self) -> &BaseEvent {
                match self { $(Event::$variant(event) => &event.base,)* }
            }

            /// The fields that every event may carry, to change them.
            pub fn base_mut(&mut self) -> &mut BaseEvent {
                match self { $(Event::$variant(event) => &mut event.base,)* }
            }

            /// The subagent invocation that the event is attributed to, or that it is about; absent
            /// means the parent agent (rule O1).
            #[must_use]
            #[inline]
            pub fn subagent_run_id(&self) -> Option<&SubagentRunId> {
                match self { $(Event::$variant(event) => event.owner(),)* }
            }

            /// The tag that attributes the event; `None` where it may have none, as one about a run or a subagent.
            pub(crate) fn tag_mut(&mut self) -> Option<&mut Option<SubagentRunId>> {
                match self { $(Event::$variant(event) => event.tag_mut(),)* }
            }

            pub(crate) fn decode_as(event_type: EventType, node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
                match event_type { $(EventType::$variant => Decode::decode(node, cx).map(Event::$variant),)* }
            }
        }

        impl Decode for Event {
            fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
                let object = cx.object(node)?;
                let event_type = EventType::from_wire(cx.tag(object, "type")?).ok_or(Reject::Unknown(Rule::E1))?;
                Self::decode_as(event_type, node, cx)
            }

            fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
                match EventType::from_wire(reader.tag("type")?)? {
                    $(EventType::$variant => Decode::read(reader).map(Event::$variant),)*
                }
            }

            #[inline]
            fn check(&self, depth: usize, flaws: &mut Flaws) {
                match self { $(Event::$variant(event) => event.check(depth, flaws),)* }
            }
        }

        deserialize!(Event);

        /// The same as that of the struct that it holds.
        impl fmt::Debug for Event {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Event::$variant(event) => event.fmt(f),)* }
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
    (@held $event:ident) => { $event };
    (@held $event:ident boxed) => { Box<$event> };
}

for_each_event!(events);

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::id::Interner;
    use crate::schema::text;

    /// `tests/readers.rs` compares the events themselves.
    #[test]
    fn every_valid_event_is_read_without_a_tree() {
        let (mut read, mut given_up) = (0, Vec::new());
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fixtures");
        for definition in fs::read_dir(fixtures).unwrap() {
            let Ok(files) = fs::read_dir(definition.unwrap().path().join("valid")) else { continue };
            for file in files {
                let json = fs::read_to_string(file.as_ref().unwrap().path()).unwrap();
                let event: serde_json::Value = serde_json::from_str(&json).unwrap();
                if event["type"].as_str().and_then(EventType::from_wire).is_none() {
                    continue;
                }
                match text::read::<Event>(&json, 64, &mut Interner::default()) {
                    Some(_) => read += 1,
                    None => given_up.push(file.unwrap().file_name()),
                }
            }
        }
        // Only the tree keeps the extra members of an operation.
        assert_eq!((read, given_up), (91, vec!["patch-remove-with-ignored-value.json".into()]));
    }
}
