//! `Options`: how a stream is read. Every place that reads a stream takes this one type.

use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::id::IdGenerator;
use crate::limits::Limits;
use crate::message::Message;
use crate::run_input::RunAgentInput;
use crate::shared::Document;

mod repairs;

pub use repairs::{Repair, Repairs, UnknownRepair};

/// How a stream is read: bounds, checks, repairs, and the conversation from before it. Every place that
/// reads one takes this: the combinators (`updates_with`), agents
/// ([`AgentExt`](crate::AgentExt)), clients, and [`Pipeline`](crate::machine::Pipeline).
///
/// An option that is not set here is taken from the source
/// ([`RawItem::Options`](crate::RawItem::Options)): a client passes its own options on, an agent the
/// input of its run. If the source does not set it either, it is the default. So a bound is set once, in
/// any of these places.
///
/// ```
/// use ag_ui_stream::id::SequentialIds;
/// use ag_ui_stream::machine::IdChecks;
/// use ag_ui_stream::{Limits, Options};
///
/// let pipeline = Options::new()
///     .id_checks(IdChecks::Reject)
///     .limits(Limits { max_depth: 64, ..Limits::default() })
///     .ids(SequentialIds::new("id-"))
///     .build();
/// assert!(pipeline.snapshot().messages().is_empty());
/// ```
#[derive(Clone, Default, PartialEq)]
#[must_use = "options do nothing by themselves"]
pub struct Options {
    pub(crate) limits: Option<Limits>,
    pub(crate) id_checks: Option<IdChecks>,
    pub(crate) repairs: Option<Repairs>,
    /// Whether there is a compatibility boundary.
    pub(crate) upgrade: Option<bool>,
    pub(crate) ids: Option<SharedIds>,
    pub(crate) history: Option<Vec<Message>>,
    pub(crate) state: Option<Document>,
}

