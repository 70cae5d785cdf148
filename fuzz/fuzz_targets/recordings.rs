//! A length and the bytes of a recording: no panic; cut into pieces of that length it is replayed as
//! it is whole, whatever form it has.

#![no_main]

use ag_ui_stream::record::Timing;
use ag_ui_stream::{AgentError, ByteStreamExt, Error, Limits, RawItem};
use futures::executor::block_on;
use futures::{StreamExt, stream};
use libfuzzer_sys::fuzz_target;

/// Small, so that the bound is met.
const MAX_EVENT_BYTES: usize = 1024;

fn replay<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<RawItem>, Option<String>) {
    let limits = Limits { max_event_bytes: MAX_EVENT_BYTES, ..Limits::default() };
    let bytes = stream::iter(pieces.map(Ok::<_, AgentError>));
    let mut replayed = bytes.replay_with(Timing::immediate(), limits);
    block_on(async {
        let mut items = Vec::new();
        while let Some(item) = replayed.next().await {
            match item {
                Ok(item) => items.push(item),
                Err(error) => {
                    assert!(replayed.next().await.is_none(), "the error is the last item");
                    // An error of a recorded source is one by its text.
                    return (items, Some(format!("{error}{}", matches!(error, Error::Source(_)))));
                }
            }
        }
        (items, None)
    })
}

fuzz_target!(|input: &[u8]| {
    let [length, bytes @ ..] = input else { return };
    let whole = replay(std::iter::once(bytes));
    let cut = replay(bytes.chunks(usize::from(*length).max(1)));
    assert_eq!(whole, cut);
});
