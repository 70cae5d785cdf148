//! The messages that grow in turns, side by side.

use super::Entry;

/// A few entries by key, each of which is reached without a walk down the list and without a look
/// at a reference count.
#[derive(Clone, Default)]
pub(crate) struct Warm {
    /// Ascending. Apart from the entries, so that a search touches few cache lines.
    keys: Vec<u64>,
    entries: Vec<Entry>,
    /// The place that was asked for last: who reads a snapshot wants what just grew.
    last: usize,
}

impl Warm {
    /// As many as this at most: what is searched and moved stays small.
    const MAX: usize = 64;

    pub(crate) fn is_full(&self) -> bool {
        self.keys.len() >= Self::MAX
    }

    /// The place of a key, which is often where it was found before.
    #[inline]
    pub(crate) fn find(&self, key: u64, before: usize) -> Option<usize> {
        if self.keys.get(before) == Some(&key) { Some(before) } else { self.search(key) }
    }

    fn search(&self, key: u64) -> Option<usize> {
        self.keys.binary_search(&key).ok()
    }

    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<&Entry> {
        if self.keys.is_empty() {
            return None;
        }
        self.entries.get(self.find(key, self.last)?)
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, place: usize) -> Option<&mut Entry> {
        self.last = place;
        self.entries.get_mut(place)
    }

    /// Adds an entry whose key is not here, and gives its place.
    pub(crate) fn insert(&mut self, key: u64, entry: Entry) -> usize {
        let (Ok(place) | Err(place)) = self.keys.binary_search(&key);
        self.keys.insert(place, key);
        self.entries.insert(place, entry);
        place
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<Entry> {
        let place = self.search(key)?;
        self.keys.remove(place);
        Some(self.entries.remove(place))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Entry)> {
        self.keys.iter().copied().zip(&self.entries)
    }

    /// Gives every entry another key; their order stays.
    pub(crate) fn rekey(&mut self, new: impl Fn(u64) -> u64) {
        for key in &mut self.keys {
            *key = new(*key);
        }
    }
}

impl IntoIterator for Warm {
    type Item = (u64, Entry);
    type IntoIter = std::iter::Zip<std::vec::IntoIter<u64>, std::vec::IntoIter<Entry>>;

    fn into_iter(self) -> Self::IntoIter {
        self.keys.into_iter().zip(self.entries)
    }
}
