//! The input of a run as it is sent (rule T4), and the exchange with older peers (R11).

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "support/cases.rs"]
mod cases;

use std::borrow::Cow;

use ag_ui_stream::id::MessageId;
use ag_ui_stream::input::{Outgoing, ProtocolVersion};
use ag_ui_stream::machine::{Downgrader, Machine, Push};
use ag_ui_stream::message::{Message, TextPart, UserMessage};
use ag_ui_stream::{Error, Event, Raw, RawItem, Rule, RunAgentInput, Warning};

use cases::cases;
use serde_json::{Value, json};

fn version(text: &str) -> ProtocolVersion {
    text.parse().unwrap()
}

fn input(messages: Value) -> Value {
    json!({"threadId": "t", "runId": "r", "parentRunId": "p", "messages": messages})
}

/// The input sent to a peer of this version, and the rules and paths of the warnings.
fn sent(peer: &str, messages: Value) -> (Value, Vec<(Rule, String)>) {
    let outgoing = Outgoing::new().max_protocol_version(version(peer));
    let (input, warnings) = outgoing.prepare_value(input(messages)).unwrap();
    assert!(warnings.iter().all(|warning| warning.event_type == "RunAgentInput"), "{warnings:?}");
    let warnings = warnings.into_iter().map(|warning| (warning.rule, warning.path)).collect();
    (serde_json::to_value(input).unwrap(), warnings)
}

fn picture() -> Value {
    json!({"type": "image", "source": {"type": "url", "value": "https://example.com/cat.png", "mimeType": "image/png"}})
}

#[test]
fn t4_the_version_is_declared_and_what_servers_require_is_there() {
    let (sent, warnings) = sent("1.0", json!([]));
    let whole = json!({
        "threadId": "t", "runId": "r", "parentRunId": "p", "messages": [], "protocolVersion": "1.0",
        "state": {}, "tools": [], "context": [], "forwardedProps": {},
    });
    assert_eq!((sent, warnings), (whole, vec![]));
}

#[test]
fn t4_what_is_given_is_not_replaced() {
    let mut given = RunAgentInput::new("t", "r", [UserMessage::new("m", "Hello").into()]);
    given.state = Some(json!({"n": 1}));
    given.forwarded_props = Some(json!("any"));
    given.protocol_version = Some("1.7".into());
    let (mut sent, warnings) = Outgoing::new().prepare(given.clone()).unwrap();
    assert_eq!(warnings, []);
    assert_eq!((sent.tools.take(), sent.context.take()), (Some(vec![]), Some(vec![])));
    assert_eq!(sent, given);
}

#[test]
fn t4_e2_e3_unknown_parts_are_removed_with_a_warning() {
    let part = json!({"type": "hologram", "value": 1});
    let message = json!({"id": "m", "role": "user", "content": [part, {"type": "text", "text": "a"}], "draft": true});
    let (sent, warnings) = sent("1.0", json!([message]));
    assert_eq!(sent["messages"], json!([{"id": "m", "role": "user", "content": [{"type": "text", "text": "a"}]}]));
    let mut paths: Vec<_> = warnings.iter().map(|(rule, path)| (*rule, path.as_str())).collect();
    paths.sort();
    assert_eq!(paths, [(Rule::E2, "/messages/0/draft"), (Rule::E3, "/messages/0/content/0")]);
}

#[test]
fn t4_e5_a_malformed_input_is_an_error_in_every_form() {
    let malformed = |error: Error| match error {
        Error::Malformed(error) => (error.rule, error.path),
        other => panic!("{other:?}"),
    };
    let text = json!({"id": "m", "role": "user", "content": [{"type": "text", "text": 5}]});
    for peer in ["1.0", "0.0.39"] {
        let outgoing = Outgoing::new().max_protocol_version(version(peer));
        let error = outgoing.prepare_value(input(json!([text]))).unwrap_err();
        assert_eq!(malformed(error), (Rule::E5, "/messages/0/content/0/text".into()), "{peer}");
    }
    // The only old shape repaired in the application's input is the `binary` part.
    for (key, path) in cases([("state", "/state"), ("forwardedProps", "/forwardedProps")]) {
        let mut given = input(json!([]));
        given[key] = Value::Null;
        assert_eq!(malformed(Outgoing::new().prepare_value(given).unwrap_err()), (Rule::E5, path.into()));
    }
    let mut given = RunAgentInput::new("t", "r", []);
    given.state = Some(Value::Null);
    assert_eq!(malformed(Outgoing::new().prepare(given).unwrap_err()), (Rule::E5, "/state".into()));
}

