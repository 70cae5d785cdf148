//! The fast path: a common event in one pass over its text, without a tree.
//!
//! It only ever accepts what the thorough path would accept without a word: a flat object of
//! known, distinct, well-typed fields. On anything else it gives up, and the thorough path says
//! what there is to say. So the rules live in one place.

use std::borrow::Cow;

use super::scan::Scanner;
use crate::event::{
    BaseEvent, Event, EventType, ReasoningEndEvent, ReasoningMessageChunkEvent, ReasoningMessageContentEvent,
    ReasoningMessageEndEvent, ReasoningMessageStartEvent, ReasoningStartEvent, StepFinishedEvent, StepStartedEvent,
    TextMessageChunkEvent, TextMessageContentEvent, TextMessageEndEvent, TextMessageRole, TextMessageStartEvent,
    ToolCallArgsEvent, ToolCallChunkEvent, ToolCallEndEvent, ToolCallStartEvent,
};
use crate::id::{Interner, MessageId, SubagentRunId, ToolCallId};

const TYPE: u16 = 1;
const MESSAGE_ID: u16 = 1 << 1;
const DELTA: u16 = 1 << 2;
const SUBAGENT_RUN_ID: u16 = 1 << 3;
const TIMESTAMP: u16 = 1 << 4;
const TOOL_CALL_ID: u16 = 1 << 5;
const TOOL_CALL_NAME: u16 = 1 << 6;
const PARENT_MESSAGE_ID: u16 = 1 << 7;
const ROLE: u16 = 1 << 8;
const NAME: u16 = 1 << 9;
const STEP_NAME: u16 = 1 << 10;

const COMMON: u16 = TYPE | SUBAGENT_RUN_ID | TIMESTAMP;

#[derive(Default)]
struct Fields<'a> {
    seen: u16,
    event_type: &'a str,
    message_id: &'a str,
    delta: Cow<'a, str>,
    subagent_run_id: &'a str,
    timestamp: i64,
    tool_call_id: &'a str,
    tool_call_name: &'a str,
    parent_message_id: &'a str,
    role: &'a str,
    name: &'a str,
    step_name: &'a str,
}

impl<'a> Fields<'a> {
    #[inline]
    fn read(text: &'a str) -> Option<Self> {
        let mut scanner = Scanner::new(text);
        let mut fields = Self::default();
        scanner.skip_whitespace();
        if !scanner.take(b'{') {
            return None;
        }
        loop {
            scanner.skip_whitespace();
            let key = scanner.plain_string()?;
            scanner.skip_whitespace();
            if !scanner.take(b':') {
                return None;
            }
            scanner.skip_whitespace();
            let (bit, target) = match key {
                "type" => (TYPE, &mut fields.event_type),
                "messageId" => (MESSAGE_ID, &mut fields.message_id),
                "delta" => {
                    if fields.seen & DELTA != 0 {
                        return None;
                    }
                    fields.seen |= DELTA;
                    fields.delta = match scanner.plain_string() {
                        Some(plain) => Cow::Borrowed(plain),
                        None if scanner.peek() == Some(b'"') => {
                            scanner.string().ok().filter(|string| !string.lone.any())?.text
                        }
                        None => return None,
                    };
                    if after_value(&mut scanner)? {
                        continue;
                    }
                    break;
                }
                "subagentRunId" => (SUBAGENT_RUN_ID, &mut fields.subagent_run_id),
                "timestamp" => {
                    if fields.seen & TIMESTAMP != 0 || !matches!(scanner.peek(), Some(b'-' | b'0'..=b'9')) {
                        return None;
                    }
                    fields.seen |= TIMESTAMP;
                    fields.timestamp = scanner.number().ok()?.parse().ok()?;
                    if fields.timestamp.unsigned_abs() >= 1 << 53 {
                        return None;
                    }
                    if after_value(&mut scanner)? {
                        continue;
                    }
                    break;
                }
                "toolCallId" => (TOOL_CALL_ID, &mut fields.tool_call_id),
                "toolCallName" => (TOOL_CALL_NAME, &mut fields.tool_call_name),
                "parentMessageId" => (PARENT_MESSAGE_ID, &mut fields.parent_message_id),
                "role" => (ROLE, &mut fields.role),
                "name" => (NAME, &mut fields.name),
                "stepName" => (STEP_NAME, &mut fields.step_name),
                _ => return None,
            };
            if fields.seen & bit != 0 {
                return None;
            }
            fields.seen |= bit;
            *target = scanner.plain_string()?;
            if !after_value(&mut scanner)? {
                break;
            }
        }
        scanner.skip_whitespace();
        scanner.is_at_end().then_some(fields)
    }

