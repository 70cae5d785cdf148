//! `Answers`: the answers to the interrupts and tool calls that a thread waits for, checked to be complete
//! before anything is sent.

use core::error::Error as StdError;
use core::fmt;
use std::time::SystemTime;

use serde_json::Value;

use super::turn::Opening;
use super::{IntoUserMessage, Parts, Turn};
use crate::event::Interrupt;
use crate::id::{InterruptId, MessageId, ToolCallId};
use crate::message::{Content, ToolCall, ToolMessage, UserMessage};
use crate::resume::{Resume, ResumeError};
use crate::run_input::ResumeEntry;

/// The answers to the interrupts and the tool calls of a thread, with an optional message.
///
/// Everything that waits must be answered, declined or cancelled, exactly once. [`send`](Answers::send) checks
/// this, and that no interrupt has expired meanwhile. If the value is dropped, nothing changes.
///
/// ```no_run
/// # use ag_ui_stream::agent::Agent;
/// # use ag_ui_stream::conversation::Conversation;
/// # async fn example(conversation: &mut Conversation<Box<dyn Agent>>) -> Result<(), Box<dyn std::error::Error>> {
/// let mut answers = conversation.answers();
/// answers.resolve("deploy", serde_json::json!({"approved": true}))?;
/// answers.result("call", "21 °C")?;
/// let (snapshot, ended) = answers.send()?.finish().await;
/// # Ok(())
/// # }
/// ```
#[must_use = "answers are sent by `send`"]
pub struct Answers<'a> {
    parts: Parts<'a>,
    resume: Resume,
    results: Vec<ToolMessage>,
    message: Option<UserMessage>,
}

impl<'a> Answers<'a> {
    pub(super) fn new(parts: Parts<'a>) -> Self {
        let resume = Resume::new(parts.thread.interrupts());
        Self { parts, resume, results: Vec::new(), message: None }
    }

    /// The interrupts that have no answer yet.
    pub fn interrupts(&self) -> impl Iterator<Item = &Interrupt> {
        self.resume.open()
    }

