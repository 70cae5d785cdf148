//! `RecordingDecoder`: finds the events in a recording of any form.

use core::time::Duration;

use bytes::Bytes;
use serde::de::IgnoredAny;

use super::format::{FAILED, HEADER, LINE_ENDS, Recorded, RecordedError, TRUNCATED};
use super::writer::read_moment;
use crate::codec::{ArrayFraming, Feed, Framing, JsonLinesFraming, Piece, SseFraming};
use crate::error::{Error, Malformed, Truncated, TruncatedBy};
use crate::excerpt::excerpt;
use crate::limits::Limits;
use crate::machine::{Machine, Push, Repairs};
use crate::raw::{Raw, RawItem};
use crate::rule::Rule;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Finds the events in a recording of any form, and says on which line each begins and when it came.
///
/// In: bytes, cut anywhere. Out, in order: [`Recorded`], one for each event. The first line that is not
/// blank decides the form:
///
/// | it begins with | form |
/// |---|---|
/// | `[` | a JSON array of events |
/// | `{`, and it ends with `{`, `[`, `,` or `:` | JSON values, one after the other, on several lines each |
/// | `{`, or it is another JSON value | JSON Lines |
/// | `data`, `event`, `id`, `retry` or `:` | server-sent events, and the comments of a recording |
/// | `HTTP/` | the head of a response, as `curl -i` writes it: it is skipped |
///
/// A leading byte order mark is ignored. The content of an event is not judged: enforcement rejects
/// invalid ones (rule E9).
///
/// # Ending
/// The last event may lack its line end if it is complete. Anything less is [`Error::Truncated`].
///
/// # Errors
/// - [`Error::Malformed`] (E9) for bytes in none of these forms, and for an invalid array.
/// - [`Error::LimitExceeded`] for an event longer than [`Limits::max_event_bytes`], before the memory
///   is taken.
///
/// All events before an error are popped before [`fault`](RecordingDecoder::fault) gives it. A recorded
/// error is the last output.
///
/// # Cost
/// Each byte is looked at twice, once for its line and once by the decoder of the form, whatever the
/// pieces. A piece is read as its events are popped, which share its memory where it holds them whole.
///
/// # Examples
/// ```
/// use ag_ui_stream::record::RecordingDecoder;
///
/// let mut decoder = RecordingDecoder::new();
/// decoder.push(b"[\n  {\"type\":\"RUN_ERROR\"}\n")?;
/// assert_eq!(decoder.pop().map(|recorded| recorded.line), Some(2));
/// assert_eq!((decoder.pop(), decoder.line()), (None, 3));
/// decoder.push(b"]\n")?;
/// decoder.finish()?;
/// # Ok::<(), ag_ui_stream::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct RecordingDecoder {
    feed: Feed<RecordingFraming>,
}

impl RecordingDecoder {
    /// A decoder with the default [`Limits`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with other bounds.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.feed.framing.limits = limits;
        self
    }

    /// The same, with the repairs of [`SseDecoder::with_repairs`](crate::codec::SseDecoder::with_repairs)
    /// for server-sent events: a skipped frame gives a warning in its place. Call it before the first
    /// push.
    #[must_use]
    pub fn with_repairs(mut self, repairs: impl Into<Repairs>) -> Self {
        self.feed.framing.repairs = repairs.into();
        self
    }

    /// The current line, counted from 1: that of the error, if there is one.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.feed.framing.line
    }

    /// Takes the next piece of the recording. It is read as its events are popped.
    ///
    /// # Errors
    /// [`Error::Malformed`] and [`Error::LimitExceeded`]: the fault that [`pop`](Self::pop) came upon in the
    /// piece before. The decoder is then done, and what follows is ignored.
    pub fn push(&mut self, piece: impl Piece) -> Result<(), Error> {
        self.feed.push(piece)
    }

    /// The next event. `None` if the piece is used up, or if there is a [`fault`](Self::fault).
    pub fn pop(&mut self) -> Option<Recorded> {
        self.feed.pop()
    }

    /// The fault that `pop` found, if any. If it is not asked for, the next `push` or `finish` gives it.
    pub fn fault(&mut self) -> Option<Error> {
        self.feed.fault()
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// Those of `push`; [`Error::Truncated`] if the recording ended within an event;
    /// [`Error::Malformed`] if it is too short to have a form.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.feed.finish()
    }
}

