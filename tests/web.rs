//! The page of `examples/web` in a headless Chromium: what a person can read on it while a run streams.
//!
//! `.ci/web` builds the page and runs this. Where either is missing, the test says so and passes;
//! `AG_UI_INTEROP=require` makes that a failure.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]
#![allow(clippy::print_stderr, reason = "a skip is told")]

#[path = "../examples/serve/page.rs"]
mod files;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ag_ui_stream::client::tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use ag_ui_stream::client::tungstenite::Message;
use ag_ui_stream::{ByteStreamExt, EventStreamExt, RunAgentInput, Snapshot};
use axum::body::Body;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::post;
use base64::prelude::{BASE64_STANDARD, Engine};
use futures::{SinkExt, Stream, StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::UnboundedReceiverStream;

/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A page that is open in a browser of its own.
struct Page {
    browser: Child,
    /// Its profile.
    _profile: TempDir,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    calls: u64,
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}

impl Page {
    /// `None` after saying what is missing.
    async fn open() -> Option<Self> {
        let profile = TempDir::new().unwrap();
        let browser = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--remote-debugging-port=0", "--window-size=1280,720"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stderr(Stdio::piped())
            .spawn();
        let missing = match (&browser, files::folder().join("page.js").exists()) {
            (Err(error), _) => format!("chromium cannot be started: {error}"),
            (_, false) => "the page is not built (examples/web/README.md)".to_owned(),
            _ => String::new(),
        };
        let (Ok(mut browser), true) = (browser, missing.is_empty()) else {
            assert!(std::env::var("AG_UI_INTEROP").as_deref() != Ok("require"), "{missing}");
            eprintln!("skipped: {missing}");
            return None;
        };
        let said = BufReader::new(browser.stderr.take().unwrap());
        let port = said.lines().map_while(Result::ok).find_map(|line| {
            Some(line.strip_prefix("DevTools listening on ws://127.0.0.1:")?.split_once('/')?.0.to_owned())
        });
        let tabs = format!("http://127.0.0.1:{}/json/list", port.unwrap());
        let tab = loop {
            let tabs: Value = serde_json::from_str(&reqwest::get(&tabs).await.unwrap().text().await.unwrap()).unwrap();
            let mut tabs = tabs.as_array().unwrap().iter();
            match tabs.find(|tab| tab["type"] == "page") {
                Some(tab) => break tab["webSocketDebuggerUrl"].as_str().unwrap().to_owned(),
                None => sleep(Duration::from_millis(20)).await,
            }
        };
        let socket = connect_async(tab).await.unwrap().0;
        Some(Self { browser, _profile: profile, socket, calls: 0 })
    }

    /// Calls a method of the DevTools protocol.
    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let call = json!({"id": self.calls, "method": method, "params": params});
        self.socket.send(Message::text(call.to_string())).await.unwrap();
        loop {
            let answer = timeout(PATIENCE, self.socket.next()).await.unwrap().unwrap().unwrap();
            let answer: Value = serde_json::from_str(answer.to_text().unwrap()).unwrap();
            if answer["id"] == self.calls {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
        }
    }

    /// Goes to an address, with the form filled and sent.
    async fn go(&mut self, server: &str, agent: &str) {
        let url = format!("{server}/?agent={agent}&say=Compare%20them.");
        self.call("Page.navigate", json!({"url": url})).await;
    }

    async fn evaluate(&mut self, expression: &str) -> Value {
        let answer = self.call("Runtime.evaluate", json!({"expression": expression, "returnByValue": true})).await;
        answer["result"]["value"].clone()
    }

    /// The text that stands in an element.
    async fn text(&mut self, id: &str) -> String {
        let text = self.evaluate(&format!("document.getElementById('{id}')?.innerText ?? ''")).await;
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an element has a text.
    async fn wait_for(&mut self, id: &str, what: impl Fn(&str) -> bool) {
        let mut last = String::new();
        let found = timeout(PATIENCE, async {
            loop {
                last = self.text(id).await;
                if what(&last) {
                    break;
                }
                sleep(Duration::from_millis(20)).await;
            }
        });
        let found = found.await.is_ok();
        assert!(found, "#{id} has {last:?}, and the problem is {:?}", self.text("problem").await);
    }

    /// The lines of each lane, without its empty ones.
    async fn lanes(&mut self) -> Vec<Vec<String>> {
        let lanes = self.evaluate("[...document.querySelectorAll('.lane')].map((lane) => lane.innerText)").await;
        let lanes: Vec<String> = serde_json::from_value(lanes).unwrap();
        let lines = |lane: String| {
            lane.lines().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
        };
        lanes.into_iter().map(lines).collect()
    }

    /// For whoever looks at it, in both colour schemes.
    async fn screenshot(&mut self, name: &str) {
        for scheme in ["light", "dark"] {
            let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
            self.call("Emulation.setEmulatedMedia", json!({"features": features})).await;
            let png = self.call("Page.captureScreenshot", json!({})).await;
            let png = BASE64_STANDARD.decode(png["data"].as_str().unwrap()).unwrap();
            std::fs::write(files::folder().join(format!("{name}-{scheme}.png")), png).unwrap();
        }
    }
}

/// A body of server-sent events.
fn sse<E: std::error::Error + Send + Sync + 'static>(
    body: impl Stream<Item = Result<Vec<u8>, E>> + Send + 'static,
) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(body))
}

