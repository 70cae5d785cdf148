//! A scanner over JSON text: tokens, in one pass and without a copy.

use std::borrow::Cow;

use super::string::{Lone, Str};

/// Why a text is not JSON, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) offset: usize,
    pub(crate) reason: &'static str,
    pub(crate) too_deep: bool,
}

/// Whether a JSON text holds at most so many values, itself and the values of members included. Of what
/// is no JSON it counts what it takes for values.
///
/// One pass, without a tree: before memory is taken for what it may hold.
pub(crate) fn has_at_most(max: usize, text: &str) -> bool {
    let (mut values, mut in_string, mut is_escaped, mut is_opened) = (1, false, false, false);
    for byte in text.bytes() {
        if in_string {
            in_string = is_escaped || byte != b'"';
            is_escaped = byte == b'\\' && !is_escaped;
            continue;
        }
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => continue,
            b',' => values += 1,
            // What is opened and not closed at once holds one value more than it has commas.
            _ if is_opened && !matches!(byte, b']' | b'}') => values += 1,
            _ => {}
        }
        if values > max {
            return false;
        }
        is_opened = matches!(byte, b'[' | b'{');
        in_string = byte == b'"';
    }
    values <= max
}

/// Reads JSON tokens from a text.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    #[inline]
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0 }
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    pub(crate) fn advance(&mut self) {
        self.at += 1;
    }

    #[inline]
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    #[inline]
    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    #[inline]
    pub(crate) fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    pub(crate) fn error(&self, reason: &'static str) -> SyntaxError {
        SyntaxError { offset: self.at, reason, too_deep: false }
    }

    pub(crate) fn too_deep(&self) -> SyntaxError {
        SyntaxError { offset: self.at, reason: "nested too deep", too_deep: true }
    }

    fn slice(&self, from: usize, to: usize) -> &'a str {
        // Both ends are next to ASCII bytes, so the slice always exists.
        self.text.get(from..to).unwrap_or_default()
    }

    pub(crate) fn literal(&mut self, word: &str) -> Result<(), SyntaxError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.error("expected a value"))
        }
    }

    /// A number by the grammar of RFC 8259.
    pub(crate) fn number(&mut self) -> Result<&'a str, SyntaxError> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') && self.digits() == 0 {
            return Err(self.error("expected a digit"));
        }
        if self.take(b'.') && self.digits() == 0 {
            return Err(self.error("expected a digit"));
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.error("expected a digit"));
            }
        }
        Ok(self.slice(start, self.at))
    }

    /// An integer within ±(2^53-1), written as one.
    pub(crate) fn safe_integer(&mut self) -> Option<i64> {
        if !matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
            return None;
        }
        let value: i64 = self.number().ok()?.parse().ok()?;
        (value.unsigned_abs() < 1 << 53).then_some(value)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    /// The index of the first byte from here on that ends or interrupts a string.
    #[inline]
    fn string_run(&self) -> usize {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at + run_of_text(rest)
    }

    /// A string without escapes, borrowed; `None` (and no movement) where it is not one.
    #[inline]
    pub(crate) fn plain_string(&mut self) -> Option<&'a str> {
        let rest = self.bytes.get(self.at..)?;
        let [b'"', rest @ ..] = rest else { return None };
        let len = run_of_text(rest);
        if rest.get(len) != Some(&b'"') {
            return None;
        }
        let start = self.at + 1;
        self.at = start + len + 1;
        self.text.get(start..start + len)
    }

    /// A key without escapes and its colon, up to the value; `None` for anything else.
    pub(crate) fn plain_key(&mut self) -> Option<&'a str> {
        let key = self.plain_string()?;
        if !self.take(b':') {
            self.skip_whitespace();
            if !self.take(b':') {
                return None;
            }
        }
        self.skip_whitespace();
        Some(key)
    }

    /// Steps over these bytes, if they are next.
    #[inline]
    pub(crate) fn take_all<const N: usize>(&mut self, bytes: &[u8; N]) -> bool {
        // The length is a constant, so this is a comparison or two and no loop.
        let found = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>()) == Some(bytes);
        if found {
            self.at += N;
        }
        found
    }

    /// Steps over this text, if it is next.
    #[inline(always)]
    pub(crate) fn take_str(&mut self, text: &'static str) -> bool {
        let found = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(text.as_bytes()));
        if found {
            self.at += text.len();
        }
        found
    }

    /// A string; the scanner is at its opening quote.
    pub(crate) fn string(&mut self) -> Result<Str<'a>, SyntaxError> {
        self.advance();
        let start = self.at;
        self.at = self.string_run();
        if self.take(b'"') {
            return Ok(Str::borrowed(self.slice(start, self.at - 1)));
        }
        let mut text = String::with_capacity((self.at - start) * 2);
        let mut lone = Lone::default();
        // A high half waits for the low half that should follow at once.
        let mut high: Option<u16> = None;
        text.push_str(self.slice(start, self.at));
        loop {
            match self.peek() {
                Some(b'\\') => {
                    self.at += 1;
                    let unit = match self.peek() {
                        Some(b'u') => {
                            self.at += 1;
                            self.hex4()?
                        }
                        Some(byte) => {
                            let unit = match byte {
                                b'"' | b'\\' | b'/' => u16::from(byte),
                                b'b' => 0x08,
                                b'f' => 0x0c,
                                b'n' => 0x0a,
                                b'r' => 0x0d,
                                b't' => 0x09,
                                _ => return Err(self.error("unknown escape")),
                            };
                            self.at += 1;
                            unit
                        }
                        None => return Err(self.error("the text ends within a string")),
                    };
                    match (high.take(), unit) {
                        (Some(first), 0xdc00..=0xdfff) => text.push(join(first, unit)),
                        (None, 0xdc00..=0xdfff) => {
                            if text.is_empty() {
                                lone.leading = unit;
                            } else {
                                lone.inner = true;
                            }
                            text.push(char::REPLACEMENT_CHARACTER);
                        }
                        (before, _) => {
                            if before.is_some() {
                                lone.inner = true;
                                text.push(char::REPLACEMENT_CHARACTER);
                            }
                            if let 0xd800..=0xdbff = unit {
                                high = Some(unit);
                            } else {
                                text.push(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER));
                            }
                        }
                    }
                }
                Some(b'"') => {
                    self.at += 1;
                    if let Some(unit) = high {
                        lone.trailing = unit;
                        text.push(char::REPLACEMENT_CHARACTER);
                    }
                    return Ok(Str { text: Cow::Owned(text), lone });
                }
                Some(0..=0x1f) => return Err(self.error("control character within a string")),
                Some(_) => {
                    if high.take().is_some() {
                        lone.inner = true;
                        text.push(char::REPLACEMENT_CHARACTER);
                    }
                    let start = self.at;
                    self.at = self.string_run();
                    text.push_str(self.slice(start, self.at));
                }
                None => return Err(self.error("the text ends within a string")),
            }
        }
    }

    fn hex4(&mut self) -> Result<u16, SyntaxError> {
        let mut unit = 0u16;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else { return Err(self.error("expected four hexadecimal digits")) };
            unit = (unit << 4) | u16::try_from(digit).unwrap_or_default();
            self.at += 1;
        }
        Ok(unit)
    }
}

