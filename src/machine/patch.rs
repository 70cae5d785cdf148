//! Applies JSON Patches (RFC 6902) to documents, within bounds.
//!
//! A patch can double a document with each `copy`, and nest it deeper with each `move`. The size of the
//! events bounds neither, so both are bounded here: an operation beyond a bound does not apply, like one
//! with a path to nothing.

use json_patch::PatchOperation;
use json_patch::jsonptr::{Pointer, Token};
use serde_json::Value;

use crate::event::{JsonPatch, Operation};
use crate::excerpt::excerpt;
use crate::shared::{Document, Object};

/// The bounds on a patched document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// The most bytes of the document.
    pub(crate) bytes: usize,
    /// The deepest nesting.
    pub(crate) depth: usize,
    /// How many operations a patch may have.
    pub(crate) operations: usize,
    /// The bound on all documents together, for the message.
    pub(crate) max_bytes: usize,
}

/// Why an operation does not apply.
enum Fault<'p> {
    /// There is nothing at the path of the first so many tokens of the pointer.
    Nothing(&'p Pointer, usize),
    /// The parent is neither an array nor an object.
    NoContainer(&'p Pointer),
    Differs,
    IntoItself,
    WholeRemoved,
    TooDeep(usize),
    TooLarge(usize),
}

/// Applies a patch in full or not at all (rule A6). Gives the new document, or `None` if nothing changed.
/// An operation costs the logarithm of each container on its path.
///
/// # Errors
/// Which operation failed and why.
pub(crate) fn apply(patch: &JsonPatch, document: &Document, room: Room) -> Result<Option<Document>, String> {
    if patch.as_slice().len() > room.operations {
        return Err(format!("it has more than {} operations", room.operations));
    }
    // A document that is beyond the bounds already may stay so.
    let room = Room { bytes: room.bytes.max(document.bytes()), depth: room.depth.max(document.depth()), ..room };
    let mut result = document.clone();
    let mut changed = false;
    for (at, operation) in patch.as_slice().iter().enumerate() {
        let done = apply_one(operation, &mut result).and_then(|changed| {
            if result.depth() > room.depth {
                return Err(Fault::TooDeep(room.depth));
            }
            if result.bytes() > room.bytes {
                return Err(Fault::TooLarge(room.max_bytes));
            }
            Ok(changed)
        });
        match done {
            Ok(is_change) => changed |= is_change,
            Err(fault) => return Err(describe(at, &Operation::new(operation), &fault)),
        }
    }
    Ok(changed.then_some(result))
}

/// Applies a patch to an object that must stay an object, in full or not at all (rule A5).
///
/// # Errors
/// Which operation failed and why.
pub(crate) fn apply_to_object(patch: &JsonPatch, object: &Object, room: Room) -> Result<Option<Object>, String> {
    match apply(patch, &Document::Object(object.clone()), room)? {
        Some(Document::Object(result)) => Ok(Some(result)),
        Some(_) => Err("the result is not an object".to_owned()),
        None => Ok(None),
    }
}

/// Applies an operation, and says whether it changed anything. If it fails, the document is undefined.
fn apply_one<'p>(operation: &'p PatchOperation, document: &mut Document) -> Result<bool, Fault<'p>> {
    match operation {
        PatchOperation::Add(add) => {
            // The value came with the event, so comparing all of it is no further cost.
            let is_there = |held: &Document| *held == add.value;
            put(document, &add.path, is_there, || Document::from(&add.value))
        }
        PatchOperation::Replace(replace) => within(document, &replace.path, |held| {
            let differs = *held != replace.value;
            if differs {
                *held = Document::from(&replace.value);
            }
            Ok(differs)
        }),
        PatchOperation::Remove(remove) => take(document, &remove.path).map(|_| true),
        PatchOperation::Test(test) => {
            let held = find(document, &test.path)?;
            if is_equal(held, &test.value) { Ok(false) } else { Err(Fault::Differs) }
        }
        PatchOperation::Copy(copy) => {
            let source = find(document, &copy.from)?.clone();
            put(document, &copy.path, |held| held.is_same(&source), || source.clone())
        }
        PatchOperation::Move(moved) => {
            if moved.from == moved.path {
                // A move to its own place changes nothing, also within an array.
                return find_removable(document, &moved.from).map(|_| false);
            }
            if moved.path.starts_with(&moved.from) {
                return Err(Fault::IntoItself);
            }
            let value = take(document, &moved.from)?;
            put(document, &moved.path, |_| false, || value.clone())
        }
    }
}

/// The value at a path.
fn find<'d, 'p>(document: &'d Document, path: &'p Pointer) -> Result<&'d Document, Fault<'p>> {
    path.tokens().enumerate().try_fold(document, |value, (at, token)| {
        let found = match value {
            Document::Array(array) => index_in(&token, array.len()).and_then(|at| array.get(at)),
            Document::Object(object) => object.get(&token.decoded()),
            _ => None,
        };
        found.ok_or(Fault::Nothing(path, at + 1))
    })
}

