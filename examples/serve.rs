//! A server with a demonstration agent that needs no model: it repeats what you say, word by word.
//!
//! ```sh
//! cargo run --example serve --features full             # 127.0.0.1:8000, or another address
//! cargo run --example chat --features full -- http://127.0.0.1:8000/agent
//! cargo run --example chat --features full -- ws://127.0.0.1:8000/agent
//! ```
//!
//! Some words make it do more: `tool` calls a tool, `think` reasons aloud, `team` has two subagents and a
//! state, `ask` stops with a question, `fail` fails. The page of `examples/web` is served too, once it is built.

#![allow(clippy::print_stdout, reason = "a program")]

use std::pin::pin;
use std::time::Duration;

use ag_ui_stream::agent::AgentError;
use ag_ui_stream::event::Interrupt;
use ag_ui_stream::producer::{self, Finish, ProducedRun, RunContext};
use ag_ui_stream::server::{RunRequest, RunResponse};
use ag_ui_stream::{EncodeStreamExt, RunAgentInput};
use axum::Router;
use axum::extract::ws::{CloseFrame, Message, WebSocketUpgrade, close_code};
use axum::response::Response;
use axum::routing::post;
use futures::{StreamExt, try_join};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::sleep;

#[path = "serve/page.rs"]
mod page;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".to_owned());
    let listener = TcpListener::bind(&address).await?;
    let address = listener.local_addr()?;
    println!("an agent at http://{address}/agent and ws://{address}/agent");
    let agent = Router::new().route("/agent", post(over_http).get(over_websocket));
    axum::serve(listener, agent.merge(page::routes())).await
}

/// The input of a run in, its events out.
async fn over_http(request: RunRequest) -> RunResponse {
    let run = run(request.input.clone());
    request.respond(run)
}

/// The same over WebSocket, with one message for the input and one for each event.
async fn over_websocket(upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(|mut socket| async move {
        let Some(Ok(Message::Text(text))) = socket.recv().await else { return };
        let (code, reason) = match RunAgentInput::from_json(text.as_str()) {
            Err(error) => (close_code::INVALID, error.to_string()),
            Ok((input, _)) => {
                let mut texts = pin!(run(input).to_json());
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
        // The reason is cut to what fits into the frame.
        let reason: String = reason.chars().take(30).collect();
        let _ = socket.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await;
    })
}

fn run(input: RunAgentInput) -> ProducedRun {
    println!("run {} of thread {}", input.run_id, input.thread_id);
    producer::run(input, answer)
}

/// What the agent does with an input.
async fn answer(run: RunContext) -> Result<Finish, AgentError> {
    if let Some(answers) = &run.input().resume {
        for answer in answers {
            let payload = answer.payload.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
            say(&run, &format!("The question was {}: {payload}.", answer.status)).await?;
        }
        return Ok(Finish::new());
    }
    let asked = run.input().messages.last().and_then(|message| Some(message.text()?.to_string())).unwrap_or_default();
    if asked.contains("think") {
        let mut thought = run.open_reasoning().await?;
        for piece in ["That ", "is ", "a ", "hard ", "one."] {
            sleep(PACE).await;
            thought.push(piece).await?;
        }
    }
    if asked.contains("tool") {
        let call = run.tool_call("meaning", &json!({"of": "everything"})).await?;
        sleep(PACE).await;
        run.tool_result(&call, "42").await?;
    }
    if asked.contains("team") {
        run.state(&json!({"done": []})).await?;
        let (reader, critic) = (run.subagent("reader").await?, run.subagent("critic").await?);
        try_join!(say(&reader, "I read it from the first page to the last."), say(&critic, "I doubt every word."))?;
        reader.end().await?;
        run.state(&json!({"done": ["reader"]})).await?;
        critic.end().await?;
        run.state(&json!({"done": ["reader", "critic"]})).await?;
    }
    if asked.contains("ask") {
        let mut question = Interrupt::new(run.fresh_id(), "confirmation");
        question.message = Some("Are you sure?".into());
        return Ok(Finish::interrupt(question));
    }
    say(&run, &format!("You said: {asked}")).await?;
    if asked.contains("fail") { Err("as you wished".into()) } else { Ok(Finish::new()) }
}

/// How long a word takes.
const PACE: Duration = Duration::from_millis(40);

/// A message, word by word.
async fn say(run: &RunContext, text: &str) -> Result<(), AgentError> {
    let mut message = run.open_text().await?;
    for word in text.split_inclusive(char::is_whitespace) {
        sleep(PACE).await;
        message.push(word).await?;
    }
    message.end().await?;
    Ok(())
}
