//! `Repairer`: expanded events in, the same events out with some faults of real producers repaired
//! (rules X1, X2, X3, X5).
//!
//! ```text
//!                RUN_STARTED            RUN_FINISHED (X1)
//!   outside ──────────────────► active ──────────────────► active, RUN_FINISHED held back
//!      ▲                          │                             │
//!      ╰──────────────────────────┴─────────────────────────────╯
//!        RUN_FINISHED (without X1), RUN_ERROR     RUN_STARTED, RUN_ERROR, the end: it is delivered
//! ```
//!
//! Outside of a run nothing is repaired. All other events pass unchanged, and verification judges them.

use std::collections::{HashMap, VecDeque};

use super::sink::{Sink, Stage};
use super::{Push, queued_machine};
use crate::error::{Error, Subject, SubjectKind};
use crate::event::fast::{TextChunk, TextContent};
use crate::event::{
    BaseEvent, Event, MessagesSnapshotEvent, ReasoningEndEvent, ReasoningMessageEndEvent, ReasoningMessageStartEvent,
    ReasoningStartEvent, StepFinishedEvent, StepStartedEvent, TextMessageEndEvent, TextMessageStartEvent,
    ToolCallEndEvent, ToolCallStartEvent,
};
use crate::id::{Id, SubagentRunId};
use crate::item::{Counter, Indexed, Item, Place};
use crate::message::Role;
use crate::options::{Repair, Repairs};
use crate::rule::Rule;

/// Mends faults of real producers that verification rejects: rules X1, X2, X3 and X5, each where it
/// is switched on.
///
/// In: expanded events and warnings. Out: the same, in order, with the missing STARTs and ENDs. Every
/// repair gives a warning, before the event that it lets pass or in place of the one that it drops; the
/// warning names the broken rule. A stream that breaks none is unchanged, except that
/// [`Repair::ResultAfterFinish`] holds RUN_FINISHED back until the run is certainly over.
///
/// No text is invented, and no run becomes a success: if an item that began after RUN_FINISHED is open
/// at the end of the input, the run is truncated (rule R8).
///
/// A synthesized event has the index of the event that caused it. [`Repair::IgnoreFrames`] is for
/// [decoders](crate::codec) and does nothing here.
///
/// # Errors
/// None. Verification comes after it.
///
/// # Cost
/// A probe for each event of a streamed item. It holds an entry for each item that the active run named,
/// one RUN_FINISHED, and the usage of earlier ones, 65 536 entries at most.
///
/// # Examples
/// ```
/// use ag_ui_stream::event::{RunStartedEvent, TextMessageContentEvent};
/// use ag_ui_stream::machine::{Machine, Push, Repair, Repairer};
/// use ag_ui_stream::{Event, Rule};
///
/// let mut repairer = Repairer::new(Repair::OpenUnopened.into());
/// repairer.push(Event::from(RunStartedEvent::new("thread", "run")))?;
/// repairer.push(Event::from(TextMessageContentEvent::new("m", "Hello")))?;
/// let items: Vec<_> = std::iter::from_fn(|| repairer.pop()).collect();
/// assert_eq!(items[1].warning().unwrap().rule, Rule::X3);
/// assert!(matches!(items[2].event(), Some(Event::TextMessageStart(start)) if start.message_id == "m"));
/// assert_eq!(items.len(), 4);
/// # Ok::<(), ag_ui_stream::Error>(())
/// ```
#[derive(Debug)]
pub struct Repairer {
    repairs: Repairs,
    counter: Counter,
    /// Whether a run is active.
    is_active: bool,
    /// The items that the active run opened, and the number of openings.
    things: HashMap<Key, Thing>,
    opened: u64,
    held: Option<Held>,
    ready: VecDeque<Item>,
}

/// An item with a START and an END. The owner is part of the key of a step (rule S8), and of no other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    kind: SubjectKind,
    owner: Option<SubagentRunId>,
    id: Id,
}

#[derive(Debug)]
struct Thing {
    /// The event that first opened it, with only what it established.
    start: Event,
    life: Life,
}

#[derive(Clone, Copy, Debug)]
enum Life {
    /// `order` counts the openings of the run.
    Open { since: u64, order: u64, by_repair: bool },
    /// Closed at this event.
    Closed { at: u64 },
}

/// A RUN_FINISHED that is held back.
#[derive(Debug)]
struct Held {
    indexed: Indexed,
    place: Place,
    /// The number of openings by then.
    opened: u64,
    /// Whether anything came after it.
    is_followed: bool,
}

