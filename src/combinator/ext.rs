//! `EventStreamExt`: the combinators as methods of every stream of events.

use futures::stream::Stream;

use super::{
    Assemble, Compact, Enforce, Events, Expand, ItemInput, Items, OrRunError, RawInput, Share, Snapshots, Split,
    TakeRun, Through, ThroughRaw, Updates, Upgrade, Verify, giving,
};
#[cfg(doc)]
use crate::error::Error;
use crate::event::Event;
use crate::item::Item;
use crate::machine::{self, Assembler, Compactor, Enforcer, Expander, Push, Verifier};
use crate::options::Options;
use crate::raw::RawItem;
use crate::snapshot::{Changed, Update};

/// The stages as methods of every [`Stream`].
///
/// Raw events come in as JSON text or bytes, as `serde_json::Value` or as [`Event`], each plain or
/// in a [`Result`] with any error ([`RawInput`]); items that have been through a stage are taken too. One call does all that the protocol asks for:
///
/// | method | gives |
/// |---|---|
/// | [`updates`](EventStreamExt::updates) | each event and warning, with the conversation after it |
/// | [`snapshots`](EventStreamExt::snapshots) | the conversation, each time it changed |
/// | [`events`](EventStreamExt::events) | the events, verified and expanded |
/// | [`items`](EventStreamExt::items) | the same with the warnings, in order |
/// | [`split_updates`](EventStreamExt::split_updates) | two streams for two tasks: events and snapshots |
/// | [`share`](EventStreamExt::share) | as many as come: each event after a prelude, or the newest snapshot |
/// | [`take_run`](EventStreamExt::take_run) | the raw events of one run, where the source goes on |
/// | [`compact`](EventStreamExt::compact) | fewer and shorter events that come to the same |
///
/// Or use the stages one by one, with any middleware between them: a later stage takes the items of
/// the one before, and does not wrap its error again ([`ItemInput`]).
///
/// | method | takes | gives |
/// |---|---|---|
/// | [`upgrade`](EventStreamExt::upgrade) | raw events | raw events without retired shapes |
/// | [`enforce`](EventStreamExt::enforce) | raw events | [`Item`]: typed events and warnings |
/// | [`expand`](EventStreamExt::expand) | items or events | items without chunks |
/// | [`verify`](EventStreamExt::verify) | items or events | the same items, in a legal order |
/// | [`assemble`](EventStreamExt::assemble) | items or events | [`Update`]: item and conversation |
/// | [`through`](EventStreamExt::through) | items or events | what a machine of your own gives |
/// | [`through_raw`](EventStreamExt::through_raw) | raw events | what a machine of your own gives |
/// | [`or_run_error`](EventStreamExt::or_run_error) | items or events | items, an error as a `RUN_ERROR` |
///
/// The first four have a twin `…_with` that takes [`Options`]: the conversation from before the stream,
/// limits, checks of ids, repairs. What these leave open is taken from the source, where it says
/// [how it is to be read](RawItem::Options), as clients and agents do. For other options of a single stage,
/// [`through`](EventStreamExt::through) and [`through_raw`](EventStreamExt::through_raw) take its machine.
///
/// # Guarantees of all methods
/// - Outputs come in the order of the input. All outputs before a fault are given before the error;
///   the error is the last item; after it comes `None`, for ever ([`FusedStream`]). So `try_next()?`
///   sees the whole stream.
/// - The source is dropped when it ends or fails, not only with the stream.
/// - A warning is not an error but an item. `updates`, `snapshots`, `events` and `items` log it once,
///   through `tracing`, when they give it; a single stage does not log ([`Warning::log`](crate::Warning::log)).
/// - A `next()` that is dropped before it is ready loses nothing, and may be called again: all state is
///   in the stream, none in the future.
/// - A poll takes at most 64 inputs that give no output, then lets other tasks run.
///
/// # Other extension traits
/// No method here has a name that `futures::StreamExt`, `futures::TryStreamExt` or
/// `tokio_stream::StreamExt` use, so that all of them can be imported together. If another trait of
/// yours collides, use the qualified call: `EventStreamExt::upgrade(source)`.
///
/// [`FusedStream`]: futures::stream::FusedStream
pub trait EventStreamExt: Stream {
    /// Raw events in, each verified event out with the conversation after it.
    ///
    /// For each raw event, in this order: an [`Update`] for every warning about it; one for every
    /// event that it stands for (none if it was dropped, several if it is a chunk). Each has the
    /// [`Snapshot`](crate::snapshot::Snapshot) after it and tells which message changed.
    ///
    /// # Ending
    /// With the source, if the last run had its terminal event (`RUN_FINISHED` or `RUN_ERROR`).
    /// `RUN_ERROR` is an event like any other.
    ///
    /// # Errors
    /// [`Error::Source`], the source's own; [`Error::Malformed`] (E5, E9);
    /// [`Error::LimitExceeded`]; [`Error::Violation`] (C2, C4, C5; R1 to R4; S2, S8; O2 to O6);
    /// [`Error::Truncated`] (R8) if the source ends without a terminal event. The conversation is in
    /// [`Updates::machine`] even then.
    ///
    /// # Cost
    /// A delta costs one pass over its text and its own length once more, whatever the length of
    /// the message; the snapshot is one pointer. Only the conversation grows.
    ///
    /// # Cancel safety
    /// A dropped `next()` loses nothing.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::EventStreamExt;
    /// use futures::{TryStreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ag_ui_stream::Error> {
    /// let source = stream::iter([
    ///     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
    ///     r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"Hel"}"#,
    ///     r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"lo"}"#,
    ///     r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    /// ]);
    /// let mut updates = source.updates();
    /// let mut seen = Vec::new();
    /// while let Some(update) = updates.try_next().await? {
    ///     if let Some(message) = update.message() {
    ///         seen.push(message.text().unwrap().to_string());
    ///     }
    /// }
    /// // START, two CONTENT, END
    /// assert_eq!(seen, ["", "Hel", "Hello", "Hello"]);
    /// # Ok(())
    /// # }
    /// ```
    fn updates(self) -> Updates<Self>
    where
        Self: Sized,
        Self::Item: RawInput,
    {
        self.updates_with(Options::new())
    }

