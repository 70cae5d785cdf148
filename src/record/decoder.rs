//! From the bytes of a recording to events.

use core::time::Duration;
use std::collections::VecDeque;

use super::format::{FAILED, HEADER, LINE_ENDS, Recorded, RecordedError, TRUNCATED};
use super::writer::read_moment;
use crate::codec::{ArrayDecoder, JsonLinesDecoder, SseDecoder};
use crate::error::{Error, Truncated, TruncatedBy};
use crate::limits::Limits;
use crate::machine::{Machine, Push};
use crate::raw::{Raw, RawItem};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Finds the events in a recording of any form, which it tells by the first byte.
#[derive(Debug)]
pub(crate) struct RecordingDecoder {
    limits: Limits,
    form: Form,
    ready: VecDeque<Recorded>,
}

#[derive(Debug)]
enum Form {
    /// So many bytes into a byte order mark, or into the white space behind it.
    Unknown(usize),
    Capture(Box<Capture>),
    Lines(Box<JsonLinesDecoder>),
    Array(ArrayDecoder),
    /// Behind an end that was recorded as a failure.
    Over,
}

impl RecordingDecoder {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, form: Form::Unknown(0), ready: VecDeque::new() }
    }

    fn push(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while let Form::Unknown(bom) = self.form {
            let Some((first, rest)) = bytes.split_first() else { return Ok(()) };
            self.form = match first {
                first if BOM.get(bom) == Some(first) => Form::Unknown(bom + 1),
                b' ' | b'\t' | b'\r' | b'\n' => Form::Unknown(BOM.len()),
                b'[' => Form::Array(ArrayDecoder::new(self.limits.max_event_bytes)),
                b'{' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                    Form::Lines(Box::new(JsonLinesDecoder::new().with_limits(self.limits)))
                }
                _ => Form::Capture(Box::new(Capture::new(self.limits))),
            };
            if matches!(self.form, Form::Unknown(_)) {
                bytes = rest;
            }
        }
        let ready = &mut self.ready;
        match &mut self.form {
            Form::Capture(capture) => {
                if capture.push(bytes, ready)? {
                    self.form = Form::Over;
                }
                Ok(())
            }
            Form::Lines(decoder) => {
                let pushed = decoder.push(bytes);
                ready.extend(core::iter::from_fn(|| decoder.pop()).map(Recorded::without_time));
                pushed
            }
            Form::Array(decoder) => {
                let pushed = decoder.push(bytes);
                ready.extend(core::iter::from_fn(|| decoder.pop()).map(Recorded::without_time));
                pushed
            }
            Form::Unknown(_) | Form::Over => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<(), Error> {
        let ready = &mut self.ready;
        match &mut self.form {
            Form::Capture(capture) => {
                let finished = capture.decoder.finish();
                capture.take_event(ready);
                finished
            }
            Form::Lines(decoder) => {
                let finished = decoder.finish();
                ready.extend(core::iter::from_fn(|| decoder.pop()).map(Recorded::without_time));
                finished
            }
            Form::Array(decoder) => {
                let finished = decoder.finish();
                ready.extend(core::iter::from_fn(|| decoder.pop()).map(Recorded::without_time));
                finished
            }
            Form::Unknown(_) | Form::Over => Ok(()),
        }
    }
}

impl<B: AsRef<[u8]>> Push<B> for RecordingDecoder {
    fn push(&mut self, input: B) -> Result<(), Error> {
        Self::push(self, input.as_ref())
    }
}

impl Machine for RecordingDecoder {
    type Output = Recorded;

    fn pop(&mut self) -> Option<Recorded> {
        self.ready.pop_front()
    }

    fn ready(&self) -> usize {
        self.ready.len()
    }

    fn finish(&mut self) -> Result<(), Error> {
        Self::finish(self)
    }
}

impl Recorded {
    fn without_time(item: RawItem) -> Self {
        Self { at: None, item: Ok(item) }
    }
}

/// A capture of server-sent events, whose comments may be those of a recording.
#[derive(Debug)]
struct Capture {
    decoder: SseDecoder,
    /// The most that is kept of a comment.
    max: usize,
    /// The header was there.
    is_recording: bool,
    at_line_start: bool,
    in_comment: bool,
    comment: Vec<u8>,
    /// When the recording began, since the first of those that stand one behind the other, and the
    /// latest time that was told.
    began: Duration,
    latest: Duration,
    /// What the comments say of the next event.
    at: Option<Duration>,
    line_ends: Vec<u8>,
}

impl Capture {
    fn new(limits: Limits) -> Self {
        Self {
            decoder: SseDecoder::new().with_limits(limits),
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
        }
    }