/// What an event does to an item.
enum Touch {
    Start(Key),
    Content(Key),
    End(Key),
}

impl Repairer {
    /// The most usage entries kept from several RUN_FINISHED, so that a producer cannot fill the memory.
    const MAX_USAGE: usize = 64 * 1024;

    /// A stage with these repairs.
    #[must_use]
    pub fn new(repairs: Repairs) -> Self {
        Self {
            repairs,
            counter: Counter::default(),
            is_active: false,
            things: HashMap::new(),
            opened: 0,
            held: None,
            ready: VecDeque::new(),
        }
    }

    /// Its repairs.
    #[must_use]
    pub fn repairs(&self) -> Repairs {
        self.repairs
    }

    fn has(&self, repair: Repair) -> bool {
        self.repairs.contains(repair)
    }

    fn accept(&mut self, indexed: Indexed) {
        let place = self.counter.place(&indexed);
        match &indexed.event {
            Event::RunStarted(_) => {
                self.release();
                self.end_run();
                self.is_active = true;
            }
            Event::RunError(_) => {
                self.release_before_failure(place);
                self.end_run();
            }
            Event::RunFinished(_) if self.is_active => return self.finish_run(indexed, place),
            event if self.is_active => {
                self.follow(place);
                if !self.mend(event, place) {
                    return;
                }
            }
            _ => {}
        }
        self.ready.push_back(Item::Event(indexed));
    }

    /// Repairs the place of an event about an item; `false` if the event is to be dropped.
    fn mend(&mut self, event: &Event, place: Place) -> bool {
        match event {
            Event::MessagesSnapshot(event) => self.set_owners(event),
            Event::ToolCallResult(event) => {
                self.close_reopened(&key(SubjectKind::ToolCall, event.tool_call_id.id()), place);
            }
            _ => {}
        }
        match Touch::of(event) {
            None => true,
            Some(Touch::Start(key)) => {
                // The producer does not know that it is open.
                self.close_reopened(&key, place);
                self.open(key, event, false, place);
                true
            }
            Some(Touch::Content(key)) => {
                let missing = match self.things.get(&key) {
                    Some(Thing { start, life: Life::Closed { at } }) if self.has(Repair::Reopen) => {
                        let what = format!("opened {} again, which was closed at event {at}", key.subject());
                        Some((Rule::X2, what, start.clone()))
                    }
                    None if self.has(Repair::OpenUnopened) => {
                        let what = format!("opened {}, which no event had opened in this run", key.subject());
                        start_for(event).map(|start| (Rule::X3, what, start))
                    }
                    _ => None,
                };
                if let Some((rule, what, start)) = missing {
                    self.warn(rule, place, key.path(), &what, Rule::S2);
                    self.open(key, &start, true, place);
                    self.give(start, place);
                }
                true
            }
            Some(Touch::End(key)) => match self.things.get_mut(&key).map(|thing| &mut thing.life) {
                Some(life @ Life::Open { .. }) => {
                    *life = Life::Closed { at: place.index };
                    true
                }
                Some(&mut Life::Closed { at }) if self.repairs.contains(Repair::Reopen) && key.is_item() => {
                    let what = format!("dropped: {} was closed at event {at} already", key.subject());
                    self.warn(Rule::X2, place, key.path(), &what, Rule::S2);
                    false
                }
                _ => true,
            },
        }
    }

    /// Notes that this event opened an item.
    fn open(&mut self, key: Key, event: &Event, by_repair: bool, place: Place) {
        let life = Life::Open { since: place.index, order: self.opened, by_repair };
        self.opened += 1;
        match self.things.get_mut(&key) {
            // Verification rejects a second START; the first one stands.
            Some(Thing { life: Life::Open { .. }, .. }) => {}
            Some(thing) => thing.life = life,
            None => {
                if let Some(start) = bare(event) {
                    self.things.insert(key, Thing { start, life });
                }
            }
        }
    }

    /// Closes an item that a repair has opened.
    fn close_reopened(&mut self, key: &Key, place: Place) {
        if let Some(thing) = self.things.get_mut(key) {
            if let Life::Open { by_repair: true, .. } = thing.life {
                thing.life = Life::Closed { at: place.index };
                let end = end_of(&thing.start);
                end.into_iter().for_each(|end| self.give(end, place));
            }
        }
    }

