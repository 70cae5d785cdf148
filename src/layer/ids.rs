//! `RewriteIds`: a layer that gives messages, tool calls, subagents and interrupts other ids.

use core::fmt;
use std::sync::Arc;

use futures::stream::StreamExt;

use super::OnItems;
use crate::agent::{RawEventStream, raw_event_stream};
use crate::combinator::Items;
use crate::event::{Event, Interrupts, ReasoningEncryptedValueSubtype, RunFinishedOutcome, SubagentFinishedOutcome};
use crate::id::{InterruptId, MessageId, SubagentRunId, ToolCallId};
use crate::item::Item;
use crate::message::Message;
use crate::run_input::RunAgentInput;

/// The kind of thing that an id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdKind {
    /// A message, an activity or a reasoning span.
    Message,
    /// A tool call.
    ToolCall,
    /// An invocation of a subagent.
    Subagent,
    /// An interrupt.
    Interrupt,
}

/// Gives messages, tool calls, subagents and interrupts other ids, wherever they are named. The ids of runs and
/// threads stay.
///
/// Two ids of one kind must not get the same new id, or different things become one. The input of the next run
/// has the new ids, in its messages and its answers. If the agent needs its own ids there, turn them back with
/// [`input`](RewriteIds::input).
///
/// # Examples
/// ```
/// use ag_ui_stream::layer::RewriteIds;
/// use ag_ui_stream::{AgentExt, RunAgentInput, producer};
/// use futures::TryStreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ag_ui_stream::Error<ag_ui_stream::agent::AgentError>> {
/// let agent = producer::agent(async |run| {
///     run.text("Hello").await?;
///     Ok(())
/// });
/// let agent = agent
///     .layer(RewriteIds::new(|_, id| format!("greeter/{id}")).input(|_, id| id.trim_start_matches("greeter/").into()));
/// let updates: Vec<_> = agent.updates(RunAgentInput::new("thread", "run", [])).await?.try_collect().await?;
/// assert!(updates.last().unwrap().snapshot().message("greeter/run-1").is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RewriteIds {
    output: Arc<Rewrite<'static>>,
    input: Option<Arc<Rewrite<'static>>>,
}

type Rewrite<'a> = dyn Fn(IdKind, &str) -> String + Send + Sync + 'a;

impl RewriteIds {
    /// A layer that replaces each id in the events of the agent by the result of this closure.
    pub fn new(rewrite: impl Fn(IdKind, &str) -> String + Send + Sync + 'static) -> Self {
        Self { output: Arc::new(rewrite), input: None }
    }

    /// The same, and replaces each id in the input of the agent by the result of this closure.
    #[must_use]
    pub fn input(self, rewrite: impl Fn(IdKind, &str) -> String + Send + Sync + 'static) -> Self {
        Self { input: Some(Arc::new(rewrite)), ..self }
    }
}

impl OnItems for RewriteIds {
    fn on_input(&self, mut input: RunAgentInput) -> RunAgentInput {
        if let Some(rewrite) = &self.input {
            rewrite_input(&mut input, &**rewrite);
        }
        input
    }

    fn on_items(&self, input: &RunAgentInput, items: Items<RawEventStream>) -> RawEventStream {
        let rewrite = Arc::clone(&self.output);
        raw_event_stream(
            input,
            items.map(move |item| {
                item.map(|mut item| {
                    if let Item::Event(indexed) = &mut item {
                        rewrite_event(&mut indexed.event, &*rewrite);
                    }
                    item
                })
            }),
        )
    }
}

impl fmt::Debug for RewriteIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RewriteIds").finish_non_exhaustive()
    }
}

/// A type of id, with the kind of thing that it names.
trait Named: From<String> + AsRef<str> {
    const KIND: IdKind;
}

macro_rules! named {
    ($($id:ident $kind:ident;)*) => {$(
        impl Named for $id {
            const KIND: IdKind = IdKind::$kind;
        }
    )*};
}

named! {
    MessageId Message;
    ToolCallId ToolCall;
    SubagentRunId Subagent;
    InterruptId Interrupt;
}

fn id<I: Named>(id: &mut I, rewrite: &Rewrite<'_>) {
    *id = rewrite(I::KIND, (*id).as_ref()).into();
}

fn ids<'a, I: Named + 'a>(all: impl IntoIterator<Item = &'a mut I>, rewrite: &Rewrite<'_>) {
    all.into_iter().for_each(|one| id(one, rewrite));
}

