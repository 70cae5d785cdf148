//! JSON as text: scanned, held as a tree, written back, and read while it is still incomplete. Knows
//! nothing of events.

#[cfg(any(feature = "__codec", test))]
pub(crate) mod compact;
pub(crate) mod node;
pub(crate) mod partial;
pub(crate) mod scan;
pub(crate) mod string;
mod write;
