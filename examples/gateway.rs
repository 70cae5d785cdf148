//! A proxy before an agent: what goes through is what the protocol allows, and what does not is
//! logged.
//!
//! ```sh
//! cargo run --example gateway --features full -- http://127.0.0.1:8000/agent 127.0.0.1:8001
//! ```
//!
//! After the first violation nothing passes; the client is told by a `RUN_ERROR`, unless its run
//! was over by then.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::error::Error as StdError;
use std::iter::successors;
use std::time::Duration;

use ag_ui_stream::client::HttpAgent;
use ag_ui_stream::codec::Format;
use ag_ui_stream::{EncodeStreamExt, EventStreamExt, RunAgentInput};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::TryStreamExt;
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
    let router = Router::new().route("/agent", post(gateway)).with_state(HttpAgent::new(upstream)?);
    Ok(axum::serve(listener, router).await?)
}

async fn gateway(State(upstream): State<HttpAgent>, body: Bytes) -> Response {
    let input = match RunAgentInput::from_json(&body) {
        Ok((input, warnings)) => {
            for warning in warnings {
                eprintln!("input: warning: {warning}");
            }
            input
        }
        Err(error) => return (StatusCode::UNPROCESSABLE_ENTITY, error.to_string()).into_response(),
    };
    let run = input.run_id.to_string();
    match upstream.start(input).await {
        // To drop the response, as the server does when its client goes, is to drop the run.
        Ok(events) => {
            let name = run.clone();
            let items = events
                .items()
                .inspect_ok(move |item| {
                    if let Some(warning) = item.warning() {
                        eprintln!("run {name}: warning: {warning}");
                    }
                })
                .inspect_err(move |error| eprintln!("run {run}: {}", chain(error)));
            let body = items.or_run_error().to_sse().keep_alive(Duration::from_secs(15));
            ([(header::CONTENT_TYPE, Format::Sse.media_type())], Body::from_stream(body)).into_response()
        }
        Err(error) => {
            eprintln!("run {run}: {}", chain(&error));
            (StatusCode::BAD_GATEWAY, "the agent cannot be run").into_response()
        }
    }
}

/// An error with all its causes.
fn chain(error: &dyn StdError) -> String {
    let all: Vec<_> = successors(Some(error), |&error| error.source()).map(ToString::to_string).collect();
    all.join(": ")
}
