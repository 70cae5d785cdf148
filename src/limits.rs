//! `Limits`: the bounds on what bad input can cost.

/// Bounds on the cost of one event, and on how far a few bytes of events can grow the documents. The safe
/// value is the default.
///
/// Beside the events in flight the crate holds the conversation and, until the run ends, one entry for
/// each item that the run opened. Both grow only with the bytes that the producer sent, except for
/// documents that patches copy, which have a bound of their own.
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
}

impl Limits {
    /// 10 MiB: room for a picture in a data part, far below the memory of any host.
    pub const DEFAULT_MAX_EVENT_BYTES: usize = 10 * 1024 * 1024;
    /// Four times what most JSON parsers accept.
    pub const DEFAULT_MAX_DEPTH: usize = 512;
    /// 128 MiB: several times what common JSON of the largest default event takes.
    pub const DEFAULT_MAX_DOCUMENT_BYTES: usize = 128 * 1024 * 1024;
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
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_event_bytes: Self::DEFAULT_MAX_EVENT_BYTES,
            max_depth: Self::DEFAULT_MAX_DEPTH,
            max_document_bytes: Self::DEFAULT_MAX_DOCUMENT_BYTES,
        }
    }
}
