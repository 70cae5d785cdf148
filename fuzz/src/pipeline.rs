//! Fuzz target: events, one a line: no panic, the pipeline gives the same as its stages, and held
//! snapshots never change.

use crate::stages::{one_by_one, whole};
use ag_ui_stream::machine::{Machine, Pipeline, Push};

/// A snapshot a step is kept and written twice: more steps would only be slower.
const MAX_EVENTS: usize = 64;

/// See the head of the file.
pub fn attack(bytes: &[u8]) {
    let mut pipeline = Pipeline::new();
    let mut held = Vec::new();
    for event in bytes.split(|byte| *byte == b'\n').take(MAX_EVENTS) {
        let pushed = pipeline.push(event);
        while let Some(update) = pipeline.pop() {
            let snapshot = update.snapshot().clone();
            held.push((serde_json::to_string(&snapshot.messages()).expect("messages are JSON"), snapshot));
        }
        if pushed.is_err() {
            break;
        }
    }
    let _ = pipeline.finish();
    drop(pipeline);
    for (written, snapshot) in held {
        assert_eq!(serde_json::to_string(&snapshot.messages()).expect("messages are JSON"), written);
    }

    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let events: Vec<String> = text.split('\n').take(MAX_EVENTS).map(str::to_owned).collect();
    assert_eq!(whole(&events), one_by_one(&events));
}
