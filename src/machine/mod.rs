//! The stages as state machines without async. The combinators drive them; drive them yourself in
//! tests or with another runtime.
//!
//! Each is a [`Machine`]. Call its methods in this order: [`push`](Push::push) an input, then
//! [`pop`](Machine::pop) until it gives `None`, and so on; at the end of the input
//! [`finish`](Machine::finish), and `pop` until `None` once more. If `push` or `finish` fails, pop the
//! outputs from before the fault. The machine is then done; do not push again.
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
mod lazy;
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

/// A stage, or any other machine: its outputs are popped. Its inputs are pushed by [`Push`].
///
/// A single machine does not log: its warnings are outputs. [`Pipeline`] and [`EventPipeline`], which
/// are all stages in a row, log each warning as they give it; so can you, with
/// [`Warning::log`](crate::Warning::log).
pub trait Machine {
    /// Its outputs.
    type Output;

    /// The next output that is ready.
    fn pop(&mut self) -> Option<Self::Output>;

    /// A number of outputs that can be popped before the next input; there may be more.
    fn ready(&self) -> usize {
        0
    }

    /// The fault that `pop` found, for a machine that reads its input on demand. Ask for it when `pop`
    /// gives `None`; otherwise the next `push` or `finish` gives it.
    fn fault(&mut self) -> Option<Error> {
        None
    }

    /// Ends the input. To be called once.
    ///
    /// # Errors
    /// If the input may not end here (rule R8).
    fn finish(&mut self) -> Result<(), Error>;

    /// Tells the machine that the input was cut off, in place of [`finish`](Machine::finish). To be
    /// called after everything was popped; it gives no outputs.
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

            #[inline]
            fn pop(&mut self) -> Option<$output> {
                self.ready.pop_front()
            }

            fn ready(&self) -> usize {
                self.ready.len()
            }

            fn finish(&mut self) -> Result<(), $crate::error::Error> {
                let finish: fn(&mut Self) -> Result<(), $crate::error::Error> = $finish;
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
    /// Those of the machine. Outputs from before the fault can still be popped; then the machine is
    /// done.
    fn push(&mut self, input: I) -> Result<(), Error>;
}

/// How the input of a machine was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cut {
    /// The source failed, or an earlier stage found it truncated: so is the active run (rule R8).
    Truncated,
    /// An earlier stage rejected an event.
    Rejected,
}
