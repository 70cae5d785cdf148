//! `Filter`: a layer that leaves out the calls of some tools, or events of some kinds, with all that belongs to
//! them.

use core::fmt;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::OnItems;
use crate::agent::{RawEventStream, raw_event_stream};
use crate::combinator::{EventStreamExt, Items};
use crate::error::Error;
use crate::event::{Event, Interrupts, ReasoningEncryptedValueSubtype, RunFinishedOutcome};
use crate::id::ToolCallId;
use crate::item::Item;
use crate::machine::{Machine, Push};
use crate::message::Message;
use crate::run_input::RunAgentInput;

/// Leaves out the calls of some tools, or whole kinds of events.
///
/// A call is left out with all of its events, its result, its encrypted value, and its entries in
/// MESSAGES_SNAPSHOT, in the history of RUN_STARTED and in the outcome of RUN_FINISHED. A kind is left out with
/// all events and messages of that kind. So the rest of a legal stream is legal.
///
/// # Cost
/// An entry for each call that is left out.
///
/// # Examples
/// See [the module](super).
#[derive(Clone)]
pub struct Filter {
    keep: Keep,
}

#[derive(Clone)]
enum Keep {
    Tools(Arc<dyn Fn(&str) -> bool + Send + Sync>),
    Kinds(Arc<dyn Fn(EventKind) -> bool + Send + Sync>),
}

/// A kind of events that can be left out. The events that begin or end a run cannot be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// Text messages.
    Text,
    /// Reasoning messages, their spans and their encrypted values.
    Reasoning,
    /// Tool calls and their results.
    ToolCalls,
    /// Steps.
    Steps,
    /// State.
    State,
    /// MESSAGES_SNAPSHOT.
    Messages,
    /// Activity.
    Activity,
    /// The events that begin and end subagents. Their other events stay attributed to them (rule O5).
    Subagents,
    /// CUSTOM.
    Custom,
    /// RAW.
    Raw,
}

impl EventKind {
    /// The kind of an event; `None` for one that begins or ends a run.
    #[must_use]
    pub fn of(event: &Event) -> Option<Self> {
        Some(match event {
            Event::TextMessageStart(_)
            | Event::TextMessageContent(_)
            | Event::TextMessageEnd(_)
            | Event::TextMessageChunk(_) => EventKind::Text,
            Event::ReasoningStart(_)
            | Event::ReasoningEnd(_)
            | Event::ReasoningMessageStart(_)
            | Event::ReasoningMessageContent(_)
            | Event::ReasoningMessageEnd(_)
            | Event::ReasoningMessageChunk(_) => EventKind::Reasoning,
            Event::ReasoningEncryptedValue(event) => match event.subtype {
                ReasoningEncryptedValueSubtype::ToolCall => EventKind::ToolCalls,
                ReasoningEncryptedValueSubtype::Message => EventKind::Reasoning,
            },
            Event::ToolCallStart(_)
            | Event::ToolCallArgs(_)
            | Event::ToolCallEnd(_)
            | Event::ToolCallChunk(_)
            | Event::ToolCallResult(_) => EventKind::ToolCalls,
            Event::StepStarted(_) | Event::StepFinished(_) => EventKind::Steps,
            Event::StateSnapshot(_) | Event::StateDelta(_) => EventKind::State,
            Event::MessagesSnapshot(_) => EventKind::Messages,
            Event::ActivitySnapshot(_) | Event::ActivityDelta(_) => EventKind::Activity,
            Event::SubagentStarted(_) | Event::SubagentFinished(_) | Event::SubagentError(_) => EventKind::Subagents,
            Event::Custom(_) => EventKind::Custom,
            Event::Raw(_) => EventKind::Raw,
            _ => return None,
        })
    }
}

impl Filter {
    /// Keeps the calls of the tools for whose name the closure returns true.
    pub fn tools(keep: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self { keep: Keep::Tools(Arc::new(keep)) }
    }

    /// Keeps the kinds of events for which the closure returns true.
    pub fn kinds(keep: impl Fn(EventKind) -> bool + Send + Sync + 'static) -> Self {
        Self { keep: Keep::Kinds(Arc::new(keep)) }
    }
}

impl OnItems for Filter {
    fn on_items(&self, input: &RunAgentInput, items: Items<RawEventStream>) -> RawEventStream {
        let mut sieve = Sieve { keep: self.keep.clone(), hidden: HashSet::new(), ready: VecDeque::new() };
        sieve.learn(&input.messages);
        raw_event_stream(input, items.through(sieve))
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.keep {
            Keep::Tools(_) => "tools",
            Keep::Kinds(_) => "kinds",
        };
        f.debug_struct("Filter").field("by", &by).finish_non_exhaustive()
    }
}

