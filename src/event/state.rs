//! The events of the state and of the whole conversation, and JSON patches: <https://docs.ag-ui.com/spec/1.0/events/state>.

use super::BaseEvent;
use std::collections::BTreeMap;

use json_patch::jsonptr::PointerBuf;
use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation,
};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::json::node::Node;
use crate::message::Message;
use crate::rule::Rule;
use crate::schema::check::Flaws;
use crate::schema::decode::{Context, Decode, Decoded, Faults, Reject};
use crate::schema::text::Reader;
use crate::shared::Document;

object! {
    /// Replaces the state (rule A6).
    pub struct StateSnapshotEvent {
        tag "type" "STATE_SNAPSHOT";
        required {
            /// The state, any JSON value, null included.
            snapshot: Document = "snapshot",
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

/// A well-formed JSON Patch (RFC 6902): each operation is one of the RFC, with the members that it
/// needs and valid pointers. Other members are kept (rule E6).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonPatch {
    operations: Vec<PatchOperation>,
    /// The other members of operations, by the index of the operation.
    others: BTreeMap<usize, Map<String, Value>>,
}

impl JsonPatch {
    /// The operations, in order.
    pub fn operations(&self) -> impl ExactSizeIterator<Item = Operation<'_>> {
        self.operations.iter().enumerate().map(|(at, operation)| Operation { operation, others: self.others.get(&at) })
    }

    /// Reads a patch from a JSON array; `None` where an operation is malformed or unknown.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Self> {
        let node = Node::from_value(value, crate::limits::Limits::CEILING_DEPTH)?;
        let mut cx = Context::default();
        let patch = Self::decode(&node, &mut cx).ok()?;
        cx.removed.is_empty().then_some(patch)
    }

    /// A patch of operations that have no other members.
    pub(crate) fn from_operations(operations: Vec<PatchOperation>) -> Self {
        Self { operations, others: BTreeMap::new() }
    }

    /// Adds the operations of another patch after its own.
    pub(crate) fn append(&mut self, other: Self) {
        let before = self.operations.len();
        self.operations.extend(other.operations);
        self.others.extend(other.others.into_iter().map(|(at, others)| (before + at, others)));
    }

    pub(crate) fn as_slice(&self) -> &[PatchOperation] {
        &self.operations
    }
}

/// One operation of a [`JsonPatch`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Operation<'a> {
    operation: &'a PatchOperation,
    others: Option<&'a Map<String, Value>>,
}

impl<'a> Operation<'a> {
    /// An operation without other members.
    pub(crate) fn new(operation: &'a PatchOperation) -> Self {
        Self { operation, others: None }
    }

    /// What it does: `add`, `remove`, `replace`, `move`, `copy` or `test`.
    #[must_use]
    pub fn op(&self) -> &'static str {
        match self.operation {
            PatchOperation::Add(_) => "add",
            PatchOperation::Remove(_) => "remove",
            PatchOperation::Replace(_) => "replace",
            PatchOperation::Move(_) => "move",
            PatchOperation::Copy(_) => "copy",
            PatchOperation::Test(_) => "test",
        }
    }

    /// The place that it changes or tests, a JSON pointer (RFC 6901).
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.operation.path().as_str()
    }

    /// The place that `move` and `copy` take from.
    #[must_use]
    pub fn from(&self) -> Option<&'a str> {
        match self.operation {
            PatchOperation::Move(operation) => Some(operation.from.as_str()),
            PatchOperation::Copy(operation) => Some(operation.from.as_str()),
            _ => None,
        }
    }

    /// The value that `add`, `replace` and `test` bring.
    #[must_use]
    pub fn value(&self) -> Option<&'a Value> {
        match self.operation {
            PatchOperation::Add(operation) => Some(&operation.value),
            PatchOperation::Replace(operation) => Some(&operation.value),
            PatchOperation::Test(operation) => Some(&operation.value),
            _ => None,
        }
    }

    /// The members that the operation does not need, kept as they came.
    #[must_use]
    pub fn others(&self) -> Option<&'a Map<String, Value>> {
        self.others
    }
}

impl Serialize for Operation<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("op", self.op())?;
        if let Some(from) = self.from() {
            map.serialize_entry("from", from)?;
        }
        map.serialize_entry("path", self.path())?;
        if let Some(value) = self.value() {
            map.serialize_entry("value", value)?;
        }
        for (key, value) in self.others.into_iter().flatten() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl Serialize for JsonPatch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.operations())
    }
}