/// Finds the events.
#[derive(Debug)]
struct RecordingFraming {
    limits: Limits,
    repairs: Repairs,
    form: Form,
    /// What is still to be read of the line that told the form.
    head: Bytes,
    /// The line that the next byte is on, from 1.
    line: u64,
    /// At the start of the bytes, where a byte order mark may come.
    is_start: bool,
    /// Where the server-sent event in progress began.
    began: Option<u64>,
    after_cr: bool,
    /// After the comment of a source that failed or was cut off.
    is_over: bool,
}

#[derive(Debug)]
enum Form {
    /// The beginning of the first line that is not blank.
    Unknown(Vec<u8>),
    /// Within the head of a response; whether the line is blank so far.
    Head(bool),
    Capture(Box<Capture>),
    Lines(Box<JsonLinesFraming>),
    Values(ArrayFraming),
}

impl Default for RecordingFraming {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            repairs: Repairs::NONE,
            form: Form::Unknown(Vec::new()),
            head: Bytes::new(),
            line: 1,
            is_start: true,
            began: None,
            after_cr: false,
            is_over: false,
        }
    }
}

impl Framing for RecordingFraming {
    type Item = Recorded;

    fn next(&mut self, rest: &mut Bytes) -> Result<Option<Recorded>, Error> {
        loop {
            if let Some(item) = self.read_head()? {
                return Ok(Some(item));
            }
            let item = self.read(rest)?;
            if item.is_some() || self.head.is_empty() {
                return Ok(item);
            }
        }
    }

    fn end(&mut self) -> Result<Option<Recorded>, Error> {
        if matches!(&self.form, Form::Unknown(line) if !line.is_empty()) {
            self.tell_form(true)?;
        }
        if let Some(item) = self.read_head()? {
            return Ok(Some(item));
        }
        if self.is_over {
            return Ok(None);
        }
        let (item, at) = match &mut self.form {
            Form::Unknown(_) | Form::Head(_) => (None, None),
            Form::Capture(capture) => {
                let last = capture.events.end()?;
                last.map(|item| capture.event(item)).unzip()
            }
            Form::Lines(lines) => (lines.end()?, None),
            Form::Values(values) => (values.end()?, None),
        };
        Ok(item.map(|item| self.recorded(item, at.flatten())))
    }
}

impl RecordingFraming {
    /// The next event of the line that decided the form.
    fn read_head(&mut self) -> Result<Option<Recorded>, Error> {
        if self.head.is_empty() {
            return Ok(None);
        }
        let mut head = core::mem::take(&mut self.head);
        let item = self.read(&mut head);
        if !head.is_empty() {
            self.head = head;
        }
        item
    }

    fn read(&mut self, rest: &mut Bytes) -> Result<Option<Recorded>, Error> {
        while !rest.is_empty() {
            if self.is_over {
                rest.clear();
                break;
            }
            if let Form::Values(values) = &mut self.form {
                let bytes = rest.clone();
                let item = values.next(rest);
                let read = bytes.get(..bytes.len() - rest.len()).unwrap_or_default();
                self.line += lines_in(read);
                return Ok(item?.map(|item| self.recorded(item, None)));
            }
            let end = match self.form {
                Form::Lines(_) | Form::Values(_) => memchr::memchr(b'\n', rest),
                Form::Unknown(_) | Form::Head(_) | Form::Capture(_) => memchr::memchr2(b'\n', b'\r', rest),
            };
            let piece = rest.split_to(end.map_or(rest.len(), |end| end + 1));
            let ends = end.is_some();
            if let Form::Unknown(line) = &mut self.form {
                line.extend_from_slice(&piece);
                self.tell_form(ends)?;
                if !self.head.is_empty() {
                    break;
                }
            }
            // CR LF is one line end.
            let is_second_half = self.after_cr && *piece == *b"\n";
            let ends_with_cr = piece.last() == Some(&b'\r');
            let item = self.take(piece, ends)?;
            self.line += u64::from(ends && !is_second_half);
            self.after_cr = ends && ends_with_cr;
            if item.is_some() {
                return Ok(item);
            }
        }
        Ok(None)
    }

