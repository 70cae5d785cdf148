//! The floor: the least cost of reading the events.
//!
//! `serde_json` parses each event into a borrowed struct of just its fields,
//! and the text deltas go onto one `String`. No ids are kept, nothing is
//! checked, and deltas of different messages are not told apart.

use std::borrow::Cow;
use std::hint::black_box;

use serde::Deserialize;
use serde_json::Value;

use crate::checksum::{Checksum, hash_text};
use crate::clock::Clock;
use crate::workloads::Workload;

/// The events of `W1` to `W4`.
#[derive(Deserialize)]
struct Text<'a> {
    #[serde(borrow, rename = "type")]
    kind: &'a str,
    #[serde(borrow, rename = "messageId")]
    message_id: Option<&'a str>,
    #[serde(borrow)]
    delta: Option<&'a str>,
}

/// The events of `W5`.
#[derive(Deserialize)]
struct TaggedText<'a> {
    #[serde(borrow, rename = "type")]
    kind: &'a str,
    #[serde(borrow, rename = "messageId")]
    message_id: Option<&'a str>,
    #[serde(borrow)]
    delta: Option<&'a str>,
    #[serde(borrow, rename = "subagentRunId")]
    subagent_run_id: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolCallStart<'a> {
    tool_call_id: &'a str,
    tool_call_name: &'a str,
    parent_message_id: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolCallArgs<'a> {
    tool_call_id: &'a str,
    #[serde(borrow)]
    delta: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolCallResult<'a> {
    message_id: &'a str,
    tool_call_id: &'a str,
    #[serde(borrow)]
    content: Cow<'a, str>,
}

#[derive(Deserialize)]
struct StateSnapshot {
    snapshot: Value,
}

#[derive(Deserialize)]
struct StateDelta<'a> {
    #[serde(borrow)]
    delta: Vec<Operation<'a>>,
}

#[derive(Deserialize)]
struct Operation<'a> {
    op: &'a str,
    path: &'a str,
    value: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Step<'a> {
    step_name: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run<'a> {
    thread_id: &'a str,
    run_id: &'a str,
}

#[derive(Deserialize)]
struct Custom<'a> {
    name: &'a str,
    value: Value,
}

/// Runs the floor over a workload.
pub fn run(workload: &Workload, clock: &mut Clock) -> Checksum {
    let mut text = String::new();
    match workload.name.as_str() {
        "W5" => clock.drive(&workload.events, |event, _| {
            let event: TaggedText<'_> = parse(event);
            black_box((event.kind, event.message_id, event.subagent_run_id));
            text.push_str(event.delta.unwrap_or_default());
        }),
        "W6" => clock.drive(&workload.events, |event, _| mixed(event, &mut text)),
        _ => clock.drive(&workload.events, |event, _| {
            let event: Text<'_> = parse(event);
            black_box((event.kind, event.message_id));
            text.push_str(event.delta.unwrap_or_default());
        }),
    }
    Checksum { arrival: Some(hash_text(&text)), ..Checksum::default() }
}

/// The struct for an event of mixed kind is picked by a look at its first
/// member, which costs next to nothing.
fn mixed(event: &str, text: &mut String) {
    let kind = event
        .strip_prefix(r#"{"type":""#)
        .and_then(|rest| rest.split('"').next())
        .expect("a workload event begins with its type");
    match kind {
        "TOOL_CALL_START" => {
            let event: ToolCallStart<'_> = parse(event);
            black_box((event.tool_call_id, event.tool_call_name, event.parent_message_id));
        }
        "TOOL_CALL_ARGS" => {
            let event: ToolCallArgs<'_> = parse(event);
            black_box((event.tool_call_id, &event.delta));
        }
        "TOOL_CALL_RESULT" => {
            let event: ToolCallResult<'_> = parse(event);
            black_box((event.message_id, event.tool_call_id, &event.content));
        }
        "STATE_SNAPSHOT" => {
            let event: StateSnapshot = parse(event);
            black_box(&event.snapshot);
        }
        "STATE_DELTA" => {
            let event: StateDelta<'_> = parse(event);
            for operation in &event.delta {
                black_box((operation.op, operation.path, &operation.value));
            }
        }
        "STEP_STARTED" | "STEP_FINISHED" => {
            let event: Step<'_> = parse(event);
            black_box(event.step_name);
        }
        "RUN_STARTED" | "RUN_FINISHED" => {
            let event: Run<'_> = parse(event);
            black_box((event.thread_id, event.run_id));
        }
        "CUSTOM" => {
            let event: Custom<'_> = parse(event);
            black_box((event.name, &event.value));
        }
        _ => {
            let event: Text<'_> = parse(event);
            black_box((event.kind, event.message_id));
            if kind == "TEXT_MESSAGE_CONTENT" {
                text.push_str(event.delta.unwrap_or_default());
            }
        }
    }
}

fn parse<'a, T: Deserialize<'a>>(event: &'a str) -> T {
    serde_json::from_str(event).expect("a workload event has the fields of its type")
}
