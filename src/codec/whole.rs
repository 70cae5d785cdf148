//! Whether the last text of a stream is a complete JSON value, though its end is not marked.

/// Whether a last event without an end mark is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completeness {
    /// One JSON value.
    Whole,
    /// The beginning of one.
    Partial,
    /// Neither.
    Broken,
}

impl Completeness {
    /// One pass over the text, without recursion.
    pub(super) fn of(text: &[u8]) -> Self {
        match serde_json::from_slice::<serde::de::IgnoredAny>(text) {
            Ok(_) => Completeness::Whole,
            Err(error) if error.is_eof() => Completeness::Partial,
            Err(_) => Completeness::Broken,
        }
    }
}
