//! Fuzz target: bytes in a format give the same whole and cut into pieces of a length, without a panic.

use std::convert::Infallible;
use std::iter;

use ag_ui_stream::agent::AgentError;
use ag_ui_stream::codec::{Decoder, Format};
use ag_ui_stream::record::{RecordStreamExt, Timing};
use ag_ui_stream::{Error, Limits, Raw, RawItem};
use futures::executor::block_on;
use futures::{StreamExt, stream};

/// After them come recordings, which tell their form themselves.
const FORMATS: [Format; 3] = [Format::Sse, Format::JsonLines, Format::Protobuf];

/// Small, so that the bound is met.
const MAX_EVENT_BYTES: usize = 1024;

fn limits() -> Limits {
    Limits { max_event_bytes: MAX_EVENT_BYTES, ..Limits::default() }
}

fn decode<'a>(format: Format, pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<RawItem>, Option<Error>) {
    let mut decoder = Decoder::new(format).with_limits(limits());
    let mut items = Vec::new();
    for piece in pieces {
        let pushed = decoder.push(piece);
        items.extend(iter::from_fn(|| decoder.pop()));
        if let Some(error) = pushed.err().or_else(|| decoder.fault()) {
            return (items, Some(error));
        }
        assert!(decoder.partial().len() <= MAX_EVENT_BYTES + 8, "{} bytes held", decoder.partial().len());
    }
    let error = decoder.finish().err();
    items.extend(iter::from_fn(|| decoder.pop()));
    (items, error)
}

fn replay<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<RawItem>, Option<String>) {
    let pieces = stream::iter(pieces.map(Ok::<_, Infallible>));
    let given: Vec<Result<_, Error<AgentError>>> =
        block_on(pieces.replay_with(Timing::immediate(), limits()).collect());
    let mut items = Vec::new();
    for (place, item) in given.iter().enumerate() {
        match item {
            Ok(item) => {
                if let RawItem::Event { raw: Raw::Bytes(event), .. } = item {
                    assert!(event.len() <= MAX_EVENT_BYTES, "an event of {} bytes", event.len());
                }
                items.push(item.clone());
            }
            Err(error) => {
                assert_eq!(place + 1, given.len(), "an error is the last");
                return (items, Some(format!("{error:?}")));
            }
        }
    }
    (items, None)
}

/// See the head of the file.
pub fn attack(input: &[u8]) {
    let [format, length, bytes @ ..] = input else { return };
    let cut = bytes.chunks(usize::from(*length).max(1));
    match FORMATS.get(usize::from(*format) % (FORMATS.len() + 1)) {
        Some(format) => assert_eq!(decode(*format, iter::once(bytes)), decode(*format, cut)),
        None => assert_eq!(replay(iter::once(bytes)), replay(cut)),
    }
}
