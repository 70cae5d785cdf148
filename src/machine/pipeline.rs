//! The whole pipeline as one machine: compatibility, enforcement, expansion, verification and,
//! in [`Pipeline`], assembly (rule P1).

use std::collections::VecDeque;

use serde_json::Value;

use super::compat::{may_be_retired, needs_translation};
use super::items::Place;
use super::{Assembler, Compat, Cut, Enforcer, Expander, Machine, Repair, Repairer, Repairs, Strictness, Verifier};
use crate::error::Error;
use crate::event::EventType;
use crate::event::fast::{Fields, TextContent};
use crate::id::IdGenerator;
use crate::item::{Indexed, Item};
use crate::limits::Limits;
use crate::message::Message;
use crate::raw::{Body, Raw, RawEvent, RawItem};
use crate::run_input::RunAgentInput;
use crate::snapshot::run::RunOutcome;
use crate::snapshot::{Snapshot, Update};
use crate::warning::Warning;

/// How a pipeline is made, where the defaults will not do.
///
/// ```
/// use ag_ui_stream::machine::{Pipeline, Strictness};
/// use ag_ui_stream::id::SequentialIds;
/// use ag_ui_stream::Limits;
///
/// let pipeline = Pipeline::builder()
///     .strictness(Strictness::Strict)
///     .limits(Limits { max_depth: 64, ..Limits::default() })
///     .ids(SequentialIds::new("id-"))
///     .build();
/// assert!(pipeline.snapshot().messages().is_empty());
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until it builds"]
pub struct PipelineBuilder {
    limits: Limits,
    strictness: Strictness,
    repairs: Repairs,
    compat: Option<Compat>,
    messages: Vec<Message>,
    state: Option<Value>,
}

impl Default for PipelineBuilder {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            strictness: Strictness::default(),
            repairs: Repairs::NONE,
            compat: Some(Compat::default()),
            messages: Vec::new(),
            state: None,
        }
    }
}

impl PipelineBuilder {
    /// Bounds on what one event may cost.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What becomes of breaches of rule R10.
    pub fn strictness(mut self, strictness: Strictness) -> Self {
        self.strictness = strictness;
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
        self.compat = Some(Compat::new().with_ids(ids));
        self
    }

    /// Leaves out the compatibility boundary (rules B1 to B3): retired shapes are then unknown or
    /// malformed.
    pub fn without_compat(mut self) -> Self {
        self.compat = None;
        self
    }

    /// The conversation from before the stream. Assembly needs it; verification only learns that
    /// there is one, so that a call is not taken for what makes a message that is there (rule O4).
    pub fn history(mut self, messages: impl IntoIterator<Item = Message>) -> Self {
        self.messages = messages.into_iter().collect();
        self
    }

    /// The state from before the stream (rule A6). Only assembly needs it.
    pub fn state(mut self, state: Value) -> Self {
        self.state = Some(state);
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
            Some(state) => builder.state(state.clone()),
            None => builder,
        }
    }

    /// The pipeline with assembly.
    #[must_use]
    pub fn build(self) -> Pipeline {
        let (intake, messages, state) = self.into_parts();
        Pipeline { intake, assembler: Assembler::with_history(messages, state) }
    }

    /// The pipeline without assembly.
    #[must_use]
    pub fn build_events(self) -> EventPipeline {
        let (intake, ..) = self.into_parts();
        EventPipeline { intake, ready: VecDeque::new() }
    }

    fn into_parts(self) -> (Intake, Vec<Message>, Option<Value>) {
        let mut intake = Intake::new(self.limits, self.strictness, self.compat);
        // The one that it does not know would cost as much as those that it does.
        let repairs: Repairs = self.repairs.iter().filter(|repair| *repair != Repair::IgnoreFrames).collect();
        intake.repairer = (!repairs.is_empty()).then(|| Box::new(Repairer::new(repairs)));
        if !self.messages.is_empty() {
            intake.verifier.expect_history();
        }
        (intake, self.messages, self.state)
    }
}

