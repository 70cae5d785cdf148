//! The table of AG-UI's protobuf messages: the field numbers of npm `@ag-ui/proto` 1.0.0 on the left, the
//! JSON keys on the right.
//!
//! Each line generates the struct for `prost` and the conversions to and from JSON. If a message has
//! another shape than its JSON, its [`Shape`] converts between them.

use serde_json::{Map, Value};

use super::wire::{Field, Fields, broken};
use super::{Fault, open};
use crate::event::EventType;
use crate::json::compact;
use crate::message::Role;
use crate::rule::Rule;

/// The state of reading one event.
#[derive(Debug)]
pub(super) struct Reading {
    event_type: EventType,
    /// How deep open values may be nested.
    depth: usize,
    /// The JSON pointer of the current place.
    path: String,
    /// The warnings: rule, JSON pointer and message.
    pub(super) warnings: Vec<(Rule, String, String)>,
}

/// The fields of a message, for [`check`].
#[derive(Debug)]
pub(super) struct Spec {
    nested: &'static [(u32, &'static Spec)],
    /// Whether its fields exclude each other.
    union: bool,
    /// The fewest bytes that it can take as JSON.
    min_json: usize,
    /// Its fields, for [`plain`]; none where it is not spelled like its JSON.
    fields: &'static [(u32, &'static str, Kind)],
}

/// What a field may be for [`plain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Base,
    /// A string that stands in the JSON even where it is absent.
    Text,
    /// A string that may be absent from the JSON too.
    OptText,
    /// A list, which stands in the JSON even where it is empty.
    List,
    /// What is absent from the JSON where it is absent.
    Other,
}

/// A message of the schema.
trait Wire: prost::Message + Default {
    const SPEC: &'static Spec;

    /// Its JSON; `None` for an unknown member of a union.
    fn into_json(self, cx: &mut Reading) -> Result<Option<Value>, Fault>;

    /// The message for valid JSON, without the members that it has no field for.
    fn from_json(value: Value) -> Self;
}

/// How a message differs from its JSON.
trait Shape {
    const UNION: bool = false;
    const SHAPED: bool = false;

    /// Turns the fields, by their keys, into JSON.
    fn to_json(fields: Map<String, Value>) -> Result<Option<Value>, Fault> {
        Ok(Some(Value::Object(fields)))
    }

    /// Turns JSON into the fields.
    fn to_fields(_json: &mut Map<String, Value>) {}
}

/// Checks a message before it is decoded: whether it can be read, whether unions have one member, and
/// whether its JSON stays within the budget. Two bytes of protobuf can be an empty message, which takes
/// some hundred bytes of memory.
pub(super) fn check(bytes: &[u8], spec: &Spec, budget: &mut usize) -> Result<(), Fault> {
    *budget = budget.checked_sub(spec.min_json).ok_or(Fault::TooLong)?;
    let mut member = None;
    let mut fields = Fields::of(bytes);
    while let Some((number, field)) = fields.next()? {
        let Some((_, spec_of_field)) = spec.nested.iter().find(|(nested, _)| *nested == number) else { continue };
        if spec.union && member.replace(number).is_some_and(|other| other != number) {
            return Err(broken("a union with more than one member"));
        }
        if let Field::Bytes(bytes) = field {
            check(bytes, spec_of_field, budget)?;
        }
    }
    Ok(())
}

/// How many fields an event has for [`plain`] to read it: none of the common ones has more.
const MAX_FIELDS: usize = 8;

/// The event of a frame as JSON text, at once, where its one message holds nothing but strings and the
/// simplest base, each once: as nearly every event does. `None` where there is more, or any doubt.
pub(super) fn plain(frame: &[u8], max: usize) -> Option<String> {
    let mut envelope = Fields::of(frame);
    let Ok(Some((number, Field::Bytes(message)))) = envelope.next() else { return None };
    let (event_type, spec) = event_of(number)?;
    if !envelope.is_at_end() || spec.fields.len() > MAX_FIELDS {
        return None;
    }
    let mut texts: [Option<&str>; MAX_FIELDS] = [None; MAX_FIELDS];
    let mut timestamp = None;
    let mut fields = Fields::of(message);
    while let Some((number, field)) = fields.next().ok()? {
        let at = spec.fields.iter().position(|(known, ..)| *known == number)?;
        match (spec.fields.get(at)?.2, field) {
            (Kind::Base, Field::Bytes(base)) => {
                let mut base = Fields::of(base);
                // What is not named is the first type.
                let mut named = 0;
                while let Some(field) = base.next().ok()? {
                    match field {
                        (1, Field::Varint(number)) => named = number,
                        (2, Field::Varint(moment)) => timestamp = Some(i64::from_le_bytes(moment.to_le_bytes())),
                        _ => return None,
                    }
                }
                if u64::try_from(number_of(event_type)) != Ok(named) || texts.first()?.is_some() {
                    return None;
                }
                *texts.first_mut()? = Some("");
            }
            (Kind::Text | Kind::OptText, Field::Bytes(text)) if texts.get(at)?.is_none() => {
                *texts.get_mut(at)? = Some(core::str::from_utf8(text).ok()?);
            }
            _ => return None,
        }
    }
    // The base is the first field of all, and an event must have one.
    texts.first()?.as_ref()?;
    let mut json = Vec::with_capacity(compact::USUAL);
    json.extend_from_slice(b"{\"type\":\"");
    json.extend_from_slice(event_type.as_str().as_bytes());
    json.push(b'"');
    for ((_, key, kind), text) in spec.fields.iter().zip(texts) {
        match (kind, text) {
            (Kind::Text, text) => put_member(key, text.unwrap_or_default(), &mut json)?,
            (Kind::OptText, Some(text)) => put_member(key, text, &mut json)?,
            (Kind::List, _) => put_member(key, &[(); 0], &mut json)?,
            _ => {}
        }
    }
    if let Some(moment) = timestamp {
        put_member(",\"timestamp\":", &moment, &mut json)?;
    }
    json.push(b'}');
    // What is longer than an event may be, for the thorough reading is not too long: it counts otherwise.
    String::from_utf8(json).ok().filter(|json| json.len() <= max)
}

