//! Helpers of the tests of assembly.

use ag_ui_stream::id::SequentialIds;
use ag_ui_stream::machine::{Machine, Push};
use ag_ui_stream::snapshot::{Snapshot, Update};
use ag_ui_stream::{Error, Options, Rule, Warning};
use serde_json::{Value, json};

/// The result of a pipeline for a stream.
#[derive(Clone, Debug)]
pub struct Assembled {
    pub updates: Vec<Update>,
    pub error: Option<Error>,
    pub snapshot: Snapshot,
}

pub fn builder() -> Options {
    Options::new().ids(SequentialIds::new("id-"))
}

/// Pushes every event until one is refused, then finishes.
pub fn assemble_with<'e>(builder: Options, events: impl IntoIterator<Item = &'e Value>) -> Assembled {
    let mut pipeline = builder.build();
    let driven = super::drive(&mut pipeline, events);
    Assembled { updates: driven.out, error: driven.error, snapshot: pipeline.snapshot().clone() }
}

/// A stream that is legal to its end.
#[track_caller]
pub fn assemble(events: &[Value]) -> Assembled {
    let assembled = assemble_with(builder(), events);
    assert_eq!(assembled.error, None);
    assembled
}

/// These events within one run that finishes.
#[track_caller]
pub fn assemble_run(events: impl IntoIterator<Item = Value>) -> Assembled {
    assemble(&in_run(events))
}

/// The state after these events of a run that goes on.
#[track_caller]
pub fn assemble_open(events: impl IntoIterator<Item = Value>) -> Assembled {
    let events = super::verified::run(events);
    let mut pipeline = builder().build();
    let mut updates = Vec::new();
    for event in &events {
        pipeline.push(event).unwrap();
        updates.extend(std::iter::from_fn(|| pipeline.pop()));
    }
    Assembled { updates, error: None, snapshot: pipeline.snapshot().clone() }
}

/// These events within a run that finishes.
pub fn in_run(events: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut events = super::verified::run(events);
    events.push(super::run_finished());
    events
}

/// The messages of a snapshot as JSON.
pub fn messages(snapshot: &Snapshot) -> Vec<Value> {
    snapshot.messages().iter().map(|message| serde_json::to_value(message).unwrap()).collect()
}

impl Assembled {
    pub fn messages(&self) -> Vec<Value> {
        messages(&self.snapshot)
    }

    pub fn ids(&self) -> Vec<String> {
        self.snapshot.messages().iter().map(|message| message.id().to_string()).collect()
    }

    pub fn warnings(&self) -> Vec<&Warning> {
        self.updates.iter().filter_map(Update::warning).collect()
    }

    /// The rules of the warnings, with the indices of the events.
    pub fn warned(&self) -> Vec<(Rule, u64)> {
        self.warnings().into_iter().map(|warning| (warning.rule, warning.event)).collect()
    }

    /// The update of the event at an index.
    pub fn at(&self, index: u64) -> &Update {
        let is_it = |update: &&Update| matches!(update.item(), ag_ui_stream::Item::Event(indexed) if indexed.index() == Some(index));
        self.updates.iter().find(is_it).unwrap()
    }
}

pub fn delta(id: &str, delta: &str) -> Value {
    json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta})
}

pub fn thought(id: &str, delta: &str) -> Value {
    json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": delta})
}

pub fn args(id: &str, delta: &str) -> Value {
    json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta})
}

/// A whole text message.
pub fn text(id: &str, text: &str) -> [Value; 3] {
    [super::text_start(id), delta(id, text), super::text_end(id)]
}

/// A whole reasoning message.
pub fn reasoning(id: &str, text: &str) -> [Value; 3] {
    [super::thought_start(id), thought(id, text), super::thought_end(id)]
}

/// A whole tool call.
pub fn call(id: &str, arguments: &str) -> [Value; 3] {
    [super::call_start(id), args(id, arguments), super::call_end(id)]
}

pub fn result(message: &str, call: &str, content: Value) -> Value {
    json!({"type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": call, "content": content})
}

pub fn activity(id: &str, content: Value) -> Value {
    json!({"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": "plan", "content": content})
}

pub fn activity_patch(id: &str, patch: Value) -> Value {
    json!({"type": "ACTIVITY_DELTA", "messageId": id, "activityType": "plan", "patch": patch})
}

pub fn state(value: Value) -> Value {
    json!({"type": "STATE_SNAPSHOT", "snapshot": value})
}

pub fn state_patch(patch: Value) -> Value {
    json!({"type": "STATE_DELTA", "delta": patch})
}

pub fn assistant(id: &str, content: &str) -> Value {
    json!({"role": "assistant", "id": id, "content": content})
}

pub fn user(id: &str, content: &str) -> Value {
    json!({"role": "user", "id": id, "content": content})
}

pub fn tool(id: &str, call: &str, content: &str) -> Value {
    json!({"role": "tool", "id": id, "content": content, "toolCallId": call})
}

pub fn reasoned(id: &str, content: &str) -> Value {
    json!({"role": "reasoning", "id": id, "content": content})
}

pub fn active(id: &str, content: Value) -> Value {
    json!({"role": "activity", "id": id, "activityType": "plan", "content": content})
}

/// An assistant message without text that holds calls, each with its arguments.
pub fn caller(id: &str, calls: &[(&str, &str)]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(id, arguments)| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}))
        .collect();
    json!({"role": "assistant", "id": id, "toolCalls": calls})
}

/// Typed messages.
pub fn typed(messages: &[Value]) -> Vec<ag_ui_stream::Message> {
    let event = super::event(super::messages_snapshot(json!(messages)));
    let ag_ui_stream::Event::MessagesSnapshot(event) = event else { panic!("a snapshot") };
    event.messages
}
