//! The keywords of the recording format, and the types of what is read. [`record`](crate::record)
//! describes the format.

use core::fmt;
use core::time::Duration;

use crate::error::Error;
use crate::raw::RawItem;

/// The comment that a recording begins with. After it, and only there, comments are read.
pub(super) const HEADER: &str = "ag-ui-recording 1";

/// The keywords for how the source ended.
pub(super) const END: &str = "end";
pub(super) const TRUNCATED: &str = "truncated";
pub(super) const FAILED: &str = "failed";

/// The comment that tells which line ends of the next event were no LF.
pub(super) const LINE_ENDS: &str = "line-ends";

/// The comment that holds a warning, for whoever reads the file.
pub(super) const WARNING: &str = "warning";

/// An event of a recording, the output of a [`RecordingDecoder`](super::RecordingDecoder).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Recorded {
    /// When it came, since the recording began, if recorded.
    pub at: Option<Duration>,
    /// The line that it begins on, counted from 1.
    pub line: u64,
    /// The event, or a warning about a skipped frame; or the error that ended the source, which is the
    /// last output.
    pub item: Result<RawItem, Error<RecordedError>>,
}

/// The text of the error that ended a recorded source.
///
/// In a replay it is the error within [`AgentError`](crate::agent::AgentError):
/// `error.downcast_ref::<RecordedError>()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedError {
    pub(super) message: String,
}

impl RecordedError {
    /// The text of the error.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for RecordedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for RecordedError {}
