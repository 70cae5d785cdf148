use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// A timer that runs while the reader waits.
#[derive(Debug)]
pub(crate) struct Idle {
    limit: Option<Duration>,
    sleep: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

impl Idle {
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self { limit, sleep: None, waiting: false }
    }

    /// Something came.
    pub(crate) fn rest(&mut self) {
        self.waiting = false;
    }

    /// Nothing came: gives the limit once it is over.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Duration> {
        let Some(limit) = self.limit else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep(limit)));
        if !core::mem::replace(&mut self.waiting, true) {
            // Where the clock ends there is no limit.
            let Some(until) = Instant::now().checked_add(limit) else { return Poll::Pending };
            sleep.as_mut().reset(until);
        }
        sleep.as_mut().poll(cx).map(|()| limit)
    }
}
