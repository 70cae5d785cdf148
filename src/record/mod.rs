//! Recordings: runs written to a file while they stream, and replayed in their own time.
//!
//! | from | to | by |
//! |---|---|---|
//! | any stream of raw events, or of items | the same stream and a recording | [`RecordStreamExt::record`] |
//! | an agent | the same agent, each run recorded | [`RecordAgentExt::record`] |
//! | a recording, as any stream of bytes | raw events, each at its time | [`RecordStreamExt::replay`] |
//! | a recording, as bytes without async | events, with line and time | [`RecordingDecoder`] |
//! | a recording in memory | an agent | [`Replay::recorded`](crate::agent::Replay::recorded) |
//!
//! [`Timing`] decides when the events of a replay come: as recorded, faster or slower, evenly, at once,
//! or by a function.
//!
//! ```
//! use std::time::Duration;
//!
//! use ag_ui_stream::record::{RecordStreamExt, Timing};
//! use ag_ui_stream::combinator::pieces;
//! use ag_ui_stream::EventStreamExt;
//! use futures::{StreamExt, TryStreamExt, stream};
//! use tokio::time::{Instant, sleep};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let source = stream::iter([
//!     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
//!     r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
//! ]);
//! let slow = source.then(|event| async move {
//!     sleep(Duration::from_secs(3)).await;
//!     event
//! });
//! let mut file = Vec::new();
//! let live: Vec<_> = slow.record(&mut file).updates().try_collect().await?;
//!
//! let began = Instant::now();
//! let replayed: Vec<_> = pieces(&file[..]).replay(Timing::scaled(2.0)).updates().try_collect().await?;
//! assert_eq!(began.elapsed(), Duration::from_secs(3));
//! assert_eq!(replayed[1].snapshot(), live[1].snapshot());
//! # Ok(())
//! # }
//! ```
//!
//! # The format
//! A recording is a capture of server-sent events, as `curl -N` writes one, with comments for the times.
//! Any reader of server-sent events can read it, `inspect` among them, since they ignore comments (rule
//! T1). Events are unchanged, also their `timestamp`, which is the producer's.
//!
//! ```text
//! : ag-ui-recording 1
//!
//! : +0.412309s
//! data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}
//!
//! : +1.250112s
//! : line-ends rnrn
//! data: {
//! data:
//! data: "type":"RUN_FINISHED","threadId":"t","runId":"r"
//! data:
//! data: }
//!
//! : +1.250390s end
//! ```
//!
//! | comment | meaning |
//! |---|---|
//! | `ag-ui-recording 1` | comments from here on are those of a recording; the version of the format |
//! | `+1.250112s` | when the next event came, in seconds since the recording began |
//! | `line-ends rnrn` | which line ends of the next event are CR (`r`) and which LF (`n`): a capture has only LF within an event, and the replay restores them |
//! | `+1.3s end` | the source ended normally |
//! | `+1.3s truncated` | it was cut off within an event |
//! | `+1.3s failed "connection reset"` | it failed, and why, as a JSON string |
//! | `+1.3s warning "…"` | a warning of a decoder or the compatibility boundary; not replayed |
//!
//! A recording without any of the ends broke off: its recorder was dropped, or its writer failed.
//! Recordings may be concatenated if only the last one failed: each then begins where the one before
//! ended.
//!
//! Why not JSON Lines: they hold no time without a member that is not the producer's, or an envelope
//! that nothing else reads. Why not a second file for the times: it gets lost.
//!
//! # What is kept, and what is not
//! A recording holds the conversation unencrypted: protect it accordingly.
//!
//! - Kept: the text of an event, byte for byte, whether it is JSON or not. An event that came as a
//!   value, or typed, is written as JSON on one line.
//! - Kept: the order, and the times to the microsecond.
//! - Not kept: the indices of events after skipped frames. A replay counts from the beginning.
//! - Not kept: the type of an error, only its text ([`RecordedError`]) and whether it was a truncation.

use core::fmt;
use core::task::{Poll, ready};
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, Stream, StreamExt};
use tokio::io::AsyncWrite;
use tokio::time::Instant;

