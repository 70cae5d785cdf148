//! Layers: agents around an agent, which change or watch its events, or run it again.
//!
//! [`AgentExt::layer`](crate::AgentExt::layer) puts a layer around an agent and gives the agent that results.
//! The layer that is added last sees the events last.
//!
//! | layer | what it does |
//! |---|---|
//! | [`Filter`] | leaves out the calls of some tools, or whole kinds of events |
//! | [`RewriteIds`] | gives messages, calls and subagents other ids |
//! | [`Coalesce`] | joins deltas that follow each other |
//! | [`Observe`] | shows each item, and the end, to a closure |
//! | [`Retry`] | runs the agent again if its run did not begin |
//! | [`Through`] | passes items through a [machine](crate::machine::Machine) of your own |
//! | [`merge`] | not a layer: makes one agent of several, as subagents of one run |
//!
//! # What holds for all
//! - They work on items, events and warnings, after enforcement and verification; so does what they give.
//!   A legal run stays legal.
//! - Errors go through as they are: one that broke a rule keeps it, one of the transport is one.
//! - The input goes to the agent as it is. The limits that the agent says it is read with, as a client does,
//!   hold for the layers around it too, unless the [options](crate::Options) of the outermost call say
//!   otherwise. Those of merged agents hold for each of them; their one run has the defaults.
//!
//! # Examples
//! ```
//! use ag_ui_stream::layer::{EventKind, Filter, Observe, Seen};
//! use ag_ui_stream::{AgentExt, RunAgentInput, producer};
//! use futures::TryStreamExt;
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), ag_ui_stream::Error<ag_ui_stream::agent::AgentError>> {
//! let agent = producer::agent(async |run| {
//!     run.reasoning("Nobody is to see this.").await?;
//!     run.tool_call("look_up_password", &json!({"of": "admin"})).await?;
//!     run.text("All is well.").await?;
//!     Ok(())
//! });
//! let agent = agent
//!     .layer(Filter::kinds(|kind| kind != EventKind::Reasoning))
//!     .layer(Filter::tools(|name| !name.contains("password")))
//!     .layer(Observe::new(|run, seen| {
//!         if let Seen::Error(error) = seen {
//!             eprintln!("run {run}: {error}");
//!         }
//!     }));
//! let events: Vec<_> = agent.events(RunAgentInput::new("thread", "run", [])).await?.try_collect().await?;
//! assert_eq!(events.len(), 5);
//! # Ok(())
//! # }
//! ```

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::agent::{Agent, Layer, RawEventStream, raw_event_stream};
use crate::combinator::{EventStreamExt, Items};
use crate::error::AgentError;
use crate::item::Item;
use crate::limits::Limits;
use crate::machine::Push;
use crate::options::Options;
use crate::raw::RawItem;
use crate::run_input::RunAgentInput;

mod coalesce;
mod filter;
mod ids;
mod merge;
mod observe;
mod retry;

pub use coalesce::Coalesce;
pub use filter::{EventKind, Filter};
pub use ids::{IdKind, RewriteIds};
pub use merge::{Merged, merge};
pub use observe::{Observe, Seen};
pub use retry::{Retried, Retry};

/// An agent with a layer around it: made by [`AgentExt::layer`](crate::AgentExt::layer).
#[derive(Clone, Debug)]
pub struct Layered<A, L> {
    agent: A,
    layer: L,
}

impl<A, L> Layered<A, L> {
    fn new(agent: A, layer: L) -> Self {
        Self { agent, layer }
    }

    /// The inner agent.
    pub fn get_ref(&self) -> &A {
        &self.agent
    }

    /// Returns the inner agent.
    pub fn into_inner(self) -> A {
        self.agent
    }
}

/// What a layer does with the items of a run.
trait OnItems: Send + Sync {
    /// The input that the agent gets.
    fn on_input(&self, input: RunAgentInput) -> RunAgentInput {
        input
    }

    /// The items that come out of the layer.
    fn on_items(&self, input: &RunAgentInput, items: Items<RawEventStream>) -> RawEventStream;
}

#[async_trait]
impl<A: Agent, L: OnItems> Agent for Layered<A, L> {
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
        let (items, limits) = items_of(&self.agent, self.layer.on_input(input.clone())).await?;
        Ok(with_limits(self.layer.on_items(&input, items), limits))
    }
}

/// The limits that an agent has, there once its stream has said so.
type SaidLimits = Arc<OnceLock<Limits>>;

