//! `Retry`: a layer that runs an agent again if its run did not begin.

use core::fmt;

use async_trait::async_trait;
use futures::stream::{self, StreamExt};

use super::Layered;
use crate::agent::{Agent, Layer, RawEventStream};
use crate::error::{AgentError, Error, Truncated, TruncatedBy};
use crate::raw::RawItem;
use crate::run_input::RunAgentInput;

/// Runs an agent again if its run did not begin: if the agent could not be run, or its stream failed or ended
/// before the first event. After the first event it is not run again, because the events would come twice.
///
/// Only an error of the [transport](Error::is_transport) leads to another attempt: a peer that broke a rule
/// would break it again.
///
/// The closure gets the number of the attempt that failed, from 1, and its error. It returns a future that waits,
/// or `None` to give up.
///
/// # Cost
/// The stream of a run is returned only when its first event has come.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use ag_ui_stream::agent::{AgentError, Replay, agent_fn};
/// use ag_ui_stream::layer::Retry;
/// use ag_ui_stream::{AgentExt, Error, RunAgentInput};
/// use futures::TryStreamExt;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let backoff = |attempt: u32, _: &Error<AgentError>| {
///     Some(tokio::time::sleep(Duration::from_millis(100 << attempt)))
/// };
/// let agent = Replay::unreachable("connection refused").layer(Retry::new(3, backoff));
/// assert!(agent.events(RunAgentInput::new("t", "r", [])).await.is_err());
/// // Three attempts, with 200 and 400 milliseconds between them.
/// # }
/// ```
#[derive(Clone)]
pub struct Retry<F> {
    attempts: u32,
    backoff: F,
}

impl<F> Retry<F> {
    /// A layer that makes at most this many attempts.
    pub fn new<Fut>(attempts: u32, backoff: F) -> Self
    where
        F: Fn(u32, &Error<AgentError>) -> Option<Fut> + Send + Sync,
        Fut: Future<Output = ()> + Send,
    {
        Self { attempts, backoff }
    }
}

impl<A, F, Fut> Layer<A> for Retry<F>
where
    A: Agent,
    F: Fn(u32, &Error<AgentError>) -> Option<Fut> + Send + Sync,
    Fut: Future<Output = ()> + Send,
{
    type Agent = Retried<A, F>;

    fn layer(self, agent: A) -> Retried<A, F> {
        Retried(Layered::new(agent, self))
    }
}

/// An agent with [`Retry`] around it.
#[derive(Clone, Debug)]
pub struct Retried<A, F>(Layered<A, Retry<F>>);

#[async_trait]
impl<A, F, Fut> Agent for Retried<A, F>
where
    A: Agent,
    F: Fn(u32, &Error<AgentError>) -> Option<Fut> + Send + Sync,
    Fut: Future<Output = ()> + Send,
{
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
        let Layered { agent, layer: Retry { attempts, backoff } } = &self.0;
        let mut attempt = 1;
        loop {
            let begun = begin(agent, input.clone()).await;
            let error = match &begun {
                Ok((_, None)) => return begun.map(|(events, _)| events),
                Ok((_, Some(error))) => error.clone(),
                Err(error) => Error::Source(error.clone()),
            };
            let wait = if attempt < *attempts && error.is_transport() { backoff(attempt, &error) } else { None };
            match wait {
                Some(wait) => wait.await,
                None => return begun.map(|(events, _)| events),
            }
            attempt += 1;
        }
    }
}

/// The events of a run after the first has come, or else the error that came in its place.
async fn begin(
    agent: &impl Agent,
    input: RunAgentInput,
) -> Result<(RawEventStream, Option<Error<AgentError>>), AgentError> {
    let mut events = agent.run(input).await?;
    let mut first = Vec::new();
    let fault = loop {
        match events.next().await {
            Some(Ok(item)) => {
                let is_event = matches!(item, RawItem::Event { .. });
                first.push(Ok(item));
                if is_event {
                    break None;
                }
            }
            Some(Err(error)) => {
                first.push(Err(error.clone()));
                break Some(error);
            }
            None => break Some(Truncated::new(0, None, TruncatedBy::Close).into()),
        }
    };
    let events = if fault.is_none() { events } else { stream::empty().boxed() };
    Ok((stream::iter(first).chain(events).boxed(), fault))
}

impl<F> fmt::Debug for Retry<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry").field("attempts", &self.attempts).finish_non_exhaustive()
    }
}
