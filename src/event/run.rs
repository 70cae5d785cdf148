//! The events of a run's life, and how a run can end: <https://docs.ag-ui.com/spec/1.0/events/lifecycle>.

use super::BaseEvent;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Metadata;
use crate::id::{InterruptId, RunId, ThreadId, ToolCallId};
use crate::json::node::Node;
use crate::run_input::RunAgentInput;
use crate::schema::check::Flaws;
use crate::schema::decode::{Context, Decode, Decoded};
use crate::schema::text::Reader;

object! {
    /// A run begins (rules R1, R2, R6).
    pub struct RunStartedEvent {
        tag "type" "RUN_STARTED";
        required {
            /// The thread that the run belongs to.
            thread_id: ThreadId = "threadId",
            /// The run.
            run_id: RunId = "runId",
        }
        optional {
            /// The protocol version that the producer speaks, MAJOR.MINOR (rule R11).
            protocol_version: Arc<str> = "protocolVersion",
            /// The run that this one continues or branches from.
            parent_run_id: RunId = "parentRunId",
            /// What the run was given; its messages are history (rule R12).
            input: Box<RunAgentInput> = "input",
        }
        flatten base;
    }
}

object! {
    /// A run ends (rules R3, R7).
    pub struct RunFinishedEvent {
        tag "type" "RUN_FINISHED";
        required {
            /// The thread of the run.
            thread_id: ThreadId = "threadId",
            /// The run.
            run_id: RunId = "runId",
        }
        optional {
            /// How it ended; absent means success (rule R7).
            outcome: RunFinishedOutcome = "outcome",
            /// What the models used, as far as the producer knows.
            usage: Vec<TokenUsage> = "usage",
        }
        nonnull {
            /// What the run gave back; never null.
            result = "result",
        }
        flatten base;
    }
}

object! {
    /// A run failed (rule R5).
    pub struct RunErrorEvent {
        tag "type" "RUN_ERROR";
        required {
            /// What went wrong.
            message: Arc<str> = "message",
        }
        optional {
            /// The same, for programs.
            code: Arc<str> = "code",
            /// What the models used until then.
            usage: Vec<TokenUsage> = "usage",
        }
        flatten base;
    }
}

object! {
    /// The run did what it was asked to do.
    #[derive(Default)]
    pub struct SuccessOutcome {
        tag "type" "success";
        optional {
            /// The tool calls that the application is expected to answer (rule R9).
            pending_tool_call_ids: Vec<ToolCallId> = "pendingToolCallIds",
        }
    }
}

object! {
    /// The run waits for answers.
    pub struct InterruptOutcome {
        tag "type" "interrupt";
        required {
            /// What it waits for, at least one.
            interrupts: Interrupts = "interrupts",
        }
    }
}

object! {
    /// The run was stopped on purpose: neither a success nor a failure.
    #[derive(Default)]
    pub struct CancelledOutcome {
        tag "type" "cancelled";
    }
}

union! {
    /// How a run ended (rule R7).
    pub enum RunFinishedOutcome by "type" {
        /// It did what it was asked to do.
        Success "success" SuccessOutcome,
        /// It waits for answers.
        Interrupt "interrupt" InterruptOutcome,
        /// It was stopped on purpose.
        Cancelled "cancelled" CancelledOutcome,
    }
}

/// One or more interrupts.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(transparent)]
pub struct Interrupts(Vec<Interrupt>);

impl Interrupts {
    /// The first and the others.
    #[must_use]
    pub fn new(first: Interrupt, others: impl IntoIterator<Item = Interrupt>) -> Self {
        Self(std::iter::once(first).chain(others).collect())
    }

    /// The interrupts of an iterator; `None` if it is empty.
    ///
    /// ```
    /// use ag_ui_stream::event::{Interrupt, Interrupts};
    ///
    /// let questions = ["Where to?", "When?"].map(|question| Interrupt::new(question, "a question"));
    /// assert_eq!(Interrupts::from_iter(questions).unwrap().as_slice().len(), 2);
    /// assert_eq!(Interrupts::from_iter([]), None);
    /// ```
    #[must_use]
    #[allow(clippy::should_implement_trait, reason = "the trait's cannot fail")]
    pub fn from_iter(interrupts: impl IntoIterator<Item = Interrupt>) -> Option<Self> {
        let mut interrupts = interrupts.into_iter();
        Some(Self::new(interrupts.next()?, interrupts))
    }

    /// All of them, never empty.
    #[must_use]
    pub fn as_slice(&self) -> &[Interrupt] {
        &self.0
    }
}

impl From<Interrupt> for Interrupts {
    fn from(interrupt: Interrupt) -> Self {
        Self(vec![interrupt])
    }
}

/// From an array; an empty one does not compile.
///
/// ```
/// use ag_ui_stream::event::{Interrupt, InterruptOutcome};
///
/// let outcome = InterruptOutcome::new([Interrupt::new("a", "where to"), Interrupt::new("b", "when")]);
/// assert_eq!(outcome.interrupts.as_slice().len(), 2);
/// ```
///
/// ```compile_fail
/// use ag_ui_stream::event::InterruptOutcome;
///
/// let outcome = InterruptOutcome::new([]);
/// ```
impl<const N: usize> From<[Interrupt; N]> for Interrupts {
    fn from(interrupts: [Interrupt; N]) -> Self {
        const { assert!(N > 0, "a run that waits has at least one interrupt") };
        Self(interrupts.into())
    }
}

impl Decode for Interrupts {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        match node {
            Node::Array(elements) if elements.is_empty() => {
                Err(cx.fault(crate::rule::Rule::E5, cx.path(), NOT_EMPTY, EMPTY.into()))
            }
            _ => cx.list(node).map(Self),
        }
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        reader.list().filter(|list| !list.is_empty()).map(Self)
    }

    fn check(&self, depth: usize, flaws: &mut Flaws) {
        if self.0.is_empty() {
            flaws.fault(NOT_EMPTY, EMPTY);
        }
        self.0.check(depth, flaws);
    }
}

const NOT_EMPTY: &str = "at least one interrupt";
const EMPTY: &str = "an empty array";

deserialize!(Interrupts);

object! {
    /// A question that a run waits for.
    pub struct Interrupt {
        required {
            /// The id that its answer names.
            id: InterruptId = "id",
            /// Why the run stopped.
            reason: Arc<str> = "reason",
        }
        optional {
            /// The question, for people.
            message: Arc<str> = "message",
            /// The tool call that it is about.
            tool_call_id: ToolCallId = "toolCallId",
            /// A JSON schema of the answer, kept whole.
            response_schema: Map<String, Value> = "responseSchema",
            /// When the question lapses, as the producer wrote it.
            expires_at: Arc<str> = "expiresAt",
            /// The producer's own data.
            metadata: Metadata = "metadata",
        }
        flatten subagent_run_id;
    }
}

object! {
    /// What one model used. An absent count is unknown, not zero.
    #[derive(Default)]
    pub struct TokenUsage {
        optional {
            /// Who runs the model.
            provider: Arc<str> = "provider",
            /// The model.
            model: Arc<str> = "model",
            /// Tokens read.
            input_tokens: u64 = "inputTokens",
            /// Tokens written.
            output_tokens: u64 = "outputTokens",
            /// Tokens read and written.
            total_tokens: u64 = "totalTokens",
            /// Tokens written that were reasoning.
            reasoning_tokens: u64 = "reasoningTokens",
            /// Tokens read from a cache.
            cached_input_tokens: u64 = "cachedInputTokens",
            /// Tokens written to a cache.
            cache_write_input_tokens: u64 = "cacheWriteInputTokens",
        }
    }
}
