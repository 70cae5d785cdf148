//! The decoder of JSON Lines: <https://jsonlines.org>.

use std::borrow::Cow;

use bytes::Bytes;

use super::feed::{Count, Feed, Frame, Framing, read_in_place};
use super::looked_at;
use super::whole::Completeness;
use crate::error::Error;
use crate::limits::Limits;
#[cfg(doc)]
use crate::raw::Raw;
use crate::raw::RawItem;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Finds the events in a stream of JSON Lines: a file of a recorded run, or the output of a
/// program.
///
/// In: bytes, cut anywhere. Out, in order: each line, as [`Raw::Bytes`] in its place.
///
/// - Lines end with LF or CR LF; a leading byte order mark is ignored.
/// - Blank lines are skipped, and white space before a value; neither takes memory.
/// - The line is not judged: enforcement rejects invalid events (rule E9).
///
/// # Ending
/// The last line may lack its line end if it is one complete JSON value. Anything less is
/// [`Error::Truncated`] (rule T1a).
///
/// # Errors
/// [`Error::LimitExceeded`] for a line longer than [`Limits::max_event_bytes`], before the memory
/// is taken, after all earlier events.
///
/// # Cost
/// Each byte is looked at once, whatever the pieces. A line that one piece holds whole shares its memory, and is
/// neither copied nor allocated; what lies in several pieces is put together ([`Piece`](super::Piece)).
///
/// # Examples
/// ```
/// use ag_ui_stream::codec::JsonLinesDecoder;
/// use ag_ui_stream::{Raw, RawItem};
///
/// let mut decoder = JsonLinesDecoder::new();
/// decoder.push(b"{\"type\":\"RUN_ERROR\"}\r\n\r\n{\"type\"")?;
/// let line = b"{\"type\":\"RUN_ERROR\"}";
/// assert_eq!(decoder.pop(), Some(RawItem::Event { raw: Raw::Bytes(line[..].into()), index: 0 }));
/// assert_eq!(decoder.pop(), None);
/// assert!(decoder.finish().unwrap_err().is_truncated());
/// # Ok::<(), ag_ui_stream::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct JsonLinesDecoder {
    pub(super) feed: Feed<JsonLinesFraming>,
}

decoder!(JsonLinesDecoder: "[`Error::LimitExceeded`].", "T1a");

impl JsonLinesDecoder {
    /// A decoder with the default [`Limits`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with other bounds.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.feed.framing.max = limits.max_event_bytes;
        self
    }
}

/// Finds the lines.
#[derive(Debug)]
pub(crate) struct JsonLinesFraming {
    max: usize,
    /// How much of a leading byte order mark was seen; `None` after the start of the stream.
    bom: Option<usize>,
    /// The beginning of a line that did not come in one piece.
    line: Vec<u8>,
    pub(super) count: Count,
}

impl Default for JsonLinesFraming {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Framing for JsonLinesFraming {
    type Item = RawItem;

    fn next(&mut self, rest: &mut Bytes) -> Result<Option<RawItem>, Error> {
        read_in_place(rest, |rest, piece| Ok(self.next_frame(rest)?.map(|frame| frame.into_item(piece))))
    }

    fn end(&mut self) -> Result<Option<RawItem>, Error> {
        if self.line.is_empty() {
            return Ok(None);
        }
        if Completeness::of(&self.line) != Completeness::Whole {
            return Err(self.count.truncated());
        }
        let line = core::mem::take(&mut self.line);
        Ok(self.end_line(line.into()).map(|frame| frame.into_item(&Bytes::new())))
    }
}

impl JsonLinesFraming {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { max: limits.max_event_bytes, bom: Some(0), line: Vec::new(), count: Count::default() }
    }

    pub(super) fn held(&self) -> &[u8] {
        &self.line
    }

