//! JSON values whose clones share memory, so that a patch leaves clones as they are and copies its path.

use core::fmt;
use std::iter::FusedIterator;
use std::ops::Index;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Map, Number, Value};
use smol_str::SmolStr;

use super::seq::{self, Seq, Size, Sizes};

/// A JSON value whose clones share memory: the state, the content of an activity, or metadata.
///
/// It reads as a [`serde_json::Value`] does, compares with one, and is made from one. A clone costs
/// one reference count. If clones are held, a patch copies only the path to its change. So to keep
/// every state of a long run costs the changes.
///
/// # Cost
///
/// | | time |
/// |---|---|
/// | `clone`, `len`, `is_same` | O(1) |
/// | `get`, `[…]`, one step of `pointer` | O(log n) |
/// | `iter` | O(1) for each item, amortized |
/// | `to_value`, `read_as`, serialize, `==` | O(n) |
///
/// ```
/// use ag_ui_stream::snapshot::Document;
/// use serde_json::json;
///
/// let document = Document::from(json!({"plan": [{"title": "Read"}, {"title": "Answer"}]}));
/// assert_eq!(document["plan"][1]["title"].as_str(), Some("Answer"));
/// assert_eq!(document.pointer("/plan/0"), Some(&Document::from(json!({"title": "Read"}))));
/// assert_eq!(document["none"], json!(null));
/// ```
#[derive(Clone, Default, PartialEq)]
pub enum Document {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    String(Arc<str>),
    /// An array.
    Array(Array),
    /// An object.
    Object(Object),
}

/// The value that an absent member reads as.
static NULL: Document = Document::Null;

impl Document {
    /// About the memory of a value without texts and keys.
    const VALUE: usize = 32;
    /// About the memory of a text or a key without its characters.
    const TEXT: usize = 32;
    /// About the memory of an array or an object without its content.
    const CONTAINER: usize = 96;

    /// The member of an object under a key; `None` if it is absent or this is not an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Document> {
        self.as_object()?.get(key)
    }

    /// The value at a JSON pointer (RFC 6901): `""` is the document itself, `"/plan/0"` the first
    /// element of its member `plan`.
    #[must_use]
    pub fn pointer(&self, pointer: &str) -> Option<&Document> {
        let pointer = json_patch::jsonptr::Pointer::parse(pointer).ok()?;
        pointer.tokens().try_fold(self, |value, token| match value {
            Document::Array(array) => array.get(token.to_index().ok()?.for_len(array.len()).ok()?),
            Document::Object(object) => object.get(&token.decoded()),
            _ => None,
        })
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Document::Null)
    }

    /// The value of `true` or `false`.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Document::Bool(value) = self { Some(*value) } else { None }
    }

    /// The number.
    #[must_use]
    pub fn as_number(&self) -> Option<&Number> {
        if let Document::Number(number) = self { Some(number) } else { None }
    }

    /// The number, where it is an integer within the range of `i64`.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number()?.as_i64()
    }

    /// The number, where it is an integer within the range of `u64`.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number()?.as_u64()
    }

    /// The number as a double.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number()?.as_f64()
    }

    /// The text of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Document::String(text) = self { Some(text) } else { None }
    }

    /// The elements of an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&Array> {
        if let Document::Array(array) = self { Some(array) } else { None }
    }

    /// The members of an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object> {
        if let Document::Object(object) = self { Some(object) } else { None }
    }

    /// A copy that is not shared.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Document::Null => Value::Null,
            Document::Bool(value) => Value::Bool(*value),
            Document::Number(number) => Value::Number(number.clone()),
            Document::String(text) => Value::String((**text).to_owned()),
            Document::Array(array) => Value::Array(array.iter().map(Document::to_value).collect()),
            Document::Object(object) => Value::Object(object.to_map()),
        }
    }

    /// The value, deserialized into a type of the application. Costs a copy of it.
    ///
    /// # Errors
    /// If the value does not fit the type.
    pub fn read_as<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_value(self.to_value())
    }

    /// Whether both share their content, or are equal and have none to share. O(1). It may be `false`
    /// for equal values; if it is `true`, a view need not be drawn again.
    #[must_use]
    pub fn is_same(&self, other: &Document) -> bool {
        match (self, other) {
            (Document::String(a), Document::String(b)) => Arc::ptr_eq(a, b),
            (Document::Array(a), Document::Array(b)) => a.items.ptr_eq(&b.items),
            (Document::Object(a), Document::Object(b)) => a.members.ptr_eq(&b.members),
            (Document::Null | Document::Bool(_) | Document::Number(_), _) => self == other,
            _ => false,
        }
    }

    /// About how many bytes it takes, as counted for [`Limits::max_document_bytes`](crate::Limits).
    pub(crate) fn bytes(&self) -> usize {
        self.size().bytes
    }

    /// How deep arrays and objects are nested in it.
    pub(crate) fn depth(&self) -> usize {
        self.size().depth
    }
}

