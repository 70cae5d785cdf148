//! Events and inputs with PyPI `ag-ui-protocol` 1.0.0: this crate reads the events of its encoder, and its
//! models accept those of this crate, for all event types.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]
#![cfg(feature = "sse")]

use std::collections::BTreeSet;

use ag_ui_stream::codec::{Format, SseDecoder};
use ag_ui_stream::input::Outgoing;
use ag_ui_stream::{Event, EventType, Raw, RawItem};
use serde_json::{Value, json};

mod support {
    #![allow(unreachable_pub, reason = "each test has its own copy")]
    pub mod interop;
}

use support::interop::{fixture_events, fixture_inputs, python, typed};

fn decode_one(text: &str) -> Event {
    let mut decoder = SseDecoder::new();
    decoder.push(text.as_bytes()).unwrap();
    decoder.finish().unwrap();
    let items: Vec<_> = std::iter::from_fn(|| decoder.pop()).collect();
    let [RawItem::Event { raw, .. }] = &items[..] else { panic!("{text}: {items:?}") };
    let Raw::Bytes(json) = raw else { panic!("{raw:?}") };
    typed(&serde_json::from_slice(json).unwrap())
}

#[test]
fn t1_every_event_is_read_as_python_wrote_it_and_written_as_python_reads_it() {
    let Some(python) = python() else { return };
    let events = fixture_events();
    let types: BTreeSet<_> = events.iter().map(|(_, event)| typed(event).event_type()).collect();
    assert_eq!(types.into_iter().collect::<Vec<_>>(), EventType::ALL);
    let written = |event: &Value| String::from_utf8(Format::Sse.encode(&typed(event)).unwrap()).unwrap();
    let questions: Vec<_> =
        events.iter().flat_map(|(_, event)| [json!({"encode": event}), json!({"decode": written(event)})]).collect();
    let answers = python.ask("models.py", &Value::from(questions));
    for ((name, event), answers) in events.iter().zip(answers.as_array().unwrap().chunks(2)) {
        let [encoded, decoded] = answers else { unreachable!() };
        let text = encoded["text"].as_str().unwrap_or_else(|| panic!("{name}: {encoded}"));
        assert_eq!(decode_one(text), typed(event), "{name}");
        assert_eq!(decoded["event"], json!(typed(event)), "{name}");
    }
}

#[test]
fn t4_python_accepts_every_input_that_is_sent() {
    let Some(python) = python() else { return };
    let sent: Vec<_> = fixture_inputs("valid")
        .into_iter()
        .map(|(name, input)| (name, json!(Outgoing::new().prepare_value(input).unwrap().0)))
        .collect();
    let questions: Vec<_> = sent.iter().map(|(_, input)| json!({"input": input})).collect();
    let answers = python.ask("models.py", &Value::from(questions));
    for ((name, input), answer) in sent.iter().zip(answers.as_array().unwrap()) {
        assert_eq!(answer["input"], *input, "{name}: {answer}");
    }
}
