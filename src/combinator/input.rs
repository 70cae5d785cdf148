//! `RawInput` and `ItemInput`: the items of a source that the stages accept.

use core::convert::Infallible;

use crate::error::Error;
use crate::item::Item;
use crate::raw::Unplaced;
use crate::raw::{RawEvent, RawItem};

/// The items of a source for a stage on raw events: a [`RawEvent`], or a [`Result`] of one.
///
/// | the source gives | the stage's error |
/// |---|---|
/// | `R` | `Error` |
/// | `Result<R, E>` | `Error<E>` |
/// | `Result<RawItem, Error<E>>`, from [`upgrade`](super::EventStreamExt::upgrade) | `Error<E>` |
/// | `Result<Item, Error<E>>`, from [`items`](super::EventStreamExt::items) or a single stage | `Error<E>` |
///
/// The trait is sealed, as [`RawEvent`] is.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a raw event",
    label = "the source gives `{Self}`",
    note = "a stage on raw events takes JSON text or bytes (`&str`, `String`, `&[u8]`, `Vec<u8>`, …), `serde_json::Value`, `Event` or `Raw`, or a `Result` of one of these with any error",
    note = "after `upgrade` it takes `Result<RawItem, Error<E>>`: middleware has to leave the error as it is"
)]
pub trait RawInput {
    /// The raw event.
    type Raw: RawEvent;
    /// The error of the source; [`Infallible`] if it has none.
    type Error;

    /// The raw event, or the error that ended the source.
    ///
    /// # Errors
    /// The error of the source, as [`Error::Source`] unless it is an [`Error`] already.
    fn into_result(self) -> Result<Self::Raw, Error<Self::Error>>;
}

#[diagnostic::do_not_recommend]
impl<R: Unplaced> RawInput for R {
    type Raw = R;
    type Error = Infallible;

    #[inline]
    fn into_result(self) -> Result<R, Error> {
        Ok(self)
    }
}

#[diagnostic::do_not_recommend]
impl<R: Unplaced, E> RawInput for Result<R, E> {
    type Raw = R;
    type Error = E;

    #[inline]
    fn into_result(self) -> Result<R, Error<E>> {
        self.map_err(Error::Source)
    }
}

/// What has been through a stage: its error is one of this crate, and stays as it is.
macro_rules! placed {
    ($($type:ident)*) => {$(
        impl RawInput for $type {
            type Raw = $type;
            type Error = Infallible;

            #[inline]
            fn into_result(self) -> Result<$type, Error> {
                Ok(self)
            }
        }

        impl<E> RawInput for Result<$type, Error<E>> {
            type Raw = $type;
            type Error = E;

            #[inline]
            fn into_result(self) -> Self {
                self
            }
        }
    )*};
}

placed! { RawItem Item }

/// The items of a source for a stage after enforcement: an [`Item`] or a type that converts into one, or
/// a [`Result`] of it as the stages give it.
///
/// | the source gives | the stage's error |
/// |---|---|
/// | [`Item`], [`Indexed`](crate::machine::Indexed), [`Event`](crate::Event) | `Error` |
/// | `Result<` one of these `, Error<E>>` | `Error<E>` |
///
/// For a source of events with an error of its own, use `map_err(Error::Source)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an item",
    label = "the source gives `{Self}`",
    note = "a stage after enforcement takes `Item`, `Indexed` or `Event`, or a `Result` of one of these whose error is `Error<E>`",
    note = "for an error of your own: `.map_err(Error::Source)`; for raw events: `.enforce()` first"
)]
pub trait ItemInput {
    /// The item.
    type Item: Into<Item>;
    /// The error of the source; [`Infallible`] if it has none.
    type Error;

    /// The item, or the error that ended the source.
    ///
    /// # Errors
    /// That of the source.
    fn into_result(self) -> Result<Self::Item, Error<Self::Error>>;
}

#[diagnostic::do_not_recommend]
impl<I: Into<Item>> ItemInput for I {
    type Item = I;
    type Error = Infallible;

    #[inline]
    fn into_result(self) -> Result<I, Error> {
        Ok(self)
    }
}

#[diagnostic::do_not_recommend]
impl<I: Into<Item>, E> ItemInput for Result<I, Error<E>> {
    type Item = I;
    type Error = E;

    #[inline]
    fn into_result(self) -> Self {
        self
    }
}