impl Options {
    /// No option set: the defaults, unless the source sets others.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bounds on what one event may cost and on what the conversation may hold.
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits: Some(limits), ..self }
    }

    /// Whether a breach of rule R10 is a warning or an error.
    pub fn id_checks(self, id_checks: IdChecks) -> Self {
        Self { id_checks: Some(id_checks), ..self }
    }

    /// The faults of producers that are to be repaired before verification, each with a warning
    /// (rules X1, X2, X3, X5: [`Repairer`](crate::machine::Repairer)). The default is none.
    ///
    /// With [`Repair::ResultAfterFinish`] a RUN_FINISHED is delivered when the stream has ended or the
    /// next run begins. If the source fails before that, the snapshot has the outcome of the run, but no
    /// update tells it (rule R8a). [`Repair::IgnoreFrames`] is done by the decoder: a client with these
    /// options gives it to its decoder; give a decoder of your own the same set.
    pub fn repairs(self, repairs: impl Into<Repairs>) -> Self {
        Self { repairs: Some(repairs.into()), ..self }
    }

    /// Sets where the ids of translated events come from (rule B1), and turns the compatibility boundary
    /// on, even if it was turned off before. Clones of the options share the generator.
    pub fn ids(self, ids: impl IdGenerator + 'static) -> Self {
        Self { ids: Some(SharedIds(Arc::new(Mutex::new(ids)))), upgrade: Some(true), ..self }
    }

    /// Turns the compatibility boundary (rules B1 to B3) off: retired shapes are then unknown or
    /// malformed.
    pub fn without_upgrade(self) -> Self {
        Self { ids: None, upgrade: Some(false), ..self }
    }

    /// The conversation from before the stream, for assembly. Verification is only told that there is one,
    /// so that a call is not taken to make a message that exists already (rule O4).
    pub fn history(self, messages: impl IntoIterator<Item = Message>) -> Self {
        Self { history: Some(messages.into_iter().collect()), ..self }
    }

    /// The state from before the stream (rule A6), for assembly.
    pub fn state(self, state: impl Into<Document>) -> Self {
        Self { state: Some(state.into()), ..self }
    }

    /// The conversation and the state from before the stream, taken from the input of its run:
    /// [`history`](Options::history) and [`state`](Options::state) in one. The stream of an
    /// [`Agent`](crate::agent::Agent) sets this itself. Costs a clone of each message, which copies no text,
    /// and a copy of the state.
    ///
    /// ```
    /// use ag_ui_stream::message::UserMessage;
    /// use ag_ui_stream::{Options, RunAgentInput};
    ///
    /// let input = RunAgentInput::new("thread", "run", [UserMessage::new("m", "Hello").into()]);
    /// let pipeline = Options::new().input(&input).build();
    /// assert_eq!(pipeline.snapshot().messages().len(), 1);
    /// ```
    pub fn input(self, input: &RunAgentInput) -> Self {
        let options = self.history(input.messages.iter().cloned());
        match &input.state {
            Some(state) => options.state(state),
            None => options,
        }
    }

    /// These options; where one is not set, that of `others`.
    pub(crate) fn or(self, others: Self) -> Self {
        Self {
            limits: self.limits.or(others.limits),
            id_checks: self.id_checks.or(others.id_checks),
            repairs: self.repairs.or(others.repairs),
            ids: self.ids.or(if self.upgrade.is_none() { others.ids } else { None }),
            upgrade: self.upgrade.or(others.upgrade),
            history: self.history.or(others.history),
            state: self.state.or(others.state),
        }
    }

    /// The limits of a stage: its own, or those that the source sets if its own are the defaults.
    pub(crate) fn limits_over(&self, own: Limits) -> Limits {
        self.limits.filter(|_| own == Limits::default()).unwrap_or(own)
    }

    /// The same options without history and state.
    pub(crate) fn without_conversation(&self) -> Self {
        let (limits, id_checks, repairs, upgrade) = (self.limits, self.id_checks, self.repairs, self.upgrade);
        Self { limits, id_checks, repairs, upgrade, ids: self.ids.clone(), history: None, state: None }
    }

    /// The options that the stream of a run sets by its input: none if that begins a thread.
    #[cfg(feature = "stream")]
    pub(crate) fn of_run(input: &RunAgentInput) -> Self {
        let is_first = input.messages.is_empty() && input.state.is_none();
        if is_first { Self::new() } else { Self::new().input(input) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Shows the options that are set; of the history only its length.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Options");
        if let Some(limits) = &self.limits {
            shown.field("limits", limits);
        }
        if let Some(id_checks) = &self.id_checks {
            shown.field("id_checks", id_checks);
        }
        if let Some(repairs) = &self.repairs {
            shown.field("repairs", repairs);
        }
        if let Some(upgrade) = &self.upgrade {
            shown.field("upgrade", upgrade);
        }
        if let Some(history) = &self.history {
            shown.field("messages", &history.len());
        }
        shown.finish_non_exhaustive()
    }
}

/// A generator of ids that clones share.
#[derive(Clone)]
pub(crate) struct SharedIds(Arc<Mutex<dyn IdGenerator>>);

impl IdGenerator for SharedIds {
    fn next_id(&mut self) -> String {
        // A generator that panicked may be used again: it only gives strings.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next_id()
    }
}

impl PartialEq for SharedIds {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Whether a breach of rule R10 is a warning or an error. AG-UI 1.0 states the rule; its reference client
/// does not check it.
///
/// The rule has four clauses. The path of the warning tells which one was broken:
///
/// | the breach | `Warn` | `Reject` |
/// |---|---|---|
/// | `RUN_FINISHED.runId` is not that of its `RUN_STARTED` | warns at `/runId` | fatal |
/// | `RUN_FINISHED.threadId` is not that of its `RUN_STARTED` | warns at `/threadId` | fatal |
/// | `RUN_STARTED.threadId` is not that of the first run on the stream | warns at `/threadId` | fatal |
/// | two interrupts of an outcome have one id | warns at `/outcome/interrupts/1/id` | fatal |
///
/// Nothing else depends on it: what is fatal with `Warn` is fatal under the same rule with `Reject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdChecks {
    /// A warning. Real producers get these ids wrong, and their runs are usable nevertheless.
    #[default]
    Warn,
    /// A [`Violation`](crate::error::Violation), as the draft after 1.0 requires.
    Reject,
}
