//! A stopwatch around the part of a workload that counts.

use std::time::{Duration, Instant};

/// How many events go by between two looks at the time.
const BATCH: usize = 32;

/// Times the events of a workload from `timed_from` on, and stops a contender
/// that would take longer than its budget.
#[derive(Debug)]
pub struct Clock {
    timed_from: usize,
    budget: Duration,
    started: Option<Instant>,
    elapsed: Duration,
    measured: usize,
}

impl Clock {
    /// A clock for one repetition.
    pub fn new(timed_from: usize, budget: Duration) -> Self {
        Self { timed_from, budget, started: None, elapsed: Duration::ZERO, measured: 0 }
    }

    /// Feeds the events to a push consumer. The second argument of `feed` says
    /// whether the event is measured; the others only build up the
    /// conversation.
    pub fn drive<'a>(&mut self, events: &'a [String], mut feed: impl FnMut(&'a str, bool)) {
        let (before, measured) = events.split_at(self.timed_from);
        for event in before {
            feed(event, false);
        }
        self.start();
        for batch in measured.chunks(BATCH) {
            for event in batch {
                feed(event, true);
            }
            self.measured += batch.len();
            if self.expired() {
                break;
            }
        }
        self.stop();
    }

    /// Starts measuring, for a consumer that pulls its events itself.
    pub fn start(&mut self) {
        self.started = Some(Instant::now());
    }

    /// Notes how many events a pulling consumer has taken so far; `false` once
    /// it is over budget.
    pub fn go_on(&mut self, measured: usize) -> bool {
        let look = measured / BATCH > self.measured / BATCH;
        self.measured = measured;
        !(look && self.expired())
    }

    /// Stops measuring.
    pub fn stop(&mut self) {
        if let Some(started) = self.started.take() {
            self.elapsed = started.elapsed();
        }
    }

    /// Adds the time of something that belongs to the measured events, but can
    /// only be done after them.
    pub fn also(&mut self, finish: impl FnOnce()) {
        let started = Instant::now();
        finish();
        self.elapsed += started.elapsed();
    }

    /// The index of the first measured event.
    pub fn timed_from(&self) -> usize {
        self.timed_from
    }

    /// How many events were measured.
    pub fn measured(&self) -> usize {
        self.measured
    }

    /// Nanoseconds per measured event.
    pub fn per_event(&self) -> f64 {
        self.elapsed.as_nanos() as f64 / self.measured.max(1) as f64
    }

    fn expired(&self) -> bool {
        self.started.is_some_and(|started| started.elapsed() > self.budget)
    }
}