fn put_member(key: &str, value: &(impl serde::Serialize + ?Sized), json: &mut Vec<u8>) -> Option<()> {
    json.extend_from_slice(key.as_bytes());
    compact::write(value, json).ok()
}

/// Reads an open value, to a depth, and counts the numbers lost in it.
type OpenReader = fn(&[Vec<u8>], usize, &mut usize) -> Result<Option<Value>, Fault>;

/// The key of content parts on their way; as JSON they are the content.
const PARTS: &str = "contentParts";

impl Reading {
    pub(super) fn new(event_type: EventType, depth: usize) -> Self {
        Self { event_type, depth, path: String::new(), warnings: Vec::new() }
    }

    fn within<T>(&mut self, segment: impl core::fmt::Display, read: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.path.len();
        self.path.push('/');
        self.path.push_str(&segment.to_string());
        let read = read(self);
        self.path.truncate(mark);
        read
    }

    /// Reads an open value of a field.
    fn open(&mut self, key: &str, read: OpenReader, occurrences: &[Vec<u8>]) -> Result<Option<Value>, Fault> {
        let mut lost = 0;
        let value = read(occurrences, self.depth, &mut lost)?;
        if lost > 0 {
            let these = if lost == 1 { "number within, which is" } else { "numbers within, which are" };
            let message = format!("read as null: {lost} {these} infinite or not a number");
            let path = self.within(key, |cx| cx.path.clone());
            self.warnings.push((Rule::E10, path, message));
        }
        Ok(value)
    }

    /// A list of messages. An unknown element leaves null in its place and a warning.
    fn list<M: Wire>(&mut self, key: &'static str, messages: Vec<M>) -> Result<Value, Fault> {
        let key = if key == PARTS { "content" } else { key };
        self.within(key, |cx| {
            let mut list = Vec::with_capacity(messages.len());
            for (index, message) in messages.into_iter().enumerate() {
                let value = cx.within(index, |cx| {
                    let value = message.into_json(cx)?;
                    if value.is_none() {
                        let message = "removed a content part: all its fields are unknown";
                        cx.warnings.push((Rule::E3, cx.path.clone(), message.to_owned()));
                    }
                    Ok(value)
                })?;
                list.push(value.unwrap_or_default());
            }
            Ok(Value::Array(list))
        })
    }
}

macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident $($shaped:ident)? { $($rows:tt)* })*) => {$(
        messages!(@struct [$(#[$doc])*] $name [] $($rows)*);
        messages!(@wire $name $($rows)*);
        messages!(@shape $name $($shaped)?);
    )*};

    (@kind base) => { Kind::Base };
    (@kind text) => { Kind::Text };
    (@kind opt_text) => { Kind::OptText };
    (@kind many) => { Kind::List };
    (@kind texts) => { Kind::List };
    (@kind $kind:ident) => { Kind::Other };

    (@shape $name:ident) => { impl Shape for $name {} };
    (@shape $name:ident shaped) => {};

    // The struct, one field at a time: the table's words become attributes of prost.
    (@struct $doc:tt $name:ident $done:tt $field:ident: base($of:ident) = $tag:tt $key:literal, $($rest:tt)*) => {
        messages!(@field $doc $name $done [message, optional, tag = $tag] $field: Option<$of>, $($rest)*);
    };
    (@struct $doc:tt $name:ident $done:tt $field:ident: text = $tag:tt $key:literal, $($rest:tt)*) => {
        messages!(@field $doc $name $done [string, tag = $tag] $field: String, $($rest)*);
    };
    (@struct $doc:tt $name:ident $done:tt $field:ident: opt_text = $tag:tt $key:literal, $($rest:tt)*) => {
        messages!(@field $doc $name $done [string, optional, tag = $tag] $field: Option<String>, $($rest)*);
    };
    (@struct $doc:tt $name:ident $done:tt $field:ident: texts = $tag:tt $key:literal, $($rest:tt)*) => {
        messages!(@field $doc $name $done [string, repeated, tag = $tag] $field: Vec<String>, $($rest)*);
    };
    (@struct $doc:tt $name:ident $done:tt $field:ident: opt_flag = $tag:tt $key:literal, $($rest:tt)*) => {
        messages!(@field $doc $name $done [bool, optional, tag = $tag] $field: Option<bool>, $($rest)*);
    };
    (@struct $doc:tt $name:ident $done:tt $field:ident: opt_int = $tag:tt $key:literal, $($rest:tt)*) => {
        messages!(@field $doc $name $done [int64, optional, tag = $tag] $field: Option<i64>, $($rest)*);
    };
    (@struct $doc:tt $name:ident $done:tt $field:ident: number = $tag:tt $key:literal, $($rest:tt)*) => {
        messages!(@field $doc $name $done [int32, tag = $tag] $field: i32, $($rest)*);
    };
    // All occurrences of an open value, undecoded: together they are one message.
    (@struct $doc:tt $name:ident $done:tt $field:ident: open = $tag:tt $key:literal, $($rest:tt)*) => {
        messages!(@field $doc $name $done [bytes = "vec", repeated, tag = $tag] $field: Vec<Vec<u8>>, $($rest)*);
    };
    (@struct $doc:tt $name:ident $done:tt $field:ident: open_object = $tag:tt $key:literal, $($rest:tt)*) => {
        messages!(@field $doc $name $done [bytes = "vec", repeated, tag = $tag] $field: Vec<Vec<u8>>, $($rest)*);
    };
    (@struct $doc:tt $name:ident $done:tt $field:ident: one($of:ident) = $tag:tt $key:literal, $($rest:tt)*) => {
        messages!(@field $doc $name $done [message, optional, tag = $tag] $field: Option<$of>, $($rest)*);
    };
    (@struct $doc:tt $name:ident $done:tt $field:ident: many($of:ident) = $tag:tt $key:literal, $($rest:tt)*) => {
        messages!(@field $doc $name $done [message, repeated, tag = $tag] $field: Vec<$of>, $($rest)*);
    };
    (@struct $doc:tt $name:ident $done:tt $field:ident: filled($of:ident) = $tag:tt $key:literal, $($rest:tt)*) => {
        messages!(@field $doc $name $done [message, repeated, tag = $tag] $field: Vec<$of>, $($rest)*);
    };
    (@field $doc:tt $name:ident [$($done:tt)*] [$($attribute:tt)*] $field:ident: $type:ty, $($rest:tt)*) => {
        messages!(@struct $doc $name [$($done)* #[prost($($attribute)*)] $field: $type,] $($rest)*);
    };
    (@struct [$($doc:tt)*] $name:ident [$($done:tt)*]) => {
        $($doc)*
        #[derive(Clone, PartialEq, prost::Message)]
        struct $name { $($done)* }
    };

    (@wire $name:ident $($field:ident: $kind:ident $(($of:ident))? = $tag:tt $key:literal,)*) => {
        impl Wire for $name {
            const SPEC: &'static Spec = &Spec {
                nested: &[$($(($tag, $of::SPEC),)?)*],
                union: <$name as Shape>::UNION,
                min_json: 2 $(+ messages!(@min $kind $key))*,
                fields: if <$name as Shape>::SHAPED {
                    &[]
                } else {
                    &[$(($tag, concat!(",\"", $key, "\":"), messages!(@kind $kind)),)*]
                },
            };

            #[allow(unused_variables, reason = "not every message has a field that needs it")]
            fn into_json(self, cx: &mut Reading) -> Result<Option<Value>, Fault> {
                let mut fields = Map::new();
                $(messages!(@put $kind $key self $field fields cx);)*
                Self::to_json(fields)
            }

            fn from_json(value: Value) -> Self {
                let mut json = match value {
                    Value::Object(json) => json,
                    _ => Map::new(),
                };
                Self::to_fields(&mut json);
                Self { $($field: messages!(@take $kind $key json),)* }
            }
        }
    };

    (@min text $key:literal) => { $key.len() + 6 };
    (@min $kind:ident $key:literal) => { 0 };

    (@put base $key:literal $self:ident $field:ident $fields:ident $cx:ident) => {
        $self.$field.ok_or_else(|| broken("an event without its base"))?.put(&mut $fields, $cx)?
    };
    (@put text $key:literal $self:ident $field:ident $fields:ident $cx:ident) => {
        $fields.insert($key.to_owned(), Value::String($self.$field))
    };
    (@put number $key:literal $self:ident $field:ident $fields:ident $cx:ident) => {
        $fields.insert($key.to_owned(), Value::from($self.$field))
    };
    (@put texts $key:literal $self:ident $field:ident $fields:ident $cx:ident) => {
        $fields.insert($key.to_owned(), Value::from($self.$field))
    };
    (@put open $key:literal $self:ident $field:ident $fields:ident $cx:ident) => {
        if let Some(value) = $cx.open($key, open::value, &$self.$field)? {
            $fields.insert($key.to_owned(), value);
        }
    };
    (@put open_object $key:literal $self:ident $field:ident $fields:ident $cx:ident) => {
        if let Some(value) = $cx.open($key, open::object, &$self.$field)? {
            $fields.insert($key.to_owned(), value);
        }
    };
    (@put one $key:literal $self:ident $field:ident $fields:ident $cx:ident) => {
        if let Some(message) = $self.$field {
            match $cx.within($key, |cx| message.into_json(cx))? {
                Some(value) => $fields.insert($key.to_owned(), value),
                // It is required, so its container goes too (rule E3).
                None => return Ok(None),
            };
        }
    };
    (@put many $key:literal $self:ident $field:ident $fields:ident $cx:ident) => {
        $fields.insert($key.to_owned(), $cx.list($key, $self.$field)?)
    };
    (@put filled $key:literal $self:ident $field:ident $fields:ident $cx:ident) => {
        if !$self.$field.is_empty() {
            $fields.insert($key.to_owned(), $cx.list($key, $self.$field)?);
        }
    };
    // An optional scalar.
    (@put $kind:ident $key:literal $self:ident $field:ident $fields:ident $cx:ident) => {
        if let Some(value) = $self.$field {
            $fields.insert($key.to_owned(), Value::from(value));
        }
    };

    (@take base $key:literal $json:ident) => { Some(BaseEvent::take(&mut $json)) };
    (@take text $key:literal $json:ident) => { text($json.remove($key)).unwrap_or_default() };
    (@take opt_text $key:literal $json:ident) => { text($json.remove($key)) };
    (@take texts $key:literal $json:ident) => { list($json.remove($key)).filter_map(|value| text(Some(value))).collect() };
    (@take opt_flag $key:literal $json:ident) => { $json.remove($key).and_then(|value| value.as_bool()) };
    (@take opt_int $key:literal $json:ident) => { $json.remove($key).and_then(|value| value.as_i64()) };
    (@take number $key:literal $json:ident) => {
        $json.remove($key).and_then(|value| value.as_i64()).and_then(|value| i32::try_from(value).ok()).unwrap_or_default()
    };
    (@take open $key:literal $json:ident) => {
        $json.remove($key).map(|value| open::write_value(&value)).into_iter().collect()
    };
    (@take open_object $key:literal $json:ident) => {
        $json.remove($key).iter().filter_map(Value::as_object).map(open::write_object).collect()
    };
    (@take one $key:literal $json:ident) => { $json.remove($key).map(Wire::from_json) };
    (@take many $key:literal $json:ident) => { list($json.remove($key)).map(Wire::from_json).collect() };
    (@take filled $key:literal $json:ident) => { list($json.remove($key)).map(Wire::from_json).collect() };
}

fn text(value: Option<Value>) -> Option<String> {
    match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

fn list(value: Option<Value>) -> impl Iterator<Item = Value> {
    let elements = match value {
        Some(Value::Array(elements)) => elements,
        _ => Vec::new(),
    };
    elements.into_iter()
}

messages! {
    /// The fields of every event.
    BaseEvent {
        event_type: number = 1 "type",
        timestamp: opt_int = 2 "timestamp",
        raw_event: open = 3 "rawEvent",
        metadata: open_object = 4 "metadata",
    }

    TextMessageStartEvent {
        base: base(BaseEvent) = 1 "",
        message_id: text = 2 "messageId",
        role: opt_text = 3 "role",
        name: opt_text = 4 "name",
        subagent_run_id: opt_text = 5 "subagentRunId",
    }

    TextMessageContentEvent {
        base: base(BaseEvent) = 1 "",
        message_id: text = 2 "messageId",
        delta: text = 3 "delta",
        subagent_run_id: opt_text = 4 "subagentRunId",
    }

    TextMessageEndEvent {
        base: base(BaseEvent) = 1 "",
        message_id: text = 2 "messageId",
        subagent_run_id: opt_text = 3 "subagentRunId",
    }

    TextMessageChunkEvent {
        base: base(BaseEvent) = 1 "",
        message_id: opt_text = 2 "messageId",
        role: opt_text = 3 "role",
        delta: opt_text = 4 "delta",
        name: opt_text = 5 "name",
        subagent_run_id: opt_text = 6 "subagentRunId",
    }

    ToolCallStartEvent {
        base: base(BaseEvent) = 1 "",
        tool_call_id: text = 2 "toolCallId",
        tool_call_name: text = 3 "toolCallName",
        parent_message_id: opt_text = 4 "parentMessageId",
        subagent_run_id: opt_text = 5 "subagentRunId",
    }

    ToolCallArgsEvent {
        base: base(BaseEvent) = 1 "",
        tool_call_id: text = 2 "toolCallId",
        delta: text = 3 "delta",
        subagent_run_id: opt_text = 4 "subagentRunId",
    }

    ToolCallEndEvent {
        base: base(BaseEvent) = 1 "",
        tool_call_id: text = 2 "toolCallId",
        subagent_run_id: opt_text = 3 "subagentRunId",
    }

    ToolCallChunkEvent {
        base: base(BaseEvent) = 1 "",
        tool_call_id: opt_text = 2 "toolCallId",
        tool_call_name: opt_text = 3 "toolCallName",
        parent_message_id: opt_text = 4 "parentMessageId",
        delta: opt_text = 5 "delta",
        subagent_run_id: opt_text = 6 "subagentRunId",
    }

    ToolCallResultEvent shaped {
        base: base(BaseEvent) = 1 "",
        subagent_run_id: opt_text = 2 "subagentRunId",
        message_id: text = 3 "messageId",
        tool_call_id: text = 4 "toolCallId",
        content: opt_text = 5 "content",
        role: opt_text = 6 "role",
        content_parts: many(InputContent) = 7 "contentParts",
    }

    StateSnapshotEvent {
        base: base(BaseEvent) = 1 "",
        snapshot: open = 2 "snapshot",
        subagent_run_id: opt_text = 3 "subagentRunId",
    }

    StateDeltaEvent {
        base: base(BaseEvent) = 1 "",
        delta: many(JsonPatchOperation) = 2 "delta",
        subagent_run_id: opt_text = 3 "subagentRunId",
    }

    MessagesSnapshotEvent {
        base: base(BaseEvent) = 1 "",
        messages: many(Message) = 2 "messages",
    }

    ActivitySnapshotEvent {
        base: base(BaseEvent) = 1 "",
        subagent_run_id: opt_text = 2 "subagentRunId",
        message_id: text = 3 "messageId",
        activity_type: text = 4 "activityType",
        content: open_object = 5 "content",
        replace: opt_flag = 6 "replace",
    }

    ActivityDeltaEvent {
        base: base(BaseEvent) = 1 "",
        subagent_run_id: opt_text = 2 "subagentRunId",
        message_id: text = 3 "messageId",
        activity_type: text = 4 "activityType",
        patch: many(JsonPatchOperation) = 5 "patch",
    }

    RawEvent {
        base: base(BaseEvent) = 1 "",
        event: open = 2 "event",
        source: opt_text = 3 "source",
        subagent_run_id: opt_text = 4 "subagentRunId",
    }

    CustomEvent {
        base: base(BaseEvent) = 1 "",
        name: text = 2 "name",
        value: open = 3 "value",
        subagent_run_id: opt_text = 4 "subagentRunId",
    }

    RunStartedEvent {
        base: base(BaseEvent) = 1 "",
        thread_id: text = 2 "threadId",
        run_id: text = 3 "runId",
        parent_run_id: opt_text = 4 "parentRunId",
        input: one(RunAgentInput) = 5 "input",
        protocol_version: opt_text = 6 "protocolVersion",
    }

    RunFinishedEvent shaped {
        base: base(BaseEvent) = 1 "",
        thread_id: text = 2 "threadId",
        run_id: text = 3 "runId",
        result: open = 4 "result",
        outcome: text = 5 "outcome",
        interrupts: many(Interrupt) = 6 "interrupts",
        usage: filled(Usage) = 7 "usage",
        pending_tool_call_ids: texts = 8 "pendingToolCallIds",
    }

    RunErrorEvent {
        base: base(BaseEvent) = 1 "",
        code: opt_text = 2 "code",
        message: text = 3 "message",
        usage: filled(Usage) = 4 "usage",
    }

    StepStartedEvent {
        base: base(BaseEvent) = 1 "",
        step_name: text = 2 "stepName",
        subagent_run_id: opt_text = 3 "subagentRunId",
    }

    StepFinishedEvent {
        base: base(BaseEvent) = 1 "",
        step_name: text = 2 "stepName",
        subagent_run_id: opt_text = 3 "subagentRunId",
    }

    ReasoningStartEvent {
        base: base(BaseEvent) = 1 "",
        subagent_run_id: opt_text = 2 "subagentRunId",
        message_id: text = 3 "messageId",
    }

    ReasoningMessageStartEvent {
        base: base(BaseEvent) = 1 "",
        subagent_run_id: opt_text = 2 "subagentRunId",
        message_id: text = 3 "messageId",
        role: text = 4 "role",
    }

    ReasoningMessageContentEvent {
        base: base(BaseEvent) = 1 "",
        subagent_run_id: opt_text = 2 "subagentRunId",
        message_id: text = 3 "messageId",
        delta: text = 4 "delta",
    }

    ReasoningMessageEndEvent {
        base: base(BaseEvent) = 1 "",
        subagent_run_id: opt_text = 2 "subagentRunId",
        message_id: text = 3 "messageId",
    }

    ReasoningMessageChunkEvent {
        base: base(BaseEvent) = 1 "",
        subagent_run_id: opt_text = 2 "subagentRunId",
        message_id: opt_text = 3 "messageId",
        delta: opt_text = 4 "delta",
    }

    ReasoningEndEvent {
        base: base(BaseEvent) = 1 "",
        subagent_run_id: opt_text = 2 "subagentRunId",
        message_id: text = 3 "messageId",
    }

    ReasoningEncryptedValueEvent {
        base: base(BaseEvent) = 1 "",
        subagent_run_id: opt_text = 2 "subagentRunId",
        subtype: text = 3 "subtype",
        entity_id: text = 4 "entityId",
        encrypted_value: text = 5 "encryptedValue",
    }

    SubagentStartedEvent {
        base: base(BaseEvent) = 1 "",
        subagent_run_id: text = 2 "subagentRunId",
        name: text = 3 "name",
        description: opt_text = 4 "description",
        parent_subagent_run_id: opt_text = 5 "parentSubagentRunId",
        parent_tool_call_id: opt_text = 6 "parentToolCallId",
        parent_message_id: opt_text = 7 "parentMessageId",
    }

    SubagentFinishedEvent shaped {
        base: base(BaseEvent) = 1 "",
        subagent_run_id: text = 2 "subagentRunId",
        result: open = 3 "result",
        outcome: text = 4 "outcome",
        interrupt_ids: texts = 5 "interruptIds",
    }

    SubagentErrorEvent {
        base: base(BaseEvent) = 1 "",
        subagent_run_id: text = 2 "subagentRunId",
        message: text = 3 "message",
        code: opt_text = 4 "code",
    }

    JsonPatchOperation shaped {
        op: number = 1 "op",
        path: text = 2 "path",
        from: opt_text = 3 "from",
        value: open = 4 "value",
    }

    Usage {
        provider: opt_text = 1 "provider",
        model: opt_text = 2 "model",
        input_tokens: opt_int = 3 "inputTokens",
        output_tokens: opt_int = 4 "outputTokens",
        total_tokens: opt_int = 5 "totalTokens",
        reasoning_tokens: opt_int = 6 "reasoningTokens",
        cached_input_tokens: opt_int = 7 "cachedInputTokens",
        cache_write_input_tokens: opt_int = 8 "cacheWriteInputTokens",
    }

    Interrupt {
        id: text = 1 "id",
        reason: text = 2 "reason",
        message: opt_text = 3 "message",
        tool_call_id: opt_text = 4 "toolCallId",
        response_schema: open = 5 "responseSchema",
        expires_at: opt_text = 6 "expiresAt",
        metadata: open = 7 "metadata",
        subagent_run_id: opt_text = 8 "subagentRunId",
    }

    RunAgentInput {
        thread_id: text = 1 "threadId",
        run_id: text = 2 "runId",
        parent_run_id: opt_text = 3 "parentRunId",
        state: open = 4 "state",
        messages: many(Message) = 5 "messages",
        tools: many(Tool) = 6 "tools",
        context: many(Context) = 7 "context",
        forwarded_props: open = 8 "forwardedProps",
        resume: filled(ResumeEntry) = 9 "resume",
        protocol_version: opt_text = 10 "protocolVersion",
    }

    Tool {
        name: text = 1 "name",
        description: text = 2 "description",
        parameters: open = 3 "parameters",
        metadata: open_object = 4 "metadata",
    }

    Context {
        description: text = 1 "description",
        value: text = 2 "value",
    }

    ResumeEntry {
        interrupt_id: text = 1 "interruptId",
        status: text = 2 "status",
        payload: open = 3 "payload",
        metadata: open_object = 4 "metadata",
    }

    /// Messages of all roles, with the fields of every one.
    Message shaped {
        id: text = 1 "id",
        role: text = 2 "role",
        content: opt_text = 3 "content",
        name: opt_text = 4 "name",
        tool_calls: filled(ToolCall) = 5 "toolCalls",
        tool_call_id: opt_text = 6 "toolCallId",
        error: opt_text = 7 "error",
        content_parts: many(InputContent) = 8 "contentParts",
        metadata: open_object = 9 "metadata",
        subagent_run_id: opt_text = 10 "subagentRunId",
        encrypted_value: opt_text = 11 "encryptedValue",
        activity_type: opt_text = 12 "activityType",
        activity_content: open_object = 13 "activityContent",
    }

    ToolCall {
        id: text = 1 "id",
        call_type: text = 2 "type",
        function: one(Function) = 3 "function",
        metadata: open_object = 4 "metadata",
        encrypted_value: opt_text = 5 "encryptedValue",
    }

    Function {
        name: text = 1 "name",
        arguments: text = 2 "arguments",
    }

    /// A content part: one of its fields.
    InputContent shaped {
        text: one(TextInputPart) = 1 "text",
        image: one(MediaInputPart) = 2 "image",
        audio: one(MediaInputPart) = 3 "audio",
        video: one(MediaInputPart) = 4 "video",
        document: one(MediaInputPart) = 5 "document",
    }

    TextInputPart {
        text: text = 1 "text",
        id: opt_text = 2 "id",
        metadata: open = 3 "metadata",
    }

    /// An image, audio, video or document part: the four are alike.
    MediaInputPart {
        source: one(InputContentSource) = 1 "source",
        metadata: open = 2 "metadata",
        id: opt_text = 3 "id",
    }

    /// Where a media part is: one of its fields.
    InputContentSource shaped {
        data: one(InputContentDataSource) = 1 "data",
        url: one(InputContentUrlSource) = 2 "url",
        file: one(InputContentFileSource) = 3 "file",
    }

    InputContentDataSource {
        value: text = 1 "value",
        mime_type: text = 2 "mimeType",
    }

    InputContentUrlSource {
        value: text = 1 "value",
        mime_type: opt_text = 2 "mimeType",
    }

    InputContentFileSource {
        value: text = 1 "value",
        provider: opt_text = 2 "provider",
        mime_type: opt_text = 3 "mimeType",
    }
}

impl BaseEvent {
    /// Puts its fields beside those of the event.
    fn put(self, fields: &mut Map<String, Value>, cx: &mut Reading) -> Result<(), Fault> {
        if self.event_type != number_of(cx.event_type) {
            return Err(broken(format!("an event whose base names the type number {}", self.event_type)));
        }
        if let Some(Value::Object(base)) = self.into_json(cx)? {
            fields.extend(base);
        }
        fields.insert("type".to_owned(), cx.event_type.as_str().into());
        Ok(())
    }

    fn take(json: &mut Map<String, Value>) -> Self {
        let event_type = text(json.remove("type")).and_then(|name| EventType::from_wire(&name));
        let mut base: Map<String, Value> =
            ["timestamp", "rawEvent", "metadata"].into_iter().filter_map(|key| json.remove_entry(key)).collect();
        base.insert("type".to_owned(), event_type.map(number_of).into());
        Self::from_json(Value::Object(base))
    }
}

/// The member that a union holds, taken out of its field.
fn member(fields: Map<String, Value>) -> Result<Option<Value>, Fault> {
    let mut members = fields.into_iter();
    match (members.next(), members.next()) {
        (Some((name, Value::Object(mut member))), None) => {
            member.insert("type".to_owned(), Value::String(name));
            Ok(Some(Value::Object(member)))
        }
        (Some(_), Some(_)) => Err(broken("a union with more than one member")),
        _ => Ok(None),
    }
}

/// Puts the members of a union into the field that its `type` names.
fn into_field(json: &mut Map<String, Value>) {
    let mut member = core::mem::take(json);
    if let Some(name) = text(member.remove("type")) {
        json.insert(name, Value::Object(member));
    }
}

impl Shape for InputContent {
    const UNION: bool = true;

    fn to_json(fields: Map<String, Value>) -> Result<Option<Value>, Fault> {
        member(fields)
    }

    fn to_fields(json: &mut Map<String, Value>) {
        into_field(json);
    }
}

impl Shape for InputContentSource {
    const UNION: bool = true;

    fn to_json(fields: Map<String, Value>) -> Result<Option<Value>, Fault> {
        member(fields)
    }

    fn to_fields(json: &mut Map<String, Value>) {
        into_field(json);
    }
}

/// Takes the parts out of their field: the number of all, and the known ones.
fn take_parts(fields: &mut Map<String, Value>) -> (usize, Value) {
    let parts: Vec<Value> = list(fields.remove(PARTS)).collect();
    (parts.len(), parts.into_iter().filter(|part| !part.is_null()).collect())
}

fn parts_into_field(json: &mut Map<String, Value>) {
    if json.get("content").is_some_and(Value::is_array) {
        if let Some(parts) = json.remove("content") {
            json.insert(PARTS.to_owned(), parts);
        }
    }
}

impl Shape for ToolCallResultEvent {
    const SHAPED: bool = true;

    fn to_json(mut fields: Map<String, Value>) -> Result<Option<Value>, Fault> {
        match (fields.contains_key("content"), take_parts(&mut fields)) {
            (true, (0, _)) => {}
            (true, _) => return Err(broken("a result with both text and parts")),
            (false, (_, parts)) => {
                fields.insert("content".to_owned(), parts);
            }
        }
        Ok(Some(Value::Object(fields)))
    }

    fn to_fields(json: &mut Map<String, Value>) {
        parts_into_field(json);
    }
}

impl Shape for Message {
    /// The content is in one of three fields, by the role. For an unknown role it may be in any, and
    /// enforcement removes the message; in two at once it is invalid for every role.
    fn to_json(mut fields: Map<String, Value>) -> Result<Option<Value>, Fault> {
        let role = fields.get("role").and_then(Value::as_str).unwrap_or_default();
        let role = Role::from_wire(role);
        let has_text = fields.contains_key("content");
        let (parts, known_parts) = take_parts(&mut fields);
        let activity = fields.remove("activityContent");
        let content = match (role, has_text, parts, activity) {
            (_, true, 0, None) if role != Some(Role::Activity) => None,
            (Some(Role::User | Role::Tool), false, _, None) => Some(known_parts),
            (None, false, 1.., None) => Some(known_parts),
            (Some(Role::Activity) | None, false, 0, Some(activity)) => Some(activity),
            (_, false, 0, None) => None,
            _ => return Err(broken("a message with content of another role, or with two contents")),
        };
        if let Some(content) = content {
            fields.insert("content".to_owned(), content);
        }
        Ok(Some(Value::Object(fields)))
    }

    fn to_fields(json: &mut Map<String, Value>) {
        parts_into_field(json);
        if json.get("content").is_some_and(Value::is_object) {
            if let Some(activity) = json.remove("content") {
                json.insert("activityContent".to_owned(), activity);
            }
        }
    }
}

/// Makes an outcome from its name and lists, if it has a name. An empty list is absent, except the
/// interrupts of an interrupt outcome.
fn outcome(mut fields: Map<String, Value>, lists: &[&str]) -> Value {
    let name = text(fields.remove("outcome")).unwrap_or_default();
    let mut outcome = Map::new();
    for key in lists {
        if let Some((key, list)) = fields.remove_entry(*key) {
            if list.as_array().is_some_and(|list| !list.is_empty()) || (name == "interrupt" && key == "interrupts") {
                outcome.insert(key, list);
            }
        }
    }
    if name.is_empty() {
        // Without an outcome they stay in the event, and enforcement reports them.
        fields.extend(outcome);
    } else {
        outcome.insert("type".to_owned(), Value::String(name));
        fields.insert("outcome".to_owned(), Value::Object(outcome));
    }
    Value::Object(fields)
}

fn outcome_into_fields(json: &mut Map<String, Value>) {
    if let Some(Value::Object(mut outcome)) = json.remove("outcome") {
        if let Some(name) = outcome.remove("type") {
            json.insert("outcome".to_owned(), name);
        }
        json.extend(outcome);
    }
}

impl Shape for RunFinishedEvent {
    const SHAPED: bool = true;

    fn to_json(fields: Map<String, Value>) -> Result<Option<Value>, Fault> {
        Ok(Some(outcome(fields, &["interrupts", "pendingToolCallIds"])))
    }

    fn to_fields(json: &mut Map<String, Value>) {
        outcome_into_fields(json);
    }
}

impl Shape for SubagentFinishedEvent {
    const SHAPED: bool = true;

    fn to_json(fields: Map<String, Value>) -> Result<Option<Value>, Fault> {
        Ok(Some(outcome(fields, &["interruptIds"])))
    }

    fn to_fields(json: &mut Map<String, Value>) {
        outcome_into_fields(json);
    }
}

const OPERATIONS: [&str; 6] = ["add", "remove", "replace", "move", "copy", "test"];

impl Shape for JsonPatchOperation {
    /// An unknown operation has its number as its name; enforcement removes it.
    fn to_json(mut fields: Map<String, Value>) -> Result<Option<Value>, Fault> {
        let number = fields.get("op").and_then(Value::as_i64).unwrap_or_default();
        let name = usize::try_from(number).ok().and_then(|number| OPERATIONS.get(number));
        let name = name.map_or_else(|| number.to_string(), |name| (*name).to_owned());
        fields.insert("op".to_owned(), Value::String(name));
        Ok(Some(Value::Object(fields)))
    }

    fn to_fields(json: &mut Map<String, Value>) {
        let name = text(json.remove("op")).unwrap_or_default();
        json.insert("op".to_owned(), OPERATIONS.iter().position(|operation| *operation == name).into());
    }
}

macro_rules! events {
    ($($field:literal $number:literal $variant:ident $message:ident,)*) => {
        /// The event type of a field of the envelope, and the fields of its message.
        pub(super) fn event_of(field: u32) -> Option<(EventType, &'static Spec)> {
            match field {
                $($field => Some((EventType::$variant, $message::SPEC)),)*
                _ => None,
            }
        }

        /// The type as the base of an event names it.
        fn number_of(event_type: EventType) -> i32 {
            match event_type { $(EventType::$variant => $number,)* }
        }

        /// Reads the event of the context's type from all occurrences of its field.
        pub(super) fn read(occurrences: &[&[u8]], cx: &mut Reading) -> Result<Value, Fault> {
            match cx.event_type { $(EventType::$variant => read_as::<$message>(occurrences, cx),)* }
        }

        /// The field of the envelope and the message in it, for an event as JSON.
        pub(super) fn write(event_type: EventType, json: Value) -> (u32, Vec<u8>) {
            match event_type {
                $(EventType::$variant => ($field, prost::Message::encode_to_vec(&$message::from_json(json))),)*
            }
        }
    };
}

events! {
    1 0 TextMessageStart TextMessageStartEvent,
    2 1 TextMessageContent TextMessageContentEvent,
    3 2 TextMessageEnd TextMessageEndEvent,
    4 3 ToolCallStart ToolCallStartEvent,
    5 4 ToolCallArgs ToolCallArgsEvent,
    6 5 ToolCallEnd ToolCallEndEvent,
    7 6 StateSnapshot StateSnapshotEvent,
    8 7 StateDelta StateDeltaEvent,
    9 8 MessagesSnapshot MessagesSnapshotEvent,
    10 9 Raw RawEvent,
    11 10 Custom CustomEvent,
    12 11 RunStarted RunStartedEvent,
    13 12 RunFinished RunFinishedEvent,
    14 13 RunError RunErrorEvent,
    15 14 StepStarted StepStartedEvent,
    16 15 StepFinished StepFinishedEvent,
    17 19 TextMessageChunk TextMessageChunkEvent,
    18 20 ToolCallChunk ToolCallChunkEvent,
    19 16 SubagentStarted SubagentStartedEvent,
    20 17 SubagentFinished SubagentFinishedEvent,
    21 18 SubagentError SubagentErrorEvent,
    22 21 ToolCallResult ToolCallResultEvent,
    23 22 ActivitySnapshot ActivitySnapshotEvent,
    24 23 ActivityDelta ActivityDeltaEvent,
    25 24 ReasoningStart ReasoningStartEvent,
    26 25 ReasoningMessageStart ReasoningMessageStartEvent,
    27 26 ReasoningMessageContent ReasoningMessageContentEvent,
    28 27 ReasoningMessageEnd ReasoningMessageEndEvent,
    29 28 ReasoningMessageChunk ReasoningMessageChunkEvent,
    30 29 ReasoningEnd ReasoningEndEvent,
    31 30 ReasoningEncryptedValue ReasoningEncryptedValueEvent,
}

fn read_as<M: Wire>(occurrences: &[&[u8]], cx: &mut Reading) -> Result<Value, Fault> {
    let mut message = M::default();
    for bytes in occurrences {
        message.merge(*bytes).map_err(|error| broken(format!("invalid bytes: {error}")))?;
    }
    Ok(message.into_json(cx)?.unwrap_or_default())
}
