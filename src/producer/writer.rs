//! `RunWriter`: writes one run, event by event, without async.

use core::fmt;

use serde::Serialize;
use serde_json::Value;

use super::{Failure, Finish};
use crate::error::{Error, History, Malformed, Subject, SubjectKind, Violation};
use crate::event::{
    Event, EventType, JsonPatch, ReasoningEndEvent, RunFinishedEvent, RunFinishedOutcome, RunStartedEvent,
    SubagentFinishedEvent, SubagentSuspendedOutcome,
};
use crate::id::{RunId, SubagentRunId, ThreadId};
use crate::item::Item;
use crate::machine::{Enforcer, Machine, Push, Verifier};
use crate::rule::Rule;
use crate::run_input::RunAgentInput;
use crate::shared::Document;
use crate::version::PROTOCOL_VERSION;

/// Writes one run: events in, the same events out if they are legal.
///
/// A new writer has written RUN_STARTED already. [`emit`](RunWriter::emit) takes any other event that is legal
/// now, [`state`](RunWriter::state) writes what changed since its last call, and [`finish`](RunWriter::finish)
/// or [`fail`](RunWriter::fail) ends the run. Written events wait until they are [popped](RunWriter::pop).
///
/// # Errors
/// An event that breaks a rule is refused with that rule's error, [`Error::Violation`] (R2 to R4, C1,
/// S2, S8, O2 to O6, R10) or [`Error::Malformed`] (E5), and one that is nested too deep with
/// [`Error::LimitExceeded`]. A refused event changes nothing, and the run goes on.
///
/// # Cost
/// To check a delta allocates nothing. The writer holds an entry for each id that the run named, the last
/// state, and the events that were not popped yet.
///
/// # Examples
/// ```
/// use ag_ui_stream::producer::RunWriter;
/// use ag_ui_stream::{Event, Rule, RunAgentInput};
///
/// let mut run = RunWriter::new(&RunAgentInput::new("thread", "run", []));
/// run.emit(Event::text_start("m"))?;
/// run.emit(Event::text_content("m", "Hello"))?;
///
/// let refused = run.emit(Event::text_content("other", "Hello")).unwrap_err();
/// assert_eq!(refused.rule(), Some(Rule::S2));
///
/// run.finish(())?;
/// let types: Vec<_> = std::iter::from_fn(|| run.pop()).map(|event| event.event_type().as_str()).collect();
/// let message = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"];
/// assert_eq!(types[0], "RUN_STARTED");
/// assert_eq!(types[1..4], message);
/// assert_eq!(types[4], "RUN_FINISHED");
/// # Ok::<(), ag_ui_stream::Error>(())
/// ```
pub struct RunWriter {
    enforcer: Enforcer,
    verifier: Verifier,
    thread_id: ThreadId,
    run_id: RunId,
    next_id: u64,
    /// The state that the consumer has, if `state` wrote it.
    state: Option<Value>,
    /// The events to write before any other event, unless the run fails.
    put_off: Vec<Event>,
}

impl RunWriter {
    /// Begins a run with the ids of the input, and with the protocol version of this crate.
    #[must_use]
    pub fn new(input: &RunAgentInput) -> Self {
        let mut verifier = Verifier::new();
        if !input.messages.is_empty() {
            verifier.expect_history();
        }
        let mut writer = Self {
            enforcer: Enforcer::new(),
            verifier,
            thread_id: input.thread_id.clone(),
            run_id: input.run_id.clone(),
            next_id: 1 + last_number(input),
            state: None,
            put_off: Vec::new(),
        };
        let mut started = RunStartedEvent::new(input.thread_id.clone(), input.run_id.clone());
        started.protocol_version = Some(PROTOCOL_VERSION.into());
        started.parent_run_id.clone_from(&input.parent_run_id);
        let begun = writer.write(started.into());
        debug_assert!(begun.is_ok(), "the first event of a run is legal");
        writer
    }

