//! Tables of the items that a run has named: for each kind, from id to owner and status.

use core::fmt;
use core::hash::{BuildHasher, Hash, Hasher};

use crate::error::{History, Subject, SubjectKind};
use crate::id::{BuildIdHasher, Id, IdMap, SubagentRunId};

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

/// Whether a new owner replaces a recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It does (O7).
    Outright,
    /// It does not: the first writer wins ([`Rule::O3`](crate::rule::Rule::O3)).
    IfUnclaimed,
}

/// The statuses of one entry: a single one, or one for each kind that shares the owner.
pub(crate) trait Statuses: Copy + Default {
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
pub(crate) trait Key: Clone + Eq + Hash {
    fn text(&self) -> &str;
}

impl<T: Clone + Eq + Hash + AsRef<str>> Key for T {
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
pub(crate) struct Table<K, L = Status> {
    /// By hash, so that no key is held twice; if two hashes are equal, by the next free number.
    places: IdMap<u64, usize>,
    entries: Vec<Entry<K, L>>,
    last: usize,
}

impl<K, L> Default for Table<K, L> {
    fn default() -> Self {
        Self { places: IdMap::default(), entries: Vec::new(), last: 0 }
    }
}

impl<K: Key, L: Statuses> Table<K, L> {
    /// The capacity kept from one run to the next: enough for most runs, little beside a thread.
    const KEPT: usize = 64;

    /// Forgets everything (R6).
    pub(crate) fn reset(&mut self) {
        self.places.clear();
        self.places.shrink_to(Self::KEPT);
        self.entries.clear();
        self.entries.shrink_to(Self::KEPT);
        self.last = 0;
    }

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

    #[inline]
    pub(crate) fn find(&mut self, key: &K) -> Option<&mut Entry<K, L>> {
        let place = match self.entries.get(self.last) {
            Some(entry) if entry.key == *key => self.last,
            _ => self.place(key).ok()?,
        };
        self.last = place;
        self.entries.get_mut(place)
    }

    pub(crate) fn get(&self, key: &K) -> Option<&Entry<K, L>> {
        self.entries.get(self.place(key).ok()?)
    }

    /// The entry under this key, which gets this owner if it is new: the first writer wins (O3).
    pub(crate) fn claim(&mut self, key: &K, owner: impl FnOnce() -> Owner) -> Option<&mut Entry<K, L>> {
        let place = match self.place(key) {
            Ok(place) => place,
            Err(number) => {
                let place = self.entries.len();
                self.places.insert(number, place);
                self.entries.push(Entry { key: key.clone(), owner: owner(), status: L::default() });
                place
            }
        };
        self.last = place;
        self.entries.get_mut(place)
    }

    /// Notes an owner without opening anything.
    pub(crate) fn name(&mut self, key: &K, owner: Option<&SubagentRunId>, claim: Claim, at: u64) {
        match self.find(key) {
            Some(entry) if claim == Claim::Outright => {
                entry.owner = owner.cloned();
                entry.status.name(at);
            }
            Some(_) => {}
            None => {
                if let Some(entry) = self.claim(key, || owner.cloned()) {
                    entry.status.name(at);
                }
            }
        }
    }

    /// Adds the open items of this kind, each with its place in the order of the openings.
    pub(crate) fn list_open(&self, kind: SubjectKind, open: &mut Vec<(u64, Subject, History)>) {
        for entry in &self.entries {
            if let Status::Open { order, .. } = entry.status.of(kind) {
                open.push((order, entry.subject(kind), entry.history(kind)));
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry<K, L>> {
        self.entries.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::MessageId;

    #[test]
    fn ids_with_one_hash_are_kept_apart() {
        let mut table: Table<MessageId> = Table::default();
        let ids = ["a", "b", "c"].map(|text| MessageId::from_id(Id::with_hash(text, u64::MAX)));
        for (at, id) in ids.iter().enumerate() {
            assert!(table.find(id).is_none() && table.get(id).is_none());
            let owner = SubagentRunId::new(id.as_str());
            table.claim(id, || Some(owner)).unwrap().status = Status::Closed { at: at as u64 };
        }
        for (at, id) in ids.iter().enumerate().rev() {
            let entry = table.find(id).unwrap();
            assert_eq!((&entry.key, entry.status), (id, Status::Closed { at: at as u64 }));
            assert_eq!(entry.owner.as_ref().unwrap().as_str(), id.as_str());
            assert!(table.claim(id, || None).unwrap().owner.is_some(), "the first owner stays (O3)");
        }
        assert_eq!(table.iter().count(), 3);
        table.reset();
        assert!(ids.iter().all(|id| table.get(id).is_none()));
    }
}
