//! Decoders and encoders over streams: any cut of the bytes, the order of events and errors, the end.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]
#![cfg(all(feature = "stream", feature = "sse", feature = "json-lines", feature = "protobuf"))]

use std::fmt::Debug;
use std::fs;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use ag_ui_stream::codec::{Decoder, Encoder, Format, JsonEncoder, JsonLinesDecoder, ProtobufDecoder, SseDecoder};
use ag_ui_stream::combinator::{Decode, Encode, KeepAlive, Pieces, ToJson, pieces};
use ag_ui_stream::error::TruncatedBy;
use ag_ui_stream::machine::Indexed;
use ag_ui_stream::machine::Machine;
use ag_ui_stream::{ByteStreamExt, EncodeStreamExt, Error, Event, EventStreamExt, Item, Limits, RawItem, Rule};
use futures::executor::block_on;
use futures::stream::{self, FusedStream, Stream};
use futures::{StreamExt, TryStreamExt};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio_test::{assert_pending, assert_ready, assert_ready_eq, task};

mod support {
    #![allow(unreachable_pub, reason = "each test has its own copy")]
    pub mod stream;
}

use support::stream::{Broken, Step, gives, greedy, next_after, script};

const FORMATS: [Format; 3] = [Format::Sse, Format::JsonLines, Format::Protobuf];

/// The streams of the collected cases.
fn cases() -> Vec<(String, Vec<Value>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases");
    let mut cases = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.extension().is_some_and(|extension| extension == "json") {
            // One has halves of surrogate pairs, which `Value` cannot hold.
            let Ok(case) = serde_json::from_str::<Value>(&fs::read_to_string(&path).unwrap()) else { continue };
            // Some are bytes, and no list of events.
            if let Some(events) = case["stream"].as_array() {
                cases.push((path.display().to_string(), events.clone()));
            }
        }
    }
    assert!(cases.len() > 30, "the cases are there");
    cases.sort_by(|one, other| one.0.cmp(&other.0));
    cases
}

/// The items of a stream, and the error at its end.
fn collect<T, E>(stream: impl Stream<Item = Result<T, Error<E>>>) -> (Vec<T>, Option<Error<E>>) {
    let mut stream = std::pin::pin!(stream);
    let mut items = Vec::new();
    loop {
        match block_on(stream.next()) {
            Some(Ok(item)) => items.push(item),
            Some(Err(error)) => return (items, Some(error)),
            None => return (items, None),
        }
    }
}

type Decoded = (Vec<RawItem>, Option<Error<Broken>>);

fn decode<'a>(format: Format, bytes: impl IntoIterator<Item = &'a [u8]>) -> Decoded {
    let source = stream::iter(bytes.into_iter().map(Ok::<_, Broken>).collect::<Vec<_>>());
    collect(source.decode(Decoder::new(format)))
}

fn enforced(items: Vec<RawItem>) -> (Vec<Item>, Option<Error>) {
    collect(stream::iter(items).enforce())
}

/// The events that enforcement lets through, without the places of those it does not.
fn typed(events: &[Value]) -> Vec<Event> {
    collect(stream::iter(events.to_vec()).enforce()).0.into_iter().filter_map(Item::into_event).collect()
}

fn capture(format: Format, events: &[Value]) -> Vec<u8> {
    typed(events).iter().flat_map(|event| format.encode(event).unwrap()).collect()
}

#[test]
fn p4_an_event_is_the_same_whatever_carried_it() {
    for (name, events) in cases() {
        let expected = typed(&events);
        for format in FORMATS {
            let (items, error) = decode(format, [&capture(format, &events)[..]]);
            assert_eq!(error, None, "{name}");
            let (items, error) = enforced(items);
            assert_eq!(error, None, "{name}");
            let indexes: Vec<_> = items.iter().map(index_of).collect();
            assert_eq!(indexes, (0..expected.len() as u64).map(Some).collect::<Vec<_>>(), "{name}");
            let events: Vec<_> = items.into_iter().filter_map(Item::into_event).collect();
            assert_eq!(events, expected, "{name} as {format:?}");
        }
    }
}

