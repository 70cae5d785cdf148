//! The headers of every request of an agent.

#[cfg(feature = "reqwest")]
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
#[cfg(not(feature = "reqwest"))]
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use crate::agent::BoxError;

/// The headers set so far, or the error of the first invalid one, which `build` gives.
pub(super) struct Headers(Result<HeaderMap, BoxError>);

impl Headers {
    pub(super) fn new() -> Self {
        Self(Ok(HeaderMap::new()))
    }

    /// Sets a header, replacing those of that name.
    pub(super) fn insert(self, name: &str, value: &str) -> Self {
        self.change(|headers| {
            headers.insert(HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
            Ok(())
        })
    }

    /// Sets headers, replacing those of the same names.
    pub(super) fn extend(self, more: HeaderMap) -> Self {
        self.change(|headers| {
            headers.extend(more);
            Ok(())
        })
    }

    /// Sets the bearer token, marked as sensitive.
    pub(super) fn bearer(self, token: &str) -> Self {
        self.change(|headers| {
            let mut value = HeaderValue::try_from(format!("Bearer {token}"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
            Ok(())
        })
    }

    fn change(self, change: impl FnOnce(&mut HeaderMap) -> Result<(), BoxError>) -> Self {
        Self(self.0.and_then(|mut headers| change(&mut headers).map(|()| headers)))
    }

    pub(super) fn finish(self) -> Result<HeaderMap, BoxError> {
        self.0
    }
}
