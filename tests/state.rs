//! Assembly of state: rules A6, O8, R6.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod support;

use ag_ui_stream::Rule;
use ag_ui_stream::machine::{Pipeline, Push};
use serde_json::{Value, json};
use support::assembled::*;
use support::*;

#[test]
fn a6_the_state_is_the_empty_object_until_someone_sets_it() {
    assert_eq!(*assemble_run([]).snapshot.state(), json!({}));
    let patched = assemble_run([state_patch(json!([{"op": "add", "path": "/a", "value": 1}]))]);
    assert_eq!(*patched.snapshot.state(), json!({"a": 1}));
}

#[test]
fn a6_a_snapshot_replaces_the_state_by_any_value() {
    for value in cases([json!(null), json!(false), json!(0), json!(""), json!([1]), json!({"b": 1}), json!(1.5)]) {
        let assembled = assemble_run([state(json!({"a": {"b": 1}})), by("s", state(value.clone()))]);
        assert_eq!(*assembled.snapshot.state(), value);
        assert!(assembled.at(2).changed_state());
        // Null is a state like any other, and can be patched as a whole.
        let patch = json!([{"op": "test", "path": "", "value": value}, {"op": "add", "path": "", "value": {}}]);
        let patched = assemble_run([state(value.clone()), state_patch(patch)]);
        assert_eq!(*patched.snapshot.state(), json!({}));
    }
}

#[test]
fn a6_operations_apply_in_order() {
    let patch = json!([
        {"op": "add", "path": "/l/0", "value": 0},
        {"op": "add", "path": "/l/-", "value": 3},
        {"op": "replace", "path": "/o/a~1b", "value": 2},
        {"op": "copy", "from": "/l/1", "path": "/o/m~0n"},
        {"op": "move", "from": "/o/gone", "path": "/new"},
        {"op": "test", "path": "/l", "value": [0, 1, 3]},
        {"op": "remove", "path": "/l/1"},
        // Members that the RFC does not define are ignored.
        {"op": "remove", "path": "/x", "value": 7, "why": "x"},
    ]);
    let before = json!({"l": [1], "o": {"a/b": 1, "gone": true}, "x": null});
    let assembled = assemble_run([state(before), state_patch(patch)]);
    let expected = json!({"l": [0, 3], "o": {"a/b": 2, "m~n": 1}, "new": true});
    assert_eq!(*assembled.snapshot.state(), expected);
    assert_eq!(assembled.warned(), []);
}

#[test]
fn a6_one_operation_that_fails_leaves_the_state_as_it_was() {
    let good = json!([
        {"op": "add", "path": "/l/0", "value": 9},
        {"op": "remove", "path": "/o/a"},
        {"op": "replace", "path": "/n", "value": 9},
    ]);
    for bad in cases([
        json!({"op": "remove", "path": "/none"}),
        json!({"op": "replace", "path": "/none", "value": 1}),
        json!({"op": "add", "path": "/none/there", "value": 1}),
        json!({"op": "add", "path": "/l/9", "value": 1}),
        json!({"op": "add", "path": "/l/01", "value": 1}),
        json!({"op": "remove", "path": "/l/-"}),
        json!({"op": "test", "path": "/n", "value": 1}),
        json!({"op": "test", "path": "/none", "value": null}),
        json!({"op": "copy", "from": "/none", "path": "/x"}),
        json!({"op": "move", "from": "/none", "path": "/x"}),
        // The value is there, the place is not.
        json!({"op": "move", "from": "/o", "path": "/none/there"}),
        json!({"op": "move", "from": "/o", "path": "/o/inside"}),
    ]) {
        let before = json!({"l": [1, 2], "o": {"a": 1}, "n": 1});
        let mut patch = good.clone();
        patch.as_array_mut().unwrap().push(bad.clone());
        let assembled = assemble_run([state(before.clone()), state_patch(patch)]);
        assert_eq!(*assembled.snapshot.state(), before, "{bad}");
        assert_eq!(assembled.warned(), [(Rule::A6, 2)], "{bad}");
        let warning = assembled.warnings()[0];
        assert_eq!(warning.path, "/delta");
        // What failed, and where.
        assert!(warning.message.contains("operation"), "{warning}");
        assert!(warning.message.contains(bad["path"].as_str().unwrap()), "{warning}");
        assert!(!assembled.at(2).is_change());
    }
}

