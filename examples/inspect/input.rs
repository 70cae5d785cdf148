//! Recordings: which form one has, and where its events begin and end.
//!
//! The form is told by content, not by name:
//!
//! | the input begins with | form |
//! |---|---|
//! | `[` | a JSON array of events |
//! | `{`, with an array under `stream` before any text under `type` | an object with a `stream`, and perhaps with history under `input` |
//! | `{`, at the start of a line that goes on behind it | JSON values one after the other, on several lines each |
//! | `{`, or another JSON value | JSON Lines |
//! | `data:`, `event:`, `id:`, `retry:` or `:` | server-sent events |
//!
//! Or an agent is run, which gives events itself ([`Source`]).
//!
//! A byte order mark and the head of an HTTP response (`curl -i`) are skipped. Events are handed
//! on as the bytes they came in, one at a time: what they say is not looked into here.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use ag_ui_stream::Limits;
use ag_ui_stream::error::TruncatedBy;

/// An input that cannot be read: exit code 2.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// What cannot be done.
    pub(crate) what: &'static str,
    pub(crate) message: String,
    /// Where in the input, from 1.
    pub(crate) line: Option<u64>,
    /// It was cut off by this, behind what was read: a run that has not ended is truncated.
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
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    /// Its text; one byte more than the limit where it is longer than that.
    pub(crate) bytes: &'a [u8],
    /// The line it begins on, from 1; `None` where there are none.
    pub(crate) line: Option<u64>,
}

/// Where events come from as such.
pub(crate) trait Source {
    /// The next event, into `frame`; `false` at the end.
    fn next(&mut self, frame: &mut Vec<u8>) -> Result<bool, Unreadable>;

    /// Says that no more will be asked for; gives what there is to complain about.
    fn close(&mut self) -> Option<String>;
}

