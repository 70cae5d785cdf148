//! A run as the broker keeps it: an append-only stream of entries, and a lease that its producer renews.
//!
//! The position of an event is its number in the run, from 1, and also the id of its entry in the Redis
//! stream. This keeps the rest simple: the broker refuses an event that it has already, so a producer may send
//! again everything that was not confirmed; a reader continues from a number; and a number that is missing is a
//! gap, which is an error.
//!
//! The last entry of a run says how it ended: its terminal event, or that it was cut off. A position has room
//! for one entry. So if a producer that seemed dead comes back, either its entry was first, and the run goes
//! on for all readers, or the cut was first, and the producer gets an error.

use std::fmt;

use axum::body::Bytes;
use redis::{RedisError, RedisResult, Value};

use crate::broker::{Broker, answer, commands};

/// The keys of a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// The stream of its entries.
    pub events: String,
    /// The name of its producer, as long as that lives.
    pub lease: String,
}

impl Run {
    /// The run of this name in this thread.
    pub fn new(thread: &str, run: &str) -> Self {
        // The length of the first name keeps ("a:b", "c") and ("a", "b:c") apart.
        let name = format!("ag-ui:{}:{thread}:{run}", thread.len());
        Self { events: format!("{name}:events"), lease: format!("{name}:lease") }
    }
}

/// An entry of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The position: the number in the run, from 1.
    pub position: u64,
    /// The content.
    pub what: What,
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// An event as JSON text.
    Event(Bytes),
    /// The terminal event: nothing comes after it.
    Last(Bytes),
    /// The run was cut off, and why; nothing comes after it.
    Cut(String),
}

impl Entry {
    /// Whether this is the last entry of the run.
    pub fn is_end(&self) -> bool {
        !matches!(self.what, What::Event(_))
    }

    fn field(&self) -> (&'static str, &[u8]) {
        match &self.what {
            What::Event(json) => ("event", json),
            What::Last(json) => ("last", json),
            What::Cut(reason) => ("cut", reason.as_bytes()),
        }
    }

    /// Reads an entry of an answer: `[id, [field, value]]`.
    fn read(value: Value) -> Option<Self> {
        let [Value::BulkString(id), Value::Array(fields)] = array(value)? else { return None };
        let [Value::BulkString(field), Value::BulkString(value)] = array(Value::Array(fields))? else { return None };
        let position = std::str::from_utf8(&id).ok()?.split('-').next()?.parse().ok()?;
        let what = match field.as_slice() {
            b"event" => What::Event(value.into()),
            b"last" => What::Last(value.into()),
            b"cut" => What::Cut(String::from_utf8_lossy(&value).into_owned()),
            _ => return None,
        };
        Some(Self { position, what })
    }
}

fn array<const N: usize>(value: Value) -> Option<[Value; N]> {
    match value {
        Value::Array(values) => values.try_into().ok(),
        _ => None,
    }
}

fn entries(value: Value) -> RedisResult<Vec<Entry>> {
    let entries = match value {
        Value::Nil => return Ok(Vec::new()),
        Value::Array(entries) => entries.into_iter().map(Entry::read).collect(),
        _ => None,
    };
    entries.ok_or_else(foreign)
}

fn foreign() -> RedisError {
    std::io::Error::new(std::io::ErrorKind::InvalidData, "the key holds something other than a run").into()
}

/// How runs are kept.
#[derive(Clone, Debug)]
pub struct Keep {
    /// After how long without a sign of its producer a run is cut off, in milliseconds.
    pub lease: u64,
    /// How long a run is kept after its end, or after the last sign of its producer, in milliseconds.
    pub after_end: u64,
    /// The least number of events to keep; the broker removes earlier ones in groups. `None` keeps all.
    pub events: Option<u64>,
}

impl Default for Keep {
    /// Ten seconds, an hour, all events.
    fn default() -> Self {
        Self { lease: 10_000, after_end: 3_600_000, events: None }
    }
}

/// Why an entry was not appended.
#[derive(Debug)]
pub enum AppendError {
    /// The broker is unreachable, or refuses.
    Broker(RedisError),
    /// Another entry is at this position: the run was cut off, or another producer writes it.
    Occupied(u64),
}

impl From<RedisError> for AppendError {
    fn from(error: RedisError) -> Self {
        Self::Broker(error)
    }
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broker(_) => f.write_str("the broker could not be written to"),
            Self::Occupied(position) => write!(f, "another entry is at position {position} of the run"),
        }
    }
}

impl std::error::Error for AppendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Broker(error) => Some(error),
            Self::Occupied(_) => None,
        }
    }
}

