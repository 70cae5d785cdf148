//! The errors that end a stream.

use core::convert::Infallible;
use core::fmt;
use std::borrow::Cow;

use crate::event_type::EventType;
use crate::rule::Rule;

mod agent;

pub use agent::{AgentError, BoxError};

/// Why a stream of events ended early. It is the last item: after it comes `None`.
///
/// All events before the fault have been delivered before the error. What to do:
///
/// - [`Source`](Error::Source), [`Truncated`](Error::Truncated): the transport failed. Show what arrived
///   and offer to run again.
/// - [`Malformed`](Error::Malformed), [`Violation`](Error::Violation): the producer is at fault. Report it
///   to the operator of the agent.
/// - [`LimitExceeded`](Error::LimitExceeded): a bound of [`Limits`](crate::Limits) was met. Raise it if
///   such events are expected.
///
/// It implements [`core::error::Error`] if the source's error does. `Box<dyn Error>` and `anyhow::Error`
/// do not: map them by `.map_err(AgentError::new)` (`AgentError` of this crate, feature `stream`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error<E = Infallible> {
    /// The source itself failed, with this error.
    Source(E),
    /// An event cannot be read, or a field that the protocol describes is wrong (E5, E9).
    Malformed(Box<Malformed>),
    /// A well-formed event came in a place where the rules forbid it (R, S, C and O rules).
    Violation(Box<Violation>),
    /// The stream ended without the terminal event of its run (R8).
    Truncated(Box<Truncated>),
    /// An event is larger or deeper than allowed, or makes the conversation too large.
    LimitExceeded(Box<LimitExceeded>),
}

impl<E> Error<E> {
    /// The rule that was broken; `None` if a limit was met or the source failed, unless the source's
    /// error [says more](SourceError).
    #[must_use]
    pub fn rule(&self) -> Option<Rule>
    where
        E: SourceError,
    {
        self.verdict().rule
    }

    /// The index of the input event at fault, counted from 0; `None` if no event is at fault.
    #[must_use]
    pub fn event_index(&self) -> Option<u64> {
        match self {
            Error::Source(_) | Error::Truncated(_) => None,
            Error::Malformed(error) => Some(error.event),
            Error::Violation(error) => Some(error.event),
            Error::LimitExceeded(error) => Some(error.event),
        }
    }

    /// The type of the input event at fault, as it was sent; `None` if it is unknown.
    #[must_use]
    pub fn event_type(&self) -> Option<EventType> {
        match self {
            Error::Malformed(error) => error.event_type,
            Error::Violation(error) => Some(error.event_type),
            Error::Source(_) | Error::Truncated(_) | Error::LimitExceeded(_) => None,
        }
    }

    /// Whether the stream ended without the terminal event of its run (rule R8): it was closed, or its
    /// source's error [says](SourceError) that it was cut off. A source that fails after the end of a
    /// run does not truncate that run (rule R8a).
    #[must_use]
    pub fn is_truncated(&self) -> bool
    where
        E: SourceError,
    {
        self.verdict().is_truncated
    }

    /// Whether the transport failed, and no event broke a rule or met a limit: show what arrived and
    /// offer to run again. True for [`Truncated`](Error::Truncated), and for [`Source`](Error::Source)
    /// unless the source's error [says more](SourceError).
    #[must_use]
    pub fn is_transport(&self) -> bool
    where
        E: SourceError,
    {
        self.verdict().is_transport
    }

    /// The answers to [`rule`](Self::rule), [`is_truncated`](Self::is_truncated) and
    /// [`is_transport`](Self::is_transport).
    pub(crate) fn verdict(&self) -> Verdict
    where
        E: SourceError,
    {
        match self {
            Error::Source(error) => error.verdict(),
            Error::Truncated(_) => Verdict::TRUNCATED,
            Error::Malformed(error) => Verdict::broken(error.rule),
            Error::Violation(error) => Verdict::broken(error.rule),
            Error::LimitExceeded(_) => Verdict::LIMIT,
        }
    }

