//! State, activities and metadata: the cost and growth of documents, which patches apply, and the
//! warnings about those that do not (rules A1, A5, A6, A8).

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod support;

use std::collections::BTreeMap;

use ag_ui_stream::error::{Limit, LimitExceeded};
use ag_ui_stream::machine::{Machine, Pipeline, Push};
use ag_ui_stream::snapshot::{Document, Snapshot};
use ag_ui_stream::{Error, Limits, Options, Rule};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::assembled::*;
use support::*;

fn limited(max_document_bytes: usize, events: impl IntoIterator<Item = Value>) -> Assembled {
    let limits = Limits { max_document_bytes, ..Limits::default() };
    assemble_with(builder().limits(limits), &in_run(events))
}

fn copied(from: &str, path: &str) -> Value {
    json!({"op": "copy", "from": from, "path": path})
}

/// What the documents of a snapshot take, counted by hand as `Limits::max_document_bytes` has it.
fn counted(value: &Value) -> usize {
    let own = match value {
        Value::String(text) => 32 + text.len(),
        Value::Array(elements) => 96 + elements.iter().map(counted).sum::<usize>(),
        Value::Object(members) => {
            96 + members.iter().map(|(key, value)| 32 + key.len() + counted(value)).sum::<usize>()
        }
        _ => 0,
    };
    32 + own
}

fn counted_in(snapshot: &Snapshot) -> usize {
    let activities = messages(snapshot).into_iter().filter(|message| message["role"] == "activity");
    counted(&snapshot.state().to_value()) + activities.map(|message| counted(&message["content"])).sum::<usize>()
}

#[test]
fn a6_the_keys_of_copied_values_count() {
    // 1,000 copies of an object with a key of 1 MB, by a patch of 50 kB.
    let key = "k".repeat(1_000_000);
    let patch: Vec<Value> = (0..1_000).map(|at| copied("/o", &format!("/{at}"))).collect();
    let held = json!({"o": {key: 1}});
    let assembled = assemble_run([state(held.clone()), state_patch(json!(patch))]);
    assert_eq!(*assembled.snapshot.state(), held);
    assert_eq!(assembled.warned(), [(Rule::A6, 2)]);
    let said = &assembled.warnings()[0].message;
    assert!(said.contains("operation 133 (copy") && said.contains("134217728 bytes"), "{said}");
}

#[test]
fn a6_copies_of_copies_end_at_the_bound_in_one_patch_or_many() {
    let doubled = [copied("", "/a"), copied("", "/b")];
    let many =
        limited(100_000, [state(json!({"x": 1}))].into_iter().chain((0..20).map(|_| state_patch(json!(doubled)))));
    assert!(!many.warned().is_empty());
    let size = counted_in(&many.snapshot);
    assert!((25_000..=100_000).contains(&size), "{size}");
    let often: Vec<_> = doubled.iter().cycle().take(80).collect();
    let one = limited(100_000, [state(json!({"x": 1})), state_patch(json!(often))]);
    assert_eq!(one.warned(), [(Rule::A6, 2)]);
    assert_eq!(*one.snapshot.state(), json!({"x": 1}));
}

#[test]
fn a5_all_documents_have_one_bound_together() {
    let often: Vec<_> = [copied("/r", "/l/-")].into_iter().cycle().take(40).collect();
    let content = json!({"r": "x".repeat(1_000), "l": []});
    let grown = |id: &str| [activity(id, content.clone()), activity_patch(id, json!(often.clone()))];
    let ids = ["a", "b", "c", "d"];
    let bound = 3 * 50_000;
    let mut events: Vec<Value> = ids.iter().flat_map(|id| grown(id)).collect();
    events.extend([state(content.clone()), state_patch(json!(often))]);
    let assembled = limited(bound, events);
    assert_eq!(assembled.error, None);
    // Three fit, the fourth and the state do not.
    assert_eq!(assembled.warned(), [(Rule::A5, 8), (Rule::A6, 10)]);
    assert!(counted_in(&assembled.snapshot) <= bound);
}

