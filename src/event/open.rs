//! The fast path for events that hold open values or patches, and for a few more that are rare:
//! read from the text without a tree in between.
//!
//! As in `fast`, what it accepts is what the thorough path would accept without a word: known,
//! distinct, well-typed members, and `type` before all others. On anything else it gives up.

use std::sync::Arc;

use json_patch::jsonptr::PointerBuf;
use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation,
};
use serde_json::{Map, Value};

use crate::event::{
    BaseEvent, CustomEvent, Event, JsonPatch, RunFinishedEvent, RunFinishedOutcome, RunFinishedSuccessOutcome,
    RunStartedEvent, StateDeltaEvent, StateSnapshotEvent, ToolCallResultEvent, ToolRole,
};
use crate::id::{Interner, MessageId, RunId, SubagentRunId, ThreadId, ToolCallId};
use crate::json::node::Num;
use crate::json::scan::Scanner;
use crate::message::Content;
use crate::shared::{Document, Text};

/// The event, if it is one of these and needs no more than this.
pub(crate) fn read(text: &str, max_depth: usize, interner: &mut Interner) -> Option<Event> {
    let mut scanner = Scanner::new(text);
    if !scanner.take_all(b"{\"type\":") {
        return None;
    }
    let event_type = scanner.plain_string()?;
    let mut reader = Reader { scanner, base: Base::default(), depth: max_depth.checked_sub(1)? };
    let event = match event_type {
        "STATE_SNAPSHOT" => reader.state_snapshot(interner),
        "STATE_DELTA" => reader.state_delta(interner),
        "TOOL_CALL_RESULT" => reader.tool_call_result(interner),
        "CUSTOM" => reader.custom(interner),
        "RUN_STARTED" => reader.run_started(interner),
        "RUN_FINISHED" => reader.run_finished(interner),
        _ => None,
    }?;
    reader.scanner.skip_whitespace();
    reader.scanner.is_at_end().then_some(event)
}

struct Reader<'a> {
    scanner: Scanner<'a>,
    base: Base<'a>,
    /// How deep the members of the event may be nested.
    depth: usize,
}

/// What any event may have.
#[derive(Default)]
struct Base<'a> {
    owner: Option<&'a str>,
    timestamp: Option<i64>,
}

impl<'a> Base<'a> {
    /// Reads one of these members; there is no other.
    fn member(&mut self, key: &str, scanner: &mut Scanner<'a>) -> Option<()> {
        match key {
            "subagentRunId" => once(&mut self.owner, scanner.plain_string()?),
            "timestamp" => once(&mut self.timestamp, scanner.safe_integer()?),
            _ => None,
        }
    }

    fn into_parts(self, interner: &mut Interner) -> (Option<SubagentRunId>, BaseEvent) {
        let owner = self.owner.map(|text| SubagentRunId::from_id(interner.get(2, text)));
        (owner, BaseEvent { timestamp: self.timestamp, raw_event: None, metadata: None })
    }

    /// The same for an event that has no owner.
    fn without_owner(self) -> Option<BaseEvent> {
        let base = BaseEvent { timestamp: self.timestamp, raw_event: None, metadata: None };
        self.owner.is_none().then_some(base)
    }
}

