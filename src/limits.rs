//! `Limits`: the bounds on what bad input can cost.

/// Bounds on the cost of one event, and on what a conversation holds. The safe value is the default, and
/// each field says which attack it stops.
///
/// # The most that is held
/// With the defaults, however long a producer continues, if the application drops the snapshots that it
/// has read:
///
/// | what | at most | by |
/// |---|---|---|
/// | messages, tool calls and runs, with texts, ids, metadata and results | 256 MiB | [`max_conversation_bytes`](Limits::max_conversation_bytes) |
/// | the ids that the active run named, for the S and O rules | 256 MiB | the same |
/// | the state, and the content of all activities | 128 MiB | [`max_document_bytes`](Limits::max_document_bytes) |
/// | unused capacity of buffers | a quarter of these | |
/// | while it is read, the event | 10 MiB and 1,048,576 values | [`max_event_bytes`](Limits::max_event_bytes), [`max_event_values`](Limits::max_event_values) |
///
/// That is 800 MiB for a conversation at every bound at once. A usual one takes a little more than its
/// text. Each conversation has its own bounds: give smaller ones to a server that holds many. A snapshot
/// shares what did not change after it with the next.
///
/// # Beyond a bound
/// An event that leads beyond a bound is [`LimitExceeded`](crate::error::LimitExceeded), with the name and
/// the value of the bound, and the stream ends. Its own text may be in the last snapshot. Three bounds are
/// gentler: a patch beyond them does not apply, with a warning (rules A5 and A6); the oldest run makes room
/// for the newest; the first 100 warnings about an event are given, then the number of the others.
///
/// The conversation from before the stream counts, and is not refused: only what grows beyond a bound is.
///
/// A new bound is not a breaking change: take the others from the default.
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
    /// The most JSON values in one event, itself included, if it comes as text or as a
    /// [`Value`](serde_json::Value).
    ///
    /// Stops an event of two bytes a value, such as `[0,0,0,…]`, from taking a hundred times its length.
    pub max_event_values: usize,
    /// The longest id accepted, in bytes; also the longest name of a tool or of a speaker in a chunk that
    /// opens an item. Values below [`Limits::FLOOR_ID_BYTES`] count as that.
    ///
    /// Stops ids as long as an event, which every item of a run would keep.
    pub max_id_bytes: usize,
    /// The deepest nesting of arrays and objects accepted; values above
    /// [`Limits::CEILING_DEPTH`] count as that.
    ///
    /// Stops a row of brackets from exhausting the stack. A patch that would nest a document deeper
    /// than an event could bring it does not apply (rule A6).
    pub max_depth: usize,
    /// The most bytes of the state and the content of all activities together. Each value counts 32, each
    /// text and key its length and 32, each array and object 96, about what they take in memory.
    ///
    /// Stops a patch that copies its own copies from doubling a document with each operation. A patch
    /// beyond it does not apply (rules A5 and A6); a snapshot beyond it is an error.
    pub max_document_bytes: usize,
    /// The most operations in one patch. A patch with more does not apply (rules A5 and A6).
    ///
    /// Stops an event that keeps a processor busy: each operation costs a logarithm, and all of a patch are
    /// applied in one poll.
    pub max_patch_operations: usize,
    /// The most messages in the conversation.
    ///
    /// Stops messages without text, and the work of the application for each of them.
    pub max_messages: usize,
    /// The most bytes of the conversation beside documents: the length of each text, id, name and argument;
    /// metadata and results as documents count; 1 KiB for each message, tool call, run and subagent; 256 for
    /// each open item, part of a message, and tool call that the active run named (rule R9). About what they
    /// take in memory, or more.
    ///
    /// Verification, which holds no texts, applies the same bound to the ids that the active run named, of
    /// messages, calls, reasoning, activities, steps and subagents: 256 bytes for each, and the length of its
    /// id and owner.
    ///
    /// Stops a conversation that grows for ever: by deltas, messages, metadata, results, or by steps and
    /// subagents that open and close.
    pub max_conversation_bytes: usize,
    /// The most items of a run that are open at once: messages, tool calls, reasoning, steps and subagents
    /// together. Also the most open chunk streams, and the most halves of characters that wait for the other
    /// half (rule E11).
    ///
    /// Stops STARTs without ENDs; an error that lists the open items is bounded too.
    pub max_open_items: usize,
    /// The most runs in [`Snapshot::runs`](crate::snapshot::Snapshot::runs), at least one. The oldest makes
    /// room for the newest; the interrupts that it asked about are then forgotten too.
    ///
    /// Stops an endless row of short runs.
    pub max_runs: usize,
}

impl Limits {
    /// 10 MiB: room for a picture in a data part, far below the memory of any host.
    pub const DEFAULT_MAX_EVENT_BYTES: usize = 10 * 1024 * 1024;
    /// 1,048,576: usual JSON has one value for ten bytes or more.
    pub const DEFAULT_MAX_EVENT_VALUES: usize = 1 << 20;
    /// 16 KiB: most ids are shorter than 100 bytes, but some gateways put a signature into them.
    pub const DEFAULT_MAX_ID_BYTES: usize = 16 * 1024;
    /// Four times what most JSON parsers accept.
    pub const DEFAULT_MAX_DEPTH: usize = 512;
    /// 128 MiB: several times what common JSON of the largest default event takes.
    pub const DEFAULT_MAX_DOCUMENT_BYTES: usize = 128 * 1024 * 1024;
    /// 100,000: less than a second of work.
    pub const DEFAULT_MAX_PATCH_OPERATIONS: usize = 100_000;
    /// 200,000: more than anyone reads.
    pub const DEFAULT_MAX_MESSAGES: usize = 200_000;
    /// 256 MiB: a library of text, or some hundreds of pictures.
    pub const DEFAULT_MAX_CONVERSATION_BYTES: usize = 256 * 1024 * 1024;
    /// 100,000: far more than anyone follows.
    pub const DEFAULT_MAX_OPEN_ITEMS: usize = 100_000;
    /// The last 1,000.
    pub const DEFAULT_MAX_RUNS: usize = 1_000;
    /// The smallest bound on ids that can be set. Shorter ids are not measured.
    pub const FLOOR_ID_BYTES: usize = 128;
    /// The deepest limit that can be set. To read, compare, write and drop a value nested so deep takes up to
    /// 1.2 MB of stack in a build without optimization, out of the default 2 MiB of a thread; the rest is for
    /// the application.
    pub const CEILING_DEPTH: usize = 512;

    pub(crate) const DEFAULT: Self = Self {
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

    pub(crate) fn depth(&self) -> usize {
        self.max_depth.min(Self::CEILING_DEPTH)
    }

    /// The deepest nesting of a member of an event.
    pub(crate) fn member_depth(&self) -> usize {
        self.depth().saturating_sub(1)
    }

    pub(crate) fn id_bytes(&self) -> usize {
        self.max_id_bytes.max(Self::FLOOR_ID_BYTES)
    }

    /// The longest event that need not be measured: whatever it holds, it is within the bounds.
    pub(crate) fn unquestioned_bytes(&self) -> usize {
        // A value takes two bytes at least: itself, and a separator before or after it.
        self.max_event_bytes.min(self.max_event_values.saturating_mul(2)).min(self.id_bytes())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
