//! A map from ids to values whose clones share memory.

use core::fmt;
use std::sync::Arc;

use crate::id::Id;

/// Bits of the hash that choose a child.
const BITS: u32 = 4;

/// Children of a branch, and the most entries of a leaf before it becomes one.
const FAN_OUT: usize = 1 << BITS;

/// Ids to values, copy on write: a clone is one pointer, and an insertion while clones are held
/// copies one path. Nodes are not joined where entries are removed.
///
/// A trie over the hashes, which are spread evenly: each level compares one digit, a leaf the whole
/// hash.
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

/// Whether no digit is left to distinguish hashes.
fn is_deepest(depth: u32) -> bool {
    BITS * (depth + 1) >= u64::BITS
}

impl<V: Clone> Node<V> {
    /// Turns a full leaf into a branch by the next digit.
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

    pub(crate) fn remove(&mut self, id: &Id) {
        // Looked up first, so that an absent id copies nothing.
        if self.get(id).is_some() {
            if let Some(entries) = self.leaf_mut(id.hash_value(), false) {
                entries.retain(|entry| entry.id != *id);
            }
        }
    }

    /// Sets the value of an id that has none, and says whether it did.
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
    use std::collections::HashMap;

    use super::super::tree::tests::Random;
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

    /// Height below a node, and how many entries there are; no leaf is too full to be split.
    fn shape<V>(node: &Node<V>, depth: u32) -> (u32, usize) {
        match node {
            Node::Leaf(entries) => {
                assert!(entries.len() <= FAN_OUT || is_deepest(depth));
                (0, entries.len())
            }
            Node::Branch(children) => {
                let below: Vec<_> = children.iter().flatten().map(|child| shape(child, depth + 1)).collect();
                (1 + below.iter().map(|(height, _)| *height).max().unwrap(), below.iter().map(|(_, len)| *len).sum())
            }
        }
    }

    #[test]
    fn an_index_does_what_a_map_does_and_held_clones_never_change() {
        for bits in [0, 3, 20, 60, 64] {
            let mut random = Random(bits);
            let (mut index, mut model) = (Index::new(), HashMap::new());
            let mut held: Vec<(Index<u64>, HashMap<String, u64>)> = Vec::new();
            // Hashes that agree in all but some of their highest bits, which are looked at last.
            let id = |number: u64| {
                Id::with_hash(&number.to_string(), number.wrapping_mul(0x9E37_79B9_7F4A_7C15) << (64 - bits).min(63))
            };
            for step in 0..600 {
                let number = random.below(400);
                let (id, text) = (id(number), number.to_string());
                match random.below(4) {
                    0 => {
                        index.insert(id.clone(), step);
                        model.insert(text, step);
                    }
                    1 => {
                        let (ours, theirs) = (index.get_mut(&id), model.get_mut(&text));
                        assert_eq!(ours, theirs);
                        if let Some(value) = ours {
                            *value += 1;
                            model.entry(text).and_modify(|value| *value += 1);
                        }
                    }
                    2 if random.below(2) == 0 => {
                        index.remove(&id);
                        model.remove(&text);
                    }
                    _ => {
                        assert_eq!(index.insert_first(&id, step), !model.contains_key(&text));
                        model.entry(text).or_insert(step);
                    }
                }
                if random.below(60) == 0 {
                    held.push((index.clone(), model.clone()));
                }
            }
            held.push((index, model));
            for (index, model) in &held {
                assert_eq!(shape(&index.root, 0).1, model.len());
                for number in 0..400 {
                    assert_eq!(index.get(&id(number)), model.get(&number.to_string()), "{bits} bits");
                }
            }
        }
    }

    #[test]
    fn an_index_of_many_ids_is_flat_and_found_by_text() {
        let mut index = Index::new();
        for number in 0..20_000_u64 {
            assert!(index.insert_first(&Id::new(&number.to_string()), number));
        }
        let (height, len) = shape(&index.root, 0);
        assert_eq!(len, 20_000);
        assert!(height <= 6, "{height}");
        for number in 0..20_000_u64 {
            assert_eq!(index.get_str(&number.to_string()), Some(&number));
        }
        assert_eq!(index.get_str("20000"), None);
    }
}
