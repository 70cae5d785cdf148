//! Protobuf with npm `@ag-ui/proto` 1.0.0: each side reads the bytes of the other, for all event types.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]
#![cfg(feature = "protobuf")]

use std::collections::BTreeSet;

use ag_ui_stream::codec::{Format, ProtobufDecoder};
use ag_ui_stream::{Error, Event, EventType, Raw, RawItem};
use serde_json::{Value, json};

mod support {
    #![allow(unreachable_pub, reason = "each test has its own copy")]
    pub mod interop;
}

use support::interop::{fixture_events, node, typed};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn decode(frame: &[u8]) -> Result<Vec<RawItem>, Error> {
    let mut decoder = ProtobufDecoder::new();
    decoder.push(frame)?;
    decoder.finish()?;
    Ok(std::iter::from_fn(|| decoder.pop()).collect())
}

fn decode_one(frame: &[u8]) -> Value {
    match &decode(frame).unwrap()[..] {
        [RawItem::Event { raw, index: 0 }] => json_of(raw),
        other => panic!("{other:?}"),
    }
}

/// What an event of protobuf says, as a value.
fn json_of(raw: &Raw) -> Value {
    match raw {
        Raw::Value(value) => value.clone(),
        Raw::Text(json) => serde_json::from_str(json).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// The event after what protobuf has no room for: an empty list that may be absent is absent, an
/// absent list of a run's input is empty, operations have four members.
fn in_protobuf(mut json: Value) -> Value {
    fn drop_if_empty(json: &mut Value, parent: &str, key: &str) {
        if let Some(Value::Object(parent)) = json.pointer_mut(parent) {
            if parent.get(key) == Some(&json!([])) {
                parent.remove(key);
            }
        }
    }
    drop_if_empty(&mut json, "", "usage");
    drop_if_empty(&mut json, "/outcome", "pendingToolCallIds");
    drop_if_empty(&mut json, "/outcome", "interruptIds");
    for messages in ["/messages", "/input/messages"] {
        for message in json.pointer_mut(messages).and_then(Value::as_array_mut).into_iter().flatten() {
            drop_if_empty(message, "", "toolCalls");
        }
    }
    if let Some(Value::Object(input)) = json.get_mut("input") {
        for key in ["tools", "context"] {
            input.entry(key).or_insert(json!([]));
        }
    }
    json = without_empty_resume(json);
    for patch in ["delta", "patch"] {
        for operation in json.get_mut(patch).and_then(Value::as_array_mut).into_iter().flatten() {
            operation.as_object_mut().unwrap().retain(|key, _| ["op", "path", "from", "value"].contains(&key.as_str()));
        }
    }
    json
}

/// Protobuf cannot tell an empty `resume` from none: the reference reads an empty one, and we read none,
/// as in most JSON (rule P4).
fn without_empty_resume(mut json: Value) -> Value {
    if let Some(Value::Object(input)) = json.get_mut("input") {
        if input.get("resume") == Some(&json!([])) {
            input.remove("resume");
        }
    }
    json
}

#[test]
fn t2_every_event_is_read_as_the_reference_wrote_it_and_written_as_it_reads_it() {
    let Some(node) = node() else { return };
    let events = fixture_events();
    let types: BTreeSet<_> = events.iter().map(|(_, event)| typed(event).event_type()).collect();
    assert_eq!(types.into_iter().collect::<Vec<_>>(), EventType::ALL);

    // Written from the typed event, so that both write the keys of open objects in one order.
    let questions: Vec<Value> = events
        .iter()
        .flat_map(|(_, event)| {
            let event = typed(event);
            [json!({"encode": event}), json!({"decode": hex(&Format::Protobuf.encode(&event).unwrap())})]
        })
        .collect();
    let answers = node.ask("protobuf.mjs", &Value::from(questions));
    assert_eq!(answers["mediaType"], Format::Protobuf.media_type());
    for ((name, event), answers) in events.iter().zip(answers["answers"].as_array().unwrap().chunks(2)) {
        let [encoded, decoded] = answers else { unreachable!() };
        let frame = encoded["frame"].as_str().unwrap_or_else(|| panic!("{name}: {encoded}"));
        let expected = in_protobuf(event.clone());
        // Theirs, read here.
        assert_eq!(decode_one(&unhex(frame)), expected, "{name}");
        // Ours, read there, and it is the same frame.
        assert_eq!(without_empty_resume(decoded["event"].clone()), expected, "{name}");
        assert_eq!(hex(&Format::Protobuf.encode(&typed(event)).unwrap()), frame, "{name}");
    }
}

/// Equal, but for the last bit of a double, which the JSON on the way may have cost.
fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() <= one.abs() * 1e-15
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| alike(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| one.0 == other.0 && alike(one.1, other.1))
        }
        _ => one == other,
    }
}

