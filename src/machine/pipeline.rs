//! The whole pipeline as one machine: compatibility, enforcement, expansion, verification and,
//! in [`Pipeline`], assembly (rule P1).

use core::fmt;
use std::collections::VecDeque;

use super::sink::{Maybe, Sink, Stage, Then};
use super::{
    Assembler, Cut, Enforcer, Expander, IdChecks, Machine, Push, Repair, Repairer, Repairs, Upgrader, Verifier,
};
use crate::error::Error;
use crate::id::IdGenerator;
use crate::item::{Counter, Item};
use crate::limits::Limits;
use crate::message::Message;
use crate::raw::{Body, RawEvent};
use crate::run_input::RunAgentInput;
use crate::shared::Document;
use crate::snapshot::run::RunOutcome;
use crate::snapshot::{Snapshot, Update};

/// How a pipeline is made, where the defaults will not do.
///
/// ```
/// use ag_ui_stream::machine::{Pipeline, IdChecks};
/// use ag_ui_stream::id::SequentialIds;
/// use ag_ui_stream::Limits;
///
/// let pipeline = Pipeline::builder()
///     .id_checks(IdChecks::Reject)
///     .limits(Limits { max_depth: 64, ..Limits::default() })
///     .ids(SequentialIds::new("id-"))
///     .build();
/// assert!(pipeline.snapshot().messages().is_empty());
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until it builds"]
pub struct PipelineBuilder {
    limits: Limits,
    id_checks: IdChecks,
    repairs: Repairs,
    upgrader: Option<Upgrader>,
    messages: Vec<Message>,
    state: Option<Document>,
}

impl Default for PipelineBuilder {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            id_checks: IdChecks::default(),
            repairs: Repairs::NONE,
            upgrader: Some(Upgrader::default()),
            messages: Vec::new(),
            state: None,
        }
    }
}

impl PipelineBuilder {
    /// Bounds on what one event may cost and on what the conversation may hold, for all stages.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What becomes of breaches of rule R10.
    pub fn id_checks(mut self, id_checks: IdChecks) -> Self {
        self.id_checks = id_checks;
        self
    }

    /// The faults of producers that are to be repaired before verification, each with a warning
    /// (rules X1, X2, X3, X5: [`Repairer`]). None, unless asked for.
    ///
    /// With [`Repair::ResultAfterFinish`] a RUN_FINISHED is delivered once the stream has ended or the
    /// next run begins. Where the source fails before that, [`Pipeline::snapshot`] has its outcome, and
    /// no update does (rule R8a). [`Repair::IgnoreFrames`] is the decoder's: give it the same set.
    pub fn repairs(mut self, repairs: impl Into<Repairs>) -> Self {
        self.repairs = repairs.into();
        self
    }

    /// Where the ids of translated events come from (rule B1); the compatibility boundary is then
    /// there, even where it was left out before.
    pub fn ids(mut self, ids: impl IdGenerator + 'static) -> Self {
        self.upgrader = Some(Upgrader::new().with_ids(ids));
        self
    }

    /// Leaves out the compatibility boundary (rules B1 to B3): retired shapes are then unknown or
    /// malformed.
    pub fn without_upgrade(mut self) -> Self {
        self.upgrader = None;
        self
    }

    /// The conversation from before the stream. Assembly needs it; verification only learns that
    /// there is one, so that a call is not taken for what makes a message that is there (rule O4).
    pub fn history(mut self, messages: impl IntoIterator<Item = Message>) -> Self {
        self.messages = messages.into_iter().collect();
        self
    }

    /// The state from before the stream (rule A6). Only assembly needs it.
    pub fn state(mut self, state: impl Into<Document>) -> Self {
        self.state = Some(state.into());
        self
    }

    /// The conversation and the state from before the stream, as the input of its run has them:
    /// [`history`](PipelineBuilder::history) and [`state`](PipelineBuilder::state) in one. Costs a
    /// clone of each message, which copies no text, and a copy of the state.
    ///
    /// ```
    /// use ag_ui_stream::RunAgentInput;
    /// use ag_ui_stream::machine::Pipeline;
    /// use ag_ui_stream::message::UserMessage;
    ///
    /// let input = RunAgentInput::new("thread", "run", [UserMessage::new("m", "Hello").into()]);
    /// let pipeline = Pipeline::builder().input(&input).build();
    /// assert_eq!(pipeline.snapshot().messages().len(), 1);
    /// ```
    pub fn input(self, input: &RunAgentInput) -> Self {
        let builder = self.history(input.messages.iter().cloned());
        match &input.state {
            Some(state) => builder.state(state),
            None => builder,
        }
    }

