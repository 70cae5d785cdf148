//! The `Agent` trait: anything that can run and give raw events, such as a client or a recording.

use core::fmt;
use core::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, Stream, StreamExt};

use crate::combinator::{EventStreamExt, Events, Items, RawInput, Snapshots, Updates};
use crate::error::Error;
pub use crate::error::{AgentError, BoxError};
use crate::limits::Limits;
use crate::machine::{Pipeline, PipelineBuilder};
use crate::raw::Owned;
use crate::raw::{Raw, RawEvent, RawItem};
use crate::run_input::RunAgentInput;

/// The raw events of a run, as they come, with the warnings of the decoder.
///
/// Every method of [`EventStreamExt`] takes it. [`raw_event_stream`] makes one.
///
/// # Errors
/// [`Error::Source`] with the agent's own, and those of a decoder: [`Error::Truncated`],
/// [`Error::LimitExceeded`], [`Error::Malformed`]. The error is the last item.
pub type RawEventStream = Pin<Box<dyn Stream<Item = Result<RawItem, Error<AgentError>>> + Send>>;

/// Anything that can run and give raw events: a client of a server, a program of your own, a recording.
///
/// It is object safe: an application can hold a `Box<dyn Agent>` and replace it for a test.
/// [`AgentExt`] leads from here to events and conversations. Implemented for:
///
/// - closures from the input to a future of a stream ([`agent_fn`] helps to write them);
/// - [`Replay`], given events;
/// - `Box<dyn Agent>`, `&dyn Agent` and any [`Arc`] of an agent.
///
/// # Examples
/// ```
/// use ag_ui_stream::agent::{AgentError, RawEventStream, Replay};
/// use ag_ui_stream::{Agent, AgentExt, RunAgentInput};
/// use futures::TryStreamExt;
///
/// /// Tries another agent where the first cannot be reached.
/// struct Fallback(Box<dyn Agent>, Box<dyn Agent>);
///
/// #[async_trait::async_trait]
/// impl Agent for Fallback {
///     async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
///         match self.0.run(input.clone()).await {
///             Ok(events) => Ok(events),
///             Err(_) => self.1.run(input).await,
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ag_ui_stream::Error<AgentError>> {
/// let down = Replay::unreachable("connection refused");
/// let recorded = Replay::new([r#"{"type":"RUN_ERROR","message":"overloaded"}"#]);
/// let agent = Fallback(Box::new(down), Box::new(recorded));
///
/// let input = RunAgentInput::new("thread", "run", []);
/// let updates: Vec<_> = agent.updates(input).await?.try_collect().await?;
/// assert_eq!(updates[0].snapshot().run().unwrap().outcome.as_str(), "error");
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Agent: Send + Sync {
    /// Starts a run, and gives its events as they come.
    ///
    /// Dropping the stream abandons the run.
    ///
    /// # Errors
    /// If the run cannot be started. A later failure is the last item of the stream.
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError>;

    /// The bounds that [`AgentExt`] gives to the pipeline, so that an event which the agent's decoder
    /// accepts is not too long for the next stage.
    ///
    /// An agent around another one should return the bounds of that; the default is
    /// [`Limits::default`].
    fn limits(&self) -> Limits {
        Limits::default()
    }
}

/// The events and conversations of an [`Agent`], with one call.
///
/// The conversation begins with the messages and the state of the input. If the agent cannot be run, or
/// its stream fails, the error is [`Error::Source`]. Errors and warnings of its decoder are the same as
/// without an agent.
///
/// For other options than the defaults: `agent.run(input).await?.updates_with(pipeline)`, with a
/// pipeline that [knows the input](crate::machine::PipelineBuilder::input) and has the
/// [bounds](Agent::limits) of the agent.
pub trait AgentExt: Agent {
    /// Runs the agent: each event with the conversation after it, as
    /// [`EventStreamExt::updates`] gives them.
    fn updates(
        &self,
        input: RunAgentInput,
    ) -> impl Future<Output = Result<Updates<RawEventStream>, Error<AgentError>>> + Send {
        async move {
            let (events, pipeline) = begin(self, input).await?;
            Ok(events.updates_with(pipeline.build()))
        }
    }

    /// Runs the agent: the conversation each time that it changed, as
    /// [`EventStreamExt::snapshots`] gives them.
    fn snapshots(
        &self,
        input: RunAgentInput,
    ) -> impl Future<Output = Result<Snapshots<RawEventStream>, Error<AgentError>>> + Send {
        async move {
            let (events, pipeline) = begin(self, input).await?;
            Ok(events.snapshots_with(pipeline.build()))
        }
    }

    /// Runs the agent: its events, verified and expanded, as [`EventStreamExt::events`] gives
    /// them.
    fn events(
        &self,
        input: RunAgentInput,
    ) -> impl Future<Output = Result<Events<RawEventStream>, Error<AgentError>>> + Send {
        async move {
            let (events, pipeline) = begin(self, input).await?;
            Ok(events.events_with(pipeline.build_events()))
        }
    }

    /// Runs the agent: the same with the warnings, in order, as [`EventStreamExt::items`] gives
    /// them.
    fn items(
        &self,
        input: RunAgentInput,
    ) -> impl Future<Output = Result<Items<RawEventStream>, Error<AgentError>>> + Send {
        async move {
            let (events, pipeline) = begin(self, input).await?;
            Ok(events.items_with(pipeline.build_events()))
        }
    }
}

impl<A: Agent + ?Sized> AgentExt for A {}

/// Runs the agent, and gives the builder of a pipeline that knows the input.
async fn begin(
    agent: &(impl Agent + ?Sized),
    input: RunAgentInput,
) -> Result<(RawEventStream, PipelineBuilder), Error<AgentError>> {
    let pipeline = Pipeline::builder().limits(agent.limits()).input(&input);
    Ok((agent.run(input).await.map_err(Error::Source)?, pipeline))
}

#[async_trait]
impl<F, Fut, S> Agent for F
where
    F: Fn(RunAgentInput) -> Fut + Send + Sync,
    Fut: Future<Output = Result<S, AgentError>> + Send,
    S: Stream<Item: RawInput<Error: Into<BoxError>>> + Send + 'static,
{
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
        Ok(raw_event_stream(self(input).await?))
    }
}

