//! A run in a snapshot: its ids, open items, subagents and outcome.

use std::sync::Arc;

use serde_json::Value;

use crate::error::SubjectKind;
use crate::event::{Interrupt, SubagentFinishedOutcome, TokenUsage};
use crate::id::{Id, MessageId, RunId, SubagentRunId, ThreadId, ToolCallId};
use crate::run_input::ResumeEntry;
use crate::shared::List;
use crate::shared::tree::Tree;

/// A run: how it was started, what it has open, and how it ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Run {
    /// Its thread; absent for a run that failed before it began.
    pub thread_id: Option<ThreadId>,
    /// Its id; absent for a run that failed before it began.
    pub run_id: Option<RunId>,
    /// The run that it continues or branches from.
    pub parent_run_id: Option<RunId>,
    /// The protocol version that its producer declared.
    pub protocol_version: Option<Arc<str>>,
    /// The answers to earlier interrupts that it was given; absent if its RUN_STARTED repeats none.
    pub resume: Option<Arc<[ResumeEntry]>>,
    /// How it ended, or that it has not.
    pub outcome: RunOutcome,
    /// What it gave back.
    pub result: Option<Arc<Value>>,
    /// What its models used, as the producer sent it.
    pub usage: Option<Arc<[TokenUsage]>>,
    /// The open items, in the order opened.
    pub(crate) open: Tree<OpenItem>,
    pub(crate) subagents: List<Arc<Subagent>>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunOutcome {
    /// It has not ended.
    Running,
    /// It did what it was asked to do.
    Success {
        /// The tool calls that wait for an answer of the application (rule R9).
        pending_tool_call_ids: Arc<[ToolCallId]>,
    },
    /// It waits for answers: [`Snapshot::resume`](super::Snapshot::resume) takes them.
    Interrupt {
        /// What it waits for.
        interrupts: Arc<[Interrupt]>,
        /// The tool calls that wait for an answer of the application (rule R9).
        pending_tool_call_ids: Arc<[ToolCallId]>,
    },
    /// It was stopped on purpose.
    Cancelled,
    /// It failed (rule R5), perhaps after it had finished (rule R4).
    Error {
        /// What went wrong.
        message: Arc<str>,
        /// The same, for programs.
        code: Option<Arc<str>>,
    },
    /// The stream ended without the run's terminal event (rule R8).
    Truncated,
    /// The stream was rejected while the run was active.
    Rejected,
}

impl RunOutcome {
    /// Its name: `running`, `success`, `interrupt`, `cancelled`, `error`, `truncated` or
    /// `rejected`.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            RunOutcome::Running => "running",
            RunOutcome::Success { .. } => "success",
            RunOutcome::Interrupt { .. } => "interrupt",
            RunOutcome::Cancelled => "cancelled",
            RunOutcome::Error { .. } => "error",
            RunOutcome::Truncated => "truncated",
            RunOutcome::Rejected => "rejected",
        }
    }
}

impl Run {
    pub(crate) fn new(thread_id: Option<ThreadId>, run_id: Option<RunId>) -> Self {
        Self {
            thread_id,
            run_id,
            parent_run_id: None,
            protocol_version: None,
            resume: None,
            outcome: RunOutcome::Running,
            result: None,
            usage: None,
            open: Tree::new(),
            subagents: List::new(),
        }
    }

    /// Whether it has not ended.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.outcome == RunOutcome::Running
    }

    /// The open items, in the order opened. For a run that failed or was cut off: those never closed.
    pub fn open(&self) -> impl ExactSizeIterator<Item = &OpenItem> {
        self.open.iter().map(|(_, item)| item)
    }

    /// The names of the steps that are open, with their owners.
    pub fn open_steps(&self) -> impl Iterator<Item = (&str, Option<&SubagentRunId>)> {
        self.open().filter(|item| item.kind == SubjectKind::Step).map(|item| (item.id(), item.owner.as_ref()))
    }

    /// The subagents that the run announced, in order.
    pub fn subagents(&self) -> impl ExactSizeIterator<Item = &Subagent> {
        self.subagents.iter().map(AsRef::as_ref)
    }

    /// The sum of all entries of [`Run::usage`], count by count.
    ///
    /// A count is absent where any entry leaves it out, as absent does not mean zero, and where it
    /// would exceed 64 bits.
    #[must_use]
    pub fn total_usage(&self) -> Option<TokenUsage> {
        let entries = self.usage.as_deref().filter(|entries| !entries.is_empty())?;
        let sum = |count: fn(&TokenUsage) -> Option<u64>| {
            entries.iter().map(count).try_fold(0u64, |sum, count| sum.checked_add(count?))
        };
        Some(TokenUsage {
            input_tokens: sum(|usage| usage.input_tokens),
            output_tokens: sum(|usage| usage.output_tokens),
            total_tokens: sum(|usage| usage.total_tokens),
            reasoning_tokens: sum(|usage| usage.reasoning_tokens),
            cached_input_tokens: sum(|usage| usage.cached_input_tokens),
            cache_write_input_tokens: sum(|usage| usage.cache_write_input_tokens),
            ..TokenUsage::new()
        })
    }

    /// The tool calls that wait for an answer of the application (rule R9); none while the run is
    /// active, and none if it failed.
    #[must_use]
    pub fn pending_tool_call_ids(&self) -> &[ToolCallId] {
        match &self.outcome {
            RunOutcome::Success { pending_tool_call_ids } | RunOutcome::Interrupt { pending_tool_call_ids, .. } => {
                pending_tool_call_ids
            }
            _ => &[],
        }
    }
}

/// An item that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenItem {
    /// Its kind.
    pub kind: SubjectKind,
    pub(crate) id: Id,
    /// The subagent invocation that opened it; absent for the parent agent.
    pub owner: Option<SubagentRunId>,
    /// The input event that opened it, counted from 0.
    pub since: u64,
}

impl OpenItem {
    /// Its id, or its name for a step.
    #[must_use]
    pub fn id(&self) -> &str {
        self.id.as_str()
    }
}

/// An invocation of a subagent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Subagent {
    /// The invocation's id.
    pub subagent_run_id: SubagentRunId,
    /// The subagent's name.
    pub name: Arc<str>,
    /// What it is for.
    pub description: Option<Arc<str>>,
    /// The invocation that spawned it; absent means the parent agent.
    pub parent_subagent_run_id: Option<SubagentRunId>,
    /// The tool call that spawned it.
    pub parent_tool_call_id: Option<ToolCallId>,
    /// The message that spawned it.
    pub parent_message_id: Option<MessageId>,
    /// Whether it runs, and how it ended.
    pub status: SubagentStatus,
    /// What it gave back.
    pub result: Option<Arc<Value>>,
}

/// Whether an invocation of a subagent runs, and how it ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SubagentStatus {
    /// It runs.
    Running,
    /// It ended, or is suspended; the outcome says which.
    Finished(SubagentFinishedOutcome),
    /// It failed.
    Error {
        /// What went wrong.
        message: Arc<str>,
        /// The same, for programs.
        code: Option<Arc<str>>,
    },
    /// Its run ended without it.
    Abandoned,
}