    /// The tool calls that have no result yet.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        let is_open = |call: &&ToolCall| self.results.iter().all(|result| result.tool_call_id != call.id);
        self.parts.thread.pending_calls().filter(is_open)
    }

    /// Answers an interrupt. The payload may be `None`.
    ///
    /// # Errors
    /// [`AnswerError::Resume`], if the interrupt is unknown, answered or expired (rule T4).
    pub fn resolve(
        &mut self,
        id: impl Into<InterruptId>,
        payload: impl Into<Option<Value>>,
    ) -> Result<&mut Self, AnswerError> {
        self.resume.resolve(id, payload, SystemTime::now())?;
        Ok(self)
    }

    /// Abandons an interrupt, expired or not.
    ///
    /// # Errors
    /// [`AnswerError::Resume`], if the interrupt is unknown or answered (rule T4).
    pub fn cancel(&mut self, id: impl Into<InterruptId>) -> Result<&mut Self, AnswerError> {
        self.resume.cancel(id)?;
        Ok(self)
    }

    /// Adds a whole answer to an interrupt, for example one with metadata.
    ///
    /// # Errors
    /// [`AnswerError::Resume`], if the interrupt is unknown, answered or expired (rule T4).
    pub fn insert(&mut self, entry: ResumeEntry) -> Result<&mut Self, AnswerError> {
        self.resume.insert(entry, SystemTime::now())?;
        Ok(self)
    }

    /// Gives the result of a tool call.
    ///
    /// # Errors
    /// [`AnswerError::UnknownCall`], [`AnswerError::RepeatedResult`].
    pub fn result(&mut self, id: impl Into<ToolCallId>, content: impl Into<Content>) -> Result<&mut Self, AnswerError> {
        self.add(id.into(), content.into(), None)
    }

    /// Gives an error as the result of a tool call: it was not made, or it failed.
    ///
    /// # Errors
    /// [`AnswerError::UnknownCall`], [`AnswerError::RepeatedResult`].
    pub fn decline(&mut self, id: impl Into<ToolCallId>, reason: impl Into<String>) -> Result<&mut Self, AnswerError> {
        let reason = reason.into();
        self.add(id.into(), reason.as_str().into(), Some(reason))
    }

    /// Abandons all interrupts that have no answer, and declines all tool calls that have no result.
    pub fn decline_rest(&mut self, reason: impl Into<String>) -> &mut Self {
        let reason = reason.into();
        self.resume.cancel_rest();
        let rest: Vec<_> = self.calls().map(|call| call.id.clone()).collect();
        for id in rest {
            // Each of these calls waits, so there is no error.
            let _ = self.decline(id, reason.as_str());
        }
        self
    }

    /// Adds a message of the user.
    pub fn message(&mut self, message: impl IntoUserMessage) -> &mut Self {
        self.message = Some(message.into_user_message(self.parts.ids));
        self
    }

    fn add(&mut self, id: ToolCallId, content: Content, error: Option<String>) -> Result<&mut Self, AnswerError> {
        if self.results.iter().any(|result| result.tool_call_id == id) {
            return Err(AnswerError::RepeatedResult { tool_call_id: id });
        }
        if self.parts.thread.pending_calls().all(|call| call.id != id) {
            return Err(AnswerError::UnknownCall { tool_call_id: id });
        }
        let mut result = ToolMessage::new(MessageId::from(self.parts.ids.next_id()), content, id);
        result.error = error.map(Into::into);
        self.results.push(result);
        Ok(self)
    }

    /// Starts a turn with these answers. Nothing is sent, and the thread does not change, before the turn is
    /// polled.
    ///
    /// # Errors
    /// [`AnswerError::Resume`], if an interrupt has no answer, or has expired since it was answered (rule
    /// T4); [`AnswerError::MissingResults`], if a tool call has no result. The thread stays as it was.
    pub fn send(self) -> Result<Turn<'a>, AnswerError> {
        let tool_call_ids: Vec<_> = self.calls().map(|call| call.id.clone()).collect();
        let Self { parts, resume, results, message } = self;
        let answers = resume.into_entries()?;
        Resume::check(parts.thread.interrupts(), &answers, SystemTime::now())?;
        if !tool_call_ids.is_empty() {
            return Err(AnswerError::MissingResults { tool_call_ids });
        }
        Ok(Turn::new(parts, Opening { message, results, answers }))
    }
}

impl fmt::Debug for Answers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers").field("resume", &self.resume).field("results", &self.results).finish_non_exhaustive()
    }
}

/// Why answers do not match what a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerError {
    /// An answer to an interrupt is invalid or missing (rule T4).
    Resume(ResumeError),
    /// No tool call with this id waits for a result.
    UnknownCall {
        /// The call.
        tool_call_id: ToolCallId,
    },
    /// The tool call has a result already.
    RepeatedResult {
        /// The call.
        tool_call_id: ToolCallId,
    },
    /// Some tool calls have no result.
    MissingResults {
        /// The calls, in the order in which they were made.
        tool_call_ids: Vec<ToolCallId>,
    },
}

impl From<ResumeError> for AnswerError {
    fn from(error: ResumeError) -> Self {
        AnswerError::Resume(error)
    }
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnswerError::Resume(error) => error.fmt(f),
            AnswerError::UnknownCall { tool_call_id } => {
                write!(f, "tool call {:?} does not wait for a result", tool_call_id.as_str())
            }
            AnswerError::RepeatedResult { tool_call_id } => {
                write!(f, "tool call {:?} already has a result", tool_call_id.as_str())
            }
            AnswerError::MissingResults { tool_call_ids } => {
                f.write_str("without a result:")?;
                let mut separator = "";
                tool_call_ids.iter().try_for_each(|id| {
                    write!(f, "{} tool call {:?}", core::mem::replace(&mut separator, ","), id.as_str())
                })
            }
        }
    }
}

/// [`AnswerError::Resume`] has the text of its error, and that error has no source.
impl StdError for AnswerError {}
