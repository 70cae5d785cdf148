//! `record` and `replay` as methods of streams, agents and bytes.

use futures::stream::{Stream, StreamExt};
use tokio::io::AsyncWrite;
use tokio::time::Instant;

use super::{Record, RecordAgent, Recordable, Recording, Replayed, Timing};
use crate::agent::{Agent, Replay};
use crate::codec::Piece;
use crate::error::BoxError;
#[cfg(doc)]
use crate::error::Error;
use crate::limits::Limits;
use crate::run_input::RunAgentInput;

/// `record`, a method of every stream of raw events or items, and `replay`, a method of every stream of
/// bytes.
pub trait RecordStreamExt: Stream {
    /// The same stream, also written to a file or any other writer.
    ///
    /// In: raw events, or items ([`Recordable`]). Out: the same, unchanged. Written, in the format
    /// of [`record`](crate::record): each event as its own text, with the time since this call;
    /// warnings, as comments; how the source ended.
    ///
    /// Placed before the other stages, it records what came, and a replay is judged again; placed after
    /// [`items`](crate::EventStreamExt::items), it records what the application saw.
    ///
    /// 1. An item comes and is written; the stream may have to wait for the writer.
    /// 2. The item is given. So the writer has every item that was given.
    /// 3. While the stream waits for the source, the writer is flushed.
    /// 4. At the end of the source, and before its error is given, the writer is closed.
    ///
    /// Each event is one write, so the writer needs no buffer around it. If you drop the stream early,
    /// call [`Record::finish`]; otherwise bytes that the writer buffers may be lost.
    ///
    /// # Ending
    /// With the source; an error of the source is the last item.
    ///
    /// # Errors
    /// Only the source's. An error of the writer ends the recording and not the run: it is logged
    /// through `tracing`, and [`Record::error`] and [`Record::finish`] give it.
    ///
    /// # Cost
    /// One copy of each event; a JSON text is searched for line ends only.
    ///
    /// # Cancel safety
    /// A dropped `next()` loses nothing, and nothing is written twice.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::EventStreamExt;
    /// use ag_ui_stream::record::RecordStreamExt;
    /// use futures::{TryStreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ag_ui_stream::Error> {
    /// let source = stream::iter([r#"{"type":"RUN_ERROR","message":"overloaded"}"#]);
    /// // As well a `tokio::fs::File`.
    /// let mut file = Vec::new();
    /// let events: Vec<_> = source.record(&mut file).events().try_collect().await?;
    /// assert_eq!(events.len(), 1);
    ///
    /// let file = String::from_utf8(file).unwrap();
    /// assert!(file.contains("data: {\"type\":\"RUN_ERROR\",\"message\":\"overloaded\"}\n"));
    /// # Ok(())
    /// # }
    /// ```
    fn record<W>(self, writer: W) -> Record<Self, W>
    where
        Self: Sized,
        Self::Item: Recordable,
        W: AsyncWrite,
    {
        Record::new(self, writer, Instant::now())
    }

    /// A recording in, its raw events out, each at its time.
    ///
    /// In: a [recording](crate::record), a capture of server-sent events, JSON Lines or a JSON array
    /// of events, told apart by the first byte; a leading byte order mark is ignored. Out, in order:
    /// each event as [`Raw::Bytes`](crate::Raw::Bytes), exactly the text that was recorded.
    ///
    /// # Ending
    /// With the source, or with the error that the recorded run ended with. If the recording broke off
    /// between two events, verification finds the replay truncated (rule R8).
    ///
    /// # Errors
    /// [`Error::Source`] with the source's own error, or with the recorded one
    /// ([`RecordedError`](crate::record::RecordedError)); [`Error::Truncated`] if the recording, or the
    /// recorded stream, ends within an event (rule T1a); [`Error::LimitExceeded`];
    /// [`Error::Malformed`] (rule E9) for an invalid array.
    ///
    /// # Cost
    /// Each byte is read once and copied twice. One event and one piece of bytes are held; the piece is
    /// read as far as events are asked for. If the times are those of `timestamp`s, one more pass over
    /// each event.
    ///
    /// # Cancel safety
    /// A dropped `next()` loses nothing, and the time goes on.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::record::{RecordStreamExt, Timing};
    /// use ag_ui_stream::combinator::pieces;
    /// use ag_ui_stream::EventStreamExt;
    /// use futures::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// // As well a `tokio::fs::File`.
    /// let file = &b": ag-ui-recording 1\n\n: +2.500000s\ndata: {\"type\":\"RUN_ERROR\",\"message\":\"overloaded\"}\n\n"[..];
    /// let began = tokio::time::Instant::now();
    /// let mut events = pieces(file).replay(Timing::original()).events();
    /// assert!(events.next().await.unwrap().is_ok());
    /// assert_eq!(began.elapsed().as_millis(), 2500);
    /// # }
    /// ```
    fn replay<B, E>(self, timing: Timing) -> Replayed<Self>
    where
        Self: Stream<Item = Result<B, E>> + Sized,
        B: Piece,
        E: Into<BoxError>,
    {
        self.replay_with(timing, Limits::default())
    }

