//! Events whose cost must not grow with the thread, counted in allocations.
//!
//! The allocator counts for the whole process, so everything is in one test.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::alloc::System;

use ag_ui_stream::machine::{Machine, Pipeline, Push};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How many messages the thread holds.
const THREAD: usize = 20_000;

fn feed(pipeline: &mut Pipeline, events: &[String]) {
    for event in events {
        pipeline.push(event.as_str()).unwrap();
        while let Some(update) = pipeline.pop() {
            std::hint::black_box(update.snapshot());
        }
    }
}

/// Allocations for each of these events after those, on average.
fn cost(before: &[Value], events: &[Value]) -> usize {
    let text = |events: &[Value]| events.iter().map(Value::to_string).collect::<Vec<_>>();
    let mut pipeline = Pipeline::new();
    feed(&mut pipeline, &[json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}).to_string()]);
    feed(&mut pipeline, &text(before));
    let events = text(events);
    let region = Region::new(ALLOCATOR);
    feed(&mut pipeline, &events);
    let change = region.change();
    (change.allocations + change.reallocations) / events.len()
}

fn user(id: &str) -> Value {
    json!({"id": id, "role": "user", "content": "x"})
}

fn restated(messages: impl IntoIterator<Item = Value>) -> Value {
    json!({"type": "MESSAGES_SNAPSHOT", "messages": messages.into_iter().collect::<Vec<_>>()})
}

fn activity(id: &str) -> Value {
    json!({"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": "plan", "content": {}})
}

fn result(id: &str, call: &str) -> Value {
    json!({"type": "TOOL_CALL_RESULT", "messageId": id, "toolCallId": call, "content": "x"})
}

fn call(id: &str) -> [Value; 2] {
    [
        json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "f"}),
        json!({"type": "TOOL_CALL_END", "toolCallId": id}),
    ]
}

fn thoughts(count: usize) -> Vec<Value> {
    let thought = |at| json!({"id": format!("thought {at}"), "role": "reasoning", "content": "x"});
    (0..count).map(thought).collect()
}

/// A call, and a thread after it.
fn called_before(thread: usize) -> Vec<Value> {
    let mut events = vec![restated((0..thread / 2).map(|at| user(&format!("before {at}"))))];
    events.extend(call("c"));
    events.extend(thoughts(thread / 2).iter().flat_map(|thought| {
        let event = |kind| json!({"type": format!("REASONING_MESSAGE_{kind}"), "messageId": thought["id"], "role": "reasoning"});
        let mut end = event("END");
        end.as_object_mut().unwrap().remove("role");
        [event("START"), end]
    }));
    events
}

#[test]
fn what_an_event_costs_does_not_grow_with_the_thread() {
    // The content of the thread, the events that follow, and the allocations allowed for each of these.
    type Case = (&'static str, fn(usize) -> Vec<Value>, fn() -> Vec<Value>, usize);
    let cases: [Case; 9] = [
        (
            "S9, A5: results that become activities, so that each next one is placed before them",
            called_before,
            || (0..1000).flat_map(|at| [result(&format!("r{at}"), "c"), activity(&format!("r{at}"))]).collect(),
            40,
        ),
        (
            "A10, A5: results of one id for other calls, each before an activity",
            called_before,
            || {
                let turn = |at| {
                    let [start, end] = call(&format!("d{at}"));
                    [start, end, result("r", "c"), result("r", &format!("d{at}")), activity("r")]
                };
                (0..400).flat_map(turn).collect()
            },
            40,
        ),
        (
            "S9: results, each placed after the one before",
            called_before,
            || (0..40_000).map(|at| result(&format!("r{at}"), "c")).collect(),
            40,
        ),
        (
            "A2: nothing restated over thoughts that are kept",
            |thread| vec![restated(thoughts(thread))],
            || vec![restated([]); 100],
            20,
        ),
        (
            "A2: nothing restated over activities that are kept",
            |thread| (0..thread).map(|at| activity(&format!("v{at}"))).collect(),
            || vec![restated([]); 100],
            20,
        ),
        (
            "A2: a message restated, changed, dropped and new over thoughts that are kept",
            |thread| vec![restated(thoughts(thread))],
            || (0..400).map(|at| restated([user(&format!("m{}", at / 4)), user(&format!("n{at}"))])).collect(),
            150,
        ),
        (
            "A2, A12: a message of the id of a thought that is kept",
            |thread| vec![restated(thoughts(thread))],
            || {
                let text = |kind| json!({"type": format!("TEXT_MESSAGE_{kind}"), "messageId": "thought 7"});
                (0..100).flat_map(|_| [text("START"), text("END"), restated([])]).collect()
            },
            40,
        ),
        (
            "A11: nothing restated while others stream",
            |thread| {
                let start =
                    |at| json!({"type": "REASONING_MESSAGE_START", "messageId": format!("r{at}"), "role": "reasoning"});
                (0..thread).map(start).collect()
            },
            || vec![restated([]); 100],
            20,
        ),
        (
            "A5: an activity in the place of a message of a long thread",
            |thread| vec![restated((0..thread).map(|at| user(&format!("m{at}"))))],
            || (0..100).map(|at| activity(&format!("m{at}"))).collect(),
            40,
        ),
    ];
    let mut dear = Vec::new();
    for (what, before, events, most) in cases {
        let (short, long) = (cost(&before(20), &events()), cost(&before(THREAD), &events()));
        if long > most.max(short + short / 2) {
            dear.push(format!("{long} allocations, {short} in a short thread: {what}"));
        }
    }
    assert!(dear.is_empty(), "{}", dear.join("\n"));
}
