//! A sorted map whose clones share memory, so that a writer can edit it while readers keep their clones.

use std::fmt;
use std::iter::FusedIterator;
use std::slice;
use std::sync::Arc;

/// Most entries in a leaf, and most children of a branch.
///
/// A change under a held clone copies one node per level: a wider node makes the tree flatter and
/// each copy dearer.
const FAN_OUT: usize = 16;

/// A sorted map from `u64` to `T` that is cloned in O(1): a counted B+tree of shared nodes. The leaf
/// with the largest keys is kept beside the tree, so that a change at the end needs no walk.
///
/// A change copies the nodes on its path that a clone holds as well (at most [`FAN_OUT`] values
/// and [`FAN_OUT`] references per level), and is in place where none does. Lookups, by key or
/// index, are O(log n). Recursion is as deep as the tree, at most 16 levels.
///
/// Keys that arrive in ascending order fill every node but the last of each level.
pub(crate) struct Tree<T> {
    root: Option<Node<T>>,
    /// All its keys are larger than those below the root. May be empty, and then keeps its buffer.
    tail: Option<Arc<Leaf<T>>>,
    len: usize,
}

/// Entries by ascending key.
type Leaf<T> = Vec<(u64, T)>;

/// Neither kind is ever empty; all leaves are at the same depth.
enum Node<T> {
    Leaf(Arc<Leaf<T>>),
    Branch(Arc<Vec<Child<T>>>),
}

impl<T> Clone for Node<T> {
    fn clone(&self) -> Self {
        match self {
            Node::Leaf(entries) => Node::Leaf(Arc::clone(entries)),
            Node::Branch(children) => Node::Branch(Arc::clone(children)),
        }
    }
}

struct Child<T> {
    /// Keys from here on are below this child, not the one before it. A first child also takes smaller
    /// keys.
    low: u64,
    /// Entries below.
    len: usize,
    node: Node<T>,
}

impl<T> Clone for Child<T> {
    fn clone(&self) -> Self {
        Self { low: self.low, len: self.len, node: self.node.clone() }
    }
}

impl<T> Child<T> {
    /// The child for entries; `None` where there are none.
    fn leaf(entries: Arc<Leaf<T>>) -> Option<Self> {
        Some(Self { low: entries.first()?.0, len: entries.len(), node: Node::Leaf(entries) })
    }

    /// The child for children; `None` where there are none.
    fn branch(children: Vec<Self>) -> Option<Self> {
        let len = children.iter().map(|child| child.len).sum();
        Some(Self { low: children.first()?.low, len, node: Node::Branch(Arc::new(children)) })
    }
}

/// The result of an insert below a node.
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

fn search<T>(entries: &[(u64, T)], key: u64) -> Result<usize, usize> {
    entries.binary_search_by_key(&key, |entry| entry.0)
}

/// Makes room for one more, but not beyond the fan-out as `Vec` would.
#[inline]
fn reserve_one<I>(items: &mut Vec<I>) {
    let len = items.len();
    if len == items.capacity() {
        items.reserve_exact(len.clamp(4, FAN_OUT).min(FAN_OUT.saturating_sub(len)).max(1));
    }
}

