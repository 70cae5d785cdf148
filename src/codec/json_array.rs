//! Finds events that are the elements of a JSON array, or JSON values one after the other.

use std::borrow::Cow;

use bytes::Bytes;

use super::feed::{Count, Frame, Framing, read_in_place};
use crate::error::{Error, Malformed};
use crate::raw::RawItem;
use crate::rule::Rule;

/// Finds the elements of one JSON array, or values in a row, cut anywhere. Their content is not judged.
#[derive(Debug)]
pub(crate) struct ArrayFraming {
    max: usize,
    at: At,
    /// Where it is after a value.
    after: At,
    element: Vec<u8>,
    /// How deep within the element.
    depth: u64,
    in_string: bool,
    escaped: bool,
    count: Count,
}

/// Where in the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Before the `[`.
    Start,
    /// After it.
    First,
    /// After a comma.
    Next,
    /// Within an array, an object or a string.
    Element,
    /// Within a number or a literal, which ends with the next byte that is not part of it.
    Word,
    /// After an element.
    After,
    /// After the `]`.
    End,
    /// Between two values in a row.
    Between,
}

impl ArrayFraming {
    /// Elements of at most this many bytes.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            at: At::Start,
            after: At::After,
            element: Vec::new(),
            depth: 0,
            in_string: false,
            escaped: false,
            count: Count::default(),
        }
    }

    /// The same for values in a row, without brackets and commas.
    pub(crate) fn of_values(max: usize) -> Self {
        Self { at: At::Between, after: At::Between, ..Self::new(max) }
    }

    fn next_frame<'a>(&mut self, rest: &mut &'a [u8]) -> Result<Option<Frame<'a>>, Error> {
        let bytes = core::mem::take(rest);
        let after = |at: usize| bytes.get(at..).unwrap_or_default();
        let mut from = 0;
        for (at, byte) in bytes.iter().copied().enumerate() {
            if self.at == At::Element {
                if self.is_last(byte) {
                    *rest = after(at + 1);
                    return self.end_element(bytes.get(from..=at)).map(Some);
                }
                continue;
            }
            let blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            if self.at == At::Word {
                if !blank && !matches!(byte, b',' | b']') {
                    continue;
                }
                *rest = after(at);
                return self.end_element(bytes.get(from..at)).map(Some);
            }
            *rest = after(at);
            match (self.at, byte) {
                _ if blank => {}
                (At::Start, b'[') => self.at = At::First,
                (At::First | At::After, b']') => self.at = At::End,
                (At::After, b',') => self.at = At::Next,
                (At::First | At::Next | At::Between, b',' | b']' | b'}' | b':') => {
                    return Err(self.misplaced("an event", byte));
                }
                (At::First | At::Next | At::Between, _) => {
                    from = at;
                    self.at = if matches!(byte, b'{' | b'[' | b'"') { At::Element } else { At::Word };
                    self.is_last(byte);
                }
                (At::After, _) => return Err(self.misplaced("`,` or `]` after an event", byte)),
                (At::Start, _) => return Err(self.misplaced("`[`", byte)),
                (At::Element | At::Word | At::End, _) => {
                    return Err(self.misplaced("the end of the recording after `]`", byte));
                }
            }
        }
        *rest = &[];
        if matches!(self.at, At::Element | At::Word) {
            let text = after(from);
            self.check_len(text)?;
            self.element.extend_from_slice(text);
        }
        Ok(None)
    }

    /// Steps over a byte of the element, and says whether it is the last.
    fn is_last(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
        } else {
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.depth == 0 && !self.in_string
    }

    fn check_len(&self, text: &[u8]) -> Result<(), Error> {
        let is_too_long = text.len() > self.max.saturating_sub(self.element.len());
        if is_too_long { Err(self.count.too_long(self.max)) } else { Ok(()) }
    }

    fn end_element<'a>(&mut self, text: Option<&'a [u8]>) -> Result<Frame<'a>, Error> {
        let text = text.unwrap_or_default();
        self.check_len(text)?;
        self.at = self.after;
        let mut held = core::mem::take(&mut self.element);
        let text = if held.is_empty() {
            Cow::Borrowed(text)
        } else {
            held.extend_from_slice(text);
            Cow::Owned(held)
        };
        Ok(Frame::Text { text, index: self.count.step() })
    }

    fn misplaced(&self, expected: &'static str, found: u8) -> Error {
        Malformed::new(Rule::E9, self.count.0, expected, format!("{:?}", char::from(found))).into()
    }
}

