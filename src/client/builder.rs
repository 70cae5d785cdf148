//! The builder and the start of a run, shared by `HttpAgent` and `WebSocketAgent`.

use core::fmt;
use core::future::Future;
use core::time::Duration;
use std::sync::Arc;

use futures::future::BoxFuture;
#[cfg(feature = "reqwest")]
use reqwest::header::HeaderMap;
#[cfg(not(feature = "reqwest"))]
use tokio_tungstenite::tungstenite::http::header::HeaderMap;

use super::headers::Headers;
use super::options::Common;
use super::stoppable::{Deadline, unless_aborted, until, within};
use super::{AbortHandle, ClientError};
use crate::agent::BoxError;
use crate::error::Error;
use crate::machine::Downgrader;
use crate::options::Options;
use crate::outgoing::Outgoing;
use crate::raw::RawItem;
use crate::run_input::RunAgentInput;
use crate::warning::Warning;

/// The user's function that changes a request before it is sent.
type Prepare<R> = Arc<dyn Fn(R) -> BoxFuture<'static, Result<R, BoxError>> + Send + Sync>;

/// The default limit of the time to connect.
pub(super) const CONNECT: Duration = Duration::from_secs(10);

/// The settings of a builder, without the address.
pub(super) struct Setup<R, O> {
    pub(super) headers: Headers,
    pub(super) prepare: Option<Prepare<R>>,
    pub(super) connect: Option<Duration>,
    pub(super) options: O,
    pub(super) outgoing: Outgoing,
}

impl<R, O> Setup<R, O> {
    pub(super) fn new(options: O) -> Self {
        Self { headers: Headers::new(), prepare: None, connect: Some(CONNECT), options, outgoing: Outgoing::new() }
    }

    /// The parts of an agent. It sends these headers, unless the settings have others of their names.
    pub(super) fn finish(self, mut headers: HeaderMap) -> Result<Runner<R, O>, ClientError> {
        headers.extend(self.headers.finish().map_err(ClientError::Prepare)?);
        Ok(Runner { headers, prepare: self.prepare, options: self.options, outgoing: self.outgoing, abort: None })
    }
}

/// The parts of an agent, without the address.
pub(super) struct Runner<R, O> {
    pub(super) headers: HeaderMap,
    prepare: Option<Prepare<R>>,
    pub(super) options: O,
    outgoing: Outgoing,
    abort: Option<AbortHandle>,
}

impl<R, O> Runner<R, O> {
    /// The request as the hook leaves it.
    pub(super) async fn prepare(&self, request: R) -> Result<R, ClientError> {
        match &self.prepare {
            Some(prepare) => prepare(request).await.map_err(ClientError::Prepare),
            None => Ok(request),
        }
    }

    /// Gives the input as it is sent to `run`, whose work the handle and the deadline may end. Gives
    /// what comes of it, how old the server is, and what the events are to begin with: the conversation,
    /// and what there is to say about the input.
    pub(super) async fn start<T, Fut>(
        &self,
        options: &Common,
        input: RunAgentInput,
        run: impl FnOnce(String, Deadline, AbortHandle) -> Fut,
    ) -> Result<(T, Downgrader, Vec<RawItem>), ClientError>
    where
        Fut: Future<Output = Result<T, ClientError>>,
    {
        let said = Options::of_run(&input);
        let (body, warnings) = body_of(self.outgoing, input)?;
        let abort = self.abort.clone().unwrap_or_else(AbortHandle::new);
        let run = run(body, until(options.deadline), abort.clone());
        let run = unless_aborted(abort, within(options.deadline, ClientError::Deadline, run));
        let peer = Downgrader::new(self.outgoing.peer()).with_limits(options.limits());
        let said = (!said.is_empty()).then(|| RawItem::Options(Box::new(said)));
        Ok((run.await?, peer, said.into_iter().chain(warnings.into_iter().map(RawItem::Warning)).collect()))
    }

    /// The same with a handle that ends its runs.
    pub(super) fn abortable(&self) -> (Self, AbortHandle)
    where
        O: Clone,
    {
        let abort = AbortHandle::new();
        (Self { abort: Some(abort.clone()), ..self.clone() }, abort)
    }

