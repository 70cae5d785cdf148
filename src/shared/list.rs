//! A sequence whose clones share memory, so that a writer can edit it while readers keep their clones.

use std::fmt;
use std::iter::FusedIterator;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::tree::{Entries, Tree};

/// Distance between the keys of pushed entries, which are its multiples. An inserted entry has a key
/// in between.
const SPACING: u64 = 1 << SPACING_BITS;
const SPACING_BITS: u32 = 32;

/// An insert takes this fraction of the gap it falls into, so that some 16 000 inserts fit when
/// each follows the one before.
const GAP_SHARE: u64 = 1024;

/// A range of `2^n` keys has room as long as it holds fewer entries than this to the power of `n`:
/// the wider, the emptier, so that a range that was spread out has room for a while.
const CROWDED: f64 = 1.6;

/// A sequence whose clones share memory: what a reader holds never changes.
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

/// The result of [`List::insert_after`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inserted {
    /// The key of the new value.
    pub(crate) key: u64,
    /// The others that have a new key now.
    pub(crate) moved: Moved,
}

/// Old keys, ascending, with the new ones. The order of the values stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved(Vec<(u64, u64)>);

impl Moved {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key of a value now.
    pub(crate) fn now(&self, key: u64) -> u64 {
        let place = self.0.binary_search_by_key(&key, |moved| moved.0).ok();
        place.and_then(|place| self.0.get(place)).map_or(key, |moved| moved.1)
    }

