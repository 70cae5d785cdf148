//! Chunk expansion: chunks in, START, CONTENT and END out (rules C1 to C11). Also joins halves of
//! surrogate pairs across the deltas of an item (rule E11).
//!
//! The states of one lane, with the output in brackets:
//!
//! ```text
//!          first chunk of an item [START, CONTENT?]
//!   idle ───────────────────────────────────────────▶ open ──╮ chunk of that item [CONTENT?]
//!    ▲                                                 │  ▲──╯
//!    │                                                 │  ▲──╮ chunk of another item
//!    │   any other event that reaches the lane         │  ╰──╯ [END, START, CONTENT?]
//!    ╰────────────────────────── [END, the event] ─────╯
//! ```
//!
//! The table of the events says which lanes each event ends: [`Ends`].

use core::fmt;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use smol_str::{SmolStr, format_smolstr};

use super::lazy::{Empty, Lazy};
use super::sink::{Sink, Stage};
use super::streamed::Streamed;
use super::{Push, queued_machine};
use crate::error::{Error, History, Limit, LimitExceeded, Subject};
use crate::event::fast::{TextChunk, TextContent};
use crate::event::{
    BaseEvent, Event, EventType, ReasoningMessageChunkEvent, ReasoningMessageStartEvent, TextMessageChunkEvent,
    TextMessageRole, TextMessageStartEvent, ToolCallChunkEvent, ToolCallStartEvent,
};
use crate::event_type::Ends;
use crate::id::{Id, IdMap, MessageId, SubagentRunId, ToolCallId, id_map};
use crate::item::{Counter, Halves, Indexed, Item, Place};
use crate::json::scan::join;
use crate::limits::{HeldLimits, Limits};
use crate::rule::Rule;
use crate::warning::Warning;

/// Expands chunks into START, CONTENT and END (rules C1 to C11), and joins the halves of
/// surrogate pairs that a producer cut between two deltas (rule E11).
///
/// In: events as enforcement gives them. Out, for each, in this order:
/// 1. the ENDs of the chunk streams that it ends, oldest first (C3, C6, C7, C8);
/// 2. for a chunk, a START if it opens its item, and a CONTENT if it carries any (C9); for
///    another event, the event itself.
///
/// Warnings pass through in their place. After this stage there are no chunks.
///
/// A synthesized event refers to the input: [`Indexed::index`] is that of the event that caused it, for
/// an END the event that ended the chunk stream; [`Indexed::sent_as`] is the type of the chunk, for an
/// END too. Events that middleware added have no index and get none; errors and warnings give them the
/// next index.
///
/// # Half a surrogate pair
/// A delta that ends with a high half is delivered without it, and the next delta of the same item
/// with the whole character. If the next delta begins with another character, or the item ends,
/// U+FFFD is delivered in its place, with a warning about the delta of the half: at the beginning of
/// that next delta, or as a CONTENT before the END. `RUN_STARTED`, `RUN_FINISHED` and `RUN_ERROR`
/// abandon open items, so the CONTENT comes before them too. At the end of the input there is only
/// the warning (C11).
///
/// # Ending
/// [`finish`](super::Machine::finish) never fails and synthesizes no event (C11): an item that chunks
/// left open is open in a truncated run.
///
/// # Errors
/// [`Error::Violation`] with C2, C4, C5, or O2 if a chunk names an item of another owner, and
/// [`Error::LimitExceeded`]. Verification judges the expanded events. A rejected chunk changes nothing, so
/// a tool that wants to see every fault may go on pushing.
///
/// # Cost
/// Constant for each event, however many lanes are open; the delta and ids of a chunk are moved, not
/// copied.
///
/// # Examples
/// ```
/// use ag_ui_stream::event::TextMessageChunkEvent;
/// use ag_ui_stream::machine::{Expander, Machine, Push};
/// use ag_ui_stream::{Event, EventType};
///
/// let mut chunk = TextMessageChunkEvent::new();
/// chunk.message_id = Some("m".into());
/// chunk.delta = Some("Salt".into());
///
/// let mut expander = Expander::new();
/// expander.push(Event::from(chunk))?;
/// let mut types = std::iter::from_fn(|| expander.pop()).map(|item| item.event().unwrap().event_type());
/// assert_eq!(types.next(), Some(EventType::TextMessageStart));
/// assert_eq!(types.next(), Some(EventType::TextMessageContent));
/// assert_eq!(types.next(), None);
/// # Ok::<(), ag_ui_stream::Error>(())
/// ```
#[derive(Default)]
pub struct Expander {
    counter: Counter,
    lanes: Lazy<Lanes>,
    limits: HeldLimits,
    ready: VecDeque<Item>,
}

/// Whether one more than these may be open, or wait.
fn check_room(limits: &Limits, open: usize, place: Place) -> Result<(), Error> {
    let max = limits.max_open_items;
    if open >= max { Err(LimitExceeded::new(place.index, Limit::OpenItems, max).into()) } else { Ok(()) }
}