    /// [`updates`](EventStreamExt::updates) with these options: history, limits, checks of ids.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::message::{Message, SystemMessage};
    /// use ag_ui_stream::{EventStreamExt, Options};
    /// use futures::{TryStreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ag_ui_stream::Error> {
    /// let history = [Message::System(SystemMessage::new("m0", "Be brief."))];
    /// let source = stream::iter([r#"{"type":"RUN_ERROR","message":"overloaded"}"#]);
    /// let updates: Vec<_> = source.updates_with(Options::new().history(history)).try_collect().await?;
    /// assert_eq!(updates[0].snapshot().messages().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    fn updates_with(self, options: Options) -> Updates<Self>
    where
        Self: Sized,
        Self::Item: RawInput,
    {
        giving::<Update, <Self::Item as RawInput>::Error, _>(Updates::new(self, options.build()))
    }

    /// Raw events in, the conversation out each time that it changed.
    ///
    /// The [`updates`](EventStreamExt::updates) that changed something, without their events: one
    /// [`Changed`] for each, in order, which tells what changed. Warnings are only logged.
    ///
    /// # Ending
    /// As [`updates`](EventStreamExt::updates).
    ///
    /// # Errors
    /// As [`updates`](EventStreamExt::updates).
    ///
    /// # Cost
    /// As [`updates`](EventStreamExt::updates). For a consumer that is slower than the source,
    /// [`split_updates`](EventStreamExt::split_updates) skips outdated snapshots.
    ///
    /// # Cancel safety
    /// A dropped `next()` loses nothing.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::EventStreamExt;
    /// use futures::{TryStreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ag_ui_stream::Error> {
    /// let source = stream::iter([
    ///     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
    ///     r#"{"type":"CUSTOM","name":"changes nothing","value":0}"#,
    ///     r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    /// ]);
    /// let snapshots: Vec<_> = source.snapshots().try_collect().await?;
    /// let outcomes: Vec<_> = snapshots.iter().map(|at| at.snapshot().run().unwrap().outcome.as_str()).collect();
    /// assert_eq!(outcomes, ["running", "success"]);
    /// # Ok(())
    /// # }
    /// ```
    fn snapshots(self) -> Snapshots<Self>
    where
        Self: Sized,
        Self::Item: RawInput,
    {
        self.snapshots_with(Options::new())
    }

