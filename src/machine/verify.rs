//! Verification: expanded events in, the same events out as long as they come in a legal order
//! (rules R1 to R8a, R10, R11, S1 to S8, O1 to O8).
//!
//! ```text
//!                 RUN_STARTED                 RUN_FINISHED
//!   ┌─────────┐ ──────────────► ┌──────────┐ ──────────────► ┌──────────┐
//!   │ waiting │                 │  active  │                 │ finished │
//!   └─────────┘                 └──────────┘ ◄────────────── └──────────┘
//!        │ RUN_ERROR    RUN_ERROR │     ▲      RUN_STARTED         │ RUN_ERROR
//!        │                        ▼     │ RUN_STARTED              │ (late failure)
//!        │                      ┌──────────┐                       │
//!        └────────────────────► │  failed  │ ◄─────────────────────┘
//!                               └──────────┘
//! ```
//!
//! Any other event belongs within an active run, where `items` judges it. An illegal event leads to
//! *rejected*, for good.

use core::cmp::Ordering;
use core::fmt;
use std::collections::VecDeque;

use super::items::Items;
use super::sink::{Sink, Stage};
use super::table::Claim;
use super::{Push, queued_machine};
use crate::error::{Error, History, Subject, SubjectKind, Truncated, TruncatedBy};
use crate::event::fast::{TextChunk, TextContent};
use crate::event::{Event, RunFinishedEvent, RunFinishedOutcome, RunStartedEvent};
use crate::excerpt::excerpt;
use crate::id::{IdMap, InterruptId, RunId, ThreadId};
use crate::item::{Counter, Indexed, Item, Place};
use crate::limits::Limits;
use crate::options::IdChecks;
use crate::rule::Rule;
use crate::version::{self, PROTOCOL_VERSION};
use crate::warning::{Note, Notes, Warning};

/// Holds events to the order that the protocol prescribes: the R, S and O rules.
///
/// In: expanded events and warnings, anything that turns into an [`Item`]. Out, one for one and in
/// order: the same items. Before an event its own warnings come: rule R10 (see [`IdChecks`]), and
/// R11 for a `protocolVersion` that is newer than [`PROTOCOL_VERSION`] or not MAJOR.MINOR.
///
/// An event that middleware added, and which has no index, is counted after those before it.
///
/// # Errors
/// `push` gives [`Error::Violation`] for an event in an illegal place; its rule is one of R1, R2, R3,
/// R4, R10, S2, S8, O2, O4, O5, O6, or C1 for a chunk that was not expanded; and
/// [`Error::LimitExceeded`] for one that names or opens more than [`Limits`] allow. A violation names the
/// event as it was sent, its subject and the history of that, and for R3 every item that is still open, in
/// the order opened.
///
/// `finish` gives [`Error::Truncated`] (R8) if no terminal event closed the active run, or no event
/// came at all. After RUN_FINISHED or RUN_ERROR the input may end (R8a).
///
/// The machine is done with its first error: any call after that gives the same one again, unless
/// [`recover`](Verifier::recover) is called in between.
///
/// # Cost
/// A CONTENT or ARGS event allocates nothing and costs a comparison of pointers if it continues the
/// item of the one before, else one probe. The machine holds one entry for each id that the active run
/// named; the next RUN_STARTED forgets them (R6).
///
/// # Examples
/// ```
/// use ag_ui_stream::event::{RunStartedEvent, TextMessageContentEvent};
/// use ag_ui_stream::machine::{Machine, Push, Verifier};
/// use ag_ui_stream::{Error, Event, Rule};
///
/// let mut verifier = Verifier::new();
/// verifier.push(Event::from(RunStartedEvent::new("thread", "run")))?;
/// assert!(verifier.pop().is_some());
///
/// let error = verifier.push(Event::from(TextMessageContentEvent::new("m", "Hello"))).unwrap_err();
/// assert_eq!(error.rule(), Some(Rule::S2));
/// assert_eq!(error.event_index(), Some(1));
/// assert_eq!(
///     error.to_string(),
///     "S2: TEXT_MESSAGE_CONTENT (event 1): text message \"m\": \
///      expected a text message that is open, found an unknown one (never opened)"
/// );
/// # Ok::<(), Error>(())
/// ```
#[derive(Default)]
pub struct Verifier {
    id_checks: IdChecks,
    phase: Phase,
    /// The thread of the first run, and the event that named it (R10).
    thread: Option<(ThreadId, u64)>,
    items: Items,
    counter: Counter,
    /// The least number of input events, by the indices of events and warnings.
    seen: u64,
    ready: VecDeque<Item>,
    /// The warnings about the current event; empty in between.
    warnings: Notes,
}

