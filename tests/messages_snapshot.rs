//! MESSAGES_SNAPSHOT and the echo of the input: rules A2, A10, A11, R12.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod support;

use ag_ui_stream::Rule;
use ag_ui_stream::snapshot::ItemStatus;
use serde_json::{Value, json};
use support::assembled::*;
use support::*;

/// A run of one snapshot on top of these messages.
#[track_caller]
fn on_top_of(held: &[Value], snapshot: &[Value]) -> Assembled {
    let assembled = assemble_with(builder().history(typed(held)), &in_run([messages_snapshot(json!(snapshot))]));
    assert_eq!(assembled.error, None);
    assembled
}

#[test]
fn a2_held_messages_are_replaced_in_place_and_new_ones_appended_in_order() {
    let held = [user("a", "1"), assistant("b", "2"), user("c", "3")];
    let snapshot =
        [assistant("x", "9"), user("c", "33"), assistant("y", "8"), by("s", user("a", "11")), assistant("b", "22")];
    let assembled = on_top_of(&held, &snapshot);
    let expected =
        [by("s", user("a", "11")), assistant("b", "22"), user("c", "33"), assistant("x", "9"), assistant("y", "8")];
    assert_eq!(assembled.messages(), expected);
    assert_eq!(assembled.warned(), []);
    let update = assembled.at(1);
    assert!(update.changed_messages() && update.message().is_none() && update.message_index().is_none());
}

#[test]
fn a2_messages_that_a_snapshot_leaves_out_are_dropped() {
    let held = [user("a", "1"), tool("t", "c", "2"), caller("m", &[("c", "{}")]), user("b", "3")];
    let assembled = on_top_of(&held, &[user("b", "3")]);
    assert_eq!(assembled.messages(), [user("b", "3")]);
    assert_eq!(assembled.snapshot.message("a"), None);
    assert_eq!(assembled.snapshot.tool_call("c"), None);
    assert!(on_top_of(&held, &[]).messages().is_empty());
}

#[test]
fn a2_activity_and_reasoning_stay_unless_the_snapshot_carries_any() {
    let held =
        [reasoned("r1", "hm"), user("u", "1"), active("a1", json!({})), reasoned("r2", "so"), active("a2", json!({}))];
    for (snapshot, expected) in [
        (vec![], vec!["r1", "a1", "r2", "a2"]),
        (vec![user("u", "2"), user("v", "3")], vec!["r1", "u", "a1", "r2", "a2", "v"]),
        (vec![active("a2", json!({}))], vec!["r1", "r2", "a2"]),
        (vec![active("a3", json!({}))], vec!["r1", "r2", "a3"]),
        (vec![reasoned("r1", "new")], vec!["r1", "a1", "a2"]),
        (vec![reasoned("r9", "new"), active("a9", json!({}))], vec!["r9", "a9"]),
    ] {
        assert_eq!(on_top_of(&held, &snapshot).ids(), expected, "{snapshot:?}");
    }
}

#[test]
fn a2_a_message_can_come_back_as_another_kind() {
    let held = [user("a", "1"), active("m", json!({})), user("b", "2")];
    let assembled = on_top_of(&held, &[user("a", "1"), user("b", "2"), assistant("m", "x")]);
    assert_eq!(assembled.messages(), [user("a", "1"), assistant("m", "x"), user("b", "2")]);
}

#[test]
fn a10_an_id_repeated_in_a_snapshot_is_its_last_copy_at_the_place_of_the_first() {
    let snapshot = [assistant("m", "1"), user("u", "x"), assistant("m", "2"), assistant("m", "3")];
    let assembled = on_top_of(&[], &snapshot);
    assert_eq!(assembled.messages(), [assistant("m", "3"), user("u", "x")]);
    assert_eq!(assembled.warned(), [(Rule::A10, 1), (Rule::A10, 1)]);
    let paths: Vec<_> = assembled.warnings().into_iter().map(|warning| warning.path.as_str()).collect();
    assert_eq!(paths, ["/messages/2/id", "/messages/3/id"]);
}

#[test]
fn a12_a_copy_replaces_the_message_of_its_own_kind() {
    let held = [reasoned("m", "hm"), assistant("m", "yes")];
    let assembled = on_top_of(&held, &[assistant("m", "no")]);
    assert_eq!(assembled.messages(), [reasoned("m", "hm"), assistant("m", "no")]);
    // And both continue with their kind.
    let mut events = in_run([messages_snapshot(json!([assistant("m", "no")]))]);
    events.extend(in_run(text("m", "!").into_iter().chain(reasoning("m", "?"))));
    let assembled = assemble_with(builder().history(typed(&held)), &events);
    assert_eq!(assembled.messages(), [reasoned("m", "hm?"), assistant("m", "no!")]);
}

