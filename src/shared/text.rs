//! Text that grows by appending and whose clones share memory.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter::FusedIterator;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Capacity from the first push on: most texts need it, and a move costs more.
const FIRST_CAPACITY: usize = 256;
/// Least room to add when a buffer must grow, so that short deltas do not reallocate every time.
const MIN_ROOM: usize = 64;
/// Up to here a buffer doubles: most messages are short, and moving them costs more than the room.
const MAX_DOUBLED: usize = 1024;

/// Text that grows by appending and whose clones share memory.
///
/// A clone is a snapshot: it costs one reference count and never changes, whatever is pushed to
/// the original afterwards. One word in size.
///
/// # How it is stored
///
/// As a few segments, usually one. While nobody else holds the text, a push appends to the last
/// segment in place. When a snapshot holds that segment, the push starts a new one, which takes in
/// the segments before it that are less than twice its length. So every segment is at least twice
/// as long as the next, and a text of `n` bytes has at most `log2(n) + 1` of them. Once the
/// snapshots are gone the next push joins everything into one segment again.
///
/// # Cost
///
/// | | time | memory |
/// |---|---|---|
/// | `clone`, `len` | O(1) | none |
/// | `push_str`, nobody holds the text | O(delta) amortized | at most 1.25 × text + 1 KiB |
/// | `push_str`, a snapshot is held | O(delta · log n) amortized | what the snapshot shares is not copied, or copied once more |
/// | `as_str` | O(1) | none |
/// | `to_cow` | O(1) if contiguous, else O(n) | one copy if not contiguous |
///
/// If a reader keeps the snapshot of *every* push, each byte is copied O(log n) times over the life
/// of the text. So `p` pushes of `n` bytes in total occupy O(n · log n + p) bytes while all snapshots
/// live; full copies would take O(n · p).
#[derive(Clone, Default)]
pub struct Text {
    head: Option<Arc<Node>>,
}

/// One segment, the last of its chain; `prev` leads to the text before it.
///
/// Never empty, and `prev` is at least twice as long as `text`. The chain is thus at most 64 nodes
/// long, which also bounds the recursion of its drop.
struct Node {
    text: String,
    prev: Option<Arc<Node>>,
    /// Bytes in the chain of `prev`.
    before: usize,
}

impl Node {
    fn new(text: String, prev: Option<Arc<Node>>) -> Self {
        let before = prev.as_ref().map_or(0, |prev| prev.len());
        Self { text, prev, before }
    }

    fn len(&self) -> usize {
        self.before + self.text.len()
    }

    /// Whether this segment is too short to stay in front of `len` bytes of newer text.
    fn outgrown_by(&self, len: usize) -> bool {
        self.text.len() / 2 < len
    }

    /// A node of `tail` and of all segments before it that it has outgrown.
    ///
    /// Each byte it copies lands in a segment half as long again as its old one, or is new: hence
    /// O(log n) copies of a byte.
    fn absorbing(mut prev: Option<&Arc<Node>>, tail: &str) -> Self {
        let mut parts = Vec::new();
        let mut len = tail.len();
        while let Some(node) = prev {
            if !node.outgrown_by(len) {
                break;
            }
            len += node.text.len();
            parts.push(node.text.as_str());
            prev = node.prev.as_ref();
        }
        let mut text = String::with_capacity(len);
        text.extend(parts.into_iter().rev());
        text.push_str(tail);
        Self::new(text, prev.cloned())
    }
}

/// Appends to a buffer, leaving at most a quarter of its length (or [`MAX_DOUBLED`]) unused.
///
/// `String` itself would double for ever, which for long texts is memory nobody reads.
fn append(text: &mut String, delta: &str) {
    let (len, room) = (text.len(), text.capacity() - text.len());
    if room < delta.len() {
        text.reserve_exact(delta.len().max(len / 4).max(len.clamp(MIN_ROOM, MAX_DOUBLED)));
    }
    text.push_str(delta);
}

