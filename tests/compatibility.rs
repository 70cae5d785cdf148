//! The compatibility boundary, rules B1 to B3, through the public machine: what it translates, what it
//! leaves unchanged, and the verdict of enforcement afterwards.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "support/cases.rs"]
mod cases;

use ag_ui_stream::id::SequentialIds;
use ag_ui_stream::machine::{Enforcer, Expander, Machine, Push, Upgrader, Verifier};
use ag_ui_stream::{Error, Event, Item, Limits, Raw, RawEvent, RawItem, Rule, Warning};
use proptest::prelude::*;
use serde_json::{Value, json};

use cases::cases;

fn upgrader() -> Upgrader {
    Upgrader::new().with_ids(SequentialIds::new("id-"))
}

/// What one event gives.
fn translate_with(upgrader: &mut Upgrader, event: impl RawEvent) -> (Vec<Warning>, Raw, u64) {
    upgrader.push(event).unwrap();
    let mut warnings = Vec::new();
    let found = loop {
        match upgrader.pop() {
            Some(RawItem::Warning(warning)) => warnings.push(warning),
            Some(RawItem::Event { raw, index }) => break (raw, index),
            other => panic!("expected an event, found {other:?}"),
        }
    };
    assert_eq!(upgrader.pop(), None, "the event comes last");
    (warnings, found.0, found.1)
}

/// Translates a JSON event as text, as bytes and as a value, which must come to the same.
#[track_caller]
fn translate(event: &Value) -> (Vec<Warning>, Value) {
    let text = event.to_string();
    let (warnings, as_text, _) = translate_with(&mut upgrader(), text.as_str());
    let (warnings_of_bytes, as_bytes, _) = translate_with(&mut upgrader(), text.as_bytes());
    let (warnings_of_value, as_value, _) = translate_with(&mut upgrader(), event);
    let (Raw::Text(as_text), Raw::Bytes(as_bytes), Raw::Value(as_value)) = (as_text, as_bytes, as_value) else {
        panic!("each form stays what it was");
    };
    assert_eq!(as_text.as_bytes(), as_bytes);
    assert_eq!(serde_json::from_str::<Value>(&as_text).unwrap(), as_value);
    assert_eq!(warnings, warnings_of_bytes);
    assert_eq!(warnings, warnings_of_value);
    (warnings, as_value)
}

#[track_caller]
fn assert_untouched(event: &Value) {
    let (warnings, found) = translate(event);
    assert_eq!(warnings, []);
    assert_eq!(&found, event);
    let (_, Raw::Text(text), _) = translate_with(&mut upgrader(), event.to_string()) else { panic!() };
    assert_eq!(text, event.to_string(), "to the byte");
}

/// Where a null is, in an event that has nothing else to translate.
#[track_caller]
fn assert_null_is_dropped(event: &Value, pointer: &str) {
    let (warnings, found) = translate(event);
    let [warning] = &warnings[..] else { panic!("one warning, not {warnings:?}") };
    assert_eq!((warning.rule, warning.path.as_str()), (Rule::B2, pointer));
    assert_eq!(warning.event_type, event["type"].as_str().unwrap());
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let mut expected = event.clone();
    expected.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key).unwrap();
    assert_eq!(found, expected);
}

/// All stages up to verification.
fn run(events: &[Value]) -> (Vec<Item>, Result<(), Error>) {
    let (mut upgrader, mut enforcer, mut expander, mut verifier) =
        (upgrader(), Enforcer::new(), Expander::new(), Verifier::new());
    let mut items = Vec::new();
    let mut go = || {
        for event in events {
            upgrader.push(event).unwrap();
            while let Some(raw) = upgrader.pop() {
                enforcer.push(raw)?;
                while let Some(item) = enforcer.pop() {
                    expander.push(item)?;
                    while let Some(item) = expander.pop() {
                        verifier.push(item)?;
                        while let Some(item) = verifier.pop() {
                            items.push(item);
                        }
                    }
                }
            }
        }
        verifier.finish()
    };
    let result = go();
    (items, result)
}

fn run_started() -> Value {
    json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})
}

