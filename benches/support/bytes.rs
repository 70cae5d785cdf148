//! Ways that begin with bytes: the pieces of a body to updates, to items, and on to the next hop.

use std::convert::Infallible;
use std::hint::black_box;

use ag_ui_stream::codec::{Decoder, Format};
use ag_ui_stream::{ByteStreamExt, EncodeStreamExt, Event, EventStreamExt};
use bytes::Bytes;
use futures::executor::block_on;
use futures::{Stream, StreamExt, TryStreamExt, stream};

use super::floor;

/// The events as a server writes them.
pub(crate) fn body(format: Format, events: &[String]) -> Vec<u8> {
    let mut body = Vec::new();
    for event in events {
        match format {
            Format::Sse => body.extend([b"data: ", event.as_bytes(), b"\n\n"].concat()),
            Format::JsonLines => body.extend([event.as_bytes(), b"\n"].concat()),
            _ => {
                let (event, _) = Event::from_json(event).unwrap();
                body.extend(format.encode(&event.unwrap()).unwrap());
            }
        }
    }
    body
}

/// The body as a network hands it over: pieces of this many bytes, each in memory of its own.
pub(crate) fn pieces(body: &[u8], size: usize) -> Vec<Bytes> {
    body.chunks(size).map(Bytes::copy_from_slice).collect()
}

/// The least that bytes cost: `memchr` for the end of a frame, and `serde_json` on what is borrowed from
/// the very buffer.
pub(crate) fn floor(body: &[u8]) -> usize {
    let mut text = String::new();
    let mut rest = body;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let (line, tail) = rest.split_at(end);
        rest = tail.get(1..).unwrap_or_default();
        let line = line.strip_prefix(b"data: ").unwrap_or(line);
        if !line.is_empty() {
            floor::event(serde_json::from_slice(line), || serde_json::from_slice(line), &mut text);
        }
    }
    text.len()
}

fn source(pieces: &[Bytes]) -> impl Stream<Item = Result<Bytes, Infallible>> + Unpin {
    stream::iter(pieces).map(|piece| Ok(piece.clone()))
}

/// Bytes to updates, with the snapshot looked at after each.
pub(crate) fn updates(format: Format, pieces: &[Bytes]) -> usize {
    let mut updates = source(pieces).decode(Decoder::new(format)).updates();
    block_on(async {
        while let Some(update) = updates.try_next().await.unwrap() {
            black_box(update.snapshot());
        }
    });
    updates.machine().snapshot().messages().len()
}

/// Bytes to verified items.
pub(crate) fn items(pieces: &[Bytes]) -> usize {
    let mut items = source(pieces).sse().items();
    let mut count = 0;
    block_on(async {
        while let Some(item) = items.try_next().await.unwrap() {
            black_box(&item);
            count += 1;
        }
    });
    count
}

/// Bytes to verified items to bytes.
pub(crate) fn gateway(pieces: &[Bytes]) -> usize {
    let mut out = source(pieces).sse().items().to_sse();
    let mut count = 0;
    block_on(async {
        while let Some(bytes) = out.try_next().await.unwrap() {
            black_box(&bytes);
            count += 1;
        }
    });
    count
}