    /// The same error, with the source's error mapped.
    pub fn map_source<F>(self, map: impl FnOnce(E) -> F) -> Error<F> {
        match self {
            Error::Source(error) => Error::Source(map(error)),
            Error::Malformed(error) => Error::Malformed(error),
            Error::Violation(error) => Error::Violation(error),
            Error::Truncated(error) => Error::Truncated(error),
            Error::LimitExceeded(error) => Error::LimitExceeded(error),
        }
    }
}

/// What the error of a source says about the run that it ended, for [`Error::rule`],
/// [`Error::is_truncated`] and [`Error::is_transport`].
///
/// Every `'static` type implements it. Any error counts as a failure of the transport that breaks no
/// rule, except those of this crate: the error of the clients, and an [`AgentError`] that is one, is an
/// [`Error`] of an earlier stage, or has either as a cause. The trait is sealed.
pub trait SourceError {
    #[doc(hidden)]
    fn verdict(&self) -> Verdict;
}

/// What an error says about the run that it ended.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
#[allow(unnameable_types, reason = "only a sealed trait speaks of it")]
pub struct Verdict {
    pub(crate) rule: Option<Rule>,
    pub(crate) is_truncated: bool,
    pub(crate) is_transport: bool,
}

impl Verdict {
    /// The transport failed; nothing is known of the run.
    pub(crate) const TRANSPORT: Self = Self { rule: None, is_truncated: false, is_transport: true };
    /// The transport failed within a run.
    pub(crate) const TRUNCATED: Self = Self { rule: Some(Rule::R8), is_truncated: true, is_transport: true };
    /// A limit was met.
    pub(crate) const LIMIT: Self = Self { rule: None, is_truncated: false, is_transport: false };

    /// A rule was broken.
    pub(crate) fn broken(rule: Rule) -> Self {
        Self { rule: Some(rule), ..Self::LIMIT }
    }
}

impl Error<Infallible> {
    /// The same error, for a source that can fail too.
    #[must_use]
    pub fn with_source<E>(self) -> Error<E> {
        self.map_source(|never| match never {})
    }
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Source(error) => write!(f, "the source failed: {error}"),
            Error::Malformed(error) => error.fmt(f),
            Error::Violation(error) => error.fmt(f),
            Error::Truncated(error) => error.fmt(f),
            Error::LimitExceeded(error) => error.fmt(f),
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for Error<E> {
    /// The cause of the source's error, as `Display` shows that error itself. Faults found by this crate
    /// have no cause.
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Error::Source(error) => error.source(),
            Error::Malformed(_) | Error::Violation(_) | Error::Truncated(_) | Error::LimitExceeded(_) => None,
        }
    }
}

impl<E> From<Malformed> for Error<E> {
    fn from(error: Malformed) -> Self {
        Error::Malformed(Box::new(error))
    }
}

impl<E> From<Violation> for Error<E> {
    fn from(error: Violation) -> Self {
        Error::Violation(Box::new(error))
    }
}

impl<E> From<Truncated> for Error<E> {
    fn from(error: Truncated) -> Self {
        Error::Truncated(Box::new(error))
    }
}

impl<E> From<LimitExceeded> for Error<E> {
    fn from(error: LimitExceeded) -> Self {
        Error::LimitExceeded(Box::new(error))
    }
}

/// An event that cannot be read, or that has an invalid value in a described field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Malformed {
    /// The rule: E5 for a field, E9 for a frame without an event, T2 for invalid protobuf.
    pub rule: Rule,
    /// The index of the input event, from 0.
    pub event: u64,
    /// Its type, if known.
    pub event_type: Option<EventType>,
    /// The JSON pointer of the field; empty for the event as a whole.
    pub path: String,
    /// What was expected.
    pub expected: Cow<'static, str>,
    /// What was found.
    pub found: String,
}

