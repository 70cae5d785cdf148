//! Chunk expansion, rules C1 to C11, and the halves of rule E11, through the public machines:
//! JSON text is enforced, then expanded, and where a rule needs it verified.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "support/cases.rs"]
mod cases;

use ag_ui_stream::error::{History, Subject, SubjectKind, Violation};
use ag_ui_stream::event::TextMessageChunkEvent;
use ag_ui_stream::machine::{Enforcer, Expander, Machine, Push, Verifier};
use ag_ui_stream::{Error, Event, EventType, Item, Rule, Warning};
use proptest::prelude::*;

use cases::cases;
use serde_json::{Value, json};

/// Feeds JSON texts through enforcement and expansion; gives the outputs and the result.
fn expand_texts(texts: &[String]) -> (Vec<Item>, Result<(), Error>) {
    let mut enforcer = Enforcer::new();
    let mut expander = Expander::new();
    let mut out = Vec::new();
    for text in texts {
        enforcer.push(text).unwrap();
        while let Some(item) = enforcer.pop() {
            let pushed = expander.push(item);
            out.extend(std::iter::from_fn(|| expander.pop()));
            if pushed.is_err() {
                return (out, pushed);
            }
        }
    }
    let finished = expander.finish();
    out.extend(std::iter::from_fn(|| expander.pop()));
    (out, finished)
}

fn texts(events: &[Value]) -> Vec<String> {
    events.iter().map(Value::to_string).collect()
}

/// An item in a line: the event without its family's prefix, the id, the delta, the owner.
fn line(item: &Item) -> String {
    match item {
        Item::Warning(warning) => format!("! {} {} of {}", warning.rule, warning.path, warning.event),
        Item::Event(indexed) => {
            let event = serde_json::to_value(&indexed.event).unwrap();
            let mut line = event["type"].as_str().unwrap().to_owned();
            for (long, short) in
                [("TEXT_MESSAGE_", "text "), ("TOOL_CALL_", "call "), ("REASONING_MESSAGE_", "thought ")]
            {
                line = line.replace(long, short);
            }
            if let Some(id) = event.get("toolCallId").or(event.get("messageId")).and_then(Value::as_str) {
                line += &format!(" {id}");
            }
            if let Some(delta) = event.get("delta").and_then(Value::as_str) {
                line += &format!(" {delta:?}");
            }
            if let Some(owner) = event.get("subagentRunId").and_then(Value::as_str) {
                line += &format!(" by {owner}");
            }
            line
        }
    }
}

#[track_caller]
fn assert_lines(items: &[Item], expected: &[&str]) {
    let found: Vec<_> = items.iter().map(line).collect();
    assert_eq!(found, expected);
}

/// Expands what must expand.
#[track_caller]
fn expand(events: &[Value]) -> Vec<Item> {
    let (items, result) = expand_texts(&texts(events));
    assert_eq!(result, Ok(()));
    items
}

#[track_caller]
fn assert_expands(events: &[Value], expected: &[&str]) {
    assert_lines(&expand(events), expected);
}

/// The violation that the last of these events is.
#[track_caller]
fn violation(events: &[Value]) -> Violation {
    let before = expand(&events[..events.len() - 1]).len();
    let (items, result) = expand_texts(&texts(events));
    assert!(items.len() <= before, "a rejected chunk gives nothing");
    match result {
        Err(Error::Violation(violation)) => {
            assert_eq!(violation.event, events.len() as u64 - 1);
            *violation
        }
        other => panic!("expected a violation, found {other:?}"),
    }
}

/// The whole way: enforced, expanded and verified.
fn verify(events: &[Value]) -> Result<(), Error> {
    let (items, result) = expand_texts(&texts(events));
    let mut verifier = Verifier::new();
    for item in items {
        verifier.push(item)?;
    }
    result?;
    verifier.finish()
}

fn run_started() -> Value {
    json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})
}

fn run_finished() -> Value {
    json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"})
}

fn text(id: &str, delta: &str) -> Value {
    json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": id, "delta": delta})
}

fn call(id: &str, delta: &str) -> Value {
    json!({"type": "TOOL_CALL_CHUNK", "toolCallId": id, "toolCallName": "find", "delta": delta})
}

fn thought(id: &str, delta: &str) -> Value {
    json!({"type": "REASONING_MESSAGE_CHUNK", "messageId": id, "delta": delta})
}

fn with(mut event: Value, more: Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        event[key] = value.clone();
    }
    event
}

fn by(owner: &str, event: Value) -> Value {
    with(event, json!({"subagentRunId": owner}))
}

/// The first chunk of one item of each kind, and the bare chunk that continues it.
fn each_kind() -> [(Value, Value, SubjectKind); 3] {
    [
        (text("i", "a"), json!({"type": "TEXT_MESSAGE_CHUNK", "delta": "b"}), SubjectKind::TextMessage),
        (call("i", "a"), json!({"type": "TOOL_CALL_CHUNK", "delta": "b"}), SubjectKind::ToolCall),
        (thought("i", "a"), json!({"type": "REASONING_MESSAGE_CHUNK", "delta": "b"}), SubjectKind::ReasoningMessage),
    ]
}

// C1

#[test]
fn c1_text_chunks_become_start_content_end() {
    assert_expands(
        &[text("m", "Salt"), text("m", " and"), run_finished()],
        &["text START m", "text CONTENT m \"Salt\"", "text CONTENT m \" and\"", "text END m", "RUN_FINISHED"],
    );
}

#[test]
fn c1_tool_call_chunks_become_start_args_end() {
    let first = with(call("c", "{"), json!({"parentMessageId": "m"}));
    let items = expand(&[first, json!({"type": "TOOL_CALL_CHUNK", "delta": "}"}), run_finished()]);
    assert_lines(&items, &["call START c", "call ARGS c \"{\"", "call ARGS c \"}\"", "call END c", "RUN_FINISHED"]);
    let start = serde_json::to_value(items[0].event().unwrap()).unwrap();
    assert_eq!(
        start,
        json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "find", "parentMessageId": "m"})
    );
}

#[test]
fn c1_reasoning_chunks_become_start_content_end() {
    assert_expands(
        &[thought("m", "hm"), run_finished()],
        &["thought START m", "thought CONTENT m \"hm\"", "thought END m", "RUN_FINISHED"],
    );
}