    /// The pipeline with assembly.
    #[must_use]
    pub fn build(self) -> Pipeline {
        let limits = self.limits;
        let (stages, messages, state) = self.into_parts();
        Pipeline { stages, assembler: Assembler::with_history(messages, state).with_limits(limits) }
    }

    /// The pipeline without assembly.
    #[must_use]
    pub fn build_events(self) -> EventPipeline {
        let (stages, ..) = self.into_parts();
        EventPipeline { stages, ready: VecDeque::new() }
    }

    fn into_parts(self) -> (Stages, Vec<Message>, Option<Document>) {
        // The one that the stage does not know would cost as much as those that it does.
        let repairs: Repairs = self.repairs.iter().filter(|repair| *repair != Repair::IgnoreFrames).collect();
        let mut stages = Stages {
            counter: Counter::default(),
            upgrader: self.upgrader.map(|upgrader| upgrader.with_limits(self.limits)),
            enforcer: Enforcer::new().with_limits(self.limits),
            expander: Expander::new().with_limits(self.limits),
            repairer: (!repairs.is_empty()).then(|| Box::new(Repairer::new(repairs))),
            verifier: Verifier::new().with_id_checks(self.id_checks).with_limits(self.limits),
        };
        if !self.messages.is_empty() {
            stages.verifier.expect_history();
        }
        (stages, self.messages, self.state)
    }
}

/// The stages up to verification, each of which feeds the next.
struct Stages {
    counter: Counter,
    upgrader: Option<Upgrader>,
    enforcer: Enforcer,
    expander: Expander,
    /// Where there is something to repair: what goes past it goes past the fast paths too.
    repairer: Option<Box<Repairer>>,
    verifier: Verifier,
}

impl Stages {
    #[inline]
    fn push<R: RawEvent>(&mut self, raw: R, sink: &mut impl Sink) -> Result<(), Error> {
        // Whichever stage fails, verification lets no event pass from then on: a run that lost one is
        // never a success. One that had ended stays as it was (R8a).
        raw.view(|body, index| self.feed(body, index, sink)).map_err(|error| {
            let error = self.settle(sink).err().unwrap_or(error);
            self.verifier.reject(error, None)
        })
    }

    #[inline]
    fn feed(&mut self, body: Body<'_>, index: Option<u64>, sink: &mut impl Sink) -> Result<(), Error> {
        let Self { counter, upgrader, enforcer, expander, repairer, verifier } = self;
        let mut verified = Then { stage: verifier, next: sink };
        let mut expanded = Maybe { stage: repairer.as_deref_mut(), next: &mut verified };
        let mut enforced = Then { stage: expander, next: &mut expanded };
        if let Body::Warning(warning) = body {
            return enforced.warning(warning);
        }
        let index = counter.count(index);
        match body.text() {
            Some(text) if enforcer.feed_fast(text, index, &mut enforced)? => Ok(()),
            _ => feed_thoroughly(upgrader.as_mut(), enforcer, body, index, &mut enforced),
        }
    }

    fn finish(&mut self, sink: &mut impl Sink) -> Result<(), Error> {
        let Self { expander, repairer, verifier, .. } = self;
        let mut verified = Then { stage: verifier, next: sink };
        expander.end(&mut Maybe { stage: repairer.as_deref_mut(), next: &mut verified })?;
        if let Some(repairer) = repairer {
            repairer.end(&mut verified)?;
        }
        self.verifier.end(sink)
    }

    /// The input is at fault: what had ended before ends now, unless that is at fault itself, which came
    /// first then.
    #[cold]
    fn settle(&mut self, sink: &mut impl Sink) -> Result<(), Error> {
        match &mut self.repairer {
            Some(repairer) => repairer.settle(&mut Then { stage: &mut self.verifier, next: sink }),
            None => Ok(()),
        }
    }
}

/// Takes an event that no fast path reads: it may have a retired shape.
fn feed_thoroughly(
    upgrader: Option<&mut Upgrader>,
    enforcer: &mut Enforcer,
    body: Body<'_>,
    index: u64,
    next: &mut impl Sink,
) -> Result<(), Error> {
    match upgrader.and_then(|upgrader| upgrader.upgrade(&body, index)) {
        None => enforcer.feed_thoroughly(body, index, next),
        Some((raw, warnings)) => {
            warnings.into_iter().try_for_each(|warning| next.warning(warning))?;
            raw.view(|body, _| enforcer.feed(body, index, next))
        }
    }
}

