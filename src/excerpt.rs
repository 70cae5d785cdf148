//! Excerpts of text from the wire, for errors and warnings.

use std::borrow::Cow;

/// At most `max` bytes of a text, cut at a character boundary.
pub(crate) fn excerpt(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return text.into();
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", text.get(..end).unwrap_or_default()).into()
}