/// What comes next in an input.
#[derive(Debug)]
pub(crate) enum Next<'a> {
    Event(Frame<'a>),
    /// The end; `partial` where it cuts an event in two.
    End {
        partial: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Lines,
    Values,
    /// Within an array; `first` before its first element, `member` where it is that of an object.
    Array {
        first: bool,
        member: bool,
    },
    Object,
    Sse,
    Live,
    Done {
        partial: bool,
    },
}

/// A recording that is being read.
pub(crate) struct Input {
    bytes: Bytes,
    live: Option<Box<dyn Source>>,
    form: Form,
    frame: Vec<u8>,
    size: Option<u64>,
    history: Option<Vec<u8>>,
    /// The comments are those of a recording, of which this one was the last.
    is_recording: bool,
    came_at: Option<i64>,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").field("form", &self.form).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Input {
    /// Events that come from elsewhere, with the JSON that a recording has under `input`.
    #[cfg_attr(not(feature = "reqwest"), allow(dead_code, reason = "there is no other source"))]
    pub(crate) fn live(source: Box<dyn Source>, history: Vec<u8>) -> Self {
        Self {
            bytes: Bytes::new(Box::new(io::empty())),
            live: Some(source),
            form: Form::Live,
            frame: Vec::new(),
            size: None,
            history: Some(history),
            is_recording: false,
            came_at: None,
        }
    }

    /// Whether the next event may have to be waited for.
    pub(crate) fn is_drained(&self) -> bool {
        self.live.is_some() || self.bytes.unread().is_empty()
    }

    /// Whether events come in their own time.
    pub(crate) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Says that no more will be asked for; gives what there is to complain about.
    pub(crate) fn close(mut self) -> Option<String> {
        self.live.as_mut().and_then(|source| source.close())
    }

    /// Opens a file, or standard input for `-`, and reads as much as tells its form.
    pub(crate) fn open(path: &str) -> Result<Self, Unreadable> {
        if path == "-" {
            return Self::new(Box::new(io::stdin()), None, None);
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(Unreadable::new("it is a directory"));
        }
        let size = metadata.is_file().then_some(metadata.len());
        Self::new(Box::new(file), size, size.map(|_| Path::new(path)))
    }

    /// A recording in memory.
    pub(crate) fn of(text: &'static [u8]) -> Result<Self, Unreadable> {
        Self::new(Box::new(text), None, None)
    }

    fn new(source: Box<dyn Read>, size: Option<u64>, again: Option<&Path>) -> Result<Self, Unreadable> {
        let mut bytes = Bytes::new(source);
        let form = bytes.sniff()?;
        let mut input = Self {
            bytes,
            live: None,
            form,
            frame: Vec::new(),
            size,
            history: None,
            is_recording: false,
            came_at: None,
        };
        if form == Form::Object {
            input.find_history(again)?;
            input.enter_stream()?;
        }
        Ok(input)
    }

    /// How many bytes were read, and how many there are where that is known.
    pub(crate) fn progress(&self) -> (u64, Option<u64>) {
        (self.bytes.consumed, self.size)
    }

    /// When the event at hand came, in milliseconds since the recording began, where that was
    /// recorded.
    pub(crate) fn came_at(&self) -> Option<i64> {
        self.came_at
    }

    /// Reads a comment of a capture, as the crate's own `record` writes them.
    fn read_comment(&mut self, comment: &[u8]) {
        let Some(text) = std::str::from_utf8(comment).ok().and_then(|text| text.strip_prefix(": ")) else { return };
        self.is_recording |= text == "ag-ui-recording 1";
        let seconds = text.strip_prefix('+').and_then(|text| text.strip_suffix('s')).filter(|_| self.is_recording);
        if let Some(at) = seconds.and_then(|text| Duration::try_from_secs_f64(text.parse().ok()?).ok()) {
            self.came_at = i64::try_from(at.as_millis()).ok();
        }
    }

    /// The JSON under `input`, where the recording is an object that has it.
    pub(crate) fn history(&mut self) -> Option<Vec<u8>> {
        self.history.take()
    }

    /// The next event.
    pub(crate) fn next(&mut self) -> Result<Next<'_>, Unreadable> {
        let found = match self.form {
            Form::Lines => self.next_line()?,
            Form::Values => self.next_value()?,
            Form::Array { first, member } => self.next_element(first, member)?,
            Form::Sse => self.next_sse()?,
            Form::Live => return self.next_live(),
            Form::Object | Form::Done { .. } => None,
        };
        Ok(match (found, self.form) {
            (Some(line), _) => Next::Event(Frame { bytes: &self.frame, line: Some(line) }),
            (None, Form::Done { partial }) => Next::End { partial },
            (None, _) => Next::End { partial: false },
        })
    }

    fn next_live(&mut self) -> Result<Next<'_>, Unreadable> {
        self.frame.clear();
        let frame = &mut self.frame;
        match self.live.as_mut().map_or(Ok(false), |live| live.next(frame))? {
            true => Ok(Next::Event(Frame { bytes: &self.frame, line: None })),
            false => Ok(Next::End { partial: false }),
        }
    }

    fn end(&mut self, partial: bool) -> Option<u64> {
        self.form = Form::Done { partial };
        None
    }

    fn fault<T>(&self, message: impl Into<String>) -> Result<T, Unreadable> {
        Err(Unreadable { line: Some(self.bytes.line), ..Unreadable::new(message) })
    }

    fn next_line(&mut self) -> Result<Option<u64>, Unreadable> {
        loop {
            let line = self.bytes.line;
            self.frame.clear();
            let ended = self.bytes.take_line(&mut self.frame)?;
            let blank = self.frame.trim_ascii().len();
            match ended {
                LineEnd::Lf if blank == 0 => {}
                LineEnd::Lf => return Ok(Some(line)),
                LineEnd::Eof if blank == 0 => return Ok(self.end(false)),
                LineEnd::Eof => {
                    let whole = is_whole(&self.frame);
                    self.form = Form::Done { partial: !whole };
                    return Ok(whole.then_some(line));
                }
            }
        }
    }

    fn next_value(&mut self) -> Result<Option<u64>, Unreadable> {
        self.bytes.skip_space()?;
        if self.bytes.peek()?.is_none() {
            return Ok(self.end(false));
        }
        self.take_value()
    }

    /// One JSON value into the frame; `None` where the input ends within it.
    fn take_value(&mut self) -> Result<Option<u64>, Unreadable> {
        let line = self.bytes.line;
        self.frame.clear();
        if !self.bytes.take_value(Some(&mut self.frame))? {
            return Ok(self.end(true));
        }
        if self.frame.is_empty() {
            return self.fault("expected a JSON value");
        }
        Ok(Some(line))
    }

    fn next_element(&mut self, first: bool, member: bool) -> Result<Option<u64>, Unreadable> {
        self.bytes.skip_space()?;
        match self.bytes.peek()? {
            None => return Ok(self.end(true)),
            Some(b']') => {
                self.bytes.consume(1);
                return self.leave_array(member);
            }
            Some(b',') if !first => {
                self.bytes.consume(1);
                self.bytes.skip_space()?;
                if self.bytes.peek()?.is_none() {
                    return Ok(self.end(true));
                }
            }
            Some(_) if first => {}
            Some(_) => return self.fault("expected `,` or `]` behind an event"),
        }
        self.form = Form::Array { first: false, member };
        self.take_value()
    }

    /// Behind the `]`: nothing, or the rest of the object.
    fn leave_array(&mut self, member: bool) -> Result<Option<u64>, Unreadable> {
        if member && !self.skip_members()? {
            return Ok(self.end(false));
        }
        self.bytes.skip_space()?;
        match self.bytes.peek()? {
            None => Ok(self.end(false)),
            Some(_) => self.fault("expected the end of the input behind the recording"),
        }
    }

    /// The rest of the object, behind a member of it; `false` where the input ends first. What is
    /// missing then is nothing that anybody asks about.
    fn skip_members(&mut self) -> Result<bool, Unreadable> {
        loop {
            self.bytes.skip_space()?;
            match self.bytes.peek()? {
                Some(b',') => self.bytes.consume(1),
                Some(b'}') => {
                    self.bytes.consume(1);
                    return Ok(true);
                }
                None => return Ok(false),
                Some(_) => return self.fault("expected `,` or `}` behind a member"),
            }
            if self.take_key()?.is_none() || !self.bytes.take_value(None)? {
                return Ok(false);
            }
        }
    }

    /// A member's key and its colon; `None` at the end of the input.
    fn take_key(&mut self) -> Result<Option<String>, Unreadable> {
        self.bytes.skip_space()?;
        let mut key = Vec::new();
        if !self.bytes.take_value(Some(&mut key))? {
            return Ok(None);
        }
        let Ok(key) = serde_json::from_slice(&key) else { return self.fault("expected a member's key") };
        self.bytes.skip_space()?;
        match self.bytes.peek()? {
            None => return Ok(None),
            Some(b':') => self.bytes.consume(1),
            Some(_) => return self.fault("expected `:` behind a key"),
        }
        self.bytes.skip_space()?;
        Ok(Some(key))
    }

    /// Walks to the value of a member of the object that begins here; `false` where there is none.
    fn seek_member(&mut self, name: &str) -> Result<bool, Unreadable> {
        if self.bytes.peek()? == Some(b'{') {
            self.bytes.consume(1);
        }
        self.bytes.skip_space()?;
        if self.bytes.peek()? == Some(b'}') {
            return Ok(false);
        }
        loop {
            match self.take_key()? {
                None => return Ok(false),
                Some(key) if key == name => return Ok(true),
                Some(_) => {}
            }
            if !self.bytes.take_value(None)? {
                return Ok(false);
            }
            self.bytes.skip_space()?;
            match self.bytes.peek()? {
                Some(b',') => self.bytes.consume(1),
                Some(b'}') | None => return Ok(false),
                Some(_) => return self.fault("expected `,` or `}` behind a member"),
            }
        }
    }

    /// The history is needed before the first event and may stand behind the last one, so an
    /// object is read twice. What cannot be read twice is first copied to a temporary file.
    fn find_history(&mut self, again: Option<&Path>) -> Result<(), Unreadable> {
        let (skipped, line) = (self.bytes.consumed, self.bytes.line);
        let (mut first, mut second) = match again {
            Some(path) => (File::open(path)?, File::open(path)?),
            None => {
                let mut copy = tempfile::tempfile()?;
                copy.write_all(&vec![b' '; usize::try_from(skipped).unwrap_or_default()])?;
                copy.write_all(self.bytes.unread())?;
                io::copy(&mut self.bytes.source, &mut copy)?;
                (copy.try_clone()?, copy)
            }
        };
        first.seek(SeekFrom::Start(skipped))?;
        self.bytes = Bytes::at(Box::new(first), skipped, line);
        if self.seek_member("input")? {
            let mut history = Vec::new();
            self.bytes.take_all_of_value(&mut history)?;
            self.history = Some(history);
        }
        second.seek(SeekFrom::Start(skipped))?;
        self.bytes = Bytes::at(Box::new(second), skipped, line);
        Ok(())
    }

    fn enter_stream(&mut self) -> Result<(), Unreadable> {
        if !self.seek_member("stream")? {
            return self.fault("expected a member `stream`");
        }
        if self.bytes.peek()? != Some(b'[') {
            return self.fault("expected an array under `stream`");
        }
        self.bytes.consume(1);
        self.form = Form::Array { first: true, member: true };
        Ok(())
    }

    /// Rule T1, with the lines counted; the same as the crate's own decoder gives.
    fn next_sse(&mut self) -> Result<Option<u64>, Unreadable> {
        let mut begun = None;
        let mut field = Vec::new();
        self.frame.clear();
        loop {
            let line = self.bytes.line;
            field.clear();
            let end = self.bytes.take_sse_line(&mut field)?;
            if field.first() == Some(&b':') {
                self.read_comment(&field);
            }
            let data = match field.strip_prefix(b"data".as_slice()) {
                Some([]) => Some([].as_slice()),
                Some([b':', b' ', value @ ..] | [b':', value @ ..]) => Some(value),
                _ => None,
            };
            if let Some(data) = data {
                if begun.is_some() {
                    self.frame.push(b'\n');
                }
                begun = begun.or(Some(line));
                keep(&mut self.frame, data);
            }
            match (end, begun) {
                (LineEnd::Lf, Some(_)) if field.is_empty() => return Ok(begun),
                (LineEnd::Lf, _) => {}
                (LineEnd::Eof, None) => {
                    let cut = !field.is_empty() && b"data".starts_with(&field);
                    return Ok(self.end(cut));
                }
                // The last event may lack its blank line, and its line end where it is whole.
                (LineEnd::Eof, Some(_)) => {
                    let at_line_start = field.is_empty();
                    let whole = match completeness(&self.frame) {
                        Completeness::Whole => true,
                        Completeness::Broken => at_line_start || self.frame == b"[DONE]",
                        Completeness::Partial => false,
                    };
                    self.form = Form::Done { partial: !whole };
                    return Ok(begun.filter(|_| whole));
                }
            }
        }
    }
}

