//! Runs an agent at an address, as an input of the tool.

use std::io::Read;
use std::iter::successors;
use std::pin::Pin;

use ag_ui_stream::agent::{AgentError, RawEventStream};
use ag_ui_stream::client::{ClientError, HttpAgent, HttpOptions};
use ag_ui_stream::id::{IdGenerator, RandomIds};
use ag_ui_stream::message::UserMessage;
#[cfg(feature = "record")]
use ag_ui_stream::record::RecordAgentExt;
use ag_ui_stream::{Agent, Error, Options, Raw, RawItem, RunAgentInput};
use futures::TryStreamExt;
use tokio::runtime::Runtime;
use tokio::signal::ctrl_c;

use crate::RunOptions;
use crate::input::{Frame, Input, Next, Source, Unreadable};
use crate::run::Settings;

/// The agent at an address, with the input of its run. It is run when its first event is asked for.
pub(crate) fn run(url: &str, options: &RunOptions, settings: &Settings) -> Result<Input, Unreadable> {
    if url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")) {
        return Err(cannot_run("this tool is built without TLS; give it an http:// address, of a proxy say"));
    }
    let mut builder = HttpAgent::builder(url);
    for header in &options.headers {
        let Some((name, value)) = header.split_once(':') else {
            return Err(cannot_run(format!("invalid header {header:?}: write it as \"Name: value\"")));
        };
        builder = builder.header(name.trim(), value.trim());
    }
    if let Some(token) = &options.bearer {
        builder = builder.bearer(token);
    }
    builder = builder.options(HttpOptions::new().read_with(Options::new().repairs(settings.repairs)));
    let agent = builder.build().map_err(|error| unreadable(&error))?;
    let input = input_of(options, settings)?;
    let history = serde_json::to_vec(&input).map_err(|error| Unreadable::new(error.to_string()))?;
    let agent: Box<dyn Agent> = match &options.record {
        None => Box::new(agent),
        #[cfg(feature = "record")]
        Some(path) => {
            let path = path.clone();
            Box::new(agent.record(move |_: &RunAgentInput| tokio::fs::File::create(path.clone())))
        }
        #[cfg(not(feature = "record"))]
        Some(path) => {
            return Err(cannot_run(format!(
                "this tool is built without the feature that records: \
                 cargo run --example inspect --features full -- {url} --record {path}"
            )));
        }
    };
    let interrupt = Box::pin(async {
        // If the system has no such signal, none will come.
        if ctrl_c().await.is_err() {
            std::future::pending().await
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let live = Live { runtime, interrupt, agent, input: Some(input), events: None, complaint: None };
    Ok(Input::live(Box::new(live), history))
}

/// The input that the command line asks for.
fn input_of(options: &RunOptions, settings: &Settings) -> Result<RunAgentInput, Unreadable> {
    let mut ids = RandomIds::new();
    let mut input = match &options.input {
        None => {
            let history = settings.history.clone();
            let mut input = RunAgentInput::new(ids.next_id(), ids.next_id(), history.messages);
            input.state = history.state;
            input
        }
        Some(path) => {
            let json = if path == "-" {
                let mut json = Vec::new();
                std::io::stdin().read_to_end(&mut json).map(|_| json)
            } else {
                std::fs::read(path)
            };
            let cannot = |error: &dyn std::fmt::Display| cannot_run(format!("the input in {path}: {error}"));
            let json = json.map_err(|error| cannot(&error))?;
            RunAgentInput::from_json(&json).map_err(|error| cannot(&error))?.0
        }
    };
    let hello = || (options.input.is_none() && input.messages.is_empty()).then(|| "Hello".to_owned());
    if let Some(text) = options.message.clone().or_else(hello) {
        input.messages.push(UserMessage::new(ids.next_id(), text.as_str()).into());
    }
    Ok(input)
}

struct Live {
    runtime: Runtime,
    /// Ready once the user interrupts.
    interrupt: Pin<Box<dyn Future<Output = ()>>>,
    agent: Box<dyn Agent>,
    /// `None` once the run has begun.
    input: Option<RunAgentInput>,
    events: Option<RawEventStream>,
    complaint: Option<String>,
}

impl Source for Live {
    fn next(&mut self) -> Result<Next, Unreadable> {
        let Self { runtime, interrupt, agent, input, events, .. } = self;
        let next = runtime.block_on(async {
            let next = async {
                if let Some(input) = input.take() {
                    *events = Some(agent.run(input).await.map_err(Error::Source)?);
                }
                let Some(events) = events else { return Ok(None) };
                loop {
                    match events.try_next().await {
                        // What the run is given is known here.
                        Ok(Some(RawItem::Options(_))) => {}
                        next => break next,
                    }
                }
            };
            tokio::select! {
                next = next => next,
                () = interrupt => Err(Error::Source(ClientError::Aborted.into())),
            }
        });
        let raw = match next {
            Ok(Some(RawItem::Event { raw, .. })) => raw,
            Ok(Some(RawItem::Warning(warning))) => return Ok(Next::Skipped(warning, None)),
            Ok(Some(other)) => return Err(Unreadable::new(format!("unknown kind of item: {other:?}"))),
            Ok(None) => return Ok(Next::End(None)),
            #[cfg(feature = "record")]
            Err(Error::Source(error)) if events.is_some() && is_of_recording(&error) => {
                self.complaint = Some(unreadable(&error).message);
                return Ok(Next::End(None));
            }
            Err(error) => return Err(cut_off(&error)),
        };
        let bytes = match raw {
            Raw::Bytes(bytes) => bytes.into(),
            Raw::Text(text) => text.into_bytes(),
            Raw::Value(value) => value.to_string().into_bytes(),
            Raw::Event(event) => serde_json::to_vec(&event).map_err(|error| Unreadable::new(error.to_string()))?,
            other => return Err(Unreadable::new(format!("unknown kind of event: {other:?}"))),
        };
        Ok(Next::Event(Frame { bytes, line: None }))
    }

    fn close(&mut self) -> Option<String> {
        // The recorder keeps what it has written.
        self.events = None;
        self.complaint.take()
    }
}

/// Whether it is the error of the recorder, after a run that may have succeeded.
#[cfg(feature = "record")]
fn is_of_recording(error: &AgentError) -> bool {
    error.downcast_ref::<ag_ui_stream::record::RecordingFailed>().is_some()
}

/// The error that ended a run, perhaps after some events.
fn cut_off(error: &Error<AgentError>) -> Unreadable {
    match error {
        Error::Source(error) => {
            let cut_by = error.downcast_ref::<ClientError>().and_then(ClientError::truncated_by);
            Unreadable { cut_by, ..unreadable(error) }
        }
        Error::Truncated(truncated) => Unreadable { cut_by: Some(truncated.by), ..unreadable(error) },
        other => unreadable(other),
    }
}

/// An error with all its causes.
fn unreadable(error: &dyn std::error::Error) -> Unreadable {
    let causes: Vec<_> = successors(Some(error), |&error| error.source()).map(ToString::to_string).collect();
    cannot_run(causes.join(": "))
}

fn cannot_run(why: impl Into<String>) -> Unreadable {
    Unreadable { what: "run the agent", ..Unreadable::new(why) }
}
