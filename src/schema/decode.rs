//! Enforcement (rules E1 to E11): reads typed values from a tree of JSON, and finds what is unknown or
//! malformed in it.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};
use smol_str::SmolStr;

use super::check::Flaws;
use super::text::{Reader, smol_str};
use crate::error::Malformed;
use crate::event_type::EventType;
use crate::excerpt::{excerpt, harmless, push_harmless};
use crate::id::{Interner, InterruptId, MessageId, RunId, SubagentRunId, ThreadId, ToolCallId};
use crate::json::node::{Node, Num};
use crate::json::string::Str;
use crate::rule::Rule;
use crate::shared::{self, Document, List, Text};
use crate::warning::Notes;

/// Why a value was rejected.
#[derive(Debug)]
pub(crate) enum Reject {
    /// It is unknown (E3, E4): it is removed, with the containers that require it.
    Unknown(Rule),
    /// It is malformed (E5): fatal, unless a container of it is removed anyway.
    Malformed(Box<Fault>),
}

/// A malformed value: where, what was expected and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) path: String,
    pub(crate) expected: &'static str,
    pub(crate) found: String,
    pub(crate) rule: Rule,
}

impl Fault {
    /// The fault as the error of an input event.
    pub(crate) fn into_malformed(self, event: u64, event_type: Option<EventType>) -> Malformed {
        let malformed = Malformed::new(self.rule, event, self.expected, self.found);
        Malformed { event_type, path: self.path, ..malformed }
    }
}

pub(crate) type Decoded<T> = Result<T, Reject>;

enum Segment {
    Key(Box<str>),
    Index(usize),
}

/// The state of decoding: the current path, and the parts removed so far.
#[derive(Default)]
pub(crate) struct Context {
    path: Vec<Segment>,
    pub(crate) removed: Notes,
    pub(crate) interner: Interner,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("interner", &self.interner).finish_non_exhaustive()
    }
}

/// The first malformed and the first fatal unknown field of an object.
#[derive(Default)]
pub(crate) struct Faults {
    malformed: Option<Box<Fault>>,
    unknown: Option<Rule>,
}

impl Faults {
    fn note(&mut self, reject: Reject) {
        match reject {
            Reject::Unknown(rule) => self.unknown = self.unknown.or(Some(rule)),
            Reject::Malformed(fault) => {
                self.malformed.get_or_insert(fault);
            }
        }
    }

    /// Removal goes first: a fault inside a removed container no longer matters.
    pub(crate) fn check(self) -> Decoded<()> {
        match (self.unknown, self.malformed) {
            (Some(rule), _) => Err(Reject::Unknown(rule)),
            (None, Some(fault)) => Err(Reject::Malformed(fault)),
            (None, None) => Ok(()),
        }
    }
}

/// A JSON object that is being decoded.
#[derive(Clone, Copy)]
pub(crate) struct Object<'n, 'a> {
    members: &'n [(Str<'a>, Node<'a>)],
}

impl<'n, 'a> Object<'n, 'a> {
    pub(crate) fn get(&self, key: &str) -> Option<&'n Node<'a>> {
        self.members.iter().find(|(name, _)| name.as_str() == key).map(|(_, value)| value)
    }
}

/// A type that enforcement can read.
pub(crate) trait Decode: Sized {
    /// Reads it from a tree, and reports faults and removed parts.
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self>;

    /// Reads it from text: the same value if [`Decode::decode`] would report nothing, or else `None`.
    fn read(reader: &mut Reader<'_, '_>) -> Option<Self>;

    /// Checks a value made in code, nested at most `depth` deep, for faults that its type allows and
    /// [`Decode::decode`] would find in its JSON.
    #[inline]
    fn check(&self, _depth: usize, _flaws: &mut Flaws) {}
}

pub(crate) const INTEGER: &str = "an integer within ±(2^53-1)";
pub(crate) const COUNT: &str = "an integer from 0 to 2^53-1";
pub(crate) const NOT_NULL: &str = "a value other than null, or no field at all";

