//! HTTP with the reference implementations: npm `@ag-ui/client` and PyPI `ag-ui-protocol` read events that
//! this crate serves, and this crate reads events of npm `@ag-ui/encoder` and PyPI `ag-ui-protocol`, all
//! 1.0.0.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use std::collections::BTreeSet;
use std::sync::Arc;

use ag_ui_stream::client::{ClientError, HttpAgent, reqwest};
use ag_ui_stream::codec::Format;
use ag_ui_stream::event::Interrupt;
use ag_ui_stream::input::{Outgoing, ProtocolVersion};
use ag_ui_stream::message::{Message, UserMessage};
use ag_ui_stream::producer::{self, Finish};
use ag_ui_stream::record::RecordStreamExt;
use ag_ui_stream::server::{RunRequest, RunResponse};
use ag_ui_stream::{Agent, AgentExt, EncodeStreamExt, Event, EventStreamExt, Item, Rule, RunAgentInput};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::post;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;

mod support {
    #![allow(unreachable_pub, reason = "each test has its own copy")]
    pub mod interop;
}

use support::interop::{node, old_python, python};

/// A run with something of everything.
fn events() -> Vec<Value> {
    let Value::Array(events) = json!([
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"},
        {"type": "STEP_STARTED", "stepName": "plan"},
        {"type": "REASONING_MESSAGE_START", "messageId": "thought", "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "thought", "delta": "Zwölf Äpfel 🍎…"},
        {"type": "REASONING_MESSAGE_END", "messageId": "thought"},
        {"type": "STEP_FINISHED", "stepName": "plan"},
        {"type": "STATE_SNAPSHOT", "snapshot": {"basket": []}},
        {"type": "TOOL_CALL_START", "toolCallId": "call", "toolCallName": "pick"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "call", "delta": "{\"of\":\"🍎\","},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "call", "delta": "\"count\":12}"},
        {"type": "TOOL_CALL_END", "toolCallId": "call"},
        {"type": "TOOL_CALL_RESULT", "messageId": "result", "toolCallId": "call", "content": "two\nlines\r\nand a third"},
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/basket/-", "value": "🍎"}]},
        {"type": "TEXT_MESSAGE_START", "messageId": "answer", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "answer", "delta": "Here: "},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "answer", "delta": "data: 12\n\n\u{2028}🍎"},
        {"type": "TEXT_MESSAGE_END", "messageId": "answer"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
    ]) else {
        panic!("an array");
    };
    events
}

fn asked() -> Vec<Message> {
    vec![UserMessage::new("u", "Twelve apples, please").into()]
}

/// What the events come to when no network is involved.
async fn expected() -> (Value, Value) {
    let agent = ag_ui_stream::agent::Replay::new(events());
    conversation(&agent).await
}

async fn conversation(agent: &dyn Agent) -> (Value, Value) {
    let updates: Vec<_> =
        agent.updates(RunAgentInput::new("t", "r", asked())).await.unwrap().try_collect().await.unwrap();
    let snapshot = updates.last().unwrap().snapshot();
    assert_eq!(snapshot.run().unwrap().outcome.as_str(), "success");
    let messages: Vec<&Message> = snapshot.messages().iter().collect();
    (serde_json::to_value(messages).unwrap(), snapshot.state().to_value())
}

#[tokio::test]
async fn what_the_reference_serves_is_read_here() {
    let Some(node) = node() else { return };
    let server = node.serve("server.mjs", &json!(events()));
    let expected = expected().await;
    let bindings: &[&str] = if cfg!(feature = "protobuf") { &["sse", "protobuf"] } else { &["sse"] };
    for binding in bindings {
        for size in [1, 3, 7, 100_000] {
            let agent = HttpAgent::new(format!("http://127.0.0.1:{}/{binding}/{size}", server.port)).unwrap();
            let format = agent.start(RunAgentInput::new("t", "r", [])).await.unwrap().format();
            assert!(format.media_type().contains(if *binding == "sse" { "event-stream" } else { "proto" }));
            assert_eq!(conversation(&agent).await, expected, "{binding} {size}");
        }
    }
}