#[test]
fn c1_no_chunk_leaves_expansion() {
    for (first, next, _) in cases(each_kind()) {
        for item in expand(&[first, next, run_finished()]) {
            assert!(!item.event().unwrap().event_type().as_str().ends_with("_CHUNK"));
        }
    }
}

#[test]
fn c1_the_explicit_spelling_passes_through_unchanged() {
    let events = [
        run_started(),
        json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "timestamp": 5, "metadata": {"k": null}}),
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x", "rawEvent": {"n": 1}}),
        json!({"type": "CUSTOM", "name": "n", "value": null}),
        json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
        run_finished(),
    ];
    let found: Vec<_> =
        expand(&events).iter().map(|item| serde_json::to_value(item.event().unwrap()).unwrap()).collect();
    assert_eq!(found, events);
}

#[test]
fn c1_warnings_keep_their_place() {
    let odd = with(text("m", "a"), json!({"shade": "blue"}));
    assert_expands(
        &[text("m", "x"), odd],
        &["text START m", "text CONTENT m \"x\"", "! E2 /shade of 1", "text CONTENT m \"a\""],
    );
}

// C2

#[test]
fn c2_first_chunk_without_id_is_rejected() {
    for (_, bare, _) in cases(each_kind()) {
        let violation = violation(&[run_started(), bare]);
        assert_eq!(violation.rule, Rule::C2);
        assert_eq!(violation.subject, None);
    }
}

#[test]
fn c2_first_tool_chunk_without_name_is_rejected() {
    let violation = violation(&[json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "delta": "{"})]);
    assert_eq!(violation.rule, Rule::C2);
    assert_eq!(violation.event_type, EventType::ToolCallChunk);
    assert!(violation.to_string().contains("toolCallName"), "{violation}");
}

#[test]
fn c2_a_rejected_chunk_ends_nothing() {
    let (items, result) =
        expand_texts(&texts(&[text("m", "a"), json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c"})]));
    assert!(result.is_err());
    assert_lines(&items, &["text START m", "text CONTENT m \"a\""]);
}

#[test]
fn c2_a_chunk_after_its_stream_was_ended_names_what_ended_it() {
    let custom = json!({"type": "CUSTOM", "name": "tick", "value": 1});
    let violation = violation(&[text("m", "ab"), custom, json!({"type": "TEXT_MESSAGE_CHUNK", "delta": "cd"})]);
    assert_eq!(violation.rule, Rule::C2);
    assert_eq!(violation.subject, Some(Subject::new(SubjectKind::TextMessage, "m")));
    assert_eq!(violation.history, History::Closed { at: 1, owner: None });
    assert_eq!(
        violation.to_string(),
        "C2: TEXT_MESSAGE_CHUNK (event 2): text message \"m\": expected `messageId`, which a first chunk carries, \
         found none, after CUSTOM ended the chunks of this text message (closed at event 1, owned by the parent agent)"
    );
}

#[test]
fn c2_only_a_stream_that_the_chunk_may_continue_is_named() {
    let custom = json!({"type": "CUSTOM", "name": "tick", "value": 1});
    let bare = by("s", json!({"type": "TEXT_MESSAGE_CHUNK", "delta": "b"}));
    assert_eq!(violation(&[text("m", "a"), custom.clone(), bare]).subject, None, "it had another owner");
    let other = json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "d"});
    assert_eq!(violation(&[call("c", "a"), custom, other]).subject, None, "it had another id");
}

#[test]
fn c2_a_tool_call_is_not_reopened_without_its_name() {
    let step = json!({"type": "STEP_STARTED", "stepName": "s"});
    let violation = violation(&[call("c", "{"), step, json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c"})]);
    assert_eq!(violation.rule, Rule::C2);
    assert_eq!(violation.history, History::Closed { at: 1, owner: None });
}

#[test]
fn c2_a_message_is_reopened_by_a_chunk_with_its_id() {
    let custom = json!({"type": "CUSTOM", "name": "tick", "value": 1});
    assert_expands(
        &[text("m", "a"), custom, text("m", "b")],
        &["text START m", "text CONTENT m \"a\"", "text END m", "CUSTOM", "text START m", "text CONTENT m \"b\""],
    );
}

#[test]
fn c2_the_empty_id_is_an_id() {
    assert_expands(&[text("", "a"), text("", "b")], &["text START ", "text CONTENT  \"a\"", "text CONTENT  \"b\""]);
}

#[test]
fn c2_a_tagged_chunk_does_not_continue_the_parent() {
    let bare = by("s", json!({"type": "TEXT_MESSAGE_CHUNK", "delta": "b"}));
    assert_eq!(violation(&[text("m", "a"), bare]).rule, Rule::C2);
}

#[test]
fn c2_an_absent_role_stays_absent() {
    let items = expand(&[text("m", "a")]);
    let Some(Event::TextMessageStart(start)) = items[0].event() else { panic!() };
    assert_eq!(start.role, None);
    let items = expand(&[with(text("m", "a"), json!({"role": "user", "name": "Ana"}))]);
    let Some(Event::TextMessageStart(start)) = items[0].event() else { panic!() };
    assert_eq!(
        serde_json::to_value(start).unwrap(),
        json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "user", "name": "Ana"})
    );
}

// C3

#[test]
fn c3_a_chunk_with_another_id_ends_the_one_before() {
    assert_expands(
        &[text("m", "a"), text("n", "b")],
        &["text START m", "text CONTENT m \"a\"", "text END m", "text START n", "text CONTENT n \"b\""],
    );
}

#[test]
fn c3_a_chunk_of_another_kind_ends_the_one_before() {
    assert_expands(
        &[text("i", "a"), call("i", "b"), thought("i", "c"), text("i", "d")],
        &[
            "text START i",
            "text CONTENT i \"a\"",
            "text END i",
            "call START i",
            "call ARGS i \"b\"",
            "call END i",
            "thought START i",
            "thought CONTENT i \"c\"",
            "thought END i",
            "text START i",
            "text CONTENT i \"d\"",
        ],
    );
}

#[test]
fn c3_lanes_do_not_disturb_each_other() {
    assert_expands(
        &[text("m", "a"), by("s", text("n", "b")), text("m", "c"), by("s", call("c", "d")), text("m", "e")],
        &[
            "text START m",
            "text CONTENT m \"a\"",
            "text START n by s",
            "text CONTENT n \"b\" by s",
            "text CONTENT m \"c\"",
            "text END n by s",
            "call START c by s",
            "call ARGS c \"d\" by s",
            "text CONTENT m \"e\"",
        ],
    );
}

// C4

#[test]
fn c4_an_id_finds_its_lane_without_a_tag() {
    assert_expands(
        &[by("s", text("m", "a")), text("n", "b"), text("m", "c")],
        &[
            "text START m by s",
            "text CONTENT m \"a\" by s",
            "text START n",
            "text CONTENT n \"b\"",
            "text CONTENT m \"c\" by s",
        ],
    );
}

#[test]
fn c4_a_tag_finds_its_lane_without_an_id() {
    for (first, bare, _) in each_kind() {
        let items = expand(&[
            by("s", first.clone()),
            by("q", with(first, json!({"messageId": "j", "toolCallId": "j"}))),
            by("s", bare),
        ]);
        assert!(line(items.last().unwrap()).ends_with(" i \"b\" by s"), "{}", line(items.last().unwrap()));
    }
}

#[test]
fn c4_a_bare_chunk_continues_the_parent_first() {
    assert_expands(
        &[
            by("s", text("m", "a")),
            text("n", "b"),
            by("q", text("o", "c")),
            json!({"type": "TEXT_MESSAGE_CHUNK", "delta": "d"}),
        ],
        &[
            "text START m by s",
            "text CONTENT m \"a\" by s",
            "text START n",
            "text CONTENT n \"b\"",
            "text START o by q",
            "text CONTENT o \"c\" by q",
            "text CONTENT n \"d\"",
        ],
    );
}

#[test]
fn c4_a_bare_chunk_continues_the_only_lane_of_its_kind() {
    // The parent's lane has another kind, and others of that kind have come and gone.
    for (first, bare, _) in each_kind() {
        let other = if first["type"] == "TOOL_CALL_CHUNK" { text("o", "") } else { call("o", "") };
        let elsewhere = by("q", with(first.clone(), json!({"messageId": "j", "toolCallId": "j"})));
        let done = json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "q"});
        let items = expand(&[other, elsewhere, by("s", first), done, bare]);
        assert!(line(items.last().unwrap()).ends_with(" i \"b\" by s"), "{}", line(items.last().unwrap()));
    }
}