    /// Takes the next piece; whether the recording has told its end.
    fn push(&mut self, bytes: &[u8], ready: &mut VecDeque<Recorded>) -> Result<bool, Error> {
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            if core::mem::replace(&mut self.at_line_start, false) {
                self.in_comment = *first == b':';
            }
            let end = memchr::memchr2(b'\n', b'\r', rest);
            let (text, _) = rest.split_at(end.unwrap_or(rest.len()));
            let (line, tail) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
            if self.in_comment {
                let room = self.max.saturating_sub(self.comment.len());
                self.comment.extend_from_slice(text.get(..room).unwrap_or(text));
            }
            let pushed = self.decoder.push(line);
            self.take_event(ready);
            pushed?;
            self.at_line_start = end.is_some();
            if end.is_some() && core::mem::take(&mut self.in_comment) {
                let comment = core::mem::take(&mut self.comment);
                if let Some(end) = self.read_comment(&comment) {
                    ready.push_back(end);
                    return Ok(true);
                }
            }
            rest = tail;
        }
        Ok(false)
    }

    /// The event that is whole, with what the comments in front of it say.
    fn take_event(&mut self, ready: &mut VecDeque<Recorded>) {
        while let Some(mut item) = self.decoder.pop() {
            if let RawItem::Event { raw: Raw::Bytes(data), .. } = &mut item {
                restore(data, &self.line_ends);
            }
            self.line_ends.clear();
            ready.push_back(Recorded { at: self.at.take(), item: Ok(item) });
        }
    }

    /// Reads a comment; gives the end that it tells of, where that is none in good order.
    fn read_comment(&mut self, comment: &[u8]) -> Option<Recorded> {
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
            TRUNCATED => Truncated::new(self.decoder.event_count(), None, TruncatedBy::Partial).into(),
            FAILED => {
                let message = serde_json::from_str(message).unwrap_or_else(|_| message.to_owned());
                Error::Source(RecordedError { message })
            }
            _ => return None,
        };
        Some(Recorded { at: Some(at), item: Err(error) })
    }
}

/// Puts the line ends back that the capture has written as LF; where they do not fit the data, they
/// are not of it.
fn restore(data: &mut [u8], line_ends: &[u8]) {
    if line_ends.is_empty() || memchr::memchr_iter(b'\n', data).count() != line_ends.len() {
        return;
    }
    for (byte, line_end) in data.iter_mut().filter(|byte| **byte == b'\n').zip(line_ends) {
        if *line_end == b'r' {
            *byte = b'\r';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::writer::RecordingWriter;
    use super::*;
    use crate::codec::testing::cut;
    use proptest::prelude::*;

    type Read = (Vec<Recorded>, Option<Error>);

    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
        let mut decoder = RecordingDecoder::new(Limits { max_event_bytes: 200, ..Limits::default() });
        let mut items = Vec::new();
        for piece in pieces {
            let pushed = decoder.push(piece);
            items.extend(std::iter::from_fn(|| Machine::pop(&mut decoder)));
            if let Err(error) = pushed {
                return (items, Some(error));
            }
        }
        let finished = decoder.finish();
        items.extend(std::iter::from_fn(|| Machine::pop(&mut decoder)));
        (items, finished.err())
    }

    fn event(at: impl Into<Option<Duration>>, text: &str, index: u64) -> Recorded {
        Recorded { at: at.into(), item: Ok(RawItem::Event { raw: Raw::Bytes(text.into()), index }) }
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
    fn comments_are_read_behind_the_header_only() {
        let body = ": +0.005s\n: line-ends r\ndata: {\ndata: }\n\n: +0.009s failed \"x\"\n\ndata: {}\n\n";
        let (items, error) = read([body.as_bytes()]);
        assert_eq!((items, error), (vec![event(None, "{\n}", 0), event(None, "{}", 1)], None));
        let recording = format!(": ag-ui-recording 1\n\n{body}");
        let failed = Error::Source(RecordedError { message: "x".to_owned() });
        let wanted = vec![event(5 * MS, "{\r}", 0), Recorded { at: Some(9 * MS), item: Err(failed) }];
        // What comes behind the failure is not for anybody, in whatever piece.
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
        // Two recordings, one behind the other.
        let two = format!("{head}: +1.0s\ndata: {{}}\n\n: +1.5s end\n\n{head}: +0.001s\ndata: {{}}\n\n");
        assert_eq!(read([two.as_bytes()]).0, [event(1000 * MS, "{}", 0), event(1501 * MS, "{}", 1)]);
    }

    #[test]
    fn a_comment_takes_no_more_memory_than_an_event() {
        let mut capture = Capture::new(Limits { max_event_bytes: 10, ..Limits::default() });
        let mut ready = VecDeque::new();
        capture.push(b": ", &mut ready).unwrap();
        for _ in 0..100 {
            capture.push(b"and on and on", &mut ready).unwrap();
        }
        assert_eq!(capture.comment.len(), 74);
        capture.push(b"\ndata: 1\n\n", &mut ready).unwrap();
        assert_eq!(ready, [event(None, "1", 0)]);
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
                wanted.push(Recorded { at: Some(at), item: Ok(RawItem::Event { raw: Raw::Bytes(text.clone()), index }) });
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
