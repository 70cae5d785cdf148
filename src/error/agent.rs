//! `AgentError`, the error of anything that runs an agent.

use core::error::Error as StdError;
use core::fmt;
use std::sync::Arc;

use super::Error;

/// An error of any type.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// Why an agent could not be run, or why its stream broke off: any error, shared by its clones.
///
/// `Display`, `Debug` and `source` are those of the error itself.
#[derive(Clone)]
pub struct AgentError(Arc<dyn StdError + Send + Sync>);

impl AgentError {
    /// From any error, or from a text.
    pub fn new(error: impl Into<BoxError>) -> Self {
        match error.into().downcast::<Self>() {
            Ok(error) => *error,
            Err(error) => Self(Arc::from(error)),
        }
    }

    /// The error itself.
    #[must_use]
    pub fn get_ref(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.0
    }

    /// The error itself, if it is of this type.
    #[must_use]
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl StdError for AgentError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

impl From<BoxError> for AgentError {
    fn from(error: BoxError) -> Self {
        Self::new(error)
    }
}

macro_rules! agent_error_from {
    ($($type:ty),*) => {$(
        impl From<$type> for AgentError {
            fn from(error: $type) -> Self {
                Self::new(error)
            }
        }
    )*};
}

agent_error_from!(&str, String, std::io::Error, serde_json::Error);

#[cfg(feature = "reqwest")]
agent_error_from!(reqwest::Error);

/// An agent may be built from the checked stream of another.
impl<E: StdError + Send + Sync + 'static> From<Error<E>> for AgentError {
    fn from(error: Error<E>) -> Self {
        Self::new(error)
    }
}
