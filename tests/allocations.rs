//! Counts the allocations of an event, and the memory that it keeps.
//!
//! The allocator counts for the whole process, so everything is in one test.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::alloc::System;

use ag_ui_stream::Limits;
use ag_ui_stream::machine::{Machine, Pipeline, Push};
use ag_ui_stream::message::PartialArguments;
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

        // A short delta: no allocation, however many items take turns.
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

    #[cfg(all(feature = "sse", feature = "json-lines", feature = "protobuf"))]
    decoding_is_on_demand();

    // The tables of a run's steps are freed with the run.
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

    documents_cost_what_changes();
    partial_arguments_cost_their_delta();
    a_run_is_small();
    #[cfg(feature = "sse")]
    an_event_within_a_piece_is_not_copied();
}

/// 256 kB of arguments in pieces of 16 bytes, with a look at the value after each.
fn partial_arguments_cost_their_delta() {
    for open in ["\"", "{\"file\": \"", "[{\"a\": [{\"b\": \""] {
        let mut arguments = PartialArguments::new();
        arguments.push(open);
        let region = Region::new(ALLOCATOR);
        for _ in 0..16 * 1024 {
            arguments.push("sixteen bytes \\n");
            std::hint::black_box(arguments.value());
        }
        let change = region.change();
        let count = change.allocations + change.reallocations;
        assert!(count < 64, "{count} allocations after {open:?}: the text grows by doubling");
        let bytes = change.bytes_allocated;
        assert!(bytes < 1024 * 1024, "{bytes} bytes after {open:?}: nothing is copied");
    }
}

/// Of what a run takes while it streams, most is not its text, so it has to be little.
fn a_run_is_small() {
    let region = Region::new(ALLOCATOR);
    let mut pipeline = Pipeline::new();
    feed(&mut pipeline, [&RUN_STARTED.to_owned()]);
    let start = r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#;
    pipeline.push(start).unwrap();
    while pipeline.pop().is_some() {}
    for _ in 0..120 {
        pipeline.push(r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"token"}"#).unwrap();
        while pipeline.pop().is_some() {}
    }
    let change = region.change();
    let live = size_of_val(&pipeline) + change.bytes_allocated - change.bytes_deallocated;
    assert!(live <= 6_000, "{live} bytes for a run of 600 bytes of text");
}

/// Bytes to updates: no allocation for a short delta that a piece holds whole.
#[cfg(feature = "sse")]
fn an_event_within_a_piece_is_not_copied() {
    use ag_ui_stream::RawItem;
    use ag_ui_stream::codec::SseDecoder;

    let ids = ids(1);
    let mut pipeline = streaming(&ids);
    let events = contents(&ids, 6400, "token");
    let body: Vec<u8> = events.iter().flat_map(|event| format!("data: {event}\n\n").into_bytes()).collect();
    let mut decoder = SseDecoder::new();
    let region = Region::new(ALLOCATOR);
    decoder.push(body).unwrap();
    while let Some(item @ RawItem::Event { .. }) = decoder.pop() {
        pipeline.push(item).unwrap();
        while pipeline.pop().is_some() {}
    }
    let change = region.change();
    let count = change.allocations + change.reallocations;
    assert_eq!(decoder.event_count(), 6400);
    assert!(count <= 32, "{count} allocations for {} short deltas from bytes", events.len());
}

/// Bytes that these events take while every snapshot is held, each on average.
fn bytes_with_all_held(pipeline: &mut Pipeline, events: &[String]) -> usize {
    let mut held = Vec::with_capacity(events.len());
    let region = Region::new(ALLOCATOR);
    for event in events {
        pipeline.push(event.as_str()).unwrap();
        held.extend(std::iter::from_fn(|| pipeline.pop()).map(|update| update.into_snapshot()));
    }
    region.change().bytes_allocated / events.len()
}

