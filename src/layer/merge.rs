//! `merge`: makes one agent of several, which run as subagents of one run.

use core::fmt;
use core::pin::pin;
use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;
use futures::stream::StreamExt;

use super::ids::{rewrite_event, rewrite_input};
use super::items_of;
use crate::agent::{Agent, RawEventStream, told};
use crate::error::{AgentError, Error, Truncated, TruncatedBy};
use crate::event::{
    Event, Interrupt, InterruptOutcome, Interrupts, RunErrorEvent, RunFinishedEvent, RunFinishedOutcome,
    SubagentErrorEvent, SubagentFinishedEvent, SubagentStartedEvent, SubagentSuspendedOutcome, SuccessOutcome,
};
use crate::id::SubagentRunId;
use crate::item::Item;
use crate::options::Options;
use crate::producer::{self, Failure, Finish, OpenSubagent, RunContext};
use crate::run_input::RunAgentInput;

/// Makes one agent of several. It runs them at the same time, as subagents of one run.
///
/// Each agent gets the input. Its events are passed on in the order in which they come, attributed to the
/// subagent of its name (rule O1), and its ids get that name as a prefix: `researcher/m1`. If an agent has
/// subagents of its own, they become subagents of that subagent.
///
/// | if an agent | its subagent | the run, after all are done |
/// |---|---|---|
/// | finishes | finishes, with the result | is a success |
/// | waits for answers | is suspended | waits for the answers of all |
/// | is cancelled | fails with the code `cancelled` | is cancelled, if no other finished or waits |
/// | fails, breaks off or breaks a rule | fails with the message; its open items are closed | fails, if all have |
///
/// If the input has answers to a run that waits, only the agents that asked are run, each with its own answers.
///
/// The run has one state (rule O8): agents that write it must agree about it. A MESSAGES_SNAPSHOT of one agent
/// would drop the messages of the others (rule A2), so it is left out. Warnings are logged. Only the first run
/// of each agent is read.
///
/// # Examples
/// ```
/// use ag_ui_stream::layer::merge;
/// use ag_ui_stream::{AgentExt, RunAgentInput, producer};
/// use futures::TryStreamExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ag_ui_stream::Error<ag_ui_stream::agent::AgentError>> {
/// let says = |text: &'static str| {
///     producer::agent(move |run| async move {
///         run.text(text).await?;
///         Ok(())
///     })
/// };
/// let both = merge([("left", says("One"))]).and("right", says("Two"));
/// let updates: Vec<_> = both.updates(RunAgentInput::new("t", "r", [])).await?.try_collect().await?;
/// let snapshot = updates.last().unwrap().snapshot();
/// let owners: Vec<_> = snapshot.messages().iter().map(|message| message.subagent_run_id().unwrap().as_str()).collect();
/// assert_eq!(owners, ["left", "right"]);
/// assert_eq!(snapshot.run().unwrap().outcome.as_str(), "success");
/// # Ok(())
/// # }
/// ```
pub fn merge<N, A>(agents: impl IntoIterator<Item = (N, A)>) -> Merged
where
    N: Into<String>,
    A: Agent + 'static,
{
    let none = Merged { branches: Vec::new() };
    agents.into_iter().fold(none, |merged, (name, agent)| merged.and(name, agent))
}

/// An agent made of several by [`merge`].
#[derive(Clone)]
pub struct Merged {
    branches: Vec<Branch>,
}

#[derive(Clone)]
struct Branch {
    name: String,
    /// The name, unlike any other, and without a slash, for a slash separates it from an id.
    id: String,
    agent: Arc<dyn Agent>,
}

impl Merged {
    /// The same with one more agent. If its name is taken, it gets a number.
    #[must_use]
    pub fn and(mut self, name: impl Into<String>, agent: impl Agent + 'static) -> Self {
        let name = name.into();
        let stem = name.replace('/', "_");
        let mut id = stem.clone();
        let mut number = 1;
        while self.branches.iter().any(|branch| branch.id == id) {
            number += 1;
            id = format!("{stem}-{number}");
        }
        self.branches.push(Branch { name, id, agent: Arc::new(agent) });
        self
    }
}

impl fmt::Debug for Merged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.branches.iter().map(|branch| &branch.id).collect();
        f.debug_struct("Merged").field("agents", &ids).finish_non_exhaustive()
    }
}

#[async_trait]
impl Agent for Merged {
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
        let branches: Vec<_> = self.branches.iter().filter(|branch| branch.is_asked(&input)).cloned().collect();
        Ok(told(
            Options::of_run(&input),
            producer::run(input, |run| async move {
                // All subagents are started before the first event of one of them.
                let mut running = Vec::new();
                for branch in &branches {
                    let start = SubagentStartedEvent::new(branch.id.as_str(), branch.name.as_str());
                    running.push(branch.run(&run, run.subagent_as(start).await?));
                }
                let ends = join_all(running).await;
                together(branches.iter().zip(ends.into_iter().collect::<Result<Vec<_>, Error>>()?))
            }),
        ))
    }
}

