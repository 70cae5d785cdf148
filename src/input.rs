//! The input of a run: <https://docs.ag-ui.com/spec/1.0/basic/run-input>.

use serde_json::Value;

use crate::event::Metadata;
use crate::id::{InterruptId, RunId, ThreadId};
use crate::message::Message;

object! {
    /// What a run is given.
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
            /// What else the agent should know.
            context: Vec<Context> = "context",
            /// The answers to the interrupts of the run before.
            resume: Vec<ResumeEntry> = "resume",
        }
        nonnull {
            /// The shared state; never null.
            state = "state",
            /// What only this agent understands; never null.
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

impl RunAgentInput {
    /// The state that the run starts from: the input's, else `{}` (rule A6).
    #[must_use]
    pub fn initial_state(&self) -> Value {
        self.state.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new()))
    }
}
