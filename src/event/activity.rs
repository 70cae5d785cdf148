//! The activity events: <https://docs.ag-ui.com/spec/1.0/events/activity>.

use super::BaseEvent;
use std::sync::Arc;

use super::JsonPatch;
use crate::id::MessageId;
use crate::shared::Object;

object! {
    /// Creates an activity message, or replaces one (rule A5).
    pub struct ActivitySnapshotEvent {
        tag "type" "ACTIVITY_SNAPSHOT";
        required {
            /// The activity message.
            message_id: MessageId = "messageId",
            /// What kind of activity it shows.
            activity_type: Arc<str> = "activityType",
            /// The activity, kept whole.
            content: Object = "content",
        }
        optional {
            /// Whether it replaces an activity with the same id; absent means yes.
            replace: bool = "replace",
        }
        flatten subagent_run_id base;
    }
}

object! {
    /// Amends an activity message (rule A5).
    pub struct ActivityDeltaEvent {
        tag "type" "ACTIVITY_DELTA";
        required {
            /// The activity message.
            message_id: MessageId = "messageId",
            /// What kind of activity it shows from now on.
            activity_type: Arc<str> = "activityType",
            /// How its content changes.
            patch: JsonPatch = "patch",
        }
        flatten subagent_run_id base;
    }
}
