//! The stages as combinators over [`futures::Stream`](futures::stream::Stream).
//!
//! [`EventStreamExt`] has them as methods and describes them; the structs here are the streams that the
//! methods return. Each is lazy, holds its source and a [machine](crate::machine), spawns nothing,
//! needs no runtime, and is `Send` and `Unpin` if its source is.
//!
//! # Channels
//!
//! A receiver of tokio is a source by a wrapper of `tokio-stream`. With `ReceiverStream` for
//! [`mpsc`](tokio::sync::mpsc), the bound of the channel is the back pressure on the agent. With
//! `BroadcastStream`, a receiver that lagged has missed events: its error ends the run as
//! [`Error::Source`](crate::Error::Source).
//!
//! ```
//! use ag_ui_stream::EventStreamExt;
//! use ag_ui_stream::event::{Event, RunFinishedEvent, RunStartedEvent};
//! use futures::TryStreamExt;
//! use tokio::sync::mpsc;
//! use tokio_stream::wrappers::ReceiverStream;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), ag_ui_stream::Error> {
//! let (agent, receiver) = mpsc::channel::<Event>(16);
//! tokio::spawn(async move {
//!     let _ = agent.send(RunStartedEvent::new("thread", "run").into()).await;
//!     let _ = agent.send(RunFinishedEvent::new("thread", "run").into()).await;
//! });
//! let updates: Vec<_> = ReceiverStream::new(receiver).updates().try_collect().await?;
//! assert_eq!(updates.len(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Use without this module
//!
//! A combinator is this loop around the same machine:
//!
//! ```
//! use ag_ui_stream::Error;
//! use ag_ui_stream::machine::{Enforcer, Push};
//!
//! fn drive<I, M: Push<I>>(
//!     source: impl IntoIterator<Item = I>,
//!     machine: &mut M,
//!     mut give: impl FnMut(M::Output),
//! ) -> Result<(), Error> {
//!     for input in source {
//!         let pushed = machine.push(input);
//!         while let Some(output) = machine.pop() {
//!             give(output);
//!         }
//!         pushed?; // what came before the fault is out by now
//!     }
//!     let finished = machine.finish();
//!     while let Some(output) = machine.pop() {
//!         give(output);
//!     }
//!     finished
//! }
//!
//! let source = [r#"{"type":"RUN_ERROR","message":"overloaded"}"#];
//! drive(source, &mut Enforcer::new(), |item| println!("{item:?}"))?;
//! # Ok::<(), Error>(())
//! ```

/// A combinator: a [`Staged`] with a name. Generates the constructor, the access to source and machine,
/// and `Debug`.
macro_rules! combinator {
    ($(#[$meta:meta])* $name:ident<S $(, $param:ident)?>, $machine:ty) => {
        pin_project_lite::pin_project! {
            $(#[$meta])*
            #[must_use = "streams do nothing unless polled"]
            pub struct $name<S $(, $param)?> {
                #[pin]
                inner: Staged<S, $machine>,
            }
        }

        impl<S $(, $param)?> $name<S $(, $param)?> {
            pub(crate) fn new(source: S, machine: $machine) -> Self {
                Self { inner: Staged::new(source, machine) }
            }

            /// The source; `None` once it ended or failed, as it is dropped then.
            #[must_use]
            pub fn get_ref(&self) -> Option<&S> {
                self.inner.get_ref()
            }

            /// The source, to change it.
            ///
            /// Do not take items from it: the stage would not see them.
            #[must_use]
            pub fn get_mut(&mut self) -> Option<&mut S> {
                self.inner.get_mut()
            }

            /// The source, pinned, to change it.
            ///
            /// Do not take items from it: the stage would not see them.
            #[must_use]
            pub fn get_pin_mut(self: Pin<&mut Self>) -> Option<Pin<&mut S>> {
                self.project().inner.get_pin_mut()
            }

            /// Gives the source back; `None` once it ended or failed.
            ///
            /// The state of the machine is lost, with the outputs that were ready but not taken.
            #[must_use]
            pub fn into_inner(self) -> Option<S> {
                self.inner.into_inner()
            }

            /// The machine, to look at.
            #[must_use]
            pub fn machine(&self) -> &$machine {
                self.inner.machine()
            }
        }

        impl<S $(, $param: core::fmt::Debug)?> core::fmt::Debug for $name<S $(, $param)?> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.inner.fmt_as(stringify!($name), f)
            }
        }
    };
}

#[cfg(feature = "__codec")]
mod bytes;
#[cfg(feature = "__format")]
mod decode;
mod ext;
#[cfg(any(feature = "sse", feature = "websocket"))]
mod idle;
mod input;
#[cfg(feature = "sse")]
mod keep_alive;
mod or_run_error;
#[cfg(feature = "__format")]
mod pieces;
mod share;
mod split;
mod staged;
mod stages;
mod take_run;

#[cfg(feature = "__format")]
pub use bytes::ByteStreamExt;
#[cfg(feature = "__codec")]
pub use bytes::EncodeStreamExt;
#[cfg(feature = "__format")]
pub use decode::Decode;
pub use ext::EventStreamExt;
pub use input::{ItemInput, RawInput};
#[cfg(feature = "sse")]
pub use keep_alive::KeepAlive;
#[cfg(feature = "axum")]
pub(crate) use or_run_error::BROKEN_OFF;
pub use or_run_error::OrRunError;
#[cfg(feature = "__format")]
pub use pieces::{Pieces, pieces};
pub use share::{Share, SharedError, SharedEvents, SharedSnapshots};
pub use split::{
    ReuniteError, Reunited, Split, SplitCapacity, SplitEvents, SplitSnapshots, split, split_with_capacity,
};
#[cfg(feature = "__format")]
pub use stages::Encode;
#[cfg(feature = "__codec")]
pub use stages::ToJson;
pub use stages::{
    Assemble, Compact, Enforce, Events, Expand, Items, Snapshots, Through, ThroughRaw, Updates, Upgrade, Verify,
};
pub use take_run::TakeRun;

#[cfg(any(feature = "sse", feature = "websocket"))]
pub(crate) use idle::Idle;
#[cfg(any(feature = "sse", feature = "websocket"))]
pub(crate) use idle::Timer;
pub(crate) use staged::MAX_SWALLOWED;
pub(crate) use staged::Staged;

/// States the item of a stream, so that a wrong one is an error where the stream is made.
fn giving<T, E, S: futures::stream::Stream<Item = Result<T, crate::error::Error<E>>>>(stream: S) -> S {
    stream
}
