//! Chunk expansion: the short spelling in, START, CONTENT and END out (rules C1 to C11), and
//! halves of surrogate pairs joined across the deltas of an item (rule E11).
//!
//! What one lane goes through; brackets hold what comes out:
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
//! Which events reach which lanes stands in one table, [`Reach::of`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use smol_str::{SmolStr, format_smolstr};

use super::Machine;
use crate::error::{Error, History, Subject, SubjectKind, Violation};
use crate::event::{
    BaseEvent, Event, EventType, ReasoningMessageContentEvent, ReasoningMessageEndEvent, ReasoningMessageStartEvent,
    TextMessageContentEvent, TextMessageEndEvent, TextMessageRole, TextMessageStartEvent, ToolCallArgsEvent,
    ToolCallEndEvent, ToolCallStartEvent,
};
use crate::id::{Id, IdMap, MessageId, SubagentRunId, ToolCallId};
use crate::item::{Halves, Indexed, Item};
use crate::json::scan::join;
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
/// What is synthesized speaks of the input: [`Indexed::index`] is that of the event that gave
/// rise to it, for an END the event that ended the chunk stream; [`Indexed::sent_as`] is the type
/// that the item was sent in, the chunk's, for an END too. Events that middleware added have no
/// index and get none; in errors and warnings they are said to be at the index that comes next.
///
/// # Half a surrogate pair
/// A delta that ends with a high half is delivered without it, and the next delta of the same
/// item with the whole character. Where the next delta begins with something else, or the item
/// ends, U+FFFD is delivered in its place with a warning about the delta that brought the half:
/// at the head of that next delta, or as a CONTENT before the END. `RUN_STARTED`, `RUN_FINISHED`
/// and `RUN_ERROR` abandon what is open, so that CONTENT comes before them too. At the end of the
/// input there is only the warning (C11).
///
/// # Ending
/// [`finish`](Expander::finish) never fails and synthesizes no event (C11): an item that chunks
/// left open is open in a truncated run.
///
/// # Errors
/// [`Error::Violation`] with C2, C4, C5, or O2 where a chunk names an item of another owner. What
/// an expanded event may not do is for verification to say. A chunk that is rejected changes
/// nothing, so a tool that wants to see every fault may go on pushing.
///
/// # Cost
/// Constant for each event, however many lanes are open; a chunk's delta and ids move through.
///
/// # Examples
/// ```
/// use ag_ui_stream::event::TextMessageChunkEvent;
/// use ag_ui_stream::machine::{Expander, Machine};
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
#[derive(Debug, Default)]
pub struct Expander {
    /// The index of the next event, where it has none of its own.
    next: u64,
    /// The open chunk streams, in the order they opened: the key counts openings.
    lanes: BTreeMap<u64, Stream>,
    opened: u64,
    /// The lane of the parent agent, and those of subagents.
    parent: Option<u64>,
    subagents: IdMap<SubagentRunId, u64>,
    /// The lane that holds an item.
    items: PerKind<IdMap<Id, u64>>,
    /// All keys of a kind's open lanes, folded with exclusive or: the key itself, where there is
    /// only one.
    keys: PerKind<u64>,
    /// The stream that ended last, for errors.
    ended: PerKind<Option<Ended>>,
    /// High halves that wait for the next delta of their item (rule E11).
    held: PerKind<IdMap<Id, Half>>,
    ready: VecDeque<Item>,
}

/// What is streamed. Ids of different kinds are different namespaces (rule S1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Tool,
    Reasoning,
}

#[derive(Debug, Default)]
struct PerKind<T> {
    text: T,
    tool: T,
    reasoning: T,
}

/// An open chunk stream: what its lane is busy with.
#[derive(Debug)]
struct Stream {
    item: Id,
    owner: Option<SubagentRunId>,
    established: Opener,
    since: u64,
}