fn run_finished() -> Value {
    json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"})
}

// B1

#[test]
fn b1_thinking_becomes_reasoning_with_generated_ids() {
    let mut upgrader = upgrader();
    let mut found = Vec::new();
    for event in cases([
        json!({"type": "THINKING_START"}),
        json!({"type": "THINKING_TEXT_MESSAGE_START"}),
        json!({"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "hm", "timestamp": 5}),
        json!({"type": "THINKING_TEXT_MESSAGE_END"}),
        json!({"type": "THINKING_TEXT_MESSAGE_START"}),
        json!({"type": "THINKING_TEXT_MESSAGE_END"}),
        json!({"type": "THINKING_END"}),
    ]) {
        let (warnings, Raw::Value(value), index) = translate_with(&mut upgrader, &event) else { panic!() };
        let [warning] = &warnings[..] else { panic!("one warning, not {warnings:?}") };
        assert_eq!((warning.rule, warning.path.as_str(), warning.event), (Rule::B1, "", index));
        assert_eq!(warning.event_type, event["type"].as_str().unwrap());
        found.push(value);
    }
    assert_eq!(
        found,
        [
            json!({"type": "REASONING_START", "messageId": "id-1"}),
            json!({"type": "REASONING_MESSAGE_START", "messageId": "id-2", "role": "reasoning"}),
            json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "id-2", "delta": "hm", "timestamp": 5}),
            json!({"type": "REASONING_MESSAGE_END", "messageId": "id-2"}),
            json!({"type": "REASONING_MESSAGE_START", "messageId": "id-3", "role": "reasoning"}),
            json!({"type": "REASONING_MESSAGE_END", "messageId": "id-3"}),
            json!({"type": "REASONING_END", "messageId": "id-1"}),
        ]
    );
}

#[test]
fn b1_translated_thinking_is_a_legal_run() {
    let (items, result) = run(&[
        run_started(),
        json!({"type": "THINKING_START", "title": "Tides"}),
        json!({"type": "THINKING_TEXT_MESSAGE_START"}),
        json!({"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "hm"}),
        json!({"type": "THINKING_TEXT_MESSAGE_END"}),
        json!({"type": "THINKING_END"}),
        run_finished(),
    ]);
    assert_eq!(result, Ok(()));
    assert_eq!(items.iter().filter(|item| item.event().is_some()).count(), 7);
    assert!(items.iter().filter_map(Item::warning).all(|warning| warning.rule == Rule::B1));
}

#[test]
fn b1_a_lost_title_is_warned_of() {
    let (warnings, value) = translate(&json!({"type": "THINKING_START", "title": "Tides"}));
    assert_eq!(value, json!({"type": "REASONING_START", "messageId": "id-1"}));
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].message.contains("\"Tides\" is lost"), "{}", warnings[0]);
    let (warnings, _) = translate(&json!({"type": "THINKING_START"}));
    assert!(!warnings[0].message.contains("lost"), "{}", warnings[0]);
}

