//! The events of steps: <https://docs.ag-ui.com/spec/1.0/events/lifecycle>.

use super::BaseEvent;
use std::sync::Arc;

object! {
    /// A named step of the run begins (rule S8).
    pub struct StepStartedEvent {
        tag "type" "STEP_STARTED";
        required {
            /// The step, unique among those that its owner has open.
            step_name: Arc<str> = "stepName",
        }
        flatten subagent_run_id base;
    }
}

object! {
    /// A step ends; its owner must be the one that began it (rule S8).
    pub struct StepFinishedEvent {
        tag "type" "STEP_FINISHED";
        required {
            /// The step.
            step_name: Arc<str> = "stepName",
        }
        flatten subagent_run_id base;
    }
}
