//! `RunRequest` and `RunResponse`: agents served by axum, over loopback.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use ag_ui_stream::agent::Replay;
use ag_ui_stream::client::{HttpAgent, reqwest};
use ag_ui_stream::codec::Format;
use ag_ui_stream::conversation::{Conversation, Thread, Tools};
use ag_ui_stream::event::Interrupt;
use ag_ui_stream::input::Tool;
use ag_ui_stream::message::{Message, UserMessage};
use ag_ui_stream::producer::{self, Finish};
use ag_ui_stream::server::{RunRequest, RunResponse};
use ag_ui_stream::{Agent, AgentExt, ByteStreamExt, Event, EventStreamExt, RunAgentInput};
use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::routing::post;
use futures::{StreamExt, TryStreamExt, stream};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;

async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/agent", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

async fn serve_agent(agent: impl Agent + 'static) -> String {
    async fn run(State(agent): State<Arc<dyn Agent>>, request: RunRequest) -> RunResponse {
        request.run(&*agent).await.keep_alive(Duration::from_millis(20))
    }
    let state: Arc<dyn Agent> = Arc::new(agent);
    serve(Router::new().route("/agent", post(run)).layer(DefaultBodyLimit::max(1000)).with_state(state)).await
}

fn greeter() -> impl Agent {
    producer::agent(async |run| {
        run.text(format!("Hello, {}", run.input().messages.len())).await?;
        Ok(())
    })
}

async fn post_json(url: &str, body: &str, accept: &str) -> Response {
    let request = Client::new().post(url).header("content-type", "application/json; charset=utf-8");
    request.header("accept", accept).body(body.to_owned()).send().await.unwrap()
}

const INPUT: &str = r#"{"threadId": "t", "runId": "r", "messages": []}"#;

#[tokio::test]
async fn a_served_agent_gives_the_same_events() {
    let agent = HttpAgent::new(serve_agent(greeter()).await).unwrap();
    let input = RunAgentInput::new("t", "r", [UserMessage::new("u", "Hi").into()]);
    let updates: Vec<_> = agent.updates(input).await.unwrap().try_collect().await.unwrap();
    let text = updates.last().unwrap().snapshot().messages().iter().next_back().unwrap().text().unwrap();
    assert_eq!(text, "Hello, 1");
}

#[tokio::test]
async fn a_conversation_over_http_uses_tools_answers_questions_and_is_restored() {
    async fn run(State(agent): State<Arc<dyn Agent>>, request: RunRequest) -> RunResponse {
        request.run(&*agent).await
    }
    let agent = producer::agent(async |run| {
        let input = run.input();
        match (&input.resume, input.messages.last()) {
            (Some(answers), _) => run.text(format!("You said {}.", json!(answers[0].payload))).await.map(drop)?,
            (None, Some(Message::Tool(result))) => {
                let sum = result.content.text().unwrap();
                return Ok(Finish::interrupt(Interrupt::new("sure", format!("{sum}?"))));
            }
            _ => run.tool_call("add", &json!([1, 2])).await.map(drop)?,
        }
        Ok(Finish::new())
    });
    let state: Arc<dyn Agent> = Arc::new(agent);
    let url = serve(Router::new().route("/agent", post(run)).with_state(state)).await;
    let conversation = |thread| {
        let add = |numbers: Vec<u32>| async move { Ok(numbers.iter().sum::<u32>()) };
        let tools = Tools::new().with(Tool::new("add", "Adds numbers."), add);
        Conversation::new(HttpAgent::new(&url).unwrap(), thread).with_tools(tools)
    };
    let mut first = conversation(Thread::new("t"));
    first.send("1 + 2?").finish().await.1.unwrap();
    let saved = serde_json::to_string(first.thread()).unwrap();

    let mut second = conversation(serde_json::from_str(&saved).unwrap());
    assert_eq!(second.thread().interrupts()[0].reason.as_ref(), "3?");
    let mut answers = second.answers();
    answers.resolve("sure", json!("yes")).unwrap();
    let (snapshot, ended) = answers.send().unwrap().finish().await;
    ended.unwrap();
    let said: Vec<_> =
        snapshot.messages().iter().map(|message| message.text().unwrap_or_default().to_string()).collect();
    assert_eq!(said, ["1 + 2?", "", "3", "You said \"yes\"."]);
    assert!(second.thread().interrupts().is_empty() && second.thread().pending_calls().next().is_none());
}

