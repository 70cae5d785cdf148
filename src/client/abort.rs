//! `AbortHandle`: ends runs of the clients from elsewhere.

use core::fmt;
use std::sync::Arc;

use tokio::sync::watch;

/// Ends the runs that it belongs to, from anywhere: they end with the error `Aborted`, and their
/// connection is closed.
///
/// A clone is the same handle. Dropping it does nothing.
#[derive(Clone)]
pub struct AbortHandle(Arc<watch::Sender<bool>>);

impl AbortHandle {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Ends the runs, for ever: a run that begins later ends at once.
    pub fn abort(&self) {
        self.0.send_replace(true);
    }

    /// Whether [`abort`](AbortHandle::abort) was called.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the call of [`abort`](AbortHandle::abort).
    pub(super) async fn aborted(self) {
        // The sender is alive as long as this is, so there is no error.
        let _ = self.0.subscribe().wait_for(|aborted| *aborted).await;
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortHandle").field("is_aborted", &self.is_aborted()).finish()
    }
}
