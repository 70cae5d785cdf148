//! A format, a length and bytes: no panic; cut into pieces of that length they give what they give
//! whole.

#![no_main]

use ag_ui_stream::codec::{Decoder, Format};
use ag_ui_stream::{Error, Limits, RawItem};
use libfuzzer_sys::fuzz_target;

const FORMATS: [Format; 3] = [Format::Sse, Format::JsonLines, Format::Protobuf];

/// Small, so that the bound is met.
const MAX_EVENT_BYTES: usize = 1024;

fn decode<'a>(format: Format, pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<RawItem>, Option<Error>) {
    let limits = Limits { max_event_bytes: MAX_EVENT_BYTES, ..Limits::default() };
    let mut decoder = Decoder::new(format).with_limits(limits);
    let mut items = Vec::new();
    for piece in pieces {
        let pushed = decoder.push(piece);
        items.extend(std::iter::from_fn(|| decoder.pop()));
        if let Err(error) = pushed {
            return (items, Some(error));
        }
        assert!(decoder.partial().len() <= MAX_EVENT_BYTES + 8, "{} bytes held", decoder.partial().len());
    }
    let error = decoder.finish().err();
    items.extend(std::iter::from_fn(|| decoder.pop()));
    (items, error)
}

fuzz_target!(|input: &[u8]| {
    let [format, length, bytes @ ..] = input else { return };
    let format = FORMATS[usize::from(*format) % FORMATS.len()];
    let whole = decode(format, std::iter::once(bytes));
    let cut = decode(format, bytes.chunks(usize::from(*length).max(1)));
    assert_eq!(whole, cut);
});
