//! Assembly of tool calls and their results: rules A1, A3, A4, A9, A10, S9, O4.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod support;

use ag_ui_stream::Rule;
use ag_ui_stream::snapshot::ItemStatus;
use serde_json::{Value, json};
use support::assembled::*;
use support::*;

fn under(parent: &str, event: Value) -> Value {
    with(event, json!({"parentMessageId": parent}))
}

#[test]
fn a3_a_call_attaches_to_the_message_that_its_parent_names() {
    let assembled = assemble_run(text("m", "hi").into_iter().chain([
        under("m", call_start("c")),
        args("c", "{"),
        args("c", "}"),
        call_end("c"),
    ]));
    assert_eq!(assembled.messages(), [with(caller("m", &[("c", "{}")]), json!({"content": "hi"}))]);
}

#[test]
fn a3_a_parent_that_is_not_held_is_made_without_content() {
    let assembled = assemble_run([
        by("s", under("m", call_start("a"))),
        by("s", under("m", call_start("b"))),
        args("b", "2"),
        args("a", "1"),
        call_end("a"),
        call_end("b"),
    ]);
    assert_eq!(assembled.messages(), [by("s", caller("m", &[("a", "1"), ("b", "2")]))]);
    assert_eq!(assembled.warned(), []);
}

#[test]
fn a3_a_call_without_a_parent_makes_a_message_of_its_own_id() {
    assert_eq!(assemble_run(call("c", "{}")).messages(), [caller("c", &[("c", "{}")])]);
}

#[test]
fn a3_a_parent_of_another_role_is_left_alone() {
    for parent in cases([user("m", "q"), reasoned("m", "hm"), active("m", json!({})), tool("m", "x", "r")]) {
        let events = in_run([under("m", call_start("c")), args("c", "{}"), call_end("c")]);
        let assembled = assemble_with(builder().history(typed(std::slice::from_ref(&parent))), &events);
        assert_eq!(assembled.messages(), [parent, caller("c", &[("c", "{}")])]);
        assert_eq!(assembled.warned(), []);
    }
}

#[test]
fn a3_text_goes_to_the_message_of_a_call_not_to_reasoning_of_the_same_id() {
    for held in cases([reasoned("c", "hm"), active("c", json!({}))]) {
        let events = in_run(call("c", "{}").into_iter().chain(text("c", "hi")));
        let assembled = assemble_with(builder().history(typed(std::slice::from_ref(&held))), &events);
        assert_eq!(assembled.messages(), [held, with(caller("c", &[("c", "{}")]), json!({"content": "hi"}))]);
    }
}

#[test]
fn a3_a_call_without_a_parent_does_not_attach_to_another_message_of_its_id() {
    // S1: a message and a tool call may share an id.
    let events = || [text("x", "hi"), call("x", "{}")];
    let assembled = assemble_run(events().concat());
    assert_eq!(assembled.messages(), [assistant("x", "hi"), caller("x", &[("x", "{}")])]);
    assert_eq!(assembled.warned(), []);
    // So the call of one subagent does not come under the message of another.
    let [answer, call] = events().map(Vec::from);
    let owned = |owner: &'static str| move |event| by(owner, event);
    let assembled = assemble_run(answer.into_iter().map(owned("a")).chain(call.into_iter().map(owned("b"))));
    assert_eq!(assembled.messages(), [by("a", assistant("x", "hi")), by("b", caller("x", &[("x", "{}")]))]);
}

#[test]
fn a12_a_call_attaches_to_the_text_message_not_to_reasoning_of_the_same_id() {
    for events in
        [[reasoning("m", "hm"), text("m", "hi")], [text("m", "hi"), reasoning("m", "hm")]].map(|all| all.concat())
    {
        let thought_first = events[0]["type"] == "REASONING_MESSAGE_START";
        let calls = [under("m", call_start("a")), call_end("a"), under("m", call_start("b")), call_end("b")];
        let assembled = assemble_run(events.into_iter().chain(calls));
        let answer = with(caller("m", &[("a", ""), ("b", "")]), json!({"content": "hi"}));
        let mut expected = [reasoned("m", "hm"), answer];
        if !thought_first {
            expected.reverse();
        }
        assert_eq!(assembled.messages(), expected);
        assert_eq!(assembled.warned().iter().map(|(rule, _)| *rule).collect::<Vec<_>>(), [Rule::A12]);
    }
}

#[test]
fn a3_a_held_call_continues_in_its_place() {
    let mut events = in_run(call("c", "{\"a\":").into_iter().chain(text("m", "x")));
    // With another parent, in the same run and in the next.
    events.pop();
    events.extend([under("m", call_start("c")), args("c", "1"), call_end("c"), run_finished()]);
    events.extend(in_run([under("m", call_start("c")), args("c", "}"), call_end("c")]));
    let assembled = assemble(&events);
    assert_eq!(assembled.messages(), [caller("c", &[("c", "{\"a\":1}")]), assistant("m", "x")]);
}