/// What is open, and what of it is told later.
#[derive(Debug, Default)]
struct Lanes {
    /// The open chunk streams, in the order they opened: the key counts openings.
    streams: BTreeMap<u64, Stream>,
    opened: u64,
    /// The lane of the parent agent, and those of subagents.
    parent: Option<u64>,
    subagents: IdMap<SubagentRunId, u64>,
    /// The lane that holds an item.
    items: PerStreamed<IdMap<Id, u64>>,
    /// The keys of a kind's open lanes, combined by exclusive or: the key itself if there is only one.
    keys: PerStreamed<u64>,
    /// The stream that ended last, for errors.
    ended: PerStreamed<Option<Box<Ended>>>,
    /// High halves that wait for the next delta of their item (rule E11).
    held: PerStreamed<IdMap<Id, Half>>,
}

#[derive(Debug, Default)]
struct PerStreamed<T> {
    text: T,
    tool_call: T,
    reasoning: T,
}

/// An open chunk stream, the one of its lane.
#[derive(Debug)]
struct Stream {
    item: Id,
    owner: Option<SubagentRunId>,
    established: Opener,
    since: u64,
}

/// The fields that only the first chunk sets (rule C5).
#[derive(Debug)]
enum Opener {
    Text { role: Option<TextMessageRole>, name: Option<Arc<str>> },
    Tool { name: Option<Arc<str>>, parent: Option<MessageId> },
    Reasoning,
}

/// A stream that was ended, when, and by which event.
#[derive(Debug)]
struct Ended {
    stream: Stream,
    at: u64,
    by: EventType,
}

/// A high half that waits for its low half, and the event that brought it.
#[derive(Debug)]
struct Half {
    high: u16,
    owner: Option<SubagentRunId>,
    place: Place,
}

/// A chunk of any kind.
struct Chunk {
    item: Option<Id>,
    tag: Option<SubagentRunId>,
    claims: Opener,
    delta: Option<SmolStr>,
    base: BaseEvent,
}

/// Which chunk streams an event ends.
enum Reach<'a> {
    /// The event is a chunk: it depends on its lane.
    Chunk,
    /// None.
    Aside,
    /// The one of this lane.
    Lane(Option<&'a SubagentRunId>),
    /// The one of this lane, and the one that holds the item, in any lane (rule C8).
    Item(Streamed, &'a Id, Part, Option<&'a SubagentRunId>),
    /// All.
    AllLanes,
    /// All, and the run with all its open items.
    Run,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Content,
    End,
}

impl Expander {
    /// An expander at the start of its input.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with other bounds: how many chunk streams may be open, and how many halves may wait
    /// ([`Limits::max_open_items`]); how long the names of a chunk stream may be
    /// ([`Limits::max_id_bytes`]).
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits.into();
        self
    }

    /// Whether chunks have this item open.
    pub(super) fn has_open(&self, kind: Streamed, item: &Id) -> bool {
        self.lanes.items.get(kind).contains_key(item)
    }

    /// What brings another expander here, where items that chunks do not have open are open by then.
    /// JSON texts, for no event can hold half a surrogate pair.
    pub(super) fn prelude(&self) -> Vec<String> {
        let mut prelude = Vec::new();
        let half = |event: Event, half: &Half| {
            let delta = format!(r#""delta":"\u{:04x}""#, half.high);
            // The member itself: within a string, the quotes are escaped.
            write(&event).replacen(EMPTY_DELTA, &delta, 1)
        };
        for kind in Streamed::ALL {
            let held = self.lanes.held.get(kind).iter().filter(|(item, _)| !self.has_open(kind, item));
            prelude.extend(held.map(|(item, held)| {
                half(kind.content(item.clone(), held.owner.clone(), SmolStr::default(), BaseEvent::default()), held)
            }));
        }
        for stream in self.lanes.streams.values() {
            let held = self.lanes.held.get(stream.kind()).get(&stream.item);
            let chunk = |delta| stream.established.chunk(stream.item.clone(), stream.owner.clone(), delta);
            prelude.push(match held {
                Some(held) => half(chunk(Some(SmolStr::default())), held),
                None => write(&chunk(None)),
            });
        }
        prelude
    }
}

impl Empty for Lanes {
    const EMPTY: &'static Self = &Self {
        streams: BTreeMap::new(),
        opened: 0,
        parent: None,
        subagents: id_map(),
        items: PerStreamed { text: id_map(), tool_call: id_map(), reasoning: id_map() },
        keys: PerStreamed { text: 0, tool_call: 0, reasoning: 0 },
        ended: PerStreamed { text: None, tool_call: None, reasoning: None },
        held: PerStreamed { text: id_map(), tool_call: id_map(), reasoning: id_map() },
    };
}

impl Lanes {
    /// Whether nothing is open or held.
    #[inline]
    fn is_idle(&self) -> bool {
        self.streams.is_empty() && self.held.is_empty()
    }