#[test]
fn b1_content_without_a_start_gets_an_id_that_verification_rejects() {
    for (orphan, missing) in cases([
        (json!({"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "hm"}), "THINKING_TEXT_MESSAGE_START"),
        (json!({"type": "THINKING_TEXT_MESSAGE_END"}), "THINKING_TEXT_MESSAGE_START"),
        (json!({"type": "THINKING_END"}), "THINKING_START"),
    ]) {
        let (items, result) = run(&[run_started(), orphan]);
        assert_eq!(result.unwrap_err().rule(), Some(Rule::S2));
        let warning = items.iter().find_map(Item::warning).unwrap();
        assert!(warning.message.contains(&format!("no {missing} came before")), "{warning}");
    }
}

#[test]
fn b1_an_end_forgets_the_id() {
    let mut upgrader = upgrader();
    for (part, id) in [("START", "id-1"), ("END", "id-1"), ("CONTENT", "id-2"), ("CONTENT", "id-3")] {
        let event = json!({"type": format!("THINKING_TEXT_MESSAGE_{part}"), "delta": "late"});
        let (_, Raw::Value(value), _) = translate_with(&mut upgrader, &event) else { panic!() };
        assert_eq!(value["messageId"], id, "{part}");
    }
    for (part, id) in [("START", "id-4"), ("END", "id-4"), ("END", "id-5")] {
        let event = json!({"type": format!("THINKING_{part}")});
        let (_, Raw::Value(value), _) = translate_with(&mut upgrader, &event) else { panic!() };
        assert_eq!(value["messageId"], id, "{part}");
    }
}

#[test]
fn b1_malformed_thinking_stays_malformed() {
    let (_, result) = run(&[
        run_started(),
        json!({"type": "THINKING_TEXT_MESSAGE_START"}),
        json!({"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": 5}),
    ]);
    assert_eq!(result.unwrap_err().rule(), Some(Rule::E5));
    assert_untouched(&json!({"type": "THINKING_CAP"}));
    assert_untouched(&json!({"type": "CUSTOM", "name": "THINKING_START", "value": "THINKING_END"}));
}

// B2

#[test]
fn b2_null_is_dropped_where_older_producers_send_it() {
    for event_type in ["TOOL_CALL_START", "TOOL_CALL_CHUNK"] {
        let event = json!({"type": event_type, "toolCallId": "c", "toolCallName": "find", "parentMessageId": null});
        assert_null_is_dropped(&event, "/parentMessageId");
    }
    for key in ["outcome", "result"] {
        let mut event = run_finished();
        event[key] = Value::Null;
        assert_null_is_dropped(&event, &format!("/{key}"));
    }
    assert_null_is_dropped(&json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "s", "result": null}), "/result");
    for event_type in ["RUN_STARTED", "TEXT_MESSAGE_CONTENT", "STATE_SNAPSHOT", "RAW", "WEATHER"] {
        assert_null_is_dropped(&json!({"type": event_type, "rawEvent": null}), "/rawEvent");
    }
}

fn with_input(input: &Value) -> Value {
    let mut event = run_started();
    event["input"] = input.clone();
    event
}

#[test]
fn b2_null_is_dropped_in_the_input_of_a_run() {
    let input = |more: Value| {
        let mut input = json!({"threadId": "t", "runId": "r", "messages": [], "tools": [], "context": []});
        for (key, value) in more.as_object().unwrap() {
            input[key] = value.clone();
        }
        with_input(&input)
    };
    assert_null_is_dropped(&input(json!({"forwardedProps": null})), "/input/forwardedProps");
    let tools = json!([{"name": "a", "description": "d", "parameters": {}}, {"name": "b", "description": "d", "parameters": null}]);
    assert_null_is_dropped(&input(json!({"tools": tools})), "/input/tools/1/parameters");
    let resume = json!([{"interruptId": "i", "status": "resolved", "payload": null}]);
    assert_null_is_dropped(&input(json!({"resume": resume})), "/input/resume/0/payload");
    let messages = json!([{"id": "m", "role": "user", "content": [media("image", json!({"metadata": null}))]}]);
    assert_null_is_dropped(&input(json!({"messages": messages})), "/input/messages/0/content/0/metadata");
}

fn media(part: &str, more: Value) -> Value {
    let mut media = json!({"type": part, "source": {"type": "url", "value": "https://a.example/b"}});
    for (key, value) in more.as_object().unwrap() {
        media[key] = value.clone();
    }
    media
}

fn snapshot(parts: Value) -> Value {
    json!({"type": "MESSAGES_SNAPSHOT", "messages": [
        {"id": "a", "role": "assistant", "content": "text"},
        {"id": "u", "role": "user", "content": parts},
    ]})
}

#[test]
fn b2_null_metadata_is_dropped_from_every_media_part() {
    for part in ["image", "audio", "video", "document"] {
        let event = snapshot(json!([{"type": "text", "text": "t"}, media(part, json!({"metadata": null}))]));
        assert_null_is_dropped(&event, "/messages/1/content/1/metadata");
    }
}

#[test]
fn b2_no_other_null_is_touched() {
    for event in [
        json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": null}),
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": null, "subagentRunId": null}),
        json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": null}),
        json!({"type": "TOOL_CALL_END", "toolCallId": "c", "parentMessageId": null}),
        json!({"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n", "parentMessageId": null}),
        json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "s", "outcome": null}),
        json!({"type": "RUN_ERROR", "message": "no", "result": null, "code": null}),
        json!({"type": "STATE_SNAPSHOT", "snapshot": null}),
        json!({"type": "CUSTOM", "name": "n", "value": null, "metadata": null}),
        json!({"type": "CUSTOM", "name": "n", "value": {"rawEvent": null}, "metadata": {"rawEvent": null}}),
        json!({"type": "RAW", "event": {"type": "RUN_FINISHED", "outcome": null}, "timestamp": null}),
        json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "input": null, "parentRunId": null}),
        with_input(&json!({"threadId": null, "messages": null, "tools": null, "state": null, "resume": null})),
        with_input(
            &json!({"tools": [{"parameters": {"type": null}, "metadata": null}, null], "resume": [{"status": null}]}),
        ),
        snapshot(json!([{"type": "text", "text": "t", "metadata": null}, null])),
        snapshot(json!([media("image", json!({"id": null}))])),
        snapshot(Value::Null),
    ] {
        assert_untouched(&event);
    }
}

