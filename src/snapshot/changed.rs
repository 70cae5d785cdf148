//! `Changed`: a snapshot with what changed since the one before, for readers that skip some.

use super::{Change, MessageChange, Snapshot, Update};
use crate::message::Message;

/// The conversation after a change, and what changed: an [`Update`] without its event.
///
/// If snapshots were skipped, it tells of all changes since the one that was seen before.
#[derive(Clone, Debug)]
pub struct Changed {
    snapshot: Snapshot,
    change: Change,
}

impl Changed {
    /// The conversation.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The conversation, by value.
    #[must_use]
    pub fn into_snapshot(self) -> Snapshot {
        self.snapshot
    }

    /// The one message that changed. `None` where none did, or several (see
    /// [`Changed::changed_messages`]).
    #[must_use]
    pub fn message(&self) -> Option<&Message> {
        self.change.message_in(&self.snapshot)
    }

    /// The index of that message in [`Snapshot::messages`]. Costs a logarithm.
    #[must_use]
    pub fn message_index(&self) -> Option<usize> {
        self.change.index_in(&self.snapshot)
    }

    /// Whether messages changed: one, or several.
    #[must_use]
    pub fn changed_messages(&self) -> bool {
        self.change.messages != MessageChange::NONE
    }

    /// Whether the state changed.
    #[must_use]
    pub fn changed_state(&self) -> bool {
        self.change.state
    }

    /// Whether the run changed: its outcome, or what it has open.
    #[must_use]
    pub fn changed_run(&self) -> bool {
        self.change.run
    }

    /// A snapshot of which nobody knows what changed.
    #[cfg(feature = "stream")]
    pub(crate) fn whole(snapshot: Snapshot) -> Self {
        Self { snapshot, change: Change { messages: MessageChange::MANY, state: true, run: true } }
    }

    /// Moves on to a later snapshot.
    #[cfg(feature = "stream")]
    pub(crate) fn skip_to(&mut self, later: Self) {
        let messages = match (self.change.messages, later.change.messages) {
            (MessageChange::NONE, change) | (change, MessageChange::NONE) => change,
            // Keys may change between the two.
            (one, other) if one == other && self.message().map(Message::id) == later.message().map(Message::id) => {
                other
            }
            _ => MessageChange::MANY,
        };
        let state = self.change.state || later.change.state;
        let run = self.change.run || later.change.run;
        *self = Self { snapshot: later.snapshot, change: Change { messages, state, run } };
    }
}

impl Update {
    /// What changed; `None` where nothing did.
    #[must_use]
    pub fn changed(&self) -> Option<Changed> {
        self.is_change().then(|| Changed { snapshot: self.snapshot.clone(), change: self.change })
    }

    /// Its two sides apart.
    #[cfg(feature = "stream")]
    pub(crate) fn split(self) -> (crate::item::Item, Option<Changed>) {
        let Self { item, snapshot, change } = self;
        (item, (change != Change::default()).then_some(Changed { snapshot, change }))
    }
}

impl Change {
    #[inline]
    pub(crate) fn message_in(self, snapshot: &Snapshot) -> Option<&Message> {
        snapshot.0.entry(self.messages.key()?).map(|entry| &entry.message)
    }

    pub(crate) fn index_in(self, snapshot: &Snapshot) -> Option<usize> {
        snapshot.0.messages.rank(self.messages.key()?)
    }
}