    /// Ends the chunk streams that an event reaches, and mends its delta.
    fn disturb(
        &mut self,
        indexed: &mut Indexed,
        halves: Halves,
        limits: &Limits,
        place: Place,
        next: &mut impl Sink,
    ) -> Result<(), Error> {
        match Reach::of(&indexed.event) {
            Reach::Chunk | Reach::Aside => Ok(()),
            Reach::Lane(owner) => match self.lane_of(owner) {
                Some(key) => self.close(key, place, next),
                None => Ok(()),
            },
            Reach::Item(kind, item, part, owner) => {
                self.close_for(kind, item, owner, place, next)?;
                match part {
                    Part::Content => self.mend(indexed, halves, limits, place, next),
                    Part::End => self.give_up_half(kind, item, place, next),
                }
            }
            Reach::AllLanes => self.close_all(place, next),
            Reach::Run => {
                self.close_all(place, next)?;
                self.give_up_halves(place, next)
            }
        }
    }

    fn expand(
        &mut self,
        chunk: Chunk,
        halves: Halves,
        limits: &Limits,
        place: Place,
        next: &mut impl Sink,
    ) -> Result<(), Error> {
        let Chunk { item, tag, claims, delta, base } = chunk;
        let kind = claims.kind();
        let continued = self.stream_for(kind, item.as_ref(), tag.as_ref(), place)?;
        let opens = continued.is_none();
        let (item, owner) = match continued {
            Some(stream) => {
                stream.check(&claims, place)?;
                (item.unwrap_or_else(|| stream.item.clone()), tag.or_else(|| stream.owner.clone()))
            }
            None => {
                let displaced = usize::from(self.lane_of(tag.as_ref()).is_some());
                check_room(limits, self.streams.len() - displaced, place)?;
                claims.check_names(limits.max_id_bytes, place)?;
                (self.open(item, tag.as_ref(), claims, &base, place, next)?, tag)
            }
        };
        if delta.is_some() || base.raw_event.is_some() || (!opens && base.metadata.is_some()) {
            // Rule C9: the timestamp is not carried.
            let base = BaseEvent { timestamp: None, ..base };
            let mut content = place.gives(kind.content(item, owner, delta.unwrap_or_default(), base));
            self.mend(&mut content, halves, limits, place, next)?;
            next.event(content)?;
        }
        Ok(())
    }

    /// The open stream that a chunk continues, if it continues one (rule C4).
    fn stream_for(
        &self,
        kind: Streamed,
        item: Option<&Id>,
        tag: Option<&SubagentRunId>,
        place: Place,
    ) -> Result<Option<&Stream>, Error> {
        if let Some(item) = item {
            let held = self.items.get(kind).get(item).and_then(|key| self.streams.get(key));
            return match (held, tag) {
                (Some(stream), Some(tag)) if stream.owner.as_ref() != Some(tag) => {
                    let expected = match &stream.owner {
                        Some(owner) => format!("`subagentRunId` {:?}, or none", excerpt(owner.as_str())),
                        None => "no `subagentRunId`".to_owned(),
                    };
                    let found = format!("{:?}", excerpt(tag.as_str()));
                    Err(place.violation(Rule::O2, expected, found).about(stream.subject(), stream.history()).into())
                }
                (held, _) => Ok(held),
            };
        }
        let of_this_kind = |key: u64| self.streams.get(&key).filter(|stream| stream.kind() == kind);
        if tag.is_some() {
            return Ok(self.lane_of(tag).and_then(of_this_kind));
        }
        if let Some(stream) = self.parent.and_then(of_this_kind) {
            return Ok(Some(stream));
        }
        match self.items.get(kind).len() {
            0 => Ok(None),
            1 => Ok(of_this_kind(*self.keys.get(kind))),
            several => {
                let expected = format!("`{}` or `subagentRunId`, to tell which item it continues", kind.id_field());
                let found = format!("neither, and {several} lanes with an open {}", kind.subject());
                let mut violation = place.violation(Rule::C4, expected, found);
                let candidates = self.streams.values().filter(|stream| stream.kind() == kind);
                violation.others = candidates.map(|stream| (stream.subject(), stream.history())).collect();
                Err(violation.into())
            }
        }
    }

