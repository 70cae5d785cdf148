//! A sequence that one writer edits while any number of readers keep what they saw.

use std::fmt;
use std::iter::FusedIterator;
use std::slice;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Most entries in a leaf, and most children of a branch.
///
/// A change under a held clone copies one node per level: a wider node makes the tree flatter and
/// each copy dearer.
const FAN_OUT: usize = 16;

/// Distance between the keys of entries that were pushed, or spread anew.
const SPACING: u64 = 1 << 32;

/// An insert takes this fraction of the gap it falls into, so that some 16 000 inserts fit when
/// each follows the one before.
const GAP_SHARE: u64 = 1024;

/// A sorted map from `u64` to `T` that is cloned in O(1): a counted B+tree of shared nodes.
///
/// A change copies the nodes on its path that a clone holds as well (at most [`FAN_OUT`] values
/// and [`FAN_OUT`] references per level), and is in place where none does. Lookups, by key or
/// index, are O(log n). Recursion is as deep as the tree, at most 16 levels.
///
/// Keys that arrive in ascending order fill every node but the last of each level.
pub(crate) struct Tree<T> {
    root: Option<Arc<Node<T>>>,
    len: usize,
}

/// Neither kind is ever empty, but for a leaf that is the root; all leaves are at the same depth.
#[derive(Clone)]
enum Node<T> {
    Leaf(Vec<(u64, T)>),
    Branch(Vec<Child<T>>),
}

struct Child<T> {
    /// Keys from here on are below this child, not the one before it. Of no account for a first
    /// child: smaller keys go there as well.
    low: u64,
    /// Entries below.
    len: usize,
    node: Arc<Node<T>>,
}

impl<T> Clone for Child<T> {
    fn clone(&self) -> Self {
        Self { low: self.low, len: self.len, node: Arc::clone(&self.node) }
    }
}

impl<T> Child<T> {
    /// The child for a node; `None` for one without entries, which is never built.
    fn new(node: Node<T>) -> Option<Self> {
        let (low, len) = match &node {
            Node::Leaf(entries) => (entries.first()?.0, entries.len()),
            Node::Branch(children) => (children.first()?.low, children.iter().map(|child| child.len).sum()),
        };
        let node = Arc::new(node);
        Some(Self { low, len, node })
    }
}

/// What became of an insert below some node.
enum Insertion<T> {
    Replaced(T),
    Added {
        /// The upper part of the node, if it had to be split.
        right: Option<Child<T>>,
    },
}

/// Index of the child under which `key` belongs.
fn position<T>(children: &[Child<T>], key: u64) -> usize {
    children.partition_point(|child| child.low <= key).saturating_sub(1)
}

/// Inserts into a node, or splits it if it is full and returns the upper part.
///
/// At the end of the `last` node of a level nothing is moved: the new item starts the next node,
/// and the old one stays full.
fn insert_or_split<I>(items: &mut Vec<I>, at: usize, item: I, last: bool) -> Option<Vec<I>> {
    let len = items.len();
    if len < FAN_OUT {
        if len == items.capacity() {
            // `Vec` would not stop at the fan-out.
            items.reserve_exact(len.clamp(4, FAN_OUT).min(FAN_OUT - len));
        }
        items.insert(at, item);
        return None;
    }
    let middle = len / 2;
    let mut right;
    if at == len && last {
        right = vec![item];
    } else {
        // The old node keeps its buffer, the new one has room to grow.
        right = Vec::with_capacity(FAN_OUT);
        right.extend(items.drain(middle..));
        if at <= middle {
            items.insert(at, item);
        } else {
            right.insert(at - middle, item);
        }
    }
    Some(right)
}

fn insert_below<T: Clone>(node: &mut Arc<Node<T>>, key: u64, value: T, last: bool) -> Insertion<T> {
    let right = match Arc::make_mut(node) {
        Node::Leaf(entries) => match entries.binary_search_by_key(&key, |entry| entry.0) {
            Ok(at) => match entries.get_mut(at) {
                Some((_, old)) => return Insertion::Replaced(std::mem::replace(old, value)),
                None => None,
            },
            Err(at) => insert_or_split(entries, at, (key, value), last).map(Node::Leaf),
        },
        Node::Branch(children) => {
            let at = position(children, key);
            let last = last && at + 1 == children.len();
            let Some(child) = children.get_mut(at) else {
                return Insertion::Added { right: None };
            };
            let right = match insert_below(&mut child.node, key, value, last) {
                Insertion::Added { right } => right,
                replaced @ Insertion::Replaced(_) => return replaced,
            };
            child.len += 1;
            if let Some(right) = right {
                child.len -= right.len;
                insert_or_split(children, at + 1, right, last).map(Node::Branch)
            } else {
                None
            }
        }
    };
    Insertion::Added { right: right.and_then(Child::new) }
}