fn lines(events: &[Value]) -> Vec<u8> {
    events.iter().flat_map(|event| format!("data: {event}\n\n").into_bytes()).collect()
}

/// A capture of a public framework, with a subagent, tool calls and state.
fn capture() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/producers/langgraph-sup1-DELEG.sse");
    std::fs::read(path).unwrap()
}

/// A server of the page and of three agents. What is sent to the sender is what `/live` says.
async fn serve() -> (String, mpsc::UnboundedSender<Vec<u8>>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let live = Arc::new(Mutex::new(Some(receiver)));
    let router = files::routes()
        .route(
            "/live",
            post(move |input: String| async move {
                let (input, _) = RunAgentInput::from_json(&input).unwrap();
                assert_eq!(input.messages.last().unwrap().text().unwrap(), "Compare them.");
                let pieces = UnboundedReceiverStream::new(live.lock().unwrap().take().unwrap());
                sse(pieces.map(Ok::<_, std::convert::Infallible>))
            }),
        )
        .route(
            "/capture",
            post(|| async {
                let pieces: Vec<Vec<u8>> = capture().chunks(700).map(<[u8]>::to_vec).collect();
                sse(stream::iter(pieces).then(|piece| async {
                    sleep(Duration::from_millis(2)).await;
                    Ok::<_, std::convert::Infallible>(piece)
                }))
            }),
        )
        .route(
            "/invalid",
            post(|| async {
                let run = lines(&[
                    json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}),
                    json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}),
                    json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "As far as it"}),
                    json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "other", "delta": "never opened"}),
                ]);
                sse(stream::iter([Ok::<_, std::convert::Infallible>(run)]))
            }),
        );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, sender)
}

#[tokio::test]
async fn a_run_is_shown_as_it_comes_in_lanes() {
    let Some(mut page) = Page::open().await else { return };
    let (server, sender) = serve().await;
    page.go(&server, "/live").await;

    let text = |owner: &str, id: &str, delta: &str| json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta, "subagentRunId": owner});
    let start = |owner: &str, id: &str| json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant", "subagentRunId": owner});
    let first = [
        json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}),
        json!({"type": "STATE_SNAPSHOT", "snapshot": {"crates": {}, "done": false}}),
        json!({"type": "REASONING_MESSAGE_CHUNK", "messageId": "thought", "delta": "Two of us can look."}),
        json!({"type": "SUBAGENT_STARTED", "subagentRunId": "s1", "name": "reader"}),
        json!({"type": "SUBAGENT_STARTED", "subagentRunId": "s2", "name": "counter"}),
        start("s1", "m1"),
        start("s2", "m2"),
        text("s1", "m1", "I read "),
        text("s2", "m2", "I count "),
        text("s1", "m1", "<img src=x onerror=\"document.title='broken into'\"> "),
        json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "count", "subagentRunId": "s2"}),
        json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{\"of\": \"wo", "subagentRunId": "s2"}),
        json!({"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/crates/futures", "value": 2}]}),
    ];
    // Cut in the middle of an event.
    let mut bytes = lines(&first);
    let rest = bytes.split_off(bytes.len() - 30);
    sender.send(bytes).unwrap();
    page.wait_for("lanes", |text| text.contains("{\"of\": \"wo")).await;
    assert_eq!(page.text("outcome").await, "running");
    assert!(!page.text("state").await.contains("futures"));
    sender.send(rest).unwrap();
    page.wait_for("state", |text| text.contains("\"futures\": 2")).await;
    let lanes = page.lanes().await;
    assert_eq!(lanes[0], ["agent", "running", "USER", "Compare them.", "REASONING", "Two of us can look."]);
    let img = "<img src=x onerror=\"document.title='broken into'\">";
    assert_eq!(lanes[1], ["reader", "running", "ASSISTANT", &format!("I read {img}")]);
    page.screenshot("live").await;

    let second = [
        json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "rds\"}", "subagentRunId": "s2"}),
        json!({"type": "TOOL_CALL_END", "toolCallId": "c", "subagentRunId": "s2"}),
        json!({"type": "TOOL_CALL_RESULT", "messageId": "result", "toolCallId": "c", "content": "1234", "subagentRunId": "s2"}),
        text("s2", "m2", "words."),
        json!({"type": "TEXT_MESSAGE_END", "messageId": "m1", "subagentRunId": "s1"}),
        json!({"type": "TEXT_MESSAGE_END", "messageId": "m2", "subagentRunId": "s2"}),
        json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "s2"}),
        json!({"type": "SUBAGENT_ERROR", "subagentRunId": "s1", "message": "out of paper"}),
        json!({"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/done", "value": true}]}),
        json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "answer", "delta": "They differ."}),
        json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}),
    ];
    sender.send(lines(&second)).unwrap();
    drop(sender);
    page.wait_for("button", |text| text == "Send").await;
    assert_eq!(page.text("outcome").await, "success");
    assert_eq!(page.text("problem").await, "");
    let state: Value = serde_json::from_str(&page.text("state").await).unwrap();
    assert_eq!(state, json!({"crates": {"futures": 2}, "done": true}));
    let lanes = page.lanes().await;
    assert_eq!(lanes.len(), 3);
    let agent = ["agent", "success", "USER", "Compare them.", "REASONING", "Two of us can look.", "ASSISTANT"];
    assert_eq!(lanes[0], [&agent[..], &["They differ."]].concat());
    assert_eq!(lanes[1], ["reader", "out of paper", "ASSISTANT", &format!("I read {img}")]);
    let call = ["count", "{\"of\": \"words\"}"].concat();
    let counter = ["counter", "finished", "ASSISTANT", "I count words.", "ASSISTANT", &call, "TOOL", "1234"];
    assert_eq!(lanes[2], counter);
    // What came from the wire is text.
    assert_eq!(page.evaluate("document.querySelector('img') === null && document.title").await, "A live run");
    page.screenshot("end").await;
}