    /// Opens the item of a first chunk, and the lane for it (rules C2, C3): its START.
    fn open(
        &mut self,
        item: Option<Id>,
        tag: Option<&SubagentRunId>,
        claims: Opener,
        base: &BaseEvent,
        place: Place,
        next: &mut impl Sink,
    ) -> Result<Id, Error> {
        let kind = claims.kind();
        let Some(item) = item else {
            let meant = |ended: &Ended| tag.is_none() || ended.stream.owner.as_ref() == tag;
            return Err(self.no_opener(kind, kind.id_field(), meant, place));
        };
        if let Opener::Tool { name: None, .. } = claims {
            return Err(self.no_opener(kind, "toolCallName", |ended| ended.stream.item == item, place));
        }
        if let Some(displaced) = self.lane_of(tag) {
            self.close(displaced, place, next)?;
        }
        let key = self.opened;
        self.opened += 1;
        match tag {
            None => self.parent = Some(key),
            Some(owner) => {
                self.subagents.insert(owner.clone(), key);
            }
        }
        self.items.get_mut(kind).insert(item.clone(), key);
        *self.keys.get_mut(kind) ^= key;
        let start = claims.start(item.clone(), tag.cloned(), base);
        let stream = Stream { item: item.clone(), owner: tag.cloned(), established: claims, since: place.index };
        self.streams.insert(key, stream);
        next.event(place.gives(start))?;
        Ok(item)
    }

    /// The error C2, with the stream that the chunk was perhaps meant to continue.
    fn no_opener(
        &self,
        kind: Streamed,
        field: &'static str,
        is_meant: impl FnOnce(&Ended) -> bool,
        place: Place,
    ) -> Error {
        let expected = format!("`{field}`, which a first chunk carries");
        match self.ended.get(kind).as_ref().filter(|ended| is_meant(ended)) {
            Some(ended) => {
                let found = format!("none, after {} ended the chunks of this {}", ended.by, kind.subject());
                let owner = ended.stream.owner.as_ref().map(|owner| owner.as_str().to_owned());
                let history = History::Closed { at: ended.at, owner };
                place.violation(Rule::C2, expected, found).about(ended.stream.subject(), history).into()
            }
            None => place.violation(Rule::C2, expected, "none").into(),
        }
    }

    fn lane_of(&self, owner: Option<&SubagentRunId>) -> Option<u64> {
        match owner {
            None => self.parent,
            Some(owner) => self.subagents.get(owner).copied(),
        }
    }

    /// Ends the stream of a lane: its END.
    fn close(&mut self, key: u64, place: Place, next: &mut impl Sink) -> Result<(), Error> {
        let Some(stream) = self.streams.remove(&key) else { return Ok(()) };
        let kind = stream.kind();
        match &stream.owner {
            None => self.parent = None,
            Some(owner) => {
                self.subagents.remove(owner);
            }
        }
        self.items.get_mut(kind).remove(&stream.item);
        *self.keys.get_mut(kind) ^= key;
        self.give_up_half(kind, &stream.item, place, next)?;
        let end = kind.end(stream.item.clone(), stream.owner.clone());
        *self.ended.get_mut(kind) = Some(Box::new(Ended { stream, at: place.index, by: place.sent_as }));
        next.event(place.gives_as(kind.chunk(), end))
    }

    /// Ends the stream of an explicit event's lane, and the one that holds its item ([`Rule::C8`]):
    /// verification then finds the item closed.
    fn close_for(
        &mut self,
        kind: Streamed,
        item: &Id,
        owner: Option<&SubagentRunId>,
        place: Place,
        next: &mut impl Sink,
    ) -> Result<(), Error> {
        if self.streams.is_empty() {
            return Ok(());
        }
        let mut keys = [self.lane_of(owner), self.items.get(kind).get(item).copied()];
        keys.sort_unstable();
        keys.into_iter().flatten().try_for_each(|key| self.close(key, place, next))
    }

    fn close_all(&mut self, place: Place, next: &mut impl Sink) -> Result<(), Error> {
        while let Some(key) = self.streams.keys().next().copied() {
            self.close(key, place, next)?;
        }
        Ok(())
    }

    /// Joins or confirms the halves at the ends of a delta (rule E11).
    #[inline]
    fn mend(
        &mut self,
        content: &mut Indexed,
        halves: Halves,
        limits: &Limits,
        place: Place,
        next: &mut impl Sink,
    ) -> Result<(), Error> {
        if halves.any() || !self.held.is_empty() {
            self.mend_thoroughly(&mut content.event, halves, limits, place, next)?;
        }
        Ok(())
    }