    /// The id of the thread.
    #[must_use]
    pub fn thread_id(&self) -> &ThreadId {
        &self.thread_id
    }

    /// The id of the run.
    #[must_use]
    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// A new id for a message, a call or a subagent: the id of the run with a number, which is higher with
    /// each call, and higher than any in the messages of the input.
    #[must_use]
    pub fn fresh_id(&mut self) -> String {
        let id = format!("{}-{}", self.run_id, self.next_id);
        self.next_id = self.next_id.saturating_add(1);
        id
    }

    /// Writes an event. A RUN_FINISHED or RUN_ERROR ends the run; a RUN_FINISHED gets the ids of this run.
    ///
    /// # Errors
    /// Those of [`RunWriter`]. A RUN_STARTED is always refused (R2), and a chunk too (C1): write START, CONTENT
    /// and END instead.
    pub fn emit(&mut self, event: impl Into<Event>) -> Result<(), Error> {
        match event.into() {
            Event::RunStarted(_) => Err(self.refused(
                Rule::R2,
                EventType::RunStarted,
                "the events of one run",
                "the start of another".into(),
            )),
            Event::RunFinished(finished) => self.end(*finished),
            Event::RunError(error) => self.fail(Failure(*error)),
            event => {
                self.catch_up();
                self.write_tracked(event)
            }
        }
    }

    /// Writes the state as it is now: a STATE_SNAPSHOT the first time, nothing if the state did not change, else
    /// a STATE_DELTA, or a STATE_SNAPSHOT if that is shorter (rule A6).
    ///
    /// # Errors
    /// [`Error::Malformed`] (E5) for a value that JSON cannot hold; [`Error::LimitExceeded`];
    /// [`Error::Violation`] (R4) if the run is over.
    ///
    /// # Cost
    /// The length of the value as JSON, for it is compared with the one before.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::RunAgentInput;
    /// use ag_ui_stream::producer::RunWriter;
    /// use serde_json::json;
    ///
    /// let mut run = RunWriter::new(&RunAgentInput::new("thread", "run", []));
    /// run.state(&json!({"task": "Pick twelve ripe apples from the tree", "picked": 11}))?;
    /// run.state(&json!({"task": "Pick twelve ripe apples from the tree", "picked": 12}))?;
    /// run.state(&json!({"task": "Pick twelve ripe apples from the tree", "picked": 12}))?;
    /// let events: Vec<_> = std::iter::from_fn(|| run.pop()).skip(1).map(|event| json!(event)).collect();
    /// assert_eq!(events.len(), 2);
    /// assert_eq!(events[0]["type"], "STATE_SNAPSHOT");
    /// assert_eq!(events[1]["delta"], json!([{"op": "replace", "path": "/picked", "value": 12}]));
    /// # Ok::<(), ag_ui_stream::Error>(())
    /// ```
    pub fn state(&mut self, state: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.state_of(state, None)
    }

    /// The same, sent by a subagent (rule O8).
    pub(super) fn state_of(
        &mut self,
        state: &(impl Serialize + ?Sized),
        owner: Option<&SubagentRunId>,
    ) -> Result<(), Error> {
        self.catch_up();
        let state = serde_json::to_value(state).map_err(|error| {
            Malformed::new(Rule::E5, self.enforcer.event_count(), "a state that JSON can hold", error.to_string())
        })?;
        let mut event = match &self.state {
            None => Event::state_snapshot(Document::from(&state)),
            Some(held) if *held == state => return Ok(()),
            Some(held) => {
                let patch = JsonPatch::from_operations(json_patch::diff(held, &state).0);
                if json_len(&patch) < json_len(&state) {
                    Event::state_delta(patch)
                } else {
                    Event::state_snapshot(Document::from(&state))
                }
            }
        };
        set_owner(&mut event, owner);
        self.write(event)?;
        self.state = Some(state);
        Ok(())
    }

