//! A proxy in front of an agent: it passes on legal events and logs the rest.
//!
//! ```sh
//! cargo run --example gateway --features full -- http://127.0.0.1:8000/agent 127.0.0.1:8001
//! ```
//!
//! After the first violation nothing passes; the client gets a `RUN_ERROR`, unless its run was over by
//! then.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::error::Error as StdError;
use std::iter::successors;
use std::sync::Arc;

use ag_ui_stream::client::HttpAgent;
use ag_ui_stream::id::RunId;
use ag_ui_stream::layer::{Observe, Seen};
use ag_ui_stream::server::{RunRequest, RunResponse};
use ag_ui_stream::{Agent, AgentExt, Item};
use axum::Router;
use axum::extract::State;
use axum::routing::post;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    let mut arguments = std::env::args().skip(1);
    let Some(upstream) = arguments.next() else {
        return Err("usage: gateway URL [ADDRESS]".into());
    };
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8001".to_owned());
    let listener = TcpListener::bind(&address).await?;
    println!("a gateway at http://{}/agent", listener.local_addr()?);
    let upstream: Arc<dyn Agent> = Arc::new(HttpAgent::new(upstream)?.layer(Observe::new(log)));
    let router = Router::new().route("/agent", post(gateway)).with_state(upstream);
    Ok(axum::serve(listener, router).await?)
}

async fn gateway(State(upstream): State<Arc<dyn Agent>>, request: RunRequest) -> RunResponse {
    for warning in &request.warnings {
        eprintln!("input: warning: {warning}");
    }
    // If the client disconnects, the server drops the response, and that drops the run.
    request.run(&*upstream).await
}

fn log(run: &RunId, seen: Seen<'_>) {
    match seen {
        Seen::Item(Item::Warning(warning)) => eprintln!("run {run}: warning: {warning}"),
        Seen::Error(error) => eprintln!("run {run}: {}", chain(error)),
        _ => {}
    }
}

/// An error with all its causes.
fn chain(error: &dyn StdError) -> String {
    let all: Vec<_> = successors(Some(error), |&error| error.source()).map(ToString::to_string).collect();
    all.join(": ")
}