/// The state of the stream.
#[derive(Debug, Default)]
enum Phase {
    /// No run began, none failed.
    #[default]
    Waiting,
    Active(Run),
    /// A run ended well at this event.
    Finished(Run, u64),
    /// A run failed at this event, or RUN_ERROR came before any run.
    Failed(Option<Run>, u64),
    /// The stream broke a rule.
    Rejected(Box<Rejection>),
}

/// How the stream broke a rule, and the state before.
#[derive(Debug)]
struct Rejection {
    error: Error,
    before: Phase,
    /// The event at fault, if it is one that begins or ends a run.
    event: Option<(Event, Place)>,
}

/// How [`Verifier::recover`] treated the event at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Recovery {
    /// It is as if the event had not come.
    Skipped,
    /// The event took effect nevertheless, and is the next one to be popped. Where there was no room for
    /// the owners of its messages (rule O7), they are unknown.
    Forced,
}

#[derive(Clone, Debug)]
struct Run {
    id: RunId,
    thread: ThreadId,
    since: u64,
}

impl Run {
    fn subject(&self) -> Subject {
        Subject::new(SubjectKind::Run, self.id.as_str())
    }

    fn opened(&self) -> History {
        History::Open { since: self.since, owner: None }
    }
}

impl Verifier {
    /// A verifier that [warns](IdChecks::Warn) of ids that break rule R10.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, but with ids checked as said.
    #[must_use]
    pub fn with_id_checks(mut self, id_checks: IdChecks) -> Self {
        self.id_checks = id_checks;
        self
    }