#[test]
fn c4_a_bare_chunk_with_several_lanes_is_ambiguous() {
    for (first, bare, kind) in cases(each_kind()) {
        let other = by("q", with(first.clone(), json!({"messageId": "j", "toolCallId": "j"})));
        let violation = violation(&[run_started(), by("s", first), other, bare]);
        assert_eq!(violation.rule, Rule::C4);
        assert_eq!(
            violation.others,
            [
                (Subject::new(kind, "i"), History::Open { since: 1, owner: Some("s".into()) }),
                (Subject::new(kind, "j"), History::Open { since: 2, owner: Some("q".into()) }),
            ]
        );
    }
}

#[test]
fn c4_an_ambiguity_is_of_one_kind_only() {
    assert_expands(
        &[by("s", text("m", "a")), by("q", call("c", "b")), json!({"type": "TEXT_MESSAGE_CHUNK", "delta": "c"})],
        &[
            "text START m by s",
            "text CONTENT m \"a\" by s",
            "call START c by q",
            "call ARGS c \"b\" by q",
            "text CONTENT m \"c\" by s",
        ],
    );
}

#[test]
fn c4_a_tag_that_differs_from_the_owner_is_rejected() {
    for (owner, tag) in cases([(None, "s"), (Some("s"), "q"), (Some("s"), ""), (Some(""), "s")]) {
        for (first, _, kind) in cases(each_kind()) {
            let first = owner.map_or(first.clone(), |owner| by(owner, first.clone()));
            let violation = violation(&[run_started(), first.clone(), by(tag, first)]);
            assert_eq!(violation.rule, Rule::O2);
            assert_eq!(violation.subject, Some(Subject::new(kind, "i")));
            assert_eq!(violation.history, History::Open { since: 1, owner: owner.map(Into::into) });
        }
    }
}

#[test]
fn e8_the_empty_tag_is_a_subagent_and_not_the_parent() {
    assert_expands(
        &[by("", text("m", "a")), text("n", "b")],
        &["text START m by ", "text CONTENT m \"a\" by ", "text START n", "text CONTENT n \"b\""],
    );
}

// C5

#[test]
fn c5_a_conflicting_repeat_is_rejected() {
    let first = with(text("m", "a"), json!({"role": "user", "name": "Ana"}));
    let tool = with(call("c", "a"), json!({"parentMessageId": "p"}));
    for (first, repeat) in cases([
        (&first, json!({"role": "assistant"})),
        (&first, json!({"name": "Eva"})),
        (&first, json!({"name": ""})),
        (&tool, json!({"toolCallName": "lose"})),
        (&tool, json!({"parentMessageId": "q"})),
        // An absent field is established too.
        (&text("m", "a"), json!({"role": "user"})),
        (&text("m", "a"), json!({"name": "Ana"})),
        (&call("c", "a"), json!({"parentMessageId": "p"})),
    ]) {
        let next = with(json!({"type": first["type"]}), repeat.clone());
        let violation = violation(&[run_started(), first.clone(), next]);
        assert_eq!(violation.rule, Rule::C5, "{repeat}");
        let field = repeat.as_object().unwrap().keys().next().unwrap();
        assert!(violation.expected.contains(field), "{violation}");
        assert_eq!(violation.history, History::Open { since: 1, owner: None });
    }
}

