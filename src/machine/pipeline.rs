//! The whole pipeline as one machine: compatibility, enforcement, expansion, verification, and, in
//! [`Pipeline`], assembly (rule P1).

use core::fmt;
use std::collections::VecDeque;

use super::expand::write;
use super::sink::{Maybe, Sink, Stage, Then};
use super::{Assembler, Cut, Enforcer, Expander, Machine, Push, Repairer, Upgrader, Verifier};
use crate::error::Error;
use crate::event::Event;
use crate::item::{Counter, Item};
use crate::options::{Options, Repair, Repairs};
use crate::raw::{Body, RawEvent};
use crate::shared::Document;
use crate::snapshot::run::RunOutcome;
use crate::snapshot::{Snapshot, Update};
use crate::warning::Warning;

impl Options {
    /// The pipeline with assembly.
    #[must_use]
    pub fn build(mut self) -> Pipeline {
        let stages = Stages::new(&self);
        let mut assembler = Assembler::new().with_limits(self.limits.unwrap_or_default());
        assembler.add_history(self.history.take().unwrap_or_default(), self.state.take());
        Pipeline { stages, assembler }
    }

    /// The pipeline without assembly.
    #[must_use]
    pub fn build_events(self) -> EventPipeline {
        EventPipeline { stages: Stages::new(&self), ready: VecDeque::new() }
    }
}

/// The stages up to verification, each of which feeds the next.
struct Stages {
    counter: Counter,
    upgrader: Option<Upgrader>,
    enforcer: Enforcer,
    expander: Expander,
    /// Present if any repair is on; then no event takes a fast path.
    repairer: Option<Box<Repairer>>,
    verifier: Verifier,
    /// What was said, the conversation left out; `None` where that is nothing.
    said: Option<Box<Options>>,
}

impl Stages {
    fn new(options: &Options) -> Self {
        let limits = options.limits.unwrap_or_default();
        // The one that the stage does not know would cost as much as those that it does.
        let repairs = options.repairs.unwrap_or(Repairs::NONE);
        let repairs: Repairs = repairs.iter().filter(|repair| *repair != Repair::IgnoreFrames).collect();
        let upgrader = || match &options.ids {
            Some(ids) => Upgrader::new().with_ids(ids.clone()),
            None => Upgrader::new(),
        };
        let mut verifier = Verifier::new().with_limits(limits).with_id_checks(options.id_checks.unwrap_or_default());
        if options.history.as_ref().is_some_and(|messages| !messages.is_empty()) {
            verifier.expect_history();
        }
        let said = Options {
            history: options.history.as_ref().map(|_| Vec::new()),
            state: options.state.as_ref().map(|_| Document::default()),
            ..options.without_conversation()
        };
        Self {
            counter: Counter::default(),
            upgrader: options.upgrade.unwrap_or(true).then(|| upgrader().with_limits(limits)),
            enforcer: Enforcer::new().with_limits(limits),
            expander: Expander::new().with_limits(limits),
            repairer: (!repairs.is_empty()).then(|| Box::new(Repairer::new(repairs))),
            verifier,
            said: (!said.is_empty()).then(|| Box::new(said)),
        }
    }

    /// The source says how it is to be read: what was not said before is taken up, unless events came
    /// already.
    #[cold]
    fn take_up(&mut self, options: Options, sink: &mut impl Sink) {
        if self.counter.next() != 0 {
            return;
        }
        let said = self.said.take().map_or_else(Options::default, |said| *said);
        let (knew_history, knew_state) = (said.history.is_some(), said.state.is_some());
        let mut options = said.or(options);
        let verifier = core::mem::take(&mut self.verifier);
        *self = Self::new(&options);
        if knew_history {
            let limits = options.limits.unwrap_or_default();
            self.verifier = verifier.with_limits(limits).with_id_checks(options.id_checks.unwrap_or_default());
        }
        // Nothing, where it was said before.
        let history = options.history.take();
        let state = options.state.take().filter(|_| !knew_state);
        sink.begin(history.unwrap_or_default(), state, options.limits.unwrap_or_default());
    }

