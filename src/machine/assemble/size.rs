//! What the conversation takes, in bytes, as [`Limits::max_conversation_bytes`] counts: texts by their
//! length, and a fixed amount for each thing. What patches change counts apart, as documents.

use serde_json::Value;

use crate::event::{Interrupt, Metadata, SubagentFinishedOutcome, TokenUsage};
use crate::id::{Id, ToolCallId};
use crate::message::{ActivityMessage, Content, ContentPart, Message, PartSource, ToolCall};
use crate::run_input::ResumeEntry;
use crate::shared::Text;
use crate::snapshot::run::{OpenItem, Run, RunOutcome, Subagent, SubagentStatus};

#[cfg(doc)]
use crate::limits::Limits;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count(usize);

impl Count {
    pub(super) const EMPTY: Self = Self(0);

    #[inline]
    pub(super) fn get(self) -> usize {
        self.0
    }

    #[inline]
    pub(super) fn add(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes);
    }

    pub(super) fn remove(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes);
    }

    /// What took so much takes so much now.
    pub(super) fn resize(&mut self, before: usize, after: usize) {
        self.remove(before);
        self.add(after);
    }
}

/// About what a message, a call, a run or a subagent takes beside its texts, with its places in lists
/// and indices and the room that a text has from its first delta on.
const ITEM: usize = 1024;
/// About what a thing takes that is open, or that is known to a tally, or a part of a list.
const SMALL: usize = 256;

pub(super) fn text<T: AsRef<str>>(text: Option<T>) -> usize {
    text.map_or(0, |text| text.as_ref().len())
}

pub(super) fn metadata(metadata: Option<&Metadata>) -> usize {
    metadata.map_or(0, Metadata::bytes)
}

/// As a document counts.
fn value(value: &Value) -> usize {
    let text = |text: &str| 32 + text.len();
    32 + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(string) => text(string),
        Value::Array(elements) => elements.iter().fold(96, |sum, element| sum + self::value(element)),
        Value::Object(members) => members.iter().fold(96, |sum, (key, member)| sum + text(key) + self::value(member)),
    }
}

/// A message, without the content of an activity.
pub(super) fn message(message: &Message) -> usize {
    let (content, encrypted) = match message {
        Message::Developer(message) => (message.content.len(), &message.encrypted_value),
        Message::System(message) => (message.content.len(), &message.encrypted_value),
        Message::Reasoning(message) => (message.content.len(), &message.encrypted_value),
        Message::Assistant(message) => {
            let calls = message.tool_calls.iter().flatten().map(|held| call(held)).sum::<usize>();
            (calls + message.content.as_ref().map_or(0, Text::len), &message.encrypted_value)
        }
        Message::User(message) => (content(&message.content), &message.encrypted_value),
        Message::Tool(message) => {
            let own = message.tool_call_id.as_str().len() + text(message.error.as_ref());
            (own + content(&message.content), &message.encrypted_value)
        }
        Message::Activity(message) => (message.activity_type.len(), &None),
    };
    let names = message.id().as_str().len() + text(message.subagent_run_id()) + text(message.name());
    ITEM + names + content + text(encrypted.as_ref()) + metadata(message.metadata())
}

/// A tool call.
pub(super) fn call(call: &ToolCall) -> usize {
    let texts = call.id.as_str().len() + call.function.name.len() + call.function.arguments.len();
    ITEM + texts + text(call.encrypted_value.as_ref()) + metadata(call.metadata.as_ref())
}

fn content(content: &Content) -> usize {
    let source = |source: &PartSource| match source {
        PartSource::Data(data) => data.value.len() + data.mime_type.len(),
        PartSource::Url(url) => url.value.len() + text(url.mime_type.as_ref()),
        PartSource::File(file) => file.value.len() + text(file.provider.as_ref()) + text(file.mime_type.as_ref()),
    };
    let part = |part: &ContentPart| {
        let (content, id, metadata) = match part {
            ContentPart::Text(part) => (part.text.len(), &part.id, &part.metadata),
            ContentPart::Image(part) => (source(&part.source), &part.id, &part.metadata),
            ContentPart::Audio(part) => (source(&part.source), &part.id, &part.metadata),
            ContentPart::Video(part) => (source(&part.source), &part.id, &part.metadata),
            ContentPart::Document(part) => (source(&part.source), &part.id, &part.metadata),
        };
        SMALL + content + text(id.as_ref()) + metadata.as_ref().map_or(0, value)
    };
    match content {
        Content::Text(text) => text.len(),
        Content::Parts(parts) => parts.iter().map(part).sum(),
    }
}

