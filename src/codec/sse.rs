//! The decoder of server-sent events: <https://docs.ag-ui.com/spec/1.0/basic/transports/http-sse>, and the format
//! itself: <https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream>.

use std::borrow::Cow;

use bytes::Bytes;

use super::feed::{Count, Feed, Frame, Framing, read_in_place};
use super::looked_at;
use super::whole::Completeness;
use crate::error::Error;
use crate::event_type::EventType;
use crate::json::node::Node;
use crate::limits::Limits;
use crate::machine::{Repair, Repairs};
#[cfg(doc)]
use crate::raw::Raw;
use crate::raw::RawItem;
use crate::rule::Rule;

const BOM: &[u8] = b"\xef\xbb\xbf";
const DATA: &[u8] = b"data";
/// The beginning of most `data` lines, compared at once if the piece holds it.
const DATA_LINE: &[u8] = b"data: ";
const EVENT: &[u8] = b"event";
const DONE: &[u8] = b"[DONE]";

/// Finds the events in a stream of server-sent events ([`Rule::T1`]).
///
/// In: bytes, cut anywhere: within a character, within a line end, within a field name. Out, in
/// order: for each event its data, the lines joined with LF, as [`Raw::Bytes`] in its place; for
/// each frame that a tolerance skips, a [`Warning`](crate::Warning) in its place.
///
/// - Lines end with LF, CR LF or CR; a leading byte order mark is ignored.
/// - `data:` lines lose one leading space. Other fields and comments are ignored and take no
///   memory, however long they are.
/// - A blank line ends an event; an event without data does not count.
/// - The data is not judged: enforcement rejects invalid events (rule E9).
///
/// # Ending
/// The last event may lack its blank line, and its line end too if its data is one complete JSON
/// value. Anything less is [`Error::Truncated`] (rule T1a).
///
/// # Errors
/// [`Error::LimitExceeded`] for an event with more data than [`Limits::max_event_bytes`], before
/// the memory is taken. All events before it are popped before [`fault`](SseDecoder::fault) gives it.
///
/// # Cost
/// Each byte is looked at once, whatever the pieces. An event that one piece holds whole shares its memory, and
/// is neither copied nor allocated; what lies in several pieces is put together ([`Piece`](super::Piece)).
///
/// # Examples
/// ```
/// use ag_ui_stream::codec::SseDecoder;
/// use ag_ui_stream::{Raw, RawItem};
///
/// let mut decoder = SseDecoder::new();
/// decoder.push(b": hello\ndata: {\"type\":\"RUN_")?;
/// assert_eq!(decoder.pop(), None);
/// decoder.push(b"ERROR\",\ndata: \"message\":\"no\"}\n\n")?;
///
/// let data = b"{\"type\":\"RUN_ERROR\",\n\"message\":\"no\"}";
/// assert_eq!(decoder.pop(), Some(RawItem::Event { raw: Raw::Bytes(data[..].into()), index: 0 }));
/// decoder.finish()?;
/// # Ok::<(), ag_ui_stream::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct SseDecoder {
    pub(super) feed: Feed<SseFraming>,
}

/// Finds the events.
#[derive(Debug)]
pub(crate) struct SseFraming {
    max: usize,
    tolerate_done: bool,
    tolerate_empty_data: bool,
    ignore_frames: bool,
    at: At,
    /// The byte before was a CR, so an LF belongs to the same line end.
    after_cr: bool,
    /// The data of the event in progress from earlier pieces and lines; `None` before its first `data`
    /// line.
    data: Option<Vec<u8>>,
    /// The beginning of the name of the event in progress, kept only if a repair needs it.
    name: Vec<u8>,
    pub(crate) count: Count,
}

/// The position of the decoder in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// At the start of the stream, within what may be a byte order mark.
    Bom(usize),
    /// After this many bytes of `data`; 0 is the start of a line.
    Name(usize),
    /// After the colon, where a space is dropped.
    Colon,
    /// Within the value of a `data` line.
    Value,
    /// After this many bytes of `event`.
    EventName(usize),
    /// After the colon of an `event` line.
    EventColon,
    /// Within the value of an `event` line.
    EventValue,
    /// Within a comment or another field.
    Ignored,
}

decoder!(SseDecoder: "[`Error::LimitExceeded`].", "T1a");

