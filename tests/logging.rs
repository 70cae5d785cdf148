//! The log through `tracing`: warnings and rejections, when and how often they are logged.

#![cfg(all(feature = "tracing", feature = "stream"))]
#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use ag_ui_stream::machine::{Enforcer, EventPipeline, Expander, Machine, Pipeline, Push, Verifier};
use ag_ui_stream::{EventStreamExt, Item, Message};
use futures::executor::block_on;
use futures::{StreamExt, stream};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Keeps the log, a line for each entry.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "ag_ui_stream" && *metadata.level() <= Level::DEBUG
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// What the work logs.
fn logged(work: impl FnOnce(&Log)) -> Vec<String> {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || work(&log));
    log.0.lock().unwrap().clone()
}

const UNKNOWN: &str = r#"{"type":"SHOUT"}"#;
const STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const CONTENT: &str = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}"#;

fn count(lines: &[String], level: &str) -> usize {
    lines.iter().filter(|line| line.starts_with(level)).count()
}

#[test]
fn a_pipeline_logs_a_warning_when_it_gives_it() {
    let lines = logged(|log| {
        let mut pipeline = Pipeline::new();
        pipeline.push(UNKNOWN).unwrap();
        assert_eq!(log.0.lock().unwrap().len(), 0, "not before");
        assert!(pipeline.pop().unwrap().warning().is_some());
        assert_eq!(log.0.lock().unwrap().len(), 1);
        assert!(pipeline.pop().is_none());

        let mut pipeline = EventPipeline::new();
        pipeline.push(UNKNOWN).unwrap();
        assert!(pipeline.pop().unwrap().warning().is_some());
    });
    assert_eq!(count(&lines, "WARN"), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains(r#"rule="E1""#) && line.contains("event=0")), "{lines:?}");
}

#[test]
fn a_stream_without_warnings_as_items_logs_them() {
    let lines = logged(|_| {
        let given = block_on(stream::iter([UNKNOWN]).events().collect::<Vec<_>>());
        assert_eq!(given.len(), 1, "only that it is truncated");
    });
    assert_eq!((count(&lines, "WARN"), count(&lines, "DEBUG")), (1, 1), "{lines:?}");
}

#[test]
fn a_single_stage_logs_no_warning_and_its_driver_may() {
    let lines = logged(|_| {
        let mut enforcer = Enforcer::new();
        enforcer.push(UNKNOWN).unwrap();
        let warning = enforcer.pop().and_then(Item::into_warning).unwrap();
        let (mut expander, mut verifier) = (Expander::new(), Verifier::new());
        expander.push(warning).unwrap();
        verifier.push(expander.pop().unwrap()).unwrap();
        verifier.pop().unwrap();
    });
    assert_eq!(lines, Vec::<String>::new());
    let lines = logged(|_| {
        let mut enforcer = Enforcer::new();
        enforcer.push(UNKNOWN).unwrap();
        enforcer.pop().unwrap().warning().unwrap().log();
    });
    assert_eq!(count(&lines, "WARN"), 1, "{lines:?}");
}

#[test]
fn what_serde_reads_logs_its_warnings() {
    let lines = logged(|_| {
        let message = r#"{"id":"m","role":"user","content":"x","mood":"good"}"#;
        serde_json::from_str::<Message>(message).unwrap();
    });
    assert_eq!(count(&lines, "WARN"), 1, "{lines:?}");
    assert!(lines[0].contains(r#"rule="E2""#) && lines[0].contains("/mood"), "{lines:?}");
}

#[test]
fn a_rejection_is_logged_once_with_the_state_that_it_met() {
    let malformed = r#"{"type":"STEP_STARTED"}"#;
    let ambiguous = r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"x"}"#;
    for (fault, rule) in [(CONTENT, "S2"), (malformed, "E5"), (ambiguous, "C2")] {
        let lines = logged(|_| {
            let mut pipeline = Pipeline::new();
            pipeline.push(STARTED).unwrap();
            pipeline.push(fault).unwrap_err();
            pipeline.push(CONTENT).unwrap_err();
        });
        let [line] = &lines[..] else { panic!("{fault}: {lines:?}") };
        assert!(line.starts_with("DEBUG") && line.contains(&format!("rejected: {rule}")), "{fault}: {line}");
        assert!(line.contains("state=run \"r\" active, 0 open"), "{fault}: {line}");
    }
    let lines = logged(|_| {
        Enforcer::new().push(malformed).unwrap_err();
        let (mut enforcer, mut expander) = (Enforcer::new(), Expander::new());
        enforcer.push(ambiguous).unwrap();
        expander.push(enforcer.pop().unwrap()).unwrap_err();
    });
    assert_eq!(count(&lines, "DEBUG"), 2, "{lines:?}");
}

#[test]
fn what_a_pipeline_and_a_stream_show_of_themselves_is_short() {
    let mut pipeline = Pipeline::new();
    pipeline.push(STARTED).unwrap();
    let shown = format!("{pipeline:?}");
    assert_eq!(shown, r#"Pipeline { events: 1, state: run "r" active, 0 open, messages: 0, ready: 1, .. }"#);
    let shown = format!("{:?}", stream::iter([STARTED]).through_raw(pipeline));
    assert!(shown.len() < 160 && shown.contains("state: open"), "{shown}");
}
