//! Containers whose clones share what they hold: what makes a snapshot cheap to keep.

pub(crate) mod index;
mod list;
mod metadata;
mod text;
pub(crate) mod tree;

pub use list::{Iter, List};
pub use metadata::Metadata;
pub use text::{Chunks, Text};