/// Serves the events in a format, so many bytes at once.
async fn serve(format: Format, size: usize) -> String {
    let body = stream::iter(events()).items().encode(format).try_concat().await.unwrap();
    serve_bytes(format, body, size).await
}

async fn serve_bytes(format: Format, body: Vec<u8>, size: usize) -> String {
    async fn answer(
        State((format, answer, size)): State<(Format, Arc<Vec<u8>>, usize)>,
        body: Bytes,
    ) -> impl IntoResponse {
        let (input, warnings) = RunAgentInput::from_json(&body).unwrap();
        assert_eq!((input.messages, &*warnings), (asked(), &[][..]));
        let pieces: Vec<_> = answer.chunks(size).map(|bytes| Ok::<_, std::io::Error>(bytes.to_vec())).collect();
        ([(header::CONTENT_TYPE, format.media_type())], Body::from_stream(stream::iter(pieces)))
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/agent", listener.local_addr().unwrap());
    let router = Router::new().route("/agent", post(answer)).with_state((format, Arc::new(body), size));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_served_here_the_reference_reads() {
    let Some(node) = node() else { return };
    let (messages, state) = expected().await;
    let formats = [
        Format::Sse,
        #[cfg(feature = "protobuf")]
        Format::Protobuf,
    ];
    for format in formats {
        for size in [1, 7, 100_000] {
            let url = serve(format, size).await;
            let question = json!({"url": url, "messages": asked()});
            let node = node.clone();
            let held = tokio::task::spawn_blocking(move || node.ask("client.mjs", &question)).await.unwrap();
            assert_eq!(held, json!({"messages": messages, "state": state, "error": null}), "{format:?} {size}");
        }
    }
}

/// Comments mean nothing, and an event on several lines is one event.
#[cfg(feature = "record")]
#[tokio::test(flavor = "multi_thread")]
async fn t1_what_is_recorded_here_the_reference_reads() {
    let Some(node) = node() else { return };
    let (messages, state) = expected().await;
    let mut recording = Vec::new();
    let pretty = stream::iter(events()).map(|event| format!("{event:#}").replace('\n', "\r\n"));
    pretty.record(&mut recording).for_each(|_| async {}).await;
    let text = String::from_utf8(recording.clone()).unwrap();
    assert!(text.contains("\n: +") && text.contains("\n: line-ends rnrn") && text.ends_with(" end\n\n"), "{text}");
    for size in [7, 100_000] {
        let url = serve_bytes(Format::Sse, recording.clone(), size).await;
        let question = json!({"url": url, "messages": asked()});
        let node = node.clone();
        let held = tokio::task::spawn_blocking(move || node.ask("client.mjs", &question)).await.unwrap();
        assert_eq!(held, json!({"messages": messages, "state": state, "error": null}), "{size}");
    }
}

#[tokio::test]
async fn what_python_serves_is_read_here() {
    let Some(python) = python() else { return };
    let server = python.serve("server.py", &json!(events()));
    let expected = expected().await;
    for lines in ["lf", "crlf", "cr", "busy"] {
        for size in [1, 3, 7, 100_000] {
            let agent = HttpAgent::new(format!("http://127.0.0.1:{}/{lines}/{size}", server.port)).unwrap();
            assert_eq!(conversation(&agent).await, expected, "{lines} {size}");
        }
    }
}

/// An input with something of everything.
fn input() -> RunAgentInput {
    let (input, warnings) = RunAgentInput::from_value(&json!({
        "threadId": "t", "runId": "r", "parentRunId": "p", "protocolVersion": "1.0",
        "messages": [
            {"id": "s", "role": "system", "content": "Be brief."},
            {"id": "u", "role": "user", "content": [
                {"type": "text", "text": "Zwölf 🍎?"},
                {"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}},
                {"type": "document", "source": {"type": "url", "value": "https://example.com/a.pdf"}}
            ]},
            {"id": "thought", "role": "reasoning", "content": "Twelve.", "encryptedValue": "x"},
            {"id": "a", "role": "assistant", "toolCalls": [
                {"id": "call", "type": "function", "function": {"name": "pick", "arguments": "{}"}}
            ]},
            {"id": "result", "role": "tool", "toolCallId": "call", "content": "done"}
        ],
        "tools": [{"name": "pick", "description": "Picks.", "parameters": {"type": "object"}}],
        "context": [{"description": "where", "value": "here"}],
        "resume": [{"interruptId": "i", "status": "resolved", "payload": {"ok": true}}],
        "state": {"basket": [1, null, 2.5]},
        "forwardedProps": {"any": null}
    }))
    .unwrap();
    assert_eq!(warnings, []);
    input
}

#[tokio::test]
async fn t4_python_accepts_the_input_that_is_sent_here() {
    let Some(python) = python() else { return };
    let server = python.serve("server.py", &json!(events()));
    let url = format!("http://127.0.0.1:{}", server.port);
    for input in [RunAgentInput::new("t", "r", []), input()] {
        let agent = HttpAgent::new(format!("{url}/lf/100000")).unwrap();
        let sent = Outgoing::new().prepare(input.clone()).unwrap().0;
        let events: Vec<_> = agent.events(input).await.unwrap().try_collect().await.unwrap();
        assert!(!events.is_empty());
        let read = reqwest::get(&url).await.unwrap().bytes().await.unwrap();
        assert_eq!(RunAgentInput::from_json(&read).unwrap(), (sent, vec![]));
    }
}

/// The events of a server from before AG-UI 1.0: thinking has no ids, and there is no `protocolVersion`.
fn old_events() -> Vec<Value> {
    let mut events = events();
    events.retain(|event| !event["type"].as_str().unwrap().starts_with("REASONING"));
    events[0] = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"});
    let thoughts = json!([
        {"type": "THINKING_START", "title": "Apples"},
        {"type": "THINKING_TEXT_MESSAGE_START"},
        {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "Zwölf Äpfel 🍎…"},
        {"type": "THINKING_TEXT_MESSAGE_END"},
        {"type": "THINKING_END"}
    ]);
    events.splice(2..2, thoughts.as_array().unwrap().clone());
    events
}

#[tokio::test]
async fn r11_b1_an_old_python_server_is_sent_what_it_accepts_and_understood() {
    let Some(python) = old_python() else { return };
    let server = python.serve("server.py", &json!(old_events()));
    let url = format!("http://127.0.0.1:{}", server.port);
    let mut asked = input();
    asked.resume = None;
    asked.messages.retain(|message| message.role().as_str() != "reasoning");
    for size in [1, 100_000] {
        let agent = || HttpAgent::builder(format!("{url}/lf/{size}"));
        let agent_of_today = agent().build().unwrap();
        let Err(ClientError::Status(answer)) = agent_of_today.start(asked.clone()).await else {
            panic!("it knows parts of content and `protocolVersion`");
        };
        assert_eq!(answer.status.as_u16(), 422);

        let agent = agent().max_protocol_version(ProtocolVersion::LAST_WITHOUT_PARTS).build().unwrap();
        let items: Vec<_> = agent.run(asked.clone()).await.unwrap().items().try_collect().await.unwrap();
        let rules: BTreeSet<_> = items.iter().filter_map(Item::warning).map(|warning| warning.rule).collect();
        assert_eq!(rules, BTreeSet::from([Rule::B1, Rule::R11]));
        let sent = Outgoing::new().max_protocol_version(ProtocolVersion::LAST_WITHOUT_PARTS);
        let sent = sent.prepare(asked.clone()).unwrap().0;
        let read = reqwest::get(&url).await.unwrap().bytes().await.unwrap();
        // It writes absent fields as null.
        let read = without_nulls(serde_json::from_slice(&read).unwrap());
        assert_eq!(read, without_nulls(json!(sent)));

        let (messages, state) = conversation(&agent).await;
        let (expected_messages, expected_state) = expected().await;
        let contents = |messages: &Value| {
            let messages = messages.as_array().unwrap();
            messages.iter().map(|message| (message["role"].clone(), message["content"].clone())).collect::<Vec<_>>()
        };
        assert_eq!(contents(&messages), contents(&expected_messages));
        assert_eq!(state, expected_state);
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key, without_nulls(value)))
                .collect(),
        ),
        Value::Array(elements) => elements.into_iter().map(without_nulls).collect(),
        scalar => scalar,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_served_here_python_reads() {
    let Some(python) = python() else { return };
    for size in [1, 7, 100_000] {
        let url = serve(Format::Sse, size).await;
        let question = json!({"url": url, "input": RunAgentInput::new("t", "r", asked())});
        let python = python.clone();
        let read = tokio::task::spawn_blocking(move || python.ask("client.py", &question)).await.unwrap();
        assert_eq!(read, json!(events()), "{size}");
    }
}

/// An agent that does something of everything, and ends as its input asks.
fn produces() -> Arc<dyn Agent> {
    Arc::new(producer::agent(async |run| {
        let step = run.step("plan").await?;
        let mut thought = step.open_reasoning().await?;
        thought.push("Zwölf Äpfel 🍎…").await?;
        thought.encrypted_value("c2lnbmVk").await?;
        thought.end().await?;
        step.end().await?;
        run.state(&json!({"basket": [], "a long name that no patch repeats": true})).await?;
        let mut call = run.open_tool_call("pick").await?;
        for piece in ["{\"of\":\"🍎\",", "\"count\":12}"] {
            call.push(piece).await?;
        }
        call.result("two\nlines\r\nand a third").await?;
        run.state(&json!({"basket": ["🍎"], "a long name that no patch repeats": true})).await?;
        let helper = run.subagent("helper").await?;
        helper.text("Weighed.").await?;
        let weigh = helper.step("weigh").await?;
        weigh.custom("grams", &1200).await?;
        weigh.end().await?;
        helper.end_with(json!({"grams": 1200})).await?;
        let _left_open = run.open_text().await?;
        Ok(match run.input().messages.len() {
            1 => Finish::new().with_result(json!({"done": true})),
            _ => Finish::interrupt(Interrupt::new("sure", "confirmation")),
        })
    }))
}

async fn serve_produced() -> String {
    async fn answer(State(agent): State<Arc<dyn Agent>>, request: RunRequest) -> RunResponse {
        request.run(&*agent).await
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/agent", listener.local_addr().unwrap());
    let router = Router::new().route("/agent", post(answer)).with_state(produces());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_produced_here_the_reference_reads() {
    let Some(node) = node() else { return };
    let url = serve_produced().await;
    let again = vec![asked()[0].clone(), UserMessage::new("u2", "And again").into()];
    for (messages, outcome) in [(asked(), "success"), (again, "interrupt")] {
        let input = RunAgentInput::new("t", "r", messages.clone());
        let updates: Vec<_> = produces().updates(input).await.unwrap().try_collect().await.unwrap();
        let snapshot = updates.last().unwrap().snapshot();
        assert_eq!(snapshot.run().unwrap().outcome.as_str(), outcome);
        let held: Vec<&Message> = snapshot.messages().iter().collect();
        let expected = json!({"messages": held, "state": snapshot.state(), "error": null});
        let question = json!({"url": url, "messages": messages});
        let node = node.clone();
        let held = tokio::task::spawn_blocking(move || node.ask("client.mjs", &question)).await.unwrap();
        assert_eq!(held, expected, "{outcome}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_produced_here_python_reads() {
    let Some(python) = python() else { return };
    let url = serve_produced().await;
    let input = RunAgentInput::new("t", "r", asked());
    let events: Vec<Event> = produces().events(input.clone()).await.unwrap().try_collect().await.unwrap();
    let question = json!({"url": url, "input": input});
    let read = tokio::task::spawn_blocking(move || python.ask("client.py", &question)).await.unwrap();
    assert_eq!(read, json!(events));
}

#[test]
fn the_events_are_events() {
    for event in events() {
        let (event, warnings) = Event::from_value(&event).unwrap();
        assert!(event.is_some() && warnings.is_empty());
    }
}
