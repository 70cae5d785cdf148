//! What a run has open, as values that close it.
//!
//! A value that is dropped cannot wait for room, and does not know whether its run is about to fail. So
//! it leaves its end to the run: that is written before anything else is, or as soon as nothing else is
//! ready, or never where the run fails first. A call whose arguments broke off is then not closed as if
//! they were whole (rule R5).

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

/// The events that close something, in their order.
struct Closing {
    run: RunContext,
    events: Vec<Event>,
}

impl Closing {
    fn new<const N: usize>(run: RunContext, events: [Event; N]) -> Self {
        Self { run, events: events.into() }
    }

    /// Writes them one by one: what a dropped `end` has not written is put off.
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

/// For each: its name, and what of it to show.
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

/// A text message that is open: made by [`RunContext::open_text`].
///
/// Dropped, it is closed soon after, unless the run fails first.
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

    /// The message.
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

/// A reasoning span that is open, with a reasoning message open in it: made by
/// [`RunContext::open_reasoning`].
///
/// Dropped, both are closed soon after, unless the run fails first.
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

    /// The message.
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

/// A tool call that is open: made by [`RunContext::open_tool_call`].
///
/// Dropped, it is closed soon after, unless the run fails first.
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

    /// The call.
    #[must_use]
    pub fn id(&self) -> &ToolCallId {
        &self.id
    }

    /// Appends to the arguments, which are JSON text once they are whole.
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

    /// Closes the call and says what it gave back.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn result(self, content: impl Into<Content>) -> Result<MessageId, Error> {
        let run = self.closing.run.clone();
        let id = self.end().await?;
        run.tool_result(&id, content).await
    }
}

/// A step that has begun: made by [`RunContext::step`], and itself a [`RunContext`].
///
/// Dropped, it is finished soon after, unless the run fails first.
#[must_use = "it is finished when it is dropped"]
pub struct OpenStep {
    name: String,
    closing: Closing,
}

impl OpenStep {
    pub(super) fn new(run: RunContext, name: &str) -> Self {
        Self { name: name.to_owned(), closing: Closing::new(run, [Event::step_finished(name)]) }
    }

    /// Its name.
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

/// An invocation of a subagent that is active: made by [`RunContext::subagent`], and itself a
/// [`RunContext`] that attributes to it what is written.
///
/// Dropped, it is finished soon after, unless the run fails first.
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

    /// The invocation.
    #[must_use]
    pub fn id(&self) -> &SubagentRunId {
        &self.id
    }

    /// Closes what it left open and finishes it.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn end(self) -> Result<(), Error> {
        let finished = SubagentFinishedEvent::new(self.id.clone());
        self.end_own(finished.into()).await
    }

    /// The same, with what it gave back.
    ///
    /// # Errors
    /// [`RunContext`].
    pub async fn end_with(self, result: impl Into<Value>) -> Result<(), Error> {
        let mut finished = SubagentFinishedEvent::new(self.id.clone());
        finished.result = Some(result.into()).filter(|result| !result.is_null());
        self.end_own(finished.into()).await
    }

    /// Closes what it left open and fails it; the run goes on.
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

    /// Closes what those that this is true for left open, and writes this end.
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