#[test]
fn c5_an_equal_repeat_is_accepted() {
    let message = with(text("m", "a"), json!({"role": "user", "name": "Ana"}));
    let tool = with(call("c", "b"), json!({"parentMessageId": "p"}));
    assert_expands(
        &[
            message.clone(),
            message,
            tool.clone(),
            tool,
            text("n", "c"),
            with(text("n", "d"), json!({"role": "assistant"})),
        ],
        &[
            "text START m",
            "text CONTENT m \"a\"",
            "text CONTENT m \"a\"",
            "text END m",
            "call START c",
            "call ARGS c \"b\"",
            "call ARGS c \"b\"",
            "call END c",
            "text START n",
            "text CONTENT n \"c\"",
            "text CONTENT n \"d\"",
        ],
    );
}

#[test]
fn c5_a_reopened_message_may_have_other_fields() {
    let custom = json!({"type": "CUSTOM", "name": "tick", "value": 1});
    expand(&[text("m", "a"), custom, with(text("m", "b"), json!({"role": "user", "name": "Ana"}))]);
}

// C6 and C7

/// Every event that can carry a tag and closes the lane of that tag.
fn lane_events() -> Vec<Value> {
    vec![
        json!({"type": "TEXT_MESSAGE_START", "messageId": "x"}),
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "x", "delta": "d"}),
        json!({"type": "TEXT_MESSAGE_END", "messageId": "x"}),
        json!({"type": "TOOL_CALL_START", "toolCallId": "x", "toolCallName": "find"}),
        json!({"type": "TOOL_CALL_ARGS", "toolCallId": "x", "delta": "d"}),
        json!({"type": "TOOL_CALL_END", "toolCallId": "x"}),
        json!({"type": "TOOL_CALL_RESULT", "messageId": "x", "toolCallId": "y", "content": "r"}),
        json!({"type": "STATE_SNAPSHOT", "snapshot": null}),
        json!({"type": "STATE_DELTA", "delta": []}),
        json!({"type": "CUSTOM", "name": "n", "value": 1}),
        json!({"type": "STEP_STARTED", "stepName": "n"}),
        json!({"type": "STEP_FINISHED", "stepName": "n"}),
        json!({"type": "REASONING_START", "messageId": "x"}),
        json!({"type": "REASONING_MESSAGE_START", "messageId": "x", "role": "reasoning"}),
        json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "x", "delta": "d"}),
        json!({"type": "REASONING_MESSAGE_END", "messageId": "x"}),
        json!({"type": "REASONING_END", "messageId": "x"}),
    ]
}

fn aside_events() -> Vec<Value> {
    vec![
        json!({"type": "RAW", "event": 1}),
        json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "x", "activityType": "PLAN", "content": {}}),
        json!({"type": "ACTIVITY_DELTA", "messageId": "x", "activityType": "PLAN", "patch": []}),
        json!({"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "x", "encryptedValue": "v"}),
        json!({"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n"}),
    ]
}

fn run_level_events() -> Vec<Value> {
    vec![
        run_started(),
        run_finished(),
        json!({"type": "RUN_ERROR", "message": "no"}),
        json!({"type": "MESSAGES_SNAPSHOT", "messages": []}),
    ]
}

/// Which lanes an event closes, of those of the parent, of `s` and of `q`, in order.
fn closes(event: &Value) -> Vec<String> {
    let open = [by("s", text("1", "a")), call("2", "a"), by("q", thought("3", "a"))];
    let before = expand(&open).len();
    let mut all = open.to_vec();
    all.push(event.clone());
    let items = expand(&all);
    let (event, ends) = items[before..].split_last().unwrap();
    assert_eq!(event.event().unwrap().event_type().as_str(), all[3]["type"], "the event comes last");
    ends.iter().map(line).collect()
}

#[test]
fn c6_an_event_ends_the_chunks_of_its_lane_and_no_others() {
    for event in lane_events() {
        assert_eq!(closes(&event), ["call END 2"], "{event}");
        assert_eq!(closes(&by("s", event.clone())), ["text END 1 by s"], "{event}");
        assert!(closes(&by("other", event.clone())).is_empty(), "{event}");
    }
}

#[test]
fn c6_some_events_stand_aside() {
    for event in aside_events() {
        assert!(closes(&event).is_empty(), "{event}");
        assert!(closes(&by("s", event.clone())).is_empty(), "{event}");
    }
}

#[test]
fn c6_every_event_type_is_in_one_of_the_lists() {
    let chunks = each_kind().map(|(first, _, _)| first);
    let ends = [
        json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "s"}),
        json!({"type": "SUBAGENT_ERROR", "subagentRunId": "s", "message": "no"}),
    ];
    let all = [lane_events(), aside_events(), run_level_events(), ends.to_vec(), chunks.to_vec()].concat();
    let mut types: Vec<_> =
        all.iter().map(|event| EventType::from_wire(event["type"].as_str().unwrap()).unwrap()).collect();
    types.sort_unstable();
    let mut expected = EventType::ALL.to_vec();
    expected.sort_unstable();
    assert_eq!(types, expected);
}

#[test]
fn c7_run_level_events_end_every_lane_in_the_order_they_opened() {
    for event in run_level_events() {
        assert_eq!(closes(&event), ["text END 1 by s", "call END 2", "thought END 3 by q"], "{event}");
    }
}

#[test]
fn c7_a_lane_that_opened_again_is_ended_later() {
    let items = expand(&[by("s", text("1", "")), text("2", ""), by("s", text("3", "")), run_finished()]);
    let ends: Vec<_> = items.iter().map(line).filter(|line| line.contains("END")).collect();
    assert_eq!(ends, ["text END 1 by s", "text END 2", "text END 3 by s"]);
}

#[test]
fn c7_the_end_of_a_subagent_ends_its_lane() {
    for event in [
        json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "q"}),
        json!({"type": "SUBAGENT_ERROR", "subagentRunId": "q", "message": "no"}),
    ] {
        assert_eq!(closes(&event), ["thought END 3 by q"], "{event}");
        assert!(closes(&by("other", event.clone())).is_empty(), "{event}");
    }
}

#[test]
fn c7_a_dropped_event_ends_nothing() {
    assert_expands(
        &[text("m", "a"), json!({"type": "WEATHER"}), json!({"type": "TEXT_MESSAGE_CHUNK", "delta": "b"})],
        &["text START m", "text CONTENT m \"a\"", "! E1  of 1", "text CONTENT m \"b\""],
    );
}