#[tokio::test]
async fn s2_an_invalid_run_shows_which_rule_it_broke_and_what_came_before() {
    let Some(mut page) = Page::open().await else { return };
    let (server, _sender) = serve().await;
    page.go(&server, "/invalid").await;
    page.wait_for("problem", |text| text.starts_with("S2: TEXT_MESSAGE_CONTENT (event 3)")).await;
    assert_eq!(page.text("outcome").await, "rejected");
    let said = ["agent", "rejected", "USER", "Compare them.", "ASSISTANT", "As far as it"];
    assert_eq!(page.lanes().await, [said]);
    page.screenshot("invalid").await;
    // An agent that is not there.
    page.go(&server, "/nowhere").await;
    page.wait_for("problem", |text| text.contains("/nowhere answered 404")).await;
}

#[tokio::test]
async fn a_run_is_stopped_with_its_request_and_another_one_follows() {
    let Some(mut page) = Page::open().await else { return };
    let (server, sender) = serve().await;
    page.go(&server, "/live").await;
    sender.send(lines(&[json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})])).unwrap();
    page.wait_for("outcome", |text| text == "running").await;
    page.evaluate("document.getElementById('button').click()").await;
    page.wait_for("outcome", |text| text == "stopped").await;
    assert_eq!(page.text("problem").await, "stopped");
    timeout(PATIENCE, sender.closed()).await.unwrap();

    let again = "document.getElementById('agent').value = '/capture'; document.getElementById('button').click()";
    page.evaluate(again).await;
    page.wait_for("outcome", |text| text == "success").await;
    assert_eq!(page.text("problem").await, "");
}

/// The page shows of a capture what the same pipeline makes of it here.
#[tokio::test]
async fn a_capture_is_shown_as_it_is_read_here() {
    let Some(mut page) = Page::open().await else { return };
    let (server, _sender) = serve().await;
    let mut updates = stream::iter([Ok::<_, std::convert::Infallible>(capture())]).sse().updates();
    while updates.try_next().await.unwrap().is_some() {}
    let snapshot = updates.snapshot();

    page.go(&server, "/capture").await;
    page.wait_for("button", |text| text == "Send").await;
    page.wait_for("outcome", |text| text == "success").await;
    let state: Value = serde_json::from_str(&page.text("state").await).unwrap();
    assert_eq!(state, snapshot.state().to_value());
    let lanes = page.lanes().await;
    let subagents: Vec<_> = snapshot.run().unwrap().subagents().map(|subagent| subagent.name.to_string()).collect();
    let names: Vec<_> = lanes.iter().map(|lane| lane[0].clone()).collect();
    assert_eq!(names, [&["agent".to_owned()][..], &subagents].concat());
    for message in snapshot.messages() {
        let lane = message.subagent_run_id().map_or(0, |owner| 1 + place(snapshot, owner.as_str()));
        for line in message.text().unwrap_or_default().to_cow().lines().map(str::trim_end) {
            assert!(lanes[lane].iter().any(|shown| shown == line), "{line:?} is not in {:?}", lanes[lane]);
        }
    }
    page.screenshot("capture").await;
}

fn place(snapshot: &Snapshot, owner: &str) -> usize {
    snapshot.run().unwrap().subagents().position(|subagent| subagent.subagent_run_id == *owner).unwrap()
}
