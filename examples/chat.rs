//! A chat in the terminal with any AG-UI agent behind HTTP or WebSocket.
//!
//! ```sh
//! cargo run --example chat --features full -- http://127.0.0.1:8000/agent
//! cargo run --example chat --features full -- ws://127.0.0.1:8000/agent
//! ```
//!
//! Ctrl-C aborts a run; at the prompt it ends the program, and so does the end of the input. A bearer token is
//! read from the environment variable `AG_UI_TOKEN`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::error::Error as StdError;
use std::io::Write;
use std::iter::successors;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ag_ui_stream::client::{HttpAgent, WebSocketAgent};
use ag_ui_stream::conversation::{Answers, Consent, Conversation, Thread, Tools, Turn};
use ag_ui_stream::event::Interrupt;
use ag_ui_stream::id::{IdGenerator, RandomIds};
use ag_ui_stream::input::Tool;
use ag_ui_stream::snapshot::RunOutcome;
use ag_ui_stream::{Agent, Error, Event};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use tokio::signal::ctrl_c;
use tokio::sync::Mutex;

/// The terminal, shared by the chat and by the question for consent to a tool.
type Prompts = Arc<Mutex<Lines<BufReader<Stdin>>>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    let Some(url) = std::env::args().nth(1) else {
        return Err("usage: chat URL".into());
    };
    let prompts: Prompts = Arc::new(Mutex::new(BufReader::new(tokio::io::stdin()).lines()));
    let thread = Thread::new(RandomIds::new().next_id());
    let mut conversation = Conversation::new(agent_at(&url)?, thread).with_tools(tools(&prompts));
    while let Some(prompt) = ask(&prompts, "> ").await? {
        if prompt.trim().is_empty() {
            continue;
        }
        let mut is_well = show(conversation.send(prompt)).await;
        // As long as the agent asks questions, they are answered and the agent goes on.
        while is_well && !conversation.thread().interrupts().is_empty() {
            let mut answers = conversation.answers();
            answer(&prompts, &mut answers).await?;
            is_well = show(answers.send()?).await;
        }
    }
    Ok(())
}

/// The tools that the agent may call on this machine.
fn tools(prompts: &Prompts) -> Tools {
    let prompts = Arc::clone(prompts);
    Tools::new()
        .with(Tool::new("current_time", "The time, in seconds since 1970."), |_: Value| async {
            Ok(json!({"seconds": SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs()}))
        })
        .with_consent(move |call| {
            let prompts = Arc::clone(&prompts);
            async move {
                let line = ask(&prompts, &format!("[may it call {}? y/n] ", plain(&call.function.name))).await;
                match line {
                    Ok(Some(line)) if line.trim() == "y" => Consent::Allow,
                    _ => Consent::Deny("the user did not allow it".to_owned()),
                }
            }
        })
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

/// Shows a turn as it comes; returns whether it ended with success.
async fn show(mut turn: Turn<'_>) -> bool {
    loop {
        // Dropping the turn aborts it.
        let update = tokio::select! {
            update = turn.next() => update,
            _ = ctrl_c() => Some(Err(Error::Source("aborted".into()))),
        };
        match update {
            Some(Ok(update)) => {
                if let Some(warning) = update.warning() {
                    eprintln!("\n[{}]", plain(&warning.to_string()));
                }
                if let Some(event) = update.event() {
                    show_event(event);
                }
            }
            Some(Err(error)) => {
                println!();
                complain(&error);
                return false;
            }
            None => break,
        }
    }
    match turn.snapshot().run().map(|run| &run.outcome) {
        Some(RunOutcome::Error { message, .. }) => eprintln!("[the run failed: {}]", plain(message)),
        Some(RunOutcome::Cancelled) => eprintln!("[cancelled]"),
        _ => {}
    }
    true
}

/// Shows one event.
fn show_event(event: &Event) {
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

/// Asks the user for an answer to each question; an empty answer abandons it.
async fn answer(prompts: &Prompts, answers: &mut Answers<'_>) -> Result<(), Box<dyn StdError>> {
    let questions: Vec<Interrupt> = answers.interrupts().cloned().collect();
    for question in questions {
        let text = question.message.as_ref().unwrap_or(&question.reason);
        let line = ask(prompts, &format!("{} ", plain(text))).await?.unwrap_or_default();
        if line.trim().is_empty() {
            continue;
        }
        // Valid JSON as JSON, everything else as text.
        let value = serde_json::from_str(&line).ok().filter(|value: &Value| !value.is_null());
        if let Err(error) = answers.resolve(question.id, value.unwrap_or(Value::String(line))) {
            complain(&error);
        }
    }
    answers.decline_rest("the user does not answer");
    Ok(())
}

/// The next line; `None` at the end of the input and for Ctrl-C.
async fn ask(prompts: &Prompts, prompt: &str) -> std::io::Result<Option<String>> {
    print!("{prompt}");
    std::io::stdout().flush()?;
    let mut lines = prompts.lock().await;
    tokio::select! {
        line = lines.next_line() => line,
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
