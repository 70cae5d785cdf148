//! A reader for incomplete JSON text, such as the arguments of a tool call that still streams.

use serde_json::{Map, Value};

use crate::limits::Limits;

/// The value of a text that may be cut off anywhere; `None` where nothing of it is known, and where
/// the text is not JSON.
///
/// Strings and containers that are still open are closed at the end of the text. A key without a
/// value is left out, and so is a number, literal or escape that may be incomplete. So each member
/// that appears stays, and only the last string and container of each level grow. One pass, no
/// recursion.
pub(crate) fn value_so_far(text: &str) -> Option<Value> {
    let mut open = Vec::new();
    match (Reader { text, at: 0 }).read(&mut open) {
        Ok(value) => Some(value),
        Err(Stop::End(last)) => open.into_iter().rev().fold(last, |value, frame: Frame| Some(frame.close(value))),
        Err(Stop::Malformed) => None,
    }
}

/// Why there is no complete value.
enum Stop {
    /// The text ends, within a string where that is given.
    End(Option<Value>),
    Malformed,
}

/// A container that is open.
enum Frame {
    Array(Vec<Value>),
    /// With the key that the next value belongs to.
    Object(Map<String, Value>, String),
}

impl Frame {
    fn add(&mut self, value: Value) {
        match self {
            Frame::Array(elements) => elements.push(value),
            Frame::Object(members, key) => {
                members.insert(std::mem::take(key), value);
            }
        }
    }

    fn close(mut self, last: Option<Value>) -> Value {
        if let Some(last) = last {
            self.add(last);
        }
        match self {
            Frame::Array(elements) => Value::Array(elements),
            Frame::Object(members, _) => Value::Object(members),
        }
    }
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Value,
    /// The first element, or the end of the array.
    Element,
    Key,
    /// The first key, or the end of the object.
    Member,
    Colon,
    /// A comma, or the end of the container.
    Comma,
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn read(&mut self, open: &mut Vec<Frame>) -> Result<Value, Stop> {
        let mut expected = Expected::Value;
        loop {
            self.skip_space();
            let next = self.peek().ok_or(Stop::End(None))?;
            let value = match (expected, next, open.last_mut()) {
                (Expected::Value | Expected::Element, b'[' | b'{', _) => {
                    if open.len() >= Limits::CEILING_DEPTH {
                        return Err(Stop::Malformed);
                    }
                    self.at += 1;
                    (expected, _) = if next == b'[' {
                        (Expected::Element, open.push(Frame::Array(Vec::new())))
                    } else {
                        (Expected::Member, open.push(Frame::Object(Map::new(), String::new())))
                    };
                    continue;
                }
                (Expected::Element | Expected::Comma, b']', Some(Frame::Array(_)))
                | (Expected::Member | Expected::Comma, b'}', Some(Frame::Object(..))) => {
                    self.at += 1;
                    open.pop().map(|frame| frame.close(None)).ok_or(Stop::Malformed)?
                }
                (Expected::Key | Expected::Member, b'"', Some(Frame::Object(_, key))) => {
                    *key = self.string().map_err(|stop| match stop {
                        Stop::End(_) => Stop::End(None),
                        Stop::Malformed => Stop::Malformed,
                    })?;
                    expected = Expected::Colon;
                    continue;
                }
                (Expected::Colon, b':', _) => {
                    self.at += 1;
                    expected = Expected::Value;
                    continue;
                }
                (Expected::Comma, b',', Some(frame)) => {
                    self.at += 1;
                    expected = if matches!(frame, Frame::Array(_)) { Expected::Value } else { Expected::Key };
                    continue;
                }
                (Expected::Value | Expected::Element, _, within) => self.scalar(next, within.is_some())?,
                _ => return Err(Stop::Malformed),
            };
            let Some(frame) = open.last_mut() else {
                self.skip_space();
                return if self.rest().is_empty() { Ok(value) } else { Err(Stop::Malformed) };
            };
            frame.add(value);
            expected = Expected::Comma;
        }
    }

    fn scalar(&mut self, first: u8, is_within: bool) -> Result<Value, Stop> {
        match first {
            b'"' => self.string().map(Value::String),
            b't' => self.literal("true", Value::Bool(true)),
            b'f' => self.literal("false", Value::Bool(false)),
            b'n' => self.literal("null", Value::Null),
            _ => self.number(is_within),
        }
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, Stop> {
        if self.rest().starts_with(word) {
            self.at += word.len();
            return Ok(value);
        }
        Err(if word.starts_with(self.rest()) { Stop::End(None) } else { Stop::Malformed })
    }

    /// A number at the end of the text may be incomplete, unless it is the whole text.
    fn number(&mut self, is_within: bool) -> Result<Value, Stop> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        if is_within && self.peek().is_none() {
            return Err(Stop::End(None));
        }
        let number = self.text.get(start..self.at).and_then(|text| serde_json::from_str(text).ok());
        number.map(Value::Number).ok_or(Stop::Malformed)
    }

