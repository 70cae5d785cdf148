//! Enforcement against the schema: every fixture is read or rejected as its folder says, and a value that
//! was read is written as the same JSON.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "support/cases.rs"]
mod cases;

use std::fs;
use std::path::{Path, PathBuf};

use ag_ui_stream::machine::{Enforcer, Machine, Push};
use ag_ui_stream::{Error, Event, EventType, Item, Limits, Rule, Warning};
use serde_json::{Value, json};

use cases::cases;

fn fixtures(folder: &str) -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fixtures");
    let mut found = Vec::new();
    for definition in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        let name = definition.file_name().unwrap().to_str().unwrap().to_owned();
        let Ok(files) = fs::read_dir(definition.join(folder)) else { continue };
        found.extend(files.map(|file| (name.clone(), file.unwrap().path())));
    }
    found.sort();
    assert!(found.len() > 50, "the fixtures are there");
    found
}

/// The event in which a definition that is not an event can be read.
fn wrap(definition: &str, value: &Value) -> (Value, &'static str) {
    match definition {
        "Interrupt" => (
            json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r",
                   "outcome": {"type": "interrupt", "interrupts": [value]}}),
            "/outcome/interrupts/0",
        ),
        "ResumeEntry" => {
            (input(json!({"threadId": "t", "runId": "r", "messages": [], "resume": [value]})), "/input/resume/0")
        }
        "Tool" => (input(json!({"threadId": "t", "runId": "r", "messages": [], "tools": [value]})), "/input/tools/0"),
        "RunAgentInput" => (input(value.clone()), "/input"),
        "UserMessage" | "ToolMessage" => (json!({"type": "MESSAGES_SNAPSHOT", "messages": [value]}), "/messages/0"),
        _ => (value.clone(), ""),
    }
}

fn input(input: Value) -> Value {
    json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "input": input})
}

/// The same event as text, as bytes, as a value.
type Read = Result<(Option<Event>, Vec<Warning>), Error>;

fn every_way(event: &Value) -> [Read; 3] {
    let text = event.to_string();
    let bytes = {
        let mut enforcer = Enforcer::new();
        enforcer.push(text.as_bytes()).map(|()| collect(&mut enforcer))
    };
    [Event::from_json(&text), bytes, Event::from_value(event)]
}

fn collect(enforcer: &mut Enforcer) -> (Option<Event>, Vec<Warning>) {
    let (mut event, mut warnings) = (None, Vec::new());
    while let Some(item) = enforcer.pop() {
        match item {
            Item::Event(indexed) => event = Some(indexed.event),
            Item::Warning(warning) => warnings.push(warning),
        }
    }
    (event, warnings)
}

#[test]
fn p4_every_valid_fixture_comes_through_unchanged_in_every_form() {
    for (definition, path) in fixtures("valid") {
        let value: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let (event, _) = wrap(&definition, &value);
        for result in every_way(&event) {
            let (read, warnings) = result.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(warnings, [], "{}", path.display());
            let read = read.unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), event, "{}", path.display());
            // The result is an input like any other.
            let mut enforcer = Enforcer::new();
            enforcer.push(read.clone()).unwrap();
            assert_eq!(collect(&mut enforcer), (Some(read), vec![]), "{}", path.display());
        }
    }
}

/// Fixtures that the schema rejects and the protocol survives: unknown material (E2, E3, E4).
const SURVIVED: &[(&str, Rule, &str)] = &[
    ("MessagesSnapshotEvent/invalid/role-shaped-like-a-tool-message", Rule::E3, "/messages/0"),
    ("MessagesSnapshotEvent/invalid/role-shaped-like-an-activity-message", Rule::E3, "/messages/0"),
    ("MessagesSnapshotEvent/invalid/role-shaped-like-an-assistant-message", Rule::E3, "/messages/0"),
    ("MessagesSnapshotEvent/invalid/unknown-role", Rule::E3, "/messages/0"),
    ("ReasoningEncryptedValueEvent/invalid/unknown-subtype", Rule::E4, ""),
    ("ResumeEntry/invalid/unknown-status", Rule::E4, "/input/resume/0"),
    ("RunFinishedEvent/invalid/outcome-success-carrying-interrupts", Rule::E2, "/outcome/interrupts"),
    ("StateDeltaEvent/invalid/patch-unknown-op", Rule::E3, "/delta/0"),
    ("SubagentFinishedEvent/invalid/outcome-success-carrying-interrupt-ids", Rule::E2, "/outcome/interruptIds"),
    ("TextMessageEndEvent/invalid/unknown-property", Rule::E2, "/somethingNewer"),
    ("UserMessage/invalid/legacy-binary-part", Rule::E3, "/messages/0/content/0"),
    ("UserMessage/invalid/part-shaped-like-media-with-unknown-type", Rule::E3, "/messages/0/content/0"),
    ("UserMessage/invalid/part-shaped-like-text-with-unknown-type", Rule::E3, "/messages/0/content/0"),
];