    #[inline]
    fn push<R: RawEvent>(&mut self, raw: R, sink: &mut impl Sink) -> Result<(), Error> {
        // Whichever stage fails, verification lets no event pass from then on: a run that lost an event is
        // never a success. A run that had ended stays as it was (R8a).
        raw.view(|body, index| self.feed(body, index, sink)).map_err(|error| {
            let error = self.settle(sink).err().unwrap_or(error);
            self.verifier.reject(error, None)
        })
    }

    #[inline]
    fn feed(&mut self, body: Body<'_>, index: Option<u64>, sink: &mut impl Sink) -> Result<(), Error> {
        // The common case asks once.
        let body = match body {
            Body::Warning(warning) => return self.pass(warning, sink),
            Body::Options(options) => {
                self.take_up(*options, sink);
                return Ok(());
            }
            body => body,
        };
        let Self { counter, upgrader, enforcer, expander, repairer, verifier, .. } = self;
        let mut verified = Then { stage: verifier, next: sink };
        let mut expanded = Maybe { stage: repairer.as_deref_mut(), next: &mut verified };
        let mut enforced = Then { stage: expander, next: &mut expanded };
        let index = counter.count(index);
        match body.checked() {
            Body::Text(text) if enforcer.feed_fast(text, index, &mut enforced)? => Ok(()),
            body => feed_thoroughly(upgrader.as_mut(), enforcer, body, index, &mut enforced),
        }
    }

    /// A warning goes past all stages in its place.
    #[cold]
    fn pass(&mut self, warning: Warning, sink: &mut impl Sink) -> Result<(), Error> {
        let mut verified = Then { stage: &mut self.verifier, next: sink };
        let mut expanded = Maybe { stage: self.repairer.as_deref_mut(), next: &mut verified };
        Then { stage: &mut self.expander, next: &mut expanded }.warning(warning)
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

    /// After a fault of the input: ends the run whose RUN_FINISHED was held back. If that is at fault
    /// itself, that error came first.
    #[cold]
    fn settle(&mut self, sink: &mut impl Sink) -> Result<(), Error> {
        match &mut self.repairer {
            Some(repairer) => repairer.settle(&mut Then { stage: &mut self.verifier, next: sink }),
            None => Ok(()),
        }
    }
}

/// Reads an event that no fast path reads: it may have a retired shape.
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

/// All stages from raw events to snapshots, in the order of the protocol (rule P1): compatibility,
/// enforcement, expansion, verification, assembly.
///
/// In: any [`RawEvent`], one event each. Out: an [`Update`] for every warning and every verified
/// event, in order, each with the [`Snapshot`] after it.
///
/// If a push fails, the updates from before can still be popped. The active run is then
/// [`Rejected`](RunOutcome::Rejected), or [`Truncated`](RunOutcome::Truncated) by
/// [`finish`](Machine::finish), in [`Pipeline::snapshot`]. No event passes after that, whatever is
/// pushed.
///
/// # Errors
/// Those of the stages: [`Enforcer`], [`Expander`], [`Verifier`].
///
/// # Logging
/// With the feature `tracing`: each warning at `WARN` when [`pop`](Machine::pop) gives it, and the error
/// that ended the stream at `DEBUG` with the state of the stage; target `ag_ui_stream`. If you log the
/// warnings yourself, limit that target to errors.
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
        Options::new().build()
    }
}