/// A patch costs its path and metadata its keys, however large the document is and whether clones are held;
/// and no patch makes more of it than is allowed.
fn documents_cost_what_changes() {
    let rows: Vec<String> =
        (0..10_000).map(|at| format!(r#"{{"id":{at},"title":"title of row {at}","done":false}}"#)).collect();
    let state = format!(r#"{{"type":"STATE_SNAPSHOT","snapshot":{{"rows":[{}],"o":{{}}}}}}"#, rows.join(","));
    let patch = |operations: &str| format!(r#"{{"type":"STATE_DELTA","delta":[{operations}]}}"#);
    let mut pipeline = Pipeline::new();
    feed(&mut pipeline, [&RUN_STARTED.to_owned(), &state]);
    let replace =
        |at: usize| patch(&format!(r#"{{"op":"replace","path":"/rows/{}/title","value":"new {at}"}}"#, at * 7));
    let events: Vec<String> = (0..1_000).map(replace).collect();
    let each = bytes_with_all_held(&mut pipeline, &events);
    assert!(each < 8 * 1024, "{each} bytes for a patch of a state of {} bytes", state.len());
    for operations in [
        r#"{"op":"copy","from":"/rows","path":"/o/c"},{"op":"remove","path":"/o/c"}"#,
        r#"{"op":"move","from":"/rows","path":"/moved"},{"op":"move","from":"/moved","path":"/rows"}"#,
        r#"{"op":"add","path":"/rows/0","value":1},{"op":"test","path":"/o","value":1}"#,
        r#"{"op":"remove","path":"/rows/0"},{"op":"add","path":"/rows/0","value":1}"#,
    ] {
        let each = bytes_with_all_held(&mut pipeline, &vec![patch(operations); 100]);
        assert!(each < 8 * 1024, "{each} bytes for {operations}");
    }

    let members: Vec<String> = (0..10_000).map(|at| format!(r#""key {at}":"value {at}""#)).collect();
    let start = format!(r#"{{"type":"TEXT_MESSAGE_START","messageId":"m","metadata":{{{}}}}}"#, members.join(","));
    let one = |at: usize| {
        format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x","metadata":{{"key {}":{at}}}}}"#, at * 7)
    };
    feed(&mut pipeline, [&start]);
    let events: Vec<String> = (0..1_000).map(one).collect();
    let each = bytes_with_all_held(&mut pipeline, &events);
    assert!(each < 8 * 1024, "{each} bytes for a key of metadata of 10 000");

    // What copies could make of 1 MB in one event of 50 kB, of the state and of each activity.
    let long = "k".repeat(1_000_000);
    let copies: Vec<String> = (0..1_000)
        .map(|at| format!(r#"{{"op":"copy","from":"/o","path":"/{at}"}},{{"op":"add","path":"/{at}/x","value":1}}"#))
        .collect();
    let copies = copies.join(",");
    let region = Region::new(ALLOCATOR);
    let mut pipeline = Pipeline::new();
    feed(&mut pipeline, [&RUN_STARTED.to_owned()]);
    for id in 0..20 {
        let (activity, content) =
            (format!(r#""messageId":"{id}","activityType":"t""#), format!(r#"{{"o":{{"{long}":0}}}}"#));
        feed(
            &mut pipeline,
            [
                &format!(r#"{{"type":"ACTIVITY_SNAPSHOT",{activity},"content":{content}}}"#),
                &format!(r#"{{"type":"ACTIVITY_DELTA",{activity},"patch":[{copies}]}}"#),
            ],
        );
    }
    let change = region.change();
    let live = change.bytes_allocated - change.bytes_deallocated;
    assert!(live < 2 * Limits::DEFAULT_MAX_DOCUMENT_BYTES, "{live} bytes live after patches that copy");
}

/// The first event of a large piece costs the copy of the piece, not the events after it.
#[cfg(all(feature = "sse", feature = "json-lines", feature = "protobuf"))]
fn decoding_is_on_demand() {
    use ag_ui_stream::RawItem;
    use ag_ui_stream::codec::{Decoder, Format};
    use futures::executor::block_on_stream;

    const COUNT: usize = 100_000;
    fn check(name: &str, piece: &[u8], mut next: impl FnMut() -> Option<RawItem>) {
        let region = Region::new(ALLOCATOR);
        assert!(next().is_some(), "{name}");
        let change = region.change();
        let room = piece.len() * 2 + 16 * 1024;
        assert!(change.bytes_allocated <= room, "{name}: {} bytes for {}", change.bytes_allocated, piece.len());
        assert_eq!(std::iter::from_fn(next).count(), COUNT - 1, "{name}");
    }
    let array = format!("[{}1]", "1,".repeat(COUNT - 1)).into_bytes();
    let step = [0, 0, 0, 3, 0x82, 2, 0];
    for (name, format, piece) in [
        ("sse", Format::Sse, b"data:1\n\n".repeat(COUNT)),
        ("json lines", Format::JsonLines, b"1\n".repeat(COUNT)),
        // Of an unknown type: each gives a warning.
        ("protobuf", Format::Protobuf, step.repeat(COUNT)),
    ] {
        let mut decoder = Decoder::new(format);
        let mut is_new = true;
        check(name, &piece, || {
            if std::mem::take(&mut is_new) {
                decoder.push(&piece).unwrap();
            }
            decoder.pop()
        });
    }
    #[cfg(feature = "record")]
    for (name, piece) in [
        ("recorded capture", b"data:1\n\n".repeat(COUNT)),
        ("recorded lines", b"1\n".repeat(COUNT)),
        ("recorded array", array),
    ] {
        use ag_ui_stream::record::{RecordStreamExt, Timing};

        let source = futures::stream::iter([Ok::<_, std::convert::Infallible>(&piece[..])]);
        let mut replayed = block_on_stream(Box::pin(source.replay(Timing::immediate())));
        check(name, &piece, || replayed.next().map(Result::unwrap));
    }
}