fn index_of(item: &Item) -> Option<u64> {
    match item {
        Item::Event(indexed) => indexed.index(),
        Item::Warning(_) => None,
    }
}

#[test]
fn t1_t2_a_capture_cut_at_every_byte_gives_the_same() {
    for (name, events) in cases().into_iter().step_by(5) {
        for format in FORMATS {
            let bytes = capture(format, &events);
            let whole = decode(format, [&bytes[..]]);
            assert_eq!(whole.1, None);
            for at in 0..=bytes.len() {
                let (one, other) = bytes.split_at(at);
                assert_eq!(decode(format, [one, other]), whole, "{name} as {format:?}, cut at {at}");
            }
            assert_eq!(decode(format, bytes.chunks(1)), whole, "{name} as {format:?}");
        }
    }
}

#[test]
fn t1_every_line_end_gives_the_same() {
    let (_, events) = cases().swap_remove(0);
    let bytes = capture(Format::Sse, &events);
    let whole = decode(Format::Sse, [&bytes[..]]);
    let text = String::from_utf8(bytes).unwrap();
    for end in ["\r\n", "\r"] {
        let text = text.replace('\n', end);
        assert_eq!(decode(Format::Sse, [text.as_bytes()]), whole);
        assert_eq!(decode(Format::Sse, text.as_bytes().chunks(1)), whole);
    }
}

