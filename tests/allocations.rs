//! What an event costs in allocations and in memory that stays, counted.
//!
//! The allocator counts for the whole process, so everything is in one test.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::alloc::System;

use ag_ui_stream::machine::{Machine, Pipeline, Push};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const RUN_STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const RUN_FINISHED: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;

fn feed<'a>(pipeline: &mut Pipeline, events: impl IntoIterator<Item = &'a String>) {
    for event in events {
        pipeline.push(event.as_str()).unwrap();
        while let Some(update) = pipeline.pop() {
            std::hint::black_box(update.snapshot());
        }
    }
}

/// A pipeline in a run, with these messages open, each of which has grown already.
fn streaming(ids: &[String]) -> Pipeline {
    let mut pipeline = Pipeline::new();
    feed(&mut pipeline, [&RUN_STARTED.to_owned()]);
    for (at, id) in ids.iter().enumerate() {
        let start = format!(r#"{{"type":"TEXT_MESSAGE_START","messageId":"{id}","subagentRunId":"agent-{at}"}}"#);
        feed(&mut pipeline, [&start]);
    }
    for _ in 0..4 {
        feed(&mut pipeline, &contents(ids, ids.len(), "warm up"));
    }
    pipeline
}

fn contents(ids: &[String], count: usize, delta: &str) -> Vec<String> {
    let owners = ids.iter().enumerate().cycle();
    let event = |(at, id): (usize, &String)| {
        format!(
            r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"{id}","delta":"{delta}","subagentRunId":"agent-{at}"}}"#
        )
    };
    owners.take(count).map(event).collect()
}

/// Allocations for these events, the growing of buffers included.
fn allocations(pipeline: &mut Pipeline, events: &[String]) -> usize {
    let region = Region::new(ALLOCATOR);
    feed(pipeline, events);
    let change = region.change();
    change.allocations + change.reallocations
}

fn ids(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("message-{at}")).collect()
}

#[test]
fn an_event_costs_at_most_one_allocation_and_a_text_little_more_than_itself() {
    // A long delta: its own text, and a buffer that grows now and then.
    for open in [1, 64] {
        let ids = ids(open);
        let mut pipeline = streaming(&ids);
        let events = contents(&ids, 6400, "forty characters of text, more or less ok");
        let count = allocations(&mut pipeline, &events);
        let growing = 32 * open;
        assert!(count <= events.len() + growing, "{count} allocations for {} long deltas", events.len());
        assert!(count >= events.len(), "a long delta is not kept without one");

        // A short one: none, whatever the number of items that take turns.
        let mut pipeline = streaming(&ids);
        let events = contents(&ids, 6400, "token");
        let count = allocations(&mut pipeline, &events);
        assert!(count <= growing, "{count} allocations for {} short deltas", events.len());
    }

    // W2: what stays is the text and little more.
    let ids = ids(1);
    let events = contents(&ids, 200_000, "token");
    let text = 200_000 * "token".len();
    let region = Region::new(ALLOCATOR);
    let mut pipeline = streaming(&ids);
    feed(&mut pipeline, &events);
    let change = region.change();
    let live = change.bytes_allocated - change.bytes_deallocated;
    assert!(live <= text * 13 / 10 + 64 * 1024, "{live} bytes live for {text} bytes of text");
    drop(pipeline);

    // What a run knew of its steps is gone with it.
    let mut pipeline = Pipeline::new();
    feed(&mut pipeline, [&RUN_STARTED.to_owned()]);
    let steps: Vec<String> = (0..20_000)
        .flat_map(|at| ["STARTED", "FINISHED"].map(|end| format!(r#"{{"type":"STEP_{end}","stepName":"step {at}"}}"#)))
        .collect();
    let region = Region::new(ALLOCATOR);
    feed(&mut pipeline, &steps);
    feed(&mut pipeline, [&RUN_FINISHED.to_owned()]);
    let change = region.change();
    let live = change.bytes_allocated as i64 - change.bytes_deallocated as i64;
    assert!(live < 64 * 1024, "{live} bytes outlive a run of 20 000 steps");
}