#[test]
fn c7_a_run_leaves_no_lane_to_the_next() {
    let violation = violation(&[
        text("m", "a"),
        run_finished(),
        run_started(),
        json!({"type": "TEXT_MESSAGE_CHUNK", "delta": "b"}),
    ]);
    assert_eq!(violation.rule, Rule::C2);
    assert_eq!(violation.history, History::Closed { at: 1, owner: None });
}

// C8

#[test]
fn c8_an_explicit_event_for_a_chunked_item_ends_it_and_is_judged_alone() {
    for (content, end) in cases([
        (
            json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "i", "delta": "x"}),
            json!({"type": "TEXT_MESSAGE_END", "messageId": "i"}),
        ),
        (
            json!({"type": "TOOL_CALL_ARGS", "toolCallId": "i", "delta": "x"}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "i"}),
        ),
        (
            json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "i", "delta": "x"}),
            json!({"type": "REASONING_MESSAGE_END", "messageId": "i"}),
        ),
    ]) {
        let kind = content["type"].as_str().unwrap().rsplit_once('_').unwrap().0.to_owned();
        let (first, ..) = each_kind().into_iter().find(|(first, ..)| first["type"] == format!("{kind}_CHUNK")).unwrap();
        for explicit in cases([content, end]) {
            // Also where the explicit event does not say whose item it is.
            for first in cases([first.clone(), by("s", first.clone())]) {
                let events = [run_started(), first, explicit.clone(), run_finished()];
                let items = expand(&events);
                assert!(items[3].event().unwrap().event_type().as_str().ends_with("_END"), "{}", line(&items[3]));
                let error = verify(&events).unwrap_err();
                assert_eq!(error.rule(), Some(Rule::S2), "{error}");
                assert_eq!(error.event_index(), Some(2));
                let Error::Violation(violation) = error else { panic!() };
                assert!(matches!(violation.history, History::Closed { at: 2, .. }), "{violation}");
            }
        }
    }
}

#[test]
fn c8_its_own_lane_and_that_of_the_item_end_in_the_order_they_opened() {
    let end = json!({"type": "TEXT_MESSAGE_END", "messageId": "m"});
    for (first, second) in cases([(by("s", text("m", "")), call("c", "")), (call("c", ""), by("s", text("m", "")))]) {
        let items = expand(&[first.clone(), second, end.clone()]);
        let mut ends: Vec<_> = items.iter().map(line).filter(|line| line.contains("END")).collect();
        assert_eq!(ends.pop().as_deref(), Some("text END m"), "the event itself");
        let expected = ["text END m by s", "call END c"];
        let expected = if first["type"] == "TOOL_CALL_CHUNK" { [expected[1], expected[0]] } else { expected };
        assert_eq!(ends, expected);
    }
}

#[test]
fn c8_an_explicit_start_for_a_chunked_item_of_another_lane_finds_it_open() {
    let starts = [
        json!({"type": "TEXT_MESSAGE_START", "messageId": "i"}),
        json!({"type": "TOOL_CALL_START", "toolCallId": "i", "toolCallName": "find"}),
        json!({"type": "REASONING_MESSAGE_START", "messageId": "i", "role": "reasoning"}),
    ];
    for ((first, ..), start) in each_kind().into_iter().zip(starts) {
        for (first, start) in [(by("s", first.clone()), start.clone()), (first.clone(), by("s", start.clone()))] {
            let error = verify(&[run_started(), first, start.clone()]).unwrap_err();
            assert_eq!((error.rule(), error.event_index()), (Some(Rule::S2), Some(2)), "{error}");
            let Error::Violation(violation) = error else { panic!() };
            assert!(matches!(violation.history, History::Open { since: 1, .. }), "{violation}");
        }
        // Within its lane it ends the chunks (C6), and their item is opened again (S5).
        let owned = |events: [Value; 2]| events.map(|event| by("s", event));
        for [first, start] in cases([[first.clone(), start.clone()], owned([first, start])]) {
            let items = expand(&[run_started(), first, start.clone()]);
            assert!(line(&items[items.len() - 2]).contains("END i"), "{items:?}");
            assert_eq!(items.last().and_then(Item::event).unwrap().event_type().as_str(), start["type"]);
        }
    }
}

#[test]
fn c8_a_chunk_for_an_explicit_item_finds_it_open() {
    let start = json!({"type": "TEXT_MESSAGE_START", "messageId": "m"});
    let error = verify(&[run_started(), start, text("m", "Salt")]).unwrap_err();
    assert_eq!(error.rule(), Some(Rule::S2));
    assert_eq!(error.event_index(), Some(2));
    assert_eq!(error.event_type(), Some(EventType::TextMessageChunk), "it speaks of what was sent");
}

#[test]
fn c8_ids_of_other_kinds_are_other_ids() {
    assert_expands(
        &[
            by("s", text("i", "a")),
            json!({"type": "REASONING_MESSAGE_END", "messageId": "i"}),
            json!({"type": "TEXT_MESSAGE_CHUNK", "delta": "b"}),
        ],
        &["text START i by s", "text CONTENT i \"a\" by s", "thought END i", "text CONTENT i \"b\" by s"],
    );
}

// C9 and C10

fn json_of(items: &[Item]) -> Vec<Value> {
    items.iter().map(|item| serde_json::to_value(item.event().unwrap()).unwrap()).collect()
}

#[test]
fn c9_metadata_rides_on_what_the_chunk_becomes_and_not_on_the_end_before_it() {
    let chunk = with(text("n", "b"), json!({"metadata": {"k": 1}, "rawEvent": [2], "timestamp": 3}));
    assert_eq!(
        json_of(&expand(&[text("m", "a"), chunk, run_finished()]))[2..],
        [
            json!({"type": "TEXT_MESSAGE_END", "messageId": "m"}),
            json!({"type": "TEXT_MESSAGE_START", "messageId": "n", "metadata": {"k": 1}}),
            json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "n", "delta": "b", "metadata": {"k": 1}, "rawEvent": [2]}),
            json!({"type": "TEXT_MESSAGE_END", "messageId": "n"}),
            run_finished(),
        ]
    );
}