#[test]
fn a6_a_snapshot_beyond_the_bound_is_an_error_and_what_was_held_stays() {
    let large = json!({"t": "x".repeat(10_000)});
    let echo = |input: Value| with(run_started(), json!({"input": input}));
    let echoed =
        |messages: Value, held: Value| json!({"threadId": "t", "runId": "r", "messages": messages, "state": held});
    let small = [run_started(), state(json!({"a": 1})), activity("act", json!({"a": 1}))];
    let ended = |more: Value| [&small[..], &[run_finished(), more]].concat();
    let running = |more: Value| [&small[..], &[more]].concat();
    for events in cases([
        running(state(large.clone())),
        running(activity("act", large.clone())),
        running(activity("new", large.clone())),
        running(messages_snapshot(json!([active("act", large.clone())]))),
        ended(echo(echoed(json!([active("new", large.clone())]), json!({})))),
        vec![echo(echoed(json!([]), large.clone()))],
    ]) {
        let at = events.len() as u64 - 1;
        let limits = Limits { max_document_bytes: 9_000, ..Limits::default() };
        let assembled = assemble_with(builder().limits(limits), &events);
        let error = LimitExceeded::new(at, Limit::DocumentBytes, 9_000);
        assert_eq!(
            error.to_string(),
            format!(
                "after event {at} all documents together would take more than 9000 bytes, the `max_document_bytes` of the pipeline"
            )
        );
        assert_eq!(assembled.error, Some(Error::from(error)));
        let before = assemble_with(builder(), &events[..events.len() - 1]);
        assert_eq!(assembled.snapshot.state(), before.snapshot.state());
        assert_eq!(assembled.messages(), before.messages());
        // One that is larger is allowed where the bound is.
        let limits = Limits { max_document_bytes: 40_000, ..Limits::default() };
        assert!(!matches!(assemble_with(builder().limits(limits), &events).error, Some(Error::LimitExceeded(_))));
    }
}

#[test]
fn a6_a_document_from_before_the_stream_may_exceed_the_bound_and_shrink() {
    let held = json!({"t": "x".repeat(10_000), "u": "x".repeat(5_000)});
    let limits = Limits { max_document_bytes: 9_000, ..Limits::default() };
    let events = in_run([
        state_patch(json!([{"op": "add", "path": "/a", "value": 1}])),
        state_patch(json!([{"op": "remove", "path": "/u"}])),
        state(json!({"t": "x".repeat(9_500)})),
        state(json!({})),
        state(json!({"t": "x".repeat(8_000)})),
    ]);
    let assembled = assemble_with(builder().limits(limits).state(held), &events);
    assert_eq!((assembled.error.as_ref(), assembled.warned()), (None, vec![(Rule::A6, 1)]));
    assert_eq!(*assembled.snapshot.state(), json!({"t": "x".repeat(8_000)}));
}

#[test]
fn a2_activities_that_a_snapshot_drops_or_restates_leave_their_room() {
    let content = json!({"t": "x".repeat(3_000)});
    let rounds = (0..10).flat_map(|_| {
        [
            activity("a", content.clone()),
            activity("b", content.clone()),
            activity("a", content.clone()),
            messages_snapshot(json!([active("b", content.clone())])),
            messages_snapshot(json!([active("c", json!({}))])),
            activity("c", content.clone()),
            activity_patch("c", json!([{"op": "remove", "path": "/t"}])),
            state(content.clone()),
            state(json!(null)),
        ]
    });
    let assembled = limited(2 * counted(&content) + 1_000, rounds);
    assert_eq!((assembled.error.as_ref(), assembled.warned()), (None, vec![]));
}

#[test]
fn a6_operations_at_the_head_of_a_long_array_are_as_cheap_as_at_its_end() {
    // To move all that comes after, each time, would take minutes for as many as fit into one event.
    let remove = vec![json!({"op": "remove", "path": "/0"}); 20_000];
    let add = vec![json!({"op": "add", "path": "/0", "value": 1}); 20_000];
    let turn = vec![json!({"op": "move", "from": "/0", "path": "/-"}); 20_000];
    let turned = assemble_run([
        state(json!(vec![0; 100_000])),
        state_patch(json!(remove)),
        state_patch(json!(add)),
        state_patch(json!(turn)),
    ]);
    assert_eq!(turned.warned(), []);
    let expected: Vec<u8> = [vec![0; 80_000], vec![1; 20_000]].concat();
    assert_eq!(*turned.snapshot.state(), json!(expected));
}

#[test]
fn a6_an_operation_that_copies_or_fails_costs_nothing_of_the_document() {
    // Each used to copy a million values.
    let mut events = vec![state(json!({"l": vec![0; 1_000_000], "o": {}}))];
    for at in 0..2_000 {
        events.push(state_patch(json!([copied("/o", "/p"), {"op": "test", "path": "/o", "value": at}])));
        events.push(state_patch(
            json!([{"op": "move", "from": "/o", "path": "/p"}, {"op": "move", "from": "/p", "path": "/o"}]),
        ));
    }
    let assembled = assemble_run(events);
    assert_eq!(assembled.warned().len(), 2_000);
    assert_eq!(assembled.snapshot.state()["l"].as_array().unwrap().len(), 1_000_000);
}

