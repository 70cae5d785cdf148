//! `Timing`: when the events of a replay come.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use serde::Deserialize;

use crate::raw::{Raw, RawItem};

/// The wait before an event, from the event and the wait that was recorded.
type Wait = Arc<dyn Fn(&RawItem, Duration) -> Duration + Send + Sync>;

/// When the events of a replay come.
///
/// A [recording](crate::record) holds the time at which each event came. If it does not, as a capture
/// made by other means, the events' own `timestamp`s are used; without these there are no waits.
///
/// The waits add up from the first poll: a slow consumer finds the events that came meanwhile, as on a
/// network, and the whole takes as long as it did.
///
/// No wait is longer than [`max_delay`](Timing::max_delay), by default a minute: a recording is not
/// trusted, and may claim that a year passed.
///
/// All but [`immediate`](Timing::immediate) need the timers of a tokio runtime; without them a replay
/// panics when it first has to wait.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use ag_ui_stream::record::Timing;
///
/// let as_it_was = Timing::original();
/// let ten_times_as_fast = Timing::scaled(10.0);
/// let word_by_word = Timing::every(Duration::from_millis(40));
/// let without_the_long_waits = Timing::original().max_delay(Duration::from_secs(2));
/// let slow_at_first = Timing::custom(|event, recorded| match event {
///     ag_ui_stream::RawItem::Event { index: 0, .. } => Duration::from_secs(3),
///     _ => recorded,
/// });
/// ```
#[derive(Clone)]
#[must_use = "a timing does nothing by itself"]
pub struct Timing {
    pace: Pace,
    max_delay: Duration,
}

#[derive(Clone)]
enum Pace {
    Immediate,
    Scaled(f64),
    Every(Duration),
    Custom(Wait),
}

impl Timing {
    /// The default of the longest wait before an event: a minute.
    pub const DEFAULT_MAX_DELAY: Duration = Duration::from_secs(60);

    fn of(pace: Pace) -> Self {
        Self { pace, max_delay: Self::DEFAULT_MAX_DELAY }
    }

    /// As fast as it is read.
    pub fn immediate() -> Self {
        Self::of(Pace::Immediate)
    }

    /// As it was recorded.
    pub fn original() -> Self {
        Self::scaled(1.0)
    }

    /// As it was recorded, `speed` times as fast. Zero, a negative or infinite speed and NaN mean as fast
    /// as it is read.
    pub fn scaled(speed: f64) -> Self {
        Self::of(if speed.is_finite() && speed > 0.0 { Pace::Scaled(speed) } else { Pace::Immediate })
    }

    /// The same wait before each event.
    pub fn every(delay: Duration) -> Self {
        Self::of(Pace::Every(delay))
    }

    /// The wait before each event, from the event and the wait that was recorded.
    pub fn custom(delay: impl Fn(&RawItem, Duration) -> Duration + Send + Sync + 'static) -> Self {
        Self::of(Pace::Custom(Arc::new(delay)))
    }

    /// Sets the longest wait before an event; `None` for no bound.
    pub fn max_delay(self, longest: impl Into<Option<Duration>>) -> Self {
        Self { max_delay: longest.into().unwrap_or(Duration::MAX), ..self }
    }
}

impl fmt::Debug for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Timing");
        match &self.pace {
            Pace::Immediate => shown.field("speed", &f64::INFINITY),
            Pace::Scaled(speed) => shown.field("speed", speed),
            Pace::Every(delay) => shown.field("every", delay),
            Pace::Custom(_) => &mut shown,
        };
        shown.field("max_delay", &self.max_delay).finish_non_exhaustive()
    }
}

/// Computes the waits of one replay.
#[derive(Debug)]
pub(super) struct Waits {
    timing: Timing,
    /// When the event before came, since the recording began.
    came: Duration,
    /// Whether any event had a recorded time.
    told: bool,
    /// The `timestamp` before.
    stamp: Option<f64>,
}

impl Waits {
    pub(super) fn new(timing: Timing) -> Self {
        Self { timing, came: Duration::ZERO, told: false, stamp: None }
    }

    /// The wait before what came at this time; `item` is `None` for the end of the recording.
    pub(super) fn before(&mut self, at: Option<Duration>, item: Option<&RawItem>) -> Duration {
        let delay = match (&self.timing.pace, item) {
            (Pace::Immediate, _) => Duration::ZERO,
            (Pace::Every(delay), Some(_)) => *delay,
            (Pace::Every(_), None) => Duration::ZERO,
            (Pace::Scaled(speed), _) => {
                let speed = *speed;
                let recorded = self.recorded(at, item);
                Duration::try_from_secs_f64(recorded.as_secs_f64() / speed).unwrap_or(Duration::MAX)
            }
            (Pace::Custom(delay), Some(item)) => {
                let delay = Arc::clone(delay);
                delay(item, self.recorded(at, Some(item)))
            }
            (Pace::Custom(_), None) => Duration::ZERO,
        };
        delay.min(self.timing.max_delay)
    }

    fn recorded(&mut self, at: Option<Duration>, item: Option<&RawItem>) -> Duration {
        if let Some(at) = at {
            self.told = true;
            // Saturating: the file may have been reordered.
            return at.saturating_sub(core::mem::replace(&mut self.came, at));
        }
        let Some(stamp) = item.filter(|_| !self.told).and_then(timestamp) else { return Duration::ZERO };
        let before = self.stamp.replace(stamp).unwrap_or(stamp);
        Duration::try_from_secs_f64((stamp - before).max(0.0) / 1_000.0).unwrap_or(Duration::MAX)
    }
}

/// The `timestamp` of an event, in milliseconds, if it has one.
fn timestamp(item: &RawItem) -> Option<f64> {
    #[derive(Deserialize)]
    struct Stamped {
        timestamp: f64,
    }
    match item.raw()? {
        Raw::Text(text) => serde_json::from_str(text).ok(),
        Raw::Bytes(bytes) => serde_json::from_slice(bytes).ok(),
        // Recordings are bytes.
        Raw::Value(_) | Raw::Event(_) => None,
    }
    .map(|stamped: Stamped| stamped.timestamp)
}