    /// Takes a line, or a piece of one, which ends one event at most.
    fn take(&mut self, mut piece: Bytes, ends: bool) -> Result<Option<Recorded>, Error> {
        match &mut self.form {
            Form::Unknown(_) | Form::Values(_) => Ok(None),
            // The LF of a CR LF is no line of its own.
            Form::Head(_) if self.after_cr && *piece == *b"\n" => Ok(None),
            Form::Head(blank) => {
                *blank &= matches!(&piece[..], b"\r" | b"\n");
                if ends && core::mem::replace(blank, true) {
                    self.form = Form::Unknown(Vec::new());
                    self.is_start = true;
                }
                Ok(None)
            }
            Form::Capture(capture) => {
                let taken = capture.take(piece, ends)?;
                if let Some((at, error)) = capture.end.take() {
                    self.is_over = true;
                    return Ok(Some(Recorded { at: Some(at), line: self.line, item: Err(error) }));
                }
                let is_within_event = capture.events.is_within_event();
                let item = taken.map(|(item, at)| self.recorded(item, at));
                if is_within_event {
                    self.began.get_or_insert(self.line);
                }
                Ok(item)
            }
            Form::Lines(lines) => {
                let item = lines.next(&mut piece)?;
                Ok(item.map(|item| self.recorded(item, None)))
            }
        }
    }

    /// An event that ends on this line.
    fn recorded(&mut self, item: RawItem, at: Option<Duration>) -> Recorded {
        let line = match (&self.form, &item) {
            // It may hold line ends of its own.
            (Form::Values(_), RawItem::Event { raw: Raw::Bytes(text), .. }) => self.line.saturating_sub(lines_in(text)),
            _ => self.began.take().unwrap_or(self.line),
        };
        Recorded { at, line, item: Ok(item) }
    }

    /// Decides the form if enough of the first line is there.
    fn tell_form(&mut self, ends: bool) -> Result<(), Error> {
        let Form::Unknown(head) = &mut self.form else { return Ok(()) };
        let after_bom = head.strip_prefix(BOM).filter(|_| self.is_start).unwrap_or(head);
        let line = after_bom.trim_ascii();
        let max = self.limits.max_event_bytes;
        if line.is_empty() {
            self.is_start &= head.is_empty();
            head.clear();
            return Ok(());
        }
        let is_array = line.first() == Some(&b'[');
        if !ends && !is_array && head.len() <= max.max(64) {
            return Ok(());
        }
        let goes_on = ends && matches!(line.last(), Some(b'{' | b'[' | b',' | b':'));
        let form = match line.first() {
            _ if is_array => Form::Values(ArrayFraming::new(max)),
            Some(b'{') if goes_on => Form::Values(ArrayFraming::of_values(max)),
            Some(b'{') => Form::Lines(Box::new(JsonLinesFraming::new(self.limits))),
            _ if line.starts_with(b"HTTP/") => Form::Head(false),
            _ if is_field(line) => Form::Capture(Box::new(Capture::new(self.limits, self.repairs))),
            _ if serde_json::from_slice::<IgnoredAny>(line).is_ok() => {
                Form::Lines(Box::new(JsonLinesFraming::new(self.limits)))
            }
            _ => {
                let expected = "JSON Lines, a JSON array of events or server-sent events";
                let found = format!("{:?}", excerpt(&String::from_utf8_lossy(line), 40));
                return Err(Malformed::new(Rule::E9, 0, expected, found).into());
            }
        };
        let bom = head.len() - after_bom.len();
        self.head = Bytes::from(core::mem::take(head)).split_off(bom);
        self.form = form;
        Ok(())
    }
}

