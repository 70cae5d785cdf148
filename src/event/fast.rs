//! The fast path: a common event in one pass over its text, without a tree.
//!
//! It only ever accepts what the thorough path would accept without a word: a flat object of
//! known, distinct, well-typed fields. On anything else it gives up, and the thorough path says
//! what there is to say. So the rules live in one place.

use std::borrow::Cow;
use std::sync::Arc;

use smol_str::SmolStr;

use crate::event::{
    BaseEvent, Event, EventType, ReasoningEndEvent, ReasoningMessageChunkEvent, ReasoningMessageContentEvent,
    ReasoningMessageEndEvent, ReasoningMessageStartEvent, ReasoningStartEvent, StepFinishedEvent, StepStartedEvent,
    TextMessageChunkEvent, TextMessageContentEvent, TextMessageEndEvent, TextMessageRole, TextMessageStartEvent,
    ToolCallArgsEvent, ToolCallChunkEvent, ToolCallEndEvent, ToolCallStartEvent,
};
use crate::id::{Interner, MessageId, SubagentRunId, ToolCallId};
use crate::json::scan::Scanner;
use crate::json::short::short;

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

/// A `TEXT_MESSAGE_CONTENT` in parts: they stay where they are until the event is put together in
/// the place where it is kept.
pub(crate) struct TextContent {
    pub(crate) message_id: MessageId,
    pub(crate) delta: SmolStr,
    pub(crate) owner: Option<SubagentRunId>,
    pub(crate) timestamp: Option<i64>,
}

impl TextContent {
    #[inline(always)]
    pub(crate) fn into_event(self) -> Event {
        Event::TextMessageContent(TextMessageContentEvent {
            message_id: self.message_id,
            delta: self.delta,
            subagent_run_id: self.owner,
            base: BaseEvent { timestamp: self.timestamp, raw_event: None, metadata: None },
        })
    }
}

/// A `TEXT_MESSAGE_CHUNK` that brings no more than a delta, in parts too.
pub(crate) struct TextChunk {
    pub(crate) message_id: Option<MessageId>,
    pub(crate) delta: SmolStr,
    pub(crate) owner: Option<SubagentRunId>,
    pub(crate) timestamp: Option<i64>,
}

impl TextChunk {
    pub(crate) fn into_event(self) -> Event {
        Event::from(TextMessageChunkEvent {
            message_id: self.message_id,
            role: None,
            delta: Some(self.delta),
            name: None,
            subagent_run_id: self.owner,
            base: BaseEvent { timestamp: self.timestamp, raw_event: None, metadata: None },
        })
    }
}

