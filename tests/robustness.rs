//! Arbitrary input: no panic, and the same verdict in every form (rule P4).

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use ag_ui_stream::machine::{Machine, Pipeline, Push};
use ag_ui_stream::{Error, Options, RawEvent, Rule};
use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

/// Every event of the conformance corpus, as text.
static EVENTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/conformance/streams");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut events = Vec::new();
    for file in files {
        let fixture: std::collections::BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        let stream: Vec<Box<RawValue>> = serde_json::from_str(fixture["stream"].get()).unwrap();
        events.extend(stream.into_iter().map(|event| event.get().to_owned()));
    }
    assert!(events.len() > 300);
    events
});

/// Events of the corpus in any order, some of them damaged.
fn damaged() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let pieces: &[&[u8]] =
        &[b"", b"\"", b"\\", b"{", b"}", b"[", b"]", b",", b":", b"null", b"\\ud83d", b"1e999", b"\xff", b"\0", b"0.5"];
    let damage = (any::<prop::sample::Index>(), 0..3usize, prop::sample::select(pieces.to_vec()));
    let event = (any::<prop::sample::Index>(), prop::option::weighted(0.3, damage)).prop_map(|(at, damage)| {
        let mut bytes = at.get(&EVENTS).clone().into_bytes();
        if let Some((place, len, piece)) = damage {
            let start = place.index(bytes.len());
            let end = (start + len).min(bytes.len());
            bytes.splice(start..end, piece.iter().copied());
        }
        bytes
    });
    prop::collection::vec(event, 1..30)
}

/// What came out, and how it ended; each event in a pipeline that is in a run, so that one fault
/// does not hide the next.
fn verdicts<R: RawEvent>(events: impl Iterator<Item = R>) -> Vec<(Vec<String>, Option<Error>)> {
    events
        .map(|event| {
            let mut pipeline = Options::new().ids(ag_ui_stream::id::SequentialIds::new("id-")).build();
            pipeline.push(r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#).unwrap();
            let error = pipeline.push(event).err();
            let out = std::iter::from_fn(|| pipeline.pop()).map(|update| format!("{:?}", update.item())).collect();
            (out, error)
        })
        .collect()
}

proptest! {
    #![proptest_config(support::seeded(1000))]

    #[test]
    fn nothing_that_arrives_makes_a_pipeline_panic(events in damaged()) {
        let mut pipeline = Pipeline::new();
        for event in &events {
            let pushed = pipeline.push(event.as_slice());
            while let Some(update) = pipeline.pop() {
                // The snapshot can be read and written.
                serde_json::to_string(&update.snapshot().messages()).unwrap();
            }
            if let Err(error) = pushed {
                prop_assert!(!error.to_string().is_empty());
                break;
            }
        }
        let _ = pipeline.finish();
    }

    #[test]
    fn p4_text_bytes_and_values_get_the_same_verdict(events in damaged()) {
        let texts: Vec<&str> = events.iter().filter_map(|event| std::str::from_utf8(event).ok()).collect();
        let as_text = verdicts(texts.iter().copied());
        prop_assert_eq!(&as_text, &verdicts(texts.iter().map(|text| text.as_bytes())));
        // Half a surrogate pair, and a number beyond all doubles, are no `Value`.
        let values: Vec<(usize, Value)> =
            texts.iter().enumerate().filter_map(|(at, text)| Some((at, serde_json::from_str(text).ok()?))).collect();
        let as_value = verdicts(values.iter().map(|(_, value)| value));
        for ((at, value), verdict) in values.iter().zip(as_value) {
            let (out, error) = &as_text[*at];
            // An invalid event is quoted, in the order of its keys.
            let unquoted = |error: &Option<Error>| match error.clone() {
                Some(Error::Malformed(mut error)) if error.rule == Rule::E9 => {
                    error.found.clear();
                    Some(Error::Malformed(error))
                }
                error => error,
            };
            prop_assert_eq!(unquoted(error), unquoted(&verdict.1), "{}", value);
            // The order of keys, which a value may lose, is the order of some warnings.
            let sorted = |out: &[String]| { let mut out = out.to_vec(); out.sort(); out };
            prop_assert_eq!(sorted(out), sorted(&verdict.0), "{}", value);
        }
    }
}
