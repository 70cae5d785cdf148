//! JSON text, without any knowledge of events: a scanner, a tree, a writer, and a reader for incomplete
//! text.

#[cfg(any(feature = "__codec", test))]
pub(crate) mod compact;
pub(crate) mod node;
pub(crate) mod partial;
pub(crate) mod scan;
pub(crate) mod string;
mod write;

/// A string of the code, as the keys of events are: it has nothing to escape. To any serializer it is a string.
pub(crate) struct Name(pub(crate) &'static str);

impl serde::Serialize for Name {
    #[inline(always)]
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit_variant("", 0, self.0)
    }
}
