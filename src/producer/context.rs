//! What writes a run from within async code, and what it shares with the stream of the run.

use core::fmt;
use core::future::poll_fn;
use core::task::{Context, Poll, Waker};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::handles::{OpenReasoning, OpenStep, OpenSubagent, OpenText, OpenToolCall};
use super::writer::set_owner;
use super::{Failure, Finish, RunWriter};
use crate::error::{AgentError, Error, Malformed, Truncated, TruncatedBy};
use crate::event::{
    CustomEvent, Event, ReasoningStartEvent, StepStartedEvent, SubagentStartedEvent, TextMessageStartEvent,
    ToolCallStartEvent,
};
use crate::id::{MessageId, RunId, SubagentRunId, ToolCallId};
use crate::message::Content;
use crate::rule::Rule;
use crate::run_input::RunAgentInput;

/// How many events may wait to be read before who writes has to wait.
const CAPACITY: usize = 32;

/// Writes a run: what [`run`](super::run()) gives to a closure.
///
/// A clone writes to the same run, from another task too. What is opened is a value that closes it, by its
/// `end` or when it is dropped, so that nothing is written to what is closed; things open at once
/// interleave as they are written (rule S4).
///
/// # Errors
/// Each method gives those of [`RunWriter`], by rule id. Where nobody reads the run any more it is
/// [`Error::Truncated`] (R8). All of them turn into an [`AgentError`] by `?`.
///
/// # Cost and cancel safety
/// A method waits while 32 events are waiting to be read, and then writes: one that is dropped before it is
/// done has written nothing, or all of a single event.
#[derive(Clone)]
pub struct RunContext {
    shared: Arc<Shared>,
    owner: Option<SubagentRunId>,
}

impl RunContext {
    pub(super) fn new(input: RunAgentInput) -> (Self, Arc<Shared>) {
        let shared = Arc::new(Shared::new(input));
        (Self { shared: Arc::clone(&shared), owner: None }, shared)
    }

    /// The same run, as a subagent.
    pub(super) fn owned_by(&self, owner: SubagentRunId) -> Self {
        Self { shared: Arc::clone(&self.shared), owner: Some(owner) }
    }

    /// What the run was asked to do.
    #[must_use]
    pub fn input(&self) -> &RunAgentInput {
        &self.shared.input
    }

    /// The run.
    #[must_use]
    pub fn run_id(&self) -> &RunId {
        &self.shared.input.run_id
    }

    /// The subagent that what is written here is attributed to; none is the parent agent.
    #[must_use]
    pub fn subagent_run_id(&self) -> Option<&SubagentRunId> {
        self.owner.as_ref()
    }

    /// A text for an id of your own; see [`RunWriter::fresh_id`].
    #[must_use]
    pub fn fresh_id(&self) -> String {
        self.shared.lock().writer.fresh_id()
    }

    /// Writes an event, attributed to the subagent where it has no tag.
    ///
    /// # Errors
    /// [`RunWriter::emit`].
    pub async fn emit(&self, event: impl Into<Event>) -> Result<(), Error> {
        let mut event = event.into();
        set_owner(&mut event, self.owner.as_ref());
        self.write(|writer| writer.emit(event)).await
    }

