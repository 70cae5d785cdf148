//! `Finish` and `Failure`: how a producer ends its run.

use core::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::event::{CancelledOutcome, InterruptOutcome, Interrupts, RunErrorEvent, RunFinishedOutcome, TokenUsage};

/// The contents of a RUN_FINISHED: the outcome, the result, the usage. An empty one, and `()`, is a plain
/// success (rule R7).
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
    /// The outcome; `None` means success.
    pub outcome: Option<RunFinishedOutcome>,
    /// The result. A null is left out, because the protocol allows none here.
    pub result: Option<Value>,
    /// The usage of the models.
    pub usage: Option<Vec<TokenUsage>>,
}

impl Finish {
    /// A success.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The run ends to wait for answers to interrupts.
    #[must_use]
    pub fn interrupt(interrupts: impl Into<Interrupts>) -> Self {
        InterruptOutcome::new(interrupts).into()
    }

    /// The run was stopped on purpose.
    #[must_use]
    pub fn cancelled() -> Self {
        CancelledOutcome::new().into()
    }

    /// The same with a result.
    #[must_use]
    pub fn with_result(self, result: impl Into<Value>) -> Self {
        Self { result: Some(result.into()), ..self }
    }

    /// The same with the usage of the models.
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

/// An error whose RUN_ERROR has a code or a usage. `?` turns it into an
/// [`AgentError`](crate::error::AgentError).
///
/// Any other error becomes a RUN_ERROR with the text of the error as its message. The client sees that text:
/// map an error that it must not see.
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

    /// The same with the usage of the models until then.
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
