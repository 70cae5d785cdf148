//! Which types are `Send`, `Sync`, `Unpin` and `Debug`, and for which that depends on the source.

use std::convert::Infallible;
use std::fmt::Debug;
use std::marker::PhantomPinned;
use std::rc::Rc;

use ag_ui_stream::agent::{AgentError, RawEventStream, Replay};
use ag_ui_stream::combinator::{
    Assemble, Compact, Enforce, Events, Expand, Items, OrRunError, ReuniteError, Reunited, SharedError, SharedEvents,
    SharedSnapshots, Snapshots, SplitEvents, SplitSnapshots, TakeRun, Through, ThroughRaw, Updates, Upgrade, Verify,
};
use ag_ui_stream::conversation::{AnswerError, Answers, Conversation, Thread, TooManyRounds, Tools, Turn};
use ag_ui_stream::layer::{Coalesce, Filter, Layered, Merged};
use ag_ui_stream::machine::Indexed;
use ag_ui_stream::machine::{Assembler, Enforcer, EventPipeline, Expander, IdChecks, Pipeline, Verifier};
use ag_ui_stream::producer::{ProducedRun, RunContext, RunWriter};
use ag_ui_stream::snapshot::{Changed, Snapshot, Update};
use ag_ui_stream::{Agent, Error, Event, EventStreamExt, Item, Options, Raw, RawItem};
use futures::stream::{self, FusedStream, Iter};

/// Asserts that a type has all of these.
macro_rules! is {
    ($($type:ty: $($bound:path),+;)*) => {
        const _: () = {
            $({
                const fn check<T: ?Sized $(+ $bound)+>() {}
                check::<$type>();
            })*
        };
    };
}

/// Asserts that a type implements none of these: with any of them, `Which` would be ambiguous.
macro_rules! is_not {
    ($($type:ty: $($bound:path),+;)*) => {
        const _: () = {
            $($({
                trait Either<Which> {
                    fn check() {}
                }
                struct Has;
                impl<T: ?Sized> Either<()> for T {}
                impl<T: ?Sized + $bound> Either<Has> for T {}
                let _ = <$type as Either<_>>::check;
            })+)*
        };
    };
}

