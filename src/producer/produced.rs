//! `run` and `agent`: a run that a closure writes, as a stream and as an agent.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::{FusedStream, Stream};

use super::context::Shared;
use super::{Failure, Finish, RunContext};
use crate::agent::{Agent, RawEventStream, told};
use crate::error::AgentError;
use crate::event::Event;
use crate::options::Options;
use crate::run_input::RunAgentInput;

/// Runs a closure that writes a run, and gives the run's events.
///
/// The stream gives, in this order: RUN_STARTED, with the ids of the input; the events that the closure
/// writes; then, if the closure succeeds, the events that close open items, and RUN_FINISHED with the returned
/// value; or, if it fails, RUN_ERROR with the error as the message, which abandons open items (rule R5). The
/// error is logged. The stream always passes
/// [`EventStreamExt::updates`](crate::EventStreamExt::updates).
///
/// The stream polls the closure: nothing is spawned, no runtime is needed, and to drop the stream is to drop
/// the closure where it stands. A task that the closure spawns may write through a clone of the context, and
/// is refused (R4, R8) after the run is over or its stream was dropped.
///
/// # Cancel safety
/// A dropped `next()` loses nothing.
///
/// # Examples
/// ```
/// use ag_ui_stream::{EventStreamExt, RunAgentInput, producer};
/// use futures::TryStreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ag_ui_stream::Error> {
/// let run = producer::run(RunAgentInput::new("thread", "run", []), async move |run| {
///     let mut answer = run.open_text().await?;
///     answer.push("The answer is ").await?;
///     let answer: u8 = "forty-two".parse().map_err(|_| "invalid number")?;
///     run.text(answer.to_string()).await?;
///     Ok(())
/// });
/// let updates: Vec<_> = run.updates().try_collect().await?;
/// let run = updates.last().unwrap().snapshot().run().unwrap();
/// assert_eq!(run.outcome.as_str(), "error");
/// # Ok(())
/// # }
/// ```
pub fn run<F, Fut, T>(input: RunAgentInput, run: F) -> ProducedRun
where
    F: FnOnce(RunContext) -> Fut,
    Fut: Future<Output = Result<T, AgentError>> + Send + 'static,
    T: Into<Finish>,
{
    let (context, shared) = RunContext::new(input);
    let running = run(context);
    let running = async move { running.await.map(Into::into) };
    ProducedRun { running: Some(Box::pin(running)), cancelled: None, shared, is_polling: false }
}

/// The events of a run that a closure writes: the stream of [`run`].
#[must_use = "streams do nothing unless polled"]
pub struct ProducedRun {
    running: Option<BoxFuture<'static, Result<Finish, AgentError>>>,
    cancelled: Option<BoxFuture<'static, ()>>,
    shared: Arc<Shared>,
    // If a poll begins with this set, the closure has panicked.
    is_polling: bool,
}

impl ProducedRun {
    /// The same, cancelled when the future `cancelled` is ready: the closure is dropped where it stands, open
    /// items are closed, and the run ends with the outcome `cancelled` (rule R7).
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::{EventStreamExt, RunAgentInput, producer};
    /// use futures::{FutureExt, TryStreamExt};
    /// use tokio::sync::oneshot;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ag_ui_stream::Error> {
    /// let (stop, stopped) = oneshot::channel::<()>();
    /// let run = producer::run(RunAgentInput::new("thread", "run", []), async move |run| {
    ///     let _answer = run.open_text().await?;
    ///     let _ = stop.send(());
    ///     std::future::pending::<()>().await;
    ///     Ok(())
    /// });
    /// let updates: Vec<_> = run.cancelled_by(stopped.map(|_| ())).updates().try_collect().await?;
    /// let run = updates.last().unwrap().snapshot().run().unwrap();
    /// assert_eq!(run.outcome.as_str(), "cancelled");
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancelled_by(mut self, cancelled: impl Future<Output = ()> + Send + 'static) -> Self {
        self.cancelled = Some(Box::pin(cancelled));
        self
    }
}

impl Stream for ProducedRun {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let this = self.get_mut();
        loop {
            if let Some(event) = this.shared.pop() {
                return Poll::Ready(Some(event));
            }
            let Some(running) = &mut this.running else { return Poll::Ready(None) };
            let end = if core::mem::replace(&mut this.is_polling, true) {
                Some(Err(Failure::new("the agent panicked").into()))
            } else if this.cancelled.as_mut().is_some_and(|cancelled| cancelled.as_mut().poll(cx).is_ready()) {
                Some(Ok(Finish::cancelled()))
            } else {
                match running.as_mut().poll(cx) {
                    Poll::Ready(result) => Some(result),
                    Poll::Pending => None,
                }
            };
            this.is_polling = false;
            match end {
                Some(end) => {
                    this.cancelled = None;
                    // Dropping it closes the items that it holds, unless the run fails.
                    this.running = None;
                    this.shared.end(end);
                }
                None if this.shared.poll_ready(cx).is_ready() => {}
                None => return Poll::Pending,
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let ready = self.shared.ready();
        // The end of the run is still to come.
        if self.running.is_some() { (ready.saturating_add(1), None) } else { (ready, Some(ready)) }
    }
}

impl FusedStream for ProducedRun {
    fn is_terminated(&self) -> bool {
        self.running.is_none() && self.shared.ready() == 0
    }
}

/// Writers that are left get an error after this.
impl Drop for ProducedRun {
    fn drop(&mut self) {
        self.shared.leave();
    }
}

impl fmt::Debug for ProducedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProducedRun")
            .field("is_running", &self.running.is_some())
            .field("ready", &self.shared.ready())
            .finish_non_exhaustive()
    }
}

/// An agent that writes each of its runs with a closure: [`run()`] for every input.
///
/// ```
/// use ag_ui_stream::{AgentExt, RunAgentInput, producer};
/// use futures::TryStreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ag_ui_stream::Error<ag_ui_stream::agent::AgentError>> {
/// let counter = producer::agent(async |run| {
///     run.text(format!("{} messages so far", run.input().messages.len())).await?;
///     Ok(())
/// });
/// let updates: Vec<_> = counter.updates(RunAgentInput::new("thread", "run", [])).await?.try_collect().await?;
/// let snapshot = updates.last().unwrap().snapshot();
/// assert_eq!(snapshot.messages().iter().next().unwrap().text().unwrap(), "0 messages so far");
/// # Ok(())
/// # }
/// ```
pub fn agent<F, Fut, T>(run: F) -> Producer<F>
where
    F: Fn(RunContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<T, AgentError>> + Send + 'static,
    T: Into<Finish>,
{
    Producer { run }
}

/// The agent that [`agent`] makes.
#[derive(Clone)]
pub struct Producer<F> {
    run: F,
}

#[async_trait]
impl<F, Fut, T> Agent for Producer<F>
where
    F: Fn(RunContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<T, AgentError>> + Send + 'static,
    T: Into<Finish>,
{
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
        Ok(told(Options::of_run(&input), run(input, &self.run)))
    }
}

impl<F> fmt::Debug for Producer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").finish_non_exhaustive()
    }
}
