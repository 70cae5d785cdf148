//! A sequence that is edited at any index in logarithmic time and whose clones share memory.

use std::cmp::Ordering;
use std::slice;
use std::sync::Arc;

/// Most items of a leaf, and most children of a branch.
const FAN_OUT: usize = 16;

/// A node with fewer than this is joined with one beside it, if both fit into one.
const FEW: usize = FAN_OUT / 4;

/// The size of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Its bytes, with its content.
    pub(crate) bytes: usize,
    /// How deep arrays and objects are nested in it: 0 for one that is neither.
    pub(crate) depth: usize,
}

/// A value that knows its size without a walk through it.
pub(crate) trait Sizes: Clone {
    fn size(&self) -> Size;
}

/// A sequence that is cloned in O(1) and knows its size: a counted B+tree of shared nodes.
///
/// A read or change at one index is O(log n). A change copies the nodes on its path that a clone
/// holds too. Recursion is as deep as the tree.
pub(crate) struct Seq<T>(Arc<Node<T>>);

#[derive(Clone)]
struct Node<T> {
    len: usize,
    size: Size,
    items: Items<T>,
}

/// All leaves are at the same depth. Only the root may be empty, or a branch of one child.
#[derive(Clone)]
enum Items<T> {
    Leaf(Vec<T>),
    Branch(Vec<Arc<Node<T>>>),
}

impl<T> Node<T> {
    const EMPTY: Self = Self { len: 0, size: Size { bytes: 0, depth: 0 }, items: Items::Leaf(Vec::new()) };

    fn first(&self) -> Option<&T> {
        let mut node = self;
        loop {
            match &node.items {
                Items::Leaf(items) => return items.first(),
                Items::Branch(children) => node = children.first()?,
            }
        }
    }

    /// How many items or children it has of its own.
    fn width(&self) -> usize {
        match &self.items {
            Items::Leaf(items) => items.len(),
            Items::Branch(children) => children.len(),
        }
    }
}

/// The child that has the item at `index`, and the index of the item within it.
fn child_at<T>(children: &[Arc<Node<T>>], mut index: usize) -> Option<(usize, usize)> {
    for (at, child) in children.iter().enumerate() {
        match index.checked_sub(child.len) {
            Some(left) => index = left,
            None => return Some((at, index)),
        }
    }
    None
}

/// Puts an item into a node, or splits the node if it is full and returns the upper part. The last
/// node of a level stays full when something comes after it.
fn insert_or_split<I>(items: &mut Vec<I>, at: usize, item: I, last: bool) -> Option<Vec<I>> {
    if items.len() < FAN_OUT {
        items.insert(at, item);
        return None;
    }
    if last && at == items.len() {
        return Some(vec![item]);
    }
    let mut right = items.split_off(FAN_OUT / 2);
    match at.checked_sub(items.len()) {
        Some(at) if at > 0 => right.insert(at, item),
        _ => items.insert(at, item),
    }
    Some(right)
}

impl<T: Sizes> Node<T> {
    fn new(items: Items<T>) -> Self {
        let mut node = Self { items, ..Self::EMPTY };
        node.count();
        node
    }

    fn sizes(&self) -> impl Iterator<Item = (usize, Size)> {
        let (items, children) = match &self.items {
            Items::Leaf(items) => (items.as_slice(), [].as_slice()),
            Items::Branch(children) => ([].as_slice(), children.as_slice()),
        };
        items.iter().map(|item| (1, item.size())).chain(children.iter().map(|child| (child.len, child.size)))
    }

    /// Counts its content again.
    fn count(&mut self) {
        let (mut len, mut size) = (0_usize, Size::default());
        for (below, part) in self.sizes() {
            len = len.saturating_add(below);
            size.bytes = size.bytes.saturating_add(part.bytes);
            size.depth = size.depth.max(part.depth);
        }
        (self.len, self.size) = (len, size);
    }

    /// Notes that an item below has changed from the first size to the second.
    fn resize(&mut self, before: Size, after: Size) {
        self.size.bytes = self.size.bytes.saturating_sub(before.bytes).saturating_add(after.bytes);
        if after.depth >= self.size.depth {
            self.size.depth = after.depth;
        } else if before.depth >= self.size.depth {
            self.size.depth = self.sizes().map(|(_, size)| size.depth).max().unwrap_or(0);
        }
    }

