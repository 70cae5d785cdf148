//! `Framing` and `Feed`: the common part of the decoders, which reads pieces of bytes one item at a time.

#[cfg(any(feature = "sse", feature = "json-lines"))]
use std::borrow::Cow;
use std::collections::VecDeque;

#[cfg(feature = "__format")]
use bytes::Buf;
use bytes::Bytes;

use super::Piece;
use crate::error::{Error, Limit, LimitExceeded, LimitStage};
#[cfg(feature = "__format")]
use crate::error::{Truncated, TruncatedBy};
use crate::raw::{Raw, RawItem};
#[cfg(any(feature = "sse", feature = "protobuf"))]
use crate::rule::Rule;
#[cfg(any(feature = "sse", feature = "protobuf"))]
use crate::warning::Warning;

/// Finds where the frames of a format begin and end.
pub(crate) trait Framing {
    type Item;

    /// The next item; moves `rest` after what was read. `None` once it is used up, with what it held
    /// of a frame that is not whole kept.
    fn next(&mut self, rest: &mut Bytes) -> Result<Option<Self::Item>, Error>;

    /// The items that the end of the stream completes. To be called until `None`, once all input is read.
    fn end(&mut self) -> Result<Option<Self::Item>, Error>;
}

/// Reads of a piece what a slice shows of it, and moves it after that.
#[cfg(feature = "__format")]
pub(super) fn read_in_place<T>(rest: &mut Bytes, read: impl FnOnce(&mut &[u8], &Bytes) -> T) -> T {
    let mut left: &[u8] = rest;
    let value = read(&mut left, rest);
    let read = rest.len() - left.len();
    rest.advance(read);
    value
}

/// What a framing finds. Text is where it came, if the piece holds it whole.
#[cfg(any(feature = "sse", feature = "json-lines"))]
#[derive(Debug)]
pub(crate) enum Frame<'a> {
    Text {
        text: Cow<'a, [u8]>,
        index: u64,
    },
    #[cfg(feature = "sse")]
    Item(RawItem),
}

#[cfg(any(feature = "sse", feature = "json-lines"))]
impl Frame<'_> {
    /// As an event that shares the memory of the piece where its text is.
    #[inline]
    pub(super) fn into_item(self, piece: &Bytes) -> RawItem {
        match self {
            Frame::Text { text: Cow::Borrowed(text), index } => {
                RawItem::Event { raw: Raw::Bytes(piece.slice_ref(text)), index }
            }
            Frame::Text { text: Cow::Owned(text), index } => RawItem::Event { raw: Raw::Bytes(text.into()), index },
            #[cfg(feature = "sse")]
            Frame::Item(item) => item,
        }
    }
}

/// The number of frames so far: the index of the next one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count(pub(crate) u64);

impl Count {
    pub(super) fn step(&mut self) -> u64 {
        let index = self.0;
        self.0 += 1;
        index
    }

    #[cfg(any(feature = "protobuf", feature = "websocket"))]
    pub(super) fn event(&mut self, raw: Raw) -> RawItem {
        RawItem::Event { raw, index: self.step() }
    }

    /// A warning about the next frame.
    #[cfg(any(feature = "sse", feature = "protobuf"))]
    pub(super) fn warning(self, rule: Rule, event_type: &str, path: String, message: String) -> RawItem {
        RawItem::Warning(Warning::new(rule, self.0, event_type, path, message))
    }

    /// Skips a frame, with a warning.
    #[cfg(any(feature = "sse", feature = "protobuf"))]
    pub(super) fn skipped(&mut self, rule: Rule, message: impl Into<String>) -> RawItem {
        let warning = self.warning(rule, "", String::new(), message.into());
        self.0 += 1;
        warning
    }

    pub(super) fn too_long(self, max: usize) -> Error {
        LimitExceeded::new(self.0, Limit::EventBytes, max).of(LimitStage::Decoder).into()
    }

    #[cfg(feature = "__format")]
    pub(crate) fn truncated(self) -> Error {
        Truncated::new(self.0, None, TruncatedBy::Partial).into()
    }
}

/// A framing, and the pieces that it reads.
#[derive(Debug)]
pub(crate) struct Feed<F: Framing> {
    pub(crate) framing: F,
    /// What is left of the piece that is read.
    piece: Bytes,
    /// Those that came before it was read to its end.
    pieces: VecDeque<Bytes>,
    /// What is given before the rest of the piece: what the end of the stream made whole.
    ready: VecDeque<F::Item>,
    fault: Option<Error>,
    ended: bool,
}

impl<F: Framing + Default> Default for Feed<F> {
    fn default() -> Self {
        Self::new(F::default())
    }
}

impl<F: Framing> Feed<F> {
    pub(crate) fn new(framing: F) -> Self {
        Self {
            framing,
            piece: Bytes::new(),
            pieces: VecDeque::new(),
            ready: VecDeque::new(),
            fault: None,
            ended: false,
        }
    }

    pub(crate) fn push(&mut self, piece: impl Piece) -> Result<(), Error> {
        if let Some(fault) = self.fault() {
            return Err(fault);
        }
        if self.ended {
            return Ok(());
        }
        if self.piece.is_empty() && self.pieces.is_empty() {
            self.piece = piece.into_bytes();
        } else {
            self.pieces.push_back(piece.into_bytes());
        }
        Ok(())
    }

    /// Gives an item before the rest of the piece.
    #[cfg(feature = "websocket")]
    pub(super) fn give(&mut self, item: F::Item) {
        self.ready.push_back(item);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<F::Item> {
        self.ready.pop_front().or_else(|| self.read())
    }

    fn read(&mut self) -> Option<F::Item> {
        while !self.ended {
            match self.framing.next(&mut self.piece) {
                Ok(Some(item)) => return Some(item),
                Ok(None) => {
                    let next = self.pieces.pop_front();
                    let is_last = next.is_none();
                    self.piece = next.unwrap_or_default();
                    if is_last {
                        break;
                    }
                }
                Err(fault) => {
                    self.fault = Some(fault);
                    self.ended = true;
                    self.piece = Bytes::new();
                    self.pieces = VecDeque::new();
                }
            }
        }
        None
    }

    pub(crate) fn fault(&mut self) -> Option<Error> {
        self.fault.take()
    }

    /// How many outputs are ready.
    pub(crate) fn waiting(&self) -> usize {
        self.ready.len()
    }

    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        // Items that were not popped before have to be read now.
        while let Some(item) = self.read() {
            self.ready.push_back(item);
        }
        if let Some(fault) = self.fault() {
            return Err(fault);
        }
        if !core::mem::replace(&mut self.ended, true) {
            while let Some(item) = self.framing.end()? {
                self.ready.push_back(item);
            }
        }
        Ok(())
    }
}
