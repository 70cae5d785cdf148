//! A hand-written reader for text deltas, the most common events by far: `TEXT_MESSAGE_CONTENT` and its
//! chunk as most producers write them, compact and with `type` first; and a writer for the first. The tables
//! read and write all others.
//!
//! The reader accepts only text that the tree reader would accept without a warning. The writer writes what
//! the tables would write.

use std::borrow::Cow;

use smol_str::SmolStr;

use crate::event::{BaseEvent, Event, TextMessageChunkEvent, TextMessageContentEvent};
use crate::id::{Interner, MessageId, SubagentRunId};
#[cfg(feature = "__codec")]
use crate::json::compact::is_plain;
use crate::json::scan::Scanner;
use crate::schema::text::{smol_str, whole_string};

const MESSAGE_ID: u8 = 1;
const DELTA: u8 = 1 << 1;
const SUBAGENT_RUN_ID: u8 = 1 << 2;
const TIMESTAMP: u8 = 1 << 3;

/// The fields of a `TEXT_MESSAGE_CONTENT`. The event itself is made only in the place where it is kept.
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

/// The same of a `TEXT_MESSAGE_CHUNK` with a delta and no role or name.
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

/// The members of a text delta, as read from its text.
#[derive(Default)]
pub(crate) struct Fields<'a> {
    seen: u8,
    is_chunk: bool,
    message_id: &'a str,
    delta: Cow<'a, str>,
    subagent_run_id: &'a str,
    timestamp: i64,
}

impl<'a> Fields<'a> {
    /// Reads them if the text holds nothing else; gives `false`, with undefined members, otherwise.
    ///
    /// It fills `self`, as to return the members would copy them.
    pub(crate) fn read(&mut self, text: &'a str) -> bool {
        self.try_read(text).is_some()
    }

    fn try_read(&mut self, text: &'a str) -> Option<()> {
        let mut scanner = Scanner::new(text);
        // One comparison for several tokens, here and below.
        if !scanner.take_all(b"{\"type\":\"TEXT_MESSAGE_CONTENT\",") {
            self.is_chunk = scanner.take_all(b"{\"type\":\"TEXT_MESSAGE_CHUNK\",");
            if !self.is_chunk {
                return None;
            }
        }
        loop {
            if self.seen & MESSAGE_ID == 0 && scanner.take_all(b"\"messageId\":") {
                self.seen |= MESSAGE_ID;
                self.message_id = scanner.plain_string()?;
            } else if self.seen & DELTA == 0 && scanner.take_all(b"\"delta\":") {
                self.seen |= DELTA;
                self.delta = whole_string(&mut scanner)?;
            } else if self.seen & SUBAGENT_RUN_ID == 0 && scanner.take_all(b"\"subagentRunId\":") {
                self.seen |= SUBAGENT_RUN_ID;
                self.subagent_run_id = scanner.plain_string()?;
            } else if self.seen & TIMESTAMP == 0 && scanner.take_all(b"\"timestamp\":") {
                self.seen |= TIMESTAMP;
                self.timestamp = scanner.safe_integer()?;
            } else {
                return None;
            }
            if !scanner.take(b',') {
                break;
            }
        }
        if !scanner.take(b'}') {
            return None;
        }
        scanner.skip_whitespace();
        let required = if self.is_chunk { DELTA } else { MESSAGE_ID | DELTA };
        (scanner.is_at_end() && self.seen & required == required).then_some(())
    }

    /// Whether no id is longer than this.
    pub(crate) fn has_ids_within(&self, max: usize) -> bool {
        self.message_id.len() <= max && self.subagent_run_id.len() <= max
    }

    /// Whether the event is a `TEXT_MESSAGE_CONTENT`; if not, it is a `TEXT_MESSAGE_CHUNK`.
    #[inline]
    pub(crate) fn is_text_content(&self) -> bool {
        !self.is_chunk
    }

    /// The parts of the `TEXT_MESSAGE_CONTENT`.
    #[inline(always)]
    pub(crate) fn text_content(&self, interner: &mut Interner) -> TextContent {
        // First: the write is then long done when the event is made.
        let delta = smol_str(&self.delta);
        let owner = self.owner(interner);
        TextContent {
            message_id: MessageId::interned(self.message_id, interner),
            delta,
            owner,
            timestamp: self.timestamp(),
        }
    }

    /// The parts of the `TEXT_MESSAGE_CHUNK`.
    #[inline(always)]
    pub(crate) fn text_chunk(&self, interner: &mut Interner) -> TextChunk {
        let delta = smol_str(&self.delta);
        let message_id = (self.seen & MESSAGE_ID != 0).then(|| MessageId::interned(self.message_id, interner));
        TextChunk { message_id, delta, owner: self.owner(interner), timestamp: self.timestamp() }
    }

    #[inline]
    fn owner(&self, interner: &mut Interner) -> Option<SubagentRunId> {
        (self.seen & SUBAGENT_RUN_ID != 0).then(|| SubagentRunId::interned(self.subagent_run_id, interner))
    }

    #[inline]
    fn timestamp(&self) -> Option<i64> {
        (self.seen & TIMESTAMP != 0).then_some(self.timestamp)
    }
}

/// Appends a `TEXT_MESSAGE_CONTENT` that has only its ids and its delta, without a character to escape; gives
/// `false` for any other event.
#[cfg(feature = "__codec")]
#[inline]
pub(crate) fn write(event: &Event, out: &mut Vec<u8>) -> bool {
    let Event::TextMessageContent(TextMessageContentEvent {
        message_id,
        delta,
        subagent_run_id: owner,
        base: BaseEvent { timestamp: None, raw_event: None, metadata: None },
    }) = event
    else {
        return false;
    };
    let (message_id, delta) = (message_id.as_str().as_bytes(), delta.as_bytes());
    let owner = owner.as_ref().map(|owner| owner.as_str().as_bytes());
    if !is_plain(message_id) || !is_plain(delta) || !owner.is_none_or(is_plain) {
        return false;
    }
    out.extend_from_slice(b"{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"");
    out.extend_from_slice(message_id);
    out.extend_from_slice(b"\",\"delta\":\"");
    out.extend_from_slice(delta);
    if let Some(owner) = owner {
        out.extend_from_slice(b"\",\"subagentRunId\":\"");
        out.extend_from_slice(owner);
    }
    out.extend_from_slice(b"\"}");
    true
}
