//! Raw events, in all forms that the first stages accept.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::event::Event;
use crate::item::Item;
#[cfg(feature = "stream")]
use crate::json::node::Node;
#[cfg(feature = "stream")]
use crate::limits::Limits;
use crate::options::Options;
use crate::warning::Warning;

/// An owned raw event, as middleware between the compatibility boundary and enforcement sees it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Raw {
    /// JSON text.
    Text(String),
    /// JSON text whose encoding is still to be checked. It may share the memory of what it came in.
    Bytes(Bytes),
    /// A JSON value.
    Value(Value),
    /// A typed event.
    Event(Event),
}

#[cfg(feature = "stream")]
impl Raw {
    /// `true` for an event that ends a run, `false` for one that begins one. Only the type counts, which
    /// most producers write first, so a delta is not read for it.
    pub(crate) fn bounds_a_run(&self) -> Option<bool> {
        match self {
            Raw::Text(text) => text_bounds_a_run(text),
            Raw::Bytes(bytes) if may_bound_a_run(bytes) => text_bounds_a_run(core::str::from_utf8(bytes).ok()?),
            Raw::Bytes(_) => None,
            Raw::Value(value) => type_bounds_a_run(value.get("type")?.as_str()?),
            Raw::Event(event) => type_bounds_a_run(event.event_type().as_str()),
        }
    }
}

#[cfg(feature = "stream")]
fn text_bounds_a_run(text: &str) -> Option<bool> {
    if !may_bound_a_run(text.as_bytes()) {
        return None;
    }
    // As deep as possible: enforcement checks the depth.
    let Ok(Node::Object(members)) = Node::parse(text, Limits::CEILING_DEPTH) else { return None };
    match members.iter().find(|(name, _)| name.as_str() == "type")? {
        (_, Node::String(name)) => type_bounds_a_run(name.as_str()),
        _ => None,
    }
}

/// Whether the text has to be read to know; `false` if it begins with another type.
#[cfg(feature = "stream")]
fn may_bound_a_run(text: &[u8]) -> bool {
    const BOUNDS: &[u8] = b"RUN_";
    match text.trim_ascii_start().strip_prefix(br#"{"type":""#) {
        Some(name) => name.starts_with(BOUNDS),
        None => text.windows(BOUNDS.len()).any(|bytes| bytes == BOUNDS),
    }
}

#[cfg(feature = "stream")]
fn type_bounds_a_run(name: &str) -> Option<bool> {
    match name {
        "RUN_FINISHED" | "RUN_ERROR" => Some(true),
        "RUN_STARTED" => Some(false),
        _ => None,
    }
}

macro_rules! raw_from {
    ($($type:ty, $value:ident => $raw:expr;)*) => {$(
        impl From<$type> for Raw {
            fn from($value: $type) -> Self {
                $raw
            }
        }
    )*};
}

raw_from! {
    &str, text => Raw::Text(text.to_owned());
    String, text => Raw::Text(text);
    &String, text => Raw::Text(text.clone());
    Box<str>, text => Raw::Text(text.into_string());
    Arc<str>, text => Raw::Text((*text).to_owned());
    Cow<'_, str>, text => Raw::Text(text.into_owned());
    &[u8], bytes => Raw::Bytes(Bytes::copy_from_slice(bytes));
    Bytes, bytes => Raw::Bytes(bytes);
    Vec<u8>, bytes => Raw::Bytes(bytes.into());
    &Vec<u8>, bytes => Raw::Bytes(Bytes::copy_from_slice(bytes));
    Box<[u8]>, bytes => Raw::Bytes(bytes.into());
    Arc<[u8]>, bytes => Raw::Bytes(Bytes::copy_from_slice(&bytes));
    Cow<'_, [u8]>, bytes => Raw::Bytes(bytes.into_owned().into());
    Value, value => Raw::Value(value);
    &Value, value => Raw::Value(value.clone());
    Event, event => Raw::Event(event);
    &Event, event => Raw::Event(event.clone());
}

/// The output of the compatibility boundary: a raw event with its place, or a warning.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RawItem {
    /// A raw event.
    Event {
        /// The event.
        raw: Raw,
        /// Its index in the input, from 0.
        index: u64,
    },
    /// A warning about the event that comes next.
    Warning(Warning),
    /// How the stream is to be read, said by the source of itself before the first event: the input of
    /// the run, the bounds of a client. A pipeline takes up what it was [not told](crate::EventStreamExt)
    /// otherwise; a single stage takes the bounds.
    Options(Box<Options>),
}

