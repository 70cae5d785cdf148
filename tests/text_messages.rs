//! Assembly of text messages: rules A1, A4, A12, S3, S5, S6, and messages that share an id.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod support;

use ag_ui_stream::Rule;
use ag_ui_stream::snapshot::ItemStatus;
use serde_json::{Value, json};
use support::assembled::*;
use support::*;

#[test]
fn s3_deltas_concatenate_byte_for_byte() {
    let deltas = ["", " a\n", "", "e\u{301}", "\u{1F468}", "\u{200D}\u{1F469}", "\t ", ""];
    let mut events = vec![text_start("m")];
    events.extend(deltas.iter().map(|part| delta("m", part)));
    events.push(text_end("m"));
    let assembled = assemble_run(events);
    assert_eq!(assembled.messages(), [assistant("m", &deltas.concat())]);
}

#[test]
fn s3_an_empty_delta_changes_nothing() {
    let assembled = assemble_run([text_start("m"), delta("m", ""), text_end("m")]);
    assert!(!assembled.at(2).is_change());
    assert_eq!(assembled.messages(), [assistant("m", "")]);
}

#[test]
fn s6_the_role_decides_the_message() {
    for role in cases(["assistant", "user", "system", "developer"]) {
        let start = with(text_start("m"), json!({"role": role, "name": "n"}));
        let assembled = assemble_run([by("a", start), text_content("m"), text_end("m")]);
        let expected = json!({"id": "m", "role": role, "name": "n", "content": "x", "subagentRunId": "a"});
        assert_eq!(assembled.messages(), [expected]);
    }
}

#[test]
fn s5_a_reopened_message_continues_and_keeps_its_fields() {
    let reopened = with(text_start("m"), json!({"role": "user", "name": "other"}));
    let assembled = assemble_run(
        [with(text_start("m"), json!({"name": "n"})), delta("m", "a"), text_end("m")]
            .into_iter()
            .chain(text("between", "x"))
            .chain([reopened, delta("m", "b"), text_end("m")]),
    );
    let expected = json!({"id": "m", "role": "assistant", "name": "n", "content": "ab"});
    assert_eq!(assembled.messages(), [expected, assistant("between", "x")]);
}

#[test]
fn s5_a_message_of_an_earlier_run_goes_on_with_its_first_owner() {
    let mut events = in_run([by("a", text_start("m")), delta("m", "1"), text_end("m")]);
    events.extend(in_run([by("b", text_start("m")), delta("m", "2"), text_end("m")]));
    events.extend(in_run([text_start("m"), delta("m", "3"), text_end("m")]));
    assert_eq!(assemble(&events).messages(), [by("a", assistant("m", "123"))]);
}

#[test]
fn r5_items_that_a_failed_run_left_open_can_continue_in_the_next() {
    let mut events = vec![run_started(), text_start("m"), delta("m", "a"), run_error()];
    let failed = assemble(&events);
    assert_eq!(failed.messages(), [assistant("m", "a")]);
    assert_eq!(failed.snapshot.message_status("m"), Some(ItemStatus::Abandoned));
    events.extend(in_run([text_start("m"), delta("m", "b"), text_end("m")]));
    let assembled = assemble(&events);
    assert_eq!(assembled.messages(), [assistant("m", "ab")]);
    assert_eq!(assembled.snapshot.message_status("m"), Some(ItemStatus::Complete));
}

#[test]
fn a1_metadata_of_every_event_merges_key_by_key() {
    let assembled = assemble_run([
        with(text_start("m"), json!({"metadata": {"a": {"x": 1}, "b": 1}})),
        with(delta("m", "x"), json!({"metadata": {"a": {"y": 2}, "c": null}})),
        with(delta("m", ""), json!({"metadata": {"d": [1]}})),
        with(text_end("m"), json!({"metadata": {"b": 2}})),
        // Reopened, it goes on as well.
        with(text_start("m"), json!({"metadata": {"e": 1}})),
        text_end("m"),
    ]);
    let metadata = json!({"a": {"y": 2}, "b": 2, "c": null, "d": [1], "e": 1});
    assert_eq!(assembled.messages(), [with(assistant("m", "x"), json!({"metadata": metadata}))]);
    assert!(assembled.at(3).changed_messages());
}