#[test]
fn c9_a_first_chunk_without_delta_is_a_start_alone() {
    for (first, _, _) in cases(each_kind()) {
        let mut first = with(first, json!({"metadata": {"k": 1}}));
        first.as_object_mut().unwrap().remove("delta");
        assert_eq!(expand(&[first.clone()]).len(), 1);
        let items = json_of(&expand(&[with(first, json!({"rawEvent": 0}))]));
        assert_eq!(items.len(), 2);
        assert_eq!((&items[0]["rawEvent"], &items[0]["metadata"]), (&Value::Null, &json!({"k": 1})));
        assert_eq!((&items[1]["rawEvent"], &items[1]["metadata"]), (&json!(0), &json!({"k": 1})));
        assert_eq!(items[1]["delta"], "");
    }
}

#[test]
fn c9_a_continuation_of_metadata_alone_is_an_empty_content() {
    for (first, _, _) in cases(each_kind()) {
        let bare = json!({"type": first["type"]});
        assert_eq!(expand(&[first.clone(), bare.clone()]).len(), 2, "and one of nothing is nothing");
        for more in cases([json!({"metadata": {"finishReason": "stop"}}), json!({"rawEvent": {}})]) {
            let items = json_of(&expand(&[first.clone(), with(bare.clone(), more.clone())]));
            assert_eq!(items.len(), 3);
            assert_eq!(items[2]["delta"], "");
            assert_eq!(with(items[2].clone(), more), items[2]);
        }
        assert_eq!(expand(&[first, with(bare, json!({"timestamp": 1}))]).len(), 2);
    }
}

#[test]
fn c9_an_empty_delta_is_a_delta() {
    assert_expands(&[text("m", ""), text("m", "")], &["text START m", "text CONTENT m \"\"", "text CONTENT m \"\""]);
}

#[test]
fn c10_the_owner_rides_on_every_synthesized_event() {
    for (first, bare, _) in cases(each_kind()) {
        let items = json_of(&expand(&[by("s", first), bare, run_finished()]));
        assert_eq!(items.len(), 5);
        assert!(items[..4].iter().all(|event| event["subagentRunId"] == "s"), "{items:?}");
    }
}

// C11

#[test]
fn c11_nothing_is_synthesized_at_the_end_of_the_input() {
    let events = [run_started(), text("m", "a"), by("s", call("c", "b"))];
    let items = expand(&events);
    assert_lines(
        &items,
        &["RUN_STARTED", "text START m", "text CONTENT m \"a\"", "call START c by s", "call ARGS c \"b\" by s"],
    );
    let error = verify(&events).unwrap_err();
    assert!(error.is_truncated());
    let Error::Truncated(truncated) = error else { panic!() };
    assert_eq!(truncated.open.len(), 2);
}

// Where events come from

#[test]
fn synthesized_events_name_their_origin() {
    let items = expand(&[run_started(), text("m", "a"), json!({"type": "CUSTOM", "name": "n", "value": 1})]);
    let origins: Vec<_> = items
        .iter()
        .map(|item| match item {
            Item::Event(indexed) => (indexed.index(), indexed.sent_as()),
            Item::Warning(_) => panic!(),
        })
        .collect();
    assert_eq!(
        origins,
        [
            (Some(0), EventType::RunStarted),
            (Some(1), EventType::TextMessageChunk),
            (Some(1), EventType::TextMessageChunk),
            // Ended by event 2, opened by a chunk.
            (Some(2), EventType::TextMessageChunk),
            (Some(2), EventType::Custom),
        ]
    );
}

#[test]
fn an_event_that_middleware_added_gets_no_index() {
    let mut expander = Expander::new();
    let mut chunk = TextMessageChunkEvent::new();
    chunk.message_id = Some("m".into());
    chunk.delta = Some("a".into());
    expander.push(Event::from(chunk)).unwrap();
    while let Some(item) = expander.pop() {
        let Item::Event(indexed) = item else { panic!() };
        assert_eq!((indexed.index(), indexed.sent_as()), (None, EventType::TextMessageChunk));
    }
    let mut nameless = TextMessageChunkEvent::new();
    nameless.name = Some("Ana".into());
    let error = expander.push(Event::from(nameless)).unwrap_err();
    assert_eq!(error.event_index(), Some(1), "where it stands among those pushed");
}

// E11

const HIGH: &str = r"\ud83d";
const LOW: &str = r"\ude00";

/// Explicit events of a text message `m`, and chunks of it, with a delta as JSON writes it.
fn content(delta: &str) -> String {
    format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"{delta}"}}"#)
}

fn chunk(delta: &str) -> String {
    format!(r#"{{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"{delta}"}}"#)
}

fn end() -> String {
    r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#.into()
}

#[track_caller]
fn assert_texts_expand(texts: &[String], expected: &[&str]) {
    let (items, result) = expand_texts(texts);
    assert_eq!(result, Ok(()));
    assert_lines(&items, expected);
}

#[test]
fn e11_halves_are_joined_across_deltas() {
    assert_texts_expand(
        &[content(&format!("ok {HIGH}")), content(&format!("{LOW}!")), end()],
        &["text CONTENT m \"ok \"", "text CONTENT m \"😀!\"", "text END m"],
    );
}

#[test]
fn e11_halves_are_joined_across_chunks() {
    assert_texts_expand(
        &[chunk(HIGH), chunk(LOW), run_finished().to_string()],
        &["text START m", "text CONTENT m \"\"", "text CONTENT m \"😀\"", "text END m", "RUN_FINISHED"],
    );
}

#[test]
fn e11_every_kind_joins_its_own() {
    for (content, chunk) in cases([
        (
            r#"{"type":"TOOL_CALL_ARGS","toolCallId":"m","delta":"DELTA"}"#,
            r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"n","toolCallName":"f","delta":"DELTA"}"#,
        ),
        (
            r#"{"type":"REASONING_MESSAGE_CONTENT","messageId":"m","delta":"DELTA"}"#,
            r#"{"type":"REASONING_MESSAGE_CHUNK","messageId":"n","delta":"DELTA"}"#,
        ),
    ]) {
        for text in cases([content, chunk]) {
            let (items, result) = expand_texts(&[text.replace("DELTA", HIGH), text.replace("DELTA", LOW)]);
            assert_eq!(result, Ok(()));
            assert!(line(items.last().unwrap()).contains('😀'));
            assert!(items.iter().all(|item| item.warning().is_none()));
        }
    }
}

