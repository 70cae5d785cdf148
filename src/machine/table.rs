//! Tables of the items that a run has named: for each kind, from id to owner and status.

use core::fmt;
use core::hash::{BuildHasher, Hash, Hasher};

use super::lazy::{Empty, Lazy};
use crate::error::{Error, History, Limit, LimitExceeded, Subject, SubjectKind};
use crate::id::{BuildIdHasher, Id, IdMap, SubagentRunId, id_map};
use crate::item::Place;
use crate::limits::Limits;

/// The owner of an item: an invocation of a subagent, or the parent agent for `None` (O1).
pub(crate) type Owner = Option<SubagentRunId>;

/// The status of an item between its START and its END. Events are counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Status {
    /// No event has named it.
    #[default]
    Never,
    /// This event named it without opening it, and set its owner (O7).
    Known { at: u64 },
    /// It is open; `order` counts the openings of the run.
    Open { since: u64, order: u64 },
    /// It was closed at this event.
    Closed { at: u64 },
}

impl Status {
    #[inline]
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Status::Open { .. })
    }

    pub(crate) fn history(self, owner: &Owner) -> History {
        let owner = || owner.as_ref().map(|id| id.as_str().to_owned());
        match self {
            Status::Never => History::NeverOpened,
            Status::Known { at } => History::Known { at, owner: owner() },
            Status::Open { since, .. } => History::Open { since, owner: owner() },
            Status::Closed { at } => History::Closed { at, owner: owner() },
        }
    }
}

/// What the tables of a run may hold together, and what they do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(super) limits: Lazy<Limits>,
    /// How many things are open, and how many were opened so far.
    pub(crate) open: usize,
    opened: u64,
    /// What all entries take.
    bytes: usize,
}

/// There is no room for what an event names.
#[derive(Debug)]
pub(crate) struct Full(Limit, usize);

impl Full {
    #[cold]
    pub(crate) fn at(self, place: Place) -> Error {
        LimitExceeded::new(place.index, self.0, self.1).into()
    }
}

impl Tally {
    /// About what an entry takes beside its texts, in a table that has just grown.
    const ENTRY: usize = 256;

    /// What an entry takes.
    pub(crate) fn cost(key: &str, owner: Option<&SubagentRunId>) -> usize {
        Self::ENTRY.saturating_add(key.len()).saturating_add(owner.map_or(0, |owner| owner.as_str().len()))
    }

    /// Whether this much more may be held.
    pub(crate) fn check_room(&self, bytes: usize) -> Result<(), Full> {
        let max = self.limits.max_conversation_bytes;
        if self.bytes.saturating_add(bytes) > max { Err(Full(Limit::ConversationBytes, max)) } else { Ok(()) }
    }

    /// Whether one more thing may be open.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<(), Full> {
        let max = self.limits.max_open_items;
        if self.open >= max { Err(Full(Limit::OpenItems, max)) } else { Ok(()) }
    }

    pub(crate) fn open(&mut self, status: &mut Status, place: Place) {
        *status = Status::Open { since: place.index, order: self.opened };
        self.opened += 1;
        self.open += 1;
    }

    pub(crate) fn close(&mut self, status: &mut Status, place: Place) {
        *status = Status::Closed { at: place.index };
        self.open = self.open.saturating_sub(1);
    }

    /// Forgets the run (R6).
    pub(crate) fn reset(&mut self) {
        *self = Self { limits: core::mem::take(&mut self.limits), ..Self::default() };
    }
}

/// Whether a new owner replaces a recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It does (O7).
    Outright,
    /// It does not: the first writer wins ([`Rule::O3`](crate::rule::Rule::O3)).
    IfUnclaimed,
}

/// The statuses of one entry: a single one, or one for each kind that shares the owner.
pub(crate) trait Statuses: Copy + Default + 'static {
    /// The status of the item of this kind.
    fn of(self, kind: SubjectKind) -> Status;

    fn of_mut(&mut self, kind: SubjectKind) -> &mut Status;

    /// The kind that shares the owner with this one.
    fn sibling(kind: SubjectKind) -> Option<SubjectKind>;

    /// Notes that a list of messages, or an event without START and END, named the item.
    fn name(&mut self, at: u64);
}

impl Statuses for Status {
    #[inline]
    fn of(self, _: SubjectKind) -> Status {
        self
    }

