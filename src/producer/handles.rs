//! The open items of a run, as values that close their item when they are dropped.
//!
//! A drop cannot wait for room, and does not know whether the run is about to fail. So a dropped value leaves
//! its END to the run, which writes it before any other event, or as soon as no other event is ready, or not
//! at all if the run fails first. So a call whose arguments broke off is not closed as if they were whole
//! (rule R5).

use core::fmt;
use core::mem::take;
use core::ops::Deref;

use serde_json::Value;
use smol_str::SmolStr;

use super::RunContext;
use crate::error::Error;
use crate::event::{
    Event, ReasoningEncryptedValueEvent, ReasoningEncryptedValueSubtype, ReasoningEndEvent, SubagentErrorEvent,
    SubagentFinishedEvent,
};
use crate::id::{MessageId, SubagentRunId, ToolCallId};
use crate::message::Content;

/// The events that close an item, in order.
struct Closing {
    run: RunContext,
    events: Vec<Event>,
}

impl Closing {
    fn new<const N: usize>(run: RunContext, events: [Event; N]) -> Self {
        Self { run, events: events.into() }
    }

    /// Writes the events one by one. If `end` is dropped before that is done, the rest is put off.
    async fn write(mut self) -> Result<(), Error> {
        while let Some(event) = self.events.first() {
            self.run.emit(event.clone()).await?;
            self.events.remove(0);
        }
        Ok(())
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        if !self.events.is_empty() {
            self.run.put_off(take(&mut self.events));
        }
    }
}

/// `Debug` for each kind of value, with the fields to show.
macro_rules! debug {
    ($($name:ident $id:ident;)*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).field(stringify!($id), &self.$id).finish_non_exhaustive()
            }
        }
    )*};
}

debug! {
    OpenText id;
    OpenReasoning id;
    OpenToolCall id;
    OpenStep name;
    OpenSubagent id;
}

/// An open text message: made by [`RunContext::open_text`].
///
/// If it is dropped, the message is closed soon after, unless the run fails first.
#[must_use = "it is closed when it is dropped"]
pub struct OpenText {
    id: MessageId,
    closing: Closing,
}

impl OpenText {
    pub(super) fn new(run: RunContext, id: MessageId) -> Self {
        let closing = Closing::new(run, [Event::text_end(id.clone())]);
        Self { id, closing }
    }

    /// The id of the message.
    #[must_use]
    pub fn id(&self) -> &MessageId {
        &self.id
    }

    /// Appends to the text.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn push(&mut self, delta: impl Into<SmolStr>) -> Result<(), Error> {
        self.closing.run.emit(Event::text_content(self.id.clone(), delta)).await
    }

    /// Closes the message.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn end(self) -> Result<MessageId, Error> {
        self.closing.write().await?;
        Ok(self.id)
    }
}

/// An open reasoning span with an open reasoning message in it: made by [`RunContext::open_reasoning`].
///
/// If it is dropped, both are closed soon after, unless the run fails first.
#[must_use = "it is closed when it is dropped"]
pub struct OpenReasoning {
    id: MessageId,
    closing: Closing,
}

impl OpenReasoning {
    pub(super) async fn new(run: RunContext, span: MessageId) -> Result<Self, Error> {
        let id = MessageId::from(run.fresh_id());
        let mut closing = Closing::new(run, [ReasoningEndEvent::new(span).into()]);
        closing.run.emit(Event::reasoning_message_start(id.clone())).await?;
        closing.events.insert(0, Event::reasoning_message_end(id.clone()));
        Ok(Self { id, closing })
    }

    /// The id of the message.
    #[must_use]
    pub fn id(&self) -> &MessageId {
        &self.id
    }

    /// Appends to the text.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn push(&mut self, delta: impl Into<SmolStr>) -> Result<(), Error> {
        self.closing.run.emit(Event::reasoning_message_content(self.id.clone(), delta)).await
    }

    /// Stores an opaque value with the message (rule A7), such as a signature that goes back to the model.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn encrypted_value(&mut self, value: impl AsRef<str>) -> Result<(), Error> {
        let subtype = ReasoningEncryptedValueSubtype::Message;
        self.closing.run.emit(ReasoningEncryptedValueEvent::new(subtype, self.id.clone(), value.as_ref())).await
    }

    /// Closes the message, then the span.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn end(self) -> Result<MessageId, Error> {
        self.closing.write().await?;
        Ok(self.id)
    }
}

