//! The stages as plain state machines, without async: for tests, for other runtimes, and as the
//! inside of the combinators.
//!
//! Each is a [`Machine`]. Its methods are called in this order: [`push`](Machine::push) an input,
//! then [`pop`](Machine::pop) until it gives `None`, and so on; at the end of the input
//! [`finish`](Machine::finish), and `pop` until `None` once more. Where `push` or `finish` fails,
//! what came before the fault is still to be popped, and then the machine is done: nothing else
//! may be pushed.
//!
//! ```
//! use ag_ui_stream::machine::{Enforcer, Machine};
//!
//! let mut enforcer = Enforcer::new();
//! enforcer.push(r#"{"type":"RUN_ERROR","message":"no","extra":1}"#)?;
//! assert_eq!(enforcer.pop().unwrap().warning().unwrap().path, "/extra");
//! assert!(enforcer.pop().unwrap().event().is_some());
//! assert!(enforcer.pop().is_none());
//! # Ok::<(), ag_ui_stream::Error>(())
//! ```

use crate::error::Error;
use crate::item::Item;
use crate::raw::{RawEvent, RawItem};
use crate::snapshot::Update;

mod assemble;
mod compat;
mod downgrade;
mod enforce;
mod expand;
mod items;
mod open;
mod patch;
mod pipeline;
mod table;
mod verify;

pub use crate::item::Indexed;
pub use assemble::Assembler;
pub use compat::Compat;
pub(crate) use compat::upgrade_input;
pub use downgrade::Downgrade;
pub use enforce::Enforcer;
pub use expand::Expander;
pub use pipeline::{EventPipeline, Pipeline, PipelineBuilder};
pub use verify::{Recovery, Strictness, Verifier};

/// A stage: inputs are pushed, outputs are popped.
pub trait Machine<I> {
    /// What it gives.
    type Output;

    /// Takes the next input.
    ///
    /// # Errors
    /// The stage's rules. What it gave before the fault is still to be popped; after that the
    /// machine is done.
    fn push(&mut self, input: I) -> Result<(), Error>;

    /// The next output that is ready.
    fn pop(&mut self) -> Option<Self::Output>;

    /// How many outputs are sure to be popped before the next input: no more than there are, maybe
    /// fewer.
    fn ready(&self) -> usize {
        0
    }

    /// The fault that `pop` came upon, for a machine that reads its input on demand: to be asked for
    /// where `pop` gives `None`. Who does not ask is told by the next `push` or `finish`.
    fn fault(&mut self) -> Option<Error> {
        None
    }

    /// Says that no input follows. To be called once.
    ///
    /// # Errors
    /// Where the input may not end here (rule R8).
    fn finish(&mut self) -> Result<(), Error>;

    /// Says that the input was cut off, where it has no proper end for [`finish`](Machine::finish)
    /// to judge. To be called once everything was popped; it gives no outputs.
    fn cut(&mut self, cut: Cut) {
        let _ = cut;
    }
}

/// How the input of a machine was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cut {
    /// The source failed, or a stage before found it truncated: so is the run that was active
    /// (rule R8).
    Truncated,
    /// A stage before rejected an event.
    Rejected,
}

/// The trait's methods on the machine itself, so that a caller need not say which input it means.
macro_rules! inherent {
    ($($machine:ty: $input:path as $any:ty => $output:ty;)*) => {$(
        impl $machine {
            /// Takes the next input: [`Machine::push`].
            ///
            /// # Errors
            /// Those of the machine; what it gave before the fault is still to be popped.
            #[inline]
            pub fn push(&mut self, input: impl $input) -> Result<(), Error> {
                Machine::push(self, input)
            }

            /// The next output that is ready: [`Machine::pop`].
            #[inline]
            pub fn pop(&mut self) -> Option<$output> {
                Machine::<$any>::pop(self)
            }

            /// Says that no input follows: [`Machine::finish`].
            ///
            /// # Errors
            /// Where the input may not end here (rule R8).
            pub fn finish(&mut self) -> Result<(), Error> {
                Machine::<$any>::finish(self)
            }
        }
    )*};
}

inherent! {
    Compat: RawEvent as &str => RawItem;
    Downgrade: RawEvent as &str => RawItem;
    Enforcer: RawEvent as &str => Item;
    Expander: Into<Item> as Item => Item;
    Verifier: Into<Item> as Item => Item;
    Assembler: Into<Item> as Item => Update;
    EventPipeline: RawEvent as &str => Item;
    Pipeline: RawEvent as &str => Update;
}
