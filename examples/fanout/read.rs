//! `Runs`: the side of the viewers, which reads the entries of a run from a position on, then as they come.
//!
//! A gateway follows each run that has viewers with one blocking read, and hands the entries to all of them. A
//! viewer that joined late or is slow reads the entries that it misses from the broker. So a viewer that keeps
//! up costs the broker nothing, and the gateway keeps no run in memory.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt, future};
use redis::{RedisError, RedisResult};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;

use crate::broker::Broker;
use crate::log::{self, AppendError, Entry, Keep, Run, What};

/// How many entries are kept for viewers that are a little slower than the run.
const RING: usize = 1024;
/// How many entries a viewer that lags reads at once.
const PAGE: usize = 512;

/// The runs of a broker, as one gateway reads them. A clone shares the reads of the gateway.
#[derive(Clone, Debug)]
pub struct Runs {
    broker: Broker,
    keep: Keep,
    followed: Arc<Mutex<HashMap<Run, Weak<Followed>>>>,
}

/// Why a run cannot be read any further.
#[derive(Debug)]
pub enum ReadError {
    /// There is no such run: it was never begun, or it is no longer kept.
    NoRun,
    /// The entries from `asked` on are gone; the first that is left is at `first`. The broker trimmed them as it
    /// was told to, or lost them.
    Gone {
        /// The position that was asked for.
        asked: u64,
        /// The first position after it that is left.
        first: u64,
    },
    /// The broker is unreachable for too long, or refuses.
    Broker(RedisError),
}

impl From<RedisError> for ReadError {
    fn from(error: RedisError) -> Self {
        Self::Broker(error)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRun => f.write_str("there is no such run, or it is no longer kept"),
            Self::Gone { asked, first } => {
                write!(f, "the events {asked} to {} of the run are gone", first.saturating_sub(1))
            }
            Self::Broker(_) => f.write_str("the broker could not be read"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Broker(error) => Some(error),
            _ => None,
        }
    }
}

/// A run that has viewers.
#[derive(Debug)]
struct Followed {
    entries: broadcast::WeakSender<Entry>,
    stand: watch::Receiver<Stand>,
    task: AbortHandle,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The state of following a run.
#[derive(Clone, Debug)]
enum Stand {
    /// The end of the log is being looked for.
    Starting,
    /// The entries after this position are handed on.
    Live,
    /// The run is over, with this position.
    Over(u64),
    /// The run is no longer followed.
    Failed(RedisError),
}

impl Runs {
    /// The runs of a broker.
    pub fn new(broker: Broker, keep: Keep) -> Self {
        Self { broker, keep, followed: Arc::default() }
    }

    /// The broker.
    pub fn broker(&self) -> &Broker {
        &self.broker
    }

    /// How runs are kept.
    pub fn keep(&self) -> &Keep {
        &self.keep
    }

    /// Reads the entries after a position, 0 for all, and then those to come.
    ///
    /// # Errors
    /// If there is no such run, or if the entry after that position is gone.
    pub async fn read(&self, thread: &str, run: &str, after: u64) -> Result<Reading, ReadError> {
        let run = Run::new(thread, run);
        let Some((tail, is_over)) = log::tail(&self.broker, &run).await? else { return Err(ReadError::NoRun) };
        let mut first = VecDeque::new();
        if after < tail {
            first = log::range(&self.broker, &run, after + 1, PAGE).await?.into();
            let found = first.front().map_or(tail + 1, |entry: &Entry| entry.position);
            if found > after + 1 {
                return Err(ReadError::Gone { asked: after + 1, first: found });
            }
        }
        let end = is_over.then_some(tail);
        let followed = if is_over { None } else { Some(self.follow(run.clone())) };
        Ok(Reading { runs: self.clone(), run, next: after + 1, ready: first, live: None, followed, end, done: false })
    }

    fn follow(&self, run: Run) -> Arc<Followed> {
        let mut all = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(followed) = all.get(&run).and_then(Weak::upgrade) {
            if !matches!(*followed.stand.borrow(), Stand::Failed(_)) {
                return followed;
            }
        }
        all.retain(|_, followed| followed.strong_count() > 0);
        let (entries, _) = broadcast::channel(RING);
        let (stand, watched) = watch::channel(Stand::Starting);
        let weak = entries.downgrade();
        let wait = self.keep.lease / 3;
        let follower = Follower {
            broker: self.broker.apart(Duration::from_millis(wait)),
            run: run.clone(),
            keep: self.keep.clone(),
            entries,
        };
        let task = tokio::spawn(async move {
            let end = match follower.follow(&stand).await {
                Ok(end) => Stand::Over(end),
                Err(error) => Stand::Failed(error),
            };
            // Set before the sender of the entries is dropped, because viewers wait for that.
            stand.send_replace(end);
            drop(follower);
        });
        let followed = Arc::new(Followed { entries: weak, stand: watched, task: task.abort_handle() });
        all.insert(run, Arc::downgrade(&followed));
        followed
    }
}

struct Follower {
    broker: Broker,
    run: Run,
    keep: Keep,
    entries: broadcast::Sender<Entry>,
}

impl Follower {
    /// Hands on the entries until the run ends, and gives the position of the end. If the producer is dead, it
    /// writes the end itself.
    async fn follow(&self, stand: &watch::Sender<Stand>) -> RedisResult<u64> {
        let Self { broker, run, keep, entries } = self;
        let (mut last, is_over) = log::tail(broker, run).await?.unwrap_or_default();
        if is_over {
            return Ok(last);
        }
        stand.send_replace(Stand::Live);
        // Since when the lease is missing while the broker was reachable: after a restart of the broker the
        // producer needs time to renew it.
        let mut missing = None;
        let mut connections = broker.connections().await;
        loop {
            let found = log::next(broker, run, last, keep.lease / 3).await?;
            let now = broker.connections().await;
            if now != connections {
                (connections, missing) = (now, None);
            }
            if found.is_empty() {
                if log::is_alive(broker, run).await? {
                    missing = None;
                } else if missing.get_or_insert_with(Instant::now).elapsed() >= Duration::from_millis(keep.lease) {
                    self.cut(last + 1).await?;
                    missing = None;
                }
                continue;
            }
            missing = None;
            for entry in found {
                last = entry.position;
                let is_end = entry.is_end();
                // An error means that there is no viewer at the moment.
                let _ = entries.send(entry);
                if is_end {
                    return Ok(last);
                }
            }
        }
    }

