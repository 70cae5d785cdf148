//! The fast reader of typed values: one pass over the JSON text, without a tree.
//!
//! It accepts only text that [`Decode::decode`] accepts without a warning, and gives the same value. On
//! any doubt (an unknown or repeated key, a null, an escape in an id or a key, half a surrogate pair, a
//! number that is not written as an integer, too deep) it gives up, and the text is read by way of a
//! tree. So the rules live in one place.

use std::borrow::Cow;

use json_patch::jsonptr::PointerBuf;
use serde_json::{Map, Value};
use smol_str::SmolStr;

use super::decode::Decode;
use crate::id::Interner;
use crate::json::node::Num;
use crate::json::scan::Scanner;

/// Reads values from a text. A method that returns `None` gives up the whole text.
pub(crate) struct Reader<'a, 'i> {
    scanner: Scanner<'a>,
    pub(crate) interner: &'i mut Interner,
    /// How deep the next value may be nested.
    depth: usize,
    /// Whether the next object was entered already, and its tag read.
    tagged: bool,
}

/// The position of a reader within an object.
pub(crate) struct Members {
    begun: bool,
    is_first: bool,
    /// Whether the tag was read.
    pub(crate) tagged: bool,
}

impl Members {
    const BEGIN: Self = Self { begun: false, is_first: false, tagged: false };
}

/// Reads one value that is the whole of a text.
pub(crate) fn read<T: Decode>(text: &str, depth: usize, interner: &mut Interner) -> Option<T> {
    let mut reader = Reader { scanner: Scanner::new(text), interner, depth, tagged: false };
    reader.scanner.skip_whitespace();
    let value = T::read(&mut reader)?;
    reader.scanner.skip_whitespace();
    reader.scanner.is_at_end().then_some(value)
}

