//! The pipeline, with its fast paths, gives the same as its stages one by one.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

use support::cases;

use ag_ui_stream::machine::{EventPipeline, Machine, Pipeline, Push};
use ag_ui_stream::{Error, Item, Limits, Options};
use proptest::prelude::*;
use serde_json::json;
use support::stages::{one_by_one, whole, without_assembly};

#[test]
fn r8_a_run_that_lost_an_event_is_never_a_success_whatever_is_pushed_later() {
    let long = format!(r#"{{"type":"CUSTOM","name":"{}","value":0}}"#, "x".repeat(200));
    for fault in cases([
        "{",
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m"}"#,
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
        &long,
    ]) {
        let builder = || Options::new().limits(Limits { max_event_bytes: 128, ..Limits::default() });
        let (mut pipeline, mut events): (Pipeline, EventPipeline) = (builder().build(), builder().build_events());
        for event in
            [r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#, r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#]
        {
            pipeline.push(event).unwrap();
            events.push(event).unwrap();
        }
        let error: Error = pipeline.push(fault).unwrap_err();
        assert_eq!(events.push(fault).unwrap_err(), error);
        assert_eq!(
            (std::iter::from_fn(|| pipeline.pop()).count(), std::iter::from_fn(|| events.pop()).count()),
            (2, 2)
        );
        for event in [
            r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}"#,
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"n","delta":"x"}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#,
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
            r#"{"type":"RUN_STARTED","threadId":"t","runId":"r2"}"#,
        ] {
            assert_eq!(pipeline.push(event).unwrap_err(), error, "{event}");
            assert_eq!(events.push(event).unwrap_err(), error, "{event}");
        }
        assert_eq!((pipeline.finish().unwrap_err(), events.finish().unwrap_err()), (error.clone(), error));
        assert!(pipeline.pop().is_none() && events.pop().is_none());
        assert_eq!(pipeline.snapshot().run().unwrap().outcome.as_str(), "rejected");
    }
}

/// Events that belong together often enough to get somewhere, and go wrong now and then.
fn event() -> impl Strategy<Value = String> {
    let id = prop_oneof![4 => Just("a"), 2 => Just("b"), 1 => Just("")];
    let tag = prop_oneof![6 => Just(None), 1 => Just(Some("s")), 1 => Just(Some("t"))];
    let delta = prop_oneof![
        3 => Just(r"text".to_owned()),
        1 => Just(r"".to_owned()),
        1 => Just(r"a \ud83d".to_owned()),
        1 => Just(r"\ude00 b".to_owned()),
        1 => Just(r"a\n\u00e9 longer than what an event can store in itself".to_owned()),
    ];
    let extra = prop_oneof![
        12 => Just(""),
        1 => Just(r#","extra":1"#),
        1 => Just(r#","metadata":{"k":1}"#),
        1 => Just(r#","timestamp":17"#),
        1 => Just(r#","rawEvent":null"#),
    ];
    (0..16u8, id, tag, delta, extra).prop_map(|(kind, id, tag, delta, extra)| {
        let tag = tag.map(|tag| format!(r#","subagentRunId":"{tag}""#)).unwrap_or_default();
        match kind {
            0 => format!(r#"{{"type":"TEXT_MESSAGE_START","messageId":"{id}"{tag}{extra}}}"#),
            1..=3 => format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"{id}","delta":"{delta}"{tag}{extra}}}"#),
            4 => format!(r#"{{"type":"TEXT_MESSAGE_END","messageId":"{id}"{tag}{extra}}}"#),
            5..=7 => format!(r#"{{"type":"TEXT_MESSAGE_CHUNK","messageId":"{id}","delta":"{delta}"{tag}{extra}}}"#),
            8 => format!(r#"{{"type":"TEXT_MESSAGE_CHUNK","delta":"{delta}"{tag}{extra}}}"#),
            9 => format!(
                r#"{{ "messageId" : "{id}" , "delta" : "{delta}" , "type" : "TEXT_MESSAGE_CHUNK" {tag}{extra}}}"#
            ),
            10 => format!(
                r#"{{"type":"TOOL_CALL_CHUNK","toolCallId":"{id}","toolCallName":"f","delta":"{delta}"{tag}{extra}}}"#
            ),
            11 => format!(r#"{{"type":"REASONING_MESSAGE_CHUNK","messageId":"{id}","delta":"{delta}"{tag}{extra}}}"#),
            12 => format!(r#"{{"type":"STATE_SNAPSHOT","snapshot":{{"n":1}}{extra}}}"#),
            13 => format!(r#"{{"type":"RAW","event":"{delta}"{extra}}}"#),
            14 => format!(r#"{{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"{delta}"}}"#),
            _ => format!(r#"{{"type":"FUTURE","x":"{delta}"}}"#),
        }
    })
}

proptest! {
    #![proptest_config(support::seeded(2000))]

    #[test]
    fn p1_the_pipeline_says_what_its_stages_say(middle in prop::collection::vec(event(), 0..12), ends in any::<bool>()) {
        let mut events = vec![json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}).to_string()];
        events.extend(middle);
        if ends {
            events.push(json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}).to_string());
        }
        let (items, error, messages) = one_by_one(&events);
        let without_warnings_of_assembly: Vec<Item> = items
            .iter()
            .filter(|item| item.warning().is_none_or(|warning| !warning.rule.as_str().starts_with('A')))
            .cloned()
            .collect();
        prop_assert_eq!(whole(&events), (items, error.clone(), messages));
        prop_assert_eq!(without_assembly(&events), (without_warnings_of_assembly, error));
    }
}