impl Context {
    pub(crate) fn reset(&mut self) {
        self.path.clear();
        self.removed = Notes::default();
        self.interner.longest = 0;
    }

    pub(crate) fn path(&self) -> String {
        self.path_to(None)
    }

    /// The JSON pointer (RFC 6901) of this place, or of a member of it.
    ///
    /// Keys come from the producer, and an event can cause many paths: so each key is cut and escaped,
    /// and so is the whole.
    fn path_to(&self, member: Option<&str>) -> String {
        let mut path = String::new();
        for segment in &self.path {
            if path.len() > MAX_PATH {
                path.push_str("/…");
                return path;
            }
            path.push('/');
            match segment {
                Segment::Key(key) => push_escaped(&mut path, key),
                Segment::Index(index) => path.push_str(&index.to_string()),
            }
        }
        if let Some(member) = member {
            path.push('/');
            push_escaped(&mut path, member);
        }
        path
    }

    pub(crate) fn malformed(&self, expected: &'static str, node: &Node<'_>) -> Reject {
        self.fault(Rule::E5, self.path(), expected, node.describe())
    }

    pub(crate) fn fault(&self, rule: Rule, path: String, expected: &'static str, found: String) -> Reject {
        Reject::Malformed(Box::new(Fault { path, expected, found, rule }))
    }

    pub(crate) fn warn(&mut self, rule: Rule, path: String, message: String) {
        self.removed.add(rule, path, message);
    }

    pub(crate) fn object<'n, 'a>(&self, node: &'n Node<'a>) -> Decoded<Object<'n, 'a>> {
        match node {
            Node::Object(members) => Ok(Object { members }),
            other => Err(self.malformed("an object", other)),
        }
    }

    /// Decodes one member at its path. If it is unknown, parts removed inside it are forgotten.
    fn member<T: Decode>(&mut self, key: &str, node: &Node<'_>) -> Decoded<T> {
        self.within(Segment::Key(key.into()), |cx| T::decode(node, cx))
    }

    fn within<T>(&mut self, segment: Segment, decode: impl FnOnce(&mut Self) -> Decoded<T>) -> Decoded<T> {
        let mark = self.removed.mark();
        self.path.push(segment);
        let decoded = decode(self);
        self.path.pop();
        if let Err(Reject::Unknown(_)) = decoded {
            self.removed.back_to(mark);
        }
        decoded
    }

    pub(crate) fn required<T: Decode>(
        &mut self,
        object: Object<'_, '_>,
        key: &'static str,
        faults: &mut Faults,
    ) -> Option<T> {
        let Some(node) = object.get(key) else {
            let twin = snake_case(key);
            let found = if twin != key && object.get(&twin).is_some() {
                format!("nothing, but there is `{twin}`")
            } else {
                "nothing".into()
            };
            faults.note(self.fault(Rule::E5, self.path_to(Some(key)), "a required field", found));
            return None;
        };
        self.member(key, node).map_err(|reject| faults.note(reject)).ok()
    }

    pub(crate) fn optional<T: Decode>(
        &mut self,
        object: Object<'_, '_>,
        key: &'static str,
        faults: &mut Faults,
    ) -> Option<T> {
        let node = object.get(key)?;
        match self.member(key, node) {
            Ok(value) => Some(value),
            Err(Reject::Unknown(rule)) => {
                let path = self.path_to(Some(key));
                self.warn(rule, path, format!("removed `{key}`: {}", why_removed(rule, node)));
                None
            }
            Err(reject) => {
                faults.note(reject);
                None
            }
        }
    }

    /// A member with one legal value. This is not a closed set (rule E4): any other value is malformed.
    pub(crate) fn constant(
        &mut self,
        object: Object<'_, '_>,
        key: &'static str,
        expected: &'static str,
        faults: &mut Faults,
    ) {
        // A lone half makes it another text, and is then nothing to warn of.
        let found = match object.get(key) {
            Some(Node::String(text)) if text.as_str() == expected => return,
            Some(Node::String(text)) => format!("the string {:?}", excerpt(text.as_str(), 40)),
            _ => {
                self.required::<String>(object, key, faults);
                return;
            }
        };
        faults.note(self.fault(Rule::E5, self.path_to(Some(key)), expected, found));
    }

