use core::fmt;
use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use crate::error::Error;
use crate::event::Event;
use crate::item::{Indexed, Item};
use crate::warning::Warning;
use crate::wire::raw::Unplaced;
use crate::wire::{Raw, RawItem};

/// What a stream may give to [`record`](super::EventStreamExt::record): whatever a stage takes, raw
/// events ([`RawInput`](super::RawInput)) and items ([`ItemInput`](super::ItemInput)).
///
/// | the source gives | what is written |
/// |---|---|
/// | JSON text or bytes, [`Raw`], [`RawItem`] | the text, byte for byte |
/// | `serde_json::Value`, [`Event`], [`Indexed`], [`Item`] | JSON on one line |
/// | a warning | a comment |
/// | an error | its text, as the end of the recording |
///
/// The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be recorded",
    label = "the source gives `{Self}`",
    note = "what is recorded is a raw event or an `Item`, or a `Result` of one of these with an error that has a `Display`"
)]
pub trait Recordable {
    /// Shows what is to be written.
    #[doc(hidden)]
    fn entry(&self) -> Entry<'_>;
}

/// What is written of one item.
#[derive(Debug)]
#[doc(hidden)]
#[allow(unnameable_types, reason = "only a sealed trait speaks of it")]
pub enum Entry<'a> {
    /// An event that has a text of its own.
    Text(&'a [u8]),
    /// One that is a JSON value.
    Value(&'a Value),
    /// One that is typed.
    Event(&'a Event),
    /// A warning.
    Warning(&'a Warning),
    /// The source was cut off within an event.
    Truncated,
    /// The source failed.
    Failed(String),
}

impl<'a> From<&'a Raw> for Entry<'a> {
    fn from(raw: &'a Raw) -> Self {
        match raw {
            Raw::Text(text) => Entry::Text(text.as_bytes()),
            Raw::Bytes(bytes) => Entry::Text(bytes),
            Raw::Value(value) => Entry::Value(value),
            Raw::Event(event) => Entry::Event(event),
        }
    }
}

/// A raw event that does not know its place.
#[doc(hidden)]
#[allow(unnameable_types, reason = "of the sealed trait: nobody outside is to name it")]
pub trait RecordableRaw: Unplaced {
    /// Shows the event.
    #[doc(hidden)]
    fn raw_entry(&self) -> Entry<'_>;
}

macro_rules! recordable {
    ($($type:ty, $self:ident => $entry:expr;)*) => {$(
        impl RecordableRaw for $type {
            fn raw_entry(&$self) -> Entry<'_> {
                $entry
            }
        }
    )*};
}

recordable! {
    &str, self => Entry::Text(self.as_bytes());
    String, self => Entry::Text(self.as_bytes());
    &String, self => Entry::Text(self.as_bytes());
    Box<str>, self => Entry::Text(self.as_bytes());
    Arc<str>, self => Entry::Text(self.as_bytes());
    Cow<'_, str>, self => Entry::Text(self.as_bytes());
    &[u8], self => Entry::Text(self);
    Vec<u8>, self => Entry::Text(self);
    &Vec<u8>, self => Entry::Text(self);
    Box<[u8]>, self => Entry::Text(self);
    Arc<[u8]>, self => Entry::Text(self);
    Cow<'_, [u8]>, self => Entry::Text(self);
    Value, self => Entry::Value(self);
    &Value, self => Entry::Value(self);
    Event, self => Entry::Event(self);
    &Event, self => Entry::Event(self);
    Raw, self => self.into();
}

#[cfg(feature = "reqwest")]
recordable! {
    bytes::Bytes, self => Entry::Text(self);
}

impl<R: RecordableRaw> Recordable for R {
    fn entry(&self) -> Entry<'_> {
        self.raw_entry()
    }
}

impl<R: RecordableRaw, E: fmt::Display> Recordable for Result<R, E> {
    fn entry(&self) -> Entry<'_> {
        match self {
            Ok(raw) => raw.raw_entry(),
            Err(error) => Entry::Failed(error.to_string()),
        }
    }
}

/// What has been through a stage: it stands in its place, and its error is an [`Error`].
macro_rules! placed {
    ($($type:ty, $item:ident => $entry:expr;)*) => {$(
        impl Recordable for $type {
            fn entry(&self) -> Entry<'_> {
                let $item = self;
                $entry
            }
        }

        impl<E: fmt::Display> Recordable for Result<$type, Error<E>> {
            fn entry(&self) -> Entry<'_> {
                match self {
                    Ok(item) => item.entry(),
                    Err(Error::Truncated(_)) => Entry::Truncated,
                    Err(Error::Source(error)) => Entry::Failed(error.to_string()),
                    Err(error) => Entry::Failed(error.to_string()),
                }
            }
        }
    )*};
}

placed! {
    RawItem, item => match item {
        RawItem::Event { raw, .. } => raw.into(),
        RawItem::Warning(warning) => Entry::Warning(warning),
    };
    Item, item => match item {
        Item::Event(indexed) => Entry::Event(&indexed.event),
        Item::Warning(warning) => Entry::Warning(warning),
    };
    Indexed, indexed => Entry::Event(&indexed.event);
}