    /// [`replay`](RecordStreamExt::replay) with other bounds.
    fn replay_with<B, E>(self, timing: Timing, limits: Limits) -> Replayed<Self>
    where
        Self: Stream<Item = Result<B, E>> + Sized,
        B: Piece,
        E: Into<BoxError>,
    {
        Replayed::new(self, timing, limits)
    }
}

impl<S: Stream + ?Sized> RecordStreamExt for S {}

/// `record` as a method of every agent.
pub trait RecordAgentExt: Agent {
    /// The same agent, with each run recorded: [`RecordAgent`].
    ///
    /// `open` gives the writer of a run, from its input. Times are counted from before the agent is
    /// run, so that a replay waits for the first event as long as the application did.
    ///
    /// # Errors
    /// If `open` fails, the run does not start. If a writer fails later, the run goes on, and the
    /// failure ([`RecordingFailed`](super::RecordingFailed)) is the last item of its stream, after all
    /// events: it does not take back the outcome of the run (rule R8a). If the run fails too, its error
    /// is the last item, and that of the writer is only logged.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::agent::Replay;
    /// use ag_ui_stream::record::RecordAgentExt;
    /// use ag_ui_stream::{AgentExt, RunAgentInput};
    /// use futures::TryStreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path().to_owned();
    /// let agent = Replay::new([r#"{"type":"RUN_ERROR","message":"overloaded"}"#]);
    /// let recorded = agent.record(move |input: &RunAgentInput| {
    ///     let path = folder.join(format!("{}.sse", input.run_id));
    ///     async move { tokio::fs::File::create(path).await }
    /// });
    /// let events: Vec<_> = recorded.events(RunAgentInput::new("t", "r", [])).await?.try_collect().await?;
    /// assert_eq!(events.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    fn record<F, Fut, W>(self, open: F) -> RecordAgent<Self, F>
    where
        Self: Sized,
        F: Fn(&RunAgentInput) -> Fut + Send + Sync,
        Fut: Future<Output = std::io::Result<W>> + Send,
        W: AsyncWrite + Send + 'static,
    {
        RecordAgent::new(self, open)
    }
}

impl<A: Agent + ?Sized> RecordAgentExt for A {}

impl Replay {
    /// An agent that gives the events of a recording, each at its time, and ends as it did.
    ///
    /// For the forms of a recording and the errors see [`replay`](RecordStreamExt::replay). It is read
    /// again for each run.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// use ag_ui_stream::record::Timing;
    /// use ag_ui_stream::agent::Replay;
    /// use ag_ui_stream::{AgentExt, RunAgentInput};
    /// use futures::TryStreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), ag_ui_stream::Error<ag_ui_stream::agent::AgentError>> {
    /// let lines = concat!(
    ///     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#, "\n",
    ///     r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#, "\n",
    /// );
    /// let agent = Replay::recorded(lines, Timing::every(Duration::from_millis(40)));
    /// let events: Vec<_> = agent.events(RunAgentInput::new("t", "r", [])).await?.try_collect().await?;
    /// assert_eq!(events.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn recorded(recording: impl Into<Vec<u8>>, timing: Timing) -> Self {
        let recording = Recording::from(recording.into());
        Self::from_fn(move || recording.clone().replay(timing.clone()).boxed())
    }
}