fn lines_in(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

impl<B: Piece> Push<B> for RecordingDecoder {
    fn push(&mut self, input: B) -> Result<(), Error> {
        Self::push(self, input)
    }
}

impl Machine for RecordingDecoder {
    type Output = Recorded;

    fn pop(&mut self) -> Option<Recorded> {
        Self::pop(self)
    }

    fn ready(&self) -> usize {
        self.feed.waiting()
    }

    fn fault(&mut self) -> Option<Error> {
        Self::fault(self)
    }

    fn finish(&mut self) -> Result<(), Error> {
        Self::finish(self)
    }
}

/// Whether a line is one of a stream of server-sent events, or the beginning of one.
fn is_field(line: &[u8]) -> bool {
    const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];
    match memchr::memchr(b':', line) {
        Some(0) => true,
        Some(end) => FIELDS.iter().any(|name| line.get(..end) == Some(name)),
        None => FIELDS.iter().any(|name| name.starts_with(line)),
    }
}

/// A capture of server-sent events, whose comments may be those of a recording.
#[derive(Debug)]
struct Capture {
    events: SseFraming,
    /// The most that is kept of a comment.
    max: usize,
    /// Whether the header came.
    is_recording: bool,
    at_line_start: bool,
    in_comment: bool,
    comment: Vec<u8>,
    /// When this recording began, since the first of several in a row, and the latest time in it.
    began: Duration,
    latest: Duration,
    /// What the comments say about the next event.
    at: Option<Duration>,
    line_ends: Vec<u8>,
    /// The end that a comment told of, if the source failed or was cut off.
    end: Option<(Duration, Error<RecordedError>)>,
}

impl Capture {
    fn new(limits: Limits, repairs: Repairs) -> Self {
        Self {
            events: SseFraming::new(limits).with_repairs(repairs),
            // Room for the line ends of the longest event, and for the words around them.
            max: limits.max_event_bytes.saturating_add(64),
            is_recording: false,
            at_line_start: true,
            in_comment: false,
            comment: Vec::new(),
            began: Duration::ZERO,
            latest: Duration::ZERO,
            at: None,
            line_ends: Vec::new(),
            end: None,
        }
    }

    /// Takes a line, or a piece of one; gives the event that it ends, and its time.
    fn take(&mut self, mut piece: Bytes, ends: bool) -> Result<Option<(RawItem, Option<Duration>)>, Error> {
        if core::mem::replace(&mut self.at_line_start, ends) {
            self.in_comment = piece.first() == Some(&b':');
        }
        if self.in_comment {
            let room = self.max.saturating_sub(self.comment.len());
            self.comment.extend_from_slice(piece.get(..room).unwrap_or(&piece));
        }
        let item = self.events.next(&mut piece)?;
        if self.in_comment && ends {
            let comment = core::mem::take(&mut self.comment);
            self.end = self.read_comment(comment.trim_ascii_end());
            self.in_comment = false;
        }
        Ok(item.map(|item| self.event(item)))
    }

    /// The complete event, with its line ends and time from the comments before it.
    fn event(&mut self, mut item: RawItem) -> (RawItem, Option<Duration>) {
        if let RawItem::Event { raw: Raw::Bytes(data), .. } = &mut item {
            if let Some(restored) = restore(data, &self.line_ends) {
                *data = restored.into();
            }
        }
        self.line_ends.clear();
        (item, self.at.take())
    }

    /// Reads a comment; gives the end that it tells of if the source failed or was cut off.
    fn read_comment(&mut self, comment: &[u8]) -> Option<(Duration, Error<RecordedError>)> {
        let text = core::str::from_utf8(comment).ok()?.strip_prefix(": ")?;
        if text == HEADER {
            self.is_recording = true;
            self.began = self.latest;
        }
        if !self.is_recording {
            return None;
        }
        if let Some(line_ends) = text.strip_prefix(LINE_ENDS) {
            self.line_ends = line_ends.trim_start().into();
            return None;
        }
        let (at, what) = read_moment(text)?;
        let at = self.began.saturating_add(at);
        self.latest = self.latest.max(at);
        let (what, message) = what.split_once(' ').unwrap_or((what, ""));
        let error = match what {
            "" => {
                self.at = Some(at);
                return None;
            }
            TRUNCATED => Truncated::new(self.events.count.0, None, TruncatedBy::Partial).into(),
            FAILED => {
                let message = serde_json::from_str(message).unwrap_or_else(|_| message.to_owned());
                Error::Source(RecordedError { message })
            }
            _ => return None,
        };
        Some((at, error))
    }
}

