//! Timers that fire even if a source is always ready.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// A point in time to wait for.
///
/// It asks the clock: tokio's own timer does not fire in a task that has used up its cooperative budget,
/// and a source that is always ready uses it up in each poll.
#[derive(Debug)]
pub(crate) struct Timer {
    until: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    pub(crate) fn new(until: Instant) -> Self {
        Self { until, sleep: None }
    }

    pub(crate) fn reset(&mut self, until: Instant) {
        self.until = until;
    }

    /// Ready once the time has come; otherwise the task is woken then.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.until {
            return Poll::Ready(());
        }
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(self.until)));
        if sleep.deadline() != self.until {
            sleep.as_mut().reset(self.until);
        }
        // If the budget is used up, this wakes the task at once, with a new budget.
        sleep.as_mut().poll(cx)
    }
}

/// A timer that runs while the reader waits.
#[derive(Debug)]
pub(crate) struct Idle {
    limit: Option<Duration>,
    timer: Option<Timer>,
    waiting: bool,
}

impl Idle {
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self { limit, timer: None, waiting: false }
    }

    /// Stops the timer: something came.
    pub(crate) fn rest(&mut self) {
        self.waiting = false;
    }

    /// Starts the timer if it is stopped, as nothing came. Gives the limit once it is over.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Duration> {
        let Some(limit) = self.limit else { return Poll::Pending };
        if !core::mem::replace(&mut self.waiting, true) {
            // Beyond the end of the clock there is no limit.
            let until = Instant::now().checked_add(limit);
            self.timer = until.map(|until| match self.timer.take() {
                Some(mut timer) => {
                    timer.reset(until);
                    timer
                }
                None => Timer::new(until),
            });
        }
        match &mut self.timer {
            Some(timer) => timer.poll(cx).map(|()| limit),
            None => Poll::Pending,
        }
    }
}