/// The members of a flat event.
#[derive(Default)]
pub(crate) struct Fields<'a> {
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
    /// Reads them, if there is nothing else; otherwise they are of no use.
    ///
    /// Into their place, for to give them back would be to copy what was just written.
    pub(crate) fn read(&mut self, text: &'a str) -> bool {
        self.try_read(text).is_some()
    }

    fn try_read(&mut self, text: &'a str) -> Option<()> {
        let mut scanner = Scanner::new(text);
        // As most producers write the two most common events: one comparison for two tokens.
        let mut follows = true;
        if scanner.take_all(b"{\"type\":\"TEXT_MESSAGE_CONTENT\",") {
            self.seen = TYPE;
            self.event_type = "TEXT_MESSAGE_CONTENT";
        } else if scanner.take_all(b"{\"type\":\"TEXT_MESSAGE_CHUNK\",") {
            self.seen = TYPE;
            self.event_type = "TEXT_MESSAGE_CHUNK";
        } else {
            scanner.skip_whitespace();
            if !scanner.take(b'{') {
                return None;
            }
        }
        while follows {
            scanner.skip_whitespace();
            // The most common keys without the table below.
            if self.seen & MESSAGE_ID == 0 && scanner.take_all(b"\"messageId\":") {
                self.seen |= MESSAGE_ID;
                self.message_id = scanner.plain_string()?;
                follows = another_follows(&mut scanner)?;
                continue;
            }
            if self.seen & DELTA == 0 && scanner.take_all(b"\"delta\":") {
                self.seen |= DELTA;
                self.delta = delta(&mut scanner)?;
                follows = another_follows(&mut scanner)?;
                continue;
            }
            if self.seen & SUBAGENT_RUN_ID == 0 && scanner.take_all(b"\"subagentRunId\":") {
                self.seen |= SUBAGENT_RUN_ID;
                self.subagent_run_id = scanner.plain_string()?;
                follows = another_follows(&mut scanner)?;
                continue;
            }
            let bit = key(&mut scanner)?;
            scanner.skip_whitespace();
            if self.seen & bit != 0 {
                return None;
            }
            self.seen |= bit;
            let target = match bit {
                DELTA => {
                    self.delta = delta(&mut scanner)?;
                    None
                }
                TIMESTAMP => {
                    self.timestamp = scanner.safe_integer()?;
                    None
                }
                TYPE => Some(&mut self.event_type),
                MESSAGE_ID => Some(&mut self.message_id),
                SUBAGENT_RUN_ID => Some(&mut self.subagent_run_id),
                TOOL_CALL_ID => Some(&mut self.tool_call_id),
                TOOL_CALL_NAME => Some(&mut self.tool_call_name),
                PARENT_MESSAGE_ID => Some(&mut self.parent_message_id),
                ROLE => Some(&mut self.role),
                NAME => Some(&mut self.name),
                _ => Some(&mut self.step_name),
            };
            if let Some(target) = target {
                *target = scanner.plain_string()?;
                // Most producers name the type first, and other types need not be read twice.
                if bit == TYPE && !may_be_flat(self.event_type) {
                    return None;
                }
            }
            follows = another_follows(&mut scanner)?;
        }
        scanner.skip_whitespace();
        scanner.is_at_end().then_some(())
    }

    /// Whether they are those of a `TEXT_MESSAGE_CONTENT`.
    #[inline]
    pub(crate) fn is_text_content(&self) -> bool {
        self.event_type == "TEXT_MESSAGE_CONTENT" && self.has(MESSAGE_ID | DELTA, 0)
    }

    /// The parts of the `TEXT_MESSAGE_CONTENT`.
    #[inline(always)]
    pub(crate) fn text_content(&self, interner: &mut Interner) -> TextContent {
        // First, so that it has long been written where the event is put together.
        let delta = short(&self.delta);
        let (owner, base) = common(self, interner);
        TextContent {
            message_id: MessageId::from_id(interner.get(0, self.message_id)),
            delta,
            owner,
            timestamp: base.timestamp,
        }
    }

    /// Whether they are those of a `TEXT_MESSAGE_CHUNK` that brings no more than a delta.
    #[inline]
    pub(crate) fn is_text_chunk(&self) -> bool {
        self.event_type == "TEXT_MESSAGE_CHUNK" && self.has(DELTA, MESSAGE_ID)
    }

    /// The parts of such a chunk.
    #[inline(always)]
    pub(crate) fn text_chunk(&self, interner: &mut Interner) -> TextChunk {
        let delta = short(&self.delta);
        let message_id =
            self.optional(MESSAGE_ID, self.message_id).map(|text| MessageId::from_id(interner.get(0, text)));
        let (owner, base) = common(self, interner);
        TextChunk { message_id, delta, owner, timestamp: base.timestamp }
    }

    /// Any other event.
    #[inline]
    pub(crate) fn other(&self, interner: &mut Interner) -> Option<Event> {
        read_other(self, interner)
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

/// The text of a delta, unless it has half a surrogate pair.
#[inline]
fn delta<'a>(scanner: &mut Scanner<'a>) -> Option<Cow<'a, str>> {
    match scanner.plain_string() {
        Some(plain) => Some(Cow::Borrowed(plain)),
        None if scanner.peek() == Some(b'"') => Some(scanner.string().ok().filter(|string| !string.lone.any())?.text),
        None => None,
    }
}

/// Behind a value: whether another member follows; `None` where the object is no object.
#[inline]
fn another_follows(scanner: &mut Scanner<'_>) -> Option<bool> {
    scanner.skip_whitespace();
    if scanner.take(b',') { Some(true) } else { scanner.take(b'}').then_some(false) }
}

/// Whether a type may be one of those that `read_other` knows.
#[inline]
fn may_be_flat(event_type: &str) -> bool {
    matches!(event_type.as_bytes(), [b'T', ..] | [b'R', b'E', ..] | [b'S', b'T', b'E', ..])
}

