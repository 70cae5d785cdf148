//! However the bytes of a capture are cut, and whenever they come, its events, warnings, errors and
//! their indices are the same.
//!
//! The captures are every stream and every event under `tests/data`, in every format, with every
//! line end, and in every form that can be replayed.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]
#![cfg(all(feature = "record", feature = "protobuf"))]

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::fmt::Debug;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker, ready};

use ag_ui_stream::agent::BoxError;
use ag_ui_stream::codec::{Decoder, Format};
use ag_ui_stream::combinator::pieces;
use ag_ui_stream::id::SequentialIds;
use ag_ui_stream::record::RecordStreamExt;
use ag_ui_stream::record::Timing;
use ag_ui_stream::{ByteStreamExt, Error, Event, EventStreamExt, Item, Options, Raw, RawItem};
use futures::executor::block_on;
use futures::future::Either;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_test::task;

mod support {
    #![allow(unreachable_pub, reason = "each test has its own copy")]
    pub mod stream;
}

use support::stream::{Remote, Step, script};

/// The events of a capture, as they are written in the file.
struct Capture {
    name: String,
    events: Vec<String>,
}

static CAPTURES: LazyLock<Vec<Capture>> = LazyLock::new(|| {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut captures = Vec::new();
    for path in
        ["conformance/streams", "conformance/draft", "cases"].iter().flat_map(|folder| json_in(data.join(folder)))
    {
        let file: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        // Some cases are bytes, and no list of events.
        let Some(events) = file.get("stream") else { continue };
        let events: Vec<Box<RawValue>> = serde_json::from_str(events.get()).unwrap();
        let events = events.into_iter().map(|event| event.get().to_owned()).collect();
        captures.push(Capture { name: path.display().to_string(), events });
    }
    assert!(captures.len() > 100, "the streams are there");
    for definition in fs::read_dir(data.join("fixtures")).unwrap().map(|entry| entry.unwrap().path()) {
        for path in ["valid", "invalid"].iter().flat_map(|folder| json_in(definition.join(folder))) {
            let events = vec![fs::read_to_string(&path).unwrap().trim().to_owned()];
            captures.push(Capture { name: path.display().to_string(), events });
        }
    }
    assert!(captures.len() > 250, "the fixtures are there");
    captures
});

fn json_in(folder: PathBuf) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths
}