#[test]
fn e5_every_invalid_fixture_is_malformed_unless_it_is_only_unknown() {
    let mut survived = 0;
    for (definition, path) in fixtures("invalid") {
        let value: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let (event, place) = wrap(&definition, &value);
        let name = path.with_extension("");
        let known = SURVIVED.iter().find(|(suffix, ..)| name.ends_with(suffix));
        for result in every_way(&event) {
            match known {
                Some((_, rule, path)) => {
                    let (_, warnings) = result.unwrap_or_else(|error| panic!("{}: {error}", name.display()));
                    let found: Vec<_> = warnings.iter().map(|warning| (warning.rule, warning.path.as_str())).collect();
                    assert_eq!(found, [(*rule, *path)], "{}", name.display());
                    survived += 1;
                }
                None => match result {
                    Err(Error::Malformed(error)) => {
                        assert_eq!(error.rule, Rule::E5, "{}", name.display());
                        assert_eq!(error.event_type.map(EventType::as_str), event["type"].as_str());
                        assert!(error.path.starts_with(place), "{}: {}", name.display(), error.path);
                    }
                    other => panic!("{}: {other:?}", name.display()),
                },
            }
        }
    }
    assert_eq!(survived, 3 * SURVIVED.len());
}

fn read(text: &str) -> (Option<Event>, Vec<Warning>) {
    Event::from_json(text).unwrap()
}

fn rejected(text: &str) -> (Rule, String) {
    match Event::from_json(text) {
        Err(Error::Malformed(error)) => (error.rule, error.path),
        other => panic!("{text}: {other:?}"),
    }
}

fn warned(text: &str) -> Vec<(Rule, String)> {
    read(text).1.into_iter().map(|warning| (warning.rule, warning.path)).collect()
}

#[test]
fn e1_an_unknown_type_is_dropped_and_named() {
    let (event, warnings) = read(r#"{"type":"FUTURE_EVENT","x":[1]}"#);
    assert_eq!(event, None);
    assert_eq!((warnings[0].rule, warnings[0].event_type.as_str()), (Rule::E1, "FUTURE_EVENT"));
    assert_eq!(warnings.len(), 1);
}

#[test]
fn e2_unknown_properties_go_at_any_depth_each_with_its_path() {
    let text = r#"{"type":"MESSAGES_SNAPSHOT","a/b":1,"messages":[{"id":"1","role":"user","content":
        [{"type":"image","source":{"type":"url","value":"u","~":0},"x":1}],"y":2}]}"#;
    let paths: Vec<_> = warned(text).into_iter().map(|(_, path)| path).collect();
    let all = ["/messages/0/content/0/source/~0", "/messages/0/content/0/x", "/messages/0/y", "/a~1b"];
    assert_eq!(paths, all);
    let (event, _) = read(text);
    let event = serde_json::to_value(event).unwrap();
    assert_eq!(event["messages"][0]["content"][0], json!({"type":"image","source":{"type":"url","value":"u"}}));
}

#[test]
fn e3_an_unknown_source_takes_its_part_with_it_and_one_warning_names_the_part() {
    let text = r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"user","content":
        [{"type":"text","text":"a"},{"type":"image","extra":1,"source":{"type":"hologram","value":1}}]}]}"#;
    assert_eq!(warned(text), [(Rule::E3, "/messages/0/content/1".to_owned())]);
}

#[test]
fn e3_a_fault_inside_a_removed_container_is_removed_with_it() {
    let text = r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"user","content":
        [{"type":"image","id":42,"source":{"type":"hologram"}}]}]}"#;
    assert_eq!(warned(text), [(Rule::E3, "/messages/0/content/0".to_owned())]);
}