/// Removes from below a node, and says whether the node is empty now.
fn remove_below<T: Clone>(node: &mut Arc<Node<T>>, key: u64) -> Option<(T, bool)> {
    match Arc::make_mut(node) {
        Node::Leaf(entries) => {
            let at = entries.binary_search_by_key(&key, |entry| entry.0).ok()?;
            let (_, value) = entries.remove(at);
            Some((value, entries.is_empty()))
        }
        Node::Branch(children) => {
            let at = position(children, key);
            let child = children.get_mut(at)?;
            let (value, is_empty) = remove_below(&mut child.node, key)?;
            child.len -= 1;
            if is_empty {
                children.remove(at);
            }
            Some((value, children.is_empty()))
        }
    }
}

impl<T> Tree<T> {
    /// An empty tree. Allocates nothing.
    pub(crate) const fn new() -> Self {
        Self { root: None, len: 0 }
    }

    /// Builds a tree of full nodes from entries in strictly ascending order. O(n).
    fn from_sorted(entries: impl IntoIterator<Item = (u64, T)>) -> Self {
        let mut level = grouped(entries, Node::Leaf);
        while level.len() > 1 {
            level = grouped(level, Node::Branch);
        }
        let Some(top) = level.pop() else {
            return Self::new();
        };
        Self { len: top.len, root: Some(top.node) }
    }

    /// Number of entries. O(1).
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The value of `key`. O(log n).
    pub(crate) fn get(&self, key: u64) -> Option<&T> {
        let mut node = self.root.as_deref()?;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = entries.binary_search_by_key(&key, |entry| entry.0).ok()?;
                    return entries.get(at).map(|entry| &entry.1);
                }
                Node::Branch(children) => node = &children.get(position(children, key))?.node,
            }
        }
    }

    /// The largest key. O(log n).
    pub(crate) fn last_key(&self) -> Option<u64> {
        let mut node = self.root.as_deref()?;
        loop {
            match node {
                Node::Leaf(entries) => return entries.last().map(|(key, _)| *key),
                Node::Branch(children) => node = &children.last()?.node,
            }
        }
    }

    /// The entry with the smallest key above `key`, which need not be present itself. O(log n).
    pub(crate) fn next_after(&self, key: u64) -> Option<(u64, &T)> {
        let mut node = self.root.as_deref()?;
        // Holds nothing but larger keys, if the leaf of `key` has none.
        let mut beyond = None;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = entries.partition_point(|entry| entry.0 <= key);
                    if let Some((key, value)) = entries.get(at) {
                        return Some((*key, value));
                    }
                    node = beyond.take()?;
                }
                Node::Branch(children) => {
                    let at = position(children, key);
                    beyond = children.get(at + 1).map(|child| &*child.node).or(beyond);
                    node = &children.get(at)?.node;
                }
            }
        }
    }

    /// The entry with `index` smaller keys before it. O(log n).
    pub(crate) fn nth(&self, mut index: usize) -> Option<(u64, &T)> {
        let mut node = self.root.as_deref()?;
        loop {
            match node {
                Node::Leaf(entries) => {
                    return entries.get(index).map(|(key, value)| (*key, value));
                }
                Node::Branch(children) => {
                    node = &children
                        .iter()
                        .find(|child| {
                            let here = index < child.len;
                            if !here {
                                index -= child.len;
                            }
                            here
                        })?
                        .node;
                }
            }
        }
    }

    /// Number of keys smaller than `key`, if that is present. O(log n).
    pub(crate) fn rank(&self, key: u64) -> Option<usize> {
        let mut node = self.root.as_deref()?;
        let mut before = 0;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = entries.binary_search_by_key(&key, |entry| entry.0).ok()?;
                    return Some(before + at);
                }
                Node::Branch(children) => {
                    let at = position(children, key);
                    before += children.iter().take(at).map(|child| child.len).sum::<usize>();
                    node = &children.get(at)?.node;
                }
            }
        }
    }

    /// The entries by ascending key; O(n) in all, from both ends.
    pub(crate) fn iter(&self) -> Entries<'_, T> {
        Entries { front: Cursor::new(self.root.as_deref()), back: Cursor::new(self.root.as_deref()), left: self.len }
    }
}

