//! Recordings as bytes: the format is described in [`record`](crate::record).

use core::fmt;
use core::time::Duration;

use crate::error::Error;
use crate::wire::RawItem;

mod array;
mod read;
mod write;

pub(crate) use read::RecordingDecoder;
pub(crate) use write::RecordingWriter;

/// The comment that a recording begins with. Behind it, and only there, comments are read.
const HEADER: &str = "ag-ui-recording 1";

/// How the source of a recording ended, as it is written and read.
const END: &str = "end";
const TRUNCATED: &str = "truncated";
const FAILED: &str = "failed";

/// The comment that tells which line ends of the next event were no LF.
const LINE_ENDS: &str = "line-ends";

/// The comment that holds a warning, for whoever reads the file.
const WARNING: &str = "warning";

/// What is read of a recording, with the time at which it came if that is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recorded {
    pub(crate) at: Option<Duration>,
    /// An error is the last.
    pub(crate) item: Result<RawItem, Error<RecordedError>>,
}

/// An error that a recorded source ended with: its text, as it was recorded.
///
/// In a replay it is the error within [`AgentError`](crate::AgentError):
/// `error.downcast_ref::<RecordedError>()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedError {
    message: String,
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