impl<'a> Reader<'a> {
    /// Reads what follows the type: `own` reads the members that only this event has, and says
    /// `None` of others.
    fn members(&mut self, mut own: impl FnMut(&str, &mut Scanner<'a>) -> Option<Option<()>>) -> Option<()> {
        let Self { scanner, base, .. } = self;
        rest_of_object(scanner, |key, scanner| match own(key, scanner) {
            Some(read) => read,
            None => base.member(key, scanner),
        })
    }

    fn state_snapshot(&mut self, interner: &mut Interner) -> Option<Event> {
        let (mut snapshot, depth) = (None, self.depth);
        self.members(|key, scanner| (key == "snapshot").then(|| once(&mut snapshot, value(scanner, depth)?)))?;
        let (subagent_run_id, base) = std::mem::take(&mut self.base).into_parts(interner);
        Some(StateSnapshotEvent { snapshot: Document::from(snapshot?), subagent_run_id, base }.into())
    }

    fn state_delta(&mut self, interner: &mut Interner) -> Option<Event> {
        let (mut delta, depth) = (None, self.depth);
        self.members(|key, scanner| (key == "delta").then(|| once(&mut delta, patch(scanner, depth)?)))?;
        let (subagent_run_id, base) = std::mem::take(&mut self.base).into_parts(interner);
        Some(StateDeltaEvent { delta: delta?, subagent_run_id, base }.into())
    }

    fn tool_call_result(&mut self, interner: &mut Interner) -> Option<Event> {
        let (mut message_id, mut tool_call_id, mut content, mut role) = (None, None, None, None);
        self.members(|key, scanner| {
            Some(match key {
                "messageId" => scanner.plain_string().and_then(|text| once(&mut message_id, text)),
                "toolCallId" => scanner.plain_string().and_then(|text| once(&mut tool_call_id, text)),
                "content" => string(scanner).and_then(|text| once(&mut content, text)),
                "role" => scanner.plain_string().filter(|text| *text == "tool").and_then(|_| once(&mut role, ToolRole)),
                _ => return None,
            })
        })?;
        let (subagent_run_id, base) = std::mem::take(&mut self.base).into_parts(interner);
        let event = ToolCallResultEvent {
            message_id: MessageId::from_id(interner.get(0, message_id?)),
            tool_call_id: ToolCallId::from_id(interner.get(1, tool_call_id?)),
            content: Content::Text(Text::from(content?)),
            role,
            subagent_run_id,
            base,
        };
        Some(event.into())
    }

    fn custom(&mut self, interner: &mut Interner) -> Option<Event> {
        let (mut name, mut held, depth) = (None, None, self.depth);
        self.members(|key, scanner| {
            Some(match key {
                "name" => string(scanner).and_then(|text| once(&mut name, text)),
                "value" => value(scanner, depth).and_then(|value| once(&mut held, value)),
                _ => return None,
            })
        })?;
        let (subagent_run_id, base) = std::mem::take(&mut self.base).into_parts(interner);
        Some(CustomEvent { name: Arc::from(name?), value: held?, subagent_run_id, base }.into())
    }

    fn run_started(&mut self, interner: &mut Interner) -> Option<Event> {
        let (mut thread_id, mut run_id, mut parent_run_id, mut protocol_version) = (None, None, None, None);
        self.members(|key, scanner| {
            let field = match key {
                "threadId" => &mut thread_id,
                "runId" => &mut run_id,
                "parentRunId" => &mut parent_run_id,
                "protocolVersion" => &mut protocol_version,
                _ => return None,
            };
            Some(scanner.plain_string().and_then(|text| once(field, text)))
        })?;
        let base = std::mem::take(&mut self.base).without_owner()?;
        let event = RunStartedEvent {
            thread_id: ThreadId::from_id(interner.get(3, thread_id?)),
            run_id: RunId::from_id(interner.get(3, run_id?)),
            protocol_version: protocol_version.map(Arc::from),
            parent_run_id: parent_run_id.map(|text| RunId::from_id(interner.get(3, text))),
            input: None,
            base,
        };
        Some(event.into())
    }

    fn run_finished(&mut self, interner: &mut Interner) -> Option<Event> {
        let (mut thread_id, mut run_id, mut outcome, mut result, depth) = (None, None, None, None, self.depth);
        self.members(|key, scanner| {
            Some(match key {
                "threadId" => scanner.plain_string().and_then(|text| once(&mut thread_id, text)),
                "runId" => scanner.plain_string().and_then(|text| once(&mut run_id, text)),
                "outcome" => {
                    success(scanner, depth).and_then(|()| once(&mut outcome, RunFinishedSuccessOutcome::new()))
                }
                "result" => {
                    value(scanner, depth).filter(|value| !value.is_null()).and_then(|value| once(&mut result, value))
                }
                _ => return None,
            })
        })?;
        let base = std::mem::take(&mut self.base).without_owner()?;
        let event = RunFinishedEvent {
            thread_id: ThreadId::from_id(interner.get(3, thread_id?)),
            run_id: RunId::from_id(interner.get(3, run_id?)),
            outcome: outcome.map(RunFinishedOutcome::Success),
            usage: None,
            result,
            base,
        };
        Some(event.into())
    }
}

/// Fills a field that is still empty.
fn once<T>(field: &mut Option<T>, value: T) -> Option<()> {
    field.replace(value).is_none().then_some(())
}

/// Reads the members of an object, each by its key. The scanner stands behind the brace.
fn object<'a>(
    scanner: &mut Scanner<'a>,
    mut member: impl FnMut(&'a str, &mut Scanner<'a>) -> Option<()>,
) -> Option<()> {
    scanner.skip_whitespace();
    if scanner.take(b'}') {
        return Some(());
    }
    one_member(scanner, &mut member)?;
    rest_of_object(scanner, member)
}

/// The same behind a member.
fn rest_of_object<'a>(
    scanner: &mut Scanner<'a>,
    mut member: impl FnMut(&'a str, &mut Scanner<'a>) -> Option<()>,
) -> Option<()> {
    loop {
        scanner.skip_whitespace();
        if scanner.take(b'}') {
            return Some(());
        }
        if !scanner.take(b',') {
            return None;
        }
        one_member(scanner, &mut member)?;
    }
}

