//! `Limits`: the bounds on what bad input can cost.

use core::fmt;
use core::ops::Deref;
use std::sync::Arc;

/// Bounds on the cost of one event and on the size of a conversation. The defaults are safe; each bound stops one
/// kind of attack.
///
/// # The memory that is held at most
/// With the defaults, however much a producer sends, and if the application drops the snapshots that it has
/// read:
///
/// | what | at most | by |
/// |---|---|---|
/// | messages, calls, runs, with their texts, ids and metadata | 256 MiB, and a quarter more for buffers | [`max_conversation_bytes`](Limits::max_conversation_bytes) |
/// | the ids that the active run has named, for the S and O rules | 256 MiB, in practice shared with the above | the same |
/// | the state, and the content of all activities | 128 MiB | [`max_document_bytes`](Limits::max_document_bytes) |
/// | the event that is read | about 0.5 GiB for the worst of 10 MiB, 30 MiB for text | [`max_event_values`](Limits::max_event_values), [`max_event_bytes`](Limits::max_event_bytes) |
///
/// So a conversation that reaches every bound takes about 700 MiB, and 1.2 GiB while it reads the worst event; a
/// common conversation takes a little more than its text. The bounds hold for each conversation: if you have
/// several, give them smaller bounds. A snapshot shares everything that did not change after it; if you keep many,
/// you keep the parts that they do not share.
///
/// # When a bound is exceeded
/// An event that would exceed a bound is an error, [`LimitExceeded`](crate::error::LimitExceeded), and the
/// conversation stays as it was before that event. Three bounds are not errors: a patch that would exceed one does
/// not apply, with a warning (rules A5 and A6); the oldest run is forgotten when a new one begins; of the warnings
/// about one event the first hundred are given, and then the number of the others.
///
/// The history and state that the application passes in are never refused, but they count.
///
/// A new bound is not a breaking change, so take the others from the default:
///
/// ```
/// use ag_ui_stream::Limits;
///
/// let limits = Limits { max_event_bytes: 64 * 1024, ..Limits::default() };
/// assert_eq!(limits.max_depth, Limits::DEFAULT_MAX_DEPTH);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest event accepted, in bytes of its JSON text.
    ///
    /// Stops a line that never ends from filling the memory.
    pub max_event_bytes: usize,
    /// How many JSON values one event may hold, itself included, where it comes as text or as a
    /// [`Value`](serde_json::Value).
    ///
    /// Stops an event of two bytes a value, such as `[0,0,0,…]`, from taking hundreds of times its
    /// length.
    pub max_event_values: usize,
    /// The longest id accepted, in bytes; also the longest name of a tool or of a speaker that chunks
    /// repeat.
    ///
    /// Stops ids that are remembered, one for each thing a run names, from being as long as an event.
    pub max_id_bytes: usize,
    /// The deepest nesting of arrays and objects accepted; values above
    /// [`Limits::CEILING_DEPTH`] count as that.
    ///
    /// Stops a row of brackets from exhausting the stack. A patch that would nest a document deeper
    /// than an event could bring it does not apply (rule A6).
    pub max_depth: usize,
    /// The most bytes of the state and the content of all activities together. Each value counts 32 bytes, each
    /// text and key its length and 32, each array and object 96: about what they take in memory.
    ///
    /// Stops a patch that copies its own copies from doubling a document with each operation. A patch
    /// beyond it does not apply (rules A5 and A6); a snapshot beyond it is an error.
    pub max_document_bytes: usize,
    /// How many operations one patch may have. One with more does not apply (rules A5 and A6).
    ///
    /// Stops an event from keeping a processor busy: each operation costs the logarithm of what it
    /// changes, and they are applied in one go.
    pub max_patch_operations: usize,
    /// How many messages the conversation may hold.
    ///
    /// Stops a stream of empty messages, each of which costs the application something: to draw it, store it or
    /// send it.
    pub max_messages: usize,
    /// The most bytes of the conversation without its documents. It counts the length of each text, id, name and
    /// argument; metadata and results as documents are counted; 1 KiB for each message, tool call, run and
    /// subagent; and 256 bytes for each open item and for each call that may be pending (rule R9). That is about
    /// what the conversation takes in memory.
    ///
    /// Verification keeps no texts. It has the same bound for the ids that the active run named: messages, calls,
    /// reasoning, activities, steps and subagents. Each counts 256 bytes and the length of its id and owner.
    ///
    /// Stops a conversation from growing without end: by deltas, messages, steps and subagents that open and close,
    /// metadata or results.
    pub max_conversation_bytes: usize,
    /// How many things a run may have open at once: messages, tool calls, reasoning, steps and
    /// subagents. The same bound holds for chunk streams, and for halves of characters that wait (rule E11).
    ///
    /// Stops STARTs without ENDs, and bounds what an error about them lists.
    pub max_open_items: usize,
    /// How many runs are remembered, at least one. The oldest is forgotten first, with its interrupts and the
    /// answers to them.
    ///
    /// Stops a stream of short runs from growing what [`Snapshot::runs`](crate::snapshot::Snapshot::runs)
    /// holds.
    pub max_runs: usize,
}