    /// [`snapshots`](EventStreamExt::snapshots) with these options.
    fn snapshots_with(self, options: Options) -> Snapshots<Self>
    where
        Self: Sized,
        Self::Item: RawInput,
    {
        giving::<Changed, <Self::Item as RawInput>::Error, _>(Snapshots::new(self, options.build()))
    }

    /// Raw events in, verified events out, with chunks expanded.
    ///
    /// For each raw event, in order: the events that it stands for; none if it was dropped, several
    /// if it is a chunk. Warnings are only logged; [`items`](EventStreamExt::items) gives them too.
    ///
    /// # Ending
    /// As [`updates`](EventStreamExt::updates).
    ///
    /// # Errors
    /// As [`updates`](EventStreamExt::updates).
    ///
    /// # Cost
    /// A delta costs one pass over its text, and one allocation. Memory grows only with the items that
    /// a run opens.
    ///
    /// # Cancel safety
    /// A dropped `next()` loses nothing.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::{Error, EventStreamExt};
    /// use futures::{StreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let source = stream::iter([
    ///     Ok(r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#),
    ///     Err(std::io::Error::other("connection reset")),
    /// ]);
    /// let mut events = source.events();
    /// assert_eq!(events.next().await.unwrap().unwrap().event_type().as_str(), "RUN_STARTED");
    /// assert!(matches!(events.next().await, Some(Err(Error::Source(_)))));
    /// assert!(events.next().await.is_none());
    /// # }
    /// ```
    fn events(self) -> Events<Self>
    where
        Self: Sized,
        Self::Item: RawInput,
    {
        self.events_with(Options::new())
    }

    /// [`events`](EventStreamExt::events) with these options.
    fn events_with(self, options: Options) -> Events<Self>
    where
        Self: Sized,
        Self::Item: RawInput,
    {
        giving::<Event, <Self::Item as RawInput>::Error, _>(Events::new(self, options.build_events()))
    }

    /// Raw events in, verified events and warnings out.
    ///
    /// For each raw event, in this order: an [`Item::Warning`] for every removed part; an
    /// [`Item::Event`] for each event that it stands for, with its place in the input.
    ///
    /// # Ending
    /// As [`updates`](EventStreamExt::updates).
    ///
    /// # Errors
    /// As [`updates`](EventStreamExt::updates).
    ///
    /// # Cost
    /// As [`events`](EventStreamExt::events).
    ///
    /// # Cancel safety
    /// A dropped `next()` loses nothing.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::{EventStreamExt, Rule};
    /// use futures::{TryStreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ag_ui_stream::Error> {
    /// let source = stream::iter([r#"{"type":"RUN_ERROR","message":"overloaded","hint":"wait"}"#]);
    /// let items: Vec<_> = source.items().try_collect().await?;
    /// assert_eq!(items[0].warning().unwrap().rule, Rule::E2);
    /// assert!(items[1].event().is_some());
    /// # Ok(())
    /// # }
    /// ```
    fn items(self) -> Items<Self>
    where
        Self: Sized,
        Self::Item: RawInput,
    {
        self.items_with(Options::new())
    }

    /// [`items`](EventStreamExt::items) with these options.
    fn items_with(self, options: Options) -> Items<Self>
    where
        Self: Sized,
        Self::Item: RawInput,
    {
        giving::<Item, <Self::Item as RawInput>::Error, _>(Items::new(self, options.build_events()))
    }