    /// The open items, in the order in which they were opened. Costs a pass over all ids that the run named.
    #[must_use]
    pub fn open(&self) -> Vec<(Subject, History)> {
        self.verifier.open()
    }

    /// Whether the run has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.verifier.active_run().is_none()
    }

    /// Ends the run. Open items are closed before that, the last opened first (rule R3). If the run waits for
    /// answers, its subagents are suspended instead of finished.
    ///
    /// # Errors
    /// [`Error::Violation`] if the run is over (R4), or if two interrupts have one id (R10);
    /// [`Error::LimitExceeded`] for a result that is nested too deep.
    pub fn finish(&mut self, finish: impl Into<Finish>) -> Result<(), Error> {
        let Finish { outcome, result, usage } = finish.into();
        let mut finished = RunFinishedEvent::new(self.thread_id.clone(), self.run_id.clone());
        finished.result = result.filter(|result| !result.is_null());
        finished.outcome = outcome;
        finished.usage = usage;
        self.catch_up();
        self.check_interrupts(&finished)?;
        for (subject, history) in self.open().into_iter().rev() {
            if let Some(event) = closing(&subject, &history, finished.outcome.as_ref()) {
                self.write(event)?;
            }
        }
        self.write(finished.into())
    }

    /// Fails the run. Open items are abandoned (rule R5). A run may fail after it has finished.
    ///
    /// # Errors
    /// [`Error::Violation`] (R4) if it has failed already.
    pub fn fail(&mut self, failure: Failure) -> Result<(), Error> {
        self.put_off.clear();
        self.write(failure.0.into())
    }

    /// Takes the next event that is ready.
    pub fn pop(&mut self) -> Option<Event> {
        loop {
            if let Item::Event(indexed) = self.verifier.pop()? {
                return Some(indexed.event);
            }
        }
    }

    /// How many events are ready.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.verifier.ready()
    }

    /// Puts events off: they are written before the next event, or by `catch_up`.
    #[cfg(feature = "stream")]
    pub(super) fn put_off(&mut self, closing: impl IntoIterator<Item = Event>) {
        self.put_off.extend(closing);
    }

    /// Writes the events that were put off.
    pub(super) fn catch_up(&mut self) {
        for event in core::mem::take(&mut self.put_off) {
            // An error means that it is closed already, or that the run is over.
            let _ = self.write(event);
        }
    }

    /// Closes the open items of these subagents, the last opened first.
    #[cfg(feature = "stream")]
    pub(super) fn close_of(&mut self, is_owner: impl Fn(&str) -> bool) -> Result<(), Error> {
        self.catch_up();
        for (subject, history) in self.open().into_iter().rev() {
            let is_theirs = match (&history, subject.kind) {
                (History::Open { owner: Some(owner), .. }, _) => is_owner(owner),
                _ => false,
            };
            if let Some(event) = closing(&subject, &history, None).filter(|_| is_theirs) {
                self.write(event)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, mut finished: RunFinishedEvent) -> Result<(), Error> {
        self.catch_up();
        finished.thread_id.clone_from(&self.thread_id);
        finished.run_id.clone_from(&self.run_id);
        self.check_interrupts(&finished)?;
        let open = self.open();
        if !open.is_empty() {
            let found = format!("{} still open", open.len());
            let mut violation =
                Violation::new(Rule::R3, self.enforcer.event_count(), EventType::RunFinished, "nothing open", found);
            violation.others = open;
            return Err(violation.into());
        }
        self.write(finished.into())
    }

    /// Rule R10, checked before the verifier, which would end the run in spite of its error.
    fn check_interrupts(&self, finished: &RunFinishedEvent) -> Result<(), Error> {
        let Some(RunFinishedOutcome::Interrupt(outcome)) = &finished.outcome else { return Ok(()) };
        let mut ids: Vec<_> = outcome.interrupts.as_slice().iter().map(|interrupt| interrupt.id.as_str()).collect();
        ids.sort_unstable();
        let is_twice = ids.windows(2).any(|pair| matches!(pair, [one, other] if one == other));
        if !is_twice {
            return Ok(());
        }
        let expected = "an id of its own for each interrupt";
        Err(self.refused(Rule::R10, EventType::RunFinished, expected, "two that share one".into()))
    }

    fn refused(&self, rule: Rule, event_type: EventType, expected: &'static str, found: String) -> Error {
        Violation::new(rule, self.enforcer.event_count(), event_type, expected, found).into()
    }

    /// Writes an event, and notes a state that was written by `emit` instead of `state`.
    fn write_tracked(&mut self, event: Event) -> Result<(), Error> {
        match &event {
            Event::StateSnapshot(snapshot) => {
                let state = snapshot.snapshot.to_value();
                self.write(event)?;
                self.state = Some(state);
            }
            Event::StateDelta(_) => {
                self.write(event)?;
                self.state = None;
            }
            _ => self.write(event)?,
        }
        Ok(())
    }

    fn write(&mut self, event: Event) -> Result<(), Error> {
        self.enforcer.push(event)?;
        while let Some(item) = self.enforcer.pop() {
            if let Err(error) = self.verifier.push(item) {
                // The event then changes nothing: it is none of those that `recover` applies in spite of their error.
                self.verifier.recover();
                return Err(error);
            }
        }
        Ok(())
    }
}

impl fmt::Debug for RunWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunWriter").field("verifier", &self.verifier).finish_non_exhaustive()
    }
}

