//! Looks through the error of a source to what this crate knows about it: whether it cut off a run,
//! or holds an error that a stage before found.

use core::any::Any;
use core::convert::Infallible;

#[cfg(any(feature = "reqwest", feature = "websocket"))]
use crate::client::ClientError;
use crate::error::{AgentError, Error, SourceError, Verdict};

impl<E: 'static> SourceError for E {
    fn verdict(&self) -> Verdict {
        verdict(self).unwrap_or(Verdict::TRANSPORT)
    }
}

/// What is known about an error of this type; `None` for a type that is not this crate's.
fn verdict(error: &(dyn Any + 'static)) -> Option<Verdict> {
    if let Some(error) = error.downcast_ref::<AgentError>() {
        return within(error);
    }
    #[cfg(any(feature = "reqwest", feature = "websocket"))]
    if let Some(error) = error.downcast_ref::<ClientError>() {
        return Some(error.verdict());
    }
    None
}

/// What an agent's error holds: that of a client, or of a stage behind another source.
fn within(error: &AgentError) -> Option<Verdict> {
    macro_rules! first_of {
        ($($(#[$cfg:meta])* $type:ty),* $(,)?) => {
            $($(#[$cfg])* if let Some(error) = error.downcast_ref::<$type>() {
                return Some(error.verdict());
            })*
        };
    }
    first_of! {
        Error<Infallible>,
        Error<AgentError>,
        #[cfg(any(feature = "reqwest", feature = "websocket"))]
        ClientError,
        #[cfg(any(feature = "reqwest", feature = "websocket"))]
        Error<ClientError>,
    }
    None
}
