//! Containers whose clones share memory. They make a snapshot cheap to keep.

mod document;
pub(crate) mod index;
pub(crate) mod list;
mod seq;
mod text;
pub(crate) mod tree;

pub use document::{Array, Document, Elements, Members, Metadata, Object};
pub use list::{Iter, List};
pub use text::{Chunks, Text};
