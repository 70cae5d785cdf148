//! A source, a machine, a reader or a writer that panicked is never called again, and its stream is not a
//! success.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "support/stream.rs"]
mod support;

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;

use ag_ui_stream::error::TruncatedBy;
use ag_ui_stream::machine::{Machine, Push, Upgrader};
use ag_ui_stream::{Error, EventStreamExt, Item};
use futures::Stream;
use futures::stream::FusedStream;
use support::{Remote, Step, gives, run_error, script};
use tokio_test::{assert_ready, task};

const STEP: &str = r#"{"type":"STEP_STARTED","stepName":"s"}"#;
const GOOD: &str = r#"{"type":"RUN_ERROR","message":"m"}"#;

fn panics_once<T: Clone>(item: T) -> (support::Script<T>, Remote) {
    script([Step::Give(item.clone()), Step::Panic, Step::Give(item)])
}

/// One item, a panic, an error that says so, and then nothing more.
#[allow(clippy::unwrap_used, reason = "helper of a test")]
fn check<T: Debug, E: Debug>(stream: impl FusedStream<Item = Result<T, Error<E>>>, remote: &Remote) {
    let mut stream = task::spawn(Box::pin(stream));
    assert!(assert_ready!(stream.poll_next()).unwrap().is_ok());
    assert!(catch_unwind(AssertUnwindSafe(|| stream.poll_next())).is_err());
    let polls = remote.polls();
    assert!(!stream.is_terminated());
    assert_eq!(Stream::size_hint(&**stream).1, Some(1));
    match assert_ready!(stream.poll_next()).unwrap().unwrap_err() {
        Error::Truncated(truncated) => assert_eq!((truncated.by, truncated.events), (TruncatedBy::Panic, 1)),
        other => panic!("{other:?}"),
    }
    assert!(remote.is_dropped());
    for _ in 0..2 {
        assert!(assert_ready!(stream.poll_next()).is_none());
        assert!(stream.is_terminated());
        assert_eq!(Stream::size_hint(&**stream), (0, Some(0)));
    }
    assert_eq!(remote.polls(), polls);
}

macro_rules! check {
    ($($item:expr => $method:ident($($arg:expr)?);)*) => {$({
        let (source, remote) = panics_once($item);
        check(source.$method($($arg)?), &remote);
    })*};
}

#[test]
fn a_source_is_not_polled_again_by_any_combinator() {
    check! {
        GOOD => upgrade();
        GOOD => enforce();
        STEP => take_run();
        GOOD => items();
        GOOD => events();
        GOOD => updates();
        GOOD => snapshots();
        run_error("m") => expand();
        run_error("m") => verify();
        run_error("m") => assemble();
        support::tell("1") => through(support::Toy::default());
    }
}

#[test]
fn a_run_whose_source_panicked_is_truncated_in_the_snapshot() {
    let started = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
    let (source, _) = script([Step::Give(started), Step::Panic]);
    let mut stream = task::spawn(source.updates());
    assert!(assert_ready!(stream.poll_next()).unwrap().is_ok());
    assert!(catch_unwind(AssertUnwindSafe(|| stream.poll_next())).is_err());
    let error = assert_ready!(stream.poll_next()).unwrap().unwrap_err();
    assert_eq!(error.to_string(), "R8: truncated: the source panicked after 1 event");
    assert_eq!(stream.snapshot().run().unwrap().outcome.as_str(), "truncated");
}

/// Panics at a call, and if it is called again after that.
struct Fragile {
    calls: u32,
    at: u32,
    ready: Option<Item>,
    in_pop: bool,
}

impl Fragile {
    fn call(&mut self) {
        self.calls += 1;
        assert!(self.calls < self.at, "call {}", self.calls);
    }
}

impl Push<Item> for Fragile {
    fn push(&mut self, input: Item) -> Result<(), Error> {
        if !self.in_pop {
            self.call();
        }
        self.ready = Some(input);
        Ok(())
    }
}

impl Machine for Fragile {
    type Output = Item;

    fn pop(&mut self) -> Option<Item> {
        if self.in_pop && self.ready.is_some() {
            self.call();
        }
        assert!(self.calls < self.at, "popped after a panic");
        self.ready.take()
    }

    fn finish(&mut self) -> Result<(), Error> {
        panic!("finished after a panic")
    }

    fn cut(&mut self, _: ag_ui_stream::machine::Cut) {
        panic!("cut after a panic")
    }
}

#[test]
fn a_machine_is_not_called_again() {
    for in_pop in [false, true] {
        let (source, remote) = gives([1, 2, 3].map(|_| Item::from(run_error("m"))));
        check(source.through(Fragile { calls: 0, at: 2, ready: None, in_pop }), &remote);
    }
}

#[test]
fn a_stage_whose_id_generator_panicked_is_not_called_again() {
    let thinking = r#"{"type":"THINKING_START"}"#;
    let (source, remote) = gives([GOOD, thinking, GOOD]);
    check(source.through_raw(Upgrader::new().with_ids(|| -> String { panic!("no id") })), &remote);
}

#[cfg(all(feature = "sse", feature = "json-lines"))]
mod bytes {
    use ag_ui_stream::combinator::pieces;
    use ag_ui_stream::{ByteStreamExt, EncodeStreamExt};
    use std::task::{Context, Poll};
    use tokio::io::{AsyncRead, ReadBuf};

    use super::*;

