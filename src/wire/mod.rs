//! Reading events off the wire.

pub(crate) mod decode;
pub(crate) mod fast;
pub(crate) mod node;
pub(crate) mod open;
pub(crate) mod raw;
pub(crate) mod scan;
mod short;
mod write;

pub use raw::{Raw, RawEvent, RawItem};

/// At most `max` bytes of a text, cut at a character boundary.
pub(crate) fn excerpt(text: &str, max: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= max {
        return text.into();
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", text.get(..end).unwrap_or_default()).into()
}