impl<'a> Reader<'a, '_> {
    /// The tag of the next union. Only plain strings may come before it; they are read again.
    #[inline]
    pub(crate) fn tag(&mut self, key: &str) -> Option<&'a str> {
        let start = self.scanner.clone();
        let mut members = self.enter()?;
        while self.more(&mut members)? {
            if self.scanner.plain_key()? == key {
                self.tagged = members.is_first;
                let tag = self.plain();
                if !members.is_first {
                    self.scanner = start;
                    self.depth += 1;
                }
                return tag;
            }
            self.plain()?;
        }
        None
    }

    /// Enters the next object.
    #[inline]
    pub(crate) fn members(&mut self) -> Option<Members> {
        if core::mem::take(&mut self.tagged) {
            Some(Members { begun: true, is_first: false, tagged: true })
        } else {
            self.enter()
        }
    }

    #[inline]
    fn enter(&mut self) -> Option<Members> {
        self.depth = self.depth.checked_sub(1)?;
        self.scanner.take(b'{').then_some(Members::BEGIN)
    }

    /// Whether there is another member, whose key comes next.
    #[inline]
    pub(crate) fn more(&mut self, members: &mut Members) -> Option<bool> {
        self.scanner.skip_whitespace();
        if self.scanner.take(b'}') {
            self.depth += 1;
            return Some(false);
        }
        members.is_first = !core::mem::replace(&mut members.begun, true);
        if !members.is_first {
            if !self.scanner.take(b',') {
                return None;
            }
            self.scanner.skip_whitespace();
        }
        Some(true)
    }

    /// Steps over the comma, key and colon of the next member, if they are just these: one comparison
    /// for what most producers write next.
    #[inline(always)]
    pub(crate) fn take_key(&mut self, members: &Members, key: &'static str) -> bool {
        members.begun && self.scanner.take_str(key)
    }

    /// The key of a member, whose value comes next.
    #[inline]
    pub(crate) fn key(&mut self) -> Option<&'a str> {
        self.scanner.plain_key()
    }

    /// Reads the value of a member that was not there before.
    #[inline]
    pub(crate) fn once<T: Decode>(&mut self, field: &mut Option<T>) -> Option<()> {
        if field.is_some() {
            return None;
        }
        *field = Some(T::read(self)?);
        Some(())
    }

    /// Reads a member with one legal value that was not there before.
    #[inline]
    pub(crate) fn constant(&mut self, value: &str, seen: &mut bool) -> Option<()> {
        (!core::mem::replace(seen, true) && self.plain()? == value).then_some(())
    }

    /// A string without escapes.
    #[inline]
    pub(crate) fn plain(&mut self) -> Option<&'a str> {
        self.scanner.plain_string()
    }

    /// A string of whole characters.
    #[inline]
    pub(crate) fn string(&mut self) -> Option<Cow<'a, str>> {
        whole_string(&mut self.scanner)
    }

    #[inline]
    pub(crate) fn safe_integer(&mut self) -> Option<i64> {
        self.scanner.safe_integer()
    }

    pub(crate) fn boolean(&mut self) -> Option<bool> {
        match self.peek()? {
            b't' => self.scanner.literal("true").ok().map(|()| true),
            b'f' => self.scanner.literal("false").ok().map(|()| false),
            _ => None,
        }
    }

    pub(crate) fn pointer(&mut self) -> Option<PointerBuf> {
        PointerBuf::parse(self.plain()?).ok()
    }

    /// The first byte of what comes next.
    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.scanner.peek()
    }

    pub(crate) fn list<T: Decode>(&mut self) -> Option<Vec<T>> {
        self.depth = self.depth.checked_sub(1)?;
        let mut list = Vec::new();
        if !self.scanner.take(b'[') {
            return None;
        }
        self.scanner.skip_whitespace();
        while !self.scanner.take(b']') {
            if !list.is_empty() {
                if !self.scanner.take(b',') {
                    return None;
                }
                self.scanner.skip_whitespace();
            }
            list.push(T::read(self)?);
            self.scanner.skip_whitespace();
        }
        self.depth += 1;
        Some(list)
    }

    /// Any object.
    pub(crate) fn object(&mut self) -> Option<Map<String, Value>> {
        let mut map = Map::new();
        let mut members = self.enter()?;
        while self.more(&mut members)? {
            let key = self.key()?;
            // The tree decides which of two equal keys counts.
            if map.insert(key.to_owned(), self.value()?).is_some() {
                return None;
            }
        }
        Some(map)
    }

    /// Any value.
    pub(crate) fn value(&mut self) -> Option<Value> {
        match self.peek()? {
            b'"' => Some(Value::String(self.string()?.into_owned())),
            b'{' => self.object().map(Value::Object),
            b'[' => self.list().map(Value::Array),
            b'n' => self.scanner.literal("null").ok().map(|()| Value::Null),
            b'-' | b'0'..=b'9' => Num::Text(self.scanner.number().ok()?).to_number().map(Value::Number),
            _ => self.boolean().map(Value::Bool),
        }
    }
}

/// A string, unless it has half a surrogate pair.
#[inline]
pub(crate) fn whole_string<'a>(scanner: &mut Scanner<'a>) -> Option<Cow<'a, str>> {
    match scanner.plain_string() {
        Some(plain) => Some(Cow::Borrowed(plain)),
        None if scanner.peek() == Some(b'"') => Some(scanner.string().ok().filter(|string| !string.lone.any())?.text),
        None => None,
    }
}

/// The text as a [`SmolStr`].
///
/// [`SmolStr::new`] copies a short text through two buffers, and the processor stalls when it reads in
/// one piece what it has just written in several. With a length that the compiler knows, it is a move
/// or two.
#[inline]
pub(crate) fn smol_str(text: &str) -> SmolStr {
    macro_rules! by_length {
        ($($len:literal)*) => {
            match text.len() {
                $($len => SmolStr::new_inline(of_length::<$len>(text)),)*
                _ => SmolStr::new(text),
            }
        };
    }
    by_length!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23)
}

/// The same text, with a length that the compiler knows.
#[inline(always)]
fn of_length<const N: usize>(text: &str) -> &str {
    match text.get(..N) {
        Some(text) if text.len() == N => text,
        _ => "",
    }
}