enum Completeness {
    Whole,
    Partial,
    Broken,
}

fn completeness(text: &[u8]) -> Completeness {
    match serde_json::from_slice::<serde::de::IgnoredAny>(text) {
        Ok(_) => Completeness::Whole,
        Err(error) if error.is_eof() => Completeness::Partial,
        Err(_) => Completeness::Broken,
    }
}

fn is_whole(text: &[u8]) -> bool {
    matches!(completeness(text), Completeness::Whole)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    Lf,
    Eof,
}

/// More than the enforcer accepts is not kept: it only needs to see that it is too much.
const KEPT: usize = Limits::DEFAULT_MAX_EVENT_BYTES + 1;

fn keep(into: &mut Vec<u8>, bytes: &[u8]) {
    let room = KEPT.saturating_sub(into.len());
    into.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
}

/// Bytes that are looked at before they are taken, with the line that they are on.
struct Bytes {
    source: Box<dyn Read>,
    buffer: Vec<u8>,
    at: usize,
    ended: bool,
    line: u64,
    consumed: u64,
    /// A CR ended the line before: an LF right behind it belongs to it.
    after_cr: bool,
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bytes").field("line", &self.line).field("consumed", &self.consumed).finish_non_exhaustive()
    }
}

impl Bytes {
    const CHUNK: usize = 64 * 1024;