#[test]
fn t3_a_capture_that_breaks_off_anywhere_is_never_whole() {
    let (_, events) = cases().swap_remove(0);
    for format in FORMATS {
        let bytes = capture(format, &events);
        // JSON says itself where it ends; all that may be missing is the end of its line.
        let dispensable =
            if format == Format::Protobuf { 0 } else { bytes.iter().rev().take_while(|byte| **byte == b'\n').count() };
        for len in 0..bytes.len() - dispensable {
            let source = stream::iter([Ok::<_, Broken>(&bytes[..len])]);
            let (_, error) = collect(source.decode(Decoder::new(format)).events());
            assert!(matches!(error, Some(Error::Truncated(_))), "{format:?} at {len}: {error:?}");
        }
        for len in bytes.len() - dispensable..=bytes.len() {
            assert_eq!(decode(format, [&bytes[..len]]), decode(format, [&bytes[..]]), "{format:?} at {len}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_cuts_of_any_case_give_the_same(
        case in any::<proptest::sample::Index>(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..20),
    ) {
        let cases = cases();
        let (_, events) = &cases[case.index(cases.len())];
        for format in FORMATS {
            let bytes = capture(format, events);
            let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).chain([bytes.len()]).collect();
            at.sort_unstable();
            let mut from = 0;
            let pieces: Vec<_> = at.into_iter().map(|to| &bytes[std::mem::replace(&mut from, to)..to]).collect();
            prop_assert_eq!(decode(format, pieces), decode(format, [&bytes[..]]));
        }
    }
}

#[test]
fn what_came_before_an_error_of_the_decoder_is_given_before_it() {
    let decoder = SseDecoder::new().with_limits(Limits { max_event_bytes: 10, ..Limits::default() });
    let (source, remote) =
        gives([Ok::<_, Broken>("data: 1\n\ndata: 2\n\ndata: 12345678901\n\ndata: 3\n\n"), Ok("data: 4\n\n")]);
    let mut stream = task::spawn(source.decode(decoder));
    for index in 0..2 {
        let item = assert_ready!(stream.poll_next());
        assert!(matches!(item, Some(Ok(RawItem::Event { index: at, .. })) if at == index), "{item:?}");
    }
    let error = assert_ready!(stream.poll_next()).unwrap().unwrap_err();
    assert_eq!(error.to_string(), "event 2 is longer than 10 bytes, the `max_event_bytes` of the decoder");
    assert!(remote.is_dropped());
    assert_eq!(remote.polls(), 1, "nothing is asked of the source after the fault");
    assert!(stream.is_terminated());
    assert_ready_eq!(stream.poll_next(), None);
}

#[test]
fn what_came_before_an_error_of_the_source_is_given_and_the_error_keeps_its_type() {
    let (source, remote) = gives([Ok("data: 1\n\ndata: 2"), Err(Broken), Ok("\n\n")]);
    let mut stream = task::spawn(source.sse());
    assert!(matches!(assert_ready!(stream.poll_next()), Some(Ok(RawItem::Event { index: 0, .. }))));
    assert_ready_eq!(stream.poll_next(), Some(Err(Error::Source(Broken))));
    assert!(remote.is_dropped());
    assert_eq!(stream.machine().partial(), b"2", "what was begun is still to be seen");
    assert_ready_eq!(stream.poll_next(), None);
}

#[test]
fn t1a_an_incomplete_last_event_is_a_truncation_through_the_whole_pipeline() {
    let text = "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\ndata: {\"type\":\"RUN_FINI";
    let (events, error) = collect(stream::iter([Ok::<_, Broken>(text)]).sse().events());
    assert_eq!(events.len(), 1);
    let Some(Error::Truncated(truncated)) = error else { panic!("{error:?}") };
    assert_eq!((truncated.by, truncated.events), (TruncatedBy::Partial, 1));
}

#[test]
fn t1a_a_body_without_events_is_never_a_success() {
    for body in ["", ": nothing\n\n", "<!doctype html>\n<html><body>Bad gateway</body></html>\n", "\u{feff}", "\n\n\n"]
    {
        let (events, error) = collect(stream::iter([Ok::<_, Broken>(body)]).sse().events());
        assert_eq!(events, []);
        assert!(error.is_some_and(|error| error.is_truncated()), "{body:?}");
    }
    let (_, error) = collect(stream::iter([Ok::<_, Broken>("<html>\n")]).json_lines().events());
    assert_eq!(error.unwrap().rule(), Some(Rule::E9));
    let (_, error) = collect(stream::iter([Ok::<_, Broken>("<html><body>Bad gateway")]).protobuf().events());
    assert!(matches!(error, Some(Error::LimitExceeded(_))), "{error:?}");
}

#[test]
fn t1a_frames_that_are_not_events_are_fatal_and_tolerances_warn_in_order() {
    let text = "data: {\"type\":\"RUN_ERROR\",\"message\":\"no\"}\n\ndata:\n\ndata: [DONE]\n\n";
    let (events, error) = collect(stream::iter([Ok::<_, Broken>(text)]).sse().events());
    assert_eq!(events.len(), 1);
    let error = error.unwrap();
    assert_eq!((error.rule(), error.event_index()), (Some(Rule::E9), Some(1)));

    let decoder = SseDecoder::new().tolerate_done().tolerate_empty_data();
    let (items, error) = collect(stream::iter([Ok::<_, Broken>(text)]).decode(decoder).items());
    assert_eq!(error, None);
    let warned: Vec<_> = items.iter().map(|item| item.warning().map(|warning| (warning.rule, warning.event))).collect();
    assert_eq!(warned, [None, Some((Rule::T1a, 1)), Some((Rule::T1a, 2))]);
}

#[test]
fn a_pending_source_wakes_the_task_and_nothing_is_lost() {
    let (source, remote) = script([
        Step::Give(Ok::<_, Broken>("data: 1\n")),
        Step::Park,
        Step::Give(Ok("\n")),
        Step::Yield,
        Step::Give(Ok("data: 2\n\n")),
    ]);
    let mut stream = task::spawn(source.sse());
    assert_pending!(stream.poll_next());
    assert!(!stream.is_woken());
    remote.wake();
    assert!(stream.is_woken());
    assert!(matches!(assert_ready!(stream.poll_next()), Some(Ok(RawItem::Event { index: 0, .. }))));
    assert_pending!(stream.poll_next());
    assert!(stream.is_woken());
    assert!(matches!(assert_ready!(stream.poll_next()), Some(Ok(RawItem::Event { index: 1, .. }))));
    assert_ready_eq!(stream.poll_next(), None);
}

#[test]
fn comments_without_end_let_other_tasks_run() {
    let mut stream = task::spawn(stream::repeat(Ok::<_, Broken>(": and on ")).sse());
    for _ in 0..3 {
        assert_pending!(stream.poll_next());
        assert!(stream.is_woken());
    }
}

#[test]
fn a_decoder_reads_no_further_than_the_event_that_is_asked_for() {
    for format in FORMATS {
        let events: Vec<_> = (0..100).map(|at| json!({"type": "RUN_ERROR", "message": at.to_string()})).collect();
        let piece = capture(format, &events);
        let mut stream = task::spawn(stream::iter([Ok::<_, Broken>(&piece)]).decode(Decoder::new(format)));
        for given in 1..=100 {
            assert!(assert_ready!(stream.poll_next()).unwrap().is_ok());
            assert_eq!(stream.machine().event_count(), given);
            assert_eq!(stream.size_hint(), (0, None), "what was not read is no promise");
        }
        assert_ready_eq!(stream.poll_next(), None);
        assert_eq!(stream.size_hint(), (0, Some(0)));
    }
}

#[test]
fn a_fault_is_given_by_the_next_call() {
    let faulty = || {
        let mut decoder = SseDecoder::new().with_limits(Limits { max_event_bytes: 4, ..Limits::default() });
        decoder.push(b"data: 1\n\ndata: 12345\n\ndata: 2\n\n").unwrap();
        assert!(decoder.pop().is_some());
        assert_eq!(decoder.pop(), None);
        decoder
    };
    let told = "event 1 is longer than 4 bytes, the `max_event_bytes` of the decoder";
    assert_eq!(faulty().fault().unwrap().to_string(), told);
    assert_eq!(faulty().finish().unwrap_err().to_string(), told);
    let mut decoder = faulty();
    assert_eq!(decoder.push(b"data: 3\n\n").unwrap_err().to_string(), told);
    assert_eq!(
        (decoder.fault(), decoder.push(b"data: 3\n\n"), decoder.pop(), decoder.finish()),
        (None, Ok(()), None, Ok(()))
    );
}

#[test]
fn input_pushed_before_all_was_popped_is_not_lost() {
    let mut decoder = SseDecoder::new();
    decoder.push(b"data: 0\n\ndata: 1\n\nda").unwrap();
    assert!(decoder.pop().is_some());
    decoder.push(b"ta: 2\n\ndata: 3").unwrap();
    decoder.finish().unwrap();
    let left: Vec<_> = std::iter::from_fn(|| decoder.pop()).map(|item| item.into_raw().unwrap()).collect();
    assert_eq!(left, [b"1", b"2", b"3"].map(|text| ag_ui_stream::Raw::Bytes(text.to_vec().into())));
}

#[test]
fn each_decoder_has_a_method_and_one_name_for_all() {
    let events = [json!({"type": "RUN_ERROR", "message": "no"})];
    let source = |format| stream::iter([Ok::<_, Broken>(capture(format, &events))]);
    for (format, items) in FORMATS.into_iter().zip([
        collect(source(Format::Sse).sse()),
        collect(source(Format::JsonLines).json_lines()),
        collect(source(Format::Protobuf).protobuf()),
    ]) {
        let mut decoder = Decoder::new(format).with_limits(Limits { max_event_bytes: 100, ..Limits::default() });
        assert_eq!((decoder.format(), decoder.event_count()), (format, 0));
        decoder.push(capture(format, &events)).unwrap();
        assert_eq!(decoder.pop(), items.0.into_iter().next());
        assert_eq!((decoder.event_count(), decoder.partial()), (1, &b""[..]));
        decoder.finish().unwrap();
    }
}

#[test]
fn events_are_written_one_piece_each_and_read_back() {
    for format in FORMATS {
        let events = typed(&[
            json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}),
            json!({"type": "CUSTOM", "name": "line\nend\r\u{2028}", "value": {"a": "\u{0}"}}),
            json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}),
        ]);
        let (pieces, error) = collect(stream::iter(events.clone()).encode(format));
        assert_eq!((pieces.len(), error), (3, None));
        let (items, error) = decode(format, pieces.iter().map(Vec::as_slice));
        assert_eq!(error, None);
        let read: Vec<_> = enforced(items).0.into_iter().filter_map(Item::into_event).collect();
        assert_eq!(read, events, "{format:?}");
        if format != Format::Protobuf {
            let lines = pieces.concat().iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
            assert_eq!(lines, if format == Format::Sse { 6 } else { 3 }, "LF only, and only between events");
        }
    }
}

