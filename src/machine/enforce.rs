//! Enforcement: raw events in, typed events out (rules E1 to E11).

use core::fmt;
use std::borrow::Cow;
use std::collections::VecDeque;

use serde_json::Value;

use super::lazy::Lazy;
use super::sink::Sink;
use super::{Machine, Push, queued_machine};
use crate::error::{Error, Limit, LimitExceeded, Malformed};
use crate::event::fast;
use crate::event::{Event, EventType};
use crate::excerpt::excerpt;
use crate::id::Interner;
use crate::item::{Counter, Halves, Indexed, Item, Place};
use crate::json::node::Node;
use crate::json::scan::has_at_most;
use crate::json::string::Lone;
use crate::limits::Limits;
use crate::raw::{Body, RawEvent};
use crate::rule::Rule;
use crate::schema::check::Flaws;
use crate::schema::decode::{Context, Decode, Reject};
use crate::schema::text;
use crate::warning::Warning;

/// Reads raw events and checks them against the schema: unknown parts are removed with a warning, a
/// malformed one is fatal (rules E1 to E11).
///
/// In: any [`RawEvent`], one event each. Out, for each: a [`Warning`] for every removed part, in the
/// order of the schema, then the event, unless all of it was dropped.
///
/// A common event costs one pass over its text and the allocation of its content; other events cost a
/// tree of borrowed values as well. The verdict does not depend on the form of the event (rule P4):
/// typed events are checked too.
///
/// # Errors
/// [`Error::Malformed`] with E5, E9 or, for an id, E11, and [`Error::LimitExceeded`]. A rejected event
/// changes nothing, so a tool that wants to see every fault may go on pushing.
pub struct Enforcer {
    limits: Lazy<Limits>,
    /// See [`Limits::unquestioned_bytes`], which every text is compared with.
    unquestioned: usize,
    counter: Counter,
    cx: Context,
    ready: VecDeque<Item>,
}

/// The interner tells the length of longer ids alone.
const _: () = assert!(Interner::MAX_LEN <= Limits::FLOOR_ID_BYTES);