    /// Raw events in, the same out until one run is over, for a source that does not end with its run:
    /// a server that keeps the connection open, a channel whose sender lives on.
    ///
    /// In: raw events. Out, in order: each as a [`RawItem`] with its index, up to and with the first
    /// `RUN_FINISHED` or `RUN_ERROR`. The source is then dropped. Nothing is judged: later stages do that.
    ///
    /// Nothing after the end is seen: no `RUN_ERROR` that takes back a `RUN_FINISHED`, no further run
    /// (rule R4), no fault (rule R8a). If that matters, and the source is a client of this crate, use its
    /// option `after_run`, which waits for a while.
    ///
    /// # Ending
    /// With the run, or with the source.
    ///
    /// # Errors
    /// The source's own, as the last item.
    ///
    /// # Cost
    /// A check of the first bytes of a JSON text, and one copy of a borrowed event.
    ///
    /// # Cancel safety
    /// A dropped `next()` loses nothing.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::EventStreamExt;
    /// use futures::{StreamExt, TryStreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ag_ui_stream::Error> {
    /// let source = stream::iter([
    ///     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
    ///     r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    /// ]);
    /// let open = source.chain(stream::pending());
    /// let events: Vec<_> = open.take_run().events().try_collect().await?;
    /// assert_eq!(events.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    fn take_run(self) -> TakeRun<Self>
    where
        Self: Sized,
        Self::Item: RawInput,
    {
        giving::<RawItem, <Self::Item as RawInput>::Error, _>(TakeRun::new(self))
    }

    /// Raw events in, fewer and shorter ones out, from which a replay comes to the same conversation: for
    /// a record, to be kept or sent. What is joined and what stays, [`Compactor`] says.
    ///
    /// A delta is held back until something else comes than deltas and changes of the state, so this is
    /// not for a stream that somebody watches.
    ///
    /// # Ending
    /// As [`updates`](EventStreamExt::updates); what is held back is given before.
    ///
    /// # Errors
    /// As [`updates`](EventStreamExt::updates). Where the source fails, what is held back is lost, as is
    /// whatever would have followed.
    ///
    /// # Cost
    /// As [`updates`](EventStreamExt::updates), and the length of what is joined.
    ///
    /// # Cancel safety
    /// A dropped `next()` loses nothing.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::{Event, EventStreamExt};
    /// use futures::{TryStreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ag_ui_stream::Error> {
    /// let record = stream::iter([
    ///     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
    ///     r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#,
    ///     r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hel"}"#,
    ///     r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"lo"}"#,
    ///     r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#,
    ///     r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    /// ]);
    /// let events: Vec<Event> = record.compact().try_collect().await?;
    /// assert_eq!(events.len(), 5);
    /// assert_eq!(events[2], Event::text_content("m", "Hello"));
    /// # Ok(())
    /// # }
    /// ```
    fn compact(self) -> Compact<Self>
    where
        Self: Sized,
        Self::Item: RawInput,
    {
        self.compact_with(Compactor::new())
    }

    /// [`compact`](EventStreamExt::compact) with a pipeline of other options.
    fn compact_with(self, machine: Compactor) -> Compact<Self>
    where
        Self: Sized,
        Self::Item: RawInput,
    {
        giving::<Event, <Self::Item as RawInput>::Error, _>(Compact::new(self, machine))
    }

    /// Raw events in; out come two streams that two tasks can own, of the events and of the
    /// snapshots.
    ///
    /// It is [`updates`](EventStreamExt::updates) followed by [`Updates::split`]. When a half waits for
    /// the other, how they end and what it costs: see [`split`](super::split()).
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::EventStreamExt;
    /// use futures::{TryStreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let source = stream::iter([
    ///     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
    ///     r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"Hello"}"#,
    ///     r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    /// ]);
    /// let (events, mut snapshots) = source.split_updates();
    /// let log = tokio::spawn(async move {
    ///     events.try_fold(0, |count, _| async move { Ok(count + 1) }).await
    /// });
    /// let mut last = None;
    /// while let Some(changed) = snapshots.try_next().await? {
    ///     last = Some(changed.into_snapshot());
    /// }
    /// assert_eq!(log.await??, 5);
    /// assert_eq!(last.unwrap().message("m").unwrap().text().unwrap(), "Hello");
    /// # Ok(())
    /// # }
    /// ```
    fn split_updates(self) -> Split<Updates<Self>, <Self::Item as RawInput>::Error>
    where
        Self: Sized,
        Self::Item: RawInput,
    {
        self.updates().split()
    }

