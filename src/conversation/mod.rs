//! `Conversation`: many runs with any agent, as one conversation, with questions of the agent and tools that
//! the application runs.
//!
//! A [`Conversation`] is an agent and a [`Thread`], which the application can save. [`send`](Conversation::send)
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
//! // An agent that counts the messages that it was sent.
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
//! drop(turn); // Only one turn at a time.
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

/// An agent and a thread of messages with it.
///
/// A turn borrows the conversation, so there is only one at a time. However a turn ends (with success, with an
/// error, aborted, dropped), the thread keeps what came before that.
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

/// The parts of a conversation, as a turn borrows them.
pub(crate) struct Parts<'a> {
    pub(crate) agent: &'a dyn Agent,
    pub(crate) thread: &'a mut Thread,
    pub(crate) ids: &'a mut dyn IdGenerator,
    pub(crate) options: &'a Options,
    pub(crate) tools: &'a Tools,
}

impl<A: Agent> Conversation<A> {
    /// A conversation with this agent, over a new thread or a saved one.
    #[must_use]
    pub fn new(agent: A, thread: Thread) -> Self {
        let ids = Box::new(RandomIds::new());
        Self { agent, thread, ids, options: Options::new(), tools: Tools::new() }
    }

    /// The same with tools. The input of every run lists them.
    #[must_use]
    pub fn with_tools(self, tools: Tools) -> Self {
        Self { tools, ..self }
    }

    /// The same with other options for how runs are read. History and state always come from the thread.
    #[must_use]
    pub fn with_options(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// The same with this generator for the ids of runs and messages, instead of random ids.
    #[must_use]
    pub fn with_ids(self, ids: impl IdGenerator + 'static) -> Self {
        Self { ids: Box::new(ids), ..self }
    }

    /// The thread: what was said, and what waits for an answer. It can be saved.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// The thread, to change it between two turns.
    #[must_use]
    pub fn thread_mut(&mut self) -> &mut Thread {
        &mut self.thread
    }

    /// Returns the thread.
    #[must_use]
    pub fn into_thread(self) -> Thread {
        self.thread
    }

    /// The agent.
    #[must_use]
    pub fn agent(&self) -> &A {
        &self.agent
    }

    /// The conversation after everything so far.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        self.thread.snapshot()
    }

    /// Sends a message: text, [parts](Content), or a [`UserMessage`]. Returns a [`Turn`], the stream of the
    /// updates that follow.
    ///
    /// Nothing is sent, and the thread does not change, before the turn is polled. Interrupts stay open until
    /// [`answers`](Conversation::answers) answers them.
    pub fn send(&mut self, message: impl IntoUserMessage) -> Turn<'_> {
        let message = message.into_user_message(&mut *self.ids);
        Turn::new(self.parts(), Opening { message: Some(message), ..Opening::default() })
    }

    /// Runs the agent again with the thread as it is, for example after a run that failed.
    pub fn run(&mut self) -> Turn<'_> {
        Turn::new(self.parts(), Opening::default())
    }

    /// Answers to fill in and send, for the [interrupts](Thread::interrupts) and the
    /// [tool calls](Thread::pending_calls) that wait.
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

/// What can be sent as a message: text or [`Content`], which get a new id, or a whole [`UserMessage`].
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