/// How a capture is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    /// With this at the end of each line.
    Sse(&'static str),
    /// With a byte order mark, comments and other fields, and without the last blank line.
    Adorned,
    JsonLines(&'static str),
    Protobuf,
    /// A recording of events whose own line ends are these.
    Recording(&'static str),
    /// A JSON array, which can be replayed too.
    Array,
}

const FORMS: [Form; 10] = [
    Form::Sse("\n"),
    Form::Sse("\r\n"),
    Form::Sse("\r"),
    Form::Adorned,
    Form::JsonLines("\n"),
    Form::JsonLines("\r\n"),
    Form::Protobuf,
    Form::Recording("\n"),
    Form::Recording("\r\n"),
    Form::Array,
];

impl Form {
    /// `None` for a replay.
    fn format(self) -> Option<Format> {
        match self {
            Form::Sse(_) | Form::Adorned => Some(Format::Sse),
            Form::JsonLines(_) => Some(Format::JsonLines),
            Form::Protobuf => Some(Format::Protobuf),
            Form::Recording(_) | Form::Array => None,
        }
    }

    /// The events that are in these bytes.
    fn decode<S, B, E>(self, bytes: S) -> impl Stream<Item = Result<RawItem, Error>>
    where
        S: Stream<Item = Result<B, E>>,
        B: ag_ui_stream::codec::Piece,
        E: Into<BoxError> + Debug,
    {
        match self.format() {
            Some(format) => Either::Left(bytes.decode(Decoder::new(format)).map_err(not_of_source)),
            None => Either::Right(bytes.replay(Timing::immediate()).map_err(not_of_source)),
        }
    }

    fn write(self, capture: &Capture) -> Vec<u8> {
        let mut text = String::new();
        match self {
            Form::Sse(end) => {
                for event in &capture.events {
                    // A file may have an event in several lines.
                    for line in event.lines() {
                        text.extend(["data: ", line, end]);
                    }
                    text.push_str(end);
                }
            }
            Form::Adorned => {
                text.push('\u{feff}');
                for event in &capture.events {
                    text.push_str("retry: 3\n: Zwölf 🍎\r\nevent: message\r");
                    for line in event.lines() {
                        text.extend(["data:", line, "\r\n"]);
                    }
                    text.push_str("id: 7\n\n");
                }
                text.truncate(text.trim_end_matches('\n').len() + 1);
            }
            Form::JsonLines(end) => {
                for event in &capture.events {
                    text.extend(event.lines().chain([end]));
                }
            }
            Form::Protobuf => return protobuf(capture),
            Form::Recording(end) => return recording(capture, end),
            Form::Array => text.extend(["[", &capture.events.join(",\n"), "]"]),
        }
        text.into_bytes()
    }
}

/// The events that there are in protobuf: those that can be read.
fn protobuf(capture: &Capture) -> Vec<u8> {
    let mut bytes = Vec::new();
    for event in &capture.events {
        // Half a surrogate pair is no `Value`.
        let Ok(value) = serde_json::from_str::<Value>(event) else { continue };
        let Ok((Some(event), _)) = Event::from_value(&value) else { continue };
        bytes.extend(Format::Protobuf.encode(&event).unwrap());
    }
    bytes
}

/// The events with these line ends, recorded.
fn recording(capture: &Capture, end: &str) -> Vec<u8> {
    let events: Vec<_> = capture.events.iter().map(|event| event.replace('\n', end)).collect();
    let mut file = Vec::new();
    let recorded: Vec<_> = block_on(stream::iter(events.clone()).record(&mut file).collect());
    assert_eq!(recorded, events);
    file
}

/// The items of a stream, and the error at its end.
type Ran<T> = (Vec<T>, Option<Error>);

/// No source here fails.
fn not_of_source<E: Debug>(error: Error<E>) -> Error {
    error.map_source(|error| panic!("{error:?}"))
}

fn run<T, E: Debug>(stream: impl Stream<Item = Result<T, Error<E>>>) -> Ran<T> {
    let mut stream = pin!(stream);
    let mut cx = Context::from_waker(Waker::noop());
    let mut items = Vec::new();
    loop {
        match stream.as_mut().poll_next(&mut cx) {
            Poll::Pending => {}
            Poll::Ready(Some(Ok(item))) => items.push(item),
            Poll::Ready(Some(Err(error))) => return (items, Some(not_of_source(error))),
            Poll::Ready(None) => return (items, None),
        }
    }
}

/// Pieces of a capture as a source or a reader that is not ready before each.
struct Pieces<'a> {
    pieces: VecDeque<&'a [u8]>,
    is_ready: bool,
}

impl<'a> Pieces<'a> {
    fn of(pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self { pieces: pieces.into_iter().collect(), is_ready: true }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.is_ready = !self.is_ready;
        if self.is_ready {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<'a> Stream for Pieces<'a> {
    type Item = Result<&'a [u8], Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(cx).map(|()| self.pieces.pop_front().map(Ok))
    }
}

impl AsyncRead for Pieces<'_> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll(cx));
        // A read of nothing would be the end.
        while let Some(piece) = self.pieces.pop_front() {
            let (now, later) = piece.split_at(piece.len().min(buffer.remaining()));
            buffer.put_slice(now);
            if !later.is_empty() {
                self.pieces.push_front(later);
            }
            if !now.is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// The events of these pieces, from a stream or from a reader.
fn decoded<'a>(form: Form, is_read: bool, cut: impl IntoIterator<Item = &'a [u8]>) -> Ran<RawItem> {
    let source = Pieces::of(cut);
    if is_read { run(form.decode(pieces(source))) } else { run(form.decode(source)) }
}

/// The same after all the other stages.
fn items<'a>(form: Form, is_read: bool, cut: impl IntoIterator<Item = &'a [u8]>) -> Ran<Item> {
    let source = Pieces::of(cut);
    if is_read {
        run(form.decode(pieces(source)).items_with(options()))
    } else {
        run(form.decode(source).items_with(options()))
    }
}

/// One whose generated ids are the same each time.
fn options() -> Options {
    Options::new().ids(SequentialIds::new("generated-"))
}

/// How many captures share the work of being cut in two at every byte, which costs their length
/// squared. Each form takes others.
const SHARE: usize = 28;

/// Every capture in this form, cut into a few bytes each, and a share of them in two at every byte.
fn cut_at_every_byte(form: Form) {
    let turn = FORMS.iter().position(|each| *each == form).unwrap();
    for (number, capture) in CAPTURES.iter().enumerate() {
        let bytes = form.write(capture);
        let name = &capture.name;
        let whole = decoded(form, false, [&bytes[..]]);
        let whole_items = items(form, false, [&bytes[..]]);
        if number % SHARE == turn {
            for at in 0..=bytes.len() {
                let (one, other) = bytes.split_at(at);
                // A stream and a reader take turns.
                let cut = decoded(form, at % 2 == 0, [one, other]);
                assert_eq!(cut, whole, "{name} as {form:?}, cut at {at}");
            }
        }
        let in_crumbs = items(form, number % 2 == 0, bytes.chunks(1 + number % 3));
        assert_eq!(in_crumbs, whole_items, "{name} as {form:?}");
    }
}

#[test]
fn t1_sse_with_lf() {
    cut_at_every_byte(FORMS[0]);
}

#[test]
fn t1_sse_with_crlf() {
    cut_at_every_byte(FORMS[1]);
}

#[test]
fn t1_sse_with_cr() {
    cut_at_every_byte(FORMS[2]);
}

#[test]
fn t1_sse_with_all_that_is_ignored() {
    cut_at_every_byte(FORMS[3]);
}

#[test]
fn json_lines_with_lf() {
    cut_at_every_byte(FORMS[4]);
}

#[test]
fn json_lines_with_crlf() {
    cut_at_every_byte(FORMS[5]);
}

#[test]
fn t2_protobuf() {
    cut_at_every_byte(FORMS[6]);
}

#[test]
fn a_recording() {
    cut_at_every_byte(FORMS[7]);
}

#[test]
fn a_recording_of_events_with_crlf() {
    cut_at_every_byte(FORMS[8]);
}

#[test]
fn a_json_array() {
    cut_at_every_byte(FORMS[9]);
}

#[test]
fn a_recording_is_replayed_byte_for_byte() {
    for (capture, end) in CAPTURES.iter().flat_map(|capture| [(capture, "\n"), (capture, "\r\n")]) {
        let (items, error) = decoded(Form::Recording(end), false, [&recording(capture, end)[..]]);
        assert_eq!((items.len(), error), (capture.events.len(), None), "{}", capture.name);
        for ((item, event), index) in items.into_iter().zip(&capture.events).zip(0..) {
            let raw = Raw::Bytes(event.replace('\n', end).into());
            assert_eq!(item, RawItem::Event { raw, index }, "{}", capture.name);
        }
    }
}

#[test]
fn p4_every_form_gives_the_same() {
    let mut ends = [0, 0];
    for capture in CAPTURES.iter() {
        let expected = items(FORMS[0], false, [&FORMS[0].write(capture)[..]]);
        ends[usize::from(expected.1.is_some())] += 1;
        // Protobuf cannot carry all of them.
        for form in FORMS[1..].iter().filter(|form| **form != Form::Protobuf) {
            assert_eq!(items(*form, false, [&form.write(capture)[..]]), expected, "{} as {form:?}", capture.name);
        }
    }
    assert!(ends[0] > 50 && ends[1] > 50, "captures of both kinds: {ends:?}");
}

/// Takes everything with a `next()` for each few polls, all of which are dropped.
fn piecewise<S: Stream>(stream: S, remote: &Remote, mut patience: impl Iterator<Item = u8>) -> Vec<S::Item> {
    let mut stream = pin!(stream);
    let mut items = Vec::new();
    loop {
        let mut next = task::spawn(stream.next());
        for _ in 0..patience.next().unwrap_or(1) {
            match next.poll() {
                Poll::Ready(Some(item)) => {
                    items.push(item);
                    break;
                }
                Poll::Ready(None) => return items,
                Poll::Pending if next.is_woken() => {}
                Poll::Pending => {
                    remote.wake();
                    assert!(next.is_woken(), "lost wake-up");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_cuts_and_any_waits_give_the_same(
        capture in any::<prop::sample::Index>(),
        form in prop::sample::select(FORMS.to_vec()),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0u8..4), 0..30),
        patience in prop::collection::vec(0u8..4, 0..60),
    ) {
        let capture = capture.get(&CAPTURES);
        let bytes = form.write(capture);
        let mut cuts: Vec<_> = cuts.into_iter().map(|(cut, wait)| (cut.index(bytes.len() + 1), wait)).collect();
        cuts.push((bytes.len(), 0));
        cuts.sort_unstable();
        let mut steps = Vec::new();
        let mut from = 0;
        for (to, wait) in cuts {
            steps.extend((wait & 1 != 0).then_some(Step::Yield));
            steps.extend((wait & 2 != 0).then_some(Step::Park));
            steps.push(Step::Give(Ok::<_, Infallible>(&bytes[from..to])));
            from = to;
        }
        let source = stream::iter([Ok::<_, Infallible>(&bytes[..])]);
        let whole: Vec<_> = block_on(form.decode(source).items_with(options()).collect());
        let (source, remote) = script(steps);
        let stream = form.decode(source).items_with(options());
        prop_assert_eq!(piecewise(stream, &remote, patience.into_iter()), whole, "{} as {:?}", capture.name, form);
        prop_assert!(remote.is_dropped());
    }
}