/// Moves `head` into the segments before it as long as nobody else holds either.
fn fold(head: &mut Arc<Node>) {
    while let Some(node) = Arc::get_mut(head) {
        let Some(mut prev) = node.prev.take() else {
            return;
        };
        let Some(target) = Arc::get_mut(&mut prev) else {
            node.prev = Some(prev);
            return;
        };
        append(&mut target.text, &node.text);
        *head = prev;
    }
}

impl Text {
    /// An empty text. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { head: None }
    }

    /// Appends `delta`; clones made before do not see it. An empty `delta` changes nothing.
    ///
    /// # Cost
    ///
    /// O(delta) amortized, in place, while no clone is held; O(delta · log n) amortized otherwise.
    /// The first push after the last clone is dropped joins the segments: O(n), once.
    pub fn push_str(&mut self, delta: &str) {
        if delta.is_empty() {
            return;
        }
        let Some(head) = &mut self.head else {
            let mut text = String::with_capacity(delta.len().max(FIRST_CAPACITY));
            text.push_str(delta);
            self.head = Some(Arc::new(Node::new(text, None)));
            return;
        };
        match Arc::get_mut(head) {
            // The usual case, with a single check of the reference count.
            Some(Node { text, prev: None, .. }) => append(text, delta),
            _ => Self::push_to_segments(head, delta),
        }
    }

    fn push_to_segments(head: &mut Arc<Node>, delta: &str) {
        fold(head);
        let Some(node) = Arc::get_mut(head) else {
            *head = Arc::new(Node::absorbing(Some(head), delta));
            return;
        };
        append(&mut node.text, delta);
        let len = node.text.len();
        if node.prev.as_ref().is_some_and(|prev| prev.outgrown_by(len)) {
            *node = Node::absorbing(node.prev.as_ref(), &node.text);
        }
    }

    /// Length in bytes. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.as_ref().map_or(0, |head| head.len())
    }

    /// Whether there is no text. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// The text in order, segment by segment, without copying or allocating.
    ///
    /// Boundaries are always between characters but mean nothing else: they depend on who held
    /// what when. At most `log2(n) + 1` chunks, none of them empty; O(log n) steps for each.
    pub fn chunks(&self) -> Chunks<'_> {
        Chunks { back: self.head.as_deref(), at: 0 }
    }

    /// The text as one slice if it is stored as one, which it is unless it was pushed to while a
    /// clone was held. O(1).
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.head {
            None => Some(""),
            Some(head) if head.prev.is_none() => Some(&head.text),
            Some(_) => None,
        }
    }

    /// The text as one string: borrowed as [`as_str`](Self::as_str) would, else one copy, O(n).
    #[must_use]
    pub fn to_cow(&self) -> Cow<'_, str> {
        self.as_str().map_or_else(|| Cow::Owned(self.copied()), Cow::Borrowed)
    }

    fn copied(&self) -> String {
        let mut text = String::with_capacity(self.len());
        text.extend(self.chunks());
        text
    }

    /// Bytes allocated for text, used or not, by the segments of this chain.
    #[cfg(test)]
    fn capacity(&self) -> usize {
        std::iter::successors(self.head.as_deref(), |node| node.prev.as_deref()).map(|node| node.text.capacity()).sum()
    }
}

/// The segments of a [`Text`] in order; made by [`Text::chunks`].
#[derive(Clone)]
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Chunks<'a> {
    /// Last segment not yet yielded from the back.
    back: Option<&'a Node>,
    /// Bytes yielded from the front.
    at: usize,
}

impl<'a> Chunks<'a> {
    /// The last segment still to come, unless the front has passed it.
    fn last_left(&self) -> Option<&'a Node> {
        self.back.filter(|node| node.before >= self.at)
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        // Links lead backwards only. Walking from the end each time needs no stack, and the chain
        // is short.
        let mut node = self.last_left()?;
        while node.before > self.at {
            node = node.prev.as_deref()?;
        }
        self.at += node.text.len();
        Some(&node.text)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left =
            std::iter::successors(self.last_left(), |node| node.prev.as_deref().filter(|prev| prev.before >= self.at));
        let count = left.count();
        (count, Some(count))
    }
}

