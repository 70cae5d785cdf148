//! The client for agents behind WebSocket.

mod agent;
mod connection;
mod events;
mod messages;

pub use agent::{WebSocketAgent, WebSocketAgentBuilder};
pub use connection::WebSocketConnection;
pub use events::{WebSocketEvents, WebSocketExt, WebSocketOptions};