/// The items of a run, verified. A stage takes up what the stream says of itself, so it is noted before that.
async fn items_of(agent: &impl Agent, input: RunAgentInput) -> Result<(Items<RawEventStream>, SaidLimits), AgentError> {
    let options = Options::new().input(&input);
    let limits = SaidLimits::default();
    let noted = Arc::clone(&limits);
    let events = agent.run(input).await?.inspect_ok(move |item| {
        if let RawItem::Options(options) = item {
            // The first to say so counts, as in a pipeline.
            let _ = options.limits.map(|limits| noted.set(limits));
        }
    });
    Ok((events.boxed().items_with(options), limits))
}

/// What comes of a layer, which says of itself what the stream within says of its limits, before its first event.
fn with_limits(events: RawEventStream, limits: SaidLimits) -> RawEventStream {
    let mut has_said = false;
    let said = move |item| {
        let limits = limits.get().filter(|_| !core::mem::replace(&mut has_said, true));
        let options = limits.map(|limits| Ok(RawItem::Options(Box::new(Options::new().limits(*limits)))));
        stream::iter(options.into_iter().chain([item]))
    };
    events.flat_map(said).boxed()
}

/// Implements `Layer` for each layer that works on items.
macro_rules! layers {
    ($($name:ident<$($param:ident),*> $(where [$($bounds:tt)*])?;)*) => {$(
        impl<A: Agent, $($param),*> Layer<A> for $name<$($param),*> $(where $($bounds)*)? {
            type Agent = Layered<A, Self>;

            fn layer(self, agent: A) -> Layered<A, Self> {
                Layered::new(agent, self)
            }
        }
    )*};
}

layers! {
    Filter<>;
    Coalesce<>;
    RewriteIds<>;
    Observe<F> where [F: Fn(&crate::id::RunId, Seen<'_>) + Clone + Send + Sync + 'static];
    Through<F, M> where [F: Fn(&RunAgentInput) -> M + Send + Sync, M: Push<Item, Output = Item> + Send + 'static];
}

/// Passes the items of each run through a machine of your own.
///
/// Each run gets a new machine, made from its input. The output of the machine must be legal: if it is not, the
/// next stage gives an error.
///
/// # Examples
/// ```
/// use std::collections::VecDeque;
///
/// use ag_ui_stream::agent::Replay;
/// use ag_ui_stream::layer::Through;
/// use ag_ui_stream::machine::{Machine, Push};
/// use ag_ui_stream::{AgentExt, Error, Event, Item, RunAgentInput};
/// use futures::TryStreamExt;
///
/// /// Leaves out what the producer says of itself.
/// #[derive(Default)]
/// struct WithoutRawEvents(VecDeque<Item>);
///
/// impl Machine for WithoutRawEvents {
///     type Output = Item;
///
///     fn pop(&mut self) -> Option<Item> {
///         self.0.pop_front()
///     }
///
///     fn finish(&mut self) -> Result<(), Error> {
///         Ok(())
///     }
/// }
///
/// impl Push<Item> for WithoutRawEvents {
///     fn push(&mut self, mut item: Item) -> Result<(), Error> {
///         if let Item::Event(indexed) = &mut item {
///             indexed.event.base_mut().raw_event = None;
///         }
///         self.0.push_back(item);
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error<ag_ui_stream::agent::AgentError>> {
/// let agent = Replay::new([r#"{"type":"RUN_ERROR","message":"no","rawEvent":{"secret":1}}"#]);
/// let agent = agent.layer(Through::new(|_: &RunAgentInput| WithoutRawEvents::default()));
/// let events: Vec<_> = agent.events(RunAgentInput::new("t", "r", [])).await?.try_collect().await?;
/// assert_eq!(events, [Event::run_error("no")]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Through<F, M> {
    machine: F,
    made: core::marker::PhantomData<fn() -> M>,
}

impl<F: Fn(&RunAgentInput) -> M, M> Through<F, M> {
    /// A layer with the machine that this closure makes for each run.
    pub fn new(machine: F) -> Self {
        Self { machine, made: core::marker::PhantomData }
    }
}

impl<F, M> core::fmt::Debug for Through<F, M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Through").finish_non_exhaustive()
    }
}

impl<F, M> OnItems for Through<F, M>
where
    F: Fn(&RunAgentInput) -> M + Send + Sync,
    M: Push<Item, Output = Item> + Send + 'static,
{
    fn on_items(&self, input: &RunAgentInput, items: Items<RawEventStream>) -> RawEventStream {
        raw_event_stream(input, items.through((self.machine)(input)))
    }
}