impl DoubleEndedIterator for Chunks<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let node = self.last_left()?;
        self.back = node.prev.as_deref();
        Some(&node.text)
    }
}

impl ExactSizeIterator for Chunks<'_> {}

impl FusedIterator for Chunks<'_> {}

impl fmt::Debug for Chunks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// Copies the slice: O(n).
impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::from(String::from(text))
    }
}

/// Takes over the allocation, spare capacity included: O(1).
impl From<String> for Text {
    fn from(text: String) -> Self {
        let head = (!text.is_empty()).then(|| Arc::new(Node::new(text, None)));
        Self { head }
    }
}

/// Takes the allocation back if the text is contiguous and not shared: O(1). Else one copy, O(n).
impl From<Text> for String {
    fn from(mut text: Text) -> Self {
        match text.head.as_mut().and_then(Arc::get_mut) {
            Some(node) if node.prev.is_none() => std::mem::take(&mut node.text),
            _ => text.copied(),
        }
    }
}

/// Pushes each slice.
impl<'a> Extend<&'a str> for Text {
    fn extend<I: IntoIterator<Item = &'a str>>(&mut self, deltas: I) {
        for delta in deltas {
            self.push_str(delta);
        }
    }
}

/// Pushes each piece that is written; never fails.
impl fmt::Write for Text {
    fn write_str(&mut self, delta: &str) -> fmt::Result {
        self.push_str(delta);
        Ok(())
    }
}

/// Writes the chunks. Copies only for a width or precision on text that is not contiguous.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.width().is_some() || f.precision().is_some() {
            return f.pad(&self.to_cow());
        }
        self.chunks().try_for_each(|chunk| f.write_str(chunk))
    }
}

/// As the string would print. Copies text that is not contiguous.
impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.to_cow(), f)
    }
}

/// Compares the text, however it is segmented: O(1) for clones and different lengths, else O(n).
impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        match (&self.head, &other.head) {
            (Some(a), Some(b)) if Arc::ptr_eq(a, b) => return true,
            _ if self.len() != other.len() => return false,
            _ => {}
        }
        let (mut ours, mut theirs) = (self.chunks(), other.chunks());
        let (mut a, mut b): (&[u8], &[u8]) = (&[], &[]);
        // The lengths are equal, so that both sides run out together.
        loop {
            if a.is_empty() {
                let Some(chunk) = ours.next() else {
                    return true;
                };
                a = chunk.as_bytes();
            }
            if b.is_empty() {
                let Some(chunk) = theirs.next() else {
                    return true;
                };
                b = chunk.as_bytes();
            }
            let common = a.len().min(b.len());
            let (a_head, a_tail) = a.split_at(common);
            let (b_head, b_tail) = b.split_at(common);
            if a_head != b_head {
                return false;
            }
            (a, b) = (a_tail, b_tail);
        }
    }
}

impl Eq for Text {}

/// O(n), no copy.
impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        let mut rest = other.as_bytes();
        self.len() == rest.len()
            && self.chunks().all(|chunk| match rest.strip_prefix(chunk.as_bytes()) {
                Some(after) => {
                    rest = after;
                    true
                }
                None => false,
            })
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl PartialEq<String> for Text {
    fn eq(&self, other: &String) -> bool {
        *self == **other
    }
}

impl PartialEq<Text> for str {
    fn eq(&self, other: &Text) -> bool {
        *other == *self
    }
}

impl PartialEq<Text> for &str {
    fn eq(&self, other: &Text) -> bool {
        *other == **self
    }
}

impl PartialEq<Text> for String {
    fn eq(&self, other: &Text) -> bool {
        *other == **self
    }
}

/// Hashes as the string would. Copies text that is not contiguous, because a hasher may tell one
/// write from two.
impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to_cow().hash(state);
    }
}

/// As a string; text that is not contiguous is handed over chunk by chunk.
impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.as_str() {
            Some(text) => serializer.serialize_str(text),
            None => serializer.collect_str(self),
        }
    }
}

