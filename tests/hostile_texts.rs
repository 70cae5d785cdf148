//! Text from the wire in warnings and errors is cut and escaped, and the number of warnings is bounded.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use ag_ui_stream::{Event, Warning};

fn warnings(json: &str) -> Vec<Warning> {
    Event::from_json(json).unwrap().1
}

/// No control characters, no line separators, nothing that changes the direction of writing.
fn assert_harmless(text: &str) {
    let harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(harmful), "{text:?}");
    assert!(text.len() < 2_000, "{} bytes", text.len());
}

const HOSTILE: &str = r"\n\u001b[31m\u202e\u0085\u2028";

#[test]
fn e1_the_type_of_an_unknown_event() {
    let warnings = warnings(&format!(r#"{{"type":"X{HOSTILE}"}}"#));
    assert_harmless(&warnings[0].to_string());
    assert_harmless(&warnings[0].event_type);
}

#[test]
fn e2_the_key_of_an_unknown_property() {
    let long = "k".repeat(100_000);
    for key in [HOSTILE, &long] {
        let warnings = warnings(&format!(r#"{{"type":"RUN_ERROR","message":"m","{key}":1}}"#));
        assert_harmless(&warnings[0].to_string());
        assert_harmless(&warnings[0].path);
    }
}

#[test]
fn e5_an_error_has_the_path_and_the_value_of_the_fault() {
    let messages = |key: &str| {
        format!(
            r#"{{"type":"MESSAGES_SNAPSHOT","messages":[{{"id":"m","role":"user","content":"c","metadata":{{"{key}":1}},"name":["{key}"]}}]}}"#
        )
    };
    for json in [messages(HOSTILE), messages(&"k".repeat(100_000))] {
        assert_harmless(&Event::from_json(json).unwrap_err().to_string());
    }
}

#[test]
fn e11_a_long_key_with_many_lone_halves_below_makes_few_and_short_warnings() {
    let json = format!(
        r#"{{"type":"RAW","event":{{"{}{HOSTILE}":[{}"\ud800"]}}}}"#,
        "k".repeat(200_000),
        r#""\ud800","#.repeat(6_000)
    );
    let warnings = warnings(&json);
    assert_eq!(warnings.len(), 101);
    assert_eq!(warnings[100].message, "5901 more warnings about this event are left out");
    warnings.iter().for_each(|warning| assert_harmless(&warning.to_string()));
}

#[test]
fn e2_warnings_that_go_with_a_removed_container_are_not_counted() {
    let members: String = (0..500).map(|key| format!(r#""u{key}":1,"#)).collect();
    let unknown = format!(r#"{{{members}"type":"hologram"}}"#);
    let json =
        format!(r#"{{"type":"MESSAGES_SNAPSHOT","messages":[{{"id":"m","role":"user","content":[{unknown}]}}]}}"#);
    assert_eq!(warnings(&json).len(), 1);
}