    /// Raw events in; out comes a stream that many may read, each at their own pace, whenever they come:
    /// every event after a prelude, or the newest snapshot. It is [`updates`](EventStreamExt::updates)
    /// with [`Updates::share`] after it; who gets what, how readers end and what it costs, [`Share`] says.
    fn share(self) -> Share<Self, <Self::Item as RawInput>::Error>
    where
        Self: Sized,
        Self::Item: RawInput,
    {
        self.updates().share()
    }

    /// The stage before all others, for producers older than AG-UI 1.0: raw events in, and out
    /// again with their retired shapes translated.
    ///
    /// For each raw event, in this order: a [`RawItem::Warning`] for every translation (B1, B2, B3); the
    /// event, changed or not. Middleware on raw events comes after this stage.
    ///
    /// # Ending
    /// With the source.
    ///
    /// # Errors
    /// [`Error::Source`], the source's own.
    ///
    /// # Cost
    /// A search for a few words; a parse if one is found. Borrowed events are copied.
    ///
    /// # Cancel safety
    /// A dropped `next()` loses nothing.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::{EventStreamExt, Rule};
    /// use futures::{TryStreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ag_ui_stream::Error> {
    /// let source = stream::iter([
    ///     r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":null}"#,
    /// ]);
    /// let items: Vec<_> = source.upgrade().enforce().try_collect().await?;
    /// assert_eq!(items[0].warning().unwrap().rule, Rule::B2);
    /// assert!(items[1].event().is_some());
    /// # Ok(())
    /// # }
    /// ```
    fn upgrade(self) -> Upgrade<Self>
    where
        Self: Sized,
        Self::Item: RawInput,
    {
        giving::<RawItem, <Self::Item as RawInput>::Error, _>(Upgrade::new(self, machine::Upgrader::new()))
    }

    /// The first stage: raw events in, typed events out, checked against the schema.
    ///
    /// For each raw event, in this order: an [`Item::Warning`] for every unknown part that was removed;
    /// the event, unless all of it was dropped.
    ///
    /// # Ending
    /// With the source.
    ///
    /// # Errors
    /// [`Error::Source`], the source's own; [`Error::Malformed`] (E5, E9);
    /// [`Error::LimitExceeded`].
    ///
    /// # Cost
    /// A common event costs one pass over its text, and the allocation of its delta; others cost a
    /// tree of borrowed values as well.
    ///
    /// # Cancel safety
    /// A dropped `next()` loses nothing.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::{EventStreamExt, Rule};
    /// use futures::{StreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let mut items = stream::iter([r#"{"type":"FROM_THE_FUTURE"}"#, r#"{"type":"RUN_ERROR"}"#]).enforce();
    /// assert_eq!(items.next().await.unwrap().unwrap().warning().unwrap().rule, Rule::E1);
    /// assert_eq!(items.next().await.unwrap().unwrap_err().rule(), Some(Rule::E5));
    /// assert!(items.next().await.is_none());
    /// # }
    /// ```
    fn enforce(self) -> Enforce<Self>
    where
        Self: Sized,
        Self::Item: RawInput,
    {
        giving::<Item, <Self::Item as RawInput>::Error, _>(Enforce::new(self, Enforcer::new()))
    }

    /// The second stage: chunk events become START, CONTENT and END.
    ///
    /// For each item, in this order: the END of every chunked item that it closes; then the item itself,
    /// or for a chunk the START and CONTENT that it stands for. Warnings pass in their place.
    ///
    /// # Ending
    /// With the source. Items that chunks have open are not closed (C11).
    ///
    /// # Errors
    /// Those of the source; [`Error::Violation`] (C2, C4, C5).
    ///
    /// # Cost
    /// Constant for each event; memory for each item that chunks have open.
    ///
    /// # Cancel safety
    /// A dropped `next()` loses nothing.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::event::{RunErrorEvent, TextMessageChunkEvent};
    /// use ag_ui_stream::id::MessageId;
    /// use ag_ui_stream::{Event, EventStreamExt};
    /// use futures::{TryStreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ag_ui_stream::Error> {
    /// let mut chunk = TextMessageChunkEvent::new();
    /// chunk.message_id = Some(MessageId::from("m"));
    /// chunk.delta = Some("Hello".into());
    /// let events: [Event; 2] = [chunk.into(), RunErrorEvent::new("overloaded").into()];
    /// let items: Vec<_> = stream::iter(events).expand().try_collect().await?;
    /// let types: Vec<_> = items.iter().filter_map(|item| Some(item.event()?.event_type().as_str())).collect();
    /// assert_eq!(types, ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_ERROR"]);
    /// # Ok(())
    /// # }
    /// ```
    fn expand(self) -> Expand<Self>
    where
        Self: Sized,
        Self::Item: ItemInput,
    {
        giving::<Item, <Self::Item as ItemInput>::Error, _>(Expand::new(self, Expander::new()))
    }

