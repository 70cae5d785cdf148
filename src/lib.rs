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
//! - [`Error`], [`Warning`], [`Rule`]: what can be wrong, and how it is said.
//! - [`Agent`]: something that can run and give raw events.
//! - [`conversation`]: run after run with an agent, and tools that it calls.
//! - [`producer`]: runs of your own, legal by construction.
//! - [`layer`]: what can be put around an agent.
//! - [`machine`]: the same without async.
//!
//! # Features
//! - `stream` (default): the combinators, the [`Agent`] trait, producers and layers, over `futures` and
//!   `tokio-stream`.
//! - `tracing` (default): pipelines log every warning as they give it, and at debug what ended a stream,
//!   target `ag_ui_stream`.
//! - `sse` and `json-lines` (default), `protobuf`: the bindings, decoded and encoded.
//! - `reqwest`: `client::HttpAgent`, a client for agents behind HTTP; brings `sse`.
//! - `websocket`: `client::WebSocketAgent`, a client for agents behind WebSocket.
//! - `axum`: `server`, an extractor and a response for agents served by axum; brings `sse`.
//! - `record` (default): runs written to a file while they stream, and replayed in their own time;
//!   brings `sse` and `json-lines`.
//! - `schemars`: schemas of tools derived from the types of their arguments.
//! - `wasm-js`: random ids in a browser, see below.
//! - `full`: all of them but `wasm-js`.
//!
//! # Browsers
//! The core, `stream`, `sse`, `json-lines` and `protobuf` compile for `wasm32-unknown-unknown`, with the
//! feature `wasm-js`. The clients do not, for they need timers and sockets that are not there: the browser's own
//! `fetch` brings the bytes. No combinator asks its source to be `Send`, so that the body of a response, as
//! `wasm-streams` gives it, takes one call:
//!
//! ```
//! # #[cfg(all(feature = "stream", feature = "sse"))] {
//! use ag_ui_stream::codec::Piece;
//! use ag_ui_stream::{ByteStreamExt, Error, EventStreamExt};
//! use futures::{Stream, TryStreamExt};
//!
//! // In a browser: `B` is a `Uint8Array` copied to a `Vec<u8>`, and `E` a `JsValue`.
//! async fn show<B: Piece, E>(body: impl Stream<Item = Result<B, E>>) -> Result<String, Error<E>> {
//!     let mut updates = Box::pin(body.sse().updates());
//!     let mut last = String::new();
//!     while let Some(update) = updates.try_next().await? {
//!         if let Some(text) = update.message().and_then(|message| message.text()) {
//!             last = text.to_string(); // here the page is drawn
//!         }
//!     }
//!     Ok(last)
//! }
//! # use futures::stream;
//! # let body = concat!(
//! #     "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n",
//! #     "data: {\"type\":\"TEXT_MESSAGE_CHUNK\",\"messageId\":\"m\",\"delta\":\"Hello\"}\n\n",
//! #     "data: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n",
//! # );
//! # // Not `Send`, as what comes from JavaScript.
//! # let body = stream::iter([Ok::<_, std::rc::Rc<str>>(body)]);
//! # assert_eq!(futures::executor::block_on(show(body)).unwrap(), "Hello");
//! # }
//! ```
//!
//! The example `web` is a whole page. What waits for a while needs the timers of a tokio runtime, which are
//! not there: `keep_alive`, and the feature `record`. Nor is there a clock: where a time is asked for, as by
//! [`Resume::resolve`](input::Resume::resolve), make it from `Date.now()`.
//!
//! # Versions
//! The minimum Rust version is 1.85; raising it is a minor change. So is support for a later version
//! of AG-UI: the wire types are `non_exhaustive`, so a struct is made by its `new` and changed field by
//! field, and a `match` on an event needs a wildcard arm.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(all(target_arch = "wasm32", target_os = "unknown", any(feature = "reqwest", feature = "websocket")))]
compile_error!(
    "the clients of ag-ui-stream need timers and sockets that `wasm32-unknown-unknown` has not: turn the features \
     `reqwest` and `websocket` off, and read the body of a `fetch` with `.sse()` (see the documentation: Browsers)"
);

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
#[cfg(feature = "stream")]
pub mod conversation;
pub mod error;
pub mod event;
pub mod id;
#[cfg(feature = "stream")]
pub mod layer;
pub mod machine;
pub mod message;
pub mod producer;
#[cfg(feature = "record")]
pub mod record;
#[cfg(feature = "axum")]
pub mod server;
pub mod snapshot;

mod event_type;
mod excerpt;
mod iso8601;
mod item;
mod json;
mod limits;
mod log;
mod options;
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
pub use options::Options;
pub use raw::{Raw, RawEvent, RawItem};
pub use rule::Rule;
pub use snapshot::{Snapshot, Update};
pub use warning::Warning;

/// The README's examples, compiled and run.
#[cfg(all(doctest, feature = "axum", feature = "reqwest", feature = "record"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// Those of the answers to "how do I …?".
#[cfg(all(doctest, feature = "axum", feature = "reqwest", feature = "record", feature = "schemars"))]
#[doc = include_str!("../docs/how-do-i.md")]
struct HowDoI;