    /// Inserts below; a node that is returned belongs to the right of this one.
    fn insert(&mut self, index: usize, value: T, last: bool) -> Option<Self> {
        let size = value.size();
        let right = match &mut self.items {
            Items::Leaf(items) => insert_or_split(items, index, value, last).map(Items::Leaf),
            Items::Branch(children) => {
                // Between two children it goes to the end of the first.
                let at = child_at(children, index.saturating_sub(1)).map_or(0, |(at, _)| at);
                let before: usize = children.iter().take(at).map(|child| child.len).sum();
                let last = last && at + 1 == children.len();
                let child = Arc::make_mut(children.get_mut(at)?);
                child
                    .insert(index.saturating_sub(before), value, last)
                    .and_then(|right| insert_or_split(children, at + 1, Arc::new(right), last))
                    .map(Items::Branch)
            }
        };
        match right {
            None => {
                self.len += 1;
                self.resize(Size::default(), size);
                None
            }
            Some(right) => {
                self.count();
                Some(Self::new(right))
            }
        }
    }

    fn remove(&mut self, index: usize) -> Option<T> {
        let removed = match &mut self.items {
            Items::Leaf(items) if index < items.len() => items.remove(index),
            Items::Leaf(_) => return None,
            Items::Branch(children) => {
                let (at, index) = child_at(children, index)?;
                let child = Arc::make_mut(children.get_mut(at)?);
                let removed = child.remove(index)?;
                if child.len == 0 {
                    children.remove(at);
                } else if child.width() < FEW {
                    join(children, at);
                }
                removed
            }
        };
        self.len -= 1;
        self.resize(removed.size(), Size::default());
        Some(removed)
    }

    fn update<R>(&mut self, index: usize, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let (before, after, result) = match &mut self.items {
            Items::Leaf(items) => {
                let item = items.get_mut(index)?;
                let before = item.size();
                let result = change(item);
                (before, item.size(), result)
            }
            Items::Branch(children) => {
                let (at, index) = child_at(children, index)?;
                let child = Arc::make_mut(children.get_mut(at)?);
                let before = child.size;
                let result = child.update(index, change)?;
                (before, child.size, result)
            }
        };
        self.resize(before, after);
        Some(result)
    }
}

/// Joins a child with the one after it, or else with the one before it, where both fit into one.
fn join<T: Sizes>(children: &mut Vec<Arc<Node<T>>>, at: usize) {
    for left in [Some(at), at.checked_sub(1)].into_iter().flatten() {
        let width = |at| children.get(at).map(|child: &Arc<Node<T>>| child.width());
        let (Some(one), Some(other)) = (width(left), width(left + 1)) else { continue };
        if one + other > FAN_OUT {
            continue;
        }
        let right = Arc::unwrap_or_clone(children.remove(left + 1));
        let Some(left) = children.get_mut(left).map(Arc::make_mut) else { return };
        match (&mut left.items, right.items) {
            (Items::Leaf(items), Items::Leaf(more)) => items.extend(more),
            (Items::Branch(children), Items::Branch(more)) => children.extend(more),
            // All leaves are at the same depth.
            _ => {}
        }
        left.count();
        return;
    }
}

impl<T> Seq<T> {
    /// Number of items. O(1).
    pub(crate) fn len(&self) -> usize {
        self.0.len
    }

    /// The size of all items. O(1).
    pub(crate) fn size(&self) -> Size {
        self.0.size
    }

    /// Whether both are one and the same. O(1).
    pub(crate) fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The item at an index. O(log n).
    pub(crate) fn get(&self, mut index: usize) -> Option<&T> {
        let mut node = &*self.0;
        loop {
            match &node.items {
                Items::Leaf(items) => return items.get(index),
                Items::Branch(children) => {
                    let (at, below) = child_at(children, index)?;
                    node = children.get(at)?;
                    index = below;
                }
            }
        }
    }

