//! A chat in the terminal with any AG-UI agent behind HTTP or WebSocket.
//!
//! ```sh
//! cargo run --example chat --features full -- http://127.0.0.1:8000/agent
//! cargo run --example chat --features full -- ws://127.0.0.1:8000/agent
//! ```
//!
//! Ctrl-C aborts a run; at the prompt it ends the program, as does the end of the input. A bearer token
//! is taken from the variable `AG_UI_TOKEN`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::error::Error as StdError;
use std::io::Write;
use std::iter::successors;
use std::time::SystemTime;

use ag_ui_stream::client::{HttpAgent, WebSocketAgent};
use ag_ui_stream::event::Interrupt;
use ag_ui_stream::id::{IdGenerator, RandomIds};
use ag_ui_stream::input::{Resume, ResumeEntry};
use ag_ui_stream::message::{Message, UserMessage};
use ag_ui_stream::snapshot::RunOutcome;
use ag_ui_stream::snapshot::Snapshot;
use ag_ui_stream::{Agent, AgentExt, Error, Event, RunAgentInput};
use futures::StreamExt;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use tokio::signal::ctrl_c;

type Prompts = Lines<BufReader<Stdin>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    let Some(url) = std::env::args().nth(1) else {
        return Err("usage: chat URL".into());
    };
    let agent = agent_at(&url)?;

    let mut prompts = BufReader::new(tokio::io::stdin()).lines();
    let mut ids = RandomIds::new();
    let thread = ids.next_id();
    let mut messages: Vec<Message> = Vec::new();
    let mut state = None;
    while let Some(prompt) = ask(&mut prompts, "> ").await? {
        if prompt.trim().is_empty() {
            continue;
        }
        messages.push(UserMessage::new(ids.next_id(), prompt.as_str()).into());
        let mut resume = None;
        // While the agent asks questions, they are answered and a next run continues.
        loop {
            let mut input = RunAgentInput::new(thread.as_str(), ids.next_id(), messages.clone());
            input.state = state.clone();
            input.resume = resume.take();
            let Some(snapshot) = run(&*agent, input).await else { break };
            let next = snapshot.next_input(thread.as_str(), "");
            (messages, state) = (next.messages, next.state);
            let Some(ended) = snapshot.run() else { break };
            match &ended.outcome {
                RunOutcome::Interrupt { .. } => resume = Some(answer(&mut prompts, snapshot.resume()).await?),
                RunOutcome::Error { message, .. } => eprintln!("[the run failed: {}]", plain(message)),
                RunOutcome::Cancelled => eprintln!("[cancelled]"),
                _ => {}
            }
            if resume.is_none() {
                break;
            }
        }
    }
    Ok(())
}

fn agent_at(url: &str) -> Result<Box<dyn Agent>, Box<dyn StdError>> {
    let token = std::env::var("AG_UI_TOKEN").ok();
    if url.starts_with("ws:") || url.starts_with("wss:") {
        let mut builder = WebSocketAgent::builder(url);
        if let Some(token) = token {
            builder = builder.bearer(token);
        }
        return Ok(Box::new(builder.build()?));
    }
    let mut builder = HttpAgent::builder(url);
    if let Some(token) = token {
        builder = builder.bearer(token);
    }
    Ok(Box::new(builder.build()?))
}

/// Runs the agent and shows its events; gives the conversation after the run, however it ended, or
/// `None` if it did not begin.
async fn run(agent: &dyn Agent, input: RunAgentInput) -> Option<Snapshot> {
    // Dropping the run, or the wait for it, aborts it.
    let started = tokio::select! {
        started = agent.updates(input) => started,
        _ = ctrl_c() => Err(Error::Source("aborted".into())),
    };
    let mut updates = match started {
        Ok(updates) => updates,
        Err(error) => {
            complain(&error);
            return None;
        }
    };
    loop {
        let update = tokio::select! {
            update = updates.next() => update,
            _ = ctrl_c() => Some(Err(Error::Source("aborted".into()))),
        };
        match update {
            Some(Ok(update)) => {
                if let Some(warning) = update.warning() {
                    eprintln!("\n[{}]", plain(&warning.to_string()));
                }
                if let Some(event) = update.event() {
                    show(event);
                }
            }
            Some(Err(error)) => {
                println!();
                complain(&error);
                break;
            }
            None => break,
        }
    }
    Some(updates.snapshot().clone())
}

/// An event as it comes.
fn show(event: &Event) {
    match event {
        Event::TextMessageContent(content) => print!("{}", plain(&content.delta)),
        Event::TextMessageEnd(_) | Event::ReasoningMessageEnd(_) => println!(),
        Event::ReasoningMessageStart(_) => print!("(thinking) "),
        Event::ReasoningMessageContent(content) => print!("{}", plain(&content.delta)),
        Event::ToolCallStart(call) => print!("[tool {} ", plain(&call.tool_call_name)),
        Event::ToolCallArgs(arguments) => print!("{}", plain(&arguments.delta)),
        Event::ToolCallEnd(_) => println!("]"),
        Event::ToolCallResult(result) => {
            let text = result.content.text();
            println!("[result {}]", text.map_or_else(|| "without text".to_owned(), |text| plain(&text.to_cow())));
        }
        Event::StepStarted(step) => println!("[step {}]", plain(&step.step_name)),
        _ => {}
    }
    // If the terminal is gone, the next prompt ends the program.
    let _ = std::io::stdout().flush();
}

/// An answer to each question; an empty one abandons it.
async fn answer(prompts: &mut Prompts, mut resume: Resume) -> Result<Vec<ResumeEntry>, Box<dyn StdError>> {
    let questions: Vec<Interrupt> = resume.open().cloned().collect();
    for question in questions {
        let text = question.message.as_ref().unwrap_or(&question.reason);
        let line = ask(prompts, &format!("{} ", plain(text))).await?.unwrap_or_default();
        if line.trim().is_empty() {
            continue;
        }
        // Valid JSON as JSON, everything else as text.
        let value = serde_json::from_str(&line).ok().filter(|value: &Value| !value.is_null());
        if let Err(error) = resume.resolve(question.id, value.unwrap_or(Value::String(line)), SystemTime::now()) {
            complain(&error);
        }
    }
    resume.cancel_rest();
    Ok(resume.into_entries()?)
}

/// The next line; `None` at the end of the input and for Ctrl-C.
async fn ask(prompts: &mut Prompts, prompt: &str) -> std::io::Result<Option<String>> {
    print!("{prompt}");
    std::io::stdout().flush()?;
    tokio::select! {
        line = prompts.next_line() => line,
        _ = ctrl_c() => {
            println!();
            // There is no other way to stop the thread that waits for a line.
            std::process::exit(0)
        }
    }
}

fn complain(error: &dyn StdError) {
    let causes: Vec<_> = successors(Some(error), |&error| error.source()).map(ToString::to_string).collect();
    eprintln!("[{}]", plain(&causes.join(": ")));
}

/// Text without characters that move the cursor or change colours, as it comes from the agent.
fn plain(text: &str) -> String {
    text.chars().filter(|&c| !c.is_control() || c == '\n' || c == '\t').collect()
}