/// What only the first chunk decides (rule C5).
#[derive(Debug)]
enum Opener {
    Text { role: Option<TextMessageRole>, name: Option<Arc<str>> },
    Tool { name: Option<Arc<str>>, parent: Option<MessageId> },
    Reasoning,
}

/// A stream that was ended, when, and by what.
#[derive(Debug)]
struct Ended {
    stream: Stream,
    at: u64,
    by: EventType,
}

/// A high half without its low half so far, and the event that brought it.
#[derive(Debug)]
struct Half {
    high: u16,
    owner: Option<SubagentRunId>,
    at: u64,
    sent_as: EventType,
}

/// A chunk of any kind.
struct Chunk {
    item: Option<Id>,
    tag: Option<SubagentRunId>,
    claims: Opener,
    delta: Option<SmolStr>,
    base: BaseEvent,
}

/// Where an input event stands.
#[derive(Clone, Copy)]
struct Origin {
    /// Its own index.
    index: Option<u64>,
    /// The same for errors: never absent.
    at: u64,
    sent_as: EventType,
}

/// Which chunk streams an event ends.
enum Reach<'a> {
    /// It is a chunk: that depends on its lane.
    Chunk,
    /// None.
    Aside,
    /// That of one lane.
    Lane(Option<&'a SubagentRunId>),
    /// That of its lane, and the one that holds its item, whatever the lane (rule C8).
    Item(Kind, &'a Id, Part, Option<&'a SubagentRunId>),
    /// All.
    AllLanes,
    /// All, and the run with everything that is open in it.
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

    /// Whether pushing this event would give it back as it is, and nothing else. It may say no
    /// where the answer is yes.
    #[inline]
    pub(crate) fn is_transparent(&self, indexed: &Indexed) -> bool {
        if !self.ready.is_empty() || indexed.halves.any() {
            return false;
        }
        match Reach::of(&indexed.event) {
            Reach::Chunk => false,
            Reach::Aside => true,
            _ => self.is_idle(),
        }
    }

    /// The item and owner of a text chunk that only continues what is open, and brings no more than
    /// a delta; `None` leaves it to [`Machine::push`].
    #[inline]
    pub(crate) fn continued_text(
        &mut self,
        message_id: Option<&MessageId>,
        tag: Option<&SubagentRunId>,
        index: u64,
    ) -> Option<(MessageId, Option<SubagentRunId>)> {
        if !self.ready.is_empty() || !self.held.is_empty() {
            return None;
        }
        let origin = Origin { index: Some(index), at: index, sent_as: EventType::TextMessageChunk };
        // What is wrong with it is said when it is pushed.
        let stream = self.stream_for(Kind::Text, message_id.map(MessageId::id), tag, origin).ok()??;
        let item = message_id.cloned().unwrap_or_else(|| MessageId::from_id(stream.item.clone()));
        let owner = tag.or(stream.owner.as_ref()).cloned();
        self.next = index.saturating_add(1);
        Some((item, owner))
    }

    /// Whether nothing is open or held.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.lanes.is_empty() && self.held.is_empty() && self.ready.is_empty()
    }

    fn accept(&mut self, mut indexed: Indexed) -> Result<(), Error> {
        let at = indexed.index().unwrap_or(self.next);
        self.next = at.saturating_add(1);
        let halves = std::mem::take(&mut indexed.halves);
        let origin = Origin { index: indexed.index(), at, sent_as: indexed.sent_as() };
        match Reach::of(&indexed.event) {
            Reach::Chunk => {
                // Nothing else is a chunk, so this always finds one.
                return match Chunk::from_event(indexed.event) {
                    Some(chunk) => self.expand(chunk, halves, origin),
                    None => Ok(()),
                };
            }
            Reach::Aside => {}
            Reach::Lane(owner) => {
                if let Some(key) = self.lane_of(owner) {
                    self.close(key, origin);
                }
            }
            Reach::Item(kind, item, part, owner) => {
                self.close_for(kind, item, owner, origin);
                match part {
                    Part::Content => self.mend(&mut indexed, halves, origin),
                    Part::End => self.give_up_half(kind, item, origin),
                }
            }
            Reach::AllLanes => self.close_all(origin),
            Reach::Run => {
                self.close_all(origin);
                self.give_up_halves(origin);
            }
        }
        self.ready.push_back(Item::Event(indexed));
        Ok(())
    }

    fn expand(&mut self, chunk: Chunk, halves: Halves, origin: Origin) -> Result<(), Error> {
        let Chunk { item, tag, claims, delta, base } = chunk;
        let kind = claims.kind();
        let continued = self.stream_for(kind, item.as_ref(), tag.as_ref(), origin)?;
        let opens = continued.is_none();
        let (item, owner) = match continued {
            Some(stream) => {
                stream.check(&claims, origin)?;
                (item.unwrap_or_else(|| stream.item.clone()), tag.or_else(|| stream.owner.clone()))
            }
            None => (self.open(item, tag.as_ref(), claims, &base, origin)?, tag),
        };
        if delta.is_some() || base.raw_event.is_some() || (!opens && base.metadata.is_some()) {
            let base = BaseEvent { timestamp: None, ..base };
            let content = kind.content(item, owner, delta.unwrap_or_default(), base);
            let mut indexed = Indexed::synthesized(content, origin.index, Some(origin.sent_as));
            self.mend(&mut indexed, halves, origin);
            self.ready.push_back(Item::Event(indexed));
        }
        Ok(())
    }

    /// The open stream that a chunk continues, if it continues one (rule C4).
    fn stream_for(
        &self,
        kind: Kind,
        item: Option<&Id>,
        tag: Option<&SubagentRunId>,
        origin: Origin,
    ) -> Result<Option<&Stream>, Error> {
        if let Some(item) = item {
            let held = self.items.get(kind).get(item).and_then(|key| self.lanes.get(key));
            return match (held, tag) {
                (Some(stream), Some(tag)) if stream.owner.as_ref() != Some(tag) => {
                    let expected = match &stream.owner {
                        Some(owner) => format!("`subagentRunId` {:?}, or none", excerpt(owner.as_str())),
                        None => "no `subagentRunId`".to_owned(),
                    };
                    let found = format!("{:?}", excerpt(tag.as_str()));
                    Err(violation(Rule::O2, origin, expected, found).about(stream.subject(), stream.history()).into())
                }
                (held, _) => Ok(held),
            };
        }
        let of_this_kind = |key: u64| self.lanes.get(&key).filter(|stream| stream.kind() == kind);
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
                let mut violation = violation(Rule::C4, origin, expected, found);
                let candidates = self.lanes.values().filter(|stream| stream.kind() == kind);
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
        origin: Origin,
    ) -> Result<Id, Error> {
        let kind = claims.kind();
        let Some(item) = item else {
            let meant = |ended: &Ended| tag.is_none() || ended.stream.owner.as_ref() == tag;
            return Err(self.no_opener(kind, kind.id_field(), meant, origin));
        };
        if let Opener::Tool { name: None, .. } = claims {
            return Err(self.no_opener(kind, "toolCallName", |ended| ended.stream.item == item, origin));
        }
        if let Some(displaced) = self.lane_of(tag) {
            self.close(displaced, origin);
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
        self.ready.push_back(Item::Event(Indexed::synthesized(start, origin.index, Some(origin.sent_as))));
        let stream = Stream { item: item.clone(), owner: tag.cloned(), established: claims, since: origin.at };
        self.lanes.insert(key, stream);
        Ok(item)
    }

    /// C2, with the stream that the chunk may have been meant to continue.
    fn no_opener(
        &self,
        kind: Kind,
        field: &'static str,
        is_meant: impl FnOnce(&Ended) -> bool,
        origin: Origin,
    ) -> Error {
        let expected = format!("`{field}`, which a first chunk carries");
        match self.ended.get(kind).as_ref().filter(|ended| is_meant(ended)) {
            Some(ended) => {
                let found = format!("none, after {} ended the chunks of this {}", ended.by, kind.subject());
                let owner = ended.stream.owner.as_ref().map(|owner| owner.as_str().to_owned());
                let history = History::Closed { at: ended.at, owner };
                violation(Rule::C2, origin, expected, found).about(ended.stream.subject(), history).into()
            }
            None => violation(Rule::C2, origin, expected, "none").into(),
        }
    }

    fn lane_of(&self, owner: Option<&SubagentRunId>) -> Option<u64> {
        match owner {
            None => self.parent,
            Some(owner) => self.subagents.get(owner).copied(),
        }
    }

    /// Ends the stream of a lane: its END.
    fn close(&mut self, key: u64, origin: Origin) {
        let Some(stream) = self.lanes.remove(&key) else { return };
        let kind = stream.kind();
        match &stream.owner {
            None => self.parent = None,
            Some(owner) => {
                self.subagents.remove(owner);
            }
        }
        self.items.get_mut(kind).remove(&stream.item);
        *self.keys.get_mut(kind) ^= key;
        self.give_up_half(kind, &stream.item, origin);
        let end = kind.end(stream.item.clone(), stream.owner.clone());
        self.ready.push_back(Item::Event(Indexed::synthesized(end, origin.index, Some(kind.chunk()))));
        *self.ended.get_mut(kind) = Some(Ended { stream, at: origin.at, by: origin.sent_as });
    }

    /// Ends the stream of an explicit event's lane, and the one that holds its item (rule C8).
    fn close_for(&mut self, kind: Kind, item: &Id, owner: Option<&SubagentRunId>, origin: Origin) {
        if self.lanes.is_empty() {
            return;
        }
        let mut keys = [self.lane_of(owner), self.items.get(kind).get(item).copied()];
        keys.sort_unstable();
        for key in keys.into_iter().flatten() {
            self.close(key, origin);
        }
    }

    fn close_all(&mut self, origin: Origin) {
        while let Some(key) = self.lanes.keys().next().copied() {
            self.close(key, origin);
        }
    }

    /// Joins or confirms the halves at the ends of a delta (rule E11).
    #[inline]
    fn mend(&mut self, indexed: &mut Indexed, halves: Halves, origin: Origin) {
        if halves.any() || !self.held.is_empty() {
            self.mend_thoroughly(&mut indexed.event, halves, origin);
        }
    }

    fn mend_thoroughly(&mut self, event: &mut Event, halves: Halves, origin: Origin) {
        let (kind, item, owner, delta) = match event {
            Event::TextMessageContent(event) => {
                (Kind::Text, event.message_id.id(), &event.subagent_run_id, &mut event.delta)
            }
            Event::ToolCallArgs(event) => {
                (Kind::Tool, event.tool_call_id.id(), &event.subagent_run_id, &mut event.delta)
            }
            Event::ReasoningMessageContent(event) => {
                (Kind::Reasoning, event.message_id.id(), &event.subagent_run_id, &mut event.delta)
            }
            _ => return,
        };
        if delta.is_empty() {
            return;
        }
        // Middleware may have changed the delta, so the marks are not taken on trust.
        let begins_with_low = halves.leading != 0 && delta.starts_with(char::REPLACEMENT_CHARACTER);
        match (self.held.get_mut(kind).remove(item), begins_with_low) {
            (Some(half), true) => {
                let rest = delta.get(char::REPLACEMENT_CHARACTER.len_utf8()..).unwrap_or_default();
                *delta = format_smolstr!("{}{rest}", join(half.high, halves.leading));
            }
            (Some(half), false) => {
                *delta = format_smolstr!("{}{delta}", char::REPLACEMENT_CHARACTER);
                self.warn_of(&half, "the next delta begins with another character");
            }
            (None, true) => {
                self.warn(
                    origin.at,
                    origin.sent_as,
                    "the delta begins with the low half of a surrogate pair",
                    "the high half did not come before it",
                );
            }
            (None, false) => {}
        }
        if halves.trailing != 0 && delta.ends_with(char::REPLACEMENT_CHARACTER) {
            *delta = delta.strip_suffix(char::REPLACEMENT_CHARACTER).unwrap_or_default().into();
            let half = Half { high: halves.trailing, owner: owner.clone(), at: origin.at, sent_as: origin.sent_as };
            self.held.get_mut(kind).insert(item.clone(), half);
        }
    }

    /// Delivers U+FFFD for a half of this item, if it has one held.
    fn give_up_half(&mut self, kind: Kind, item: &Id, origin: Origin) {
        if let Some(half) = self.held.get_mut(kind).remove(item) {
            self.deliver(kind, item.clone(), half, origin);
        }
    }

    /// The same for every half that is held, in the order they came.
    fn give_up_halves(&mut self, origin: Origin) {
        for (kind, item, half) in self.held.take_all() {
            self.deliver(kind, item, half, origin);
        }
    }

    fn deliver(&mut self, kind: Kind, item: Id, half: Half, origin: Origin) {
        self.warn_of(&half, "the item goes no further");
        let delta = SmolStr::from_iter([char::REPLACEMENT_CHARACTER]);
        let event = kind.content(item, half.owner, delta, BaseEvent::default());
        self.ready.push_back(Item::Event(Indexed::synthesized(event, origin.index, Some(half.sent_as))));
    }

    fn warn_of(&mut self, half: &Half, why: &str) {
        self.warn(half.at, half.sent_as, "the delta ends with the high half of a surrogate pair", why);
    }

    fn warn(&mut self, at: u64, sent_as: EventType, what: &str, why: &str) {
        let message = format!("replaced with U+FFFD: {what}, and {why}");
        self.ready.push_back(Item::Warning(Warning::new(Rule::E11, at, sent_as.as_str(), "/delta", message)));
    }
}