    /// A snapshot sets the owners of its messages and of their calls (rule O7): a START that opens one
    /// again has to name that owner.
    fn set_owners(&mut self, snapshot: &MessagesSnapshotEvent) {
        for message in &snapshot.messages {
            let owner = message.subagent_run_id();
            let kinds: &[SubjectKind] = match message.role() {
                Role::Reasoning => &[SubjectKind::ReasoningMessage, SubjectKind::ReasoningSpan],
                _ => &[SubjectKind::TextMessage],
            };
            let calls = message.tool_calls().map(|call| key(SubjectKind::ToolCall, call.id.id()));
            for key in kinds.iter().map(|kind| key(*kind, message.id().id())).chain(calls) {
                let tag = self.things.get_mut(&key).and_then(|thing| tag_of(&mut thing.start));
                tag.into_iter().for_each(|tag| *tag = owner.cloned());
            }
        }
    }

    /// X1: an event of the run comes after its end.
    fn follow(&mut self, place: Place) {
        let Some(held) = self.held.as_mut().filter(|held| !held.is_followed) else { return };
        held.is_followed = true;
        let finished = held.place.index;
        let what = format!("comes after RUN_FINISHED (event {finished}), which is held back until the end of the run");
        self.warn(Rule::X1, place, "", &what, Rule::R4);
    }

    fn finish_run(&mut self, mut indexed: Indexed, place: Place) {
        if let Some(before) = self.held.take() {
            self.drop_held(before, &mut indexed, place);
        }
        self.held = Some(Held { indexed, place, opened: self.opened, is_followed: false });
        if !self.has(Repair::ResultAfterFinish) {
            self.release();
        }
    }

    /// X1: the run finished again, or failed; a next RUN_FINISHED takes over the usage.
    fn drop_held(&mut self, held: Held, next: &mut Indexed, place: Place) {
        let mut what = format!("dropped: the run went on, to {} (event {})", place.sent_as, place.index);
        let usage = match held.indexed.event {
            Event::RunFinished(event) => event.usage,
            _ => None,
        };
        if let (Some(mut usage), Event::RunFinished(next)) = (usage, &mut next.event) {
            let more = next.usage.take().unwrap_or_default();
            if usage.len().saturating_add(more.len()) <= Self::MAX_USAGE {
                usage.extend(more);
                next.usage = Some(usage);
                what.push_str(", which takes over its usage");
            } else {
                next.usage = Some(more).filter(|more| !more.is_empty());
                what.push_str("; its usage is lost, as there are too many entries");
            }
        }
        self.warn(Rule::X1, held.place, "", &what, Rule::R4);
    }

    /// Delivers the RUN_FINISHED that is held back, after the ENDs that are missing.
    fn release(&mut self) {
        let Some(held) = self.held.take() else { return };
        let mut open: Vec<(u64, u64, bool, Key)> = Vec::new();
        for (key, thing) in &self.things {
            match thing.life {
                Life::Open { since, order, by_repair } if by_repair || self.closes(&held, key, order) => {
                    open.push((order, since, by_repair, key.clone()));
                }
                _ => {}
            }
        }
        // The last opened first, as it is nested in the others.
        open.sort_unstable_by_key(|(order, ..)| core::cmp::Reverse(*order));
        for (_, since, by_repair, key) in open {
            if !by_repair {
                let what = format!("closed {}, open since event {since}", key.subject());
                self.warn(Rule::X5, held.place, "", &what, Rule::R3);
            }
            let end = self.things.get(&key).and_then(|thing| end_of(&thing.start));
            end.into_iter().for_each(|end| self.give(end, held.place));
        }
        self.ready.push_back(Item::Event(held.indexed));
        self.end_run();
    }

    /// X5: whether this was open when RUN_FINISHED came, and may be closed for it.
    fn closes(&self, held: &Held, key: &Key, order: u64) -> bool {
        self.has(Repair::CloseAtFinish) && order < held.opened && key.kind != SubjectKind::Subagent
    }

    /// RUN_ERROR ends the run. If items opened after RUN_FINISHED are still open, RUN_FINISHED is not
    /// delivered, as R3 would reject it.
    fn release_before_failure(&mut self, place: Place) {
        let Some(held) = &self.held else { return };
        let is_open = self.things.iter().any(|(key, thing)| match thing.life {
            Life::Open { order, by_repair, .. } => !by_repair && !self.closes(held, key, order),
            Life::Closed { .. } => false,
        });
        match self.held.take_if(|held| held.is_followed && is_open) {
            Some(held) => {
                let what = format!("dropped: the run went on, to RUN_ERROR (event {})", place.index);
                self.warn(Rule::X1, held.place, "", &what, Rule::R4);
            }
            None => self.release(),
        }
    }

