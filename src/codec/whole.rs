//! What lacks its end.

/// What the text of a last event is, of which nothing says that it is whole.
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
