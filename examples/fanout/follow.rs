//! `follow`: the viewer over HTTP, which reads a run from any gateway that serves it.

use std::fmt;
use std::time::Duration;

use ag_ui_stream::client::reqwest::{Client, StatusCode, Url};
use ag_ui_stream::client::{HttpEvents, ResponseExt};
use ag_ui_stream::{Raw, RawItem};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::time::{Instant, sleep};

/// Why a viewer cannot go on.
#[derive(Debug)]
pub enum FollowError {
    /// The address is invalid.
    Address(String),
    /// There is no such run, or the events that this viewer needs are gone.
    Refused {
        /// The status: 404, 410 or another.
        status: StatusCode,
        /// The body of the answer.
        said: String,
    },
    /// No gateway gave a new event for this long.
    NoGateway(Duration),
}

impl fmt::Display for FollowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "invalid address {address:?}"),
            Self::Refused { status, said } => write!(f, "{status}: {said}"),
            Self::NoGateway(time) => write!(f, "no gateway gave a new event for {time:?}"),
        }
    }
}

impl std::error::Error for FollowError {}

/// The raw events of a run after a position, for `.updates()` and the like. If a gateway dies, the next one is
/// asked for the events after the last one that came.
///
/// Positions count from 1 without a gap, so the position is known by counting the events.
///
/// # Ending
/// With the run. To know that the run is over takes one more request; `.take_run()` saves it.
///
/// # Errors
/// Those of [`FollowError`].
pub fn follow(
    gateways: Vec<String>,
    thread: &str,
    run: &str,
    after: u64,
    patience: Duration,
) -> BoxStream<'static, Result<Raw, FollowError>> {
    let path = [thread.to_owned(), run.to_owned()];
    let start = Follow {
        client: Client::new(),
        gateways,
        path,
        tries: 0,
        position: after,
        events: None,
        patience,
        give_up: Instant::now() + patience,
        done: false,
    };
    stream::unfold(start, |mut follow| async {
        let raw = follow.step().await.transpose()?;
        follow.done |= raw.is_err();
        Some((raw, follow))
    })
    .boxed()
}

struct Follow {
    client: Client,
    gateways: Vec<String>,
    path: [String; 2],
    tries: usize,
    position: u64,
    events: Option<HttpEvents>,
    patience: Duration,
    give_up: Instant,
    done: bool,
}

impl Follow {
    async fn step(&mut self) -> Result<Option<Raw>, FollowError> {
        while !self.done {
            let Some(events) = &mut self.events else {
                self.done = !self.connect().await?;
                continue;
            };
            match events.next().await {
                Some(Ok(RawItem::Event { raw, .. })) => {
                    self.position += 1;
                    self.give_up = Instant::now() + self.patience;
                    return Ok(Some(raw));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => {
                    self.events = None;
                    self.tries += 1;
                }
            }
        }
        Ok(None)
    }

    /// Whether there may be more events.
    async fn connect(&mut self) -> Result<bool, FollowError> {
        let gateway = self.gateways.get(self.tries % self.gateways.len().max(1)).map_or("", String::as_str);
        let mut url = Url::parse(gateway).map_err(|_| FollowError::Address(gateway.to_owned()))?;
        let [thread, run] = &self.path;
        let Ok(mut path) = url.path_segments_mut() else { return Err(FollowError::Address(gateway.to_owned())) };
        path.pop_if_empty().extend(["threads", thread, "runs", run]);
        drop(path);
        url.set_query(Some(&format!("after={}", self.position)));
        if let Ok(answer) = self.client.get(url).send().await {
            let status = answer.status();
            match status {
                StatusCode::NO_CONTENT => return Ok(false),
                StatusCode::OK => self.events = answer.agent_events().await.ok(),
                _ if status.is_client_error() => {
                    return Err(FollowError::Refused { status, said: answer.text().await.unwrap_or_default() });
                }
                _ => {}
            }
        }
        if self.events.is_none() {
            self.tries += 1;
            if Instant::now() > self.give_up {
                return Err(FollowError::NoGateway(self.patience));
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(true)
    }
}
