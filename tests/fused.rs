//! Every combinator is fused, whatever its source: not terminated before its end, terminated after it,
//! and it does not poll the source again (which would panic).

#[path = "support/stream.rs"]
mod support;

use ag_ui_stream::EventStreamExt;
use futures::Stream;
use futures::stream::FusedStream;
use support::{Broken, Step, Toy, run_error, script};
use tokio_test::{assert_pending, assert_ready, task};

const BAD: &str = r#"{"type":"RUN_ERROR"}"#;
const STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const GOOD: &str = r#"{"type":"RUN_ERROR","message":"m"}"#;

#[allow(clippy::unwrap_used, reason = "helper of a test")]
fn check<S: FusedStream<Item: std::fmt::Debug>>(stream: S, items: usize, last_is_error: fn(&S::Item) -> bool) {
    let mut stream = task::spawn(Box::pin(stream));
    assert_pending!(stream.poll_next());
    for at in 0..items {
        assert!(!stream.is_terminated());
        let item = assert_ready!(stream.poll_next()).unwrap();
        assert_eq!(last_is_error(&item), at + 1 == items, "item {at}");
    }
    for _ in 0..3 {
        assert!(assert_ready!(stream.poll_next()).is_none());
        assert!(stream.is_terminated());
        assert_eq!(Stream::size_hint(&**stream), (0, Some(0)));
    }
}

fn ends<T>(item: T) -> impl Stream<Item = T> {
    script([Step::Yield, Step::Give(item)]).0
}

fn fails<T>(item: T) -> impl Stream<Item = Result<T, Broken>> {
    script([Step::Yield, Step::Give(Ok(item)), Step::Give(Err(Broken))]).0
}

#[test]
fn at_the_end_of_the_source() {
    check(ends(GOOD).upgrade(), 1, Result::is_ok);
    check(ends(GOOD).enforce(), 1, Result::is_ok);
    check(ends(run_error("m")).expand(), 1, Result::is_ok);
    check(ends(run_error("m")).verify(), 1, Result::is_ok);
    check(ends(run_error("m")).assemble(), 1, Result::is_ok);
    check(ends(run_error("m")).through(Toy::ending_in(1, false)), 1, Result::is_ok);
    check(ends(GOOD).take_run(), 1, Result::is_ok);
    check(ends(GOOD).items(), 1, Result::is_ok);
    check(ends(GOOD).events(), 1, Result::is_ok);
    check(ends(GOOD).updates(), 1, Result::is_ok);
    check(ends(GOOD).snapshots(), 1, Result::is_ok);
}

#[test]
fn after_an_error_of_the_source() {
    let fails_flat = |item| script([Step::Yield, Step::Give(Ok(item)), Step::Give(Err(source_error()))]).0;
    check(fails(GOOD).upgrade(), 2, Result::is_err);
    check(fails(GOOD).enforce(), 2, Result::is_err);
    check(fails_flat(run_error("m")).expand(), 2, Result::is_err);
    check(fails_flat(run_error("m")).verify(), 2, Result::is_err);
    check(fails_flat(run_error("m")).assemble(), 2, Result::is_err);
    check(fails_flat(run_error("m")).through(Toy::default()), 1, Result::is_err);
    check(fails(STARTED).take_run(), 2, Result::is_err);
    check(fails(GOOD).items(), 2, Result::is_err);
    check(fails(GOOD).events(), 2, Result::is_err);
    check(fails(GOOD).updates(), 2, Result::is_err);
    check(fails(GOOD).snapshots(), 2, Result::is_err);
}

#[test]
fn after_an_error_of_the_stage() {
    let rejects = || script([Step::Yield, Step::Give(GOOD), Step::Give(BAD), Step::Give(GOOD)]).0;
    check(rejects().enforce(), 2, Result::is_err);
    check(rejects().items(), 2, Result::is_err);
    check(rejects().events(), 2, Result::is_err);
    check(rejects().updates(), 2, Result::is_err);
    check(rejects().snapshots(), 2, Result::is_err);
    let late = || script([Step::Yield, Step::Give(run_error("m")), Step::Give(run_error("again"))]).0;
    check(late().verify(), 2, Result::is_err);
}

#[test]
fn after_a_truncation() {
    let cut = || script([Step::Yield, Step::Give(STARTED)]).0;
    check(cut().items(), 2, Result::is_err);
    check(cut().events(), 2, Result::is_err);
    check(cut().updates(), 2, Result::is_err);
    check(cut().snapshots(), 2, Result::is_err);
}

fn source_error() -> ag_ui_stream::Error<Broken> {
    ag_ui_stream::Error::Source(Broken)
}
