//! Where the entry of a message is kept: in the list, or beside it while the message grows.

use std::sync::Arc;

use super::{Entry, Inner};
use crate::shared::list::Moved;

/// The messages that grow at the moment. A delta reaches them without a walk down the list and without
/// a check of a reference count. Their slots in the list are empty.
///
/// An entry comes here when text begins in it, when it grows while no reader holds the previous
/// snapshot, or when it grows twice in a row. It goes back when its item is closed. All but the one
/// that grew last go back when a reader holds what is about to change: a copy of all of them for each
/// held snapshot would cost more than the walk to the one that grows.
///
/// Why not the list alone: by `benches/instructions.sh` it costs 9 % more for one message (W1) and
/// 10 % for 64 that take turns (W5); with every snapshot kept, 35 % for one (W1) and 28 % for many
/// (W3). A shared tree of the open messages would be as deep as the list for W5.
#[derive(Default)]
pub(super) struct Growing {
    /// By ascending key.
    entries: Vec<(u64, Entry)>,
    /// The message that grew last, here or not, and where it is if it is here.
    last: u64,
    place: usize,
    /// Whether a reader has held a change since a message last grew in the list.
    was_held: bool,
}

impl Growing {
    /// The most entries: keeps searches and moves small.
    const MAX: usize = 64;

    fn find(&self, key: u64) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&key, |entry| entry.0)
    }

    #[inline]
    fn get(&self, key: u64) -> Option<&Entry> {
        // A reader of a snapshot mostly wants the message that just grew.
        match self.entries.get(self.place) {
            Some((last, entry)) if *last == key => Some(entry),
            _ => self.entries.get(self.find(key).ok()?).map(|(_, entry)| entry),
        }
    }

    /// Adds an entry and gives its place. There has to be room.
    fn insert(&mut self, key: u64, entry: Entry) -> usize {
        let (Ok(place) | Err(place)) = self.find(key);
        self.entries.insert(place, (key, entry));
        (self.last, self.place) = (key, place);
        place
    }
}

/// Called only when a reader holds what is about to change.
impl Clone for Inner {
    fn clone(&self) -> Self {
        let Growing { entries, last, .. } = &self.growing;
        let mut copy = Self {
            messages: self.messages.clone(),
            growing: Growing { last: *last, was_held: true, ..Growing::default() },
            rest: Arc::clone(&self.rest),
        };
        for (key, entry) in entries {
            if key == last {
                copy.growing.entries = vec![(*key, entry.clone())];
            } else {
                copy.put_back(*key, entry.clone());
            }
        }
        copy
    }
}

impl Inner {
    /// The entry of a message. Costs a logarithm, nothing for the one that grew last.
    #[inline]
    pub(crate) fn entry(&self, key: u64) -> Option<&Entry> {
        self.growing.get(key).or_else(|| self.messages.get_key(key)?.as_deref())
    }

    /// The entry of a slot of the list.
    pub(crate) fn resolve<'s>(&'s self, key: u64, slot: &'s Option<Arc<Entry>>) -> Option<&'s Entry> {
        slot.as_deref().or_else(|| self.growing.get(key))
    }

    /// The entry of a message, to change. Costs a logarithm.
    pub(crate) fn entry_mut(&mut self, key: u64) -> Option<&mut Entry> {
        match self.growing.find(key) {
            Ok(place) => self.growing.entries.get_mut(place).map(|(_, entry)| entry),
            Err(_) => self.messages.get_key_mut(key)?.as_mut().map(Arc::make_mut),
        }
    }

    /// The one that grew last, if it is not in the list.
    #[inline]
    pub(crate) fn grown_last(&mut self) -> Option<(u64, &mut Entry)> {
        let Growing { entries, last, place, .. } = &mut self.growing;
        entries.get_mut(*place).filter(|(key, _)| key == last).map(|(key, entry)| (*key, entry))
    }

    /// Appends a message under the key that the list gives next, about to grow.
    pub(crate) fn push_growing(&mut self, key: u64, entry: Entry) -> Option<&mut Entry> {
        if self.growing.entries.len() == Growing::MAX {
            self.growing.last = key;
            self.messages.push_at(key, Some(Arc::new(entry)));
            return self.entry_mut(key);
        }
        self.messages.push_at(key, None);
        let place = self.growing.insert(key, entry);
        self.growing.entries.get_mut(place).map(|(_, entry)| entry)
    }

    /// The entry of a message that grows, often where it was found before.
    #[inline]
    pub(crate) fn grow(&mut self, key: u64, hint: &mut usize) -> Option<&mut Entry> {
        let growing = &mut self.growing;
        let before = std::mem::replace(&mut growing.last, key);
        let place = match growing.entries.get(*hint) {
            Some((there, _)) if *there == key => Ok(*hint),
            _ => growing.find(key),
        };
        let place = match place {
            Ok(place) => place,
            Err(_) => {
                let was_held = std::mem::take(&mut growing.was_held);
                if (was_held && before != key) || growing.entries.len() == Growing::MAX {
                    return self.entry_mut(key);
                }
                let entry = self.messages.get_key_mut(key)?.take().map(Arc::unwrap_or_clone)?;
                self.growing.insert(key, entry)
            }
        };
        (self.growing.place, *hint) = (place, place);
        self.growing.entries.get_mut(place).map(|(_, entry)| entry)
    }

    fn put_back(&mut self, key: u64, entry: Entry) {
        if let Some(slot) = self.messages.get_key_mut(key) {
            *slot = Some(Arc::new(entry));
        }
    }

    /// Puts a message back that no longer grows.
    pub(crate) fn settle(&mut self, key: u64) {
        if let Ok(place) = self.growing.find(key) {
            let (key, entry) = self.growing.entries.remove(place);
            self.put_back(key, entry);
        }
    }

    /// Puts all messages back.
    pub(crate) fn settle_all(&mut self) {
        for (key, entry) in std::mem::take(&mut self.growing).entries {
            self.put_back(key, entry);
        }
    }

    /// Follows messages to new keys.
    pub(crate) fn rekey(&mut self, moved: &Moved) {
        self.growing.last = moved.now(self.growing.last);
        for (key, _) in &mut self.growing.entries {
            *key = moved.now(*key);
        }
    }
}