    /// The same with other bounds on what a run may name and have open.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.items.set_limits(limits);
        self
    }

    /// Whether ids that break rule R10 are warned of or rejected.
    #[must_use]
    pub fn id_checks(&self) -> IdChecks {
        self.id_checks
    }

    /// The run that is active: begun, and neither finished nor failed.
    #[must_use]
    pub fn active_run(&self) -> Option<&RunId> {
        match &self.phase {
            Phase::Active(run) => Some(&run.id),
            Phase::Waiting | Phase::Finished(..) | Phase::Failed(..) | Phase::Rejected(_) => None,
        }
    }

    /// The state in a few words, for the log.
    pub(super) fn state(&self) -> State<'_> {
        State(self)
    }

    /// The open items of the active run, in the order opened: messages, tool calls, reasoning, steps
    /// and subagents. None if no run is active, as a failed run abandons its open items (R5).
    ///
    /// Costs a pass over all ids that the run named.
    #[must_use]
    pub fn open(&self) -> Vec<(Subject, History)> {
        match &self.phase {
            Phase::Active(_) => self.items.open(),
            Phase::Waiting | Phase::Finished(..) | Phase::Failed(..) | Phase::Rejected(_) => Vec::new(),
        }
    }

    /// Notes that this many input events came, with those dropped by earlier stages.
    fn saw(&mut self, events: u64) {
        self.seen = self.seen.max(events);
    }

    /// Notes that the stream ended with this error, here or in an earlier stage.
    #[cold]
    pub(crate) fn reject(&mut self, error: Error, event: Option<(&Indexed, Place)>) -> Error {
        // After a first error, that one is given again.
        if !matches!(self.phase, Phase::Rejected(_)) {
            crate::log::rejected(&error, &self.state());
            let event = match event {
                Some((indexed, place)) if matches!(indexed.event, Event::RunStarted(_) | Event::RunFinished(_)) => {
                    Some((indexed.event.clone(), place))
                }
                _ => None,
            };
            let before = core::mem::take(&mut self.phase);
            self.phase = Phase::Rejected(Box::new(Rejection { error: error.clone(), before, event }));
        }
        error
    }

    /// Continues after an error, for tools that want to see every fault of a recording. A consumer must
    /// not: the protocol gives no meaning to events after a violation.
    ///
    /// `None` where nothing can be done: there is no error, or it is that of
    /// [`finish`](super::Machine::finish).
    ///
    /// - [`Forced`](Recovery::Forced): a RUN_STARTED or RUN_FINISHED that broke R2, R3, a limit
    ///   or, with [`Reject`](IdChecks::Reject), R10. The run begins or ends, as otherwise everything after it would
    ///   be judged within the wrong run. Open items are abandoned.
    /// - [`Skipped`](Recovery::Skipped): any other event. The verifier is in its state from before.
    ///
    /// ```
    /// use ag_ui_stream::event::{RunFinishedEvent, RunStartedEvent, TextMessageStartEvent};
    /// use ag_ui_stream::machine::{Machine, Push, Recovery, Verifier};
    /// use ag_ui_stream::{Event, Rule};
    ///
    /// let mut verifier = Verifier::new();
    /// verifier.push(Event::from(RunStartedEvent::new("thread", "run")))?;
    /// verifier.push(Event::from(TextMessageStartEvent::new("m")))?;
    ///
    /// let error = verifier.push(Event::from(TextMessageStartEvent::new("m"))).unwrap_err();
    /// assert_eq!((error.rule(), verifier.recover()), (Some(Rule::S2), Some(Recovery::Skipped)));
    ///
    /// let error = verifier.push(Event::from(RunFinishedEvent::new("thread", "run"))).unwrap_err();
    /// assert_eq!((error.rule(), verifier.recover()), (Some(Rule::R3), Some(Recovery::Forced)));
    /// verifier.finish()?;
    /// # Ok::<(), ag_ui_stream::Error>(())
    /// ```
    pub fn recover(&mut self) -> Option<Recovery> {
        let rejection = match core::mem::take(&mut self.phase) {
            Phase::Rejected(rejection) if !rejection.error.is_truncated() => rejection,
            phase => {
                self.phase = phase;
                return None;
            }
        };
        self.phase = rejection.before;
        let Some((event, place)) = rejection.event else { return Some(Recovery::Skipped) };
        match (&self.phase, &event) {
            (
                Phase::Waiting | Phase::Active(_) | Phase::Finished(..) | Phase::Failed(..),
                Event::RunStarted(started),
            ) => {
                self.begin(started, place);
            }
            (Phase::Active(run), Event::RunFinished(_)) => {
                self.phase = Phase::Finished(run.clone(), place.index);
            }
            _ => return Some(Recovery::Skipped),
        }
        self.ready.push_back(Item::Event(place.gives(event)));
        Some(Recovery::Forced)
    }

    fn judge(&mut self, event: &Event, place: Place) -> Result<(), Error> {
        match (&self.phase, event) {
            (Phase::Waiting | Phase::Finished(..) | Phase::Failed(..), Event::RunStarted(started)) => {
                self.start(started, place)
            }
            (Phase::Active(run), Event::RunStarted(started)) => Err(nested(run, started, place)),
            (Phase::Active(run), Event::RunFinished(finished)) => {
                let run = run.clone();
                self.finish_run(run, finished, place)
            }
            (Phase::Active(run) | Phase::Finished(run, _), Event::RunError(_)) => {
                self.phase = Phase::Failed(Some(run.clone()), place.index);
                self.items.reset();
                Ok(())
            }
            (Phase::Waiting, Event::RunError(_)) => {
                self.phase = Phase::Failed(None, place.index);
                Ok(())
            }
            (Phase::Active(_), event) => self.items.check(event, place),
            (Phase::Waiting | Phase::Finished(..) | Phase::Failed(..), event) => {
                Err(self.outside_of_a_run(event, place))
            }
            (Phase::Rejected(rejection), _) => Err(rejection.error.clone()),
        }
    }

    /// The error for an event before the first run, or after the end of one (R1, R3, R4).
    #[cold]
    fn outside_of_a_run(&self, event: &Event, place: Place) -> Error {
        let violation = |rule, expected: &'static str, found: &'static str| place.violation(rule, expected, found);
        let found = place.sent_as.as_str();
        let (mut violation, ended) = match (&self.phase, event) {
            (Phase::Finished(run, at), _) => {
                (violation(Rule::R4, "RUN_STARTED or RUN_ERROR after RUN_FINISHED", found), Some((run, *at)))
            }
            (Phase::Failed(Some(run), at), _) => {
                (violation(Rule::R4, "RUN_STARTED after RUN_ERROR", found), Some((run, *at)))
            }
            // No run began here at all, so this one cannot have.
            (Phase::Failed(None, _), Event::RunFinished(_)) => (violation(Rule::R3, "an active run", "none"), None),
            (Phase::Failed(None, _), _) => (violation(Rule::R4, "RUN_STARTED after RUN_ERROR", found), None),
            (Phase::Waiting | Phase::Active(_) | Phase::Rejected(_), _) => {
                (violation(Rule::R1, "RUN_STARTED or RUN_ERROR as the first event", found), None)
            }
        };
        let subject = match (event, ended) {
            (Event::RunFinished(finished), None) => {
                Some((Subject::new(SubjectKind::Run, finished.run_id.as_str()), History::NeverOpened))
            }
            (event, _) => self.items.subject(event),
        };
        match (ended, subject) {
            // The subject is the run that ended; that of the event is among the others.
            (Some((run, at)), subject) => {
                // Its history was forgotten with the run (R6).
                violation.others.extend(subject.map(|(subject, _)| (subject, History::None)));
                violation.about(run.subject(), History::Closed { at, owner: None }).into()
            }
            (None, Some((subject, history))) => violation.about(subject, history).into(),
            (None, None) => violation.into(),
        }
    }

    fn start(&mut self, event: &RunStartedEvent, place: Place) -> Result<(), Error> {
        if let Some(input) = &event.input {
            self.items.check_first(&input.messages).map_err(|full| full.at(place))?;
        }
        match &self.thread {
            None => self.thread = Some((event.thread_id.clone(), place.index)),
            Some((thread, _)) if *thread == event.thread_id => {}
            Some((thread, at)) => {
                let history = History::Known { at: *at, owner: None };
                let breach = Breach {
                    subject: Subject::new(SubjectKind::Thread, thread.as_str()),
                    history,
                    expected: format!("the thread of the first run, {}", quoted(thread.as_str())),
                    found: format!("thread {}", quoted(event.thread_id.as_str())),
                    path: "/threadId".to_owned(),
                };
                self.judge_id(breach, place)?;
            }
        }
        if let Some(message) = event.protocol_version.as_deref().and_then(judge_version) {
            self.warnings.add(Rule::R11, "/protocolVersion", message);
        }
        self.begin(event, place);
        Ok(())
    }

    /// Notes that messages from before the stream are held.
    pub(crate) fn expect_history(&mut self) {
        self.items.expect_others();
    }

    fn begin(&mut self, event: &RunStartedEvent, place: Place) {
        self.items.reset();
        if !matches!(self.phase, Phase::Waiting | Phase::Failed(None, _)) {
            // Messages of earlier runs persist (R6).
            self.items.expect_others();
        }
        if let Some(input) = &event.input {
            // Checked before, unless the event is forced.
            let _ = self.items.seed(&input.messages, Claim::IfUnclaimed, place.index);
        }
        self.phase =
            Phase::Active(Run { id: event.run_id.clone(), thread: event.thread_id.clone(), since: place.index });
    }

    fn finish_run(&mut self, run: Run, event: &RunFinishedEvent, place: Place) -> Result<(), Error> {
        if self.items.open_count() > 0 {
            let found = format!("{} still open", self.items.open_count());
            let mut violation = place.violation(Rule::R3, "nothing open", found).about(run.subject(), run.opened());
            violation.others = self.items.open();
            return Err(violation.into());
        }
        if event.thread_id != run.thread {
            let breach = Breach {
                subject: Subject::new(SubjectKind::Thread, run.thread.as_str()),
                history: History::Known { at: run.since, owner: None },
                expected: format!("the thread of its RUN_STARTED, {}", quoted(run.thread.as_str())),
                found: format!("thread {}", quoted(event.thread_id.as_str())),
                path: "/threadId".to_owned(),
            };
            self.judge_id(breach, place)?;
        }
        if event.run_id != run.id {
            let breach = Breach {
                subject: run.subject(),
                history: run.opened(),
                expected: format!("the run of its RUN_STARTED, {}", quoted(run.id.as_str())),
                found: format!("run {}", quoted(event.run_id.as_str())),
                path: "/runId".to_owned(),
            };
            self.judge_id(breach, place)?;
        }
        if let Some(RunFinishedOutcome::Interrupt(outcome)) = &event.outcome {
            let mut firsts: IdMap<&InterruptId, usize> = IdMap::default();
            for (at, interrupt) in outcome.interrupts.as_slice().iter().enumerate() {
                let first = *firsts.entry(&interrupt.id).or_insert(at);
                if first != at {
                    let breach = Breach {
                        subject: Subject::new(SubjectKind::Interrupt, interrupt.id.as_str()),
                        history: History::None,
                        expected: "an id of its own for each interrupt".to_owned(),
                        found: format!(
                            "interrupt {at} with the id {} of interrupt {first}",
                            quoted(interrupt.id.as_str())
                        ),
                        path: format!("/outcome/interrupts/{at}/id"),
                    };
                    self.judge_id(breach, place)?;
                }
            }
        }
        // No owner outlives its run (R6).
        self.items.reset();
        self.phase = Phase::Finished(run, place.index);
        Ok(())
    }

    /// Warns of or rejects an id that breaks [`Rule::R10`].
    fn judge_id(&mut self, breach: Breach, place: Place) -> Result<(), Error> {
        let Breach { subject, history, expected, found, path } = breach;
        match self.id_checks {
            IdChecks::Warn => {
                self.warnings.add(Rule::R10, path, format!("expected {expected}, found {found}"));
                Ok(())
            }
            IdChecks::Reject => Err(place.violation(Rule::R10, expected, found).about(subject, history).into()),
        }
    }
}