    /// Opens a text message of the assistant.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn open_text(&self) -> Result<OpenText, Error> {
        self.open_text_as(TextMessageStartEvent::new(self.fresh_id())).await
    }

    /// Opens a text message with an id, a role or a name of your own.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn open_text_as(&self, start: TextMessageStartEvent) -> Result<OpenText, Error> {
        let id = start.message_id.clone();
        self.emit(start).await?;
        Ok(OpenText::new(self.clone(), id))
    }

    /// Says a text as a message of its own, and gives its id.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn text(&self, text: impl AsRef<str>) -> Result<MessageId, Error> {
        let mut message = self.open_text().await?;
        message.push(text.as_ref()).await?;
        message.end().await
    }

    /// Opens a reasoning span with a reasoning message in it.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn open_reasoning(&self) -> Result<OpenReasoning, Error> {
        let span = MessageId::from(self.fresh_id());
        self.emit(ReasoningStartEvent::new(span.clone())).await?;
        OpenReasoning::new(self.clone(), span).await
    }

    /// Reasons aloud: a span with one whole message, whose id it gives.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn reasoning(&self, text: impl AsRef<str>) -> Result<MessageId, Error> {
        let mut thought = self.open_reasoning().await?;
        thought.push(text.as_ref()).await?;
        thought.end().await
    }

    /// Opens a call of a tool, whose arguments follow as JSON text.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn open_tool_call(&self, name: impl AsRef<str>) -> Result<OpenToolCall, Error> {
        self.open_tool_call_as(ToolCallStartEvent::new(self.fresh_id(), name.as_ref())).await
    }

    /// Opens a call with an id of your own, or of a message that is there (rule A3).
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn open_tool_call_as(&self, start: ToolCallStartEvent) -> Result<OpenToolCall, Error> {
        let id = start.tool_call_id.clone();
        self.emit(start).await?;
        Ok(OpenToolCall::new(self.clone(), id))
    }

    /// Calls a tool with these arguments, and gives the id of the call.
    ///
    /// # Errors
    /// [`RunContext`], and [`Error::Malformed`] (E5) for arguments that JSON cannot hold.
    pub async fn tool_call(
        &self,
        name: impl AsRef<str>,
        arguments: &(impl Serialize + ?Sized),
    ) -> Result<ToolCallId, Error> {
        let arguments = serde_json::to_string(arguments)
            .map_err(|error| Malformed::new(Rule::E5, 0, "arguments that JSON can hold", error.to_string()))?;
        let mut call = self.open_tool_call(name).await?;
        call.push(arguments).await?;
        call.end().await
    }

    /// Says what a call gave back, and gives the id of that message. One that is still open is not closed
    /// by it.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn tool_result(&self, call: &ToolCallId, content: impl Into<Content>) -> Result<MessageId, Error> {
        let id = MessageId::from(self.fresh_id());
        self.emit(Event::tool_call_result(id.clone(), call.clone(), content)).await?;
        Ok(id)
    }

    /// Begins a step, which is finished by its `end`, or when it is dropped.
    ///
    /// # Errors
    /// [`RunContext`]: S8 for a step of this name that is open already.
    pub async fn step(&self, name: impl AsRef<str>) -> Result<OpenStep, Error> {
        self.emit(StepStartedEvent::new(name.as_ref())).await?;
        Ok(OpenStep::new(self.clone(), name.as_ref()))
    }

    /// Begins an invocation of a subagent. What is written through it is attributed to it.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn subagent(&self, name: impl AsRef<str>) -> Result<OpenSubagent, Error> {
        self.subagent_as(SubagentStartedEvent::new(self.fresh_id(), name.as_ref())).await
    }

    /// The same with an id of your own, a description, what spawned it. Where it does not say which
    /// subagent that was, it is this one.
    ///
    /// # Errors
    /// [`RunContext`]: O5 for an id that the run had before.
    pub async fn subagent_as(&self, mut start: SubagentStartedEvent) -> Result<OpenSubagent, Error> {
        let id = start.subagent_run_id.clone();
        start.parent_subagent_run_id = start.parent_subagent_run_id.or_else(|| self.owner.clone());
        self.emit(start).await?;
        Ok(OpenSubagent::new(self.owned_by(id.clone()), id))
    }

    /// Says what the state is now, by a snapshot or by what changed: [`RunWriter::state`].
    ///
    /// # Errors
    /// [`RunWriter::state`].
    pub async fn state(&self, state: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.write(|writer| writer.state_of(state, self.owner.as_ref())).await
    }

    /// Writes a CUSTOM event with this value.
    ///
    /// # Errors
    /// [`RunContext`], and [`Error::Malformed`] (E5) for a value that JSON cannot hold.
    pub async fn custom(&self, name: impl AsRef<str>, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        let value = serde_json::to_value(value)
            .map_err(|error| Malformed::new(Rule::E5, 0, "a value that JSON can hold", error.to_string()))?;
        self.emit(CustomEvent::new(name.as_ref(), value)).await
    }

    /// Waits for room, then writes.
    pub(super) async fn write<R>(&self, write: impl FnOnce(&mut RunWriter) -> Result<R, Error>) -> Result<R, Error> {
        poll_fn(|cx| self.shared.poll_room(cx)).await;
        let mut inner = self.shared.lock();
        if inner.is_unread {
            let run = self.run_id().as_str().to_owned();
            return Err(Truncated::new(0, Some(run), TruncatedBy::Close).into());
        }
        let written = write(&mut inner.writer);
        inner.wake_reader();
        written
    }

    /// Leaves it to the stream to write this, unless the run fails before.
    pub(super) fn put_off(&self, closing: impl IntoIterator<Item = Event>) {
        let mut inner = self.shared.lock();
        inner.writer.put_off(closing.into_iter().map(|mut event| {
            set_owner(&mut event, self.owner.as_ref());
            event
        }));
        inner.wake_reader();
    }
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext")
            .field("run_id", self.run_id())
            .field("subagent_run_id", &self.owner)
            .finish_non_exhaustive()
    }
}

/// What those who write and the one who reads have in common.
pub(super) struct Shared {
    input: RunAgentInput,
    inner: Mutex<Inner>,
}

struct Inner {
    writer: RunWriter,
    reader: Option<Waker>,
    waiting: Vec<Waker>,
    /// The stream is gone.
    is_unread: bool,
}

impl Inner {
    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    fn wake_writers(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

impl Shared {
    fn new(input: RunAgentInput) -> Self {
        let writer = RunWriter::new(&input);
        Self { input, inner: Mutex::new(Inner { writer, reader: None, waiting: Vec::new(), is_unread: false }) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing here leaves the writer half changed.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        if inner.is_unread || inner.writer.is_over() || inner.writer.ready() < CAPACITY {
            return Poll::Ready(());
        }
        if !inner.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            inner.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    pub(super) fn pop(&self) -> Option<Event> {
        let mut inner = self.lock();
        let event = inner.writer.pop();
        if inner.writer.ready() < CAPACITY {
            inner.wake_writers();
        }
        event
    }

    pub(super) fn ready(&self) -> usize {
        self.lock().writer.ready()
    }

    /// Closes what was put off. Where there is nothing to read then, the reader is woken once there is.
    pub(super) fn poll_ready(&self, cx: &Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        inner.writer.catch_up();
        if inner.writer.ready() > 0 {
            return Poll::Ready(());
        }
        inner.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ends the run, unless it has ended itself. What cannot be said of its end fails it.
    pub(super) fn end(&self, result: Result<Finish, AgentError>) {
        let mut inner = self.lock();
        if !inner.writer.is_over() {
            let failure = match result {
                Ok(finish) => inner.writer.finish(finish).err().map(|error| Failure::new(error.to_string())),
                Err(error) => {
                    crate::log::run_failed(Some(self.input.run_id.as_str()), &error);
                    Some(error.into())
                }
            };
            // A failure without an open value is legal in every active run.
            let _ = failure.map(|failure| inner.writer.fail(failure));
        }
        inner.wake_writers();
    }

    pub(super) fn leave(&self) {
        let mut inner = self.lock();
        inner.is_unread = true;
        inner.wake_writers();
    }
}