#[test]
fn a6_a_test_compares_numbers_by_value() {
    for (held, tested, equal) in cases([
        (json!(1), json!(1.0), true),
        (json!([{"a": 1.0}]), json!([{"a": 1}]), true),
        (json!(-0.0), json!(0), true),
        (json!(1), json!("1"), false),
        (json!(1), json!(true), false),
        (json!({"a": 1}), json!({"a": 1.0, "b": 1}), false),
        (json!([1]), json!([1.0, 2]), false),
        (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64), false),
    ]) {
        let patch = json!([{"op": "test", "path": "/n", "value": tested}, {"op": "add", "path": "/ok", "value": true}]);
        let assembled = assemble_run([state(json!({"n": held})), state_patch(patch)]);
        assert_eq!(assembled.snapshot.state().get("ok").is_some(), equal, "{held} {tested}");
        assert_eq!(assembled.warned().is_empty(), equal);
    }
}

#[test]
fn a6_an_operation_of_a_later_version_is_dropped_and_the_others_apply() {
    let patch = json!([{"op": "later", "path": "/a"}, {"op": "add", "path": "/a", "value": 1}]);
    let assembled = assemble_run([state_patch(patch)]);
    assert_eq!(*assembled.snapshot.state(), json!({"a": 1}));
    assert_eq!(assembled.warned(), [(Rule::E3, 1)]);
}

#[test]
fn a6_the_state_from_before_the_stream_is_the_baseline() {
    let patch = state_patch(json!([{"op": "replace", "path": "/a", "value": 2}]));
    let assembled = assemble_with(builder().state(json!({"a": 1})), &in_run([patch]));
    assert_eq!(*assembled.snapshot.state(), json!({"a": 2}));
}

#[test]
fn a6_a_consumer_that_did_not_ask_learns_the_baseline_from_the_echo() {
    let echo = |value: Value| {
        with(run_started(), json!({"input": {"threadId": "t", "runId": "r", "messages": [], "state": value}}))
    };
    let events = [echo(json!({"a": 1})), run_finished(), echo(json!({"a": 0})), run_finished()];
    assert_eq!(*assemble(&events).snapshot.state(), json!({"a": 1}));
    let held = assemble_with(builder().state(json!({"mine": 1})), &events);
    assert_eq!(*held.snapshot.state(), json!({"mine": 1}));
    let set = [run_started(), state(json!(null)), run_finished(), echo(json!({"a": 0})), run_finished()];
    assert_eq!(*assemble(&set).snapshot.state(), json!(null));
}

#[test]
fn a6_a_patch_that_does_not_apply_sets_nothing() {
    let echo =
        with(run_started(), json!({"input": {"threadId": "t", "runId": "r", "messages": [], "state": {"a": 1}}}));
    let state_after = |path: &str| {
        let patch = json!([{"op": "add", "path": "/b", "value": 2}, {"op": "add", "path": path, "value": 3}]);
        let events = [run_started(), state_patch(patch), run_finished(), echo.clone(), run_finished()];
        assemble(&events).snapshot.state().clone()
    };
    assert_eq!(state_after("/none/c"), json!({"a": 1}));
    assert_eq!(state_after("/c"), json!({"b": 2, "c": 3}));
}

#[test]
fn r6_the_state_outlives_its_run() {
    let mut events = vec![run_started(), state(json!({"a": 1})), run_error()];
    events.extend(in_run([state_patch(json!([{"op": "add", "path": "/b", "value": 2}]))]));
    assert_eq!(*assemble(&events).snapshot.state(), json!({"a": 1, "b": 2}));
}

#[test]
fn a8_a_held_state_is_not_patched() {
    let mut pipeline = Pipeline::new();
    let add = state_patch(json!([{"op": "add", "path": "/n", "value": 1}]));
    let fail = state_patch(json!([{"op": "add", "path": "/n", "value": 2}, {"op": "remove", "path": "/none"}]));
    pipeline.push(run_started()).unwrap();
    let first = pipeline.snapshot().clone();
    pipeline.push(&add).unwrap();
    let second = pipeline.snapshot().clone();
    pipeline.push(&fail).unwrap();
    assert_eq!((first.state(), second.state()), (&json!({}).into(), &json!({"n": 1}).into()));
    assert_eq!(*pipeline.snapshot().state(), json!({"n": 1}));
}

#[test]
fn the_state_can_be_read_as_a_type() {
    let assembled = assemble_run([state(json!({"a": [1, 2]}))]);
    let read: std::collections::BTreeMap<String, Vec<u32>> = assembled.snapshot.state_as().unwrap();
    assert_eq!(read["a"], [1, 2]);
    assert!(assembled.snapshot.state_as::<Vec<u32>>().is_err());
}
