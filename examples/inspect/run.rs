//! Runs a recording through the pipeline.

use std::io;

use ag_ui_stream::error::{Truncated, TruncatedBy};
use ag_ui_stream::machine::{EventPipeline, IdChecks, Machine, Pipeline, Push, Repairs};
use ag_ui_stream::{Error, Event, Item, Limits, Message, Options, Raw, RawItem};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::diagnostic::{Diagnostic, Level, head};
use crate::input::{Input, Next, Unreadable};

/// The outcome of a recording. The worst of several decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Completed,
    Truncated,
    Failed,
    Unreadable,
}

impl Outcome {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Outcome::Completed => 0,
            Outcome::Failed => 1,
            Outcome::Unreadable => 2,
            Outcome::Truncated => 3,
        }
    }

    /// The word for it in a report, one of three.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Truncated => "truncated",
            Outcome::Failed | Outcome::Unreadable => "failed",
        }
    }
}

/// Why a recording was not read to its end.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The stream is at fault.
    Stream {
        error: Error,
        line: Option<u64>,
        /// The event, or the beginning of it.
        text: Vec<u8>,
        /// A further note.
        note: Option<String>,
    },
    /// The input is at fault.
    Input(Unreadable),
}

impl Fault {
    /// An input that cannot be read further, and the result of the pipeline: an active run is cut off,
    /// and one that had ended keeps its outcome (R8a).
    pub(crate) fn of_input(unreadable: Unreadable, finished: Result<(), Error>) -> Self {
        match (finished, unreadable.cut_by) {
            (Err(Error::Truncated(mut truncated)), Some(by)) => {
                truncated.by = by;
                let error = Error::Truncated(truncated);
                Fault::Stream { error, line: None, text: Vec::new(), note: Some(unreadable.message) }
            }
            _ => Fault::Input(unreadable),
        }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Fault::Stream { error, .. } if error.is_truncated() => Outcome::Truncated,
            Fault::Stream { .. } => Outcome::Failed,
            Fault::Input(_) => Outcome::Unreadable,
        }
    }

    pub(crate) fn diagnostic(&self, lines: &Lines) -> Diagnostic {
        match self {
            Fault::Stream { error, line, text, note } => {
                let mut diagnostic = Diagnostic::of_error(error, *line, text, lines);
                diagnostic.notes.splice(0..0, note.clone());
                diagnostic
            }
            Fault::Input(unreadable) => Diagnostic {
                level: Level::Error,
                code: None,
                title: unreadable.title(),
                event: None,
                line: unreadable.line,
                text: Vec::new(),
                mark: None,
                about: None,
                notes: Vec::new(),
            },
        }
    }
}

/// How recordings are to be judged.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) strictness: IdChecks,
    pub(crate) repairs: Repairs,
    pub(crate) compat: bool,
    /// The conversation of `--history`; that of a recording takes precedence.
    pub(crate) history: History,
}

/// The conversation from before a stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) messages: Vec<Message>,
    pub(crate) state: Option<Value>,
}

impl Settings {
    fn builder(&self) -> Options {
        let builder = Options::new().id_checks(self.strictness).repairs(self.repairs);
        if self.compat { builder } else { builder.without_upgrade() }
    }

    pub(crate) fn pipeline(&self, history: History) -> Pipeline {
        let builder = self.builder().history(history.messages);
        match history.state {
            Some(state) => builder.state(state).build(),
            None => builder.build(),
        }
    }

    /// The history of a recording, or else that of the settings.
    pub(crate) fn history_of(&self, input: &mut Input) -> Result<History, Unreadable> {
        match input.history() {
            None => Ok(self.history.clone()),
            Some(json) => self
                .read_history(&json)
                .map_err(|error| Unreadable { message: format!("its `input`: {}", error.message), ..error }),
        }
    }