fn one_member<'a>(
    scanner: &mut Scanner<'a>,
    member: &mut impl FnMut(&'a str, &mut Scanner<'a>) -> Option<()>,
) -> Option<()> {
    scanner.skip_whitespace();
    let key = scanner.plain_string()?;
    scanner.skip_whitespace();
    if !scanner.take(b':') {
        return None;
    }
    scanner.skip_whitespace();
    member(key, scanner)
}

/// Reads the elements of an array. The scanner stands behind the bracket.
fn array(scanner: &mut Scanner<'_>, mut element: impl FnMut(&mut Scanner<'_>) -> Option<()>) -> Option<()> {
    scanner.skip_whitespace();
    if scanner.take(b']') {
        return Some(());
    }
    loop {
        scanner.skip_whitespace();
        element(scanner)?;
        scanner.skip_whitespace();
        if scanner.take(b']') {
            return Some(());
        }
        if !scanner.take(b',') {
            return None;
        }
    }
}

/// A string of whole characters.
fn string(scanner: &mut Scanner<'_>) -> Option<String> {
    match scanner.plain_string() {
        Some(plain) => Some(plain.to_owned()),
        None if scanner.peek() == Some(b'"') => {
            Some(scanner.string().ok().filter(|string| !string.lone.any())?.text.into_owned())
        }
        None => None,
    }
}

/// Any value, nested at most so deep.
fn value(scanner: &mut Scanner<'_>, depth: usize) -> Option<Value> {
    match scanner.peek()? {
        b'"' => string(scanner).map(Value::String),
        b'{' => {
            let depth = depth.checked_sub(1)?;
            scanner.advance();
            let mut members = Map::new();
            // Which of two equal keys counts is for the thorough path to know.
            object(scanner, |key, scanner| {
                members.insert(key.to_owned(), value(scanner, depth)?).is_none().then_some(())
            })?;
            Some(Value::Object(members))
        }
        b'[' => {
            let depth = depth.checked_sub(1)?;
            scanner.advance();
            let mut elements = Vec::new();
            array(scanner, |scanner| {
                elements.push(value(scanner, depth)?);
                Some(())
            })?;
            Some(Value::Array(elements))
        }
        b't' => scanner.literal("true").ok().map(|()| Value::Bool(true)),
        b'f' => scanner.literal("false").ok().map(|()| Value::Bool(false)),
        b'n' => scanner.literal("null").ok().map(|()| Value::Null),
        b'-' | b'0'..=b'9' => Num::Text(scanner.number().ok()?).to_number().map(Value::Number),
        _ => None,
    }
}

/// The outcome `{"type":"success"}` without anything else.
fn success(scanner: &mut Scanner<'_>, depth: usize) -> Option<()> {
    depth.checked_sub(1)?;
    let mut outcome = None;
    if !scanner.take(b'{') {
        return None;
    }
    object(scanner, |key, scanner| {
        (key == "type").then_some(())?;
        once(&mut outcome, scanner.plain_string()?)
    })?;
    (outcome? == "success").then_some(())
}

fn patch(scanner: &mut Scanner<'_>, depth: usize) -> Option<JsonPatch> {
    let depth = depth.checked_sub(2)?;
    if !scanner.take(b'[') {
        return None;
    }
    let mut operations = Vec::new();
    array(scanner, |scanner| {
        operations.push(operation(scanner, depth)?);
        Some(())
    })?;
    Some(JsonPatch::from_operations(operations))
}

/// An operation with the members that it needs, and no others.
fn operation(scanner: &mut Scanner<'_>, depth: usize) -> Option<PatchOperation> {
    let (mut op, mut path, mut from, mut held) = (None, None, None, None);
    if !scanner.take(b'{') {
        return None;
    }
    object(scanner, |key, scanner| match key {
        "op" => once(&mut op, scanner.plain_string()?),
        "path" => once(&mut path, pointer(scanner)?),
        "from" => once(&mut from, pointer(scanner)?),
        "value" => once(&mut held, value(scanner, depth)?),
        _ => None,
    })?;
    let path = path?;
    Some(match (op?, from, held) {
        ("add", None, Some(value)) => PatchOperation::Add(AddOperation { path, value }),
        ("replace", None, Some(value)) => PatchOperation::Replace(ReplaceOperation { path, value }),
        ("test", None, Some(value)) => PatchOperation::Test(TestOperation { path, value }),
        ("remove", None, None) => PatchOperation::Remove(RemoveOperation { path }),
        ("move", Some(from), None) => PatchOperation::Move(MoveOperation { from, path }),
        ("copy", Some(from), None) => PatchOperation::Copy(CopyOperation { from, path }),
        _ => return None,
    })
}

fn pointer(scanner: &mut Scanner<'_>) -> Option<PointerBuf> {
    PointerBuf::parse(scanner.plain_string()?).ok()
}
