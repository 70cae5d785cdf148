use futures::stream::Stream;

use super::{Assemble, Enforce, ItemInput, RawInput, Through};
use crate::error::Error;
use crate::item::Item;
use crate::machine::{Assembler, Enforcer, Machine};
use crate::snapshot::Update;

/// Says what a stream gives, to have a wrong type found here and not where it is used.
fn giving<T, E, S: Stream<Item = Result<T, Error<E>>>>(stream: S) -> S {
    stream
}

/// The stages as methods of every [`Stream`].
pub trait EventStreamExt: Stream {
    /// x
    fn enforce(self) -> Enforce<Self>
    where
        Self: Sized,
        Self::Item: RawInput,
    {
        self.enforce_with(Enforcer::new())
    }

    /// x
    fn enforce_with(self, machine: Enforcer) -> Enforce<Self>
    where
        Self: Sized,
        Self::Item: RawInput,
    {
        giving::<Item, <Self::Item as RawInput>::Error, _>(Enforce::new(self, machine))
    }

    /// x
    fn assemble(self) -> Assemble<Self>
    where
        Self: Sized,
        Self::Item: ItemInput,
    {
        self.assemble_with(Assembler::new())
    }

    /// x
    fn assemble_with(self, machine: Assembler) -> Assemble<Self>
    where
        Self: Sized,
        Self::Item: ItemInput,
    {
        giving::<Update, <Self::Item as ItemInput>::Error, _>(Assemble::new(self, machine))
    }

    /// x
    fn through<M>(self, machine: M) -> Through<Self, M>
    where
        Self: Sized,
        Self::Item: ItemInput,
        M: Machine<<Self::Item as ItemInput>::Item>,
    {
        giving::<M::Output, <Self::Item as ItemInput>::Error, _>(Through::new(self, machine))
    }
}

impl<S: Stream + ?Sized> EventStreamExt for S {}
