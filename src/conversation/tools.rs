//! `Tools`: the tools that the application runs for an agent, by name.

use core::error::Error as StdError;
use core::fmt;
use core::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::id::MessageId;
use crate::message::{ToolCall, ToolMessage};
use crate::run_input::Tool;

type Handler = Arc<dyn Fn(String) -> BoxFuture<'static, Result<String, ToolFailed>> + Send + Sync>;
type Ask = Arc<dyn Fn(ToolCall) -> BoxFuture<'static, Consent> + Send + Sync>;

/// The tools of the application: the description that the agent gets, and the function that does the work.
///
/// A [`Conversation`](super::Conversation) runs them when the run that called them has ended, one after the
/// other in the order of the calls, and gives the results to the next run. Invalid arguments or a failure give
/// a result too, marked as an error ([`ToolMessage::error`]), so that the agent may try again.
///
/// ```
/// use ag_ui_stream::conversation::{Consent, ToolFailed, Tools};
/// use ag_ui_stream::input::Tool;
/// use serde_json::json;
///
/// #[derive(serde::Deserialize)]
/// struct Place {
///     city: String,
/// }
///
/// let mut weather = Tool::new("weather", "The weather at a place.");
/// weather.parameters = Some(json!({
///     "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
/// }));
/// let tools = Tools::new()
///     .with(weather, |place: Place| async move {
///         if place.city.is_empty() {
///             return Err(ToolFailed::new("which city?"));
///         }
///         Ok(json!({"city": place.city, "degrees": 21}))
///     })
///     .with_consent(|call| async move {
///         match &*call.function.name {
///             "weather" => Consent::Allow,
///             _ => Consent::Deny("the user said no".into()),
///         }
///     });
/// # let _ = tools;
/// ```
#[derive(Clone)]
pub struct Tools {
    tools: Vec<(Tool, Option<Handler>)>,
    consent: Option<Ask>,
    rounds: usize,
}

impl Tools {
    /// How many runs may follow in a turn because of tools, by default.
    pub const DEFAULT_ROUNDS: usize = 16;

    /// No tools.
    #[must_use]
    pub fn new() -> Self {
        Self { tools: Vec::new(), consent: None, rounds: Self::DEFAULT_ROUNDS }
    }

