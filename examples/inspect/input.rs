//! The input of the tool: a recording in any form that the crate reads, an object that holds one, or an
//! agent that is run.
//!
//! The crate's [`RecordingDecoder`] recognizes the form and finds the events. It does not know the object
//! of a test corpus: a recording under `stream`, and perhaps the earlier conversation under `input`.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::time::Duration;

use ag_ui_stream::error::TruncatedBy;
use ag_ui_stream::machine::{Machine, Repairs};
use ag_ui_stream::record::RecordingDecoder;
use ag_ui_stream::{Error, Limits, Raw, RawItem, Warning};

use crate::json::{Entries, value_length};

/// An input that cannot be read: exit code 2.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// The failed action, such as "read the input".
    pub(crate) what: &'static str,
    pub(crate) message: String,
    /// The line of the input, from 1.
    pub(crate) line: Option<u64>,
    /// What cut it off, if anything: an active run is then truncated.
    pub(crate) cut_by: Option<TruncatedBy>,
}

impl Unreadable {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { what: "read the input", message: message.into(), line: None, cut_by: None }
    }

    /// The whole sentence.
    pub(crate) fn title(&self) -> String {
        format!("cannot {}: {}", self.what, self.message)
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// An event as it was recorded.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub(crate) bytes: Vec<u8>,
    /// The line it begins on, from 1; `None` where there are none.
    pub(crate) line: Option<u64>,
}

/// A source of events.
pub(crate) trait Source {
    /// The next event, or the end.
    fn next(&mut self) -> Result<Next, Unreadable>;

    /// Ends the reading; gives a complaint, if any.
    fn close(&mut self) -> Option<String>;
}

/// The next part of an input.
#[derive(Debug)]
pub(crate) enum Next {
    Event(Frame),
    /// A skipped frame that is not an event (rule X4), with the line that it begins on.
    Skipped(Warning, Option<u64>),
    /// The end; with an error if it cuts an event in two, or if an event is far too long.
    End(Option<Error>),
}

/// A longer event ends the reading. A shorter one beyond the limit is an error of the pipeline, and a
/// linter continues after it.
const LONGEST: usize = 8 * Limits::DEFAULT_MAX_EVENT_BYTES;

/// A recording that is being read, or an agent that is run.
pub(crate) struct Input {
    from: Origin,
    read: u64,
    size: Option<u64>,
    history: Option<Vec<u8>>,
    came_at: Option<Duration>,
}

enum Origin {
    Recording(Box<Recording>),
    Agent(Box<dyn Source>),
}

impl Input {
    fn new(from: Origin, size: Option<u64>, history: Option<Vec<u8>>) -> Self {
        Self { from, read: 0, size, history, came_at: None }
    }

    /// Events that come from elsewhere, with the JSON that a recording has under `input`.
    #[cfg_attr(not(feature = "reqwest"), allow(dead_code, reason = "there is no other source"))]
    pub(crate) fn live(source: Box<dyn Source>, history: Vec<u8>) -> Self {
        Self::new(Origin::Agent(source), None, Some(history))
    }

    /// Opens a file, or standard input for `-`, and reads enough to know whether it is an object that
    /// holds a recording.
    pub(crate) fn open(path: &str) -> Result<Self, Unreadable> {
        if path == "-" {
            return Self::of(io::stdin(), None);
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(Unreadable::new("it is a directory"));
        }
        Self::of(file, metadata.is_file().then_some(metadata.len()))
    }

    /// A recording of this many bytes, where that is known.
    pub(crate) fn of(mut source: impl Read + 'static, size: Option<u64>) -> Result<Self, Unreadable> {
        let mut head = Vec::new();
        while holds_stream(&head).is_none() && head.len() <= Limits::DEFAULT_MAX_EVENT_BYTES {
            // Looking anew costs a pass, so the text doubles in between, or a line ends.
            let seen = head.len();
            let mut ended = false;
            while !ended && head.len() < 2 * seen.max(1) && !head.get(seen..).unwrap_or_default().contains(&b'\n') {
                ended = read_piece(&mut source, &mut head)? == 0;
            }
            if ended {
                break;
            }
        }
        if holds_stream(&head) == Some(true) {
            source.read_to_end(&mut head)?;
            return Self::within(head);
        }
        let source: Box<dyn Read> = Box::new(Cursor::new(head).chain(source));
        Ok(Self::new(Origin::Recording(Recording::new(source, 0)), size, None))
    }