impl<T: Clone> Tree<T> {
    /// The value of `key`, to change. O(log n).
    ///
    /// Copies the path to it as far as a clone holds it, even if the key turns out to be absent.
    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        let mut node = self.root.as_mut()?;
        loop {
            match Arc::make_mut(node) {
                Node::Leaf(entries) => {
                    let at = entries.binary_search_by_key(&key, |entry| entry.0).ok()?;
                    return entries.get_mut(at).map(|entry| &mut entry.1);
                }
                Node::Branch(children) => {
                    let at = position(children, key);
                    node = &mut children.get_mut(at)?.node;
                }
            }
        }
    }

    /// The value of the largest key, to change. O(log n); copies as [`get_mut`](Self::get_mut) does.
    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        let mut node = self.root.as_mut()?;
        loop {
            match Arc::make_mut(node) {
                Node::Leaf(entries) => return entries.last_mut().map(|entry| &mut entry.1),
                Node::Branch(children) => node = &mut children.last_mut()?.node,
            }
        }
    }

    /// Sets the value of `key` and returns the one it had. O(log n).
    ///
    /// Without clones it allocates only where a node grows or is split.
    pub(crate) fn insert(&mut self, key: u64, value: T) -> Option<T> {
        let Some(root) = &mut self.root else {
            *self = Self::from_sorted([(key, value)]);
            return None;
        };
        match insert_below(root, key, value, true) {
            Insertion::Replaced(old) => return Some(old),
            Insertion::Added { right: None } => self.len += 1,
            Insertion::Added { right: Some(right) } => {
                self.len += 1;
                let left = Child { low: 0, len: self.len - right.len, node: Arc::clone(root) };
                *root = Arc::new(Node::Branch(vec![left, right]));
            }
        }
        None
    }

    /// Removes the value of `key`. O(log n).
    ///
    /// Nodes are not joined: what is removed in the order it came, or the other way round, empties
    /// one node after the other. A single node stays when it is empty, with its buffer.
    pub(crate) fn remove(&mut self, key: u64) -> Option<T> {
        // Looked up first, so that an absent key copies nothing.
        self.get(key)?;
        let root = self.root.as_mut()?;
        let (value, is_empty) = remove_below(root, key)?;
        self.len -= 1;
        let mut only = None;
        match &**root {
            Node::Branch(_) if is_empty => self.root = None,
            Node::Branch(children) => {
                if let [child] = children.as_slice() {
                    only = Some(Arc::clone(&child.node));
                }
            }
            Node::Leaf(_) => {}
        }
        if only.is_some() {
            self.root = only;
        }
        Some(value)
    }
}

/// Packs items into as few nodes as will hold them.
fn grouped<I, T>(items: impl IntoIterator<Item = I>, node: impl Fn(Vec<I>) -> Node<T>) -> Vec<Child<T>> {
    let mut items = items.into_iter();
    std::iter::from_fn(|| Child::new(node(items.by_ref().take(FAN_OUT).collect()))).collect()
}

impl<T> Clone for Tree<T> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone(), len: self.len }
    }
}

impl<T: PartialEq> PartialEq for Tree<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<T> Default for Tree<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Tree<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// The entries of a [`Tree`] by ascending key.
pub(crate) struct Entries<'a, T> {
    front: Cursor<'a, T>,
    back: Cursor<'a, T>,
    /// Entries neither end has reached; the cursors do not know of each other.
    left: usize,
}

/// A place in a tree, moving in one direction.
struct Cursor<'a, T> {
    /// The tree, until the first step descends into it.
    start: Option<&'a Node<T>>,
    /// What is left of each branch above the leaf.
    branches: Vec<slice::Iter<'a, Child<T>>>,
    leaf: slice::Iter<'a, (u64, T)>,
}

impl<'a, T> Cursor<'a, T> {
    fn new(start: Option<&'a Node<T>>) -> Self {
        Self { start, branches: Vec::new(), leaf: [].iter() }
    }