#[test]
fn a_text_delta_is_written_as_serde_writes_it() {
    let texts = (0..=0x7f_u8).map(char::from).chain(['\u{2028}', 'é', '😀']);
    let texts: Vec<_> =
        texts.flat_map(|text| [0, 3, 8, 15].map(|before| "x".repeat(before) + &text.to_string())).collect();
    for text in texts.iter().map(String::as_str) {
        for members in [
            json!({"messageId": "m", "delta": text}),
            json!({"messageId": text, "delta": "d"}),
            json!({"messageId": "m", "delta": text, "timestamp": 1}),
            json!({"messageId": "m", "delta": text, "rawEvent": {"x": 1}}),
            json!({"messageId": "m", "delta": text, "metadata": {"x": 1}}),
            json!({"messageId": "m", "delta": text, "subagentRunId": text}),
        ] {
            let mut event = json!({"type": "TEXT_MESSAGE_CONTENT"});
            event.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            let [event] = &typed(&[event])[..] else { panic!("one event") };
            let expected = serde_json::to_string(event).unwrap() + "\n";
            assert_eq!(String::from_utf8(Format::JsonLines.encode(event).unwrap()).unwrap(), expected);
        }
    }
}

#[test]
fn a_gateway_writes_what_is_legal_then_fails_as_its_source_does() {
    let text = concat!(
        "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\",\"extra\":1}\r\n\r\n",
        "data: {\"type\":\"TEXT_MESSAGE_CHUNK\",\"messageId\":\"m\",\"delta\":\"hi\"}\r\n\r\n",
        "data: {\"type\":\"TOOL_CALL_END\",\"toolCallId\":\"c\"}\r\n\r\n",
    );
    let (pieces, error) = collect(stream::iter([Ok::<_, Broken>(text)]).sse().items().to_sse());
    let written = String::from_utf8(pieces.concat()).unwrap();
    assert_eq!(
        written,
        concat!(
            "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n",
            "data: {\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"m\"}\n\n",
            "data: {\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\",\"delta\":\"hi\"}\n\n",
            "data: {\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"m\"}\n\n",
        )
    );
    assert_eq!(error.unwrap().rule(), Some(Rule::S2));
}