impl Malformed {
    /// A fault of an event as a whole, for decoders and stages of your own. The type and path can be set
    /// afterwards.
    #[must_use]
    pub fn new(rule: Rule, event: u64, expected: impl Into<Cow<'static, str>>, found: impl Into<String>) -> Self {
        Self { rule, event, event_type: None, path: String::new(), expected: expected.into(), found: found.into() }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_head(f, self.rule, self.event_type.map(EventType::as_str), self.event)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

impl core::error::Error for Malformed {}

/// A well-formed event in a place where the rules forbid it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The rule that it breaks.
    pub rule: Rule,
    /// The index of the input event, from 0.
    pub event: u64,
    /// Its type as it was sent: for a chunk that of the chunk, not of the events it expands to.
    pub event_type: EventType,
    /// What the event is about.
    pub subject: Option<Subject>,
    /// What would have been legal.
    pub expected: Cow<'static, str>,
    /// What came instead.
    pub found: Cow<'static, str>,
    /// What happened to the subject before.
    pub history: History,
    /// The other items involved: for rule R3 each item that is still open.
    pub others: Vec<(Subject, History)>,
}

impl Violation {
    /// A violation without a subject or history.
    #[must_use]
    pub fn new(
        rule: Rule,
        event: u64,
        event_type: EventType,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            rule,
            event,
            event_type,
            subject: None,
            expected: expected.into(),
            found: found.into(),
            history: History::None,
            others: Vec::new(),
        }
    }

    /// Sets the subject and its history.
    #[must_use]
    pub fn about(mut self, subject: Subject, history: History) -> Self {
        self.subject = Some(subject);
        self.history = history;
        self
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_head(f, self.rule, Some(self.event_type.as_str()), self.event)?;
        if let Some(subject) = &self.subject {
            write!(f, "{subject}: ")?;
        }
        write!(f, "expected {}, found {}", self.expected, self.found)?;
        if self.history != History::None {
            f.write_str(" (")?;
            self.history.write(f, self.subject.as_ref())?;
            f.write_str(")")?;
        }
        for (at, (subject, history)) in self.others.iter().enumerate() {
            // Enough to find the fault; the field has all of them.
            if at == 8 {
                write!(f, "; and {} more", self.others.len() - at)?;
                break;
            }
            write!(f, "; {subject}")?;
            if *history != History::None {
                f.write_str(" ")?;
                history.write(f, Some(subject))?;
            }
        }
        Ok(())
    }
}

impl core::error::Error for Violation {}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Subject {
    /// Its kind.
    pub kind: SubjectKind,
    /// Its id, or its name for a step.
    pub id: String,
}

impl Subject {
    /// A subject of this kind with this id.
    #[must_use]
    pub fn new(kind: SubjectKind, id: impl Into<String>) -> Self {
        Self { kind, id: id.into() }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.kind, crate::excerpt::excerpt(&self.id, 80))
    }
}

/// The kinds of subjects that events are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SubjectKind {
    /// A text message.
    TextMessage,
    /// A tool call.
    ToolCall,
    /// A reasoning message.
    ReasoningMessage,
    /// A reasoning span.
    ReasoningSpan,
    /// An activity message.
    Activity,
    /// A step.
    Step,
    /// An invocation of a subagent.
    Subagent,
    /// The shared state.
    State,
    /// A run.
    Run,
    /// A thread.
    Thread,
    /// An interrupt.
    Interrupt,
}

impl fmt::Display for SubjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SubjectKind::TextMessage => "text message",
            SubjectKind::ToolCall => "tool call",
            SubjectKind::ReasoningMessage => "reasoning message",
            SubjectKind::ReasoningSpan => "reasoning span",
            SubjectKind::Activity => "activity",
            SubjectKind::Step => "step",
            SubjectKind::Subagent => "subagent",
            SubjectKind::State => "state",
            SubjectKind::Run => "run",
            SubjectKind::Thread => "thread",
            SubjectKind::Interrupt => "interrupt",
        })
    }
}