    /// The next entry, when `entry` and `child` take the next item off a node in the direction of
    /// travel.
    fn step(
        &mut self,
        entry: impl Fn(&mut slice::Iter<'a, (u64, T)>) -> Option<&'a (u64, T)>,
        child: impl Fn(&mut slice::Iter<'a, Child<T>>) -> Option<&'a Child<T>>,
    ) -> Option<(u64, &'a T)> {
        let mut below = self.start.take();
        loop {
            match below {
                Some(Node::Leaf(entries)) => self.leaf = entries.iter(),
                Some(Node::Branch(children)) => self.branches.push(children.iter()),
                None => {}
            }
            if let Some((key, value)) = entry(&mut self.leaf) {
                return Some((*key, value));
            }
            below = child(self.branches.last_mut()?).map(|child| &*child.node);
            if below.is_none() {
                self.branches.pop();
            }
        }
    }
}

impl<'a, T> Iterator for Entries<'a, T> {
    type Item = (u64, &'a T);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        self.front.step(Iterator::next, Iterator::next)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> DoubleEndedIterator for Entries<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        self.back.step(DoubleEndedIterator::next_back, DoubleEndedIterator::next_back)
    }
}

impl<T: fmt::Debug> fmt::Debug for Entries<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.clone()).finish()
    }
}

impl<T> ExactSizeIterator for Entries<'_, T> {}

impl<T> FusedIterator for Entries<'_, T> {}

impl<T> Clone for Entries<'_, T> {
    fn clone(&self) -> Self {
        Self { front: self.front.clone(), back: self.back.clone(), left: self.left }
    }
}

impl<T> Clone for Cursor<'_, T> {
    fn clone(&self) -> Self {
        Self { start: self.start, branches: self.branches.clone(), leaf: self.leaf.clone() }
    }
}

/// A sequence that is shared without copying: what a reader holds never changes.
///
/// Only this crate writes to it. A clone costs one reference count, and a change made while clones
/// are held copies O(log n) nodes of at most 16 items; all else stays shared.
///
/// # Cost
///
/// | | time |
/// |---|---|
/// | `clone`, `len` | O(1) |
/// | `get`, `first`, `last` | O(log n) |
/// | `iter` | O(1) per item amortized, from both ends |
/// | `collect`, deserialize | O(n) |
pub struct List<T> {
    /// By keys that ascend in list order, with gaps to insert into. They mean nothing outside.
    tree: Tree<T>,
}

/// Where [`List::insert_after`] put its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inserted {
    /// The key of the new value.
    pub(crate) key: u64,
    /// Whether every other key has changed.
    pub(crate) relabelled: bool,
}

impl<T> List<T> {
    /// An empty list. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { tree: Tree::new() }
    }

    /// Number of items. O(1).
    #[must_use]
    pub const fn len(&self) -> usize {
        self.tree.len()
    }

    /// Whether there are no items. O(1).
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at `index`, counted from zero. O(log n).
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.nth(index).map(|(_, value)| value)
    }

    /// The first item. O(log n).
    #[must_use]
    pub fn first(&self) -> Option<&T> {
        self.iter().next()
    }

    /// The last item. O(log n).
    #[must_use]
    pub fn last(&self) -> Option<&T> {
        self.iter().next_back()
    }

    /// The items in order. O(1) each, amortized.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { entries: self.tree.iter() }
    }

    /// The value of `key`. O(log n).
    pub(crate) fn get_key(&self, key: u64) -> Option<&T> {
        self.tree.get(key)
    }

    /// The value at `index` and its key. O(log n).
    pub(crate) fn nth(&self, index: usize) -> Option<(u64, &T)> {
        self.tree.nth(index)
    }

    /// Number of values before that of `key`. O(log n).
    pub(crate) fn rank(&self, key: u64) -> Option<usize> {
        self.tree.rank(key)
    }

    /// The value behind `key` and its own key. O(log n).
    pub(crate) fn next_after(&self, key: u64) -> Option<(u64, &T)> {
        self.tree.next_after(key)
    }

    /// The values in order with their keys. O(1) each, amortized.
    pub(crate) fn iter_keys(&self) -> Entries<'_, T> {
        self.tree.iter()
    }
}

impl<T: Clone> List<T> {
    /// The value of `key`, to change. O(log n); copies the path to it if clones are held.
    pub(crate) fn get_key_mut(&mut self, key: u64) -> Option<&mut T> {
        self.tree.get_mut(key)
    }