/// Puts the line ends back that the capture has written as LF; where they do not fit the data, they
/// are not of it.
fn restore(data: &[u8], line_ends: &[u8]) -> Option<Vec<u8>> {
    if line_ends.is_empty() || memchr::memchr_iter(b'\n', data).count() != line_ends.len() {
        return None;
    }
    let mut data = data.to_vec();
    for (byte, line_end) in data.iter_mut().filter(|byte| **byte == b'\n').zip(line_ends) {
        if *line_end == b'r' {
            *byte = b'\r';
        }
    }
    Some(data)
}

#[cfg(test)]
mod tests {
    use super::super::writer::RecordingWriter;
    use super::*;
    use crate::codec::SseDecoder;
    use crate::codec::testing::cut;
    use proptest::prelude::*;

    type Read = (Vec<Recorded>, Option<Error>);

    /// The outputs that are ready, without their lines.
    fn without_lines(decoder: &mut RecordingDecoder) -> Vec<Recorded> {
        std::iter::from_fn(|| decoder.pop()).map(|recorded| Recorded { line: 0, ..recorded }).collect()
    }

    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
        let mut decoder = RecordingDecoder::new().with_limits(Limits { max_event_bytes: 200, ..Limits::default() });
        let mut items = Vec::new();
        for piece in pieces {
            let pushed = decoder.push(piece);
            items.extend(without_lines(&mut decoder));
            if let Some(error) = pushed.err().or_else(|| decoder.fault()) {
                return (items, Some(error));
            }
        }
        let finished = decoder.finish();
        items.extend(without_lines(&mut decoder));
        (items, finished.err())
    }

    fn event(at: impl Into<Option<Duration>>, text: impl AsRef<[u8]>, index: u64) -> Recorded {
        Recorded {
            at: at.into(),
            line: 0,
            item: Ok(RawItem::Event { raw: Raw::Bytes(Bytes::copy_from_slice(text.as_ref())), index }),
        }
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn every_form_gives_the_same_events() {
        let events = vec![event(None, "{\"a\":1}", 0), event(None, "[2]", 1)];
        for text in [
            "{\"a\":1}\n[2]\n",
            "\r\n{\"a\":1}\r\n\r\n[2]",
            "[{\"a\":1}, [2]]",
            " \n[ {\"a\":1}\n,[2]\n]\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/2 200\r\nx: y\r\n\r\n{\"a\":1}\r\n[2]",
            "HTTP/1.1 200 OK\n\n[{\"a\":1},[2]]",
            "data: {\"a\":1}\n\ndata: [2]\n\n",
            "\r\n: +1.0s\r\nid: 1\r\ndata:{\"a\":1}\r\n\r\nevent: x\r\ndata: [2]",
        ] {
            for text in [text.to_owned(), format!("\u{feff}{text}")] {
                for size in [1, 2, 7, 100] {
                    assert_eq!(read(text.as_bytes().chunks(size)), (events.clone(), None), "{text:?} by {size}");
                }
            }
        }
        assert_eq!(read([&b""[..], b"", b" \r\n"]), (vec![], None));
    }

    #[test]
    fn comments_are_read_after_the_header_only() {
        let body = ": +0.005s\n: line-ends r\ndata: {\ndata: }\n\n: +0.009s failed \"x\"\n\ndata: {}\n\n";
        let (items, error) = read([body.as_bytes()]);
        assert_eq!((items, error), (vec![event(None, "{\n}", 0), event(None, "{}", 1)], None));
        let recording = format!(": ag-ui-recording 1\n\n{body}");
        let failed = Error::Source(RecordedError { message: "x".to_owned() });
        let wanted = vec![event(5 * MS, "{\r}", 0), Recorded { at: Some(9 * MS), line: 0, item: Err(failed) }];
        // Nothing after the failure is given, in whatever piece it comes.
        for size in [1, 5, recording.len()] {
            assert_eq!(read(recording.as_bytes().chunks(size)), (wanted.clone(), None));
        }
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let head = ": ag-ui-recording 1\n\n";
        for (body, at) in [
            (": line-ends r\ndata: {}\n\n", None),
            (": line-ends rr\ndata: {}\n\n", None),
            (": +1s\n: +x.0s\n:+1.0s\n:  +1.0s\ndata: {}\n\n", None),
            (": +1.0s tomorrow\ndata: {}\n\n", None),
            (": +1.0s warning \"x\"\n\ndata: {}\n\n", None),
            (": +0.000s end\n\ndata: {}\n\n", None),
            (": +1.0s\n: +0.001s\ndata: {}\n\n", Some(MS)),
            (": +1.0s\n: +0.001s\n\n: keep-alive\n\ndata: {}\n\n", Some(MS)),
        ] {
            assert_eq!(read([format!("{head}{body}").as_bytes()]), (vec![event(at, "{}", 0)], None), "{body}");
        }
        // The line ends of fewer lines, and a time that is of another event.
        let body = ": +1.0s\n: line-ends r\ndata: {\ndata: \ndata: }\n\ndata: {}\n\n";
        let wanted = vec![event(1000 * MS, "{\n\n}", 0), event(None, "{}", 1)];
        assert_eq!(read([format!("{head}{body}").as_bytes()]), (wanted, None));
        // Two recordings, one after the other.
        let two = format!("{head}: +1.0s\ndata: {{}}\n\n: +1.5s end\n\n{head}: +0.001s\ndata: {{}}\n\n");
        assert_eq!(read([two.as_bytes()]).0, [event(1000 * MS, "{}", 0), event(1501 * MS, "{}", 1)]);
    }

    #[test]
    fn a_comment_takes_no_more_memory_than_an_event() {
        let mut capture = Capture::new(Limits { max_event_bytes: 10, ..Limits::default() }, Repairs::NONE);
        capture.take(Bytes::from_static(b": "), false).unwrap();
        for _ in 0..100 {
            capture.take(Bytes::from_static(b"and on and on"), false).unwrap();
        }
        assert_eq!(capture.comment.len(), 74);
        capture.take(Bytes::from_static(b"\n"), true).unwrap();
        assert_eq!(capture.comment.capacity(), 0);
    }

    #[test]
    fn an_event_has_the_line_that_it_begins_on() {
        for (text, lines) in [
            ("\n{\"a\":1}\n\r\n[2]\n3\n", &[2, 4, 5][..]),
            ("[1,\n\n{\"a\":[\n]},\"b\"\n,2\n]", &[1, 3, 4, 5]),
            ("\u{feff}{\n\"a\":1\n}\n\n{\"b\":2} 3\n4\n", &[1, 5, 5, 6]),
            (": hi\nid: 1\ndata: 1\ndata: 2\n\ndata: 3", &[3, 6]),
            ("\rdata: 1\r\r\n\r\ndata: 2\n\n", &[2, 5]),
            ("HTTP/2 200\r\nx: y\r\n\r\n1\n2\n", &[4, 5]),
        ] {
            for size in [1, 2, 3, 100] {
                let mut decoder = RecordingDecoder::new();
                text.as_bytes().chunks(size).for_each(|piece| decoder.push(piece).unwrap());
                decoder.finish().unwrap();
                let found: Vec<u64> = std::iter::from_fn(|| decoder.pop()).map(|recorded| recorded.line).collect();
                assert_eq!(found, lines, "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn e9_what_is_no_recording_is_malformed_at_its_line() {
        let wanted = "E9: event 0: expected JSON Lines, a JSON array of events or server-sent events, found";
        for (text, line, found) in [
            ("<html>", 1, format!("{wanted} \"<html>\"")),
            ("\n\nnot found\ndata: {}\n\n", 3, format!("{wanted} \"not found\"")),
            ("[1,\n]", 2, "E9: event 1: expected an event, found ']'".to_owned()),
            ("{\n}\n,", 3, "E9: event 1: expected an event, found ','".to_owned()),
        ] {
            for size in [1, 2, 100] {
                let mut decoder = RecordingDecoder::new();
                let pushed = text.as_bytes().chunks(size).try_for_each(|piece| decoder.push(piece));
                let error = pushed.and_then(|()| decoder.finish()).unwrap_err();
                assert_eq!((error.to_string(), decoder.line()), (found.clone(), line), "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn a_first_line_takes_no_more_memory_than_an_event() {
        for start in ["{\"a\":\"", ": ", "HTTP/1.1 200 ", "<html>"] {
            let mut decoder = RecordingDecoder::new().with_limits(Limits { max_event_bytes: 100, ..Limits::default() });
            let mut pushed = decoder.push(start.as_bytes());
            for _ in 0..100 {
                pushed = pushed.and_then(|()| decoder.push(b"and on and on"));
                assert_eq!(decoder.pop(), None);
                assert!(!matches!(&decoder.feed.framing.form, Form::Unknown(head) if head.len() > 120));
            }
            assert_eq!(pushed.is_err(), matches!(start, "{\"a\":\"" | "<html>"), "{start}: {pushed:?}");
        }
    }

    #[test]
    fn r8_a_recording_that_breaks_off_is_truncated() {
        let mut out = Vec::new();
        let mut writer = RecordingWriter::default();
        writer.text(MS, b"{}", &mut out);
        let first = out.len();
        writer.text(2 * MS, b"{\"a\":1}", &mut out);
        for len in 0..=out.len() {
            let (items, error) = read([&out[..len]]);
            let whole = len.saturating_sub(first);
            match error {
                None => assert!(items.len() <= 2),
                Some(Error::Truncated(truncated)) => {
                    assert_eq!((truncated.by, truncated.events), (TruncatedBy::Partial, items.len() as u64));
                }
                Some(other) => panic!("{other}"),
            }
            assert_eq!(items.len() == 2, whole >= ": +0.002000s\ndata: {\"a\":1}".len(), "{len}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            texts in proptest::collection::vec(
                (any::<u32>(), prop_oneof![
                    proptest::collection::vec(proptest::sample::select(&b"\r\n :datx\0\xff\xef\xbb\xbf"[..]), 0..12),
                    proptest::collection::vec(any::<u8>(), 0..12),
                ]),
                0..6,
            ),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
        ) {
            let (mut writer, mut out) = (RecordingWriter::default(), Vec::new());
            let mut wanted = Vec::new();
            for (index, (micros, text)) in (0..).zip(&texts) {
                let at = Duration::from_micros((*micros).into());
                writer.text(at, text, &mut out);
                wanted.push(event(at, text, index));
            }
            writer.end(Duration::ZERO, &mut out);
            prop_assert_eq!(read([&out[..]]), (wanted.clone(), None));
            prop_assert_eq!(read(cut(&out, &cuts)), (wanted.clone(), None));
            // Whoever reads server-sent events reads the same, line ends aside.
            let mut plain = SseDecoder::new();
            plain.push(&out).unwrap();
            let lf = |data: &[u8]| String::from_utf8_lossy(data).replace('\r', "\n");
            for (_, text) in &texts {
                let Some(RawItem::Event { raw: Raw::Bytes(data), .. }) = plain.pop() else { panic!("too few") };
                prop_assert_eq!(lf(&data), lf(text));
            }
            prop_assert_eq!(plain.pop(), None);
        }

        #[test]
        fn any_cut_gives_the_same(
            lines in proptest::collection::vec((
                proptest::sample::select(vec![
                    ": ag-ui-recording 1", ": +1.000000s", ": +2.5s end", ": +3.0s failed \"x\"", ": +3.0s truncated",
                    ": line-ends rn", "data: {", "data: }", "data: {\"ä\":1}", "", "", "[", "]", ",", "{}", "{\"a\":", "1}", "\u{feff}",
                    ": +1.0", "\"", "\\",
                ]),
                proptest::sample::select(vec!["\n", "\r\n", "\r", ""]),
            ), 0..16),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
        ) {
            let text: String = lines.iter().flat_map(|(line, end)| [*line, *end]).collect();
            let whole = read([text.as_bytes()]);
            prop_assert_eq!(&whole, &read(cut(text.as_bytes(), &cuts)));
            prop_assert_eq!(&whole, &read(text.as_bytes().chunks(1)));
        }
    }
}
