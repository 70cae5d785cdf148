//! The floor: the least that reading the events costs with `serde_json`.

use std::hint::black_box;

use serde::Deserialize;
use serde::de::IgnoredAny;

#[derive(Deserialize)]
pub(crate) struct Fields<'a> {
    #[serde(borrow, rename = "type")]
    event_type: &'a str,
    #[serde(borrow, rename = "messageId")]
    message_id: Option<&'a str>,
    #[serde(borrow, rename = "subagentRunId")]
    subagent_run_id: Option<&'a str>,
    #[serde(borrow)]
    delta: Option<&'a str>,
}

/// Parses every event, and collects the text of all deltas. An event with other fields than those
/// of text, which only W6 has, is gone through without being kept.
pub(crate) fn run(events: &[String]) -> usize {
    let mut text = String::new();
    for json in events {
        event(serde_json::from_str(json), || serde_json::from_str(json), &mut text);
    }
    text.len()
}

/// One event, read for its fields, or else gone through.
#[inline(always)]
pub(crate) fn event(
    fields: serde_json::Result<Fields<'_>>,
    through: impl FnOnce() -> serde_json::Result<IgnoredAny>,
    text: &mut String,
) {
    match fields {
        Ok(fields) => {
            black_box((fields.event_type, fields.message_id, fields.subagent_run_id));
            text.push_str(fields.delta.unwrap_or_default());
        }
        Err(_) => {
            black_box(through().is_ok());
        }
    }
}