use crate::agent::{Agent, RawEventStream};
use crate::error::{AgentError, Error};
use crate::raw::RawItem;
use crate::run_input::RunAgentInput;

mod decoder;
mod ext;
mod format;
#[allow(clippy::module_inception, reason = "the combinator, in a file of its own as all of them")]
mod record;
mod recordable;
mod replayed;
mod timing;
mod writer;

pub use decoder::RecordingDecoder;
pub use ext::{RecordAgentExt, RecordStreamExt};
pub use format::{Recorded, RecordedError};
pub use record::Record;
pub use recordable::Recordable;
pub use replayed::Replayed;
pub use timing::Timing;

/// An agent whose runs are recorded, made by [`RecordAgentExt::record`].
///
/// A run that cannot be started is recorded as a failed one.
#[derive(Clone)]
pub struct RecordAgent<A, F> {
    agent: A,
    open: F,
}

impl<A, F> RecordAgent<A, F> {
    pub(crate) fn new(agent: A, open: F) -> Self {
        Self { agent, open }
    }

    /// The agent itself.
    #[must_use]
    pub fn get_ref(&self) -> &A {
        &self.agent
    }

    /// Gives the agent back.
    #[must_use]
    pub fn into_inner(self) -> A {
        self.agent
    }
}

#[async_trait]
impl<A, F, Fut, W> Agent for RecordAgent<A, F>
where
    A: Agent,
    F: Fn(&RunAgentInput) -> Fut + Send + Sync,
    Fut: Future<Output = io::Result<W>> + Send,
    W: AsyncWrite + Send + 'static,
{
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
        let writer = (self.open)(&input).await.map_err(RecordingFailed)?;
        let began = Instant::now();
        let (events, fault) = match self.agent.run(input).await {
            Ok(events) => (events, None),
            Err(error) => (stream::iter([Err(Error::Source(error.clone()))]).boxed(), Some(error)),
        };
        let mut record = Box::pin(Record::new(events, writer, began));
        if let Some(error) = fault {
            record.next().await;
            return Err(error);
        }
        let mut ended = false;
        let events = stream::poll_fn(move |cx| {
            if ended {
                return Poll::Ready(None);
            }
            let next = ready!(record.as_mut().poll_next(cx));
            let failed = || record.as_mut().take_error().map(|error| Err(Error::Source(RecordingFailed(error).into())));
            let next = next.or_else(failed);
            // One error at most, and it is the last item.
            ended = !matches!(next, Some(Ok(_)));
            Poll::Ready(next)
        });
        Ok(events.boxed())
    }
}

impl<A: fmt::Debug, F> fmt::Debug for RecordAgent<A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordAgent").field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// Why a run of a [`RecordAgent`] was not recorded to its end.
///
/// The error within [`AgentError`]: `error.downcast_ref::<RecordingFailed>()`.
#[derive(Debug)]
pub struct RecordingFailed(io::Error);

impl RecordingFailed {
    /// The writer's error.
    #[must_use]
    pub fn get_ref(&self) -> &io::Error {
        &self.0
    }
}

impl fmt::Display for RecordingFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the run could not be recorded")
    }
}

impl core::error::Error for RecordingFailed {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.0)
    }
}

impl From<RecordingFailed> for AgentError {
    fn from(error: RecordingFailed) -> Self {
        AgentError::new(error)
    }
}

/// A recording in memory, shared by the runs that replay it.
#[derive(Clone)]
pub(crate) struct Recording(Arc<[u8]>);

impl From<Vec<u8>> for Recording {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl Recording {
    pub(crate) fn replay(
        self,
        timing: Timing,
    ) -> impl Stream<Item = Result<RawItem, Error<AgentError>>> + Send + 'static {
        /// The bytes read at once, so that the events of a whole recording are never held.
        const PIECE: usize = 16 * 1024;
        let pieces = (0..self.0.len()).step_by(PIECE).map(move |from| {
            let to = from.saturating_add(PIECE).min(self.0.len());
            Ok::<_, io::Error>(self.0.get(from..to).unwrap_or_default().to_vec())
        });
        stream::iter(pieces).replay(timing)
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("len", &self.0.len()).finish()
    }
}
