//! Moments as ISO 8601 writes them. A library for dates would be the largest dependency of the crate, and
//! one field needs it.

use std::time::{Duration, SystemTime};

const DAY: i64 = 86_400;

/// The moment that a text says: a date, with or without a time of day, which may have an offset. Without
/// one it is UTC. Both the extended form (`2026-08-21T12:00:00Z`) and the basic one (`20260821T120000Z`);
/// digits of a second after the ninth do not count, and a leap second is the second before it.
///
/// `None` for anything else. A moment before the earliest of the system's clock is the Unix epoch.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let mut rest = Rest(text.as_bytes());
    let (mut seconds, mut nanos) = (rest.date()? * DAY, 0);
    if !rest.0.is_empty() {
        rest.one_of(b"Tt ")?;
        let (of_day, fraction) = rest.time()?;
        seconds += of_day - rest.offset()?;
        nanos = fraction;
    }
    let epoch = SystemTime::UNIX_EPOCH;
    let moment = match u64::try_from(seconds) {
        Ok(seconds) => epoch.checked_add(Duration::new(seconds, nanos))?,
        Err(_) => {
            let second = epoch.checked_sub(Duration::from_secs(seconds.unsigned_abs()));
            second.and_then(|second| second.checked_add(Duration::new(0, nanos))).unwrap_or(epoch)
        }
    };
    rest.0.is_empty().then_some(moment)
}

/// What is left to read.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        bytes.contains(first).then(|| {
            self.0 = rest;
            *first
        })
    }

    fn digit(&mut self) -> Option<i64> {
        self.one_of(b"0123456789").map(|digit| i64::from(digit - b'0'))
    }

    fn two(&mut self) -> Option<i64> {
        Some(self.digit()? * 10 + self.digit()?)
    }

    /// Two digits, no greater than this.
    fn two_to(&mut self, max: i64) -> Option<i64> {
        self.two().filter(|number| *number <= max)
    }

    /// Days since 1970-01-01.
    fn date(&mut self) -> Option<i64> {
        let year = self.two()? * 100 + self.two()?;
        let is_extended = self.one_of(b"-").is_some();
        let month = usize::try_from(self.two_to(12)?).ok()?.checked_sub(1)?;
        if is_extended {
            self.one_of(b"-")?;
        }
        let day = self.two()?;
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let lengths = [31, 28 + i64::from(is_leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        if !(1..=*lengths.get(month)?).contains(&day) {
            return None;
        }
        let years = year - 1;
        let leap_days = years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
        // 719 162 days lie between 0001-01-01 and 1970-01-01.
        Some(years * 365 + leap_days + lengths.iter().take(month).sum::<i64>() + day - 1 - 719_162)
    }

    /// Seconds of the day, and nanoseconds.
    fn time(&mut self) -> Option<(i64, u32)> {
        let mut seconds = self.two_to(23)? * 3_600;
        let is_extended = self.one_of(b":").is_some();
        if !is_extended && !self.0.first().is_some_and(u8::is_ascii_digit) {
            return Some((seconds, 0));
        }
        seconds += self.two_to(59)? * 60;
        let has_seconds =
            if is_extended { self.one_of(b":").is_some() } else { self.0.first().is_some_and(u8::is_ascii_digit) };
        if !has_seconds {
            return Some((seconds, 0));
        }
        seconds += self.two_to(60)?.min(59);
        let (mut nanos, mut unit) = (0, 100_000_000);
        if self.one_of(b".,").is_some() {
            nanos = self.digit()? * unit;
            while let Some(digit) = self.digit() {
                unit /= 10;
                nanos += digit * unit;
            }
        }
        Some((seconds, u32::try_from(nanos).ok()?))
    }

    /// Seconds that the time is ahead of UTC.
    fn offset(&mut self) -> Option<i64> {
        if self.0.is_empty() || self.one_of(b"Zz").is_some() {
            return Some(0);
        }
        let is_behind = self.one_of(b"+-")? == b'-';
        let hours = self.two_to(23)?;
        let minutes = if self.one_of(b":").is_some() || !self.0.is_empty() { self.two_to(59)? } else { 0 };
        let ahead = hours * 3_600 + minutes * 60;
        Some(if is_behind { -ahead } else { ahead })
    }
}
