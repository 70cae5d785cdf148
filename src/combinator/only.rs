//! Machines that leave outputs of another out, so that no combinator needs a loop of its own.

use crate::error::Error;
use crate::event::Event;
use crate::item::Item;
use crate::machine::{Cut, Machine, Push};
use crate::snapshot::{Changed, Update};

/// The events of a machine that gives warnings too.
#[derive(Debug)]
pub(super) struct OnlyEvents<M>(pub(super) M);

/// The snapshots that are new, of a machine that gives updates.
#[derive(Debug)]
pub(super) struct OnlyChanges<M>(pub(super) M);

impl<I, M: Push<I, Output = Item>> Push<I> for OnlyEvents<M> {
    fn push(&mut self, input: I) -> Result<(), Error> {
        self.0.push(input)
    }
}

impl<M: Machine<Output = Item>> Machine for OnlyEvents<M> {
    type Output = Event;

    fn pop(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.0.pop()?.into_event() {
                return Some(event);
            }
        }
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.0.finish()
    }

    fn cut(&mut self, cut: Cut) {
        self.0.cut(cut);
    }
}

impl<I, M: Push<I, Output = Update>> Push<I> for OnlyChanges<M> {
    fn push(&mut self, input: I) -> Result<(), Error> {
        self.0.push(input)
    }
}

impl<M: Machine<Output = Update>> Machine for OnlyChanges<M> {
    type Output = Changed;

    fn pop(&mut self) -> Option<Changed> {
        loop {
            if let (_, Some(changed)) = self.0.pop()?.split() {
                return Some(changed);
            }
        }
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.0.finish()
    }

    fn cut(&mut self, cut: Cut) {
        self.0.cut(cut);
    }
}