/// Makes a [`RawEventStream`] from any stream that a stage on raw events takes. Most implementations of
/// [`Agent`] end with it.
///
/// Events are numbered in order, unless a decoder has done so. A source that fails is not polled again.
///
/// # Examples
/// ```
/// use ag_ui_stream::agent::{AgentError, RawEventStream, raw_event_stream};
/// use ag_ui_stream::{Agent, RunAgentInput};
/// use tokio::sync::mpsc;
/// use tokio_stream::wrappers::ReceiverStream;
///
/// /// Runs in a task of its own.
/// struct Local;
///
/// #[async_trait::async_trait]
/// impl Agent for Local {
///     async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
///         let (events, receiver) = mpsc::channel::<String>(16);
///         tokio::spawn(async move {
///             let _ = events.send(format!(r#"{{"type":"RUN_STARTED","threadId":"{}"}}"#, input.thread_id)).await;
///         });
///         Ok(raw_event_stream(ReceiverStream::new(receiver)))
///     }
/// }
/// ```
pub fn raw_event_stream<S>(events: S) -> RawEventStream
where
    S: Stream<Item: RawInput<Error: Into<BoxError>>> + Send + 'static,
{
    let mut next = 0;
    let items = events.map(move |item| {
        let item = item.into_result().map_err(|error| error.map_source(AgentError::new))?;
        Ok(match item.own() {
            Owned::Event(raw, index) => {
                let index = index.unwrap_or(next);
                next = index.saturating_add(1);
                RawItem::Event { raw, index }
            }
            Owned::Warning(warning) => RawItem::Warning(warning),
        })
    });
    items.boxed()
}