#[test]
fn e11_a_delta_can_end_one_pair_and_begin_another() {
    assert_texts_expand(
        &[content(HIGH), content(&format!("{LOW}{HIGH}")), content(&format!("{LOW}{HIGH}{LOW}"))],
        &["text CONTENT m \"\"", "text CONTENT m \"😀\"", "text CONTENT m \"😀😀\""],
    );
}

#[test]
fn e11_an_empty_delta_keeps_a_half_waiting() {
    assert_texts_expand(
        &[content(HIGH), content(""), content(LOW)],
        &["text CONTENT m \"\"", "text CONTENT m \"\"", "text CONTENT m \"😀\""],
    );
}

#[test]
fn e11_a_high_half_before_other_text_is_replaced() {
    assert_texts_expand(
        &[content(HIGH), content("x")],
        &["text CONTENT m \"\"", "! E11 /delta of 0", "text CONTENT m \"\u{fffd}x\""],
    );
}

#[test]
fn e11_a_high_half_before_another_is_replaced() {
    assert_texts_expand(
        &[content(HIGH), content(HIGH), content(LOW)],
        &["text CONTENT m \"\"", "! E11 /delta of 0", "text CONTENT m \"\u{fffd}\"", "text CONTENT m \"😀\""],
    );
}

#[test]
fn e11_a_low_half_without_a_high_one_is_replaced() {
    assert_texts_expand(
        &[content("x"), content(&format!("{LOW}y"))],
        &["text CONTENT m \"x\"", "! E11 /delta of 1", "text CONTENT m \"\u{fffd}y\""],
    );
}

#[test]
fn e11_a_half_within_a_delta_is_warned_of_by_enforcement_alone() {
    assert_texts_expand(&[content(&format!("x{HIGH}y"))], &["! E11 /delta of 0", "text CONTENT m \"x\u{fffd}y\""]);
    // One at the end still finds its partner.
    assert_texts_expand(
        &[content(&format!("x{HIGH}y{HIGH}")), content(LOW)],
        &["! E11 /delta of 0", "text CONTENT m \"x\u{fffd}y\"", "text CONTENT m \"😀\""],
    );
}

#[test]
fn e11_a_high_half_at_the_end_of_its_item_is_delivered_as_replaced() {
    assert_texts_expand(
        &[content(&format!("a{HIGH}")), end()],
        &["text CONTENT m \"a\"", "! E11 /delta of 0", "text CONTENT m \"\u{fffd}\"", "text END m"],
    );
}

#[test]
fn e11_the_same_at_an_end_that_is_synthesized() {
    let custom = r#"{"type":"CUSTOM","name":"n","value":1,"subagentRunId":"s"}"#.to_owned();
    let chunk = chunk(HIGH).replace("\"delta\"", "\"subagentRunId\":\"s\",\"delta\"");
    assert_texts_expand(
        &[chunk, custom],
        &[
            "text START m by s",
            "text CONTENT m \"\" by s",
            "! E11 /delta of 0",
            "text CONTENT m \"\u{fffd}\" by s",
            "text END m by s",
            "CUSTOM by s",
        ],
    );
}

#[test]
fn e11_the_end_of_a_run_gives_up_every_half_in_order() {
    for event in [run_started(), run_finished(), json!({"type": "RUN_ERROR", "message": "no"})] {
        let other = content(HIGH).replace("TEXT_MESSAGE", "REASONING_MESSAGE");
        let texts = [other, content(HIGH), chunk(HIGH).replace("\"m\"", "\"c\""), event.to_string()];
        assert_texts_expand(
            &texts,
            &[
                "thought CONTENT m \"\"",
                "text CONTENT m \"\"",
                "text START c",
                "text CONTENT c \"\"",
                "! E11 /delta of 2",
                "text CONTENT c \"\u{fffd}\"",
                "text END c",
                "! E11 /delta of 0",
                "thought CONTENT m \"\u{fffd}\"",
                "! E11 /delta of 1",
                "text CONTENT m \"\u{fffd}\"",
                event["type"].as_str().unwrap(),
            ],
        );
    }
}

#[test]
fn e11_other_events_leave_a_half_of_an_explicit_item_waiting() {
    for event in
        [json!({"type": "MESSAGES_SNAPSHOT", "messages": []}), json!({"type": "CUSTOM", "name": "n", "value": 1})]
    {
        let (items, _) = expand_texts(&[content(HIGH), event.to_string(), content(LOW)]);
        assert_eq!(line(&items[2]), "text CONTENT m \"😀\"");
    }
}

#[test]
fn e11_items_do_not_share_their_halves() {
    let other = content(LOW).replace("\"m\"", "\"n\"");
    let thought = content(LOW).replace("TEXT_MESSAGE", "REASONING_MESSAGE");
    assert_texts_expand(
        &[content(HIGH), other, thought, content(LOW)],
        &[
            "text CONTENT m \"\"",
            "! E11 /delta of 1",
            "text CONTENT n \"\u{fffd}\"",
            "! E11 /delta of 2",
            "thought CONTENT m \"\u{fffd}\"",
            "text CONTENT m \"😀\"",
        ],
    );
}

#[test]
fn e11_at_the_end_of_the_input_there_is_only_the_warning() {
    assert_texts_expand(&[content(&format!("a{HIGH}"))], &["text CONTENT m \"a\"", "! E11 /delta of 0"]);
}

#[test]
fn e11_the_warning_says_what_was_sent() {
    let (items, _) = expand_texts(&[chunk(HIGH), chunk("x")]);
    let warning: &Warning = items[2].warning().unwrap();
    assert_eq!(
        warning.to_string(),
        "E11: TEXT_MESSAGE_CHUNK (event 0) /delta: replaced with U+FFFD: the delta ends with the high half of a \
         surrogate pair, and the next delta begins with another character"
    );
}

#[test]
fn e11_a_replacement_character_of_the_producer_is_text() {
    assert_texts_expand(
        &[content("\u{fffd}"), content("\u{fffd}x")],
        &["text CONTENT m \"\u{fffd}\"", "text CONTENT m \"\u{fffd}x\""],
    );
}

