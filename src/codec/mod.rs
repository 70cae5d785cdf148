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
//! [`RawItem`]s. It finds where events begin and end and judges nothing else: a frame that is no
//! event is passed on as it is, and enforcement rejects it (rule E9). `Decoder` is any of them. An `Encoder` is a machine
//! from events to bytes, one piece each; a [`JsonEncoder`] gives texts, for what frames them itself.
//!
//! With the feature `stream` both are combinators too: `ByteStreamExt` and `EncodeStreamExt`.

use std::collections::VecDeque;

use crate::error::{Error, Limit, LimitExceeded, LimitStage};
#[cfg(feature = "__format")]
use crate::error::{Truncated, TruncatedBy};
use crate::raw::{Raw, RawItem};
#[cfg(any(feature = "sse", feature = "protobuf"))]
use crate::rule::Rule;
#[cfg(any(feature = "sse", feature = "protobuf"))]
use crate::warning::Warning;

/// What every decoder of bytes has beside its format: its calls, around `take`, `held` and `end`.
#[cfg(feature = "__format")]
macro_rules! decoder {
    ($name:ident: $errors:literal, $rule:literal) => {
        impl $name {
            /// How many frames came so far, those included that were left out; the index of the next
            /// one.
            #[must_use]
            pub fn event_count(&self) -> u64 {
                self.ready.frames
            }

            /// What is held of an event that is not whole yet.
            #[must_use]
            pub fn partial(&self) -> &[u8] {
                self.held()
            }

            /// Takes the next piece of the stream.
            ///
            /// # Errors
            #[doc = $errors]
            /// The decoder is then done, and what follows is ignored.
            pub fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
                if self.ended {
                    return Ok(());
                }
                let pushed = self.take(bytes);
                self.ended = pushed.is_err();
                pushed
            }

            /// The next event or warning that is ready.
            pub fn pop(&mut self) -> Option<RawItem> {
                self.ready.pop()
            }

            /// How many outputs are ready.
            pub(crate) fn waiting(&self) -> usize {
                self.ready.items.len()
            }

            /// Says that the stream has ended.
            ///
            /// # Errors
            #[doc = concat!("[`Error::Truncated`] where it ended within an event (rule ", $rule, ").")]
            pub fn finish(&mut self) -> Result<(), Error> {
                if core::mem::replace(&mut self.ended, true) {
                    return Ok(());
                }
                self.end()
            }
        }
    };
}

#[cfg(feature = "__format")]
mod decoder;
#[cfg(feature = "__format")]
mod encode;
#[cfg(feature = "__format")]
mod format;
mod json;
#[cfg(feature = "record")]
mod json_array;
#[cfg(feature = "json-lines")]
mod json_lines;
#[cfg(feature = "websocket")]
mod message;
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
#[cfg(feature = "__format")]
pub use format::Format;
pub use json::JsonEncoder;
#[cfg(feature = "record")]
pub(crate) use json_array::ArrayDecoder;
#[cfg(feature = "json-lines")]
pub use json_lines::JsonLinesDecoder;
#[cfg(feature = "websocket")]
pub(crate) use message::{Message, MessageDecoder};
#[cfg(feature = "protobuf")]
pub use protobuf::ProtobufDecoder;
#[cfg(feature = "sse")]
pub use sse::SseDecoder;

/// What a decoder has found, in order, and how many frames that makes.
#[derive(Debug, Default)]
struct Ready {
    items: VecDeque<RawItem>,
    frames: u64,
}

impl Ready {
    fn event(&mut self, raw: Raw) {
        self.items.push_back(RawItem::Event { raw, index: self.frames });
        self.frames += 1;
    }

    /// A warning about the next frame.
    #[cfg(any(feature = "sse", feature = "protobuf"))]
    fn warn(&mut self, rule: Rule, event_type: &str, path: String, message: String) {
        self.items.push_back(RawItem::Warning(Warning::new(rule, self.frames, event_type, path, message)));
    }

    /// A frame that is left out, with a warning that says so.
    #[cfg(any(feature = "sse", feature = "protobuf"))]
    fn skipped(&mut self, rule: Rule, message: impl Into<String>) {
        self.warn(rule, "", String::new(), message.into());
        self.frames += 1;
    }

    fn pop(&mut self) -> Option<RawItem> {
        self.items.pop_front()
    }

    fn too_long(&self, max: usize) -> Error {
        LimitExceeded::new(self.frames, Limit::EventBytes, max).of(LimitStage::Decoder).into()
    }

    #[cfg(feature = "__format")]
    fn truncated(&self) -> Error {
        Truncated::new(self.frames, None, TruncatedBy::Partial).into()
    }
}

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
    use super::*;
    use crate::machine::Push;

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
            if let Err(error) = pushed {
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
                RawItem::Event { raw: Raw::Bytes(bytes), .. } => String::from_utf8(bytes.clone()).unwrap(),
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