impl Default for SseFraming {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl SseDecoder {
    /// A decoder with the default [`Limits`] and no tolerance.
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

    /// Skips events whose data is `[DONE]`, each with a warning (rule T1a): servers that imitate
    /// other APIs send one at the end.
    #[must_use]
    pub fn tolerate_done(mut self) -> Self {
        self.feed.framing.tolerate_done = true;
        self
    }

    /// Skips events whose data is empty or blank, each with a warning (rule T1a): some servers
    /// send them to keep a connection open.
    #[must_use]
    pub fn tolerate_empty_data(mut self) -> Self {
        self.feed.framing.tolerate_empty_data = true;
        self
    }

    /// If [`Repair::IgnoreFrames`] is in the set, skips frames that are not events, each with a warning
    /// (rule X4): `[DONE]`, `null`, empty data, and frames with a name (`event: ping`) whose data is not a
    /// JSON object with a `type`. A frame is not skipped if its name is `message` or a type of event, or
    /// speaks of an error.
    #[must_use]
    pub fn with_repairs(mut self, repairs: impl Into<Repairs>) -> Self {
        self.feed.framing.ignore_frames = repairs.into().contains(Repair::IgnoreFrames);
        self
    }
}

impl Framing for SseFraming {
    type Item = RawItem;

    fn next(&mut self, rest: &mut Bytes) -> Result<Option<RawItem>, Error> {
        read_in_place(rest, |rest, piece| Ok(self.next_frame(rest)?.map(|frame| frame.into_item(piece))))
    }