    async fn cut(&self, position: u64) -> RedisResult<()> {
        let cut = Entry { position, what: What::Cut("the producer of the run died".to_owned()) };
        match log::append(&self.broker, &self.run, &self.keep, &[cut]).await {
            Ok(()) => log::close(&self.broker, &self.run, &self.keep).await,
            // Another gateway was first, or the producer is alive: the next read shows which.
            Err(AppendError::Occupied(_)) => Ok(()),
            Err(AppendError::Broker(error)) => Err(error),
        }
    }
}

/// The entries of a run, each once and in order; made by [`Runs::read`].
#[derive(Debug)]
pub struct Reading {
    runs: Runs,
    run: Run,
    /// The position of the next entry.
    next: u64,
    ready: VecDeque<Entry>,
    /// The entries that are handed on, while this viewer keeps up.
    live: Option<broadcast::Receiver<Entry>>,
    followed: Option<Arc<Followed>>,
    /// The position of the end, if it is known.
    end: Option<u64>,
    done: bool,
}

impl Reading {
    /// Whether the run is over and all of it was read.
    pub fn is_over(&self) -> bool {
        self.end.is_some_and(|end| self.next > end)
    }

    /// The entries.
    ///
    /// # Ending
    /// With the end of the run: a terminal event, or [`What::Cut`].
    ///
    /// # Errors
    /// [`ReadError::Gone`] if entries were trimmed that this viewer had not read, and [`ReadError::Broker`].
    pub fn entries(self) -> BoxStream<'static, Result<Entry, ReadError>> {
        stream::unfold(self, |mut reading| async {
            let entry = reading.step().await.transpose()?;
            reading.done |= !entry.as_ref().is_ok_and(|entry| !entry.is_end());
            Some((entry, reading))
        })
        .boxed()
    }

    /// The events as JSON text, for `.updates()` and the like. If the run was cut off, the stream just ends, and
    /// verification reports that as truncated (rule R8).
    pub fn events(self) -> BoxStream<'static, Result<Bytes, ReadError>> {
        let entries = self.entries().map_ok(|entry| match entry.what {
            What::Event(json) | What::Last(json) => Some(json),
            What::Cut(_) => None,
        });
        let events = entries.map(Result::transpose).take_while(|event| future::ready(event.is_some()));
        events.filter_map(future::ready).boxed()
    }

    async fn step(&mut self) -> Result<Option<Entry>, ReadError> {
        loop {
            if self.done || self.is_over() {
                return Ok(None);
            }
            if let Some(entry) = self.ready.pop_front() {
                match entry.position {
                    // A duplicate.
                    position if position < self.next => continue,
                    position if position > self.next => {
                        return Err(ReadError::Gone { asked: self.next, first: position });
                    }
                    _ => self.next += 1,
                }
                return Ok(Some(entry));
            }
            let Some(live) = &mut self.live else {
                self.catch_up().await?;
                continue;
            };
            match live.recv().await {
                // The missing entries are read from the broker.
                Ok(entry) if entry.position > self.next => self.live = None,
                Ok(entry) => self.ready.push_back(entry),
                Err(RecvError::Lagged(_) | RecvError::Closed) => self.live = None,
            }
        }
    }

    /// Reads the entries that this viewer misses. If there are none, the viewer keeps up.
    async fn catch_up(&mut self) -> Result<(), ReadError> {
        let mut live = None;
        if let Some(followed) = &self.followed {
            // The receiver is made before the log is read, so that no entry is lost between them.
            live = followed.entries.upgrade().map(|entries| entries.subscribe());
            let mut stand = followed.stand.clone();
            let stand = stand.wait_for(|stand| !matches!(stand, Stand::Starting)).await.map(|stand| stand.clone());
            match stand {
                Ok(Stand::Over(end)) => self.end = Some(end),
                Ok(Stand::Failed(error)) => return Err(error.into()),
                Ok(Stand::Starting | Stand::Live) if live.is_some() => {}
                Ok(Stand::Starting | Stand::Live) | Err(_) => {
                    return Err(ReadError::Broker(std::io::Error::other("the run is no longer followed").into()));
                }
            }
        }
        self.ready = log::range(&self.runs.broker, &self.run, self.next, PAGE).await?.into();
        match self.ready.front() {
            Some(first) if first.position > self.next => {
                Err(ReadError::Gone { asked: self.next, first: first.position })
            }
            Some(_) => Ok(()),
            // The end is known, but the entries before it are gone.
            None if self.end.is_some_and(|end| self.next <= end) => {
                Err(ReadError::Gone { asked: self.next, first: self.end.unwrap_or_default() + 1 })
            }
            None => {
                self.live = live;
                Ok(())
            }
        }
    }
}
