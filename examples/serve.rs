//! A server with a demonstration agent that needs no model: it repeats what you say, word by word.
//!
//! ```sh
//! cargo run --example serve --features full             # 127.0.0.1:8000, or another address
//! cargo run --example chat --features full -- http://127.0.0.1:8000/agent
//! cargo run --example chat --features full -- ws://127.0.0.1:8000/agent
//! ```
//!
//! Some words make it do more: `tool` calls a tool, `think` reasons aloud, `ask` stops with a
//! question, `fail` fails, `break` stops in the middle of a sentence.

#![allow(clippy::print_stdout, reason = "a program")]

use std::pin::pin;
use std::time::Duration;

use ag_ui_stream::codec::Format;
use ag_ui_stream::event::{Interrupt, InterruptOutcome, RunFinishedEvent, RunStartedEvent};
use ag_ui_stream::input::PROTOCOL_VERSION;
use ag_ui_stream::{EncodeStreamExt, Event, EventStreamExt, RunAgentInput};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ws::{CloseFrame, Message, WebSocketUpgrade, close_code};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::{Stream, StreamExt, stream};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".to_owned());
    let listener = TcpListener::bind(&address).await?;
    let address = listener.local_addr()?;
    println!("an agent at http://{address}/agent and ws://{address}/agent");
    axum::serve(listener, Router::new().route("/agent", post(over_http).get(over_websocket))).await
}

/// The input of a run in, its events out.
async fn over_http(body: Bytes) -> Response {
    let input = match RunAgentInput::from_json(&body) {
        Ok((input, _)) => input,
        Err(error) => return (StatusCode::UNPROCESSABLE_ENTITY, error.to_string()).into_response(),
    };
    // Expanded and verified on the way out: whatever the script, a client never takes a broken run for a
    // complete one.
    let body = events_of(input).items().to_sse().keep_alive(Duration::from_secs(15));
    ([(header::CONTENT_TYPE, Format::Sse.media_type())], Body::from_stream(body)).into_response()
}

/// The same, with one message for the input and one for each event.
async fn over_websocket(upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(|mut socket| async move {
        let Some(Ok(Message::Text(text))) = socket.recv().await else { return };
        let (code, reason) = match RunAgentInput::from_json(text.as_str()) {
            Err(error) => (close_code::INVALID, error.to_string()),
            Ok((input, _)) => {
                let mut texts = pin!(events_of(input).items().to_json());
                loop {
                    match texts.next().await {
                        Some(Ok(text)) => {
                            if socket.send(Message::text(text)).await.is_err() {
                                return;
                            }
                        }
                        Some(Err(error)) => break (close_code::ERROR, error.to_string()),
                        None => break (close_code::NORMAL, String::new()),
                    }
                }
            }
        };
        // As much as fits into the frame.
        let reason: String = reason.chars().take(30).collect();
        let _ = socket.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await;
    })
}

fn events_of(input: RunAgentInput) -> impl Stream<Item = Event> + Send {
    println!("run {} of thread {}", input.run_id, input.thread_id);
    stream::iter(script(input)).then(|event| async {
        tokio::time::sleep(Duration::from_millis(40)).await;
        event
    })
}

/// The events of the agent for an input.
fn script(input: RunAgentInput) -> Vec<Event> {
    let asked = input.messages.last().and_then(|message| Some(message.text()?.to_string())).unwrap_or_default();
    let run = input.run_id.as_str();
    let id = |kind: &str| format!("{run}-{kind}");

    let mut started = RunStartedEvent::new(input.thread_id.clone(), input.run_id.clone());
    started.protocol_version = Some(PROTOCOL_VERSION.into());
    let mut events = vec![Event::from(started)];
    let mut finished = RunFinishedEvent::new(input.thread_id.clone(), input.run_id.clone());

    if let Some(answers) = &input.resume {
        for answer in answers {
            let payload = answer.payload.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
            events.extend(say(&id("answer"), &format!("The question was {}: {payload}.", answer.status)));
        }
        events.push(finished.into());
        return events;
    }
    if asked.contains("think") {
        for piece in ["That ", "is ", "a ", "hard ", "one."] {
            events.push(Event::reasoning_chunk(id("thought"), piece));
        }
    }
    if asked.contains("tool") {
        for piece in ["{\"of\":", "\"everything\"", "}"] {
            events.push(Event::tool_call_chunk(id("call"), "meaning", piece));
        }
        events.push(Event::tool_call_result(id("result"), id("call"), "42"));
    }
    if asked.contains("ask") {
        let mut question = Interrupt::new(id("question"), "confirmation");
        question.message = Some("Are you sure?".into());
        finished.outcome = Some(InterruptOutcome::new(question).into());
        events.push(finished.into());
        return events;
    }
    events.extend(say(&id("answer"), &format!("You said: {asked}")));
    match () {
        () if asked.contains("break") => events.truncate(events.len() - 1),
        () if asked.contains("fail") => events.push(Event::run_error("as you wished")),
        () => events.push(finished.into()),
    }
    events
}

/// A message, word by word.
fn say(id: &str, text: &str) -> Vec<Event> {
    text.split_inclusive(char::is_whitespace).map(|word| Event::text_chunk(id, word)).collect()
}
