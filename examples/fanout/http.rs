//! The gateway: an HTTP server through which clients begin and watch runs, as server-sent events.
//!
//! | request | answer |
//! |---|---|
//! | `POST /agent`, a `RunAgentInput` | the run, which is also published; it goes on if the client disconnects |
//! | `GET /threads/THREAD/runs/RUN` | the events so far, then the others as they come |
//! | the same with `?after=N`, or the header `Last-Event-ID: N` | those after a position |
//!
//! The `id` of every event is its position, so that an `EventSource` that reconnects continues where it was, at any
//! gateway. AG-UI 1.0 has no resumption: other clients ignore the `id`.
//!
//! | status | means |
//! |---|---|
//! | 204 | the run is over, and the viewer has all of it |
//! | 400 | the position is an invalid number |
//! | 404 | there is no such run, or it is no longer kept |
//! | 409 | the thread has a run of this name already |
//! | 410 | the events after this position are gone; the body says which is the first that is left |
//!
//! A run that was cut off ends with a `RUN_ERROR` with the code `TRUNCATED`. If a gateway cannot go on, it breaks
//! the body off: the viewer reconnects and is told why, or is served by another gateway.

use std::error::Error as StdError;
use std::iter::successors;
use std::sync::Arc;
use std::time::Duration;

use ag_ui_stream::codec::Format;
use ag_ui_stream::event::RunErrorEvent;
use ag_ui_stream::{Agent, AgentExt, Event, RunAgentInput};
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::{Stream, StreamExt, stream};
use serde_json::json;
use tokio::time::timeout;

use crate::log::{Entry, What};
use crate::publish::{PublishError, Publisher};
use crate::read::{ReadError, Reading, Runs};

/// After this long without an event, a comment shows that the connection is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What a gateway does.
pub fn router(runs: Runs, agent: Arc<dyn Agent>) -> Router {
    Router::new()
        .route("/agent", post(begin).with_state((runs.clone(), agent)))
        .route("/threads/{thread}/runs/{run}", get(watch).with_state(runs))
}

async fn begin(State((runs, agent)): State<(Runs, Arc<dyn Agent>)>, body: Bytes) -> Response {
    let input = match RunAgentInput::from_json(&body) {
        Ok((input, _)) => input,
        Err(error) => return (StatusCode::UNPROCESSABLE_ENTITY, error.to_string()).into_response(),
    };
    let (thread, run) = (input.thread_id.to_string(), input.run_id.to_string());
    let publisher = match Publisher::claim(runs.broker().clone(), &thread, &run, runs.keep().clone()).await {
        Ok(publisher) => publisher,
        Err(error @ PublishError::Taken) => return (StatusCode::CONFLICT, error.to_string()).into_response(),
        Err(error) => return unavailable(&error),
    };
    let name = run.clone();
    tokio::spawn(async move {
        // If the agent cannot be run, the run ends with that error.
        let items = match agent.items(input).await {
            Ok(items) => items.left_stream(),
            Err(error) => stream::iter([Err(error)]).right_stream(),
        };
        let mut written = std::pin::pin!(publisher.publish(items));
        while let Some(written) = written.next().await {
            if let Err(error) = written {
                report(&name, &error);
            }
        }
    });
    answer(&runs, &thread, &run, 0).await
}

async fn watch(
    State(runs): State<Runs>,
    Path((thread, run)): Path<(String, String)>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    // A browser that comes back asks by the header, at the address of its first request.
    let again = headers.get("last-event-id").map(|id| id.to_str().unwrap_or_default());
    let asked = uri.query().unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("after="));
    match again.or(asked).unwrap_or("0").parse() {
        Ok(after) if after < u64::MAX => answer(&runs, &thread, &run, after).await,
        _ => (StatusCode::BAD_REQUEST, "invalid position: not a number").into_response(),
    }
}

async fn answer(runs: &Runs, thread: &str, run: &str, after: u64) -> Response {
    match runs.read(thread, run, after).await {
        Ok(reading) if reading.is_over() => StatusCode::NO_CONTENT.into_response(),
        Ok(reading) => {
            let head = [(header::CONTENT_TYPE, Format::Sse.media_type()), (header::CACHE_CONTROL, "no-store")];
            (head, Body::from_stream(body(reading, run.to_owned()))).into_response()
        }
        Err(error @ ReadError::NoRun) => (StatusCode::NOT_FOUND, error.to_string()).into_response(),
        Err(error @ ReadError::Gone { asked, first }) => {
            let body = json!({"error": error.to_string(), "asked": asked, "first": first});
            (StatusCode::GONE, Json(body)).into_response()
        }
        Err(error) => unavailable(&error),
    }
}

/// The entries as server-sent events, with comments while no entry comes.
pub fn body(reading: Reading, run: String) -> impl Stream<Item = Result<Vec<u8>, ReadError>> {
    stream::unfold((reading.entries(), run), |(mut entries, run)| async {
        let piece = match timeout(KEEP_ALIVE, entries.next()).await {
            Err(_) => Ok(b":\n\n".to_vec()),
            Ok(entry) => entry?.map(|entry| frame(&entry)).inspect_err(|error| report(&run, error)),
        };
        Some((piece, (entries, run)))
    })
}

fn frame(entry: &Entry) -> Vec<u8> {
    let json = match &entry.what {
        What::Event(json) | What::Last(json) => json.clone(),
        What::Cut(reason) => {
            let mut error = RunErrorEvent::new(reason.clone());
            error.code = Some("TRUNCATED".into());
            serde_json::to_vec(&Event::from(error)).unwrap_or_default().into()
        }
    };
    let mut frame = format!("id: {}\ndata: ", entry.position).into_bytes();
    frame.extend_from_slice(&json);
    frame.extend_from_slice(b"\n\n");
    frame
}

fn unavailable(error: &dyn StdError) -> Response {
    report("none", error);
    (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response()
}

/// An error with all its causes.
fn report(run: &str, error: &dyn StdError) {
    let all: Vec<_> = successors(Some(error), |&error| error.source()).map(ToString::to_string).collect();
    eprintln!("run {run}: {}", all.join(": "));
}