#[test]
fn a8_a_snapshot_shares_memory_with_the_next_one() {
    let rows: Vec<Value> = (0..1_000).map(|at| json!({"id": at, "tags": ["a", "b"]})).collect();
    let mut pipeline = Pipeline::new();
    let mut held = Vec::new();
    let mut push = |event: Value| {
        pipeline.push(&event).unwrap();
        while let Some(update) = pipeline.pop() {
            held.push(update.into_snapshot());
        }
    };
    push(run_started());
    push(state(json!({"rows": rows, "other": {"a": [1]}})));
    push(state_patch(json!([{"op": "replace", "path": "/rows/500/id", "value": "new"}])));
    let (before, after) = (held[1].state(), held[2].state());
    assert_eq!((&before["rows"][500]["id"], &after["rows"][500]["id"]), (&json!(500).into(), &json!("new").into()));
    assert!(!before.is_same(after) && !before["rows"].is_same(&after["rows"]));
    assert!(before["other"].is_same(&after["other"]));
    let same = |at: usize| before["rows"][at].is_same(&after["rows"][at]);
    assert_eq!((0..1_000).filter(|at| !same(*at)).collect::<Vec<_>>(), [500]);
}

#[test]
fn a6_an_event_that_changes_nothing_is_marked_as_no_change() {
    let held = json!({"a": 1, "l": [1, {"b": 2}], "o": {"c": "text"}});
    let patch = |operations: Value| state_patch(operations);
    for event in cases([
        patch(json!([])),
        patch(json!([{"op": "test", "path": "/a", "value": 1}])),
        patch(
            json!([{"op": "add", "path": "/a", "value": 1}, {"op": "replace", "path": "/l", "value": [1, {"b": 2}]}]),
        ),
        patch(json!([{"op": "replace", "path": "", "value": held}])),
        patch(json!([{"op": "copy", "from": "/o", "path": "/o"}, {"op": "move", "from": "/l/0", "path": "/l/0"}])),
        state(held.clone()),
    ]) {
        let assembled = assemble_run([state(held.clone()), event.clone()]);
        assert_eq!(assembled.warned(), [], "{event}");
        assert_eq!(*assembled.snapshot.state(), held, "{event}");
        assert!(assembled.at(1).changed_state());
        let update = assembled.at(2);
        assert!(!update.is_change() && !update.changed_state() && update.changed().is_none(), "{event}");
    }
    for event in [
        patch(json!([{"op": "replace", "path": "/a", "value": 1.0}])),
        patch(json!([copied("/l/0", "/l/0")])),
        patch(json!([{"op": "add", "path": "/l/1", "value": 1}])),
        state(json!({"a": 1, "l": [1, {"b": 2}], "o": {"c": "text", "d": null}})),
    ] {
        let assembled = assemble_run([state(held.clone()), event.clone()]);
        assert!(assembled.at(2).changed_state(), "{event}");
        assert_ne!(*assembled.snapshot.state(), held, "{event}");
    }
    // The first state counts as set even if it is equal to the initial one.
    let echo =
        with(run_started(), json!({"input": {"threadId": "t", "runId": "r", "messages": [], "state": {"a": 1}}}));
    let events = [run_started(), state(json!({})), run_finished(), echo, run_finished()];
    let assembled = assemble(&events);
    assert!(!assembled.at(1).changed_state());
    assert_eq!(*assembled.snapshot.state(), json!({}));
}

#[test]
fn a5_an_event_that_changes_no_activity_is_marked_as_no_change() {
    let held = with(by("s", activity("act", json!({"n": 1}))), json!({"metadata": {"m": 1}}));
    let delta = |operations: Value| activity_patch("act", operations);
    for event in cases([
        held.clone(),
        by("s", activity("act", json!({"n": 1}))),
        with(activity("act", json!({"n": 2})), json!({"replace": false, "metadata": {"m": 1}})),
        delta(json!([])),
        with(delta(json!([{"op": "test", "path": "/n", "value": 1}])), json!({"metadata": {"m": 1}})),
        with(delta(json!([{"op": "remove", "path": "/none"}])), json!({"metadata": {"m": 1}})),
    ]) {
        let assembled = assemble_run([held.clone(), event.clone()]);
        assert!(assembled.at(1).changed_messages());
        assert!(!assembled.at(2).is_change(), "{event}");
    }
    for event in [
        activity("act", json!({"n": 1})),
        with(held.clone(), json!({"activityType": "other"})),
        with(held.clone(), json!({"content": {"n": 2}})),
        with(held.clone(), json!({"metadata": {"m": 2}})),
        with(delta(json!([])), json!({"activityType": "other"})),
        with(delta(json!([])), json!({"metadata": {"n": 1}})),
    ] {
        let assembled = assemble_run([held.clone(), event.clone()]);
        assert!(assembled.at(2).changed_messages(), "{event}");
    }
}