    fn mend_thoroughly(
        &mut self,
        event: &mut Event,
        halves: Halves,
        limits: &Limits,
        place: Place,
        next: &mut impl Sink,
    ) -> Result<(), Error> {
        let (kind, item, owner, delta) = match event {
            Event::TextMessageContent(event) => {
                (Streamed::Text, event.message_id.id(), &event.subagent_run_id, &mut event.delta)
            }
            Event::ToolCallArgs(event) => {
                (Streamed::ToolCall, event.tool_call_id.id(), &event.subagent_run_id, &mut event.delta)
            }
            Event::ReasoningMessageContent(event) => {
                (Streamed::Reasoning, event.message_id.id(), &event.subagent_run_id, &mut event.delta)
            }
            _ => return Ok(()),
        };
        if delta.is_empty() {
            return Ok(());
        }
        if halves.trailing != 0 && !self.held.get(kind).contains_key(item) {
            check_room(limits, self.held.len(), place)?;
        }
        // Middleware may have changed the delta, so the marks are checked.
        let begins_with_low = halves.leading != 0 && delta.starts_with(char::REPLACEMENT_CHARACTER);
        match (self.held.get_mut(kind).remove(item), begins_with_low) {
            (Some(half), true) => {
                let rest = delta.get(char::REPLACEMENT_CHARACTER.len_utf8()..).unwrap_or_default();
                *delta = format_smolstr!("{}{rest}", join(half.high, halves.leading));
            }
            (Some(half), false) => {
                *delta = format_smolstr!("{}{delta}", char::REPLACEMENT_CHARACTER);
                next.warning(half.lost("the next delta begins with another character"))?;
            }
            (None, true) => {
                next.warning(replaced(
                    place,
                    "the delta begins with the low half of a surrogate pair",
                    "the high half did not come before it",
                ))?;
            }
            (None, false) => {}
        }
        if halves.trailing != 0 && delta.ends_with(char::REPLACEMENT_CHARACTER) {
            *delta = delta.strip_suffix(char::REPLACEMENT_CHARACTER).unwrap_or_default().into();
            self.held.get_mut(kind).insert(item.clone(), Half { high: halves.trailing, owner: owner.clone(), place });
        }
        Ok(())
    }

    /// Delivers U+FFFD for a half of this item, if it has one held.
    fn give_up_half(&mut self, kind: Streamed, item: &Id, place: Place, next: &mut impl Sink) -> Result<(), Error> {
        match self.held.get_mut(kind).remove(item) {
            Some(half) => half.deliver(kind, item.clone(), place, next),
            None => Ok(()),
        }
    }

    /// The same for every held half, in the order they came.
    fn give_up_halves(&mut self, place: Place, next: &mut impl Sink) -> Result<(), Error> {
        self.held.take_all().into_iter().try_for_each(|(kind, item, half)| half.deliver(kind, item, place, next))
    }
}

impl Half {
    fn deliver(self, kind: Streamed, item: Id, place: Place, next: &mut impl Sink) -> Result<(), Error> {
        next.warning(self.lost("the item ends"))?;
        let delta = SmolStr::from_iter([char::REPLACEMENT_CHARACTER]);
        next.event(place.gives_as(self.place.sent_as, kind.content(item, self.owner, delta, BaseEvent::default())))
    }

    fn lost(&self, why: &str) -> Warning {
        replaced(self.place, "the delta ends with the high half of a surrogate pair", why)
    }
}

const EMPTY_DELTA: &str = "\"delta\":\"\"";

/// An event as JSON.
pub(super) fn write(event: &Event) -> String {
    // What cannot be written did not come from JSON.
    serde_json::to_string(event).unwrap_or_default()
}

fn replaced(place: Place, what: &str, why: &str) -> Warning {
    place.warning(Rule::E11, "/delta", format!("replaced with U+FFFD: {what}, and {why}"))
}

impl fmt::Debug for Expander {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expander")
            .field("events", &self.counter.next())
            .field("open", &self.lanes.streams.len())
            .field("ready", &self.ready.len())
            .finish_non_exhaustive()
    }
}

impl Stage for Expander {
    #[inline]
    fn feed(&mut self, mut indexed: Indexed, next: &mut impl Sink) -> Result<(), Error> {
        let place = self.counter.place(&indexed);
        let halves = core::mem::take(&mut indexed.halves);
        match Reach::of(&indexed.event) {
            Reach::Chunk => {
                // Nothing else is a chunk, so this always finds one.
                return match Chunk::from_event(indexed.event) {
                    Some(chunk) => self.lanes.expand(chunk, halves, &self.limits, place, next),
                    None => Ok(()),
                };
            }
            Reach::Aside => {}
            _ if self.lanes.is_idle() && !halves.any() => {}
            _ => self.lanes.disturb(&mut indexed, halves, &self.limits, place, next)?,
        }
        next.event(indexed)
    }

    #[inline(always)]
    fn feed_text_content(&mut self, content: TextContent, place: Place, next: &mut impl Sink) -> Result<(), Error> {
        if self.lanes.is_idle() {
            return next.text_content(content, place);
        }
        self.feed(place.gives(content.into_event()), next)
    }

    #[inline(always)]
    fn feed_text_chunk(&mut self, chunk: TextChunk, place: Place, next: &mut impl Sink) -> Result<(), Error> {
        let (item, tag) = (chunk.message_id.as_ref().map(MessageId::id), chunk.owner.as_ref());
        // Its expansion reports the fault.
        let lanes = &*self.lanes;
        if let (true, Ok(Some(stream))) = (lanes.held.is_empty(), lanes.stream_for(Streamed::Text, item, tag, place)) {
            let message_id = chunk.message_id.unwrap_or_else(|| MessageId::from_id(stream.item.clone()));
            let owner = chunk.owner.or_else(|| stream.owner.clone());
            return next.text_content(TextContent { message_id, delta: chunk.delta, owner, timestamp: None }, place);
        }
        self.feed(place.gives(chunk.into_event()), next)
    }

