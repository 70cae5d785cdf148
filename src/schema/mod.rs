//! The schema of the wire types: the macros whose tables describe them, and the readers made from those.

#[macro_use]
mod tables;
pub(crate) mod check;
pub(crate) mod decode;
pub(crate) mod read;
pub(crate) mod text;
