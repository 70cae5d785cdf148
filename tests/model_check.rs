//! Assembly against the naive model, over all short streams: two ids, two owners, and the events of text,
//! chunks, reasoning, tool calls, activities, snapshots and runs.
//!
//! `MODEL_CHECK_LENGTH=6 cargo test --release --test model_check` goes further than the default, in half an hour;
//! how many streams were compared is printed with `-- --nocapture`.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a test that tells how much it compared")]

mod support;

use ag_ui_stream::machine::{Machine, Pipeline, Push};
use serde_json::{Value, json};
use support::assembled::*;
use support::model::Model;
use support::*;

/// Events after the RUN_STARTED that begins every stream.
const LENGTH: usize = 4;

fn alphabet() -> Vec<Value> {
    let chunk = |id: Option<&str>| {
        let chunk = json!({"type": "TEXT_MESSAGE_CHUNK", "delta": "k"});
        id.map_or(chunk.clone(), |id| with(chunk, json!({"messageId": id})))
    };
    let mut events = Vec::new();
    for id in ["a", "b"] {
        events.extend([text_start(id), delta(id, "x"), text_end(id), chunk(Some(id)), call_start(id), call_end(id)]);
        events.extend([result(id, "a", json!("r")), activity(id, json!({"n": 1}))]);
    }
    events.extend([by("s", text_start("a")), by("s", call_start("a")), by("s", chunk(Some("a"))), chunk(None)]);
    events.extend([with(call_start("b"), json!({"parentMessageId": "a"})), args("a", "{}")]);
    events.extend([thought_start("a"), thought("a", "t"), thought_end("a"), encrypted_value("message", "a")]);
    events.push(with(activity("a", json!({"n": 2})), json!({"replace": false})));
    events.extend([
        messages_snapshot(json!([])),
        messages_snapshot(json!([user("a", "u"), tool("b", "a", "r")])),
        messages_snapshot(json!([reasoned("b", "r"), caller("a", &[("a", "")])])),
        messages_snapshot(json!([caller("a", &[("a", "")]), caller("b", &[("b", ""), ("a", "")])])),
    ]);
    events.extend([run_finished(), run_error(), run_started()]);
    events
}

#[derive(Default)]
struct Count {
    compared: u64,
    rejected: u64,
}

/// A pipeline after these events; only the last may be rejected, and is `None` then.
fn after(events: &[&Value]) -> Option<(Pipeline, Vec<ag_ui_stream::snapshot::Update>)> {
    let mut pipeline = Pipeline::new();
    let (last, before) = events.split_last()?;
    for event in before {
        pipeline.push(*event).unwrap();
        while pipeline.pop().is_some() {}
    }
    pipeline.push(*last).ok()?;
    let updates = std::iter::from_fn(|| pipeline.pop()).collect();
    Some((pipeline, updates))
}

fn check<'e>(alphabet: &'e [Value], events: &mut Vec<&'e Value>, model: &Model, left: usize, count: &mut Count) {
    let index = events.len() as u64 - 1;
    let Some((pipeline, updates)) = after(events) else {
        count.rejected += 1;
        return;
    };
    let mut model = model.clone();
    for event in updates.iter().filter_map(|update| update.event()) {
        model.apply(&serde_json::to_value(event).unwrap(), index);
    }
    count.compared += 1;
    let about = || events.iter().map(|event| format!("\n{event}")).collect::<String>();
    let snapshot = pipeline.snapshot();
    assert_eq!(messages(snapshot), model.messages(), "{}", about());
    for message in snapshot.messages() {
        let first = snapshot.messages().iter().find(|other| other.id() == message.id());
        assert_eq!(snapshot.message(message.id()), first, "{}", about());
    }
    let warned: Vec<_> = updates.iter().filter_map(|update| update.warning()).map(|warning| warning.rule).collect();
    let expected = model.warned.iter().filter(|(_, at)| *at == index).map(|(rule, _)| *rule);
    assert_eq!(warned, expected.collect::<Vec<_>>(), "{}", about());
    if !snapshot.run().unwrap().is_running() {
        let pending = snapshot.run().unwrap().pending_tool_call_ids();
        assert_eq!(pending.iter().map(|id| id.as_str()).collect::<Vec<_>>(), model.pending, "{}", about());
    }
    if left > 0 {
        for event in alphabet {
            events.push(event);
            check(alphabet, events, &model, left - 1, count);
            events.pop();
        }
    }
}

#[test]
fn assembly_agrees_with_the_model_on_all_short_streams() {
    let length = std::env::var("MODEL_CHECK_LENGTH").map_or(LENGTH, |length| length.parse().unwrap());
    let (alphabet, started) = (alphabet(), run_started());
    let mut count = Count::default();
    check(&alphabet, &mut vec![&started], &Model::default(), length, &mut count);
    println!("{} streams of up to {length} events compared, {} rejected", count.compared, count.rejected);
    assert!(count.compared > 1000);
}
