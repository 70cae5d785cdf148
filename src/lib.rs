//! Stream combinators for [AG-UI](https://docs.ag-ui.com), the protocol by which an agent streams a
//! run to a user interface: any async source of raw events in, validated events and live snapshots
//! of the conversation out.
//!
//! ```text
//! raw events ─▶ compat ─▶ (your middleware) ─▶ enforce ─▶ expand ─▶ verify ─▶ assemble ─▶ updates
//!               B rules                        E rules    C rules   R S O     A rules
//! ```
//!
//! All of it is one call, [`EventStreamExt::updates`]; each stage is a method of its own; and each
//! is a plain state machine without async in [`machine`]. The rules are those of AG-UI 1.0, and
//! every error and warning cites its [`Rule`].
//!
//! ```
//! # #[cfg(feature = "stream")] {
//! use ag_ui_stream::{Error, EventStreamExt};
//! use futures::TryStreamExt;
//!
//! # futures::executor::block_on(async {
//! // A source that stops in the middle of an answer.
//! let source = tokio_stream::iter([
//!     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
//!     r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#,
//!     r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"A refund of 20"}"#,
//! ]);
//! let mut updates = source.updates();
//! let mut latest = None;
//! let error = loop {
//!     match updates.try_next().await {
//!         Ok(Some(update)) => latest = Some(update.snapshot().clone()),
//!         Ok(None) => unreachable!("it did not end well"),
//!         Err(error) => break error,
//!     }
//! };
//! assert!(error.is_truncated());
//! assert_eq!(latest.unwrap().message("m").unwrap().text().unwrap(), "A refund of 20");
//! # });
//! # }
//! ```
//!
//! # Where to look
//! - [`EventStreamExt`]: the combinators, and what holds for all of them.
//! - [`Snapshot`], [`Update`] and their module [`snapshot`]: the conversation, its runs, and what changed.
//! - [`event`] and [`message`]: the wire types.
//! - [`Error`], [`Warning`], [`Rule`]: what can be wrong, and how it is said.
//! - [`Agent`]: something that can run and give raw events.
//! - [`machine`]: the same without async.
//!
//! # Features
//! - `stream` (default): the combinators and the [`Agent`] trait, over `futures` and `tokio-stream`.
//! - `tracing` (default): every warning is also logged, target `ag_ui_stream`.
//! - `sse`, `json-lines`, `protobuf`: the bindings, decoded and encoded.
//! - `reqwest`: [`HttpAgent`](client::HttpAgent), a client for agents behind HTTP; brings `sse`.
//! - `websocket`: [`WebSocketAgent`](client::WebSocketAgent), a client for agents behind WebSocket.
//! - `record`: runs written to a file while they stream, and replayed in their own time; brings
//!   `sse` and `json-lines`.
//! - `full`: all of them.
//!
//! # Versions
//! The minimum Rust version is 1.85; raising it is a minor change. So is to take up what a later
//! version of AG-UI adds: the wire types are `non_exhaustive`, structs are made by their `new` and
//! changed field by field, and a `match` on an event has an arm for those to come.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[macro_use]
mod macros;

#[cfg(any(feature = "reqwest", feature = "websocket"))]
pub mod client;
#[cfg(feature = "__codec")]
pub mod codec;
pub mod event;
pub mod machine;
pub mod message;
#[cfg(feature = "record")]
pub mod record;
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
mod outgoing;
mod partial;
mod read;
mod resume;
mod rule;
mod version;
mod warning;
mod wire;

#[cfg(feature = "stream")]
pub use agent::{Agent, AgentError, AgentExt, BoxError, RawEventStream, Replay, agent_fn, raw_event_stream};
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
pub use outgoing::Outgoing;
pub use resume::{Resume, ResumeError};
pub use rule::Rule;
/// The type of a delta: text that needs no allocation while it is short. Re-exported from `smol_str`.
#[doc(no_inline)]
pub use smol_str::SmolStr;
pub use snapshot::{Snapshot, Update};
#[cfg(all(feature = "stream", feature = "__format"))]
pub use stream::ByteStreamExt;
#[cfg(all(feature = "stream", feature = "__codec"))]
pub use stream::EncodeStreamExt;
#[cfg(feature = "stream")]
pub use stream::EventStreamExt;
pub use version::{InvalidVersion, PROTOCOL_VERSION, ProtocolVersion};
pub use warning::Warning;
pub use wire::{Raw, RawEvent, RawItem};

/// The README's examples, compiled and run.
#[cfg(all(doctest, feature = "reqwest", feature = "record"))]
#[doc = include_str!("../README.md")]
struct Readme;
