//! A conversation over any agent, run after run: what was said, what is asked, and tools that the
//! application runs.
//!
//! A [`Conversation`] is an agent and a [`Thread`], which is what one saves. [`send`](Conversation::send)
//! gives a [`Turn`]: the stream of updates of the run that it starts, and of those that follow because the
//! agent called [`Tools`].
//!
//! ```
//! use ag_ui_stream::agent::agent_fn;
//! use ag_ui_stream::conversation::{Conversation, Thread};
//! use ag_ui_stream::event::{Event, RunFinishedEvent, RunStartedEvent, TextMessageChunkEvent};
//! use futures::{TryStreamExt, stream};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // An agent that counts what it was sent.
//! let agent = agent_fn(|input| async move {
//!     let mut chunk = TextMessageChunkEvent::new();
//!     chunk.message_id = Some(format!("answer {}", input.messages.len()).into());
//!     chunk.delta = Some(format!("{} messages", input.messages.len()).into());
//!     Ok(stream::iter([
//!         Event::from(RunStartedEvent::new(input.thread_id.clone(), input.run_id.clone())),
//!         chunk.into(),
//!         RunFinishedEvent::new(input.thread_id, input.run_id).into(),
//!     ]))
//! });
//! let mut conversation = Conversation::new(agent, Thread::new("thread"));
//!
//! let mut turn = conversation.send("Hello");
//! while let Some(update) = turn.try_next().await? {
//!     println!("{update:?}");
//! }
//! drop(turn); // One at a time.
//! let (snapshot, ended) = conversation.send("And now?").finish().await;
//! ended?;
//! assert_eq!(snapshot.message("answer 3").unwrap().text().unwrap(), "3 messages");
//!
//! let saved = serde_json::to_string(conversation.thread())?;
//! let restored: Thread = serde_json::from_str(&saved)?;
//! assert_eq!(restored.snapshot().messages().len(), 4);
//! # Ok(())
//! # }
//! ```

mod answers;
mod thread;
mod tools;
mod turn;

use core::fmt;

use crate::agent::Agent;
use crate::id::{IdGenerator, MessageId, RandomIds};
use crate::message::{Content, UserMessage};
use crate::options::Options;
use crate::snapshot::Snapshot;

pub use answers::{AnswerError, Answers};
pub use thread::Thread;
pub use tools::{Consent, TooManyRounds, ToolFailed, Tools};
pub use turn::Turn;

use turn::Opening;

/// An agent, and a thread with it.
///
/// A turn borrows it, so that there is one at a time. However a turn ends (well, with an error,
/// aborted, dropped) the thread holds what came of it.
///
/// ```compile_fail,E0499
/// # use ag_ui_stream::{Agent, conversation::Conversation};
/// # fn two_at_once(mut conversation: Conversation<Box<dyn Agent>>) {
/// let first = conversation.send("Hello");
/// let second = conversation.send("Hello?");
/// drop(first);
/// # }
/// ```
///
/// See the [module](self).
pub struct Conversation<A> {
    agent: A,
    thread: Thread,
    ids: Box<dyn IdGenerator>,
    options: Options,
    tools: Tools,
}

/// What a turn works with: all of a conversation, borrowed.
pub(crate) struct Parts<'a> {
    pub(crate) agent: &'a dyn Agent,
    pub(crate) thread: &'a mut Thread,
    pub(crate) ids: &'a mut dyn IdGenerator,
    pub(crate) options: &'a Options,
    pub(crate) tools: &'a Tools,
}

impl<A: Agent> Conversation<A> {
    /// A conversation with this agent: a new thread, or one that was saved.
    #[must_use]
    pub fn new(agent: A, thread: Thread) -> Self {
        let ids = Box::new(RandomIds::new());
        Self { agent, thread, ids, options: Options::new(), tools: Tools::new() }
    }

    /// The same with tools, which the agent is told of with every run.
    #[must_use]
    pub fn with_tools(self, tools: Tools) -> Self {
        Self { tools, ..self }
    }

    /// The same with other options of how runs are read. History and state are the thread's.
    #[must_use]
    pub fn with_options(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// The same with ids of runs and messages from here, in place of random ones.
    #[must_use]
    pub fn with_ids(self, ids: impl IdGenerator + 'static) -> Self {
        Self { ids: Box::new(ids), ..self }
    }

    /// What was said so far, and what is asked: to show, and to save.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// The thread, to change it between two turns.
    #[must_use]
    pub fn thread_mut(&mut self) -> &mut Thread {
        &mut self.thread
    }

    /// Gives the thread back.
    #[must_use]
    pub fn into_thread(self) -> Thread {
        self.thread
    }

    /// The agent.
    #[must_use]
    pub fn agent(&self) -> &A {
        &self.agent
    }

    /// The conversation as it stands.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        self.thread.snapshot()
    }

    /// Says something: text, [parts](Content), or a [`UserMessage`]. The updates of what the agent does
    /// with it are a [`Turn`].
    ///
    /// Nothing is sent, nor noted, before the turn is polled. What is asked by the thread stays open, for
    /// [`answers`](Conversation::answers).
    pub fn send(&mut self, message: impl IntoUserMessage) -> Turn<'_> {
        let message = message.into_user_message(&mut *self.ids);
        Turn::new(self.parts(), Opening { message: Some(message), ..Opening::default() })
    }

    /// Runs the agent with what the thread holds, and nothing new: once more after a run that failed.
    pub fn run(&mut self) -> Turn<'_> {
        Turn::new(self.parts(), Opening::default())
    }

    /// The answers to what the thread waits for, [interrupts](Thread::interrupts) and
    /// [tool calls](Thread::pending_calls), to be filled in and sent.
    pub fn answers(&mut self) -> Answers<'_> {
        Answers::new(self.parts())
    }

    fn parts(&mut self) -> Parts<'_> {
        let Self { agent, thread, ids, options, tools } = self;
        Parts { agent, thread, ids: &mut **ids, options, tools }
    }
}

impl<A> fmt::Debug for Conversation<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation").field("thread", &self.thread).field("tools", &self.tools).finish_non_exhaustive()
    }
}

/// What a user may say: text or [`Content`], which get a new id, or a whole [`UserMessage`].
pub trait IntoUserMessage {
    /// The message.
    fn into_user_message(self, ids: &mut dyn IdGenerator) -> UserMessage;
}

impl IntoUserMessage for UserMessage {
    fn into_user_message(self, _: &mut dyn IdGenerator) -> UserMessage {
        self
    }
}

impl<T: Into<Content>> IntoUserMessage for T {
    fn into_user_message(self, ids: &mut dyn IdGenerator) -> UserMessage {
        UserMessage::new(MessageId::from(ids.next_id()), self)
    }
}