/// What an activity takes that changes, without its content and metadata.
pub(super) fn activity(activity: &ActivityMessage) -> usize {
    activity.activity_type.len() + text(activity.subagent_run_id.as_ref())
}

/// Something that is open.
pub(super) fn open(item: &OpenItem) -> usize {
    SMALL + item.id().len() + text(item.owner.as_ref())
}

/// A call in the tally of a run.
pub(super) fn made(id: &Id) -> usize {
    SMALL + id.as_str().len()
}

fn interrupt(interrupt: &Interrupt) -> usize {
    let texts = interrupt.id.as_str().len()
        + interrupt.reason.len()
        + text(interrupt.message.as_ref())
        + text(interrupt.tool_call_id.as_ref())
        + text(interrupt.expires_at.as_ref())
        + text(interrupt.subagent_run_id.as_ref());
    let schema = interrupt.response_schema.iter().flatten().map(|(key, member)| 64 + key.len() + value(member));
    SMALL + texts + schema.sum::<usize>() + metadata(interrupt.metadata.as_ref())
}

fn answer(answer: &ResumeEntry) -> usize {
    let payload = answer.payload.as_ref().map_or(0, value);
    SMALL + answer.interrupt_id.as_str().len() + payload + metadata(answer.metadata.as_ref())
}

fn answers(answers: Option<&[ResumeEntry]>) -> usize {
    answers.unwrap_or_default().iter().map(answer).sum()
}

fn usage(usage: Option<&[TokenUsage]>) -> usize {
    let entry = |entry: &TokenUsage| SMALL + text(entry.provider.as_ref()) + text(entry.model.as_ref());
    usage.unwrap_or_default().iter().map(entry).sum()
}

pub(super) fn subagent(subagent: &Subagent) -> usize {
    let status = match &subagent.status {
        SubagentStatus::Finished(outcome) => suspension(outcome),
        SubagentStatus::Error { message, code } => message.len() + text(code.as_ref()),
        SubagentStatus::Running | SubagentStatus::Abandoned => 0,
    };
    let texts = subagent.subagent_run_id.as_str().len()
        + subagent.name.len()
        + text(subagent.description.as_ref())
        + text(subagent.parent_subagent_run_id.as_ref())
        + text(subagent.parent_tool_call_id.as_ref())
        + text(subagent.parent_message_id.as_ref());
    ITEM + texts + status + subagent.result.as_deref().map_or(0, value)
}

fn suspension(outcome: &SubagentFinishedOutcome) -> usize {
    match outcome {
        SubagentFinishedOutcome::Suspended(outcome) => {
            outcome.interrupt_ids.iter().flatten().map(|id| 64 + id.as_str().len()).sum()
        }
        SubagentFinishedOutcome::Success(_) => 0,
    }
}

/// How a run began and ended.
pub(super) fn ends_of(run: &Run) -> usize {
    let ids = |ids: &[ToolCallId]| ids.iter().map(|id| 64 + id.as_str().len()).sum::<usize>();
    let outcome = match &run.outcome {
        RunOutcome::Success { pending_tool_call_ids } => ids(pending_tool_call_ids),
        RunOutcome::Interrupt { interrupts, pending_tool_call_ids } => {
            interrupts.iter().map(interrupt).sum::<usize>() + ids(pending_tool_call_ids)
        }
        RunOutcome::Error { message, code } => message.len() + text(code.as_ref()),
        RunOutcome::Running | RunOutcome::Cancelled | RunOutcome::Truncated | RunOutcome::Rejected => 0,
    };
    let texts = text(run.thread_id.as_ref())
        + text(run.run_id.as_ref())
        + text(run.parent_run_id.as_ref())
        + text(run.protocol_version.as_ref());
    let result = run.result.as_deref().map_or(0, value);
    ITEM + texts + outcome + result + usage(run.usage.as_deref()) + answers(run.resume.as_deref())
}

