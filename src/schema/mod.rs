//! The schema of the wire types: the tables that they are written in, and how enforcement reads them.

#[macro_use]
mod tables;
pub(crate) mod check;
pub(crate) mod decode;
pub(crate) mod read;
pub(crate) mod text;
