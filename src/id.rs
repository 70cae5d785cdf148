//! Ids: opaque strings, with a type for each kind of id.

use core::cmp::Ordering;
use core::convert::Infallible;
use core::fmt;
use core::hash::{BuildHasher, Hash, Hasher};
use core::str::FromStr;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;

/// One seed for the process, so that an id hashes alike in every table and differently in every
/// process: a producer cannot prepare ids that collide.
static SEED: LazyLock<foldhash::quality::RandomState> = LazyLock::new(Default::default);

fn hash_of(text: &str) -> u64 {
    SEED.hash_one(text)
}

struct Inner {
    hash: u64,
    /// Most ids are short, and so lie beside their hash, in one allocation.
    text: SmolStr,
}

/// The shared text of every id type. Its hash is computed once, when the id is made.
#[derive(Clone)]
pub(crate) struct Id(Arc<Inner>);

impl Id {
    pub(crate) fn new(text: &str) -> Self {
        Self::with_hash(text, hash_of(text))
    }

    pub(crate) fn hash_of(text: &str) -> u64 {
        hash_of(text)
    }

    pub(crate) fn with_hash(text: &str, hash: u64) -> Self {
        Self(Arc::new(Inner { hash, text: text.into() }))
    }

    #[inline]
    pub(crate) fn as_str(&self) -> &str {
        &self.0.text
    }

    #[inline]
    pub(crate) fn hash_value(&self) -> u64 {
        self.0.hash
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for Id {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.hash == other.0.hash && self.0.text == other.0.text)
    }
}

impl Eq for Id {}

/// By the hash, then by the text.
impl Ord for Id {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0.hash, &self.0.text).cmp(&(other.0.hash, &other.0.text))
    }
}

impl PartialOrd for Id {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Id {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

/// Passes on the hash that an [`Id`] has computed. Only for keys that write one `u64`, or several,
/// which are folded.
#[derive(Clone, Copy, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = self.0.rotate_left(23) ^ value;
    }
}

/// Builds [`IdHasher`]s.
#[derive(Clone, Copy, Default)]
pub(crate) struct BuildIdHasher;

impl BuildHasher for BuildIdHasher {
    type Hasher = IdHasher;

    #[inline]
    fn build_hasher(&self) -> IdHasher {
        IdHasher::default()
    }
}

/// A map keyed by ids, without hashing them again.
pub(crate) type IdMap<K, V> = HashMap<K, V, BuildIdHasher>;

/// An empty one.
pub(crate) const fn id_map<K, V>() -> IdMap<K, V> {
    HashMap::with_hasher(BuildIdHasher)
}

/// Gives equal ids one allocation, as long as it remembers them.
///
/// A table of bounded size with two places for each id: a stream of ever new ids displaces old ones
/// and costs no memory. An id that is displaced is only allocated anew. The table begins small, for most runs
/// name few things.
#[derive(Default)]
pub(crate) struct Interner {
    /// The places of the most recent ids. To keep the ids themselves would cost two writes to reference
    /// counts whenever ids take turns.
    recent: [usize; 4],
    table: Vec<Option<Id>>,
    /// The length of the longest id beyond [`Interner::MAX_LEN`] since it was last set to 0.
    pub(crate) longest: usize,
}

impl Interner {
    /// How large the table may grow: far more than a run has items open at once, so that two of them rarely
    /// want both places of each other. Four times four and so on the first size, which is a power of two.
    const PLACES: usize = 2048;
    const FIRST_PLACES: usize = 32;
    /// Ids beyond this length are not remembered, so that the table's bytes are bounded too.
    pub(crate) const MAX_LEN: usize = 128;

    /// The id for this text; `slot` names one of four most recent ids to try first.
    #[inline]
    pub(crate) fn get(&mut self, slot: usize, text: &str) -> Id {
        if let Some(Some(recent)) = self.recent.get(slot).and_then(|place| self.table.get(*place)) {
            if is_text(recent, text) {
                return recent.clone();
            }
        }
        self.look_up(slot, text)
    }