    pub(super) fn next_frame<'a>(&mut self, rest: &mut &'a [u8]) -> Result<Option<Frame<'a>>, Error> {
        while let Some(seen) = self.bom {
            match *rest {
                [] => return Ok(None),
                [first, after @ ..] if BOM.get(seen) == Some(first) => {
                    looked_at(1);
                    self.bom = (seen + 1 < BOM.len()).then_some(seen + 1);
                    *rest = after;
                }
                _ => {
                    self.bom = None;
                    self.append(BOM.get(..seen).unwrap_or_default())?;
                }
            }
        }
        while !rest.is_empty() {
            if self.line.is_empty() {
                let blank = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
                looked_at(blank);
                *rest = rest.get(blank..).unwrap_or_default();
            }
            let end = memchr::memchr(b'\n', rest);
            let (text, tail) = rest.split_at(end.unwrap_or(rest.len()));
            looked_at(text.len());
            *rest = tail;
            let [_, tail @ ..] = tail else {
                self.append(text)?;
                break;
            };
            looked_at(1);
            *rest = tail;
            let line = if self.line.is_empty() {
                self.check_len(text)?;
                Cow::Borrowed(text)
            } else {
                self.append(text)?;
                Cow::Owned(core::mem::take(&mut self.line))
            };
            if let Some(frame) = self.end_line(line) {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    fn check_len(&self, text: &[u8]) -> Result<(), Error> {
        let beyond = (self.line.len() + text.len()).saturating_sub(self.max);
        // A CR may be part of the line end.
        if beyond > usize::from(text.ends_with(b"\r")) { Err(self.count.too_long(self.max)) } else { Ok(()) }
    }

    fn append(&mut self, text: &[u8]) -> Result<(), Error> {
        if !text.is_empty() {
            self.check_len(text)?;
            self.line.extend_from_slice(text);
        }
        Ok(())
    }

    fn end_line<'a>(&mut self, line: Cow<'a, [u8]>) -> Option<Frame<'a>> {
        let line = match line {
            Cow::Borrowed(line) => Cow::Borrowed(line.strip_suffix(b"\r").unwrap_or(line)),
            Cow::Owned(mut line) => {
                if line.ends_with(b"\r") {
                    line.pop();
                }
                Cow::Owned(line)
            }
        };
        (!line.is_empty()).then(|| Frame::Text { text: line, index: self.count.step() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::testing::{LOOKED_AT, cut, run, run_in_pieces, texts};
    use crate::error::TruncatedBy;
    use crate::raw::Raw;

    #[test]
    fn lines_end_with_lf_or_crlf_and_blank_ones_are_skipped() {
        let (items, error) = run(JsonLinesDecoder::new(), b"\n \t\r\n{\"a\":1}\r\n\n  {\"b\":2} \n");
        assert_eq!(texts(&items), ["{\"a\":1}", "{\"b\":2} "]);
        assert_eq!(error, None);
    }

    #[test]
    fn a_leading_byte_order_mark_is_ignored_and_half_of_one_is_no_event() {
        let (items, error) = run(JsonLinesDecoder::new(), b"\xef\xbb\xbf{}\n\xef\xbb\xbf{}\n");
        assert_eq!(items.len(), 2);
        assert_eq!(texts(&items)[0], "{}");
        assert_eq!(texts(&items)[1], "\u{feff}{}");
        assert_eq!(error, None);
        let (items, _) = run_in_pieces(JsonLinesDecoder::new(), [&b"\xef"[..], b"\xbb", b"{}\n"]);
        assert_eq!(items, [RawItem::Event { raw: Raw::Bytes(b"\xef\xbb{}"[..].into()), index: 0 }]);
    }

    #[test]
    fn t1a_a_last_line_without_its_end_is_an_event_if_it_is_whole() {
        for (bytes, events) in [(&b"{}\n{\"a\":[1]}"[..], 2), (b"{}", 1), (b"{}\r", 1), (b"", 0), (b"\r\n \xef", 0)] {
            let (items, error) = run(JsonLinesDecoder::new(), bytes);
            assert_eq!(items.len(), events, "{bytes:?}");
            assert_eq!(error.is_some(), bytes.ends_with(b"\xef"), "{bytes:?}");
        }
        for bytes in [&b"{"[..], b"{\"a\":tr", b"nonsense", b"{}\n\"\\u12", b"{}{"] {
            let (_, error) = run(JsonLinesDecoder::new(), bytes);
            let Some(Error::Truncated(truncated)) = error else { panic!("{bytes:?}: {error:?}") };
            assert_eq!(truncated.by, TruncatedBy::Partial);
            assert_eq!(truncated.events, u64::from(bytes.contains(&b'\n')));
        }
    }

    #[test]
    fn e9_a_line_that_is_no_event_is_passed_on() {
        let (items, error) = run(JsonLinesDecoder::new(), b"<html>\nnull\n");
        assert_eq!(texts(&items), ["<html>", "null"]);
        assert_eq!(error, None);
    }

    #[test]
    fn a_line_beyond_the_limit_is_an_error_after_the_lines_before_it() {
        let decoder = || JsonLinesDecoder::new().with_limits(Limits { max_event_bytes: 4, ..Limits::default() });
        for pieces in
            [&[&b"1234\r\n12345\n"[..]][..], &[b"1234\r", b"\n12345"], &[b"1", b"234", b"\n", b"1234\r", b"\r"]]
        {
            let (items, error) = run_in_pieces(decoder(), pieces.iter().copied());
            assert_eq!(texts(&items), ["1234"]);
            let error = error.unwrap();
            assert_eq!(error.to_string(), "event 1 is longer than 4 bytes, the `max_event_bytes` of the decoder");
        }
        let mut decoder = decoder();
        decoder.push(b"12345").unwrap();
        assert_eq!(decoder.pop(), None);
        assert!(decoder.push(b"").is_err());
        assert_eq!((decoder.push(b"\n1\n"), decoder.pop(), decoder.finish()), (Ok(()), None, Ok(())));
    }

    #[test]
    fn a_long_line_costs_a_look_at_each_byte_whatever_the_pieces() {
        let text = format!("\r\n {}\r\n", "1".repeat(300_000));
        for size in [1, 7, 4096, text.len()] {
            LOOKED_AT.set(0);
            let mut decoder = JsonLinesDecoder::new();
            let mut count = 0;
            for piece in text.as_bytes().chunks(size) {
                decoder.push(piece).unwrap();
                count += std::iter::from_fn(|| decoder.pop()).count();
            }
            assert_eq!((LOOKED_AT.get(), count), (text.len(), 1));
        }
    }

    #[test]
    fn white_space_takes_no_memory() {
        let mut decoder = JsonLinesDecoder::new();
        for _ in 0..1000 {
            decoder.push(b"     \t\r\n    ").unwrap();
            assert_eq!(decoder.pop(), None);
        }
        assert_eq!(decoder.partial(), b"");
        assert_eq!((decoder.pop(), decoder.finish()), (None, Ok(())));
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same(
            bytes in proptest::collection::vec(proptest::sample::select(&b"{}\"1a\r\n \xef\xbb\xbf"[..]), 0..60),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
            max in 2usize..80,
        ) {
            let decoder = || JsonLinesDecoder::new().with_limits(Limits { max_event_bytes: max, ..Limits::default() });
            let whole = run(decoder(), &bytes);
            prop_assert_eq!(&whole, &run_in_pieces(decoder(), cut(&bytes, &cuts)));
            prop_assert_eq!(&whole, &run_in_pieces(decoder(), bytes.chunks(1)));
        }

        #[test]
        fn any_bytes_cost_a_look_each_and_bounded_memory(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..20),
        ) {
            LOOKED_AT.set(0);
            let mut decoder = JsonLinesDecoder::new().with_limits(Limits { max_event_bytes: 16, ..Limits::default() });
            let mut len = 0;
            for piece in pieces {
                len += piece.len();
                let _ = decoder.push(&piece);
                while decoder.pop().is_some() {}
                prop_assert!(decoder.partial().len() <= 17);
                prop_assert!(LOOKED_AT.get() <= len);
            }
            let _ = decoder.finish();
        }
    }
}