    /// Rule C11: nothing is synthesized.
    fn end(&mut self, next: &mut impl Sink) -> Result<(), Error> {
        let held = self.lanes.made().map(|lanes| lanes.held.take_all()).unwrap_or_default();
        held.into_iter()
            .try_for_each(|(_, _, half)| next.warning(half.lost("the input ended; U+FFFD is not delivered either")))
    }

    fn queue(&mut self) -> &mut VecDeque<Item> {
        &mut self.ready
    }
}

impl<I: Into<Item>> Push<I> for Expander {
    fn push(&mut self, input: I) -> Result<(), Error> {
        self.queue_item(input.into()).inspect_err(|error| {
            crate::log::rejected(error, &format_args!("{} chunk streams open", self.lanes.streams.len()));
        })
    }
}

queued_machine!(Expander: Item, |stage| stage.queued(Self::end));

impl<'a> Reach<'a> {
    /// The rules C6, C7 and C8 in one table.
    #[inline]
    fn of(event: &'a Event) -> Self {
        match event {
            Event::TextMessageContent(event) => {
                Reach::Item(Streamed::Text, event.message_id.id(), Part::Content, event.subagent_run_id.as_ref())
            }
            Event::TextMessageEnd(event) => {
                Reach::Item(Streamed::Text, event.message_id.id(), Part::End, event.subagent_run_id.as_ref())
            }
            Event::ToolCallArgs(event) => {
                Reach::Item(Streamed::ToolCall, event.tool_call_id.id(), Part::Content, event.subagent_run_id.as_ref())
            }
            Event::ToolCallEnd(event) => {
                Reach::Item(Streamed::ToolCall, event.tool_call_id.id(), Part::End, event.subagent_run_id.as_ref())
            }
            Event::ReasoningMessageContent(event) => {
                Reach::Item(Streamed::Reasoning, event.message_id.id(), Part::Content, event.subagent_run_id.as_ref())
            }
            Event::ReasoningMessageEnd(event) => {
                Reach::Item(Streamed::Reasoning, event.message_id.id(), Part::End, event.subagent_run_id.as_ref())
            }

            _ => match event.event_type().ends() {
                Ends::Chunk => Reach::Chunk,
                Ends::None => Reach::Aside,
                // A START meets the item of another lane open (S2).
                Ends::Lane | Ends::Item => Reach::Lane(event.subagent_run_id()),
                Ends::All => Reach::AllLanes,
                Ends::Run => Reach::Run,
            },
        }
    }
}

impl Chunk {
    fn from_event(event: Event) -> Option<Self> {
        Some(match event {
            Event::TextMessageChunk(event) => Self {
                item: event.message_id.map(MessageId::into_id),
                tag: event.subagent_run_id,
                claims: Opener::Text { role: event.role, name: event.name },
                delta: event.delta,
                base: event.base,
            },
            Event::ToolCallChunk(event) => Self {
                item: event.tool_call_id.map(ToolCallId::into_id),
                tag: event.subagent_run_id,
                claims: Opener::Tool { name: event.tool_call_name, parent: event.parent_message_id },
                delta: event.delta,
                base: event.base,
            },
            Event::ReasoningMessageChunk(event) => Self {
                item: event.message_id.map(MessageId::into_id),
                tag: event.subagent_run_id,
                claims: Opener::Reasoning,
                delta: event.delta,
                base: event.base,
            },
            _ => return None,
        })
    }
}

impl Stream {
    fn kind(&self) -> Streamed {
        self.established.kind()
    }

    fn subject(&self) -> Subject {
        Subject::new(self.kind().subject(), self.item.as_str())
    }

    fn history(&self) -> History {
        History::Open { since: self.since, owner: self.owner.as_ref().map(|owner| owner.as_str().to_owned()) }
    }

    /// Rule C5.
    fn check(&self, claims: &Opener, place: Place) -> Result<(), Error> {
        let Some((field, established, claimed)) = self.established.contradiction(claims) else { return Ok(()) };
        let expected = match established {
            Some(established) => format!("`{field}` {:?} as on its first chunk, or none", excerpt(established)),
            None => format!("no `{field}`, as on its first chunk"),
        };
        let found = format!("{:?}", excerpt(claimed));
        Err(place.violation(Rule::C5, expected, found).about(self.subject(), self.history()).into())
    }
}

impl Opener {
    fn kind(&self) -> Streamed {
        match self {
            Opener::Text { .. } => Streamed::Text,
            Opener::Tool { .. } => Streamed::ToolCall,
            Opener::Reasoning => Streamed::Reasoning,
        }
    }