/// The bit of a known key; steps over it and its colon.
#[inline]
fn key(scanner: &mut Scanner<'_>) -> Option<u16> {
    // Compact text first: a look at two letters, and one comparison.
    let compact = match (scanner.peek_at(1)?, scanner.peek_at(2)?) {
        (b'm', _) => scanner.take_all(b"\"messageId\":").then_some(MESSAGE_ID),
        (b'd', _) => scanner.take_all(b"\"delta\":").then_some(DELTA),
        (b't', b'y') => scanner.take_all(b"\"type\":").then_some(TYPE),
        (b't', b'i') => scanner.take_all(b"\"timestamp\":").then_some(TIMESTAMP),
        (b's', b'u') => scanner.take_all(b"\"subagentRunId\":").then_some(SUBAGENT_RUN_ID),
        (b's', _) => scanner.take_all(b"\"stepName\":").then_some(STEP_NAME),
        (b't', _) if scanner.take_all(b"\"toolCallId\":") => Some(TOOL_CALL_ID),
        (b't', _) => scanner.take_all(b"\"toolCallName\":").then_some(TOOL_CALL_NAME),
        (b'p', _) => scanner.take_all(b"\"parentMessageId\":").then_some(PARENT_MESSAGE_ID),
        (b'r', _) => scanner.take_all(b"\"role\":").then_some(ROLE),
        (b'n', _) => scanner.take_all(b"\"name\":").then_some(NAME),
        _ => return None,
    };
    compact.or_else(|| spaced_key(scanner))
}

/// The same where there is a space before the colon.
#[cold]
fn spaced_key(scanner: &mut Scanner<'_>) -> Option<u16> {
    let bit = match scanner.plain_string()? {
        "type" => TYPE,
        "messageId" => MESSAGE_ID,
        "delta" => DELTA,
        "subagentRunId" => SUBAGENT_RUN_ID,
        "timestamp" => TIMESTAMP,
        "toolCallId" => TOOL_CALL_ID,
        "toolCallName" => TOOL_CALL_NAME,
        "parentMessageId" => PARENT_MESSAGE_ID,
        "role" => ROLE,
        "name" => NAME,
        "stepName" => STEP_NAME,
        _ => return None,
    };
    scanner.skip_whitespace();
    scanner.take(b':').then_some(bit)
}

#[inline(always)]
fn common(fields: &Fields<'_>, interner: &mut Interner) -> (Option<SubagentRunId>, BaseEvent) {
    let subagent_run_id = fields
        .optional(SUBAGENT_RUN_ID, fields.subagent_run_id)
        .map(|text| SubagentRunId::from_id(interner.get(2, text)));
    let timestamp = (fields.seen & TIMESTAMP != 0).then_some(fields.timestamp);
    (subagent_run_id, BaseEvent { timestamp, raw_event: None, metadata: None })
}

fn read_other(fields: &Fields<'_>, interner: &mut Interner) -> Option<Event> {
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
    let (subagent_run_id, base) = common(fields, interner);
    let mut message = |bit, text| (fields.seen & bit != 0).then(|| MessageId::from_id(interner.get(0, text)));
    let message_id = message(MESSAGE_ID, fields.message_id);
    let parent_message_id = message(PARENT_MESSAGE_ID, fields.parent_message_id);
    let tool_call_id =
        fields.optional(TOOL_CALL_ID, fields.tool_call_id).map(|text| ToolCallId::from_id(interner.get(1, text)));
    let tool_call_name = fields.optional(TOOL_CALL_NAME, fields.tool_call_name).map(Arc::from);
    let name = fields.optional(NAME, fields.name).map(Arc::from);
    let delta = (fields.seen & DELTA != 0).then(|| short(&fields.delta));
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
            TextMessageChunkEvent { message_id, role, delta, name, subagent_run_id, base }.into()
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
        EventType::ToolCallChunk => {
            ToolCallChunkEvent { tool_call_id, tool_call_name, parent_message_id, delta, subagent_run_id, base }.into()
        }
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
            Event::StepStarted(StepStartedEvent { step_name: fields.step_name.into(), subagent_run_id, base })
        }
        EventType::StepFinished => {
            Event::StepFinished(StepFinishedEvent { step_name: fields.step_name.into(), subagent_run_id, base })
        }
        _ => return None,
    })
}