#[test]
fn b2_the_last_of_equal_keys_decides() {
    let null_last = r#"{"type":"TOOL_CALL_START","toolCallId":"c","parentMessageId":"m","toolCallName":"f","parentMessageId":null}"#;
    let (warnings, Raw::Text(text), _) = translate_with(&mut upgrader(), null_last) else { panic!() };
    assert_eq!(warnings.len(), 1);
    assert_eq!(text, r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}"#);
    let null_first = r#"{"type":"TOOL_CALL_START","toolCallId":"c","parentMessageId":null,"toolCallName":"f","parentMessageId":"m"}"#;
    let (warnings, Raw::Text(text), _) = translate_with(&mut upgrader(), null_first) else { panic!() };
    assert_eq!((warnings, text.as_str()), (vec![], null_first));
}

#[test]
fn b2_several_nulls_are_several_warnings() {
    let mut event = run_finished();
    for key in ["result", "outcome", "rawEvent"] {
        event[key] = Value::Null;
    }
    let (warnings, value) = translate(&event);
    let paths: Vec<_> = warnings.iter().map(|warning| warning.path.as_str()).collect();
    assert_eq!(paths, ["/rawEvent", "/outcome", "/result"]);
    assert_eq!(value, run_finished());
}

#[test]
fn b2_enforcement_accepts_a_translated_null() {
    let mut finished = run_finished();
    finished["outcome"] = Value::Null;
    let (items, result) = run(&[run_started(), finished]);
    assert_eq!(result, Ok(()));
    let Some(Event::RunFinished(finished)) = items.last().and_then(Item::event) else { panic!() };
    assert_eq!(finished.outcome, None);
}

// B3

fn binary(more: Value) -> Value {
    let mut part = json!({"type": "binary", "mimeType": "image/png"});
    for (key, value) in more.as_object().unwrap() {
        part[key] = value.clone();
    }
    part
}

/// The parts that a snapshot's parts become, and the warnings.
#[track_caller]
fn parts(parts: Value) -> (Vec<Warning>, Value) {
    let (warnings, event) = translate(&snapshot(parts));
    (warnings, event["messages"][1]["content"].clone())
}

#[test]
fn b3_a_binary_part_becomes_a_media_part_by_its_type() {
    for (mime_type, becomes) in cases([
        ("image/png", "image"),
        ("IMAGE/PNG", "image"),
        ("audio/wav", "audio"),
        ("video/mp4", "video"),
        ("application/pdf", "document"),
        ("text/plain", "document"),
        ("imagery/x", "document"),
        ("", "document"),
    ]) {
        let (warnings, found) =
            parts(json!([{"type": "text", "text": "t"}, binary(json!({"mimeType": mime_type, "data": "AA=="}))]));
        assert_eq!(
            found[1],
            json!({"type": becomes, "source": {"type": "data", "value": "AA==", "mimeType": mime_type}})
        );
        let [warning] = &warnings[..] else { panic!("one warning, not {warnings:?}") };
        assert_eq!((warning.rule, warning.path.as_str()), (Rule::B3, "/messages/1/content/1"));
        assert!(warning.message.contains(becomes), "{warning}");
    }
}