    /// The index and item for which `order` gives `Equal`, or else the index where it would be. Items
    /// are in ascending order; `order` compares one with the item searched for. O(log n).
    pub(crate) fn search(&self, order: impl Fn(&T) -> Ordering) -> Result<(usize, &T), usize> {
        let mut node = &*self.0;
        let mut before = 0;
        loop {
            match &node.items {
                Items::Leaf(items) => {
                    let at = items.binary_search_by(&order).map_err(|at| before + at)?;
                    return items.get(at).map(|item| (before + at, item)).ok_or(before + at);
                }
                Items::Branch(children) => {
                    let is_left = |child: &Arc<Node<T>>| child.first().is_some_and(|first| order(first).is_le());
                    let at = children.partition_point(is_left).saturating_sub(1);
                    before += children.iter().take(at).map(|child| child.len).sum::<usize>();
                    node = children.get(at).ok_or(before)?;
                }
            }
        }
    }

    /// The items in order. O(1) each, amortized.
    pub(crate) fn iter(&self) -> Iter<'_, T> {
        let mut iter = Iter { branches: Vec::new(), leaf: [].iter(), left: self.0.len };
        iter.enter(&self.0);
        iter
    }
}

impl<T: Sizes> Seq<T> {
    /// Inserts an item at an index, before the one that is there; beyond the end it is dropped.
    /// O(log n).
    pub(crate) fn insert(&mut self, index: usize, value: T) {
        if index > self.len() {
            return;
        }
        let root = Arc::make_mut(&mut self.0);
        if let Some(right) = root.insert(index, value, true) {
            let left = std::mem::replace(root, Node::EMPTY);
            *root = Node::new(Items::Branch(vec![Arc::new(left), Arc::new(right)]));
        }
    }

    /// Removes the item at an index. O(log n).
    pub(crate) fn remove(&mut self, index: usize) -> Option<T> {
        // Looked at first, so that an absent one copies nothing.
        self.get(index)?;
        let removed = Arc::make_mut(&mut self.0).remove(index);
        while let Items::Branch(children) = &self.0.items {
            match children.as_slice() {
                [] => *self = Self::default(),
                [only] => self.0 = Arc::clone(only),
                _ => break,
            }
        }
        removed
    }

    /// Changes the item at an index. O(log n).
    pub(crate) fn update<R>(&mut self, index: usize, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        Arc::make_mut(&mut self.0).update(index, change)
    }
}

/// O(1): shares everything.
impl<T> Clone for Seq<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Seq<T> {
    fn default() -> Self {
        Self(Arc::new(Node::EMPTY))
    }
}

/// Item by item, as far as they are not shared.
impl<T: PartialEq> PartialEq for Seq<T> {
    fn eq(&self, other: &Self) -> bool {
        self.ptr_eq(other) || (self.len() == other.len() && self.iter().eq(other.iter()))
    }
}

/// O(n), with full nodes.
impl<T: Sizes> FromIterator<T> for Seq<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut level = grouped(items, Items::Leaf);
        while level.len() > 1 {
            level = grouped(level, Items::Branch);
        }
        level.pop().map_or_else(Self::default, Self)
    }
}

fn grouped<I, T: Sizes>(all: impl IntoIterator<Item = I>, items: impl Fn(Vec<I>) -> Items<T>) -> Vec<Arc<Node<T>>> {
    let mut all = all.into_iter();
    let group = || {
        let group: Vec<I> = all.by_ref().take(FAN_OUT).collect();
        (!group.is_empty()).then(|| Arc::new(Node::new(items(group))))
    };
    std::iter::from_fn(group).collect()
}

/// The items of a [`Seq`] in order.
pub(crate) struct Iter<'a, T> {
    /// What is left of each branch above the leaf.
    branches: Vec<slice::Iter<'a, Arc<Node<T>>>>,
    leaf: slice::Iter<'a, T>,
    left: usize,
}