#[test]
fn a3_a_call_that_two_messages_hold_continues_in_the_one_that_is_left() {
    let twice = messages_snapshot(json!([caller("m", &[("c", "{")]), caller("n", &[("d", ""), ("c", "{")])]));
    // Results before it move the place of the second message.
    let results = (0..300).map(|number| result(&format!("r{number}"), "d", json!("r")));
    let moved = results.chain([result("r", "c", json!("r"))]);
    for between in [vec![], moved.collect::<Vec<_>>()] {
        let events = [twice.clone()].into_iter().chain(between).chain([activity("m", json!({}))]);
        let assembled = assemble_run(events.chain(call("c", "}")).chain([result("last", "c", json!("!"))]));
        let messages = assembled.messages();
        let holder = messages.iter().position(|message| message["id"] == "n").unwrap();
        assert_eq!(messages[holder], caller("n", &[("d", ""), ("c", "{}")]));
        assert!(!messages.iter().any(|message| message["id"] == "c"));
        assert!(messages[holder + 1..].iter().any(|message| message["id"] == "last"));
    }
}

#[test]
fn a3_an_open_call_goes_on_in_its_other_message_when_an_activity_takes_the_first() {
    let assembled = assemble_run([
        messages_snapshot(json!([caller("m", &[("c", "{")]), caller("n", &[("c", "[")])])),
        call_start("c"),
        activity("m", json!({})),
        args("c", "]"),
        call_end("c"),
    ]);
    assert_eq!(assembled.messages(), [active("m", json!({})), caller("n", &[("c", "[]")])]);
    assert_eq!(assembled.warned(), [(Rule::A4, 3)]);
}

#[test]
fn a3_a_call_whose_message_is_gone_is_found_again_where_an_input_brings_it() {
    let input = json!({"threadId": "t", "runId": "r2", "messages": [caller("n", &[("c", "{")])]});
    let mut events = in_run([messages_snapshot(json!([caller("m", &[("c", "old")])])), activity("m", json!({}))]);
    events.push(with(run_started(), json!({"runId": "r2", "input": input})));
    events.extend(call("c", "}").into_iter().chain([with(run_finished(), json!({"runId": "r2"}))]));
    assert_eq!(assemble(&events).messages(), [active("m", json!({})), caller("n", &[("c", "{}")])]);
}

#[test]
fn a9_arguments_are_text_and_complete_at_the_end() {
    let mut events = vec![call_start("c"), args("c", "{\"a\": "), args("c", ""), args("c", "nonsense")];
    let open = assemble_open(events.clone());
    assert_eq!(open.snapshot.tool_call_status("c"), Some(ItemStatus::Streaming));
    assert!(!open.at(3).is_change());
    events.push(call_end("c"));
    let assembled = assemble_run(events);
    assert_eq!(assembled.snapshot.tool_call("c").unwrap().function.arguments, "{\"a\": nonsense");
    assert_eq!(assembled.snapshot.tool_call_status("c"), Some(ItemStatus::Complete));
    assert_eq!(assembled.warned(), []);
}

#[test]
fn r5_the_calls_of_a_failed_run_are_abandoned() {
    let assembled = assemble(&[run_started(), call_start("c"), args("c", "{"), run_error()]);
    assert_eq!(assembled.snapshot.tool_call_status("c"), Some(ItemStatus::Abandoned));
    assert_eq!(assembled.messages(), [caller("c", &[("c", "{")])]);
}

#[test]
fn a1_metadata_of_call_events_belongs_to_the_call() {
    let assembled = assemble_run([
        with(call_start("c"), json!({"metadata": {"a": 1, "b": {"x": 1}}})),
        with(args("c", ""), json!({"metadata": {"b": {"y": 2}}})),
        with(call_end("c"), json!({"metadata": {"c": null}})),
    ]);
    let mut expected = caller("c", &[("c", "")]);
    expected["toolCalls"][0]["metadata"] = json!({"a": 1, "b": {"y": 2}, "c": null});
    assert_eq!(assembled.messages(), [expected]);
}

// Results

#[test]
fn s9_a_result_goes_after_its_caller_and_the_results_there() {
    let mut events = vec![under("m", call_start("a")), under("m", call_start("b")), call_end("a"), call_end("b")];
    events.extend(text("n", "later"));
    events.extend([result("r1", "b", json!("1")), result("r2", "a", json!("2")), result("r3", "none", json!("3"))]);
    events.extend([result("r4", "a", json!("4"))]);
    let assembled = assemble_run(events);
    assert_eq!(assembled.ids(), ["m", "r1", "r2", "r4", "n", "r3"]);
    assert_eq!(assembled.messages()[1], tool("r1", "b", "1"));
    // It reopens nothing and closes nothing.
    assert_eq!(assembled.snapshot.tool_call_status("a"), Some(ItemStatus::Complete));
}

