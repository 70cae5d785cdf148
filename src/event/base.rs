//! The fields that every event may carry: timestamp, raw event, metadata.

use core::fmt;

use serde::ser::SerializeMap;
use serde_json::Value;

use crate::json::Name;
use crate::schema::check::Flaws;
use crate::schema::decode::{Context, Decode, Faults, NonNull, Object};
use crate::schema::text::Reader;
use crate::shared::Metadata;

/// The fields that every event may carry, serialized beside the event's own.
#[derive(Clone, Default, PartialEq)]
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

    /// Reads the value of one of its members, at which the reader is.
    pub(crate) fn take(&mut self, key: &str, reader: &mut Reader<'_, '_>) -> Option<()> {
        match key {
            "timestamp" => reader.once(&mut self.timestamp),
            "metadata" => reader.once(&mut self.metadata),
            _ if self.raw_event.is_some() => None,
            _ => {
                self.raw_event = Some(Box::new(NonNull::read(reader)?.0));
                Some(())
            }
        }
    }

    #[inline]
    pub(crate) fn check(&self, depth: usize, flaws: &mut Flaws) {
        if let Some(timestamp) = &self.timestamp {
            flaws.within("timestamp", |flaws| timestamp.check(depth, flaws));
        }
        if let Some(raw_event) = &self.raw_event {
            flaws.within("rawEvent", |flaws| flaws.not_null(raw_event, depth));
        }
        if let Some(metadata) = &self.metadata {
            flaws.within("metadata", |flaws| metadata.check(depth, flaws));
        }
    }

    /// Adds the fields that are present.
    pub(crate) fn debug(&self, out: &mut fmt::DebugStruct<'_, '_>) {
        if let Some(timestamp) = &self.timestamp {
            out.field("timestamp", timestamp);
        }
        if let Some(raw_event) = &self.raw_event {
            out.field("raw_event", raw_event);
        }
        if let Some(metadata) = &self.metadata {
            out.field("metadata", metadata);
        }
    }

    pub(crate) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        if let Some(timestamp) = &self.timestamp {
            map.serialize_entry(&Name("timestamp"), timestamp)?;
        }
        if let Some(raw_event) = &self.raw_event {
            map.serialize_entry(&Name("rawEvent"), raw_event)?;
        }
        if let Some(metadata) = &self.metadata {
            map.serialize_entry(&Name("metadata"), metadata)?;
        }
        Ok(())
    }
}

/// Absent fields are left out.
impl fmt::Debug for BaseEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("BaseEvent");
        self.debug(&mut out);
        out.finish()
    }
}
