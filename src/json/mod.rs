//! JSON text, without any knowledge of events: a scanner, a tree, a writer, and a reader for incomplete
//! text.

#[cfg(any(feature = "__codec", test))]
pub(crate) mod compact;
pub(crate) mod node;
pub(crate) mod partial;
pub(crate) mod scan;
pub(crate) mod string;
mod write;