/// R2: runs on one stream follow each other.
#[cold]
fn nested(run: &Run, started: &RunStartedEvent, place: Place) -> Error {
    let found = format!("the start of run {}", quoted(started.run_id.as_str()));
    place.violation(Rule::R2, "the end of the active run", found).about(run.subject(), run.opened()).into()
}

/// A breach of rule R10, to be warned of or rejected.
struct Breach {
    subject: Subject,
    history: History,
    expected: String,
    found: String,
    path: String,
}

/// R11: the message about a version that is newer than ours or invalid.
fn judge_version(declared: &str) -> Option<String> {
    match version::compare(declared, PROTOCOL_VERSION) {
        Some(Ordering::Less | Ordering::Equal) => None,
        Some(Ordering::Greater) => {
            Some(format!("the producer speaks version {}, newer than {PROTOCOL_VERSION}", quoted(declared)))
        }
        None => Some(format!("cannot interpret the protocol version {}; ours is {PROTOCOL_VERSION}", quoted(declared))),
    }
}

fn quoted(text: &str) -> String {
    format!("{:?}", excerpt(text, 80))
}

/// The state of a verifier, for the log.
pub(super) struct State<'a>(&'a Verifier);

impl fmt::Display for State<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.phase {
            Phase::Waiting => f.write_str("waiting for a run"),
            Phase::Active(run) => write!(f, "{} active, {} open", run.subject(), self.0.items.open_count()),
            Phase::Finished(run, at) => write!(f, "{} finished at event {at}", run.subject()),
            Phase::Failed(Some(run), at) => write!(f, "{} failed at event {at}", run.subject()),
            Phase::Failed(None, at) => write!(f, "failed at event {at}"),
            Phase::Rejected(rejection) => write!(f, "rejected: {}", rejection.error),
        }
    }
}