/// From a string, whose allocation it takes over.
impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::collections::hash_map::DefaultHasher;
    use std::fmt::Write as _;

    use super::*;

    /// A 64-bit linear congruential generator, top bits only.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % end
        }

        fn delta(&mut self) -> String {
            let longest = [1, 4, 30, 400][self.below(4)];
            let len = self.below(longest + 1);
            (0..len).map(|_| ['a', 'b', '\n', 'é', '語', '🦀'][self.below(6)]).collect()
        }
    }

    fn log2(n: usize) -> usize {
        n.checked_ilog2().unwrap_or(0) as usize
    }

    /// Checks everything that must hold for any text against what it should say.
    fn check(text: &Text, model: &str) {
        assert_eq!(text.len(), model.len());
        assert_eq!(text.is_empty(), model.is_empty());
        assert_eq!(text.chunks().collect::<String>(), model);
        assert!(*text == *model);
        assert_eq!(text.to_cow(), model);
        assert_eq!(text.as_str().is_some(), text.chunks().len() <= 1);

        let mut node = text.head.as_deref();
        while let Some(here) = node {
            assert!(!here.text.is_empty());
            let prev = here.prev.as_deref();
            assert_eq!(here.before, prev.map_or(0, Node::len));
            if let Some(prev) = prev {
                assert!(prev.text.len() >= 2 * here.text.len());
            }
            node = prev;
        }
        assert!(text.chunks().len() <= log2(model.len()) + 1);
    }

    #[test]
    fn a_text_says_what_a_string_would_and_held_clones_never_change() {
        for seed in 0..40 {
            let mut random = Random(seed);
            let (mut text, mut model) = (Text::new(), String::new());
            let mut held: Vec<(Text, String)> = Vec::new();
            // From nearly every push being observed to nearly none.
            let rate = [1, 2, 5, 50][random.below(4)];
            for _ in 0..400 {
                let delta = random.delta();
                text.push_str(&delta);
                model.push_str(&delta);
                check(&text, &model);
                if random.below(rate) == 0 {
                    held.push((text.clone(), model.clone()));
                }
                match random.below(20) {
                    0 => held.clear(),
                    1..=4 if !held.is_empty() => {
                        held.swap_remove(random.below(held.len()));
                    }
                    // A clone may be written to as well, and take the place of the original.
                    5 if !held.is_empty() => {
                        let at = random.below(held.len());
                        std::mem::swap(&mut held[at].0, &mut text);
                        std::mem::swap(&mut held[at].1, &mut model);
                    }
                    _ => {}
                }
                for (snapshot, says) in &held {
                    assert!(snapshot == says);
                }
            }
            for (snapshot, says) in &held {
                check(snapshot, says);
            }
        }
    }

    #[test]
    fn a_text_held_at_every_push_has_few_chunks() {
        let (mut text, mut held) = (Text::new(), Vec::new());
        let mut most = 0;
        for pushes in 1..=20_000 {
            text.push_str("ab");
            held.push(text.clone());
            most = most.max(text.chunks().len());
            assert!(text.chunks().len() <= log2(pushes) + 1);
        }
        assert!(most > 5, "nothing was shared");
        for (at, snapshot) in held.iter().enumerate() {
            assert_eq!(snapshot.len(), 2 * (at + 1));
        }
    }

    #[test]
    fn shrinking_deltas_make_few_chunks_too() {
        let (mut text, mut held) = (Text::new(), Vec::new());
        for len in (1..=300).rev() {
            text.push_str(&"x".repeat(len));
            held.push(text.clone());
            assert!(text.chunks().len() <= log2(text.len()) + 1);
        }
    }

    #[test]
    fn snapshots_of_every_push_share_their_text() {
        let (mut text, mut held) = (Text::new(), Vec::new());
        for _ in 0..4096 {
            text.push_str("0123456789abcdef");
            held.push(text.clone());
        }
        let mut seen = HashSet::new();
        let mut bytes = 0;
        for snapshot in &held {
            for chunk in snapshot.chunks() {
                if seen.insert(chunk.as_ptr()) {
                    bytes += chunk.len();
                }
            }
        }
        // log2(4096) + 1 levels; full copies would be 2048 times the text.
        assert!(bytes <= 13 * text.len(), "{bytes} for {}", text.len());
    }

    #[test]
    fn a_text_is_contiguous_again_once_its_clones_are_dropped() {
        let (mut text, mut held) = (Text::new(), Vec::new());
        for at in 0..1000 {
            write!(text, "{at} ").unwrap();
            held.push(text.clone());
        }
        assert!(text.chunks().len() > 1 && text.as_str().is_none());
        let says = text.to_string();
        drop(held);
        text.push_str("end");
        assert_eq!(text.as_str(), Some(&*(says + "end")));
    }

    #[test]
    fn a_clone_held_for_ever_does_not_keep_the_text_apart() {
        let mut text = Text::from("x".repeat(1000));
        let held = text.clone();
        text.push_str("y");
        assert_eq!(text.chunks().len(), 2);
        for _ in 0..1000 {
            text.push_str("y");
        }
        assert_eq!(text.chunks().len(), 1);
        assert_eq!(held, "x".repeat(1000));
    }

    #[test]
    fn an_unshared_push_is_in_place() {
        let mut text = Text::from(String::with_capacity(100) + "abc");
        let at = text.as_str().unwrap().as_ptr();
        for _ in 0..9 {
            text.push_str("0123456789");
        }
        assert_eq!(text.as_str().unwrap().as_ptr(), at);
        assert_eq!(text.len(), 93);
    }

    #[test]
    fn unused_capacity_stays_below_a_quarter() {
        // Held at each push, dropped in time for every second one, and so on.
        for every in [1, 2, 3, 1000, usize::MAX] {
            let (mut text, mut held) = (Text::new(), None);
            for push in 1..=20_000 {
                text.push_str("token");
                let most = text.len() * 5 / 4 + MAX_DOUBLED * text.chunks().len();
                assert!(text.capacity() <= most, "{} for {}", text.capacity(), text.len());
                drop(held);
                held = (push % every == 0).then(|| text.clone());
            }
        }
    }

    #[test]
    fn growing_in_place_reallocates_rarely() {
        let (mut text, mut grown, mut capacity) = (Text::new(), 0, 0);
        for _ in 0..100_000 {
            text.push_str("abcd");
            if text.capacity() != capacity {
                (grown, capacity) = (grown + 1, text.capacity());
            }
        }
        assert!(grown < 60, "{grown}");
    }

    #[test]
    fn an_empty_push_changes_nothing() {
        let mut text = Text::new();
        text.push_str("");
        assert!(text.head.is_none());
        text.push_str("a");
        let held = text.clone();
        text.push_str("");
        let (Some(ours), Some(theirs)) = (&text.head, &held.head) else {
            panic!("both have text");
        };
        assert!(Arc::ptr_eq(ours, theirs));
        assert_eq!(Text::from(""), Text::default());
        assert!(Text::from(String::new()).is_empty());
    }

    /// The same text in two segmentations, the second of several chunks.
    fn two_ways() -> (Text, Text) {
        let mut text = Text::new();
        let mut held = Vec::new();
        for part in ["«a long beginning», ", "then \"é\" ", "a", "\u{301}"] {
            text.push_str(part);
            held.push(text.clone());
        }
        assert!(text.chunks().len() > 2);
        (Text::from(text.to_string()), text)
    }

    /// `a == b` with the operands in that order, whatever a lint would rather read.
    fn same<A: PartialEq<B> + ?Sized, B: ?Sized>(a: &A, b: &B) -> bool {
        a == b
    }

    #[test]
    fn traits_do_not_see_segments() {
        let (whole, parts) = two_ways();
        let string = String::from(whole.clone());
        assert_eq!(whole, parts);
        assert_eq!(parts, whole);
        assert_eq!(format!("{parts}"), string);
        assert_eq!(format!("{parts:?}"), format!("{string:?}"));
        assert_eq!(format!("{parts:>50}|{parts:.9}"), format!("{string:>50}|{string:.9}"));
        let hash = |hash: &dyn Fn(&mut DefaultHasher)| {
            let mut hasher = DefaultHasher::new();
            hash(&mut hasher);
            hasher.finish()
        };
        assert_eq!(hash(&|h| parts.hash(h)), hash(&|h| whole.hash(h)));
        assert_eq!(hash(&|h| parts.hash(h)), hash(&|h| string.hash(h)));
        assert_eq!(String::from(parts.clone()), string);
        assert!(same(&parts, &string) && same(&string, &parts));
        assert!(same(&parts, &*string) && same(&*string, &parts));
        assert!(same(&parts, &&*string) && same(&&*string, &parts));
    }

    #[test]
    fn different_texts_differ() {
        let (whole, parts) = two_ways();
        let string = whole.to_string();
        let longer = string.clone() + "x";
        let other = string.replace("then", "them");
        for differs in [&*longer, &*other, ""] {
            let text = Text::from(differs);
            assert!(!same(&parts, differs) && !same(differs, &parts));
            assert!(!same(&parts, &text) && !same(&text, &parts));
        }
        assert!(parts != Text::new());
    }

    #[test]
    fn chunks_meet_in_the_middle() {
        let (mut text, mut held) = (Text::new(), Vec::new());
        for _ in 0..127 {
            text.push_str("z");
            held.push(text.clone());
        }
        let all: Vec<&str> = text.chunks().collect();
        assert_eq!(all.len(), 7);
        let mut back: Vec<&str> = text.chunks().rev().collect();
        back.reverse();
        assert_eq!(all, back);
        for from_front in 0..=7 {
            let mut chunks = text.chunks();
            let mut got: Vec<&str> = Vec::new();
            for left in (7 - from_front..7).rev() {
                got.extend(chunks.next());
                assert_eq!(chunks.len(), left);
            }
            let mut rest: Vec<&str> = Vec::new();
            while let Some(chunk) = chunks.next_back() {
                rest.push(chunk);
                assert_eq!(chunks.len(), 7 - from_front - rest.len());
            }
            assert_eq!((chunks.next(), chunks.next_back()), (None, None));
            got.extend(rest.iter().rev());
            assert_eq!(got, all);
        }
    }

    #[test]
    fn a_string_goes_in_and_out_without_copying() {
        let string = String::from("some text");
        let at = string.as_ptr();
        let text = Text::from(string);
        assert_eq!(text.as_str().unwrap().as_ptr(), at);
        let held = text.clone();
        let copy = String::from(text);
        assert_ne!(copy.as_ptr(), at);
        assert_eq!(copy, "some text");
        let mut longer = held.clone();
        longer.push_str("!");
        assert_eq!(String::from(longer), "some text!");
        let back = String::from(held);
        assert_eq!((back.as_ptr(), &*back), (at, "some text"));
    }

    #[test]
    fn extend_pushes_each() {
        let mut text = Text::new();
        text.extend(["a", "", "bc"]);
        assert_eq!(text, "abc");
    }

    #[test]
    fn serde_sees_a_string() {
        let (whole, parts) = two_ways();
        let json = serde_json::to_string(&whole).unwrap();
        assert_eq!(json, serde_json::to_string(&whole.to_string()).unwrap());
        assert_eq!(json, serde_json::to_string(&parts).unwrap());
        assert_eq!(serde_json::from_str::<Text>(&json).unwrap(), parts);
        assert!(serde_json::from_str::<Text>("1").is_err());
    }

    #[test]
    fn a_text_is_one_word_and_crosses_threads() {
        fn crosses<T: Send + Sync + Unpin + 'static>() {}
        crosses::<Text>();
        assert_eq!(size_of::<Text>(), size_of::<usize>());

        let mut text = Text::new();
        std::thread::scope(|scope| {
            for at in 1..=200 {
                text.push_str("word ");
                let held = text.clone();
                scope.spawn(move || assert_eq!(held, "word ".repeat(at)));
            }
        });
        assert_eq!(text, "word ".repeat(200));
    }
}
