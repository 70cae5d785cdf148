//! Reads events from the messages of a WebSocket: the text of one event, or protobuf.

#[cfg(feature = "protobuf")]
use std::collections::VecDeque;

use bytes::Bytes;

use super::Piece;
#[cfg(feature = "protobuf")]
use super::feed::read_in_place;
use super::feed::{Count, Feed, Framing};
use crate::error::{Error, Malformed};
use crate::limits::Limits;
use crate::machine::{Machine, Push};
use crate::raw::{Raw, RawItem};
use crate::rule::Rule;

/// The content of a message.
#[derive(Debug)]
pub(crate) enum Message<T, B> {
    /// An event as JSON.
    Text(T),
    /// Events as protobuf.
    #[cfg_attr(not(feature = "protobuf"), allow(dead_code, reason = "refused before it gets here"))]
    Binary(B),
    /// Text that is not UTF-8.
    NotUtf8,
    /// A message longer than this bound.
    TooLong(usize),
}

/// Reads events from messages.
#[derive(Debug, Default)]
pub(crate) struct MessageDecoder {
    feed: Feed<MessageFraming>,
    ended: bool,
}

/// Reads the messages; the events of a binary one as they are asked for.
#[derive(Debug, Default)]
struct MessageFraming {
    limits: Limits,
    count: Count,
    #[cfg(feature = "protobuf")]
    at: At,
    #[cfg(feature = "protobuf")]
    ready: VecDeque<RawItem>,
}

/// The position in a binary message.
#[cfg(feature = "protobuf")]
#[derive(Clone, Copy, Debug, Default)]
enum At {
    /// None of it was read; it may be empty.
    Start,
    /// Within frames, or within one event without a length.
    Within { is_framed: bool },
    #[default]
    End,
}

impl Framing for MessageFraming {
    type Item = RawItem;

    #[cfg(feature = "protobuf")]
    fn next(&mut self, rest: &mut Bytes) -> Result<Option<RawItem>, Error> {
        let is_framed = match self.at {
            At::Start => Some(super::protobuf::is_framed(rest)),
            At::Within { is_framed } if !rest.is_empty() => Some(is_framed),
            At::Within { .. } | At::End => None,
        };
        if let Some(is_framed) = is_framed.filter(|_| self.ready.is_empty()) {
            self.at = At::Within { is_framed };
            read_in_place(rest, |rest, _| {
                super::protobuf::read_in_message(&mut self.count, &self.limits, is_framed, rest, &mut self.ready)
            })?;
        }
        Ok(self.ready.pop_front())
    }

    #[cfg(not(feature = "protobuf"))]
    fn next(&mut self, rest: &mut Bytes) -> Result<Option<RawItem>, Error> {
        rest.clear();
        Ok(None)
    }

    fn end(&mut self) -> Result<Option<RawItem>, Error> {
        Ok(None)
    }
}

impl MessageDecoder {
    pub(crate) fn with_limits(limits: Limits) -> Self {
        Self { feed: Feed::new(MessageFraming { limits, ..MessageFraming::default() }), ended: false }
    }

    /// The longest message: one event with its length.
    pub(crate) fn max_message_bytes(limits: &Limits) -> usize {
        limits.max_event_bytes.saturating_add(4)
    }

    fn take<T: AsRef<str>, B: Piece>(&mut self, message: Message<T, B>) -> Result<(), Error> {
        let framing = &mut self.feed.framing;
        let max = framing.limits.max_event_bytes;
        match message {
            Message::Text(text) if text.as_ref().len() > max => Err(framing.count.too_long(max)),
            Message::Text(text) => {
                let text = text.as_ref();
                let item = framing.count.event(Raw::Text(text.to_owned()));
                self.feed.give(item);
                Ok(())
            }
            Message::Binary(bytes) if bytes.as_ref().len() > Self::max_message_bytes(&framing.limits) => {
                Err(framing.count.too_long(max))
            }
            Message::Binary(bytes) => {
                #[cfg(feature = "protobuf")]
                (framing.at = At::Start);
                self.feed.push(bytes)
            }
            // The same error as that of enforcement for bytes.
            Message::NotUtf8 => Err(Malformed::new(Rule::E9, framing.count.0, "UTF-8", "invalid bytes").into()),
            Message::TooLong(other) => Err(framing.count.too_long(max.min(other))),
        }
    }
}

