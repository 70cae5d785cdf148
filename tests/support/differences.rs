//! Where the crate differs from npm `@ag-ui/client` 1.0.0 on purpose, one table.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use ag_ui_stream::Rule;
use serde_json::Value;

use crate::Case;

/// What the two sides can differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aspect {
    Verdict,
    Events,
    Outcomes,
    Messages,
    State,
}

/// One difference.
#[derive(Debug)]
pub struct Difference {
    /// The rule that decides.
    pub rule: Rule,
    /// What the crate does, the heading in `docs/differences.md`.
    pub name: &'static str,
    /// What it can show in.
    pub aspects: &'static [Aspect],
    /// Whether it is at work in this case.
    pub explains: fn(&Case) -> bool,
    /// A stream, one event a line, that shows it and no other.
    pub example: &'static str,
}

use Aspect::{Events, Messages, Outcomes, State, Verdict};

pub const DIFFERENCES: &[Difference] = &[];
