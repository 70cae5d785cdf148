//! The table of the combinators, one for each stage and for the whole pipeline.

use core::pin::Pin;
use core::task::{Context, Poll};

use futures::stream::{FusedStream, Stream};

use super::share::share;
use super::{ItemInput, RawInput, Share, Split, SplitCapacity, Staged, split};
#[cfg(feature = "__format")]
use crate::codec::Encoder;
#[cfg(feature = "__codec")]
use crate::codec::JsonEncoder;
use crate::error::Error;
use crate::event::Event;
use crate::item::Item;
use crate::machine::{Assembler, Compactor, Enforcer, EventPipeline, Expander, Pipeline, Push, Upgrader, Verifier};
use crate::raw::RawItem;
use crate::snapshot::{Changed, Snapshot, Update};

/// For each combinator: its name, its machine, its input and its output; and, if it gives only a part of
/// the machine's outputs, the function that selects it.
macro_rules! combinators {
    ($(
        $(#[$meta:meta])*
        $name:ident<S $(, $param:ident)?>: $machine:ty, $input:ident::$event:ident => $output:ty $(, only $only:expr)?;
    )*) => {$(
        combinator!($(#[$meta])* $name<S $(, $param)?>, $machine);

        impl<S $(, $param)?> Stream for $name<S $(, $param)?>
        where
            S: Stream,
            S::Item: $input,
            $($param: Push<<S::Item as $input>::$event>,)?
        {
            type Item = Result<$output, Error<<S::Item as $input>::Error>>;

            fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
                self.project().inner.poll_next(cx, $input::into_result, combinators!(@only $($only)?))
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                let hint = self.inner.size_hint();
                combinators!(@hint hint $($only)?)
            }
        }

        impl<S $(, $param)?> FusedStream for $name<S $(, $param)?>
        where
            S: Stream,
            S::Item: $input,
            $($param: Push<<S::Item as $input>::$event>,)?
        {
            fn is_terminated(&self) -> bool {
                self.inner.is_terminated()
            }
        }
    )*};
    (@only) => { Some };
    (@only $only:expr) => { $only };
    (@hint $hint:ident) => { $hint };
    // A ready output may be left out.
    (@hint $hint:ident $only:expr) => { (0, $hint.1) };
}

combinators! {
    /// Raw events with retired shapes translated: the stream of
    /// [`upgrade`](super::EventStreamExt::upgrade).
    Upgrade<S>: Upgrader, RawInput::Raw => RawItem;

    /// Raw events checked against the schema: the stream of [`enforce`](super::EventStreamExt::enforce).
    Enforce<S>: Enforcer, RawInput::Raw => Item;

    /// Items with their chunks expanded: the stream of
    /// [`expand`](super::EventStreamExt::expand).
    Expand<S>: Expander, ItemInput::Item => Item;

    /// Items checked by the rules of order and ownership: the stream of
    /// [`verify`](super::EventStreamExt::verify).
    Verify<S>: Verifier, ItemInput::Item => Item;

    /// Verified items, each with the conversation after it: the stream of
    /// [`assemble`](super::EventStreamExt::assemble).
    Assemble<S>: Assembler, ItemInput::Item => Update;

    /// Raw events as verified ones, each with the conversation after it: the stream of
    /// [`updates`](super::EventStreamExt::updates).
    Updates<S>: Pipeline, RawInput::Raw => Update;

    /// The conversation, each time it changed: the stream of
    /// [`snapshots`](super::EventStreamExt::snapshots).
    Snapshots<S>: Pipeline, RawInput::Raw => Changed, only |update: Update| update.split().1;

    /// Raw events as verified ones: the stream of [`events`](super::EventStreamExt::events).
    Events<S>: EventPipeline, RawInput::Raw => Event, only Item::into_event;

    /// Raw events as verified ones, with the warnings: the stream of
    /// [`items`](super::EventStreamExt::items).
    Items<S>: EventPipeline, RawInput::Raw => Item;

    /// Raw events as fewer and shorter ones: the stream of [`compact`](super::EventStreamExt::compact).
    Compact<S>: Compactor, RawInput::Raw => Event;

    /// Items through a machine of the user's own: the stream of
    /// [`through`](super::EventStreamExt::through).
    Through<S, M>: M, ItemInput::Item => M::Output;

    /// Raw events through a machine: the stream of
    /// [`through_raw`](super::EventStreamExt::through_raw).
    ThroughRaw<S, M>: M, RawInput::Raw => M::Output;
}

#[cfg(feature = "__format")]
combinators! {
    /// Events as bytes: the stream of [`EncodeStreamExt`](super::EncodeStreamExt).
    Encode<S>: Encoder, ItemInput::Item => Vec<u8>;
}

#[cfg(feature = "__codec")]
combinators! {
    /// Events as JSON texts: the stream of [`EncodeStreamExt::to_json`](super::EncodeStreamExt::to_json).
    ToJson<S>: JsonEncoder, ItemInput::Item => String;
}

/// For combinators that hold the conversation.
macro_rules! with_snapshot {
    ($($name:ident)*) => {$(
        impl<S> $name<S> {
            /// The conversation after everything that came so far.
            #[must_use]
            pub fn snapshot(&self) -> &Snapshot {
                self.machine().snapshot()
            }
        }
    )*};
}

with_snapshot! { Assemble Updates Snapshots }

impl<S: Unpin> Updates<S> {
    /// Gives the run up: what was active is truncated in the snapshot.
    pub(crate) fn abandon(&mut self) {
        Pin::new(&mut self.inner).abandon();
    }
}

/// Those that give updates.
macro_rules! splittable {
    ($($name:ident: $input:ident;)*) => {$(
        impl<S> $name<S>
        where
            S: Stream,
            S::Item: $input,
        {
            /// Two streams that two tasks can own, of the events and of the snapshots; see
            /// [`split`](super::split()).
            pub fn split(self) -> Split<Self, <S::Item as $input>::Error> {
                split(self)
            }
        }
    )*};
}

splittable! {
    Assemble: ItemInput;
    Updates: RawInput;
}

impl<S> Updates<S>
where
    S: Stream,
    S::Item: RawInput,
{
    /// A stream that many may read; see [`Share`].
    pub fn share(self) -> Share<S, <S::Item as RawInput>::Error> {
        share(self, None)
    }

    /// [`share`](Updates::share) with other bounds on what is held for slow readers. More than the bounds
    /// is held of what comes of a single input.
    pub fn share_with_capacity(self, capacity: SplitCapacity) -> Share<S, <S::Item as RawInput>::Error> {
        share(self, Some(capacity))
    }
}