    /// Old and new keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().copied()
    }

    /// The least and the greatest of the old keys.
    pub(crate) fn ends(&self) -> Option<(u64, u64)> {
        Some((self.0.first()?.0, self.0.last()?.0))
    }
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

    /// The value after `key` and its own key. O(log n).
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
    /// The keys last for 2^32 pushes, which no memory holds; where values are removed as well, see
    /// [`respread`](Self::respread).
    pub(crate) fn next_key(&self) -> u64 {
        (self.tree.last_key().unwrap_or(0) & !(SPACING - 1)).saturating_add(SPACING)
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

    /// Removes the value of `key`. O(log n).
    pub(crate) fn remove(&mut self, key: u64) -> Option<T> {
        self.tree.remove(key)
    }

    /// Puts a value right after that of `key`; after `0` it becomes the first.
    ///
    /// O(log n), amortized: where there is no key left between the two neighbours, those around them
    /// are spread out. Only values that were inserted move, never those that were pushed.
    pub(crate) fn insert_after(&mut self, key: u64, value: T) -> Inserted {
        let Some((next, _)) = self.tree.next_after(key) else {
            return Inserted { key: self.push(value), moved: Moved::default() };
        };
        let (mut key, mut gap, mut moved) = (key, next - key, Moved::default());
        if gap <= 1 {
            moved = self.make_room(key);
            key = moved.now(key);
            gap = self.tree.next_after(key).map_or(SPACING, |(next, _)| next - key);
        }
        let key = key + (gap / GAP_SHARE).max(1);
        self.tree.insert(key, value);
        Inserted { key, moved }
    }

    /// Spreads the values around `key` evenly over the narrowest range that is not crowded.
    ///
    /// A range is spread out when its half has become crowded. Spreading leaves each half room for a
    /// constant part of its entries, so an insert pays for a constant number of moves for each of at
    /// most 32 widths.
    fn make_room(&mut self, key: u64) -> Moved {
        let mut most = 1.0;
        for bits in 1..=SPACING_BITS {
            most *= CROWDED;
            let low = key >> bits << bits;
            // A pushed entry stays at the lower end of the widest range.
            let mut last = if low % SPACING == 0 { low } else { low - 1 };
            let mut keys = Vec::new();
            while let Some((next, _)) = self.tree.next_after(last).filter(|(next, _)| next >> bits == low >> bits) {
                keys.push(next);
                last = next;
                if keys.len() as f64 > most && bits < SPACING_BITS {
                    break;
                }
            }
            let step = (1 << bits) / (keys.len() as u64 + 1);
            if bits == SPACING_BITS || (keys.len() as f64 + 1.0 <= most && step > 1) {
                let new = (1..).map(|place: u64| low + place * step);
                return self.rekey(Moved(keys.into_iter().zip(new).collect()));
            }
        }
        Moved::default()
    }

    fn rekey(&mut self, moved: Moved) -> Moved {
        let values: Vec<_> = moved.iter().filter_map(|(old, new)| Some((new, self.tree.remove(old)?))).collect();
        for (key, value) in values {
            self.tree.insert(key, value);
        }
        moved
    }

    /// Gives all values new keys if those for pushes are about to run out. O(n), once in 2^31 pushes.
    pub(crate) fn respread(&mut self) -> Moved {
        if self.next_key() < u64::MAX / 2 {
            return Moved::default();
        }
        let old: Vec<u64> = self.iter_keys().map(|(key, _)| key).collect();
        *self = self.iter().cloned().collect();
        Moved(old.into_iter().zip(self.iter_keys().map(|(key, _)| key)).collect())
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
    use super::super::tree::tests::Random;
    use super::*;

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
                    // After the previous one, or anywhere, the front included.
                    kind => {
                        let at = match run {
                            Some(at) if kind == 1 => at,
                            _ if seed % 2 == 0 => model.len() / 2,
                            _ => random.index(model.len() + 1),
                        };
                        let key = at.checked_sub(1).map_or(0, |before| model[before].0);
                        let inserted = list.insert_after(key, value);
                        relabelled += usize::from(!inserted.moved.is_empty());
                        model.iter_mut().for_each(|entry| entry.0 = inserted.moved.now(entry.0));
                        model.insert(at, (inserted.key, value));
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
        let pushed = |key| Inserted { key, moved: Moved::default() };
        assert_eq!(list.insert_after(0, 'a'), pushed(1 << 32));
        assert_eq!(list.push('b'), 2 << 32);
        assert_eq!(list.insert_after(2 << 32, 'c'), pushed(3 << 32));
        assert!(list.iter().eq(&['a', 'b', 'c']));
    }

    #[test]
    fn a_push_after_inserts_begins_a_row_of_its_own() {
        let mut list: List<char> = ['a', 'b'].into_iter().collect();
        list.insert_after(1 << 32, 'i');
        list.remove(2 << 32);
        assert_eq!(list.push('c'), 2 << 32);
        assert!(list.iter().eq(&['a', 'i', 'c']));
    }

    /// Inserts as `at` says, between many that were pushed; how many moved.
    fn moves(inserts: usize, mut at: impl FnMut(&List<usize>, u64) -> u64) -> usize {
        const AROUND: usize = 1000;
        let mut list: List<usize> = (0..2 * AROUND).collect();
        let pushed: Vec<u64> = list.iter_keys().map(|(key, _)| key).collect();
        let mut key = pushed[AROUND];
        let mut moved = 0;
        for value in 0..inserts {
            let after = at(&list, key);
            let rank = list.rank(after).unwrap();
            let inserted = list.insert_after(after, value);
            moved += inserted.moved.iter().count();
            assert!(inserted.moved.iter().all(|(old, _)| old % SPACING != 0), "what was pushed stays");
            assert_eq!(list.get(rank + 1), Some(&value));
            assert!(list.get_key(inserted.key) == Some(&value) && list.rank(inserted.key) == Some(rank + 1));
            key = inserted.key;
        }
        assert_eq!(list.len(), 2 * AROUND + inserts);
        assert!(pushed.iter().all(|key| list.get_key(*key).is_some()));
        moved
    }

    #[test]
    fn inserts_move_few_others_wherever_they_go() {
        let head = 1001 * SPACING;
        let one_after_the_other = moves(16_000, |_, last| last);
        assert_eq!(one_after_the_other, 0);
        let each_before_the_last = moves(20_000, |_, _| head);
        let before_and_after = moves(20_000, |list, last| {
            let at = list.rank(last).unwrap();
            if list.len() % 2 == 0 { last } else { list.nth(at.saturating_sub(1).max(1000)).unwrap().0 }
        });
        let mut random = Random(7);
        let anywhere = moves(20_000, |list, _| list.nth(1000 + random.index(list.len() - 1999)).unwrap().0);
        for moved in [each_before_the_last, before_and_after, anywhere] {
            assert!(moved < 20_000 * 40, "{each_before_the_last}, {before_and_after}, {anywhere}");
        }
    }

    #[test]
    fn keys_are_spread_anew_before_they_run_out() {
        let mut list: List<u8> = (0..5).collect();
        assert!(list.respread().is_empty());
        list.push_at(u64::MAX / 2 + 7, 9);
        let moved = list.respread();
        assert_eq!((moved.now(3 << 32), moved.now(u64::MAX / 2 + 7)), (3 << 32, 6 << 32));
        assert!(list.iter().eq(&[0, 1, 2, 3, 4, 9]));
        assert_eq!(list.push(10), 7 << 32);
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
