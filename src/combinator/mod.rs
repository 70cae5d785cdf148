//! The stages as combinators over [`futures::Stream`](futures::stream::Stream).
//!
//! [`EventStreamExt`] has them as methods and says how they behave; the structs here are what the
//! methods give. Each is lazy, holds its source and a [machine](crate::machine), spawns nothing,
//! needs no runtime, and is `Send` and `Unpin` where its source is.
//!
//! # Channels
//!
//! A receiver of tokio's is a source with a wrapper of `tokio-stream`. `ReceiverStream` for
//! [`mpsc`](tokio::sync::mpsc): its bound is the back pressure on the agent. `BroadcastStream` has an
//! error of its own for a receiver that lagged; events are missing then, and it ends the run as
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
//! What a combinator does is this loop, around the same machine:
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

/// A combinator: a [`Staged`] with a name. What all have beside their `Stream`: a constructor, access to
/// the source and to the machine, `Debug`.
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

            /// The source; `None` once it ended or failed, for it is dropped there and then.
            #[must_use]
            pub fn get_ref(&self) -> Option<&S> {
                self.inner.get_ref()
            }

            /// The source, to change it.
            ///
            /// Not to take items from: what this stage does not see, it cannot account for.
            #[must_use]
            pub fn get_mut(&mut self) -> Option<&mut S> {
                self.inner.get_mut()
            }

            /// The source, pinned, to change it.
            ///
            /// Not to take items from: what this stage does not see, it cannot account for.
            #[must_use]
            pub fn get_pin_mut(self: Pin<&mut Self>) -> Option<Pin<&mut S>> {
                self.project().inner.get_pin_mut()
            }

            /// Gives the source back; `None` once it ended or failed.
            ///
            /// The state of the machine is lost, and with it the outputs that were ready but not
            /// taken yet.
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
#[cfg(any(feature = "record", feature = "reqwest", feature = "websocket"))]
pub(crate) use idle::Timer;
#[cfg(any(feature = "__format", feature = "websocket"))]
pub(crate) use staged::MAX_SWALLOWED;
pub(crate) use staged::Staged;

/// Says what a stream gives: a wrong item is found where the stream is made, and not where it is used.
fn giving<T, E, S: futures::stream::Stream<Item = Result<T, crate::error::Error<E>>>>(stream: S) -> S {
    stream
}
