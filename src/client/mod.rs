//! Agents behind a network (feature `reqwest`).
//!
//! [`HttpAgent`] is an [`Agent`](crate::Agent): it posts the input of a run and gives the events of
//! the answer. A [`reqwest::Response`] that is there already becomes events with
//! [`ResponseExt::agent_events`]. Both check the status and the `Content-Type` before anything else
//! and give [`HttpEvents`]; what can go wrong is an [`HttpError`].
//!
//! There is no second try and no resuming: a `POST` may have had its effect, and the protocol
//! knows of no place in a run to go on from. A broken run is
//! [truncated](HttpError::truncated_by), and what came of it stays.
//!
//! # TLS
//! `reqwest` is used without default features, hence without TLS. For `https` add it to your own
//! dependencies with the feature of your choice, for example
//! `reqwest = { version = "0.13", default-features = false, features = ["rustls"] }`.

mod abort;
mod body;
mod error;
mod guard;
mod http;
mod response;

pub use abort::AbortHandle;
pub use error::HttpError;
pub use http::{HttpAgent, HttpAgentBuilder};
pub use response::{HttpEvents, HttpOptions, ResponseExt};

/// The HTTP client that this module is written for.
#[doc(no_inline)]
pub use reqwest;