    #[inline]
    fn has(&self, required: u16, optional: u16) -> bool {
        self.seen & (required | TYPE) == required | TYPE && self.seen & !(required | optional | COMMON) == 0
    }

    #[inline]
    fn optional(&self, bit: u16, text: &'a str) -> Option<&'a str> {
        (self.seen & bit != 0).then_some(text)
    }
}

/// Whether another member follows; `None` where the object is no object.
#[inline]
fn after_value(scanner: &mut Scanner<'_>) -> Option<bool> {
    scanner.skip_whitespace();
    if scanner.take(b',') {
        Some(true)
    } else if scanner.take(b'}') {
        Some(false)
    } else {
        None
    }
}

/// The event, if it is one that needs no more than this.
#[inline]
pub(crate) fn read(text: &str, interner: &mut Interner) -> Option<Event> {
    let fields = Fields::read(text)?;
    if fields.event_type == "TEXT_MESSAGE_CONTENT" && fields.has(MESSAGE_ID | DELTA, 0) {
        let (subagent_run_id, base) = common(&fields, interner);
        return Some(Event::TextMessageContent(TextMessageContentEvent {
            message_id: MessageId::from_id(interner.get(0, fields.message_id)),
            delta: fields.delta.into_owned(),
            subagent_run_id,
            base,
        }));
    }
    read_other(fields, interner)
}

#[inline]
fn common(fields: &Fields<'_>, interner: &mut Interner) -> (Option<SubagentRunId>, BaseEvent) {
    let subagent_run_id = fields
        .optional(SUBAGENT_RUN_ID, fields.subagent_run_id)
        .map(|text| SubagentRunId::from_id(interner.get(2, text)));
    let timestamp = (fields.seen & TIMESTAMP != 0).then_some(fields.timestamp);
    (subagent_run_id, BaseEvent { timestamp, raw_event: None, metadata: None })
}

fn read_other(fields: Fields<'_>, interner: &mut Interner) -> Option<Event> {
    let event_type = EventType::from_wire(fields.event_type)?;
    let (required, optional) = match event_type {
        EventType::TextMessageStart => (MESSAGE_ID, ROLE | NAME),
        EventType::TextMessageContent | EventType::ReasoningMessageContent => (MESSAGE_ID | DELTA, 0),
        EventType::TextMessageEnd
        | EventType::ReasoningMessageEnd
        | EventType::ReasoningStart
        | EventType::ReasoningEnd => (MESSAGE_ID, 0),
        EventType::TextMessageChunk => (0, MESSAGE_ID | DELTA | ROLE | NAME),
        EventType::ToolCallStart => (TOOL_CALL_ID | TOOL_CALL_NAME, PARENT_MESSAGE_ID),
        EventType::ToolCallArgs => (TOOL_CALL_ID | DELTA, 0),
        EventType::ToolCallEnd => (TOOL_CALL_ID, 0),
        EventType::ToolCallChunk => (0, TOOL_CALL_ID | TOOL_CALL_NAME | PARENT_MESSAGE_ID | DELTA),
        EventType::ReasoningMessageStart => (MESSAGE_ID | ROLE, 0),
        EventType::ReasoningMessageChunk => (0, MESSAGE_ID | DELTA),
        EventType::StepStarted | EventType::StepFinished => (STEP_NAME, 0),
        _ => return None,
    };
    if !fields.has(required, optional) {
        return None;
    }
    let role = match (event_type, fields.optional(ROLE, fields.role)) {
        (EventType::ReasoningMessageStart, role) => {
            if role != Some("reasoning") {
                return None;
            }
            None
        }
        (_, Some(role)) => Some(TextMessageRole::from_wire(role)?),
        (_, None) => None,
    };
    let (subagent_run_id, base) = common(&fields, interner);
    let mut message = |bit, text| (fields.seen & bit != 0).then(|| MessageId::from_id(interner.get(0, text)));
    let message_id = message(MESSAGE_ID, fields.message_id);
    let parent_message_id = message(PARENT_MESSAGE_ID, fields.parent_message_id);
    let tool_call_id =
        fields.optional(TOOL_CALL_ID, fields.tool_call_id).map(|text| ToolCallId::from_id(interner.get(1, text)));
    let tool_call_name = fields.optional(TOOL_CALL_NAME, fields.tool_call_name).map(str::to_owned);
    let name = fields.optional(NAME, fields.name).map(str::to_owned);
    let delta = (fields.seen & DELTA != 0).then(|| fields.delta.into_owned());
    Some(match event_type {
        EventType::TextMessageStart => Event::TextMessageStart(TextMessageStartEvent {
            message_id: message_id?,
            role,
            name,
            subagent_run_id,
            base,
        }),
        EventType::TextMessageEnd => {
            Event::TextMessageEnd(TextMessageEndEvent { message_id: message_id?, subagent_run_id, base })
        }
        EventType::TextMessageChunk => {
            Event::TextMessageChunk(TextMessageChunkEvent { message_id, role, delta, name, subagent_run_id, base })
        }
        EventType::ToolCallStart => Event::ToolCallStart(ToolCallStartEvent {
            tool_call_id: tool_call_id?,
            tool_call_name: tool_call_name?,
            parent_message_id,
            subagent_run_id,
            base,
        }),
        EventType::ToolCallArgs => {
            Event::ToolCallArgs(ToolCallArgsEvent { tool_call_id: tool_call_id?, delta: delta?, subagent_run_id, base })
        }
        EventType::ToolCallEnd => {
            Event::ToolCallEnd(ToolCallEndEvent { tool_call_id: tool_call_id?, subagent_run_id, base })
        }
        EventType::ToolCallChunk => Event::ToolCallChunk(ToolCallChunkEvent {
            tool_call_id,
            tool_call_name,
            parent_message_id,
            delta,
            subagent_run_id,
            base,
        }),
        EventType::ReasoningStart => {
            Event::ReasoningStart(ReasoningStartEvent { message_id: message_id?, subagent_run_id, base })
        }
        EventType::ReasoningMessageStart => {
            Event::ReasoningMessageStart(ReasoningMessageStartEvent { message_id: message_id?, subagent_run_id, base })
        }
        EventType::ReasoningMessageContent => Event::ReasoningMessageContent(ReasoningMessageContentEvent {
            message_id: message_id?,
            delta: delta?,
            subagent_run_id,
            base,
        }),
        EventType::ReasoningMessageEnd => {
            Event::ReasoningMessageEnd(ReasoningMessageEndEvent { message_id: message_id?, subagent_run_id, base })
        }
        EventType::ReasoningMessageChunk => {
            Event::ReasoningMessageChunk(ReasoningMessageChunkEvent { message_id, delta, subagent_run_id, base })
        }
        EventType::ReasoningEnd => {
            Event::ReasoningEnd(ReasoningEndEvent { message_id: message_id?, subagent_run_id, base })
        }
        EventType::StepStarted => {
            Event::StepStarted(StepStartedEvent { step_name: fields.step_name.to_owned(), subagent_run_id, base })
        }
        EventType::StepFinished => {
            Event::StepFinished(StepFinishedEvent { step_name: fields.step_name.to_owned(), subagent_run_id, base })
        }
        _ => return None,
    })
}