#[test]
fn what_an_encoder_gave_waits_until_it_is_popped() {
    let event = || typed(&[json!({"type": "RUN_ERROR", "message": "no"})]).remove(0);
    let (mut bytes, mut texts) = (Encoder::new(Format::JsonLines), JsonEncoder::new());
    for _ in 0..2 {
        bytes.push(event()).unwrap();
        texts.push(event()).unwrap();
    }
    assert_eq!(std::iter::from_fn(|| bytes.pop()).count(), 2);
    assert_eq!(std::iter::from_fn(|| texts.pop()).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn keep_alive_comments_come_while_no_event_does() {
    let (send, receive) = tokio::sync::mpsc::channel::<Event>(4);
    let source = tokio_stream::wrappers::ReceiverStream::new(receive);
    let mut body = source.to_sse().keep_alive(Duration::from_secs(10));
    let event = || typed(&[json!({"type": "RUN_ERROR", "message": "no"})]).remove(0);
    let start = tokio::time::Instant::now();
    let seconds = || start.elapsed().as_secs();

    assert_eq!(body.next().await.unwrap().unwrap(), b":\n\n");
    assert_eq!(seconds(), 10);
    // A next() that is dropped does not put it off.
    assert!(tokio::time::timeout(Duration::from_secs(6), body.next()).await.is_err());
    assert_eq!(body.next().await.unwrap().unwrap(), b":\n\n");
    assert_eq!(seconds(), 20);
    // An event does.
    tokio::time::sleep(Duration::from_secs(7)).await;
    send.send(event()).await.unwrap();
    assert!(body.next().await.unwrap().unwrap().starts_with(b"data: "));
    assert_eq!(body.next().await.unwrap().unwrap(), b":\n\n");
    assert_eq!(seconds(), 37);
    // At the end there is nothing to keep alive.
    send.send(event()).await.unwrap();
    drop(send);
    assert!(body.next().await.unwrap().unwrap().starts_with(b"data: "));
    assert!(!body.is_terminated());
    assert_eq!(body.next().await, None);
    assert!(body.is_terminated());
    assert_eq!((body.next().await, seconds()), (None, 37));

    assert_eq!(decode(Format::Sse, [&b":\n\ndata: 1\n:\n\n:\n\n"[..]]).0.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn keep_alive_comments_come_though_the_source_uses_up_the_budget_of_its_task() {
    let second = Duration::from_secs(1);
    let mut body = greedy::<Event>().to_sse().keep_alive(second);
    for _ in 0..3 {
        assert_eq!(next_after(&mut body, second).await.unwrap().unwrap(), b":\n\n");
    }
}

#[tokio::test(start_paused = true)]
async fn keep_alive_after_longer_than_the_clock_goes_is_never() {
    let mut body = stream::pending::<Event>().to_sse().keep_alive(Duration::MAX);
    assert!(tokio::time::timeout(Duration::from_secs(3600), body.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn keep_alive_without_a_time_gives_no_comments() {
    let mut body = task::spawn(stream::pending::<Event>().to_sse().keep_alive(Duration::ZERO));
    assert_pending!(body.poll_next());
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_pending!(body.poll_next());
}

#[tokio::test(start_paused = true)]
async fn keep_alive_leaves_formats_without_comments_alone() {
    for format in [Format::JsonLines, Format::Protobuf] {
        let mut body = stream::pending::<Event>().encode(format).keep_alive(Duration::from_secs(1));
        assert!(tokio::time::timeout(Duration::from_secs(60), body.next()).await.is_err());
    }
}

#[tokio::test]
async fn a_reader_is_read_piece_by_piece_to_its_end() {
    let reader = tokio_test::io::Builder::new()
        .read(b"{\"type\":\"RUN_ST")
        .wait(Duration::from_millis(1))
        .read(b"ARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n{\"type\":\"RUN_FINISHED\",")
        .read(b"\"threadId\":\"t\",\"runId\":\"r\"}")
        .build();
    let events: Vec<_> = pieces(reader).json_lines().events().try_collect().await.unwrap();
    assert_eq!(events.len(), 2);

    let long = vec![b' '; 100_000];
    let read: Vec<_> = pieces(&long[..]).try_collect().await.unwrap();
    assert_eq!(read.concat(), long);
    let mut reader = pieces(&b""[..]);
    assert!(!reader.is_terminated());
    assert!(reader.next().await.is_none());
    assert!(reader.is_terminated() && reader.get_ref().is_none());
}

#[tokio::test]
async fn an_error_of_a_reader_is_the_last_item_and_an_interruption_is_not_an_error() {
    let reader = tokio_test::io::Builder::new()
        .read(b"{}\n{")
        .read_error(io::ErrorKind::Interrupted.into())
        .read(b"}\n")
        .read_error(io::ErrorKind::ConnectionReset.into())
        .build();
    let mut stream = pieces(reader).json_lines();
    assert!(stream.next().await.unwrap().is_ok());
    assert!(stream.next().await.unwrap().is_ok());
    let Some(Err(Error::Source(error))) = stream.next().await else { panic!("no error") };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_socket_that_drips_gives_the_same() {
    let (_, events) = cases().swap_remove(0);
    let bytes = capture(Format::Protobuf, &events);
    let (mut near, far) = tokio::io::duplex(3);
    let writer = tokio::spawn({
        let bytes = bytes.clone();
        async move { tokio::io::AsyncWriteExt::write_all(&mut near, &bytes).await.unwrap() }
    });
    let items: Vec<_> = pieces(far).protobuf().try_collect().await.unwrap();
    writer.await.unwrap();
    assert_eq!(items, decode(Format::Protobuf, [&bytes[..]]).0);
}

#[test]
fn media_types_find_their_formats() {
    for format in FORMATS {
        assert_eq!(Format::from_content_type(format.media_type()), Some(format));
        let shouted = format!(" {} ; charset=utf-8", format.media_type().to_uppercase());
        assert_eq!(Format::from_content_type(&shouted), Some(format));
    }
    for other in ["", "text/html", "text/event-stream2", "application/json", "*/*", ";"] {
        assert_eq!(Format::from_content_type(other), None, "{other}");
    }
}

#[test]
fn an_encoder_numbers_what_has_no_place_of_its_own() {
    let mut encoder = Encoder::new(Format::JsonLines);
    let event = typed(&[json!({"type": "STEP_STARTED", "stepName": "s"})]).remove(0);
    encoder.push(Indexed::from(event)).unwrap();
    assert_eq!((encoder.ready(), encoder.event_count()), (1, 1));
    assert!(encoder.pop().is_some());
    assert_eq!(encoder.pop(), None);
}

#[test]
fn what_is_encoded_is_fused_and_hints_at_what_is_to_come() {
    fn check<S: FusedStream<Item: Debug>>(stream: S, most: Option<usize>) {
        let mut stream = task::spawn(Box::pin(stream));
        assert_pending!(stream.poll_next());
        assert_eq!((Stream::size_hint(&**stream).1, stream.is_terminated()), (most, false));
        assert!(assert_ready!(stream.poll_next()).is_some());
        for _ in 0..2 {
            assert!(assert_ready!(stream.poll_next()).is_none());
            assert_eq!((Stream::size_hint(&**stream), stream.is_terminated()), ((0, Some(0)), true));
        }
    }
    let step = || typed(&[json!({"type": "STEP_STARTED", "stepName": "s"})]).remove(0);
    let source = || script([Step::Yield, Step::Give(step())]).0;
    let most = source().encode(Format::Sse).size_hint().1;
    check(source().encode(Format::Protobuf), most);
    check(source().to_json(), most);
    check(source().to_sse(), most);
}

#[test]
fn combinators_are_send_unpin_and_debug_as_their_source_is() {
    fn check<T: Send + Unpin + Debug>() {}
    type Source = stream::Iter<std::vec::IntoIter<Result<Vec<u8>, io::Error>>>;
    type Boxed = Pin<Box<dyn Stream<Item = Event> + Send>>;
    check::<Decode<Source, SseDecoder>>();
    check::<Decode<Source, JsonLinesDecoder>>();
    check::<Decode<Source, ProtobufDecoder>>();
    check::<Decode<Source, Decoder>>();
    check::<Encode<Boxed>>();
    check::<KeepAlive<Boxed>>();
    check::<ToJson<Boxed>>();
    check::<Pieces<&[u8]>>();
    let text = format!("{:?}", stream::iter([Ok::<_, Broken>("")]).sse());
    assert!(text.starts_with("Decode { state: open, machine: SseDecoder {"), "{text}");
}