#[test]
fn a4_text_for_an_activity_is_dropped_with_one_warning() {
    let mut events = vec![activity("m", json!({"a": 1}))];
    events.extend(text("m", "lost"));
    let assembled = assemble_run(events);
    assert_eq!(assembled.messages(), [active("m", json!({"a": 1}))]);
    assert_eq!(assembled.warned(), [(Rule::A4, 2)]);
}

#[test]
fn a4_text_goes_on_in_a_message_that_a_tool_call_made() {
    let mut events = call("c", "{}").to_vec();
    events.extend(text("c", "hello"));
    let assembled = assemble_run(events);
    assert_eq!(assembled.messages(), [with(caller("c", &[("c", "{}")]), json!({"content": "hello"}))]);
    assert_eq!(assembled.warned(), []);
}

#[test]
fn a4_text_goes_on_the_last_part_or_into_a_new_one() {
    let image = json!({"type": "image", "source": {"type": "url", "value": "u"}});
    let parts = |parts: Value| json!({"role": "user", "id": "m", "content": parts});
    let note = json!({"type": "text", "text": "see ", "id": "p", "metadata": 1});
    for (before, after) in cases([
        (json!([image, note]), json!([image, {"type": "text", "text": "see xy", "id": "p", "metadata": 1}])),
        (json!([note, image]), json!([note, image, {"type": "text", "text": "xy"}])),
        (json!([]), json!([{"type": "text", "text": "xy"}])),
    ]) {
        let events = in_run([text_start("m"), delta("m", "x"), delta("m", "y"), text_end("m")]);
        let assembled = assemble_with(builder().history(typed(&[parts(before)])), &events);
        assert_eq!(assembled.messages(), [parts(after)]);
    }
}

#[test]
fn a12_text_under_the_id_of_reasoning_is_a_message_of_its_own() {
    let mut events = reasoning("m", "hm").to_vec();
    events.extend([text_start("m"), delta("m", "yes"), thought_start("m"), thought("m", " hm"), delta("m", ", yes")]);
    events.extend([text_end("m"), thought_end("m")]);
    let mut events = in_run(events);
    let expected = [reasoned("m", "hm hm"), assistant("m", "yes, yes")];
    let assembled = assemble(&events);
    assert_eq!(assembled.messages(), expected);
    assert_eq!(assembled.warned(), [(Rule::A12, 4)]);
    // The next run finds both again.
    events.extend(in_run(text("m", "!").into_iter().chain(reasoning("m", "?"))));
    assert_eq!(assemble(&events).messages(), [reasoned("m", "hm hm?"), assistant("m", "yes, yes!")]);
}

#[test]
fn a12_a_history_with_text_and_reasoning_under_one_id_continues_both() {
    let history = typed(&[reasoned("m", "hm"), assistant("m", "yes")]);
    let events = in_run(text("m", "!").into_iter().chain(reasoning("m", "?")));
    let assembled = assemble_with(builder().history(history), &events);
    assert_eq!(assembled.messages(), [reasoned("m", "hm?"), assistant("m", "yes!")]);
    assert_eq!(assembled.warned(), []);
}

#[test]
fn s4_messages_that_take_turns_keep_their_texts_apart() {
    let ids = ["a", "b", "c"];
    let mut events: Vec<Value> = ids.iter().map(|id| text_start(id)).collect();
    // Twice in a row now and then, so that the one that grows at the moment changes.
    for id in ["a", "a", "b", "c", "c", "c", "a", "b", "b", "a"] {
        events.push(delta(id, id));
    }
    events.extend(ids.iter().map(|id| text_end(id)));
    assert_eq!(assemble_run(events).messages(), [assistant("a", "aaaa"), assistant("b", "bbb"), assistant("c", "ccc")]);
}

#[test]
fn e8_an_empty_id_and_an_empty_owner_are_ordinary() {
    let assembled = assemble_run([by("", text_start("")), delta("", "x"), text_end("")]);
    assert_eq!(assembled.messages(), [by("", assistant("", "x"))]);
    let owner = "".into();
    assert_eq!(assembled.snapshot.messages_of(Some(&owner)).count(), 1);
    assert_eq!(assembled.snapshot.messages_of(None).count(), 0);
}