    /// The recording within an object.
    fn within(text: Vec<u8>) -> Result<Self, Unreadable> {
        let lines = |end: usize| text.iter().take(end).filter(|byte| **byte == b'\n').count() as u64;
        let object = without_mark(&text);
        let from = text.len() - object.len();
        let (length, ends) = value_length(object);
        let after = object.get(length..).unwrap_or_default();
        if ends && !after.trim_ascii().is_empty() {
            let line = lines(text.len() - after.trim_ascii_start().len()) + 1;
            let message = "expected the end of the input after the object with the recording";
            return Err(Unreadable { line: Some(line), ..Unreadable::new(message) });
        }
        let (mut stream, mut history) = (0..0, None);
        for entry in Entries::of(object) {
            match entry.name.as_deref() {
                Some("stream") if stream.is_empty() => stream = entry.value,
                Some("input") => history = object.get(entry.value).map(<[u8]>::to_vec),
                _ => {}
            }
        }
        let stream = from + stream.start..from + stream.end;
        let lines_before = lines(stream.start);
        let (start, size) = (stream.start as u64, stream.len() as u64);
        let mut source = Cursor::new(text);
        source.set_position(start);
        let recording = Recording::new(Box::new(source.take(size)), lines_before);
        Ok(Self::new(Origin::Recording(recording), Some(size), history))
    }

    /// The same, skipping frames that are not events if that is among the repairs. To be called before
    /// anything is read.
    pub(crate) fn with_repairs(mut self, repairs: Repairs) -> Self {
        if let Origin::Recording(recording) = &mut self.from {
            recording.decoder = std::mem::take(&mut recording.decoder).with_repairs(repairs);
        }
        self
    }

    /// Whether the next event may have to be waited for.
    pub(crate) fn is_drained(&self) -> bool {
        match &self.from {
            Origin::Recording(recording) => Machine::ready(&recording.decoder) == 0,
            Origin::Agent(_) => true,
        }
    }

    /// Whether events come in their own time.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.from, Origin::Agent(_))
    }

    /// Ends the reading; gives a complaint, if any.
    pub(crate) fn close(self) -> Option<String> {
        match self.from {
            Origin::Recording(_) => None,
            Origin::Agent(mut source) => source.close(),
        }
    }

    /// The number of bytes read, and of all bytes if known.
    pub(crate) fn progress(&self) -> (u64, Option<u64>) {
        (self.read, self.size)
    }

    /// When the current event came, since the recording began, if recorded.
    pub(crate) fn came_at(&self) -> Option<Duration> {
        self.came_at
    }

    /// The JSON under `input`, if the recording is in an object that has it.
    pub(crate) fn history(&mut self) -> Option<Vec<u8>> {
        self.history.take()
    }

    /// The next event.
    pub(crate) fn next(&mut self) -> Result<Next, Unreadable> {
        let recording = match &mut self.from {
            Origin::Recording(recording) => recording,
            Origin::Agent(source) => return source.next(),
        };
        loop {
            while let Some(recorded) = recording.decoder.pop() {
                self.came_at = recorded.at.or(self.came_at);
                let line = Some(recording.lines_before + recorded.line);
                match recorded.item {
                    Ok(RawItem::Event { raw: Raw::Bytes(bytes), .. }) => {
                        return Ok(Next::Event(Frame { bytes: bytes.into(), line }));
                    }
                    Ok(RawItem::Warning(warning)) => return Ok(Next::Skipped(warning, line)),
                    // The decoder gives bytes.
                    Ok(_) => {}
                    Err(Error::Source(error)) => {
                        let message = format!("the recorded run failed: {}", error.message());
                        return Err(Unreadable { cut_by: Some(TruncatedBy::Body), ..Unreadable::new(message) });
                    }
                    Err(Error::Truncated(truncated)) => return Ok(Next::End(Some(Error::Truncated(truncated)))),
                    Err(other) => return Err(Unreadable::new(other.to_string())),
                }
            }
            match recording.end.take() {
                None => self.read += recording.advance()?,
                Some(Err(Error::Malformed(fault))) => {
                    let line = Some(recording.lines_before + recording.decoder.line());
                    let message = format!("expected {}, found {}", fault.expected, fault.found);
                    return Err(Unreadable { line, ..Unreadable::new(message) });
                }
                Some(end) => return Ok(Next::End(end.err())),
            }
        }
    }
}