impl<'a, T> Iter<'a, T> {
    fn enter(&mut self, node: &'a Node<T>) {
        match &node.items {
            Items::Leaf(items) => self.leaf = items.iter(),
            Items::Branch(children) => self.branches.push(children.iter()),
        }
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(item) = self.leaf.next() {
                self.left = self.left.saturating_sub(1);
                return Some(item);
            }
            match self.branches.last_mut()?.next() {
                Some(node) => self.enter(node),
                None => {
                    self.branches.pop();
                }
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Self { branches: self.branches.clone(), leaf: self.leaf.clone(), left: self.left }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Sizes for u64 {
        fn size(&self) -> Size {
            Size { bytes: 1 + usize::try_from(*self % 100).unwrap(), depth: usize::try_from(*self % 7).unwrap() }
        }
    }

    /// What the tree says of itself is so; gives its height and the number of its nodes.
    fn checked(node: &Node<u64>, is_root: bool) -> (usize, usize) {
        let mut counted = node.clone();
        counted.count();
        assert_eq!((counted.len, counted.size), (node.len, node.size));
        assert!(node.width() <= FAN_OUT && (is_root || node.width() > 0));
        match &node.items {
            Items::Leaf(_) => (0, 1),
            Items::Branch(children) => {
                assert!(!is_root || children.len() > 1);
                let below: Vec<_> = children.iter().map(|child| checked(child, false)).collect();
                assert!(below.iter().all(|(height, _)| *height == below[0].0));
                (below[0].0 + 1, 1 + below.iter().map(|(_, nodes)| nodes).sum::<usize>())
            }
        }
    }

    proptest! {
        #[test]
        fn a_sequence_does_what_a_vec_does_and_held_clones_never_change(
            start in 0_u64..200,
            steps in prop::collection::vec((0..8_u8, any::<prop::sample::Index>(), any::<u32>()), 0..400),
        ) {
            let (mut seq, mut model): (Seq<u64>, Vec<u64>) = ((0..start).collect(), (0..start).collect());
            let mut held = Vec::new();
            for (what, place, value) in steps {
                let (at, value) = (place.index(model.len() + 1), u64::from(value));
                match what {
                    0..=2 => {
                        seq.insert(at, value);
                        model.insert(at, value);
                    }
                    3 => {
                        seq.insert(seq.len(), value);
                        model.push(value);
                    }
                    4..=5 => prop_assert_eq!(seq.remove(at), (at < model.len()).then(|| model.remove(at))),
                    6 => {
                        let changed = seq.update(at, |item| std::mem::replace(item, value));
                        prop_assert_eq!(changed, model.get_mut(at).map(|item| std::mem::replace(item, value)));
                    }
                    _ => held.push((seq.clone(), model.clone())),
                }
            }
            held.push((seq, model));
            for (seq, model) in &held {
                checked(&seq.0, true);
                prop_assert!(seq.iter().eq(model));
                prop_assert_eq!(seq.iter().size_hint(), (model.len(), Some(model.len())));
                for at in 0..=model.len() {
                    prop_assert_eq!(seq.get(at), model.get(at));
                }
            }
        }

        #[test]
        fn what_is_in_order_is_found_as_in_a_slice(items in prop::collection::btree_set(0_u64..500, 0..200)) {
            let sorted: Vec<u64> = items.into_iter().collect();
            let seq: Seq<u64> = sorted.iter().copied().collect();
            for key in 0..500 {
                let found = seq.search(|item| item.cmp(&key)).map(|(at, item)| (at, *item));
                prop_assert_eq!(found, sorted.binary_search(&key).map(|at| (at, key)));
            }
        }
    }

    #[test]
    fn a_sequence_stays_flat_and_dense_wherever_it_grows_and_shrinks() {
        let mut seq = Seq::default();
        for value in 0..20_000 {
            seq.insert(0, value);
        }
        let (height, nodes) = checked(&seq.0, true);
        assert!(height <= 5 && nodes < 20_000 / 6, "{height} {nodes}");
        // All but one in sixteen go: what is left does not keep a node for each.
        for at in 0..1_250 {
            for _ in 0..15 {
                seq.remove(at);
            }
        }
        let (height, nodes) = checked(&seq.0, true);
        assert_eq!(seq.len(), 1_250);
        assert!(height <= 4 && nodes < 1_250 / 3, "{height} {nodes}");
        while seq.remove(0).is_some() {}
        assert_eq!(checked(&seq.0, true), (0, 1));
        for value in 0..20_000 {
            seq.insert(seq.len(), value);
        }
        // At the end all nodes but the last are full.
        assert_eq!(checked(&seq.0, true).1, 20_000 / 16 + 79 + 5 + 1);
    }
}