/// The filter of one run.
struct Sieve {
    keep: Keep,
    /// The calls that are left out.
    hidden: HashSet<ToolCallId>,
    ready: VecDeque<Item>,
}

impl Sieve {
    fn keeps_kind(&self, kind: EventKind) -> bool {
        match &self.keep {
            Keep::Kinds(keep) => keep(kind),
            Keep::Tools(_) => true,
        }
    }

    /// Whether a call of this name stays; if not, notes its id.
    fn keeps_call(&mut self, id: &ToolCallId, name: &str) -> bool {
        let keeps = match &self.keep {
            Keep::Tools(keep) => keep(name),
            Keep::Kinds(keep) => keep(EventKind::ToolCalls),
        };
        if !keeps {
            self.hidden.insert(id.clone());
        }
        keeps
    }

    /// Notes the calls in messages.
    fn learn(&mut self, messages: &[Message]) {
        for call in messages.iter().flat_map(Message::tool_calls) {
            self.keeps_call(&call.id, call.function.name.as_ref());
        }
    }

    fn keeps(&mut self, event: &mut Event) -> bool {
        if EventKind::of(event).is_some_and(|kind| !self.keeps_kind(kind)) {
            return false;
        }
        match event {
            Event::ToolCallStart(start) => self.keeps_call(&start.tool_call_id, &start.tool_call_name),
            Event::ToolCallArgs(args) => !self.hidden.contains(&args.tool_call_id),
            Event::ToolCallEnd(end) => !self.hidden.contains(&end.tool_call_id),
            Event::ToolCallResult(result) => !self.hidden.contains(&result.tool_call_id),
            Event::ReasoningEncryptedValue(value) => {
                value.subtype != ReasoningEncryptedValueSubtype::ToolCall
                    || !self.hidden.contains(&ToolCallId::from(value.entity_id.as_str()))
            }
            Event::MessagesSnapshot(snapshot) => {
                self.sift(&mut snapshot.messages);
                true
            }
            Event::RunStarted(started) => {
                if let Some(input) = &mut started.input {
                    self.sift(&mut input.messages);
                }
                true
            }
            Event::RunFinished(finished) => {
                if let Some(outcome) = &mut finished.outcome {
                    self.sift_outcome(outcome);
                }
                true
            }
            _ => true,
        }
    }

    fn sift(&mut self, messages: &mut Vec<Message>) {
        self.learn(messages);
        let keeps_calls = self.keeps_kind(EventKind::ToolCalls);
        messages.retain_mut(|message| match message {
            Message::Reasoning(_) => self.keeps_kind(EventKind::Reasoning),
            Message::Activity(_) => self.keeps_kind(EventKind::Activity),
            Message::Tool(message) => keeps_calls && !self.hidden.contains(&message.tool_call_id),
            Message::Assistant(message) => {
                let Some(calls) = &message.tool_calls else { return true };
                let kept = calls.iter().filter(|call| !self.hidden.contains(&call.id)).cloned();
                let kept: Vec<_> = kept.collect();
                if kept.len() == calls.len() {
                    return true;
                }
                let is_empty = kept.is_empty();
                message.tool_calls = (!is_empty).then(|| kept.into_iter().collect());
                // A message that exists only for its calls is left out with them (rule A3).
                !is_empty || message.content.is_some()
            }
            _ => true,
        });
    }

    fn sift_outcome(&self, outcome: &mut RunFinishedOutcome) {
        match outcome {
            RunFinishedOutcome::Success(success) => {
                if let Some(pending) = &mut success.pending_tool_call_ids {
                    pending.retain(|id| !self.hidden.contains(id));
                }
            }
            RunFinishedOutcome::Interrupt(interrupt) => {
                // The interrupt itself stays, because it must be answered.
                let interrupts = interrupt.interrupts.as_slice().iter().cloned().map(|mut interrupt| {
                    let is_hidden = interrupt.tool_call_id.as_ref().is_some_and(|id| self.hidden.contains(id));
                    interrupt.tool_call_id = interrupt.tool_call_id.filter(|_| !is_hidden);
                    interrupt
                });
                if let Some(interrupts) = Interrupts::from_iter(interrupts) {
                    interrupt.interrupts = interrupts;
                }
            }
            RunFinishedOutcome::Cancelled(_) => {}
        }
    }
}

impl Push<Item> for Sieve {
    fn push(&mut self, mut item: Item) -> Result<(), Error> {
        let keeps = match &mut item {
            Item::Event(indexed) => self.keeps(&mut indexed.event),
            Item::Warning(_) => true,
        };
        if keeps {
            self.ready.push_back(item);
        }
        Ok(())
    }
}

impl Machine for Sieve {
    type Output = Item;

    fn pop(&mut self) -> Option<Item> {
        self.ready.pop_front()
    }

    fn ready(&self) -> usize {
        self.ready.len()
    }

    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
