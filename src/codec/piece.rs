//! What a decoder takes: a piece of a stream of bytes.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

/// A piece of a stream of bytes, as a network or a file gives it.
///
/// A decoder reads it where it is, and the events that it holds whole share its memory. So what is owned is
/// not copied; what is borrowed is copied once.
///
/// A buffer of your own needs no more than `impl Piece for Buffer {}`, and is copied too.
pub trait Piece: AsRef<[u8]> + Sized {
    /// The same bytes, in memory that can be shared.
    #[must_use]
    fn into_bytes(self) -> Bytes {
        Bytes::copy_from_slice(self.as_ref())
    }
}

impl<T: AsRef<[u8]> + ?Sized> Piece for &T {}

macro_rules! pieces {
    ($($type:ty $(: $owned:ident => $bytes:expr)?;)*) => {$(
        impl Piece for $type {
            $(fn into_bytes(self) -> Bytes {
                let $owned = self;
                $bytes
            })?
        }
    )*};
}

pieces! {
    Bytes: bytes => bytes;
    BytesMut: bytes => bytes.freeze();
    Vec<u8>: bytes => bytes.into();
    Box<[u8]>: bytes => bytes.into();
    String: text => text.into();
    Arc<[u8]>;
    Cow<'_, [u8]>;
}

impl<const N: usize> Piece for [u8; N] {}