    /// Reads a JSON array of messages, or an object with `messages`, `state` or both.
    pub(crate) fn read_history(&self, json: &[u8]) -> Result<History, Unreadable> {
        #[derive(Deserialize)]
        struct Members {
            messages: Option<Box<RawValue>>,
            state: Option<Box<RawValue>>,
        }
        let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
        let json = std::str::from_utf8(json).map_err(|error| Unreadable::new(error.to_string()))?;
        let no_json = |error: serde_json::Error| Unreadable::new(error.to_string());
        let members = if json.trim_start().starts_with('[') {
            Members { messages: Some(serde_json::from_str(json).map_err(no_json)?), state: None }
        } else {
            serde_json::from_str(json).map_err(no_json)?
        };
        let mut history = History::default();
        // Messages and state are read as if a producer had sent them: unknown parts are removed,
        // retired ones translated, and half a surrogate pair is accepted.
        if let Some(messages) = members.messages {
            let event = format!(r#"{{"type":"MESSAGES_SNAPSHOT","messages":{}}}"#, messages.get());
            if let Some(Event::MessagesSnapshot(event)) = self.read_event(&event)? {
                history.messages = event.messages;
            }
        }
        if let Some(state) = members.state {
            let event = format!(r#"{{"type":"STATE_SNAPSHOT","snapshot":{}}}"#, state.get());
            if let Some(Event::StateSnapshot(event)) = self.read_event(&event)? {
                history.state = Some(event.snapshot.into());
            }
        }
        Ok(history)
    }

    fn read_event(&self, json: &str) -> Result<Option<Event>, Unreadable> {
        let limits = Limits { max_event_bytes: usize::MAX, ..Limits::default() };
        let mut pipeline: EventPipeline = self.builder().limits(limits).build_events();
        let unreadable = |error: Error| Unreadable::new(error.to_string());
        pipeline.push(r#"{"type":"RUN_STARTED","threadId":"","runId":""}"#).map_err(unreadable)?;
        pipeline.push(json).map_err(unreadable)?;
        Ok(std::iter::from_fn(|| pipeline.pop()).filter_map(Item::into_event).last())
    }
}

/// Reads a recording to its end or to its first fault. `see` is shown every output of the pipeline, or of
/// what has one within, with the progress of the input.
pub(crate) fn run<M>(
    input: &mut Input,
    pipeline: &mut M,
    lines: &mut Lines,
    mut see: impl FnMut(M::Output, &Input) -> io::Result<()>,
) -> io::Result<Option<Fault>>
where
    M: Push<RawItem> + for<'a> Push<&'a str> + for<'a> Push<&'a [u8]>,
{
    let mut skipped = false;
    loop {
        let fault = match input.next() {
            Err(unreadable) => Some(Fault::of_input(unreadable, pipeline.finish())),
            Ok(Next::End(cut)) => {
                let error = error_of_end(cut, pipeline.finish(), lines.events());
                error.map(|error| Fault::Stream { error, line: None, text: Vec::new(), note: None })
            }
            Ok(Next::Skipped(mut warning, line)) => {
                warning.event = lines.events();
                lines.add(line);
                skipped = true;
                match pipeline.push(RawItem::Warning(warning)) {
                    Ok(()) => {
                        while let Some(update) = pipeline.pop() {
                            see(update, input)?;
                        }
                        continue;
                    }
                    Err(error) => Some(Fault::Stream { error, line, text: Vec::new(), note: None }),
                }
            }
            Ok(Next::Event(frame)) => {
                let index = lines.events();
                lines.add(frame.line);
                let pushed = match std::str::from_utf8(&frame.bytes) {
                    // The pipeline did not see the skipped ones, so its own count would be wrong.
                    _ if skipped => pipeline.push(RawItem::Event { raw: Raw::from(frame.bytes.as_slice()), index }),
                    Ok(text) => pipeline.push(text),
                    Err(_) => pipeline.push(frame.bytes.as_slice()),
                };
                match pushed {
                    Ok(()) => {
                        while let Some(update) = pipeline.pop() {
                            see(update, input)?;
                        }
                        continue;
                    }
                    Err(error) => {
                        Some(Fault::Stream { error, line: frame.line, text: head(&frame.bytes).to_vec(), note: None })
                    }
                }
            }
        };
        while let Some(update) = pipeline.pop() {
            see(update, input)?;
        }
        return Ok(fault);
    }
}

/// The error at the end of an input, from those of the decoder and of the pipeline. An input that ends
/// within an event does not take back the outcome of a run that had ended (R8a).
pub(crate) fn error_of_end(cut: Option<Error>, finished: Result<(), Error>, events: u64) -> Option<Error> {
    let mut truncated = match (cut, finished) {
        (None, finished) => return finished.err(),
        (Some(Error::Truncated(_)), Err(Error::Truncated(truncated))) => *truncated,
        (Some(Error::Truncated(_)), Ok(())) => Truncated::new(events, None, TruncatedBy::Partial),
        (Some(Error::Truncated(_)), Err(other)) | (Some(other), _) => return Some(other),
    };
    truncated.by = TruncatedBy::Partial;
    Some(truncated.into())
}

/// Which line each event began on: as many numbers as the distance between events changes.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The first event of a stretch, its line, and the lines from one event to the next.
    stretches: Vec<(u64, u64, Option<u64>)>,
    events: u64,
    last: u64,
    /// There were too many stretches; from this event on no line is known.
    end: Option<u64>,
}

impl Lines {
    const STRETCHES: usize = 64 * 1024;

    /// How many events there were.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// The next event begins on this line; `None` where there are no lines.
    pub(crate) fn add(&mut self, line: Option<u64>) {
        let Some(line) = line else {
            self.end = self.end.or(Some(self.events));
            self.events += 1;
            return;
        };
        let step = line - self.last.min(line);
        let full = self.stretches.len() >= Self::STRETCHES;
        match self.stretches.last_mut() {
            Some((_, _, known @ None)) => *known = Some(step),
            Some((_, _, Some(known))) if *known == step => {}
            _ if full => self.end = self.end.or(Some(self.events)),
            _ => self.stretches.push((self.events, line, None)),
        }
        self.last = line;
        self.events += 1;
    }

    /// The line of an event.
    pub(crate) fn of(&self, event: u64) -> Option<u64> {
        if event >= self.end.unwrap_or(self.events) {
            return None;
        }
        let at = self.stretches.partition_point(|(first, ..)| *first <= event).checked_sub(1)?;
        let (first, line, step) = self.stretches.get(at)?;
        Some(line + (event - first) * step.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_remembered() {
        let mut lines = Lines::default();
        let of: Vec<u64> = (1..100).chain((100..130).step_by(3)).chain([200, 200, 200, 207, 300]).collect();
        for line in &of {
            lines.add(Some(*line));
        }
        for (event, line) in (0..).zip(&of) {
            assert_eq!(lines.of(event), Some(*line), "{event}");
        }
        assert_eq!(lines.of(of.len() as u64), None);
        lines.add(None);
        assert_eq!((lines.of(of.len() as u64), lines.events()), (None, of.len() as u64 + 1));
        assert!(lines.stretches.len() < 8, "{:?}", lines.stretches);
    }

    #[test]
    fn history_is_read_like_an_event() {
        let settings =
            Settings { strictness: IdChecks::Warn, repairs: Repairs::NONE, compat: true, history: History::default() };
        let message = r#"{"id":"m","role":"user","content":"\ud83d","extra":1}"#;
        let history = settings.read_history(format!("\u{feff} [{message}]").as_bytes()).unwrap();
        assert_eq!(history.messages.len(), 1);
        assert_eq!(history.state, None);
        let json = format!(r#"{{"threadId":"t","messages":[{message}],"state":{{"a":1}}}}"#);
        let history = settings.read_history(json.as_bytes()).unwrap();
        assert_eq!((history.messages.len(), history.state), (1, Some(serde_json::json!({"a": 1}))));
        for wrong in ["", "[", "{}x", r#"[{"id":7}]"#, r#"{"messages":{}}"#, "\u{0}"] {
            assert!(settings.read_history(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