impl Sizes for Document {
    fn size(&self) -> Size {
        let (own, within) = match self {
            Document::Null | Document::Bool(_) | Document::Number(_) => (0, None),
            Document::String(text) => (text.len().saturating_add(Self::TEXT), None),
            Document::Array(array) => (Self::CONTAINER, Some(array.items.size())),
            Document::Object(object) => (Self::CONTAINER, Some(object.members.size())),
        };
        let below = within.unwrap_or_default();
        Size {
            bytes: below.bytes.saturating_add(own).saturating_add(Self::VALUE),
            depth: below.depth + usize::from(within.is_some()),
        }
    }
}

/// The elements of an array, as [`Document`] has them.
#[derive(Clone, Default, PartialEq)]
pub struct Array {
    items: Seq<Document>,
}

impl Array {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at an index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Document> {
        self.items.get(index)
    }

    /// One after the other.
    pub fn iter(&self) -> Elements<'_> {
        Elements { items: self.items.iter() }
    }

    pub(crate) fn items_mut(&mut self) -> &mut Seq<Document> {
        &mut self.items
    }
}

/// Data of the producer by key: kept whole (rule E6) and merged key by key (rule A1).
pub type Metadata = Object;

/// The members of an object by their keys, in the order of the keys' bytes, as [`Document`] has
/// them.
///
/// ```
/// use ag_ui_stream::event::Metadata;
///
/// let metadata = Metadata::from_iter([("model", "small"), ("region", "west")]);
/// assert_eq!(metadata.get("model").and_then(|model| model.as_str()), Some("small"));
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct Object {
    members: Seq<Member>,
}

#[derive(Clone, PartialEq)]
struct Member {
    key: SmolStr,
    value: Document,
}

impl Sizes for Member {
    fn size(&self) -> Size {
        let value = self.value.size();
        let key = self.key.len().saturating_add(Document::TEXT);
        Size { bytes: value.bytes.saturating_add(key), ..value }
    }
}

impl Object {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn find(&self, key: &str) -> Result<(usize, &Member), usize> {
        self.members.search(|member| member.key.as_str().cmp(key))
    }

    /// The value under a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Document> {
        self.find(key).ok().map(|(_, member)| &member.value)
    }

    /// One after the other.
    pub fn iter(&self) -> Members<'_> {
        Members { members: self.members.iter() }
    }

    /// A copy that is not shared.
    #[must_use]
    pub fn to_map(&self) -> Map<String, Value> {
        self.iter().map(|(key, value)| (key.to_owned(), value.to_value())).collect()
    }

    /// Takes over every member of `other`; the value of an equal key is replaced, never merged (rule
    /// A1). Says whether that changed anything. O(log n) for each member of `other`.
    pub fn merge(&mut self, other: &Object) -> bool {
        if self.is_empty() {
            *self = other.clone();
            return !other.is_empty();
        }
        let mut changed = false;
        for (key, value) in other.iter() {
            if self.get(key) != Some(value) {
                self.insert(key, value.clone());
                changed = true;
            }
        }
        changed
    }

    /// About how many bytes it takes, as counted for [`Limits::max_document_bytes`](crate::Limits).
    pub(crate) fn bytes(&self) -> usize {
        self.members.size().bytes.saturating_add(Document::CONTAINER + Document::VALUE)
    }

    /// How deep arrays and objects are nested in it, itself included.
    pub(crate) fn depth(&self) -> usize {
        self.members.size().depth + 1
    }

    /// Sets a member.
    pub(crate) fn insert(&mut self, key: &str, value: Document) {
        match self.find(key).map(|(at, _)| at) {
            Ok(at) => {
                self.members.update(at, |member| member.value = value);
            }
            Err(at) => self.members.insert(at, Member { key: key.into(), value }),
        }
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Document> {
        let (at, _) = self.find(key).ok()?;
        self.members.remove(at).map(|member| member.value)
    }

    pub(crate) fn update<R>(&mut self, key: &str, change: impl FnOnce(&mut Document) -> R) -> Option<R> {
        let (at, _) = self.find(key).ok()?;
        self.members.update(at, |member| change(&mut member.value))
    }
}

impl From<&Value> for Document {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Document::Null,
            Value::Bool(value) => Document::Bool(*value),
            Value::Number(number) => Document::Number(number.clone()),
            Value::String(text) => Document::String(text.as_str().into()),
            Value::Array(elements) => Document::Array(elements.iter().collect()),
            Value::Object(members) => Document::Object(members.into()),
        }
    }
}

