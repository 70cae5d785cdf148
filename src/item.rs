//! What travels between the stages.

use core::fmt;
use core::num::NonZeroU64;

use crate::event::{Event, EventType};
use crate::warning::Warning;

/// An event in its place in the input, or a warning; what every stage behind enforcement takes
/// and gives.
///
/// Middleware between the stages can change, drop or add items: a plain [`Event`] turns into one
/// through `From`.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// An event.
    Event(Indexed),
    /// A warning about the input event that comes next, or that was dropped.
    Warning(Warning),
}

impl Item {
    /// The event, unless this is a warning.
    #[must_use]
    pub fn event(&self) -> Option<&Event> {
        match self {
            Item::Event(indexed) => Some(&indexed.event),
            Item::Warning(_) => None,
        }
    }

    /// The event, unless this is a warning.
    #[must_use]
    pub fn into_event(self) -> Option<Event> {
        match self {
            Item::Event(indexed) => Some(indexed.event),
            Item::Warning(_) => None,
        }
    }

    /// The warning, unless this is an event.
    #[must_use]
    pub fn warning(&self) -> Option<&Warning> {
        match self {
            Item::Event(_) => None,
            Item::Warning(warning) => Some(warning),
        }
    }

    /// The warning, unless this is an event.
    #[must_use]
    pub fn into_warning(self) -> Option<Warning> {
        match self {
            Item::Event(_) => None,
            Item::Warning(warning) => Some(warning),
        }
    }
}

impl From<Event> for Item {
    fn from(event: Event) -> Self {
        Item::Event(Indexed::from(event))
    }
}

impl From<Indexed> for Item {
    fn from(indexed: Indexed) -> Self {
        Item::Event(indexed)
    }
}

impl From<Warning> for Item {
    fn from(warning: Warning) -> Self {
        Item::Warning(warning)
    }
}

/// An event with its place in the input.
#[derive(Clone, PartialEq)]
pub struct Indexed {
    /// The event.
    pub event: Event,
    /// The index in the input, plus one: a word, and none where it is absent.
    place: Option<NonZeroU64>,
    pub(crate) sent_as: Option<EventType>,
    pub(crate) halves: Halves,
}

fn place_of(index: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(index.wrapping_add(1))
}

impl Indexed {
    pub(crate) fn new(event: Event, index: u64) -> Self {
        Self { sent_as: Some(event.event_type()), event, place: place_of(index), halves: Halves::default() }
    }

    /// An event that the input event at `index`, of type `sent_as`, gave rise to.
    pub(crate) fn synthesized(event: Event, index: Option<u64>, sent_as: Option<EventType>) -> Self {
        Self { event, place: index.and_then(place_of), sent_as, halves: Halves::default() }
    }

    /// The index of the input event that this one comes from, counted from 0; `None` for an event
    /// that middleware added.
    #[must_use]
    pub fn index(&self) -> Option<u64> {
        self.place.map(|place| place.get() - 1)
    }

    /// The type of the input event that this one comes from: a chunk's where expansion made it.
    #[must_use]
    pub fn sent_as(&self) -> EventType {
        self.sent_as.unwrap_or_else(|| self.event.event_type())
    }
}

impl fmt::Debug for Indexed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Indexed");
        shown.field("event", &self.event).field("index", &self.index()).field("sent_as", &self.sent_as());
        if self.halves.any() {
            shown.field("halves", &self.halves);
        }
        shown.finish()
    }
}

impl From<Event> for Indexed {
    fn from(event: Event) -> Self {
        Self { event, place: None, sent_as: None, halves: Halves::default() }
    }
}

/// Halves of surrogate pairs at the ends of a delta (rule E11). The delta has U+FFFD in their
/// place; expansion, which knows the item, joins or confirms them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Halves {
    /// The low half that the delta began with, or 0.
    pub(crate) leading: u16,
    /// The high half that the delta ended with, or 0.
    pub(crate) trailing: u16,
}

impl Halves {
    pub(crate) fn any(self) -> bool {
        self.leading != 0 || self.trailing != 0
    }
}
