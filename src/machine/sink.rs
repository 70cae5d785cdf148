//! `Sink` and `Stage`: how stages are chained. Each gives its outputs to a [`Sink`], which is the next
//! stage or, at the end, a queue.

use std::collections::VecDeque;

use crate::error::Error;
use crate::event::fast::{TextChunk, TextContent};
use crate::item::{Indexed, Item, Place};
use crate::limits::Limits;
use crate::message::Message;
use crate::shared::Document;
use crate::warning::Warning;

/// Takes the outputs of a stage. An error is that of a later stage; it ends the input.
pub(super) trait Sink {
    fn event(&mut self, event: Indexed) -> Result<(), Error>;

    fn warning(&mut self, warning: Warning) -> Result<(), Error>;

    fn item(&mut self, item: Item) -> Result<(), Error> {
        match item {
            Item::Event(event) => self.event(event),
            Item::Warning(warning) => self.warning(warning),
        }
    }

    /// What the source says of the conversation before it, and the bounds of documents.
    fn begin(&mut self, history: Vec<Message>, state: Option<Document>, limits: Limits) {
        let _ = (history, state, limits);
    }

    /// The most common event, in parts until it is where it stays.
    #[inline(always)]
    fn text_content(&mut self, content: TextContent, place: Place) -> Result<(), Error> {
        self.event(place.gives(content.into_event()))
    }

    /// The same for the most common chunk.
    #[inline(always)]
    fn text_chunk(&mut self, chunk: TextChunk, place: Place) -> Result<(), Error> {
        self.event(place.gives(chunk.into_event()))
    }
}

impl Sink for VecDeque<Item> {
    #[inline]
    fn event(&mut self, event: Indexed) -> Result<(), Error> {
        self.push_back(Item::Event(event));
        Ok(())
    }

    fn warning(&mut self, warning: Warning) -> Result<(), Error> {
        self.push_back(Item::Warning(warning));
        Ok(())
    }
}

/// A stage from items to items.
pub(super) trait Stage {
    /// Takes an event, and gives the outputs to `next`.
    fn feed(&mut self, event: Indexed, next: &mut impl Sink) -> Result<(), Error>;

    fn feed_warning(&mut self, warning: Warning, next: &mut impl Sink) -> Result<(), Error> {
        next.warning(warning)
    }

    fn feed_text_content(&mut self, content: TextContent, place: Place, next: &mut impl Sink) -> Result<(), Error>;

    fn feed_text_chunk(&mut self, chunk: TextChunk, place: Place, next: &mut impl Sink) -> Result<(), Error>;

    /// Gives the outputs that are due at the end of the input.
    fn end(&mut self, next: &mut impl Sink) -> Result<(), Error>;

    /// The queue for outputs to be popped, for a stage on its own.
    fn queue(&mut self) -> &mut VecDeque<Item>;

    /// Does something with the stage's own queue as the next sink.
    fn queued(&mut self, work: impl FnOnce(&mut Self, &mut VecDeque<Item>) -> Result<(), Error>) -> Result<(), Error> {
        let mut queue = core::mem::take(self.queue());
        let result = work(self, &mut queue);
        *self.queue() = queue;
        result
    }

    /// Takes an item and queues the outputs.
    fn queue_item(&mut self, item: Item) -> Result<(), Error> {
        self.queued(|stage, next| Then { stage, next }.item(item))
    }
}

/// A stage followed by a sink.
pub(super) struct Then<'a, S: ?Sized, N> {
    pub(super) stage: &'a mut S,
    pub(super) next: &'a mut N,
}

impl<S: Stage + ?Sized, N: Sink> Sink for Then<'_, S, N> {
    #[inline]
    fn event(&mut self, event: Indexed) -> Result<(), Error> {
        self.stage.feed(event, self.next)
    }

    fn warning(&mut self, warning: Warning) -> Result<(), Error> {
        self.stage.feed_warning(warning, self.next)
    }

    #[inline(always)]
    fn text_content(&mut self, content: TextContent, place: Place) -> Result<(), Error> {
        self.stage.feed_text_content(content, place, self.next)
    }

    #[inline(always)]
    fn text_chunk(&mut self, chunk: TextChunk, place: Place) -> Result<(), Error> {
        self.stage.feed_text_chunk(chunk, place, self.next)
    }
}

/// The same with a stage that may be left out.
pub(super) struct Maybe<'a, S: ?Sized, N> {
    pub(super) stage: Option<&'a mut S>,
    pub(super) next: &'a mut N,
}

impl<S: Stage + ?Sized, N: Sink> Sink for Maybe<'_, S, N> {
    #[inline]
    fn event(&mut self, event: Indexed) -> Result<(), Error> {
        match &mut self.stage {
            Some(stage) => stage.feed(event, self.next),
            None => self.next.event(event),
        }
    }

    fn warning(&mut self, warning: Warning) -> Result<(), Error> {
        match &mut self.stage {
            Some(stage) => stage.feed_warning(warning, self.next),
            None => self.next.warning(warning),
        }
    }

    #[inline(always)]
    fn text_content(&mut self, content: TextContent, place: Place) -> Result<(), Error> {
        match &mut self.stage {
            Some(stage) => stage.feed_text_content(content, place, self.next),
            None => self.next.text_content(content, place),
        }
    }
}