/// Appends entries, in one round trip. Entries that the broker has already stay as they are, so the same call
/// may be made again.
///
/// # Errors
/// If another entry is at the position of one of these; the ones before it are appended.
pub async fn append(broker: &Broker, run: &Run, keep: &Keep, entries: &[Entry]) -> Result<(), AppendError> {
    let mut all = commands();
    for entry in entries {
        let (field, value) = entry.field();
        let all = all.cmd("XADD").arg(&run.events);
        if let Some(events) = keep.events {
            all.arg("MAXLEN").arg("~").arg(events);
        }
        all.arg(format!("{}-0", entry.position)).arg(field).arg(value);
    }
    for (entry, answer) in entries.iter().zip(broker.ask(&all).await?) {
        match answer {
            Ok(_) => {}
            // "The ID specified in XADD is equal or smaller than the target stream top item"
            Err(error) if error.detail().is_some_and(|detail| detail.contains("equal or smaller")) => {
                let there = range(broker, run, entry.position, 1).await?;
                // An entry that was trimmed in the meantime was appended before.
                if there.first().is_some_and(|there| there.position == entry.position && there != entry) {
                    return Err(AppendError::Occupied(entry.position));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The entries from a position on, at most `count`.
pub async fn range(broker: &Broker, run: &Run, from: u64, count: usize) -> RedisResult<Vec<Entry>> {
    let mut commands = commands();
    commands.cmd("XRANGE").arg(&run.events).arg(from).arg("+").arg("COUNT").arg(count);
    entries(answer(broker.ask(&commands).await?)?)
}

/// The entries after a position; if there are none, those that come within this time, in milliseconds.
pub async fn next(broker: &Broker, run: &Run, after: u64, wait: u64) -> RedisResult<Vec<Entry>> {
    let mut commands = commands();
    let command = commands.cmd("XREAD").arg("COUNT").arg(512).arg("BLOCK").arg(wait.max(1));
    command.arg("STREAMS").arg(&run.events).arg(format!("{after}-0"));
    match answer(broker.ask(&commands).await?)? {
        Value::Nil => Ok(Vec::new()),
        // One stream was asked for: [[key, entries]].
        value => {
            let of_run = array(value).and_then(|[stream]| array(stream)).map(|[_, found]| found);
            entries(of_run.ok_or_else(foreign)?)
        }
    }
}

/// The position of the last entry that was ever appended, even if it was trimmed, and whether the run ended
/// there; `None` if there is no such run.
pub async fn tail(broker: &Broker, run: &Run) -> RedisResult<Option<(u64, bool)>> {
    let mut all = commands();
    all.cmd("XREVRANGE").arg(&run.events).arg("+").arg("-").arg("COUNT").arg(1);
    all.cmd("XINFO").arg("STREAM").arg(&run.events);
    all.cmd("EXISTS").arg(&run.lease);
    let mut answers = broker.ask(&all).await?.into_iter();
    let last = entries(answers.next().unwrap_or(Ok(Value::Nil))?)?.pop();
    let info = answers.next().unwrap_or(Ok(Value::Nil));
    let is_claimed = answers.next().unwrap_or(Ok(Value::Int(0)))? == Value::Int(1);
    Ok(match (last, info) {
        (Some(last), _) => Some((last.position, last.is_end())),
        (None, Ok(info)) => Some((last_id(info).ok_or_else(foreign)?, false)),
        // The run has no event yet.
        (None, Err(_)) => is_claimed.then_some((0, false)),
    })
}

fn last_id(info: Value) -> Option<u64> {
    let Value::Array(pairs) = info else { return None };
    let mut pairs = pairs.into_iter();
    pairs.find(|value| *value == Value::BulkString(b"last-generated-id".to_vec()))?;
    let Value::BulkString(id) = pairs.next()? else { return None };
    std::str::from_utf8(&id).ok()?.split('-').next()?.parse().ok()
}

/// Whether the lease of the producer is valid.
pub async fn is_alive(broker: &Broker, run: &Run) -> RedisResult<bool> {
    let mut commands = commands();
    commands.cmd("EXISTS").arg(&run.lease);
    Ok(answer(broker.ask(&commands).await?)? == Value::Int(1))
}

/// Keeps a run for a while after its end, without its lease.
pub async fn close(broker: &Broker, run: &Run, keep: &Keep) -> RedisResult<()> {
    let mut all = commands();
    all.cmd("PEXPIRE").arg(&run.events).arg(keep.after_end);
    all.cmd("DEL").arg(&run.lease);
    answer(broker.ask(&all).await?).map(|_| ())
}

/// Renews the lease, even if it is lost: the entries decide who may write, not the lease.
pub async fn renew(broker: &Broker, run: &Run, keep: &Keep, producer: &str) -> RedisResult<()> {
    let mut all = commands();
    all.cmd("SET").arg(&run.lease).arg(producer).arg("PX").arg(keep.lease);
    all.cmd("PEXPIRE").arg(&run.events).arg(keep.after_end);
    answer(broker.ask(&all).await?).map(|_| ())
}

/// Takes the lease of a run that was not begun; `false` if it was.
pub async fn claim(broker: &Broker, run: &Run, keep: &Keep, producer: &str) -> RedisResult<bool> {
    let mut all = commands();
    all.cmd("SET").arg(&run.lease).arg(producer).arg("NX").arg("PX").arg(keep.lease);
    all.cmd("GET").arg(&run.lease);
    all.cmd("EXISTS").arg(&run.events);
    let answers = broker.ask(&all).await?.into_iter().collect::<RedisResult<Vec<_>>>()?;
    let [_, holder, exists] = answers.try_into().map_err(|_| foreign())?;
    // Compares the name of the holder, because the answer to a first attempt may have been lost.
    Ok(holder == Value::BulkString(producer.into()) && exists == Value::Int(0))
}