/// A source that is all of them.
type Good = Iter<std::vec::IntoIter<String>>;
/// Neither `Send` nor `Sync`.
struct Local(#[allow(dead_code, reason = "for its type")] Rc<()>);
/// Neither `Unpin` nor `Debug`.
struct Pinned(#[allow(dead_code, reason = "for its type")] PhantomPinned);

/// For each combinator that holds a source: as its source is; `Debug` whatever the source.
macro_rules! as_its_source_is {
    ($($name:ident$(<$machine:ty>)?),*) => {
        is! { $(
            $name<Good $(, $machine)?>: Send, Unpin, Debug;
            $name<Local $(, $machine)?>: Unpin, Debug;
            $name<Pinned $(, $machine)?>: Send, Debug;
            $name<RawEventStream $(, $machine)?>: Send, Unpin, Debug;
        )* }
        is_not! { $(
            $name<Local $(, $machine)?>: Send, Sync;
            $name<Pinned $(, $machine)?>: Unpin;
        )* }
    };
}

as_its_source_is!(
    Upgrade,
    Enforce,
    Expand,
    Verify,
    Assemble,
    Items,
    Events,
    Updates,
    Snapshots,
    Compact,
    TakeRun,
    OrRunError,
    Through<Verifier>,
    ThroughRaw<Enforcer>
);

is! {
    Enforce<Good>: Sync;
    Expand<Good>: Sync;
    Verify<Good>: Sync;
    Assemble<Good>: Sync;
    Through<Good, Verifier>: Sync;

    // The halves box the source, and share it under a lock.
    SplitEvents<Good, Infallible>: Send, Sync, Unpin, Debug;
    SplitSnapshots<Good, Infallible>: Send, Sync, Unpin, Debug;
    SplitEvents<Pinned, Infallible>: Send, Sync, Unpin, Debug;
    SplitSnapshots<Pinned, Infallible>: Send, Sync, Unpin, Debug;
    SplitEvents<Updates<RawEventStream>, AgentError>: Send, Sync, Unpin, Debug;
    SplitSnapshots<Updates<RawEventStream>, AgentError>: Send, Sync, Unpin, Debug;
    SplitEvents<Local, Infallible>: Unpin, Debug;
    SharedEvents<Good, Infallible>: Send, Sync, Unpin, Debug;
    SharedSnapshots<Pinned, Infallible>: Send, Sync, Unpin, Debug;
    SharedError<Infallible>: Send, Sync, Unpin, Debug, std::error::Error;
    Reunited<Good, Infallible>: Send, Debug;
    ReuniteError<Good, Infallible>: Send, Sync, Unpin, Debug, std::error::Error;

    Options: Send, Sync, Unpin, Debug, Clone, PartialEq, Default;
    Thread: Send, Sync, Unpin, Debug, Clone;
    Conversation<Box<dyn Agent>>: Send, Unpin, Debug;
    Turn<'static>: Send, Unpin, Debug;
    Answers<'static>: Send, Unpin, Debug;
    Tools: Send, Sync, Unpin, Debug, Clone;
    AnswerError: Send, Sync, Unpin, Debug, Clone, std::error::Error;
    TooManyRounds: Send, Sync, Unpin, Debug, Clone, std::error::Error;
    Replay: Send, Sync, Unpin, Debug, Clone, Agent;
    ProducedRun: Send, Unpin, Debug, FusedStream;
    RunContext: Send, Sync, Unpin, Debug, Clone;
    RunWriter: Send, Sync, Unpin, Debug;
    Merged: Send, Sync, Unpin, Debug, Clone, Agent;
    Layered<Box<dyn Agent>, Filter>: Send, Sync, Unpin, Agent;
    Layered<Replay, Coalesce>: Send, Sync, Unpin, Debug, Clone, Agent;
    RawEventStream: Send, Unpin;
    dyn Agent: Send, Sync, Agent;
    Box<dyn Agent>: Send, Sync, Unpin, Agent;
    AgentError: Send, Sync, Unpin, Debug, Clone, std::error::Error;
    Error: Send, Sync, Unpin, Debug, Clone, PartialEq, std::error::Error;
    Error<AgentError>: Send, Sync, Unpin, Debug, Clone, std::error::Error;
    Error<std::io::Error>: Send, Sync, Unpin, Debug, std::error::Error;

    Event: Send, Sync, Unpin, Debug, Clone, PartialEq;
    Item: Send, Sync, Unpin, Debug, Clone, PartialEq;
    Indexed: Send, Sync, Unpin, Debug, Clone, PartialEq;
    Raw: Send, Sync, Unpin, Debug, Clone, PartialEq;
    RawItem: Send, Sync, Unpin, Debug, Clone, PartialEq;
    Snapshot: Send, Sync, Unpin, Debug, Clone, PartialEq, Default;
    Update: Send, Sync, Unpin, Debug, Clone;
    Changed: Send, Sync, Unpin, Debug, Clone;
    ag_ui_stream::snapshot::Document: Send, Sync, Unpin, Debug, Clone, PartialEq, Default, std::fmt::Display;
    ag_ui_stream::snapshot::Array: Send, Sync, Unpin, Debug, Clone, PartialEq, Default;
    ag_ui_stream::snapshot::Object: Send, Sync, Unpin, Debug, Clone, PartialEq, Default;

    Enforcer: Send, Sync, Unpin, Debug, Default;
    Expander: Send, Sync, Unpin, Debug, Default;
    Verifier: Send, Sync, Unpin, Debug, Default;
    Assembler: Send, Sync, Unpin, Debug, Default;
    ag_ui_stream::machine::Upgrader: Send, Unpin, Debug, Default;
    Pipeline: Send, Unpin, Debug, Default;
    EventPipeline: Send, Unpin, Debug, Default;
    IdChecks: Send, Sync, Unpin, Debug, Default, Clone;
}

is_not! {
    SplitEvents<Local, Infallible>: Send, Sync;
    SplitSnapshots<Local, Infallible>: Send, Sync;
    // An error that is shared between two tasks has to be `Sync`.
    SplitEvents<Good, std::cell::Cell<u8>>: Send, Sync;
    SplitEvents<Good, Infallible>: Clone;
    RawEventStream: Sync;
}

#[test]
fn every_combinator_is_fused_over_any_source() {
    fn fused<S: FusedStream>(_: S) {}
    let text = || stream::iter(["{}"]);
    let events = || stream::iter(Vec::<Event>::new());
    fused(text().upgrade());
    fused(text().enforce());
    fused(events().expand());
    fused(events().verify());
    fused(events().assemble());
    fused(events().through(Verifier::new()));
    fused(text().take_run());
    fused(text().enforce().or_run_error());
    fused(text().items());
    fused(text().events());
    fused(text().updates());
    fused(text().snapshots());
    let (events, snapshots) = text().split_updates();
    fused(events);
    fused(snapshots);
}

/// The usual traits can all be imported beside this crate's, and no call is ambiguous.
#[test]
fn no_method_collides_with_the_usual_traits() {
    #[allow(unused_imports, reason = "to be in the way")]
    use futures::{SinkExt as _, StreamExt as _, TryStreamExt as _};
    #[allow(unused_imports, reason = "to be in the way")]
    use tokio_stream::StreamExt as _;

    let text = || stream::iter(["{}"]);
    let events = || stream::iter(Vec::<Event>::new());
    drop(text().upgrade());
    drop(text().enforce());
    drop(events().expand());
    drop(events().verify());
    drop(events().assemble().split());
    drop(events().through(Verifier::new()));
    drop(text().take_run());
    drop(text().items());
    drop(text().events());
    drop(text().updates().split());
    drop(text().snapshots());
    drop(text().split_updates());
}

#[test]
fn a_boxed_source_can_be_shown() {
    let boxed: RawEventStream = Box::pin(stream::empty());
    let shown = format!("{:?}", boxed.updates());
    assert!(shown.starts_with("Updates { state: open, machine: Pipeline {"), "{shown}");
    let (events, snapshots) = stream::iter(["{}"]).split_updates();
    assert_eq!(format!("{events:?}"), "SplitEvents { is_terminated: false, .. }");
    assert_eq!(format!("{snapshots:?}"), "SplitSnapshots { is_terminated: false, .. }");
}
