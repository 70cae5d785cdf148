//! Applying JSON Patches (RFC 6902) through the `json-patch` crate, within bounds.
//!
//! A patch can double a document with each `copy`, and nest it deeper with each patch. Neither is
//! bounded by the size of the events, so both are bounded here: a patch that goes beyond does not
//! apply, like one that names a place that is not there.

use serde_json::Value;

use crate::event::JsonPatch;
use crate::limits::Limits;

/// How many values a document may hold once a patch has copied parts of it: far more than a UI
/// shares, far less than fills the memory.
const MAX_COPIED_VALUES: usize = 1 << 20;

/// Applies a patch in full or not at all (rule A6).
///
/// # Errors
/// Says what failed and why; the document is then as it was.
pub(crate) fn apply(patch: &JsonPatch, document: &mut Value) -> Result<(), String> {
    let operations = patch.as_slice();
    let copies = operations.iter().any(|operation| {
        matches!(operation, json_patch::PatchOperation::Copy(_) | json_patch::PatchOperation::Move(_))
    });
    if copies {
        let mut result = document.clone();
        let mut budget = MAX_COPIED_VALUES;
        for (at, operation) in operations.iter().enumerate() {
            let (from, path) = match operation {
                json_patch::PatchOperation::Copy(copy) => (Some(copy.from.as_str()), copy.path.as_str()),
                json_patch::PatchOperation::Move(moved) => (Some(moved.from.as_str()), moved.path.as_str()),
                other => (None, other.path().as_str()),
            };
            let mut deepest = depth_behind(operation);
            if let Some(source) = from.and_then(|from| result.pointer(from)) {
                let (left, depth) = take(source, budget).ok_or_else(|| format!("operation {at} copies too much"))?;
                budget = left;
                deepest = steps(path) + depth;
            }
            if deepest > Limits::CEILING_DEPTH {
                return Err(format!("operation {at} nests the document too deep"));
            }
            json_patch::patch(&mut result, std::slice::from_ref(operation))
                .map_err(|error| format!("operation {at}: {}", error.kind))?;
        }
        *document = result;
        return Ok(());
    }
    let deepest = operations.iter().map(depth_behind).max().unwrap_or(0);
    if deepest > Limits::CEILING_DEPTH {
        return Err("the patch nests the document too deep".to_owned());
    }
    json_patch::patch(document, operations).map_err(|error| error.to_string())
}

/// How deep an operation that brings its own value makes the document.
fn depth_behind(operation: &json_patch::PatchOperation) -> usize {
    let value = match operation {
        json_patch::PatchOperation::Add(add) => &add.value,
        json_patch::PatchOperation::Replace(replace) => &replace.value,
        _ => return 0,
    };
    // Enforcement has bounded what one event holds, so the budget never runs out here.
    steps(operation.path().as_str()) + take(value, usize::MAX).map_or(0, |(_, depth)| depth)
}

fn steps(path: &str) -> usize {
    path.bytes().filter(|byte| *byte == b'/').count()
}

/// What these values leave of a budget, and how deep they are nested.
fn take(value: &Value, budget: usize) -> Option<(usize, usize)> {
    let budget = budget.checked_sub(1)?;
    let below = |(budget, deepest): (usize, usize), value: &Value| {
        let (budget, depth) = take(value, budget)?;
        Some((budget, deepest.max(depth + 1)))
    };
    match value {
        Value::Array(elements) => elements.iter().try_fold((budget, 1), below),
        Value::Object(members) => members.values().try_fold((budget, 1), below),
        // Long texts weigh as much as the values that would fit in their place.
        Value::String(text) => Some((budget.checked_sub(text.len() / 64)?, 0)),
        _ => Some((budget, 0)),
    }
}
