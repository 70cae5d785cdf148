//! Recording and replaying: a replay gives the recorded events at the recorded times.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

#[path = "support/stream.rs"]
mod support;

use std::fmt::Debug;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use ag_ui_stream::agent::{AgentError, RawEventStream, Replay, agent_fn};
use ag_ui_stream::combinator::pieces;
use ag_ui_stream::error::TruncatedBy;
use ag_ui_stream::machine::Indexed;
use ag_ui_stream::record::{Record, RecordAgent, RecordedError, RecordingFailed, Replayed, Timing};
use ag_ui_stream::record::{RecordAgentExt, RecordStreamExt};
use ag_ui_stream::{
    Agent, AgentExt, ByteStreamExt, Error, Event, EventStreamExt, Item, Limits, Raw, RawItem, RunAgentInput,
};
use futures::stream::{self, FusedStream};
use futures::{FutureExt, Stream, StreamExt, TryStreamExt};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{Broken, Step, gives, script};
use tokio::io::AsyncWrite;
use tokio::time::{Instant, sleep, timeout};
use tokio_test::{assert_pending, assert_ready, task};

const STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const FINISHED: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;
const HEADER: &str = ": ag-ui-recording 1\n\n";

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A recording whose events come after these waits.
fn slow<T>(items: impl IntoIterator<Item = (u64, T)>) -> impl Stream<Item = T> {
    stream::iter(items).then(|(wait, item)| async move {
        sleep(ms(wait)).await;
        item
    })
}

/// The items of a replay, each with the time at which it came, in milliseconds.
async fn timed<S: Stream>(stream: S) -> Vec<(u128, S::Item)> {
    let began = Instant::now();
    stream.map(|item| (began.elapsed().as_millis(), item)).collect().await
}

fn replay(file: impl Into<Vec<u8>>, timing: Timing) -> Replayed<impl Stream<Item = Result<Vec<u8>, Broken>>> {
    stream::iter([Ok(file.into())]).replay(timing)
}

fn bytes(item: &Result<RawItem, Error<AgentError>>) -> &[u8] {
    match item {
        Ok(RawItem::Event { raw: Raw::Bytes(bytes), .. }) => bytes,
        other => panic!("{other:?}"),
    }
}

/// What a [`Writer`] does when it is called.
#[derive(Clone, Copy, Debug)]
enum Take {
    /// Takes so many bytes at most; 0 is an error of its own.
    Bytes(usize),
    /// Says "not yet", and wakes the task.
    Yield,
    /// Says "not yet".
    Park,
    Fail(io::ErrorKind),
}

/// A writer that follows a script for each of its calls, and succeeds after that.
#[derive(Clone, Debug, Default)]
struct Writer(Arc<Mutex<Tape>>);

#[derive(Debug, Default)]
struct Tape {
    written: Vec<u8>,
    writes: Vec<Take>,
    flushes: Vec<Take>,
    closes: Vec<Take>,
    /// The calls, in order.
    calls: String,
}

impl Writer {
    fn new(writes: &[Take], flushes: &[Take], closes: &[Take]) -> Self {
        let reversed = |takes: &[Take]| takes.iter().rev().copied().collect();
        let (writes, flushes, closes) = (reversed(writes), reversed(flushes), reversed(closes));
        Self(Arc::new(Mutex::new(Tape { writes, flushes, closes, ..Tape::default() })))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().written.clone()).unwrap()
    }

    /// The calls since this was asked: `w`rite, `f`lush, `c`lose.
    fn calls(&self) -> String {
        std::mem::take(&mut self.0.lock().unwrap().calls)
    }

    fn act(&self, cx: &mut Context<'_>, call: char, of: fn(&mut Tape) -> &mut Vec<Take>) -> Poll<io::Result<usize>> {
        let mut tape = self.0.lock().unwrap();
        assert!(!tape.calls.contains('c') || call == 'c', "used after its end");
        tape.calls.push(call);
        match of(&mut tape).pop() {
            Some(Take::Yield) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Take::Park) => Poll::Pending,
            Some(Take::Fail(kind)) => Poll::Ready(Err(kind.into())),
            Some(Take::Bytes(count)) => Poll::Ready(Ok(count)),
            None => Poll::Ready(Ok(usize::MAX)),
        }
    }
}

impl AsyncWrite for Writer {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.act(cx, 'w', |tape| &mut tape.writes).map_ok(|count| {
            let count = count.min(buf.len());
            self.0.lock().unwrap().written.extend_from_slice(&buf[..count]);
            count
        })
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.act(cx, 'f', |tape| &mut tape.flushes).map_ok(drop)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.act(cx, 'c', |tape| &mut tape.closes).map_ok(drop)
    }
}

