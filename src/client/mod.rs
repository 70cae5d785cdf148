//! Clients for agents behind HTTP and WebSocket (features `reqwest` and `websocket`).
//!
//! Two [`Agent`](crate::Agent)s: they send the input of a run and give the events of the answer.
//!
//! | feature | agent | an open connection of your own | events |
//! |---|---|---|---|
//! | `reqwest` | `HttpAgent` | a `reqwest::Response`: `ResponseExt::agent_events` | `HttpEvents` |
//! | `websocket` | `WebSocketAgent` | a socket: `WebSocketExt::agent_events` | `WebSocketEvents` |
//!
//! The error of both is [`ClientError`].
//!
//! Over HTTP the status and the `Content-Type` are checked before anything else.
//!
//! There is no retry and no resuming: the first request may have had its effect, and the protocol
//! defines no point within a run to resume from. A broken run is truncated; its events stay.
//!
//! # TLS
//! Both libraries are used without default features, hence without TLS. For `https` and `wss` add
//! them to your own dependencies with the feature of your choice, for example
//! `reqwest = { version = "0.13", default-features = false, features = ["rustls"] }` or
//! `tokio-tungstenite = { version = "0.30", features = ["native-tls"] }`.

mod abort;
mod builder;
mod error;
mod excerpt;
mod headers;
#[cfg(feature = "reqwest")]
mod http;
mod options;
#[cfg(feature = "reqwest")]
mod response;
mod stoppable;
#[cfg(feature = "websocket")]
mod websocket;

pub use abort::AbortHandle;
pub use error::{Answer, ClientError};
#[cfg(feature = "reqwest")]
pub use http::{HttpAgent, HttpAgentBuilder};
#[cfg(feature = "reqwest")]
pub use response::{HttpEvents, HttpOptions, ResponseExt};
#[cfg(feature = "websocket")]
pub use websocket::{
    WebSocketAgent, WebSocketAgentBuilder, WebSocketConnection, WebSocketEvents, WebSocketExt, WebSocketOptions,
};

/// The HTTP client that this module is written for.
#[cfg(feature = "reqwest")]
#[doc(no_inline)]
pub use reqwest;
/// The WebSocket library that this module is written for.
#[cfg(feature = "websocket")]
#[doc(no_inline)]
pub use tokio_tungstenite;
/// The messages of that library.
#[cfg(feature = "websocket")]
#[doc(no_inline)]
pub use tokio_tungstenite::tungstenite;