    fn new(source: Box<dyn Read>) -> Self {
        Self::at(source, 0, 1)
    }

    fn at(source: Box<dyn Read>, consumed: u64, line: u64) -> Self {
        Self { source, buffer: Vec::new(), at: 0, ended: false, line, consumed, after_cr: false }
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.at..).unwrap_or_default()
    }

    /// Reads more; `false` at the end.
    fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let held = self.buffer.len();
        self.buffer.resize(held + Self::CHUNK, 0);
        let read = loop {
            match self.source.read(self.buffer.get_mut(held..).unwrap_or_default()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.buffer.truncate(held + *read.as_ref().unwrap_or(&0));
        self.ended = read? == 0;
        Ok(!self.ended)
    }

    /// What is there, at least a byte unless this is the end.
    fn available(&mut self) -> io::Result<&[u8]> {
        if self.at == self.buffer.len() {
            self.fill()?;
        }
        Ok(self.unread())
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        Ok(self.available()?.first().copied())
    }

    fn consume(&mut self, count: usize) {
        let taken = self.unread().get(..count).unwrap_or_default();
        let lines = taken.iter().filter(|byte| **byte == b'\n').count() as u64;
        let count = taken.len();
        self.at += count;
        self.line += lines;
        self.consumed += count as u64;
    }

    fn skip_space(&mut self) -> io::Result<()> {
        loop {
            let available = self.available()?;
            let blank = available.iter().take_while(|byte| is_space(**byte)).count();
            if blank == 0 {
                return Ok(());
            }
            self.consume(blank);
        }
    }

    fn take_line(&mut self, into: &mut Vec<u8>) -> io::Result<LineEnd> {
        loop {
            let available = self.available()?;
            if available.is_empty() {
                return Ok(LineEnd::Eof);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let count = end.unwrap_or(available.len());
            keep(into, available.get(..count).unwrap_or_default());
            self.consume(count + usize::from(end.is_some()));
            if end.is_some() {
                if into.last() == Some(&b'\r') {
                    into.pop();
                }
                return Ok(LineEnd::Lf);
            }
        }
    }

    /// The same, where a line may end with a CR too.
    fn take_sse_line(&mut self, into: &mut Vec<u8>) -> io::Result<LineEnd> {
        loop {
            let after_cr = std::mem::take(&mut self.after_cr);
            let available = self.available()?;
            let Some(first) = available.first() else { return Ok(LineEnd::Eof) };
            if after_cr && *first == b'\n' {
                self.at += 1;
                self.consumed += 1;
                continue;
            }
            let end = available.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let count = end.unwrap_or(available.len());
            keep(into, available.get(..count).unwrap_or_default());
            let cr = end.and_then(|end| available.get(end)) == Some(&b'\r');
            self.consume(count + usize::from(end.is_some()));
            if cr {
                self.after_cr = true;
                self.line += 1;
            }
            if end.is_some() {
                return Ok(LineEnd::Lf);
            }
        }
    }

    /// One JSON value, as far as brackets and quotes tell; `false` where the input ends within it.
    fn take_value(&mut self, mut into: Option<&mut Vec<u8>>) -> io::Result<bool> {
        self.scan_value(|bytes| {
            if let Some(into) = &mut into {
                keep(into, bytes);
            }
        })
    }

    /// The same without a limit.
    fn take_all_of_value(&mut self, into: &mut Vec<u8>) -> io::Result<bool> {
        self.scan_value(|bytes| into.extend_from_slice(bytes))
    }

    fn scan_value(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<bool> {
        let mut scan = Scan::default();
        loop {
            let available = self.available()?;
            if available.is_empty() {
                return Ok(scan.is_scalar());
            }
            let (count, done) = scan.advance(available);
            take(available.get(..count).unwrap_or_default());
            self.consume(count);
            if done {
                return Ok(true);
            }
        }
    }

    fn sniff(&mut self) -> Result<Form, Unreadable> {
        const BOM: &[u8] = b"\xef\xbb\xbf";
        while self.unread().len() < BOM.len() && self.fill()? {}
        if self.unread().starts_with(BOM) {
            self.consume(BOM.len());
        }
        self.skip_http_head()?;
        self.skip_space()?;
        let first = self.peek()?;
        match first {
            None => Ok(Form::Lines),
            Some(b'[') => {
                self.consume(1);
                Ok(Form::Array { first: true, member: false })
            }
            Some(b'{') => loop {
                // Beyond that nobody asks what an object is about before its first event is judged.
                let enough = self.unread().len() >= KEPT;
                if let Some(form) = object_form(self.unread(), self.ended || enough) {
                    break Ok(form);
                }
                // Looking anew costs a pass, so the object doubles in between, or a line ends.
                let seen = self.unread().len();
                while self.fill()? {
                    let new = self.unread().get(seen..).unwrap_or_default();
                    if new.len() >= seen || new.contains(&b'\n') || self.unread().len() >= KEPT {
                        break;
                    }
                }
            },
            Some(_) => {
                while !self.unread().contains(&b'\n') && self.unread().len() < Self::CHUNK && self.fill()? {}
                let line = self.unread().split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
                if is_sse_field(line) {
                    Ok(Form::Sse)
                } else if is_whole(line) {
                    Ok(Form::Lines)
                } else {
                    let message = "neither JSON Lines, nor an array of events, nor an object with a `stream`, \
                                   nor server-sent events";
                    Err(Unreadable { line: Some(self.line), ..Unreadable::new(message) })
                }
            }
        }
    }

    /// What `curl -i` writes before the body, once for each response on the way.
    fn skip_http_head(&mut self) -> Result<(), Unreadable> {
        const HTTP: &[u8] = b"HTTP/";
        loop {
            while self.unread().len() < HTTP.len() && self.fill()? {}
            if !self.unread().starts_with(HTTP) {
                return Ok(());
            }
            let mut line = Vec::new();
            loop {
                line.clear();
                let end = self.take_line(&mut line)?;
                if line.is_empty() || end == LineEnd::Eof {
                    break;
                }
            }
        }
    }
}

/// Whether a line is one of an event stream.
fn is_sse_field(line: &[u8]) -> bool {
    let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
    let known = [b"".as_slice(), b"data", b"event", b"id", b"retry"].contains(&name);
    known && (name.len() < line.len() || !name.is_empty())
}

/// The form of an input that begins with this object, or with this much of one; `None` where more
/// is needed to tell.
fn object_form(text: &[u8], ended: bool) -> Option<Form> {
    let lines_or_values = || {
        let end = text.iter().position(|byte| *byte == b'\n');
        if end.is_none() && !ended {
            return None;
        }
        let line = text.get(..end.unwrap_or(text.len())).unwrap_or_default().trim_ascii_end();
        // An object that is laid out on several lines goes on behind one of these.
        let goes_on = end.is_some() && matches!(line.last(), Some(b'{' | b'[' | b',' | b':'));
        Some(if goes_on { Form::Values } else { Form::Lines })
    };
    let more = || if ended { lines_or_values() } else { None };
    let mut rest = text.get(1..).unwrap_or_default();
    loop {
        let Some((key, after)) = split_value(rest) else { return more() };
        let Ok(key) = serde_json::from_slice::<String>(key) else { return lines_or_values() };
        let value = match after.trim_ascii_start() {
            [b':', value @ ..] => value.trim_ascii_start(),
            [] => return more(),
            _ => return lines_or_values(),
        };
        match (key.as_str(), value.first()) {
            (_, None) => return more(),
            ("type", Some(b'"')) => return lines_or_values(),
            ("stream", Some(b'[')) => return Some(Form::Object),
            _ => {}
        }
        let Some((_, after)) = split_value(value) else { return more() };
        rest = match after.trim_ascii_start() {
            [b',', rest @ ..] => rest,
            [] => return more(),
            _ => return lines_or_values(),
        };
    }
}

/// A JSON value and what follows it; `None` where the text ends within it.
pub(crate) fn split_value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let (count, done) = Scan::default().advance(text);
    (done && count > 0).then(|| text.split_at(count))
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Where in a JSON value a scan is. It follows brackets and quotes and judges nothing else.
#[derive(Debug, Default)]
struct Scan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl Scan {
    /// How many of these bytes belong to the value, and whether it ends with them.
    fn advance(&mut self, bytes: &[u8]) -> (usize, bool) {
        for (at, byte) in bytes.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => {
                        self.in_string = false;
                        if self.depth == 0 {
                            return (at + 1, true);
                        }
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth == 0 => return (at, true),
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return (at + 1, true);
                    }
                }
                b',' | b':' if self.depth == 0 => return (at, true),
                byte if self.depth == 0 && is_space(*byte) => return (at, true),
                _ => {}
            }
            self.begun = true;
        }
        (bytes.len(), false)
    }

    /// Whether the end of the input ends the value too, as it does a number.
    fn is_scalar(&self) -> bool {
        self.begun && self.depth == 0 && !self.in_string
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = r#"{"type":"A","s":"}]\",{"}"#;
    const B: &str = r#"{"type":"B","n":[1,{"x":[]}]}"#;

    /// Gives one byte at a time.
    struct Slow(Vec<u8>, usize);

    impl Read for Slow {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let Some(byte) = self.0.get(self.1) else { return Ok(0) };
            into[0] = *byte;
            self.1 += 1;
            Ok(1)
        }
    }

    type Read_ = (Vec<(String, u64)>, Result<bool, (String, Option<u64>)>);

    fn read_from(source: Box<dyn Read>) -> (Read_, Option<String>) {
        let mut events = Vec::new();
        let mut input = match Input::new(source, None, None) {
            Ok(input) => input,
            Err(error) => return ((events, Err((error.message, error.line))), None),
        };
        let history = input.history().map(|text| String::from_utf8(text).unwrap());
        loop {
            match input.next() {
                Ok(Next::Event(frame)) => {
                    events.push((String::from_utf8(frame.bytes.to_vec()).unwrap(), frame.line.unwrap()))
                }
                Ok(Next::End { partial }) => return ((events, Ok(partial)), history),
                Err(error) => return ((events, Err((error.message, error.line))), history),
            }
        }
    }

    #[test]
    fn a_recording_tells_when_its_events_came() {
        let text = "data: 0\n\n: +9.000000s\ndata: 1\n\n: ag-ui-recording 1\n\n: +0.250900s\n: line-ends r\ndata: \ndata: 2\n\n\
                    : +61.000000s\ndata: 3\n\n: +61.000000s end\n\n: +1e999s\n: +xs\n: ++s\n\ndata: 4\n\n";
        let mut input = Input::new(Box::new(text.as_bytes()), None, None).unwrap();
        let mut seen = Vec::new();
        while let Next::Event(_) = input.next().unwrap() {
            seen.push(input.came_at());
        }
        assert_eq!(seen, [None, None, Some(250), Some(61_000), Some(61_000)]);
    }

    fn read(text: &str) -> Read_ {
        let fast = read_from(Box::new(io::Cursor::new(text.to_owned().into_bytes())));
        assert_eq!(read_from(Box::new(Slow(text.to_owned().into_bytes(), 0))), fast);
        fast.0
    }

    fn whole(events: &[(&str, u64)]) -> Read_ {
        (events.iter().map(|(text, line)| ((*text).to_owned(), *line)).collect(), Ok(false))
    }

    #[test]
    fn every_form_gives_the_same_events() {
        assert_eq!(read(&format!("{A}\n\n{B}\n")), whole(&[(A, 1), (B, 3)]));
        assert_eq!(read(&format!("\u{feff}\r\n{A}\r\n{B}")), whole(&[(A, 2), (B, 3)]));
        assert_eq!(read(&format!("[{A},\n {B}\n]\n")), whole(&[(A, 1), (B, 2)]));
        assert_eq!(
            read(&format!(" [ {A} , null,3 ,\"x,]\"]")),
            whole(&[(A, 1), ("null", 1), ("3", 1), ("\"x,]\"", 1)])
        );
        assert_eq!(
            read(&format!("{{\"n\":{{\"type\":\"x\"}},\"stream\":[{A},{B}],\"z\":[1]}}")),
            whole(&[(A, 1), (B, 1)])
        );
        assert_eq!(read(&format!("data: {A}\n\n: hi\nevent: x\ndata:{B}\n\n")), whole(&[(A, 1), (B, 5)]));
        assert_eq!(
            read(&format!(":\r\rdata: {A}\rdata: 1\r\n\r\ndata: 2\n")),
            whole(&[(&format!("{A}\n1"), 3), ("2", 6)])
        );
        assert_eq!(
            read(&format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/2 200\r\na: b\r\n\r\ndata: {A}")),
            whole(&[(A, 6)])
        );
        assert_eq!(
            read("{\n \"type\": \"A\"\n}\n{\n \"type\": \"B\"\n}"),
            whole(&[("{\n \"type\": \"A\"\n}", 1), ("{\n \"type\": \"B\"\n}", 4)])
        );
        assert_eq!(read("null\n\n7\n"), whole(&[("null", 1), ("7", 3)]));
        for empty in ["", " \n", "[]", " [ ] \n", "{\"stream\":[]}", ": nothing\n\n"] {
            assert_eq!(read(empty), whole(&[]), "{empty:?}");
        }
    }

    #[test]
    fn an_object_has_its_history_on_either_side_of_its_stream() {
        for text in [
            format!("{{\"input\":{{\"messages\":[]}},\"stream\":[{A}]}}"),
            format!(
                "\u{feff} {{\"name\":1,\"stre\\u0061m\":[{A}],\"x\":{{\"input\":2}},\"input\":{{\"messages\":[]}}}}"
            ),
        ] {
            let (read, history) = read_from(Box::new(io::Cursor::new(text.into_bytes())));
            assert_eq!(read, whole(&[(A, 1)]));
            assert_eq!(history.as_deref(), Some("{\"messages\":[]}"));
        }
    }

    #[test]
    fn what_is_cut_off_is_partial() {
        let cut = |text: &str, events: &[(&str, u64)]| {
            let (found, end) = read(text);
            assert_eq!((found, end), (whole(events).0, Ok(true)), "{text:?}");
        };
        cut(&format!("{A}\n{{\"type\":\"B"), &[(A, 1)]);
        cut("{\"type\":\"B", &[]);
        cut(&format!("[{A},{{\"type\":\"B"), &[(A, 1)]);
        cut(&format!("[{A},"), &[(A, 1)]);
        cut(&format!("[{A}"), &[(A, 1)]);
        cut(&format!("{{\"stream\":[{A},{{"), &[(A, 1)]);
        cut(&format!("data: {A}\n\ndata: {{\"type\":"), &[(A, 1)]);
        cut(&format!("data: {A}\n\ndat"), &[(A, 1)]);
        // What stands behind the events is not theirs.
        assert_eq!(read(&format!("{{\"stream\":[{A}],\"expect\":{{")), whole(&[(A, 1)]));
    }

    #[test]
    fn what_is_no_recording_is_unreadable() {
        for (text, line) in
            [("<html>", 1), ("\n\nhello\n", 3), ("[1 2]", 1), ("[1,\n]", 2), ("[] x", 1), ("{\"stream\":[]}\n{", 2)]
        {
            let (_, end) = read(text);
            assert_eq!(end.unwrap_err().1, Some(line), "{text:?}");
        }
    }

    /// The crate's decoders find the same events; they know no lines.
    #[cfg(all(feature = "sse", feature = "json-lines"))]
    mod decoders {
        use ag_ui_stream::codec::{JsonLinesDecoder, SseDecoder};
        use ag_ui_stream::{Raw, RawItem};
        use proptest::prelude::*;

        use super::*;

        fn read_as(form: Form, text: &str) -> (Vec<String>, bool) {
            let mut bytes = Bytes::new(Box::new(Slow(text.as_bytes().to_vec(), 0)));
            while bytes.unread().len() < 3 && bytes.fill().unwrap() {}
            let mut input = Input { bytes, form, ..Input::of(b"").unwrap() };
            let mut events = Vec::new();
            loop {
                match input.next().unwrap() {
                    Next::Event(frame) => events.push(String::from_utf8(frame.bytes.trim_ascii().to_vec()).unwrap()),
                    Next::End { partial } => return (events, partial),
                }
            }
        }

        fn decoded(items: impl Iterator<Item = RawItem>) -> Vec<String> {
            items
                .filter_map(|item| match item {
                    RawItem::Event { raw: Raw::Bytes(bytes), .. } => Some(bytes),
                    _ => None,
                })
                .map(|bytes| String::from_utf8(bytes.trim_ascii().to_vec()).unwrap())
                .collect()
        }

        proptest! {
            #[test]
            fn server_sent_events(pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "data", ":", " ", "\n", "\r", "\r\n", "\n\n", "data: {}\n\n", "data: {\"a\":", "1}", "id", "x", "[DONE]",
                ]),
                0..24,
            )) {
                let text = pieces.concat();
                let mut decoder = SseDecoder::new();
                decoder.push(text.as_bytes()).unwrap();
                let partial = decoder.finish().is_err();
                let events = decoded(std::iter::from_fn(|| decoder.pop()));
                prop_assert_eq!(read_as(Form::Sse, &text), (events, partial), "{:?}", text);
            }

            #[test]
            fn json_lines(pieces in prop::collection::vec(
                prop::sample::select(vec!["{}", "{\"a\":", "1}", "\n", "\r\n", " ", "\t", "[", "x"]),
                0..24,
            )) {
                let text = pieces.concat();
                let mut decoder = JsonLinesDecoder::new();
                decoder.push(text.as_bytes()).unwrap();
                let partial = decoder.finish().is_err();
                let events = decoded(std::iter::from_fn(|| decoder.pop()));
                prop_assert_eq!(read_as(Form::Lines, &text), (events, partial), "{:?}", text);
            }
        }
    }

    #[test]
    fn an_event_without_end_takes_no_more_memory_than_the_limit() {
        let source =
            io::Cursor::new(b"{\"type\":\"A\",\"x\":\"".to_vec()).chain(io::repeat(b'x').take(3 * KEPT as u64));
        let mut input = Input::new(Box::new(source), None, None).unwrap();
        assert!(matches!(input.next(), Ok(Next::End { partial: true })));
        assert!(input.frame.capacity() <= 2 * KEPT);
        assert_eq!(input.frame.len(), KEPT);
    }
}