    /// The last value, to change. O(log n); copies the path to it if clones are held.
    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.tree.last_mut()
    }

    /// The key of the value that is pushed next. O(log n).
    ///
    /// The keys last for 2^32 pushes, which no memory holds.
    pub(crate) fn next_key(&self) -> u64 {
        self.tree.last_key().unwrap_or(0).saturating_add(SPACING)
    }

    /// Appends a value and returns its key. O(log n).
    pub(crate) fn push(&mut self, value: T) -> u64 {
        let key = self.next_key();
        self.push_at(key, value);
        key
    }

    /// Appends a value under a key that [`next_key`](Self::next_key) gave. O(log n).
    pub(crate) fn push_at(&mut self, key: u64, value: T) {
        self.tree.insert(key, value);
    }

    /// Puts a value right behind that of `key`; behind `0` it becomes the first.
    ///
    /// O(log n), or O(n) and a clone of each value when there is no key left between the two
    /// neighbours: then all keys change. Some 16 000 inserts fit between two pushed values when
    /// each follows the one before, but only four behind one and the same key.
    pub(crate) fn insert_after(&mut self, key: u64, value: T) -> Inserted {
        let Some((next, _)) = self.tree.next_after(key) else {
            return Inserted { key: self.push(value), relabelled: false };
        };
        let gap = next - key;
        if gap > 1 {
            let key = key + (gap / GAP_SHARE).max(1);
            self.tree.insert(key, value);
            return Inserted { key, relabelled: false };
        }
        let mut values = Vec::with_capacity(self.len() + 1);
        let mut new_key = SPACING;
        let mut entries = self.tree.iter().peekable();
        while let Some((_, before)) = entries.next_if(|entry| entry.0 <= key) {
            values.push(before.clone());
            new_key = new_key.saturating_add(SPACING);
        }
        values.push(value);
        values.extend(entries.map(|(_, behind)| behind.clone()));
        *self = values.into_iter().collect();
        Inserted { key: new_key, relabelled: true }
    }
}

/// O(1): shares everything.
impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        Self { tree: self.tree.clone() }
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

/// Item by item, O(n).
impl<T: PartialEq> PartialEq for List<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other)
    }
}

impl<T: Eq> Eq for List<T> {}

/// O(n), with full nodes.
impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let keys = (1..).map(|place: u64| place.saturating_mul(SPACING));
        Self { tree: Tree::from_sorted(keys.zip(values)) }
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// As a sequence.
impl<T: Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

/// From a sequence, by way of a `Vec`.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from_iter)
    }
}

/// The items of a [`List`] in order; made by [`List::iter`].
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Iter<'a, T> {
    entries: Entries<'a, T>,
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        self.entries.next().map(|(_, value)| value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }
}

impl<T> DoubleEndedIterator for Iter<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.entries.next_back().map(|(_, value)| value)
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}

impl<T> FusedIterator for Iter<'_, T> {}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone() }
    }
}

