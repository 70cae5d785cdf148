//! Events as bytes: decoders for what comes off a network or out of a file, encoders for the way
//! back. Each format is a feature of its own.
//!
//! | Feature | Decoder | `Format` |
//! |---|---|---|
//! | `sse` | `SseDecoder` | `Sse`: server-sent events (rule T1) |
//! | `json-lines` | `JsonLinesDecoder` | `JsonLines`: one JSON object a line |
//! | `protobuf` | `ProtobufDecoder` | `Protobuf`: length-prefixed protobuf (rule T2) |
//!
//! A decoder is a [`Machine`](crate::machine::Machine) from pieces of bytes, cut anywhere, to
//! [`RawItem`](crate::RawItem)s. It finds where events begin and end and judges nothing else: a frame that is no
//! event is passed on as it is, and enforcement rejects it (rule E9). `Decoder` is any of them. An `Encoder` is a machine
//! from events to bytes, one piece each; a [`JsonEncoder`] gives texts, for what frames them itself.
//!
//! With the feature `stream` both are combinators too: `ByteStreamExt` and `EncodeStreamExt`.

/// What every decoder of bytes has beside its format: its calls, around a [`Feed`].
#[cfg(feature = "__format")]
macro_rules! decoder {
    ($name:ident: $errors:literal, $rule:literal) => {
        impl $name {
            /// How many frames came so far, those included that were left out; the index of the next
            /// one.
            #[must_use]
            pub fn event_count(&self) -> u64 {
                self.feed.framing.count.0
            }

            /// What is held of an event that is not whole yet.
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

            /// The next event or warning. `None` where the piece is used up, or where there is a
            /// [`fault`](Self::fault).
            pub fn pop(&mut self) -> Option<RawItem> {
                self.feed.pop()
            }

            /// How many outputs are ready.
            pub(super) fn waiting(&self) -> usize {
                self.feed.waiting()
            }

            /// The fault that `pop` came upon, if it has. Who does not ask is told by the next `push`
            /// or `finish`.
            pub fn fault(&mut self) -> Option<Error> {
                self.feed.fault()
            }

            /// Says that the stream has ended.
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

/// Tells the tests that so many bytes were looked at: each is to be looked at once.
#[cfg(any(feature = "sse", feature = "json-lines"))]
#[inline(always)]
fn looked_at(bytes: usize) {
    #[cfg(test)]
    testing::LOOKED_AT.set(testing::LOOKED_AT.get() + bytes);
    #[cfg(not(test))]
    let _ = bytes;
}

/// What the tests of the decoders share.
#[cfg(test)]
pub(crate) mod testing {
    use crate::error::Error;
    use crate::machine::Push;
    use crate::raw::{Raw, RawItem};

    #[cfg(any(feature = "sse", feature = "json-lines"))]
    thread_local! {
        /// How many bytes the decoders of this test looked at.
        pub(crate) static LOOKED_AT: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
    }

    /// Everything that a decoder gives for these pieces, and how it ends.
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
