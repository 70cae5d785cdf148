//! The benchmark: viewers times events a second, with a broker and without.

use std::error::Error;
use std::time::{Duration, Instant};

use ag_ui_stream::{EncodeStreamExt, EventStreamExt};
use futures::stream::FuturesUnordered;
use futures::{Stream, StreamExt, TryStreamExt, stream};

use crate::broker::Broker;
use crate::http::body;
use crate::log::Keep;
use crate::publish::Publisher;
use crate::read::Runs;
use crate::server::Server;

/// The number of deltas in the run, which has four other events.
const DELTAS: usize = 20_000;

fn run(name: &str) -> impl Stream<Item = String> + Send + use<> {
    let first = [
        format!(r#"{{"type":"RUN_STARTED","threadId":"t","runId":"{name}"}}"#),
        r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}"#.to_owned(),
    ];
    let last = [
        r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#.to_owned(),
        format!(r#"{{"type":"RUN_FINISHED","threadId":"t","runId":"{name}"}}"#),
    ];
    let deltas = (0..DELTAS).map(|n| format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"{n:05}"}}"#));
    stream::iter(first.into_iter().chain(deltas).chain(last))
}

/// Counts the events of a body.
async fn drain<E: Error + Send + 'static>(body: impl Stream<Item = Result<Vec<u8>, E>> + Send) -> usize {
    let mut body = std::pin::pin!(body);
    let mut count = 0;
    while let Some(piece) = body.next().await {
        count += usize::from(piece.is_ok_and(|piece| piece.ends_with(b"}\n\n")));
        // Yields, as a socket would, so that the viewers take turns.
        tokio::task::consume_budget().await;
    }
    count
}

/// Without a broker: every viewer is served by an agent of its own.
async fn without(viewers: usize) -> Result<Duration, Box<dyn Error>> {
    let start = Instant::now();
    let all: FuturesUnordered<_> = (0..viewers).map(|_| tokio::spawn(drain(run("r").items().to_sse()))).collect();
    check(all.try_collect().await?)?;
    Ok(start.elapsed())
}

/// With a broker: one agent, two gateways, and viewers that join before the run begins.
async fn with(broker: &Broker, viewers: usize, name: &str) -> Result<Duration, Box<dyn Error>> {
    let keep = Keep::default();
    let publisher = Publisher::claim(broker.clone(), "t", name, keep.clone()).await?;
    let gateways = [(); 2].map(|()| Runs::new(Broker::clone(broker), keep.clone()));
    let all = FuturesUnordered::new();
    for viewer in 0..viewers {
        let Some(gateway) = gateways.get(viewer % 2) else { continue };
        let reading = gateway.read("t", name, 0).await?;
        all.push(tokio::spawn(drain(body(reading, name.to_owned()))));
    }
    let start = Instant::now();
    let written = tokio::spawn(publisher.publish(run(name).items()).try_fold(0, |_, at| async move { Ok(at) }));
    check(all.try_collect().await?)?;
    let elapsed = start.elapsed();
    written.await??;
    Ok(elapsed)
}

fn check(counts: Vec<usize>) -> Result<(), String> {
    match counts.iter().find(|count| **count != DELTAS + 4) {
        Some(count) => Err(format!("a viewer got {count} events")),
        None => Ok(()),
    }
}

/// Prints the table.
///
/// # Errors
/// If there is no `redis-server`, or if a viewer missed an event.
pub async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::start().map_err(|error| format!("redis-server cannot be started: {error}"))?;
    let broker = Broker::new(&server.url(), Duration::from_secs(10))?;
    println!("{} events; best of 5; viewers × events a second", DELTAS + 4);
    println!("| viewers | without a broker | over Redis | times as long |");
    println!("|---:|---:|---:|---:|");
    for viewers in [1, 10, 100, 1000] {
        let mut best = [Duration::MAX; 2];
        for round in 0..5 {
            best = [
                best[0].min(without(viewers).await?),
                best[1].min(with(&broker, viewers, &format!("{viewers}-{round}")).await?),
            ];
        }
        #[allow(clippy::cast_precision_loss, reason = "a figure to read")]
        let [without, with] = best.map(|time| (viewers * (DELTAS + 4)) as f64 / time.as_secs_f64());
        println!("| {viewers} | {without:.3e} | {with:.3e} | {:.2} |", without / with);
    }
    Ok(())
}
