//! The deepest allowed nesting, on the default stack of a thread: rules E10, A5, A6.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod support;

use ag_ui_stream::machine::{Machine, Pipeline, Push};
use ag_ui_stream::{Limits, Options, RawEvent, Rule};
use serde_json::{Value, json};
use support::assembled::*;
use support::*;

/// The default stack of a thread, also of the workers of tokio.
const STACK: usize = 2 * 1024 * 1024;

fn on_a_common_stack(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, test).unwrap();
        thread.join().unwrap();
    });
}

fn deepest() -> Limits {
    Limits { max_depth: Limits::CEILING_DEPTH, ..Limits::default() }
}

/// Texts of values nested so deep: of arrays, of objects, and with so many siblings that a container
/// takes more than one node.
fn nested(depth: usize) -> [String; 3] {
    let siblings = "0,".repeat(40);
    [("[", "]"), (r#"{"a":"#, "}"), (&format!("[{siblings}"), "]")]
        .map(|(open, close)| format!("{}0{}", open.repeat(depth), close.repeat(depth)))
}

/// The same by a loop: `serde_json` reads no deeper than 128 levels.
fn value(depth: usize) -> Value {
    (0..depth).fold(json!(0), |inner, at| if at % 2 == 0 { json!([inner, 0]) } else { json!({"a": inner}) })
}

fn pushed<R: RawEvent>(event: R) -> Pipeline {
    let mut pipeline = Options::new().limits(deepest()).build();
    pipeline.push(run_started()).unwrap();
    pipeline.push(event).unwrap();
    while let Some(update) = pipeline.pop() {
        let Some(event) = update.into_event() else { continue };
        assert_eq!(event.clone(), event);
        let _ = (serde_json::to_string(&event).unwrap(), format!("{event:?}"));
    }
    pipeline
}

#[test]
fn e10_the_deepest_allowed_values_are_read_held_and_written_on_a_common_stack() {
    on_a_common_stack(|| {
        // Each with the depth that it adds around the value.
        for (around, before, after) in [
            (1, r#"{"type":"STATE_SNAPSHOT","snapshot":"#, "}"),
            (1, r#"{"type":"STATE_SNAPSHOT","later":1,"snapshot":"#, "}"),
            (1, r#"{"type":"CUSTOM","name":"n","value":"#, "}"),
            (1, r#"{"type":"RAW","event":"#, "}"),
            (2, r#"{"type":"CUSTOM","name":"n","value":0,"metadata":{"a":"#, "}}"),
            (2, r#"{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"t","content":{"a":"#, "}}"),
            (3, r#"{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":"#, "}]}"),
            (
                5,
                r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"role":"activity","id":"m","activityType":"t","content":{"a":"#,
                "}}]}",
            ),
            (3, r#"{"type":"TEXT_MESSAGE_START","messageId":"m","metadata":{"a":{"b":"#, "}}}"),
        ] {
            for value in nested(deepest().max_depth - around) {
                let text = format!("{before}{value}{after}");
                let pipeline = pushed(text.as_str());
                let snapshot = pipeline.snapshot();
                let _ = (format!("{snapshot:?}"), serde_json::to_string(&snapshot.messages()).unwrap());
                for message in snapshot.messages() {
                    assert_eq!(*message, message.clone());
                }
                let state = snapshot.state();
                let copy = state.to_value();
                assert_eq!(*state, copy);
                assert_eq!(*state, ag_ui_stream::snapshot::Document::from(copy));
                assert_eq!(state.to_string(), snapshot.state_as::<Value>().unwrap().to_string());
                let other = pushed(text.as_str());
                assert_eq!(other.snapshot().state(), state);
                let [messages, state] = snapshot.to_events();
                drop((messages, state));
            }
        }
    });
}

#[test]
fn e10_the_deepest_allowed_value_and_text_are_read_alike() {
    on_a_common_stack(|| {
        let event = state(value(deepest().max_depth - 1));
        assert_eq!(*pushed(&event).snapshot().state(), event["snapshot"]);
        let event = support::event(event);
        assert_eq!(pushed(event.clone()).snapshot(), pushed(&event).snapshot());
    });
}

#[cfg(feature = "protobuf")]
#[test]
fn e10_the_deepest_allowed_protobuf_is_read_on_a_common_stack() {
    use ag_ui_stream::codec::{Format, ProtobufDecoder};
    on_a_common_stack(|| {
        let event = event(state(value(deepest().max_depth - 1)));
        let bytes = Format::Protobuf.encode(&event).unwrap();
        let mut decoder = ProtobufDecoder::new().with_limits(deepest());
        decoder.push(&bytes).unwrap();
        let Some(read) = decoder.pop() else { panic!("an event") };
        assert_eq!(pushed(read).snapshot(), pushed(event).snapshot());
    });
}

#[test]
fn a6_a_patch_nests_no_deeper_than_an_event_could() {
    on_a_common_stack(|| {
        for max_depth in [8, deepest().max_depth] {
            let limits = Limits { max_depth, ..Limits::default() };
            // Each wraps the value once more.
            let wrap = json!([
                {"op": "add", "path": "/e", "value": {}},
                {"op": "move", "from": "/d", "path": "/e/d"},
                {"op": "move", "from": "/e", "path": "/d"},
            ]);
            let wraps = (0..max_depth + 10).map(|_| state_patch(wrap.clone()));
            let events = in_run(std::iter::once(state(json!({"d": 0}))).chain(wraps));
            let assembled = assemble_with(builder().limits(limits), &events);
            assert_eq!(assembled.error, None);
            let held = assembled.snapshot.state();
            let depth = std::iter::successors(Some(held), |value| value.get("d")).count() - 1;
            assert_eq!(depth, max_depth - 1);
            assert_eq!(assembled.warned().len(), max_depth + 11 - depth);
            assert!(assembled.warnings()[0].message.contains("deeper than"), "{}", assembled.warnings()[0]);
            // A viewer that joins late, with the same limits, can read the events that it is sent.
            let [_, event] = assembled.snapshot.to_events();
            let text = serde_json::to_string(&event).unwrap();
            let events = [run_started().to_string(), text];
            let mut pipeline = Options::new().limits(limits).build();
            assert!(events.iter().all(|event| pipeline.push(event.as_str()).is_ok()));
            // The deepest place is reached, changed and left again.
            let path = "/d".repeat(depth);
            let patch = json!([
                {"op": "replace", "path": path, "value": 1},
                {"op": "test", "path": path, "value": 1},
                {"op": "copy", "from": path, "path": format!("{path}2")},
                {"op": "remove", "path": path},
            ]);
            pipeline.push(state_patch(patch)).unwrap();
            assert_eq!(pipeline.snapshot().state().pointer(&format!("{path}2")), Some(&json!(1).into()));
        }
    });
}

#[test]
fn a5_a_patch_of_an_activity_nests_no_deeper_than_an_event_could() {
    let limits = Limits { max_depth: 4, ..Limits::default() };
    let add = |path: &str, value: Value| activity_patch("act", json!([{"op": "add", "path": path, "value": value}]));
    let events = in_run([
        activity("act", json!({})),
        add("/a", json!([])),
        add("/a/0", json!([])),
        add("/a/0/0", json!([])),
        add("/a/0/0", json!(1)),
    ]);
    let assembled = assemble_with(builder().limits(limits), &events);
    assert_eq!(assembled.messages(), [active("act", json!({"a": [[1]]}))]);
    assert_eq!(assembled.warned(), [(Rule::A5, 4)]);
}