impl RawItem {
    /// The raw event, if it is one.
    #[must_use]
    pub fn raw(&self) -> Option<&Raw> {
        match self {
            RawItem::Event { raw, .. } => Some(raw),
            RawItem::Warning(_) | RawItem::Options(_) => None,
        }
    }

    /// The raw event, if it is one.
    #[must_use]
    pub fn into_raw(self) -> Option<Raw> {
        match self {
            RawItem::Event { raw, .. } => Some(raw),
            RawItem::Warning(_) | RawItem::Options(_) => None,
        }
    }

    /// The warning, if it is one.
    #[must_use]
    pub fn warning(&self) -> Option<&Warning> {
        match self {
            RawItem::Event { .. } | RawItem::Options(_) => None,
            RawItem::Warning(warning) => Some(warning),
        }
    }
}

/// A raw event as a stage sees it.
#[derive(Debug)]
#[doc(hidden)]
#[allow(unnameable_types, reason = "of the sealed trait: nobody outside is to name it")]
pub enum Body<'a> {
    /// JSON text.
    Text(&'a str),
    /// JSON text whose encoding is still to be checked.
    Bytes(&'a [u8]),
    /// A JSON value.
    Value(&'a Value),
    /// A typed event.
    Event(Event),
    /// A warning that passes through.
    Warning(Warning),
    /// What the source says of itself.
    Options(Box<Options>),
}

impl Body<'_> {
    /// The same, with bytes that are text as text.
    #[inline]
    pub(crate) fn checked(self) -> Self {
        match self {
            Body::Bytes(bytes) => core::str::from_utf8(bytes).map_or(Body::Bytes(bytes), Body::Text),
            other => other,
        }
    }
}

/// What a raw event can be: JSON text or its bytes in any of the usual types, a [`Value`], a typed [`Event`],
/// or an [`Item`] or a [`RawItem`] that has been through a stage. The trait is sealed.
///
/// Text and bytes are read in place; only what the event keeps is copied.
pub trait RawEvent: sealed::Sealed {
    /// Shows the event, with its index if it has one.
    #[doc(hidden)]
    fn view<T>(self, see: impl FnOnce(Body<'_>, Option<u64>) -> T) -> T;

    /// Converts the event into an owned one; owned data is moved, not copied.
    #[doc(hidden)]
    fn own(self) -> Owned;
}

/// A raw event that a stage owns.
#[derive(Debug)]
#[doc(hidden)]
#[allow(unnameable_types, reason = "only a sealed trait speaks of it")]
pub enum Owned {
    /// An event, with its index if it has one.
    Event(Raw, Option<u64>),
    /// A warning that passes through.
    Warning(Warning),
    /// What the source says of itself.
    Options(Box<Options>),
}

/// A raw event that does not know its place in the input: all but [`RawItem`] and [`Item`], which have
/// been through a stage.
#[cfg(feature = "stream")]
#[doc(hidden)]
#[allow(unnameable_types, reason = "of the sealed trait: nobody outside is to name it")]
pub trait Unplaced: RawEvent {
    /// Its content, for a recording.
    #[doc(hidden)]
    fn content(&self) -> RawContent<'_>;
}

/// The content of a raw event.
#[cfg(feature = "stream")]
#[derive(Debug)]
#[doc(hidden)]
#[allow(unnameable_types, reason = "of the sealed trait: nobody outside is to name it")]
pub enum RawContent<'a> {
    /// JSON text, perhaps with its encoding still to be checked.
    Text(&'a [u8]),
    /// A JSON value.
    Value(&'a Value),
    /// A typed event.
    Event(&'a Event),
}

pub(crate) mod sealed {
    /// Keeps [`RawEvent`](super::RawEvent) closed.
    #[allow(unnameable_types, reason = "of the sealed trait: nobody outside is to name it")]
    pub trait Sealed {}
}

/// For each kind of content, the types that hold it.
macro_rules! raw_events {
    ($($kind:ident: $($type:ty),+;)*) => {$($(
        impl sealed::Sealed for $type {}

        #[cfg(feature = "stream")]
        impl Unplaced for $type {
            fn content(&self) -> RawContent<'_> {
                raw_events!(@content $kind self)
            }
        }

        impl RawEvent for $type {
            #[inline]
            fn view<T>(self, see: impl FnOnce(Body<'_>, Option<u64>) -> T) -> T {
                see(raw_events!(@body $kind self), None)
            }

            #[inline]
            fn own(self) -> Owned {
                Owned::Event(self.into(), None)
            }
        }
    )+)*};
    (@body text $event:ident) => { Body::Text(&$event) };
    (@body bytes $event:ident) => { Body::Bytes(&$event) };
    (@body value $event:ident) => { Body::Value(&$event) };
    (@body event $event:ident) => { Body::Event($event) };
    (@body borrowed_event $event:ident) => { Body::Event($event.clone()) };
    (@content text $event:ident) => { RawContent::Text($event.as_bytes()) };
    (@content bytes $event:ident) => { RawContent::Text($event) };
    (@content value $event:ident) => { RawContent::Value($event) };
    (@content $event_kind:ident $event:ident) => { RawContent::Event($event) };
}

raw_events! {
    text: &str, String, &String, Box<str>, Arc<str>, Cow<'_, str>;
    bytes: &[u8], Bytes, Vec<u8>, &Vec<u8>, Box<[u8]>, Arc<[u8]>, Cow<'_, [u8]>;
    value: Value, &Value;
    event: Event;
    borrowed_event: &Event;
}

impl sealed::Sealed for Raw {}

#[cfg(feature = "stream")]
impl Unplaced for Raw {
    fn content(&self) -> RawContent<'_> {
        match self {
            Raw::Text(text) => RawContent::Text(text.as_bytes()),
            Raw::Bytes(bytes) => RawContent::Text(bytes),
            Raw::Value(value) => RawContent::Value(value),
            Raw::Event(event) => RawContent::Event(event),
        }
    }
}

impl RawEvent for Raw {
    fn view<T>(self, see: impl FnOnce(Body<'_>, Option<u64>) -> T) -> T {
        match self {
            Raw::Text(text) => see(Body::Text(&text), None),
            Raw::Bytes(bytes) => see(Body::Bytes(&bytes), None),
            Raw::Value(value) => see(Body::Value(&value), None),
            Raw::Event(event) => see(Body::Event(event), None),
        }
    }

    fn own(self) -> Owned {
        Owned::Event(self, None)
    }
}

impl sealed::Sealed for RawItem {}

impl RawEvent for RawItem {
    fn view<T>(self, see: impl FnOnce(Body<'_>, Option<u64>) -> T) -> T {
        match self {
            RawItem::Event { raw, index } => raw.view(|body, _| see(body, Some(index))),
            RawItem::Warning(warning) => see(Body::Warning(warning), None),
            RawItem::Options(options) => see(Body::Options(options), None),
        }
    }

    fn own(self) -> Owned {
        match self {
            RawItem::Event { raw, index } => Owned::Event(raw, Some(index)),
            RawItem::Warning(warning) => Owned::Warning(warning),
            RawItem::Options(options) => Owned::Options(options),
        }
    }
}

impl sealed::Sealed for Item {}

impl RawEvent for Item {
    fn view<T>(self, see: impl FnOnce(Body<'_>, Option<u64>) -> T) -> T {
        match self {
            Item::Event(indexed) => {
                let index = indexed.index();
                see(Body::Event(indexed.event), index)
            }
            Item::Warning(warning) => see(Body::Warning(warning), None),
        }
    }

    fn own(self) -> Owned {
        match self {
            Item::Event(indexed) => {
                let index = indexed.index();
                Owned::Event(Raw::Event(indexed.event), index)
            }
            Item::Warning(warning) => Owned::Warning(warning),
        }
    }
}

#[cfg(all(test, feature = "stream"))]
mod tests {
    use super::*;

    #[test]
    fn what_begins_or_ends_a_run_is_told_by_its_type() {
        for (text, bounds) in [
            (r#"{"type":"CUSTOM","name":"RUN_ERROR","value":{"type":"RUN_FINISHED"}}"#, None),
            (r#"{"name":"RUN_STARTED","value":{"type":"RUN_STARTED"},"type":"CUSTOM"}"#, None),
            (r#"{"runId":"r","type" : "RUN_FINISHED"}"#, Some(true)),
            (r#" {"type":"RUN_STARTED"}"#, Some(false)),
            (r#"{"type":"RUN_ERROR","message":"no"}"#, Some(true)),
            // E10: the last of several counts.
            (r#"{"type":"RUN_FINISHED","type":"RUN_STARTED"}"#, Some(false)),
            (r#"{"type":"RUN_LATER"}"#, None),
            ("\"RUN_FINISHED\"", None),
            (r#"{"type":"RUN_FINISHED""#, None),
        ] {
            assert_eq!(Raw::from(text).bounds_a_run(), bounds, "{text}");
            assert_eq!(Raw::from(text.as_bytes()).bounds_a_run(), bounds, "{text}");
            if let Ok(value) = serde_json::from_str::<Value>(text) {
                assert_eq!(Raw::from(value).bounds_a_run(), bounds, "{text}");
            }
        }
    }
}