/// Bytes on their way through the decoder.
struct Recording {
    source: Box<dyn Read>,
    decoder: RecordingDecoder,
    piece: Vec<u8>,
    /// The number of lines of the input before it.
    lines_before: u64,
    /// The result of the decoder at the end, or its error.
    end: Option<Result<(), Error>>,
}

impl Recording {
    fn new(source: Box<dyn Read>, lines_before: u64) -> Box<Self> {
        let decoder = RecordingDecoder::new().with_limits(Limits { max_event_bytes: LONGEST, ..Limits::default() });
        Box::new(Self { source, decoder, piece: Vec::new(), lines_before, end: None })
    }

    /// Reads a piece; gives its length.
    fn advance(&mut self) -> io::Result<u64> {
        self.piece.clear();
        let count = read_piece(&mut self.source, &mut self.piece)?;
        self.end = match count {
            0 => Some(self.decoder.finish()),
            _ => self.decoder.push(&self.piece).err().map(Err),
        };
        Ok(count as u64)
    }
}

/// Reads the available bytes, at least one unless this is the end.
fn read_piece(source: &mut impl Read, into: &mut Vec<u8>) -> io::Result<usize> {
    const PIECE: usize = 64 * 1024;
    let held = into.len();
    into.resize(held + PIECE, 0);
    let read = loop {
        match source.read(into.get_mut(held..).unwrap_or_default()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read,
        }
    };
    into.truncate(held + *read.as_ref().unwrap_or(&0));
    read
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The text without a byte order mark and white space before it.
fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BOM).unwrap_or(text).trim_ascii_start()
}

