//! Escapes all output, so that no text of a stream acts on a terminal.
//!
//! All output passes one of these: [`harmless`] for text on several lines, [`said`] for a note on one
//! line, [`write_json`] for JSON. The screen and the diagnostics call them, so their callers need not.

use std::borrow::Cow;
use std::io;

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The text with everything that a terminal would act upon made visible. Line feeds stay.
///
/// Escape sequences would move the cursor, rename the window or hide what was written before;
/// bidirectional overrides would show the text in another order than it has.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => shown.push(c),
            '\t' => shown.push_str("    "),
            // The pictures that Unicode has for the control characters: ␛ for ESC.
            '\0'..='\x1f' => shown.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('?')),
            '\x7f' => shown.push('␡'),
            c if is_harmful(c) => shown.push_str(&format!("<U+{:04X}>", u32::from(c))),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

fn is_harmful(c: char) -> bool {
    match c {
        '\n' => false,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => true,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}' | '\u{feff}' => true,
        // Tags and interlinear annotations are invisible too.
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e001f}' => true,
        _ => false,
    }
}

/// A longer note is cut; text of the stream itself is not.
const LONGEST: usize = 2_000;

/// A note about a stream: escaped, on one line, and cut.
pub(crate) fn said(text: &str) -> Cow<'_, str> {
    match excerpt(text, LONGEST) {
        Cow::Borrowed(text) => one_line(text),
        Cow::Owned(text) => Cow::Owned(one_line(&text).into_owned()),
    }
}

/// The same for a string of JSON, which its writer escapes.
pub(crate) fn cut(text: &str) -> Cow<'_, str> {
    excerpt(text, LONGEST)
}

/// The text on one line, harmless.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    match harmless(text) {
        Cow::Borrowed(text) if !text.contains('\n') => Cow::Borrowed(text),
        text => Cow::Owned(text.replace('\n', "␊")),
    }
}

/// The text, cut to at most `columns`, with an ellipsis.
pub(crate) fn fit(text: &str, columns: usize) -> Cow<'_, str> {
    if text.len() <= columns || width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut kept = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        used += width(grapheme);
        if used >= columns {
            break;
        }
        kept.push_str(grapheme);
    }
    kept.push('…');
    Cow::Owned(kept)
}

/// At most about `bytes` of a text, cut at a character, with a note of how much there is.
pub(crate) fn excerpt(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    let end = (0..=bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    Cow::Owned(format!("{}… ({})", text.get(..end).unwrap_or_default(), size(text.len())))
}

/// A number of bytes for people.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{}.{} kB", bytes / 1_000, bytes % 1_000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// A number with its digits in groups.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            shown.push(' ');
        }
        shown.push(digit);
    }
    shown
}

/// A count and its noun.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// A JSON value on one line, with spaces to break it at, cut at about `bytes`.
pub(crate) fn json(value: &impl Serialize, bytes: usize) -> String {
    let mut text = Bounded { text: String::new(), left: bytes, total: 0 };
    // The rest is counted and not kept, however large the value is.
    let _ = value.serialize(&mut Serializer::with_formatter(&mut text, Spaced));
    let more = text.total > text.text.len();
    let shown = one_line(&text.text);
    if more { format!("{shown}… ({})", size(text.total)) } else { shown.into_owned() }
}

/// Writes a value as JSON; characters that a terminal would act upon are escaped in its strings, so that a
/// reader of the JSON gets the original text.
pub(crate) fn write_json(out: &mut impl io::Write, value: &impl Serialize) -> io::Result<()> {
    Ok(value.serialize(&mut Serializer::with_formatter(out, Escaped))?)
}

struct Escaped;

impl Formatter for Escaped {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_harmful(*c)) {
            let (before, after) = rest.split_at(at);
            out.write_all(before.as_bytes())?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = after.get(c.len_utf8()..).unwrap_or_default();
        }
        out.write_all(rest.as_bytes())
    }
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

