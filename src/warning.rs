//! What a stream survives, as a type.

use core::fmt;

use crate::rule::Rule;

/// Something that the protocol tells a consumer to survive and to say aloud.
///
/// Warnings arrive in order with the events, each exactly once. Whoever gives the last of them logs
/// them: a [`Pipeline`](crate::machine::Pipeline) or an
/// [`EventPipeline`](crate::machine::EventPipeline), and the combinators around them, as they are
/// given, through `tracing` (target `ag_ui_stream`, level `WARN`) where that feature is on, as it is
/// by default. A single stage does not log: what it gives is yours to read, or to [`log`](Warning::log).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The rule.
    pub rule: Rule,
    /// The index of the input event, from 0.
    pub event: u64,
    /// Its type as it was sent, known or not; empty for a frame that is no event.
    pub event_type: String,
    /// The JSON pointer of what it is about; empty for the event as a whole.
    pub path: String,
    /// What happened, for people.
    pub message: String,
}

impl Warning {
    /// A warning, also for decoders and stages of your own: about the input event with this index
    /// and type, of which 80 bytes at most are kept, and the place in it that the JSON pointer names.
    #[must_use]
    pub fn new(rule: Rule, event: u64, event_type: &str, path: impl Into<String>, message: impl Into<String>) -> Self {
        let event_type = crate::excerpt::harmless(event_type, 80).into_owned();
        Self { rule, event, event_type, path: path.into(), message: message.into() }
    }

    /// Logs it through `tracing`, with target `ag_ui_stream` and level `WARN`; nothing where the
    /// feature `tracing` is off. The pipelines have done so with what they give.
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