    /// After a fault of the input: a RUN_FINISHED that nothing followed still ends its run (rule R8a).
    pub(super) fn settle(&mut self, next: &mut impl Sink) -> Result<(), Error> {
        if self.held.as_ref().is_some_and(|held| !held.is_followed) {
            self.release();
        }
        self.give_ready(next)
    }

    /// Gives the outputs that are ready.
    fn give_ready(&mut self, next: &mut impl Sink) -> Result<(), Error> {
        while let Some(item) = self.ready.pop_front() {
            next.item(item)?;
        }
        Ok(())
    }

    /// Forgets the run (rule R6).
    fn end_run(&mut self) {
        self.is_active = false;
        self.things.clear();
        self.opened = 0;
        self.held = None;
    }

    fn give(&mut self, event: Event, place: Place) {
        self.ready.push_back(Item::Event(place.gives(event)));
    }

    fn warn(&mut self, rule: Rule, place: Place, path: &str, what: &str, broken: Rule) {
        let message = format!("{what} ({broken})");
        self.ready.push_back(place.warning(rule, path, message).into());
    }
}

impl Stage for Repairer {
    fn feed(&mut self, event: Indexed, next: &mut impl Sink) -> Result<(), Error> {
        self.accept(event);
        self.give_ready(next)
    }

    fn feed_text_content(&mut self, content: TextContent, place: Place, next: &mut impl Sink) -> Result<(), Error> {
        self.feed(place.gives(content.into_event()), next)
    }

    fn feed_text_chunk(&mut self, chunk: TextChunk, place: Place, next: &mut impl Sink) -> Result<(), Error> {
        self.feed(place.gives(chunk.into_event()), next)
    }

    /// Gives the RUN_FINISHED that is held back, unless an item opened after it is still open: then the
    /// run is truncated (rule R8).
    fn end(&mut self, next: &mut impl Sink) -> Result<(), Error> {
        let goes_on = self.held.as_ref().is_some_and(|held| {
            self.things.values().any(|thing| match thing.life {
                Life::Open { order, by_repair, .. } => !by_repair && order >= held.opened,
                Life::Closed { .. } => false,
            })
        });
        if !goes_on {
            self.release();
        }
        self.give_ready(next)
    }

    fn queue(&mut self) -> &mut VecDeque<Item> {
        &mut self.ready
    }
}

impl<I: Into<Item>> Push<I> for Repairer {
    fn push(&mut self, input: I) -> Result<(), Error> {
        self.queue_item(input.into())
    }
}

queued_machine!(Repairer: Item, |stage| stage.queued(Self::end));

fn key(kind: SubjectKind, id: &Id) -> Key {
    Key { kind, owner: None, id: id.clone() }
}

impl Key {
    fn step(owner: Option<&SubagentRunId>, name: &str) -> Self {
        Self { kind: SubjectKind::Step, owner: owner.cloned(), id: Id::new(name) }
    }

    fn subject(&self) -> Subject {
        Subject::new(self.kind, self.id.as_str())
    }

    /// Whether rule S2 applies to it.
    fn is_item(&self) -> bool {
        !matches!(self.kind, SubjectKind::Step | SubjectKind::Subagent)
    }

    /// The JSON pointer of its id in an event.
    fn path(&self) -> &'static str {
        if self.kind == SubjectKind::ToolCall { "/toolCallId" } else { "/messageId" }
    }
}