impl Enforcer {
    /// An enforcer with the default [`Limits`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            limits: Lazy::default(),
            unquestioned: Limits::DEFAULT.unquestioned_bytes(),
            counter: Counter::default(),
            cx: Context::default(),
            ready: VecDeque::new(),
        }
    }

    /// The same with other bounds.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.hold(limits);
        self
    }

    fn hold(&mut self, limits: Limits) {
        self.unquestioned = limits.unquestioned_bytes();
        self.limits = Lazy::of(limits);
    }

    /// The number of input events so far; the index of the next one.
    #[must_use]
    pub fn event_count(&self) -> u64 {
        self.counter.next()
    }

    /// Reads text without a tree, and gives the event to `next`. `false` if that cannot be done: then
    /// [`feed_thoroughly`](Enforcer::feed_thoroughly) has to read it.
    ///
    /// Text that it reads has no `null` and no retired shape, so it needs no translation before.
    #[inline]
    pub(super) fn feed_fast(&mut self, text: &str, index: u64, next: &mut impl Sink) -> Result<bool, Error> {
        let is_large = text.len() > self.unquestioned;
        if is_large && self.check_text(text, index).is_err() {
            return Ok(false);
        }
        let mut fields = fast::Fields::default();
        let interner = &mut self.cx.interner;
        if fields.read(text) {
            if is_large && !fields.has_ids_within(self.limits.id_bytes()) {
                return Ok(false);
            }
            if fields.is_text_content() {
                let place = Place::new(index, EventType::TextMessageContent);
                next.text_content(fields.text_content(interner), place)?;
                return Ok(true);
            }
            let place = Place::new(index, EventType::TextMessageChunk);
            next.text_chunk(fields.text_chunk(interner), place)?;
            return Ok(true);
        }
        interner.longest = 0;
        match text::read(text, self.limits.depth(), interner) {
            Some(_) if is_large && interner.longest > self.limits.id_bytes() => Ok(false),
            Some(event) => next.event(Indexed::new(event, index)).map(|()| true),
            None => Ok(false),
        }
    }

    /// Reads a raw event, and gives the warnings and the typed event to `next`.
    pub(super) fn feed(&mut self, body: Body<'_>, index: u64, next: &mut impl Sink) -> Result<(), Error> {
        match body.checked() {
            Body::Text(text) if self.feed_fast(text, index, next)? => Ok(()),
            body => self.feed_thoroughly(body, index, next),
        }
    }

    /// The same, for text that no fast path reads.
    pub(super) fn feed_thoroughly(&mut self, body: Body<'_>, index: u64, next: &mut impl Sink) -> Result<(), Error> {
        match body {
            Body::Text(text) => self.read_text(text, index, next),
            Body::Bytes(bytes) => {
                self.check_len(bytes.len(), index)?;
                match core::str::from_utf8(bytes) {
                    Ok(text) => self.read_text(text, index, next),
                    Err(error) => {
                        Err(no_event(index, "UTF-8", format!("an invalid byte at offset {}", error.valid_up_to())))
                    }
                }
            }
            Body::Value(value) => {
                let mut left = self.limits.max_event_values;
                if !fits(value, &mut left) {
                    return Err(self.exceeds(Limit::EventValues, self.limits.max_event_values, index));
                }
                let node = Node::from_value(value, self.limits.depth()).ok_or_else(|| self.too_deep(index))?;
                self.read_node(&node, index, next)
            }
            Body::Event(event) => self.read_event(event, index, next),
            Body::Warning(warning) => next.warning(warning),
            Body::Options(options) => {
                self.hold(options.limits_over(*self.limits));
                Ok(())
            }
        }
    }

    /// Reads text by way of a tree.
    fn read_text(&mut self, text: &str, index: u64, next: &mut impl Sink) -> Result<(), Error> {
        self.check_text(text, index)?;
        let node = Node::parse(text, self.limits.depth()).map_err(|error| {
            if error.too_deep {
                return self.too_deep(index);
            }
            let mut found = format!("invalid JSON: {} at byte {}", error.reason, error.offset);
            // Encoded bytes, a page, `[DONE]`: the beginning tells. For an object, the place of the fault.
            let shown = text.trim_start();
            if !shown.starts_with('{') {
                quote(&mut found, " of ", excerpt(shown, 40));
            } else {
                quote(&mut found, ", before ", excerpt(text.get(error.offset..).unwrap_or_default(), 40));
            }
            no_event(index, "a JSON object", found)
        })?;
        self.read_node(&node, index, next)
    }

    fn check_len(&self, len: usize, index: u64) -> Result<(), Error> {
        let max = self.limits.max_event_bytes;
        if len > max { Err(self.exceeds(Limit::EventBytes, max, index)) } else { Ok(()) }
    }

    /// Whether a text may be read, before it is.
    fn check_text(&self, text: &str, index: u64) -> Result<(), Error> {
        self.check_len(text.len(), index)?;
        let max = self.limits.max_event_values;
        // Whoever has fewer bytes has fewer values.
        if text.len() / 2 >= max && !has_at_most(max, text) {
            Err(self.exceeds(Limit::EventValues, max, index))
        } else {
            Ok(())
        }
    }

    /// Whether all ids of an event that was read may be kept.
    fn check_ids(&self, longest: usize, index: u64) -> Result<(), Error> {
        let max = self.limits.id_bytes();
        if longest > max { Err(self.exceeds(Limit::IdBytes, max, index)) } else { Ok(()) }
    }

    fn too_deep(&self, index: u64) -> Error {
        self.exceeds(Limit::Depth, self.limits.depth(), index)
    }

    #[cold]
    fn exceeds(&self, limit: Limit, max: usize, index: u64) -> Error {
        LimitExceeded::new(index, limit, max).into()
    }

    fn read_node(&mut self, node: &Node<'_>, index: u64, next: &mut impl Sink) -> Result<(), Error> {
        let Node::Object(members) = node else {
            return Err(no_event(index, "a JSON object", node.describe()));
        };
        let member = |key: &str| members.iter().find(|(name, _)| name.as_str() == key).map(|(_, value)| value);
        let type_name = match member("type") {
            Some(Node::String(name)) if !name.as_str().is_empty() => name.as_str(),
            Some(other) => {
                let mut found = other.describe();
                quote(&mut found, " in ", node.beginning(MAX_QUOTE).into());
                return Err(no_event(index, "a non-empty string in `type`", found));
            }
            None => {
                let mut found = "an object without one".to_owned();
                quote(&mut found, ": ", node.beginning(MAX_QUOTE).into());
                return Err(no_event(index, "a member `type`", found));
            }
        };
        let Some(event_type) = EventType::from_wire(type_name) else {
            let message = format!("dropped an event of the unknown type {:?}", excerpt(type_name, 64));
            return next.warning(Warning::new(Rule::E1, index, type_name, "", message));
        };
        let place = Place::new(index, event_type);
        self.cx.reset();
        let lone = match (is_delta_bearing(event_type), member("delta")) {
            (true, Some(Node::String(delta))) => delta.lone,
            _ => Lone::default(),
        };
        match Event::decode_as(event_type, node, &mut self.cx) {
            Ok(event) => {
                self.check_ids(self.cx.interner.longest, index)?;
                self.warn_of_removed(place, lone, next)?;
                let mut indexed = place.gives(event);
                indexed.halves = Halves { leading: lone.leading, trailing: lone.trailing };
                next.event(indexed)
            }
            Err(Reject::Unknown(rule)) => {
                next.warning(place.warning(rule, "", "dropped the event: a required value is unknown"))
            }
            Err(Reject::Malformed(fault)) => Err(fault.into_malformed(index, Some(event_type)).into()),
        }
    }

    /// Warns of the parts that were removed from an event.
    fn warn_of_removed(&mut self, place: Place, lone: Lone, next: &mut impl Sink) -> Result<(), Error> {
        for removed in self.cx.removed.take() {
            // Expansion may still join halves at the ends of a delta.
            if removed.rule == Rule::E11 && removed.path == "/delta" && !lone.inner {
                continue;
            }
            next.warning(removed.about(place.index, place.sent_as.as_str()))?;
        }
        Ok(())
    }

    /// Checks a typed event for the faults that its types allow.
    fn read_event(&mut self, event: Event, index: u64, next: &mut impl Sink) -> Result<(), Error> {
        let mut flaws = Flaws::default();
        event.check(self.limits.depth(), &mut flaws);
        if flaws.too_deep {
            return Err(self.too_deep(index));
        }
        self.check_ids(flaws.longest_id, index)?;
        match flaws.fault {
            Some(fault) => Err(fault.into_malformed(index, Some(event.event_type())).into()),
            None => next.event(Indexed::new(event, index)),
        }
    }
}