    /// Warns of the unknown properties of a closed object (E2).
    pub(crate) fn strip(&mut self, object: Object<'_, '_>, known: &[&[&str]]) {
        for (key, _) in object.members {
            if !known.iter().any(|keys| keys.contains(&key.as_str())) {
                let path = self.path_to(Some(key.as_str()));
                let message = format!("removed the unknown property `{}`", harmless(key.as_str(), 64));
                self.warn(Rule::E2, path, message);
            }
        }
    }

    /// The discriminator of a union.
    pub(crate) fn tag<'n>(&self, object: Object<'n, '_>, key: &'static str) -> Decoded<&'n str> {
        match object.get(key) {
            Some(Node::String(text)) => Ok(text.as_str()),
            Some(other) => Err(self.fault(Rule::E5, self.path_to(Some(key)), "a string", other.describe())),
            None => Err(self.fault(Rule::E5, self.path_to(Some(key)), "a required field", "nothing".into())),
        }
    }

    pub(crate) fn text<'n>(&mut self, node: &'n Node<'_>) -> Decoded<&'n str> {
        match node {
            Node::String(text) => {
                if text.lone.any() {
                    self.warn_of_lone_surrogate();
                }
                Ok(text.as_str())
            }
            other => Err(self.malformed("a string", other)),
        }
    }

    fn warn_of_lone_surrogate(&mut self) {
        let path = self.path();
        self.warn(Rule::E11, path, "half a surrogate pair was replaced with U+FFFD".into());
    }

    fn id_text<'n>(&mut self, node: &'n Node<'_>) -> Decoded<&'n str> {
        match node {
            Node::String(text) if text.lone.any() => {
                Err(self.fault(Rule::E5, self.path(), "an id of whole characters", "half a surrogate pair".into()))
            }
            Node::String(text) => Ok(text.as_str()),
            other => Err(self.malformed("a string", other)),
        }
    }

    /// An open value, kept whole (E6).
    pub(crate) fn open(&mut self, node: &Node<'_>) -> Decoded<Value> {
        Ok(match node {
            Node::Null => Value::Null,
            Node::Bool(value) => Value::Bool(*value),
            Node::Number(number) => self.number(number),
            Node::String(_) => Value::String(self.text(node)?.to_owned()),
            Node::Array(elements) => {
                let mut values = Vec::with_capacity(elements.len());
                for (index, element) in elements.iter().enumerate() {
                    values.push(self.within(Segment::Index(index), |cx| cx.open(element))?);
                }
                Value::Array(values)
            }
            Node::Object(_) => Value::Object(self.open_object(node)?),
        })
    }

    /// A number of an open value; null if it is beyond a double (E10).
    fn number(&mut self, number: &Num<'_>) -> Value {
        match number.to_number() {
            Some(number) => Value::Number(number),
            None => {
                let message = format!("read as null: the number {number} is beyond a double");
                self.warn(Rule::E10, self.path(), message);
                Value::Null
            }
        }
    }

    pub(crate) fn open_object(&mut self, node: &Node<'_>) -> Decoded<Map<String, Value>> {
        let object = self.object(node)?;
        self.open_members(object.members.iter())
    }

    fn open_members<'n, 'a: 'n>(
        &mut self,
        members: impl Iterator<Item = &'n (Str<'a>, Node<'a>)>,
    ) -> Decoded<Map<String, Value>> {
        let mut map = Map::new();
        for (key, value) in members {
            let value = self.within(Segment::Key(key.as_str().into()), |cx| {
                if key.lone.any() {
                    cx.warn_of_lone_surrogate();
                }
                cx.open(value)
            })?;
            map.insert(key.as_str().to_owned(), value);
        }
        Ok(map)
    }

    /// The members of an open object, except these.
    pub(crate) fn open_others(&mut self, object: Object<'_, '_>, without: &[&str]) -> Decoded<Map<String, Value>> {
        self.open_members(object.members.iter().filter(|(key, _)| !without.contains(&key.as_str())))
    }

    /// A list that loses its unknown elements (E3).
    pub(crate) fn list<T: Decode>(&mut self, node: &Node<'_>) -> Decoded<Vec<T>> {
        let Node::Array(elements) = node else { return Err(self.malformed("an array", node)) };
        let mut list = Vec::with_capacity(elements.len().min(1024));
        // A malformed element must not hide that the list's container is removed, but the list
        // itself can only be malformed.
        for (index, element) in elements.iter().enumerate() {
            match self.within(Segment::Index(index), |cx| T::decode(element, cx)) {
                Ok(value) => list.push(value),
                Err(Reject::Unknown(rule)) => {
                    let path = self.path_to(Some(&index.to_string()));
                    self.warn(rule, path, format!("removed element {index}: {}", why_removed(rule, element)));
                }
                Err(reject) => return Err(reject),
            }
        }
        Ok(list)
    }

    pub(crate) fn integer(&self, node: &Node<'_>, min: i64, expected: &'static str) -> Decoded<i64> {
        const MAX: i64 = (1 << 53) - 1;
        match node {
            Node::Number(number) => number
                .to_integer()
                .filter(|value| (min..=MAX).contains(value))
                .ok_or_else(|| self.malformed(expected, node)),
            other => Err(self.malformed(expected, other)),
        }
    }
}

