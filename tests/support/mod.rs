//! Helpers of the tests of the stages: short functions for events as JSON, and drivers of machines.

#![allow(dead_code, reason = "each test uses its own part")]
#![allow(unreachable_pub, reason = "each test has its own copy")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

use ag_ui_stream::machine::{Enforcer, Push};
use ag_ui_stream::{Error, Event, Item, Warning};
use serde_json::{Value, json};

pub mod assembled;
mod cases;
pub mod model;
pub mod stages;
pub mod verified;

#[allow(unused_imports, reason = "each test uses its own part")]
pub use cases::cases;

/// Properties that are tried on the same cases every time.
pub fn seeded(cases: u32) -> proptest::test_runner::Config {
    use proptest::test_runner::{Config, RngSeed};
    Config { cases, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..Config::default() }
}

/// The outputs of a machine, and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Driven<T> {
    pub out: Vec<T>,
    pub error: Option<Error>,
}

/// Pushes every input until one is refused, then finishes; pops all there is after each step.
pub fn drive<I, M: Push<I>>(machine: &mut M, inputs: impl IntoIterator<Item = I>) -> Driven<M::Output> {
    let mut out = Vec::new();
    let mut pop = |machine: &mut M| out.extend(std::iter::from_fn(|| machine.pop()));
    for input in inputs {
        let verdict = machine.push(input);
        pop(machine);
        if let Err(error) = verdict {
            return Driven { out, error: Some(error) };
        }
    }
    let error = machine.finish().err();
    pop(machine);
    Driven { out, error }
}

/// What enforcement makes of these events; all of them must be legal as they stand.
pub fn enforced(events: &[Value]) -> Vec<Item> {
    let driven = drive(&mut Enforcer::new(), events);
    assert_eq!(driven.error, None);
    driven.out
}

/// One event, typed.
pub fn event(json: Value) -> Event {
    let (event, warnings) = Event::from_value(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(warnings, [], "{json}");
    event.unwrap()
}

impl Driven<Item> {
    pub fn events(&self) -> Vec<&Event> {
        self.out.iter().filter_map(Item::event).collect()
    }

    pub fn warnings(&self) -> Vec<&Warning> {
        self.out.iter().filter_map(Item::warning).collect()
    }
}

/// The same event with other or more members.
pub fn with(mut event: Value, members: Value) -> Value {
    let (Value::Object(event_members), Value::Object(members)) = (&mut event, members) else { panic!("objects") };
    event_members.extend(members);
    event
}

/// The same event, tagged with a subagent invocation.
pub fn by(owner: &str, event: Value) -> Value {
    with(event, json!({"subagentRunId": owner}))
}

pub fn run_started() -> Value {
    json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})
}

pub fn run_finished() -> Value {
    json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"})
}

pub fn run_error() -> Value {
    json!({"type": "RUN_ERROR", "message": "no"})
}

pub fn text_start(id: &str) -> Value {
    json!({"type": "TEXT_MESSAGE_START", "messageId": id})
}

pub fn text_content(id: &str) -> Value {
    json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": "x"})
}

pub fn text_end(id: &str) -> Value {
    json!({"type": "TEXT_MESSAGE_END", "messageId": id})
}

pub fn call_start(id: &str) -> Value {
    json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "f"})
}

pub fn call_args(id: &str) -> Value {
    json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": "{}"})
}

pub fn call_end(id: &str) -> Value {
    json!({"type": "TOOL_CALL_END", "toolCallId": id})
}

pub fn call_result(message: &str, call: &str) -> Value {
    json!({"type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": call, "content": "x"})
}

pub fn reasoning_start(id: &str) -> Value {
    json!({"type": "REASONING_START", "messageId": id})
}

pub fn reasoning_end(id: &str) -> Value {
    json!({"type": "REASONING_END", "messageId": id})
}

pub fn thought_start(id: &str) -> Value {
    json!({"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"})
}

pub fn thought_content(id: &str) -> Value {
    json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": "x"})
}

pub fn thought_end(id: &str) -> Value {
    json!({"type": "REASONING_MESSAGE_END", "messageId": id})
}

pub fn encrypted_value(subtype: &str, entity: &str) -> Value {
    json!({"type": "REASONING_ENCRYPTED_VALUE", "subtype": subtype, "entityId": entity, "encryptedValue": "x"})
}

pub fn step_started(name: &str) -> Value {
    json!({"type": "STEP_STARTED", "stepName": name})
}

pub fn step_finished(name: &str) -> Value {
    json!({"type": "STEP_FINISHED", "stepName": name})
}

pub fn subagent_started(id: &str) -> Value {
    json!({"type": "SUBAGENT_STARTED", "subagentRunId": id, "name": "helper"})
}

pub fn subagent_finished(id: &str) -> Value {
    json!({"type": "SUBAGENT_FINISHED", "subagentRunId": id})
}

pub fn subagent_error(id: &str) -> Value {
    json!({"type": "SUBAGENT_ERROR", "subagentRunId": id, "message": "no"})
}

pub fn activity_snapshot(id: &str) -> Value {
    json!({"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": "plan", "content": {}})
}

pub fn activity_delta(id: &str) -> Value {
    json!({"type": "ACTIVITY_DELTA", "messageId": id, "activityType": "plan", "patch": []})
}

pub fn messages_snapshot(messages: Value) -> Value {
    json!({"type": "MESSAGES_SNAPSHOT", "messages": messages})
}

pub fn state_snapshot() -> Value {
    json!({"type": "STATE_SNAPSHOT", "snapshot": {}})
}

pub fn state_delta() -> Value {
    json!({"type": "STATE_DELTA", "delta": []})
}

pub fn custom() -> Value {
    json!({"type": "CUSTOM", "name": "x", "value": null})
}

pub fn raw() -> Value {
    json!({"type": "RAW", "event": null})
}