    /// The third stage: events pass as they are, as long as they come in a legal order.
    ///
    /// For each item, in this order: the warnings about its place, then itself.
    ///
    /// # Ending
    /// With the source, if the last run had its terminal event.
    ///
    /// # Errors
    /// Those of the source; [`Error::Violation`] (R1 to R4; S2, S8; O2 to O6);
    /// [`Error::Truncated`] (R8).
    ///
    /// # Cost
    /// Constant for each event; memory for each item that a run opens, until the next run.
    ///
    /// # Cancel safety
    /// A dropped `next()` loses nothing.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::event::RunStartedEvent;
    /// use ag_ui_stream::{Event, EventStreamExt};
    /// use futures::{StreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let event: Event = RunStartedEvent::new("thread", "run").into();
    /// let mut items = stream::iter([event]).verify();
    /// assert!(items.next().await.unwrap().is_ok());
    /// assert!(items.next().await.unwrap().unwrap_err().is_truncated());
    /// assert!(items.next().await.is_none());
    /// # }
    /// ```
    fn verify(self) -> Verify<Self>
    where
        Self: Sized,
        Self::Item: ItemInput,
    {
        giving::<Item, <Self::Item as ItemInput>::Error, _>(Verify::new(self, Verifier::new()))
    }

    /// The fourth stage: verified items in, each out with the conversation after it.
    ///
    /// For each item, in this order: an [`Update`] for every warning that assembly causes, then its own.
    /// The items must be [verified](EventStreamExt::verify): events out of order are ignored, not
    /// reported.
    ///
    /// # Ending
    /// With the source. A run that is still active then is truncated in
    /// [`Assemble::machine`]'s snapshot.
    ///
    /// # Errors
    /// Those of the source.
    ///
    /// # Cost
    /// As [`updates`](EventStreamExt::updates).
    ///
    /// # Cancel safety
    /// A dropped `next()` loses nothing.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::EventStreamExt;
    /// use futures::{TryStreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ag_ui_stream::Error> {
    /// let source = stream::iter([r#"{"type":"RUN_ERROR","message":"overloaded"}"#]);
    /// let stages = source.enforce().inspect_ok(|item| println!("{item:?}")).expand().verify().assemble();
    /// let updates: Vec<_> = stages.try_collect().await?;
    /// assert_eq!(updates[0].snapshot().run().unwrap().outcome.as_str(), "error");
    /// # Ok(())
    /// # }
    /// ```
    fn assemble(self) -> Assemble<Self>
    where
        Self: Sized,
        Self::Item: ItemInput,
    {
        giving::<Update, <Self::Item as ItemInput>::Error, _>(Assemble::new(self, Assembler::new()))
    }