impl Touch {
    fn of(event: &Event) -> Option<Self> {
        use SubjectKind::{ReasoningMessage, ReasoningSpan, Subagent, TextMessage, ToolCall};
        Some(match event {
            Event::TextMessageStart(event) => Touch::Start(key(TextMessage, event.message_id.id())),
            Event::TextMessageContent(event) => Touch::Content(key(TextMessage, event.message_id.id())),
            Event::TextMessageEnd(event) => Touch::End(key(TextMessage, event.message_id.id())),
            Event::ToolCallStart(event) => Touch::Start(key(ToolCall, event.tool_call_id.id())),
            Event::ToolCallArgs(event) => Touch::Content(key(ToolCall, event.tool_call_id.id())),
            Event::ToolCallEnd(event) => Touch::End(key(ToolCall, event.tool_call_id.id())),
            Event::ReasoningMessageStart(event) => Touch::Start(key(ReasoningMessage, event.message_id.id())),
            Event::ReasoningMessageContent(event) => Touch::Content(key(ReasoningMessage, event.message_id.id())),
            Event::ReasoningMessageEnd(event) => Touch::End(key(ReasoningMessage, event.message_id.id())),
            Event::ReasoningStart(event) => Touch::Start(key(ReasoningSpan, event.message_id.id())),
            Event::ReasoningEnd(event) => Touch::End(key(ReasoningSpan, event.message_id.id())),
            Event::StepStarted(event) => Touch::Start(Key::step(event.subagent_run_id.as_ref(), &event.step_name)),
            Event::StepFinished(event) => Touch::End(Key::step(event.subagent_run_id.as_ref(), &event.step_name)),
            Event::SubagentStarted(event) => Touch::Start(key(Subagent, event.subagent_run_id.id())),
            Event::SubagentFinished(event) => Touch::End(key(Subagent, event.subagent_run_id.id())),
            Event::SubagentError(event) => Touch::End(key(Subagent, event.subagent_run_id.id())),
            _ => return None,
        })
    }
}

/// A START with only the fields that it established.
fn bare(event: &Event) -> Option<Event> {
    macro_rules! bare {
        ($event:expr) => {{
            let mut bare = $event.clone();
            bare.base = BaseEvent::default();
            bare.into()
        }};
    }
    Some(match event {
        Event::TextMessageStart(event) => bare!(event),
        Event::ToolCallStart(event) => bare!(event),
        Event::ReasoningMessageStart(event) => bare!(event),
        Event::ReasoningStart(event) => bare!(event),
        Event::StepStarted(event) => bare!(event),
        Event::SubagentStarted(_) => event.clone(),
        _ => return None,
    })
}

/// The owner that a START names.
fn tag_of(start: &mut Event) -> Option<&mut Option<SubagentRunId>> {
    Some(match start {
        Event::TextMessageStart(TextMessageStartEvent { subagent_run_id, .. })
        | Event::ToolCallStart(ToolCallStartEvent { subagent_run_id, .. })
        | Event::ReasoningMessageStart(ReasoningMessageStartEvent { subagent_run_id, .. })
        | Event::ReasoningStart(ReasoningStartEvent { subagent_run_id, .. }) => subagent_run_id,
        _ => return None,
    })
}

/// X3: the START that is missing before a CONTENT. There is none for a tool call, whose name is unknown.
fn start_for(content: &Event) -> Option<Event> {
    Some(match content {
        Event::TextMessageContent(event) => TextMessageStartEvent {
            subagent_run_id: event.subagent_run_id.clone(),
            ..TextMessageStartEvent::new(event.message_id.clone())
        }
        .into(),
        Event::ReasoningMessageContent(event) => ReasoningMessageStartEvent {
            subagent_run_id: event.subagent_run_id.clone(),
            ..ReasoningMessageStartEvent::new(event.message_id.clone())
        }
        .into(),
        _ => return None,
    })
}

/// The END for a START; none for a subagent, as its end would claim a success.
fn end_of(start: &Event) -> Option<Event> {
    macro_rules! end {
        ($start:ident, $end:ident, $id:ident) => {
            $end { subagent_run_id: $start.subagent_run_id.clone(), ..$end::new($start.$id.clone()) }.into()
        };
    }
    Some(match start {
        Event::TextMessageStart(start) => end!(start, TextMessageEndEvent, message_id),
        Event::ToolCallStart(start) => end!(start, ToolCallEndEvent, tool_call_id),
        Event::ReasoningMessageStart(start) => end!(start, ReasoningMessageEndEvent, message_id),
        Event::ReasoningStart(start) => end!(start, ReasoningEndEvent, message_id),
        Event::StepStarted(StepStartedEvent { step_name, subagent_run_id, .. }) => {
            StepFinishedEvent { subagent_run_id: subagent_run_id.clone(), ..StepFinishedEvent::new(step_name.clone()) }
                .into()
        }
        _ => return None,
    })
}

impl Default for Repairer {
    /// A stage that repairs nothing.
    fn default() -> Self {
        Self::new(Repairs::NONE)
    }
}
