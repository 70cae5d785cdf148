//! Wire types through serde: written in wire form, and read with enforcement.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use ag_ui_stream::event::{Interrupt, InterruptOutcome, Interrupts, JsonPatch, RunFinishedEvent, RunFinishedOutcome};
use ag_ui_stream::input::Tool;
use ag_ui_stream::message::{AssistantMessage, ContentPart, Role, UserMessage};
use ag_ui_stream::{Event, Message, RunAgentInput};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[track_caller]
fn fault<T: DeserializeOwned + std::fmt::Debug>(json: Value) -> String {
    serde_json::from_value::<T>(json).unwrap_err().to_string()
}

#[test]
fn written_values_are_read_back() {
    let mut input = RunAgentInput::new("t", "r", [UserMessage::new("m", "Hello").into()]);
    input.tools = Some(vec![Tool::new("book", "a hotel")]);
    let stored = serde_json::to_string(&input).unwrap();
    assert_eq!(serde_json::from_str::<RunAgentInput>(&stored).unwrap(), input);

    let messages: Vec<Message> = vec![UserMessage::new("m", "Hello").into(), AssistantMessage::new("a").into()];
    let stored = serde_json::to_vec(&messages).unwrap();
    assert_eq!(serde_json::from_slice::<Vec<Message>>(&stored).unwrap(), messages);

    let questions = [Interrupt::new("i", "why"), Interrupt::new("j", "who")];
    let mut event = RunFinishedEvent::new("t", "r");
    event.outcome = Some(InterruptOutcome::new(questions.clone()).into());
    let event = Event::from(event);
    assert_eq!(serde_json::from_value::<Event>(serde_json::to_value(&event).unwrap()).unwrap(), event);
    assert_eq!(Interrupts::from_iter(questions.clone()), Some(Interrupts::from(questions)));
}

#[test]
fn unknown_parts_are_removed_as_on_the_wire() {
    #[derive(Deserialize)]
    struct Stored {
        messages: Vec<Message>,
        last: Event,
    }
    let part = json!({"type": "hologram"});
    let stored: Stored = serde_json::from_value(json!({
        "messages": [{"id": "m", "role": "user", "content": [part], "shade": "blue"}],
        "last": {"type": "TEXT_MESSAGE_END", "messageId": "m", "shade": "blue"},
    }))
    .unwrap();
    assert_eq!(stored.messages, [UserMessage::new("m", Vec::<ContentPart>::new()).into()]);
    assert_eq!(stored.last, Event::text_end("m"));
}

#[test]
fn a_malformed_or_wholly_unknown_value_is_an_error_with_rule_and_place() {
    for (error, expected) in [
        (fault::<RunAgentInput>(json!({"threadId": "t", "messages": []})), ["E5", "/runId"]),
        (
            fault::<RunAgentInput>(json!({"threadId": "t", "runId": "r", "messages": [{"role": "user"}]})),
            ["E5", "/messages/0/id"],
        ),
        (fault::<Event>(json!({"type": "TEXT_MESSAGE_END", "messageId": 1})), ["E5", "/messageId"]),
        (fault::<Event>(json!({"messageId": "m"})), ["E5", "/type"]),
        (fault::<Event>(json!({"type": "WARP"})), ["E1", "Event"]),
        (fault::<Message>(json!({"role": "narrator", "id": "m"})), ["E3", "Message"]),
        (fault::<Role>(json!("narrator")), ["E4", "Role"]),
        (fault::<RunFinishedOutcome>(json!({"type": "interrupt", "interrupts": []})), ["E5", "/interrupts"]),
        (fault::<JsonPatch>(json!([{"op": "add", "path": "x", "value": 1}])), ["E5", "/0/path"]),
        (fault::<Event>(json!([])), ["E5", "an object"]),
    ] {
        for part in expected {
            assert!(error.contains(part), "{error:?} names {part}");
        }
    }
    let deep = (0..600).fold(json!(null), |inner, _| json!([inner]));
    assert!(fault::<Event>(json!({"type": "RAW", "event": deep})).contains("nested deeper"));
}

#[test]
fn debug_leaves_out_what_is_absent() {
    assert_eq!(format!("{:?}", Event::text_end("m")), "TextMessageEndEvent { message_id: \"m\" }");
    let mut event = RunFinishedEvent::new("t", "r");
    event.base.timestamp = Some(1);
    assert_eq!(
        format!("{:?}", Event::from(event)),
        "RunFinishedEvent { thread_id: \"t\", run_id: \"r\", timestamp: 1 }"
    );
    assert_eq!(format!("{:?}", Message::from(AssistantMessage::new("a"))), "AssistantMessage { id: \"a\" }");
}

#[test]
fn every_constructor_makes_the_event_of_its_name() {
    let patch = JsonPatch::from_value(&json!([])).unwrap();
    for (event, json) in [
        (Event::run_started("t", "r"), json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})),
        (Event::run_finished("t", "r"), json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"})),
        (Event::run_error("no"), json!({"type": "RUN_ERROR", "message": "no"})),
        (Event::step_started("s"), json!({"type": "STEP_STARTED", "stepName": "s"})),
        (Event::step_finished("s"), json!({"type": "STEP_FINISHED", "stepName": "s"})),
        (Event::text_start("m"), json!({"type": "TEXT_MESSAGE_START", "messageId": "m"})),
        (Event::text_content("m", "d"), json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "d"})),
        (Event::text_end("m"), json!({"type": "TEXT_MESSAGE_END", "messageId": "m"})),
        (Event::text_chunk("m", "d"), json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "d"})),
        (Event::tool_call_start("c", "n"), json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "n"})),
        (Event::tool_call_args("c", "d"), json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "d"})),
        (Event::tool_call_end("c"), json!({"type": "TOOL_CALL_END", "toolCallId": "c"})),
        (
            Event::tool_call_chunk("c", "n", "d"),
            json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "n", "delta": "d"}),
        ),
        (
            Event::tool_call_result("m", "c", "x"),
            json!({"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": "x"}),
        ),
        (
            Event::reasoning_message_start("m"),
            json!({"type": "REASONING_MESSAGE_START", "messageId": "m", "role": "reasoning"}),
        ),
        (
            Event::reasoning_message_content("m", "d"),
            json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "m", "delta": "d"}),
        ),
        (Event::reasoning_message_end("m"), json!({"type": "REASONING_MESSAGE_END", "messageId": "m"})),
        (Event::reasoning_chunk("m", "d"), json!({"type": "REASONING_MESSAGE_CHUNK", "messageId": "m", "delta": "d"})),
        (Event::state_snapshot(json!({"a": 1})), json!({"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}})),
        (Event::state_delta(patch), json!({"type": "STATE_DELTA", "delta": []})),
        (Event::messages_snapshot([]), json!({"type": "MESSAGES_SNAPSHOT", "messages": []})),
        (Event::custom("n", 1), json!({"type": "CUSTOM", "name": "n", "value": 1})),
    ] {
        assert_eq!(serde_json::to_value(&event).unwrap(), json);
    }
}