#[test]
fn a1_equal_metadata_is_no_change() {
    let marked = |event: Value| with(event, json!({"metadata": {"m": {"deep": [1]}}}));
    let assembled = assemble_run([
        marked(text_start("m")),
        marked(delta("m", "")),
        marked(delta("m", "x")),
        text_end("m"),
        marked(call_start("c")),
        marked(args("c", "")),
        call_end("c"),
        thought_start("r"),
        marked(thought("r", "")),
        marked(thought("r", "")),
        thought_end("r"),
    ]);
    let changed: Vec<u64> = (1..=11).filter(|at| assembled.at(*at).is_change()).collect();
    assert_eq!(changed, [1, 3, 4, 5, 7, 8, 9, 11]);
}

#[test]
fn a7_a10_an_equal_value_or_result_is_no_change() {
    let encrypted = |entity: &str, subtype: &str, value: &str| {
        with(encrypted_value(subtype, entity), json!({"encryptedValue": value}))
    };
    let mut events: Vec<Value> = text("m", "x").into();
    events.extend(call("c", "{}"));
    let first = events.len() as u64 + 1;
    for value in ["a", "a", "b"] {
        events.extend([encrypted("m", "message", value), encrypted("c", "tool-call", value)]);
        events.push(result("r", "c", json!(value)));
    }
    let assembled = assemble_run(events);
    let changed: Vec<bool> = (first..first + 9).map(|at| assembled.at(at).is_change()).collect();
    assert_eq!(changed, [true, true, true, false, false, false, true, true, true]);
}

#[test]
fn a2_a_messages_snapshot_of_the_held_messages_is_no_change() {
    let mut events: Vec<Value> = text("t", "x").into();
    events.extend(call("c", "{}"));
    events.extend([result("r", "c", json!("done")), activity("act", json!({"n": 1})), text_start("open")]);
    events.extend([delta("open", "y"), call_start("d"), args("d", "{")]);
    let restated = |without: &[&str]| {
        let all = assemble_open(events.clone()).messages();
        messages_snapshot(json!(
            all.into_iter().filter(|message| !without.contains(&message["id"].as_str().unwrap())).collect::<Vec<_>>()
        ))
    };
    let ends = [delta("open", "z"), text_end("open"), args("d", "}"), call_end("d")];
    let at = events.len() as u64 + 1;
    for (snapshot, changes) in cases([
        (restated(&[]), false),
        // Activities that a snapshot leaves out stay.
        (restated(&["act"]), false),
        (restated(&["r"]), true),
        (restated(&["open"]), true),
    ]) {
        let all = [&events, std::slice::from_ref(&snapshot), &ends].concat();
        let assembled = assemble_run(all);
        assert_eq!(assembled.at(at).is_change(), changes, "{snapshot}");
        if !changes {
            assert_eq!(assembled.warned(), []);
            assert_eq!(assembled.snapshot.message("open").unwrap().text().unwrap(), "yz");
            assert_eq!(assembled.snapshot.tool_call("d").unwrap().function.arguments, "{}");
        }
    }
    // A message that a failed run left open is complete when it is restated.
    let failed = [&[run_started()], &text("m", "x")[..2], &[run_error(), run_started()]].concat();
    let events = [
        &failed[..],
        &[
            messages_snapshot(json!([assistant("m", "x")])),
            messages_snapshot(json!([assistant("m", "x")])),
            run_finished(),
        ],
    ]
    .concat();
    let assembled = assemble(&events);
    assert!(assembled.at(5).is_change() && !assembled.at(6).is_change());
}