    #[test]
    fn a_source_is_not_polled_again_by_a_codec() {
        let piece = "data: {}\n\n";
        let (source, remote) = panics_once(Ok::<_, support::Broken>(piece));
        check(source.sse(), &remote);
        check! {
            run_error("m") => to_sse();
            run_error("m") => to_json_lines();
            run_error("m") => to_json();
        }
        let (source, remote) = panics_once(run_error("m"));
        check_but_for_the_hint(source.to_sse().keep_alive(std::time::Duration::ZERO), &remote);
    }

    fn check_but_for_the_hint(stream: impl Stream<Item = Result<Vec<u8>, Error>>, remote: &Remote) {
        let mut stream = task::spawn(Box::pin(stream));
        assert!(assert_ready!(stream.poll_next()).unwrap().is_ok());
        assert!(catch_unwind(AssertUnwindSafe(|| stream.poll_next())).is_err());
        assert!(assert_ready!(stream.poll_next()).unwrap().unwrap_err().is_truncated());
        assert!(assert_ready!(stream.poll_next()).is_none());
        assert!(remote.is_dropped());
    }

    /// Panics, or is interrupted for ever.
    struct Reader(bool);

    impl AsyncRead for Reader {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
            assert!(!self.0, "read");
            Poll::Ready(Err(std::io::ErrorKind::Interrupted.into()))
        }
    }

    #[test]
    fn a_reader_is_not_read_again() {
        let mut stream = task::spawn(pieces(Reader(true)));
        assert!(catch_unwind(AssertUnwindSafe(|| stream.poll_next())).is_err());
        let error = assert_ready!(stream.poll_next()).unwrap().unwrap_err();
        assert_eq!(error.to_string(), "the reader panicked");
        assert!(assert_ready!(stream.poll_next()).is_none());
    }

    #[test]
    fn a_reader_that_is_always_interrupted_does_not_keep_the_thread() {
        let mut stream = task::spawn(pieces(Reader(false)));
        for _ in 0..2 {
            tokio_test::assert_pending!(stream.poll_next());
            assert!(stream.is_woken());
        }
    }
}

#[cfg(feature = "record")]
mod record {
    use ag_ui_stream::record::{RecordStreamExt, Timing};
    use std::io;
    use std::task::{Context, Poll};
    use tokio::io::AsyncWrite;

    use super::*;

    #[tokio::test]
    async fn a_recorder_does_not_poll_its_source_again_and_its_recording_is_truncated() {
        let (source, remote) = panics_once(GOOD);
        let mut file = Vec::new();
        let mut stream = task::spawn(source.record(&mut file));
        assert!(assert_ready!(stream.poll_next()).is_some());
        assert!(catch_unwind(AssertUnwindSafe(|| stream.poll_next())).is_err());
        for _ in 0..2 {
            assert!(assert_ready!(stream.poll_next()).is_none());
        }
        assert!(remote.is_dropped());
        drop(stream);
        assert!(String::from_utf8(file).unwrap().contains(" truncated\n"));
    }

    /// Panics when it is called in this way; takes one byte at a time before.
    struct Writer(&'static str, usize);

    impl Writer {
        fn call(&mut self, name: &str) {
            assert!(self.0 != "after", "called again");
            if self.0 == name {
                self.0 = "after";
                panic!("{name}");
            }
        }
    }

    impl AsyncWrite for Writer {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.call("write");
            self.1 += 1;
            Poll::Ready(Ok(if self.0 == "slow" { 1 } else { bytes.len() }))
        }

        fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.call("flush");
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.call("shutdown");
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_writer_is_not_called_again_and_the_stream_goes_on() {
        for call in ["write", "flush", "shutdown"] {
            let (source, _) = script([Step::Give(GOOD), Step::Yield, Step::Give(GOOD)]);
            let mut stream = task::spawn(source.record(Writer(call, 0)));
            let (mut items, mut panics) = (0, 0);
            loop {
                match catch_unwind(AssertUnwindSafe(|| stream.poll_next())) {
                    Ok(Poll::Ready(Some(_))) => items += 1,
                    Ok(Poll::Ready(None)) => break,
                    Ok(Poll::Pending) => {}
                    Err(_) => panics += 1,
                }
            }
            assert_eq!((items, panics), (2, 1), "{call}");
            assert_eq!(stream.error().unwrap().to_string(), "the writer panicked", "{call}");
        }
    }

    #[tokio::test]
    async fn a_writer_that_takes_next_to_nothing_does_not_keep_the_thread() {
        let (source, _) = gives([GOOD]);
        let mut stream = task::spawn(source.record(Writer("slow", 0)));
        let mut polls = 1;
        while stream.poll_next().is_pending() {
            assert!(stream.is_woken());
            assert!(stream.writer().1 <= polls * 64);
            polls += 1;
        }
        assert!(polls > 1);
    }

    #[tokio::test]
    async fn an_event_whose_wait_panicked_is_not_lost() {
        let source = futures::stream::iter([Ok::<_, support::Broken>("data: 1\n\ndata: 2\n\n")]);
        let timing = Timing::custom(|_, _| panic!("no idea"));
        let mut stream = task::spawn(Box::pin(source.replay(timing)));
        for _ in 0..2 {
            assert!(catch_unwind(AssertUnwindSafe(|| stream.poll_next())).is_err());
            assert!(assert_ready!(stream.poll_next()).unwrap().is_ok());
        }
        assert!(assert_ready!(stream.poll_next()).is_none());
    }
}