/// An open tool call: made by [`RunContext::open_tool_call`].
///
/// If it is dropped, the call is closed soon after, unless the run fails first.
#[must_use = "it is closed when it is dropped"]
pub struct OpenToolCall {
    id: ToolCallId,
    closing: Closing,
}

impl OpenToolCall {
    pub(super) fn new(run: RunContext, id: ToolCallId) -> Self {
        let closing = Closing::new(run, [Event::tool_call_end(id.clone())]);
        Self { id, closing }
    }

    /// The id of the call.
    #[must_use]
    pub fn id(&self) -> &ToolCallId {
        &self.id
    }

    /// Appends to the arguments, which are JSON text when they are whole.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn push(&mut self, delta: impl Into<SmolStr>) -> Result<(), Error> {
        self.closing.run.emit(Event::tool_call_args(self.id.clone(), delta)).await
    }

    /// Closes the call: its arguments are whole.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn end(self) -> Result<ToolCallId, Error> {
        self.closing.write().await?;
        Ok(self.id)
    }

    /// Closes the call and writes its result.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn result(self, content: impl Into<Content>) -> Result<MessageId, Error> {
        let run = self.closing.run.clone();
        let id = self.end().await?;
        run.tool_result(&id, content).await
    }
}

/// An open step: made by [`RunContext::step`], and itself a [`RunContext`].
///
/// If it is dropped, the step is finished soon after, unless the run fails first.
#[must_use = "it is finished when it is dropped"]
pub struct OpenStep {
    name: String,
    closing: Closing,
}

impl OpenStep {
    pub(super) fn new(run: RunContext, name: &str) -> Self {
        Self { name: name.to_owned(), closing: Closing::new(run, [Event::step_finished(name)]) }
    }

    /// The name of the step.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Finishes the step.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn end(self) -> Result<(), Error> {
        self.closing.write().await
    }
}

impl Deref for OpenStep {
    type Target = RunContext;

    fn deref(&self) -> &RunContext {
        &self.closing.run
    }
}

/// An active invocation of a subagent: made by [`RunContext::subagent`], and itself a [`RunContext`] that
/// attributes its events to the subagent.
///
/// If it is dropped, the subagent is finished soon after, unless the run fails first.
#[must_use = "it is finished when it is dropped"]
pub struct OpenSubagent {
    id: SubagentRunId,
    closing: Closing,
}

impl OpenSubagent {
    pub(super) fn new(run: RunContext, id: SubagentRunId) -> Self {
        let closing = Closing::new(run, [SubagentFinishedEvent::new(id.clone()).into()]);
        Self { id, closing }
    }

    /// The id of the invocation.
    #[must_use]
    pub fn id(&self) -> &SubagentRunId {
        &self.id
    }

    /// Closes the items that the subagent left open, and finishes it.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn end(self) -> Result<(), Error> {
        let finished = SubagentFinishedEvent::new(self.id.clone());
        self.end_own(finished.into()).await
    }

    /// The same, with a result.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn end_with(self, result: impl Into<Value>) -> Result<(), Error> {
        let mut finished = SubagentFinishedEvent::new(self.id.clone());
        finished.result = Some(result.into()).filter(|result| !result.is_null());
        self.end_own(finished.into()).await
    }

    /// Closes the items that the subagent left open, and fails it; the run goes on.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn fail(self, message: impl AsRef<str>) -> Result<(), Error> {
        let failed = SubagentErrorEvent::new(self.id.clone(), message.as_ref());
        self.end_own(failed.into()).await
    }

    async fn end_own(self, end: Event) -> Result<(), Error> {
        let id = self.id.clone();
        self.end_as(end, |owner| owner == id.as_str()).await
    }

    /// Closes the open items of the owners for which `closes` is true, and writes this end.
    pub(crate) async fn end_as(mut self, end: Event, closes: impl Fn(&str) -> bool) -> Result<(), Error> {
        self.closing.run.write(|writer| writer.close_of(closes)).await?;
        self.closing.events = vec![end];
        self.closing.write().await
    }
}

impl Deref for OpenSubagent {
    type Target = RunContext;

    fn deref(&self) -> &RunContext {
        &self.closing.run
    }
}
