//! `Publisher`: the side of the producer, which writes the items of a run to the broker as they come.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use ag_ui_stream::id::{IdGenerator, RandomIds};
use ag_ui_stream::{Error, Event, Item};
use futures::stream::{self, BoxStream, ReadyChunks};
use futures::{Stream, StreamExt};
use redis::RedisError;
use tokio::time::{Instant, sleep_until};

use crate::broker::Broker;
use crate::log::{self, AppendError, Entry, Keep, Run, What};

/// The most events in one round trip.
const BATCH: usize = 256;

/// The right to produce a run.
#[derive(Debug)]
pub struct Publisher {
    broker: Broker,
    run: Run,
    keep: Keep,
    name: String,
    position: u64,
}

/// Why a run could not be published to its end.
#[derive(Debug)]
pub enum PublishError {
    /// The broker is unreachable, or refuses. The run is cut off when its lease is over.
    Broker(RedisError),
    /// The thread has a run of this name already.
    Taken,
    /// The run was cut off at this position, because the producer did not renew its lease in time.
    Fenced(u64),
    /// The source failed, or ended before its run did. The run was cut off for this reason.
    Cut(String),
}

impl From<RedisError> for PublishError {
    fn from(error: RedisError) -> Self {
        Self::Broker(error)
    }
}

impl From<AppendError> for PublishError {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Broker(error) => Self::Broker(error),
            AppendError::Occupied(position) => Self::Fenced(position),
        }
    }
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broker(_) => f.write_str("the broker could not be written to"),
            Self::Taken => f.write_str("the thread has a run of this name already"),
            Self::Fenced(at) => write!(f, "the run was cut off at position {at}: the lease of its producer was over"),
            Self::Cut(reason) => write!(f, "the run was cut off: {reason}"),
        }
    }
}

impl std::error::Error for PublishError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Broker(error) => Some(error),
            _ => None,
        }
    }
}

impl Publisher {
    /// Claims a run that was not begun.
    ///
    /// # Errors
    /// [`PublishError::Taken`] if it was.
    pub async fn claim(broker: Broker, thread: &str, run: &str, keep: Keep) -> Result<Self, PublishError> {
        let (run, name) = (Run::new(thread, run), RandomIds::new().next_id());
        if log::claim(&broker, &run, &keep, &name).await? {
            Ok(Self { broker, run, keep, name, position: 0 })
        } else {
            Err(PublishError::Taken)
        }
    }

    /// Writes the events of one run as they come. In: items, which should be verified (`.items()`), so that a
    /// fault is found once and not by every viewer. Out: after each round trip, the position up to which all is
    /// written. All events that are ready go out in one round trip.
    ///
    /// Poll the stream to its end: that also renews the lease. So a run whose producer hangs is cut off like a
    /// run whose producer died.
    ///
    /// # Ending
    /// With the terminal event of the run. The source is dropped then.
    ///
    /// # Errors
    /// Those of [`PublishError`]. If the source fails or ends too early, the run is cut off before the error is
    /// given.
    ///
    /// # Cancel safety
    /// A dropped `next()` loses nothing. If the stream is dropped, the run is cut off when its lease is over.
    pub fn publish<S, E>(self, items: S) -> BoxStream<'static, Result<u64, PublishError>>
    where
        S: Stream<Item = Result<Item, Error<E>>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        let start = Publishing {
            source: Some(Box::pin(items.ready_chunks(BATCH))),
            due: Instant::now() + self.third_of_lease(),
            failed: None,
            publisher: self,
        };
        stream::unfold(start, |mut publishing| async {
            let written = publishing.step().await.transpose()?;
            if written.is_err() {
                publishing.source = None;
            }
            Some((written, publishing))
        })
        .boxed()
    }

    fn third_of_lease(&self) -> Duration {
        Duration::from_millis(self.keep.lease / 3)
    }
}

struct Publishing<S: Stream> {
    publisher: Publisher,
    /// `None` after the end.
    source: Option<Pin<Box<ReadyChunks<S>>>>,
    /// When to renew the lease.
    due: Instant,
    /// Why the run was cut off, as long as the error was not given yet.
    failed: Option<String>,
}

impl<S, E> Publishing<S>
where
    S: Stream<Item = Result<Item, Error<E>>>,
    E: fmt::Display,
{
    async fn step(&mut self) -> Result<Option<u64>, PublishError> {
        if let Some(reason) = self.failed.take() {
            return Err(PublishError::Cut(reason));
        }
        let Publisher { broker, run, keep, name, .. } = &self.publisher;
        let entries = loop {
            let Some(source) = &mut self.source else { return Ok(None) };
            let batch = tokio::select! {
                biased;
                () = sleep_until(self.due) => {
                    log::renew(broker, run, keep, name).await?;
                    self.due = Instant::now() + self.publisher.third_of_lease();
                    continue;
                }
                batch = source.next() => batch,
            };
            let entries = self.entries(batch);
            // Warnings are not published.
            if !entries.is_empty() {
                break entries;
            }
        };
        let Publisher { broker, run, keep, .. } = &self.publisher;
        log::append(broker, run, keep, &entries).await?;
        let Some(last) = entries.last() else { return Ok(None) };
        self.publisher.position = last.position;
        if last.is_end() {
            self.source = None;
            let Publisher { broker, run, keep, .. } = &self.publisher;
            log::close(broker, run, keep).await?;
        }
        Ok(match &last.what {
            What::Cut(reason) => {
                self.failed = Some(reason.clone());
                // The position of the events before it is given first.
                return if last.position > 1 { Ok(Some(last.position - 1)) } else { Box::pin(self.step()).await };
            }
            _ => Some(last.position),
        })
    }

    fn entries(&self, batch: Option<Vec<S::Item>>) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut position = self.publisher.position;
        let mut push = |what| {
            position += 1;
            entries.push(Entry { position, what });
        };
        let Some(batch) = batch else {
            push(What::Cut("the source ended before the run did".to_owned()));
            return entries;
        };
        for item in batch {
            let json = match &item {
                Ok(item) => match item.event() {
                    Some(event) => serde_json::to_vec(event).map(Into::into).map_err(|error| error.to_string()),
                    None => continue,
                },
                Err(error) => Err(error.to_string()),
            };
            let event = item.as_ref().ok().and_then(Item::event);
            match (json, event) {
                (Ok(json), Some(Event::RunFinished(_) | Event::RunError(_))) => push(What::Last(json)),
                (Ok(json), _) => {
                    push(What::Event(json));
                    continue;
                }
                (Err(error), _) => push(What::Cut(error)),
            }
            break;
        }
        entries
    }
}