#[test]
fn e3_an_unknown_outcome_is_stripped_and_an_array_in_its_place_is_malformed() {
    let (event, warnings) = read(r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"paused"}}"#);
    assert_eq!(warnings[0].path, "/outcome");
    assert!(matches!(event, Some(Event::RunFinished(event)) if event.outcome.is_none()));
    let array = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":[{"type":"interrupt"}]}"#;
    assert_eq!(rejected(array), (Rule::E5, "/outcome".into()));
    let untyped = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{}}"#;
    assert_eq!(rejected(untyped), (Rule::E5, "/outcome/type".into()));
}

#[test]
fn e4_an_unknown_role_is_stripped_where_it_is_optional() {
    for event_type in cases(["TEXT_MESSAGE_START", "TEXT_MESSAGE_CHUNK"]) {
        let text = format!(r#"{{"type":"{event_type}","messageId":"m","role":"narrator"}}"#);
        assert_eq!(warned(&text), [(Rule::E4, "/role".to_owned())]);
    }
}

#[test]
fn e4_a_single_constant_is_not_a_closed_set() {
    let wrong_role = r#"{"type":"REASONING_MESSAGE_START","messageId":"m","role":"assistant"}"#;
    assert_eq!(rejected(wrong_role), (Rule::E5, "/role".into()));
    let wrong_type = r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"1","role":"assistant","toolCalls":
        [{"id":"c","type":"macro","function":{"name":"f","arguments":""}}]}]}"#;
    assert_eq!(rejected(wrong_type), (Rule::E5, "/messages/0/toolCalls/0/type".into()));
}