#[test]
fn a6_a_warning_says_which_operation_failed_and_that_nothing_is_there() {
    let held = json!({"l": [1, 2], "o": {"a": {"b": 1}}, "n": 1});
    for (operation, said) in cases([
        (json!({"op": "remove", "path": "/none"}), r#"operation 1 (remove "/none"): there is nothing at "/none""#),
        (
            json!({"op": "replace", "path": "/o/a/c", "value": 1}),
            r#"operation 1 (replace "/o/a/c"): there is nothing at "/o/a/c""#,
        ),
        (
            json!({"op": "test", "path": "/o/x/c", "value": 1}),
            r#"operation 1 (test "/o/x/c"): there is nothing at "/o/x""#,
        ),
        (
            json!({"op": "add", "path": "/none/there", "value": 1}),
            r#"operation 1 (add "/none/there"): there is nothing at "/none""#,
        ),
        (json!({"op": "add", "path": "/l/3", "value": 1}), r#"operation 1 (add "/l/3"): there is nothing at "/l/3""#),
        (json!({"op": "remove", "path": "/l/-"}), r#"operation 1 (remove "/l/-"): there is nothing at "/l/-""#),
        (
            json!({"op": "copy", "from": "/none", "path": "/x"}),
            r#"operation 1 (copy from "/none" to "/x"): there is nothing at "/none""#,
        ),
        (
            json!({"op": "move", "from": "/o/b", "path": "/x"}),
            r#"operation 1 (move from "/o/b" to "/x"): there is nothing at "/o/b""#,
        ),
        (
            json!({"op": "move", "from": "/o", "path": "/o/x"}),
            r#"operation 1 (move from "/o" to "/o/x"): a value cannot move into itself"#,
        ),
        (
            json!({"op": "add", "path": "/n/x", "value": 1}),
            r#"operation 1 (add "/n/x"): there is no array or object at "/n""#,
        ),
        (json!({"op": "test", "path": "/n", "value": 2}), r#"operation 1 (test "/n"): another value is there"#),
        (json!({"op": "remove", "path": ""}), r#"operation 1 (remove ""): the whole document cannot be removed"#),
    ]) {
        let patch = json!([{"op": "test", "path": "/n", "value": 1}, operation]);
        let assembled = assemble_run([
            state(held.clone()),
            state_patch(patch.clone()),
            activity("act", held.clone()),
            activity_patch("act", patch),
        ]);
        let told: Vec<&str> = assembled.warnings().iter().map(|warning| warning.message.as_str()).collect();
        assert_eq!(
            told,
            [format!("kept the state as it was: {said}"), format!("kept activity \"act\" as it was: {said}")]
        );
    }
}

#[test]
fn a6_a_warning_is_cut_and_escaped_whatever_the_path() {
    let path = format!("/\u{1b}[31m\u{202e}\n{}", "x".repeat(5_000_000));
    let assembled = assemble_run([state_patch(json!([{"op": "move", "from": path, "path": path.replace("x", "y")}]))]);
    let said = assembled.warnings()[0].to_string();
    assert!(said.len() < 600, "{}", said.len());
    assert!(said.starts_with("A6: STATE_DELTA (event 1) /delta: kept the state as it was: operation 0 (move from \"/"));
    assert!(!said.contains(['\u{1b}', '\n', '\u{202e}']), "{said:?}");
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (0..3_i64).prop_map(Value::from),
        Just(json!(1.0)),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 60, 24, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..24).prop_map(Value::from),
            prop::collection::btree_map(any_key(), inner, 0..24).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-c]", 1 => "[0-3]", 1 => Just(String::new()), 1 => "[~/01-]{1,3}"]
}

/// Pointers, many of which lead somewhere.
fn any_pointer() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        4 => any_key().prop_map(|key| key.replace('~', "~0").replace('/', "~1")),
        4 => (0..20_u8).prop_map(|index| index.to_string()),
        1 => Just("-".to_owned()),
        1 => prop::sample::select(vec!["01", "+1", "-1", "1e0", "99999999999999999999"]).prop_map(str::to_owned),
    ];
    prop::collection::vec(token, 0..4).prop_map(|tokens| tokens.iter().map(|token| format!("/{token}")).collect())
}

fn any_operation() -> impl Strategy<Value = Value> {
    (0..6_u8, any_pointer(), any_pointer(), any_value()).prop_map(|(op, path, from, value)| match op {
        0 => json!({"op": "add", "path": path, "value": value}),
        1 => json!({"op": "remove", "path": path}),
        2 => json!({"op": "replace", "path": path, "value": value}),
        3 => json!({"op": "move", "from": from, "path": path}),
        4 => json!({"op": "copy", "from": from, "path": path}),
        _ => json!({"op": "test", "path": path, "value": value}),
    })
}

/// Pointers to everything in a document.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    match value {
        Value::Array(elements) => {
            elements.iter().enumerate().for_each(|(index, element)| places(element, &format!("{at}/{index}"), all));
        }
        Value::Object(members) => members.iter().for_each(|(key, member)| {
            places(member, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), all);
        }),
        _ => {}
    }
}

