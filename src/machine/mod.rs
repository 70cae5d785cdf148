//! The stages as plain state machines, without async: for tests, for other runtimes, and as the
//! inside of the combinators.
//!
//! Each is a [`Machine`]. Its methods are called in this order: [`push`](Push::push) an input,
//! then [`pop`](Machine::pop) until it gives `None`, and so on; at the end of the input
//! [`finish`](Machine::finish), and `pop` until `None` once more. Where `push` or `finish` fails,
//! what came before the fault is still to be popped, and then the machine is done: nothing else
//! may be pushed.
//!
//! ```
//! use ag_ui_stream::machine::{Enforcer, Machine, Push};
//!
//! let mut enforcer = Enforcer::new();
//! enforcer.push(r#"{"type":"RUN_ERROR","message":"no","extra":1}"#)?;
//! assert_eq!(enforcer.pop().unwrap().warning().unwrap().path, "/extra");
//! assert!(enforcer.pop().unwrap().event().is_some());
//! assert!(enforcer.pop().is_none());
//! # Ok::<(), ag_ui_stream::Error>(())
//! ```

use crate::error::Error;

mod assemble;
mod compact;
mod downgrade;
mod enforce;
mod expand;
mod items;
mod patch;
mod pipeline;
mod repair;
mod sink;
mod streamed;
mod table;
mod upgrade;
mod verify;

pub use crate::item::Indexed;
pub use crate::options::{IdChecks, Repair, Repairs, UnknownRepair};
pub use assemble::Assembler;
pub use compact::{Compactor, compact};
pub use downgrade::Downgrader;
pub use enforce::Enforcer;
pub use expand::Expander;
pub use pipeline::{EventPipeline, Pipeline};
pub use repair::Repairer;
pub use upgrade::Upgrader;
pub(crate) use upgrade::upgrade_input;
pub use verify::{Recovery, Verifier};

/// A stage, or any other machine: its outputs are popped. Its inputs are pushed: [`Push`].
///
/// Logging is not for a single machine to do: it hands its warnings to whoever drives it.
/// [`Pipeline`] and [`EventPipeline`], which are all stages in a row, log each warning as they give
/// it; so can you, with [`Warning::log`](crate::Warning::log).
pub trait Machine {
    /// What it gives.
    type Output;

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

/// The [`Machine`] of a type whose outputs wait in its queue `ready`, and which may
/// have something to do at the end of its input.
macro_rules! queued_machine {
    ($name:ident: $output:ty) => {
        $crate::machine::queued_machine!($name: $output, |_| Ok(()));
    };
    ($name:ident: $output:ty, $finish:expr) => {
        impl $crate::machine::Machine for $name {
            type Output = $output;

            fn pop(&mut self) -> Option<$output> {
                self.ready.pop_front()
            }

            fn ready(&self) -> usize {
                self.ready.len()
            }

            fn finish(&mut self) -> Result<(), $crate::Error> {
                let finish: fn(&mut Self) -> Result<(), $crate::Error> = $finish;
                finish(self)
            }
        }
    };
}
pub(crate) use queued_machine;

/// A machine that takes inputs of this type.
pub trait Push<I>: Machine {
    /// Takes the next input.
    ///
    /// # Errors
    /// The machine's rules. What it gave before the fault is still to be popped; after that the
    /// machine is done.
    fn push(&mut self, input: I) -> Result<(), Error>;
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
