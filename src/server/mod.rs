//! Serves agents with [axum](https://docs.rs/axum): a request with the input of a run in, a response with its
//! events out.
//!
//! [`RunRequest`] is an extractor, [`RunResponse`] a response. Both depend on `axum-core` only, so they work with
//! every version of axum that uses that version of it.
//!
//! # Examples
//! ```
//! use std::sync::Arc;
//!
//! use ag_ui_stream::server::{RunRequest, RunResponse};
//! use ag_ui_stream::{Agent, producer};
//! use axum::extract::State;
//! use axum::routing::{Router, post};
//!
//! async fn run(State(agent): State<Arc<dyn Agent>>, request: RunRequest) -> RunResponse {
//!     request.run(&*agent).await
//! }
//!
//! let agent = producer::agent(async |run| {
//!     run.text("Hello").await?;
//!     Ok(())
//! });
//! let router: Router = Router::new().route("/agent", post(run)).with_state(Arc::new(agent) as Arc<dyn Agent>);
//! ```

use core::fmt;
use core::time::Duration;

use axum_core::body::Body;
use axum_core::extract::{FromRequest, Request};
use axum_core::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Map, Value, json};

use crate::agent::Agent;
use crate::codec::Format;
use crate::combinator::{BROKEN_OFF, EncodeStreamExt, EventStreamExt, RawInput};
use crate::error::{Error, Limit};
use crate::event::Event;
use crate::item::Item;
use crate::options::Options;
use crate::rule::Rule;
use crate::run_input::RunAgentInput;
use crate::warning::Warning;

/// The request to run an agent: an extractor for handlers of `POST`.
///
/// The body is read as JSON and checked against the schema. Unknown parts are removed with a warning (E1 to E4),
/// which is logged; malformed input is a [`RunRejection`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunRequest {
    /// The input of the run.
    pub input: RunAgentInput,
    /// The warnings about parts that were removed from the input.
    pub warnings: Vec<Warning>,
    /// The format that the client asks for by its `Accept` header; server-sent events if it asks for no format
    /// that is available.
    pub format: Format,
}

impl RunRequest {
    /// Runs an agent, and responds with its events. If the agent cannot be run, the response is a run that
    /// failed, a RUN_ERROR (rule R1), and the error is logged.
    pub async fn run(self, agent: &(impl Agent + ?Sized)) -> RunResponse {
        let options = Options::new().input(&self.input);
        let run = self.input.run_id.as_str().to_owned();
        match agent.run(self.input).await {
            Ok(events) => RunResponse::with(events, options, self.format),
            Err(error) => {
                crate::log::run_failed(Some(&run), &error);
                let failed = Event::run_error(BROKEN_OFF);
                RunResponse::with(stream::iter([failed]), options, self.format)
            }
        }
    }

    /// Responds with the events of a run, in the format that the client asked for.
    pub fn respond<S>(self, events: S) -> RunResponse
    where
        S: Stream<Item: RawInput<Error: fmt::Display>> + Send + 'static,
    {
        let options = Options::new().input(&self.input);
        RunResponse::with(events, options, self.format)
    }
}

impl<S: Send + Sync> FromRequest<S> for RunRequest {
    type Rejection = RunRejection;

    async fn from_request(request: Request, state: &S) -> Result<Self, RunRejection> {
        let content_type = request.headers().get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
        if let Some(found) = content_type.filter(|content_type| !is_json(content_type)) {
            return Err(RunRejection { reason: Reason::ContentType(crate::excerpt::excerpt(found, 80).into()) });
        }
        let format = format_of(request.headers());
        let body = Bytes::from_request(request, state)
            .await
            .map_err(|rejection| RunRejection { reason: Reason::Body(rejection.status(), rejection.body_text()) })?;
        let (input, warnings) =
            RunAgentInput::from_json(&body).map_err(|error| RunRejection { reason: Reason::Input(error) })?;
        warnings.iter().for_each(Warning::log);
        Ok(Self { input, warnings, format })
    }
}

/// Whether a content type means JSON. An absent one does.
fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

fn format_of(headers: &HeaderMap) -> Format {
    let accept: Vec<_> = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    Format::from_accept(&accept.join(",")).unwrap_or(Format::Sse)
}

