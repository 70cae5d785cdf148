//! `Turn`: one turn of a conversation, as a stream of updates: a run, and the runs that follow because the
//! agent called tools.
//!
//! ```text
//!            polled          the stream is there         it ends, calls wait
//!  Planned ─────────► Starting ─────────────► Running ─────────────────► Calling
//!                        ▲                       │ error, or nothing waits   │
//!                        │                       ▼                           │
//!                        └──── all have results  Ended ◄─────────────────────┘
//! ```

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{FusedStream, Stream};

use super::Parts;
use super::tools::TooManyRounds;
use crate::agent::{AgentError, RawEventStream};
use crate::combinator::{EventStreamExt, Updates};
use crate::error::Error;
use crate::id::RunId;
use crate::message::{Message, ToolMessage, UserMessage};
use crate::options::Options;
use crate::run_input::ResumeEntry;
use crate::snapshot::{Snapshot, Update};

/// The updates of one turn: of the run that it starts, and of the runs that follow when the
/// [tools](super::Tools) that the agent called have given their results.
///
/// The updates of each run are those of [`updates`](EventStreamExt::updates). Tools are run one after the
/// other, after the run that called them has ended with success; their results are in the snapshots of the
/// next run.
///
/// # Ending
/// The turn ends when a run has ended and no call waits for a tool of the registry; when something waits for
/// the application ([`Thread::interrupts`](super::Thread::interrupts),
/// [`Thread::pending_calls`](super::Thread::pending_calls)); and after an error.
///
/// # Errors
/// The errors of the agent and of its stream; [`TooManyRounds`] in [`Error::Source`]. The thread keeps what
/// came before the error.
///
/// # Cancel safety
/// A dropped `next()` loses nothing. Dropping the turn aborts it: the thread keeps what came, an active run is
/// truncated, and the call of a tool that was at work still waits.
#[must_use = "streams do nothing unless polled"]
pub struct Turn<'a> {
    parts: Parts<'a>,
    state: State<'a>,
    /// The answers to interrupts that the run was given.
    answers: Vec<ResumeEntry>,
    /// How many runs of this turn began because of tools.
    rounds: usize,
}

/// The messages and answers that a turn begins with.
#[derive(Default)]
pub(crate) struct Opening {
    pub(crate) message: Option<UserMessage>,
    pub(crate) results: Vec<ToolMessage>,
    pub(crate) answers: Vec<ResumeEntry>,
}

enum State<'a> {
    Planned(Opening),
    Starting(BoxFuture<'a, Result<RawEventStream, AgentError>>, Box<Options>),
    Running(Box<Updates<RawEventStream>>),
    Calling(BoxFuture<'a, ToolMessage>),
    Ended,
}

impl<'a> Turn<'a> {
    pub(super) fn new(parts: Parts<'a>, opening: Opening) -> Self {
        Self { parts, state: State::Planned(opening), answers: Vec::new(), rounds: 0 }
    }

    /// The conversation after everything that came so far.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        match &self.state {
            State::Running(updates) => updates.snapshot(),
            _ => self.parts.thread.snapshot(),
        }
    }

    /// Reads the turn to its end, and gives both the conversation after it and the result, so that `?` does
    /// not lose the conversation.
    pub async fn finish(mut self) -> (Snapshot, Result<(), Error<AgentError>>) {
        let mut result = Ok(());
        while let Some(update) = self.next().await {
            result = update.map(drop);
        }
        (self.snapshot().clone(), result)
    }

    /// Aborts the turn, as dropping it does, and gives the conversation so far.
    pub fn abort(mut self) -> Snapshot {
        self.close();
        self.snapshot().clone()
    }

    /// Starts a run with these messages and answers.
    fn begin(&mut self, opening: Opening) {
        let Parts { agent, thread, ids, options, tools } = &mut self.parts;
        thread.open(opening.results, opening.message.map(Message::User));
        let mut input = thread.next_input(RunId::from(ids.next_id()));
        input.tools = Some(tools.to_vec()).filter(|tools| !tools.is_empty());
        input.resume = Some(opening.answers.clone()).filter(|answers| !answers.is_empty());
        self.answers = opening.answers;
        let options = (*options).clone().input(&input);
        let agent: &'a dyn crate::agent::Agent = *agent;
        self.state = State::Starting(agent.run(input), Box::new(options));
    }

    /// Gives the conversation so far to the thread, and ends the run, which may still be active.
    fn close(&mut self) {
        if let State::Running(mut updates) = core::mem::replace(&mut self.state, State::Ended) {
            updates.abandon();
            self.parts.thread.close(updates.snapshot().clone(), &self.answers);
        }
    }

    /// Chooses what comes after a run, and after each tool: the next tool or nothing.
    fn go_on(&mut self) -> Result<(), TooManyRounds> {
        let Parts { thread, ids, tools, .. } = &mut self.parts;
        let max = tools.rounds();
        let next = thread.pending_calls().find(|call| tools.has(&call.function.name));
        if let Some(call) = next {
            if self.rounds == max {
                return Err(TooManyRounds { max });
            }
            self.state = State::Calling(tools.call(call.clone(), ids.next_id()));
        }
        Ok(())
    }

    fn refused(result: Result<(), TooManyRounds>) -> Option<Error<AgentError>> {
        result.err().map(|error| Error::Source(AgentError::new(error)))
    }
}

impl Stream for Turn<'_> {
    type Item = Result<Update, Error<AgentError>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            match &mut this.state {
                State::Planned(opening) => {
                    let opening = core::mem::take(opening);
                    this.begin(opening);
                }
                State::Starting(run, options) => match ready!(run.as_mut().poll(cx)) {
                    Ok(events) => {
                        let options = core::mem::take(&mut **options);
                        this.state = State::Running(Box::new(events.updates_with(options)));
                    }
                    Err(error) => {
                        this.state = State::Ended;
                        return Poll::Ready(Some(Err(Error::Source(error))));
                    }
                },
                State::Running(updates) => match ready!(updates.poll_next_unpin(cx)) {
                    Some(Ok(update)) => return Poll::Ready(Some(Ok(update))),
                    Some(Err(error)) => {
                        this.close();
                        return Poll::Ready(Some(Err(error)));
                    }
                    None => {
                        this.close();
                        let has_called =
                            this.snapshot().run().is_some_and(|run| !run.pending_tool_call_ids().is_empty());
                        if has_called {
                            if let Some(error) = Self::refused(this.go_on()) {
                                return Poll::Ready(Some(Err(error)));
                            }
                        }
                    }
                },
                State::Calling(call) => {
                    let result = ready!(call.as_mut().poll(cx));
                    this.state = State::Ended;
                    this.parts.thread.open(vec![result], None);
                    if let Some(error) = Self::refused(this.go_on()) {
                        return Poll::Ready(Some(Err(error)));
                    }
                    let thread = &this.parts.thread;
                    let waits = thread.pending_calls().next().is_some() || !thread.interrupts().is_empty();
                    if matches!(this.state, State::Ended) && !waits {
                        this.rounds += 1;
                        this.begin(Opening::default());
                    }
                }
                State::Ended => return Poll::Ready(None),
            }
        }
    }
}

impl FusedStream for Turn<'_> {
    fn is_terminated(&self) -> bool {
        matches!(self.state, State::Ended)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Planned(_) => "planned",
            State::Starting(..) => "starting",
            State::Running(_) => "running",
            State::Calling(_) => "calling a tool",
            State::Ended => "ended",
        };
        let mut shown = f.debug_struct("Turn");
        shown.field("state", &format_args!("{state}")).field("snapshot", self.snapshot()).finish_non_exhaustive()
    }
}
