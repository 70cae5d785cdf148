//! The bounds that keep bad input from costing more than it should.

/// Bounds on what one event may cost, and on what a few bytes of events can make of what is held. The
/// safe value is the default.
///
/// What the crate holds beyond the events in flight is the conversation itself and, until the run
/// ends, one entry for each item that the run opened; both grow only with what the producer sent, but
/// for the documents that patches copy, which have a bound of their own.
///
/// A bound that is added is no breaking change: take the others from the default.
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
    /// How much the state and the content of all activities may take together, in bytes: 32 for each
    /// value and its length for a text or a key, and beside that 32 for each text and key and 96 for
    /// each array and object, about what they take in memory.
    ///
    /// Stops a patch that copies what it copied from doubling a document with each operation. One that
    /// would go beyond does not apply (rules A5 and A6); a snapshot that would is an error.
    pub max_document_bytes: usize,
}

impl Limits {
    /// 10 MiB: room for a picture in a data part, far below the memory of any host.
    pub const DEFAULT_MAX_EVENT_BYTES: usize = 10 * 1024 * 1024;
    /// Four times what most JSON parsers accept.
    pub const DEFAULT_MAX_DEPTH: usize = 512;
    /// 128 MiB: several times what an event of the default size makes of common JSON.
    pub const DEFAULT_MAX_DOCUMENT_BYTES: usize = 128 * 1024 * 1024;
    /// The deepest limit that can be set. To read, compare, write and drop what is nested so deep takes
    /// up to 1.2 MB of stack in a build without optimization, out of the 2 MiB that a thread has unless
    /// someone says otherwise; the rest is the application's.
    pub const CEILING_DEPTH: usize = 512;

    pub(crate) fn depth(&self) -> usize {
        self.max_depth.min(Self::CEILING_DEPTH)
    }

    /// How deep a value may be nested that is a member of an event.
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