#[test]
fn b3_the_same_in_the_input_of_a_run() {
    let messages = json!([{"id": "u", "role": "user", "content": [binary(json!({"url": "https://a.example/b"}))]}]);
    let (warnings, event) = translate(&with_input(&json!({"threadId": "t", "runId": "r", "messages": messages})));
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].path, "/input/messages/0/content/0");
    assert_eq!(
        event["input"]["messages"][0]["content"],
        json!([{"type": "image", "source": {"type": "url", "value": "https://a.example/b", "mimeType": "image/png"}}])
    );
}

#[test]
fn b3_data_comes_before_url_and_a_loss_is_warned_of() {
    let (warnings, found) = parts(json!([binary(json!({"id": "f", "url": "https://a.example/b", "data": "AA=="}))]));
    assert_eq!(found, json!([{"type": "image", "source": {"type": "data", "value": "AA==", "mimeType": "image/png"}}]));
    assert!(warnings[0].message.ends_with("lost: url, id"), "{}", warnings[0]);
    let (warnings, found) = parts(json!([binary(json!({"url": "https://a.example/b", "data": "", "id": null}))]));
    assert_eq!(found[0]["source"]["type"], "url");
    assert!(!warnings[0].message.contains("lost"), "{}", warnings[0]);
}

#[test]
fn b3_the_filename_goes_into_metadata() {
    let (_, found) = parts(json!([binary(json!({"data": "AA==", "filename": "a.png"}))]));
    assert_eq!(found[0]["metadata"], json!({"filename": "a.png"}));
    assert_eq!(found[0].get("filename"), None);
    for none in cases([json!(""), Value::Null]) {
        let (_, found) = parts(json!([binary(json!({"data": "AA==", "filename": none}))]));
        assert_eq!(
            found,
            json!([{"type": "image", "source": {"type": "data", "value": "AA==", "mimeType": "image/png"}}])
        );
    }
    let (_, found) = parts(json!([binary(json!({"data": "AA==", "filename": "a.png", "metadata": {"k": 1}}))]));
    assert_eq!(found[0]["metadata"], json!({"filename": "a.png", "k": 1}));
}

#[test]
fn b3_a_part_with_only_an_id_is_left_for_enforcement() {
    for part in cases([
        binary(json!({"id": "f"})),
        binary(json!({"data": 5})),
        json!({"type": "binary", "data": "AA=="}),
        json!({"type": "binary", "data": "AA==", "mimeType": null}),
    ]) {
        let event = snapshot(json!([{"type": "text", "text": "t"}, part]));
        assert_untouched(&event);
        let (items, _) = run(&[run_started(), event]);
        let warnings: Vec<_> = items.iter().filter_map(Item::warning).collect();
        assert_eq!(warnings.len(), 1);
        assert_eq!((warnings[0].rule, warnings[0].path.as_str()), (Rule::E3, "/messages/1/content/1"));
    }
}

#[test]
fn b3_a_part_sent_in_both_shapes_is_taken_once() {
    let old = binary(json!({"data": "AA==", "filename": "a.png"}));
    let new = json!({"type": "image", "metadata": {"filename": "a.png"},
                     "source": {"type": "data", "value": "AA==", "mimeType": "image/png"}});
    for order in cases([json!([old, new]), json!([new, old])]) {
        let (warnings, found) = parts(order);
        assert_eq!(found, json!([new]));
        assert_eq!(warnings.len(), 1);
        assert_eq!(warnings[0].rule, Rule::B3);
    }
    let other = json!({"type": "image", "source": {"type": "data", "value": "BB==", "mimeType": "image/png"}});
    let (_, found) = parts(json!([old, other, old]));
    assert_eq!(found, json!([new, other, new]), "two of the old shape are two pictures");
}