#[test]
fn a12_reasoning_after_a_result_of_its_id_continues_after_a_snapshot() {
    // The result comes first since its caller does.
    let assembled = assemble_run([
        call_start("c"),
        call_end("c"),
        thought_start("m"),
        thought("m", "a"),
        result("m", "c", json!("x")),
        messages_snapshot(json!([caller("c", &[("c", "")]), tool("m", "c", "x")])),
        thought("m", "b"),
        thought_end("m"),
    ]);
    assert_eq!(assembled.messages(), [caller("c", &[("c", "")]), tool("m", "c", "x"), reasoned("m", "ab")]);
    assert_eq!(assembled.warned(), [(Rule::A10, 5)]);
}

// What is open

#[test]
fn a2_streaming_text_continues_in_the_copy() {
    let assembled = assemble_run([
        text_start("m"),
        delta("m", "a"),
        call_start("c"),
        args("c", "1"),
        messages_snapshot(json!([
            with(caller("other", &[("c", "12")]), json!({"content": "x"})),
            assistant("m", "AB")
        ])),
        delta("m", "c"),
        delta("m", "d"),
        args("c", "3"),
        text_end("m"),
        call_end("c"),
    ]);
    let other = with(caller("other", &[("c", "123")]), json!({"content": "x"}));
    assert_eq!(assembled.messages(), [assistant("m", "ABcd"), other]);
    assert_eq!(assembled.warned(), []);
}

#[test]
fn a11_text_for_a_dropped_message_is_not_assembled_and_its_item_stays_open() {
    let mut events = vec![text_start("m"), delta("m", "a"), call_start("c"), thought_start("r"), text_start("kept")];
    events.extend([messages_snapshot(json!([assistant("kept", ""), reasoned("x", "")]))]);
    events.extend([delta("m", "b"), delta("m", "b"), args("c", "1"), thought("r", "x"), delta("kept", "y")]);
    let open = assemble_open(events.clone());
    assert_eq!(open.snapshot.run().unwrap().open().len(), 4);
    assert!(!open.at(7).is_change());
    events.extend([text_end("m"), call_end("c"), thought_end("r"), text_end("kept")]);
    let assembled = assemble_run(events);
    assert_eq!(assembled.messages(), [assistant("kept", "y"), reasoned("x", "")]);
    assert_eq!(assembled.warned(), [(Rule::A11, 6), (Rule::A11, 6), (Rule::A11, 6)]);
    let told: Vec<_> = assembled.warnings().into_iter().map(|warning| warning.message.as_str()).collect();
    // In the order of their opening.
    assert!(told[0].contains("\"m\"") && told[1].contains("\"c\"") && told[2].contains("\"r\""), "{told:?}");
    assert!(assembled.at(12).changed_run());
}

#[test]
fn a11_a_dropped_message_gives_one_warning_whatever_streams_into_it() {
    let parent = |id: &str| with(call_start(id), json!({"parentMessageId": "m"}));
    let events = [text_start("m"), parent("c"), parent("d"), thought_start("r"), messages_snapshot(json!([]))];
    let assembled = assemble_open(events);
    assert_eq!(assembled.warned(), [(Rule::A11, 5)], "the thought is kept");
    let told = &assembled.warnings()[0].message;
    assert!(told.contains("text message \"m\"") && told.contains("2 more"), "{told}");
}

#[test]
fn a2_a_snapshot_of_the_held_messages_changes_nothing() {
    let mut events: Vec<Value> = text("m", "x").into();
    events.extend([call_start("c"), args("c", "{}"), call_end("c"), result("r", "c", json!("1"))]);
    events.extend(reasoning("t", "hm"));
    let held = [assistant("m", "x"), caller("c", &[("c", "{}")]), tool("r", "c", "1")];
    events.push(messages_snapshot(json!(held)));
    let at = events.len() as u64;
    let assembled = assemble_run(events.clone());
    assert!(!assembled.at(at).is_change());
    assert_eq!(assembled.snapshot.tool_call_status("c"), Some(ItemStatus::Complete));
    events.push(messages_snapshot(json!(held[1..])));
    assert!(assemble_run(events).at(at + 1).changed_messages());
}

#[test]
fn a2_messages_keep_their_places_when_others_come_and_go() {
    let mut events: Vec<Value> = text("a", "1").into();
    events.extend(reasoning("t", "hm"));
    events.extend(text("b", "2"));
    events.push(activity("v", json!({})));
    events.extend(text("c", "3"));
    // Dropped in the middle, changed, and new at the end; also after the last was dropped.
    events.push(messages_snapshot(json!([assistant("new", "4"), assistant("b", "two")])));
    events.extend(text("d", "5"));
    events.push(messages_snapshot(json!([assistant("a", "6"), assistant("b", "two"), assistant("new", "4")])));
    let assembled = assemble_run(events);
    assert_eq!(assembled.ids(), ["t", "b", "v", "new", "a"]);
    for (at, id) in assembled.ids().iter().enumerate() {
        assert_eq!(assembled.snapshot.message(id), assembled.snapshot.messages().get(at));
    }
    assert_eq!((assembled.snapshot.message("c"), assembled.snapshot.message("d")), (None, None));
}