/// A run with all that it named. Costs what it has open and its subagents.
pub(super) fn run(run: &Run) -> usize {
    ends_of(run) + run.open().map(open).sum::<usize>() + run.subagents().map(subagent).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::json;

    use super::super::Assembler;
    use super::*;
    use crate::limits::Limits;
    use crate::machine::{Machine, Push};
    use crate::options::Options;

    /// What the counter says, by a walk over everything.
    fn counted(assembler: &Assembler) -> usize {
        let snapshot = assembler.snapshot();
        let messages = snapshot.messages().iter().map(message).sum::<usize>();
        let made = assembler.live.made.keys().map(made).sum::<usize>();
        messages + snapshot.runs().map(run).sum::<usize>() + made
    }

    fn check(name: &str, events: &[Value]) {
        let limits = Limits { max_runs: 2, ..Limits::default() };
        let (mut judge, mut assembler) = (Options::new().build_events(), Assembler::new().with_limits(limits));
        for event in events {
            let is_fatal = judge.push(event.to_string()).is_err();
            while let Some(item) = judge.pop() {
                assembler.push(item.clone()).unwrap();
                assert_eq!(assembler.live.bytes.get(), counted(&assembler), "{name}: after {item:?}");
            }
            if is_fatal {
                break;
            }
        }
        assembler.finish().unwrap();
        assert_eq!(assembler.live.bytes.get(), counted(&assembler), "{name}: at the end");
    }

    #[test]
    fn the_counter_says_what_a_walk_says() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/conformance/streams");
        let mut streams = 0;
        for file in fs::read_dir(folder).unwrap() {
            let file = file.unwrap();
            let fixture: Value = serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap();
            check(&file.file_name().to_string_lossy(), fixture["stream"].as_array().unwrap());
            streams += 1;
        }
        assert!(streams > 50, "{streams} streams");

        let runs = (0..5).flat_map(|at| {
            let id = format!("r{at}");
            let metadata = json!({"key": id, "at": at});
            let start = |kind: &str| json!({"type": kind, "messageId": "m", "metadata": metadata});
            let call = |kind: &str| json!({"type": kind, "toolCallId": id, "metadata": metadata});
            let with = |mut event: Value, more: Value| {
                event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                event
            };
            let result = |content: &str| {
                json!({"type": "TOOL_CALL_RESULT", "messageId": "result", "toolCallId": id, "content": content})
            };
            let activity = |kind: &str| {
                let content = json!({"a": id});
                json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "plan", "activityType": kind, "content": content})
            };
            [
                json!({"type": "RUN_STARTED", "threadId": "t", "runId": id}),
                start("TEXT_MESSAGE_START"),
                with(start("TEXT_MESSAGE_CONTENT"), json!({"delta": "text"})),
                start("TEXT_MESSAGE_END"),
                with(call("TOOL_CALL_START"), json!({"toolCallName": "f", "parentMessageId": "m"})),
                with(call("TOOL_CALL_ARGS"), json!({"delta": "{}"})),
                call("TOOL_CALL_END"),
                result(&id),
                result("another"),
                activity("plan"),
                activity("another plan"),
                with(activity("plan"), json!({"messageId": "result", "metadata": metadata})),
                json!({"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "m", "encryptedValue": id}),
                json!({"type": "SUBAGENT_STARTED", "subagentRunId": id, "name": "s"}),
                json!({"type": "STEP_STARTED", "stepName": "step", "subagentRunId": id}),
                json!({"type": "RUN_ERROR", "message": "failed", "code": id}),
            ]
        });
        check("runs", &runs.collect::<Vec<_>>());
    }
}
