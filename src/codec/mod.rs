//! Decoders from bytes to events, and encoders from events to bytes. Each format is a feature of its own.
//!
//! | Feature | Decoder | `Format` |
//! |---|---|---|
//! | `sse` | `SseDecoder` | `Sse`: server-sent events (rule T1) |
//! | `json-lines` | `JsonLinesDecoder` | `JsonLines`: one JSON object a line |
//! | `protobuf` | `ProtobufDecoder` | `Protobuf`: length-prefixed protobuf (rule T2) |
//!
//! A decoder is a [`Machine`](crate::machine::Machine) from pieces of bytes, cut anywhere, to
//! [`RawItem`](crate::RawItem)s. It finds where events begin and end and judges nothing else: it passes
//! on a frame that is not an event, and enforcement rejects it (rule E9). `Decoder` is any of them. An
//! `Encoder` is a machine from events to bytes, one piece each; a [`JsonEncoder`] gives texts, for a
//! transport with frames of its own.
//!
//! With the feature `stream` both are combinators too: `ByteStreamExt` and `EncodeStreamExt`.

/// The methods of every decoder of bytes, around a [`Feed`].
#[cfg(feature = "__format")]
macro_rules! decoder {
    ($name:ident: $errors:literal, $rule:literal) => {
        impl $name {
            /// The number of frames so far, with skipped ones; the index of the next one.
            #[must_use]
            pub fn event_count(&self) -> u64 {
                self.feed.framing.count.0
            }

            /// The bytes of an event that is not complete yet.
            #[must_use]
            pub fn partial(&self) -> &[u8] {
                self.feed.framing.held()
            }

            /// Takes the next piece of the stream. It is read as its events are popped.
            ///
            /// # Errors
            #[doc = $errors]
            /// It is the fault that [`pop`](Self::pop) came upon in the piece before. The decoder is
            /// then done, and what follows is ignored.
            pub fn push(&mut self, piece: impl super::Piece) -> Result<(), Error> {
                self.feed.push(piece)
            }

            /// The next event or warning. `None` if the piece is used up, or if there is a
            /// [`fault`](Self::fault).
            pub fn pop(&mut self) -> Option<RawItem> {
                self.feed.pop()
            }

            /// How many outputs are ready.
            pub(super) fn waiting(&self) -> usize {
                self.feed.waiting()
            }

            /// The fault that `pop` found, if any. If it is not asked for, the next `push` or `finish`
            /// gives it.
            pub fn fault(&mut self) -> Option<Error> {
                self.feed.fault()
            }

            /// Ends the stream.
            ///
            /// # Errors
            /// Those of `push`;
            #[doc = concat!("[`Error::Truncated`] where the stream ended within an event (rule ", $rule, ").")]
            pub fn finish(&mut self) -> Result<(), Error> {
                self.feed.finish()
            }
        }
    };
}

#[cfg(feature = "__format")]
mod decoder;
#[cfg(feature = "__format")]
mod encode;
#[cfg(any(feature = "__format", feature = "websocket"))]
mod feed;
#[cfg(feature = "__format")]
mod format;
mod json;
#[cfg(feature = "record")]
mod json_array;
#[cfg(feature = "json-lines")]
mod json_lines;
#[cfg(feature = "websocket")]
mod message;
#[cfg(any(feature = "__format", feature = "websocket"))]
mod piece;
#[cfg(feature = "protobuf")]
mod protobuf;
#[cfg(feature = "sse")]
mod sse;
#[cfg(any(feature = "sse", feature = "json-lines"))]
mod whole;

#[cfg(feature = "__format")]
pub use decoder::Decoder;
#[cfg(feature = "__format")]
pub use encode::Encoder;
#[cfg(feature = "record")]
pub(crate) use feed::{Feed, Framing};
#[cfg(feature = "__format")]
pub use format::Format;
pub use json::JsonEncoder;
#[cfg(feature = "record")]
pub(crate) use json_array::ArrayFraming;
#[cfg(feature = "json-lines")]
pub use json_lines::JsonLinesDecoder;
#[cfg(feature = "record")]
pub(crate) use json_lines::JsonLinesFraming;
#[cfg(feature = "websocket")]
pub(crate) use message::{Message, MessageDecoder};
#[cfg(any(feature = "__format", feature = "websocket"))]
pub use piece::Piece;
#[cfg(feature = "protobuf")]
pub use protobuf::ProtobufDecoder;
#[cfg(feature = "sse")]
pub use sse::SseDecoder;
#[cfg(feature = "record")]
pub(crate) use sse::SseFraming;

/// Counts the bytes that were read, for tests: each byte should be read once.
#[cfg(any(feature = "sse", feature = "json-lines"))]
#[inline(always)]
fn looked_at(bytes: usize) {
    #[cfg(test)]
    testing::LOOKED_AT.set(testing::LOOKED_AT.get() + bytes);
    #[cfg(not(test))]
    let _ = bytes;
}

/// Helpers for the tests of the decoders.
#[cfg(test)]
pub(crate) mod testing {
    use crate::error::Error;
    use crate::machine::Push;
    use crate::raw::{Raw, RawItem};

    #[cfg(any(feature = "sse", feature = "json-lines"))]
    thread_local! {
        /// The number of bytes that the decoders of this test have read.
        pub(crate) static LOOKED_AT: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
    }

    /// All outputs of a decoder for these pieces, and its end.
    pub(crate) fn run_in_pieces<'a, M>(
        mut decoder: M,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> (Vec<RawItem>, Option<Error>)
    where
        M: Push<&'a [u8], Output = RawItem>,
    {
        let mut items = Vec::new();
        for piece in pieces {
            let pushed = decoder.push(piece);
            items.extend(std::iter::from_fn(|| decoder.pop()));
            if let Some(error) = pushed.err().or_else(|| decoder.fault()) {
                return (items, Some(error));
            }
        }
        let finished = decoder.finish();
        items.extend(std::iter::from_fn(|| decoder.pop()));
        (items, finished.err())
    }

    pub(crate) fn run<'a, M>(decoder: M, bytes: &'a [u8]) -> (Vec<RawItem>, Option<Error>)
    where
        M: Push<&'a [u8], Output = RawItem>,
    {
        run_in_pieces(decoder, [bytes])
    }

    pub(crate) fn texts(items: &[RawItem]) -> Vec<String> {
        items
            .iter()
            .map(|item| match item {
                RawItem::Event { raw: Raw::Bytes(bytes), .. } => String::from_utf8(bytes.to_vec()).unwrap(),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    /// The bytes cut at these places.
    pub(crate) fn cut<'a>(bytes: &'a [u8], at: &[proptest::sample::Index]) -> Vec<&'a [u8]> {
        let mut at: Vec<_> = at.iter().map(|at| at.index(bytes.len() + 1)).collect();
        at.push(bytes.len());
        at.sort_unstable();
        let mut from = 0;
        at.into_iter().map(|to| &bytes[std::mem::replace(&mut from, to)..to]).collect()
    }
}