    /// One digit or more.
    fn digits(&mut self) -> Result<(), Stop> {
        match self.peek() {
            Some(b'0'..=b'9') => {}
            Some(_) => return Err(Stop::Malformed),
            None => return Err(Stop::End(None)),
        }
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<String, Stop> {
        self.at += 1;
        let mut string = String::new();
        match self.characters(&mut string) {
            Ok(()) => Ok(string),
            Err(Stop::End(_)) => Err(Stop::End(Some(Value::String(string)))),
            Err(Stop::Malformed) => Err(Stop::Malformed),
        }
    }

    /// Reads to the quote that closes a string.
    fn characters(&mut self, string: &mut String) -> Result<(), Stop> {
        loop {
            let plain = self.rest().bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
            let end = plain.map_or(self.text.len(), |plain| self.at + plain);
            string.push_str(self.text.get(self.at..end).unwrap_or_default());
            self.at = end + 1;
            match self.text.as_bytes().get(end) {
                Some(b'"') => return Ok(()),
                Some(b'\\') => string.push(self.escape()?),
                Some(_) => return Err(Stop::Malformed),
                None => return Err(Stop::End(None)),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Stop> {
        let kind = self.peek().ok_or(Stop::End(None))?;
        self.at += 1;
        Ok(match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.code_unit(),
            _ => return Err(Stop::Malformed),
        })
    }

    /// The character of a `\u` escape, or of two that make one; U+FFFD for half of one (rule E11).
    fn code_unit(&mut self) -> Result<char, Stop> {
        let unit = self.hex()?;
        if let 0xd800..=0xdbff = unit {
            let escape = "\\u";
            if escape.starts_with(self.rest()) {
                return Err(Stop::End(None));
            }
            if self.rest().starts_with(escape) {
                let behind_high = self.at;
                self.at += escape.len();
                let low = self.hex()?;
                if let Some(Ok(whole)) = char::decode_utf16([unit, low]).next() {
                    return Ok(whole);
                }
                self.at = behind_high;
            }
        }
        Ok(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&mut self) -> Result<u16, Stop> {
        let digits = self.rest().get(..4).unwrap_or(self.rest());
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(Stop::Malformed);
        }
        if digits.len() < 4 {
            return Err(Stop::End(None));
        }
        self.at += 4;
        u16::from_str_radix(digits, 16).map_err(|_| Stop::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_open_is_closed_and_what_dangles_is_left_out() {
        for (text, expected) in [
            ("{", json!({})),
            (" [ ", json!([])),
            ("{\"a", json!({})),
            ("{\"a\"", json!({})),
            ("{\"a\": ", json!({})),
            ("{\"a\": \"", json!({"a": ""})),
            ("{\"a\": \"x", json!({"a": "x"})),
            ("{\"a\": \"x\"", json!({"a": "x"})),
            ("{\"a\": \"x\", ", json!({"a": "x"})),
            ("{\"a\": \"x\", \"b\": [1, [tru", json!({"a": "x", "b": [1, []]})),
            ("[true, nul", json!([true])),
            ("[1, 2", json!([1])),
            ("[1, 2 ", json!([1, 2])),
            ("[1, 2.", json!([1])),
            ("[1, -", json!([1])),
            ("[1, 2.5e+", json!([1])),
            ("[{}, {\"a\": {}}", json!([{}, {"a": {}}])),
            ("\"ab", json!("ab")),
            ("\"a\\", json!("a")),
            ("\"a\\n\\u00e", json!("a\n")),
            ("\"\\u00e9\\\"", json!("\u{e9}\"")),
            ("\"x\\ud83d", json!("x")),
            ("\"x\\ud83d\\", json!("x")),
            ("\"x\\ud83d\\ude0", json!("x")),
            ("\"x\\ud83d\\ude00", json!("x\u{1F600}")),
            ("\"\\ud83dx\\ude00\\ud83d\\ud83d\\ude00", json!("\u{FFFD}x\u{FFFD}\u{FFFD}\u{1F600}")),
            ("12", json!(12)),
            ("-0.5e1 ", json!(-5.0)),
            ("null", json!(null)),
            ("{\"a\": 1, \"a\": 2, ", json!({"a": 2})),
        ] {
            assert_eq!(value_so_far(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn nothing_is_made_up_where_nothing_is_known() {
        for text in ["", " \n", "t", "nul", "-", "1.", "1e"] {
            assert_eq!(value_so_far(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_json_has_no_value() {
        for text in [
            "x",
            "truth",
            "{a",
            "{1",
            "{,",
            "[,",
            "[1,]",
            "[1 2",
            "{\"a\" 1",
            "{\"a\":,",
            "{\"a\":1,}",
            "[}",
            "{]",
            "]",
            "{}}",
            "{} x",
            "01",
            "+1",
            ".5",
            "1.x",
            "1ex",
            "--",
            "\"\n",
            "\"\\x",
            "\"\\u0g",
            "\"\\u00\u{e9}",
            "\"a\"b",
            "1e999",
            ":",
        ] {
            assert_eq!(value_so_far(text), None, "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = "[".repeat(Limits::CEILING_DEPTH);
        assert!(value_so_far(&deep).is_some());
        assert_eq!(value_so_far(&format!("{deep}[")), None);
        assert_eq!(value_so_far(&"[{\"a\":".repeat(1_000_000)), None);
    }
}