impl fmt::Debug for State<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier")
            .field("id_checks", &self.id_checks)
            .field("events", &self.counter.next())
            .field("state", &self.state())
            .field("ready", &self.ready.len())
            .finish_non_exhaustive()
    }
}

impl Stage for Verifier {
    #[inline]
    fn feed(&mut self, event: Indexed, next: &mut impl Sink) -> Result<(), Error> {
        let place = self.counter.place(&event);
        self.saw(self.counter.next());
        let judged = self.judge(&event.event, place);
        if !self.warnings.is_empty() {
            let about = |note: Note| note.about(place.index, place.sent_as.as_str());
            self.warnings.take().into_iter().try_for_each(|note| next.warning(about(note)))?;
        }
        match judged {
            Ok(()) => next.event(event),
            Err(error) => Err(self.reject(error, Some((&event, place)))),
        }
    }

    fn feed_warning(&mut self, warning: Warning, next: &mut impl Sink) -> Result<(), Error> {
        if let Phase::Rejected(rejection) = &self.phase {
            return Err(rejection.error.clone());
        }
        self.saw(warning.event.saturating_add(1));
        next.warning(warning)
    }

    #[inline(always)]
    fn feed_text_content(&mut self, content: TextContent, place: Place, next: &mut impl Sink) -> Result<(), Error> {
        let Phase::Active(_) = self.phase else { return self.feed(place.gives(content.into_event()), next) };
        self.counter.count(Some(place.index));
        self.saw(self.counter.next());
        match self.items.extend_text(&content.message_id, content.owner.as_ref(), place) {
            Ok(()) => next.text_content(content, place),
            Err(error) => Err(self.reject(error, None)),
        }
    }

    fn feed_text_chunk(&mut self, chunk: TextChunk, place: Place, next: &mut impl Sink) -> Result<(), Error> {
        self.feed(place.gives(chunk.into_event()), next)
    }

    fn end(&mut self, _: &mut impl Sink) -> Result<(), Error> {
        let run_id = match &self.phase {
            Phase::Finished(..) | Phase::Failed(..) => return Ok(()),
            Phase::Rejected(rejection) => return Err(rejection.error.clone()),
            Phase::Active(run) => Some(run.id.as_str().to_owned()),
            Phase::Waiting => None,
        };
        let mut truncated = Truncated::new(self.seen, run_id, TruncatedBy::Close);
        truncated.open = self.open();
        Err(self.reject(truncated.into(), None))
    }

    fn queue(&mut self) -> &mut VecDeque<Item> {
        &mut self.ready
    }
}

impl<I: Into<Item>> Push<I> for Verifier {
    fn push(&mut self, input: I) -> Result<(), Error> {
        self.queue_item(input.into())
    }
}

queued_machine!(Verifier: Item, |stage| stage.queued(Self::end));
