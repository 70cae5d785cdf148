//! The answers to the interrupts of a thread: <https://docs.ag-ui.com/spec/1.0/basic/patterns/interrupt-resume>.

use core::error::Error as StdError;
use core::fmt;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;

use crate::event::Interrupt;
use crate::id::InterruptId;
use crate::rule::Rule;
use crate::run_input::{ResumeEntry, ResumeStatus};
use crate::snapshot::{Run, RunOutcome, Snapshot};

/// The answers to interrupts, for the [`resume`](crate::RunAgentInput::resume) of the next run. By rule
/// T4 each interrupt is answered or abandoned, once; an expired one can only be abandoned.
///
/// [`Snapshot::resume`] makes one. The caller provides the time.
///
/// # Cost
/// A look-up for each answer.
///
/// # Examples
/// ```
/// use std::time::SystemTime;
///
/// use ag_ui_stream::event::Interrupt;
/// use ag_ui_stream::input::{Resume, ResumeError};
/// use serde_json::json;
///
/// let interrupts = [Interrupt::new("deploy", "approval"), Interrupt::new("notify", "approval")];
/// let mut resume = Resume::new(interrupts);
/// resume.resolve("deploy", json!({"approved": true}), SystemTime::now())?;
/// assert!(matches!(resume.clone().into_entries(), Err(ResumeError::Missing { .. })));
///
/// resume.cancel("notify")?;
/// let entries = resume.into_entries()?;
/// assert_eq!(entries.len(), 2);
/// # Ok::<(), ResumeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Resume {
    interrupts: Arc<[Interrupt]>,
    /// The index of each interrupt; of those that share an id, that of the first.
    places: HashMap<InterruptId, usize>,
    /// By index of the interrupt.
    entries: Vec<Option<ResumeEntry>>,
}

impl Resume {
    /// For these interrupts, none of them answered yet.
    #[must_use]
    pub fn new(interrupts: impl Into<Arc<[Interrupt]>>) -> Self {
        let interrupts = interrupts.into();
        let mut places = HashMap::with_capacity(interrupts.len());
        for (place, interrupt) in interrupts.iter().enumerate() {
            places.entry(interrupt.id.clone()).or_insert(place);
        }
        Self { entries: vec![None; interrupts.len()], interrupts, places }
    }

    /// Checks answers that were made elsewhere by the same rule.
    ///
    /// # Errors
    /// The first that [`insert`](Resume::insert) or [`into_entries`](Resume::into_entries) would
    /// give.
    pub fn check(
        interrupts: impl Into<Arc<[Interrupt]>>,
        entries: &[ResumeEntry],
        now: SystemTime,
    ) -> Result<(), ResumeError> {
        let mut resume = Self::new(interrupts);
        entries.iter().try_for_each(|entry| resume.insert(entry.clone(), now))?;
        resume.into_entries().map(drop)
    }

    /// The interrupts that have no answer yet, in the order of the run.
    pub fn open(&self) -> impl Iterator<Item = &Interrupt> {
        self.interrupts.iter().enumerate().filter_map(|(place, interrupt)| {
            let is_first = self.places.get(&interrupt.id) == Some(&place);
            let is_open = self.entries.get(place).is_some_and(Option::is_none);
            (is_first && is_open).then_some(interrupt)
        })
    }

    /// Answers an interrupt; the payload may be `None`.
    ///
    /// # Errors
    /// [`Unknown`](ResumeError::Unknown), [`Repeated`](ResumeError::Repeated),
    /// [`Expired`](ResumeError::Expired) (rule T4); nothing is changed then.
    pub fn resolve(
        &mut self,
        id: impl Into<InterruptId>,
        payload: impl Into<Option<Value>>,
        now: SystemTime,
    ) -> Result<(), ResumeError> {
        let mut entry = ResumeEntry::new(id, ResumeStatus::Resolved);
        entry.payload = payload.into();
        self.insert(entry, now)
    }

    /// Abandons an interrupt, expired or not.
    ///
    /// # Errors
    /// [`Unknown`](ResumeError::Unknown), [`Repeated`](ResumeError::Repeated) (rule T4).
    pub fn cancel(&mut self, id: impl Into<InterruptId>) -> Result<(), ResumeError> {
        self.insert(ResumeEntry::new(id, ResumeStatus::Cancelled), SystemTime::UNIX_EPOCH)
    }

    /// Abandons every interrupt that has no answer yet.
    pub fn cancel_rest(&mut self) {
        for (entry, interrupt) in self.entries.iter_mut().zip(&*self.interrupts) {
            entry.get_or_insert_with(|| ResumeEntry::new(interrupt.id.clone(), ResumeStatus::Cancelled));
        }
    }

    /// Adds an answer as it is, such as one with metadata.
    ///
    /// # Errors
    /// [`Unknown`](ResumeError::Unknown), [`Repeated`](ResumeError::Repeated),
    /// [`Expired`](ResumeError::Expired) (rule T4); nothing is changed then.
    pub fn insert(&mut self, entry: ResumeEntry, now: SystemTime) -> Result<(), ResumeError> {
        let interrupt_id = || entry.interrupt_id.clone();
        let place = self.places.get(&entry.interrupt_id).copied();
        let (Some(interrupt), Some(held)) =
            (place.and_then(|place| self.interrupts.get(place)), place.and_then(|place| self.entries.get_mut(place)))
        else {
            return Err(ResumeError::Unknown { interrupt_id: interrupt_id() });
        };
        if held.is_some() {
            return Err(ResumeError::Repeated { interrupt_id: interrupt_id() });
        }
        if entry.status == ResumeStatus::Resolved && interrupt.is_expired(now) {
            let expires_at = interrupt.expires_at.clone().unwrap_or_default();
            return Err(ResumeError::Expired { interrupt_id: interrupt_id(), expires_at });
        }
        *held = Some(entry);
        Ok(())
    }