/// What happened to a subject before the event at fault. Events are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum History {
    /// Nothing relevant.
    None,
    /// It was never opened in this run.
    NeverOpened,
    /// It is open.
    Open {
        /// The event that opened it.
        since: u64,
        /// The subagent invocation that owns it; absent for the parent agent.
        owner: Option<String>,
    },
    /// It was closed.
    Closed {
        /// The event that closed it.
        at: u64,
        /// The subagent invocation that owns it; absent for the parent agent.
        owner: Option<String>,
    },
    /// An event named it, without opening it.
    Known {
        /// The event that named it.
        at: u64,
        /// The subagent invocation that owns it; absent for the parent agent.
        owner: Option<String>,
    },
}

impl History {
    /// The history in words. Runs, threads and interrupts have no owner.
    fn write(&self, f: &mut fmt::Formatter<'_>, subject: Option<&Subject>) -> fmt::Result {
        let (what, event, owner) = match self {
            History::None => return Ok(()),
            History::NeverOpened => return f.write_str("never opened"),
            History::Open { since, owner } => ("open since", since, owner),
            History::Closed { at, owner } => ("closed at", at, owner),
            History::Known { at, owner } => ("known since", at, owner),
        };
        write!(f, "{what} event {event}")?;
        match (subject.map(|subject| subject.kind), owner) {
            (Some(SubjectKind::Run | SubjectKind::Thread | SubjectKind::Interrupt), None) => Ok(()),
            (_, Some(owner)) => write!(f, ", owned by subagent {:?}", crate::excerpt::excerpt(owner, 80)),
            (_, None) => f.write_str(", owned by the parent agent"),
        }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, None)
    }
}

/// A stream that ended without the terminal event of its run (R8). It is never a success.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Truncated {
    /// The number of input events.
    pub events: u64,
    /// The run that was active; `None` if no run began.
    pub run_id: Option<String>,
    /// The items that were still open.
    pub open: Vec<(Subject, History)>,
    /// How the stream ended.
    pub by: TruncatedBy,
}

impl Truncated {
    /// A truncation after this many events.
    #[must_use]
    pub fn new(events: u64, run_id: Option<String>, by: TruncatedBy) -> Self {
        Self { events, run_id, open: Vec::new(), by }
    }
}

/// How a truncated stream ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TruncatedBy {
    /// The source ended.
    #[default]
    Close,
    /// The bytes ended within an event.
    Partial,
    /// The body of a response failed.
    Body,
    /// Nothing came for too long.
    Timeout,
    /// The source, or the machine that it feeds, panicked, and was polled again.
    Panic,
}

impl fmt::Display for Truncated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("R8: truncated: ")?;
        f.write_str(match self.by {
            TruncatedBy::Close => "the stream ended",
            TruncatedBy::Partial => "the bytes ended within an event",
            TruncatedBy::Body => "the body failed",
            TruncatedBy::Timeout => "nothing came for too long",
            TruncatedBy::Panic => "the source panicked",
        })?;
        write!(f, " after {} event{}", self.events, if self.events == 1 { "" } else { "s" })?;
        match &self.run_id {
            Some(run) => write!(f, " without a terminal event for run {:?}", crate::excerpt::excerpt(run, 80))?,
            // Neither a decoder nor the poll loop knows the run.
            None if matches!(self.by, TruncatedBy::Partial | TruncatedBy::Panic) => {}
            None => f.write_str(", before any run began")?,
        }
        for (at, (subject, history)) in self.open.iter().enumerate() {
            if at == 8 {
                write!(f, "; and {} more", self.open.len() - at)?;
                break;
            }
            write!(f, "; {subject} ")?;
            history.write(f, Some(subject))?;
        }
        Ok(())
    }
}

impl core::error::Error for Truncated {}

