//! Assembly of reasoning messages and encrypted values: rules A1, A4, A7, A12, S7.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod support;

use ag_ui_stream::Rule;
use ag_ui_stream::error::SubjectKind;
use ag_ui_stream::snapshot::ItemStatus;
use serde_json::{Value, json};
use support::assembled::*;
use support::*;

#[test]
fn s1_reasoning_makes_a_message_of_its_own() {
    let mut events = vec![by("s", thought_start("m")), thought("m", "a"), thought("m", "b")];
    let open = assemble_open(events.clone());
    assert_eq!(open.snapshot.message_status("m"), Some(ItemStatus::Streaming));
    events.extend([thought_end("m"), thought_start("m"), thought("m", "c"), thought_end("m")]);
    assert_eq!(assemble_run(events).messages(), [by("s", reasoned("m", "abc"))]);
}

#[test]
fn s7_spans_make_no_message() {
    let open = assemble_open([by("s", reasoning_start("m"))]);
    assert!(open.snapshot.messages().is_empty());
    let run = open.snapshot.run().unwrap();
    let items: Vec<_> = run.open().map(|item| (item.kind, item.id(), item.owner.as_ref().map(AsRef::as_ref))).collect();
    assert_eq!(items, [(SubjectKind::ReasoningSpan, "m", Some("s"))]);
    // Neither may the end carry the owner, nor must it.
    for end in cases([reasoning_end("m"), by("s", reasoning_end("m"))]) {
        let closed = assemble_open([by("s", reasoning_start("m")), end]);
        assert_eq!(closed.snapshot.run().unwrap().open().len(), 0);
        assert!(closed.at(2).changed_run());
    }
}

#[test]
fn a1_metadata_of_every_event_merges() {
    let assembled = assemble_run([
        with(thought_start("m"), json!({"metadata": {"a": 1}})),
        with(thought("m", "x"), json!({"metadata": {"b": null}})),
        with(thought_end("m"), json!({"metadata": {"a": 2}})),
    ]);
    let expected = with(reasoned("m", "x"), json!({"metadata": {"a": 2, "b": null}}));
    assert_eq!(assembled.messages(), [expected]);
}

#[test]
fn a4_reasoning_for_an_activity_is_dropped_with_one_warning() {
    let mut events = vec![activity("m", json!({}))];
    events.extend(reasoning("m", "lost"));
    let assembled = assemble_run(events);
    assert_eq!(assembled.messages(), [active("m", json!({}))]);
    assert_eq!(assembled.warned(), [(Rule::A4, 2)]);
}

#[test]
fn a12_reasoning_under_the_id_of_a_text_is_a_message_of_its_own() {
    for held in cases([assistant("m", "a"), user("m", "a"), tool("m", "c", "a"), caller("m", &[("c", "")])]) {
        let mut events = in_run(reasoning("m", "hm"));
        events.extend(in_run(reasoning("m", "!")));
        let assembled = assemble_with(builder().history(typed(std::slice::from_ref(&held))), &events);
        assert_eq!(assembled.messages(), [held, reasoned("m", "hm!")]);
        assert_eq!(assembled.warned(), [(Rule::A12, 1)]);
    }
}

fn sealed(message: Value) -> Value {
    with(message, json!({"encryptedValue": "x"}))
}

#[test]
fn a7_an_encrypted_value_is_kept_with_its_message() {
    for held in cases([
        assistant("m", "a"),
        user("m", "a"),
        tool("m", "c", "a"),
        reasoned("m", "a"),
        json!({"role": "system", "id": "m", "content": "a"}),
        json!({"role": "developer", "id": "m", "content": "a"}),
    ]) {
        let events = in_run([encrypted_value("message", "m")]);
        let assembled = assemble_with(builder().history(typed(std::slice::from_ref(&held))), &events);
        assert_eq!(assembled.messages(), [sealed(held)]);
        assert_eq!(assembled.at(1).message_index(), Some(0));
    }
}

#[test]
fn a7_an_encrypted_value_is_kept_with_its_call_while_it_streams() {
    let assembled = assemble_run([
        call_start("c"),
        args("c", "a"),
        encrypted_value("tool-call", "c"),
        args("c", "b"),
        call_end("c"),
        // The message of that id is another thing.
        encrypted_value("message", "c"),
    ]);
    let mut expected = sealed(caller("c", &[("c", "ab")]));
    expected["toolCalls"][0]["encryptedValue"] = json!("x");
    assert_eq!(assembled.messages(), [expected]);
}

#[test]
fn a7_a_value_for_an_unknown_target_is_dropped_with_a_warning() {
    for (subtype, entity) in cases([("message", "none"), ("message", "act"), ("tool-call", "none"), ("tool-call", "m")])
    {
        let mut events = vec![activity("act", json!({}))];
        events.extend(text("m", "x"));
        events.push(encrypted_value(subtype, entity));
        let assembled = assemble_run(events);
        assert_eq!(assembled.messages(), [active("act", json!({})), assistant("m", "x")]);
        assert_eq!(assembled.warned(), [(Rule::A7, 5)]);
        assert!(!assembled.at(5).is_change());
    }
}

#[test]
fn o6_a_value_for_an_id_of_both_kinds_belongs_to_the_text() {
    for history in cases([[reasoned("m", "hm"), assistant("m", "a")], [assistant("m", "a"), reasoned("m", "hm")]]) {
        let events = in_run([encrypted_value("message", "m")]);
        let assembled = assemble_with(builder().history(typed(&history)), &events);
        let expected = history.map(|held| if held["role"] == "assistant" { sealed(held) } else { held });
        assert_eq!(assembled.messages(), expected);
    }
}
