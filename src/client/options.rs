//! The options of both clients for how an answer is read.

use core::time::Duration;

use crate::limits::Limits;
use crate::options::Options;

/// The bounds of the decoder, and the timers of any answer.
#[derive(Clone, Debug)]
pub(super) struct Common {
    pub(super) options: Options,
    /// For the answer to begin, and between any two signs of life.
    pub(super) silence: Option<Duration>,
    pub(super) no_event: Option<Duration>,
    pub(super) deadline: Option<Duration>,
    pub(super) after_run: Option<Duration>,
}

impl Common {
    /// Two minutes.
    pub(super) const SILENCE: Duration = Duration::from_secs(2 * 60);
    /// Ten minutes.
    pub(super) const NO_EVENT: Duration = Duration::from_secs(10 * 60);

    pub(super) fn new(after_run: Option<Duration>) -> Self {
        Self {
            options: Options::new(),
            silence: Some(Self::SILENCE),
            no_event: Some(Self::NO_EVENT),
            deadline: None,
            after_run,
        }
    }

    pub(super) fn limits(&self) -> Limits {
        self.options.limits.unwrap_or_default()
    }
}

/// The methods of the options of both clients.
macro_rules! common_options {
    ($options:ident) => {
        impl $options {
            /// The default of the longest time without an event: ten minutes, as an agent may think for
            /// long.
            pub const DEFAULT_NO_EVENT: Duration = Common::NO_EVENT;

            /// How the events are read, by the decoder and by every stage after it: bounds, repairs,
            /// checks of ids. A stage that is told otherwise keeps to that; whose bound was met stands in
            /// the error ([`LimitExceeded::stage`](crate::error::LimitExceeded::stage)).
            pub fn read_with(mut self, options: Options) -> Self {
                self.common.options = options;
                self
            }

            /// The longest time without an event, counted while the reader waits, whatever other bytes
            /// come: then [`ClientError::NoEvent`](crate::client::ClientError::NoEvent). `None` for no
            /// limit.
            pub fn no_event_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
                self.common.no_event = limit.into();
                self
            }

            /// The longest time for a whole run, from its start: then
            /// [`ClientError::Deadline`](crate::client::ClientError::Deadline). It ends healthy runs too, so
            /// there is none by default.
            pub fn deadline(mut self, limit: impl Into<Option<Duration>>) -> Self {
                self.common.deadline = limit.into();
                self
            }

            /// How long to wait for more after an event that ends a run: a late `RUN_ERROR`, a further
            /// run (rule R4), or the server closing the connection, which not all do. Then the stream ends
            /// normally, and the connection is closed.
            ///
            /// Zero ends the stream with the run: it takes only what has arrived, so a late `RUN_ERROR`
            /// after a `RUN_FINISHED` is not seen. `None` waits until the server closes the connection; if
            /// it never does, the error is [`Silent`](crate::client::ClientError::Silent), after the run.
            ///
            /// For any other source there is [`take_run`](crate::EventStreamExt::take_run).
            pub fn after_run(mut self, limit: impl Into<Option<Duration>>) -> Self {
                self.common.after_run = limit.into();
                self
            }
        }

        impl Default for $options {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}

pub(super) use common_options;
