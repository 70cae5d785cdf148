//! Turns the stream of a chat-completions endpoint into a run: a capture in, AG-UI events out.
//!
//! ```sh
//! cargo run --example relay                   # the capture in `examples/data`, or a file of your own
//! ```
//!
//! The client has to answer the tool calls: the run ends while they are pending.

#![allow(clippy::print_stdout, reason = "a program")]

use std::collections::HashMap;
use std::error::Error as StdError;

use ag_ui_stream::agent::BoxError;
use ag_ui_stream::codec::Piece;
use ag_ui_stream::combinator::pieces;
use ag_ui_stream::event::TokenUsage;
use ag_ui_stream::producer::{self, Delta, Finish};
use ag_ui_stream::{ByteStreamExt, EventStreamExt, Raw, RunAgentInput};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use serde::Deserialize;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn StdError>> {
    let capture = match std::env::args().nth(1) {
        Some(path) => tokio::fs::read(path).await?,
        None => include_bytes!("data/completions.sse").to_vec(),
    };
    // Cut into pieces, as a network does.
    let body = pieces(std::io::Cursor::new(capture));
    let mut updates = producer::from_deltas(RunAgentInput::new("thread", "run", []), deltas(body)).updates();
    while let Some(update) = updates.try_next().await? {
        println!("{update:?}");
    }
    println!("\n{:#?}", updates.snapshot());
    Ok(())
}

/// The pieces of the answer. An answer without `[DONE]` broke off.
fn deltas<B, E>(body: impl Stream<Item = Result<B, E>> + Send) -> impl Stream<Item = Result<Delta, BoxError>> + Send
where
    B: Piece + Send,
    E: StdError + Send + Sync + 'static,
{
    let mut answer = Answer::default();
    let pieces = body.sse().map(move |item| {
        let pieces = match item?.into_raw() {
            Some(Raw::Bytes(json)) if *json == *b"[DONE]" => vec![Delta::Finish(answer.finish())],
            Some(Raw::Bytes(json)) => answer.pieces(serde_json::from_slice(&json)?),
            _ => vec![],
        };
        Ok::<_, BoxError>(stream::iter(pieces.into_iter().map(Ok)))
    });
    pieces.try_flatten().chain(stream::once(async { Err("the answer broke off".into()) }))
}

/// The state that is kept from one chunk of an answer to the next.
#[derive(Default)]
struct Answer {
    /// The calls by index: later pieces of a call have only the index.
    calls: HashMap<u32, String>,
    usage: Option<TokenUsage>,
}

impl Answer {
    fn pieces(&mut self, chunk: Chunk) -> Vec<Delta> {
        if let Some(used) = chunk.usage {
            let mut usage = TokenUsage::new();
            usage.input_tokens = Some(used.prompt_tokens);
            usage.output_tokens = Some(used.completion_tokens);
            self.usage = Some(usage);
        }
        let mut pieces = Vec::new();
        for message in chunk.choices.into_iter().map(|choice| choice.delta) {
            pieces.extend(message.reasoning_content.map(Delta::reasoning));
            pieces.extend(message.content.filter(|text| !text.is_empty()).map(Delta::text));
            for call in message.tool_calls {
                if let Some(id) = call.id {
                    self.calls.insert(call.index, id);
                }
                pieces.push(Delta::ToolCall {
                    id: self.calls.get(&call.index).map(String::as_str).unwrap_or_default().into(),
                    name: call.function.name.map(Into::into),
                    arguments: call.function.arguments.into(),
                });
            }
        }
        pieces
    }

    fn finish(&mut self) -> Finish {
        Finish::new().with_usage(self.usage.take())
    }
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Used>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    reasoning_content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    index: u32,
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    #[serde(default)]
    arguments: String,
}

#[derive(Deserialize)]
struct Used {
    prompt_tokens: u64,
    completion_tokens: u64,
}