/// How an agent ended.
enum End {
    Finished(Box<RunFinishedEvent>),
    Failed(Box<RunErrorEvent>),
}

impl Branch {
    /// Whether it is to be run: if there are answers, only an agent that asked is.
    fn is_asked(&self, input: &RunAgentInput) -> bool {
        let mut answers = input.resume.iter().flatten().peekable();
        answers.peek().is_none() || answers.any(|answer| self.own(answer.interrupt_id.as_str()).is_some())
    }

    /// The id that the agent itself gave to a thing; `None` for a thing of another agent.
    fn own<'a>(&self, id: &'a str) -> Option<&'a str> {
        id.strip_prefix(self.id.as_str())?.strip_prefix('/')
    }

    /// Runs the agent to its end. An error becomes its end, unless the stream of the run was dropped.
    async fn run(&self, run: &RunContext, subagent: OpenSubagent) -> Result<End, Error> {
        let end = match self.relay(run.input().clone(), &subagent).await {
            Ok(end) => end,
            Err(error) if error.downcast_ref::<Error>().is_some_and(Error::is_truncated) => {
                return Err(Truncated::new(0, Some(run.run_id().as_str().to_owned()), TruncatedBy::Close).into());
            }
            Err(error) => {
                crate::log::run_failed(Some(run.run_id().as_str()), &error);
                End::Failed(Box::new(RunErrorEvent::new(error.to_string())))
            }
        };
        let closes = |owner: &str| owner == self.id || self.own(owner).is_some();
        subagent.end_as(self.end_of_subagent(&end), closes).await?;
        Ok(end)
    }

    /// Writes the events of the agent until its run ends.
    async fn relay(&self, mut input: RunAgentInput, subagent: &OpenSubagent) -> Result<End, AgentError> {
        if let Some(answers) = &mut input.resume {
            answers.retain(|answer| self.own(answer.interrupt_id.as_str()).is_some());
        }
        rewrite_input(&mut input, &|_, id| self.own(id).unwrap_or(id).to_owned());
        let mut items = pin!(items_of(&self.agent, input).await?.0);
        let mut owners = HashMap::new();
        while let Some(item) = items.next().await {
            // Warnings have been logged.
            let Item::Event(indexed) = item.map_err(AgentError::new)? else { continue };
            let mut event = indexed.event;
            rewrite_event(&mut event, &|_, id| format!("{}/{id}", self.id));
            match event {
                Event::RunStarted(_) | Event::MessagesSnapshot(_) => {}
                Event::RunFinished(finished) => return Ok(End::Finished(finished)),
                Event::RunError(failed) => return Ok(End::Failed(failed)),
                mut event => {
                    attribute(&mut event, subagent.id(), &mut owners);
                    subagent.emit(event).await?;
                }
            }
        }
        // Verification does not let a run end like this.
        Err(Error::<core::convert::Infallible>::from(Truncated::new(0, None, TruncatedBy::Close)).to_string().into())
    }

    fn end_of_subagent(&self, end: &End) -> Event {
        match end {
            End::Failed(failed) => {
                let mut event = SubagentErrorEvent::new(self.id.as_str(), Arc::clone(&failed.message));
                event.code.clone_from(&failed.code);
                event.into()
            }
            End::Finished(finished) => match &finished.outcome {
                Some(RunFinishedOutcome::Cancelled(_)) => {
                    let mut event = SubagentErrorEvent::new(self.id.as_str(), "cancelled");
                    event.code = Some("cancelled".into());
                    event.into()
                }
                outcome => {
                    let mut event = SubagentFinishedEvent::new(self.id.as_str());
                    event.result.clone_from(&finished.result);
                    if let Some(RunFinishedOutcome::Interrupt(outcome)) = outcome {
                        let mut suspended = SubagentSuspendedOutcome::new();
                        let interrupts = outcome.interrupts.as_slice().iter();
                        suspended.interrupt_ids = Some(interrupts.map(|interrupt| interrupt.id.clone()).collect());
                        event.outcome = Some(suspended.into());
                    }
                    event.into()
                }
            },
        }
    }
}