// Laws

/// One item of a lane: its kind, its deltas and what its first chunk says of it.
#[derive(Clone, Debug)]
struct Plan {
    kind: usize,
    deltas: Vec<String>,
    named: bool,
}

const OWNERS: [Option<&str>; 4] = [None, Some("s"), Some(""), Some("q")];

fn plan() -> impl Strategy<Value = Plan> {
    (0..3usize, prop::collection::vec("[a-c😀]{0,3}", 1..4), any::<bool>()).prop_map(|(kind, deltas, named)| Plan {
        kind,
        deltas,
        named,
    })
}

/// A conversation over four lanes in both spellings. The choices decide which lane goes on, and
/// how much a continuation repeats.
fn spell(lanes: &[Vec<Plan>], choices: &[(prop::sample::Index, u8)]) -> (Vec<Value>, Vec<Value>) {
    let mut chunked = vec![run_started()];
    let mut explicit = vec![run_started()];
    // Every delta of a lane in order, with its item.
    let mut left: Vec<std::collections::VecDeque<(usize, usize)>> = lanes
        .iter()
        .map(|plans| {
            plans.iter().enumerate().flat_map(|(item, plan)| (0..plan.deltas.len()).map(move |at| (item, at))).collect()
        })
        .collect();
    let mut open: Vec<(usize, Value)> = Vec::new();
    for (choice, repeats) in choices.iter().cycle() {
        let live: Vec<usize> = (0..left.len()).filter(|lane| !left[*lane].is_empty()).collect();
        if live.is_empty() {
            break;
        }
        let lane = live[choice.index(live.len())];
        let (item, at) = left[lane].pop_front().unwrap();
        let plan = &lanes[lane][item];
        let family = ["TEXT_MESSAGE", "TOOL_CALL", "REASONING_MESSAGE"][plan.kind];
        let id_key = ["messageId", "toolCallId", "messageId"][plan.kind];
        let id = format!("{lane}-{item}");
        let owner = OWNERS[lane].map_or(json!({}), |owner| json!({"subagentRunId": owner}));
        let event = |part: &str| with(json!({"type": format!("{family}_{part}"), id_key: id}), owner.clone());
        let more = match (plan.kind, plan.named) {
            (0, true) => json!({"role": "user", "name": "Ana"}),
            (1, true) => json!({"toolCallName": "find", "parentMessageId": format!("p{lane}")}),
            (1, false) => json!({"toolCallName": "find"}),
            _ => json!({}),
        };
        let delta = json!({"delta": plan.deltas[at]});
        let mut chunk = with(event("CHUNK"), delta.clone());
        if at == 0 {
            chunk = with(chunk, more.clone());
            if let Some(before) = open.iter().position(|(of, _)| *of == lane) {
                explicit.push(open.remove(before).1);
            }
            let start = with(event("START"), more);
            explicit.push(if plan.kind == 2 { with(start, json!({"role": "reasoning"})) } else { start });
            open.push((lane, event("END")));
        } else {
            let members = chunk.as_object_mut().unwrap();
            match repeats % 3 {
                // The id finds the lane, or the tag the item; the parent has none and needs neither.
                0 => drop(members.remove("subagentRunId")),
                1 => drop(members.remove(id_key)),
                _ => {}
            }
            if repeats & 8 != 0 {
                chunk = with(chunk, more);
            }
        }
        chunked.push(chunk);
        explicit.push(with(event(["CONTENT", "ARGS", "CONTENT"][plan.kind]), delta));
    }
    explicit.extend(open.into_iter().map(|(_, end)| end));
    chunked.push(run_finished());
    explicit.push(run_finished());
    (chunked, explicit)
}

/// A text as JSON that writes every UTF-16 unit as an escape.
fn escaped(units: &[u16]) -> String {
    units.iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

proptest! {
    #[test]
    fn the_two_spellings_are_the_same_after_expansion(
        lanes in prop::collection::vec(prop::collection::vec(plan(), 0..4), 4),
        choices in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 1..40),
    ) {
        let (chunked, explicit) = spell(&lanes, &choices);
        prop_assert_eq!(json_of(&expand(&chunked)), explicit.clone());
        prop_assert_eq!(json_of(&expand(&explicit)), explicit.clone());
        prop_assert_eq!(verify(&chunked), Ok(()));
    }

    #[test]
    fn e11_text_cut_anywhere_is_whole_again(
        text in "[a😀🦀é]{0,12}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        chunks in any::<bool>(),
    ) {
        let units: Vec<u16> = text.encode_utf16().collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(units.len() + 1)).collect();
        cuts.extend([0, units.len()]);
        cuts.sort_unstable();
        let spell = if chunks { chunk } else { content };
        let texts: Vec<String> = cuts.windows(2).map(|cut| spell(&escaped(&units[cut[0]..cut[1]]))).collect();
        let (items, result) = expand_texts(&texts);
        prop_assert_eq!(result, Ok(()));
        prop_assert!(items.iter().all(|item| item.warning().is_none()));
        let whole: String = items.iter().filter_map(|item| match item.event() {
            Some(Event::TextMessageContent(content)) => Some(content.delta.as_str()),
            _ => None,
        }).collect();
        prop_assert_eq!(whole, text);
    }

    #[test]
    fn e11_halves_are_replaced_as_in_one_piece(
        units in prop::collection::vec(prop_oneof![Just(0xd83du16), Just(0xde00), Just(u16::from(b'x'))], 0..8),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(units.len() + 1)).collect();
        cuts.extend([0, units.len()]);
        cuts.sort_unstable();
        let mut texts: Vec<String> = cuts.windows(2).map(|cut| content(&escaped(&units[cut[0]..cut[1]]))).collect();
        texts.push(end());
        let (items, _) = expand_texts(&texts);
        let whole: String = items.iter().filter_map(|item| match item.event() {
            Some(Event::TextMessageContent(content)) => Some(content.delta.as_str()),
            _ => None,
        }).collect();
        prop_assert_eq!(whole, String::from_utf16_lossy(&units));
        let halves = char::decode_utf16(units.iter().copied()).any(|unit| unit.is_err());
        prop_assert_eq!(items.iter().any(|item| item.warning().is_some()), halves);
    }
}
