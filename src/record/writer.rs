//! Writes events as the bytes of a recording.

use core::time::Duration;

use serde::Serialize;

use super::format::{END, FAILED, HEADER, LINE_ENDS, TRUNCATED, WARNING};
use crate::json::compact;

/// Writes the items of a source, each with the time since the recording began.
#[derive(Debug, Default)]
pub(crate) struct RecordingWriter {
    begun: bool,
}

impl RecordingWriter {
    /// An event that came as text, as that text.
    pub(crate) fn text(&mut self, at: Duration, text: &[u8], out: &mut Vec<u8>) {
        self.moment(at, "", out);
        let line_ends = || memchr::memchr2_iter(b'\n', b'\r', text);
        let is_cr = |end: usize| text.get(end) == Some(&b'\r');
        // Server-sent events have one kind of line end within an event, LF.
        if line_ends().any(is_cr) {
            out.extend_from_slice(format!(": {LINE_ENDS} ").as_bytes());
            out.extend(line_ends().map(|end| if is_cr(end) { b'r' } else { b'n' }));
            out.push(b'\n');
        }
        let mut from = 0;
        for end in line_ends().chain([text.len()]) {
            out.extend_from_slice(b"data: ");
            out.extend_from_slice(text.get(from..end).unwrap_or_default());
            out.push(b'\n');
            from = end + 1;
        }
        out.push(b'\n');
    }

    /// An event that did not come as text, as JSON in one line.
    pub(crate) fn value(&mut self, at: Duration, value: &impl Serialize, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let before = (out.len(), self.begun);
        self.moment(at, "", out);
        out.extend_from_slice(b"data: ");
        if let Err(error) = compact::write(value, out) {
            out.truncate(before.0);
            self.begun = before.1;
            return Err(error);
        }
        out.extend_from_slice(b"\n\n");
        Ok(())
    }

    /// A warning.
    pub(crate) fn warning(&mut self, at: Duration, message: &str, out: &mut Vec<u8>) {
        self.begin(out);
        out.extend_from_slice(format!(": {} {WARNING} {}\n\n", Moment(at), quoted(message)).as_bytes());
    }

    /// The end of the source.
    pub(crate) fn end(&mut self, at: Duration, out: &mut Vec<u8>) {
        self.moment(at, END, out);
        out.push(b'\n');
    }

    /// The source was cut off within an event.
    pub(crate) fn truncated(&mut self, at: Duration, out: &mut Vec<u8>) {
        self.moment(at, TRUNCATED, out);
        out.push(b'\n');
    }

    /// The source failed.
    pub(crate) fn failed(&mut self, at: Duration, message: &str, out: &mut Vec<u8>) {
        self.moment(at, &format!("{FAILED} {}", quoted(message)), out);
        out.push(b'\n');
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if !core::mem::replace(&mut self.begun, true) {
            out.extend_from_slice(format!(": {HEADER}\n\n").as_bytes());
        }
    }

    /// The comment with a time.
    fn moment(&mut self, at: Duration, what: &str, out: &mut Vec<u8>) {
        self.begin(out);
        let space = if what.is_empty() { "" } else { " " };
        out.extend_from_slice(format!(": {}{space}{what}\n", Moment(at)).as_bytes());
    }
}

/// A text on one line: line ends in a JSON string are escaped.
fn quoted(text: &str) -> serde_json::Value {
    serde_json::Value::from(text)
}

/// A time as it is written, to the microsecond: `+12.345678s`.
struct Moment(Duration);

impl core::fmt::Display for Moment {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "+{}.{:06}s", self.0.as_secs(), self.0.subsec_micros())
    }
}

/// The time and what is written after it; `None` for any other text.
pub(super) fn read_moment(text: &str) -> Option<(Duration, &str)> {
    let (moment, rest) = text.split_once(' ').unwrap_or((text, ""));
    let (seconds, micros) = moment.strip_prefix('+')?.strip_suffix('s')?.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(micros) || micros.len() > 6 {
        return None;
    }
    // People write `+1.5s`.
    let micros: u32 = format!("{micros:0<6}").parse().ok()?;
    let at = Duration::new(seconds.parse().ok()?, micros.checked_mul(1_000)?);
    Some((at, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_it_is_written() {
        for micros in [0, 1, 999_999, 1_000_000, 61_000_001, u64::MAX] {
            let at = Duration::from_micros(micros);
            assert_eq!(read_moment(&Moment(at).to_string()), Some((at, "")));
            assert_eq!(read_moment(&format!("{} end", Moment(at))), Some((at, "end")));
        }
        assert_eq!(read_moment("+1.5s"), Some((Duration::from_millis(1500), "")));
        for other in ["", "+", "+1s", "1.0s", "+1.0", "+.0s", "+1.s", "+-1.0s", "+1.0000000s", "+1e3.0s", "+ 1.0s", "x"]
        {
            assert_eq!(read_moment(other), None, "{other}");
        }
        let beyond = format!("+{}0.0s", u64::MAX);
        assert_eq!(read_moment(&beyond), None);
    }

    #[test]
    fn a_recording_is_a_capture_of_server_sent_events() {
        let (mut writer, mut out) = (RecordingWriter::default(), Vec::new());
        writer.text(Duration::from_micros(112), b"{\"type\":\"A\"}", &mut out);
        writer.text(Duration::from_millis(1250), b"{\r\n\"type\":\n\"B\"}", &mut out);
        writer.warning(Duration::from_secs(2), "two\nlines", &mut out);
        writer.value(Duration::from_secs(2), &serde_json::json!({"a": "\n"}), &mut out).unwrap();
        writer.failed(Duration::from_secs(61), "connection \"reset\"\n", &mut out);
        let expected = concat!(
            ": ag-ui-recording 1\n\n",
            ": +0.000112s\ndata: {\"type\":\"A\"}\n\n",
            ": +1.250000s\n: line-ends rnn\ndata: {\ndata: \ndata: \"type\":\ndata: \"B\"}\n\n",
            ": +2.000000s warning \"two\\nlines\"\n\n",
            ": +2.000000s\ndata: {\"a\":\"\\n\"}\n\n",
            ": +61.000000s failed \"connection \\\"reset\\\"\\n\"\n\n",
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_value_that_is_not_json_writes_nothing() {
        let (mut writer, mut out) = (RecordingWriter::default(), Vec::new());
        let no_json = std::collections::BTreeMap::from([(vec![1], 1)]);
        assert!(writer.value(Duration::ZERO, &no_json, &mut out).is_err());
        assert_eq!(out, b"");
        writer.end(Duration::ZERO, &mut out);
        assert_eq!(out, b": ag-ui-recording 1\n\n: +0.000000s end\n\n");
    }
}
