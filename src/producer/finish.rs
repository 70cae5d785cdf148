//! How a run that is made here ends.

use core::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::event::{CancelledOutcome, InterruptOutcome, Interrupts, RunErrorEvent, RunFinishedOutcome, TokenUsage};

/// What a RUN_FINISHED says: how the run ended, what it gave back, what it used. Without any of it, and
/// as `()`, a plain success (rule R7).
///
/// ```
/// use ag_ui_stream::event::Interrupt;
/// use ag_ui_stream::producer::Finish;
///
/// let waits = Finish::interrupt(Interrupt::new("sure", "confirmation"));
/// assert!(waits.outcome.is_some());
/// assert_eq!(Finish::from(()), Finish::new());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Finish {
    /// How it ended; absent means success.
    pub outcome: Option<RunFinishedOutcome>,
    /// What it gave back. A null is left out, for the protocol has none here.
    pub result: Option<Value>,
    /// What the models used.
    pub usage: Option<Vec<TokenUsage>>,
}

impl Finish {
    /// A success.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The run waits for answers.
    #[must_use]
    pub fn interrupt(interrupts: impl Into<Interrupts>) -> Self {
        InterruptOutcome::new(interrupts).into()
    }

    /// The run was stopped on purpose.
    #[must_use]
    pub fn cancelled() -> Self {
        CancelledOutcome::new().into()
    }

    /// The same with what the run gave back.
    #[must_use]
    pub fn with_result(self, result: impl Into<Value>) -> Self {
        Self { result: Some(result.into()), ..self }
    }

    /// The same with what the models used.
    #[must_use]
    pub fn with_usage(self, usage: impl IntoIterator<Item = TokenUsage>) -> Self {
        Self { usage: Some(usage.into_iter().collect()), ..self }
    }
}

impl From<()> for Finish {
    fn from((): ()) -> Self {
        Self::new()
    }
}

impl<O: Into<RunFinishedOutcome>> From<O> for Finish {
    fn from(outcome: O) -> Self {
        Self { outcome: Some(outcome.into()), ..Self::new() }
    }
}

/// Why a run failed, where its RUN_ERROR is to have a code or a usage: an error for
/// [`AgentError::new`](crate::error::AgentError::new), and so for `?`.
///
/// Any other error becomes a RUN_ERROR with what it shows as its message. That goes to the client: what
/// is not for its eyes is to be mapped before.
///
/// ```
/// use ag_ui_stream::producer::Failure;
///
/// let failure = Failure::new("the quota is used up").with_code("quota");
/// assert_eq!(failure.to_string(), "the quota is used up");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Failure(pub(super) RunErrorEvent);

impl Failure {
    /// A failure with this message, for people.
    #[must_use]
    pub fn new(message: impl Into<Arc<str>>) -> Self {
        Self(RunErrorEvent::new(message))
    }

    /// The same with a code, for programs.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<Arc<str>>) -> Self {
        self.0.code = Some(code.into());
        self
    }

    /// The same with what the models used until then.
    #[must_use]
    pub fn with_usage(mut self, usage: impl IntoIterator<Item = TokenUsage>) -> Self {
        self.0.usage = Some(usage.into_iter().collect());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl core::error::Error for Failure {}

impl From<Failure> for crate::error::AgentError {
    fn from(failure: Failure) -> Self {
        Self::new(failure)
    }
}

impl From<crate::error::AgentError> for Failure {
    fn from(error: crate::error::AgentError) -> Self {
        error.downcast_ref::<Self>().cloned().unwrap_or_else(|| Self::new(error.to_string()))
    }
}