    /// The answers, in the order of the interrupts.
    ///
    /// # Errors
    /// [`Missing`](ResumeError::Missing) (rule T4).
    pub fn into_entries(self) -> Result<Vec<ResumeEntry>, ResumeError> {
        let missing: Vec<_> = self.open().map(|interrupt| interrupt.id.clone()).collect();
        if !missing.is_empty() {
            return Err(ResumeError::Missing { interrupt_ids: missing });
        }
        let first = |(place, entry): (usize, Option<ResumeEntry>)| {
            entry.filter(|entry| self.places.get(&entry.interrupt_id) == Some(&place))
        };
        Ok(self.entries.into_iter().enumerate().filter_map(first).collect())
    }
}

impl Run {
    /// The interrupts of this run; none if its outcome is another. [`Snapshot::resume`] has those of all
    /// runs.
    #[must_use]
    pub fn resume(&self) -> Resume {
        match &self.outcome {
            RunOutcome::Interrupt { interrupts, .. } => Resume::new(Arc::clone(interrupts)),
            _ => Resume::new([]),
        }
    }
}

impl Snapshot {
    /// The interrupts that the next run has to answer (rule T4): all of the thread to which no later run
    /// was given an answer, in the order asked. One that is asked again counts from the last time.
    ///
    /// The answers given to a run are taken from the input that its RUN_STARTED repeats. So a run
    /// without that input leaves earlier interrupts open, even if it ends in success. O(runs).
    #[must_use]
    pub fn resume(&self) -> Resume {
        let mut open: Vec<Interrupt> = Vec::new();
        for run in self.runs() {
            let answers = run.resume.as_deref().unwrap_or_default();
            open.retain(|interrupt| answers.iter().all(|answer| answer.interrupt_id != interrupt.id));
            if let RunOutcome::Interrupt { interrupts, .. } = &run.outcome {
                open.retain(|before| interrupts.iter().all(|interrupt| interrupt.id != before.id));
                open.extend(interrupts.iter().cloned());
            }
        }
        Resume::new(open)
    }
}

impl Interrupt {
    /// When it expires; `None` for never, and for an invalid ISO 8601 time. A time without an offset
    /// is UTC. A time before the earliest of the system's clock gives the Unix epoch.
    #[must_use]
    pub fn expires(&self) -> Option<SystemTime> {
        let text = self.expires_at.as_deref()?;
        let time = text.parse::<jiff::Timestamp>().or_else(|_| {
            text.parse::<jiff::civil::DateTime>().and_then(|time| jiff::tz::TimeZone::UTC.to_timestamp(time))
        });
        let since_epoch = time.ok()?.as_duration();
        // Not `SystemTime::from`: on some systems it panics for times before their first instant.
        if since_epoch.is_negative() {
            Some(SystemTime::UNIX_EPOCH.checked_sub(since_epoch.unsigned_abs()).unwrap_or(SystemTime::UNIX_EPOCH))
        } else {
            SystemTime::UNIX_EPOCH.checked_add(since_epoch.unsigned_abs())
        }
    }

    /// Whether it can no longer be answered (rule T4).
    #[must_use]
    pub fn is_expired(&self, now: SystemTime) -> bool {
        self.expires().is_some_and(|time| time <= now)
    }
}

/// Why answers do not fit the interrupts of a run (rule T4).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResumeError {
    /// The run did not ask this.
    Unknown {
        /// What was answered.
        interrupt_id: InterruptId,
    },
    /// It has an answer already.
    Repeated {
        /// What was answered.
        interrupt_id: InterruptId,
    },
    /// It can only be abandoned now.
    Expired {
        /// What was answered.
        interrupt_id: InterruptId,
        /// When it lapsed, as the producer wrote it.
        expires_at: Arc<str>,
    },
    /// They are neither answered nor abandoned.
    Missing {
        /// Those that lack an answer, in the order of the run.
        interrupt_ids: Vec<InterruptId>,
    },
}

impl ResumeError {
    /// The rule that was broken: T4.
    #[must_use]
    pub fn rule(&self) -> Rule {
        Rule::T4
    }
}

impl fmt::Display for ResumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = self.rule();
        match self {
            ResumeError::Unknown { interrupt_id } => {
                write!(f, "{rule}: interrupt {:?} is unknown to the run", interrupt_id.as_str())
            }
            ResumeError::Repeated { interrupt_id } => {
                write!(f, "{rule}: interrupt {:?} has an answer already", interrupt_id.as_str())
            }
            ResumeError::Expired { interrupt_id, expires_at } => {
                write!(
                    f,
                    "{rule}: interrupt {:?} expired at {expires_at}: it can only be cancelled",
                    interrupt_id.as_str()
                )
            }
            ResumeError::Missing { interrupt_ids } => {
                write!(f, "{rule}: neither resolved nor cancelled:")?;
                let mut separator = "";
                interrupt_ids.iter().try_for_each(|id| {
                    write!(f, "{} interrupt {:?}", std::mem::replace(&mut separator, ","), id.as_str())
                })
            }
        }
    }
}

impl StdError for ResumeError {}
