//! `Decoder`: any of the decoders, for a format that is known only at run time.

use super::Format;
#[cfg(feature = "json-lines")]
use super::JsonLinesDecoder;
use super::Piece;
#[cfg(feature = "protobuf")]
use super::ProtobufDecoder;
#[cfg(feature = "sse")]
use super::SseDecoder;
use crate::error::Error;
use crate::limits::Limits;
use crate::machine::{Machine, Push, Repairs};
use crate::raw::RawItem;

/// One of the decoders.
///
/// # Examples
/// ```
/// use ag_ui_stream::codec::{Decoder, Format, SseDecoder};
///
/// let content_type = "text/event-stream";
/// let decoder = match Format::from_content_type(content_type) {
///     Some(Format::Sse) => SseDecoder::new().tolerate_done().into(),
///     Some(other) => Decoder::new(other),
///     None => panic!("{content_type} holds no events"),
/// };
/// # assert!(matches!(decoder, Decoder::Sse(_)));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Decoder {
    /// Server-sent events.
    #[cfg(feature = "sse")]
    Sse(SseDecoder),
    /// JSON Lines.
    #[cfg(feature = "json-lines")]
    JsonLines(JsonLinesDecoder),
    /// Length-prefixed protobuf.
    #[cfg(feature = "protobuf")]
    Protobuf(ProtobufDecoder),
}

macro_rules! each {
    ($decoder:expr, $inner:ident => $value:expr) => {
        match $decoder {
            #[cfg(feature = "sse")]
            Decoder::Sse($inner) => $value,
            #[cfg(feature = "json-lines")]
            Decoder::JsonLines($inner) => $value,
            #[cfg(feature = "protobuf")]
            Decoder::Protobuf($inner) => $value,
        }
    };
}

impl Decoder {
    /// A decoder of this format, with the default [`Limits`] and no tolerance.
    #[must_use]
    pub fn new(format: Format) -> Self {
        match format {
            #[cfg(feature = "sse")]
            Format::Sse => SseDecoder::new().into(),
            #[cfg(feature = "json-lines")]
            Format::JsonLines => JsonLinesDecoder::new().into(),
            #[cfg(feature = "protobuf")]
            Format::Protobuf => ProtobufDecoder::new().into(),
        }
    }

    /// The same with other bounds.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        each!(self, decoder => decoder.with_limits(limits).into())
    }

    /// The same with [`Repair::IgnoreFrames`](crate::machine::Repair::IgnoreFrames), if it is in the
    /// set, as for [`SseDecoder::with_repairs`]. The other formats have no such frames.
    #[must_use]
    #[cfg_attr(not(feature = "sse"), allow(unused_variables, reason = "only that format takes them"))]
    pub fn with_repairs(self, repairs: impl Into<Repairs>) -> Self {
        match self {
            #[cfg(feature = "sse")]
            Decoder::Sse(decoder) => decoder.with_repairs(repairs).into(),
            #[allow(unreachable_patterns, reason = "the only format where the other features are off")]
            other => other,
        }
    }

    /// The format that it reads.
    #[must_use]
    pub fn format(&self) -> Format {
        match self {
            #[cfg(feature = "sse")]
            Decoder::Sse(_) => Format::Sse,
            #[cfg(feature = "json-lines")]
            Decoder::JsonLines(_) => Format::JsonLines,
            #[cfg(feature = "protobuf")]
            Decoder::Protobuf(_) => Format::Protobuf,
        }
    }

    /// The number of frames so far, with skipped ones; the index of the next one.
    #[must_use]
    pub fn event_count(&self) -> u64 {
        each!(self, decoder => decoder.event_count())
    }

    /// The bytes of an event that is not complete yet.
    #[must_use]
    pub fn partial(&self) -> &[u8] {
        each!(self, decoder => decoder.partial())
    }

    /// Takes the next piece of the stream. It is read as its events are popped.
    ///
    /// # Errors
    /// Those of the format's decoder, which `pop` came upon in the piece before; it is then done, and
    /// what follows is ignored.
    pub fn push(&mut self, piece: impl Piece) -> Result<(), Error> {
        each!(self, decoder => decoder.push(piece))
    }

    /// The next event or warning. `None` if the piece is used up, or if there is a
    /// [`fault`](Decoder::fault).
    pub fn pop(&mut self) -> Option<RawItem> {
        each!(self, decoder => decoder.pop())
    }

    /// The fault that `pop` found, if any. If it is not asked for, the next `push` or `finish` gives it.
    pub fn fault(&mut self) -> Option<Error> {
        each!(self, decoder => decoder.fault())
    }

    /// Ends the stream.
    ///
    /// # Errors
    /// Those of `push`; [`Error::Truncated`] if the stream ended within an event (rule T1a).
    pub fn finish(&mut self) -> Result<(), Error> {
        each!(self, decoder => decoder.finish())
    }
}

/// Makes each decoder a machine, and a variant of [`Decoder`].
macro_rules! decoders {
    ($($(#[$cfg:meta])* $decoder:ident;)*) => {$(
        $(#[$cfg])*
        impl<B: Piece> Push<B> for $decoder {
            fn push(&mut self, input: B) -> Result<(), Error> {
                $decoder::push(self, input)
            }
        }

        $(#[$cfg])*
        impl Machine for $decoder {
            type Output = RawItem;

            fn pop(&mut self) -> Option<RawItem> {
                $decoder::pop(self)
            }

            fn ready(&self) -> usize {
                self.waiting()
            }

            fn fault(&mut self) -> Option<Error> {
                $decoder::fault(self)
            }

            fn finish(&mut self) -> Result<(), Error> {
                $decoder::finish(self)
            }
        }
    )*};
}

decoders! {
    Decoder;
    #[cfg(feature = "sse")]
    SseDecoder;
    #[cfg(feature = "json-lines")]
    JsonLinesDecoder;
    #[cfg(feature = "protobuf")]
    ProtobufDecoder;
}

impl Decoder {
    fn waiting(&self) -> usize {
        each!(self, decoder => decoder.waiting())
    }
}

macro_rules! into_decoder {
    ($($feature:literal $variant:ident $decoder:ident;)*) => {$(
        #[cfg(feature = $feature)]
        impl From<$decoder> for Decoder {
            fn from(decoder: $decoder) -> Self {
                Decoder::$variant(decoder)
            }
        }
    )*};
}

into_decoder! {
    "sse" Sse SseDecoder;
    "json-lines" JsonLines JsonLinesDecoder;
    "protobuf" Protobuf ProtobufDecoder;
}