/// An event beyond a bound of [`Limits`](crate::Limits).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitExceeded {
    /// The index of the input event, from 0.
    pub event: u64,
    /// Which bound.
    pub limit: Limit,
    /// The bound's value.
    pub max: usize,
    /// Whose bound.
    pub stage: LimitStage,
}

impl LimitExceeded {
    /// A bound of the pipeline, exceeded by this event.
    #[must_use]
    pub fn new(event: u64, limit: Limit, max: usize) -> Self {
        Self { event, limit, max, stage: LimitStage::Pipeline }
    }

    /// The same, of another stage.
    #[must_use]
    pub fn of(self, stage: LimitStage) -> Self {
        Self { stage, ..self }
    }
}

/// Whose bound was exceeded: where to set other [`Limits`](crate::Limits) if it is too low.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimitStage {
    /// The decoder that finds events in bytes or messages: see the options of a client, or the decoder's
    /// `with_limits`.
    Decoder,
    /// What reads, judges and assembles the events: [`Options::limits`](crate::Options::limits), or
    /// `with_limits` of a single stage.
    Pipeline,
    /// The reader of a single message or input; its bounds are the defaults.
    Reader,
    /// The encoder of events; its bound is that of the format.
    Encoder,
}

impl fmt::Display for LimitStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LimitStage::Decoder => "decoder",
            LimitStage::Pipeline => "pipeline",
            LimitStage::Reader => "reader",
            LimitStage::Encoder => "encoder",
        })
    }
}

/// A bound of [`Limits`](crate::Limits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::max_event_bytes`](crate::Limits::max_event_bytes)
    EventBytes,
    /// [`Limits::max_depth`](crate::Limits::max_depth)
    Depth,
    /// [`Limits::max_document_bytes`](crate::Limits::max_document_bytes)
    DocumentBytes,
    /// [`Limits::max_event_values`](crate::Limits::max_event_values)
    EventValues,
    /// [`Limits::max_id_bytes`](crate::Limits::max_id_bytes)
    IdBytes,
    /// [`Limits::max_messages`](crate::Limits::max_messages)
    Messages,
    /// [`Limits::max_conversation_bytes`](crate::Limits::max_conversation_bytes)
    ConversationBytes,
    /// [`Limits::max_open_items`](crate::Limits::max_open_items)
    OpenItems,
}

/// The name of the field of [`Limits`](crate::Limits).
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::EventBytes => "max_event_bytes",
            Limit::Depth => "max_depth",
            Limit::DocumentBytes => "max_document_bytes",
            Limit::EventValues => "max_event_values",
            Limit::IdBytes => "max_id_bytes",
            Limit::Messages => "max_messages",
            Limit::ConversationBytes => "max_conversation_bytes",
            Limit::OpenItems => "max_open_items",
        })
    }
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event, limit, max, stage } = self;
        match limit {
            Limit::EventBytes => write!(f, "event {event} is longer than {max} bytes"),
            Limit::EventValues => write!(f, "event {event} holds more than {max} values"),
            Limit::IdBytes => write!(f, "event {event} has an id or a name of more than {max} bytes"),
            Limit::Depth => write!(f, "event {event} is nested deeper than {max} levels"),
            Limit::DocumentBytes => {
                write!(f, "after event {event} all documents together would take more than {max} bytes")
            }
            Limit::Messages => write!(f, "after event {event} there would be more than {max} messages"),
            Limit::ConversationBytes => {
                write!(f, "after event {event} the conversation would take more than {max} bytes")
            }
            Limit::OpenItems => write!(f, "after event {event} more than {max} things would be open"),
        }?;
        write!(f, ", the `{limit}` of the {stage}")
    }
}

impl core::error::Error for LimitExceeded {}

fn write_head(f: &mut fmt::Formatter<'_>, rule: Rule, event_type: Option<&str>, event: u64) -> fmt::Result {
    match event_type {
        Some(event_type) => write!(f, "{rule}: {event_type} (event {event}): "),
        None => write!(f, "{rule}: event {event}: "),
    }
}