    /// Adds a tool and the function that does its work. Replaces a tool of the same name.
    ///
    /// The arguments are read as the type that the function takes; if there are none, they are read as `{}`.
    /// The output of the future is the content of the result: text as it is, anything else as JSON.
    #[must_use]
    pub fn with<T, F, Fut, R>(self, tool: Tool, work: F) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(T) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolFailed>> + Send + 'static,
        R: Serialize + Send + 'static,
    {
        let handler = move |arguments: String| -> BoxFuture<'static, Result<String, ToolFailed>> {
            let arguments = if arguments.trim().is_empty() { "{}" } else { &arguments };
            match serde_json::from_str(arguments) {
                Ok(arguments) => work(arguments).map(|result| text_of(&result?)).boxed(),
                Err(error) => {
                    let error = ToolFailed::new(format!("the arguments do not fit: {error}"));
                    core::future::ready(Err(error)).boxed()
                }
            }
        };
        self.insert(tool, Some(Arc::new(handler)))
    }

    /// The same with the schema of the arguments derived from their type.
    ///
    /// ```
    /// use ag_ui_stream::conversation::Tools;
    ///
    /// /// Where to look.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Place {
    ///     city: String,
    /// }
    ///
    /// let tools = Tools::new()
    ///     .with_derived("weather", "The weather at a place.", |place: Place| async move { Ok(place.city) });
    /// let parameters = tools.iter().next().unwrap().parameters.as_ref().unwrap();
    /// assert_eq!(parameters["required"], serde_json::json!(["city"]));
    /// ```
    #[cfg(feature = "schemars")]
    #[must_use]
    pub fn with_derived<T, F, Fut, R>(self, name: impl Into<String>, description: impl Into<String>, work: F) -> Self
    where
        T: DeserializeOwned + schemars::JsonSchema + Send + 'static,
        F: Fn(T) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolFailed>> + Send + 'static,
        R: Serialize + Send + 'static,
    {
        let mut tool = Tool::new(name, description);
        tool.parameters = Some(schemars::schema_for!(T).to_value());
        self.with(tool, work)
    }

    /// Adds a tool without a function. The application answers its calls: they are
    /// [pending](super::Thread::pending_calls) when the turn ends.
    #[must_use]
    pub fn declare(self, tool: Tool) -> Self {
        self.insert(tool, None)
    }

    /// Asks this closure before each call. A denied call is not made; its result is the reason, marked as an
    /// error.
    #[must_use]
    pub fn with_consent<F, Fut>(self, ask: F) -> Self
    where
        F: Fn(ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Consent> + Send + 'static,
    {
        Self { consent: Some(Arc::new(move |call| ask(call).boxed())), ..self }
    }

    /// Sets how many runs may follow in a turn because of tools. After that the turn ends with
    /// [`TooManyRounds`].
    #[must_use]
    pub fn with_max_rounds(self, rounds: usize) -> Self {
        Self { rounds, ..self }
    }

    /// The tools as the agent is told of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Tool> {
        self.tools.iter().map(|(tool, _)| tool)
    }

    fn insert(mut self, tool: Tool, handler: Option<Handler>) -> Self {
        self.tools.retain(|(other, _)| other.name != tool.name);
        self.tools.push((tool, handler));
        self
    }

    pub(super) fn to_vec(&self) -> Vec<Tool> {
        self.iter().cloned().collect()
    }

    pub(super) fn rounds(&self) -> usize {
        self.rounds
    }

    /// The function that does the work of a tool.
    fn handler(&self, name: &str) -> Option<&Handler> {
        self.tools.iter().find(|(tool, _)| tool.name == name)?.1.as_ref()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.handler(name).is_some()
    }

    /// Makes a call, if it is allowed, and gives its result.
    pub(super) fn call(&self, call: ToolCall, id: String) -> BoxFuture<'static, ToolMessage> {
        let handler = self.handler(&call.function.name).cloned();
        let consent = self.consent.clone();
        async move {
            let tool_call_id = call.id.clone();
            let work = AssertUnwindSafe(done(call, handler, consent)).catch_unwind();
            let result = work.await.unwrap_or_else(|_| Err(ToolFailed::new("the tool panicked")));
            let (content, error) = match result {
                Ok(content) => (content, None),
                Err(ToolFailed(message)) => (message.clone(), Some(message)),
            };
            let mut message = ToolMessage::new(MessageId::from(id), content, tool_call_id);
            message.error = error.map(Into::into);
            message
        }
        .boxed()
    }
}

async fn done(call: ToolCall, handler: Option<Handler>, consent: Option<Ask>) -> Result<String, ToolFailed> {
    let arguments = call.function.arguments.to_cow().into_owned();
    if let Some(ask) = consent {
        if let Consent::Deny(reason) = ask(call).await {
            return Err(ToolFailed(reason));
        }
    }
    match handler {
        Some(handler) => handler(arguments).await,
        None => Err(ToolFailed::new("there is no such tool")),
    }
}

/// A value as the content of a result: text as it is, anything else as JSON.
fn text_of(result: &impl Serialize) -> Result<String, ToolFailed> {
    match serde_json::to_value(result) {
        Ok(Value::String(text)) => Ok(text),
        Ok(value) => Ok(value.to_string()),
        Err(error) => Err(ToolFailed::new(error)),
    }
}

impl Default for Tools {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tools")
            .field("names", &self.iter().map(|tool| &tool.name).collect::<Vec<_>>())
            .field("asks", &self.consent.is_some())
            .field("max_rounds", &self.rounds)
            .finish()
    }
}

/// Whether a tool call may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consent {
    /// It may be made.
    Allow,
    /// It may not be made; the agent is told this reason.
    Deny(String),
}

/// The failure of a tool, as text for the agent. Any error converts into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFailed(String);

impl ToolFailed {
    /// What went wrong.
    pub fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
}

impl<E: StdError> From<E> for ToolFailed {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

/// The error of a turn in which the agent called tools in too many runs.
///
/// The error within [`AgentError`](crate::agent::AgentError): `error.downcast_ref::<TooManyRounds>()`. The
/// calls of the last run wait: [`Thread::pending_calls`](super::Thread::pending_calls).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TooManyRounds {
    /// How many runs may follow because of tools.
    pub max: usize,
}

impl fmt::Display for TooManyRounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the agent called tools in more than {} runs of one turn", self.max)
    }
}

impl StdError for TooManyRounds {}