/// Whether a text is an object with an array under `stream`, and so not an event; `None` if more of it is
/// needed to know.
fn holds_stream(text: &[u8]) -> Option<bool> {
    if BOM.starts_with(text) {
        return None;
    }
    let text = without_mark(text);
    if text.first().is_some_and(|first| *first != b'{') {
        return Some(false);
    }
    let mut entries = Entries::of(text);
    for entry in entries.by_ref() {
        match (entry.name.as_deref(), text.get(entry.value.start)) {
            (Some("type"), Some(b'"')) => return Some(false),
            (Some("stream"), Some(b'[')) => return Some(true),
            _ => {}
        }
    }
    if entries.is_cut { None } else { Some(false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = r#"{"type":"A","s":"}]\",{"}"#;
    const B: &str = r#"{"type":"B","n":[1,{"x":[]}]}"#;

    /// Gives one byte at a time.
    struct Slow(Cursor<Vec<u8>>);

    impl Read for Slow {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut into[..1])
        }
    }

    /// The events with their lines, and the end: whether an event was cut, or the line of the fault.
    type Events = (Vec<(String, u64)>, Result<bool, Option<u64>>);

    fn read_from(source: impl Read + 'static) -> (Events, Option<String>) {
        let mut events = Vec::new();
        let mut input = match Input::of(source, None) {
            Ok(input) => input,
            Err(error) => return ((events, Err(error.line)), None),
        };
        let history = input.history().map(|text| String::from_utf8(text).unwrap());
        loop {
            match input.next() {
                Ok(Next::Event(frame)) => events.push((String::from_utf8(frame.bytes).unwrap(), frame.line.unwrap())),
                Ok(Next::Skipped(warning, _)) => panic!("{warning}"),
                Ok(Next::End(error)) => return ((events, Ok(error.is_some())), history),
                Err(error) => return ((events, Err(error.line)), history),
            }
        }
    }

    fn read(text: &str) -> (Events, Option<String>) {
        let fast = read_from(Cursor::new(text.to_owned().into_bytes()));
        assert_eq!(read_from(Slow(Cursor::new(text.to_owned().into_bytes()))), fast);
        fast
    }

    fn whole(events: &[(&str, u64)]) -> Events {
        (events.iter().map(|(text, line)| ((*text).to_owned(), *line)).collect(), Ok(false))
    }

    #[test]
    fn an_object_has_its_history_on_either_side_of_its_stream() {
        for text in [
            format!("{{\"input\":{{\"messages\":[]}},\"stream\":[{A},\n{B}]}}"),
            format!(
                "\u{feff} {{\"name\":1,\"stre\\u0061m\":[{A},\n{B}],\"x\":{{\"input\":2}},\"input\":{{\"messages\":[]}}}}"
            ),
        ] {
            assert_eq!(read(&text), (whole(&[(A, 1), (B, 2)]), Some("{\"messages\":[]}".to_owned())));
        }
        let text = format!("\n{{\"n\":{{\"type\":\"x\"}},\n\"stream\":[{A},\n{B}],\"z\":[1]}}\n");
        assert_eq!(read(&text).0, whole(&[(A, 3), (B, 4)]));
        // An event that has a member of that name is an event.
        let event = "{\"stream\":1}".to_owned();
        assert_eq!(read(&event).0, whole(&[(&event, 1)]));
        let event = "{\"type\":\"A\",\"stream\":[]}".to_owned();
        assert_eq!(read(&event).0, whole(&[(&event, 1)]));
    }

    #[test]
    fn what_is_cut_off_is_partial() {
        for text in [
            format!("{{\"stream\":[{A},{{"),
            format!("{{\"stream\":[{A}"),
            format!("{A}\n{{\"type\":\"B"),
            format!("data: {A}\n\ndat"),
        ] {
            assert_eq!(read(&text).0, (whole(&[(A, 1)]).0, Ok(true)), "{text}");
        }
        // The text after the events is ignored.
        assert_eq!(read(&format!("{{\"stream\":[{A}],\"expect\":{{")).0, whole(&[(A, 1)]));
        for empty in ["", " \n", "[]", "{\"stream\":[]}", ": nothing\n\n"] {
            assert_eq!(read(empty).0, whole(&[]), "{empty:?}");
        }
    }

    #[test]
    fn what_is_no_recording_is_unreadable() {
        for (text, line) in [
            ("<html>", 1),
            ("\n\nhello\n", 3),
            ("[1 2]", 1),
            ("[1,\n]", 2),
            ("[] x", 1),
            ("{\"stream\":[]}\n{", 2),
            ("\n{\"stream\":[1\n2]}", 3),
        ] {
            assert_eq!(read(text).0.1, Err(Some(line)), "{text:?}");
        }
    }

    #[test]
    fn a_recording_tells_when_its_events_came_and_how_it_failed() {
        let text = "data: 0\n\n: ag-ui-recording 1\n\n: +0.250900s\ndata: 1\n\n: +61.0s\ndata: 2\n\ndata: 3\n\n: +61.5s failed \"reset\"\n\n";
        let mut input = Input::of(text.as_bytes(), None).unwrap();
        let mut seen = Vec::new();
        let failed = loop {
            match input.next() {
                Ok(_) => seen.push(input.came_at().map(|at| at.as_micros())),
                Err(error) => break error,
            }
        };
        assert_eq!(seen, [None, Some(250_900), Some(61_000_000), Some(61_000_000)]);
        assert_eq!(failed.title(), "cannot read the input: the recorded run failed: reset");
    }

    #[test]
    fn an_event_without_end_takes_no_more_memory_than_the_limit() {
        let endless = Cursor::new(b"{\"x\":\"".to_vec()).chain(io::repeat(b'x').take(3 * LONGEST as u64));
        let mut input = Input::of(endless, None).unwrap();
        assert!(matches!(input.next(), Ok(Next::End(Some(Error::LimitExceeded(_))))));
        assert!(input.read <= LONGEST as u64 + 1_000_000);
    }
}