/// A value of so many arrays, one in the other.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn e10_text_and_value_are_read_alike_however_deep() {
    for depth in [100, 200, 509, 600] {
        let mut value = input(json!([]));
        value["state"] = nested(depth);
        let text = value.to_string();
        let from_text = RunAgentInput::from_json(text.as_bytes());
        assert_eq!(from_text, RunAgentInput::from_value(&value), "{depth}");
        assert_eq!(matches!(from_text, Err(Error::LimitExceeded(_))), depth > 512, "{depth}");
    }
    for (bytes, found) in
        cases([(&b"{\xff"[..], "invalid UTF-8 at byte 1"), (b"{", "invalid JSON: expected a key at byte 1")])
    {
        let Err(Error::Malformed(error)) = RunAgentInput::from_json(bytes) else { panic!("{bytes:?}") };
        assert_eq!((error.rule, &*error.expected, &*error.found), (Rule::E9, "the input of a run", found));
    }
}

#[test]
fn a_message_is_read_on_its_own() {
    let message = json!({"id": "m", "role": "user", "content": "Hello", "draft": true});
    let (read, warnings) = Message::from_json(message.to_string()).unwrap();
    assert_eq!(read, Some(UserMessage::new("m", "Hello").into()));
    assert_eq!((warnings.len(), warnings[0].rule, &*warnings[0].path), (1, Rule::E2, "/draft"));
    assert_eq!(warnings[0].to_string(), "E2: Message (event 0) /draft: removed the unknown property `draft`");
    assert_eq!(Message::from_value(&message).unwrap(), (read, warnings));

    let (read, warnings) = Message::from_value(&json!({"id": "m", "role": "oracle", "content": ""})).unwrap();
    assert_eq!((read, warnings[0].rule), (None, Rule::E3));
    for (text, rule) in [("{}", Rule::E5), (r#"{"id":1,"role":"user","content":""}"#, Rule::E5), ("", Rule::E9)] {
        assert_eq!(Message::from_json(text).unwrap_err().rule(), Some(rule), "{text}");
    }
}

#[test]
fn ids_are_made_of_text_and_compared_with_it() {
    let text = String::from("m");
    let id = MessageId::from(&text);
    assert_eq!(UserMessage::new(&id, "Hello"), UserMessage::new(&text, "Hello"));
    assert_eq!(("m".parse(), MessageId::from(Cow::Borrowed("m"))), (Ok(id.clone()), id.clone()));
    assert_eq!(id, "m");
    assert_eq!("m", id);
    assert_eq!(id, text);
    assert_eq!(text, id);
    assert_eq!(id, *"m");
    assert_eq!(*"m", id);
    assert_eq!(String::from(id), text);
}

#[test]
fn t4_e5_a_malformed_part_is_an_error_beside_state_of_any_depth() {
    let mut given = RunAgentInput::new("t", "r", [UserMessage::new("m", "Hello").into()]);
    given.state = Some(nested(700));
    let (sent, warnings) = Outgoing::new().prepare(given.clone()).unwrap();
    assert_eq!((sent.state, warnings), (given.state.clone(), vec![]), "how deep it may be is for the server to say");
    let malformed = |given: RunAgentInput| match Outgoing::new().prepare(given) {
        Err(Error::Malformed(error)) => (error.rule, error.path),
        other => panic!("{other:?}"),
    };
    let mut part = TextPart::new("Hello");
    part.metadata = Some(Value::Null);
    let mut deep = given.clone();
    deep.messages.push(UserMessage::new("n", vec![part.into()]).into());
    assert_eq!(malformed(deep), (Rule::E5, "/messages/1/content/0/metadata".to_owned()));
    given.forwarded_props = Some(Value::Null);
    assert_eq!(malformed(given), (Rule::E5, "/forwardedProps".to_owned()));
}

#[test]
fn t4_activity_messages_are_never_sent() {
    let activity = json!({"id": "a", "role": "activity", "activityType": "PLAN", "content": {}});
    let user = json!({"id": "u", "role": "user", "content": "Hello"});
    let (sent, warnings) = sent("1.0", json!([activity, user, activity]));
    assert_eq!((&sent["messages"], warnings), (&json!([user]), vec![]));
}

#[test]
fn b3_binary_parts_become_media_parts_with_a_warning_only_for_a_loss() {
    let binary = json!({"type": "binary", "mimeType": "image/png", "url": "https://example.com/cat.png"});
    for peer in cases(["1.0", "0.0.47"]) {
        let (sent, warnings) = sent(peer, json!([{"id": "m", "role": "user", "content": [binary]}]));
        assert_eq!((&sent["messages"][0]["content"], warnings), (&json!([picture()]), vec![]));
    }
    let both = json!({"type": "binary", "mimeType": "audio/mp3", "url": "u", "data": "d", "id": "i"});
    let (sent, warnings) = sent("1.0", json!([{"id": "m", "role": "user", "content": [both]}]));
    assert_eq!(
        sent["messages"][0]["content"],
        json!([{"type": "audio", "source": {"type": "data", "value": "d", "mimeType": "audio/mp3"}}])
    );
    assert_eq!(warnings, [(Rule::B3, "/messages/0/content/0".to_owned())]);
}

#[test]
fn r11_a_peer_from_before_1_0_is_sent_no_version() {
    for (peer, declared) in
        [("0.0.57", false), ("0.9", false), ("0.99.99", false), ("1.0", true), ("1.0.1", true), ("2.0", true)]
    {
        let (sent, _) = sent(peer, json!([]));
        assert_eq!(sent.get("protocolVersion").is_some(), declared, "{peer}");
    }
    let mut given = RunAgentInput::new("t", "r", []);
    given.protocol_version = Some("1.0".into());
    let (sent, _) = Outgoing::new().max_protocol_version(version("0.0.57")).prepare(given).unwrap();
    assert_eq!(sent.protocol_version, None);
}

#[test]
fn r11_up_to_0_0_57_messages_are_sent_without_owners() {
    let message = json!({"id": "m", "role": "assistant", "content": "Done.", "subagentRunId": "s"});
    let (old, warnings) = sent("0.0.57", json!([{"id": "u", "role": "user", "content": "Do it."}, message]));
    assert_eq!(old["messages"][1], json!({"id": "m", "role": "assistant", "content": "Done."}));
    assert_eq!(warnings, [(Rule::R11, "/messages/1/subagentRunId".to_owned())]);
    let (newer, warnings) = sent("0.0.58", json!([message]));
    assert_eq!((&newer["messages"][0], warnings), (&message, vec![]));
}

#[test]
fn r11_up_to_0_0_39_content_is_text_and_runs_have_no_parent() {
    let text = |text| json!({"type": "text", "text": text});
    let messages = json!([
        {"id": "u", "role": "user", "content": [text("What is"), picture(), text(" this?")]},
        {"id": "t", "role": "tool", "toolCallId": "c", "content": [text("a"), text("b")]},
        {"id": "v", "role": "user", "content": [picture()]},
        {"id": "a", "role": "assistant"},
    ]);
    let (old, warnings) = sent("0.0.39", messages.clone());
    let contents: Vec<_> = old["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect();
    assert_eq!(contents, ["What is this?", "ab", "", ""]);
    assert_eq!(old.get("parentRunId"), None);
    let paths: Vec<_> = warnings.iter().map(|(rule, path)| (*rule, path.as_str())).collect();
    let lost = [(Rule::R11, "/messages/0/content"), (Rule::R11, "/messages/2/content"), (Rule::R11, "/parentRunId")];
    assert_eq!(paths, lost);

    let (newer, warnings) = sent("0.0.40", messages.clone());
    assert_eq!((&newer["messages"], warnings), (&messages, vec![]));
    assert_eq!(newer["parentRunId"], "p");
}

#[test]
fn r11_versions_are_two_or_three_numbers() {
    assert_eq!(version("1.0"), ProtocolVersion::CURRENT);
    assert_eq!(version("0.0.57").to_string(), "0.0.57");
    let mut sorted = ["1.0", "0.10.0", "0.9.12", "0.9.2", "0.0.100"].map(version);
    sorted.sort();
    assert_eq!(sorted.map(|version| version.to_string()), ["0.0.100", "0.9.2", "0.9.12", "0.10.0", "1.0.0"]);
    for strange in ["", "1", "1.", "1.0.", "1.0.0.0", "v1.0", "1.x", "+1.0", "1.0-rc1", "1.99999999999999999999"] {
        assert!(strange.parse::<ProtocolVersion>().is_err(), "{strange}");
    }
}

/// The events of a producer of this version, after the downgrade.
fn heard<R: ag_ui_stream::RawEvent>(peer: &str, event: R) -> RawItem {
    let mut downgrade = Downgrader::new(version(peer));
    downgrade.push(event).unwrap();
    let item = downgrade.pop().unwrap();
    assert_eq!(downgrade.pop(), None);
    item
}

fn value(item: RawItem) -> Value {
    match item.into_raw() {
        Some(Raw::Text(text)) => serde_json::from_str(&text).unwrap(),
        Some(Raw::Bytes(bytes)) => serde_json::from_slice(&bytes).unwrap(),
        Some(Raw::Value(value)) => value,
        other => panic!("{other:?}"),
    }
}

#[test]
fn r11_up_to_0_0_57_events_of_subagents_are_dropped_in_any_form() {
    let interrupt = json!({"id": "i", "reason": "approval"});
    let message = json!({"id": "m", "role": "assistant", "content": "a"});
    let events = [
        json!({"type": "STEP_STARTED", "stepName": "one"}),
        json!({"type": "MESSAGES_SNAPSHOT", "messages": [message]}),
        json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "input": {"threadId": "t", "runId": "r", "messages": [message]}}),
        json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "interrupt", "interrupts": [interrupt]}}),
    ];
    for plain in events {
        let mut tagged = plain.clone();
        let place = match plain["type"].as_str().unwrap() {
            "MESSAGES_SNAPSHOT" => "/messages/0",
            "RUN_STARTED" => "/input/messages/0",
            "RUN_FINISHED" => "/outcome/interrupts/0",
            _ => "",
        };
        tagged.pointer_mut(place).unwrap()["subagentRunId"] = json!("s");
        let text = tagged.to_string();
        let typed = Event::from_value(&tagged).unwrap().0.unwrap();
        for (heard, form) in [
            (heard("0.0.57", &tagged), "value"),
            (heard("0.0.57", text.as_str()), "text"),
            (heard("0.0.57", text.as_bytes()), "bytes"),
            (heard("0.0.57", text.replace("subagentRunId", "subagent\\u0052unId")), "escaped"),
            (heard("0.0.57", typed), "event"),
        ] {
            assert_eq!(value(heard), plain, "{form}");
        }
        assert_eq!(value(heard("0.0.58", &tagged)), tagged);
        assert_eq!(value(heard("1.0", text)), tagged);
    }
}