    /// The first field that differs, with its established and its new value.
    fn contradiction<'a>(&'a self, claims: &'a Opener) -> Option<(&'static str, Option<&'a str>, &'a str)> {
        match (self, claims) {
            (Opener::Text { role, name }, Opener::Text { role: claimed_role, name: claimed_name }) => {
                let role = role.unwrap_or(TextMessageRole::Assistant);
                match claimed_role {
                    Some(claimed) if *claimed != role => Some(("role", Some(role.as_str()), claimed.as_str())),
                    _ => differs("name", name.as_deref(), claimed_name.as_deref()),
                }
            }
            (Opener::Tool { name, parent }, Opener::Tool { name: claimed_name, parent: claimed_parent }) => {
                differs("toolCallName", name.as_deref(), claimed_name.as_deref()).or_else(|| {
                    let as_str = MessageId::as_str;
                    differs("parentMessageId", parent.as_ref().map(as_str), claimed_parent.as_ref().map(as_str))
                })
            }
            // A chunk only ever continues a stream of its own kind, and reasoning has no fields.
            _ => None,
        }
    }

    /// The names are kept as long as the stream is open.
    fn check_names(&self, max: usize, place: Place) -> Result<(), Error> {
        let (Opener::Text { name, .. } | Opener::Tool { name, .. }) = self else { return Ok(()) };
        if name.as_ref().is_some_and(|name| name.len() > max) {
            return Err(LimitExceeded::new(place.index, Limit::IdBytes, max).into());
        }
        Ok(())
    }

    /// A chunk that opens the item with what was established.
    fn chunk(&self, item: Id, subagent_run_id: Option<SubagentRunId>, delta: Option<SmolStr>) -> Event {
        let base = BaseEvent::default();
        match self {
            Opener::Text { role, name } => Event::TextMessageChunk(Box::new(TextMessageChunkEvent {
                message_id: Some(MessageId::from_id(item)),
                role: *role,
                delta,
                name: name.clone(),
                subagent_run_id,
                base,
            })),
            Opener::Tool { name, parent } => Event::ToolCallChunk(Box::new(ToolCallChunkEvent {
                tool_call_id: Some(ToolCallId::from_id(item)),
                tool_call_name: name.clone(),
                parent_message_id: parent.clone(),
                delta,
                subagent_run_id,
                base,
            })),
            Opener::Reasoning => Event::ReasoningMessageChunk(ReasoningMessageChunkEvent {
                message_id: Some(MessageId::from_id(item)),
                delta,
                subagent_run_id,
                base,
            }),
        }
    }

    fn start(&self, item: Id, owner: Option<SubagentRunId>, base: &BaseEvent) -> Event {
        let base = BaseEvent { metadata: base.metadata.clone(), ..BaseEvent::default() };
        match self {
            Opener::Text { role, name } => Event::TextMessageStart(TextMessageStartEvent {
                message_id: MessageId::from_id(item),
                role: *role,
                name: name.clone(),
                subagent_run_id: owner,
                base,
            }),
            Opener::Tool { name, parent } => Event::ToolCallStart(ToolCallStartEvent {
                tool_call_id: ToolCallId::from_id(item),
                tool_call_name: name.clone().unwrap_or_default(),
                parent_message_id: parent.clone(),
                subagent_run_id: owner,
                base,
            }),
            Opener::Reasoning => Event::ReasoningMessageStart(ReasoningMessageStartEvent {
                message_id: MessageId::from_id(item),
                subagent_run_id: owner,
                base,
            }),
        }
    }
}

fn differs<'a>(
    field: &'static str,
    established: Option<&'a str>,
    claimed: Option<&'a str>,
) -> Option<(&'static str, Option<&'a str>, &'a str)> {
    let claimed = claimed?;
    (Some(claimed) != established).then_some((field, established, claimed))
}

impl<T> PerStreamed<T> {
    #[inline]
    fn get(&self, kind: Streamed) -> &T {
        match kind {
            Streamed::Text => &self.text,
            Streamed::ToolCall => &self.tool_call,
            Streamed::Reasoning => &self.reasoning,
        }
    }

    #[inline]
    fn get_mut(&mut self, kind: Streamed) -> &mut T {
        match kind {
            Streamed::Text => &mut self.text,
            Streamed::ToolCall => &mut self.tool_call,
            Streamed::Reasoning => &mut self.reasoning,
        }
    }
}

impl PerStreamed<IdMap<Id, Half>> {
    #[inline]
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.tool_call.is_empty() && self.reasoning.is_empty()
    }

    fn len(&self) -> usize {
        self.text.len() + self.tool_call.len() + self.reasoning.len()
    }

    fn take_all(&mut self) -> Vec<(Streamed, Id, Half)> {
        let mut all = Vec::new();
        for kind in Streamed::ALL {
            all.extend(self.get_mut(kind).drain().map(|(item, half)| (kind, item, half)));
        }
        all.sort_by_key(|(_, _, half)| half.place.index);
        all
    }
}

