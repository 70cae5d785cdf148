//! Logging, or nothing where the feature `tracing` is off: the call sites are the same.

use crate::warning::Warning;

#[cfg(feature = "tracing")]
pub(crate) fn warn(warning: &Warning) {
    tracing::warn!(
        target: "ag_ui_stream",
        rule = warning.rule.code(),
        event = warning.event,
        event_type = warning.event_type.as_str(),
        path = warning.path.as_str(),
        "{}",
        warning.message
    );
}

#[cfg(not(feature = "tracing"))]
pub(crate) fn warn(_: &Warning) {}

/// A recording that broke off while its run goes on.
#[cfg(all(feature = "tracing", feature = "record"))]
pub(crate) fn recording_failed(error: &dyn core::fmt::Display) {
    tracing::warn!(target: "ag_ui_stream", "the recording broke off: {error}");
}

#[cfg(all(not(feature = "tracing"), feature = "record"))]
pub(crate) fn recording_failed(_: &dyn core::fmt::Display) {}