/// The discriminator of a removed value, or else the value in words.
/// Why a member or an element goes.
fn why_removed(rule: Rule, node: &Node<'_>) -> String {
    let found = describe_member(node);
    if rule == Rule::E10 {
        format!("{found} is beyond a double")
    } else {
        format!("{found} is unknown, or requires an unknown value")
    }
}

fn describe_member(node: &Node<'_>) -> String {
    if let Node::Object(members) = node {
        for discriminator in ["type", "role", "op"] {
            let found = members.iter().find(|(key, _)| key.as_str() == discriminator);
            if let Some((_, Node::String(text))) = found {
                return format!("{discriminator} {:?}", excerpt(text.as_str(), 40));
            }
        }
    }
    node.describe()
}

/// The most bytes quoted of one key, and about the most of a whole path.
const MAX_KEY: usize = 80;
const MAX_PATH: usize = 1000;

fn push_escaped(path: &mut String, key: &str) {
    for character in excerpt(key, MAX_KEY).chars() {
        match character {
            '~' => path.push_str("~0"),
            '/' => path.push_str("~1"),
            other => push_harmless(path, other),
        }
    }
}

fn snake_case(key: &str) -> String {
    let mut twin = String::with_capacity(key.len() + 4);
    for character in key.chars() {
        if character.is_ascii_uppercase() {
            twin.push('_');
        }
        twin.push(character.to_ascii_lowercase());
    }
    twin
}

impl Decode for String {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        cx.text(node).map(str::to_owned)
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        reader.string().map(Cow::into_owned)
    }
}

impl Decode for SmolStr {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        cx.text(node).map(SmolStr::from)
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        reader.string().map(|text| smol_str(&text))
    }
}

impl Decode for Arc<str> {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        cx.text(node).map(Arc::from)
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        reader.string().map(Arc::from)
    }
}

impl Decode for Text {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        cx.text(node).map(Text::from)
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        reader.string().map(|text| Text::from(&*text))
    }
}

macro_rules! decode_ids {
    ($($name:ident),*) => {$(
        impl Decode for $name {
            fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
                let text = cx.id_text(node)?;
                Ok(Self::interned(text, &mut cx.interner))
            }

            #[inline]
            fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
                let text = reader.plain()?;
                Some(Self::interned(text, reader.interner))
            }

            #[inline]
            fn check(&self, _depth: usize, flaws: &mut Flaws) {
                flaws.id(self.as_str());
            }
        }
    )*};
}

