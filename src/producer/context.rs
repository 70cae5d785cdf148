//! `RunContext`: writes a run from async code, over a queue that the stream of the run reads.

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

/// How many events may wait to be read before a writer has to wait.
const CAPACITY: usize = 32;

/// Writes a run: [`run`](super::run()) gives one to its closure.
///
/// A clone writes to the same run, from another task too. Each open item is a value that closes it, by its
/// `end` or when it is dropped, so that nothing is written to a closed item. The events of items that are open
/// at the same time interleave in the order in which they are written (rule S4).
///
/// # Errors
/// Each method gives the errors of [`RunWriter`], by rule id. If the stream of the run was dropped, the error
/// is [`Error::Truncated`] (R8). `?` turns all of them into an [`AgentError`].
///
/// # Cost and cancel safety
/// A method waits while 32 events are waiting to be read, and then writes. If it is dropped before it is done,
/// it has written nothing, or some of its events, each one whole.
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

    /// The same run, written by this subagent.
    pub(super) fn owned_by(&self, owner: SubagentRunId) -> Self {
        Self { shared: Arc::clone(&self.shared), owner: Some(owner) }
    }

    /// The input of the run.
    #[must_use]
    pub fn input(&self) -> &RunAgentInput {
        &self.shared.input
    }

    /// The id of the run.
    #[must_use]
    pub fn run_id(&self) -> &RunId {
        &self.shared.input.run_id
    }

    /// The subagent to which this context attributes events; `None` is the parent agent.
    #[must_use]
    pub fn subagent_run_id(&self) -> Option<&SubagentRunId> {
        self.owner.as_ref()
    }

    /// A new id; see [`RunWriter::fresh_id`].
    #[must_use]
    pub fn fresh_id(&self) -> String {
        self.shared.lock().writer.fresh_id()
    }

    /// Writes an event. If it has no tag, it is attributed to the subagent of this context.
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

    /// Writes a whole text message, and gives its id.
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

    /// Writes a reasoning span with one whole message, and gives the id of the message.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn reasoning(&self, text: impl AsRef<str>) -> Result<MessageId, Error> {
        let mut thought = self.open_reasoning().await?;
        thought.push(text.as_ref()).await?;
        thought.end().await
    }

    /// Opens a tool call, whose arguments follow as JSON text.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn open_tool_call(&self, name: impl AsRef<str>) -> Result<OpenToolCall, Error> {
        self.open_tool_call_as(ToolCallStartEvent::new(self.fresh_id(), name.as_ref())).await
    }

    /// Opens a call with an id of your own, or in a message that exists already (rule A3).
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn open_tool_call_as(&self, start: ToolCallStartEvent) -> Result<OpenToolCall, Error> {
        let id = start.tool_call_id.clone();
        self.emit(start).await?;
        Ok(OpenToolCall::new(self.clone(), id))
    }

    /// Writes a whole call of a tool with these arguments, and gives its id.
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

    /// Writes the result of a call, and gives the id of its message. A call that is still open stays open.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn tool_result(&self, call: &ToolCallId, content: impl Into<Content>) -> Result<MessageId, Error> {
        let id = MessageId::from(self.fresh_id());
        self.emit(Event::tool_call_result(id.clone(), call.clone(), content)).await?;
        Ok(id)
    }

    /// Begins a step, which is finished by `end` or when the value is dropped.
    ///
    /// # Errors
    /// [`RunContext`]: S8 if a step of this name is open already.
    pub async fn step(&self, name: impl AsRef<str>) -> Result<OpenStep, Error> {
        self.emit(StepStartedEvent::new(name.as_ref())).await?;
        Ok(OpenStep::new(self.clone(), name.as_ref()))
    }

    /// Begins an invocation of a subagent. Events written through the value are attributed to it.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn subagent(&self, name: impl AsRef<str>) -> Result<OpenSubagent, Error> {
        self.subagent_as(SubagentStartedEvent::new(self.fresh_id(), name.as_ref())).await
    }

    /// The same with an id of your own, a description, or the call that spawned it. If it names no parent, its
    /// parent is the subagent of this context.
    ///
    /// # Errors
    /// [`RunContext`]: O5 if the run had this id before.
    pub async fn subagent_as(&self, mut start: SubagentStartedEvent) -> Result<OpenSubagent, Error> {
        let id = start.subagent_run_id.clone();
        start.parent_subagent_run_id = start.parent_subagent_run_id.or_else(|| self.owner.clone());
        self.emit(start).await?;
        Ok(OpenSubagent::new(self.owned_by(id.clone()), id))
    }

    /// Writes the state as it is now, as a snapshot or as a patch: [`RunWriter::state`].
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

    /// Puts events off: the stream writes them, unless the run fails before that.
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

/// The part that the writers of a run share with its stream.
pub(super) struct Shared {
    input: RunAgentInput,
    inner: Mutex<Inner>,
}

struct Inner {
    writer: RunWriter,
    reader: Option<Waker>,
    waiting: Vec<Waker>,
    /// Whether the stream was dropped.
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

    /// Writes the events that were put off. If there is nothing to read after that, the reader is woken when
    /// there is.
    pub(super) fn poll_ready(&self, cx: &Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        inner.writer.catch_up();
        if inner.writer.ready() > 0 {
            return Poll::Ready(());
        }
        inner.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ends the run, unless it has ended already. If its end is refused, the run fails.
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