    /// A stage of your own: items or events in, the outputs of a [`Machine`](machine::Machine) out.
    ///
    /// For each item, in order: the outputs of the machine.
    ///
    /// # Ending
    /// With the source, if [`Machine::finish`](machine::Machine::finish) allows.
    ///
    /// # Errors
    /// Those of the source; those of the machine.
    ///
    /// # Cost
    /// That of the machine.
    ///
    /// # Cancel safety
    /// A dropped `next()` loses nothing.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::machine::{Machine, Push};
    /// use ag_ui_stream::{Error, Event, EventStreamExt, Item};
    /// use futures::{TryStreamExt, stream};
    ///
    /// /// Gives the text of messages, line by line.
    /// #[derive(Default)]
    /// struct Lines(String);
    ///
    /// impl Push<Item> for Lines {
    ///     fn push(&mut self, item: Item) -> Result<(), Error> {
    ///         if let Some(Event::TextMessageContent(content)) = item.event() {
    ///             self.0.push_str(&content.delta);
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// impl Machine for Lines {
    ///     type Output = String;
    ///
    ///     fn pop(&mut self) -> Option<String> {
    ///         let end = self.0.find('\n')?;
    ///         Some(self.0.drain(..=end).collect())
    ///     }
    ///
    ///     fn finish(&mut self) -> Result<(), Error> {
    ///         self.0.push('\n');
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let source = stream::iter([
    ///     r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"one\ntw"}"#,
    ///     r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"o"}"#,
    /// ]);
    /// let lines: Vec<_> = source.enforce().through(Lines::default()).try_collect().await?;
    /// assert_eq!(lines, ["one\n", "two\n"]);
    /// # Ok(())
    /// # }
    /// ```
    fn through<M>(self, machine: M) -> Through<Self, M>
    where
        Self: Sized,
        Self::Item: ItemInput,
        M: Push<<Self::Item as ItemInput>::Item>,
    {
        giving::<M::Output, <Self::Item as ItemInput>::Error, _>(Through::new(self, machine))
    }

    /// A stage of your own, or one of other options, over raw events:
    /// [`through`](EventStreamExt::through) before enforcement.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::machine::Enforcer;
    /// use ag_ui_stream::{EventStreamExt, Limits};
    /// use futures::{StreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let source = stream::iter([r#"{"type":"RUN_ERROR","message":"overloaded"}"#]);
    /// let limits = Limits { max_event_bytes: 16, ..Limits::default() };
    /// let mut items = source.through_raw(Enforcer::new().with_limits(limits)).verify();
    /// let error = items.next().await.unwrap().unwrap_err();
    /// assert_eq!(error.to_string(), "event 0 is longer than 16 bytes, the `max_event_bytes` of the pipeline");
    /// # }
    /// ```
    fn through_raw<M>(self, machine: M) -> ThroughRaw<Self, M>
    where
        Self: Sized,
        Self::Item: RawInput,
        M: Push<<Self::Item as RawInput>::Raw>,
    {
        giving::<M::Output, <Self::Item as RawInput>::Error, _>(ThroughRaw::new(self, machine))
    }

    /// For a server: an error becomes the `RUN_ERROR` that tells the viewer, in place of a stream that
    /// just breaks off.
    ///
    /// In: items or events, as [`items`](EventStreamExt::items) gives them. Out: the same, and after an
    /// error one `RUN_ERROR`. None where the last run has ended already: it stays as it ended (rule R8a).
    /// What is open is left open; a `RUN_ERROR` ends it (rule R5), and the stream is as legal as before.
    ///
    /// Its message is of this crate's words, since an error may hold what a viewer should not see. The error
    /// itself is logged through `tracing` (feature of that name) at `ERROR`, target `ag_ui_stream`.
    ///
    /// # Ending
    /// With the source, or after the error.
    ///
    /// # Errors
    /// None: it gives items, which [`to_sse`](super::EncodeStreamExt) and any stage take.
    ///
    /// # Cost
    /// A look at the type of each event.
    ///
    /// # Cancel safety
    /// A dropped `next()` loses nothing.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::{Event, EventStreamExt};
    /// use futures::{StreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let source = stream::iter([
    ///     Ok(r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#),
    ///     Err(std::io::Error::other("connection reset by 10.0.0.7")),
    /// ]);
    /// let items: Vec<_> = source.items().or_run_error().collect().await;
    /// let Some(Event::RunError(error)) = items[1].event() else { panic!() };
    /// assert_eq!(&*error.message, "the agent broke the run off");
    /// # }
    /// ```
    fn or_run_error(self) -> OrRunError<Self>
    where
        Self: Sized,
        Self::Item: ItemInput,
    {
        OrRunError::new(self)
    }
}

impl<S: Stream + ?Sized> EventStreamExt for S {}
