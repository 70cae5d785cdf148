//! `take_run`: the events of one run, from a source that goes on after it.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]
#![cfg(feature = "stream")]

#[path = "support/stream.rs"]
mod support;

use ag_ui_stream::event::{RunErrorEvent, RunStartedEvent};
use ag_ui_stream::{Error, Event, EventStreamExt, RawItem, Rule};
use futures::executor::block_on;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use support::{Step, script};

const STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const FINISHED: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;
const FAILED: &str = r#"{"type":"RUN_ERROR","message":"no"}"#;

#[test]
fn it_ends_with_the_terminal_event_and_the_source_is_not_polled_again() {
    for last in [FINISHED, FAILED] {
        let (source, remote) = script([Step::Give(STARTED), Step::Yield, Step::Give(last), Step::Panic]);
        let mut run = Box::pin(source.take_run());
        let items: Vec<_> = block_on(run.by_ref().try_collect()).unwrap();
        let expected = [STARTED, last].into_iter().enumerate();
        let expected = expected.map(|(at, text)| RawItem::Event { raw: text.into(), index: at as u64 });
        assert_eq!(items, expected.collect::<Vec<_>>());
        assert!(remote.is_dropped() && run.get_ref().is_none());
    }
}

#[test]
fn values_and_typed_events_end_a_run_too() {
    let values: Vec<Value> =
        [STARTED, FAILED, STARTED].iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    assert_eq!(block_on(stream::iter(values).take_run().count()), 2);
    let events = [Event::from(RunStartedEvent::new("t", "r")), RunErrorEvent::new("no").into()];
    assert_eq!(block_on(stream::iter(events).chain(stream::pending()).take_run().count()), 2);
}

#[test]
fn an_event_that_quotes_a_terminal_event_ends_nothing() {
    let custom = json!({"name": FINISHED, "value": {"type": "RUN_FINISHED"}, "type": "CUSTOM"}).to_string();
    let source = [STARTED.to_owned(), custom, FINISHED.to_owned(), FAILED.to_owned()];
    assert_eq!(block_on(stream::iter(source).take_run().count()), 3);
}

#[test]
fn r4_a_failure_that_comes_late_is_not_seen() {
    let outcome =
        |updates: Vec<ag_ui_stream::Update>| updates.last().unwrap().snapshot().run().unwrap().outcome.as_str();
    let source = || stream::iter([STARTED, FINISHED, FAILED]);
    assert_eq!(outcome(block_on(source().updates().try_collect()).unwrap()), "error");
    assert_eq!(outcome(block_on(source().take_run().updates().try_collect()).unwrap()), "success");
}

#[test]
fn r8_a_source_that_ends_or_fails_within_its_run_is_truncated() {
    let error = block_on(stream::iter([STARTED]).take_run().events().try_collect::<Vec<_>>()).unwrap_err();
    assert!(error.is_truncated());
    let source = stream::iter([Ok(STARTED), Err("reset")]);
    let error = block_on(source.take_run().events().try_collect::<Vec<_>>()).unwrap_err();
    assert_eq!(error, Error::Source("reset"));
    assert!(error.is_transport() && error.rule().is_none());
}

#[test]
fn places_and_warnings_of_a_stage_before_are_kept() {
    let thinking = r#"{"type":"THINKING_START","title":"lost"}"#;
    let items: Vec<_> =
        block_on(stream::iter([STARTED, thinking, FINISHED, FAILED]).upgrade().take_run().try_collect()).unwrap();
    assert!(items.iter().any(|item| item.warning().is_some_and(|warning| warning.rule == Rule::B1)));
    assert!(matches!(items.last(), Some(RawItem::Event { index: 2, .. })), "{items:?}");
}