#[tokio::test(start_paused = true)]
async fn a_recording_is_a_capture_with_the_times() {
    let mut file = Vec::new();
    let source = slow([(250, STARTED), (0, "{\r\n}"), (60_000, FINISHED)]);
    let passed: Vec<_> = source.record(&mut file).collect().await;
    assert_eq!(passed, [STARTED, "{\r\n}", FINISHED]);
    let wanted = format!(
        "{HEADER}: +0.250000s\ndata: {STARTED}\n\n: +0.250000s\n: line-ends rn\ndata: {{\ndata: \ndata: }}\n\n\
         : +60.250000s\ndata: {FINISHED}\n\n: +60.250000s end\n\n"
    );
    assert_eq!(String::from_utf8(file).unwrap(), wanted);
}

#[tokio::test(start_paused = true)]
async fn a_replay_gives_the_same_at_the_same_times() {
    let texts =
        [STARTED, "", "\u{feff}{}", "{\n\r\"a\":\r1}\r\n", "\u{2028}", " data: {}", "\n\n", "not JSON", FINISHED];
    let mut file = Vec::new();
    let source = slow((0..).zip(texts).map(|(at, text)| (at * 7, text)));
    let live = timed(source.record(&mut file)).await;
    assert_eq!(live.iter().map(|(_, text)| *text).collect::<Vec<_>>(), texts);
    for (piece, speed) in [(1, 1), (3, 1), (usize::MAX, 1), (usize::MAX, 7)] {
        let pieces = stream::iter(file.chunks(piece.min(file.len())).map(Ok::<_, Broken>));
        let replayed = timed(pieces.replay(Timing::scaled(speed.into()))).await;
        let replayed: Vec<_> = replayed.iter().map(|(at, item)| (at * speed as u128, bytes(item))).collect();
        let wanted: Vec<_> = live.iter().map(|(at, text)| (*at, text.as_bytes())).collect();
        assert_eq!(replayed, wanted, "{piece} {speed}");
    }
}