/// Where verified items go.
trait Sink {
    fn item(&mut self, item: Item);

    /// The most common event, put together in its place.
    fn text_content(&mut self, content: TextContent, place: Place);
}

impl Sink for VecDeque<Item> {
    #[inline]
    fn item(&mut self, item: Item) {
        self.push_back(item);
    }

    #[inline(always)]
    fn text_content(&mut self, content: TextContent, place: Place) {
        self.push_back(Item::Event(Indexed::synthesized(content.into_event(), Some(place.index), Some(place.sent_as))));
    }
}

impl Sink for Assembler {
    #[inline]
    fn item(&mut self, item: Item) {
        self.push_item(item);
    }

    #[inline(always)]
    fn text_content(&mut self, content: TextContent, place: Place) {
        self.push_text_content(content, place);
    }
}

/// The stages up to verification.
#[derive(Debug)]
struct Intake {
    compat: Option<Compat>,
    enforcer: Enforcer,
    expander: Expander,
    /// Where there is something to repair: what goes past it goes past the fast paths too.
    repairer: Option<Box<Repairer>>,
    verifier: Verifier,
    warnings: Vec<Warning>,
}

impl Intake {
    fn new(limits: Limits, strictness: Strictness, compat: Option<Compat>) -> Self {
        Self {
            compat: compat.map(|compat| compat.with_limits(limits)),
            enforcer: Enforcer::new().with_limits(limits),
            expander: Expander::new(),
            repairer: None,
            verifier: Verifier::new().with_strictness(strictness),
            warnings: Vec::new(),
        }
    }

    #[inline]
    fn push<R: RawEvent>(&mut self, raw: R, sink: &mut impl Sink) -> Result<(), Error> {
        // Whichever stage fails, verification lets no event pass from then on: a run that lost one is
        // never a success. One that had ended stays as it was (R8a).
        self.take(raw, sink).map_err(|error| {
            let error = self.settle(sink).err().unwrap_or(error);
            self.verifier.reject(error, None)
        })
    }

    #[inline]
    fn take<R: RawEvent>(&mut self, raw: R, sink: &mut impl Sink) -> Result<(), Error> {
        raw.view(|body, index| match (body, index) {
            (Body::Text(text), None) => self.push_text(text, sink),
            (Body::Bytes(bytes), None) => match core::str::from_utf8(bytes) {
                Ok(text) => self.push_text(text, sink),
                Err(_) => self.enforce(bytes, sink),
            },
            (Body::Text(text), Some(index)) => self.translate(Raw::Text(text.to_owned()), index, sink),
            (Body::Bytes(bytes), Some(index)) => self.translate(Raw::Bytes(bytes.to_vec()), index, sink),
            (Body::Value(value), index) => {
                if self.compat.is_some() && may_be_retired(value) {
                    let index = index.unwrap_or(self.enforcer.event_count());
                    return self.translate(Raw::Value(value.clone()), index, sink);
                }
                match index {
                    None => self.enforce(value, sink),
                    Some(index) => self.enforce(RawItem::Event { raw: Raw::Value(value.clone()), index }, sink),
                }
            }
            (Body::Event(event), None) => self.enforce(event, sink),
            (Body::Event(event), Some(index)) => self.enforce(RawItem::Event { raw: Raw::Event(event), index }, sink),
            (Body::Warning(warning), _) => self.enforce(RawItem::Warning(warning), sink),
        })
    }