#[test]
fn r11_their_events_are_dropped_each_with_a_warning_and_keep_their_place() {
    let events = [
        json!({"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n"}),
        json!({"type": "STEP_STARTED", "stepName": "one", "subagentRunId": "s"}),
        json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "s"}),
        json!({"type": "SUBAGENT_ERROR", "subagentRunId": "s", "message": "m"}),
    ];
    let mut downgrade = Downgrader::new(version("0.0.57"));
    events.iter().for_each(|event| downgrade.push(event).unwrap());
    let items: Vec<_> = std::iter::from_fn(|| downgrade.pop()).collect();
    let dropped = |item: &RawItem| item.warning().map(|warning: &Warning| (warning.event, warning.event_type.clone()));
    assert_eq!(dropped(&items[0]), Some((0, "SUBAGENT_STARTED".into())));
    assert!(matches!(items[1], RawItem::Event { index: 1, .. }));
    assert_eq!(dropped(&items[2]), Some((2, "SUBAGENT_FINISHED".into())));
    assert_eq!(dropped(&items[3]), Some((3, "SUBAGENT_ERROR".into())));
    assert!(items.iter().filter_map(RawItem::warning).all(|warning| warning.rule == Rule::R11));
}

#[test]
fn r11_malformed_events_and_those_without_subagents_pass_unchanged() {
    for text in
        cases(["{", "[]", "5", r#"{"type":5,"subagentRunId":"s"}"#, r#"{"type": "STEP_STARTED", "stepName": "one"}"#])
    {
        assert_eq!(heard("0.0.57", text), RawItem::Event { raw: text.into(), index: 0 });
    }
    let bytes: &[u8] = b"\xff subagentRunId";
    assert_eq!(heard("0.0.57", bytes), RawItem::Event { raw: bytes.into(), index: 0 });
}