impl<T: AsRef<str>, B: Piece> Push<Message<T, B>> for MessageDecoder {
    fn push(&mut self, message: Message<T, B>) -> Result<(), Error> {
        if self.ended {
            return Ok(());
        }
        let taken = self.take(message);
        self.ended = taken.is_err();
        taken
    }
}

impl Machine for MessageDecoder {
    type Output = RawItem;

    fn pop(&mut self) -> Option<RawItem> {
        self.feed.pop()
    }

    fn ready(&self) -> usize {
        self.feed.waiting()
    }

    fn fault(&mut self) -> Option<Error> {
        self.feed.fault()
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.ended = true;
        self.feed.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "protobuf")]
    mod binary {
        use super::*;
        use crate::codec::Format;
        use crate::error::{Limit, LimitExceeded, LimitStage};
        use crate::event::{Event, RunErrorEvent, RunStartedEvent, StepStartedEvent};

        fn framed(event: impl Into<Event>) -> Vec<u8> {
            Format::Protobuf.encode(&event.into()).unwrap()
        }

        fn push(decoder: &mut MessageDecoder, message: &[u8]) -> (usize, Result<(), Error>) {
            let pushed = Push::push(decoder, Message::<&str, _>::Binary(message));
            let items = std::iter::from_fn(|| decoder.feed.pop()).count();
            (items, pushed.and_then(|()| decoder.feed.fault().map_or(Ok(()), Err)))
        }

        #[test]
        fn t2_one_event_with_or_without_its_length_or_several() {
            let step = framed(StepStartedEvent::new("s"));
            let end = framed(RunErrorEvent::new("no"));
            let start = framed(RunStartedEvent::new("t", "r"));
            let mut decoder = MessageDecoder::default();
            assert_eq!(push(&mut decoder, &step[4..]), (1, Ok(())));
            assert_eq!(push(&mut decoder, &end), (1, Ok(())));
            assert_eq!(push(&mut decoder, &[&end[..], &start, &step].concat()), (3, Ok(())));
            assert_eq!(push(&mut decoder, &end[4..]), (1, Ok(())));
            assert_eq!(decoder.feed.framing.count.0, 6);
        }

        #[test]
        fn t2_a_message_that_is_cut_off_is_malformed_wherever() {
            let step = framed(StepStartedEvent::new("s"));
            for len in 0..step.len() {
                let (items, pushed) = push(&mut MessageDecoder::default(), &step[..len]);
                assert!(matches!(pushed, Err(Error::Malformed(error)) if error.rule == Rule::T2), "{len}");
                assert_eq!(items, 0);
                let cut = [&step[..], &step[..len]].concat();
                let (items, pushed) = push(&mut MessageDecoder::default(), &cut);
                assert_eq!((items, pushed.is_err()), (1, len > 0), "what came before is given");
            }
        }

        #[test]
        fn the_limit_is_that_of_an_event() {
            // Shorter as protobuf than as JSON, which counts too.
            let step = framed(StepStartedEvent::new("s".repeat(100)));
            for message in [&step[..], &step[4..]] {
                for (max, is_good) in [(200, true), (step.len() - 5, false)] {
                    let mut decoder = MessageDecoder::with_limits(Limits { max_event_bytes: max, ..Limits::default() });
                    let expected = match is_good {
                        true => (1, Ok(())),
                        false => (0, Err(LimitExceeded::new(0, Limit::EventBytes, max).of(LimitStage::Decoder).into())),
                    };
                    assert_eq!(push(&mut decoder, message), expected);
                }
            }
        }

        #[test]
        fn a_length_beyond_16_mib_is_told_by_what_follows() {
            let step = framed(StepStartedEvent::new("s".repeat(17 << 20)));
            assert_ne!(step[0], 0);
            let limits = Limits { max_event_bytes: 40 << 20, ..Limits::default() };
            assert_eq!(push(&mut MessageDecoder::with_limits(limits), &step), (1, Ok(())));
            assert_eq!(push(&mut MessageDecoder::with_limits(limits), &step[4..]), (1, Ok(())));
        }
    }
}