    fn look_up(&mut self, slot: usize, text: &str) -> Id {
        let hash = hash_of(text);
        if text.len() > Self::MAX_LEN {
            self.longest = self.longest.max(text.len());
            return Id::with_hash(text, hash);
        }
        if self.table.is_empty() {
            self.table.resize(Self::FIRST_PLACES, None);
        }
        let places = self.places(hash);
        for place in places {
            if let Some(Some(known)) = self.table.get(place) {
                if known.hash_value() == hash && known.as_str() == text {
                    let id = known.clone();
                    self.remember(slot, place);
                    return id;
                }
            }
        }
        let id = Id::with_hash(text, hash);
        let mut free = self.free(places);
        if free.is_none() && self.table.len() < Self::PLACES {
            self.grow();
            free = self.free(self.places(hash));
        }
        let free = free.unwrap_or_else(|| {
            let [_, second] = self.places(hash);
            second
        });
        if let Some(place) = self.table.get_mut(free) {
            *place = Some(id.clone());
        }
        self.remember(slot, free);
        id
    }

    #[allow(clippy::cast_possible_truncation, reason = "any bits of the hash will do")]
    fn places(&self, hash: u64) -> [usize; 2] {
        // Its length is a power of two.
        let mask = self.table.len().wrapping_sub(1);
        [hash as usize & mask, (hash >> 32) as usize & mask]
    }

    /// Which of the places is free.
    fn free(&self, places: [usize; 2]) -> Option<usize> {
        places.into_iter().find(|place| matches!(self.table.get(*place), Some(None)))
    }

    #[cold]
    fn grow(&mut self) {
        let grown = vec![None; self.table.len() * 4];
        self.recent = [usize::MAX; 4];
        for id in core::mem::replace(&mut self.table, grown).into_iter().flatten() {
            let places = self.places(id.hash_value());
            // One that finds no place is forgotten.
            if let Some(place) = self.free(places).and_then(|free| self.table.get_mut(free)) {
                *place = Some(id);
            }
        }
    }

    fn remember(&mut self, slot: usize, place: usize) {
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = place;
        }
    }
}

/// Different ids mostly differ at their end, so that is compared first.
#[inline]
fn is_text(id: &Id, text: &str) -> bool {
    let known = id.as_str();
    known.len() == text.len() && known.as_bytes().last() == text.as_bytes().last() && known == text
}

impl fmt::Debug for Interner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interner").finish_non_exhaustive()
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $slot:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// An opaque string: any text is legal, even the empty one (rule E8). Clones share the text, and
        /// the hash is computed once. It is not the hash of the text, so look up a map by ids with an
        /// id.
        #[derive(Clone, PartialEq, Eq, Hash)]
        pub struct $name(Id);

        impl $name {
            /// An id with this text.
            #[must_use]
            pub fn new(text: impl AsRef<str>) -> Self {
                Self(Id::new(text.as_ref()))
            }

            /// The text of the id.
            #[must_use]
            #[inline]
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }

            /// An id with this text, which shares its allocation with those before it.
            #[inline]
            pub(crate) fn interned(text: &str, interner: &mut Interner) -> Self {
                Self(interner.get($slot, text))
            }

            #[allow(dead_code, reason = "not every id type passes through every table")]
            #[inline]
            pub(crate) fn from_id(id: Id) -> Self {
                Self(id)
            }

            #[allow(dead_code, reason = "not every id type passes through every table")]
            #[inline]
            pub(crate) fn id(&self) -> &Id {
                &self.0
            }

            #[allow(dead_code, reason = "not every id type passes through every table")]
            #[inline]
            pub(crate) fn into_id(self) -> Id {
                self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::new(text)
            }
        }

        impl From<&String> for $name {
            fn from(text: &String) -> Self {
                Self::new(text)
            }
        }

        impl From<Cow<'_, str>> for $name {
            fn from(text: Cow<'_, str>) -> Self {
                Self::new(text)
            }
        }

        impl From<&$name> for $name {
            fn from(id: &$name) -> Self {
                id.clone()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.as_str().to_owned()
            }
        }

        impl FromStr for $name {
            type Err = Infallible;

            fn from_str(text: &str) -> Result<Self, Infallible> {
                Ok(Self::new(text))
            }
        }

        ids!(@equal $name: str, &str, String);

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> core::cmp::Ordering {
                self.as_str().cmp(other.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }
    )*};
    (@equal $name:ident: $($text:ty),*) => {$(
        impl PartialEq<$text> for $name {
            fn eq(&self, other: &$text) -> bool {
                self.as_str() == AsRef::<str>::as_ref(other)
            }
        }

        impl PartialEq<$name> for $text {
            fn eq(&self, other: &$name) -> bool {
                AsRef::<str>::as_ref(self) == other.as_str()
            }
        }
    )*};
}

