//! `RunAgentInput`, the input of a run, and its parts: <https://docs.ag-ui.com/spec/1.0/basic/run-input>.

use serde_json::Value;

use crate::error::{Error, Malformed};
use crate::id::{InterruptId, RunId, ThreadId};
use crate::message::Message;
use crate::rule::Rule;
use crate::shared::Metadata;
use crate::warning::Warning;

object! {
    /// The input of a run.
    pub struct RunAgentInput {
        required {
            /// The thread that the run belongs to.
            thread_id: ThreadId = "threadId",
            /// The run.
            run_id: RunId = "runId",
            /// The conversation so far.
            messages: Vec<Message> = "messages",
        }
        optional {
            /// The protocol version that the application speaks, MAJOR.MINOR.
            protocol_version: String = "protocolVersion",
            /// The run that this one continues or branches from.
            parent_run_id: RunId = "parentRunId",
            /// The tools that the application offers.
            tools: Vec<Tool> = "tools",
            /// Other facts that the agent should know.
            context: Vec<Context> = "context",
            /// The answers to the interrupts of earlier runs: [`Snapshot::resume`](crate::snapshot::Snapshot::resume)
            /// checks them by rule T4.
            resume: Vec<ResumeEntry> = "resume",
        }
        nonnull {
            /// The shared state; never null ([`Snapshot::next_input`](crate::snapshot::Snapshot::next_input)
            /// leaves a null state out).
            state = "state",
            /// Data that only this agent understands; never null.
            forwarded_props = "forwardedProps",
        }
    }
}

object! {
    /// A tool that the application offers.
    pub struct Tool {
        required {
            /// The tool's name.
            name: String = "name",
            /// What it does.
            description: String = "description",
        }
        optional {
            /// The producer's own data.
            metadata: Metadata = "metadata",
        }
        nonnull {
            /// A JSON schema of its arguments; never null.
            parameters = "parameters",
        }
    }
}

object! {
    /// Something that the agent should know.
    pub struct Context {
        required {
            /// What it is.
            description: String = "description",
            /// The thing itself.
            value: String = "value",
        }
    }
}

closed_set! {
    /// Whether an interrupt was answered.
    pub enum ResumeStatus {
        /// It was.
        Resolved = "resolved",
        /// It was abandoned.
        Cancelled = "cancelled",
    }
}

object! {
    /// The answer to an interrupt.
    pub struct ResumeEntry {
        required {
            /// The interrupt.
            interrupt_id: InterruptId = "interruptId",
            /// Whether it was answered.
            status: ResumeStatus = "status",
        }
        optional {
            /// The application's own data.
            metadata: Metadata = "metadata",
        }
        nonnull {
            /// The answer; never null.
            payload = "payload",
        }
    }
}

/// The type in warnings, in place of that of an event.
pub(crate) const NAME: &str = "RunAgentInput";
const WHAT: &str = "the input of a run";

pub(crate) fn no_input(found: &str) -> Error {
    Malformed::new(Rule::E9, 0, WHAT, found).into()
}

impl RunAgentInput {
    /// Reads the input of a run from JSON, in a `str` or in bytes, for a server. The rules are those for
    /// the input within a `RUN_STARTED`: unknown parts are removed with a warning (E1 to E4).
    ///
    /// # Errors
    /// [`Error::Malformed`] (E5, and E9 for invalid JSON); [`Error::LimitExceeded`].
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::RunAgentInput;
    ///
    /// let (input, warnings) =
    ///     RunAgentInput::from_json(r#"{"threadId": "t", "runId": "r", "messages": [], "new": 1}"#)?;
    /// assert_eq!(input, RunAgentInput::new("t", "r", []));
    /// assert_eq!(warnings[0].path, "/new");
    ///
    /// let error = RunAgentInput::from_json(r#"{"threadId": "t", "messages": []}"#).unwrap_err();
    /// assert!(error.to_string().contains("runId"));
    /// # Ok::<(), ag_ui_stream::Error>(())
    /// ```
    pub fn from_json(json: impl AsRef<[u8]>) -> Result<(Self, Vec<Warning>), Error> {
        Self::known(crate::schema::read::from_json(json.as_ref(), NAME, WHAT)?)
    }

    /// The same from a [`Value`].
    ///
    /// # Errors
    /// [`Error::Malformed`] (E5); [`Error::LimitExceeded`].
    pub fn from_value(value: &Value) -> Result<(Self, Vec<Warning>), Error> {
        Self::known(crate::schema::read::from_value(value, NAME)?)
    }

    fn known((input, warnings): (Option<Self>, Vec<Warning>)) -> Result<(Self, Vec<Warning>), Error> {
        Ok((input.ok_or_else(|| no_input("an unknown value where one is required"))?, warnings))
    }

    /// The state that the run starts from: the input's, else `{}` (rule A6).
    #[must_use]
    pub fn initial_state(&self) -> Value {
        self.state.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new()))
    }
}