#[tokio::test]
async fn the_format_is_what_the_client_accepts() {
    let url = serve_agent(greeter()).await;
    let formats = [
        ("text/event-stream", Format::Sse),
        ("*/*", Format::Sse),
        ("", Format::Sse),
        ("text/html", Format::Sse),
        #[cfg(feature = "protobuf")]
        ("application/vnd.ag-ui.event+proto", Format::Protobuf),
        #[cfg(feature = "protobuf")]
        ("text/event-stream;q=0.4, application/vnd.ag-ui.event+proto;q=0.5", Format::Protobuf),
        #[cfg(feature = "protobuf")]
        ("text/event-stream, application/vnd.ag-ui.event+proto", Format::Sse),
        #[cfg(feature = "protobuf")]
        ("*/*, text/event-stream;q=0", Format::Protobuf),
    ];
    for (accept, format) in formats {
        let response = post_json(&url, INPUT, accept).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], format.media_type(), "{accept}");
        assert_eq!(response.headers()["cache-control"], "no-cache");
        let body = response.bytes_stream();
        let events: Vec<_> = match format {
            #[cfg(feature = "protobuf")]
            Format::Protobuf => body.protobuf().events().try_collect().await.unwrap(),
            _ => body.sse().events().try_collect().await.unwrap(),
        };
        assert_eq!(events.len(), 5, "{accept}");
    }
}

#[tokio::test]
async fn an_invalid_input_is_rejected_with_rule_and_path() {
    let url = serve_agent(greeter()).await;
    for (body, status, rule, path) in [
        ("{", 400, Some("E9"), Some("")),
        ("[]", 422, Some("E5"), Some("")),
        (r#"{"threadId": "t", "messages": []}"#, 422, Some("E5"), Some("/runId")),
        (
            r#"{"threadId": "t", "runId": "r", "messages": [{"id": 1, "role": "user", "content": ""}]}"#,
            422,
            Some("E5"),
            Some("/messages/0/id"),
        ),
        (&format!("{INPUT}{}", " ".repeat(1000)), 413, None, None),
    ] {
        let response = post_json(&url, body, "*/*").await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (status, &"application/json".parse().unwrap()),
            "{body}"
        );
        let answer: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        assert_eq!(answer["error"]["rule"].as_str(), rule, "{answer}");
        assert_eq!(answer["error"]["path"].as_str(), path, "{answer}");
        assert!(answer["error"]["message"].is_string());
    }
    let response = Client::new().post(&url).header("content-type", "text/plain").body(INPUT).send().await.unwrap();
    assert_eq!(response.status(), 415);
    // A request without a content type is accepted.
    assert_eq!(Client::new().post(&url).body(INPUT).send().await.unwrap().status(), 200);
}

async fn types(url: &str) -> Vec<Event> {
    post_json(url, INPUT, "").await.bytes_stream().sse().events().try_collect().await.unwrap()
}

#[tokio::test]
async fn r1_r5_the_client_is_told_of_every_failure() {
    let started = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"});
    let finished = json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"});
    let end = json!({"type": "TEXT_MESSAGE_END", "messageId": "m"});
    for (agent, message) in [
        (Replay::unreachable("secret"), "the agent broke the run off"),
        (Replay::new([started.clone()]).failing("secret"), "the agent broke the run off"),
        (Replay::new([started.clone(), end]), "S2: TEXT_MESSAGE_END (event 1)"),
        (Replay::new([started.clone()]), "R8: truncated"),
    ] {
        let events = types(&serve_agent(agent).await).await;
        let Some(Event::RunError(error)) = events.last() else { panic!("{events:?}") };
        assert!(error.message.starts_with(message), "{}", error.message);
    }
    // R8a: an error after the end of a run does not change its outcome.
    let events = types(&serve_agent(Replay::new([started, finished]).failing("late")).await).await;
    assert!(matches!(events.last(), Some(Event::RunFinished(_))));
}

#[tokio::test]
async fn a_silent_run_is_kept_alive_and_dropped_with_its_client() {
    struct Gone(Option<tokio::sync::oneshot::Sender<()>>);

    impl Drop for Gone {
        fn drop(&mut self) {
            let _ = self.0.take().map(|gone| gone.send(()));
        }
    }

    let (gone, is_gone) = tokio::sync::oneshot::channel();
    let gone = std::sync::Mutex::new(Some(Gone(Some(gone))));
    let agent = producer::agent(move |_| {
        let gone = gone.lock().unwrap().take();
        async move {
            std::future::pending::<()>().await;
            drop(gone);
            Ok(())
        }
    });
    let url = serve_agent(agent).await;
    let mut body = post_json(&url, INPUT, "").await.bytes_stream();
    let mut seen = String::new();
    while !seen.contains("\n:\n\n") {
        seen.push_str(std::str::from_utf8(&body.next().await.unwrap().unwrap()).unwrap());
    }
    drop(body);
    is_gone.await.unwrap();
}

#[tokio::test]
async fn a_response_takes_events_of_any_type() {
    let handler = |request: RunRequest| async move {
        let (thread, run) = (request.input.thread_id.clone(), request.input.run_id.clone());
        request.respond(stream::iter([
            Event::run_started(thread.clone(), run.clone()),
            Event::text_chunk("m", "chunks are expanded"),
            Event::run_finished(thread, run),
        ]))
    };
    let url = serve(Router::new().route("/agent", post(handler))).await;
    assert_eq!(types(&url).await.len(), 5);
}
