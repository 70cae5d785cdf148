//! Stream combinators for [AG-UI](https://docs.ag-ui.com), the protocol by which an agent streams a
//! run to a user interface: raw events in, validated events and snapshots of the conversation out.
//!
//! ```text
//! raw events ─▶ compat ─▶ (your middleware) ─▶ enforce ─▶ expand ─▶ verify ─▶ assemble ─▶ updates
//!               B rules                        E rules    C rules   R S O     A rules
//! ```
//!
//! [`EventStreamExt::updates`] is all of it in one call. Each stage also has a method of its own, and
//! is a state machine without async in [`machine`]. The rules are those of AG-UI 1.0; every error and
//! warning cites its [`Rule`].
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
//! - [`EventStreamExt`]: the combinators, and the guarantees of all of them.
//! - [`Snapshot`], [`Update`] and their module [`snapshot`]: the conversation, its runs, and what changed.
//! - [`event`] and [`message`]: the wire types.
//! - [`Error`], [`Warning`], [`Rule`]: what can be wrong with a stream.
//! - [`Agent`]: anything that can run and give raw events.
//! - [`machine`]: the stages without async.
//!
//! # Features
//! - `stream` (default): the combinators and the [`Agent`] trait, over `futures` and `tokio-stream`.
//! - `tracing` (default): pipelines log every warning, and at debug level what ended a stream; the target
//!   is `ag_ui_stream`.
//! - `sse` and `json-lines` (default), `protobuf`: the bindings, decoded and encoded.
//! - `reqwest`: `client::HttpAgent`, a client for agents behind HTTP; brings `sse`.
//! - `websocket`: `client::WebSocketAgent`, a client for agents behind WebSocket.
//! - `record` (default): runs written to a file while they stream, and replayed; brings `sse` and
//!   `json-lines`.
//! - `full`: all of them.
//!
//! # Versions
//! The minimum Rust version is 1.85; raising it is a minor change. So is support for a later version
//! of AG-UI: the wire types are `non_exhaustive`, so a struct is made by its `new` and changed field by
//! field, and a `match` on an event needs a wildcard arm.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[macro_use]
mod schema;

#[cfg(feature = "stream")]
pub mod agent;
#[cfg(any(feature = "reqwest", feature = "websocket"))]
pub mod client;
#[cfg(feature = "__codec")]
pub mod codec;
#[cfg(feature = "stream")]
pub mod combinator;
pub mod error;
pub mod event;
pub mod id;
pub mod machine;
pub mod message;
#[cfg(feature = "record")]
pub mod record;
pub mod snapshot;

mod event_type;
mod excerpt;
mod item;
mod json;
mod limits;
mod log;
mod outgoing;
mod raw;
mod resume;
mod rule;
mod run_input;
mod shared;
mod source_error;
mod version;
mod warning;

/// The input of a run: its types, the answers to interrupts, and the form that an older peer accepts.
pub mod input {
    pub use crate::outgoing::Outgoing;
    pub use crate::resume::{Resume, ResumeError};
    pub use crate::run_input::{Context, ResumeEntry, ResumeStatus, RunAgentInput, Tool};
    pub use crate::version::{InvalidVersion, PROTOCOL_VERSION, ProtocolVersion};
}

#[cfg(feature = "stream")]
pub use agent::{Agent, AgentExt};
#[cfg(all(feature = "stream", feature = "__format"))]
pub use combinator::ByteStreamExt;
#[cfg(all(feature = "stream", feature = "__codec"))]
pub use combinator::EncodeStreamExt;
#[cfg(feature = "stream")]
pub use combinator::EventStreamExt;
pub use error::Error;
pub use event::{Event, EventType};
pub use input::RunAgentInput;
pub use item::Item;
pub use limits::Limits;
pub use message::Message;
pub use raw::{Raw, RawEvent, RawItem};
pub use rule::Rule;
pub use snapshot::{Snapshot, Update};
pub use warning::Warning;

/// The README's examples, compiled and run.
#[cfg(all(doctest, feature = "reqwest", feature = "record"))]
#[doc = include_str!("../README.md")]
struct Readme;
