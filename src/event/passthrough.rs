//! `RAW` and `CUSTOM`, the events whose content the protocol does not define: <https://docs.ag-ui.com/spec/1.0/events/passthrough>.

use super::BaseEvent;
use std::sync::Arc;

use serde_json::Value;

object! {
    /// `RAW`: an event of another system, passed through.
    pub struct RawPassthroughEvent {
        tag "type" "RAW";
        required {
            /// The event, any JSON value.
            event: Value = "event",
        }
        optional {
            /// The system it comes from.
            source: Arc<str> = "source",
        }
        flatten subagent_run_id base;
    }
}

object! {
    /// `CUSTOM`: an event that an application and its agent agreed upon.
    pub struct CustomEvent {
        tag "type" "CUSTOM";
        required {
            /// Which event it is.
            name: Arc<str> = "name",
            /// What it carries, any JSON value.
            value: Value = "value",
        }
        flatten subagent_run_id base;
    }
}
