//! Excerpts of the body of an answer, for errors.

use core::fmt;

/// The most bytes of a body that an error holds.
pub(super) const MAX_EXCERPT: usize = 4096;

/// At most [`MAX_EXCERPT`] bytes of text; invalid UTF-8 is replaced, a character that does not fit is
/// left out.
pub(super) fn cut(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        text.push_str(chunk.valid());
        // A character that was cut off at the end is no fault of the server's.
        let cut_off = chunks.peek().is_none() && bytes.len() > MAX_EXCERPT;
        if !chunk.invalid().is_empty() && !cut_off {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    let mut end = text.len().min(MAX_EXCERPT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

/// Writes the beginning of the excerpt; the field of the error has all of it.
pub(super) fn write_excerpt(f: &mut fmt::Formatter<'_>, excerpt: &str) -> fmt::Result {
    match excerpt.trim() {
        "" => Ok(()),
        excerpt => write!(f, ": {:?}", crate::excerpt::excerpt(excerpt, 200)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_text_of_bounded_length() {
        assert_eq!(cut(b"short"), "short");
        assert_eq!(cut(b"a\xffb\xff"), "a\u{fffd}b\u{fffd}");
        let long = "ä".repeat(5000);
        assert_eq!(cut(&long.as_bytes()[..MAX_EXCERPT + 1]).len(), MAX_EXCERPT);
        let odd = format!("x{long}");
        assert_eq!(cut(&odd.as_bytes()[..MAX_EXCERPT + 1]).len(), MAX_EXCERPT - 1);
        assert!(cut(&[0xff; MAX_EXCERPT + 1]).len() <= MAX_EXCERPT);
    }
}