/// Replaces each id in an event.
pub(super) fn rewrite_event(event: &mut Event, rewrite: &Rewrite<'_>) {
    if let Some(tag) = event.tag_mut() {
        ids(tag, rewrite);
    }
    match event {
        Event::TextMessageStart(e) => id(&mut e.message_id, rewrite),
        Event::TextMessageContent(e) => id(&mut e.message_id, rewrite),
        Event::TextMessageEnd(e) => id(&mut e.message_id, rewrite),
        Event::TextMessageChunk(e) => ids(&mut e.message_id, rewrite),
        Event::ToolCallStart(e) => {
            id(&mut e.tool_call_id, rewrite);
            ids(&mut e.parent_message_id, rewrite);
        }
        Event::ToolCallArgs(e) => id(&mut e.tool_call_id, rewrite),
        Event::ToolCallEnd(e) => id(&mut e.tool_call_id, rewrite),
        Event::ToolCallChunk(e) => {
            ids(&mut e.tool_call_id, rewrite);
            ids(&mut e.parent_message_id, rewrite);
        }
        Event::ToolCallResult(e) => {
            id(&mut e.message_id, rewrite);
            id(&mut e.tool_call_id, rewrite);
        }
        Event::ReasoningStart(e) => id(&mut e.message_id, rewrite),
        Event::ReasoningEnd(e) => id(&mut e.message_id, rewrite),
        Event::ReasoningMessageStart(e) => id(&mut e.message_id, rewrite),
        Event::ReasoningMessageContent(e) => id(&mut e.message_id, rewrite),
        Event::ReasoningMessageEnd(e) => id(&mut e.message_id, rewrite),
        Event::ReasoningMessageChunk(e) => ids(&mut e.message_id, rewrite),
        Event::ReasoningEncryptedValue(e) => {
            let kind = match e.subtype {
                ReasoningEncryptedValueSubtype::ToolCall => IdKind::ToolCall,
                ReasoningEncryptedValueSubtype::Message => IdKind::Message,
            };
            e.entity_id = rewrite(kind, e.entity_id.as_str()).into();
        }
        Event::ActivitySnapshot(e) => id(&mut e.message_id, rewrite),
        Event::ActivityDelta(e) => id(&mut e.message_id, rewrite),
        Event::SubagentStarted(e) => {
            id(&mut e.subagent_run_id, rewrite);
            ids(&mut e.parent_subagent_run_id, rewrite);
            ids(&mut e.parent_tool_call_id, rewrite);
            ids(&mut e.parent_message_id, rewrite);
        }
        Event::SubagentFinished(e) => {
            id(&mut e.subagent_run_id, rewrite);
            if let Some(SubagentFinishedOutcome::Suspended(outcome)) = &mut e.outcome {
                ids(outcome.interrupt_ids.iter_mut().flatten(), rewrite);
            }
        }
        Event::SubagentError(e) => id(&mut e.subagent_run_id, rewrite),
        Event::MessagesSnapshot(e) => rewrite_messages(&mut e.messages, rewrite),
        Event::RunStarted(e) => {
            if let Some(input) = &mut e.input {
                rewrite_input(input, rewrite);
            }
        }
        Event::RunFinished(e) => match &mut e.outcome {
            Some(RunFinishedOutcome::Success(outcome)) => {
                ids(outcome.pending_tool_call_ids.iter_mut().flatten(), rewrite);
            }
            Some(RunFinishedOutcome::Interrupt(outcome)) => {
                let interrupts = outcome.interrupts.as_slice().iter().cloned().map(|mut interrupt| {
                    id(&mut interrupt.id, rewrite);
                    ids(&mut interrupt.tool_call_id, rewrite);
                    ids(&mut interrupt.subagent_run_id, rewrite);
                    interrupt
                });
                if let Some(interrupts) = Interrupts::from_iter(interrupts) {
                    outcome.interrupts = interrupts;
                }
            }
            Some(RunFinishedOutcome::Cancelled(_)) | None => {}
        },
        // Steps, state, RAW, CUSTOM and RUN_ERROR name no ids.
        _ => {}
    }
}

/// Replaces each id in the input of a run.
pub(super) fn rewrite_input(input: &mut RunAgentInput, rewrite: &Rewrite<'_>) {
    rewrite_messages(&mut input.messages, rewrite);
    for answer in input.resume.iter_mut().flatten() {
        id(&mut answer.interrupt_id, rewrite);
    }
}

fn rewrite_messages(messages: &mut [Message], rewrite: &Rewrite<'_>) {
    for message in messages {
        ids(message.subagent_run_id_mut(), rewrite);
        id(message.id_mut(), rewrite);
        match message {
            Message::Assistant(message) => {
                if let Some(calls) = &mut message.tool_calls {
                    *calls = calls
                        .iter()
                        .map(|call| {
                            let mut call = Arc::clone(call);
                            id(&mut Arc::make_mut(&mut call).id, rewrite);
                            call
                        })
                        .collect();
                }
            }
            Message::Tool(message) => id(&mut message.tool_call_id, rewrite),
            _ => {}
        }
    }
}