#[test]
fn b3_members_of_no_shape_are_left_for_enforcement() {
    let (_, found) = parts(json!([binary(json!({"data": "AA==", "shade": "blue"}))]));
    assert_eq!(found[0]["shade"], "blue");
}

#[test]
fn b3_binary_elsewhere_is_data() {
    assert_untouched(&json!({"type": "CUSTOM", "name": "binary", "value": [binary(json!({"data": "AA=="}))]}));
    assert_untouched(
        &json!({"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": [binary(json!({"data": "AA=="}))]}),
    );
    assert_untouched(
        &json!({"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m", "role": "user", "content": "binary"}]}),
    );
}

#[test]
fn b3_a_translated_part_passes_enforcement_without_a_warning() {
    let (items, _) = run(&[run_started(), snapshot(json!([binary(json!({"data": "AA==", "filename": "a.png"}))]))]);
    let rules: Vec<_> = items.iter().filter_map(Item::warning).map(|warning| warning.rule).collect();
    assert_eq!(rules, [Rule::B3]);
}

// What is no translation

#[test]
fn an_event_without_retired_shapes_passes_unchanged_in_its_form() {
    let mut upgrader = upgrader();
    let text = "{\"type\" : \"TEXT_MESSAGE_END\",\n\"messageId\":\"m\"}";
    assert_eq!(translate_with(&mut upgrader, text), (vec![], Raw::Text(text.into()), 0));
    assert_eq!(translate_with(&mut upgrader, text.as_bytes()), (vec![], Raw::Bytes(text.into()), 1));
    let value = json!({"type": "TEXT_MESSAGE_END", "messageId": "m"});
    assert_eq!(translate_with(&mut upgrader, &value), (vec![], Raw::Value(value), 2));
    let (event, _) = Event::from_json(text).unwrap();
    let event = event.unwrap();
    assert_eq!(translate_with(&mut upgrader, event.clone()), (vec![], Raw::Event(event), 3));
}

#[test]
fn a_frame_that_is_not_an_event_passes_unchanged() {
    for text in cases([
        "",
        "null",
        "[null]",
        "{\"rawEvent\":null",
        "{\"rawEvent\":null}",
        "{\"type\":5,\"rawEvent\":null}",
        "nullTHINKINGbinary",
    ]) {
        assert_eq!(translate_with(&mut upgrader(), text), (vec![], Raw::Text(text.into()), 0));
    }
    let bytes = b"{\"type\":\"\xff\",\"rawEvent\":null}";
    assert_eq!(translate_with(&mut upgrader(), &bytes[..]), (vec![], Raw::Bytes(bytes.to_vec().into()), 0));
}

