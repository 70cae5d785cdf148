//! The raw events that enforcement accepts.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::event::Event;
use crate::warning::Warning;

/// A raw event, owned: what middleware between the compatibility boundary and enforcement sees.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Raw {
    /// JSON text.
    Text(String),
    /// JSON text whose encoding is still to be checked.
    Bytes(Vec<u8>),
    /// A JSON value.
    Value(Value),
    /// A typed event.
    Event(Event),
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
    &[u8], bytes => Raw::Bytes(bytes.to_vec());
    Vec<u8>, bytes => Raw::Bytes(bytes);
    &Vec<u8>, bytes => Raw::Bytes(bytes.clone());
    Box<[u8]>, bytes => Raw::Bytes(bytes.into_vec());
    Arc<[u8]>, bytes => Raw::Bytes(bytes.to_vec());
    Cow<'_, [u8]>, bytes => Raw::Bytes(bytes.into_owned());
    Value, value => Raw::Value(value);
    &Value, value => Raw::Value(value.clone());
    Event, event => Raw::Event(event);
    &Event, event => Raw::Event(event.clone());
}

/// What the compatibility boundary gives: raw events in their place, and warnings.
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
}

impl RawItem {
    /// The raw event, unless this is a warning.
    #[must_use]
    pub fn raw(&self) -> Option<&Raw> {
        match self {
            RawItem::Event { raw, .. } => Some(raw),
            RawItem::Warning(_) => None,
        }
    }

    /// The raw event, unless this is a warning.
    #[must_use]
    pub fn into_raw(self) -> Option<Raw> {
        match self {
            RawItem::Event { raw, .. } => Some(raw),
            RawItem::Warning(_) => None,
        }
    }

    /// The warning, unless this is a raw event.
    #[must_use]
    pub fn warning(&self) -> Option<&Warning> {
        match self {
            RawItem::Event { .. } => None,
            RawItem::Warning(warning) => Some(warning),
        }
    }
}

/// A raw event as a stage looks at it.
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
    /// A warning on its way through.
    Warning(Warning),
}

/// What a raw event can be: JSON text or its bytes in any of the usual types (with the feature
/// `reqwest` also `bytes::Bytes`), a [`Value`], or a typed [`Event`]. The trait is sealed.
///
/// Text and bytes are read where they are; nothing is copied but what the event keeps.
pub trait RawEvent: sealed::Sealed {
    /// Shows the event, with its index where it already has one.
    #[doc(hidden)]
    fn view<T>(self, see: impl FnOnce(Body<'_>, Option<u64>) -> T) -> T;

    /// Gives the event away; what is owned already is moved, not copied.
    #[doc(hidden)]
    fn own(self) -> Owned;
}

/// A raw event that a stage owns.
#[derive(Debug)]
#[doc(hidden)]
#[allow(unnameable_types, reason = "only a sealed trait speaks of it")]
pub enum Owned {
    /// An event, with its index where it already has one.
    Event(Raw, Option<u64>),
    /// A warning on its way through.
    Warning(Warning),
}

/// A raw event that does not know its place in the input: all but [`RawItem`], which has been
/// through a stage.
#[cfg(feature = "stream")]
#[doc(hidden)]
#[allow(unnameable_types, reason = "of the sealed trait: nobody outside is to name it")]
pub trait Unplaced: RawEvent {}

pub(crate) mod sealed {
    /// Keeps [`RawEvent`](super::RawEvent) closed.
    #[allow(unnameable_types, reason = "of the sealed trait: nobody outside is to name it")]
    pub trait Sealed {}
}

macro_rules! raw_events {
    ($($type:ty, $self:ident => $body:expr, $raw:expr;)*) => {$(
        impl sealed::Sealed for $type {}

        #[cfg(feature = "stream")]
        impl Unplaced for $type {}

        impl RawEvent for $type {
            #[inline]
            fn view<T>($self, see: impl FnOnce(Body<'_>, Option<u64>) -> T) -> T {
                see($body, None)
            }

            #[inline]
            fn own($self) -> Owned {
                Owned::Event($raw, None)
            }
        }
    )*};
}

raw_events! {
    &str, self => Body::Text(self), Raw::Text(self.to_owned());
    String, self => Body::Text(&self), Raw::Text(self);
    &String, self => Body::Text(self), Raw::Text(self.clone());
    Box<str>, self => Body::Text(&self), Raw::Text(self.into());
    Arc<str>, self => Body::Text(&self), Raw::Text(self.as_ref().to_owned());
    Cow<'_, str>, self => Body::Text(&self), Raw::Text(self.into_owned());
    &[u8], self => Body::Bytes(self), Raw::Bytes(self.to_vec());
    Vec<u8>, self => Body::Bytes(&self), Raw::Bytes(self);
    &Vec<u8>, self => Body::Bytes(self), Raw::Bytes(self.clone());
    Box<[u8]>, self => Body::Bytes(&self), Raw::Bytes(self.into_vec());
    Arc<[u8]>, self => Body::Bytes(&self), Raw::Bytes(self.to_vec());
    Cow<'_, [u8]>, self => Body::Bytes(&self), Raw::Bytes(self.into_owned());
    Value, self => Body::Value(&self), Raw::Value(self);
    &Value, self => Body::Value(self), Raw::Value(self.clone());
    Event, self => Body::Event(self), Raw::Event(self);
    &Event, self => Body::Event(self.clone()), Raw::Event(self.clone());
}

#[cfg(feature = "reqwest")]
raw_from! {
    bytes::Bytes, bytes => Raw::Bytes(bytes.into());
}

#[cfg(feature = "reqwest")]
raw_events! {
    bytes::Bytes, self => Body::Bytes(&self), Raw::Bytes(self.into());
}

impl sealed::Sealed for Raw {}

#[cfg(feature = "stream")]
impl Unplaced for Raw {}

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
        }
    }

    fn own(self) -> Owned {
        match self {
            RawItem::Event { raw, index } => Owned::Event(raw, Some(index)),
            RawItem::Warning(warning) => Owned::Warning(warning),
        }
    }
}
