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

mod assemble;
mod compat;
mod enforce;
mod expand;
mod items;
mod patch;
mod pipeline;
mod table;
mod verify;

pub use assemble::Assembler;
pub use compat::Compat;
pub use enforce::Enforcer;
pub use expand::Expander;
pub use pipeline::{EventPipeline, Pipeline, PipelineBuilder};
pub use verify::{Strictness, Verifier};

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

    /// Says that no input follows. To be called once.
    ///
    /// # Errors
    /// Where the input may not end here (rule R8).
    fn finish(&mut self) -> Result<(), Error>;
}