    #[inline]
    fn push_text(&mut self, text: &str, sink: &mut impl Sink) -> Result<(), Error> {
        // What the fast path reads needs no translation: it has no null and no retired shape.
        let mut fields = Fields::default();
        if self.enforcer.read_fields(text, &mut fields) {
            if fields.is_text_content() {
                let index = self.enforcer.count();
                let content = fields.text_content(self.enforcer.interner());
                if !self.expander.is_idle() || self.repairer.is_some() {
                    return self.expand(Item::Event(Indexed::new(content.into_event(), index)), sink);
                }
                let place = Place { index, sent_as: EventType::TextMessageContent };
                self.verifier.check_text_content(&content.message_id, content.owner.as_ref(), place)?;
                sink.text_content(content, place);
                return Ok(());
            }
            if fields.is_text_delta() && self.repairer.is_none() {
                let (message_id, tag) = fields.ids(self.enforcer.interner());
                let index = self.enforcer.event_count();
                if let Some((message_id, owner)) =
                    self.expander.continued_text(message_id.as_ref(), tag.as_ref(), index)
                {
                    self.enforcer.count();
                    let place = Place { index, sent_as: EventType::TextMessageChunk };
                    self.verifier.check_text_content(&message_id, owner.as_ref(), place)?;
                    sink.text_content(TextContent { message_id, delta: fields.delta(), owner, timestamp: None }, place);
                    return Ok(());
                }
            }
            if let Some(event) = fields.other(self.enforcer.interner()) {
                let index = self.enforcer.count();
                return self.accept(Indexed::new(event, index), sink);
            }
        }
        if let Some(event) = self.enforcer.read_open(text) {
            let index = self.enforcer.count();
            return self.accept(Indexed::new(event, index), sink);
        }
        if self.compat.is_some() && needs_translation(text) {
            return self.translate(Raw::Text(text.to_owned()), self.enforcer.event_count(), sink);
        }
        self.enforce(text, sink)
    }

    fn translate(&mut self, raw: Raw, index: u64, sink: &mut impl Sink) -> Result<(), Error> {
        let Some(compat) = &mut self.compat else { return self.enforce(RawItem::Event { raw, index }, sink) };
        compat.push(RawItem::Event { raw, index })?;
        while let Some(item) = self.compat.as_mut().and_then(Compat::pop) {
            self.enforce(item, sink)?;
        }
        Ok(())
    }

    fn enforce<R: RawEvent>(&mut self, raw: R, sink: &mut impl Sink) -> Result<(), Error> {
        let pushed = self.enforcer.push(raw);
        while let Some(item) = Machine::<R>::pop(&mut self.enforcer) {
            match item {
                Item::Event(indexed) => self.accept(indexed, sink)?,
                Item::Warning(warning) => self.expand(Item::Warning(warning), sink)?,
            }
        }
        pushed
    }

    #[inline]
    fn accept(&mut self, indexed: Indexed, sink: &mut impl Sink) -> Result<(), Error> {
        if self.expander.is_transparent(&indexed) {
            self.repair(indexed, sink)
        } else {
            self.expand(Item::Event(indexed), sink)
        }
    }

    fn expand(&mut self, item: Item, sink: &mut impl Sink) -> Result<(), Error> {
        let pushed = self.expander.push(item);
        self.drain_expander(sink)?;
        pushed
    }

    fn drain_expander(&mut self, sink: &mut impl Sink) -> Result<(), Error> {
        while let Some(item) = Machine::<Item>::pop(&mut self.expander) {
            match item {
                Item::Event(indexed) => self.repair(indexed, sink)?,
                warning @ Item::Warning(_) => sink.item(warning),
            }
        }
        Ok(())
    }

    #[inline]
    fn repair(&mut self, indexed: Indexed, sink: &mut impl Sink) -> Result<(), Error> {
        match &mut self.repairer {
            None => self.verify(indexed, sink),
            Some(repairer) => {
                repairer.push(indexed)?;
                self.drain_repairer(sink)
            }
        }
    }

    fn drain_repairer(&mut self, sink: &mut impl Sink) -> Result<(), Error> {
        while let Some(item) = self.repairer.as_mut().and_then(|repairer| repairer.pop()) {
            match item {
                Item::Event(indexed) => self.verify(indexed, sink)?,
                warning @ Item::Warning(_) => sink.item(warning),
            }
        }
        Ok(())
    }