impl<T: fmt::Debug> fmt::Debug for Iter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::Bound;

    use super::*;

    /// A 64-bit linear congruential generator, top bits only.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 20) % end
        }

        fn index(&mut self, end: usize) -> usize {
            usize::try_from(self.below(end as u64)).unwrap()
        }
    }

    /// Height and number of leaves below a node, which is checked on the way.
    fn shape<T>(node: &Node<T>) -> (usize, usize) {
        match node {
            Node::Leaf(entries) => {
                assert!((1..=FAN_OUT).contains(&entries.len()));
                assert!(entries.capacity() <= FAN_OUT);
                assert!(entries.is_sorted_by(|a, b| a.0 < b.0));
                (0, 1)
            }
            Node::Branch(children) => {
                assert!((1..=FAN_OUT).contains(&children.len()));
                assert!(children.capacity() <= FAN_OUT);
                let below: Vec<_> = children.iter().map(|child| shape(&child.node)).collect();
                assert!(below.iter().all(|(height, _)| *height == below[0].0));
                for child in children {
                    assert_eq!(child.len, Cursor::count(&child.node));
                }
                (below[0].0 + 1, below.iter().map(|(_, leaves)| leaves).sum::<usize>())
            }
        }
    }

    impl<T> Cursor<'_, T> {
        fn count(node: &Node<T>) -> usize {
            let mut cursor = Cursor::new(Some(node));
            std::iter::from_fn(|| cursor.step(Iterator::next, Iterator::next)).count()
        }
    }

    fn leaves<T>(tree: &Tree<T>) -> usize {
        // Only a root may be empty.
        if tree.len() == 0 {
            return 0;
        }
        tree.root.as_ref().map_or(0, |root| shape(root).1)
    }

    /// Checks every operation on a tree against a map with the same entries.
    fn check(tree: &Tree<u64>, model: &BTreeMap<u64, u64>, random: &mut Random) {
        leaves(tree);
        assert_eq!(tree.len(), model.len());
        assert!(tree.iter().eq(model.iter().map(|(key, value)| (*key, value))));
        assert!(tree.iter().rev().eq(model.iter().rev().map(|(key, value)| (*key, value))));
        assert_eq!(tree.last_key(), model.keys().next_back().copied());
        for (index, (key, value)) in model.iter().enumerate() {
            assert_eq!(tree.nth(index), Some((*key, value)));
            assert_eq!(tree.rank(*key), Some(index));
            for key in [key.saturating_sub(1), *key, key.saturating_add(1)] {
                assert_eq!(tree.get(key), model.get(&key));
                assert_eq!(tree.rank(key).is_some(), model.contains_key(&key));
                let behind = (Bound::Excluded(key), Bound::Unbounded);
                let next = model.range(behind).next();
                assert_eq!(tree.next_after(key), next.map(|(key, value)| (*key, value)));
            }
        }
        for missing in [0, u64::MAX] {
            assert_eq!(tree.get(missing), model.get(&missing));
        }
        assert_eq!(tree.nth(model.len()), None);
        assert_eq!(tree.nth(usize::MAX), None);

        // From both ends at once.
        let mut ours = tree.iter();
        let mut theirs = model.iter().map(|(key, value)| (*key, value));
        loop {
            assert_eq!(ours.len(), theirs.len());
            let (a, b) = if random.below(2) == 0 {
                (ours.next(), theirs.next())
            } else {
                (ours.next_back(), theirs.next_back())
            };
            assert_eq!(a, b);
            if a.is_none() {
                break;
            }
        }
        assert_eq!((ours.next(), ours.next_back()), (None, None));
    }

    #[test]
    fn a_tree_does_what_a_map_does_and_held_clones_never_change() {
        for seed in 0..20 {
            let mut random = Random(seed);
            let (mut tree, mut model) = (Tree::new(), BTreeMap::new());
            let mut held: Vec<(Tree<u64>, BTreeMap<u64, u64>)> = Vec::new();
            let kind = seed % 5;
            let rate = [2, 40, 1000][random.index(3)];
            for step in 0..900 {
                let last = tree.last_key().unwrap_or(0);
                let key = match kind {
                    0 => random.below(2000),
                    1 => random.below(u64::MAX),
                    2 => last + 1 + random.below(3),
                    3 => (1 << 40) - step,
                    // A run in the middle of what is appended.
                    _ if step % 2 == 0 => (1 << 40) + step,
                    _ => last.max(1 << 50) + 1,
                };
                if random.below(4) == 0 {
                    // Of a key that is there, mostly.
                    let key = model.range(key..).next().map_or(key, |(key, _)| *key);
                    let (ours, theirs) = (tree.get_mut(key), model.get_mut(&key));
                    assert_eq!(ours, theirs);
                    if let (Some(ours), Some(theirs)) = (ours, theirs) {
                        *ours += 1;
                        *theirs += 1;
                    }
                }
                assert_eq!(tree.insert(key, step), model.insert(key, step));
                // Seeds that remove nothing grow large; the others shrink to nothing now and then.
                if seed % 2 == 1 && random.below(3) > 0 {
                    let count = if random.below(40) == 0 { model.len() } else { 1 };
                    for _ in 0..count {
                        let key = match random.below(3) {
                            0 => model.keys().next().copied(),
                            1 => model.keys().next_back().copied(),
                            _ => Some(random.below(2000)),
                        };
                        let key = key.unwrap_or_default();
                        assert_eq!(tree.remove(key), model.remove(&key));
                    }
                }
                if random.below(rate) == 0 {
                    held.push((tree.clone(), model.clone()));
                }
                if random.below(30) == 0 && !held.is_empty() {
                    let at = random.index(held.len());
                    std::mem::swap(&mut held[at].0, &mut tree);
                    std::mem::swap(&mut held[at].1, &mut model);
                }
                if random.below(60) == 0 {
                    check(&tree, &model, &mut random);
                    held.truncate(4);
                }
            }
            check(&tree, &model, &mut random);
            for (tree, model) in &held {
                check(tree, model, &mut random);
            }
        }
    }

    #[test]
    fn an_empty_tree_has_nothing() {
        let tree: Tree<u64> = Tree::default();
        check(&tree, &BTreeMap::new(), &mut Random(0));
        assert_eq!(tree.next_after(0), None);
        assert_eq!(tree.rank(0), None);
    }

    #[test]
    fn built_at_once_a_tree_is_full_and_right() {
        for len in [0, 1, 15, 16, 17, 255, 256, 257, 4096, 4097] {
            let entries = (0..len).map(|at| (at * 3 + 1, at));
            let mut tree = Tree::from_sorted(entries.clone());
            let mut model: BTreeMap<_, _> = entries.collect();
            assert_eq!(leaves(&tree), model.len().div_ceil(FAN_OUT));
            for key in [0, len, len * 3 + 7] {
                assert_eq!(tree.insert(key, 0), model.insert(key, 0));
            }
            check(&tree, &model, &mut Random(len));
        }
    }

    #[test]
    fn appending_leaves_full_nodes_behind() {
        let mut tree = Tree::new();
        for key in 1..=5000 {
            tree.insert(key, ());
        }
        assert_eq!(leaves(&tree), 5000_usize.div_ceil(FAN_OUT));
        let Some(Node::Branch(children)) = tree.root.as_deref() else {
            panic!("5000 entries are more than a leaf");
        };
        assert_eq!((children.len(), children[0].len), (2, 4096));
    }

    #[test]
    fn other_orders_leave_half_full_nodes_at_worst() {
        // Downwards; and each in front of the last one, at the end of a full leaf in the middle
        // of its branch, and of one that is the last of a branch but not of the tree.
        let mut trees = [Tree::new(), Tree::new(), Tree::new()];
        let [down, within, between] = &mut trees;
        for key in 0..512 {
            within.insert(key << 32, ());
            between.insert(key << 32, ());
        }
        for key in 0..5000 {
            down.insert(10_000 - key, ());
            within.insert((31 << 32) + 10_000 - key, ());
            between.insert((255 << 32) + 10_000 - key, ());
        }
        for tree in trees {
            assert!(leaves(&tree) <= tree.len().div_ceil(FAN_OUT / 2) + 2);
        }
    }

    #[test]
    fn changes_are_in_place_unless_a_clone_is_held() {
        let mut list: List<String> = (0..1000).map(|at| at.to_string()).collect();
        let keys: Vec<u64> = list.iter_keys().map(|(key, _)| key).collect();
        let place = |list: &List<String>, at| std::ptr::from_ref(list.get(at).unwrap()).addr();
        let (near, far) = (place(&list, 3), place(&list, 900));

        list.get_key_mut(keys[3]).unwrap().push('!');
        assert_eq!(place(&list, 3), near);

        let held = list.clone();
        list.get_key_mut(keys[3]).unwrap().push('!');
        assert_ne!(place(&list, 3), near);
        assert_eq!(place(&list, 900), far, "another leaf stays shared");
        assert_eq!((&**held.get(3).unwrap(), &**list.get(3).unwrap()), ("3!", "3!!"));
        assert_eq!(list.get_key_mut(7), None);
    }

    /// Checks a list and its keys against a vector of both.
    fn check_list(list: &List<u64>, model: &[(u64, u64)]) {
        assert_eq!(list.len(), model.len());
        assert_eq!(list.is_empty(), model.is_empty());
        assert!(list.iter().eq(model.iter().map(|(_, value)| value)));
        assert!(list.iter().rev().eq(model.iter().rev().map(|(_, value)| value)));
        assert!(list.iter_keys().eq(model.iter().map(|(key, value)| (*key, value))));
        assert_eq!(list.first(), model.first().map(|(_, value)| value));
        assert_eq!(list.last(), model.last().map(|(_, value)| value));
        assert_eq!(list.get(model.len()), None);
        for (index, (key, value)) in model.iter().enumerate() {
            assert_eq!(list.get(index), Some(value));
            assert_eq!(list.nth(index), Some((*key, value)));
            assert_eq!(list.get_key(*key), Some(value));
            assert_eq!(list.rank(*key), Some(index));
            let next = model.get(index + 1).map(|(key, value)| (*key, value));
            assert_eq!(list.next_after(*key), next);
        }
    }

    #[test]
    fn a_list_does_what_a_vector_does_and_held_clones_never_change() {
        let mut relabelled = 0;
        for seed in 0..30 {
            let mut random = Random(seed);
            let mut list = List::new();
            let mut model: Vec<(u64, u64)> = Vec::new();
            let mut held = Vec::new();
            let mut run = None;
            for value in 0..400 {
                match random.below(4) {
                    0 => {
                        let key = list.push(value);
                        assert!(model.iter().all(|entry| entry.0 < key));
                        model.push((key, value));
                    }
                    // Behind the previous one, or anywhere, the front included.
                    kind => {
                        let at = match run {
                            Some(at) if kind == 1 => at,
                            _ if seed % 2 == 0 => model.len() / 2,
                            _ => random.index(model.len() + 1),
                        };
                        let key = at.checked_sub(1).map_or(0, |before| model[before].0);
                        let inserted = list.insert_after(key, value);
                        model.insert(at, (inserted.key, value));
                        if inserted.relabelled {
                            relabelled += 1;
                            let keys = list.iter_keys().map(|(key, _)| key);
                            model.iter_mut().zip(keys).for_each(|(entry, key)| entry.0 = key);
                            assert_eq!(model[at].0, inserted.key);
                        }
                        run = Some(at + 1);
                    }
                }
                if let Some(entry) = model.get_mut(random.index(500)) {
                    *list.get_key_mut(entry.0).unwrap() += 1000;
                    entry.1 += 1000;
                }
                if random.below(20) == 0 {
                    held.push((list.clone(), model.clone()));
                    check_list(&list, &model);
                }
            }
            check_list(&list, &model);
            for (list, model) in &held {
                check_list(list, model);
            }
        }
        assert!(relabelled > 30, "{relabelled}");
    }

    #[test]
    fn an_insert_without_a_successor_is_a_push() {
        let mut list = List::new();
        let pushed = |key| Inserted { key, relabelled: false };
        assert_eq!(list.insert_after(0, 'a'), pushed(1 << 32));
        assert_eq!(list.push('b'), 2 << 32);
        assert_eq!(list.insert_after(2 << 32, 'c'), pushed(3 << 32));
        assert!(list.iter().eq(&['a', 'b', 'c']));
    }

    #[test]
    fn a_run_of_inserts_seldom_relabels() {
        let mut list: List<u64> = (0..3).collect();
        let mut key = list.iter_keys().next().unwrap().0;
        let mut inserts = 0;
        loop {
            let gap = list.next_after(key).unwrap().0 - key;
            let inserted = list.insert_after(key, 100 + inserts);
            inserts += 1;
            key = inserted.key;
            assert_eq!(inserted.relabelled, gap == 1);
            if inserted.relabelled {
                break;
            }
        }
        assert!(inserts > 16_000, "{inserts}");
        let says = std::iter::once(0).chain((0..inserts).map(|at| 100 + at)).chain([1, 2]);
        assert!(list.iter().copied().eq(says));
        let keys = list.iter_keys().map(|(key, _)| key);
        assert!(keys.eq((1..=inserts + 3).map(|place| place << 32)));
        assert_eq!(list.rank(key), Some(usize::try_from(inserts).unwrap()));
        assert_eq!(list.push(9), (inserts + 4) << 32);
    }

    #[test]
    fn traits_do_not_see_keys() {
        let collected: List<u8> = (0..100).collect();
        let mut inserted = List::new();
        for value in (0..100).rev() {
            inserted.insert_after(0, value);
        }
        let keys = |list: &List<u8>| list.iter_keys().map(|(key, _)| key).collect::<Vec<_>>();
        assert_ne!(keys(&collected), keys(&inserted));
        assert_eq!(collected, inserted);
        assert_eq!(format!("{inserted:?}"), format!("{:?}", (0..100).collect::<Vec<_>>()));
        let json = serde_json::to_string(&inserted).unwrap();
        assert_eq!(json, serde_json::to_string(&(0..100).collect::<Vec<_>>()).unwrap());
        assert_eq!(serde_json::from_str::<List<u8>>(&json).unwrap(), inserted);
        assert!(serde_json::from_str::<List<u8>>("[1, 999]").is_err());

        *inserted.get_key_mut(keys(&inserted)[50]).unwrap() = 0;
        assert_ne!(collected, inserted);
        assert_ne!(collected, (0..99).collect());
        assert_ne!(collected, List::default());
    }

    #[test]
    fn iterators_are_clones_of_their_place() {
        let list: List<usize> = (0..300).collect();
        let mut iter = list.iter();
        assert_eq!((iter.nth(99), iter.nth_back(99)), (Some(&99), Some(&200)));
        let copy = iter.clone();
        assert_eq!(format!("{iter:?}"), format!("{:?}", (100..200).collect::<Vec<_>>()));
        assert!(iter.copied().eq(100..200));
        assert_eq!(copy.len(), 100);
        let mut sum = 0;
        for value in &list {
            sum += value;
        }
        assert_eq!(sum, 300 * 299 / 2);
    }

    #[test]
    fn a_list_crosses_threads() {
        fn crosses<T: Send + Sync + Unpin>() {}
        crosses::<List<String>>();
        crosses::<Iter<'_, String>>();

        let mut list = List::new();
        std::thread::scope(|scope| {
            for at in 0..200 {
                list.push(at);
                let held = list.clone();
                scope.spawn(move || assert!(held.iter().copied().eq(0..=at)));
            }
        });
        assert_eq!(list.len(), 200);
    }
}
