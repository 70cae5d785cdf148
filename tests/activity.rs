//! Assembly of activity: rules A1, A4, A5.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod support;

use ag_ui_stream::Rule;
use ag_ui_stream::snapshot::ItemStatus;
use serde_json::{Value, json};
use support::assembled::*;
use support::*;

fn typed_as(kind: &str, event: Value) -> Value {
    with(event, json!({"activityType": kind}))
}

#[test]
fn a5_a_snapshot_makes_an_activity_where_it_arrives() {
    let events = text("a", "x").into_iter().chain([by("s", activity("act", json!({"n": 1})))]).chain(text("b", "x"));
    let assembled = assemble_run(events);
    assert_eq!(
        assembled.messages(),
        [assistant("a", "x"), by("s", active("act", json!({"n": 1}))), assistant("b", "x")]
    );
}

#[test]
fn a5_a_snapshot_replaces_content_type_and_owner_but_not_metadata() {
    let assembled = assemble_run([
        with(by("s", activity("act", json!({"n": 1}))), json!({"metadata": {"a": 1, "b": 1}})),
        with(typed_as("search", activity("act", json!({"m": 2}))), json!({"metadata": {"b": 2}})),
    ]);
    let expected = json!({"id": "act", "role": "activity", "activityType": "search", "content": {"m": 2},
        "metadata": {"a": 1, "b": 2}});
    assert_eq!(assembled.messages(), [expected]);
}

#[test]
fn a5_replace_false_creates_but_does_not_replace() {
    let gently = |event| with(event, json!({"replace": false}));
    let assembled = assemble_run([
        gently(by("s", activity("act", json!({"n": 1})))),
        gently(typed_as("search", activity("act", json!({"m": 2})))),
        with(gently(by("t", activity("act", json!({"m": 2})))), json!({"metadata": {"a": 1}})),
    ]);
    assert_eq!(assembled.messages(), [with(by("s", active("act", json!({"n": 1}))), json!({"metadata": {"a": 1}}))]);
    assert!(!assembled.at(2).is_change());
    assert!(assembled.at(3).changed_messages());
}

#[test]
fn a5_a_snapshot_replaces_another_message_unless_replace_is_false() {
    let held = [user("a", "x"), with(assistant("m", "y"), json!({"metadata": {"old": 1}})), user("b", "z")];
    let snapshot = with(activity("m", json!({"n": 1})), json!({"metadata": {"new": 1}}));
    let assembled = assemble_with(builder().history(typed(&held)), &in_run([snapshot.clone()]));
    let expected = with(active("m", json!({"n": 1})), json!({"metadata": {"new": 1}}));
    assert_eq!(assembled.messages(), [held[0].clone(), expected, held[2].clone()]);
    let gently = with(snapshot, json!({"replace": false}));
    let assembled = assemble_with(builder().history(typed(&held)), &in_run([gently]));
    assert_eq!(assembled.messages(), held);
    assert!(!assembled.at(1).is_change());
}

#[test]
fn a4_text_for_a_message_that_became_an_activity_is_not_assembled() {
    let mut events = vec![text_start("m"), delta("m", "a"), delta("m", "b"), call_start("c"), call_start("d")];
    events.push(with(call_start("e"), json!({"parentMessageId": "c"})));
    events.extend([activity("m", json!({})), activity("c", json!({})), delta("m", "lost"), args("c", "lost")]);
    events.extend([args("d", "kept"), args("e", "lost")]);
    events.extend([text_end("m"), call_end("c"), call_end("d"), call_end("e")]);
    let assembled = assemble_run(events);
    let expected = [active("m", json!({})), active("c", json!({})), caller("d", &[("d", "kept")])];
    assert_eq!(assembled.messages(), expected);
    assert_eq!(assembled.warned(), [(Rule::A4, 7), (Rule::A4, 8)]);
    let told: Vec<_> = assembled.warnings().into_iter().map(|warning| &warning.message).collect();
    assert!(told[0].contains("\"m\"") && told[1].contains("\"c\"") && told[1].contains('2'), "{told:?}");
    for id in cases(["c", "e"]) {
        assert_eq!(assembled.snapshot.tool_call(id), None);
        assert_eq!(assembled.snapshot.tool_call_status(id), None);
        assert_eq!(assembled.snapshot.tool_call_message(id), None);
    }
    assert_eq!(assembled.snapshot.message_status("m"), Some(ItemStatus::Complete));
}

