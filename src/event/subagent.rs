//! The events of subagent invocations: <https://docs.ag-ui.com/spec/1.0/events/subagents>.

use super::BaseEvent;
use std::sync::Arc;

use crate::id::{InterruptId, MessageId, SubagentRunId, ToolCallId};

object! {
    /// An invocation of a subagent begins (rule O5).
    pub struct SubagentStartedEvent {
        tag "type" "SUBAGENT_STARTED";
        required {
            /// The invocation; never used twice in a run.
            subagent_run_id: SubagentRunId = "subagentRunId",
            /// The subagent's name.
            name: Arc<str> = "name",
        }
        optional {
            /// What it is for.
            description: Arc<str> = "description",
            /// The invocation that spawned it; absent means the parent agent.
            parent_subagent_run_id: SubagentRunId = "parentSubagentRunId",
            /// The tool call that spawned it.
            parent_tool_call_id: ToolCallId = "parentToolCallId",
            /// The message that spawned it.
            parent_message_id: MessageId = "parentMessageId",
        }
        flatten base;
    }
}

object! {
    /// An invocation of a subagent ends, or is suspended (rule O5).
    pub struct SubagentFinishedEvent {
        tag "type" "SUBAGENT_FINISHED";
        required {
            /// The invocation.
            subagent_run_id: SubagentRunId = "subagentRunId",
        }
        optional {
            /// Why it ended; absent means success.
            outcome: SubagentFinishedOutcome = "outcome",
        }
        nonnull {
            /// What it gave back; never null.
            result = "result",
        }
        flatten base;
    }
}

object! {
    /// An invocation of a subagent failed; the run goes on.
    pub struct SubagentErrorEvent {
        tag "type" "SUBAGENT_ERROR";
        required {
            /// The invocation.
            subagent_run_id: SubagentRunId = "subagentRunId",
            /// What went wrong.
            message: Arc<str> = "message",
        }
        optional {
            /// The same, for programs.
            code: Arc<str> = "code",
        }
        flatten base;
    }
}

object! {
    /// The invocation came to its end.
    #[derive(Default)]
    pub struct SubagentSuccessOutcome {
        tag "type" "success";
    }
}

object! {
    /// The invocation waits for outside input; a later run may continue it under the same id.
    #[derive(Default)]
    pub struct SubagentSuspendedOutcome {
        tag "type" "suspended";
        optional {
            /// The interrupts it waits for; it may wait for those of a descendant only.
            interrupt_ids: Vec<InterruptId> = "interruptIds",
        }
    }
}

union! {
    /// Why an invocation ended.
    pub enum SubagentFinishedOutcome by "type" {
        /// It came to its end.
        Success "success" SubagentSuccessOutcome,
        /// It waits for outside input.
        Suspended "suspended" SubagentSuspendedOutcome,
    }
}