impl Pipeline {
    /// A pipeline with the defaults, for an empty conversation; for others, [`Options::build`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The conversation as it stands after everything that was pushed.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        self.assembler.snapshot()
    }

    /// The events that bring a late viewer to where this pipeline stands, whatever is open: the events
    /// that this pipeline gives from now on may follow, and a new pipeline that is given both comes to
    /// the same conversation. Where outputs wait to be popped, their events are in it already.
    ///
    /// Out, in this order: each run before the latest, as it began and ended; `RUN_STARTED`; the tool calls
    /// that wait for an answer and the answers that there were (rule R9), in messages of their own that the
    /// next event drops; the messages and the state; the subagents; what else is open, in the order
    /// opened; the terminal event where it has come. Nothing before the first run: its history is what the viewer's own
    /// [`Options::input`] takes.
    ///
    /// Where the viewer is given the stream as it was sent, with chunks, see
    /// [`raw_prelude`](Pipeline::raw_prelude).
    ///
    /// # What does not come over
    /// - Of messages that share an id (rules A10, A12), the last copy only, perhaps at another place.
    /// - That a snapshot dropped a thought that is still open, and all others (rule A11).
    /// - That an item of an earlier run was cut off: a `MESSAGES_SNAPSHOT` says that it is whole. And of
    ///   earlier runs what they left open, and their subagents.
    /// - Whose messages of earlier runs are, is known to the viewer (rule O7), and was forgotten here with
    ///   the run (rule R6). A rest that gives one of them to another owner is refused there (rule O2).
    /// - That the run was cut off or rejected: to the viewer it goes on, and is truncated at the end.
    ///
    /// # Cost
    /// That of the conversation and of all runs; texts are shared. One event holds all messages and
    /// another the state, which the viewer's [`Limits::max_event_bytes`](crate::Limits::max_event_bytes) have to admit.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::Event;
    /// use ag_ui_stream::machine::{Pipeline, Push};
    ///
    /// let mut pipeline = Pipeline::new();
    /// pipeline.push(Event::run_started("thread", "run"))?;
    /// pipeline.push(Event::text_start("m"))?;
    /// pipeline.push(Event::text_content("m", "Hel"))?;
    ///
    /// let mut viewer = Pipeline::new();
    /// for event in pipeline.prelude() {
    ///     viewer.push(event)?;
    /// }
    /// viewer.push(Event::text_content("m", "lo"))?;
    /// viewer.push(Event::text_end("m"))?;
    /// assert_eq!(viewer.snapshot().message("m").unwrap().text().unwrap(), "Hello");
    /// # Ok::<(), ag_ui_stream::Error>(())
    /// ```
    #[must_use]
    pub fn prelude(&self) -> Vec<Event> {
        self.assembler.prelude(|_, _| false)
    }

    /// [`prelude`](Pipeline::prelude) for a viewer who is given the stream as it was sent, and expands
    /// chunks himself: each event as JSON text, what chunks have open opened by chunks, last and in the
    /// order of their lanes, and half of a surrogate pair held back where it is here (rule E11).
    ///
    /// Not for a stream with [repairs](Options::repairs) or retired shapes (rule B1): what these
    /// stages remember does not come over. Give the viewer the events of this pipeline then.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::machine::{Pipeline, Push};
    ///
    /// let mut pipeline = Pipeline::new();
    /// pipeline.push(r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#)?;
    /// pipeline.push(r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"Hel"}"#)?;
    ///
    /// let mut viewer = Pipeline::new();
    /// for event in pipeline.raw_prelude() {
    ///     viewer.push(event)?;
    /// }
    /// viewer.push(r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"lo"}"#)?;
    /// assert_eq!(viewer.snapshot().message("m").unwrap().text().unwrap(), "Hello");
    /// # Ok::<(), ag_ui_stream::Error>(())
    /// ```
    #[must_use]
    pub fn raw_prelude(&self) -> Vec<String> {
        let expander = &self.stages.expander;
        let events = self.assembler.prelude(|kind, item| expander.has_open(kind, item));
        events.iter().map(write).chain(expander.prelude()).collect()
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
        // The error of the source is the last of the stream, so no other is given.
        let _ = self.stages.settle(&mut self.assembler);
        self.assembler.cut(cut);
    }
}

/// All stages from raw events to verified ones: a [`Pipeline`] without assembly.
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
        Options::new().build_events()
    }
}

impl EventPipeline {
    /// A pipeline with the defaults; for others, [`Options::build_events`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
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