// The number is the slot of the interner's recent ids that is tried first.
ids! {
    /// The id of a message: `messageId` on events, `id` on messages.
    MessageId 0;
    /// The id of a tool call.
    ToolCallId 1;
    /// The id of a run.
    RunId 3;
    /// The id of a thread, the conversation that runs belong to.
    ThreadId 3;
    /// The id of one invocation of a subagent.
    SubagentRunId 2;
    /// The id of an interrupt.
    InterruptId 3;
}

/// Makes the ids that the crate needs (rule B1, and new runs).
///
/// Any `FnMut() -> String` is one, so that tests can count.
///
/// ```
/// use ag_ui_stream::id::{IdGenerator, SequentialIds};
///
/// let mut ids = SequentialIds::new("id-");
/// assert_eq!(ids.next_id(), "id-1");
/// assert_eq!(ids.next_id(), "id-2");
/// ```
pub trait IdGenerator: Send {
    /// A new id, different from all that came before.
    fn next_id(&mut self) -> String;
}

impl<F: FnMut() -> String + Send> IdGenerator for F {
    fn next_id(&mut self) -> String {
        self()
    }
}

/// Counts: `prefix1`, `prefix2`, … Unique within the generator only.
#[derive(Clone, Debug)]
pub struct SequentialIds {
    prefix: String,
    count: u64,
}

impl SequentialIds {
    /// A generator that begins at 1.
    #[must_use]
    pub fn new(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), count: 0 }
    }
}

impl IdGenerator for SequentialIds {
    fn next_id(&mut self) -> String {
        self.count += 1;
        format!("{}{}", self.prefix, self.count)
    }
}

/// Random 128-bit ids, seeded by the operating system through the standard library: the default.
///
/// They name things apart; they are no secret.
///
/// On `wasm32-unknown-unknown` the standard library has no random numbers. There they come from `getrandom`, and
/// that crate does not compile until the application says where they come from: the feature `wasm-js` for a
/// browser or Node, or [a backend of its own](https://docs.rs/getrandom/0.4#custom-backend).
#[derive(Clone, Debug, Default)]
pub struct RandomIds(());

impl RandomIds {
    /// A generator.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl IdGenerator for RandomIds {
    #[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
    fn next_id(&mut self) -> String {
        // Each `RandomState` has keys of its own, which the standard library draws from the
        // operating system and then steps; hashing a constant under two of them gives 128 bits.
        let half = || std::collections::hash_map::RandomState::new().hash_one(0u8);
        format!("{:016x}{:016x}", half(), half())
    }

    #[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
    #[allow(clippy::panic, reason = "as the standard library does elsewhere: an id that is not random is no id")]
    fn next_id(&mut self) -> String {
        let half = || getrandom::u64().unwrap_or_else(|error| panic!("no random numbers: {error}"));
        format!("{:016x}{:016x}", half(), half())
    }
}
