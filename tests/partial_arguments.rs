//! The arguments of a tool call as a value while they stream (rule A9).

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod support;

use ag_ui_stream::message::{FunctionCall, PartialArguments};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::assembled::*;
use support::*;

fn value_of(text: &str) -> Option<Value> {
    FunctionCall::new("f", text).partial_arguments()
}

/// Whether a value can become another as more text comes.
fn grows_into(early: &Value, late: &Value) -> bool {
    match (early, late) {
        (Value::String(early), Value::String(late)) => late.starts_with(early.as_str()),
        (Value::Array(early), Value::Array(late)) => {
            let Some((last, others)) = early.split_last() else { return true };
            late.starts_with(others) && late.get(others.len()).is_some_and(|late| grows_into(last, late))
        }
        (Value::Object(early), Value::Object(late)) => {
            let grown = early.iter().filter(|(key, value)| late.get(*key) != Some(value));
            early.iter().all(|(key, value)| late.get(key).is_some_and(|late| grows_into(value, late)))
                && grown.count() <= 1
        }
        _ => early == late,
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[a-z \"\\\\/\u{8}\n\u{e9}\u{20ac}]{0,8}",
        proptest::collection::vec(any::<char>(), 0..5).prop_map(|chars| chars.into_iter().collect::<String>()),
    ];
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(text.clone(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same text with every character beyond ASCII as escapes.
fn escaped(text: &str) -> String {
    let escape = |char: char| char.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect();
    text.chars().map(|char| if char.is_ascii() { char.to_string() } else { escape(char) }).collect()
}

fn prefixes(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().map(|(at, _)| &text[..at]).chain([text])
}

proptest! {
    #![proptest_config(seeded(512))]

    #[test]
    fn every_prefix_of_a_json_text_has_a_value_that_grows_into_the_next(value in json_value(), form in 0..3) {
        let text = match form {
            0 => value.to_string(),
            1 => serde_json::to_string_pretty(&value).unwrap(),
            _ => escaped(&value.to_string()),
        };
        let value: Value = serde_json::from_str(&text).unwrap();
        // A number that is the whole text is read.
        prop_assume!(!value.is_number());
        let mut before = None;
        for prefix in prefixes(&text) {
            let now = value_of(prefix);
            match (&before, &now) {
                (None, None) => {
                    let is_begun = prefix.starts_with(['{', '[', '"']);
                    prop_assert!(!is_begun);
                }
                (Some(before), None) => prop_assert!(false, "{before} was lost at {prefix}"),
                (None, Some(_)) => {}
                (Some(before), Some(now)) => prop_assert!(grows_into(before, now), "{before} {now} at {prefix}"),
            }
            before = now;
        }
        prop_assert_eq!(before, Some(value));
    }

    #[test]
    fn the_value_is_the_same_however_the_text_is_cut(
        value in json_value(), form in 0..3, noise in prop::option::of((any::<prop::sample::Index>(), "[\\[\\]{}\",:\\\\a1 .-]{1,2}")), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut text = match form {
            0 => value.to_string(),
            1 => serde_json::to_string_pretty(&value).unwrap(),
            _ => escaped(&value.to_string()),
        };
        let boundaries = |text: &str| prefixes(text).map(str::len).collect::<Vec<_>>();
        if let Some((at, noise)) = noise {
            text.insert_str(*at.get(&boundaries(&text)), &noise);
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| *cut.get(&boundaries(&text))).collect();
        cuts.sort_unstable();
        let mut arguments = PartialArguments::new();
        let mut start = 0;
        for end in cuts.into_iter().chain([text.len()]) {
            arguments.push(&text[start..end]);
            let whole = value_of(&text[..end]);
            prop_assert_eq!(arguments.value(), whole.as_ref(), "{} of {}", end, text);
            start = end;
        }
    }

    #[test]
    fn any_text_has_the_value_that_a_parser_gives_it(text in "[{}\\[\\]\",:\\\\ue0-9.\\-+a-z \u{e9}\n]{0,24}") {
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            prop_assert_eq!(value_of(&text), Some(value));
        } else {
            // Never a panic, and the same value as with the open parts closed.
            let _ = value_of(&text);
        }
    }
}

#[test]
fn a9_arguments_have_a_value_after_every_delta() {
    let deltas = ["", "{\"ci", "ty\":", " \"Par", "is\", \"n", "\": 1", "2, \"ok\": t", "rue}"];
    let values = [
        None,
        Some(json!({})),
        Some(json!({})),
        Some(json!({"city": "Par"})),
        Some(json!({"city": "Paris"})),
        Some(json!({"city": "Paris"})),
        Some(json!({"city": "Paris", "n": 12})),
        Some(json!({"city": "Paris", "n": 12, "ok": true})),
    ];
    // Snapshots are held, so that the text is in pieces.
    let assembled = assemble_open(std::iter::once(call_start("c")).chain(deltas.map(|delta| args("c", delta))));
    for (at, expected) in (2..).zip(values) {
        let call = assembled.at(at).snapshot().tool_call("c").unwrap();
        assert_eq!(call.function.partial_arguments(), expected);
    }
}

#[test]
fn long_arguments_cost_one_pass() {
    let text = format!("{{\"a\": [{}\"{}", "[1, {\"b\": null}], ".repeat(100_000), "\\u00e9x".repeat(200_000));
    let value = value_of(&text).unwrap();
    assert_eq!(value["a"].as_array().unwrap().len(), 100_001);
    assert_eq!(value["a"][100_000].as_str().unwrap().chars().count(), 400_000);
}
