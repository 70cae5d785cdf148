//! Applying JSON Patches (RFC 6902) through the `json-patch` crate, within bounds.
//!
//! A patch can double a document with each `copy`, and nest it deeper with each patch. Neither is
//! bounded by the size of the events, so both are bounded here: a patch that goes beyond does not
//! apply, like one that names a place that is not there.

use json_patch::{PatchErrorKind, PatchOperation};
use serde_json::{Map, Value};

use crate::event::JsonPatch;
use crate::limits::Limits;

/// How many values a document may hold once a patch has copied parts of it, and how many a patch
/// may move deeper: far more than a UI shares, far less than fills the memory.
const MAX_COPIED_VALUES: usize = 1 << 20;

/// Applies a patch in full or not at all (rule A6).
///
/// # Errors
/// Says what failed and why; the document is then as it was.
pub(crate) fn apply(patch: &JsonPatch, document: &mut Value) -> Result<(), String> {
    let operations = patch.as_slice();
    if operations.iter().any(|operation| matches!(operation, PatchOperation::Copy(_) | PatchOperation::Move(_))) {
        return apply_by_step(operations, document);
    }
    let deepest = operations.iter().map(depth_behind).max().unwrap_or(0);
    if deepest > Limits::CEILING_DEPTH {
        return Err("the patch nests the document too deep".to_owned());
    }
    match json_patch::patch(document, operations) {
        // It may be a matter of how a number is spelled.
        Err(error) if matches!(error.kind, PatchErrorKind::TestFailed) => apply_by_step(operations, document),
        applied => applied.map_err(|error| error.to_string()),
    }
}

/// The same on a copy of the document, operation by operation.
///
/// `json_patch` does not put back a value that it failed to move, so it is not left to its undoing.
fn apply_by_step(operations: &[PatchOperation], document: &mut Value) -> Result<(), String> {
    let mut result = document.clone();
    // What is there already counts, or copies of a few bytes each would fill the memory.
    let mut room = take(&result, MAX_COPIED_VALUES).map_or(0, |(left, _)| left);
    let mut lifts = MAX_COPIED_VALUES;
    for (at, operation) in operations.iter().enumerate() {
        let too_much = || format!("operation {at} copies too much");
        let deepest = match operation {
            PatchOperation::Test(test) => match result.pointer(test.path.as_str()) {
                Some(found) if is_equal(found, &test.value) => continue,
                _ => 0,
            },
            PatchOperation::Copy(copy) => match result.pointer(copy.from.as_str()) {
                Some(source) => {
                    let (left, depth) = take(source, room).ok_or_else(too_much)?;
                    room = left;
                    steps(copy.path.as_str()) + depth
                }
                None => 0,
            },
            PatchOperation::Move(moved) => {
                let (from, path) = (moved.from.as_str(), moved.path.as_str());
                match result.pointer(from) {
                    // What is moved no deeper than it was need not be looked at.
                    Some(source) if steps(path) > steps(from) => {
                        let (left, depth) = take(source, lifts).ok_or_else(too_much)?;
                        lifts = left;
                        steps(path) + depth
                    }
                    _ => 0,
                }
            }
            PatchOperation::Add(_) | PatchOperation::Replace(_) | PatchOperation::Remove(_) => depth_behind(operation),
        };
        if deepest > Limits::CEILING_DEPTH {
            return Err(format!("operation {at} nests the document too deep"));
        }
        json_patch::patch(&mut result, std::slice::from_ref(operation))
            .map_err(|error| format!("operation {at} failed at path {:?}: {}", error.path.as_str(), error.kind))?;
    }
    *document = result;
    Ok(())
}

/// Whether two values are equal as RFC 6902 says for `test`: numbers by value, so that `1` is `1.0`.
fn is_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || ((a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_equal(a, b)))
        }
        _ => a == b,
    }
}

/// Applies a patch to an object that must stay one, in full or not at all (rule A5).
///
/// # Errors
/// Says what failed and why; the object is then as it was.
pub(crate) fn apply_to_object(patch: &JsonPatch, object: &mut Map<String, Value>) -> Result<(), String> {
    // Only what replaces the whole document can make it something else.
    let is_risky = patch.as_slice().iter().any(|operation| match operation {
        PatchOperation::Move(moved) => moved.path.is_root() || moved.from.is_root(),
        other => other.path().is_root(),
    });
    let backup = is_risky.then(|| object.clone());
    let mut document = Value::Object(std::mem::take(object));
    let applied = apply(patch, &mut document);
    match (document, backup) {
        (Value::Object(result), _) => {
            *object = result;
            applied
        }
        (_, backup) => {
            *object = backup.unwrap_or_default();
            Err("the result is no object".to_owned())
        }
    }
}

/// How deep an operation that brings its own value makes the document.
fn depth_behind(operation: &PatchOperation) -> usize {
    let value = match operation {
        PatchOperation::Add(add) => &add.value,
        PatchOperation::Replace(replace) => &replace.value,
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