impl Framing for ArrayFraming {
    type Item = RawItem;

    fn next(&mut self, rest: &mut Bytes) -> Result<Option<RawItem>, Error> {
        read_in_place(rest, |rest, piece| Ok(self.next_frame(rest)?.map(|frame| frame.into_item(piece))))
    }

    fn end(&mut self) -> Result<Option<RawItem>, Error> {
        if self.at == At::Word && self.after == At::Between {
            return self.end_element(Some(&[])).map(|frame| Some(frame.into_item(&Bytes::new())));
        }
        if matches!(self.at, At::End | At::Between) { Ok(None) } else { Err(self.count.truncated()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::feed::Feed;
    use crate::raw::Raw;

    /// The elements, and the error.
    fn run(text: &str, size: usize, max: usize) -> (Vec<String>, Option<String>) {
        let mut decoder = Feed::new(ArrayFraming::new(max));
        let mut items = Vec::new();
        let mut failed = Ok(());
        for piece in text.as_bytes().chunks(size) {
            failed = decoder.push(piece);
            if failed.is_err() {
                break;
            }
            items.extend(std::iter::from_fn(|| decoder.pop()));
        }
        let failed = failed.and_then(|()| decoder.finish());
        items.extend(std::iter::from_fn(|| decoder.pop()));
        let elements = items.into_iter().map(|item| match item {
            RawItem::Event { raw: Raw::Bytes(bytes), .. } => String::from_utf8(bytes.into()).unwrap(),
            other => panic!("{other:?}"),
        });
        (elements.collect(), failed.err().map(|error| error.to_string()))
    }

    #[test]
    fn elements_are_found_however_the_array_is_cut() {
        let cases: [(&str, &[&str], Option<&str>); 15] = [
            ("[]", &[], None),
            (
                " [ {\"a\":[1,{\"b\":\"]}\\\"\"}]} ,\n[2],\t\"x,]\" , 3,null ]\r\n ",
                &["{\"a\":[1,{\"b\":\"]}\\\"\"}]}", "[2]", "\"x,]\"", "3", "null"],
                None,
            ),
            ("[{}", &["{}"], Some("R8: truncated: the bytes ended within an event after 1 event")),
            ("[{},", &["{}"], Some("R8: truncated: the bytes ended within an event after 1 event")),
            ("[{}, {\"a\":1", &["{}"], Some("R8: truncated: the bytes ended within an event after 1 event")),
            ("[1", &[], Some("R8: truncated: the bytes ended within an event after 0 events")),
            ("[", &[], Some("R8: truncated: the bytes ended within an event after 0 events")),
            ("", &[], Some("R8: truncated: the bytes ended within an event after 0 events")),
            ("[,]", &[], Some("E9: event 0: expected an event, found ','")),
            ("[1,]", &["1"], Some("E9: event 1: expected an event, found ']'")),
            ("[1 2]", &["1"], Some("E9: event 1: expected `,` or `]` after an event, found '2'")),
            ("[{}{}]", &["{}"], Some("E9: event 1: expected `,` or `]` after an event, found '{'")),
            ("[1] 2", &["1"], Some("E9: event 1: expected the end of the recording after `]`, found '2'")),
            ("{}", &[], Some("E9: event 0: expected `[`, found '{'")),
            ("[}]", &[], Some("E9: event 0: expected an event, found '}'")),
        ];
        for (text, elements, error) in cases {
            for size in [1, 2, 3, 100] {
                let (found, failed) = run(text, size, 100);
                let found: Vec<&str> = found.iter().map(String::as_str).collect();
                assert_eq!((found.as_slice(), failed.as_deref()), (elements, error), "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn an_element_beyond_the_limit_is_an_error() {
        for size in [1, 3, 100] {
            let (found, failed) = run("[1234,12345]", size, 4);
            assert_eq!(
                (found, failed.as_deref()),
                (vec!["1234".to_owned()], Some("event 1 is longer than 4 bytes, the `max_event_bytes` of the decoder"))
            );
        }
    }
}