/// The outcome of the run of several agents.
fn together<'a>(ends: impl Iterator<Item = (&'a Branch, End)>) -> Result<Finish, AgentError> {
    let mut interrupts: Vec<Interrupt> = Vec::new();
    let mut pending = Vec::new();
    let mut usage = Vec::new();
    let mut failures = Vec::new();
    let (mut finished_some, mut cancelled_some) = (false, false);
    for (branch, end) in ends {
        match end {
            End::Failed(failed) => {
                usage.extend(failed.usage.into_iter().flatten());
                failures.push(format!("{}: {}", branch.name, failed.message));
            }
            End::Finished(finished) => {
                usage.extend(finished.usage.into_iter().flatten());
                match finished.outcome {
                    Some(RunFinishedOutcome::Cancelled(_)) => cancelled_some = true,
                    Some(RunFinishedOutcome::Interrupt(outcome)) => {
                        finished_some = true;
                        interrupts.extend(outcome.interrupts.as_slice().iter().cloned().map(|mut interrupt| {
                            interrupt.subagent_run_id.get_or_insert_with(|| branch.id.as_str().into());
                            interrupt
                        }));
                    }
                    Some(RunFinishedOutcome::Success(outcome)) => {
                        finished_some = true;
                        pending.extend(outcome.pending_tool_call_ids.into_iter().flatten());
                    }
                    None => finished_some = true,
                }
            }
        }
    }
    if !finished_some && !cancelled_some && !failures.is_empty() {
        return Err(Failure::new(failures.join("; ")).with_usage(usage).into());
    }
    let mut finish = match Interrupts::from_iter(interrupts) {
        Some(interrupts) => InterruptOutcome::new(interrupts).into(),
        None if cancelled_some && !finished_some => Finish::cancelled(),
        None => {
            let mut success = SuccessOutcome::new();
            success.pending_tool_call_ids = Some(pending).filter(|pending| !pending.is_empty());
            Finish::from(success)
        }
    };
    finish.usage = Some(usage).filter(|usage| !usage.is_empty());
    Ok(finish)
}

/// The kinds of things whose owner is recorded, each by its id (rule O3).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Table {
    Messages,
    Calls,
    Reasoning,
    Activities,
}

type Owners = HashMap<(Table, String), SubagentRunId>;

/// Gives an event without a tag the tag of the thing that it is about, or else the tag of the subagent: an event
/// of a parent agent needs no tag, but the same event of a subagent needs one (rules O2, O4).
fn attribute(event: &mut Event, subagent: &SubagentRunId, owners: &mut Owners) {
    let key = |table, id: &dyn AsRef<str>| Some((table, id.as_ref().to_owned()));
    let mut parent = None;
    let thing = match &*event {
        Event::TextMessageStart(e) => key(Table::Messages, &e.message_id),
        Event::TextMessageContent(e) => key(Table::Messages, &e.message_id),
        Event::TextMessageEnd(e) => key(Table::Messages, &e.message_id),
        Event::ToolCallStart(e) => {
            parent = e.parent_message_id.as_ref().and_then(|id| key(Table::Messages, id));
            key(Table::Calls, &e.tool_call_id)
        }
        Event::ToolCallArgs(e) => key(Table::Calls, &e.tool_call_id),
        Event::ToolCallEnd(e) => key(Table::Calls, &e.tool_call_id),
        Event::ToolCallResult(e) => key(Table::Messages, &e.message_id),
        Event::ReasoningStart(e) => key(Table::Reasoning, &e.message_id),
        Event::ReasoningEnd(e) => key(Table::Reasoning, &e.message_id),
        Event::ReasoningMessageStart(e) => key(Table::Reasoning, &e.message_id),
        Event::ReasoningMessageContent(e) => key(Table::Reasoning, &e.message_id),
        Event::ReasoningMessageEnd(e) => key(Table::Reasoning, &e.message_id),
        Event::ActivitySnapshot(e) => key(Table::Activities, &e.message_id),
        Event::ActivityDelta(e) => key(Table::Activities, &e.message_id),
        _ => None,
    };
    let replaces = matches!(&*event, Event::ActivitySnapshot(e) if e.replace != Some(false));
    let is_about_any = matches!(&*event, Event::ReasoningEncryptedValue(_));
    let Some(tag) = event.tag_mut() else {
        if let Event::SubagentStarted(started) = event {
            started.parent_subagent_run_id.get_or_insert_with(|| subagent.clone());
        }
        return;
    };
    if is_about_any {
        return;
    }
    let held = thing.as_ref().filter(|_| !replaces).and_then(|thing| owners.get(thing));
    let of_parent = || parent.as_ref().and_then(|parent| owners.get(parent));
    let owner = tag.clone().or_else(|| held.or_else(of_parent).cloned()).unwrap_or_else(|| subagent.clone());
    if let Some(thing) = thing.filter(|_| replaces || held.is_none()) {
        owners.insert(thing, owner.clone());
    }
    // A call makes the message that it names, if there is none; the message gets the owner of the call (A3).
    if let Some(parent) = parent {
        owners.entry(parent).or_insert_with(|| owner.clone());
    }
    *tag = Some(owner);
}