proptest! {
    #![proptest_config(seeded(200))]

    #[test]
    fn a6_patches_apply_as_the_reference_of_json_patch_has_it(
        start in any_value(),
        patches in prop::collection::vec(prop::collection::vec((any_operation(), any::<[Option<prop::sample::Index>; 2]>()), 1..4), 1..8),
    ) {
        let mut model = start.clone();
        let mut pipeline = Options::new().state(start).build();
        pipeline.push(run_started()).unwrap();
        for patch in patches {
            let mut all = Vec::new();
            places(&model, "", &mut all);
            // Half of the pointers lead to a value.
            let operations = patch.into_iter().map(|(mut operation, [path, from])| {
                if let Some(path) = path {
                    operation["path"] = json!(path.get(&all));
                }
                if let (Some(from), Some(_)) = (from, operation.get("from")) {
                    operation["from"] = json!(from.get(&all));
                }
                operation
            });
            let patch = Value::Array(operations.collect());
            let before = model.clone();
            let typed: json_patch::Patch = serde_json::from_value(patch.clone()).unwrap();
            // Operation by operation, as the crate may fail to undo a move.
            let applied = typed.0.iter().all(|operation| match operation {
                json_patch::PatchOperation::Test(test) => {
                    model.pointer(test.path.as_str()).is_some_and(|held| by_value(held) == by_value(&test.value))
                }
                operation => json_patch::patch(&mut model, std::slice::from_ref(operation)).is_ok(),
            });
            if !applied {
                model = before.clone();
            }
            pipeline.push(state_patch(patch.clone())).unwrap();
            let updates: Vec<_> = std::iter::from_fn(|| pipeline.pop()).collect();
            let warned = updates.iter().any(|update| update.warning().is_some());
            prop_assert_eq!(warned, !applied, "{} of {}", patch, before);
            let state = pipeline.snapshot().state();
            prop_assert_eq!(state, &model, "{} of {}", patch, before);
            prop_assert_eq!(&state.to_value(), &model);
            prop_assert_eq!(state, &Document::from(&model));
            prop_assert_eq!(state.to_string(), model.to_string());
            // It may be marked where operations undo each other, and never the other way round.
            prop_assert!(updates.iter().any(|update| update.changed_state()) || model == before);
        }
    }

    #[test]
    fn documents_read_as_values_do(value in any_value(), other in any_value()) {
        let document = Document::from(&value);
        prop_assert_eq!(document == other, value == other);
        let other_document = Document::from(&other);
        prop_assert_eq!(document == other_document, value == other);
        prop_assert_eq!(format!("{document:#}"), format!("{value:#}"));
        prop_assert_eq!(document.read_as::<Value>().unwrap(), value.clone());
        let mut all = Vec::new();
        places(&value, "", &mut all);
        for place in all {
            let (ours, theirs) = (document.pointer(&place).unwrap(), value.pointer(&place).unwrap());
            prop_assert_eq!(ours, theirs);
            prop_assert_eq!(ours.is_null(), theirs.is_null());
            prop_assert_eq!(ours.as_bool(), theirs.as_bool());
            prop_assert_eq!((ours.as_i64(), ours.as_u64(), ours.as_f64()), (theirs.as_i64(), theirs.as_u64(), theirs.as_f64()));
            prop_assert_eq!(ours.as_str(), theirs.as_str());
            prop_assert_eq!(ours.as_array().map(|array| array.len()), theirs.as_array().map(Vec::len));
            prop_assert_eq!(ours.as_object().map(|object| object.len()), theirs.as_object().map(|object| object.len()));
            let members: BTreeMap<&str, &Document> = ours.as_object().into_iter().flatten().collect();
            for (key, member) in theirs.as_object().into_iter().flatten() {
                prop_assert_eq!(members[key.as_str()], member);
                prop_assert_eq!(&ours[key.as_str()], member);
            }
        }
        prop_assert_eq!(document.pointer("/none"), None);
        prop_assert_eq!(document.pointer("no pointer"), None);
    }
}

/// Numbers as `test` compares them.
fn by_value(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(elements) => elements.iter().map(by_value).collect(),
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), by_value(value))).collect(),
        other => other.clone(),
    }
}