#[test]
fn e5_null_is_not_absence() {
    for field in cases(["role", "name", "subagentRunId", "timestamp", "rawEvent", "metadata"]) {
        let text = format!(r#"{{"type":"TEXT_MESSAGE_START","messageId":"m","{field}":null}}"#);
        assert_eq!(rejected(&text), (Rule::E5, format!("/{field}")));
    }
}

#[test]
fn e5_a_snake_case_twin_of_a_missing_field_is_named() {
    let Err(error) = Event::from_json(r#"{"type":"TEXT_MESSAGE_START","message_id":"m"}"#) else { panic!() };
    assert!(error.to_string().contains("message_id"), "{error}");
    assert_eq!(error.rule(), Some(Rule::E5));
}

#[test]
fn e6_open_objects_stay_whole() {
    let text =
        r#"{"type":"CUSTOM","name":"n","value":{"a":{"b":null}},"metadata":{"x":{"y":[null]}},"rawEvent":{"z":0}}"#;
    let (event, warnings) = read(text);
    assert_eq!(warnings, []);
    assert_eq!(serde_json::to_value(event).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    let patch = r#"{"type":"STATE_DELTA","delta":[{"op":"remove","path":"/a","value":1,"why":"x"}]}"#;
    let (event, warnings) = read(patch);
    assert_eq!(warnings, []);
    assert_eq!(serde_json::to_value(event).unwrap()["delta"][0]["why"], "x");
}

#[test]
fn e7_keys_with_a_meaning_elsewhere_are_ordinary() {
    for key in cases(["constructor", "__proto__", "toString"]) {
        let text = format!(r#"{{"type":"TEXT_MESSAGE_END","messageId":"m","{key}":1}}"#);
        assert_eq!(warned(&text), [(Rule::E2, format!("/{key}"))]);
    }
}

#[test]
fn e8_empty_ids_and_deltas_are_legal() {
    let (event, warnings) = read(r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"","delta":"","subagentRunId":""}"#);
    assert_eq!(warnings, []);
    let event = event.unwrap();
    assert_eq!(event.subagent_run_id().map(|id| id.as_str()), Some(""));
}

#[test]
fn e9_frames_that_are_not_events_are_fatal() {
    for text in [
        "",
        "null",
        "[]",
        "1",
        "\"x\"",
        "{}",
        r#"{"type":""}"#,
        r#"{"type":1}"#,
        "[DONE]",
        "{\"type\":\"RAW\"",
        "{} {}",
    ] {
        assert_eq!(rejected(text).0, Rule::E9, "{text}");
    }
    for (text, end) in [
        ("data: {}", "at byte 0 of \"data: {}\""),
        (" <html>", "at byte 1 of \"<html>\""),
        ("{", "at byte 1"),
        ("", "at byte 0"),
    ] {
        let error = Event::from_json(text).unwrap_err().to_string();
        assert!(error.ends_with(end), "{error}");
    }
    for (text, found) in [
        (r#"{"error":{"message":"quota used up"}}"#, r#"without one: "{\"error\":{\"message\":\"quota used up\"}}""#),
        ("{\"detail\":\"\\u001b[2J\u{202e}\"}", r#": "{\"detail\":\"\\u001b[2J\u{202e}\"}""#),
        (r#" { "b": [1.50, {}], "a": "z" } "#, r#": "{\"a\":\"z\",\"b\":[1.5,{}]}""#),
        (r#"{"type":"","code":429}"#, r#"found the string "" in "{\"code\":429,\"type\":\"\"}""#),
        (r#"{"type":"STATE_SNAPSHOT","snapshot":{"x":NaN}}"#, r#"expected a value at byte 41, before "NaN}}""#),
        ("{\"type\":\"RAW\",\u{1b}}", r#"expected a key at byte 14, before "\u{1b}}""#),
    ] {
        let error = Event::from_json(text).unwrap_err().to_string();
        assert!(error.ends_with(found), "{error}");
        if let Ok(value) = serde_json::from_str(text) {
            assert_eq!(Event::from_value(&value).unwrap_err().to_string(), error, "P4");
        }
    }
    // Cut, in whichever form it comes.
    let long = format!(r#"{{"error":"{}"}}"#, "ä".repeat(500_000));
    for error in [Event::from_json(&long), Event::from_value(&serde_json::from_str(&long).unwrap())] {
        let error = error.unwrap_err().to_string();
        assert!(error.ends_with("ää…\"") && error.len() < 400, "{error}");
    }
    let mut enforcer = Enforcer::new();
    let error = enforcer.push(&b"{\"type\":\"RAW\xff\"}"[..]).unwrap_err();
    assert_eq!(error.rule(), Some(Rule::E9));
}

#[test]
fn e9_the_grammar_of_json_is_kept() {
    for text in [
        r#"{"type":"RAW","event":01}"#,
        r#"{"type":"RAW","event":1.}"#,
        r#"{"type":"RAW","event":.5}"#,
        r#"{"type":"RAW","event":+1}"#,
        r#"{"type":"RAW","event":1e}"#,
        r#"{"type":"RAW","event":tru}"#,
        r#"{"type":"RAW","event":[1,]}"#,
        r#"{"type":"RAW","event":{"a":1,}}"#,
        r#"{"type":"RAW","event":"\x"}"#,
        r#"{"type":"RAW","event":"\u12g4"}"#,
        "{\"type\":\"RAW\",\"event\":\"a\nb\"}",
        "{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\",\"delta\":\"a\nb\"}",
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a"}x"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a",}"#,
        r#"{'type':"RAW"}"#,
    ] {
        assert_eq!(rejected(text).0, Rule::E9, "{text}");
    }
}

#[test]
fn e10_only_the_last_of_equal_keys_counts() {
    let (event, warnings) = read(r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":42,"delta":"b"}"#);
    assert_eq!(warnings, []);
    assert!(matches!(event, Some(Event::TextMessageContent(event)) if event.delta == "b"));
    let (event, _) = read(r#"{"delta":"a","type":"RAW","messageId":"m","delta":"b","type":"TEXT_MESSAGE_CONTENT"}"#);
    assert!(matches!(event, Some(Event::TextMessageContent(event)) if event.delta == "b"));
    assert_eq!(rejected(r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"b","delta":null}"#).0, Rule::E5);
    assert_eq!(warned(r#"{"type":"TEXT_MESSAGE_END","messageId":"m","x":1,"x":2}"#).len(), 1);
    let many: String = (0..40).map(|n| format!(r#""k{n}":{n},"#)).collect();
    let text = format!(r#"{{"type":"RAW","event":{{{many}"k3":"last"}}}}"#);
    let (event, _) = read(&text);
    assert_eq!(serde_json::to_value(event).unwrap()["event"]["k3"], "last");
}

#[test]
fn e10_a_number_beyond_a_double_is_null_in_an_open_value_and_malformed_in_a_field() {
    for (text, path) in [
        (r#"{"type":"RAW","event":{"x":[9e9999]}}"#, "/event/x/0"),
        (r#"{"type":"RAW","event":-1e400}"#, "/event"),
        (r#"{"type":"CUSTOM","name":"n","value":1e999}"#, "/value"),
        (r#"{"type":"STATE_SNAPSHOT","snapshot":{"x":1e999}}"#, "/snapshot/x"),
        (r#"{"type":"STATE_DELTA","delta":[{"op":"add","path":"/x","value":1e999}]}"#, "/delta/0/value"),
        (r#"{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"a","content":{"x":1e999}}"#, "/content/x"),
        (r#"{"type":"TEXT_MESSAGE_END","messageId":"m","metadata":{"x":1e999}}"#, "/metadata/x"),
        (r#"{"type":"TEXT_MESSAGE_END","messageId":"m","rawEvent":{"x":1e999}}"#, "/rawEvent/x"),
        // Where null has no place, the field goes.
        (r#"{"type":"TEXT_MESSAGE_END","messageId":"m","rawEvent":1e999}"#, "/rawEvent"),
        (r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":1e999}"#, "/result"),
        (
            r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[],"state":{"x":1e999}}}"#,
            "/input/state/x",
        ),
    ] {
        let (event, warnings) = Event::from_json(text).unwrap();
        assert_eq!(warnings.iter().map(|found| (found.rule, &*found.path)).collect::<Vec<_>>(), [(Rule::E10, path)]);
        assert!(warnings[0].message.ends_with("is beyond a double"), "{}", warnings[0].message);
        let event = event.unwrap();
        let json = serde_json::to_string(&event).unwrap();
        assert!(json.contains("null") != matches!(path, "/rawEvent" | "/result"), "{json}");
        assert_eq!(Event::from_json(&json), Ok((Some(event), vec![])));
    }
    for text in [
        r#"{"type":"RUN_ERROR","message":"m","timestamp":1e999}"#,
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","usage":[{"inputTokens":1e999}]}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":1e999}"#,
    ] {
        assert_eq!(rejected(text).0, Rule::E5, "{text}");
    }
}

#[test]
fn e10_integers_are_judged_by_value() {
    for (text, time) in [
        ("1712000000000.0", 1_712_000_000_000),
        ("1.7e12", 1_700_000_000_000),
        ("-0.0", 0),
        ("-0", 0),
        ("9007199254740991", 9_007_199_254_740_991),
        ("-9007199254740991", -9_007_199_254_740_991),
        ("120e-1", 12),
    ] {
        let text = format!(r#"{{"type":"TEXT_MESSAGE_END","messageId":"m","timestamp":{text}}}"#);
        let Ok((Some(event), _)) = Event::from_json(&text) else { panic!("{text}") };
        assert_eq!(event.base().timestamp, Some(time), "{text}");
    }
    for text in ["1.5", "9007199254740992", "1e300", "1e400", "-9007199254740992.0", "\"1\"", "true"] {
        let text = format!(r#"{{"type":"TEXT_MESSAGE_END","messageId":"m","timestamp":{text}}}"#);
        assert_eq!(rejected(&text), (Rule::E5, "/timestamp".into()), "{text}");
    }
}

#[test]
fn e10_deep_nesting_is_legal_up_to_the_limit_and_an_error_beyond() {
    let nested = |depth: usize| format!(r#"{{"type":"RAW","event":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    assert!(Event::from_json(nested(Limits::DEFAULT_MAX_DEPTH - 1)).is_ok());
    for depth in [Limits::DEFAULT_MAX_DEPTH, 100_000] {
        assert!(matches!(Event::from_json(nested(depth)), Err(Error::LimitExceeded(_))), "{depth}");
    }
}

#[test]
fn limits_hold_for_the_length_of_an_event() {
    let mut enforcer = Enforcer::new().with_limits(Limits { max_event_bytes: 60, ..Limits::default() });
    let fits = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a"}"#;
    assert!(enforcer.push(fits).is_ok());
    let error = enforcer.push(&*fits.replace("\"a\"", "\"abc\"")).unwrap_err();
    assert_eq!((error.event_index(), error.rule()), (Some(1), None));
}

#[test]
fn e11_lone_surrogates_in_other_text_become_replacement_characters_with_a_warning() {
    let (event, warnings) = read(r#"{"type":"CUSTOM","name":"a\ud83db","value":{"k\ude00":"\ud83d"}}"#);
    let event = serde_json::to_value(event).unwrap();
    assert_eq!(event["name"], "a\u{fffd}b");
    assert_eq!(event["value"], json!({"k\u{fffd}": "\u{fffd}"}));
    assert!(warnings.iter().all(|warning| warning.rule == Rule::E11));
    assert_eq!(warnings.len(), 3);
    let (event, warnings) = read(r#"{"type":"CUSTOM","name":"\ud83d\ude00","value":1}"#);
    assert_eq!((serde_json::to_value(event).unwrap()["name"].as_str(), warnings.len()), (Some("😀"), 0));
}

#[test]
fn e11_half_a_pair_in_an_id_is_malformed() {
    for field in cases(["messageId", "subagentRunId"]) {
        let mut event = json!({"type": "TEXT_MESSAGE_END", "messageId": "m", "subagentRunId": "s"});
        event[field] = json!("HALF");
        let text = event.to_string().replace("HALF", r"x\ud83d");
        assert_eq!(rejected(&text), (Rule::E5, format!("/{field}")));
    }
}

#[test]
fn e11_half_a_pair_in_the_id_of_a_part_is_malformed() {
    let source = r#"{"type":"url","value":"v"}"#;
    for kind in cases(["text", "image", "audio", "video", "document"]) {
        let body = if kind == "text" { r#""text":"t""#.to_owned() } else { format!(r#""source":{source}"#) };
        let result = |id: &str| {
            let part = format!(r#"{{"type":"{kind}","id":"{id}",{body}}}"#);
            format!(r#"{{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":[{part}]}}"#)
        };
        let (event, warnings) = read(&result(r"p\ud83d\ude00"));
        assert_eq!(
            (serde_json::to_value(event).unwrap()["content"][0]["id"].as_str(), warnings.len()),
            (Some("p😀"), 0)
        );
        assert_eq!(rejected(&result(r"p\ud83d")), (Rule::E5, "/content/0/id".to_owned()), "{kind}");
    }
}

#[test]
fn e11_half_a_pair_in_a_json_pointer_is_replaced_with_a_warning() {
    for (event, path) in cases([
        (r#"{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a\ud83d","value":1}]}"#, "/delta/0/path"),
        (r#"{"type":"STATE_DELTA","delta":[{"op":"copy","from":"/\ude00","path":"/b"}]}"#, "/delta/0/from"),
        (
            r#"{"type":"ACTIVITY_DELTA","messageId":"m","activityType":"t","patch":[{"op":"remove","path":"/\ud83dx"}]}"#,
            "/patch/0/path",
        ),
    ]) {
        let (event, warnings) = read(event);
        let told: Vec<_> = warnings.iter().map(|warning| (warning.rule, &*warning.path)).collect();
        assert_eq!(told, [(Rule::E11, path)]);
        assert!(serde_json::to_string(&event).unwrap().contains('\u{fffd}'));
    }
}

#[test]
fn the_fast_path_and_the_thorough_one_agree() {
    let events = [
        r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"user","name":"n","timestamp":1}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a\"\\\n\u00e9","subagentRunId":"s"}"#,
        r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#,
        r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"d"}"#,
        r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m"}"#,
        r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}"#,
        r#"{"type":"TOOL_CALL_END","toolCallId":"c"}"#,
        r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"f","parentMessageId":"m","delta":"x"}"#,
        r#"{"type":"REASONING_START","messageId":"m"}"#,
        r#"{"type":"REASONING_MESSAGE_START","messageId":"m","role":"reasoning"}"#,
        r#"{"type":"REASONING_MESSAGE_CONTENT","messageId":"m","delta":"x"}"#,
        r#"{"type":"REASONING_MESSAGE_END","messageId":"m"}"#,
        r#"{"type":"REASONING_MESSAGE_CHUNK","messageId":"m","delta":"x"}"#,
        r#"{"type":"REASONING_END","messageId":"m"}"#,
        r#"{"type":"STEP_STARTED","stepName":"s"}"#,
        r#"{"type":"STEP_FINISHED","stepName":"s","timestamp":-5}"#,
    ];
    for text in events {
        let value: Value = serde_json::from_str(text).unwrap();
        let (fast, warnings) = read(text);
        assert_eq!(warnings, []);
        assert_eq!(fast, Event::from_value(&value).unwrap().0);
        assert_eq!(serde_json::to_value(fast).unwrap(), value);
        // Every field taken away, made null, doubled or misplaced: both ways say the same.
        for key in value.as_object().unwrap().keys() {
            for change in ["remove", "null", "number", "rename"] {
                let mut changed = value.clone();
                let object = changed.as_object_mut().unwrap();
                let old = object.remove(key).unwrap();
                match change {
                    "null" => drop(object.insert(key.clone(), Value::Null)),
                    "number" => drop(object.insert(key.clone(), json!(1.5))),
                    "rename" => drop(object.insert(format!("{key}s"), old)),
                    _ => {}
                }
                assert_eq!(Event::from_json(changed.to_string()), Event::from_value(&changed), "{changed}");
            }
        }
    }
}

/// Events that hold open values have a fast path of their own, which wants `type` right after the
/// brace: with a space before it they go the thorough way.
#[test]
fn the_fast_path_of_open_values_and_the_thorough_one_agree() {
    fn agree(text: &str) {
        let (fast, thorough) = (Event::from_json(text), Event::from_json(text.replacen('{', "{ ", 1)));
        match (&fast, &thorough) {
            // For invalid JSON the place of the fault differs.
            (Err(fast), Err(thorough)) if fast.rule() == Some(Rule::E9) => assert_eq!(fast.rule(), thorough.rule()),
            _ => assert_eq!(fast, thorough, "{text}"),
        }
    }
    let events = [
        r#"{"type":"STATE_SNAPSHOT","snapshot":{"a":[1,-0,2.5e3,"é\u00e9\n",true,false,null,{},[]]},"subagentRunId":"s"}"#,
        r#"{"type":"STATE_SNAPSHOT","snapshot":null,"timestamp":1}"#,
        r#"{"type":"STATE_SNAPSHOT","snapshot":18446744073709551615}"#,
        r#"{"type":"STATE_DELTA","delta":[]}"#,
        r#"{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a~1","value":null},{"op":"remove","path":""}]}"#,
        r#"{"type":"STATE_DELTA","delta":[{"value":{"b":[]},"op":"replace","path":"/a"}],"timestamp":-7}"#,
        r#"{"type":"STATE_DELTA","delta":[{"op":"test","path":"/a","value":1},{"op":"move","path":"/a","from":"/b"}]}"#,
        r#"{"type":"STATE_DELTA","delta":[{"op":"copy","path":"/a","from":"/b"}],"subagentRunId":"s"}"#,
        r#"{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"a\"b","role":"tool"}"#,
        r#"{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"","subagentRunId":"s"}"#,
        r#"{"type":"CUSTOM","name":"n\t","value":[1,"two"]}"#,
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","parentRunId":"p","protocolVersion":"1.0","timestamp":3}"#,
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"},"result":{"a":null}}"#,
        r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    ];
    for text in events {
        agree(text);
        let (event, warnings) = read(text);
        assert_eq!(warnings, []);
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(event, Event::from_value(&value).unwrap().0);
        // Spread out, and with any member taken away, changed, doubled or added.
        agree(&text.replace(',', " ,\n").replace(':', " : "));
        let words = text.split('"').filter(|word| !word.is_empty() && word.chars().all(char::is_alphabetic));
        for word in words {
            let (key, word) = (format!("\"{word}\":"), format!("\"{word}\""));
            agree(&text.replace(&key, r#""unknown":"#));
            agree(&text.replace(&key, &format!("{key}1,{key}")));
            for other in ["1.5", "null", r#""x""#, "{}", "[{}]", r#""\ud800""#, "01"] {
                agree(&text.replace(&key, &format!(r#"{key}{other},"_":"#)));
                agree(&text.replace(&word, other));
            }
        }
        for cut in 0..text.len() {
            let text = text.get(..cut).unwrap_or_default();
            assert!(Event::from_json(text).is_err(), "{text}");
        }
        agree(&format!("{text} "));
        assert!(Event::from_json(format!("{text},")).is_err());
    }
    // Limits are those of the whole event.
    for depth in 1..8 {
        let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let text = format!(r#"{{"type":"STATE_DELTA","delta":[{{"op":"add","path":"/a","value":{value}}}]}}"#);
        for max_depth in 1..12 {
            let limits = Limits { max_depth, ..Limits::default() };
            let result = |text: &str| {
                let mut enforcer = Enforcer::new().with_limits(limits);
                enforcer.push(text).map(|()| enforcer.pop())
            };
            assert_eq!(result(&text), result(&format!(" {text}")));
            assert_eq!(result(&text).is_ok(), depth + 3 <= max_depth, "{text}");
        }
    }
}
