//! A reader for incomplete JSON text, such as the arguments of a tool call that still streams.

use serde_json::{Map, Value};

use crate::limits::Limits;

/// Reads the arguments of a tool call as they come: a value to show after each delta, for the price of
/// the delta. [`FunctionCall::partial_arguments`](crate::message::FunctionCall::partial_arguments) is the
/// same for arguments that are there already, and says what the value is.
///
/// # Cost
/// [`push`](PartialArguments::push): the delta, and how deep the text is nested there. What is held is the
/// value, and a number or an escape that may not be whole.
///
/// # Examples
/// ```
/// use ag_ui_stream::message::PartialArguments;
/// use serde_json::json;
///
/// let mut arguments = PartialArguments::new();
/// arguments.push("{\"to\": \"Par");
/// assert_eq!(arguments.value(), Some(&json!({"to": "Par"})));
/// arguments.push("is\", \"nights\": 3");
/// assert_eq!(arguments.value(), Some(&json!({"to": "Paris"})));
/// arguments.push("0}");
/// assert_eq!(arguments.value(), Some(&json!({"to": "Paris", "nights": 30})));
/// ```
#[derive(Clone, Debug)]
pub struct PartialArguments {
    /// The value so far, with all that is open in its place.
    value: Option<Value>,
    /// What is open, from the outside in. The containers are in the value; only while a delta is read they
    /// are here, to be changed without a walk to them each time.
    open: Vec<Frame>,
    expected: Expected,
    /// The string that is open: the last value, or the key that comes next.
    string: Option<Part>,
    /// Its text; that of a value is in the value, as containers are.
    text: String,
    /// What cannot be read before more has come.
    rest: String,
    is_malformed: bool,
}

/// What a string is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Key,
    Value,
}

impl Default for PartialArguments {
    fn default() -> Self {
        Self {
            value: None,
            open: Vec::new(),
            expected: Expected::Value,
            string: None,
            text: String::new(),
            rest: String::new(),
            is_malformed: false,
        }
    }
}

impl PartialArguments {
    /// How long a number may be. More than a thousand digits say nothing that a number can hold.
    const MAX_NUMBER: usize = 1024;

    /// Of a text that has not begun.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads what comes next. The text may be cut anywhere: how it is cut makes no difference.
    pub fn push(&mut self, delta: &str) {
        if self.is_malformed || delta.is_empty() {
            return;
        }
        self.take_out();
        let rest = std::mem::take(&mut self.rest);
        let joined = if rest.is_empty() { None } else { Some(rest + delta) };
        let mut reader = Reader { text: joined.as_deref().unwrap_or(delta), at: 0 };
        match reader.read(self) {
            Stop::End if reader.rest().len() <= Self::MAX_NUMBER => {
                reader.rest().clone_into(&mut self.rest);
                self.put_back();
            }
            Stop::End | Stop::Malformed => *self = Self { is_malformed: true, ..Self::default() },
        }
    }

    /// What there is so far; `None` where nothing is known yet, and where the text is no JSON or is nested
    /// too deep.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    /// The same, by value.
    #[must_use]
    pub fn into_value(self) -> Option<Value> {
        self.value
    }

    fn add(&mut self, value: Value) {
        match self.open.last_mut() {
            Some(frame) => frame.add(value),
            None => self.value = Some(value),
        }
        self.expected = Expected::Comma;
    }

    fn take_out(&mut self) {
        if self.open.is_empty() && self.expected == Expected::Comma {
            // It is whole.
            return;
        }
        let is_value = self.string == Some(Part::Value);
        let mut value = self.value.take();
        let mut frames = self.open.iter_mut().peekable();
        while let Some(frame) = frames.next() {
            let holds_more = is_value || frames.peek().is_some();
            value = value.and_then(|held| frame.take_out(held, holds_more));
        }
        if let (true, Some(Value::String(text))) = (is_value, value) {
            self.text = text;
        }
    }

    fn put_back(&mut self) {
        let is_value = self.string == Some(Part::Value);
        let last = is_value.then(|| Value::String(std::mem::take(&mut self.text)));
        let value = self.open.iter_mut().rev().fold(last, |last, frame| Some(frame.put_back(last)));
        if value.is_some() {
            self.value = value;
        } else if self.expected == Expected::Value {
            // A number may go on, unless the text is that number.
            self.value = serde_json::from_str(&self.rest).ok().map(Value::Number);
        }
    }
}

/// Why reading stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// The text ends; what is not read yet needs what comes next.
    End,
    Malformed,
}

