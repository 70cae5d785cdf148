//! `Delta` and `from_deltas`: a run made from the pieces that a model streams.

use core::convert::Infallible;
use core::pin::pin;
use std::collections::HashMap;
use std::sync::Arc;

use futures::stream::{Stream, StreamExt};
use serde_json::Value;
use smol_str::SmolStr;

use super::handles::{OpenReasoning, OpenText, OpenToolCall};
use super::produced::{ProducedRun, run};
use super::{Finish, RunContext};
use crate::error::{AgentError, BoxError};
use crate::event::{Event, ToolCallStartEvent};
use crate::id::{MessageId, ToolCallId};
use crate::message::Content;
use crate::run_input::RunAgentInput;

/// A piece of what a model streams. [`RunContext::relay`] turns it into events.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Delta {
    /// Text of the answer.
    Text(SmolStr),
    /// Text of the reasoning.
    Reasoning(SmolStr),
    /// A piece of a tool call.
    ToolCall {
        /// The call.
        id: ToolCallId,
        /// The tool; needed with the first piece of a call.
        name: Option<Arc<str>>,
        /// The next piece of the arguments.
        arguments: SmolStr,
    },
    /// The result of a call.
    ToolResult {
        /// The call.
        id: ToolCallId,
        /// The result.
        content: Content,
    },
    /// The state as it is now.
    State(Value),
    /// Any other event.
    Event(Event),
    /// The end, and how the run ended. Nothing after it is read.
    Finish(Finish),
}

impl Delta {
    /// Text of the answer.
    pub fn text(delta: impl Into<SmolStr>) -> Self {
        Delta::Text(delta.into())
    }

    /// Text of the reasoning.
    pub fn reasoning(delta: impl Into<SmolStr>) -> Self {
        Delta::Reasoning(delta.into())
    }

    /// The first piece of a tool call.
    pub fn tool_call(id: impl Into<ToolCallId>, name: impl AsRef<str>, arguments: impl Into<SmolStr>) -> Self {
        Delta::ToolCall { id: id.into(), name: Some(name.as_ref().into()), arguments: arguments.into() }
    }

    /// A further piece of a tool call.
    pub fn arguments(id: impl Into<ToolCallId>, arguments: impl Into<SmolStr>) -> Self {
        Delta::ToolCall { id: id.into(), name: None, arguments: arguments.into() }
    }

    /// The result of a call.
    pub fn tool_result(id: impl Into<ToolCallId>, content: impl Into<Content>) -> Self {
        Delta::ToolResult { id: id.into(), content: content.into() }
    }
}

impl From<&str> for Delta {
    fn from(text: &str) -> Self {
        Delta::text(text)
    }
}

impl From<String> for Delta {
    fn from(text: String) -> Self {
        Delta::text(text)
    }
}

impl From<Event> for Delta {
    fn from(event: Event) -> Self {
        Delta::Event(event)
    }
}

impl From<Finish> for Delta {
    fn from(finish: Finish) -> Self {
        Delta::Finish(finish)
    }
}

/// The items of a stream of deltas: a [`Delta`], anything that converts into one, such as text, or a
/// [`Result`] of either with any error.
pub trait DeltaInput {
    /// The error of the source.
    type Error;

    /// The delta, or the error that ended the source.
    ///
    /// # Errors
    /// The error of the source.
    fn into_result(self) -> Result<Delta, Self::Error>;
}

impl<D: Into<Delta>> DeltaInput for D {
    type Error = Infallible;

    fn into_result(self) -> Result<Delta, Infallible> {
        Ok(self.into())
    }
}

impl<D: Into<Delta>, E> DeltaInput for Result<D, E> {
    type Error = E;

    fn into_result(self) -> Result<Delta, E> {
        self.map(Into::into)
    }
}

/// A run made from a stream of deltas: [`run`] with only [`RunContext::relay`] in it.
///
/// # Examples
/// ```
/// use ag_ui_stream::producer::{self, Delta};
/// use ag_ui_stream::{EventStreamExt, RunAgentInput};
/// use futures::{TryStreamExt, stream};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ag_ui_stream::Error> {
/// let model = stream::iter([
///     Ok(Delta::reasoning("A greeting.")),
///     Ok(Delta::text("Hel")),
///     Ok(Delta::text("lo")),
///     Err("connection reset"),
/// ]);
/// let updates: Vec<_> =
///     producer::from_deltas(RunAgentInput::new("thread", "run", []), model).updates().try_collect().await?;
/// let snapshot = updates.last().unwrap().snapshot();
/// assert_eq!(snapshot.run().unwrap().outcome.as_str(), "error");
/// assert_eq!(snapshot.messages().iter().last().unwrap().text().unwrap(), "Hello");
/// # Ok(())
/// # }
/// ```
pub fn from_deltas<S>(input: RunAgentInput, deltas: S) -> ProducedRun
where
    S: Stream<Item: DeltaInput<Error: Into<BoxError>>> + Send + 'static,
{
    run(input, |run| async move { run.relay(deltas).await })
}

