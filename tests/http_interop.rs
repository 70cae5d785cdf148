//! HTTP against the reference: npm `@ag-ui/client` 1.0.0 reads what is served here, and what npm
//! `@ag-ui/encoder` 1.0.0 serves is read here.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ag_ui_stream::client::HttpAgent;
use ag_ui_stream::codec::Format;
use ag_ui_stream::message::{Message, UserMessage};
use ag_ui_stream::{AgentExt, EncodeStreamExt, Event, EventStreamExt, RunAgentInput};
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
    pub mod node;
}

use support::node::{ask, interop};

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
    let agent = ag_ui_stream::Replay::new(events());
    conversation(&agent).await
}

async fn conversation(agent: &dyn ag_ui_stream::Agent) -> (Value, Value) {
    let updates: Vec<_> =
        agent.updates(RunAgentInput::new("t", "r", asked())).await.unwrap().try_collect().await.unwrap();
    let snapshot = updates.last().unwrap().snapshot();
    assert_eq!(snapshot.run().unwrap().outcome.as_str(), "success");
    let messages: Vec<&Message> = snapshot.messages().iter().collect();
    (serde_json::to_value(messages).unwrap(), snapshot.state().clone())
}

/// A server of Node's, ended with the test.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let mut process = Command::new("node")
            .arg(folder.join("server.mjs"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        process.stdin.take().unwrap().write_all(json!(events()).to_string().as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, port: line.trim().parse().unwrap() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn what_the_reference_serves_is_read_here() {
    let Some(folder) = interop() else { return };
    let server = Server::start(&folder);
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
    async fn answer(State((format, size)): State<(Format, usize)>, body: Bytes) -> impl IntoResponse {
        let (input, warnings) = RunAgentInput::from_slice(&body).unwrap();
        assert_eq!((input.messages, &*warnings), (asked(), &[][..]));
        let pieces = stream::iter(events()).items().encode(format).flat_map(move |piece| {
            let piece = piece.unwrap();
            stream::iter(piece.chunks(size).map(|bytes| Ok::<_, std::io::Error>(bytes.to_vec())).collect::<Vec<_>>())
        });
        ([(header::CONTENT_TYPE, format.media_type())], Body::from_stream(pieces))
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/agent", listener.local_addr().unwrap());
    let router = Router::new().route("/agent", post(answer)).with_state((format, size));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_served_here_the_reference_reads() {
    let Some(folder) = interop() else { return };
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
            let folder = folder.clone();
            let held = tokio::task::spawn_blocking(move || ask(&folder, "client.mjs", &question)).await.unwrap();
            assert_eq!(held, json!({"messages": messages, "state": state, "error": null}), "{format:?} {size}");
        }
    }
}

#[test]
fn the_events_are_events() {
    for event in events() {
        let (event, warnings) = Event::from_value(&event).unwrap();
        assert!(event.is_some() && warnings.is_empty());
    }
}
