//! `Recordable`: the items of a stream that `record` can write.

use core::fmt;

use crate::error::Error;
#[cfg(doc)]
use crate::event::Event;
use crate::item::{Indexed, Item};
#[cfg(doc)]
use crate::raw::Raw;
use crate::raw::RawItem;
use crate::raw::{RawContent, Unplaced};
use crate::warning::Warning;

/// The items of a stream that [`record`](super::RecordStreamExt::record) can write: those that a stage
/// takes, raw events ([`RawInput`](crate::combinator::RawInput)) and items
/// ([`ItemInput`](crate::combinator::ItemInput)).
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
    /// What to write of it.
    #[doc(hidden)]
    fn entry(&self) -> Entry<'_>;
}

/// What is written of one item.
#[derive(Debug)]
#[doc(hidden)]
#[allow(unnameable_types, reason = "only a sealed trait speaks of it")]
pub enum Entry<'a> {
    /// An event.
    Event(RawContent<'a>),
    /// A warning.
    Warning(&'a Warning),
    /// What is no part of a run.
    Nothing,
    /// The source was cut off within an event.
    Truncated,
    /// The source failed.
    Failed(String),
}

impl<R: Unplaced> Recordable for R {
    fn entry(&self) -> Entry<'_> {
        Entry::Event(self.content())
    }
}

impl<R: Unplaced, E: fmt::Display> Recordable for Result<R, E> {
    fn entry(&self) -> Entry<'_> {
        match self {
            Ok(raw) => raw.entry(),
            Err(error) => Entry::Failed(error.to_string()),
        }
    }
}

/// For the outputs of stages, whose error is an [`Error`].
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
        RawItem::Event { raw, .. } => raw.entry(),
        RawItem::Warning(warning) => Entry::Warning(warning),
        RawItem::Options(_) => Entry::Nothing,
    };
    Item, item => match item {
        Item::Event(indexed) => indexed.entry(),
        Item::Warning(warning) => Entry::Warning(warning),
    };
    Indexed, indexed => Entry::Event(RawContent::Event(&indexed.event));
}