/// Returns a closure unchanged, and tells the compiler that it is an [`Agent`]: the types of its
/// argument and error are then inferred.
///
/// # Examples
/// ```
/// use ag_ui_stream::event::{RunFinishedEvent, RunStartedEvent};
/// use ag_ui_stream::agent::agent_fn;
/// use ag_ui_stream::{Agent, AgentExt, Event, RunAgentInput};
/// use futures::{TryStreamExt, stream};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ag_ui_stream::Error<ag_ui_stream::agent::AgentError>> {
/// let agent: Box<dyn Agent> = Box::new(agent_fn(|input| async move {
///     Ok(stream::iter([
///         Event::from(RunStartedEvent::new(input.thread_id.clone(), input.run_id.clone())),
///         Event::from(RunFinishedEvent::new(input.thread_id, input.run_id)),
///     ]))
/// }));
/// let events: Vec<_> = agent.events(RunAgentInput::new("thread", "run", [])).await?.try_collect().await?;
/// assert_eq!(events.len(), 2);
/// # Ok(())
/// # }
/// ```
pub fn agent_fn<F, Fut, S>(run: F) -> F
where
    F: Fn(RunAgentInput) -> Fut + Send + Sync,
    Fut: Future<Output = Result<S, AgentError>> + Send,
    S: Stream<Item: RawInput<Error: Into<BoxError>>> + Send + 'static,
{
    run
}

#[async_trait]
impl Agent for Box<dyn Agent + '_> {
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
        (**self).run(input).await
    }

    fn limits(&self) -> Limits {
        (**self).limits()
    }
}

#[async_trait]
impl Agent for &(dyn Agent + '_) {
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
        (**self).run(input).await
    }

    fn limits(&self) -> Limits {
        (**self).limits()
    }
}

#[async_trait]
impl<A: Agent + ?Sized> Agent for Arc<A> {
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
        (**self).run(input).await
    }

    fn limits(&self) -> Limits {
        (**self).limits()
    }
}

/// An agent that gives the same events in each run: those of a recording or of a test.
///
/// It ignores its input; the events keep their own ids.
///
/// # Examples
/// ```
/// use ag_ui_stream::agent::Replay;
/// use ag_ui_stream::{AgentExt, Error, RunAgentInput};
/// use futures::StreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let agent = Replay::new([r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#]).failing("connection reset");
/// let mut events = agent.events(RunAgentInput::new("t", "r", [])).await.unwrap();
/// assert!(events.next().await.unwrap().is_ok());
/// assert!(matches!(events.next().await, Some(Err(Error::Source(error))) if error.to_string() == "connection reset"));
/// # }
/// ```
#[derive(Clone)]
pub struct Replay {
    open: Result<Arc<dyn Fn() -> RawEventStream + Send + Sync>, AgentError>,
    fails: Option<AgentError>,
}

impl Replay {
    /// An agent that gives these events and then ends.
    pub fn new(events: impl IntoIterator<Item: Into<Raw>>) -> Self {
        let events: Arc<[Raw]> = events.into_iter().map(Into::into).collect();
        Self::from_fn(move || {
            let events = Arc::clone(&events);
            let events = (0..events.len()).filter_map(move |index| events.get(index).cloned());
            raw_event_stream(stream::iter(events))
        })
    }

    /// An agent whose every run is the stream that `open` makes.
    pub(crate) fn from_fn(open: impl Fn() -> RawEventStream + Send + Sync + 'static) -> Self {
        Self { open: Ok(Arc::new(open)), fails: None }
    }

    /// An agent that cannot be run.
    pub fn unreachable(error: impl Into<BoxError>) -> Self {
        Self { open: Err(AgentError::new(error)), fails: None }
    }

    /// The same, with this error after the events.
    #[must_use]
    pub fn failing(self, error: impl Into<BoxError>) -> Self {
        Self { fails: Some(AgentError::new(error)), ..self }
    }
}

#[async_trait]
impl Agent for Replay {
    async fn run(&self, _: RunAgentInput) -> Result<RawEventStream, AgentError> {
        let open = self.open.as_ref().map_err(AgentError::clone)?;
        let fails = stream::iter(self.fails.clone().map(|error| Err(Error::Source(error))));
        Ok(open().chain(fails).boxed())
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("unreachable", &self.open.as_ref().err())
            .field("fails", &self.fails)
            .finish_non_exhaustive()
    }
}