#[test]
fn an_event_beyond_the_limits_passes_unchanged() {
    let text = r#"{"type":"RAW","event":[[1]],"rawEvent":null}"#;
    for limits in
        cases([Limits { max_depth: 2, ..Limits::default() }, Limits { max_event_bytes: 40, ..Limits::default() }])
    {
        let mut upgrader = Upgrader::new().with_limits(limits);
        assert_eq!(translate_with(&mut upgrader, text), (vec![], Raw::Text(text.into()), 0));
    }
    let deep = format!(r#"{{"type":"RAW","rawEvent":null,"event":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(translate_with(&mut upgrader(), &deep), (vec![], Raw::Text(deep.clone()), 0));
}

#[test]
fn warnings_and_indices_of_a_stage_before_pass_through() {
    let mut first = upgrader();
    first.push(r#"{"type":"THINKING_START"}"#).unwrap();
    let warning = first.pop().unwrap();
    let mut second = upgrader();
    second.push(warning.clone()).unwrap();
    assert_eq!(second.pop(), Some(warning));
    let raw = Raw::Text(r#"{"type":"RAW","rawEvent":null}"#.into());
    let (warnings, _, index) = translate_with(&mut second, RawItem::Event { raw, index: 7 });
    assert_eq!((warnings[0].event, index), (7, 7));
    let (_, _, index) = translate_with(&mut second, "{}");
    assert_eq!(index, 8);
    let raw = Raw::Text("{}".into());
    let (_, _, index) = translate_with(&mut second, RawItem::Event { raw, index: u64::MAX });
    assert_eq!(index, u64::MAX, "whatever the index");
}

#[test]
fn words_in_escapes_are_the_same_words() {
    let text = r#"{"type":"\u0054HINKING_STAR\u0054"}"#;
    let (warnings, Raw::Text(text), _) = translate_with(&mut upgrader(), text) else { panic!() };
    assert_eq!(warnings.len(), 1);
    assert_eq!(text, r#"{"type":"REASONING_START","messageId":"id-1"}"#);
}

// E10 and E11

#[test]
fn e11_halves_of_surrogate_pairs_survive_a_translation() {
    let mut upgrader = upgrader();
    let (mut enforcer, mut expander) = (Enforcer::new(), Expander::new());
    let mut items = Vec::new();
    for text in [
        r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"f","parentMessageId":null,"delta":"a\ud83d"}"#,
        r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"f","parentMessageId":null,"delta":"\ude00b\ud83dc"}"#,
    ] {
        upgrader.push(text).unwrap();
        while let Some(raw) = upgrader.pop() {
            enforcer.push(raw).unwrap();
            while let Some(item) = enforcer.pop() {
                expander.push(item).unwrap();
                items.extend(std::iter::from_fn(|| expander.pop()));
            }
        }
    }
    let deltas: Vec<_> = items
        .iter()
        .filter_map(|item| match item.event() {
            Some(Event::ToolCallArgs(args)) => Some(args.delta.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(deltas, ["a", "😀b\u{fffd}c"]);
    let rules: Vec<_> = items.iter().filter_map(Item::warning).map(|warning| warning.rule).collect();
    assert_eq!(rules, [Rule::B2, Rule::B2, Rule::E11], "the half in the middle is told by enforcement");
}

#[test]
fn e11_half_a_pair_in_an_id_stays_malformed() {
    for id in cases([r"\ud83d", r"\ude00x", r"x\ud83dy"]) {
        let text =
            format!(r#"{{"type":"TOOL_CALL_START","toolCallId":"{id}","toolCallName":"f","parentMessageId":null}}"#);
        let (_, raw, _) = translate_with(&mut upgrader(), &text);
        let error = Enforcer::new().push(raw).unwrap_err();
        assert_eq!(error.rule(), Some(Rule::E5));
    }
}

#[test]
fn e10_numbers_survive_a_translation_as_they_were_written() {
    let text = r#"{"type":"CUSTOM","name":"n","value":[1.0,1e3,-0,123456789012345678901234567890],"rawEvent":null}"#;
    let (_, Raw::Text(text), _) = translate_with(&mut upgrader(), text) else { panic!() };
    assert_eq!(text, r#"{"type":"CUSTOM","name":"n","value":[1.0,1e3,-0,123456789012345678901234567890]}"#);
}

#[test]
fn generated_ids_differ_by_default() {
    let mut upgrader = Upgrader::default();
    let mut ids: Vec<String> = (0..3)
        .map(|_| {
            let (_, Raw::Value(value), _) = translate_with(&mut upgrader, json!({"type": "THINKING_START"})) else {
                panic!()
            };
            value["messageId"].as_str().unwrap().to_owned()
        })
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3);
    assert!(format!("{upgrader:?}").starts_with("Upgrader"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "(null|THINKING|binary|[a-z\"\\\\\u{0}é😀]{0,4})".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let key = prop_oneof![
            Just("type".to_owned()),
            Just("metadata".to_owned()),
            Just("rawEvent".to_owned()),
            "[a-z]{0,3}"
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever the event, translating it again changes nothing, and only the listed places change.
    #[test]
    fn a_translated_event_needs_no_translation(value in any_json(), kind in 0..4usize) {
        let event_type = ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED", "CUSTOM"][kind];
        let event = json!({"type": event_type, "input": {"messages": [{"content": value}], "tools": [value]},
                           "messages": [{"content": [value]}], "outcome": value, "rawEvent": value});
        let (_, once) = translate(&event);
        let (warnings, twice) = translate(&once);
        prop_assert_eq!(warnings, vec![]);
        prop_assert_eq!(twice, once);
    }
}
