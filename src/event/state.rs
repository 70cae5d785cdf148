//! State and the conversation as a whole: <https://docs.ag-ui.com/spec/1.0/events/state>.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::message::Message;
use crate::rule::Rule;
use crate::wire::decode::{Context, Decode, Decoded, Reject};
use crate::wire::node::Node;

object! {
    /// Replaces the state (rule A6).
    pub struct StateSnapshotEvent {
        tag "type" "STATE_SNAPSHOT";
        required {
            /// The state, any JSON value, null included.
            snapshot: Value = "snapshot",
        }
        flatten subagent_run_id base;
    }
}

object! {
    /// Amends the state (rule A6).
    pub struct StateDeltaEvent {
        tag "type" "STATE_DELTA";
        required {
            /// How it changes.
            delta: JsonPatch = "delta",
        }
        flatten subagent_run_id base;
    }
}

object! {
    /// Restates the conversation (rules A2, O7).
    pub struct MessagesSnapshotEvent {
        tag "type" "MESSAGES_SNAPSHOT";
        required {
            /// All messages that the producer tracks, in order.
            messages: Vec<Message> = "messages",
        }
        flatten base;
    }
}

/// A JSON Patch (RFC 6902), well formed: each operation is one that the RFC defines, with the
/// members that it needs and pointers that are pointers. Other members stay (rule E6).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct JsonPatch(Vec<Operation>);

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
struct Operation(Map<String, Value>);

impl JsonPatch {
    /// The operations as JSON objects, in order.
    pub fn operations(&self) -> impl ExactSizeIterator<Item = &Map<String, Value>> {
        self.0.iter().map(|operation| &operation.0)
    }

    /// Reads a patch from a JSON array; `None` where an operation is malformed or unknown.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Self> {
        let node = Node::from_value(value, crate::Limits::CEILING_DEPTH)?;
        let mut cx = Context::default();
        let patch = Self::decode(&node, &mut cx).ok()?;
        cx.removed.is_empty().then_some(patch)
    }
}

impl Decode for JsonPatch {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        cx.list(node).map(Self)
    }
}

impl Decode for Operation {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        let object = cx.object(node)?;
        let needs: &[&'static str] = match cx.tag(object, "op")? {
            "add" | "replace" | "test" => &["path", "value"],
            "remove" => &["path"],
            "move" | "copy" => &["from", "path"],
            _ => return Err(Reject::Unknown(Rule::E3)),
        };
        let mut faults = crate::wire::decode::Faults::default();
        for key in needs {
            if *key == "value" {
                let _: Option<Present> = cx.required(object, key, &mut faults);
            } else {
                let _: Option<Pointer> = cx.required(object, key, &mut faults);
            }
        }
        faults.check()?;
        cx.open_object(node).map(Self)
    }
}

/// Any value, as long as there is one.
struct Present;

impl Decode for Present {
    fn decode(_: &Node<'_>, _: &mut Context) -> Decoded<Self> {
        Ok(Self)
    }
}

/// A JSON pointer (RFC 6901).
struct Pointer;

impl Decode for Pointer {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        match node {
            Node::String(text) if is_pointer(text.as_str()) => Ok(Self),
            other => Err(cx.malformed("a JSON pointer", other)),
        }
    }
}

fn is_pointer(text: &str) -> bool {
    let mut rest = text.bytes().peekable();
    if rest.peek().is_some_and(|first| *first != b'/') {
        return false;
    }
    while let Some(byte) = rest.next() {
        if byte == b'~' && !matches!(rest.next(), Some(b'0' | b'1')) {
            return false;
        }
    }
    true
}