decode_ids!(MessageId, ToolCallId, SubagentRunId, RunId, ThreadId, InterruptId);

impl Decode for bool {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        match node {
            Node::Bool(value) => Ok(*value),
            other => Err(cx.malformed("true or false", other)),
        }
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        reader.boolean()
    }
}

/// A safe integer, such as `timestamp`.
impl Decode for i64 {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        cx.integer(node, -((1 << 53) - 1), INTEGER)
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        reader.safe_integer()
    }

    fn check(&self, _depth: usize, flaws: &mut Flaws) {
        flaws.integer(*self, INTEGER);
    }
}

/// A count, such as those of token usage.
impl Decode for u64 {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        let value = cx.integer(node, 0, COUNT)?;
        Ok(value.unsigned_abs())
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        u64::try_from(reader.safe_integer()?).ok()
    }

    fn check(&self, _depth: usize, flaws: &mut Flaws) {
        flaws.integer(*self, COUNT);
    }
}

/// Any value, null included.
impl Decode for Value {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        cx.open(node)
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        reader.value()
    }

    fn check(&self, depth: usize, flaws: &mut Flaws) {
        flaws.open(self, depth);
    }
}

impl Decode for Map<String, Value> {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        cx.open_object(node)
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        reader.object()
    }

    fn check(&self, depth: usize, flaws: &mut Flaws) {
        flaws.open_object(self, depth);
    }
}

impl Decode for Document {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        cx.open(node).map(Document::from)
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        reader.value().map(Document::from)
    }

    fn check(&self, depth: usize, flaws: &mut Flaws) {
        flaws.too_deep |= self.depth() > depth;
    }
}

impl Decode for shared::Object {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        cx.open_object(node).map(shared::Object::from)
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        reader.object().map(shared::Object::from)
    }

    fn check(&self, depth: usize, flaws: &mut Flaws) {
        flaws.too_deep |= self.depth() > depth;
    }
}

/// A field that holds any value except null.
pub(crate) struct NonNull(pub(crate) Value);

impl Decode for NonNull {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        match node {
            Node::Null => Err(cx.malformed(NOT_NULL, node)),
            // It would be read as null, which is not legal here.
            Node::Number(number) if number.to_number().is_none() => Err(Reject::Unknown(Rule::E10)),
            other => cx.open(other).map(NonNull),
        }
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        reader.value().filter(|value| !value.is_null()).map(Self)
    }
}

/// An id without a type of its own.
pub(crate) struct Ident(pub(crate) Arc<str>);

impl Decode for Ident {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        cx.id_text(node).map(|text| Self(text.into()))
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        reader.plain().map(|text| Self(text.into()))
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        cx.list(node)
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        reader.list()
    }

    fn check(&self, depth: usize, flaws: &mut Flaws) {
        check_list(self, depth, flaws);
    }
}

impl<T: Decode> Decode for Box<T> {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        T::decode(node, cx).map(Box::new)
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        T::read(reader).map(Box::new)
    }

    fn check(&self, depth: usize, flaws: &mut Flaws) {
        T::check(self, depth, flaws);
    }
}

impl<T: Decode> Decode for Arc<T> {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        T::decode(node, cx).map(Arc::new)
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        T::read(reader).map(Arc::new)
    }

    fn check(&self, depth: usize, flaws: &mut Flaws) {
        T::check(self, depth, flaws);
    }
}

impl<T: Decode + Clone> Decode for List<T> {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        cx.list(node).map(|list| list.into_iter().collect())
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        reader.list().map(|list| list.into_iter().collect())
    }

    fn check(&self, depth: usize, flaws: &mut Flaws) {
        check_list(self, depth, flaws);
    }
}

fn check_list<'l, T: Decode + 'l>(list: impl IntoIterator<Item = &'l T>, depth: usize, flaws: &mut Flaws) {
    if let Some(depth) = flaws.enter(depth) {
        for (index, element) in list.into_iter().enumerate() {
            flaws.within(index, |flaws| element.check(depth, flaws));
        }
    }
}
