//! Runs three agents as subagents of one run, and draws a lane for each of them in the terminal.
//!
//! ```sh
//! cargo run --example swarm
//! ```

#![allow(clippy::print_stdout, reason = "a program")]
#![allow(clippy::indexing_slicing, reason = "indices of lanes that exist")]

use std::time::Duration;

use ag_ui_stream::agent::AgentError;
use ag_ui_stream::layer::{Coalesce, Filter, merge};
use ag_ui_stream::producer::{self, RunContext};
use ag_ui_stream::{Agent, AgentExt, Error, Event, RunAgentInput};
use futures::TryStreamExt;
use serde_json::json;

const LANES: [&str; 3] = ["researcher", "critic", "writer"];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error<AgentError>> {
    let agents: [Box<dyn Agent>; 3] = [
        Box::new(producer::agent(research)),
        Box::new(producer::agent(criticise)),
        // Hides how the writer counts words.
        Box::new(producer::agent(write).layer(Filter::tools(|name| name != "count_words"))),
    ];
    let swarm = merge(LANES.into_iter().zip(agents)).layer(Coalesce::new());

    let mut lanes = [Lane::Waiting; LANES.len()];
    let mut updates = swarm.updates(RunAgentInput::new("thread", "run", [])).await?;
    while let Some(update) = updates.try_next().await? {
        let Some(event) = update.event() else { continue };
        let Some(at) = event.subagent_run_id().and_then(|owner| LANES.iter().position(|lane| owner == *lane)) else {
            println!("{}  {}", draw(&lanes, None), event.event_type());
            continue;
        };
        let (lane, mark, what) = match event {
            Event::SubagentStarted(_) => (Lane::Running, '┬', "begins".to_owned()),
            Event::SubagentFinished(_) => (Lane::Done, '┴', "is done".to_owned()),
            Event::SubagentError(failed) => (Lane::Done, '✗', failed.message.to_string()),
            Event::TextMessageContent(content) => (Lane::Running, '●', format!("says {:?}", content.delta)),
            Event::ToolCallStart(call) => (Lane::Running, '◇', format!("calls {}", call.tool_call_name)),
            Event::ToolCallResult(result) => {
                (Lane::Running, '◆', format!("is told {}", result.content.text().unwrap_or_default()))
            }
            _ => continue,
        };
        lanes[at] = Lane::Running;
        println!("{}  {} {what}", draw(&lanes, Some((at, mark))), LANES[at]);
        lanes[at] = lane;
    }
    let snapshot = updates.snapshot();
    println!(
        "\n{} messages, {}",
        snapshot.messages().len(),
        snapshot.run().map_or("no run", |run| run.outcome.as_str())
    );
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Lane {
    Waiting,
    Running,
    Done,
}

/// All lanes side by side, with a mark on one of them.
fn draw(lanes: &[Lane], mark: Option<(usize, char)>) -> String {
    let column = |(at, lane): (usize, &Lane)| match (mark, lane) {
        (Some((marked, mark)), _) if marked == at => mark,
        (_, Lane::Running) => '│',
        _ => ' ',
    };
    lanes.iter().enumerate().flat_map(|lane| [column(lane), ' ']).collect()
}

async fn think(ticks: u64) {
    tokio::time::sleep(Duration::from_millis(30 * ticks)).await;
}

async fn research(run: RunContext) -> Result<(), AgentError> {
    for city in ["Ulm", "Bonn"] {
        let call = run.tool_call("weather", &json!({"city": city})).await?;
        think(3).await;
        run.tool_result(&call, format!("mist over {city}")).await?;
    }
    run.text("Mist everywhere.").await?;
    Ok(())
}

async fn criticise(run: RunContext) -> Result<(), AgentError> {
    think(4).await;
    run.text("Two cities are not everywhere.").await?;
    think(1).await;
    Err("lost interest".into())
}

async fn write(run: RunContext) -> Result<(), AgentError> {
    let mut text = run.open_text().await?;
    for line in ["Mist lay ", "over the towns, ", "and nobody minded."] {
        think(2).await;
        for word in line.split_inclusive(' ') {
            text.push(word).await?;
        }
    }
    text.end().await?;
    run.tool_call("count_words", &json!({"language": "en"})).await?;
    Ok(())
}