/// The highest number in an id that an earlier attempt at this run made, or 0.
fn last_number(input: &RunAgentInput) -> u64 {
    let number = |id: &str| id.strip_prefix(input.run_id.as_str())?.strip_prefix('-')?.parse::<u64>().ok();
    let ids = input.messages.iter().flat_map(|message| {
        let calls = message.tool_calls().filter_map(|call| number(call.id.as_str()));
        number(message.id().as_str()).into_iter().chain(calls)
    });
    ids.max().unwrap_or(0)
}

/// The length of a value as JSON.
fn json_len(value: &impl Serialize) -> usize {
    struct Count(usize);

    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

/// Tags an event that has no tag yet.
pub(super) fn set_owner(event: &mut Event, owner: Option<&SubagentRunId>) {
    if let (Some(tag @ None), Some(owner)) = (event.tag_mut(), owner) {
        *tag = Some(owner.clone());
    }
}

/// The event that closes an open item when the run ends with this outcome.
fn closing(subject: &Subject, history: &History, outcome: Option<&RunFinishedOutcome>) -> Option<Event> {
    let id = subject.id.as_str();
    let mut event = match subject.kind {
        SubjectKind::TextMessage => Event::text_end(id),
        SubjectKind::ToolCall => Event::tool_call_end(id),
        SubjectKind::ReasoningMessage => Event::reasoning_message_end(id),
        SubjectKind::ReasoningSpan => ReasoningEndEvent::new(id).into(),
        SubjectKind::Step => Event::step_finished(id),
        SubjectKind::Subagent => {
            let mut finished = SubagentFinishedEvent::new(id);
            if let Some(RunFinishedOutcome::Interrupt(outcome)) = outcome {
                let interrupts = outcome.interrupts.as_slice().iter();
                let own: Vec<_> = interrupts
                    .filter(|interrupt| interrupt.subagent_run_id.as_ref().is_some_and(|owner| owner == id))
                    .map(|interrupt| interrupt.id.clone())
                    .collect();
                let mut suspended = SubagentSuspendedOutcome::new();
                suspended.interrupt_ids = Some(own).filter(|own| !own.is_empty());
                finished.outcome = Some(suspended.into());
            }
            finished.into()
        }
        _ => return None,
    };
    if let History::Open { owner: Some(owner), .. } = history {
        set_owner(&mut event, Some(&SubagentRunId::from(owner)));
    }
    Some(event)
}