impl RunContext {
    /// Writes what a model streams, and gives how it ended, so that the run can end in the same way.
    ///
    /// Text makes a message, reasoning makes a span, and each piece of a call extends that call. A delta of
    /// another kind closes what was open. Several calls stay open at once: their pieces may alternate. A piece
    /// of a closed call opens it again (rule S5). A call belongs to the message of the text before it, if no
    /// result came between.
    ///
    /// The end of the source is a success, for some sources have no other sign of it. If your source says when
    /// it is done, map that to [`Delta::Finish`], and an end without it to an error.
    ///
    /// # Errors
    /// The error of the source; those of [`RunContext`]; a first piece of a call without a name. Open items
    /// are then abandoned if the run fails, and closed if it goes on.
    pub async fn relay<S>(&self, deltas: S) -> Result<Finish, AgentError>
    where
        S: Stream<Item: DeltaInput<Error: Into<BoxError>>> + Send,
    {
        let mut deltas = pin!(deltas.map(|delta| delta.into_result().map_err(AgentError::new)));
        let mut relay = Relay::new(self.clone());
        while let Some(delta) = deltas.next().await {
            if let Some(finish) = relay.push(delta?).await? {
                relay.close(None).await?;
                return Ok(finish);
            }
        }
        relay.close(None).await?;
        Ok(Finish::new())
    }
}

/// The kinds of items of which only one kind is open at a time.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Reasoning,
    ToolCalls,
}

/// The open items of a stream of deltas.
struct Relay {
    run: RunContext,
    text: Option<OpenText>,
    reasoning: Option<OpenReasoning>,
    calls: Vec<OpenToolCall>,
    /// The tools of all calls so far.
    names: HashMap<String, Arc<str>>,
    /// The message that calls belong to.
    parent: Option<MessageId>,
}

impl Relay {
    fn new(run: RunContext) -> Self {
        Self { run, text: None, reasoning: None, calls: Vec::new(), names: HashMap::new(), parent: None }
    }

    async fn push(&mut self, delta: Delta) -> Result<Option<Finish>, AgentError> {
        match delta {
            Delta::Text(delta) => {
                self.close(Some(Kind::Text)).await?;
                let message = match &mut self.text {
                    Some(message) => message,
                    none => none.insert(self.run.open_text().await?),
                };
                self.parent.get_or_insert_with(|| message.id().clone());
                message.push(delta).await?;
            }
            Delta::Reasoning(delta) => {
                self.close(Some(Kind::Reasoning)).await?;
                let message = match &mut self.reasoning {
                    Some(message) => message,
                    none => none.insert(self.run.open_reasoning().await?),
                };
                message.push(delta).await?;
            }
            Delta::ToolCall { id, name, arguments } => {
                self.close(Some(Kind::ToolCalls)).await?;
                let call = self.call(id, name).await?;
                // Many models send the name of the tool alone in the first piece.
                if !arguments.is_empty() {
                    call.push(arguments).await?;
                }
            }
            Delta::ToolResult { id, content } => {
                self.close(None).await?;
                self.parent = None;
                self.run.tool_result(&id, content).await?;
            }
            Delta::State(state) => self.run.state(&state).await?,
            Delta::Event(event) => self.run.emit(event).await?,
            Delta::Finish(finish) => return Ok(Some(finish)),
        }
        Ok(None)
    }

    /// The call, which is opened if it is not open.
    async fn call(&mut self, id: ToolCallId, name: Option<Arc<str>>) -> Result<&mut OpenToolCall, AgentError> {
        let open = self.calls.iter().position(|call| *call.id() == id);
        let at = match open {
            Some(at) => at,
            None => {
                let name = name.or_else(|| self.names.get(id.as_str()).cloned());
                let name = name.ok_or_else(|| format!("the first piece of call {:?} names no tool", id.as_str()))?;
                self.names.insert(id.as_str().to_owned(), Arc::clone(&name));
                let mut start = ToolCallStartEvent::new(id, name);
                start.parent_message_id.clone_from(&self.parent);
                self.calls.push(self.run.open_tool_call_as(start).await?);
                self.calls.len() - 1
            }
        };
        self.calls.get_mut(at).ok_or_else(|| AgentError::new("the call is gone"))
    }

    /// Closes all open items except those of this kind.
    async fn close(&mut self, but: Option<Kind>) -> Result<(), AgentError> {
        if but != Some(Kind::Text) {
            if let Some(message) = self.text.take() {
                message.end().await?;
            }
        }
        if but != Some(Kind::Reasoning) {
            if let Some(message) = self.reasoning.take() {
                message.end().await?;
            }
        }
        if but != Some(Kind::ToolCalls) {
            for call in core::mem::take(&mut self.calls) {
                call.end().await?;
            }
        }
        Ok(())
    }
}
