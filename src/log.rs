//! Logging through `tracing`; without that feature the same functions do nothing.

use crate::rule::Rule;

/// A warning.
#[cfg(feature = "tracing")]
pub(crate) fn warn(rule: Rule, event: u64, event_type: &str, path: &str, message: &str) {
    tracing::warn!(target: "ag_ui_stream", rule = rule.as_str(), event, event_type, path, "{message}");
}

#[cfg(not(feature = "tracing"))]
pub(crate) fn warn(_: Rule, _: u64, _: &str, _: &str, _: &str) {}

/// What ended a stream, and the state of the stage that it met.
#[cfg(feature = "tracing")]
pub(crate) fn rejected(error: &dyn core::fmt::Display, state: &dyn core::fmt::Display) {
    tracing::debug!(target: "ag_ui_stream", %state, "rejected: {error}");
}

#[cfg(not(feature = "tracing"))]
pub(crate) fn rejected(_: &dyn core::fmt::Display, _: &dyn core::fmt::Display) {}

/// What ended a run that a viewer is told has failed; which run it was, where that is known.
#[cfg(all(feature = "tracing", feature = "stream"))]
pub(crate) fn run_failed(run: Option<&str>, error: &dyn core::fmt::Display) {
    tracing::error!(target: "ag_ui_stream", run, "the run failed: {error}");
}

#[cfg(all(not(feature = "tracing"), feature = "stream"))]
pub(crate) fn run_failed(_: Option<&str>, _: &dyn core::fmt::Display) {}

/// A recording that broke off while its run goes on.
#[cfg(all(feature = "tracing", feature = "record"))]
pub(crate) fn recording_failed(error: &dyn core::fmt::Display) {
    tracing::warn!(target: "ag_ui_stream", "the recording broke off: {error}");
}

#[cfg(all(not(feature = "tracing"), feature = "record"))]
pub(crate) fn recording_failed(_: &dyn core::fmt::Display) {}