    fn end(&mut self) -> Result<Option<RawItem>, Error> {
        let at_line_start = matches!(self.at, At::Bom(_) | At::Name(0));
        let Some(data) = &self.data else {
            // A line that may have become a `data` line.
            return if matches!(self.at, At::Name(1..)) { Err(self.count.truncated()) } else { Ok(None) };
        };
        let whole = data == DONE
            || match Completeness::of(data) {
                Completeness::Whole => true,
                Completeness::Broken => at_line_start,
                Completeness::Partial => {
                    at_line_start && (self.tolerate_empty_data || self.ignore_frames) && is_blank(data)
                }
            };
        if !whole {
            return Err(self.count.truncated());
        }
        self.at = At::Name(0);
        let data = self.data.take().unwrap_or_default();
        Ok(Some(self.dispatch(data.into()).into_item(&Bytes::new())))
    }
}

impl SseFraming {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            max: limits.max_event_bytes,
            tolerate_done: false,
            tolerate_empty_data: false,
            ignore_frames: false,
            at: At::Bom(0),
            after_cr: false,
            data: None,
            name: Vec::new(),
            count: Count::default(),
        }
    }

    #[cfg(feature = "record")]
    pub(crate) fn with_repairs(self, repairs: Repairs) -> Self {
        Self { ignore_frames: repairs.contains(Repair::IgnoreFrames), ..self }
    }

    /// Whether the beginning of an event is held.
    #[cfg(feature = "record")]
    pub(crate) fn is_within_event(&self) -> bool {
        self.data.is_some()
    }

    pub(super) fn held(&self) -> &[u8] {
        self.data.as_deref().unwrap_or_default()
    }

    pub(super) fn next_frame<'a>(&mut self, rest: &mut &'a [u8]) -> Result<Option<Frame<'a>>, Error> {
        while let [first, after @ ..] = *rest {
            let after_cr = core::mem::take(&mut self.after_cr);
            match self.at {
                At::Value | At::Ignored | At::EventValue => {
                    let end = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
                    let (text, tail) = rest.split_at(end);
                    looked_at(end);
                    *rest = tail;
                    if self.at == At::Value {
                        if let Some(frame) = self.whole(text, rest)? {
                            return Ok(Some(frame));
                        }
                        self.append(text)?;
                    } else if self.at == At::EventValue {
                        let room = MAX_NAME.saturating_sub(self.name.len()).min(text.len());
                        self.name.extend_from_slice(text.get(..room).unwrap_or_default());
                    }
                    if let [end, tail @ ..] = tail {
                        looked_at(1);
                        *rest = tail;
                        // A line with text on it is not the blank line that ends an event.
                        self.end_line(*end)?;
                    }
                    continue;
                }
                At::Colon => {
                    self.at = At::Value;
                    if *first != b' ' {
                        continue;
                    }
                }
                At::EventColon => {
                    self.at = At::EventValue;
                    self.name.clear();
                    if *first != b' ' {
                        continue;
                    }
                }
                At::Name(0) if after_cr && *first == b'\n' => {}
                At::Name(0) if self.ignore_frames && *first == b'e' => self.at = At::EventName(1),
                At::EventName(5) if *first == b':' => self.at = At::EventColon,
                At::Name(0) if rest.starts_with(DATA_LINE) => {
                    self.begin_data_line()?;
                    self.at = At::Value;
                    looked_at(DATA_LINE.len());
                    *rest = rest.get(DATA_LINE.len()..).unwrap_or_default();
                    continue;
                }
                At::Name(4) if *first == b':' => {
                    self.begin_data_line()?;
                    self.at = At::Colon;
                }
                At::Bom(seen) if BOM.get(seen) == Some(first) => {
                    self.at = if seen + 1 == BOM.len() { At::Name(0) } else { At::Bom(seen + 1) };
                }
                At::Bom(0) => {
                    self.at = At::Name(0);
                    continue;
                }
                At::Bom(_) | At::Name(_) | At::EventName(_) if matches!(first, b'\r' | b'\n') => {
                    looked_at(1);
                    *rest = after;
                    if let Some(data) = self.end_line(*first)? {
                        return Ok(Some(self.dispatch(data.into())));
                    }
                    continue;
                }
                At::Name(seen) if DATA.get(seen) == Some(first) => self.at = At::Name(seen + 1),
                At::EventName(seen) if EVENT.get(seen) == Some(first) => self.at = At::EventName(seen + 1),
                At::Bom(_) | At::Name(_) | At::EventName(_) => self.at = At::Ignored,
            }
            looked_at(1);
            *rest = after;
        }
        Ok(None)
    }

    /// An event of one line of data, if the piece holds all of it and the blank line after it.
    fn whole<'a>(&mut self, text: &'a [u8], rest: &mut &'a [u8]) -> Result<Option<Frame<'a>>, Error> {
        if !self.held().is_empty() {
            return Ok(None);
        }
        let (end, tail) = match *rest {
            [b'\n', end @ (b'\r' | b'\n'), tail @ ..]
            | [b'\r', b'\n', end @ (b'\r' | b'\n'), tail @ ..]
            | [b'\r', end @ b'\r', tail @ ..] => (*end, tail),
            _ => return Ok(None),
        };
        if text.len() > self.max {
            return Err(self.count.too_long(self.max));
        }
        looked_at(rest.len() - tail.len());
        *rest = tail;
        self.data = None;
        self.at = At::Name(0);
        self.after_cr = end == b'\r';
        Ok(Some(self.dispatch(text.into())))
    }

    /// Gives the data of the event if the line was blank.
    fn end_line(&mut self, end: u8) -> Result<Option<Vec<u8>>, Error> {
        let data = match self.at {
            At::Name(0) => {
                let data = self.data.take();
                if data.is_none() {
                    self.name.clear();
                }
                data
            }
            // A line with only the name of a field gives it the empty value.
            At::Name(4) => {
                self.begin_data_line()?;
                None
            }
            // The same for the name of an event.
            At::EventName(5) | At::EventColon => {
                self.name.clear();
                None
            }
            At::Bom(_) | At::Name(_) | At::EventName(_) | At::Colon | At::Value | At::EventValue | At::Ignored => None,
        };
        self.at = At::Name(0);
        self.after_cr = end == b'\r';
        Ok(data)
    }

    fn begin_data_line(&mut self) -> Result<(), Error> {
        if self.data.is_some() {
            self.append(b"\n")
        } else {
            self.data = Some(Vec::new());
            Ok(())
        }
    }

    fn append(&mut self, text: &[u8]) -> Result<(), Error> {
        let data = self.data.get_or_insert_default();
        if text.len() > self.max.saturating_sub(data.len()) {
            return Err(self.count.too_long(self.max));
        }
        data.extend_from_slice(text);
        Ok(())
    }

    fn dispatch<'a>(&mut self, data: Cow<'a, [u8]>) -> Frame<'a> {
        let name = core::mem::take(&mut self.name);
        if self.tolerate_done && *data == *DONE {
            Frame::Item(self.count.skipped(Rule::T1a, "skipped a frame that is no event: [DONE]"))
        } else if self.tolerate_empty_data && is_blank(&data) {
            Frame::Item(self.count.skipped(Rule::T1a, "skipped a frame that is no event: its data is empty"))
        } else if let Some(what) = self.ignore_frames.then(|| ignorable(&name, &data)).flatten() {
            let message = format!("skipped a frame that is no event: {what} ({})", Rule::T1a);
            Frame::Item(self.count.skipped(Rule::X4, message))
        } else {
            Frame::Text { text: data, index: self.count.step() }
        }
    }
}