impl Limits {
    /// 10 MiB: enough for a picture in a data part, and far below the memory of any host.
    pub const DEFAULT_MAX_EVENT_BYTES: usize = 10 * 1024 * 1024;
    /// One for each ten bytes of the longest event: common JSON has fewer.
    pub const DEFAULT_MAX_EVENT_VALUES: usize = 1 << 20;
    /// 16 KiB: an id is mostly shorter than 100 bytes, but some gateways put a signature into it.
    pub const DEFAULT_MAX_ID_BYTES: usize = 16 * 1024;
    /// Four times what most JSON parsers accept.
    pub const DEFAULT_MAX_DEPTH: usize = 512;
    /// 128 MiB: several times what common JSON of the largest default event takes.
    pub const DEFAULT_MAX_DOCUMENT_BYTES: usize = 128 * 1024 * 1024;
    /// 100,000: the slowest operations take some tenths of a second.
    pub const DEFAULT_MAX_PATCH_OPERATIONS: usize = 100_000;
    /// 200,000: more than a person reads.
    pub const DEFAULT_MAX_MESSAGES: usize = 200_000;
    /// 256 MiB: very much text, or some hundreds of pictures.
    pub const DEFAULT_MAX_CONVERSATION_BYTES: usize = 256 * 1024 * 1024;
    /// 100,000: far more than a person can follow, and some tens of megabytes.
    pub const DEFAULT_MAX_OPEN_ITEMS: usize = 100_000;
    /// The last 1,000.
    pub const DEFAULT_MAX_RUNS: usize = 1_000;
    /// The deepest limit that can be set. To read, compare, write and drop a value nested so deep takes up to
    /// 1.2 MB of stack in a build without optimization, out of the default 2 MiB of a thread; the rest is for
    /// the application.
    pub const CEILING_DEPTH: usize = 512;

    pub(crate) fn depth(&self) -> usize {
        self.max_depth.min(Self::CEILING_DEPTH)
    }

    /// The deepest nesting of a member of an event.
    pub(crate) fn member_depth(&self) -> usize {
        self.depth().saturating_sub(1)
    }

    /// The longest event whose values need not be counted, because so few bytes cannot exceed a bound.
    pub(crate) fn unquestioned_bytes(&self) -> usize {
        // A value takes two bytes at least: itself, and what comes before or after it.
        self.max_event_bytes.min(self.max_event_values.saturating_mul(2)).min(self.max_id_bytes)
    }
}

impl Limits {
    const DEFAULT: Self = Self {
        max_event_bytes: Self::DEFAULT_MAX_EVENT_BYTES,
        max_event_values: Self::DEFAULT_MAX_EVENT_VALUES,
        max_id_bytes: Self::DEFAULT_MAX_ID_BYTES,
        max_depth: Self::DEFAULT_MAX_DEPTH,
        max_document_bytes: Self::DEFAULT_MAX_DOCUMENT_BYTES,
        max_patch_operations: Self::DEFAULT_MAX_PATCH_OPERATIONS,
        max_messages: Self::DEFAULT_MAX_MESSAGES,
        max_conversation_bytes: Self::DEFAULT_MAX_CONVERSATION_BYTES,
        max_open_items: Self::DEFAULT_MAX_OPEN_ITEMS,
        max_runs: Self::DEFAULT_MAX_RUNS,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Limits as each stage holds them: a pointer, and nothing for the defaults.
#[derive(Clone, Default)]
pub(crate) struct HeldLimits(Option<Arc<Limits>>);

impl Deref for HeldLimits {
    type Target = Limits;

    #[inline]
    fn deref(&self) -> &Limits {
        static DEFAULT: Limits = Limits::DEFAULT;
        self.0.as_deref().unwrap_or(&DEFAULT)
    }
}

impl From<Limits> for HeldLimits {
    fn from(limits: Limits) -> Self {
        Self((limits != Limits::DEFAULT).then(|| Arc::new(limits)))
    }
}

impl fmt::Debug for HeldLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
