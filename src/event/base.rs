//! What every event may carry.

use serde::ser::SerializeMap;
use serde_json::Value;

use crate::schema::decode::{Context, Faults, NonNull, Object};
use crate::shared::Metadata;

/// What every event may carry. Serialized beside the event's own fields.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BaseEvent {
    /// When the event was made, in the producer's unit (milliseconds since 1970 by custom), within
    /// ±(2^53-1).
    pub timestamp: Option<i64>,
    /// The event of the underlying framework, kept whole; never null.
    pub raw_event: Option<Box<Value>>,
    /// The producer's own data about the event.
    pub metadata: Option<Metadata>,
}

impl BaseEvent {
    pub(crate) const KEYS: &'static [&'static str] = &["timestamp", "rawEvent", "metadata"];

    pub(crate) fn read(object: Object<'_, '_>, cx: &mut Context, faults: &mut Faults) -> Self {
        Self {
            timestamp: cx.optional(object, "timestamp", faults),
            raw_event: cx.optional::<NonNull>(object, "rawEvent", faults).map(|value| Box::new(value.0)),
            metadata: cx.optional(object, "metadata", faults),
        }
    }

    pub(crate) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        if let Some(timestamp) = &self.timestamp {
            map.serialize_entry("timestamp", timestamp)?;
        }
        if let Some(raw_event) = &self.raw_event {
            map.serialize_entry("rawEvent", raw_event)?;
        }
        if let Some(metadata) = &self.metadata {
            map.serialize_entry("metadata", metadata)?;
        }
        Ok(())
    }
}
