//! A document, then patches, one JSON text a line: no panic; a patch that does not apply changes nothing; one
//! that applies does what its operations do one by one; held documents never change.

use ag_ui_stream::event::JsonPatch;
use ag_ui_stream::machine::{Machine, Pipeline, Push};
use ag_ui_stream::snapshot::Document;
use ag_ui_stream::{Limits, Options};
use serde_json::{Value, json};

/// More would only be slower.
const MAX_PATCHES: usize = 16;

fn pipeline(state: &Document) -> Pipeline {
    // Small, so that the bounds are met.
    let limits = Limits { max_document_bytes: 64 * 1024, max_patch_operations: 64, ..Limits::default() };
    let mut pipeline = Options::new().limits(limits).state(state.clone()).build();
    pipeline.push(r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#).expect("a run starts");
    while pipeline.pop().is_some() {}
    pipeline
}

/// Whether the patch applied.
fn push(pipeline: &mut Pipeline, patch: &Value) -> bool {
    let pushed = pipeline.push(&json!({"type": "STATE_DELTA", "delta": patch}));
    let warned = std::iter::from_fn(|| pipeline.pop()).filter(|update| update.warning().is_some()).count();
    pushed.is_ok() && warned == 0
}

/// See the head of the file.
pub fn attack(input: &[u8]) {
    let mut lines = input.split(|byte| *byte == b'\n').map(serde_json::from_slice::<Value>);
    let Some(Ok(state)) = lines.next() else { return };
    let mut state = Document::from(state);
    for patch in lines.take(MAX_PATCHES).map_while(Result::ok) {
        if JsonPatch::from_value(&patch).is_none() {
            continue;
        }
        let before = state.to_value();
        let mut whole = pipeline(&state);
        let applied = push(&mut whole, &patch);
        assert_eq!(state.to_value(), before, "a held document changed");
        let after = whole.snapshot().state().clone();
        if !applied {
            assert_eq!(after, before, "a patch that does not apply changes nothing");
            continue;
        }
        let mut single = pipeline(&state);
        for operation in patch.as_array().into_iter().flatten() {
            assert!(push(&mut single, &json!([operation])), "{operation} applies within {patch}");
        }
        assert_eq!(*single.snapshot().state(), after, "{patch}");
        state = after;
    }
}