impl Default for Enforcer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Enforcer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enforcer")
            .field("limits", &self.limits)
            .field("events", &self.counter.next())
            .field("ready", &self.ready.len())
            .finish_non_exhaustive()
    }
}

impl<R: RawEvent> Push<R> for Enforcer {
    fn push(&mut self, input: R) -> Result<(), Error> {
        input.view(|body, index| {
            match body {
                Body::Warning(warning) => return self.ready.warning(warning),
                Body::Options(options) => {
                    self.hold(options.limits_over(*self.limits));
                    return Ok(());
                }
                _ => {}
            }
            let index = self.counter.count(index);
            let mut ready = core::mem::take(&mut self.ready);
            let fed = self.feed(body, index, &mut ready);
            self.ready = ready;
            fed.inspect_err(|error| crate::log::rejected(error, &format_args!("{index} events came before")))
        })
    }
}

queued_machine!(Enforcer: Item);

/// Whether a value holds at most so many, itself included; takes what it holds from what is left.
fn fits(value: &Value, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else { return false };
    *left = rest;
    match value {
        Value::Array(elements) => elements.iter().all(|element| fits(element, left)),
        Value::Object(members) => members.values().all(|member| fits(member, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn is_delta_bearing(event_type: EventType) -> bool {
    matches!(
        event_type,
        EventType::TextMessageContent
            | EventType::TextMessageChunk
            | EventType::ToolCallArgs
            | EventType::ToolCallChunk
            | EventType::ReasoningMessageContent
            | EventType::ReasoningMessageChunk
    )
}

/// The most bytes quoted of an object that is not an event: it may tell what is wrong with the server.
const MAX_QUOTE: usize = 200;

fn quote(found: &mut String, joint: &str, text: Cow<'_, str>) {
    if !text.is_empty() {
        found.push_str(&format!("{joint}{text:?}"));
    }
}

fn no_event(index: u64, expected: &'static str, found: String) -> Error {
    Malformed::new(Rule::E9, index, expected, found).into()
}

impl Event {
    /// Reads one event from JSON text, as enforcement does.
    ///
    /// Gives the event and the warnings; `None` for an event of an unknown type.
    ///
    /// # Errors
    /// [`Error::Malformed`] (E5, E9) and [`Error::LimitExceeded`] by the default [`Limits`].
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::Event;
    ///
    /// let json = r#"{"type":"TEXT_MESSAGE_END","messageId":"m","shade":"blue"}"#;
    /// let (event, warnings) = Event::from_json(json)?;
    /// assert!(matches!(event, Some(Event::TextMessageEnd(end)) if end.message_id == "m"));
    /// assert_eq!(warnings[0].path, "/shade");
    /// # Ok::<(), ag_ui_stream::Error>(())
    /// ```
    pub fn from_json(json: impl AsRef<[u8]>) -> Result<(Option<Event>, Vec<Warning>), Error> {
        Self::from_raw(json.as_ref())
    }

    /// The same from a [`Value`].
    ///
    /// # Errors
    /// As [`Event::from_json`].
    pub fn from_value(value: &Value) -> Result<(Option<Event>, Vec<Warning>), Error> {
        Self::from_raw(value)
    }

    fn from_raw(raw: impl RawEvent) -> Result<(Option<Event>, Vec<Warning>), Error> {
        let mut enforcer = Enforcer::new();
        enforcer.push(raw)?;
        let mut warnings = Vec::new();
        let mut event = None;
        while let Some(item) = enforcer.pop() {
            match item {
                Item::Event(indexed) => event = Some(indexed.event),
                Item::Warning(warning) => warnings.push(warning),
            }
        }
        Ok((event, warnings))
    }
}
