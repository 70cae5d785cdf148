//! A persistent map from ids to places.

use core::fmt;
use std::sync::Arc;

use crate::id::Id;

/// Bits of the hash that choose a child.
const BITS: u32 = 4;

/// Children of a branch, and entries from which on a leaf becomes one.
const FAN_OUT: usize = 1 << BITS;

/// Ids to values, copy on write: a clone is one pointer, and an insertion while clones are held
/// copies one path. Entries are never removed; whoever drops messages builds a new index.
///
/// A trie over the hashes, which are spread evenly: what is compared at each level is one digit, and
/// within a leaf the whole.
#[derive(Clone)]
pub(crate) struct Index<V> {
    root: Arc<Node<V>>,
}

#[derive(Clone)]
enum Node<V> {
    /// In the order of insertion. More than [`FAN_OUT`] only where all digits are equal.
    Leaf(Vec<Entry<V>>),
    Branch([Option<Arc<Node<V>>>; FAN_OUT]),
}

#[derive(Clone)]
struct Entry<V> {
    hash: u64,
    id: Id,
    value: V,
}

/// The child under which a hash belongs.
#[inline]
fn digit(hash: u64, depth: u32) -> usize {
    usize::from((hash >> (BITS * depth)) as u8) % FAN_OUT
}

/// Whether there is no digit left to tell hashes apart by.
fn is_deepest(depth: u32) -> bool {
    BITS * (depth + 1) >= u64::BITS
}

impl<V: Clone> Node<V> {
    /// A full leaf as a branch, whose children have a digit less to go by.
    #[cold]
    fn split(entries: &mut Vec<Entry<V>>, depth: u32) -> Self {
        let mut leaves: [Vec<Entry<V>>; FAN_OUT] = Default::default();
        for entry in entries.drain(..) {
            if let Some(leaf) = leaves.get_mut(digit(entry.hash, depth)) {
                leaf.push(entry);
            }
        }
        Self::Branch(leaves.map(|leaf| if leaf.is_empty() { None } else { Some(Arc::new(Self::Leaf(leaf))) }))
    }
}

impl<V: Clone> Index<V> {
    pub(crate) fn new() -> Self {
        Self { root: Arc::new(Node::Leaf(Vec::new())) }
    }

    fn find(&self, hash: u64, is_it: impl Fn(&Id) -> bool) -> Option<&V> {
        let mut node = &*self.root;
        let mut depth = 0;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let found = entries.iter().find(|entry| entry.hash == hash && is_it(&entry.id));
                    return found.map(|entry| &entry.value);
                }
                Node::Branch(children) => node = children.get(digit(hash, depth))?.as_deref()?,
            }
            depth += 1;
        }
    }

    pub(crate) fn get(&self, id: &Id) -> Option<&V> {
        self.find(id.hash_value(), |held| held == id)
    }

    pub(crate) fn get_str(&self, text: &str) -> Option<&V> {
        self.find(Id::hash_of(text), |held| held.as_str() == text)
    }

    pub(crate) fn get_mut(&mut self, id: &Id) -> Option<&mut V> {
        // Looked up first, so that an absent id copies nothing.
        self.get(id)?;
        let entries = self.leaf_mut(id.hash_value(), false)?;
        entries.iter_mut().find(|entry| entry.id == *id).map(|entry| &mut entry.value)
    }

    /// The leaf where a hash belongs, to change; with `room` for one more.
    fn leaf_mut(&mut self, hash: u64, room: bool) -> Option<&mut Vec<Entry<V>>> {
        let mut node = Arc::make_mut(&mut self.root);
        let mut depth = 0;
        loop {
            if let Node::Leaf(entries) = node {
                if room && entries.len() >= FAN_OUT && !is_deepest(depth) {
                    *node = Node::split(entries, depth);
                }
            }
            match node {
                Node::Leaf(entries) => return Some(entries),
                Node::Branch(children) => {
                    let child = children.get_mut(digit(hash, depth))?;
                    node = Arc::make_mut(child.get_or_insert_with(|| Arc::new(Node::Leaf(Vec::new()))));
                }
            }
            depth += 1;
        }
    }

    /// Sets the value of an id.
    pub(crate) fn insert(&mut self, id: Id, value: V) {
        let hash = id.hash_value();
        let Some(entries) = self.leaf_mut(hash, true) else { return };
        match entries.iter_mut().find(|entry| entry.hash == hash && entry.id == id) {
            Some(entry) => entry.value = value,
            None => entries.push(Entry { hash, id, value }),
        }
    }

    /// Sets the value of an id that has none, and says whether that is so; the first one stands.
    pub(crate) fn insert_first(&mut self, id: &Id, value: V) -> bool {
        let hash = id.hash_value();
        let Some(entries) = self.leaf_mut(hash, true) else { return false };
        let is_new = !entries.iter().any(|entry| entry.hash == hash && entry.id == *id);
        if is_new {
            entries.push(Entry { hash, id: id.clone(), value });
        }
        is_new
    }
}

impl<V: fmt::Debug> fmt::Debug for Index<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_with_one_hash_are_kept_apart() {
        let mut index = Index::new();
        let ids: Vec<Id> = ["a", "b", "c"].iter().map(|text| Id::with_hash(text, u64::MAX)).collect();
        for (at, id) in ids.iter().enumerate() {
            assert!(index.insert_first(id, at));
            assert!(!index.insert_first(id, 9));
        }
        assert_eq!(ids.iter().map(|id| index.get(id).copied()).collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
        index.insert(ids[1].clone(), 7);
        *index.get_mut(&ids[2]).unwrap() += 1;
        assert_eq!(ids.iter().map(|id| index.get(id).copied()).collect::<Vec<_>>(), [Some(0), Some(7), Some(3)]);
        assert_eq!(index.get(&Id::with_hash("d", u64::MAX)), None);
    }
}