impl Decode for JsonPatch {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        let mut patch = Self::default();
        for (at, Read(operation, others)) in cx.list(node)?.into_iter().enumerate() {
            patch.operations.push(operation);
            if !others.is_empty() {
                patch.others.insert(at, others);
            }
        }
        Ok(patch)
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        let operations = reader.list::<Read>()?.into_iter().map(|Read(operation, _)| operation).collect();
        Some(Self::from_operations(operations))
    }

    fn check(&self, depth: usize, flaws: &mut Flaws) {
        let Some(depth) = flaws.enter(depth) else { return };
        for operation in self.operations() {
            let Some(depth) = flaws.enter(depth) else { return };
            operation.value().into_iter().for_each(|value| flaws.open(value, depth));
            operation.others().into_iter().flat_map(Map::values).for_each(|value| flaws.open(value, depth));
        }
    }
}

deserialize!(JsonPatch);

/// An operation as read, with its other members.
struct Read(PatchOperation, Map<String, Value>);

impl Decode for Read {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        let object = cx.object(node)?;
        let op = cx.tag(object, "op")?;
        let needs: &[&str] = match op {
            "add" | "replace" | "test" => &["op", "path", "value"],
            "remove" => &["op", "path"],
            "move" | "copy" => &["op", "from", "path"],
            _ => return Err(Reject::Unknown(Rule::E3)),
        };
        let mut faults = Faults::default();
        let path = cx.required::<Pointer>(object, "path", &mut faults);
        let from = if needs.contains(&"from") { cx.required::<Pointer>(object, "from", &mut faults) } else { None };
        let value = if needs.contains(&"value") { cx.required::<Value>(object, "value", &mut faults) } else { None };
        faults.check()?;
        let operation = match (op, path, from, value) {
            ("add", Some(Pointer(path)), _, Some(value)) => PatchOperation::Add(AddOperation { path, value }),
            ("replace", Some(Pointer(path)), _, Some(value)) => {
                PatchOperation::Replace(ReplaceOperation { path, value })
            }
            ("test", Some(Pointer(path)), _, Some(value)) => PatchOperation::Test(TestOperation { path, value }),
            ("remove", Some(Pointer(path)), ..) => PatchOperation::Remove(RemoveOperation { path }),
            ("move", Some(Pointer(path)), Some(Pointer(from)), _) => PatchOperation::Move(MoveOperation { from, path }),
            ("copy", Some(Pointer(path)), Some(Pointer(from)), _) => PatchOperation::Copy(CopyOperation { from, path }),
            // Unreachable: `check` has returned if a member is missing.
            _ => return Err(cx.malformed("an operation with all its members", node)),
        };
        let others = cx.open_others(object, needs)?;
        Ok(Self(operation, others))
    }

    /// Reads an operation that has just the members it needs.
    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        let (mut op, mut path, mut from, mut value) = (None, None, None, None);
        let mut members = reader.members()?;
        while reader.more(&mut members)? {
            match reader.key()? {
                "op" if op.is_none() => op = Some(reader.plain()?),
                "path" => reader.once(&mut path)?,
                "from" => reader.once(&mut from)?,
                "value" => reader.once(&mut value)?,
                _ => return None,
            }
        }
        let Pointer(path) = path?;
        let operation = match (op?, from, value) {
            ("add", None, Some(value)) => PatchOperation::Add(AddOperation { path, value }),
            ("replace", None, Some(value)) => PatchOperation::Replace(ReplaceOperation { path, value }),
            ("test", None, Some(value)) => PatchOperation::Test(TestOperation { path, value }),
            ("remove", None, None) => PatchOperation::Remove(RemoveOperation { path }),
            ("move", Some(Pointer(from)), None) => PatchOperation::Move(MoveOperation { from, path }),
            ("copy", Some(Pointer(from)), None) => PatchOperation::Copy(CopyOperation { from, path }),
            _ => return None,
        };
        Some(Self(operation, Map::new()))
    }
}

/// A JSON pointer (RFC 6901).
struct Pointer(PointerBuf);

impl Decode for Pointer {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        match node {
            Node::String(_) => match PointerBuf::parse(cx.text(node)?) {
                Ok(pointer) => Ok(Self(pointer)),
                Err(_) => Err(cx.malformed("a JSON pointer", node)),
            },
            other => Err(cx.malformed("a JSON pointer", other)),
        }
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        reader.pointer().map(Self)
    }
}