#[test]
fn a11_a_dropped_message_goes_on_when_a_later_snapshot_brings_it() {
    let assembled = assemble_run([
        text_start("m"),
        call_start("c"),
        messages_snapshot(json!([])),
        messages_snapshot(json!([])),
        messages_snapshot(json!([assistant("m", "ab"), caller("n", &[("c", "12")])])),
        delta("m", "c"),
        args("c", "3"),
        text_end("m"),
        call_end("c"),
    ]);
    assert_eq!(assembled.messages(), [assistant("m", "abc"), caller("n", &[("c", "123")])]);
    assert_eq!(assembled.warned(), [(Rule::A11, 3), (Rule::A11, 3)]);
}

#[test]
fn a11_a_message_that_comes_back_as_an_activity_is_gone_for_its_text() {
    let assembled = assemble_run([
        text_start("m"),
        messages_snapshot(json!([active("m", json!({}))])),
        delta("m", "lost"),
        text_end("m"),
    ]);
    assert_eq!(assembled.messages(), [active("m", json!({}))]);
    assert_eq!(assembled.warned(), [(Rule::A11, 2)]);
}

#[test]
fn a8_the_status_says_what_streams_after_a_snapshot() {
    let mut events = vec![run_started(), text_start("old"), call_start("k"), run_error()];
    events.extend([run_started(), text_start("m"), call_start("c")]);
    let copies = [assistant("old", ""), caller("k", &[("k", "")]), assistant("m", ""), caller("c", &[("c", "")])];
    events.push(messages_snapshot(json!(copies)));
    let assembled = assemble_with(builder(), &events);
    let last = assembled.at(7).snapshot();
    assert_eq!(["old", "m"].map(|id| last.message_status(id).unwrap()), [ItemStatus::Complete, ItemStatus::Streaming]);
    assert_eq!(["k", "c"].map(|id| last.tool_call_status(id).unwrap()), [ItemStatus::Complete, ItemStatus::Streaming]);
}

#[test]
fn s9_results_go_after_their_caller_after_a_snapshot() {
    let assembled = assemble_run([
        call_start("c"),
        call_end("c"),
        result("r1", "c", json!("1")),
        messages_snapshot(json!([user("u", "x"), caller("c", &[("c", "")]), tool("r1", "c", "1"), user("v", "y")])),
        result("r2", "c", json!("2")),
    ]);
    assert_eq!(assembled.ids(), ["c", "r1", "r2", "u", "v"]);
}

#[test]
fn s9_a_snapshot_resets_where_results_go() {
    // The place of the first caller is that of the second one afterwards.
    let mut events = text("x", "x").to_vec();
    events.extend([call_start("c"), call_end("c"), result("r1", "c", json!("1"))]);
    let copies = [caller("c", &[("c", "")]), caller("d", &[("d", "")]), user("v", "y"), user("w", "z")];
    events.extend([messages_snapshot(json!(copies)), result("r2", "d", json!("2"))]);
    assert_eq!(assemble_run(events).ids(), ["c", "d", "r2", "v", "w"]);
}

#[test]
fn e3_removed_messages_are_not_restated() {
    let odd = json!({"role": "later", "id": "x"});
    let assembled = on_top_of(&[user("a", "1"), user("x", "2")], &[user("a", "1"), odd]);
    assert_eq!(assembled.messages(), [user("a", "1")]);
    assert_eq!(assembled.warned(), [(Rule::E3, 1)]);
}

// The echo

fn echo(messages: &[Value]) -> Value {
    with(run_started(), json!({"input": {"threadId": "t", "runId": "r", "messages": messages}}))
}

#[test]
fn r12_the_echo_adds_messages_that_are_not_held() {
    let held = [user("a", "1")];
    let events = [echo(&[user("a", "other"), user("b", "2"), assistant("c", "3"), user("b", "again")]), run_finished()];
    let assembled = assemble_with(builder().history(typed(&held)), &events);
    assert_eq!(assembled.messages(), [user("a", "1"), user("b", "2"), assistant("c", "3")]);
    assert!(assembled.at(0).changed_messages());
    assert_eq!(assembled.warned(), []);
}

#[test]
fn r12_an_echo_of_held_messages_changes_none() {
    let events = [echo(&[user("a", "1")]), run_finished(), echo(&[user("a", "1")]), run_finished()];
    let assembled = assemble(&events);
    assert!(!assembled.at(2).changed_messages());
    assert_eq!(assembled.messages(), [user("a", "1")]);
}

#[test]
fn r12_calls_of_the_echo_are_held() {
    let events = [echo(&[caller("m", &[("c", "{}")]), user("u", "x")]), result("r", "c", json!("1")), run_finished()];
    let assembled = assemble(&events);
    assert_eq!(assembled.ids(), ["m", "r", "u"]);
    assert_eq!(assembled.snapshot.tool_call_status("c"), Some(ItemStatus::Complete));
    // It was not this run that made the call.
    assert!(assembled.snapshot.run().unwrap().pending_tool_call_ids().is_empty());
}