/// The most bytes kept of the name of an event: no relevant name is longer.
const MAX_NAME: usize = 64;

/// Why rule X4 skips a frame; `None` if it does not.
fn ignorable(name: &[u8], data: &[u8]) -> Option<String> {
    match data.trim_ascii() {
        b"" => return Some("its data is empty".to_owned()),
        b"[DONE]" => return Some("[DONE]".to_owned()),
        b"null" => return Some("null".to_owned()),
        _ => {}
    }
    let name = String::from_utf8_lossy(name);
    let lower = name.to_ascii_lowercase();
    let may_be_meant = lower.trim().is_empty()
        || lower == "message"
        || EventType::from_wire(&name).is_some()
        || ["error", "fail", "exception"].iter().any(|word| lower.contains(word));
    (!may_be_meant && !has_type(data)).then(|| format!("it is named {:?}", name.trim()))
}

/// Whether data is, or may be, an object with a type, known or not.
fn has_type(data: &[u8]) -> bool {
    let parsed = core::str::from_utf8(data).map(|text| Node::parse(text, Limits::CEILING_DEPTH));
    match parsed {
        Ok(Ok(Node::Object(members))) => {
            let mut types = members.iter().filter(|(key, _)| key.as_str() == "type");
            types.any(|(_, value)| matches!(value, Node::String(name) if !name.as_str().is_empty()))
        }
        Ok(Err(error)) => error.too_deep,
        _ => false,
    }
}