impl From<Value> for Document {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl From<Object> for Document {
    fn from(object: Object) -> Self {
        Document::Object(object)
    }
}

impl From<Array> for Document {
    fn from(array: Array) -> Self {
        Document::Array(array)
    }
}

impl From<&Document> for Value {
    fn from(document: &Document) -> Self {
        document.to_value()
    }
}

impl From<Document> for Value {
    fn from(document: Document) -> Self {
        document.to_value()
    }
}

impl From<&Map<String, Value>> for Object {
    fn from(map: &Map<String, Value>) -> Self {
        let mut members: Vec<Member> =
            map.iter().map(|(key, value)| Member { key: key.as_str().into(), value: value.into() }).collect();
        // A map is sorted, unless a feature of `serde_json` keeps the order of insertion.
        if !members.is_sorted_by(|a, b| a.key < b.key) {
            members.sort_by(|a, b| a.key.cmp(&b.key));
        }
        Self { members: members.into_iter().collect() }
    }
}

impl From<Map<String, Value>> for Object {
    fn from(map: Map<String, Value>) -> Self {
        Self::from(&map)
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Object {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        members.into_iter().map(|(key, value)| (key.into(), value.into())).collect::<Map<_, _>>().into()
    }
}

impl<T: Into<Document>> FromIterator<T> for Array {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Self { items: elements.into_iter().map(Into::into).collect() }
    }
}

/// Numbers compare as [`serde_json`] does: `1` is not `1.0`.
impl PartialEq<Value> for Document {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Document::Null, Value::Null) => true,
            (Document::Bool(a), Value::Bool(b)) => a == b,
            (Document::Number(a), Value::Number(b)) => a == b,
            (Document::String(a), Value::String(b)) => **a == **b,
            (Document::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b),
            (Document::Object(a), Value::Object(b)) => {
                a.len() == b.len() && b.iter().all(|(key, b)| a.get(key).is_some_and(|a| a == b))
            }
            _ => false,
        }
    }
}

impl PartialEq<Document> for Value {
    fn eq(&self, other: &Document) -> bool {
        other == self
    }
}

/// As for a [`Value`] of `serde_json`: an absent member reads as `null`.
impl Index<&str> for Document {
    type Output = Document;

    fn index(&self, key: &str) -> &Document {
        self.get(key).unwrap_or(&NULL)
    }
}

/// As for a [`Value`] of `serde_json`, except that an absent element reads as `null`.
impl Index<usize> for Document {
    type Output = Document;

    fn index(&self, index: usize) -> &Document {
        self.as_array().and_then(|array| array.get(index)).unwrap_or(&NULL)
    }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Document::Null => serializer.serialize_unit(),
            Document::Bool(value) => serializer.serialize_bool(*value),
            Document::Number(number) => number.serialize(serializer),
            Document::String(text) => serializer.serialize_str(text),
            Document::Array(array) => array.serialize(serializer),
            Document::Object(object) => object.serialize(serializer),
        }
    }
}

impl Serialize for Array {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

macro_rules! as_json {
    ($($name:ident)*) => {$(
        /// As compact JSON; with `{:#}` on lines of its own.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let text = if f.alternate() { serde_json::to_string_pretty(self) } else { serde_json::to_string(self) };
                f.write_str(&text.map_err(|_| fmt::Error)?)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}

as_json!(Document Array Object);

impl<'a> IntoIterator for &'a Array {
    type Item = &'a Document;
    type IntoIter = Elements<'a>;

    fn into_iter(self) -> Elements<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a Object {
    type Item = (&'a str, &'a Document);
    type IntoIter = Members<'a>;

    fn into_iter(self) -> Members<'a> {
        self.iter()
    }
}

/// The elements of an [`Array`], in order.
#[derive(Clone)]
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Elements<'a> {
    items: seq::Iter<'a, Document>,
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a Document;

    fn next(&mut self) -> Option<&'a Document> {
        self.items.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }
}

/// The members of an [`Object`], in the order of their keys' bytes.
#[derive(Clone)]
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Members<'a> {
    members: seq::Iter<'a, Member>,
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, &'a Document);

    fn next(&mut self) -> Option<Self::Item> {
        self.members.next().map(|member| (member.key.as_str(), &member.value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.members.size_hint()
    }
}

impl ExactSizeIterator for Elements<'_> {}
impl FusedIterator for Elements<'_> {}
impl ExactSizeIterator for Members<'_> {}
impl FusedIterator for Members<'_> {}

impl fmt::Debug for Elements<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl fmt::Debug for Members<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.clone()).finish()
    }
}
