//! Warnings: faults that do not end a stream.

use core::fmt;

use crate::rule::Rule;

/// A fault that does not end the stream, but that the application should know of.
///
/// Warnings come in order with the events, each exactly once. A
/// [`Pipeline`](crate::machine::Pipeline) or [`EventPipeline`](crate::machine::EventPipeline), also
/// within a combinator, logs each as it gives it, through `tracing` (target `ag_ui_stream`, level
/// `WARN`) if that feature is on, as it is by default. A single stage does not log: read its warnings
/// yourself, or [`log`](Warning::log) them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The rule.
    pub rule: Rule,
    /// The index of the input event, from 0.
    pub event: u64,
    /// Its type as it was sent, known or not; empty for a frame that is not an event.
    pub event_type: String,
    /// The JSON pointer of the part at fault; empty for the event as a whole.
    pub path: String,
    /// What happened, for people.
    pub message: String,
}

impl Warning {
    /// A warning about the part of an input event that the JSON pointer names, also for decoders and
    /// stages of your own. At most 80 bytes of the type are kept.
    #[must_use]
    pub fn new(rule: Rule, event: u64, event_type: &str, path: impl Into<String>, message: impl Into<String>) -> Self {
        let event_type = crate::excerpt::harmless(event_type, 80).into_owned();
        Self { rule, event, event_type, path: path.into(), message: message.into() }
    }

    /// Logs it through `tracing`, with target `ag_ui_stream` and level `WARN`; does nothing without the
    /// feature `tracing`. The pipelines have logged the warnings that they give.
    pub fn log(&self) {
        crate::log::warn(self.rule, self.event, &self.event_type, &self.path, &self.message);
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.event_type.as_str() {
            "" => write!(f, "{}: event {}", self.rule, self.event)?,
            event_type => write!(f, "{}: {event_type} (event {})", self.rule, self.event)?,
        }
        if !self.path.is_empty() {
            write!(f, " {}", self.path)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// The most warnings about one event: a small event can hold a million things to warn of.
const MAX_NOTES: usize = 100;

/// What there is to warn of, before it is known which event that is.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) rule: Rule,
    pub(crate) path: String,
    pub(crate) message: String,
}

impl Note {
    /// The warning about this event.
    pub(crate) fn about(self, event: u64, event_type: &str) -> Warning {
        Warning::new(self.rule, event, event_type, self.path, self.message)
    }
}

/// What there is to warn of about one event, up to a bound.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    list: Vec<Note>,
    /// The rule of the first one too many, and how many there were.
    left_out: Option<(Rule, usize)>,
}

impl Notes {
    pub(crate) fn add(&mut self, rule: Rule, path: impl Into<String>, message: impl Into<String>) {
        if self.list.len() < MAX_NOTES {
            self.list.push(Note { rule, path: path.into(), message: message.into() });
        } else {
            self.left_out.get_or_insert((rule, 0)).1 += 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How far it reaches, to go [back to](Notes::back_to).
    pub(crate) fn mark(&self) -> (usize, Option<(Rule, usize)>) {
        (self.list.len(), self.left_out)
    }

    /// Forgets what came after this mark.
    pub(crate) fn back_to(&mut self, (len, left_out): (usize, Option<(Rule, usize)>)) {
        self.list.truncate(len);
        self.left_out = left_out;
    }

    /// All of them, and at the end how many more there would have been. It is empty then.
    pub(crate) fn take(&mut self) -> Vec<Note> {
        let mut list = core::mem::take(&mut self.list);
        if let Some((rule, count)) = self.left_out.take() {
            let message = format!("{count} more warnings about this event are left out");
            list.push(Note { rule, path: String::new(), message });
        }
        list
    }
}