fn is_blank(data: &[u8]) -> bool {
    data.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::testing::{LOOKED_AT, cut, run, run_in_pieces, texts};
    use crate::error::TruncatedBy;
    use crate::raw::Raw;

    fn data(bytes: &[u8]) -> Vec<String> {
        let (items, error) = run(SseDecoder::new(), bytes);
        assert_eq!(error, None, "{:?}", String::from_utf8_lossy(bytes));
        texts(&items)
    }

    #[test]
    fn t1_lines_end_with_lf_crlf_or_cr() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("data: 1{end}{end}data: 2{end}data: 3{end}{end}{end}data: 4{end}{end}");
            assert_eq!(data(text.as_bytes()), ["1", "2\n3", "4"], "{end:?}");
        }
        assert_eq!(data(b"data: 1\r\n\rdata: 2\n\r\n"), ["1", "2"]);
    }

    #[test]
    fn t1_an_event_that_ends_with_cr_is_given_at_once() {
        let mut decoder = SseDecoder::new();
        decoder.push(b"data: 1\r\r").unwrap();
        assert!(decoder.pop().is_some());
        decoder.push(b"\ndata: 2\r\n\r").unwrap();
        assert_eq!(texts(&[decoder.pop().unwrap()]), ["2"]);
        decoder.push(b"\n").unwrap();
        assert_eq!((decoder.pop(), decoder.finish()), (None, Ok(())));
    }

    #[test]
    fn t1_one_leading_space_is_removed_and_no_more() {
        assert_eq!(data(b"data:1\n\ndata: 2\n\ndata:  3\n\ndata:\t4\n\n"), ["1", "2", " 3", "\t4"]);
    }

    #[test]
    fn t1_other_fields_and_comments_are_ignored() {
        let text =
            b"event: x\nid: 1\nretry: 9\n: data: no\n:\ndata: 1\ndat: 2\ndatas: 3\n data: 4\nDATA: 5\n\nid: 2\n\n";
        assert_eq!(data(text), ["1"]);
    }

    #[test]
    fn t1_a_line_that_is_only_the_name_is_an_empty_data_line() {
        assert_eq!(data(b"data\ndata: 1\ndata\n\n"), ["\n1\n"]);
        assert_eq!(data(b"data\n\n"), [""]);
    }

    #[test]
    fn t1_a_leading_byte_order_mark_is_ignored() {
        assert_eq!(data(b"\xef\xbb\xbfdata: 1\n\n"), ["1"]);
        // Only one, only there, and only a whole one.
        assert_eq!(data(b"\xef\xbb\xbf\xef\xbb\xbfdata: 1\n\ndata: 2\n\n"), ["2"]);
        assert_eq!(data(b"\xef\xbbdata: 1\n\n\xef\xbb\xbfdata: 2\n\ndata: 3\n\n"), ["3"]);
        assert_eq!(data(b"\xef\n\ndata: 1\n\n"), ["1"]);
    }

    #[test]
    fn t1_the_last_event_may_lack_its_blank_line() {
        for text in [
            &b"data: {\"a\":1}\n"[..],
            b"data: {\"a\":1}",
            b"data: {\"a\":1}\r",
            b"data: {\"a\":1}\nid: 7",
            b"data: {\"a\":1}\nda",
            b"data: {\"a\":1}\n: bye",
        ] {
            assert_eq!(data(text), ["{\"a\":1}"]);
        }
        assert_eq!(data(b"data: {\ndata: }"), ["{\n}"]);
    }

    #[test]
    fn t1a_an_incomplete_last_event_is_a_truncation() {
        for text in [
            &b"data: 1\n\ndata: {\"a\":1"[..],
            b"data: 1\n\ndata: {\ndata: ",
            b"data: 1\n\ndata: {\n",
            b"data: 1\n\ndata: \"\xf0\x9f",
            b"data: 1\n\ndata:",
            b"data: 1\n\ndat",
            b"data: 1\n\ndata: \n",
            b"data: 1\n\ndata: tru",
            b"data: 1\n\ndata: [DO",
        ] {
            let (items, error) = run(SseDecoder::new(), text);
            assert_eq!(texts(&items), ["1"]);
            let Some(Error::Truncated(truncated)) = error else { panic!("{error:?}") };
            assert_eq!((truncated.events, truncated.by), (1, TruncatedBy::Partial));
            assert_eq!(truncated.to_string(), "R8: truncated: the bytes ended within an event after 1 event");
        }
    }

    #[test]
    fn e9_a_frame_that_is_no_event_is_passed_on() {
        let text = b"data: [DONE]\n\ndata:\n\ndata: null\n\ndata: \xff\n\ndata: no\n";
        let (items, error) = run(SseDecoder::new(), text);
        assert_eq!(error, None);
        let items: Vec<_> = items
            .into_iter()
            .map(|item| match item {
                RawItem::Event { raw: Raw::Bytes(bytes), index } => (bytes, index),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected: [&[u8]; 5] = [b"[DONE]", b"", b"null", b"\xff", b"no"];
        assert_eq!(items, expected.iter().map(|bytes| Bytes::from_static(bytes)).zip(0..).collect::<Vec<_>>());
        assert_eq!(data(b"data: [DONE]"), ["[DONE]"]);
    }

    #[test]
    fn t1a_tolerances_skip_with_a_warning_each_in_order() {
        let text = b"data:\n\ndata: 1\n\ndata: \ndata:\n\ndata: [DONE]\n\ndata: 2\n\ndata: [DONE]\n\ndata:\n";
        let (items, error) = run(SseDecoder::new().tolerate_done().tolerate_empty_data(), text);
        assert_eq!(error, None);
        let seen: Vec<_> = items
            .iter()
            .map(|item| match item {
                RawItem::Event { index, .. } => format!("{index}"),
                RawItem::Warning(warning) => warning.to_string(),
                RawItem::Options(options) => panic!("{options:?}"),
            })
            .collect();
        let empty = |index| format!("T1a: event {index}: skipped a frame that is no event: its data is empty");
        let done = |index| format!("T1a: event {index}: skipped a frame that is no event: [DONE]");
        assert_eq!(seen, [empty(0), "1".into(), empty(2), done(3), "4".into(), done(5), empty(6)]);
        // One does not bring the other.
        assert_eq!(texts(&run(SseDecoder::new().tolerate_done(), b"data:\n\n").0), [""]);
        assert_eq!(texts(&run(SseDecoder::new().tolerate_empty_data(), b"data: [DONE]\n\n").0), ["[DONE]"]);
    }

    #[test]
    fn an_event_beyond_the_limit_is_an_error_after_the_events_before_it() {
        let decoder = || SseDecoder::new().with_limits(Limits { max_event_bytes: 4, ..Limits::default() });
        for text in ["data: 12345", "data: 12\ndata: 34", "data: 1\ndata\ndata\ndata\ndata", "data:  1234"] {
            let text = format!("data: 1234\n\n{text}\n\ndata: 5\n\n");
            for pieces in
                [vec![text.as_bytes()], text.as_bytes().chunks(1).collect(), text.as_bytes().chunks(13).collect()]
            {
                let (items, error) = run_in_pieces(decoder(), pieces);
                assert_eq!(texts(&items), ["1234"]);
                assert_eq!(
                    error.unwrap().to_string(),
                    "event 1 is longer than 4 bytes, the `max_event_bytes` of the decoder"
                );
            }
        }
    }

    #[test]
    fn what_is_ignored_takes_no_memory() {
        let mut decoder = SseDecoder::new().with_limits(Limits { max_event_bytes: 8, ..Limits::default() });
        decoder.push(b"data: 1\n: a comment without end ").unwrap();
        for _ in 0..1000 {
            decoder.push(b"and on and on data: 1").unwrap();
            assert_eq!(decoder.pop(), None);
        }
        assert_eq!(decoder.partial(), b"1");
        assert_eq!(decoder.pop(), None);
        decoder.push(b"\nid: 1\nid: 1\nevent\n\n").unwrap();
        assert_eq!(texts(&[decoder.pop().unwrap()]), ["1"]);
        assert_eq!(decoder.partial(), b"");
    }

    #[test]
    fn a_long_event_costs_a_look_at_each_byte_whatever_the_pieces() {
        let text = format!("data: {}\ndata: {}\n\n", "1".repeat(300_000), "2".repeat(300_000));
        for size in [1, 7, 4096, text.len()] {
            LOOKED_AT.set(0);
            let mut decoder = SseDecoder::new();
            let mut count = 0;
            for piece in text.as_bytes().chunks(size) {
                decoder.push(piece).unwrap();
                count += std::iter::from_fn(|| decoder.pop()).count();
            }
            assert_eq!((LOOKED_AT.get(), count), (text.len(), 1));
        }
    }

    #[test]
    fn an_event_in_one_piece_is_where_it_came() {
        let piece = Bytes::from(format!("data: {}\n\n", "1".repeat(1000)));
        let mut decoder = SseDecoder::new();
        decoder.push(piece.clone()).unwrap();
        let Some(RawItem::Event { raw: Raw::Bytes(bytes), .. }) = decoder.pop() else { panic!("an event") };
        assert_eq!((bytes.len(), bytes.as_ptr()), (1000, piece[6..].as_ptr()));
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same(
            lines in proptest::collection::vec((
                proptest::sample::select(vec!["data: {\"ä\":1}", "data:", "data", "data: 😀", ":", "id: 1", "", "\u{feff}", "data: [DONE]"]),
                proptest::sample::select(vec!["\n", "\r\n", "\r"]),
            ), 0..12),
            end in 0usize..4,
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
            max in 4usize..80,
        ) {
            let text: String = lines.iter().flat_map(|(line, end)| [*line, *end]).collect();
            let bytes = text.as_bytes();
            let bytes = &bytes[..bytes.len() - end.min(bytes.len())];
            let decoder = || {
                SseDecoder::new().tolerate_done().with_limits(Limits { max_event_bytes: max, ..Limits::default() })
            };
            let whole = run(decoder(), bytes);
            prop_assert_eq!(&whole, &run_in_pieces(decoder(), cut(bytes, &cuts)));
            prop_assert_eq!(&whole, &run_in_pieces(decoder(), bytes.chunks(1)));
        }

        #[test]
        fn any_bytes_cost_a_look_each_and_bounded_memory(
            pieces in proptest::collection::vec(
                proptest::collection::vec(prop_oneof![any::<u8>(), proptest::sample::select(&b"data: \r\n"[..])], 0..40),
                0..20,
            ),
        ) {
            LOOKED_AT.set(0);
            let mut decoder = SseDecoder::new().with_limits(Limits { max_event_bytes: 16, ..Limits::default() });
            let mut len = 0;
            for piece in pieces {
                len += piece.len();
                let _ = decoder.push(&piece);
                while decoder.pop().is_some() {}
                prop_assert!(decoder.partial().len() <= 16);
                prop_assert!(LOOKED_AT.get() <= len);
            }
            let _ = decoder.finish();
        }
    }
}
