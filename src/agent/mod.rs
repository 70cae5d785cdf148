//! The `Agent` trait: anything that can run and give raw events, such as a client or a recording.

use core::fmt;
use core::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, Stream, StreamExt};

use crate::combinator::{EventStreamExt, Events, Items, RawInput, Snapshots, Updates};
use crate::error::Error;
pub use crate::error::{AgentError, BoxError};
use crate::options::Options;
use crate::raw::Owned;
use crate::raw::{Raw, RawEvent, RawItem};
use crate::run_input::RunAgentInput;

/// The raw events of a run, as they come, with the warnings of the decoder.
///
/// A stream that any method of [`EventStreamExt`] takes. [`raw_event_stream`] makes one, and has it say
/// first which [options](RawItem::Options) it is read with: the input's messages and state, so that
/// `agent.run(input).await?.updates()` knows the conversation.
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
}

/// The events and conversations of an [`Agent`], with one call.
///
/// The conversation begins with the messages and the state of the input. If the agent cannot be run, or
/// its stream fails, the error is [`Error::Source`]. Errors and warnings of its decoder are the same as
/// without an agent.
///
/// Each has a twin that takes [`Options`]. What these leave open is the agent's to say: a client passes the
/// limits on that its decoder has.
pub trait AgentExt: Agent {
    /// Runs the agent: each event with the conversation after it, as
    /// [`EventStreamExt::updates`] gives them.
    fn updates(
        &self,
        input: RunAgentInput,
    ) -> impl Future<Output = Result<Updates<RawEventStream>, Error<AgentError>>> + Send {
        self.updates_with(input, Options::new())
    }

    /// The same with these options.
    fn updates_with(
        &self,
        input: RunAgentInput,
        options: Options,
    ) -> impl Future<Output = Result<Updates<RawEventStream>, Error<AgentError>>> + Send {
        async move {
            let options = options.or(Options::new().input(&input));
            Ok(self.run(input).await.map_err(Error::Source)?.updates_with(options))
        }
    }

    /// Runs the agent: the conversation each time that it changed, as
    /// [`EventStreamExt::snapshots`] gives them.
    fn snapshots(
        &self,
        input: RunAgentInput,
    ) -> impl Future<Output = Result<Snapshots<RawEventStream>, Error<AgentError>>> + Send {
        self.snapshots_with(input, Options::new())
    }

    /// The same with these options.
    fn snapshots_with(
        &self,
        input: RunAgentInput,
        options: Options,
    ) -> impl Future<Output = Result<Snapshots<RawEventStream>, Error<AgentError>>> + Send {
        async move {
            let options = options.or(Options::new().input(&input));
            Ok(self.run(input).await.map_err(Error::Source)?.snapshots_with(options))
        }
    }

    /// Runs the agent: its events, verified and expanded, as [`EventStreamExt::events`] gives
    /// them.
    fn events(
        &self,
        input: RunAgentInput,
    ) -> impl Future<Output = Result<Events<RawEventStream>, Error<AgentError>>> + Send {
        self.events_with(input, Options::new())
    }

    /// The same with these options.
    fn events_with(
        &self,
        input: RunAgentInput,
        options: Options,
    ) -> impl Future<Output = Result<Events<RawEventStream>, Error<AgentError>>> + Send {
        async move {
            let options = options.or(Options::new().input(&input));
            Ok(self.run(input).await.map_err(Error::Source)?.events_with(options))
        }
    }

    /// Runs the agent: the same with the warnings, in order, as [`EventStreamExt::items`] gives
    /// them.
    fn items(
        &self,
        input: RunAgentInput,
    ) -> impl Future<Output = Result<Items<RawEventStream>, Error<AgentError>>> + Send {
        self.items_with(input, Options::new())
    }

    /// The same with these options.
    fn items_with(
        &self,
        input: RunAgentInput,
        options: Options,
    ) -> impl Future<Output = Result<Items<RawEventStream>, Error<AgentError>>> + Send {
        async move {
            let options = options.or(Options::new().input(&input));
            Ok(self.run(input).await.map_err(Error::Source)?.items_with(options))
        }
    }

    /// The agent with a [layer](crate::layer) around it.
    fn layer<L: Layer<Self>>(self, layer: L) -> L::Agent
    where
        Self: Sized,
    {
        layer.layer(self)
    }
}

impl<A: Agent + ?Sized> AgentExt for A {}

/// What can be put around an agent: those of [`layer`](crate::layer), or one of your own. A closure from an
/// agent to another is one too.
///
/// ```
/// use ag_ui_stream::agent::Replay;
/// use ag_ui_stream::{AgentExt, RunAgentInput};
/// use futures::StreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let agent = Replay::new([r#"{"type":"RUN_ERROR","message":"no"}"#]).layer(|agent: Replay| agent.failing("reset"));
/// let mut events = agent.events(RunAgentInput::new("thread", "run", [])).await.unwrap();
/// assert!(events.next().await.unwrap().is_ok());
/// assert!(events.next().await.unwrap().is_err());
/// # }
/// ```
pub trait Layer<A> {
    /// The agent with the layer around it.
    type Agent: Agent;

