//! `fanout`: serves one run to many viewers from many machines, with gateways over Redis Streams.
//!
//! ```sh
//! redis-server --appendonly yes &
//! cargo run --example serve --features full                    # an agent
//! cargo run --example fanout --features full -- serve redis://127.0.0.1 http://127.0.0.1:8000/agent 127.0.0.1:8001
//! cargo run --example fanout --features full -- serve redis://127.0.0.1 http://127.0.0.1:8000/agent 127.0.0.1:8002
//! cargo run --example chat --features full -- http://127.0.0.1:8001/agent
//! cargo run --example fanout --features full -- watch THREAD RUN http://127.0.0.1:8001 http://127.0.0.1:8002
//! cargo run --example fanout --features full -- watch THREAD RUN redis://127.0.0.1
//! cargo run --release --example fanout --features full -- --bench
//! ```
//!
//! `README.md` beside this file says how it works, and what is guaranteed.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]
#![allow(clippy::indexing_slicing, reason = "arrays of two")]
#![allow(unreachable_pub, reason = "the test has a copy of these modules")]

mod bench;
mod broker;
mod follow;
mod http;
mod log;
mod publish;
mod read;
mod server;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use ag_ui_stream::agent::AgentError;
use ag_ui_stream::client::HttpAgent;
use ag_ui_stream::{EventStreamExt, Raw};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use tokio::net::TcpListener;

use crate::broker::Broker;
use crate::follow::follow;
use crate::log::Keep;
use crate::read::Runs;

/// How long the broker, or all gateways, may be unreachable.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["serve", redis, agent] => serve(redis, agent, "127.0.0.1:8001").await,
        ["serve", redis, agent, address] => serve(redis, agent, address).await,
        ["watch", thread, run, gateways @ ..] if !gateways.is_empty() => watch(thread, run, gateways).await,
        ["--bench"] => bench::main().await,
        _ => Err("usage: fanout serve REDIS AGENT [ADDRESS] | watch THREAD RUN GATEWAY… | --bench".into()),
    }
}

async fn serve(redis: &str, agent: &str, address: &str) -> Result<(), Box<dyn Error>> {
    let runs = Runs::new(Broker::new(redis, PATIENCE)?, Keep::default());
    let listener = TcpListener::bind(address).await?;
    println!("a gateway at http://{}/agent", listener.local_addr()?);
    Ok(axum::serve(listener, http::router(runs, Arc::new(HttpAgent::new(agent)?))).await?)
}

/// Prints the conversation's last message as it grows.
async fn watch(thread: &str, run: &str, gateways: &[&str]) -> Result<(), Box<dyn Error>> {
    let raw: BoxStream<'static, Result<Raw, AgentError>> = match gateways {
        [redis] if redis.starts_with("redis") => {
            let runs = Runs::new(Broker::new(redis, PATIENCE)?, Keep::default());
            runs.read(thread, run, 0).await?.events().map_ok(Raw::from).map_err(AgentError::new).boxed()
        }
        _ => {
            let gateways = gateways.iter().map(|&gateway| gateway.to_owned()).collect();
            follow(gateways, thread, run, 0, PATIENCE).map_err(AgentError::new).boxed()
        }
    };
    let mut updates = raw.take_run().updates();
    while let Some(update) = updates.try_next().await? {
        if let Some(message) = update.message() {
            println!("{}: {}", message.role(), message.text().unwrap_or_default());
        }
    }
    Ok(())
}