#[test]
fn s9_a_result_carries_parts_owner_and_metadata() {
    let parts = json!([{"type": "text", "text": "x"}, {"type": "image", "source": {"type": "url", "value": "u"}}]);
    let event = with(by("s", result("r", "c", parts.clone())), json!({"metadata": {"a": null}}));
    let expected = json!({"id": "r", "role": "tool", "toolCallId": "c", "content": parts,
        "subagentRunId": "s", "metadata": {"a": null}});
    assert_eq!(assemble_run([event]).messages(), [expected]);
}

#[test]
fn s9_a_result_goes_after_a_message_that_grows_at_the_moment() {
    let history = typed(&[caller("m", &[("c", "{}")]), tool("r1", "c", "1"), user("u", "x")]);
    let events = in_run([
        text_start("r1"),
        delta("r1", "2"),
        delta("r1", "3"),
        result("r2", "c", json!("x")),
        delta("r1", "4"),
        text_end("r1"),
    ]);
    let assembled = assemble_with(builder().history(history), &events);
    assert_eq!(assembled.ids(), ["m", "r1", "r2", "u"]);
    assert_eq!(assembled.messages()[1], tool("r1", "c", "1234"));
}

#[test]
fn s9_an_activity_in_the_place_of_a_result_ends_the_results_of_a_caller() {
    // (which result becomes an activity, where the next result goes)
    for (displaced, expected) in [
        ("r1", ["m", "new", "r1", "r2", "r3", "u"]),
        ("r2", ["m", "r1", "new", "r2", "r3", "u"]),
        ("r3", ["m", "r1", "r2", "new", "r3", "u"]),
    ] {
        let mut events = vec![under("m", call_start("c")), call_end("c"), text_start("u"), text_end("u")];
        events.extend(["r1", "r2", "r3"].map(|id| result(id, "c", json!("x"))));
        events.extend([activity(displaced, json!({})), result("new", "c", json!("x"))]);
        assert_eq!(assemble_run(events).ids(), expected, "{displaced}");
    }
}

#[test]
fn s9_thousands_of_results_keep_their_order_and_what_streams_goes_on() {
    let mut events = vec![under("m", call_start("c")), call_end("c"), text_start("t"), thought_start("h")];
    events.extend([by("s", call_start("open")), delta("t", "a"), delta("t", "b")]);
    let mut expected = vec!["m".to_owned()];
    for at in 0..20_000 {
        let id = format!("r{at}");
        events.push(result(&id, "c", json!("x")));
        expected.push(id);
    }
    events.extend([delta("t", "c"), thought("h", "d"), args("open", "e"), result("last", "c", json!("x"))]);
    events.extend([text_end("t"), thought_end("h"), call_end("open")]);
    expected.extend(["last", "t", "h", "open"].map(str::to_owned));
    let assembled = assemble_run(events);
    assert_eq!(assembled.ids(), expected);
    assert_eq!(assembled.snapshot.message("t").unwrap().text().unwrap(), "abc");
    assert_eq!(assembled.snapshot.message("h").unwrap().text().unwrap(), "d");
    assert_eq!(assembled.snapshot.tool_call("open").unwrap().function.arguments, "e");
    assert_eq!(assembled.snapshot.message("r19999").unwrap().id(), "r19999");
}

#[test]
fn a10_the_same_result_again_replaces_the_first() {
    let mut events = vec![call_start("c"), call_end("c"), result("r", "c", json!("1"))];
    events.extend(text("m", "x"));
    events.push(with(result("r", "c", json!("2")), json!({"metadata": {"a": 1}})));
    let assembled = assemble_run(events);
    assert_eq!(assembled.ids(), ["c", "r", "m"]);
    assert_eq!(assembled.messages()[1], with(tool("r", "c", "2"), json!({"metadata": {"a": 1}})));
    assert_eq!(assembled.warned(), [(Rule::A10, 7)]);
}

