//! Agents behind WebSocket.

mod agent;
mod connection;
mod error;
mod events;
mod messages;

pub use agent::{WebSocketAgent, WebSocketAgentBuilder};
pub use connection::WebSocketConnection;
pub use error::WebSocketError;
pub use events::{WebSocketEvents, WebSocketExt, WebSocketOptions};