struct Bounded {
    text: String,
    left: usize,
    total: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.total += bytes.len();
        let text = String::from_utf8_lossy(bytes);
        let end = (0..=text.len().min(self.left)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        self.text.push_str(text.get(..end).unwrap_or_default());
        self.left = if end < text.len() { 0 } else { self.left - end };
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Breaks a growing text into lines, at spaces if there are any.
#[derive(Debug)]
pub(crate) struct Wrapper {
    columns: usize,
    line: String,
    /// A CR at the end of what came so far: part of a line end, or shown.
    cr: bool,
}

impl Wrapper {
    pub(crate) fn new(columns: usize) -> Self {
        Self { columns: columns.max(8), line: String::new(), cr: false }
    }

    /// The line that is not full yet.
    pub(crate) fn tail(&self) -> &str {
        &self.line
    }

    /// Takes more text; lines that are full go to `lines`.
    pub(crate) fn push(&mut self, text: &str, lines: &mut impl Extend<String>) {
        let mut text = Cow::Borrowed(text);
        if std::mem::take(&mut self.cr) && !text.starts_with('\n') {
            text = Cow::Owned(format!("\r{text}"));
        }
        if text.ends_with('\r') {
            self.cr = true;
            text = Cow::Owned(text.get(..text.len() - 1).unwrap_or_default().to_owned());
        }
        if text.contains("\r\n") {
            text = Cow::Owned(text.replace("\r\n", "\n"));
        }
        for piece in harmless(&text).split_inclusive(['\n', ' ']) {
            let mut rest = piece;
            // Very long words are taken in pieces, so that each is measured only a few times.
            while rest.len() > 512 {
                let end = (0..=512).rev().find(|end| rest.is_char_boundary(*end)).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                self.word(word, lines);
                rest = after;
            }
            self.word(rest, lines);
        }
    }

    /// The last line, if there is one.
    pub(crate) fn finish(&mut self, lines: &mut impl Extend<String>) {
        if std::mem::take(&mut self.cr) {
            self.line.push('␍');
        }
        if !self.line.is_empty() {
            lines.extend([std::mem::take(&mut self.line)]);
        }
    }

    fn word(&mut self, word: &str, lines: &mut impl Extend<String>) {
        let ends = word.ends_with('\n');
        self.line.push_str(word.trim_end_matches('\n'));
        while width(self.line.trim_end()) > self.columns {
            let end = self.break_at();
            let rest = self.line.split_off(end);
            let full = std::mem::replace(&mut self.line, rest.trim_start().to_owned());
            // An indentation that leaves no room for text is dropped.
            if !full.trim().is_empty() {
                lines.extend([full.trim_end().to_owned()]);
            }
        }
        if ends {
            let line = std::mem::take(&mut self.line);
            lines.extend([line.trim_end().to_owned()]);
        }
    }

    /// Where to break a line that is too long: after a space, else within a word.
    fn break_at(&self) -> usize {
        let mut used = 0;
        let mut space = None;
        let mut last = 0;
        for (at, grapheme) in self.line.grapheme_indices(true) {
            used += width(grapheme);
            if used > self.columns && grapheme != " " {
                let words = space.filter(|end| !self.line.get(..*end).unwrap_or_default().trim().is_empty());
                return words.unwrap_or(last.max(1)).max(self.line.chars().next().map_or(1, char::len_utf8));
            }
            if grapheme == " " {
                space = Some(at + 1);
            }
            last = at + grapheme.len();
        }
        self.line.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(columns: usize, deltas: &[&str]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut wrapper = Wrapper::new(columns);
        for delta in deltas {
            wrapper.push(delta, &mut lines);
        }
        wrapper.finish(&mut lines);
        lines
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert_eq!(harmless("plain é 👩‍👩‍👦\nnext"), "plain é 👩‍👩‍👦\nnext");
        assert_eq!(harmless("\x1b]0;title\x07"), "␛]0;title␇");
        assert_eq!(harmless("a\u{9b}31mb\u{202e}c"), "a<U+009B>31mb<U+202E>c");
        assert_eq!(harmless("\x08\x7f\t|"), "␈␡    |");
        assert_eq!(one_line("a\nb\rc"), "a␊b␍c");
    }

    #[test]
    fn json_holds_what_it_held_and_shows_it_escaped() {
        let text = "a\n\u{7f}\u{85}é\u{202e}\u{2028}\u{feff}\u{e0001}👩‍👩‍👦";
        let value = serde_json::json!({text: [text]});
        let mut written = Vec::new();
        write_json(&mut written, &value).unwrap();
        let written = String::from_utf8(written).unwrap();
        assert!(written.contains(r#"["a\n\u007f\u0085é\u202e\u2028\ufeff\udb40\udc01👩‍👩‍👦"]"#), "{written}");
        assert!(!written.chars().any(is_harmful));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), value);
    }

    #[test]
    fn what_is_said_is_cut() {
        let said = said(&"\u{1b}x".repeat(5_000_000)).into_owned();
        assert!(said.len() < 6_000 && said.ends_with("x… (10.0 MB)"), "{}", said.len());
    }

    #[test]
    fn lines_are_the_same_however_the_text_is_cut() {
        let text = "The tide turns at ten past four,\r\nand the boat will not wait. Unbreakable: \
                    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 👩‍👩‍👦👩‍👩‍👦 café\n\n    indented";
        let whole = wrapped(20, &[text]);
        assert!(whole.iter().all(|line| width(line) <= 20), "{whole:?}");
        assert!(whole.contains(&String::new()), "{whole:?}");
        assert!(whole.contains(&"    indented".to_owned()), "{whole:?}");
        let cut: Vec<String> = text.chars().map(String::from).collect();
        let cut: Vec<&str> = cut.iter().map(String::as_str).collect();
        assert_eq!(wrapped(20, &cut), whole);
        let kept: String = whole.concat().split_whitespace().collect();
        let sent: String = text.split_whitespace().collect();
        assert_eq!(kept, sent.replace("and the", "andthe"));
    }

    #[test]
    fn a_single_wide_character_fits_nowhere_and_still_comes_out() {
        assert_eq!(wrapped(8, &["漢字漢字漢字"]), ["漢字漢字", "漢字"]);
        assert_eq!(wrapped(8, &["        x"]), ["x"]);
    }

    #[test]
    fn cuts_are_at_characters() {
        assert_eq!(excerpt("ééé", 3), "é… (6 B)");
        assert_eq!(fit("漢字漢字", 5), "漢字…");
        assert_eq!(json(&serde_json::json!({"a": "éé\u{1b}"}), 8), "{\"a\": \"… (19 B)");
        assert_eq!(grouped(1_234_567), "1 234 567");
    }
}
