//! Finds the errors of this crate within the error of a source: whether it cut off a run, and which rule
//! was broken.

use core::any::Any;
use core::convert::Infallible;
use core::error::Error as StdError;
use core::iter::successors;

#[cfg(any(feature = "reqwest", feature = "websocket"))]
use crate::client::ClientError;
use crate::error::{AgentError, Error, SourceError, Verdict};

impl<E: 'static> SourceError for E {
    fn verdict(&self) -> Verdict {
        let error: &dyn Any = self;
        if let Some(error) = error.downcast_ref::<AgentError>() {
            return within(error.get_ref()).unwrap_or(Verdict::TRANSPORT);
        }
        #[cfg(any(feature = "reqwest", feature = "websocket"))]
        if let Some(error) = error.downcast_ref::<ClientError>() {
            return error.verdict();
        }
        Verdict::TRANSPORT
    }
}

/// The verdict of the first error of this crate among an error and its causes.
fn within(error: &(dyn StdError + 'static)) -> Option<Verdict> {
    successors(Some(error), |&error| error.source()).find_map(|error| {
        if let Some(error) = error.downcast_ref::<AgentError>() {
            return within(error.get_ref());
        }
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
    })
}