/// Everything from raw events to snapshots, in the order that the protocol asks for (rule P1):
/// compatibility, enforcement, expansion, verification, assembly.
///
/// In: any [`RawEvent`], one event each. Out: an [`Update`] for every warning and every verified
/// event, in order, each with the [`Snapshot`] after it.
///
/// Where a push fails, the updates of what came before are still to be popped; the run that was
/// active is then [`Rejected`](RunOutcome::Rejected), or [`Truncated`](RunOutcome::Truncated) by
/// [`finish`](Machine::finish), in [`Pipeline::snapshot`]. No event comes through after that, whatever
/// is pushed.
///
/// # Errors
/// Those of the stages: [`Enforcer`], [`Expander`], [`Verifier`].
///
/// # Logging
/// With the feature `tracing`: each warning at `WARN` as [`pop`](Machine::pop) gives it, and what
/// ended the stream at `DEBUG` with the state that it met; target `ag_ui_stream`. Whoever logs the
/// warnings himself turns that target down to errors.
///
/// # Cost
/// A delta costs one pass over its text, and its own length; a snapshot costs one pointer.
///
/// ```
/// use ag_ui_stream::machine::{Machine, Pipeline, Push};
///
/// let mut pipeline = Pipeline::new();
/// for event in [
///     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
///     r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"Hello"}"#,
///     r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
/// ] {
///     pipeline.push(event)?;
///     while let Some(update) = pipeline.pop() {
///         println!("{:?}", update.message());
///     }
/// }
/// pipeline.finish()?;
/// assert_eq!(pipeline.snapshot().message("m").unwrap().text().unwrap(), "Hello");
/// # Ok::<(), ag_ui_stream::Error>(())
/// ```
pub struct Pipeline {
    stages: Stages,
    assembler: Assembler,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self::builder().build()
    }
}

impl Pipeline {
    /// A pipeline with the defaults, for an empty conversation.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A pipeline with other options.
    pub fn builder() -> PipelineBuilder {
        PipelineBuilder::default()
    }

    /// The conversation as it stands after everything that was pushed.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        self.assembler.snapshot()
    }
}

impl<R: RawEvent> Push<R> for Pipeline {
    #[inline]
    fn push(&mut self, raw: R) -> Result<(), Error> {
        let pushed = self.stages.push(raw, &mut self.assembler);
        if pushed.is_err() {
            self.assembler.end_run(RunOutcome::Rejected);
        }
        pushed
    }
}

impl Machine for Pipeline {
    type Output = Update;

    #[inline]
    fn pop(&mut self) -> Option<Update> {
        if let Some(warning) = self.assembler.next_warning() {
            warning.log();
        }
        self.assembler.pop()
    }

    fn ready(&self) -> usize {
        self.assembler.ready()
    }

    fn finish(&mut self) -> Result<(), Error> {
        let finished = self.stages.finish(&mut self.assembler);
        let outcome = match &finished {
            // A repair may have kept the event at fault until now.
            Err(error) if !error.is_truncated() => RunOutcome::Rejected,
            _ => RunOutcome::Truncated,
        };
        self.assembler.end_run(outcome);
        finished
    }

    fn cut(&mut self, cut: Cut) {
        // What is wrong with the source is the last that is said of the stream.
        let _ = self.stages.settle(&mut self.assembler);
        self.assembler.cut(cut);
    }
}

/// Everything from raw events to verified ones: a [`Pipeline`] without assembly.
///
/// In: any [`RawEvent`], one event each. Out: an [`Item`] for every warning and every verified
/// event, in order.
///
/// # Errors
/// Those of the stages: [`Enforcer`], [`Expander`], [`Verifier`].
///
/// # Logging
/// As a [`Pipeline`] logs.
///
/// # Cost
/// A delta costs one pass over its text, and one allocation.
pub struct EventPipeline {
    stages: Stages,
    ready: VecDeque<Item>,
}

impl Default for EventPipeline {
    fn default() -> Self {
        Self::builder().build_events()
    }
}

impl EventPipeline {
    /// A pipeline with the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A pipeline with other options.
    pub fn builder() -> PipelineBuilder {
        PipelineBuilder::default()
    }
}

impl<R: RawEvent> Push<R> for EventPipeline {
    #[inline]
    fn push(&mut self, raw: R) -> Result<(), Error> {
        self.stages.push(raw, &mut self.ready)
    }
}

impl Machine for EventPipeline {
    type Output = Item;

    #[inline]
    fn pop(&mut self) -> Option<Item> {
        if let Some(Item::Warning(warning)) = self.ready.front() {
            warning.log();
        }
        self.ready.pop_front()
    }

    fn ready(&self) -> usize {
        self.ready.len()
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.stages.finish(&mut self.ready)
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("events", &self.stages.counter.next())
            .field("state", &self.stages.verifier.state())
            .field("messages", &self.snapshot().messages().len())
            .field("ready", &self.ready())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for EventPipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventPipeline")
            .field("events", &self.stages.counter.next())
            .field("state", &self.stages.verifier.state())
            .field("ready", &self.ready())
            .finish_non_exhaustive()
    }
}
