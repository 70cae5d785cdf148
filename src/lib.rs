//! Stream combinators for AG-UI.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[macro_use]
mod macros;

#[cfg(feature = "__codec")]
pub mod codec;
pub mod event;
pub mod machine;
pub mod message;
pub mod snapshot;
#[cfg(feature = "stream")]
pub mod stream;

#[cfg(feature = "stream")]
mod agent;
mod error;
mod id;
mod input;
mod item;
mod limits;
mod log;
mod rule;
mod version;
mod warning;
mod wire;

#[cfg(feature = "stream")]
pub use agent::{Agent, AgentError, AgentExt, BoxError, RawEventStream, Replay, agent_fn};
pub use error::{
    Error, History, Limit, LimitExceeded, Malformed, Subject, SubjectKind, Truncated, TruncatedBy, Violation,
};
pub use event::{Event, EventType};
pub use id::{
    IdGenerator, InterruptId, MessageId, RandomIds, RunId, SequentialIds, SubagentRunId, ThreadId, ToolCallId,
};
pub use input::{Context, ResumeEntry, ResumeStatus, RunAgentInput, Tool};
pub use item::{Indexed, Item};
pub use limits::Limits;
pub use message::Message;
pub use rule::Rule;
#[cfg(feature = "stream")]
pub use stream::EventStreamExt;
#[cfg(all(feature = "stream", feature = "__codec"))]
pub use stream::{ByteStreamExt, EncodeStreamExt};
pub use version::PROTOCOL_VERSION;
pub use warning::Warning;
pub use wire::{Raw, RawEvent, RawItem};