    #[inline]
    fn of_mut(&mut self, _: SubjectKind) -> &mut Status {
        self
    }

    fn sibling(_: SubjectKind) -> Option<SubjectKind> {
        None
    }

    fn name(&mut self, at: u64) {
        if matches!(self, Status::Never | Status::Known { .. }) {
            *self = Status::Known { at };
        }
    }
}

/// A reasoning span and a reasoning message may share an id (S1), and then they share the owner.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reasoning {
    span: Status,
    message: Status,
}

impl Statuses for Reasoning {
    #[inline]
    fn of(self, kind: SubjectKind) -> Status {
        if kind == SubjectKind::ReasoningSpan { self.span } else { self.message }
    }

    #[inline]
    fn of_mut(&mut self, kind: SubjectKind) -> &mut Status {
        if kind == SubjectKind::ReasoningSpan { &mut self.span } else { &mut self.message }
    }

    fn sibling(kind: SubjectKind) -> Option<SubjectKind> {
        Some(match kind {
            SubjectKind::ReasoningSpan => SubjectKind::ReasoningMessage,
            _ => SubjectKind::ReasoningSpan,
        })
    }

    fn name(&mut self, at: u64) {
        self.message.name(at);
    }
}

/// What identifies an item of one kind.
pub(crate) trait Key: Clone + Eq + Hash + 'static {
    fn text(&self) -> &str;
}

impl<T: Clone + Eq + Hash + AsRef<str> + 'static> Key for T {
    fn text(&self) -> &str {
        self.as_ref()
    }
}

/// A step is open once for each owner (S8): the owner is part of its key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StepKey {
    pub(crate) owner: Owner,
    name: Id,
}

impl StepKey {
    pub(crate) fn new(owner: Option<&SubagentRunId>, name: &str) -> Self {
        Self { owner: owner.cloned(), name: Id::new(name) }
    }
}

impl Hash for StepKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.owner.as_ref().map_or(0, |owner| owner.id().hash_value()).hash(state);
        self.name.hash(state);
    }
}

impl fmt::Debug for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepKey").field("owner", &self.owner).field("name", &self.name.as_str()).finish()
    }
}