fn excerpt(text: &str) -> std::borrow::Cow<'_, str> {
    crate::excerpt::excerpt(text, 80)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{CustomEvent, RawPassthroughEvent, TextMessageChunkEvent, TextMessageContentEvent};
    use crate::machine::Machine;

    fn chunk(id: &str, owner: Option<&str>, delta: &str) -> Event {
        let mut chunk = TextMessageChunkEvent::new();
        chunk.message_id = Some(id.into());
        chunk.delta = Some(delta.into());
        chunk.subagent_run_id = owner.map(Into::into);
        chunk.into()
    }

    fn content(id: &str, delta: &str) -> Event {
        TextMessageContentEvent::new(id, delta).into()
    }

    fn with_halves(event: Event, leading: u16, trailing: u16) -> Indexed {
        let mut indexed = Indexed::new(event, 0);
        indexed.halves = Halves { leading, trailing };
        indexed
    }

    fn pop_all(expander: &mut Expander) -> Vec<Item> {
        std::iter::from_fn(|| expander.pop()).collect()
    }

    fn assert_is_at_rest(expander: &Expander) {
        let Lanes { streams, parent, subagents, items, keys, held, .. } = &*expander.lanes;
        assert!(streams.is_empty() && parent.is_none() && subagents.is_empty());
        assert!(items.text.is_empty() && items.tool_call.is_empty() && items.reasoning.is_empty());
        assert_eq!((keys.text, keys.tool_call, keys.reasoning), (0, 0, 0));
        assert!(held.is_empty());
    }

    #[test]
    fn what_ends_nothing_comes_out_as_it_went_in() {
        let raw = || Event::from(RawPassthroughEvent::new(1));
        let mut expander = Expander::new();
        for event in [raw(), CustomEvent::new("n", 1).into(), content("x", "y")] {
            let indexed = Indexed::new(event, 0);
            expander.push(indexed.clone()).unwrap();
            assert_eq!(pop_all(&mut expander), [Item::Event(indexed)]);
        }
        expander.push(chunk("m", None, "a")).unwrap();
        pop_all(&mut expander);
        expander.push(raw()).unwrap();
        assert_eq!(pop_all(&mut expander), [Item::from(raw())]);
        assert_eq!(expander.lanes.streams.len(), 1);
    }

    #[test]
    fn a_hundred_lanes_leave_nothing_behind() {
        let mut expander = Expander::new();
        let owner = |at: usize| format!("s{at}");
        for round in 0..3 {
            for at in 0..100 {
                expander.push(chunk(&format!("m{at}-{round}"), Some(&owner(at)), "a")).unwrap();
            }
        }
        assert_eq!(expander.lanes.streams.len(), 100);
        assert_eq!(pop_all(&mut expander).len(), 3 * 200 + 2 * 100);
        // All but one go; the last is found without a tag or an id.
        for at in 0..99 {
            let mut custom = CustomEvent::new("n", 1);
            custom.subagent_run_id = Some(owner(at).into());
            expander.push(Event::from(custom)).unwrap();
        }
        pop_all(&mut expander);
        let mut bare = TextMessageChunkEvent::new();
        bare.delta = Some("b".into());
        expander.push(Event::from(bare)).unwrap();
        let items = pop_all(&mut expander);
        let Some(Event::TextMessageContent(content)) = items.first().and_then(Item::event) else { panic!("{items:?}") };
        assert_eq!((content.message_id.as_str(), content.subagent_run_id.as_ref()), ("m99-2", Some(&owner(99).into())));

        expander.push(Event::from(crate::event::RunErrorEvent::new("no"))).unwrap();
        pop_all(&mut expander);
        assert_is_at_rest(&expander);
    }

    #[test]
    fn e11_marks_that_no_longer_fit_the_delta_are_ignored() {
        // Middleware may have rewritten a delta after enforcement had marked its ends.
        let mut expander = Expander::new();
        for (event, leading, trailing) in [
            (content("m", "rewritten"), 0xde00, 0xd83d),
            (content("m", ""), 0xde00, 0xd83d),
            (Event::from(CustomEvent::new("n", 1)), 0xde00, 0xd83d),
        ] {
            expander.push(with_halves(event.clone(), leading, trailing)).unwrap();
            assert_eq!(pop_all(&mut expander), [Item::Event(Indexed::new(event, 0))]);
        }
        assert_is_at_rest(&expander);
    }

    #[test]
    fn e11_no_marks_leave_expansion() {
        let mut expander = Expander::new();
        expander.push(with_halves(content("m", "\u{fffd}a\u{fffd}"), 0xde00, 0xd83d)).unwrap();
        expander.push(with_halves(chunk("n", None, "\u{fffd}"), 0, 0xd83d)).unwrap();
        for item in pop_all(&mut expander) {
            assert!(!matches!(item, Item::Event(indexed) if indexed.halves.any()));
        }
        expander.finish().unwrap();
        assert_eq!(pop_all(&mut expander).len(), 2, "a warning for each half that is held");
        assert_eq!(expander.finish(), Ok(()));
        assert!(expander.pop().is_none(), "and each only once");
    }
}