/// A container that is open.
#[derive(Clone, Debug)]
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

    fn close(self) -> Value {
        match self {
            Frame::Array(elements) => Value::Array(elements),
            Frame::Object(members, _) => Value::Object(members),
        }
    }

    /// Takes its container back, and out of that the last value where that is open too.
    fn take_out(&mut self, held: Value, holds_more: bool) -> Option<Value> {
        match (self, held) {
            (Frame::Array(elements), Value::Array(held)) => {
                *elements = held;
                if holds_more { elements.pop() } else { None }
            }
            (Frame::Object(members, key), Value::Object(held)) => {
                *members = held;
                if holds_more { members.get_mut(key.as_str()).map(Value::take) } else { None }
            }
            _ => None,
        }
    }

    fn put_back(&mut self, last: Option<Value>) -> Value {
        match self {
            Frame::Array(elements) => {
                elements.extend(last);
                Value::Array(std::mem::take(elements))
            }
            Frame::Object(members, key) => {
                match (members.get_mut(key.as_str()), last) {
                    (Some(place), Some(last)) => *place = last,
                    (None, Some(last)) => {
                        members.insert(key.clone(), last);
                    }
                    (_, None) => {}
                }
                Value::Object(std::mem::take(members))
            }
        }
    }
}

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    fn read(&mut self, to: &mut PartialArguments) -> Stop {
        loop {
            if let Err(stop) = self.step(to) {
                return stop;
            }
        }
    }

    fn step(&mut self, to: &mut PartialArguments) -> Result<(), Stop> {
        if let Some(part) = to.string {
            self.characters(&mut to.text)?;
            to.string = None;
            let text = std::mem::take(&mut to.text);
            match (part, to.open.last_mut()) {
                (Part::Key, Some(Frame::Object(_, key))) => (*key, to.expected) = (text, Expected::Colon),
                _ => to.add(Value::String(text)),
            }
            return Ok(());
        }
        self.skip_space();
        let next = self.peek().ok_or(Stop::End)?;
        let value = match (to.expected, next, to.open.last_mut()) {
            (Expected::Value | Expected::Element, b'[' | b'{', _) => {
                if to.open.len() >= Limits::CEILING_DEPTH {
                    return Err(Stop::Malformed);
                }
                self.at += 1;
                (to.expected, _) = if next == b'[' {
                    (Expected::Element, to.open.push(Frame::Array(Vec::new())))
                } else {
                    (Expected::Member, to.open.push(Frame::Object(Map::new(), String::new())))
                };
                return Ok(());
            }
            (Expected::Element | Expected::Comma, b']', Some(Frame::Array(_)))
            | (Expected::Member | Expected::Comma, b'}', Some(Frame::Object(..))) => {
                self.at += 1;
                to.open.pop().map(Frame::close).ok_or(Stop::Malformed)?
            }
            (Expected::Key | Expected::Member, b'"', Some(Frame::Object(..))) => {
                self.at += 1;
                to.string = Some(Part::Key);
                return Ok(());
            }
            (Expected::Value | Expected::Element, b'"', _) => {
                self.at += 1;
                to.string = Some(Part::Value);
                return Ok(());
            }
            (Expected::Colon, b':', _) => {
                self.at += 1;
                to.expected = Expected::Value;
                return Ok(());
            }
            (Expected::Comma, b',', Some(frame)) => {
                self.at += 1;
                to.expected = if matches!(frame, Frame::Array(_)) { Expected::Value } else { Expected::Key };
                return Ok(());
            }
            (Expected::Value | Expected::Element, ..) => self.scalar(next)?,
            _ => return Err(Stop::Malformed),
        };
        to.add(value);
        Ok(())
    }

    /// A literal or a number; where it may not be whole, it is still to be read.
    fn scalar(&mut self, first: u8) -> Result<Value, Stop> {
        let start = self.at;
        let scalar = match first {
            b't' => self.literal("true", Value::Bool(true)),
            b'f' => self.literal("false", Value::Bool(false)),
            b'n' => self.literal("null", Value::Null),
            _ => self.number(),
        };
        scalar.inspect_err(|_| self.at = start)
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, Stop> {
        if self.rest().starts_with(word) {
            self.at += word.len();
            return Ok(value);
        }
        Err(if word.starts_with(self.rest()) { Stop::End } else { Stop::Malformed })
    }

    /// A number at the end of the text may go on.
    fn number(&mut self) -> Result<Value, Stop> {
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
        if self.peek().is_none() {
            return Err(Stop::End);
        }
        let number = self.text.get(start..self.at).filter(|text| text.len() <= PartialArguments::MAX_NUMBER);
        let number = number.and_then(|text| serde_json::from_str(text).ok());
        number.map(Value::Number).ok_or(Stop::Malformed)
    }

    /// One digit or more.
    fn digits(&mut self) -> Result<(), Stop> {
        match self.peek() {
            Some(b'0'..=b'9') => {}
            Some(_) => return Err(Stop::Malformed),
            None => return Err(Stop::End),
        }
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        Ok(())
    }

    /// Reads to the quote that closes a string; an escape that may not be whole is still to be read.
    fn characters(&mut self, string: &mut String) -> Result<(), Stop> {
        loop {
            let plain = self.rest().bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
            let end = plain.map_or(self.text.len(), |plain| self.at + plain);
            string.push_str(self.text.get(self.at..end).unwrap_or_default());
            self.at = end;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    string.push(self.escape().inspect_err(|_| self.at = end)?);
                }
                Some(_) => return Err(Stop::Malformed),
                None => return Err(Stop::End),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Stop> {
        let kind = self.peek().ok_or(Stop::End)?;
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
                return Err(Stop::End);
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
            return Err(Stop::End);
        }
        self.at += 4;
        u16::from_str_radix(digits, 16).map_err(|_| Stop::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value_so_far(text: &str) -> Option<Value> {
        let mut arguments = PartialArguments::new();
        arguments.push(text);
        arguments.into_value()
    }

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