    /// Puts the layer around an agent.
    fn layer(self, agent: A) -> Self::Agent;
}

impl<A, B: Agent, F: FnOnce(A) -> B> Layer<A> for F {
    type Agent = B;

    fn layer(self, agent: A) -> B {
        self(agent)
    }
}

#[async_trait]
impl<F, Fut, S> Agent for F
where
    F: Fn(RunAgentInput) -> Fut + Send + Sync,
    Fut: Future<Output = Result<S, AgentError>> + Send,
    S: Stream<Item: RawInput<Error: Into<BoxError>>> + Send + 'static,
{
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
        let said = Options::of_run(&input);
        Ok(told(said, self(input).await?))
    }
}

/// From a stream that a stage on raw events would take to the [`RawEventStream`] of a run with this input:
/// what most implementations of [`Agent`] end with. Typed events and items are raw events too, so that
/// middleware may work on either.
///
/// Events are numbered in the order in which they come, unless a stage has done so. An error of this
/// crate stays what it is, a violation a violation; any other is [`Error::Source`]. A source that fails
/// is not polled again.
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
///         let started = format!(r#"{{"type":"RUN_STARTED","threadId":"{}"}}"#, input.thread_id);
///         tokio::spawn(async move {
///             let _ = events.send(started).await;
///         });
///         Ok(raw_event_stream(&input, ReceiverStream::new(receiver)))
///     }
/// }
/// ```
///
/// Middleware over typed items, around any agent; where a [layer](crate::layer) does it, that is shorter:
/// ```
/// use ag_ui_stream::agent::{AgentError, RawEventStream, Replay, raw_event_stream};
/// use ag_ui_stream::{Agent, AgentExt, Event, Item, RunAgentInput};
/// use futures::TryStreamExt;
///
/// /// Leaves out what is no part of the conversation.
/// struct Quiet<A>(A);
///
/// #[async_trait::async_trait]
/// impl<A: Agent> Agent for Quiet<A> {
///     async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
///         let items = self.0.run(input.clone()).await?.enforce();
///         let is_loud = |item: &Item| matches!(item.event(), Some(Event::Custom(_)));
///         Ok(raw_event_stream(&input, items.try_filter(move |item| std::future::ready(!is_loud(item)))))
///     }
/// }
///
/// # use ag_ui_stream::EventStreamExt;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ag_ui_stream::Error<AgentError>> {
/// let agent = Quiet(Replay::new([
///     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
///     r#"{"type":"CUSTOM","name":"n","value":0}"#,
///     r#"{"type":"STEP_FINISHED","stepName":"s"}"#,
/// ]));
/// let updates = agent.updates(RunAgentInput::new("t", "r", [])).await?;
/// let error = updates.try_for_each(|_| async { Ok(()) }).await.unwrap_err();
/// assert!(matches!(error, ag_ui_stream::Error::Violation(violation) if violation.event == 2));
/// # Ok(())
/// # }
/// ```
pub fn raw_event_stream<S>(input: &RunAgentInput, events: S) -> RawEventStream
where
    S: Stream<Item: RawInput<Error: Into<BoxError>>> + Send + 'static,
{
    told(Options::of_run(input), events)
}

/// The stream of a run that says this of itself.
pub(crate) fn told<S>(said: Options, events: S) -> RawEventStream
where
    S: Stream<Item: RawInput<Error: Into<BoxError>>> + Send + 'static,
{
    let mut next = 0;
    let items = events.map(move |item| {
        let item = item.into_result().map_err(|error| unwrapped(error.map_source(AgentError::new)))?;
        Ok(match item.own() {
            Owned::Event(raw, index) => {
                let index = index.unwrap_or(next);
                next = index.saturating_add(1);
                RawItem::Event { raw, index }
            }
            Owned::Warning(warning) => RawItem::Warning(warning),
            Owned::Options(options) => RawItem::Options(options),
        })
    });
    match said.is_empty() {
        true => items.boxed(),
        false => stream::iter([Ok(RawItem::Options(Box::new(said)))]).chain(items).boxed(),
    }
}

/// What a stage before found, where a source's error holds it.
fn unwrapped(error: Error<AgentError>) -> Error<AgentError> {
    let Error::Source(error) = error else { return error };
    if let Some(found) = error.downcast_ref::<Error<AgentError>>() {
        return unwrapped(found.clone());
    }
    match error.downcast_ref::<Error>() {
        Some(found) => found.clone().with_source(),
        None => Error::Source(error),
    }
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
}

#[async_trait]
impl Agent for &(dyn Agent + '_) {
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
        (**self).run(input).await
    }
}

#[async_trait]
impl<A: Agent + ?Sized> Agent for Arc<A> {
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
        (**self).run(input).await
    }
}

/// An agent that gives the same events in each run: those of a recording or of a test.
///
/// Of its input it takes no more than the conversation before; what it gives carries the ids that it was
/// made with.
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
            told(Options::new(), stream::iter(events))
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
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
        let open = self.open.as_ref().map_err(AgentError::clone)?;
        let fails = stream::iter(self.fails.clone().map(|error| Err(Error::Source(error))));
        Ok(raw_event_stream(&input, open().chain(fails)))
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