fn find_removable<'d, 'p>(document: &'d Document, path: &'p Pointer) -> Result<&'d Document, Fault<'p>> {
    if path.is_root() { Err(Fault::WholeRemoved) } else { find(document, path) }
}

/// The index that a token names, below `len`.
fn index_in(token: &Token<'_>, len: usize) -> Option<usize> {
    token.to_index().ok()?.for_len(len).ok()
}

/// Changes the value at a path.
fn within<'p, R>(
    document: &mut Document,
    path: &'p Pointer,
    change: impl FnOnce(&mut Document) -> Result<R, Fault<'p>>,
) -> Result<R, Fault<'p>> {
    // One type of closure at every depth.
    let mut change = Some(change);
    let mut result = Err(Fault::Nothing(path, 0));
    let depth = descend(document, path, 0, &mut |value| {
        if let Some(change) = change.take() {
            result = change(value);
        }
    });
    match depth {
        Ok(()) => result,
        Err(tokens) => Err(Fault::Nothing(path, tokens)),
    }
}

/// Follows a path, and calls `change` where it ends; fails with the number of tokens that lead to
/// nothing.
fn descend(
    value: &mut Document,
    path: &Pointer,
    tokens: usize,
    change: &mut dyn FnMut(&mut Document),
) -> Result<(), usize> {
    let Some((token, rest)) = path.split_front() else {
        change(value);
        return Ok(());
    };
    let below = |value: &mut Document| descend(value, rest, tokens + 1, change);
    let found = match value {
        Document::Array(array) => {
            index_in(&token, array.len()).and_then(|index| array.items_mut().update(index, below))
        }
        Document::Object(object) => object.update(&token.decoded(), below),
        _ => None,
    };
    found.unwrap_or(Err(tokens + 1))
}

/// Adds a value at a path, or replaces a member there, unless `is_there` says that the member is equal.
/// Says whether that changed anything.
fn put<'p>(
    document: &mut Document,
    path: &'p Pointer,
    is_there: impl Fn(&Document) -> bool,
    value: impl Fn() -> Document,
) -> Result<bool, Fault<'p>> {
    let Some((parent, last)) = path.split_back() else {
        let differs = !is_there(document);
        if differs {
            *document = value();
        }
        return Ok(differs);
    };
    within(document, parent, |parent_value| match parent_value {
        Document::Object(object) => {
            let key = last.decoded();
            let differs = !object.get(&key).is_some_and(is_there);
            if differs {
                object.insert(&key, value());
            }
            Ok(differs)
        }
        Document::Array(array) => {
            let index = last.to_index().ok().and_then(|index| index.for_len_incl(array.len()).ok());
            let index = index.ok_or(Fault::Nothing(path, usize::MAX))?;
            array.items_mut().insert(index, value());
            Ok(true)
        }
        _ => Err(Fault::NoContainer(parent)),
    })
}

/// Removes the value at a path and returns it.
fn take<'p>(document: &mut Document, path: &'p Pointer) -> Result<Document, Fault<'p>> {
    let Some((parent, last)) = path.split_back() else { return Err(Fault::WholeRemoved) };
    let taken = within(document, parent, |parent| {
        Ok(match parent {
            Document::Object(object) => object.remove(&last.decoded()),
            Document::Array(array) => index_in(&last, array.len()).and_then(|index| array.items_mut().remove(index)),
            _ => None,
        })
    });
    taken?.ok_or(Fault::Nothing(path, usize::MAX))
}

/// Whether two values are equal as RFC 6902 says for `test`: numbers by value, so that `1` is `1.0`.
fn is_equal(a: &Document, b: &Value) -> bool {
    match (a, b) {
        (Document::Number(a), Value::Number(b)) => a == b || ((a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()),
        (Document::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b)),
        (Document::Object(a), Value::Object(b)) => {
            a.len() == b.len() && b.iter().all(|(key, b)| a.get(key).is_some_and(|a| is_equal(a, b)))
        }
        _ => a == b,
    }
}

/// Which operation failed, by its place in the patch, and why.
fn describe(at: usize, operation: &Operation<'_>, fault: &Fault<'_>) -> String {
    let why = match fault {
        Fault::Nothing(path, tokens) => {
            let end = path.as_str().match_indices('/').nth(*tokens).map_or(path.len(), |(end, _)| end);
            format!("there is nothing at {:?}", excerpt(path.as_str().get(..end).unwrap_or_default(), 80))
        }
        Fault::NoContainer(path) => {
            format!("there is no array or object at {:?}", excerpt(path.as_str(), 80))
        }
        Fault::Differs => "another value is there".to_owned(),
        Fault::IntoItself => "a value cannot move into itself".to_owned(),
        Fault::WholeRemoved => "the whole document cannot be removed".to_owned(),
        Fault::TooDeep(max) => format!("the document would be nested deeper than {max} levels"),
        Fault::TooLarge(max) => format!("all documents together would take more than {max} bytes"),
    };
    let path = excerpt(operation.path(), 80);
    let from = operation.from().map(|from| format!("from {:?} to ", excerpt(from, 80))).unwrap_or_default();
    format!("operation {at} ({} {from}{path:?}): {why}", operation.op())
}
