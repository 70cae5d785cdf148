//! `Downgrader`: drops events that a peer from before AG-UI 1.0 cannot know.

use core::fmt;
use std::collections::VecDeque;

use super::lazy::Lazy;
use super::upgrade::{Members, get_mut, has_escaped_letters, remove, string};
use super::{Push, queued_machine};
use crate::error::Error;
use crate::item::Counter;
use crate::json::node::Node;
use crate::limits::Limits;
use crate::raw::{Owned, Raw, RawEvent, RawItem};
use crate::rule::Rule;
use crate::version::ProtocolVersion;
use crate::warning::Warning;

/// Limits a producer to the version of the protocol that it speaks: raw events in, raw events out, without
/// events and fields of later versions, for an [`Upgrader`](crate::machine::Upgrader) or any later stage.
///
/// Up to [0.0.57](ProtocolVersion::LAST_WITHOUT_SUBAGENTS) there are no subagents: their events are
/// dropped, each with a warning, and `subagentRunId` is removed from all others. Events of a later
/// version pass through unchanged, and so do malformed ones.
///
/// The counterpart for the input sent to such a peer is [`Outgoing`](crate::input::Outgoing).
///
/// # Errors
/// None.
///
/// # Cost
/// Text is searched for a few words, and parsed only if one is found.
///
/// # Examples
/// ```
/// use ag_ui_stream::machine::{Downgrader, Machine, Push};
/// use ag_ui_stream::{Raw, RawItem, Rule};
///
/// let mut downgrader = Downgrader::new("0.0.57".parse()?);
/// downgrader.push(r#"{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n"}"#)?;
/// downgrader.push(r#"{"type":"STEP_STARTED","stepName":"one","subagentRunId":"s"}"#)?;
///
/// let Some(RawItem::Warning(warning)) = downgrader.pop() else { panic!() };
/// assert_eq!((warning.rule, warning.event), (Rule::R11, 0));
/// let Some(RawItem::Event { raw: Raw::Text(text), index: 1 }) = downgrader.pop() else { panic!() };
/// assert_eq!(text, r#"{"type":"STEP_STARTED","stepName":"one"}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Downgrader {
    peer: ProtocolVersion,
    limits: Lazy<Limits>,
    counter: Counter,
    ready: VecDeque<RawItem>,
}

/// What becomes of an event.
enum Verdict {
    Same,
    Changed,
    /// Its type.
    Dropped(String),
}

impl Downgrader {
    /// For a producer of this version, with the default [`Limits`].
    #[must_use]
    pub fn new(peer: ProtocolVersion) -> Self {
        Self { peer, limits: Lazy::default(), counter: Counter::default(), ready: VecDeque::new() }
    }

    /// The same with other bounds: an event beyond them passes through unchanged, for enforcement to
    /// reject.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = Lazy::of(limits);
        self
    }

    /// Takes one event, and gives it or a warning.
    pub(crate) fn apply(&mut self, input: impl RawEvent) -> RawItem {
        let (raw, index) = match input.own() {
            Owned::Event(raw, index) => (raw, self.counter.count(index)),
            Owned::Warning(warning) => return RawItem::Warning(warning),
            Owned::Options(options) => return RawItem::Options(options),
        };
        if self.peer > ProtocolVersion::LAST_WITHOUT_SUBAGENTS {
            return RawItem::Event { raw, index };
        }
        match self.translate(raw) {
            Ok(raw) => RawItem::Event { raw, index },
            Err(event_type) => {
                let message = format!("dropping {event_type}: a peer of version {} has no subagents", self.peer);
                RawItem::Warning(Warning::new(Rule::R11, index, &event_type, String::new(), message))
            }
        }
    }

    /// The event as the peer can know it, or the type of an event that it cannot know.
    fn translate(&self, raw: Raw) -> Result<Raw, String> {
        let translated = match &raw {
            Raw::Text(text) => self.translate_text(text)?.map(Raw::Text),
            Raw::Bytes(bytes) => match core::str::from_utf8(bytes) {
                Ok(text) => self.translate_text(text)?.map(|text| Raw::Bytes(text.into())),
                Err(_) => None,
            },
            Raw::Value(value) => self.translate_value(value)?.map(Raw::Value),
            Raw::Event(event) => match serde_json::to_value(event) {
                Ok(value) => self.translate_value(&value)?.map(Raw::Value),
                Err(_) => None,
            },
        };
        Ok(translated.unwrap_or(raw))
    }

    fn translate_text(&self, text: &str) -> Result<Option<String>, String> {
        let may_have_subagents =
            text.contains("subagentRunId") || text.contains("SUBAGENT_") || has_escaped_letters(text);
        if !may_have_subagents || text.len() > self.limits.max_event_bytes {
            return Ok(None);
        }
        let Ok(mut node) = Node::parse(text, self.limits.depth()) else { return Ok(None) };
        match remove_subagents(&mut node) {
            Verdict::Same => Ok(None),
            Verdict::Changed => Ok(Some(node.to_text())),
            Verdict::Dropped(event_type) => Err(event_type),
        }
    }

    fn translate_value(&self, value: &serde_json::Value) -> Result<Option<serde_json::Value>, String> {
        let Some(mut node) = Node::from_value(value, self.limits.depth()) else { return Ok(None) };
        match remove_subagents(&mut node) {
            Verdict::Same => Ok(None),
            Verdict::Changed => Ok(node.to_value()),
            Verdict::Dropped(event_type) => Err(event_type),
        }
    }
}

fn remove_subagents(event: &mut Node<'_>) -> Verdict {
    let Node::Object(members) = event else { return Verdict::Same };
    let Some(event_type) = string(members, "type").map(|text| text.as_str().to_owned()) else { return Verdict::Same };
    let mut changed = remove_tag(members);
    match event_type.as_str() {
        "SUBAGENT_STARTED" | "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => return Verdict::Dropped(event_type),
        "MESSAGES_SNAPSHOT" => changed |= remove_tags(members, "messages"),
        "RUN_STARTED" => {
            if let Some(Node::Object(input)) = get_mut(members, "input") {
                changed |= remove_tags(input, "messages");
            }
        }
        "RUN_FINISHED" => {
            if let Some(Node::Object(outcome)) = get_mut(members, "outcome") {
                changed |= remove_tags(outcome, "interrupts");
            }
        }
        _ => {}
    }
    if changed { Verdict::Changed } else { Verdict::Same }
}

fn remove_tag(members: &mut Members<'_>) -> bool {
    remove(members, "subagentRunId").is_some()
}

fn remove_tags(members: &mut Members<'_>, list: &str) -> bool {
    let Some(Node::Array(elements)) = get_mut(members, list) else { return false };
    elements.iter_mut().fold(false, |changed, element| match element {
        Node::Object(members) => remove_tag(members) | changed,
        _ => changed,
    })
}

impl fmt::Debug for Downgrader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Downgrader")
            .field("peer", &self.peer)
            .field("events", &self.counter.next())
            .field("ready", &self.ready.len())
            .finish_non_exhaustive()
    }
}

impl<R: RawEvent> Push<R> for Downgrader {
    fn push(&mut self, input: R) -> Result<(), Error> {
        let output = self.apply(input);
        self.ready.push_back(output);
        Ok(())
    }
}

queued_machine!(Downgrader: RawItem);
