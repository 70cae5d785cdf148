//! Helpers of the tests of verification.

use ag_ui_stream::error::{History, Subject, SubjectKind, Violation};
use ag_ui_stream::machine::{IdChecks, Verifier};
use ag_ui_stream::{Error, EventType, Item};
use serde_json::Value;

use super::{Driven, drive, enforced, event, run_finished, run_started};

pub fn verify(events: &[Value]) -> Driven<Item> {
    drive(&mut Verifier::new(), enforced(events))
}

pub fn verify_strictly(events: &[Value]) -> Driven<Item> {
    drive(&mut Verifier::new().with_id_checks(IdChecks::Reject), enforced(events))
}

/// These events within a run, from event 1 on.
pub fn run(events: impl IntoIterator<Item = Value>) -> Vec<Value> {
    std::iter::once(run_started()).chain(events).collect()
}

/// The stream is legal to its end, and quiet, and comes through as it is.
#[track_caller]
pub fn accepts(events: &[Value]) {
    let driven = verify(events);
    assert_eq!(driven.error, None);
    assert_eq!(driven.warnings(), Vec::<&ag_ui_stream::Warning>::new());
    let expected: Vec<_> = events.iter().cloned().map(event).collect();
    assert_eq!(driven.events(), expected.iter().collect::<Vec<_>>());
}

/// These events are legal and quiet within a run that finishes.
#[track_caller]
pub fn accepts_in_run(events: impl IntoIterator<Item = Value>) {
    let mut events = run(events);
    events.push(run_finished());
    accepts(&events);
}

/// The last of these events breaks a rule: how. All before it are delivered.
#[track_caller]
pub fn violation(events: &[Value]) -> Violation {
    broken(verify(events), events.len())
}

#[track_caller]
pub fn broken(driven: Driven<Item>, events: usize) -> Violation {
    assert_eq!(driven.events().len(), events - 1, "{driven:#?}");
    let Some(Error::Violation(violation)) = driven.error else { panic!("no violation: {driven:#?}") };
    assert_eq!(violation.event, events as u64 - 1);
    *violation
}

/// The last of these events, which come within a run, breaks a rule: how.
#[track_caller]
pub fn violation_in_run(events: impl IntoIterator<Item = Value>) -> Violation {
    violation(&run(events))
}

pub fn wire(event: &Value) -> EventType {
    EventType::from_wire(event["type"].as_str().unwrap()).unwrap()
}

pub fn open(since: u64, owner: Option<&str>) -> History {
    History::Open { since, owner: owner.map(str::to_owned) }
}

pub fn closed(at: u64, owner: Option<&str>) -> History {
    History::Closed { at, owner: owner.map(str::to_owned) }
}

pub fn known(at: u64, owner: Option<&str>) -> History {
    History::Known { at, owner: owner.map(str::to_owned) }
}

pub fn subject(kind: SubjectKind, id: &str) -> Subject {
    Subject::new(kind, id)
}

/// A kind of things that START opens and END closes.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub kind: SubjectKind,
    pub start: fn(&str) -> Value,
    /// `None` for spans, which have no content.
    pub content: Option<fn(&str) -> Value>,
    pub end: fn(&str) -> Value,
    /// `an open …` in the words of errors.
    pub name: &'static str,
}

pub const KINDS: [Kind; 4] = [
    Kind {
        kind: SubjectKind::TextMessage,
        start: super::text_start,
        content: Some(super::text_content),
        end: super::text_end,
        name: "text message",
    },
    Kind {
        kind: SubjectKind::ToolCall,
        start: super::call_start,
        content: Some(super::call_args),
        end: super::call_end,
        name: "tool call",
    },
    Kind {
        kind: SubjectKind::ReasoningMessage,
        start: super::thought_start,
        content: Some(super::thought_content),
        end: super::thought_end,
        name: "reasoning message",
    },
    Kind {
        kind: SubjectKind::ReasoningSpan,
        start: super::reasoning_start,
        content: None,
        end: super::reasoning_end,
        name: "reasoning span",
    },
];

impl Kind {
    /// What may only come while the thing is open.
    pub fn continuations(&self) -> impl Iterator<Item = fn(&str) -> Value> {
        self.content.into_iter().chain([self.end])
    }

    pub fn subject(&self, id: &str) -> Subject {
        Subject::new(self.kind, id)
    }
}

/// Every event that belongs within a run, once, about the id `x`, and what it is about.
pub fn inner_events() -> Vec<(Value, Option<Subject>)> {
    use serde_json::json;

    use super::*;
    let about = |kind| Some(Subject::new(kind, "x"));
    vec![
        (text_start("x"), about(SubjectKind::TextMessage)),
        (text_content("x"), about(SubjectKind::TextMessage)),
        (text_end("x"), about(SubjectKind::TextMessage)),
        (call_start("x"), about(SubjectKind::ToolCall)),
        (call_args("x"), about(SubjectKind::ToolCall)),
        (call_end("x"), about(SubjectKind::ToolCall)),
        (call_result("m", "x"), about(SubjectKind::ToolCall)),
        (reasoning_start("x"), about(SubjectKind::ReasoningSpan)),
        (reasoning_end("x"), about(SubjectKind::ReasoningSpan)),
        (thought_start("x"), about(SubjectKind::ReasoningMessage)),
        (thought_content("x"), about(SubjectKind::ReasoningMessage)),
        (thought_end("x"), about(SubjectKind::ReasoningMessage)),
        (encrypted_value("message", "x"), about(SubjectKind::ReasoningMessage)),
        (encrypted_value("tool-call", "x"), about(SubjectKind::ToolCall)),
        (step_started("x"), about(SubjectKind::Step)),
        (step_finished("x"), about(SubjectKind::Step)),
        (subagent_started("x"), about(SubjectKind::Subagent)),
        (subagent_finished("x"), about(SubjectKind::Subagent)),
        (subagent_error("x"), about(SubjectKind::Subagent)),
        (activity_snapshot("x"), about(SubjectKind::Activity)),
        (activity_delta("x"), about(SubjectKind::Activity)),
        (json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "x"}), about(SubjectKind::TextMessage)),
        (json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "x", "toolCallName": "f"}), about(SubjectKind::ToolCall)),
        (json!({"type": "REASONING_MESSAGE_CHUNK", "messageId": "x"}), about(SubjectKind::ReasoningMessage)),
        (json!({"type": "TEXT_MESSAGE_CHUNK"}), None),
        (messages_snapshot(json!([])), None),
        (state_snapshot(), None),
        (state_delta(), None),
        (custom(), None),
        (raw(), None),
    ]
}
