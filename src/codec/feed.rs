//! `Framing` and `Feed`: the common part of the decoders, which reads pieces of bytes one item at a time.

#[cfg(any(feature = "sse", feature = "json-lines"))]
use std::borrow::Cow;
use std::collections::VecDeque;

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
    fn next(&mut self, rest: &mut &[u8]) -> Result<Option<Self::Item>, Error>;

    /// The items that the end of the stream completes. To be called until `None`, once all input is read.
    fn end(&mut self) -> Result<Option<Self::Item>, Error>;
}

/// What a framing finds. Text is borrowed if the piece holds all of it.
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
    pub(crate) fn into_item(self) -> RawItem {
        match self {
            Frame::Text { text, index } => RawItem::Event { raw: Raw::Bytes(text.into_owned()), index },
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

/// A framing, and the piece that it reads.
#[derive(Debug)]
pub(crate) struct Feed<F: Framing> {
    pub(crate) framing: F,
    piece: Vec<u8>,
    /// How much of it was read.
    read: usize,
    /// Items to be given before the rest of the piece: those that the end of the stream completed.
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
    /// A piece that was larger than this leaves no memory for the next one.
    const KEPT: usize = 64 * 1024;

    pub(crate) fn new(framing: F) -> Self {
        Self { framing, piece: Vec::new(), read: 0, ready: VecDeque::new(), fault: None, ended: false }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if let Some(fault) = self.fault() {
            return Err(fault);
        }
        if self.ended {
            return Ok(());
        }
        // The part of a piece that was read is removed once it is the larger part.
        if self.read > self.piece.len() / 2 {
            self.piece.drain(..self.read);
            self.read = 0;
        }
        self.piece.extend_from_slice(bytes);
        Ok(())
    }

    /// Gives an item before the rest of the piece.
    #[cfg(feature = "websocket")]
    pub(super) fn give(&mut self, item: F::Item) {
        self.ready.push_back(item);
    }

    pub(crate) fn pop(&mut self) -> Option<F::Item> {
        self.ready.pop_front().or_else(|| self.read())
    }

    fn read(&mut self) -> Option<F::Item> {
        if self.ended {
            return None;
        }
        let mut rest = self.piece.get(self.read..)?;
        match self.framing.next(&mut rest) {
            Ok(Some(item)) => {
                self.read = self.piece.len() - rest.len();
                Some(item)
            }
            Ok(None) => {
                self.clear();
                None
            }
            Err(fault) => {
                self.fault = Some(fault);
                self.ended = true;
                self.clear();
                None
            }
        }
    }

    fn clear(&mut self) {
        self.read = 0;
        self.piece.clear();
        if self.piece.capacity() > Self::KEPT {
            self.piece = Vec::new();
        }
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