/// How many bytes stand before the first that ends or interrupts a string: a quote, a backslash or
/// a control character.
#[inline]
pub(crate) fn run_of_text(bytes: &[u8]) -> usize {
    let mut len = 0;
    let mut rest = bytes;
    while let Some((chunk, behind)) = rest.split_first_chunk::<8>() {
        let found = specials(u64::from_le_bytes(*chunk));
        // A borrow can mark bytes after the first hit, never before it.
        if found != 0 {
            return len + (found.trailing_zeros() / 8) as usize;
        }
        len += 8;
        rest = behind;
    }
    len + rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)).unwrap_or(rest.len())
}

/// The bytes among eight that end or interrupt a string, marked by their highest bits: none is marked before
/// the first.
///
/// In a word, a byte is below `n` where subtracting `n` borrows into its highest bit and that bit was not
/// set before.
#[inline(always)]
pub(crate) fn specials(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    let is_below = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word & HIGHS;
    let quote = is_below(word ^ (ONES * u64::from(b'"')), 1);
    let backslash = is_below(word ^ (ONES * u64::from(b'\\')), 1);
    quote | backslash | is_below(word, 0x20)
}

/// The character of a surrogate pair.
pub(crate) fn join(high: u16, low: u16) -> char {
    char::decode_utf16([high, low]).next().and_then(Result::ok).unwrap_or(char::REPLACEMENT_CHARACTER)
}