/// Any item of a source, as text and as expected from the replay.
fn any_raw() -> impl Strategy<Value = (Raw, Vec<u8>)> {
    let same = |bytes: Vec<u8>| (Raw::Bytes(bytes.clone().into()), bytes);
    let special = "\r\n\u{feff}\u{2028}\u{85} :{}\"\\data+ends";
    let special: Vec<char> = special.chars().collect();
    prop_oneof![
        proptest::collection::vec(proptest::sample::select(special), 0..20).prop_map(|chars| {
            let text: String = chars.into_iter().collect();
            (Raw::Text(text.clone()), text.into_bytes())
        }),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(same),
        any::<(String, i64)>().prop_map(|(name, value)| {
            let value = json!({"type": "CUSTOM", "name": name, "value": [value, {"\r\n": null}]});
            let pretty = format!("{value:#}").replace('\n', "\r\n");
            (Raw::Text(pretty.clone()), pretty.into_bytes())
        }),
        any::<String>().prop_map(|name| {
            let value = json!({"type": "CUSTOM", "name": name, "value": 1});
            let text = value.to_string().into_bytes();
            (Raw::Value(value), text)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200, rng_seed: proptest::test_runner::RngSeed::Fixed(1), failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_stream_survives(
        items in proptest::collection::vec((0u64..100_000, any_raw()), 0..8),
        fails in any::<Option<String>>(),
        piece in 1usize..50,
        takes in proptest::collection::vec(1usize..30, 0..20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            // The longest wait is a minute by default.
            let timing = Timing::original().max_delay(None);
            let takes: Vec<_> = takes.into_iter().flat_map(|count| [Take::Yield, Take::Bytes(count)]).collect();
            let writer = Writer::new(&takes, &[], &[Take::Yield]);
            let wanted: Vec<Result<Raw, String>> =
                items.iter().map(|(_, (raw, _))| Ok(raw.clone())).chain(fails.clone().map(Err)).collect();
            let source = slow(items.iter().map(|(wait, _)| *wait).chain([5]).zip(wanted.clone()));
            let live = timed(source.record(writer.clone())).await;
            assert_eq!(live.iter().map(|(_, item)| item.clone()).collect::<Vec<_>>(), wanted);

            let file = writer.0.lock().unwrap().written.clone();
            let replayed = timed(stream::iter(file.chunks(piece).map(Ok::<_, Broken>)).replay(timing)).await;
            assert_eq!(replayed.len(), live.len());
            for (place, ((at, item), (came, _))) in replayed.iter().zip(&live).enumerate() {
                assert_eq!(at, came);
                match (item, items.get(place)) {
                    (Ok(RawItem::Event { raw: Raw::Bytes(found), index }), Some((_, (_, text)))) => {
                        assert_eq!((&found[..], *index), (&text[..], place as u64));
                    }
                    (Err(Error::Source(error)), None) => {
                        let error = error.downcast_ref::<RecordedError>().unwrap();
                        assert_eq!(Some(error.message()), fails.as_deref());
                    }
                    other => panic!("{other:?}"),
                }
            }
        });
    }
}

#[tokio::test]
async fn recorded_items_keep_their_type() {
    let text = STARTED.to_owned();
    let value: Value = serde_json::from_str(&text).unwrap();
    let typed = Event::from_value(&value).unwrap().0.unwrap();
    let item = RawItem::Event { raw: Raw::Value(value.clone()), index: 7 };

    async fn check<T: ag_ui_stream::record::Recordable + Clone + PartialEq + Debug>(item: T) {
        let mut file = Vec::new();
        let passed: Vec<T> = stream::iter([item.clone()]).record(&mut file).collect().await;
        assert_eq!(passed, [item]);
        // Members of a value have an order of their own.
        let replayed: Vec<_> = replay(file, Timing::immediate()).collect().await;
        assert_eq!(
            serde_json::from_slice::<Value>(bytes(&replayed[0])).unwrap(),
            serde_json::from_str::<Value>(STARTED).unwrap()
        );
        assert_eq!(replayed.len(), 1);
    }
    check(text.as_str()).await;
    check(text.clone()).await;
    check(&text).await;
    check(text.clone().into_boxed_str()).await;
    check(Arc::<str>::from(text.as_str())).await;
    check(std::borrow::Cow::Borrowed(text.as_str())).await;
    check(text.as_bytes()).await;
    check(text.clone().into_bytes()).await;
    check(&text.clone().into_bytes()).await;
    check(text.clone().into_bytes().into_boxed_slice()).await;
    check(Arc::<[u8]>::from(text.as_bytes())).await;
    check(std::borrow::Cow::Borrowed(text.as_bytes())).await;
    #[cfg(feature = "reqwest")]
    check(bytes::Bytes::from(text.clone())).await;
    check(value.clone()).await;
    check(&value).await;
    check(typed.clone()).await;
    check(&typed).await;
    check(Raw::Event(typed.clone())).await;
    check(Ok::<_, Broken>(text.clone())).await;
    check(item.clone()).await;
    check(Ok::<_, Error<Broken>>(item)).await;
    check(Indexed::from(typed.clone())).await;
    check(Ok::<_, Error<Broken>>(Indexed::from(typed.clone()))).await;
    check(Item::from(typed.clone())).await;
    check(Ok::<_, Error<Broken>>(Item::from(typed.clone()))).await;
    check(Ok::<_, Error<Broken>>(typed)).await;
}

#[tokio::test(start_paused = true)]
async fn warnings_are_comments_and_are_not_replayed() {
    let body = stream::iter([Ok::<_, Broken>(format!("data: [DONE]\n\ndata: {STARTED}\n\ndata: {FINISHED}\n\n"))]);
    let decoder = ag_ui_stream::codec::SseDecoder::new().tolerate_done();
    let mut file = Vec::new();
    let items: Vec<_> = body.decode(decoder).record(&mut file).try_collect().await.unwrap();
    assert_eq!(items.len(), 3);
    let text = String::from_utf8(file.clone()).unwrap();
    assert!(text.starts_with(&format!("{HEADER}: +0.000000s warning \"T1a: event 0: skipped ")), "{text}");
    let replayed: Vec<_> = replay(file, Timing::immediate()).try_collect().await.unwrap();
    assert_eq!(replayed.iter().filter_map(RawItem::raw).count(), 2);
    assert_eq!(replayed.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_fails_is_recorded_as_one() {
    let source = slow([(1, Ok(STARTED)), (30, Err(io::Error::other("connection\nreset")))]);
    let mut file = Vec::new();
    let live = timed(source.record(&mut file)).await;
    assert!(matches!(&live[1], (31, Err(error)) if error.to_string() == "connection\nreset"));
    assert!(String::from_utf8_lossy(&file).ends_with(": +0.031000s failed \"connection\\nreset\"\n\n"));

    let mut replayed = replay(file.clone(), Timing::original()).updates();
    assert!(replayed.next().await.unwrap().is_ok());
    let began = Instant::now();
    let Some(Err(Error::Source(error))) = replayed.next().await else { panic!("no error") };
    assert_eq!((began.elapsed(), error.to_string()), (ms(30), "connection\nreset".to_owned()));
    assert_eq!(error.downcast_ref::<RecordedError>().unwrap().message(), "connection\nreset");
    assert!(replayed.next().await.is_none());
    let mut raw = replay(file.clone(), Timing::immediate());
    assert!(raw.next().await.unwrap().is_ok() && !raw.is_terminated());
    assert!(raw.next().await.unwrap().is_err() && raw.is_terminated());
    assert_eq!(replayed.machine().snapshot().run().unwrap().outcome.as_str(), "truncated");

    // Nothing after it is given, neither from the file nor from a source.
    file.extend_from_slice(b"data: {}\n\n");
    assert_eq!(replay(file, Timing::immediate()).count().await, 2);
    let (source, remote) = gives([Ok(STARTED), Err(Broken), Ok(FINISHED)]);
    let record: Vec<_> = source.record(Writer::default()).collect().await;
    assert_eq!((record, remote.polls()), (vec![Ok(STARTED), Err(Broken)], 2));
}

#[tokio::test]
async fn r8_a_source_that_is_cut_off_is_replayed_as_truncated() {
    let body = || stream::iter([Ok::<_, Broken>(format!("data: {STARTED}\n\ndata: {{"))]);
    let mut file = Vec::new();
    let live: Vec<_> = body().sse().record(&mut file).collect().await;
    let Err(Error::Truncated(error)) = &live[1] else { panic!("{live:?}") };
    let replayed: Vec<_> = replay(file, Timing::immediate()).collect().await;
    assert!(matches!(&replayed[1], Err(Error::Truncated(again)) if again == error), "{replayed:?}");
    assert_eq!(error.by, TruncatedBy::Partial);

    // Of other errors the text is kept.
    let mut file = Vec::new();
    let too_long =
        ag_ui_stream::codec::SseDecoder::new().with_limits(Limits { max_event_bytes: 3, ..Limits::default() });
    let live: Vec<_> = body().decode(too_long).record(&mut file).collect().await;
    assert!(matches!(live[..], [Err(Error::LimitExceeded(_))]));
    let replayed: Vec<_> = replay(file, Timing::immediate()).collect().await;
    assert!(
        matches!(&replayed[..], [Err(Error::Source(error))] if error.to_string().starts_with("event 0 is longer than 3 bytes"))
    );
}

#[tokio::test]
async fn r8_a_recording_that_breaks_off_anywhere_is_no_success() {
    let mut file = Vec::new();
    stream::iter([STARTED, FINISHED]).record(&mut file).for_each(|_| async {}).await;
    let whole = file.windows(FINISHED.len()).position(|text| text == FINISHED.as_bytes()).unwrap() + FINISHED.len();
    for len in 0..=file.len() {
        let mut events = replay(&file[..len], Timing::immediate()).events();
        let mut ended = None;
        let mut given = 0;
        while let Some(event) = events.next().await {
            match event {
                Ok(_) => given += 1,
                Err(error) => ended = Some(error),
            }
        }
        match ended {
            None => assert!(given == 2 && len >= whole, "{len}"),
            Some(error) => assert!(error.is_truncated() && given < 2 && len < whole, "{len}: {error}"),
        }
    }
}

#[tokio::test]
async fn an_item_is_written_before_it_is_given() {
    let writer = Writer::new(&[Take::Park, Take::Bytes(10), Take::Yield], &[Take::Park], &[Take::Yield]);
    let (source, remote) = script([Step::Give(STARTED), Step::Give(FINISHED), Step::Park, Step::Give("x")]);
    let mut record = task::spawn(source.record(writer.clone()));
    assert_pending!(record.poll_next());
    assert!(!record.is_woken());
    assert_pending!(record.poll_next());
    assert!(record.is_woken());
    // Nothing more is asked of the source while something is to be written.
    assert_eq!((remote.polls(), writer.calls().as_str()), (1, "www"));
    assert_eq!(record.size_hint(), (1, Some(4)));
    assert_eq!(assert_ready!(record.poll_next()), Some(STARTED));
    assert!(writer.text().ends_with(&format!("data: {STARTED}\n\n")));
    assert_eq!(assert_ready!(record.poll_next()), Some(FINISHED));
    assert!(writer.text().ends_with(&format!("data: {FINISHED}\n\n")));
    assert_eq!((remote.polls(), writer.calls().as_str()), (2, "ww"));
    // While the source keeps it waiting, the writer is flushed, until that is done.
    for calls in ["f", "f", ""] {
        assert_pending!(record.poll_next());
        assert_eq!(writer.calls(), calls);
    }
    remote.wake();
    assert!(record.is_woken());
    assert_eq!(assert_ready!(record.poll_next()), Some("x"));
    // Closed before the end is given.
    assert_pending!(record.poll_next());
    assert!(remote.is_dropped() && !record.is_terminated());
    assert!(writer.text().ends_with("s end\n\n"));
    assert_eq!(writer.calls(), "wwc");
    assert_eq!(assert_ready!(record.poll_next()), None);
    assert!(record.is_terminated() && record.error().is_none());
    assert_eq!(assert_ready!(record.poll_next()), None);
    assert_eq!((writer.calls().as_str(), record.size_hint()), ("c", (0, Some(0))));
}

#[tokio::test]
async fn the_file_is_closed_before_an_error_is_given() {
    let writer = Writer::new(&[], &[], &[Take::Yield]);
    let mut record = task::spawn(stream::iter([Err::<&str, _>(Broken)]).record(writer.clone()));
    assert_pending!(record.poll_next());
    assert_eq!(writer.calls(), "wc");
    assert_eq!(assert_ready!(record.poll_next()), Some(Err(Broken)));
    assert_eq!(writer.calls(), "c");
    assert!(record.is_terminated());
    assert!(assert_ready!(record.poll_next()).is_none());
}

#[tokio::test]
async fn a_next_that_is_dropped_loses_nothing_and_writes_nothing_twice() {
    let run = |yields: bool| async move {
        let takes = if yields { [Take::Yield, Take::Bytes(7)].repeat(200) } else { vec![] };
        let writer = Writer::new(&takes, &[], &[Take::Yield, Take::Yield]);
        let steps = [STARTED, "{\r}", FINISHED].into_iter().flat_map(|text| [Step::Yield, Step::Give(text)]);
        let mut record = script(steps).0.record(writer.clone());
        let mut given = Vec::new();
        let mut dropped = 0;
        loop {
            match record.next().now_or_never() {
                Some(Some(text)) => given.push(text),
                Some(None) => break,
                None => dropped += 1,
            }
        }
        let text = writer.text();
        let text: Vec<_> =
            text.lines().map(|line| if line.starts_with(": +") { ":" } else { line }.to_owned()).collect();
        (given, text, dropped)
    };
    let (given, text, dropped) = run(true).await;
    assert!(dropped > 30, "{dropped}");
    assert_eq!(given, [STARTED, "{\r}", FINISHED]);
    assert_eq!(run(false).await.1, text);
}

#[tokio::test]
async fn an_error_of_the_writer_ends_the_recording_and_not_the_run() {
    let full = Take::Fail(io::ErrorKind::StorageFull);
    for (writer, kind, written) in [
        (Writer::new(&[Take::Bytes(4), full], &[], &[]), io::ErrorKind::StorageFull, ": ag"),
        (Writer::new(&[Take::Bytes(0)], &[], &[]), io::ErrorKind::WriteZero, ""),
        (Writer::new(&[], &[full], &[]), io::ErrorKind::StorageFull, &format!("data: {STARTED}\n\n")),
        (Writer::new(&[], &[], &[full]), io::ErrorKind::StorageFull, "s end\n\n"),
    ] {
        let (source, _) = script([Step::Give(STARTED), Step::Yield, Step::Give("{}"), Step::Give(FINISHED)]);
        let mut record = source.record(writer.clone());
        let mut given = Vec::new();
        while let Some(text) = record.next().await {
            given.push(text);
        }
        assert_eq!(given, [STARTED, "{}", FINISHED]);
        assert_eq!(record.error().unwrap().kind(), kind);
        assert!(writer.text().ends_with(written), "{}", writer.text());
        assert_eq!(record.finish().await.unwrap_err().kind(), kind);
    }
    // An interruption is not an error.
    let writer = Writer::new(&[Take::Fail(io::ErrorKind::Interrupted)], &[], &[]);
    let mut record = stream::iter([STARTED]).record(writer.clone());
    assert!(record.next().await.is_some() && record.next().await.is_none());
    assert!(record.error().is_none() && writer.text().ends_with("s end\n\n"));
}

#[tokio::test]
async fn finish_writes_what_came_and_closes() {
    // Came, and is neither written nor given.
    let writer = Writer::new(&[Take::Yield, Take::Yield], &[], &[Take::Yield]);
    let (source, remote) = gives([STARTED, FINISHED]);
    let mut record = source.record(writer.clone());
    assert!(record.next().now_or_never().is_none());
    assert_eq!(record.writer().text(), "");
    record.finish().await.unwrap();
    assert!(remote.is_dropped());
    assert!(writer.text().ends_with(&format!("data: {STARTED}\n\n")), "{}", writer.text());
    assert_eq!(writer.calls(), "wwwcc");

    // Nothing came.
    let writer = Writer::default();
    stream::pending::<&str>().record(writer.clone()).finish().await.unwrap();
    assert_eq!((writer.text().as_str(), writer.calls().as_str()), ("", "c"));
    assert_eq!(replay("", Timing::original()).count().await, 0);

    // All is done.
    let mut record = Box::pin(stream::iter([STARTED]).record(Writer::default()));
    while record.next().await.is_some() {}
    assert_eq!(record.writer().calls(), "wwc");
}

#[tokio::test]
async fn a_big_event_survives() {
    let big = format!("{{\"type\":\"CUSTOM\",\"name\":\"n\",\r\n\"value\":\"{}\"}}", "x".repeat(10_000_000));
    let file = tempfile::NamedTempFile::new().unwrap();
    let writer = tokio::fs::File::create(file.path()).await.unwrap();
    let texts: Vec<_> = stream::iter([&big, &big]).record(writer).collect().await;
    assert_eq!(texts, [&big, &big]);
    let reader = tokio::fs::File::open(file.path()).await.unwrap();
    let replayed: Vec<_> = pieces(reader).replay(Timing::original()).collect().await;
    assert_eq!(replayed.iter().map(bytes).collect::<Vec<_>>(), [big.as_bytes(), big.as_bytes()]);

    let limits = Limits { max_event_bytes: big.len() - 1, ..Limits::default() };
    let reader = tokio::fs::File::open(file.path()).await.unwrap();
    let replayed: Vec<_> = pieces(reader).replay_with(Timing::original(), limits).collect().await;
    assert!(matches!(&replayed[..], [Err(Error::LimitExceeded(_))]));
}

fn at(stamps: &[u64]) -> String {
    let event = |stamp: &u64| format!(": +0.{stamp:03}s\ndata: {{}}\n\n");
    HEADER.to_owned() + &stamps.iter().map(event).collect::<String>()
}

async fn times(file: &str, timing: Timing) -> Vec<u128> {
    timed(replay(file, timing)).await.into_iter().map(|(at, _)| at).collect()
}

#[tokio::test(start_paused = true)]
async fn the_timing_is_what_was_chosen() {
    let file = at(&[10, 10, 400]);
    for (timing, wanted) in [
        (Timing::original(), [10, 10, 400]),
        (Timing::scaled(0.5), [20, 20, 800]),
        (Timing::scaled(10.0), [1, 1, 40]),
        (Timing::immediate(), [0, 0, 0]),
        (Timing::scaled(0.0), [0, 0, 0]),
        (Timing::scaled(-1.0), [0, 0, 0]),
        (Timing::scaled(f64::NAN), [0, 0, 0]),
        (Timing::scaled(f64::INFINITY), [0, 0, 0]),
        (Timing::every(ms(40)), [40, 80, 120]),
        (Timing::every(ms(40)).max_delay(ms(5)), [5, 10, 15]),
        (Timing::original().max_delay(ms(100)), [10, 10, 110]),
        (Timing::original().max_delay(Duration::ZERO), [0, 0, 0]),
        (
            Timing::custom(|item, recorded| {
                let RawItem::Event { index, .. } = item else { panic!("{item:?}") };
                recorded + ms(*index)
            }),
            [10, 11, 403],
        ),
        (Timing::custom(|_, _| Duration::MAX).max_delay(ms(2)), [2, 4, 6]),
    ] {
        assert_eq!(times(&file, timing.clone()).await, wanted, "{timing:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_without_a_time_is_not_waited_for() {
    let stamped = |stamp: u64| format!("data: {{\"timestamp\":{stamp}}}\n\n");
    // Some events tell, and some do not; one recording stands after another.
    let file = format!("{}{}{}{}", at(&[50]), stamped(1), stamped(900), at(&[20, 30]));
    assert_eq!(times(&file, Timing::original()).await, [50, 50, 50, 70, 80]);
    assert_eq!(times(&at(&[50, 20, 30]), Timing::original()).await, [50, 50, 60]);
    // There is no wait before the end unless the waits are the recorded ones.
    let file = format!("{}: +5.0s failed \"x\"\n\n", at(&[50]));
    assert_eq!(times(&file, Timing::original()).await, [50, 5_000]);
    assert_eq!(times(&file, Timing::every(ms(7))).await, [7, 7]);
    assert_eq!(times(&file, Timing::custom(|_, _| ms(8))).await, [8, 8]);
}

#[tokio::test(start_paused = true)]
async fn a_recording_cannot_keep_anybody_waiting_for_ever() {
    let year = format!("{HEADER}: +31536000.0s\ndata: {{}}\n\n: +{}.0s\ndata: {{}}\n\n", u64::MAX);
    assert_eq!(times(&year, Timing::original()).await, [60_000, 120_000]);
    assert_eq!(times(&year, Timing::scaled(f64::MIN_POSITIVE)).await, [60_000, 120_000]);
    // Where the clock ends there is nothing to wait for.
    let asked = times(&year, Timing::custom(|_, _| Duration::MAX).max_delay(None)).await;
    assert_eq!(asked, [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn without_recorded_times_the_timestamps_tell() {
    let events = |stamps: &[Value]| -> Vec<String> {
        stamps.iter().map(|stamp| json!({"type": "STEP_STARTED", "timestamp": stamp}).to_string()).collect()
    };
    let stamped = events(&[
        json!(1_700_000_000_000_u64),
        json!(1_700_000_000_250_u64),
        json!(null),
        json!(1.7000000005e12),
        json!(5),
        json!(6),
    ]);
    let wanted = [0, 250, 250, 500, 500, 501];
    for file in [
        stamped.iter().map(|event| format!("{event}\n")).collect(),
        format!("[{}]", stamped.join(",")),
        stamped.iter().map(|event| format!("data: {event}\n\n")).collect::<String>(),
        stamped.iter().map(|event| format!(": +0.900000s\ndata: {event}\n\n")).collect(),
    ] {
        assert_eq!(times(&file, Timing::original()).await, wanted, "{file}");
    }
    // With recorded times, timestamps are ignored.
    let file: String = stamped.iter().map(|event| format!(": +0.900000s\ndata: {event}\n\n")).collect();
    assert_eq!(times(&format!("{HEADER}{file}"), Timing::original()).await, [900; 6]);
    let seconds = events(&[json!(0), json!(1e300)]).join("\n");
    assert_eq!(times(&seconds, Timing::original()).await, [0, 60_000]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_consumer_finds_what_came_meanwhile() {
    let mut replayed = replay(at(&[100, 200, 300, 400]), Timing::original());
    let began = Instant::now();
    // A dropped `next` does not put it off.
    assert!(timeout(ms(60), replayed.next()).await.is_err());
    assert!(replayed.next().await.is_some());
    assert_eq!(began.elapsed(), ms(100));
    sleep(ms(250)).await;
    assert!(replayed.next().now_or_never().unwrap().is_some());
    assert!(replayed.next().now_or_never().unwrap().is_some());
    assert!(replayed.next().now_or_never().is_none());
    assert!(replayed.next().await.is_some());
    assert_eq!(began.elapsed(), ms(400));
    assert!(!replayed.is_terminated());
    assert!(replayed.next().await.is_none() && replayed.is_terminated());
    assert_eq!(replayed.size_hint(), (0, Some(0)));
}

#[test]
fn a_replay_at_once_needs_no_runtime() {
    let mut file = Vec::new();
    let events: Vec<_> = futures::executor::block_on(stream::iter([STARTED, FINISHED]).record(&mut file).collect());
    assert_eq!(events.len(), 2);
    let items = futures::executor::block_on(replay(file, Timing::immediate()).collect::<Vec<_>>());
    assert_eq!(items.len(), 2);
}

#[tokio::test]
async fn an_error_of_the_reader_is_the_last_item() {
    let source = stream::iter([Ok(format!("data: {STARTED}\n\ndata: ")), Err(Broken)]);
    let items: Vec<_> = source.replay(Timing::original()).collect().await;
    assert!(matches!(&items[1..], [Err(Error::Source(error))] if error.downcast_ref::<Broken>().is_some()));
    let array: Vec<_> = replay("[{} {}]", Timing::original()).collect().await;
    assert!(matches!(&array[..], [Ok(_), Err(Error::Malformed(_))]));
}

fn input() -> RunAgentInput {
    RunAgentInput::new("t", "r", [])
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_recorded_and_replayed() {
    let slow_agent = agent_fn(|_| async {
        sleep(ms(500)).await;
        Ok(slow([(20, STARTED), (1_000, FINISHED)]).map(Ok::<_, Broken>))
    });
    let writer = Writer::default();
    let opened = Arc::new(Mutex::new(Vec::new()));
    let recorded = {
        let (writer, opened) = (writer.clone(), Arc::clone(&opened));
        slow_agent.record(move |input: &RunAgentInput| {
            opened.lock().unwrap().push(input.run_id.to_string());
            let writer = writer.clone();
            async move { Ok(writer) }
        })
    };
    let events: Vec<Event> = recorded.events(input()).await.unwrap().try_collect().await.unwrap();
    assert_eq!(*opened.lock().unwrap(), ["r"]);

    let replayed: Box<dyn Agent> = Box::new(Replay::recorded(writer.text(), Timing::original()));
    for _ in 0..2 {
        let began = Instant::now();
        let again: Vec<Event> = replayed.events(input()).await.unwrap().try_collect().await.unwrap();
        assert_eq!((again, began.elapsed()), (events.clone(), ms(1_520)));
    }
    // With more after it.
    let failing = Replay::recorded(writer.text(), Timing::immediate()).failing("reset");
    let items: Vec<_> = failing.run(input()).await.unwrap().collect().await;
    assert!(matches!(&items[2..], [Err(Error::Source(error))] if error.to_string() == "reset"));
}

#[tokio::test]
async fn a_run_that_cannot_start_is_recorded_as_failed() {
    let writer = Writer::default();
    let to = writer.clone();
    let agent = Replay::unreachable("refused").record(move |_: &RunAgentInput| std::future::ready(Ok(to.clone())));
    let Err(error) = agent.run(input()).await else { panic!("no error") };
    assert_eq!(error.to_string(), "refused");
    assert!(writer.text().ends_with("s failed \"refused\"\n\n"));
    assert_eq!(writer.calls(), "wc");
    assert!(format!("{agent:?}").starts_with("RecordAgent { agent: Replay"));
}

#[tokio::test]
async fn r8a_a_recording_that_fails_is_reported_after_the_run() {
    let full = || Writer::new(&[Take::Fail(io::ErrorKind::StorageFull)], &[], &[]);
    let agent = Replay::new([STARTED, FINISHED]).record(move |_: &RunAgentInput| std::future::ready(Ok(full())));
    let mut updates = agent.updates(input()).await.unwrap();
    assert!(updates.next().await.unwrap().is_ok() && updates.next().await.unwrap().is_ok());
    let Some(Err(Error::Source(error))) = updates.next().await else { panic!("no error") };
    let failed = error.downcast_ref::<RecordingFailed>().unwrap();
    assert_eq!(failed.get_ref().kind(), io::ErrorKind::StorageFull);
    assert!(updates.next().await.is_none());
    assert_eq!(updates.machine().snapshot().run().unwrap().outcome.as_str(), "success");

    // An error of the agent is the last item, whatever became of the recording.
    let agent = agent_fn(|_| async { Ok(stream::iter([Err::<&str, _>(io::Error::other("reset"))])) });
    let agent = agent.record(move |_: &RunAgentInput| std::future::ready(Ok(full())));
    let mut raw = agent.run(input()).await.unwrap();
    assert!(matches!(raw.next().await, Some(Err(Error::Source(error))) if error.to_string() == "reset"));
    assert!(raw.next().await.is_none() && raw.next().await.is_none());

    // Before anything was asked of the agent.
    let started = Arc::new(Mutex::new(0));
    let count = Arc::clone(&started);
    let agent = agent_fn(move |_| {
        *count.lock().unwrap() += 1;
        async { Ok(stream::iter([STARTED])) }
    });
    let agent = agent.record(|_: &RunAgentInput| std::future::ready(Err::<Writer, _>(io::ErrorKind::NotFound.into())));
    let Err(error) = agent.run(input()).await else { panic!("no error") };
    assert_eq!(error.downcast_ref::<RecordingFailed>().unwrap().get_ref().kind(), io::ErrorKind::NotFound);
    assert_eq!(
        std::error::Error::source(&error).unwrap().to_string(),
        io::Error::from(io::ErrorKind::NotFound).to_string()
    );
    assert_eq!(*started.lock().unwrap(), 0);
}

#[test]
fn combinators_are_send_unpin_and_debug_as_their_source_is() {
    fn check<T: Send + Unpin + Debug>() {}
    check::<Record<RawEventStream, Writer>>();
    check::<Replayed<stream::Iter<std::vec::IntoIter<Result<Vec<u8>, io::Error>>>>>();
    check::<RecordAgent<Replay, fn()>>();
    fn shared<T: Send + Sync + Clone + Debug>() {}
    shared::<Timing>();
    shared::<RecordedError>();
}