/// A small generator, the same numbers every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

fn damaged(message: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut damaged = message.to_vec();
    for _ in 0..=numbers.below(2) {
        let at = numbers.below(damaged.len() + 1);
        match numbers.below(6) {
            0 if at < damaged.len() => damaged[at] = u8::try_from(numbers.below(256)).unwrap(),
            1 if at < damaged.len() => damaged[at] ^= 1 << numbers.below(8),
            2 => damaged.truncate(at),
            3 => damaged.insert(at, u8::try_from(numbers.below(64)).unwrap()),
            4 => damaged.extend_from_slice(other),
            _ if at < damaged.len() => {
                damaged.remove(at);
            }
            _ => {}
        }
    }
    damaged
}

#[test]
fn t2_a_damaged_frame_is_never_read_as_anything_that_the_reference_does_not_read() {
    let Some(node) = node() else { return };
    let messages: Vec<_> = fixture_events()
        .iter()
        .map(|(_, event)| Format::Protobuf.encode(&typed(event)).unwrap()[4..].to_vec())
        .collect();
    let mut numbers = Numbers(1);
    let frames: Vec<_> = (0..10_000)
        .map(|_| {
            let [one, other] = [0, 1].map(|_| &messages[numbers.below(messages.len())]);
            let message = damaged(one, other, &mut numbers);
            [&u32::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat()
        })
        .collect();
    let questions: Vec<_> = frames.iter().map(|frame| json!({"decode": hex(frame)})).collect();
    let answers = node.ask("protobuf.mjs", &Value::from(questions));
    let (mut read, mut unknown, mut refused, mut refused_here) = (0, 0, 0, 0);
    for (frame, answer) in frames.iter().zip(answers["answers"].as_array().unwrap()) {
        let theirs = answer["error"].as_str();
        match decode(frame) {
            Ok(items) => match items.last() {
                // Enforcement refuses such an integer with a path; the reference cannot hold it.
                Some(RawItem::Event { raw, .. }) if theirs.is_some_and(is_of_an_integer) => {
                    let value = json_of(raw);
                    assert!(matches!(Event::from_value(&value), Err(Error::Malformed(_))), "{value}");
                }
                Some(RawItem::Event { raw, .. }) => {
                    let value = json_of(raw);
                    let theirs = without_empty_resume(answer["event"].clone());
                    assert!(alike(&value, &theirs), "{}: {value} but {answer}", hex(frame));
                    read += 1;
                }
                Some(RawItem::Warning(_)) => {
                    assert_eq!(answer["unknown"], true, "{}", hex(frame));
                    unknown += 1;
                }
                other => panic!("{other:?}"),
            },
            Err(Error::Malformed(_)) if theirs.is_some() => refused += 1,
            // It reads strings that are not UTF-8, fields of a wrong wire type, numbers of 65 bits,
            // and stops within an open value at an invalid tag.
            Err(Error::Malformed(_)) => refused_here += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(read > 500 && unknown > 10 && refused > 5000, "{read} {unknown} {refused}");
    assert!(refused_here < 500, "{refused_here}");
}

fn is_of_an_integer(error: &str) -> bool {
    error.contains("Value is larger than Number.MAX") || error.contains("Value is smaller than Number.MIN")
}
