//! `Item`, an event or a warning: the input and output of the stages after enforcement.

use core::fmt;
use core::num::NonZeroU64;

use std::borrow::Cow;

use crate::error::Violation;
use crate::event::{Event, EventType};
use crate::rule::Rule;
use crate::warning::Warning;

/// An event with its place in the input, or a warning: the input and output of every stage after
/// enforcement.
///
/// Middleware between the stages can change, drop or add items. A plain [`Event`] becomes one by
/// `From`.
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
    /// The index in the input, plus one, so that the option takes one word.
    number: Option<NonZeroU64>,
    pub(crate) sent_as: Option<EventType>,
    pub(crate) halves: Halves,
}

fn number(index: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(index.wrapping_add(1))
}

impl Indexed {
    pub(crate) fn new(event: Event, index: u64) -> Self {
        Self { sent_as: Some(event.event_type()), event, number: number(index), halves: Halves::default() }
    }

    /// The index of the input event that this one comes from, counted from 0; `None` for an event
    /// that middleware added.
    #[must_use]
    pub fn index(&self) -> Option<u64> {
        self.number.map(|number| number.get() - 1)
    }

    /// The type of the input event that this one comes from: that of a chunk if expansion made it.
    #[must_use]
    pub fn sent_as(&self) -> EventType {
        self.sent_as.unwrap_or_else(|| self.event.event_type())
    }
}

impl fmt::Debug for Indexed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Indexed");
        shown.field("event", &self.event);
        if let Some(index) = self.index() {
            shown.field("index", &index);
        }
        if self.sent_as() != self.event.event_type() {
            shown.field("sent_as", &self.sent_as());
        }
        if self.halves.any() {
            shown.field("halves", &self.halves);
        }
        shown.finish()
    }
}

impl From<Event> for Indexed {
    fn from(event: Event) -> Self {
        Self { event, number: None, sent_as: None, halves: Halves::default() }
    }
}

/// Which input event a stage judges. Errors, warnings and the events made from it carry this.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Its index; for an event that middleware added, that of the input event that comes next.
    pub(crate) index: u64,
    /// Its type as it was sent: that of a chunk if expansion made it.
    pub(crate) sent_as: EventType,
    /// Whether the index is its own; if not, middleware added it.
    is_indexed: bool,
}

impl Place {
    #[inline(always)]
    pub(crate) fn new(index: u64, sent_as: EventType) -> Self {
        Self { index, sent_as, is_indexed: true }
    }

    /// An event made from this one.
    #[inline(always)]
    pub(crate) fn gives(self, event: Event) -> Indexed {
        let number = if self.is_indexed { number(self.index) } else { None };
        Indexed { event, number, sent_as: Some(self.sent_as), halves: Halves::default() }
    }

    /// The same, for an item that was sent in events of another type.
    #[inline]
    pub(crate) fn gives_as(self, sent_as: EventType, event: Event) -> Indexed {
        Self { sent_as, ..self }.gives(event)
    }

    /// An error: this event breaks a rule.
    pub(crate) fn violation(
        self,
        rule: Rule,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Cow<'static, str>>,
    ) -> Violation {
        Violation::new(rule, self.index, self.sent_as, expected, found)
    }

    /// A warning about this event.
    pub(crate) fn warning(self, rule: Rule, path: impl Into<String>, message: impl Into<String>) -> Warning {
        Warning::new(rule, self.index, self.sent_as.as_str(), path, message)
    }
}

/// Counts the input events of a stage, most of which know their index.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter {
    next: u64,
}

impl Counter {
    /// The index of the next event, unless it knows another.
    pub(crate) fn next(self) -> u64 {
        self.next
    }

    /// Counts an event, and gives its index.
    #[inline]
    pub(crate) fn count(&mut self, index: Option<u64>) -> u64 {
        let index = index.unwrap_or(self.next);
        self.next = index.saturating_add(1);
        index
    }

    /// Counts an event, and gives its place.
    #[inline]
    pub(crate) fn place(&mut self, event: &Indexed) -> Place {
        let index = event.index();
        Place { index: self.count(index), sent_as: event.sent_as(), is_indexed: index.is_some() }
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