impl AsRef<str> for StepKey {
    fn as_ref(&self) -> &str {
        self.name.as_str()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Entry<K, L = Status> {
    pub(crate) key: K,
    pub(crate) owner: Owner,
    pub(crate) status: L,
}

impl<K: Key, L: Statuses> Entry<K, L> {
    pub(crate) fn subject(&self, kind: SubjectKind) -> Subject {
        Subject::new(kind, self.key.text())
    }

    pub(crate) fn history(&self, kind: SubjectKind) -> History {
        self.status.of(kind).history(&self.owner)
    }
}

/// The items of one kind that a run named, in the order in which it named them first.
///
/// A look-up of the same item as the last time, as by a row of deltas, compares two pointers; any other
/// costs one probe.
#[derive(Clone, Debug)]
pub(crate) struct Table<K, L = Status>(Lazy<Inner<K, L>>);

#[derive(Clone, Debug)]
struct Inner<K, L> {
    /// By hash, so that no key is held twice; if two hashes are equal, by the next free number.
    places: IdMap<u64, usize>,
    entries: Vec<Entry<K, L>>,
    last: usize,
}

impl<K, L> Default for Inner<K, L> {
    fn default() -> Self {
        Self { places: IdMap::default(), entries: Vec::new(), last: 0 }
    }
}

impl<K: 'static, L: 'static> Empty for Inner<K, L> {
    const EMPTY: &'static Self = &Self { places: id_map(), entries: Vec::new(), last: 0 };
}

impl<K: Key, L> Inner<K, L> {
    /// The place of a key, or the free number under which it would be noted.
    #[inline]
    fn place(&self, key: &K) -> Result<usize, u64> {
        let mut number = BuildIdHasher.hash_one(key);
        while let Some(place) = self.places.get(&number) {
            if self.entries.get(*place).is_some_and(|entry| entry.key == *key) {
                return Ok(*place);
            }
            number = number.wrapping_add(1);
        }
        Err(number)
    }
}

impl<K, L> Default for Table<K, L> {
    fn default() -> Self {
        Self(Lazy::default())
    }
}

impl<K: Key, L: Statuses> Table<K, L> {
    /// The capacity kept from one run to the next: enough for most runs, little beside a thread.
    const KEPT: usize = 64;

    /// Forgets everything (R6).
    pub(crate) fn reset(&mut self) {
        if let Some(inner) = self.0.made() {
            inner.places.clear();
            inner.places.shrink_to(Self::KEPT);
            inner.entries.clear();
            inner.entries.shrink_to(Self::KEPT);
            inner.last = 0;
        }
    }

    #[inline]
    pub(crate) fn find(&mut self, key: &K) -> Option<&mut Entry<K, L>> {
        let inner = self.0.made()?;
        let place = match inner.entries.get(inner.last) {
            Some(entry) if entry.key == *key => inner.last,
            _ => inner.place(key).ok()?,
        };
        inner.last = place;
        inner.entries.get_mut(place)
    }

    pub(crate) fn get(&self, key: &K) -> Option<&Entry<K, L>> {
        self.0.entries.get(self.0.place(key).ok()?)
    }

    /// The entry under this key, which gets this owner if it is new: the first writer wins (O3).
    ///
    /// # Errors
    /// Where there is no room for a new one; nothing has changed then.
    pub(crate) fn claim(
        &mut self,
        key: &K,
        owner: impl FnOnce() -> Owner,
        tally: &mut Tally,
    ) -> Result<&mut Entry<K, L>, Full> {
        let inner = &mut *self.0;
        let place = match inner.place(key) {
            Ok(place) => place,
            Err(number) => {
                let owner = owner();
                let cost = Tally::cost(key.text(), owner.as_ref());
                tally.check_room(cost)?;
                tally.bytes += cost;
                let place = inner.entries.len();
                inner.places.insert(number, place);
                inner.entries.push(Entry { key: key.clone(), owner, status: L::default() });
                place
            }
        };
        inner.last = place;
        inner.entries.get_mut(place).ok_or(Full(Limit::ConversationBytes, tally.limits.max_conversation_bytes))
    }

    /// Notes an owner without opening anything.
    ///
    /// # Errors
    /// Where there is no room for it; nothing has changed then.
    pub(crate) fn name(
        &mut self,
        key: &K,
        owner: Option<&SubagentRunId>,
        claim: Claim,
        at: u64,
        tally: &mut Tally,
    ) -> Result<(), Full> {
        match self.find(key) {
            Some(entry) if claim == Claim::Outright => {
                if entry.owner.as_ref() != owner {
                    let before = Tally::cost("", entry.owner.as_ref());
                    let now = Tally::cost("", owner);
                    tally.check_room(now.saturating_sub(before))?;
                    tally.bytes = tally.bytes.saturating_sub(before).saturating_add(now);
                    entry.owner = owner.cloned();
                }
                entry.status.name(at);
            }
            Some(_) => {}
            None => self.claim(key, || owner.cloned(), tally)?.status.name(at),
        }
        Ok(())
    }

    /// Adds the open items of this kind, each with its place in the order of the openings.
    pub(crate) fn list_open(&self, kind: SubjectKind, open: &mut Vec<(u64, Subject, History)>) {
        for entry in &self.0.entries {
            if let Status::Open { order, .. } = entry.status.of(kind) {
                open.push((order, entry.subject(kind), entry.history(kind)));
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry<K, L>> {
        self.0.entries.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::MessageId;

    #[test]
    fn ids_with_one_hash_are_kept_apart() {
        let mut table: Table<MessageId> = Table::default();
        let mut tally = Tally::default();
        let ids = ["a", "b", "c"].map(|text| MessageId::from_id(Id::with_hash(text, u64::MAX)));
        for (at, id) in ids.iter().enumerate() {
            assert!(table.find(id).is_none() && table.get(id).is_none());
            let owner = SubagentRunId::new(id.as_str());
            table.claim(id, || Some(owner), &mut tally).unwrap().status = Status::Closed { at: at as u64 };
        }
        for (at, id) in ids.iter().enumerate().rev() {
            let entry = table.find(id).unwrap();
            assert_eq!((&entry.key, entry.status), (id, Status::Closed { at: at as u64 }));
            assert_eq!(entry.owner.as_ref().unwrap().as_str(), id.as_str());
            assert!(table.claim(id, || None, &mut tally).unwrap().owner.is_some(), "the first owner stays (O3)");
        }
        assert_eq!(table.iter().count(), 3);
        table.reset();
        assert!(ids.iter().all(|id| table.get(id).is_none()));
    }
}