#[test]
fn a3_a_call_that_an_activity_displaced_is_made_again() {
    let mut events = call("c", "1").to_vec();
    events.push(activity("c", json!({})));
    events.push(result("r", "c", json!("x")));
    events.extend(call("c", "2"));
    events.push(result("s", "c", json!("y")));
    let assembled = assemble_run(events);
    let expected = [active("c", json!({})), tool("r", "c", "x"), caller("c", &[("c", "2")]), tool("s", "c", "y")];
    assert_eq!(assembled.messages(), expected);
    assert_eq!(assembled.snapshot.tool_call("c").unwrap().function.arguments, "2");
}

#[test]
fn a5_a_delta_patches_content_and_sets_the_type() {
    let patch = json!([{"op": "add", "path": "/l/-", "value": 2}, {"op": "remove", "path": "/n"}]);
    let assembled = assemble_run([
        activity("act", json!({"l": [1], "n": 1})),
        with(typed_as("search", activity_patch("act", patch)), json!({"metadata": {"a": 1}})),
    ]);
    let expected = json!({"id": "act", "role": "activity", "activityType": "search", "content": {"l": [1, 2]},
        "metadata": {"a": 1}});
    assert_eq!(assembled.messages(), [expected]);
}

#[test]
fn a5_a_delta_for_an_absent_or_other_message_is_skipped_with_a_warning() {
    let mut events = text("m", "x").to_vec();
    events.extend([activity_patch("m", json!([])), activity_patch("none", json!([]))]);
    let assembled = assemble_run(events);
    assert_eq!(assembled.messages(), [assistant("m", "x")]);
    assert_eq!(assembled.warned(), [(Rule::A5, 4), (Rule::A5, 5)]);
}

#[test]
fn a5_a_patch_that_does_not_apply_keeps_content_and_type() {
    for patch in [
        json!([{"op": "replace", "path": "/n", "value": 2}, {"op": "remove", "path": "/none"}]),
        json!([{"op": "move", "from": "/n", "path": "/none/there"}]),
        json!([{"op": "replace", "path": "/n", "value": 2}, {"op": "test", "path": "/n", "value": 1}]),
        // Content has to stay an object.
        json!([{"op": "replace", "path": "", "value": [1]}]),
        json!([{"op": "replace", "path": "/n", "value": 2}, {"op": "copy", "from": "/n", "path": ""}]),
        json!([{"op": "move", "from": "/n", "path": ""}]),
        json!([{"op": "remove", "path": ""}]),
    ] {
        let event = with(typed_as("search", activity_patch("act", patch.clone())), json!({"metadata": {"a": 1}}));
        let assembled = assemble_run([activity("act", json!({"n": 1})), event]);
        let expected = with(active("act", json!({"n": 1})), json!({"metadata": {"a": 1}}));
        assert_eq!(assembled.messages(), [expected], "{patch}");
        assert_eq!(assembled.warned(), [(Rule::A5, 2)], "{patch}");
    }
}

#[test]
fn a5_the_whole_content_can_be_replaced_by_another_object() {
    let patch = json!([{"op": "replace", "path": "", "value": [1]}, {"op": "add", "path": "", "value": {"m": 2}}]);
    let assembled = assemble_run([activity("act", json!({"n": 1})), activity_patch("act", patch)]);
    assert_eq!(assembled.messages(), [active("act", json!({"m": 2}))]);
    assert_eq!(assembled.warned(), []);
}