impl<I: Into<Item>> Machine<I> for Expander {
    type Output = Item;

    fn push(&mut self, input: I) -> Result<(), Error> {
        match input.into() {
            Item::Event(indexed) => self.accept(indexed),
            warning @ Item::Warning(_) => {
                self.ready.push_back(warning);
                Ok(())
            }
        }
    }

    fn pop(&mut self) -> Option<Item> {
        self.ready.pop_front()
    }

    fn ready(&self) -> usize {
        self.ready.len()
    }

    fn finish(&mut self) -> Result<(), Error> {
        for (_, _, half) in self.held.take_all() {
            self.warn_of(&half, "the input ended; U+FFFD is not delivered either");
        }
        Ok(())
    }
}

impl<'a> Reach<'a> {
    /// The rules C6, C7 and C8 in one table.
    #[inline]
    fn of(event: &'a Event) -> Self {
        match event {
            Event::TextMessageChunk(_) | Event::ToolCallChunk(_) | Event::ReasoningMessageChunk(_) => Reach::Chunk,

            Event::Raw(_)
            | Event::ActivitySnapshot(_)
            | Event::ActivityDelta(_)
            | Event::ReasoningEncryptedValue(_)
            | Event::SubagentStarted(_) => Reach::Aside,

            Event::TextMessageContent(event) => {
                Reach::Item(Kind::Text, event.message_id.id(), Part::Content, event.subagent_run_id.as_ref())
            }
            Event::TextMessageEnd(event) => {
                Reach::Item(Kind::Text, event.message_id.id(), Part::End, event.subagent_run_id.as_ref())
            }
            Event::ToolCallArgs(event) => {
                Reach::Item(Kind::Tool, event.tool_call_id.id(), Part::Content, event.subagent_run_id.as_ref())
            }
            Event::ToolCallEnd(event) => {
                Reach::Item(Kind::Tool, event.tool_call_id.id(), Part::End, event.subagent_run_id.as_ref())
            }
            Event::ReasoningMessageContent(event) => {
                Reach::Item(Kind::Reasoning, event.message_id.id(), Part::Content, event.subagent_run_id.as_ref())
            }
            Event::ReasoningMessageEnd(event) => {
                Reach::Item(Kind::Reasoning, event.message_id.id(), Part::End, event.subagent_run_id.as_ref())
            }

            // A START meets the item of another lane open (S2).
            Event::TextMessageStart(_)
            | Event::ToolCallStart(_)
            | Event::ReasoningMessageStart(_)
            | Event::ToolCallResult(_)
            | Event::StateSnapshot(_)
            | Event::StateDelta(_)
            | Event::Custom(_)
            | Event::StepStarted(_)
            | Event::StepFinished(_)
            | Event::ReasoningStart(_)
            | Event::ReasoningEnd(_)
            | Event::SubagentFinished(_)
            | Event::SubagentError(_) => Reach::Lane(event.subagent_run_id()),

            Event::MessagesSnapshot(_) => Reach::AllLanes,
            Event::RunStarted(_) | Event::RunFinished(_) | Event::RunError(_) => Reach::Run,
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
    fn kind(&self) -> Kind {
        self.established.kind()
    }

    fn subject(&self) -> Subject {
        Subject::new(self.kind().subject(), self.item.as_str())
    }

    fn history(&self) -> History {
        History::Open { since: self.since, owner: self.owner.as_ref().map(|owner| owner.as_str().to_owned()) }
    }

    /// Rule C5.
    fn check(&self, claims: &Opener, origin: Origin) -> Result<(), Error> {
        let Some((field, established, claimed)) = self.established.contradiction(claims) else { return Ok(()) };
        let expected = match established {
            Some(established) => format!("`{field}` {:?} as on its first chunk, or none", excerpt(established)),
            None => format!("no `{field}`, as on its first chunk"),
        };
        let found = format!("{:?}", excerpt(claimed));
        Err(violation(Rule::C5, origin, expected, found).about(self.subject(), self.history()).into())
    }
}

impl Opener {
    fn kind(&self) -> Kind {
        match self {
            Opener::Text { .. } => Kind::Text,
            Opener::Tool { .. } => Kind::Tool,
            Opener::Reasoning => Kind::Reasoning,
        }
    }

    /// The first field that says something else, with what was established and what is claimed.
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

impl Kind {
    fn subject(self) -> SubjectKind {
        match self {
            Kind::Text => SubjectKind::TextMessage,
            Kind::Tool => SubjectKind::ToolCall,
            Kind::Reasoning => SubjectKind::ReasoningMessage,
        }
    }

    fn chunk(self) -> EventType {
        match self {
            Kind::Text => EventType::TextMessageChunk,
            Kind::Tool => EventType::ToolCallChunk,
            Kind::Reasoning => EventType::ReasoningMessageChunk,
        }
    }

    fn id_field(self) -> &'static str {
        match self {
            Kind::Text | Kind::Reasoning => "messageId",
            Kind::Tool => "toolCallId",
        }
    }

    fn content(self, item: Id, subagent_run_id: Option<SubagentRunId>, delta: SmolStr, base: BaseEvent) -> Event {
        match self {
            Kind::Text => {
                let message_id = MessageId::from_id(item);
                Event::TextMessageContent(TextMessageContentEvent { message_id, delta, subagent_run_id, base })
            }
            Kind::Tool => {
                let tool_call_id = ToolCallId::from_id(item);
                Event::ToolCallArgs(ToolCallArgsEvent { tool_call_id, delta, subagent_run_id, base })
            }
            Kind::Reasoning => {
                let message_id = MessageId::from_id(item);
                Event::ReasoningMessageContent(ReasoningMessageContentEvent {
                    message_id,
                    delta,
                    subagent_run_id,
                    base,
                })
            }
        }
    }

    fn end(self, item: Id, subagent_run_id: Option<SubagentRunId>) -> Event {
        let base = BaseEvent::default();
        match self {
            Kind::Text => {
                let message_id = MessageId::from_id(item);
                Event::TextMessageEnd(TextMessageEndEvent { message_id, subagent_run_id, base })
            }
            Kind::Tool => {
                let tool_call_id = ToolCallId::from_id(item);
                Event::ToolCallEnd(ToolCallEndEvent { tool_call_id, subagent_run_id, base })
            }
            Kind::Reasoning => {
                let message_id = MessageId::from_id(item);
                Event::ReasoningMessageEnd(ReasoningMessageEndEvent { message_id, subagent_run_id, base })
            }
        }
    }
}

impl<T> PerKind<T> {
    #[inline]
    fn get(&self, kind: Kind) -> &T {
        match kind {
            Kind::Text => &self.text,
            Kind::Tool => &self.tool,
            Kind::Reasoning => &self.reasoning,
        }
    }

    #[inline]
    fn get_mut(&mut self, kind: Kind) -> &mut T {
        match kind {
            Kind::Text => &mut self.text,
            Kind::Tool => &mut self.tool,
            Kind::Reasoning => &mut self.reasoning,
        }
    }
}

impl PerKind<IdMap<Id, Half>> {
    #[inline]
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.tool.is_empty() && self.reasoning.is_empty()
    }

    fn take_all(&mut self) -> Vec<(Kind, Id, Half)> {
        let mut all = Vec::new();
        for kind in [Kind::Text, Kind::Tool, Kind::Reasoning] {
            all.extend(self.get_mut(kind).drain().map(|(item, half)| (kind, item, half)));
        }
        all.sort_by_key(|(_, _, half)| half.at);
        all
    }
}

fn violation(
    rule: Rule,
    origin: Origin,
    expected: impl Into<std::borrow::Cow<'static, str>>,
    found: impl Into<std::borrow::Cow<'static, str>>,
) -> Violation {
    Violation::new(rule, origin.at, origin.sent_as, expected, found)
}

fn excerpt(text: &str) -> std::borrow::Cow<'_, str> {
    crate::excerpt::excerpt(text, 80)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{CustomEvent, RawPassthroughEvent, TextMessageChunkEvent};

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
        assert!(expander.lanes.is_empty() && expander.parent.is_none() && expander.subagents.is_empty());
        assert!(
            expander.items.text.is_empty() && expander.items.tool.is_empty() && expander.items.reasoning.is_empty()
        );
        assert_eq!((expander.keys.text, expander.keys.tool, expander.keys.reasoning), (0, 0, 0));
        assert!(expander.held.is_empty());
    }

    #[test]
    fn what_is_transparent_comes_out_as_it_went_in() {
        let raw = || Event::from(RawPassthroughEvent::new(1));
        let custom = || Event::from(CustomEvent::new("n", 1));
        let mut expander = Expander::new();
        for event in [raw(), custom(), content("x", "y")] {
            let indexed = Indexed::new(event, 0);
            assert!(expander.is_transparent(&indexed));
            expander.push(indexed.clone()).unwrap();
            assert!(!expander.is_transparent(&indexed), "while something waits to be popped");
            assert_eq!(pop_all(&mut expander), [Item::Event(indexed)]);
        }
        assert!(!expander.is_transparent(&Indexed::new(chunk("m", None, "a"), 0)));
        assert!(!expander.is_transparent(&with_halves(content("x", "y\u{fffd}"), 0, 0xd83d)));

        expander.push(chunk("m", None, "a")).unwrap();
        pop_all(&mut expander);
        assert!(expander.is_transparent(&Indexed::new(raw(), 0)));
        assert!(!expander.is_transparent(&Indexed::new(custom(), 0)));

        expander.push(custom()).unwrap();
        pop_all(&mut expander);
        assert!(expander.is_transparent(&Indexed::new(custom(), 0)));

        expander.push(with_halves(content("x", "\u{fffd}"), 0, 0xd83d)).unwrap();
        pop_all(&mut expander);
        assert!(!expander.is_transparent(&Indexed::new(content("x", "y"), 0)));
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
        assert_eq!(expander.lanes.len(), 100);
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