/// Inserts into a node, or splits it if it is full and returns the upper part.
///
/// At the end of the `last` node of a level nothing is moved: the new item starts the next node,
/// and the old one stays full.
fn insert_or_split<I>(items: &mut Vec<I>, at: usize, item: I, last: bool) -> Option<Vec<I>> {
    let len = items.len();
    if len < FAN_OUT {
        reserve_one(items);
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

fn insert_below<T: Clone>(node: &mut Node<T>, key: u64, value: T, last: bool) -> Insertion<T> {
    let right = match node {
        Node::Leaf(entries) => {
            let entries = Arc::make_mut(entries);
            match search(entries, key) {
                Ok(at) => match entries.get_mut(at) {
                    Some((_, old)) => return Insertion::Replaced(std::mem::replace(old, value)),
                    None => None,
                },
                Err(at) => {
                    let right = insert_or_split(entries, at, (key, value), last);
                    right.and_then(|right| Child::leaf(Arc::new(right)))
                }
            }
        }
        Node::Branch(children) => {
            let children = Arc::make_mut(children);
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
                insert_or_split(children, at + 1, right, last).and_then(Child::branch)
            } else {
                None
            }
        }
    };
    Insertion::Added { right }
}

/// Appends a leaf after all others. A returned child holds just that leaf and belongs beside the node.
fn append_below<T>(node: &mut Node<T>, leaf: Child<T>) -> Option<Child<T>> {
    let Node::Branch(children) = node else { return Some(leaf) };
    let children = Arc::make_mut(children);
    let at = children.len();
    let child = children.last_mut()?;
    let len = leaf.len;
    match append_below(&mut child.node, leaf) {
        Some(right) => insert_or_split(children, at, right, true).and_then(Child::branch),
        None => {
            child.len += len;
            None
        }
    }
}

/// Removes from below a node, and says whether the node is empty now.
fn remove_below<T: Clone>(node: &mut Node<T>, key: u64) -> Option<(T, bool)> {
    match node {
        Node::Leaf(entries) => {
            let entries = Arc::make_mut(entries);
            let at = search(entries, key).ok()?;
            let (_, value) = entries.remove(at);
            Some((value, entries.is_empty()))
        }
        Node::Branch(children) => {
            let children = Arc::make_mut(children);
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
        Self { root: None, tail: None, len: 0 }
    }

    /// Builds a tree of full nodes from entries in strictly ascending order. O(n).
    pub(crate) fn from_sorted(entries: impl IntoIterator<Item = (u64, T)>) -> Self {
        let mut level = grouped(entries, |entries| Child::leaf(Arc::new(entries)));
        while level.len() > 1 {
            level = grouped(level, Child::branch);
        }
        let Some(top) = level.pop() else {
            return Self::new();
        };
        Self { root: Some(top.node), tail: None, len: top.len }
    }

    /// Number of entries. O(1).
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    fn tail(&self) -> &[(u64, T)] {
        self.tail.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Whether a key can only be in the tail.
    #[inline]
    fn is_in_tail(&self, key: u64) -> bool {
        self.tail().first().is_some_and(|(first, _)| *first <= key)
    }

    /// The value of `key`. O(log n); at once for the last one.
    pub(crate) fn get(&self, key: u64) -> Option<&T> {
        if self.is_in_tail(key) {
            let tail = self.tail();
            return match tail.last() {
                Some((last, value)) if *last == key => Some(value),
                _ => tail.get(search(tail, key).ok()?).map(|entry| &entry.1),
            };
        }
        let mut node = self.root.as_ref()?;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let at = search(entries, key).ok()?;
                    return entries.get(at).map(|entry| &entry.1);
                }
                Node::Branch(children) => node = &children.get(position(children, key))?.node,
            }
        }
    }

    /// The largest key. O(1) for a tree that grew at its end, otherwise O(log n).
    pub(crate) fn last_key(&self) -> Option<u64> {
        self.tail().last().map(|(key, _)| *key).or_else(|| self.last_below_root())
    }

    fn last_below_root(&self) -> Option<u64> {
        let mut node = self.root.as_ref()?;
        loop {
            match node {
                Node::Leaf(entries) => return entries.last().map(|(key, _)| *key),
                Node::Branch(children) => node = &children.last()?.node,
            }
        }
    }

    /// The entry with the smallest key above `key`, which need not be present itself. O(log n).
    pub(crate) fn next_after(&self, key: u64) -> Option<(u64, &T)> {
        let tail = self.tail();
        if !self.is_in_tail(key) {
            if let Some(next) = self.next_below_root(key) {
                return Some(next);
            }
        }
        let at = tail.partition_point(|entry| entry.0 <= key);
        tail.get(at).map(|(key, value)| (*key, value))
    }

    fn next_below_root(&self, key: u64) -> Option<(u64, &T)> {
        let mut node = self.root.as_ref()?;
        // The node after, for the case that the leaf of `key` has no larger key.
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
                    beyond = children.get(at + 1).map(|child| &child.node).or(beyond);
                    node = &children.get(at)?.node;
                }
            }
        }
    }

    /// Entries below the root.
    fn below_root(&self) -> usize {
        self.len - self.tail().len()
    }

    /// The entry with `index` smaller keys before it. O(log n).
    pub(crate) fn nth(&self, mut index: usize) -> Option<(u64, &T)> {
        if let Some(index) = index.checked_sub(self.below_root()) {
            return self.tail().get(index).map(|(key, value)| (*key, value));
        }
        let mut node = self.root.as_ref()?;
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
        if self.is_in_tail(key) {
            return search(self.tail(), key).ok().map(|at| self.below_root() + at);
        }
        let mut node = self.root.as_ref()?;
        let mut before = 0;
        loop {
            match node {
                Node::Leaf(entries) => return search(entries, key).ok().map(|at| before + at),
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
        Entries {
            front: Cursor::new(self.root.as_ref()),
            back: Cursor::new(self.root.as_ref()),
            tail: self.tail().iter(),
            left: self.len,
        }
    }
}

impl<T: Clone> Tree<T> {
    /// The value of `key`, to change. O(log n); at once near the end.
    ///
    /// Copies the path to it as far as a clone holds it, even if the key turns out to be absent.
    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        if self.is_in_tail(key) {
            let tail = Arc::make_mut(self.tail.as_mut()?);
            let at = match tail.last() {
                Some((last, _)) if *last == key => tail.len() - 1,
                _ => search(tail, key).ok()?,
            };
            return tail.get_mut(at).map(|entry| &mut entry.1);
        }
        let mut node = self.root.as_mut()?;
        loop {
            match node {
                Node::Leaf(entries) => {
                    let entries = Arc::make_mut(entries);
                    let at = search(entries, key).ok()?;
                    return entries.get_mut(at).map(|entry| &mut entry.1);
                }
                Node::Branch(children) => {
                    let children = Arc::make_mut(children);
                    let at = position(children, key);
                    node = &mut children.get_mut(at)?.node;
                }
            }
        }
    }

    /// The value of the largest key, to change. As [`last_key`](Self::last_key); copies as
    /// [`get_mut`](Self::get_mut) does.
    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        if self.tail().is_empty() {
            return self.get_mut(self.last_below_root()?);
        }
        Arc::make_mut(self.tail.as_mut()?).last_mut().map(|entry| &mut entry.1)
    }

    /// Sets the value of `key` and returns the one it had. O(log n); O(1) amortized at the end.
    ///
    /// Without clones it allocates only where a node grows or is split.
    pub(crate) fn insert(&mut self, key: u64, value: T) -> Option<T> {
        let belongs_below_root = self.root.is_some()
            && match self.tail().first() {
                Some((first, _)) => key < *first,
                None => self.last_below_root().is_some_and(|last| key <= last),
            };
        if belongs_below_root {
            return self.insert_below_root(key, value);
        }
        let tail = Arc::make_mut(self.tail.get_or_insert_default());
        let at = match tail.last() {
            Some((last, _)) if key <= *last => match search(tail, key) {
                Ok(at) => return tail.get_mut(at).map(|(_, old)| std::mem::replace(old, value)),
                Err(at) => at,
            },
            _ => tail.len(),
        };
        if tail.len() < FAN_OUT {
            reserve_one(tail);
            tail.insert(at, (key, value));
            self.len += 1;
            return None;
        }
        let at_end = at == tail.len();
        self.grow_root();
        if at_end {
            self.tail = Some(Arc::new(vec![(key, value)]));
            self.len += 1;
            return None;
        }
        self.insert_below_root(key, value)
    }

    /// Moves the tail below the root.
    fn grow_root(&mut self) {
        let before = self.below_root();
        let Some(leaf) = self.tail.take().and_then(Child::leaf) else { return };
        let Some(root) = &mut self.root else {
            self.root = Some(leaf.node);
            return;
        };
        if let Some(right) = append_below(root, leaf) {
            self.split_root(before, right);
        }
    }

    /// Puts a branch above the root, which holds `before` entries, and the child split off it.
    fn split_root(&mut self, before: usize, right: Child<T>) {
        if let Some(root) = self.root.take() {
            let left = Child { low: 0, len: before, node: root };
            self.root = Some(Node::Branch(Arc::new(vec![left, right])));
        }
    }

    fn insert_below_root(&mut self, key: u64, value: T) -> Option<T> {
        let before = self.below_root();
        match insert_below(self.root.as_mut()?, key, value, true) {
            Insertion::Replaced(old) => return Some(old),
            Insertion::Added { right: None } => {}
            Insertion::Added { right: Some(right) } => self.split_root(before + 1 - right.len, right),
        }
        self.len += 1;
        None
    }

    /// Removes the value of `key`. O(log n).
    ///
    /// Nodes are not joined: removal in ascending or descending order empties one node after the
    /// other. An empty tail stays, with its buffer.
    pub(crate) fn remove(&mut self, key: u64) -> Option<T> {
        // Looked up first, so that an absent key copies nothing.
        if self.is_in_tail(key) {
            let at = search(self.tail(), key).ok()?;
            let (_, value) = Arc::make_mut(self.tail.as_mut()?).remove(at);
            self.len -= 1;
            return Some(value);
        }
        self.get(key)?;
        let root = self.root.as_mut()?;
        let (value, is_empty) = remove_below(root, key)?;
        self.len -= 1;
        let mut only = None;
        match root {
            _ if is_empty => self.root = None,
            Node::Branch(children) => {
                if let [child] = children.as_slice() {
                    only = Some(child.node.clone());
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
fn grouped<I, T>(items: impl IntoIterator<Item = I>, child: impl Fn(Vec<I>) -> Option<Child<T>>) -> Vec<Child<T>> {
    let mut items = items.into_iter();
    std::iter::from_fn(|| child(items.by_ref().take(FAN_OUT).collect())).collect()
}

impl<T> Clone for Tree<T> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone(), tail: self.tail.clone(), len: self.len }
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
    tail: slice::Iter<'a, (u64, T)>,
    /// Entries that neither end has reached; the cursors are independent.
    left: usize,
}

/// A place below the root, moving in one direction.
struct Cursor<'a, T> {
    /// The root, until the first step descends into it.
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
    ) -> Option<&'a (u64, T)> {
        let mut below = self.start.take();
        loop {
            match below {
                Some(Node::Leaf(entries)) => self.leaf = entries.iter(),
                Some(Node::Branch(children)) => self.branches.push(children.iter()),
                None => {}
            }
            if let Some(entry) = entry(&mut self.leaf) {
                return Some(entry);
            }
            below = child(self.branches.last_mut()?).map(|child| &child.node);
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
        let entry = self.front.step(Iterator::next, Iterator::next).or_else(|| self.tail.next());
        entry.map(|(key, value)| (*key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> DoubleEndedIterator for Entries<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let back = &mut self.back;
        let entry =
            self.tail.next_back().or_else(|| back.step(DoubleEndedIterator::next_back, DoubleEndedIterator::next_back));
        entry.map(|(key, value)| (*key, value))
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
        Self { front: self.front.clone(), back: self.back.clone(), tail: self.tail.clone(), left: self.left }
    }
}

impl<T> Clone for Cursor<'_, T> {
    fn clone(&self) -> Self {
        Self { start: self.start, branches: self.branches.clone(), leaf: self.leaf.clone() }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::ops::Bound;

    use super::*;

    /// A 64-bit linear congruential generator, top bits only.
    pub(crate) struct Random(pub(crate) u64);

    impl Random {
        pub(crate) fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 20) % end
        }

        pub(crate) fn index(&mut self, end: usize) -> usize {
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
                for child in children.iter() {
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
        let tail = tree.tail();
        assert!(tail.is_sorted_by(|a, b| a.0 < b.0));
        assert!(tail.len() <= FAN_OUT);
        assert!(tree.tail.as_ref().is_none_or(|tail| tail.capacity() <= FAN_OUT));
        let below = tree.root.as_ref().map_or(0, |root| shape(root).1);
        assert_eq!(tree.root.as_ref().map_or(0, Cursor::count), tree.below_root());
        below + usize::from(!tail.is_empty())
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
        let Some(Node::Branch(children)) = &tree.root else {
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
}