    /// The input is at fault: what had ended before ends now, unless that is at fault itself, which came
    /// first then.
    #[cold]
    fn settle(&mut self, sink: &mut impl Sink) -> Result<(), Error> {
        if let Some(repairer) = &mut self.repairer {
            repairer.settle();
        }
        self.drain_repairer(sink)
    }

    #[inline]
    fn verify(&mut self, indexed: Indexed, sink: &mut impl Sink) -> Result<(), Error> {
        let checked = self.verifier.check(&indexed, &mut self.warnings);
        self.give_warnings(sink);
        checked?;
        sink.item(Item::Event(indexed));
        Ok(())
    }

    #[inline]
    fn give_warnings(&mut self, sink: &mut impl Sink) {
        if !self.warnings.is_empty() {
            self.warnings.drain(..).for_each(|warning| sink.item(Item::Warning(warning)));
        }
    }

    fn finish(&mut self, sink: &mut impl Sink) -> Result<(), Error> {
        let finished = Machine::<Item>::finish(&mut self.expander);
        self.drain_expander(sink)?;
        finished?;
        if let Some(repairer) = &mut self.repairer {
            repairer.finish()?;
            self.drain_repairer(sink)?;
        }
        // Events that were dropped came, too.
        self.verifier.saw(self.enforcer.event_count());
        Machine::<Item>::finish(&mut self.verifier)
    }
}

/// Everything from raw events to snapshots, in the order that the protocol asks for (rule P1):
/// compatibility, enforcement, expansion, verification, assembly.
///
/// In: any [`RawEvent`], one event each. Out: an [`Update`] for every warning and every verified
/// event, in order, each with the [`Snapshot`] behind it.
///
/// Where a push fails, the updates of what came before are still to be popped; the run that was
/// active is then [`Rejected`](RunOutcome::Rejected), or [`Truncated`](RunOutcome::Truncated) by
/// [`finish`](Machine::finish), in [`Pipeline::snapshot`]. No event comes through after that, whatever
/// is pushed.
///
/// # Errors
/// Those of the stages: [`Enforcer`], [`Expander`], [`Verifier`].
///
/// # Cost
/// A delta costs one pass over its text, and its own length; a snapshot costs one pointer.
///
/// ```
/// use ag_ui_stream::machine::Pipeline;
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
#[derive(Debug)]
pub struct Pipeline {
    intake: Intake,
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

    /// The conversation as it stands behind everything that was pushed.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        self.assembler.snapshot()
    }
}

impl<R: RawEvent> Machine<R> for Pipeline {
    type Output = Update;

    #[inline]
    fn push(&mut self, raw: R) -> Result<(), Error> {
        let pushed = self.intake.push(raw, &mut self.assembler);
        if pushed.is_err() {
            self.assembler.end_run(RunOutcome::Rejected);
        }
        pushed
    }

    #[inline]
    fn pop(&mut self) -> Option<Update> {
        Machine::<Item>::pop(&mut self.assembler)
    }

    fn ready(&self) -> usize {
        Machine::<Item>::ready(&self.assembler)
    }

    fn finish(&mut self) -> Result<(), Error> {
        let finished = self.intake.finish(&mut self.assembler);
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
        let _ = self.intake.settle(&mut self.assembler);
        Machine::<Item>::cut(&mut self.assembler, cut);
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
/// # Cost
/// A delta costs one pass over its text, and one allocation.
#[derive(Debug)]
pub struct EventPipeline {
    intake: Intake,
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

impl<R: RawEvent> Machine<R> for EventPipeline {
    type Output = Item;

    #[inline]
    fn push(&mut self, raw: R) -> Result<(), Error> {
        self.intake.push(raw, &mut self.ready)
    }

    #[inline]
    fn pop(&mut self) -> Option<Item> {
        self.ready.pop_front()
    }

    fn ready(&self) -> usize {
        self.ready.len()
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.intake.finish(&mut self.ready)
    }
}