/// Why a request to run an agent was rejected: a response with a status and a JSON body,
/// `{"error": {"message", "rule", "path"}}`, with the last two if they are known.
///
/// | status | |
/// |---|---|
/// | 400 | the body is invalid JSON, or no input of a run (E9), or could not be read |
/// | 413 | the body is too long |
/// | 415 | the content type is not JSON |
/// | 422 | the input is malformed (E5), or nested too deep |
#[derive(Clone, Debug)]
pub struct RunRejection {
    reason: Reason,
}

#[derive(Clone, Debug)]
enum Reason {
    ContentType(String),
    Body(StatusCode, String),
    Input(Error),
}

impl RunRejection {
    /// The status of the response.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status_code().as_u16()
    }

    /// The rule that the input breaks.
    #[must_use]
    pub fn rule(&self) -> Option<Rule> {
        match &self.reason {
            Reason::Input(error) => error.rule(),
            Reason::ContentType(_) | Reason::Body(..) => None,
        }
    }

    /// Where in the input, as a JSON pointer.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match &self.reason {
            Reason::Input(Error::Malformed(error)) => Some(&error.path),
            _ => None,
        }
    }

    fn status_code(&self) -> StatusCode {
        match &self.reason {
            Reason::ContentType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Reason::Body(status, _) => *status,
            Reason::Input(Error::Malformed(error)) if error.rule == Rule::E9 => StatusCode::BAD_REQUEST,
            Reason::Input(Error::LimitExceeded(error)) if error.limit == Limit::EventBytes => {
                StatusCode::PAYLOAD_TOO_LARGE
            }
            Reason::Input(_) => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }
}

impl fmt::Display for RunRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::ContentType(found) => write!(f, "expected the content type application/json, found {found:?}"),
            Reason::Body(_, text) => f.write_str(text),
            Reason::Input(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for RunRejection {}

impl IntoResponse for RunRejection {
    fn into_response(self) -> Response {
        let mut error = Map::from_iter([("message".to_owned(), Value::from(self.to_string()))]);
        error.extend(self.rule().map(|rule| ("rule".to_owned(), rule.as_str().into())));
        error.extend(self.path().map(|path| ("path".to_owned(), path.into())));
        let body = json!({"error": error}).to_string();
        (self.status_code(), [(CONTENT_TYPE, "application/json")], body).into_response()
    }
}

/// The events of a run as a response: made by [`RunRequest::run`] and [`RunRequest::respond`], or with
/// [`new`](RunResponse::new).
///
/// The events are enforced, expanded and verified before they are sent. If that or their source fails, the error
/// is logged, and the client gets a RUN_ERROR, unless its run was over by then (rule R8a). Open items are not
/// closed then. The text of an error of the source is not sent to the client. If the client disconnects, the
/// stream of events is dropped.
#[must_use = "a response does nothing until it is returned"]
pub struct RunResponse {
    items: stream::BoxStream<'static, Item>,
    format: Format,
    keep_alive: Option<Duration>,
}

/// The header that tells a proxy to pass on each event at once.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

impl RunResponse {
    /// A response with these events, as server-sent events.
    pub fn new<S>(events: S) -> Self
    where
        S: Stream<Item: RawInput<Error: fmt::Display>> + Send + 'static,
    {
        Self::with(events, Options::new(), Format::Sse)
    }

    fn with<S>(events: S, options: Options, format: Format) -> Self
    where
        S: Stream<Item: RawInput<Error: fmt::Display>> + Send + 'static,
    {
        let items = events.items_with(options).or_run_error();
        Self { items: items.boxed(), format, keep_alive: Some(Duration::from_secs(15)) }
    }

    /// The same in another format.
    pub fn format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// The same with a comment each time that nothing else came for this long; `None` for no comments. The
    /// default is 15 seconds. Only server-sent events have comments.
    pub fn keep_alive(self, interval: impl Into<Option<Duration>>) -> Self {
        Self { keep_alive: interval.into(), ..self }
    }
}

impl IntoResponse for RunResponse {
    fn into_response(self) -> Response {
        let encoded = self.items.encode(self.format);
        let body = match self.keep_alive {
            Some(interval) => Body::from_stream(encoded.keep_alive(interval)),
            None => Body::from_stream(encoded),
        };
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static(self.format.media_type())),
            (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (X_ACCEL_BUFFERING, HeaderValue::from_static("no")),
        ];
        (headers, body).into_response()
    }
}

impl fmt::Debug for RunResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunResponse")
            .field("format", &self.format)
            .field("keep_alive", &self.keep_alive)
            .finish_non_exhaustive()
    }
}
