//! Excerpts of text from the wire for errors and warnings: cut, and with harmful characters escaped.

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

/// The same, with characters escaped that could harm a terminal or a log: control characters, line
/// separators, and those that change the direction of writing. For text that is not quoted with `{:?}`.
pub(crate) fn harmless(text: &str, max: usize) -> Cow<'_, str> {
    let text = excerpt(text, max);
    if !text.contains(is_harmful) {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|character| push_harmless(&mut shown, character));
    shown.into()
}

/// Appends one character, escaped where that is needed.
pub(crate) fn push_harmless(shown: &mut String, character: char) {
    if is_harmful(character) {
        shown.extend(character.escape_unicode());
    } else {
        shown.push(character);
    }
}

fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