    /// Shows neither the query of the address nor the values of headers: they may be secret.
    pub(super) fn show(&self, name: &str, host: Option<&str>, path: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result
    where
        O: fmt::Debug,
    {
        f.debug_struct(name)
            .field("host", &host)
            .field("path", &path)
            .field("headers", &self.headers.keys().map(|name| name.as_str()).collect::<Vec<_>>())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<R, O: Clone> Clone for Runner<R, O> {
    fn clone(&self) -> Self {
        Self {
            headers: self.headers.clone(),
            prepare: self.prepare.clone(),
            options: self.options.clone(),
            outgoing: self.outgoing,
            abort: self.abort.clone(),
        }
    }
}

/// The input as it is sent, in JSON (rule T4), and the warnings about it.
fn body_of(outgoing: Outgoing, input: RunAgentInput) -> Result<(String, Vec<Warning>), ClientError> {
    let (input, warnings) = outgoing.prepare(input).map_err(|error| match error {
        Error::Malformed(error) => ClientError::Input(error),
        other => ClientError::Prepare(other.into()),
    })?;
    Ok((serde_json::to_string(&input).map_err(ClientError::Json)?, warnings))
}

/// The methods of both agents and of their builders. They differ in the `$request` that is prepared, and
/// in its example.
macro_rules! agent_and_builder {
    ($agent:ident, $builder:ident, $request:ty, $options:ty, $($example:literal)*) => {
        impl $agent {
            /// An agent at this address, with the default options.
            ///
            /// # Errors
            /// [`ClientError::Request`] for an invalid address.
            pub fn new(url: impl AsRef<str>) -> Result<Self, ClientError> {
                Self::builder(url).build()
            }

            /// The same agent with a handle that ends its runs, present and later ones, also while they
            /// wait for an answer.
            pub fn abortable(&self) -> (Self, AbortHandle) {
                let (runner, abort) = self.runner.abortable();
                (Self { runner, ..self.clone() }, abort)
            }
        }

        #[async_trait]
        impl Agent for $agent {
            async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
                Ok(told(Options::new(), self.start(input).await?))
            }
        }

        impl $builder {
            /// The default limit of the time to connect: ten seconds.
            pub const DEFAULT_CONNECT: Duration = CONNECT;

            /// Sends this header with each request, replacing one of that name.
            ///
            /// An invalid name or value is an error when the agent is built.
            pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
                self.setup.headers = self.setup.headers.insert(name.as_ref(), value.as_ref());
                self
            }

            /// Sends these headers with each request, replacing those of the same names.
            pub fn headers(mut self, more: HeaderMap) -> Self {
                self.setup.headers = self.setup.headers.extend(more);
                self
            }

            /// Sends this bearer token with each request. For one that changes, see
            #[doc = concat!("[`prepare`](", stringify!($builder), "::prepare).")]
            pub fn bearer(mut self, token: impl AsRef<str>) -> Self {
                self.setup.headers = self.setup.headers.bearer(token.as_ref());
                self
            }

            /// Changes each request before it is sent: a token that was just renewed, a signature, a
            /// trace.
            ///
            /// # Examples
            /// ```
            $(#[doc = $example])*
            /// ```
            pub fn prepare<F, Fut>(mut self, prepare: F) -> Self
            where
                F: Fn($request) -> Fut + Send + Sync + 'static,
                Fut: Future<Output = Result<$request, BoxError>> + Send + 'static,
            {
                self.setup.prepare = Some(Arc::new(move |request| Box::pin(prepare(request))));
                self
            }

            /// How answers are read: bounds, timers, tolerances.
            pub fn options(mut self, options: $options) -> Self {
                self.setup.options = options;
                self
            }

            /// For a server that speaks this version of the protocol at most: input that it cannot receive
            /// is not sent ([`Outgoing::max_protocol_version`]), and events that it cannot know are dropped
            /// ([`Downgrader`](crate::machine::Downgrader)), with warnings among the events.
            ///
            /// [`Outgoing::max_protocol_version`]: crate::input::Outgoing::max_protocol_version
            pub fn max_protocol_version(mut self, peer: ProtocolVersion) -> Self {
                self.setup.outgoing = self.setup.outgoing.max_protocol_version(peer);
                self
            }
        }

        impl fmt::Debug for $builder {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($builder)).field("options", &self.setup.options).finish_non_exhaustive()
            }
        }
    };
}

pub(super) use agent_and_builder;
