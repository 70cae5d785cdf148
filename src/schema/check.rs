//! Checks of typed values for the rules that their types do not express: the depth of open values, the
//! range of integers, no null where null is not legal (rule P4), the length of ids.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::decode::{Fault, INTEGER, NOT_NULL};
use crate::rule::Rule;

/// The faults found. Too deep nesting goes before all others, as it does in JSON.
#[derive(Default)]
pub(crate) struct Flaws {
    pub(crate) too_deep: bool,
    /// The length of the longest id.
    pub(crate) longest_id: usize,
    /// The first fault, in the order of the tables.
    pub(crate) fault: Option<Box<Fault>>,
}

impl Flaws {
    /// The depth left for the members of a container that may be nested `depth` deep.
    #[inline]
    pub(crate) fn enter(&mut self, depth: usize) -> Option<usize> {
        let inner = depth.checked_sub(1);
        self.too_deep |= inner.is_none();
        inner
    }

    /// Checks a member; a fault found in it gets its path.
    #[inline]
    pub(crate) fn within(&mut self, segment: impl core::fmt::Display, check: impl FnOnce(&mut Self)) {
        let found_before = self.fault.is_some();
        check(self);
        if !found_before {
            if let Some(fault) = &mut self.fault {
                let inner = core::mem::take(&mut fault.path);
                // Writing to a `String` never fails.
                let _ = write!(fault.path, "/{segment}{inner}");
            }
        }
    }

    pub(crate) fn fault(&mut self, expected: &'static str, found: impl Into<String>) {
        if self.fault.is_none() {
            let fault = Fault { path: String::new(), expected, found: found.into(), rule: Rule::E5 };
            self.fault = Some(Box::new(fault));
        }
    }

    /// An id, of whatever length.
    #[inline]
    pub(crate) fn id(&mut self, id: &str) {
        self.longest_id = self.longest_id.max(id.len());
    }

    /// Checks an integer: within ±(2^53-1), or from 0.
    #[inline]
    pub(crate) fn integer(&mut self, number: impl Into<i128> + core::fmt::Display + Copy, expected: &'static str) {
        let value: i128 = number.into();
        if value.unsigned_abs() >= 1 << 53 || (value < 0 && expected != INTEGER) {
            self.fault(expected, format!("the number {number}"));
        }
    }

    /// Checks an open value that must not be null.
    pub(crate) fn not_null(&mut self, value: &Value, depth: usize) {
        if value.is_null() {
            self.fault(NOT_NULL, "null");
        }
        self.open(value, depth);
    }

    /// Checks an open value.
    pub(crate) fn open(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Array(elements) => {
                if let Some(depth) = self.enter(depth) {
                    elements.iter().for_each(|element| self.open(element, depth));
                }
            }
            Value::Object(members) => self.open_object(members, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    pub(crate) fn open_object(&mut self, members: &Map<String, Value>, depth: usize) {
        if let Some(depth) = self.enter(depth) {
            members.values().for_each(|value| self.open(value, depth));
        }
    }
}