#[test]
fn a10_a_result_under_the_id_of_another_message_is_kept_apart() {
    let mut events = vec![call_start("a"), call_end("a"), call_start("b"), call_end("b")];
    events.extend([
        result("r", "b", json!("1")),
        result("r", "a", json!("2")),
        // Each of them again.
        result("r", "a", json!("3")),
        result("r", "b", json!("4")),
        // The id of the assistant message itself, as some producers have it.
        result("a", "a", json!("5")),
    ]);
    let assembled = assemble_run(events);
    let expected = [
        caller("a", &[("a", "")]),
        tool("r", "a", "3"),
        tool("a", "a", "5"),
        caller("b", &[("b", "")]),
        tool("r", "b", "4"),
    ];
    assert_eq!(assembled.messages(), expected);
    assert_eq!(assembled.warned(), [(Rule::A10, 6), (Rule::A10, 7), (Rule::A10, 8), (Rule::A10, 9)]);
    // Look-up by id gives the first in the list, as it does once the conversation was stored.
    assert_eq!(serde_json::to_value(assembled.snapshot.message("r")).unwrap(), tool("r", "a", "3"));
    let restored = assemble_with(builder().history(typed(&expected)), &[]);
    assert_eq!(restored.snapshot.message("r"), assembled.snapshot.message("r"));
}

#[test]
fn a10_a_result_that_is_placed_before_a_message_of_its_id_takes_nothing_from_it() {
    let mut events = vec![call_start("c"), call_end("c")];
    events.extend(text("x", "a"));
    events.extend([thought_start("y"), thought_end("y"), activity("z", json!({"n": 1}))]);
    events.extend([result("x", "c", json!("1")), result("y", "c", json!("2")), result("z", "c", json!("3"))]);
    // They match an item of their own kind, whichever comes first.
    events.extend([text_start("x"), delta("x", "b"), text_end("x")]);
    events.extend([thought_start("y"), thought("y", "hm"), thought_end("y")]);
    events.push(activity_patch("z", json!([{"op": "replace", "path": "/n", "value": 2}])));
    let own = with(encrypted_value("message", "x"), json!({"encryptedValue": "sealed"}));
    events.push(own);
    let assembled = assemble_run(events);
    let expected = [
        caller("c", &[("c", "")]),
        tool("x", "c", "1"),
        tool("y", "c", "2"),
        tool("z", "c", "3"),
        with(assistant("x", "ab"), json!({"encryptedValue": "sealed"})),
        reasoned("y", "hm"),
        active("z", json!({"n": 2})),
    ];
    assert_eq!(assembled.messages(), expected);
    for (at, id) in [(1, "x"), (2, "y"), (3, "z")] {
        assert_eq!(assembled.snapshot.message(id), assembled.snapshot.messages().get(at), "the first in the list");
    }
    assert!(assembled.warned().iter().all(|(rule, _)| *rule == Rule::A10));

    // A call finds the assistant message that its parent names (A3), not the result before it.
    let mut events = vec![call_start("c"), call_end("c")];
    events.extend(text("x", ""));
    events.extend([
        result("x", "c", json!("1")),
        with(call_start("d"), json!({"parentMessageId": "x"})),
        call_end("d"),
    ]);
    let assembled = assemble_run(events);
    assert_eq!(assembled.ids(), ["c", "x", "x"]);
    assert_eq!(assembled.snapshot.tool_call_message("d"), assembled.snapshot.messages().get(2));
}

#[test]
fn a10_results_under_one_id_stay_distinct_when_keys_change() {
    let mut events = vec![call_start("a"), call_end("a"), call_start("b"), call_end("b")];
    events.extend([result("r", "b", json!("1")), result("r", "a", json!("2"))]);
    // So many results after one message that every message gets a new key.
    events.extend((0..20_000).map(|at| result(&format!("r{at}"), "a", json!("x"))));
    events.extend([result("r", "b", json!("3")), result("r", "a", json!("4"))]);
    let assembled = assemble_run(events);
    assert_eq!(assembled.snapshot.messages().len(), 20_004);
    assert_eq!(serde_json::to_value(assembled.snapshot.message("r")).unwrap(), tool("r", "a", "4"));
    assert_eq!(assembled.messages()[1], tool("r", "a", "4"));
    assert_eq!(assembled.messages().last(), Some(&tool("r", "b", "3")));
}

#[test]
fn a10_a_message_that_replaces_a_result_is_not_taken_for_the_result() {
    // The id stands for an assistant message from then on.
    let mut events = vec![call_start("a"), call_end("a"), call_start("b"), call_end("b")];
    events.extend([result("r", "b", json!("1")), result("r", "a", json!("2"))]);
    events.push(messages_snapshot(json!([caller("a", &[("a", "")]), assistant("r", "text")])));
    events.push(result("r", "a", json!("3")));
    let assembled = assemble_run(events);
    assert_eq!(assembled.messages(), [caller("a", &[("a", "")]), tool("r", "a", "3"), assistant("r", "text")]);
}

#[test]
fn r9_a_result_that_is_replaced_answers_its_call_once() {
    let assembled =
        assemble_run([call_start("c"), call_end("c"), result("r", "c", json!("1")), result("r", "c", json!("2"))]);
    assert!(assembled.snapshot.run().unwrap().pending_tool_call_ids().is_empty());
}
